//! What a program says of its results, where nobody takes it for one of them.

use std::{
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{Error, target::is_standard_output};

/// Whether a result goes to standard output, of which a process has one.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Notes that a result goes to a stream, if that is standard output.
pub(crate) fn take(path: &Path) {
    if is_standard_output(path) {
        TAKEN.store(true, Ordering::Relaxed);
    }
}

/// Prints a text to standard output; to standard error where a result goes to standard output.
///
/// # Errors
/// [`Error::Write`]: nobody reads it any more.
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
