//! What an evaluation took: how often it did what, and for how long.

/// Seconds of work by kind, summed over threads, and how often it was done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EvaluationWork {
    /// Multiply-accumulates of residues in the tensor kernel.
    pub multiply_accumulates: u64,
    /// Polynomials whose key was switched: of right forms, products and merges.
    pub key_switches: u64,
    /// Transforms of one limb that the key switches made.
    pub transforms: u64,
    /// Seconds in the tensor kernel.
    pub tensor: f64,
    /// Seconds making right forms, and merging leaves, which also relinearises.
    pub switching: f64,
    /// Seconds in the other levels of packing.
    pub packing: f64,
}

impl std::ops::AddAssign for EvaluationWork {
    fn add_assign(&mut self, other: Self) {
        self.multiply_accumulates += other.multiply_accumulates;
        self.key_switches += other.key_switches;
        self.transforms += other.transforms;
        self.tensor += other.tensor;
        self.switching += other.switching;
        self.packing += other.packing;
    }
}

impl std::iter::Sum for EvaluationWork {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let mut sum = Self::default();
        all.for_each(|work| sum += work);
        sum
    }
}

/// Wall time where there is a clock; the browser's target has none.
pub(crate) struct Clock(#[cfg(not(target_family = "wasm"))] std::time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(
            #[cfg(not(target_family = "wasm"))]
            std::time::Instant::now(),
        )
    }

    pub(crate) fn seconds(&self) -> f64 {
        #[cfg(not(target_family = "wasm"))]
        return self.0.elapsed().as_secs_f64();
        #[cfg(target_family = "wasm")]
        return 0.0;
    }
}
