//! The cells of a plain CSV table, and the shapes of values.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

/// A list may contain a value only if at least this many records share it.
pub const SHARED: usize = 20;

/// Texts that stand for a missing value in many programs. They tell nothing about a record.
const KNOWN_MISSING: [&str; 50] = [
    "", " ", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "NULL", "Null", "null", "None", "none",
    "nil", "-", "--", "---", ".", "..", "...", "?", "??", "\\N", "unk", "UNK", "Unk", "unknown",
    "Unknown", "UNKNOWN", "k.A.", "k. A.", "n.a.", "N.A.", "#N/A", "#NA", "#VALUE!", "#DIV/0!",
    "#REF!", "#NAME?", "#NUM!", "#NULL!", "missing", "Missing", "MISSING", ":", "*", "**", " NA",
    "<NA>",
];

/// Whether the text is a well-known missing marker.
pub fn is_known_missing(text: &str) -> bool {
    KNOWN_MISSING.contains(&text) || KNOWN_MISSING.contains(&text.trim())
}

/// A plain CSV table.
pub struct Cells {
    /// The names in the header.
    pub header: Vec<String>,
    /// The cells of each column.
    pub columns: Vec<Vec<String>>,
}

impl Cells {
    /// Reads a file.
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&bytes)
    }

    /// Reads CSV in UTF-8 with commas. Fields that a record lacks are empty, and surplus ones are
    /// left out.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes);
        let mut rows = reader.byte_records().map(|record| {
            let record = record.unwrap();
            let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
            record.iter().map(text).collect::<Vec<String>>()
        });
        let header = rows.next().unwrap_or_default();
        let mut columns = vec![Vec::new(); header.len()];
        for row in rows {
            for (at, column) in columns.iter_mut().enumerate() {
                column.push(row.get(at).cloned().unwrap_or_default());
            }
        }
        Self { header, columns }
    }

    /// Number of records.
    pub fn records(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// The column that a schema's column stands for: by its name, or by its place if the table has
    /// no name there.
    pub fn column(&self, name: &str, place: usize) -> Option<&[String]> {
        let named = |other: &String| other.trim() == name.trim();
        let exact = self.header.iter().position(|other| other == name);
        let nameless = || {
            self.header
                .get(place)
                .filter(|name| name.is_empty())
                .map(|_| place)
        };
        let at = exact
            .or_else(|| self.header.iter().position(named))
            .or_else(nameless)?;
        self.columns.get(at).map(Vec::as_slice)
    }
}

/// How often each value occurs.
pub fn counts(cells: &[String]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for cell in cells {
        *counts.entry(cell.as_str()).or_insert(0) += 1;
    }
    counts
}

/// Reads a number as people write it: without the texts around it, the marks between thousands and
/// the form of the sign.
pub fn number(text: &str, decimal_comma: bool) -> Option<f64> {
    let text = text.trim().replace('\u{2212}', "-");
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let negative = text.contains('-') || (text.starts_with('(') && text.ends_with(')'));
    let mark = if decimal_comma { ',' } else { '.' };
    let mut digits = String::new();
    for letter in text.chars() {
        match letter {
            '0'..='9' => digits.push(letter),
            _ if letter == mark && !digits.contains('.') => digits.push('.'),
            _ if letter.is_alphabetic() => return None,
            _ => {}
        }
    }
    let value: f64 = digits.parse().ok()?;
    Some(if negative { -value } else { value })
}

/// The shape of a value: runs of digits (`9`), small (`a`) and capital letters (`A`) with their
/// lengths, and all other characters. With `mixed`, letters and digits are one class, which is `A`
/// for values with capital letters, as in hexadecimal numbers.
fn shape(text: &str, mixed: bool) -> (String, Vec<usize>) {
    let (mut key, mut lengths) = (String::new(), Vec::new());
    let capital = text.chars().any(char::is_uppercase);
    for letter in text.chars() {
        let class = match letter {
            _ if mixed && letter.is_lowercase() && capital => 'a',
            _ if mixed && letter.is_alphanumeric() && capital => 'A',
            _ if mixed && letter.is_alphanumeric() => 'a',
            '0'..='9' => '9',
            _ if letter.is_uppercase() => 'A',
            _ if letter.is_alphabetic() => 'a',
            other => other,
        };
        match lengths.last_mut() {
            Some(length) if key.ends_with(class) && "9aA".contains(class) => *length += 1,
            _ => {
                key.push(class);
                lengths.push(1);
            }
        }
    }
    (key, lengths)
}

/// The shapes of a column's values.
pub struct Shapes {
    /// Shortest and longest runs by shape.
    known: BTreeMap<String, Vec<(usize, usize)>>,
    thousands: Option<char>,
    /// Whether the first run of digits may have another length: the column has numbers without
    /// zeros in front.
    free_digits: bool,
    /// Whether letters and digits may change places: the column has identifiers with both.
    mixed: bool,
    /// Number of characters that a run may have more: identifiers may be longer, so that there are
    /// enough of them.
    longer: usize,
}

impl Shapes {
    /// Collects the shapes of a column of a kind. `thousands` is the mark between groups of digits.
    pub fn of(cells: &[String], thousands: Option<char>, kind: &str) -> Self {
        let padded = |cell: &&String| {
            let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
            cell.starts_with('0') && digits.len() > 1 && !cell.contains(['.', ','])
        };
        let mut shapes = Self {
            known: BTreeMap::new(),
            thousands,
            free_digits: kind == "number" && !cells.iter().any(|cell| padded(&cell)),
            mixed: kind == "identifier"
                && !cells
                    .iter()
                    .all(|cell| cell.bytes().all(|b| !b.is_ascii_alphabetic())),
            longer: if kind == "identifier" { 2 } else { 0 },
        };
        for cell in cells {
            let (key, lengths) = shape(&shapes.ungrouped(cell), shapes.mixed);
            let runs = shapes
                .known
                .entry(key)
                .or_insert_with(|| lengths.iter().map(|&length| (length, length)).collect());
            for (run, length) in runs.iter_mut().zip(lengths) {
                *run = (run.0.min(length), run.1.max(length));
            }
        }
        shapes
    }

    fn ungrouped(&self, text: &str) -> String {
        match self.thousands {
            Some(mark) => text.replace(mark, ""),
            None => text.to_owned(),
        }
    }

    /// Whether a value has one of the shapes. Runs that have one length in the column keep it, except
    /// in identifiers; others may be one longer than the longest.
    pub fn fit(&self, text: &str) -> bool {
        if let Some(mark) = self.thousands
            && !is_grouped(text, mark)
        {
            return false;
        }
        let (key, lengths) = shape(&self.ungrouped(text), self.mixed);
        let Some(runs) = self.known.get(&key) else {
            return false;
        };
        let first_digits = key.chars().position(|class| class == '9');
        let fits = |(at, (&(low, high), &length)): (usize, (&(usize, usize), &usize))| {
            let free = self.free_digits && first_digits == Some(at);
            match low == high && !free {
                true => (low..=high + self.longer).contains(&length),
                false => length <= high + self.longer.max(1),
            }
        };
        runs.iter().zip(&lengths).enumerate().all(fits)
    }

    /// Some of the shapes, for messages.
    pub fn show(&self) -> String {
        let keys: Vec<&str> = self.known.keys().map(String::as_str).take(4).collect();
        keys.join(" | ")
    }
}

/// Whether all groups of digits before the decimal mark but the first have three digits.
fn is_grouped(text: &str, mark: char) -> bool {
    if !text.contains(mark) {
        return true;
    }
    let groups: Vec<usize> = text
        .split(mark)
        .map(|part| part.chars().filter(char::is_ascii_digit).count())
        .collect();
    let decimals = text
        .rfind(['.', ','])
        .filter(|&at| !text[at..].starts_with(mark));
    let last = text.split(mark).next_back().unwrap_or_default();
    let last_digits = match decimals {
        Some(_) => last
            .chars()
            .take_while(|letter| letter.is_ascii_digit())
            .count(),
        None => *groups.last().unwrap_or(&3),
    };
    let inner = groups.get(1..groups.len() - 1).unwrap_or_default();
    (1..=3).contains(&groups[0]) && inner.iter().all(|&size| size == 3) && last_digits == 3
}
