//! Checks of a column's pages before the library reads them.
//!
//! The library allocates the memory that the header of a page asks for. A small file can ask for more than any machine
//! has, which ends the program. The headers are therefore read here first.

use std::{
    fs::File,
    io::{self, Read},
};

use flate2::read::MultiGzDecoder;
use parquet::{
    basic::CompressionCodec,
    errors::ParquetError,
    file::{metadata::ColumnChunkMetaData, reader::ChunkReader},
};

use super::thrift::{DEPTH, I32, STRUCT, Thrift};

/// Bytes that the pages of a row group may take in memory, in addition to [`FACTOR`] times the size of the file.
pub(super) const MOST: u64 = 512 << 20;

/// The most that all compressions but gzip and Zstandard can shrink a page.
const FACTOR: u64 = 256;

/// The most that gzip can shrink a page.
const GZIP_FACTOR: u64 = 1_032;

/// Bytes of a value of a dictionary in memory.
const DICTIONARY_VALUE: u64 = 40;

/// Bytes of a length in memory, in pages that store lengths apart from texts.
const LENGTH: u64 = 8;

/// Numbers of the format.
const DICTIONARY_PAGE: i64 = 2;
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;

/// Returns the bytes that the pages of a row group may take in memory.
pub(super) fn limit(file_bytes: u64) -> u64 {
    MOST.saturating_add(file_bytes.saturating_mul(FACTOR))
}

/// What reading a column's pages needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// Bytes of the dictionary and the largest page.
    pub(super) memory: u64,
    /// Bytes of the longest value that a page with shared prefixes can have.
    pub(super) longest: u64,
}

/// Reads the headers of a column's pages.
///
/// # Errors
/// A header that is damaged, or pages that need more than `limit` bytes of memory.
pub(super) fn check(
    file: &File,
    chunk: &ColumnChunkMetaData,
    limit: u64,
) -> Result<Needs, ParquetError> {
    let mut place = Place::of(file, chunk)?;
    let (mut dictionary, mut page, mut longest) = (0, 0, 0);
    while place.length > 0 {
        let header = place.header(file)?;
        let memory = header.memory();
        if memory > limit {
            return Err(too_large());
        }
        check_gzip(file, chunk, &place, &header, limit)?;
        if header.kind == DICTIONARY_PAGE {
            dictionary = memory.max(dictionary);
        } else {
            page = memory.max(page);
        }
        if header.has_prefixes {
            longest = header.uncompressed.max(longest);
        }
        place.advance(header.compressed)?;
    }
    Ok(Needs {
        memory: dictionary + page,
        longest,
    })
}

/// Rejects a page that gzip expands beyond `limit`: the library does not stop at the size in the header.
fn check_gzip(
    file: &File,
    chunk: &ColumnChunkMetaData,
    place: &Place,
    header: &Header,
    limit: u64,
) -> Result<(), ParquetError> {
    let is_gzip = matches!(chunk.compression_codec(), CompressionCodec::GZIP);
    if !is_gzip || header.compressed.saturating_mul(GZIP_FACTOR) <= limit {
        return Ok(());
    }
    let compressed = file.get_read(place.offset)?.take(header.compressed);
    let mut expanded = MultiGzDecoder::new(compressed).take(limit + 1);
    let bytes = io::copy(&mut expanded, &mut io::sink())?;
    if bytes > limit {
        Err(too_large())
    } else {
        Ok(())
    }
}

pub(super) fn too_large() -> ParquetError {
    ParquetError::General(
        "its pages need too much memory: write the file with smaller row groups, or as CSV"
            .to_owned(),
    )
}

fn damaged() -> ParquetError {
    ParquetError::General("damaged page".to_owned())
}

/// The rest of a column chunk.
struct Place {
    offset: u64,
    length: u64,
}

impl Place {
    fn of(file: &File, chunk: &ColumnChunkMetaData) -> Result<Self, ParquetError> {
        let offset = chunk.dictionary_page_offset();
        let offset = offset.unwrap_or_else(|| chunk.data_page_offset());
        let place = Self {
            offset: u64::try_from(offset).map_err(|_| damaged())?,
            length: u64::try_from(chunk.compressed_size()).map_err(|_| damaged())?,
        };
        let end = place.offset.checked_add(place.length);
        match end {
            Some(end) if end <= file.metadata()?.len() => Ok(place),
            _ => Err(damaged()),
        }
    }

    /// Reads a header and moves behind it.
    fn header(&mut self, file: &File) -> Result<Header, ParquetError> {
        let mut input = Thrift::new(file.get_read(self.offset)?.take(self.length));
        let header = Header::read(&mut input).map_err(|_| damaged())?;
        self.advance(input.bytes_read())?;
        if header.compressed > self.length {
            return Err(damaged());
        }
        Ok(header)
    }

    fn advance(&mut self, bytes: u64) -> Result<(), ParquetError> {
        self.offset += bytes;
        self.length = self.length.checked_sub(bytes).ok_or_else(damaged)?;
        Ok(())
    }
}

/// The parts of a page header that decide about memory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Header {
    kind: i64,
    uncompressed: u64,
    compressed: u64,
    values: u64,
    /// Whether the page has the lengths of its texts apart from them.
    has_lengths: bool,
    /// Whether a text in the page begins like the one before it.
    has_prefixes: bool,
}

impl Header {
    fn read(input: &mut Thrift<impl Read>) -> io::Result<Self> {
        let mut header = Self::default();
        let mut last = 0;
        while let Some((field, kind)) = input.field(&mut last)? {
            match (field, kind) {
                (1, I32) => header.kind = input.integer()?,
                (2, I32) => header.uncompressed = input.size()?,
                (3, I32) => header.compressed = input.size()?,
                // Headers of data pages, of dictionaries, and of data pages of the second version.
                (5 | 7, STRUCT) => header.read_page(input, 2)?,
                (8, STRUCT) => header.read_page(input, 4)?,
                _ => input.skip(kind, DEPTH)?,
            }
        }
        Ok(header)
    }

    /// Reads the number of values, which is the first field, and the encoding.
    fn read_page(&mut self, input: &mut Thrift<impl Read>, encoding: i64) -> io::Result<()> {
        let mut last = 0;
        while let Some((field, kind)) = input.field(&mut last)? {
            match kind {
                I32 if field == 1 => self.values = input.size()?.max(self.values),
                I32 if field == encoding => {
                    let encoding = input.integer()?;
                    self.has_prefixes |= encoding == DELTA_BYTE_ARRAY;
                    self.has_lengths |=
                        matches!(encoding, DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY);
                }
                _ => input.skip(kind, DEPTH)?,
            }
        }
        Ok(())
    }

    /// Bytes that the page takes in memory.
    fn memory(&self) -> u64 {
        let of_a_value = match self.kind {
            DICTIONARY_PAGE => DICTIONARY_VALUE,
            _ if self.has_lengths => LENGTH,
            _ => 0,
        };
        let values = self.values.saturating_mul(of_a_value);
        let pages = self.compressed.saturating_add(self.uncompressed);
        pages.saturating_add(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(bytes: &[u8]) -> io::Result<Header> {
        Header::read(&mut Thrift::new(bytes))
    }

    #[test]
    fn header_is_read_and_unknown_fields_are_skipped() {
        // A data page of 20 bytes in 10, with 5 values, statistics of all kinds of fields, and a list.
        let page = [
            0x15, 0x0a, 0x15, 0x0c, 0x2c, 0x18, 2, b'a', b'b', 0x12, 0x17, 0, 0, 0, 0, 0, 0, 0, 0,
            0x00, 0x00,
        ];
        let bytes = [
            &[0x15, 0x00, 0x15, 0x28, 0x15, 0x14, 0x15, 0x02, 0x1c][..],
            &page,
            &[0x49, 0x21, 1, 2, 0x1b, 1, 0x58, 2, 1, b'x', 0x00],
        ]
        .concat();
        let expected = Header {
            kind: 0,
            uncompressed: 20,
            compressed: 10,
            values: 5,
            has_lengths: true,
            has_prefixes: false,
        };
        assert_eq!(header(&bytes).unwrap(), expected);
        assert_eq!(expected.memory(), 30 + 5 * LENGTH);
        for end in 0..bytes.len() {
            assert_eq!(header(&bytes[..end]).ok(), None, "{end}");
        }
    }

    #[test]
    fn nested_and_negative_headers_are_rejected() {
        let nested = [0x9c; 100];
        assert_eq!(header(&nested).ok(), None);
        // A size of -1.
        assert_eq!(header(&[0x25, 0x01, 0x00]).ok(), None);
        // A text of 2^63 bytes.
        let text = [&[0x98][..], &[0x80; 9], &[0x01, 0x00]].concat();
        assert_eq!(header(&text).ok(), None);
    }
}
