//! A file of finished runs, from which an interrupted bench can resume.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Figures, Row, ScaleArguments};
use crate::error::Error;

/// The settings that results depend on, in addition to the table and the contribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    epsilon: f64,
    model_mb: f64,
    /// SHA-256 of the program. Runs of another build are not reused.
    program: String,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    setting: Setting,
    contribution: String,
    records: usize,
    columns: usize,
    figures: Option<Figures>,
    refused: Option<String>,
}

/// A file with one line of JSON for each finished run.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    file: File,
    setting: Setting,
    rows: Vec<Row>,
}

impl Kept {
    /// Opens or creates a file. Removes an incomplete line that an interruption left at the end.
    ///
    /// # Errors
    /// [`Error::Write`] if the file cannot be read or written; [`Error::Content`] for lines of another format.
    pub fn open(path: &Path, arguments: &ScaleArguments) -> Result<Self, Error> {
        Self::open_as(path, setting(arguments)?)
    }

    fn open_as(path: &Path, setting: Setting) -> Result<Self, Error> {
        let failed = |source| Error::Write {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path);
        let mut file = file.map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut rows = Vec::new();
        for line in text.get(..whole).unwrap_or("").lines() {
            let line: Line = serde_json::from_str(line).map_err(|error| Error::Content {
                path: path.to_owned(),
                problem: format!("a line is not a run of `fhaim-lab bench scale`: {error}"),
            })?;
            if line.setting == setting {
                rows.push(line.into());
            }
        }
        file.set_len(whole as u64).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            setting,
            rows,
        })
    }

    /// Returns the run of this table and contribution, if this program has made it with the same flags.
    pub fn find(&self, [records, columns]: [usize; 2], contribution: &str) -> Option<Row> {
        let same = |row: &&Row| {
            row.records == records && row.columns == columns && row.contribution == contribution
        };
        self.rows.iter().find(same).cloned()
    }

    /// Appends a run to the file.
    ///
    /// # Errors
    /// [`Error::Write`] if the file cannot be written.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        let line = Line {
            setting: self.setting.clone(),
            contribution: row.contribution.clone(),
            records: row.records,
            columns: row.columns,
            figures: row.figures,
            refused: row.refused.clone(),
        };
        let mut text = serde_json::to_string(&line).map_err(|error| Error::Content {
            path: self.path.clone(),
            problem: error.to_string(),
        })?;
        text.push('\n');
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }
}

impl From<Line> for Row {
    fn from(line: Line) -> Self {
        Self {
            contribution: line.contribution,
            records: line.records,
            columns: line.columns,
            figures: line.figures,
            refused: line.refused,
        }
    }
}

fn setting(arguments: &ScaleArguments) -> Result<Setting, Error> {
    let program = std::env::current_exe().map_err(|source| super::failed(&source))?;
    let read = std::fs::read(&program).map_err(|source| super::failed(&source))?;
    let digest = Sha256::digest(read);
    Ok(Setting {
        epsilon: arguments.epsilon,
        model_mb: arguments.model_mb,
        program: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    fn setting(epsilon: f64) -> Setting {
        Setting {
            epsilon,
            model_mb: 8.0,
            program: "p".to_owned(),
        }
    }

    #[test]
    fn finished_runs_are_reused_and_an_incomplete_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scale.jsonl");
        let open = |epsilon| Kept::open_as(&path, setting(epsilon)).unwrap();
        let refused = Row {
            figures: None,
            refused: Some("too large".to_owned()),
            ..row(200, 5, 1.0)
        };
        let mut kept = open(1.0);
        kept.push(&row(100, 5, 7.0)).unwrap();
        kept.push(&refused).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], &whole[..50]].concat()).unwrap();
        let mut again = open(1.0);
        let found = again.find([100, 5], "counts").unwrap();
        assert_eq!(found.figures.unwrap().seconds.to_bits(), 7f64.to_bits());
        let found = again.find([200, 5], "counts").unwrap();
        assert_eq!(found.refused.as_deref(), Some("too large"));
        assert!(again.find([100, 5], "records").is_none());
        assert!(again.find([100, 50], "counts").is_none());
        assert!(open(2.0).find([100, 5], "counts").is_none());
        again.push(&row(300, 5, 1.0)).unwrap();
        assert!(open(1.0).find([300, 5], "counts").is_some());
        std::fs::write(&path, "{}\n").unwrap();
        let other = Kept::open_as(&path, setting(1.0)).unwrap_err();
        assert!(other.to_string().contains("bench scale"), "{other}");
    }
}
