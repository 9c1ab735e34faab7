//! Errors of the command. Each has a message of one line, apart from a list of a table's problems, and an exit code.

use std::{borrow::Cow, io, path::PathBuf};

use fhaim_domain::{CellProblem, HeaderProblem, SchemaProblem, TableProblems};
use fhaim_files::shown_path;

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A schema or a table is invalid, or cannot be read or written.
    #[error(transparent)]
    Table(#[from] fhaim_domain::Error),
    /// A privacy parameter is invalid.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// A model cannot be fitted.
    #[error(transparent)]
    Model(#[from] fhaim_pgm::Error),
    /// The arguments are invalid or contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read.
    #[error("{}: {source}", shown_path(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file's content is invalid.
    #[error("{}: {problem}", shown_path(.path))]
    Content {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// A result cannot be written.
    #[error("{}: {source}", shown_path(.path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An input or output file cannot be used.
    #[error(transparent)]
    Files(#[from] fhaim_files::Error),
    /// A mechanism or its source failed.
    #[error(transparent)]
    Mechanism(#[from] fhaim_synth::Error),
    /// No model fits the releases.
    #[error("{problem}; no table was written, but the releases were saved in {}", shown_path(.releases))]
    Unfitted {
        /// The loss and the columns, as a sentence.
        problem: String,
        /// The file of the releases, which have been paid for.
        releases: PathBuf,
    },
    /// No parameter set fits, or a ciphertext is invalid.
    #[error(transparent)]
    Encryption(#[from] fhaim_he::Error),
    /// The protocol between the entities failed.
    #[error(transparent)]
    Protocol(#[from] fhaim_protocol::Error),
    /// Rows cannot be aligned.
    #[error(transparent)]
    Align(#[from] fhaim_protocol::align::AlignError),
    /// Two tables cannot be compared.
    #[error(transparent)]
    Evaluation(#[from] fhaim_eval::Error),
    /// The operating system cannot provide randomness.
    #[error("the operating system's random generator failed")]
    NoRandomness,
    /// A schema is too large for the machine or the protocol.
    #[error("{reason}: {advice}")]
    TooLarge {
        /// The size and the limit.
        reason: String,
        /// What to do about it.
        advice: String,
    },
    /// A service rejects the request or cannot be reached.
    #[cfg(feature = "server")]
    #[error(transparent)]
    Remote(#[from] fhaim_sdk::Error),
    /// A job failed or was cancelled.
    #[error("{0}")]
    Job(String),
    /// Ctrl-C ended the command while it showed the progress of a job.
    #[error(
        "stopped watching: job {job} continues on the server. Watch it again with `fhaim job watch {job}`"
    )]
    Watching {
        /// Identifier of the job.
        job: String,
    },
    /// Releases are wrong or cannot be checked.
    #[error("{0}")]
    Unequal(String),
    /// A service cannot run.
    #[error("{0}")]
    Service(String),
    /// An environment variable that the command needs is not set.
    #[error("{0} is not set: it must name the folder {1}")]
    Environment(&'static str, &'static str),
}

impl Error {
    /// Returns the kind of the error, for programs. `docs/reference/errors.md` lists all kinds.
    pub fn kind(&self) -> String {
        let kind = match self {
            Self::Table(error) | Self::Files(fhaim_files::Error::Table(error)) => table_kind(error),
            Self::Read { .. } | Self::Content { .. } | Self::Write { .. } => "file",
            Self::Usage(_) | Self::Privacy(_) => "usage",
            Self::Files(error) => error.kind(),
            Self::TooLarge { .. } | Self::Encryption(fhaim_he::Error::NoParameters { .. }) => {
                "size"
            }
            Self::Evaluation(_) => "evaluation",
            Self::Align(_) => "align",
            Self::Unfitted { .. } | Self::Model(_) | Self::Mechanism(_) => "mechanism",
            Self::Encryption(_) | Self::Protocol(_) => "protocol",
            Self::NoRandomness => "system",
            Self::Environment(..) => "environment",
            Self::Job(_) => "job",
            Self::Watching { .. } => "interrupted",
            Self::Unequal(_) => "verification",
            Self::Service(_) => "service",
            #[cfg(feature = "server")]
            Self::Remote(error) => return remote_kind(error),
        };
        kind.to_owned()
    }

    /// Returns what the user can do, unless the error's own text says it.
    pub fn way_out(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Table(fhaim_domain::Error::Problems(problems)) => ways_out(problems),
            Self::Read { source, .. } | Self::Files(fhaim_files::Error::Read { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Some(Cow::Borrowed("check the path of the file"))
            }
            _ => self.one_way_out().map(Cow::Borrowed),
        }
    }

    fn one_way_out(&self) -> Option<&'static str> {
        match self {
            Self::Table(error) => table_way_out(error),
            Self::Mechanism(_) | Self::Protocol(_) => Refused::by(self).and_then(Refused::way_out),
            #[cfg(feature = "server")]
            Self::Remote(error) => remote_way_out(error),
            _ => None,
        }
    }

    /// Whether the same command may succeed later: its request is valid, and the failure is not one of the releases.
    pub fn may_pass(&self) -> bool {
        self.exit_code() == 1 && !matches!(self, Self::Unfitted { .. })
    }

    /// Returns 2 for an invalid request, and 1 if carrying out a valid request failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Table(_)
            | Self::Privacy(_)
            | Self::Usage(_)
            | Self::Read { .. }
            | Self::Content { .. }
            | Self::TooLarge { .. }
            | Self::Encryption(fhaim_he::Error::NoParameters { .. })
            | Self::Evaluation(_)
            | Self::Environment(..) => 2,
            Self::Mechanism(_) => Refused::by(self).map_or(1, Refused::exit_code),
            Self::Protocol(
                fhaim_protocol::Error::Records { .. } | fhaim_protocol::Error::Terms(_),
            )
            | Self::Align(_) => 2,
            Self::Protocol(fhaim_protocol::Error::Encryption(fhaim_he::Error::NoParameters {
                ..
            })) => 2,
            Self::Files(error) => error.exit_code(),
            #[cfg(feature = "server")]
            Self::Remote(error) => remote_exit_code(error),
            Self::Model(_)
            | Self::Job(_)
            | Self::Unequal(_)
            | Self::Service(_)
            | Self::Write { .. }
            | Self::Encryption(_)
            | Self::Unfitted { .. }
            | Self::NoRandomness => 1,
            Self::Watching { .. } => INTERRUPTED,
            Self::Protocol(_) => Refused::by(self).map_or(1, Refused::exit_code),
        }
    }
}

/// Exit code of a program that Ctrl-C ended: 128 and the number of the signal.
const INTERRUPTED: u8 = 130;

impl From<fhaim_draft::Error> for Error {
    fn from(error: fhaim_draft::Error) -> Self {
        match error {
            fhaim_draft::Error::Table(error) => Self::Table(error),
            fhaim_draft::Error::Privacy(error) => Self::Privacy(error),
            other => Self::Usage(other.to_string()),
        }
    }
}

#[cfg(feature = "server")]
impl From<fhaim_platform::Failure> for Error {
    fn from(failure: fhaim_platform::Failure) -> Self {
        Self::Service(failure.to_string())
    }
}

/// Returns 2 if the service rejected the request itself, otherwise 1.
#[cfg(feature = "server")]
fn remote_exit_code(error: &fhaim_sdk::Error) -> u8 {
    use fhaim_sdk::Error as E;
    match error {
        E::Problem { problem } if problem.status < 500 => 2,
        E::SignedOut
        | E::WrongCredentials
        | E::WrongPassword
        | E::Journal { .. }
        | E::Ladder { .. }
        | E::Unverifiable { .. } => 2,
        E::UploadRunning { .. } => 2,
        E::Outsider(_) | E::OtherKey(_) | E::OtherMaker(_) => 2,
        E::Protocol(fhaim_protocol::Error::Records { .. }) => 2,
        _ => 1,
    }
}

/// Returns the kind of an error of a table or schema.
fn table_kind(error: &fhaim_domain::Error) -> &'static str {
    use fhaim_domain::Error as E;
    match error {
        E::Schema { .. } => "schema",
        E::Io { .. } => "file",
        _ => "table",
    }
}

/// Returns the kind of a service's error: for a problem that it answered with, the kind of the problem.
#[cfg(feature = "server")]
fn remote_kind(error: &fhaim_sdk::Error) -> String {
    use fhaim_sdk::Error as E;
    let kind = match error {
        E::Problem { problem } => return problem.kind.name(),
        E::NoLedger(_) => return fhaim_api::problem::ProblemKind::NotFound.name(),
        E::SignedOut | E::WrongCredentials | E::WrongPassword => "unauthenticated",
        E::Unreachable { .. } => "unreachable",
        E::Journal { .. } | E::Ladder { .. } | E::Write(_) => "file",
        E::UploadRunning { .. } | E::Mixed(_) | E::UploadedElsewhere(_) => "upload",
        E::Unverifiable { .. }
        | E::Contradicted { .. }
        | E::Disagreement(_)
        | E::Restored { .. } => "verification",
        E::NoLink | E::OtherServer(_) | E::Outsider(_) | E::OtherKey(_) | E::OtherMaker(_) => {
            "usage"
        }
        E::Protocol(_) => "protocol",
        _ => "service",
    };
    kind.to_owned()
}

/// Returns what to do about a service's error.
#[cfg(feature = "server")]
fn remote_way_out(error: &fhaim_sdk::Error) -> Option<&'static str> {
    use fhaim_api::problem::ProblemKind;
    use fhaim_sdk::Error as E;
    match error {
        E::SignedOut => Some("sign in with `fhaim account login`"),
        E::Unreachable { .. } => Some(
            "start the services with `fhaim up`, or sign in at another address with `fhaim account login --server`",
        ),
        E::WrongPassword => {
            Some("run the command again and enter the password of the signed-in account")
        }
        E::Problem { problem } => match problem.kind {
            ProblemKind::Unavailable => Some("run the command again later"),
            ProblemKind::Unauthenticated => Some("sign in with `fhaim account login`"),
            ProblemKind::NotFound if problem.detail.is_none() => Some(
                "check the identifier. `fhaim dataset list` and `fhaim job list DATASET` list those of this account",
            ),
            _ => None,
        },
        _ => None,
    }
}

/// A run that was rejected before its first release.
#[derive(Clone, Copy)]
enum Refused<'a> {
    Job(&'a fhaim_release::Error),
    Mechanism(&'a fhaim_synth::Error),
}

impl<'a> Refused<'a> {
    /// Finds the reason of a rejected run inside an error.
    fn by(error: &'a Error) -> Option<Self> {
        use fhaim_protocol::Error as P;
        let mechanism = match error {
            Error::Mechanism(error) => error,
            Error::Protocol(P::Release(error)) => return Some(Self::Job(error)),
            Error::Protocol(P::Mechanism(refusal)) => refusal.downcast_ref()?,
            _ => return None,
        };
        Some(match mechanism {
            fhaim_synth::Error::Release(error) => Self::Job(error),
            other => Self::Mechanism(other),
        })
    }

    /// Returns 2 if the request is invalid, otherwise 1.
    fn exit_code(self) -> u8 {
        use fhaim_release::Error as R;
        match self {
            Self::Job(
                R::BudgetTooSmall(_)
                | R::ModelCap { .. }
                | R::EmptyWorkload
                | R::Holders { .. }
                | R::Owners(_),
            )
            | Self::Mechanism(
                fhaim_synth::Error::PlaintextOnly(_) | fhaim_synth::Error::Noise { .. },
            ) => 2,
            Self::Job(_) | Self::Mechanism(_) => 1,
        }
    }

    fn way_out(self) -> Option<&'static str> {
        use fhaim_release::Error as R;
        match self {
            Self::Job(R::BudgetTooSmall(_)) => Some("raise epsilon"),
            Self::Job(R::ModelCap { .. }) => Some("raise --model-mb, or coarsen columns"),
            Self::Mechanism(fhaim_synth::Error::PlaintextOnly(_)) => Some("use `fhaim local`"),
            Self::Mechanism(fhaim_synth::Error::Noise { .. }) => {
                Some("raise epsilon, or use --mechanism staged")
            }
            Self::Job(_) | Self::Mechanism(_) => None,
        }
    }
}

/// Returns the ways out of a table's problems, each once.
fn ways_out(problems: &TableProblems) -> Option<Cow<'static, str>> {
    let mut ways: Vec<&str> = Vec::new();
    for way in problems.errors().filter_map(table_way_out) {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    (!ways.is_empty()).then(|| Cow::Owned(ways.join("; ")))
}

pub(crate) fn table_way_out(error: &fhaim_domain::Error) -> Option<&'static str> {
    use fhaim_domain::Error as E;
    if let Some(way) = fhaim_intake::way_out(error) {
        return Some(way);
    }
    match error {
        E::Schema {
            problem: SchemaProblem::Json(_),
            ..
        } => Some("draft a schema from a table with `fhaim schema infer`"),
        E::Header { problem, .. } => header_way_out(problem),
        E::Cell { problem, .. } => cell_way_out(problem),
        E::Constraint { .. } => Some("correct the table, or remove the constraint from the schema"),
        _ => None,
    }
}

fn header_way_out(problem: &HeaderProblem) -> Option<&'static str> {
    use HeaderProblem as P;
    match problem {
        P::Missing(_) => Some("correct the schema or the table, or set --delimiter or --skip-rows"),
        P::Unlisted(_) => Some("add it to the schema, or ignore it with --ignore-columns"),
        _ => None,
    }
}

fn cell_way_out(problem: &CellProblem) -> Option<&'static str> {
    use CellProblem as P;
    match problem {
        P::Missing => Some("correct the table, or set `\"nullable\": true` in the schema"),
        P::NotANumber(_) => Some(
            "correct it, or set the text of missing values with --missing or with `missing` in the schema",
        ),
        P::NotInStyle { .. } | P::NotAMoment { .. } => Some(
            "correct it, describe the form of the table in the schema, or set the text of missing values with --missing or \
             with `missing` in the schema",
        ),
        P::NotAnInteger(_) => Some("correct it, or remove `integer` from the schema"),
        P::OutOfRange { .. } => Some("correct it, widen the schema's range, or use --clamp"),
        P::UnknownCategory(_) => Some(
            "correct it, add the category to the schema, or declare one for all others with `\"other\": CATEGORY`",
        ),
        _ => None,
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use fhaim_api::problem::{Problem, ProblemKind};

    use super::*;

    /// The words of a refusal are those of the service, and may be in any language.
    #[test]
    fn refused_token_in_any_words_leads_to_a_sign_in() {
        let problem = Problem::new(ProblemKind::Unauthenticated).with_detail("abgelaufen");
        let refused = fhaim_sdk::Error::Problem {
            problem: Box::new(problem),
        };
        let way_out = remote_way_out(&refused).unwrap();
        assert!(way_out.contains("fhaim account login"), "{way_out}");
        assert_eq!(remote_way_out(&fhaim_sdk::Error::WrongCredentials), None);
    }
}
