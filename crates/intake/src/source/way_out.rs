//! Flags of the command that help with problems of a table's text.

use fhaim_domain::{CellProblem, Error, FieldProblem, HeaderProblem};

const NOT_UTF8: &str = "correct it, save the table as UTF-8, or set --encoding";

/// Returns what to do about a problem of a table's text, with the flags of the command that help. Returns `None` for a
/// problem of another kind, such as one with the schema.
pub fn way_out(error: &Error) -> Option<&'static str> {
    match error {
        Error::Header { problem, .. } => match problem {
            HeaderProblem::NotUtf8(_) => Some(NOT_UTF8),
            HeaderProblem::Syntax { problem, .. } => Some(field(*problem)),
            HeaderProblem::LongName { .. } => Some("shorten it, or set --skip-rows or --delimiter"),
            HeaderProblem::Repeated(_) => Some("rename one of the two, or set --skip-rows"),
            _ => None,
        },
        Error::Ragged {
            footer: Some(_), ..
        } => Some(
            "skip a footer with --skip-footer and the number of its rows, get the whole file, or set --delimiter",
        ),
        Error::Ragged { .. } => Some(
            "correct the row, look for a stray quote, or set --delimiter, --quote, --comment or --skip-rows",
        ),
        Error::Total { .. } => {
            Some("leave it out with --skip-footer 1, or keep it with --skip-footer 0")
        }
        Error::Length { .. } => Some("set --delimiter or --quote"),
        Error::Cell { problem, .. } => match problem {
            CellProblem::NotUtf8 => Some(NOT_UTF8),
            CellProblem::Syntax(problem) => Some(field(*problem)),
            _ => None,
        },
        _ => None,
    }
}

fn field(problem: FieldProblem) -> &'static str {
    match problem {
        FieldProblem::OpenQuote | FieldProblem::TextAfterQuote { .. } => {
            "correct the quotes, or read them as part of the text with --quote none"
        }
        _ => "remove the character, or export the table again",
    }
}
