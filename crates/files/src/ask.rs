//! Questions to the user at the terminal.

use std::io::{IsTerminal, stdin};

use crate::{Error, tell::for_terminal};

/// Whether standard input is a terminal, so that a user can answer.
pub fn can_ask() -> bool {
    stdin().is_terminal()
}

/// Asks a yes-or-no question. Every answer other than yes counts as no.
///
/// # Errors
/// [`Error::Read`] if the answer cannot be read.
pub fn ask(question: &str) -> Result<bool, Error> {
    crate::tell_part(format_args!(
        "{} ",
        for_terminal(&format!("{question} [y/N]"))
    ));
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    read.map_err(|source| Error::Read {
        path: "the terminal".into(),
        source,
    })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
