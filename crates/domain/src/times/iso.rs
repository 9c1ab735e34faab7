//! Formats of durations as ISO 8601 writes them: `P[%-dD]T[%-HH][%-MM]`.

use super::{
    letters::{Item, Pad, Part, fraction},
    problem::FormatProblem,
};

/// The parts with their letters in formats and in texts.
pub(super) const DAYS: (Part, &str, &str) = (Part::Day, "%-d", "D");
pub(super) const CLOCK: [(Part, &str, &str); 3] = [
    (Part::Hour, "%-H", "H"),
    (Part::Minute, "%-M", "M"),
    (Part::Second, "%-S", "S"),
];

/// Whether a format of durations has parts in brackets, which are left out if they are zero.
pub(super) fn is_iso(format: &str) -> bool {
    format.starts_with("P[") || format.starts_with("PT[")
}

/// Splits a format such as `P[%-dD]T[%-HH][%-MM][%-S%.fS]` into items.
///
/// # Errors
/// [`FormatProblem::Iso`].
pub(super) fn items(format: &str) -> Result<Vec<Item>, FormatProblem> {
    let parts = || {
        let parts = format.strip_prefix('P')?;
        let (days, mut clock) = parts.split_once('T').unwrap_or((parts, ""));
        let mut items = Vec::new();
        if !days.is_empty() {
            let (group, rest) = group(days, DAYS)?;
            items.extend(group);
            rest.is_empty().then_some(())?;
        }
        for part in CLOCK {
            if let Some((group, rest)) = group(clock, part) {
                items.extend(group);
                clock = rest;
            }
        }
        clock.is_empty().then_some(items)
    };
    parts().ok_or(FormatProblem::Iso)
}

/// Reads a part in brackets. Returns its items and the rest of the format.
fn group<'f>(
    format: &'f str,
    (part, letters, unit): (Part, &str, &str),
) -> Option<(Vec<Item>, &'f str)> {
    let (inside, rest) = format.strip_prefix('[')?.split_once(']')?;
    let after = inside.strip_prefix(letters)?.strip_suffix(unit)?;
    let mut items = vec![Item::Number(part, Pad::None)];
    if part == Part::Second && !after.is_empty() {
        items.push(fraction(after.strip_prefix('%')?).filter(|_| after.starts_with("%."))?);
    } else if !after.is_empty() {
        return None;
    }
    items.push(Item::Text(unit.to_owned()));
    Some((items, rest))
}
