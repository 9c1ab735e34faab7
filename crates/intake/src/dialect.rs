//! Detection of a file's delimiter and encoding from its first bytes.

use std::{
    collections::VecDeque,
    fmt::{self, Display, Formatter},
    io::{self, Read},
};

/// Number of bytes at the beginning of a file that detection inspects.
pub const MAX_SNIFFED: usize = 1 << 16;

/// Delimiters to try, the likelier first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Maximum number of lines to inspect.
const MAX_LINES: usize = 64;

/// How text is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    #[default]
    Utf8,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
    /// Windows-1252, which older programs in western Europe write. Every byte is a character.
    Windows1252,
}

impl Display for Encoding {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16 (little-endian)",
            Self::Utf16Be => "UTF-16 (big-endian)",
            Self::Windows1252 => "Windows-1252",
        })
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Byte between fields.
    pub delimiter: u8,
    /// Encoding of the file.
    pub encoding: Encoding,
}

impl Dialect {
    /// Detects the dialect of a file from its beginning `head`, of which at most [`MAX_SNIFFED`]
    /// bytes count. Bytes that are not UTF-8 and do not begin with a byte order mark are taken for
    /// Windows-1252. A file of one column gets commas.
    pub fn detect(head: &[u8]) -> Self {
        let head = &head[..head.len().min(MAX_SNIFFED)];
        let encoding = encoding(head);
        let mut text = Vec::new();
        // Reading from memory does not fail, and a character cut off at the end does no harm.
        let _ = Transcoder::new(head, encoding).read_to_end(&mut text);
        Self {
            delimiter: delimiter(&text, head.len() < MAX_SNIFFED),
            encoding,
        }
    }
}

fn encoding(head: &[u8]) -> Encoding {
    match head {
        [0xff, 0xfe, ..] => Encoding::Utf16Le,
        [0xfe, 0xff, ..] => Encoding::Utf16Be,
        _ => match std::str::from_utf8(head) {
            Ok(_) => Encoding::Utf8,
            // The inspected bytes end in the middle of a character.
            Err(error) if error.error_len().is_none() && head.len() == MAX_SNIFFED => {
                Encoding::Utf8
            }
            Err(_) => Encoding::Windows1252,
        },
    }
}

/// Returns the delimiter that the most lines contain as often as the first line does.
fn delimiter(text: &[u8], whole: bool) -> u8 {
    let lines = lines(text, whole);
    let score = |delimiter: u8| {
        let count = |line: &&[u8]| {
            let mut quoted = false;
            let outside = line.iter().filter(|&&byte| {
                quoted ^= byte == b'"';
                !quoted && byte == delimiter
            });
            outside.count()
        };
        let first = lines.first().map_or(0, count);
        let alike = lines.iter().filter(|line| count(line) == first).count();
        if first == 0 { (0, 0) } else { (alike, first) }
    };
    let mut best = (DELIMITERS[0], (0, 0));
    for delimiter in DELIMITERS {
        let score = score(delimiter);
        if score > best.1 {
            best = (delimiter, score);
        }
    }
    best.0
}

/// Returns the first records, without the last one if it may be incomplete.
fn lines(text: &[u8], whole: bool) -> Vec<&[u8]> {
    let (mut lines, mut start, mut quoted) = (Vec::new(), 0, false);
    for (at, &byte) in text.iter().enumerate() {
        quoted ^= byte == b'"';
        if byte == b'\n' && !quoted {
            lines.push(&text[start..at]);
            start = at + 1;
            if lines.len() == MAX_LINES {
                return lines;
            }
        }
    }
    if start < text.len() && (whole || lines.is_empty()) {
        lines.push(&text[start..]);
    }
    lines
}

/// A reader that converts text in any [`Encoding`] to UTF-8.
pub struct Transcoder<R> {
    input: R,
    encoding: Encoding,
    /// Bytes that do not yet form a character.
    rest: Vec<u8>,
    /// UTF-8 that has not been read yet.
    ready: VecDeque<u8>,
    begun: bool,
}

impl<R: Read> Transcoder<R> {
    /// Converts `input` from `encoding`, starting at its beginning.
    pub fn new(input: R, encoding: Encoding) -> Self {
        Self {
            input,
            encoding,
            rest: Vec::new(),
            ready: VecDeque::new(),
            begun: false,
        }
    }

    /// Makes more characters ready. Returns `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 8192];
        let read = self.input.read(&mut buffer)?;
        self.rest.extend_from_slice(&buffer[..read]);
        let big = self.encoding == Encoding::Utf16Be;
        if self.encoding == Encoding::Windows1252 {
            let text: String = self.rest.drain(..).map(windows_1252).collect();
            self.ready.extend(text.bytes());
            return Ok(read > 0);
        }
        let mut units: Vec<u16> = (self.rest.chunks_exact(2))
            .map(|pair| {
                let unit = u16::from_le_bytes([pair[0], pair[1]]);
                if big { unit.swap_bytes() } else { unit }
            })
            .collect();
        // The first half of a surrogate pair waits for the second.
        if read > 0
            && units
                .last()
                .is_some_and(|unit| (0xd800..0xdc00).contains(unit))
        {
            units.pop();
        }
        self.rest.drain(..2 * units.len());
        if read == 0 && !self.rest.is_empty() {
            self.rest.clear();
            self.ready.extend("\u{fffd}".bytes());
        }
        let units = if self.begun || units.first() != Some(&0xfeff) {
            &units[..]
        } else {
            &units[1..]
        };
        self.begun |= read > 0;
        self.ready.extend(String::from_utf16_lossy(units).bytes());
        Ok(read > 0)
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.encoding == Encoding::Utf8 {
            return self.input.read(buffer);
        }
        while self.ready.is_empty() && !buffer.is_empty() {
            if !self.fill()? {
                break;
            }
        }
        self.ready.read(buffer)
    }
}

/// Returns the character of a Windows-1252 byte, by the WHATWG's table.
fn windows_1252(byte: u8) -> char {
    const FROM_80: [char; 32] = [
        '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}',
        '\u{2021}', '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}',
        '\u{8f}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}',
        '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}',
        '\u{178}',
    ];
    match byte {
        0x80..=0x9f => FROM_80[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(bytes: &[u8]) -> String {
        let mut text = String::new();
        let encoding = Dialect::detect(bytes).encoding;
        Transcoder::new(bytes, encoding)
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    #[test]
    fn delimiter_with_equal_count_in_every_line_is_detected() {
        let detect = |text: &str| Dialect::detect(text.as_bytes()).delimiter;
        assert_eq!(detect("a,b\n1,2\n"), b',');
        assert_eq!(detect("a;b\n1,5;2,5\n"), b';');
        assert_eq!(detect("a;b;c\n\"x;y\";2,5;3\n1;2;3\n"), b';');
        assert_eq!(detect("a\tb, c\n1\t2\n"), b'\t');
        assert_eq!(detect("a|b\r\n1|2\r\n"), b'|');
        assert_eq!(detect("name\nx;y\n"), b',');
        assert_eq!(detect(""), b',');
    }

    #[test]
    fn text_is_decoded_from_every_encoding() {
        let words = "a;b\nK\u{f6}ln;\u{20ac} 5\n";
        let wide = |swap: bool| -> Vec<u8> {
            let units = "\u{feff}".encode_utf16().chain(words.encode_utf16());
            units
                .flat_map(|unit| {
                    if swap {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    }
                })
                .collect()
        };
        for bytes in [wide(false), wide(true), words.as_bytes().to_vec()] {
            assert_eq!(text(&bytes), words);
            assert_eq!(Dialect::detect(&bytes).delimiter, b';');
        }
        assert_eq!(text(b"a;b\nK\xf6ln;\x80 5\n"), words);
        assert_eq!(Dialect::detect(b"K\xf6ln").encoding, Encoding::Windows1252);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded(bytes: Vec<u8>, first in 0usize..3) {
            let mark: &[u8] = [&[][..], &[0xff, 0xfe], &[0xfe, 0xff]][first];
            let bytes = [mark, &bytes].concat();
            prop_assert!(!text(&bytes).is_empty() || bytes.len() <= 2);
        }
    }
}
