//! The error type of this crate.

use fhaim_domain::counted;
use fhaim_dp::number;

/// An error of making mixes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The schema has no class column.
    #[error(
        "the schema names no target column, and every mix is of one class: set \"target\" in the schema"
    )]
    NoTarget,
    /// The schema has a class column and no other.
    #[error("the schema has no column except its target: there is nothing to mix")]
    TargetAlone,
    /// Records, classes or columns whose numbers are invalid or do not match.
    #[error("{0}")]
    Shape(String),
    /// A setting is out of its range.
    #[error("{what}: {problem}")]
    Setting {
        /// Name of the setting.
        what: &'static str,
        /// The problem, and the allowed range.
        problem: String,
    },
    /// A class has fewer records than a mix takes.
    #[error("{}", small_class(*.class, *.found, *.needed, *.parties))]
    SmallClass {
        /// The class with the fewest records at any party.
        class: usize,
        /// Its number of records at that party.
        found: usize,
        /// Number of records that a mix takes.
        needed: usize,
        /// Number of parties.
        parties: usize,
    },
    /// The budget is below the least epsilon that the accounting can show, even with the largest noise.
    #[error(
        "no noise keeps epsilon {} for this many mixes: raise epsilon to {}, mix fewer records, or make fewer mixes",
        number(*.epsilon),
        number(*.least)
    )]
    OutOfReach {
        /// The requested epsilon.
        epsilon: f64,
        /// The least epsilon that the largest noise keeps, rounded up to two digits.
        least: f64,
    },
    /// A class has more records than places.
    #[error("class {class} has more records than its {capacity} places: raise its capacity")]
    NoPlace {
        /// The class.
        class: usize,
        /// Its number of places.
        capacity: usize,
    },
    /// The bytes are not an IDX file of the expected kind.
    #[error("not an IDX file of {kind}: {problem}")]
    Idx {
        /// The expected content.
        kind: &'static str,
        /// The problem with the bytes.
        problem: String,
    },
    /// An error of budgets, noise or the ledger.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// An error of Renyi accounting.
    #[error(transparent)]
    Accounting(#[from] fhaim_rdp::Error),
    /// An error of encryption.
    #[error(transparent)]
    Encryption(#[from] fhaim_he::Error),
}

/// Message for [`Error::SmallClass`]: the number of records found, and the changes that would help.
fn small_class(class: usize, found: usize, needed: usize, parties: usize) -> String {
    let records = counted(found, "record");
    let has = match parties {
        1 => format!("class {class} has {records}"),
        _ => format!("a party has {records} of class {class}"),
    };
    let fewer = match found {
        0 => None,
        _ => Some(format!("mix at most {found}")),
    };
    let parties = (parties > 1).then(|| "split the records among fewer parties".to_owned());
    let ways: Vec<String> = fewer.into_iter().chain(parties).collect();
    format!("{has}, and a mix takes {needed}: {}", ways.join(", or "))
}
