//! Patterns of identifiers.

use super::Values;

/// A pattern has at least this many times as many identifiers as the table has records.
const ROOM: u64 = 10;

/// Shortest text of hexadecimal digits that is taken for a hash.
const MIN_HASH: usize = 8;

/// Most words of an identifier.
const MAX_WORDS: usize = 2;

/// Longest text that is taken for an identifier.
const MAX_LENGTH: usize = 48;

/// Returns the pattern that all texts but a few follow, with room for ten times as many records, or `None` if they are
/// not regular.
///
/// The texts have the same length and, at each place, a digit, a letter of one case, or always the same character.
/// Numbers without leading zeros may have several lengths.
pub(super) fn pattern(values: &Values<'_>, records: u64) -> Option<String> {
    if all(values, is_uuid) {
        return Some("uuid".to_owned());
    }
    if all(values, |text| {
        !text.contains(|c: char| c.is_ascii_lowercase()) && is_uuid(&text.to_lowercase())
    }) {
        return Some("UUID".to_owned());
    }
    let texts: Vec<&str> = values.iter().map(|(text, _)| text).collect();
    let longest = texts.iter().map(|text| text.chars().count()).max()?;
    if longest > MAX_LENGTH || texts.iter().any(|text| is_prose(text)) {
        return None;
    }
    if texts
        .iter()
        .all(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Some(whole_numbers(&texts, longest, records));
    }
    let regular: Vec<&str> = texts
        .iter()
        .copied()
        .filter(|text| text.chars().count() == longest)
        .collect();
    // A few shorter ones may come from counting up: P9, P10.
    if regular.len() * 2 < texts.len() {
        return None;
    }
    let places = places(&regular)?;
    let hex = |place: &Place| matches!(place, Place::HexLower | Place::HexUpper);
    if places.iter().any(hex) && !regular.iter().all(|text| is_hash(text)) {
        return None;
    }
    let short = texts.iter().filter(|text| text.chars().count() < longest);
    for text in short {
        if !is_shorter(text, &places) {
            return None;
        }
    }
    written(places, records)
}

fn all(values: &Values<'_>, is: impl Fn(&str) -> bool) -> bool {
    let mut texts = values.iter().map(|(text, _)| text).peekable();
    texts.peek().is_some() && texts.all(is)
}

/// Whether a text has several words, as free text has.
fn is_prose(text: &str) -> bool {
    let word = |part: &&str| part.chars().filter(|letter| letter.is_alphabetic()).count() > 1;
    text.split_whitespace().filter(word).count() > MAX_WORDS
}

/// Whether a text has only hexadecimal digits, in groups.
fn is_hash(text: &str) -> bool {
    text.len() >= MIN_HASH
        && text
            .chars()
            .all(|letter| letter == '-' || letter.is_ascii_hexdigit())
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let hex = |letter: char| letter == '-' || matches!(letter, '0'..='9' | 'a'..='f');
    groups == [8, 4, 4, 4, 12] && text.chars().all(hex)
}

/// The pattern of whole numbers: their greatest length, or more digits if these are too few. Without leading zeros in
/// the table, the pattern has none.
fn whole_numbers(texts: &[&str], longest: usize, records: u64) -> String {
    let padded = texts
        .iter()
        .any(|text| text.starts_with('0') && text.len() > 1);
    let mut digits = longest.max(2);
    let room = |digits: usize| {
        let first: u64 = if padded { 10 } else { 9 };
        10u64
            .checked_pow(digits as u32 - 1)
            .and_then(|rest| rest.checked_mul(first))
            .unwrap_or(u64::MAX)
    };
    while digits < MAX_LENGTH && room(digits) < records.saturating_mul(ROOM) {
        digits += 1;
    }
    if padded {
        return format!("[0-9]{{{digits}}}");
    }
    match digits - 1 {
        1 => "[1-9][0-9]".to_owned(),
        rest => format!("[1-9][0-9]{{{rest}}}"),
    }
}

/// What stands at a place of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Digit,
    Lower,
    Upper,
    /// A hexadecimal digit: digits and letters of one case.
    HexLower,
    HexUpper,
    Always(char),
}

impl Place {
    fn of(letter: char) -> Self {
        match letter {
            '0'..='9' => Self::Digit,
            other => Self::Always(other),
        }
    }

    /// Returns the place for texts of this place and another letter, or `None` if nothing regular has both.
    fn with(self, letter: char) -> Option<Self> {
        let hex = letter.is_ascii_hexdigit();
        match (self, letter) {
            (Self::Always(own), _) if own == letter => Some(self),
            (Self::Always('a'..='f'), 'a'..='f') => Some(Self::HexLower),
            (Self::Always('A'..='F'), 'A'..='F') => Some(Self::HexUpper),
            (Self::HexLower, 'g'..='z') => Some(Self::Lower),
            (Self::HexUpper, 'G'..='Z') => Some(Self::Upper),
            (Self::Always(own), _) if own.is_ascii_lowercase() && letter.is_ascii_lowercase() => {
                Some(Self::Lower)
            }
            (Self::Always(own), _) if own.is_ascii_uppercase() && letter.is_ascii_uppercase() => {
                Some(Self::Upper)
            }
            (Self::Always(own), '0'..='9') if own.is_ascii_hexdigit() => Some(hex_of(own)),
            (Self::Digit, '0'..='9') => Some(self),
            (Self::Digit, _) if hex => Some(hex_of(letter)),
            (Self::Lower, 'a'..='z') | (Self::Upper, 'A'..='Z') => Some(self),
            (Self::HexLower, '0'..='9' | 'a'..='f') | (Self::HexUpper, '0'..='9' | 'A'..='F') => {
                Some(self)
            }
            _ => None,
        }
    }

    fn set(self) -> String {
        match self {
            Self::Digit => "[0-9]".to_owned(),
            Self::Lower => "[a-z]".to_owned(),
            Self::Upper => "[A-Z]".to_owned(),
            Self::HexLower => "[0-9a-f]".to_owned(),
            Self::HexUpper => "[0-9A-F]".to_owned(),
            Self::Always(letter) => letter.to_string(),
        }
    }

    fn size(self) -> u64 {
        match self {
            Self::Digit => 10,
            Self::Lower | Self::Upper => 26,
            Self::HexLower | Self::HexUpper => 16,
            Self::Always(_) => 1,
        }
    }
}

fn hex_of(letter: char) -> Place {
    if letter.is_ascii_uppercase() {
        Place::HexUpper
    } else {
        Place::HexLower
    }
}

/// Returns the places of texts of one length.
fn places(texts: &[&str]) -> Option<Vec<Place>> {
    let mut places: Vec<Place> = texts.first()?.chars().map(Place::of).collect();
    for text in texts {
        for (place, letter) in places.iter_mut().zip(text.chars()) {
            *place = place.with(letter)?;
        }
    }
    // Letters may have been taken for hexadecimal digits at first.
    let fits = |text: &&&str| {
        places
            .iter()
            .zip(text.chars())
            .all(|(place, letter)| place.with(letter) == Some(*place))
    };
    if !texts.iter().all(|text| fits(&text)) {
        return None;
    }
    let printable = |place: &Place| !matches!(place, Place::Always(letter) if "[]{}".contains(*letter) || letter.is_control());
    let varies = places.iter().any(|place| place.size() > 1);
    (varies && places.iter().all(printable)).then_some(places)
}

/// Whether a text is like the places but for fewer digits in the last run of digits.
fn is_shorter(text: &str, places: &[Place]) -> bool {
    let Some(end) = places.iter().rposition(|&place| place == Place::Digit) else {
        return false;
    };
    let after = places.len() - end - 1;
    let letters: Vec<char> = text.chars().collect();
    let Some(head) = letters.len().checked_sub(after) else {
        return false;
    };
    let fits = |letters: &[char], places: &[Place]| {
        letters.len() <= places.len()
            && letters
                .iter()
                .zip(places)
                .all(|(&l, p)| p.with(l) == Some(*p))
    };
    fits(&letters[..head], &places[..=end]) && fits(&letters[head..], &places[end + 1..])
}

/// Writes places as a pattern, with more digits in the last run of digits if there are too few identifiers.
fn written(places: Vec<Place>, records: u64) -> Option<String> {
    let room = places
        .iter()
        .fold(1u64, |all, place| all.saturating_mul(place.size()));
    let mut lacking = 0;
    let mut grown = room;
    while grown < records.saturating_mul(ROOM) && lacking < MAX_LENGTH {
        grown = grown.saturating_mul(10);
        lacking += 1;
    }
    let mut places = places;
    if lacking > 0 {
        let at = places.iter().rposition(|&place| place == Place::Digit)?;
        places.splice(at..at, std::iter::repeat_n(Place::Digit, lacking));
    }
    let mut runs: Vec<(Place, usize)> = Vec::new();
    for place in places {
        match runs.last_mut() {
            Some((last, times)) if *last == place && place.size() > 1 => *times += 1,
            _ => runs.push((place, 1)),
        }
    }
    let text = runs.into_iter().map(|(place, times)| match times {
        1 => place.set(),
        times => format!("{}{{{times}}}", place.set()),
    });
    Some(text.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn found(texts: &[&str], records: u64) -> Option<String> {
        let mut profile = Profile::new(&[]);
        for (row, text) in (1..).zip(texts) {
            profile.see(text, row);
        }
        pattern(&Values::all(&profile), records)
    }

    #[test]
    fn regular_texts_have_a_pattern_with_room() {
        assert_eq!(found(&["S01", "S49"], 2).unwrap(), "S[0-9]{2}");
        assert_eq!(found(&["S01", "S49"], 95).unwrap(), "S[0-9]{3}");
        assert_eq!(
            found(&["390-35-2857", "650-24-6480"], 400).unwrap(),
            "[0-9]{3}-[0-9]{2}-[0-9]{4}"
        );
        assert_eq!(
            found(&["p12@x.org", "p34@x.org"], 4).unwrap(),
            "p[0-9]{2}@x.org"
        );
        assert_eq!(
            found(&["1662650613", "9955778998"], 4).unwrap(),
            "[1-9][0-9]{9}"
        );
        assert_eq!(found(&["01", "99", "12"], 4).unwrap(), "[0-9]{2}");
        assert_eq!(found(&["7", "8", "12"], 900).unwrap(), "[1-9][0-9]{3}");
        assert_eq!(
            found(&["a3f000ff", "00b1ccdd", "ff1a0b1c"], 9).unwrap(),
            "[0-9a-f]{8}"
        );
        assert_eq!(found(&["P9", "P10", "P11"], 3).unwrap(), "P[0-9]{2}");
        let uuid = "6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b";
        assert_eq!(found(&[uuid], 9).unwrap(), "uuid");
    }

    #[test]
    fn irregular_texts_have_no_pattern() {
        assert_eq!(found(&["Kamo", "Rimotenten"], 2), None);
        assert_eq!(found(&["a", "b1"], 2), None);
        assert_eq!(found(&["same", "same"], 2), None);
        assert_eq!(found(&["{1}", "{2}"], 2), None);
        assert_eq!(
            found(&["Patient 17 is in pain", "Patient 18 is in pain"], 2),
            None
        );
        assert_eq!(found(&[], 2), None);
    }
}
