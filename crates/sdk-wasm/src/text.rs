//! Files as UTF-8, whatever they were written in.

use std::io::{Cursor, Read};

use fhaim_domain::{Dialect, Encoding, MAX_SNIFFED, Transcoder};
use serde::Serialize;

use crate::Error;

/// How a file is written.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    /// Character between fields.
    delimiter: char,
    /// By the name that browsers know the encoding by (the WHATWG's Encoding Standard).
    encoding: &'static str,
}

impl Found {
    /// Finds out, by a file's first bytes.
    ///
    /// # Errors
    /// The stream breaks.
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

/// The first bytes of a stream, and the rest of it.
fn head<R: Read>(mut input: R) -> Result<(Vec<u8>, R), Error> {
    let mut head = Vec::new();
    let most = MAX_SNIFFED as u64;
    input.by_ref().take(most).read_to_end(&mut head)?;
    Ok((head, input))
}

/// A stream of a text in any encoding as UTF-8.
///
/// # Errors
/// The stream breaks.
pub(crate) fn utf8(input: impl Read) -> Result<impl Read, Error> {
    let (head, rest) = head(input)?;
    let encoding = Dialect::detect(&head).encoding;
    Ok(Transcoder::new(Cursor::new(head).chain(rest), encoding))
}
