//! The cells of a record, as numbers.

/// A cell of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// One of the texts that stand for a missing value in every column.
    Missing,
    /// A remembered text, by its number in the column's profile.
    Text(u32),
    /// A text that is not remembered, or bytes that are no text.
    Unknown,
}

impl Cell {
    /// Returns the cell's place in a list of the column's missing value and its remembered texts.
    pub(crate) fn place(self) -> Option<usize> {
        match self {
            Self::Missing => Some(0),
            Self::Text(number) => Some(number as usize + 1),
            Self::Unknown => None,
        }
    }
}
