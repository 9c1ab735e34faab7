//! Files in any encoding, read as UTF-8.

use std::io::{Cursor, Read};

use fhaim_intake::{Dialect, Encoding, MAX_SNIFFED, Transcoder};
use serde::Serialize;

use crate::Error;

/// How a file is written.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    /// Character between fields.
    delimiter: char,
    /// The encoding's name in browsers (the WHATWG's Encoding Standard).
    encoding: &'static str,
}

impl Found {
    /// Detects the dialect from a file's first bytes.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub(crate) fn read(input: impl Read) -> Result<Self, Error> {
        let dialect = Dialect::detect(&head(input)?.0);
        Ok(Self {
            delimiter: char::from(dialect.delimiter),
            encoding: match dialect.encoding {
                Encoding::Utf8 => "utf-8",
                Encoding::Utf16Le => "utf-16le",
                Encoding::Utf16Be => "utf-16be",
                Encoding::Windows1252 => "windows-1252",
            },
        })
    }
}

/// Returns the first bytes of a stream, and the rest of it.
fn head<R: Read>(mut input: R) -> Result<(Vec<u8>, R), Error> {
    let mut head = Vec::new();
    let most = MAX_SNIFFED as u64;
    input.by_ref().take(most).read_to_end(&mut head)?;
    Ok((head, input))
}

/// Converts a stream of text in any encoding to UTF-8.
///
/// # Errors
/// The stream cannot be read.
pub(crate) fn utf8(input: impl Read) -> Result<impl Read, Error> {
    let (head, rest) = head(input)?;
    let encoding = Dialect::detect(&head).encoding;
    Ok(Transcoder::new(Cursor::new(head).chain(rest), encoding))
}
