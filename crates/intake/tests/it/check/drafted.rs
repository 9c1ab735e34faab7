//! A draft, as the checks see it.

use std::{collections::HashSet, path::Path};

use fhaim_domain::Table;
use serde_json::Value as Json;

/// The draft of a table.
#[derive(Clone, Debug, Default)]
pub struct Drafted {
    /// The drafted schema.
    pub schema_json: String,
    /// Notes about columns; each names its column.
    pub notes: Vec<String>,
    /// Remarks about the file.
    pub remarks: Vec<String>,
    /// Proposed rules between columns.
    pub rules: Vec<Rule>,
    /// The schema with all proposed rules, or why it cannot have them together. `None` without rules.
    pub accepted: Option<Result<String, String>>,
    form: Json,
}

/// A rule between columns that a draft proposes.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The columns.
    pub columns: Vec<String>,
    /// The rule in words.
    pub sentence: String,
    /// Number of records that support it.
    pub records: u64,
    /// The constraint, or the column that becomes derived, as JSON.
    pub change: Json,
}

/// Drafts schemas for files, and reads files. Each crate's tests implement it with its public
/// functions; nothing else of the tests depends on them.
pub trait Intake: Sync {
    /// Drafts a schema for a file without any option.
    fn draft(&self, path: &Path) -> Result<Drafted, String>;
    /// Reads a file by a schema.
    fn read(&self, schema_json: &str, path: &Path) -> Result<Table, String>;
}

/// A column of a drafted schema.
#[derive(Clone, Copy)]
pub struct Column<'a>(&'a Json);

impl Drafted {
    /// Collects the parts of a draft.
    pub fn new(schema_json: String, notes: Vec<String>, remarks: Vec<String>) -> Self {
        let form = serde_json::from_str(&schema_json).unwrap_or_default();
        Self {
            schema_json,
            notes,
            remarks,
            rules: Vec::new(),
            accepted: None,
            form,
        }
    }

    /// Adds the proposed rules, and the schema that has all of them.
    pub fn with_rules(self, rules: Vec<Rule>, accepted: Result<String, String>) -> Self {
        let accepted = (!rules.is_empty()).then_some(accepted);
        Self {
            rules,
            accepted,
            ..self
        }
    }

    /// The columns.
    pub fn columns(&self) -> Vec<Column<'_>> {
        let columns = self.form["columns"].as_array();
        columns
            .map(|columns| columns.iter().map(Column).collect())
            .unwrap_or_default()
    }

    /// The column named `name`, or the one at `place` for a name that a schema cannot have.
    pub fn column(&self, name: &str, place: usize) -> Option<Column<'_>> {
        let columns = self.columns();
        let named = columns
            .iter()
            .find(|column| column.name().trim() == name.trim());
        named
            .or_else(|| columns.get(place).filter(|_| name.is_empty()))
            .copied()
    }

    /// The constraints, as JSON.
    pub fn constraints(&self) -> Vec<String> {
        let constraints = self.form["constraints"].as_array();
        constraints
            .map(|list| list.iter().map(Json::to_string).collect())
            .unwrap_or_default()
    }

    /// Notes and remarks.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().chain(&self.remarks).map(String::as_str)
    }

    /// Everything that is prose: notes, remarks, rules and the reasons of left-out columns.
    pub fn prose(&self) -> String {
        let mut prose: Vec<&str> = self.lines().collect();
        prose.extend(self.rules.iter().map(|rule| rule.sentence.as_str()));
        let columns = self.columns();
        prose.extend(columns.iter().filter_map(|column| column.text("reason")));
        prose.join("\n")
    }

    /// Everything that leaves the holder's machine: the schema, and the prose.
    pub fn everything(&self) -> String {
        format!("{}\n{}", self.schema_json, self.prose())
    }

    /// The lines about a column, and all lines if no line names it.
    pub fn about(&self, column: &str) -> String {
        let quoted = format!("{column:?}");
        let lines: Vec<&str> = self.lines().filter(|line| line.contains(&quoted)).collect();
        match lines.is_empty() {
            true => self.prose(),
            false => {
                let reasons = self.column(column, usize::MAX);
                let reason = reasons.and_then(|column| column.text("reason").map(str::to_owned));
                format!("{}\n{}", lines.join("\n"), reason.unwrap_or_default())
            }
        }
    }
}

impl<'a> Column<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        self.0["name"].as_str().unwrap_or_default()
    }

    /// Its kind.
    pub fn kind(&self) -> &'a str {
        self.0["kind"].as_str().unwrap_or_default()
    }

    /// The value of a key; `decimals` is 0 for integers.
    pub fn get(&self, key: &str) -> Json {
        if key == "decimals" && self.is_true("integer") {
            return Json::from(0);
        }
        self.0[key].clone()
    }

    /// The text of a key.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.0[key].as_str()
    }

    /// Whether the key has the value `true`.
    pub fn is_true(&self, key: &str) -> bool {
        self.0[key] == Json::Bool(true)
    }

    /// The elements of a list.
    pub fn list(&self, key: &str) -> Vec<&'a Json> {
        self.0[key]
            .as_array()
            .map(|list| list.iter().collect())
            .unwrap_or_default()
    }

    /// All texts that the schema lists for the column, with their key, apart from special values.
    pub fn listed(&self) -> Vec<(&'static str, String)> {
        let mut listed = Vec::new();
        let mut add = |key: &'static str, texts: Vec<&Json>| {
            let texts = texts.into_iter().filter_map(Json::as_str);
            listed.extend(texts.map(|text| (key, text.to_owned())));
        };
        for key in ["categories", "codes", "missing"] {
            add(key, self.list(key));
        }
        let values = self.0["values"].as_object();
        add(
            "values",
            values
                .map(|values| values.values().collect())
                .unwrap_or_default(),
        );
        for chapter in self.list("chapters") {
            add("chapters", Column(chapter).list("codes"));
        }
        listed
    }

    /// The limits and edges, as texts.
    pub fn bounds(&self) -> HashSet<String> {
        let mut bounds: Vec<Json> = self.list("edges").into_iter().cloned().collect();
        bounds.extend([self.get("min"), self.get("max")]);
        let text = |bound: &Json| match bound {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        bounds.iter().map(text).collect()
    }
}
