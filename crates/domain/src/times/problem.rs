//! Why formats of dates and times are rejected.

use super::date::YEARS;

/// Maximum number of characters of a format.
pub(super) const MAX_FORMAT: usize = 64;

/// Why a format is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatProblem {
    /// A letter after `%` that has no meaning.
    #[error(
        "`format` has {0:?}: use %Y %y %m %b %B %d %a %A %H %I %p %M %S %f %z or %:z, with - for no \
         leading zero (%-d) and ^ for capitals (%^b); other characters stand for themselves, and %% \
         for a percent sign"
    )]
    Letter(String),
    /// A part that is repeated or missing, or that this kind of column does not have.
    #[error("`format` must have each of {0} once, and no other part")]
    Parts(&'static str),
    /// Too long or not printable.
    #[error("`format` must have from 1 to {MAX_FORMAT} printable characters")]
    Length,
    /// A part whose end cannot be told from its successor.
    #[error(
        "`format` does not tell where {0} ends: put another character after it, or use a part of \
         fixed width (%d instead of %-d, %3f instead of %f)"
    )]
    Adjacent(&'static str),
    /// A duration that begins with a minus.
    #[error("`format` must not begin with a minus: negative durations have one in any format")]
    Minus,
    /// Two-digit years without a first year, or a first year that four digits cannot write.
    #[error(
        "`format` has two-digit years (%y), so the column needs `first_year` from 1 to {last}, the \
         first of the hundred years that they stand for", last = YEARS.end() - 99
    )]
    FirstYear,
    /// A duration with parts in brackets that are not those of ISO 8601.
    #[error(
        "`format` must be P[%-dD]T[%-HH][%-MM][%-SS], or a part of it without a gap, such as \
         PT[%-HH][%-MM]; [%-S%.fS] has fractions of seconds"
    )]
    Iso,
    /// Names of months or weekdays that cannot be read.
    #[error(
        "`{field}` must have {number} names from {first} on, or {number} more for each other spelling; a \
         name has from 1 to 32 characters and no digits, and stands for one of the {number} only"
    )]
    Names {
        /// The field of the schema.
        field: &'static str,
        /// Number of names.
        number: usize,
        /// The first of the months or weekdays.
        first: &'static str,
    },
}
