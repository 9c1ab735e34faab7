//! Requests of the page.

use fhaim_domain::{Dialect, NearUnique, OutOfRange, ReadOptions, Schema, UnlistedColumn};
use fhaim_dp::Rho;
use fhaim_intake::{Encoding, Given, InferOptions, ProposedRule};
use fhaim_protocol::{terms::Terms, upload::Object};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use zeroize::Zeroize;

use crate::Error;

/// Maximum number of objects of a rehearsal.
pub const MAX_REHEARSED: usize = 64;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Lists the mechanisms that run under encryption, the default first.
    Mechanisms,
    /// Detects how the file in the stream is written, from its first bytes.
    Dialect {
        /// What the page's user stated.
        #[serde(default)]
        format: Format,
    },
    /// Drafts a schema from the CSV table in the stream.
    Draft(DraftRequest),
    /// Returns a drafted schema with proposed rules that the page's user accepted.
    Accept {
        /// The schema, which may have been edited.
        schema: Value,
        /// The accepted rules.
        rules: Vec<ProposedRule>,
    },
    /// Returns the cost of a schema, or all its problems.
    Check {
        /// The schema, valid or not.
        schema: Value,
    },
    /// Reads the CSV table in the stream and keeps it.
    Read(Box<ReadRequest>),
    /// Completes new terms with everything that the holder leaves to the program, such as the noise that the mechanism
    /// needs.
    Name {
        /// The terms with the holder's choices.
        terms: Box<Terms>,
    },
    /// Returns the schema of one holder's part, and the maximum number of its records.
    Part {
        /// The dataset's terms.
        terms: Box<Terms>,
        /// The holder's number in the roster; 0 if there is one holder.
        part: u32,
    },
    /// Plans the upload of a sole holder's table with `records` records.
    Plan {
        /// The terms.
        terms: Box<Terms>,
        /// Number of records of the holder's table.
        records: usize,
    },
    /// Adds up the costs of uses of the same records.
    Compose {
        /// The costs, as counts of 2^-80.
        costs: Vec<Rho>,
        /// The delta at which epsilon is computed.
        delta: f64,
    },
    /// Draws an upload key, in hexadecimal. It is a secret: only the sessions that encrypt for the upload may get it.
    UploadKey {
        /// The terms, which determine the key's parameters.
        terms: Box<Terms>,
    },
    /// Reads the dataset's public key from the stream, to encrypt the last table under an upload key.
    Prepare {
        /// The terms.
        terms: Box<Terms>,
        /// The upload key.
        upload_key: WipedText,
    },
    /// Encrypts one object.
    Encrypt {
        /// Its name in the upload.
        object: Object,
    },
    /// Encrypts objects of zeros under a temporary key, to measure the time. The first such request of a parameter set
    /// creates the key.
    Rehearse {
        /// Number of the encryption parameter set.
        parameter_set: u8,
        /// Number of objects, at most [`MAX_REHEARSED`].
        objects: usize,
    },
    /// Compares the synthetic CSV table in the stream with the last table.
    Report {
        /// Name of the file, for errors.
        file: String,
        /// Facts for the report on how the table was made: names and values.
        #[serde(default)]
        facts: Vec<(String, String)>,
    },
}

/// Text that is wiped from memory when it is dropped, and that is never displayed.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct WipedText(String);

impl WipedText {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl Drop for WipedText {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for WipedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WipedText")
    }
}

/// How a table is written. Everything that is not stated is detected from the file's first bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Format {
    /// Name of the file, for errors.
    pub file: String,
    /// Character between fields, of one byte.
    pub delimiter: Option<char>,
    /// Name of the encoding.
    pub encoding: Option<String>,
    /// Number of lines before the header.
    pub skip_rows: Option<u64>,
    /// Number of rows at the end that are no records, at most [`MAX_FOOTER`].
    pub skip_footer: Option<usize>,
    /// Texts that stand for a missing value, in addition to the empty one.
    pub missing: Vec<String>,
}

/// Maximum number of rows at the end of a file that are skipped. They are held in memory.
pub const MAX_FOOTER: usize = 1_000;

impl Format {
    /// Returns the stated properties, which detection does not change.
    ///
    /// # Errors
    /// The encoding is unknown.
    pub(crate) fn given(&self) -> Result<Given, Error> {
        let encoding = self.encoding.as_deref().map(str::parse::<Encoding>);
        Ok(Given {
            delimiter: self
                .delimiter
                .and_then(|delimiter| u8::try_from(delimiter).ok()),
            skip_rows: self.skip_rows,
            skip_footer: self.skip_footer.map(|rows| rows.min(MAX_FOOTER)),
            encoding: encoding.transpose().map_err(Error::Encoding)?,
            ..Given::default()
        })
    }

    fn missing(&self) -> Vec<String> {
        let mut texts = vec![String::new()];
        texts.extend(self.missing.iter().cloned());
        texts
    }
}

/// How to draft a schema.
#[derive(Clone, Debug, Deserialize)]
pub struct DraftRequest {
    /// How the table is written.
    pub format: Format,
    /// Name of the schema.
    pub name: String,
    /// Columns to leave out.
    #[serde(default)]
    pub leave_out: Vec<String>,
}

impl DraftRequest {
    /// Returns the options for a table in this dialect.
    pub(crate) fn options(&self, dialect: Dialect) -> InferOptions {
        InferOptions {
            dialect,
            missing: self.format.missing(),
            leave_out: self.leave_out.clone(),
            ..InferOptions::new(&self.format.file, &self.name)
        }
    }
}

/// How to read a table.
#[derive(Clone, Debug, Deserialize)]
pub struct ReadRequest {
    /// How the table is written.
    pub format: Format,
    /// The table's schema.
    pub schema: Schema,
    /// Whether to replace numbers outside the schema's limits by the nearest limit.
    #[serde(default)]
    pub clamp: bool,
    /// Whether to keep the original values next to their codes, for a report.
    #[serde(default)]
    pub keep_values: bool,
}

impl ReadRequest {
    /// Returns the options for a table in this dialect.
    pub(crate) fn options(&self, dialect: Dialect) -> ReadOptions {
        ReadOptions {
            dialect,
            missing: self.format.missing(),
            out_of_range: match self.clamp {
                true => OutOfRange::Clamp,
                false => OutOfRange::Refuse,
            },
            // A report is about a dataset whose schema is public already.
            near_unique: match self.keep_values {
                true => NearUnique::Report,
                false => NearUnique::Refuse,
            },
            // The file still contains the columns that the page's user left out.
            unlisted: UnlistedColumn::LeaveOut,
            keep_values: self.keep_values,
            ..ReadOptions::new(&self.format.file)
        }
    }
}
