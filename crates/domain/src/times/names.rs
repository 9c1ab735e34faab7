//! Names of months and weekdays.

use std::sync::Arc;

use super::problem::FormatProblem;

/// Maximum number of characters of a name.
const MAX_NAME: usize = 32;

/// Number of months of a year, and of days of a week.
pub(super) const MONTHS: usize = 12;
pub(super) const WEEKDAYS: usize = 7;

/// The names of the months or weekdays of a column. Clones share their memory.
///
/// ```
/// use fhaim_domain::TimeNames;
///
/// let german = "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez".split(' ');
/// let months = TimeNames::months(german.map(str::to_owned).collect())?;
/// assert_eq!(months.find("Mrz 2024"), Some((2, 3)));
/// # Ok::<(), fhaim_domain::FormatProblem>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeNames(Arc<Names>);

#[derive(Debug, PartialEq, Eq)]
struct Names {
    /// Names by value, and again for each other spelling. The first ones are written.
    all: Vec<String>,
    /// Number of values.
    number: usize,
    /// All names with their values, sorted.
    spellings: Vec<(String, usize)>,
}

impl TimeNames {
    /// Returns names of the months: twelve from January, and then twelve for each other spelling that is read.
    ///
    /// # Errors
    /// [`FormatProblem::Names`].
    pub fn months(names: Vec<String>) -> Result<Self, FormatProblem> {
        Self::of(names, MONTHS).ok_or(FormatProblem::Names {
            field: "months",
            number: MONTHS,
            first: "January",
        })
    }

    /// Returns names of the weekdays: seven from Monday, and then seven for each other spelling that is read.
    ///
    /// # Errors
    /// [`FormatProblem::Names`].
    pub fn weekdays(names: Vec<String>) -> Result<Self, FormatProblem> {
        Self::of(names, WEEKDAYS).ok_or(FormatProblem::Names {
            field: "weekdays",
            number: WEEKDAYS,
            first: "Monday",
        })
    }

    /// Returns names of `number` values, or `None` if they are too few or not valid, or one stands for two values.
    pub(super) fn of(names: Vec<String>, number: usize) -> Option<Self> {
        if names.is_empty()
            || !names.len().is_multiple_of(number)
            || !names.iter().all(|name| is_valid(name))
        {
            return None;
        }
        let values = (0..number).cycle();
        let mut spellings: Vec<(String, usize)> = names.iter().cloned().zip(values).collect();
        spellings.sort_unstable();
        spellings.dedup();
        let is_twice = |pair: &[(String, usize)]| matches!(pair, [one, two] if one.0 == two.0);
        if spellings.windows(2).any(is_twice) {
            return None;
        }
        Some(Self(Arc::new(Names {
            all: names,
            number,
            spellings,
        })))
    }

    /// Returns the same names with other letters, such as capitals.
    pub(super) fn map(&self, change: impl Fn(&str) -> String) -> Option<Self> {
        let names = self.0.all.iter().map(|name| change(name));
        Self::of(names.collect(), self.0.number)
    }

    /// Returns all names, as they were given.
    pub fn list(&self) -> Vec<String> {
        self.0.all.clone()
    }

    /// Returns the value and the length in bytes of the longest name that `text` begins with. Values begin with 0.
    pub fn find(&self, text: &str) -> Option<(usize, usize)> {
        let spellings = &self.0.spellings;
        // The beginnings of a text are sorted before it, the longest last.
        let end = spellings.partition_point(|(name, _)| name.as_str() <= text);
        let first = text.chars().next();
        let before = spellings.get(..end)?.iter().rev();
        let mut near = before.take_while(|(name, _)| name.chars().next() == first);
        let (name, value) = near.find(|(name, _)| text.starts_with(name.as_str()))?;
        Some((*value, name.len()))
    }

    /// Returns the name that is written for a value.
    pub(super) fn written(&self, value: i64) -> &str {
        let value = usize::try_from(value).ok();
        let value = value.filter(|&value| value < self.0.number);
        let name = value.and_then(|value| self.0.all.get(value));
        name.map_or("", String::as_str)
    }

    /// Whether the end of a name cannot be told from the text after it.
    pub(super) fn run_into(&self, after: &str) -> bool {
        let continues = |more: &str| more.starts_with(after) || after.starts_with(more);
        self.endings().any(continues)
    }

    /// Whether a name is the beginning of another one.
    pub(super) fn overlap(&self) -> bool {
        self.endings().next().is_some()
    }

    /// The ends of names that begin with another name.
    fn endings(&self) -> impl Iterator<Item = &str> {
        let spellings = &self.0.spellings;
        // The names that begin with a name follow it.
        spellings.iter().enumerate().flat_map(|(place, (name, _))| {
            let longer = spellings.iter().skip(place + 1);
            longer.map_while(|(longer, _)| longer.strip_prefix(name.as_str()))
        })
    }
}

fn is_valid(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.chars().count())
        && name.trim() == name
        && !name.contains(|letter: char| letter.is_control() || letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn months(names: &str) -> Result<TimeNames, FormatProblem> {
        TimeNames::months(names.split(' ').map(str::to_owned).collect())
    }

    const GERMAN: &str = "Jan Feb März Apr Mai Juni Juli Aug Sept Okt Nov Dez";

    #[test]
    fn longest_name_is_found() {
        let names = months(&format!(
            "{GERMAN} Jan. Feb. Mär Apr. Mai Jun Jul Aug. Sept. Okt. Nov. Dez."
        ))
        .unwrap();
        for (text, found) in [
            ("Jan 2024", Some((0, 3))),
            ("Jan. 2024", Some((0, 4))),
            ("Juni", Some((5, 4))),
            ("Jun 2024", Some((5, 3))),
            ("März2024", Some((2, 5))),
            ("Mär. 2024", Some((2, 4))),
            ("Sept. 2024", Some((8, 5))),
            ("Sep 2024", None),
            ("jan 2024", None),
            ("Ja", None),
            ("", None),
            ("zzz", None),
        ] {
            assert_eq!(names.find(text), found, "{text}");
        }
        assert_eq!((names.written(2), names.written(12)), ("März", ""));
    }

    #[test]
    fn wrong_lists_are_rejected() {
        assert!(months(GERMAN).is_ok());
        for names in [
            "",
            "Jan Feb",
            &format!("{GERMAN} Jan"),
            &GERMAN.replace("Feb", "Jan"),
            &GERMAN.replace("Feb", "F2"),
            &GERMAN.replace("Feb", "F\u{7}"),
            &GERMAN.replace("Feb", &"F".repeat(33)),
            &GERMAN.replace("Feb", "\u{a0}"),
        ] {
            assert!(
                matches!(months(names), Err(FormatProblem::Names { .. })),
                "{names}"
            );
        }
    }

    #[test]
    fn other_letters_keep_all_spellings() {
        let names = months(&format!("{GERMAN} {}", GERMAN.replace("Sept", "Sep"))).unwrap();
        let capitals = names.map(str::to_uppercase).unwrap();
        assert_eq!(capitals.find("SEPT 2024"), Some((8, 4)));
        assert_eq!(capitals.find("SEP 2024"), Some((8, 3)));
        assert_eq!(capitals.find("MÄRZ"), Some((2, 5)));
        assert_eq!(capitals.find("Sep 2024"), None);
    }
}
