//! The one error type of this crate.

use fhaim_domain::counted;
use fhaim_dp::number;

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
    #[error("{}", small_class(*.class, *.found, *.needed, *.parties))]
    SmallClass {
        /// The class that has fewest records at a party.
        class: usize,
        /// Its records there.
        found: usize,
        /// The records of a mix.
        needed: usize,
        /// All parties.
        parties: usize,
    },
    /// A budget that the accounting cannot show, whatever the noise.
    #[error(
        "no noise brings this many mixes to epsilon {}: raise it to {}, mix fewer records, or make fewer mixes",
        number(*.epsilon),
        number(*.least)
    )]
    OutOfReach {
        /// The epsilon asked for.
        epsilon: f64,
        /// The least that there is noise for, to two digits.
        least: f64,
    },
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
    /// Accounting.
    #[error(transparent)]
    Accounting(#[from] fhaim_rdp::Error),
    /// Encryption.
    #[error(transparent)]
    Encryption(#[from] fhaim_he::Error),
}

/// What there is too little of, and what would be enough of it.
fn small_class(class: usize, found: usize, needed: usize, parties: usize) -> String {
    let records = counted(found, "record");
    let has = match parties {
        1 => format!("class {class} has {records}"),
        _ => format!("a party has {records} of class {class}"),
    };
    let fewer = match found {
        0 => None,
        _ => Some(format!("mix {found} at most")),
    };
    let parties = (parties > 1).then(|| "divide them among fewer parties".to_owned());
    let ways: Vec<String> = fewer.into_iter().chain(parties).collect();
    format!("{has}, and a mix takes {needed}: {}", ways.join(", or "))
}
