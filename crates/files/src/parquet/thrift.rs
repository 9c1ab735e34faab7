//! Thrift's compact protocol, in which Parquet has its descriptions
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>).

use std::io::{self, Read};

/// Structures of a description are not nested deeper.
pub(super) const DEPTH: usize = 16;

/// Types of the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
pub(super) const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub(super) const STRUCT: u8 = 12;

/// Reads the compact protocol, and counts the bytes.
pub(super) struct Thrift<R> {
    input: R,
    read: u64,
}

impl<R: Read> Thrift<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, read: 0 }
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.read
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        self.read += 1;
        Ok(byte[0])
    }

    pub(super) fn unsigned(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(invalid())
    }

    pub(super) fn integer(&mut self) -> io::Result<i64> {
        let number = self.unsigned()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a size of 32 bits, which is not negative.
    pub(super) fn size(&mut self) -> io::Result<u64> {
        let size = i32::try_from(self.integer()?).map_err(|_| invalid())?;
        u64::try_from(size).map_err(|_| invalid())
    }

    /// Reads the number and type of a structure's next field; `None` at its end.
    pub(super) fn field(&mut self, last: &mut i64) -> io::Result<Option<(i64, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *last = match byte >> 4 {
            0 => self.integer()?,
            difference => last.wrapping_add(difference.into()),
        };
        Ok(Some((*last, byte & 0xf)))
    }

    /// Skips a field's value.
    pub(super) fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(invalid)?;
        match kind {
            TRUE | FALSE => Ok(()),
            I8 => self.bytes(1),
            I16 | I32 | I64 => self.unsigned().map(drop),
            DOUBLE => self.bytes(8),
            BINARY => {
                let length = self.unsigned()?;
                self.bytes(length)
            }
            LIST | SET => self.skip_list(depth),
            MAP => self.skip_map(depth),
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth)?;
                }
                Ok(())
            }
            _ => Err(invalid()),
        }
    }

    /// Reads the length of a list and the type of its elements.
    pub(super) fn list(&mut self) -> io::Result<(u64, u8)> {
        let byte = self.byte()?;
        let length = match byte >> 4 {
            15 => self.unsigned()?,
            length => length.into(),
        };
        Ok((length, byte & 0xf))
    }

    fn skip_list(&mut self, depth: usize) -> io::Result<()> {
        let (length, kind) = self.list()?;
        (0..length).try_for_each(|_| self.skip_element(kind, depth))
    }

    fn skip_map(&mut self, depth: usize) -> io::Result<()> {
        let length = self.unsigned()?;
        if length == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        (0..length).try_for_each(|_| {
            self.skip_element(kinds >> 4, depth)?;
            self.skip_element(kinds & 0xf, depth)
        })
    }

    /// Skips an element of a collection, where a boolean takes a byte.
    fn skip_element(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        match kind {
            TRUE | FALSE => self.bytes(1),
            _ => self.skip(kind, depth),
        }
    }

    pub(super) fn bytes(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.input.by_ref().take(length), &mut io::sink())?;
        self.read += skipped;
        if skipped == length {
            Ok(())
        } else {
            Err(invalid())
        }
    }
}

pub(super) fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
