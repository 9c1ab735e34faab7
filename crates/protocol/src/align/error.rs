//! Limits and errors of alignments.

/// Most rows that a party may align. Its table then takes 1.4 gigabytes.
pub const MAX_KEYS: usize = 1 << 24;

/// Smallest and largest number of parties of an alignment.
pub const MIN_PARTIES: usize = 2;
/// See [`MIN_PARTIES`].
pub const MAX_PARTIES: usize = 3;

/// Reasons for which an alignment fails. No variant carries a key. Rows are the party's own,
/// counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AlignError {
    /// The number of parties, or the party's own number, is out of range.
    #[error(
        "an alignment needs {MIN_PARTIES} or {MAX_PARTIES} parties, and this party's number must be one of them"
    )]
    Parties,
    /// The table has no rows, or too many.
    #[error("a table to align must have 1 to {MAX_KEYS} rows, and this one has {0}")]
    Rows(usize),
    /// A join key is empty. Rows without a key cannot be matched.
    #[error("row {0} has no join key: remove rows without a join key")]
    EmptyKey(usize),
    /// Two rows have the same join key.
    #[error(
        "rows {first} and {second} have the same join key: remove one, or align by more columns"
    )]
    RepeatedKey {
        /// The earlier row.
        first: usize,
        /// The later row.
        second: usize,
    },
    /// The bytes are not a message of this alignment from their sender.
    #[error("message: {0}")]
    Message(&'static str),
    /// The random places of the rows in a table do not fit it, which happens once in 2^65 alignments.
    #[error("the alignment failed by chance: start again with another session")]
    Chance,
}
