//! Types in the Arrow schema that Arrow programs keep in a file's metadata, for columns whose Parquet type says less:
//! durations, and the names of time zones.
//!
//! The schema is a flatbuffer (<https://github.com/apache/arrow/blob/main/format/Schema.fbs>) in an Arrow message in
//! Base64.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Key of the schema in a file's metadata.
pub(super) const KEY: &str = "ARROW:schema";

/// The type of a column, as far as Parquet does not state it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArrowType {
    /// A moment with the name of its zone.
    Timestamp(String),
    /// A duration, and its units in a second.
    Duration(i64),
    /// A date in milliseconds.
    DateInMillis,
    /// Any other type.
    Other,
}

/// Numbers of the format.
const DATE: u8 = 8;
const TIMESTAMP: u8 = 10;
const DURATION: u8 = 18;
const SCHEMA: u8 = 1;
const MILLISECOND: u16 = 1;

/// Maximum number of bytes of a zone's name.
const MAX_ZONE: usize = 64;

/// Returns the types of the columns that have these names.
pub(super) fn types(schema: &str, names: &[&str]) -> Vec<ArrowType> {
    let message = STANDARD.decode(schema).unwrap_or_default();
    let types = read(&message, names);
    types.unwrap_or_else(|| vec![ArrowType::Other; names.len()])
}

/// Returns `None` if the message is not a schema of these columns.
fn read(message: &[u8], names: &[&str]) -> Option<Vec<ArrowType>> {
    // Older messages begin with their length, others with a marker before it.
    let body = match message.strip_prefix(&[0xff; 4]) {
        Some(rest) => rest.get(4..)?,
        None => message.get(4..)?,
    };
    let root = Table::root(body)?;
    if root.byte(1)? != SCHEMA {
        return None;
    }
    let schema = root.table(2)?;
    let mut fields = schema.tables(1)?;
    let types = names.iter().map(|&name| {
        let field = fields.next().flatten()?;
        (field.text(0)? == name).then(|| kind(&field))
    });
    types.collect()
}

fn kind(field: &Table<'_>) -> ArrowType {
    let details = field.table(3);
    let details = details.as_ref();
    let unit = details.and_then(|details| details.short(0));
    let known = match field.byte(2).unwrap_or(0) {
        TIMESTAMP => details
            .and_then(|details| details.text(1))
            .filter(|zone| zone.len() <= MAX_ZONE)
            .map(|zone| ArrowType::Timestamp(zone.to_owned())),
        DURATION => per_second(unit.unwrap_or(MILLISECOND)).map(ArrowType::Duration),
        DATE if unit.unwrap_or(MILLISECOND) == MILLISECOND => Some(ArrowType::DateInMillis),
        _ => None,
    };
    known.unwrap_or(ArrowType::Other)
}

fn per_second(unit: u16) -> Option<i64> {
    (unit < 4).then(|| 1_000i64.pow(unit.into()))
}

/// A table of a flatbuffer. Every access is checked.
struct Table<'a> {
    bytes: &'a [u8],
    start: usize,
}

impl<'a> Table<'a> {
    fn root(bytes: &'a [u8]) -> Option<Self> {
        Some(Self {
            bytes,
            start: word(bytes, 0)?,
        })
    }

    /// Returns the position of a field, or `None` if it has its default.
    fn field(&self, number: usize) -> Option<usize> {
        let back = i32::from_le_bytes(*self.bytes.get(self.start..)?.first_chunk()?);
        let fields = usize::try_from(i64::try_from(self.start).ok()? - i64::from(back)).ok()?;
        let size = half_word(self.bytes, fields)?;
        let entry = 4 + 2 * number;
        if entry + 2 > usize::from(size) {
            return None;
        }
        match half_word(self.bytes, fields.checked_add(entry)?)? {
            0 => None,
            offset => self.start.checked_add(offset.into()),
        }
    }

    fn byte(&self, number: usize) -> Option<u8> {
        self.bytes.get(self.field(number)?).copied()
    }

    fn short(&self, number: usize) -> Option<u16> {
        half_word(self.bytes, self.field(number)?)
    }

    fn table(&self, number: usize) -> Option<Self> {
        self.follow(self.field(number)?)
    }

    fn follow(&self, place: usize) -> Option<Self> {
        Some(Self {
            bytes: self.bytes,
            start: place.checked_add(word(self.bytes, place)?)?,
        })
    }

    fn text(&self, number: usize) -> Option<&'a str> {
        let (start, length) = self.list(number)?;
        let text = self.bytes.get(start..)?.get(..length)?;
        str::from_utf8(text).ok()
    }

    fn tables(&self, number: usize) -> Option<impl Iterator<Item = Option<Self>>> {
        let (start, length) = self.list(number)?;
        let entries = self.bytes.get(start..)?.chunks_exact(4).take(length);
        Some(
            (start..)
                .step_by(4)
                .zip(entries)
                .map(|(place, _)| self.follow(place)),
        )
    }

    /// Returns the position and the length of a list or text.
    fn list(&self, number: usize) -> Option<(usize, usize)> {
        let list = self.follow(self.field(number)?)?.start;
        Some((list.checked_add(4)?, word(self.bytes, list)?))
    }
}

fn word(bytes: &[u8], place: usize) -> Option<usize> {
    let word = u32::from_le_bytes(*bytes.get(place..)?.first_chunk()?);
    usize::try_from(word).ok()
}

fn half_word(bytes: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(place..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a table with `at: timestamp[ms, tz=Europe/Berlin]`, `stay: duration[s]` `wait: duration[ms]` and
    /// `n: int64`, by pyarrow.
    const EXAMPLE: &str = "/////ygBAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAQAAACwAAAAbAAAADwAAAAEAAAAcP///wAAAQIQAAAAHAAAAAQAAAAAAAAAAQAAAG4AAAAIAAwACAAHAAgAAAAAAAABQAAAAKT///8AAAESEAAAABwAAAAEAAAAAAAAAAQAAAB3YWl0AAAAAAQABAAEAAAA0P///wAAARIQAAAAHAAAAAQAAAAAAAAABAAAAHN0YXkAAAYACAAGAAYAAAAAAAAAEAAUAAgABgAHAAwAAAAQABAAAAAAAAEKEAAAABwAAAAEAAAAAAAAAAIAAABhdAAACAAMAAYACAAIAAAAAAABAAQAAAANAAAARXVyb3BlL0JlcmxpbgAAAA==";

    const NAMES: [&str; 4] = ["at", "stay", "wait", "n"];

    #[test]
    fn zones_and_durations_are_read() {
        let expected = [
            ArrowType::Timestamp("Europe/Berlin".to_owned()),
            ArrowType::Duration(1),
            ArrowType::Duration(1_000),
            ArrowType::Other,
        ];
        assert_eq!(types(EXAMPLE, &NAMES), expected);
        let other = ["at", "stay", "wait", "m"];
        assert_eq!(types(EXAMPLE, &other), [const { ArrowType::Other }; 4]);
    }

    #[test]
    fn damaged_schema_does_not_panic() {
        let message = STANDARD.decode(EXAMPLE).unwrap();
        for place in 0..message.len() {
            let _ = read(&message[..place], &NAMES);
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = message.clone();
                damaged[place] = value;
                let _ = read(&damaged, &NAMES);
            }
        }
        assert_eq!(types("no Base64", &["n"]), [ArrowType::Other]);
        assert_eq!(types("", &[]), []);
    }
}
