//! The one error type of this crate.

/// What making mixes refuses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A schema without a class.
    #[error("the schema names no target column: mixes are of one class")]
    NoTarget,
    /// A schema with a class and nothing else.
    #[error("the schema has no column beside its target: there is nothing to mix")]
    TargetAlone,
    /// Records, classes or columns in numbers that cannot be.
    #[error("{0}")]
    Shape(String),
    /// A setting outside its range.
    #[error("{what}: {problem}")]
    Setting {
        /// Which one.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A class with fewer records than a mix takes.
    #[error(
        "a party has {found} records of class {class}, and a mix takes {needed}: mix fewer records, or divide them \
         among fewer parties"
    )]
    SmallClass {
        /// The class.
        class: usize,
        /// Its records.
        found: usize,
        /// The records of a mix.
        needed: usize,
    },
    /// A budget that the accounting cannot show, whatever the noise.
    #[error(
        "no noise brings this many mixes to epsilon {0}: mix fewer records, make fewer mixes, or raise epsilon"
    )]
    OutOfReach(f64),
    /// More records of a class than there are places for.
    #[error("class {class} has more than the {capacity} records that there are places for")]
    NoPlace {
        /// The class.
        class: usize,
        /// Its places.
        capacity: usize,
    },
    /// Bytes that are no IDX file of the kind asked for.
    #[error("not an IDX file of {kind}: {problem}")]
    Idx {
        /// What was expected.
        kind: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Budgets, noise and the ledger.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// Encryption.
    #[error(transparent)]
    Encryption(#[from] fhaim_he::Error),
}
