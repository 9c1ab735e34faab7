//! The form of `expectations.json`. The file `README.md` next to the tables documents the keys.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::Value as Json;

/// The requirements of one table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The table's file.
    pub file: String,
    /// The test that the table belongs to.
    pub group: String,
    /// The public report that the table reproduces.
    #[serde(default)]
    pub source: Option<String>,
    /// The user's report, in one sentence.
    #[serde(default)]
    pub report: Option<String>,
    /// The same table as plain CSV, if the file itself is not plain CSV in UTF-8 with commas.
    #[serde(default)]
    pub plain: Option<String>,
    /// The test that covers the table, if it is not among these.
    #[serde(default)]
    pub elsewhere: Option<String>,
    /// Why the table is known to be wrong. Such a table must fail, so that this key is removed with the fault.
    #[serde(default)]
    pub open: Option<String>,
    /// Numbers of records that the reader may find. Empty: the number of the plain table.
    #[serde(default)]
    pub records: Vec<usize>,
    /// Words that the notes or remarks contain.
    #[serde(default)]
    pub says: Vec<Words>,
    /// Texts that no schema, note or remark contains.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Rules between columns that the draft proposes.
    #[serde(default)]
    pub rules: Vec<ProposedRule>,
    /// Columns that no proposed rule has together.
    #[serde(default)]
    pub unrelated: Vec<Vec<String>>,
    /// Pairs of columns with ISO dates; no synthetic record has the first after the second.
    #[serde(default)]
    pub ordered: Vec<(String, String)>,
    /// The schema can write a table that is this many times as long.
    #[serde(default)]
    pub larger: Option<u64>,
    /// Words of the error. The table must be refused.
    #[serde(default)]
    pub refused: Option<Vec<Words>>,
    /// Words of the error, if the table is refused. It may also be drafted.
    #[serde(default)]
    pub may_refuse: Option<Vec<Words>>,
    /// The requirements of each column.
    #[serde(default)]
    pub columns: BTreeMap<String, Facts>,
}

/// A word, or several of which one suffices.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// This word.
    One(String),
    /// One of these words.
    Any(Vec<String>),
}

/// A rule between columns that a draft proposes, with the number of records that support it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedRule {
    /// The columns.
    pub columns: Vec<String>,
    /// The number of records, if it is looked at.
    #[serde(default)]
    pub records: Option<usize>,
    /// Words of the rule.
    #[serde(default)]
    pub says: Vec<Words>,
}

/// The requirements of a column.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The kind, or several of which one suffices.
    pub kind: Option<Kinds>,
    /// Keys of the schema and their values. `null` means that the key is absent, `"*"` that it has
    /// any value, and `{"one_of": […]}` lists alternatives. `decimals` is 0 for integers.
    #[serde(default)]
    pub schema: BTreeMap<String, Json>,
    /// Texts that are read as a missing value.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Special values that the schema lists.
    #[serde(default)]
    pub special: Vec<Json>,
    /// Values that the schema lists as special or as missing.
    #[serde(default)]
    pub set_apart: Vec<Json>,
    /// All categories, in any order, without `other`.
    #[serde(default)]
    pub categories: Option<Vec<String>>,
    /// Number of records without a value. The default counts the texts of `missing` and the empty
    /// cells if `missing` is given.
    #[serde(default)]
    pub nulls: Option<usize>,
    /// Words of the notes about this column.
    #[serde(default)]
    pub says: Vec<Words>,
    /// Requirements of the written values.
    #[serde(default)]
    pub written: Written,
    /// Whether the draft may lack the column.
    #[serde(default)]
    pub optional: bool,
}

/// Requirements of the values of a synthetic table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// First characters of every value.
    #[serde(default)]
    pub begins: Option<String>,
    /// Last characters of every value.
    #[serde(default)]
    pub ends: Option<String>,
    /// Texts that every value contains. A list has alternatives.
    #[serde(default)]
    pub contains: Vec<Words>,
    /// Every number is a multiple of this one.
    #[serde(default)]
    pub multiple: Option<f64>,
    /// No number is smaller, apart from the values that are set apart.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// No number is larger, apart from the values that are set apart.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// Every value occurs in the table.
    #[serde(default)]
    pub real: bool,
    /// Texts, or texts with a `*`, that occur as often as in the table, within a tenth or five.
    #[serde(default)]
    pub keeps: Vec<String>,
    /// Whether the values may have another form than those of the table.
    #[serde(default)]
    pub any_form: bool,
}

/// A kind, or several of which one suffices.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Kinds {
    /// This kind.
    One(String),
    /// One of these kinds.
    Any(Vec<String>),
}

impl Kinds {
    /// The kinds, as users write them.
    pub fn list(&self) -> Vec<&str> {
        match self {
            Self::One(kind) => vec![kind],
            Self::Any(kinds) => kinds.iter().map(String::as_str).collect(),
        }
    }
}

impl Words {
    /// Whether the text contains the word. Numbers match whole numbers, with or without commas
    /// between thousands; letters match in either case.
    pub fn are_in(&self, text: &str) -> bool {
        match self {
            Self::One(word) => has_word(text, word),
            Self::Any(words) => words.iter().any(|word| has_word(text, word)),
        }
    }

    /// The words, for messages.
    pub fn show(&self) -> String {
        match self {
            Self::One(word) => word.clone(),
            Self::Any(words) => words.join(" or "),
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let word = word.to_lowercase();
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.contains(&word);
    }
    let plain: Vec<char> = text.chars().collect();
    let is_group = |at: usize| {
        plain[at] == ','
            && at > 0
            && plain[at - 1].is_ascii_digit()
            && plain.get(at + 1).is_some_and(char::is_ascii_digit)
    };
    let kept = (0..plain.len()).filter(|&at| !is_group(at));
    let plain: String = kept.map(|at| plain[at]).collect();
    plain
        .split(|letter: char| !letter.is_ascii_digit())
        .any(|number| number == word)
}

/// Reads the expectations of a folder.
pub fn entries(folder: &Path) -> Vec<Entry> {
    let path = folder.join("expectations.json");
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
