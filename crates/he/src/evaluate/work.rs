//! Counters and times of an evaluation.

/// Amounts of work by kind, and seconds summed over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EvaluationWork {
    /// Multiply-accumulates of residues in the tensor kernel.
    pub multiply_accumulates: u64,
    /// Polynomials whose key was switched, for right forms, products and merges.
    pub key_switches: u64,
    /// Transforms of one limb, for key switches.
    pub transforms: u64,
    /// Seconds in the tensor kernel.
    pub tensor: f64,
    /// Seconds for right forms and for merging leaves, which includes relinearisation.
    pub switching: f64,
    /// Seconds for the other levels of packing.
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

/// Measures wall time. Returns zero on the browser's target, which has no clock.
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
