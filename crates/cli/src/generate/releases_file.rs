//! The file of a run's releases, from which an interrupted run continues.

use std::{
    fs::{File, TryLockError},
    io::{self, Read},
    path::Path,
};

use fhaim_domain::Claim;
use fhaim_dp::Rho;
use fhaim_files::{is_regular_output, shown_path};
use fhaim_release::ReleaseRequest;
use fhaim_synth::Release;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    division::HoldersArguments,
    error::Error,
    flags::VERSION,
    output::{Existing, to_json},
};

/// The command of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// `fhaim run`: under encryption.
    Run,
    /// `fhaim local`: in the clear.
    Local,
}

/// The request of a run: everything that its releases depend on, apart from the records and the noise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestForm {
    /// The command.
    pub command: Command,
    /// Name of the schema.
    pub schema: String,
    /// SHA-256 of the schema, as hexadecimal text.
    pub schema_sha256: String,
    /// Cost of drafting the schema, according to its holder. It is not part of the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Claim>,
    /// Name of the mechanism.
    pub mechanism: String,
    /// Epsilon of the budget.
    pub epsilon: f64,
    /// Delta of the budget.
    pub delta: f64,
    /// The given upper bound on the number of records. The default follows from the records, and is not in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_bound: Option<u64>,
    /// Maximum memory for the model, in MB.
    pub model_mb: usize,
    /// Weight of pairs with the target column.
    pub target_weight: u32,
    /// The simulated holders.
    #[serde(flatten)]
    pub holders: HoldersArguments,
}

/// The beginning of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Random identifier of the run. The usage history of this machine has it as well.
    pub run: Uuid,
    /// Version of the program that began the run.
    pub program: String,
    /// The request.
    #[serde(flatten)]
    pub request: RequestForm,
    /// Budget, as a count of 2^-80.
    pub budget: Rho,
    /// Spent budget, as a count of 2^-80.
    pub spent: Rho,
    /// Whether all releases were made.
    pub finished: bool,
    /// SHA-256 of the model's file, as hexadecimal text, if the run has written one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_sha256: Option<String>,
}

/// A release as the file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredRelease {
    /// The request.
    pub request: ReleaseRequest,
    /// The phase that requested it: a word, or a word with a number.
    pub phase: Value,
    /// Its cost.
    pub rho: Rho,
    /// The released integers.
    pub values: Vec<i64>,
}

/// The content of the file. It has the header first, and then each release on a line.
#[derive(Clone, Debug, Deserialize)]
pub struct ReleasesFile {
    /// The header.
    #[serde(flatten)]
    pub header: Header,
    /// The releases in the order of their numbers.
    pub releases: Vec<StoredRelease>,
}

/// A releases file on disk.
#[derive(Debug)]
pub struct Found {
    /// Its content.
    pub file: ReleasesFile,
    /// SHA-256 of its bytes, as hexadecimal text.
    pub state: String,
    /// The locked file. No other program continues the run before this is dropped.
    pub lock: File,
}

/// The state of the files when a command begins.
#[derive(Debug)]
pub enum Beginning {
    /// There is no releases file.
    New,
    /// `--force`: the run replaces all files. The lock is of another run's releases file.
    Replacing(Option<File>),
    /// There is a releases file, from which the run continues.
    Found(Box<Found>),
}

impl Beginning {
    /// Looks for a releases file.
    ///
    /// # Errors
    /// [`Error::Usage`] if another program works on the run; [`Error::Content`] for a file with other content.
    pub fn find(path: &Path, force: bool) -> Result<Self, Error> {
        Ok(match (locked(path)?, force) {
            (locked, true) => Self::Replacing(locked.map(|(lock, _)| lock)),
            (None, false) => Self::New,
            (Some((lock, text)), false) => Self::Found(Box::new(Found {
                file: ReleasesFile::parse(path, &text)?,
                state: digest(&text),
                lock,
            })),
        })
    }

    /// Whether a run has made all its releases.
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Found(found) if found.file.header.finished)
    }

    /// Returns what happens to output files that exist.
    pub fn existing(&self) -> Existing {
        match self {
            Self::Replacing(_) => Existing::Replace,
            Self::New | Self::Found(_) => Existing::Refuse,
        }
    }
}

impl RequestForm {
    /// Describes the first difference from another request. Returns `None` for equal requests.
    fn difference(&self, other: &Self) -> Option<String> {
        // A number that was parsed may differ in its last bit, so both requests take the same way.
        let fields = |form: &Self| -> serde_json::Result<Value> {
            serde_json::from_str(&serde_json::to_string(form)?)
        };
        let (ours, theirs) = (fields(self).ok()?, fields(other).ok()?);
        let (ours, theirs) = (ours.as_object()?, theirs.as_object()?);
        let differs = |name: &&String| ours.get(*name) != theirs.get(*name);
        let name = ours.keys().chain(theirs.keys()).find(differs)?;
        let show = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
        Some(format!(
            "{name} is {} there, and {} here",
            show(theirs.get(name)),
            show(ours.get(name))
        ))
    }
}

impl Header {
    /// Begins a run.
    pub fn new(run: Uuid, request: RequestForm, budget: Rho) -> Self {
        Self {
            run,
            program: format!("fhaim {VERSION}"),
            request,
            budget,
            spent: Rho::ZERO,
            finished: false,
            model_sha256: None,
        }
    }
}

impl StoredRelease {
    /// Returns a release of a mechanism as the file has it.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn of(release: &Release) -> Result<Self, Error> {
        Ok(Self {
            request: release.request.clone(),
            phase: serde_json::to_value(release.phase).map_err(unwritable)?,
            rho: release.rho,
            values: release.values.clone(),
        })
    }
}

impl ReleasesFile {
    /// Returns the text of the file.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn text(&self) -> Result<String, Error> {
        let mut text = to_json(&self.header)?;
        text.truncate(text.trim_end_matches("\n}\n").len());
        text.push_str(",\n  \"releases\": [");
        for (number, release) in self.releases.iter().enumerate() {
            text.push_str(if number == 0 { "\n" } else { ",\n" });
            text.push_str(&serde_json::to_string(release).map_err(unwritable)?);
        }
        text.push_str("\n  ]\n}\n");
        Ok(text)
    }

    /// Rejects the file of a run with another request.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn check_request(&self, path: &Path, request: &RequestForm) -> Result<(), Error> {
        match request.difference(&self.header.request) {
            None => Ok(()),
            Some(difference) => Err(Error::Content {
                path: path.to_owned(),
                problem: format!(
                    "it has the releases of another request ({difference}): repeat that request, choose another \
                     --out, or start a new run with --force"
                ),
            }),
        }
    }

    fn parse(path: &Path, text: &[u8]) -> Result<Self, Error> {
        let damaged = |problem: String| Error::Content {
            path: path.to_owned(),
            problem: format!(
                "it is not the releases file of a run, or is damaged ({problem}): restore it, choose another --out, or \
                 start a new run with --force"
            ),
        };
        let file: Self =
            serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
        let is_numbered = |(number, release): (usize, &StoredRelease)| {
            release.request.number as usize == number
                && release.request.statistic.cells() == release.values.len()
        };
        match file.releases.iter().enumerate().all(is_numbered) {
            true => Ok(file),
            false => Err(damaged("its releases have gaps".to_owned())),
        }
    }
}

/// Returns the SHA-256 of a text as hexadecimal text.
pub fn digest(text: &[u8]) -> String {
    let bytes = Sha256::digest(text);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Locks a releases file with any content. Returns the locked file and its content, or `None` if it does not exist.
///
/// # Errors
/// [`Error::Usage`] if another program works on the run; [`Error::Read`].
fn locked(path: &Path) -> Result<Option<(File, Vec<u8>)>, Error> {
    if !is_regular_output(path) {
        return Err(Error::Content {
            path: path.to_owned(),
            problem: "the releases of a run cannot go to a device or a pipe: choose another --out"
                .to_owned(),
        });
    }
    let refuse = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(refuse)?,
    };
    let is_busy = lock(&file).is_err();
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(refuse)?;
    // The program that had the lock may have replaced the file.
    if is_busy || std::fs::read(path).map_err(refuse)? != text {
        return Err(Error::Usage(format!(
            "{}: another program is working on this run: wait until it ends, or choose another --out",
            shown_path(path)
        )));
    }
    Ok(Some((file, text)))
}

/// Locks a file for the program. A file system without locks counts as locked.
///
/// # Errors
/// Another program has the lock.
pub fn lock(file: &File) -> Result<(), TryLockError> {
    match file.try_lock() {
        Err(TryLockError::Error(_)) => Ok(()),
        locked => locked,
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::Write {
        path: "JSON".into(),
        source: error.into(),
    }
}
