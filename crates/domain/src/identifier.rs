//! Identifiers: they are never encrypted, and sampling generates new ones.

use std::fmt::{self, Display, Formatter};

use rand::Rng;

/// Maximum number of characters of a pattern, and of its values.
const MAX_PATTERN: usize = 256;
const MAX_VALUE: usize = 64;

/// Why a pattern is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternProblem {
    /// The pattern does not have a valid form.
    #[error(
        "`pattern` {0:?} is not valid: use `sequence`, `uuid`, `UUID`, or characters with sets such as \
         [0-9A-F] and repetitions such as {{5}}, as in P[0-9]{{5}}"
    )]
    Form(String),
    /// The pattern is empty or too long.
    #[error(
        "`pattern` must have from 1 to {MAX_PATTERN} characters, and its values at most {MAX_VALUE}"
    )]
    Length,
}

/// How to generate new identifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// 1, 2, 3 and so on.
    Sequence,
    /// A random UUID (RFC 9562, version 4).
    Uuid,
    /// The same in capital letters.
    CapitalUuid,
    /// Characters from sets, counted up in the order of the sets.
    Sets(Vec<Vec<char>>),
}

impl Pattern {
    /// Reads `sequence`, `uuid`, `UUID` or a pattern.
    ///
    /// # Errors
    /// See [`PatternProblem`].
    pub(crate) fn parse(text: &str) -> Result<Self, PatternProblem> {
        match text {
            "sequence" => return Ok(Self::Sequence),
            "uuid" => return Ok(Self::Uuid),
            "UUID" => return Ok(Self::CapitalUuid),
            _ => {}
        }
        let length = text.chars().count();
        if !(1..=MAX_PATTERN).contains(&length) || text.chars().any(char::is_control) {
            return Err(PatternProblem::Length);
        }
        let wrong = || PatternProblem::Form(text.to_owned());
        let mut sets: Vec<Vec<char>> = Vec::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let set = match letter {
                '[' => {
                    let (inside, after) = rest.split_once(']').ok_or_else(wrong)?;
                    rest = after;
                    set_of(inside).ok_or_else(wrong)?
                }
                ']' | '{' | '}' => return Err(wrong()),
                letter => vec![letter],
            };
            let mut times = 1;
            if let Some(after) = rest.strip_prefix('{') {
                let (count, after) = after.split_once('}').ok_or_else(wrong)?;
                rest = after;
                times = count.parse().map_err(|_| wrong())?;
            }
            if times > MAX_VALUE || sets.len() + times > MAX_VALUE {
                return Err(PatternProblem::Length);
            }
            sets.extend(std::iter::repeat_n(set, times));
        }
        if sets.is_empty() {
            return Err(PatternProblem::Length);
        }
        Ok(Self::Sets(sets))
    }

    /// Returns the number of identifiers that follow the pattern exactly, or `None` if it is unlimited or above 2^64.
    /// Later identifiers have the number of their round after them.
    pub(crate) fn capacity(&self) -> Option<u64> {
        match self {
            Self::Sequence | Self::Uuid | Self::CapitalUuid => None,
            Self::Sets(sets) => {
                let count = |all: u64, set: &Vec<char>| all.checked_mul(set.len() as u64);
                sets.iter().try_fold(1, count)
            }
        }
    }

    /// Returns the identifier of record `number`, counted from 0.
    pub(crate) fn value(&self, number: u64, rng: &mut (impl Rng + ?Sized)) -> Identifier<'_> {
        let number = match self {
            Self::Uuid | Self::CapitalUuid => rng.random(),
            _ => u128::from(number),
        };
        Identifier {
            pattern: self,
            number,
        }
    }
}

/// Parses the characters of a set: single characters and ranges.
fn set_of(text: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = text.chars().collect();
    let mut set = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        match (letters.get(at), letters.get(at + 1), letters.get(at + 2)) {
            (Some(&first), Some('-'), Some(&last)) if first <= last => {
                set.extend(first..=last);
                at += 3;
            }
            (_, Some('-'), Some(_)) => return None,
            (Some(&letter), ..) => {
                set.push(letter);
                at += 1;
            }
            (None, ..) => return None,
        }
        if set.len() > 1_000 {
            return None;
        }
    }
    let mut sorted = set.clone();
    sorted.sort_unstable();
    let repeats = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    let printable = set.iter().all(|letter| !letter.is_control());
    (!set.is_empty() && !repeats && printable).then_some(set)
}

/// A new identifier. Once a pattern has no more identifiers, they begin again with the number of the round after them:
/// `S99` is followed by `S001`. All identifiers of a pattern differ, because those of one round have the same length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Identifier<'a> {
    pattern: &'a Pattern,
    number: u128,
}

impl Display for Identifier<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.pattern {
            Pattern::Sequence => write!(out, "{}", self.number.saturating_add(1)),
            Pattern::Uuid | Pattern::CapitalUuid => {
                let version = (self.number & !(0xf << 76)) | (0x4 << 76);
                let number = (version & !(0x3 << 62)) | (0x2 << 62);
                let hex = match self.pattern {
                    Pattern::CapitalUuid => format!("{number:032X}"),
                    _ => format!("{number:032x}"),
                };
                let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
                write!(out, "{a}-{b}-{c}-{d}-{e}")
            }
            Pattern::Sets(sets) => {
                let mut number = self.number;
                let mut text: Vec<char> = Vec::with_capacity(sets.len());
                for set in sets.iter().rev() {
                    let size = set.len() as u128;
                    text.push(set[(number % size) as usize]);
                    number /= size;
                }
                text.iter()
                    .rev()
                    .try_for_each(|letter| write!(out, "{letter}"))?;
                match number {
                    0 => Ok(()),
                    round => write!(out, "{round}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    use std::collections::HashSet;

    #[test]
    fn identifiers_follow_their_pattern_and_are_distinct() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut show = |text: &str, number| {
            let pattern = Pattern::parse(text).unwrap();
            pattern.value(number, &mut rng).to_string()
        };
        assert_eq!(show("sequence", 0), "1");
        assert_eq!(show("P[0-9]{5}", 123), "P00123");
        assert_eq!(show("[A-C][xz]", 3), "Bz");
        let capital = show("UUID", 0);
        assert!(capital.len() == 36 && capital == capital.to_uppercase());
        let uuids: HashSet<String> = (0..100).map(|n| show("uuid", n)).collect();
        assert_eq!(uuids.len(), 100);
        for uuid in &uuids {
            assert_eq!(uuid.len(), 36);
            assert_eq!(&uuid[14..15], "4");
            assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        }
        let pattern = Pattern::parse("[0-9]{3}").unwrap();
        assert_eq!(pattern.capacity(), Some(1000));
        let all: HashSet<String> = (0..1000)
            .map(|n| pattern.value(n, &mut rng).to_string())
            .collect();
        assert_eq!(all.len(), 1000);
    }

    #[test]
    fn identifiers_never_run_out_and_stay_distinct() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for text in ["S[0-9]{2}", "x", "[0-9]", "[1-2][0-9]"] {
            let pattern = Pattern::parse(text).unwrap();
            let all = (0..3000).map(|n| pattern.value(n, &mut rng).to_string());
            assert_eq!(all.collect::<HashSet<_>>().len(), 3000, "{text}");
        }
        let pattern = Pattern::parse("S[0-9]{2}").unwrap();
        let mut show = |number| pattern.value(number, &mut rng).to_string();
        assert_eq!(show(99), "S99");
        assert_eq!(show(100), "S001");
        assert_eq!(show(1234), "S3412");
        assert_eq!(show(u64::MAX), "S15184467440737095516");
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        for wrong in ["[", "[]", "a{", "a{x}", "]", "[9-0]", "[aa]", "{2}", "[a-]"] {
            let parsed = Pattern::parse(wrong);
            assert!(
                matches!(parsed, Err(PatternProblem::Form(_))) || wrong == "[a-]",
                "{wrong}"
            );
        }
        assert_eq!(Pattern::parse(""), Err(PatternProblem::Length));
        assert_eq!(Pattern::parse("a{99}"), Err(PatternProblem::Length));
        assert_eq!(Pattern::parse("a{0}"), Err(PatternProblem::Length));
    }
}
