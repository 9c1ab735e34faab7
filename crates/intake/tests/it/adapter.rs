//! The public functions of this crate, as the checks use them.

use std::{fs::File, path::Path};

use fhaim_domain::{Error, ReadOptions, Schema, Table, read_csv};
use fhaim_intake::{
    Draft, Given, InferOptions, ProposedRule, TableText, infer_schema, open_text, way_out,
};

use crate::check::drafted::{Drafted, Intake, Rule};

/// Drafts and reads CSV tables without options.
pub struct Csv;

/// Opens a table. The errors and remarks name the flags that help, as the command's do.
fn open(path: &Path) -> Result<TableText<'static>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    open_text(file, &Given::default(), |_| ()).map_err(|error| error.to_string())
}

/// Returns an error with its ways out, as the command shows them.
fn told(error: &Error) -> String {
    let ways: Vec<&str> = match error {
        Error::Problems(problems) => problems.errors().filter_map(way_out).collect(),
        one => way_out(one).into_iter().collect(),
    };
    format!("{error} ({})", ways.join("; "))
}

/// Adds the rules of a draft, and the schema with all of them.
fn with_rules(drafted: Drafted, mut draft: Draft) -> Drafted {
    let rule = |rule: &ProposedRule| Rule {
        columns: rule.columns.clone(),
        sentence: rule.rule.clone(),
        records: rule.records,
        change: serde_json::to_value(&rule.change).unwrap_or_default(),
    };
    let rules: Vec<Rule> = draft.rules.iter().map(rule).collect();
    let all: Vec<usize> = (0..rules.len()).collect();
    let accepted = draft.accept(&all).map_err(|error| error.to_string());
    drafted.with_rules(rules, accepted.map(|()| draft.schema.to_json()))
}

impl Intake for Csv {
    fn draft(&self, path: &Path) -> Result<Drafted, String> {
        let table = open(path)?;
        let options = InferOptions {
            dialect: table.dialect,
            ..InferOptions::new(path.display().to_string(), "table")
        };
        let draft = infer_schema(table.text, &options).map_err(|error| told(&error))?;
        let notes = draft.notes().iter().map(ToString::to_string).collect();
        let said = |remark: fhaim_intake::Remark| match remark.flag {
            Some(flag) => format!("{}; use {flag} to set it", remark.text),
            None => remark.text,
        };
        let mut remarks: Vec<String> = table.remarks.into_iter().map(said).collect();
        remarks.extend(draft.remarks.iter().cloned());
        Ok(with_rules(
            Drafted::new(draft.schema.to_json(), notes, remarks),
            draft,
        ))
    }

    fn read(&self, schema_json: &str, path: &Path) -> Result<Table, String> {
        let table = open(path)?;
        let schema = Schema::from_json("draft.json", schema_json.as_bytes());
        let schema = schema.map_err(|error| error.to_string())?;
        let options = ReadOptions {
            dialect: table.dialect,
            ..ReadOptions::new(path.display().to_string())
        };
        let reading = read_csv(schema, table.text, &options).map_err(|error| told(&error))?;
        Ok(reading.table)
    }
}
