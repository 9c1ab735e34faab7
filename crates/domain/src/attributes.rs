//! The attributes that a field becomes: coarse ones, and fine ones that depend on them.

use rand::Rng;

use crate::{Column, ordered::Ordered};

/// A coarse attribute and the fine one that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldPart {
    pub(crate) coarse: usize,
    pub(crate) fine: Option<usize>,
}

/// The number of fine codes under each code of the coarse attribute, and their labels.
pub(crate) struct Digits {
    pub(crate) parts: Vec<u32>,
    pub(crate) labels: Vec<String>,
}

/// A coarse attribute and its digit, as a field resolves to them.
pub(crate) struct Resolved {
    /// Suffix of the attribute's name: "", " (time)" or " (offset)".
    pub(crate) suffix: &'static str,
    pub(crate) labels: Vec<String>,
    pub(crate) ordered: bool,
    pub(crate) digits: Option<Digits>,
}

/// Returns the attribute of ordered values. `show` displays a step.
pub(crate) fn resolved(
    suffix: &'static str,
    ordered: &Ordered,
    show: impl Fn(i64) -> String,
) -> Resolved {
    Resolved {
        suffix,
        labels: ordered.labels(show),
        ordered: true,
        digits: digits(ordered.parts().collect()),
    }
}

/// Returns the fine attribute, if any coarse code has more than one part.
pub(crate) fn digits(parts: Vec<u32>) -> Option<Digits> {
    let most = parts.iter().copied().max().filter(|&most| most > 1)?;
    Some(Digits {
        parts,
        labels: (1..=most).map(|part| format!("part {part}")).collect(),
    })
}

/// Iterates over the codes of a field's parts in a record.
pub(crate) struct Codes<'a> {
    pub(crate) columns: &'a [Column],
    pub(crate) code: &'a dyn Fn(usize) -> u32,
    pub(crate) parts: std::slice::Iter<'a, FieldPart>,
}

impl Codes<'_> {
    /// Returns the next coarse code and its fine one (0 if it has none), or `None` for a missing
    /// value.
    pub(crate) fn next(&mut self) -> Option<(u32, u32)> {
        let part = self.parts.next()?;
        let coarse = (self.code)(part.coarse);
        let fine = part.fine.map_or(0, self.code);
        let missing = self.columns.get(part.coarse)?.null_code() == Some(coarse);
        (!missing).then_some((coarse, fine))
    }

    /// Draws a step from the next part's codes.
    pub(crate) fn step(&mut self, ordered: &Ordered, rng: &mut (impl Rng + ?Sized)) -> Option<i64> {
        let (group, part) = self.next()?;
        Some(ordered.sample(group, part, rng))
    }
}
