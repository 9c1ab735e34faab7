//! Prints messages where they cannot be mixed with a result.

use std::{
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{Error, target::is_standard_output};

/// Whether a result is written to the process's standard output.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Records that a result is written to standard output, if `path` leads there.
pub(crate) fn take(path: &Path) {
    if is_standard_output(path) {
        TAKEN.store(true, Ordering::Relaxed);
    }
}

/// Prints a text to standard output, or to standard error if a result is written to standard output.
///
/// # Errors
/// [`Error::Write`] if the stream's reader has closed it.
pub fn print(text: &str) -> Result<(), Error> {
    let (name, written) = match TAKEN.load(Ordering::Relaxed) {
        true => ("standard error", whole(io::stderr().lock(), text)),
        false => ("standard output", whole(io::stdout().lock(), text)),
    };
    written.map_err(|source| Error::Write {
        path: name.into(),
        source,
    })
}

fn whole(mut stream: impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}
