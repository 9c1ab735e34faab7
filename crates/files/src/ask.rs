//! Questions to whoever sits at the terminal.

use std::io::{IsTerminal, stdin};

use crate::Error;

/// Whether somebody can be asked.
pub fn can_ask() -> bool {
    stdin().is_terminal()
}

/// Asks a question that is answered by yes or no; anything but yes is no.
///
/// # Errors
/// [`Error::Read`].
pub fn ask(question: &str) -> Result<bool, Error> {
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    read.map_err(|source| Error::Read {
        path: "the terminal".into(),
        source,
    })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
