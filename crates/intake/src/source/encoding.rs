//! Character encodings: detection, and conversion to UTF-8.

use std::{
    fmt::{self, Display, Formatter},
    io::{self, Read},
    str::FromStr,
};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, DecoderResult, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Number of bytes from the first one that is not ASCII, by which an encoding is detected.
const SAMPLE_BYTES: usize = 64 << 10;

/// Number of bytes before the first one that is not ASCII that also count: the letters of the same word.
const CONTEXT_BYTES: usize = 16;

/// Text with at least this many valid multi-byte characters for each invalid one is UTF-8.
const VALID_PER_INVALID: usize = 10;

/// What an undecodable byte becomes: a byte that UTF-8 never has, so that the cell with it is refused.
const UNDECODABLE: u8 = 0xff;

/// Number of bytes that are converted at a time.
const CHUNK_BYTES: usize = 16 << 10;

/// A character encoding of the WHATWG's Encoding Standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

impl Encoding {
    /// UTF-8.
    pub const UTF_8: Self = Self(UTF_8);

    /// The name in the standard, such as `windows-1252`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns the encoding that the first bytes of a file show: a byte order mark, or every other byte zero as in
    /// UTF-16. Returns `None` for other bytes, most of which are ASCII in any case.
    pub fn of_start(head: &[u8]) -> Option<Self> {
        if let Some((encoding, _)) = encoding_rs::Encoding::for_bom(head) {
            return Some(Self(encoding));
        }
        let (pairs, _) = head.as_chunks::<2>();
        let zeros = |place: usize| {
            pairs
                .iter()
                .filter(|pair| pair.get(place) == Some(&0))
                .count()
        };
        let (first, second) = (zeros(0), zeros(1));
        // At least a third of the characters of a table, such as delimiters and digits, are ASCII.
        let are_high = |high: usize, low: usize| 3 * high >= pairs.len() && high >= 8 * low;
        match pairs.len() {
            2.. if are_high(second, first) => Some(Self(UTF_16LE)),
            2.. if are_high(first, second) => Some(Self(UTF_16BE)),
            _ => None,
        }
    }

    /// Detects the encoding of a text from bytes of which the first ones may be ASCII.
    fn detect(sample: &[u8], is_end: bool) -> Self {
        if is_mostly_utf8(sample, is_end) {
            return Self::UTF_8;
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(sample, is_end);
        let guess = detector.guess(None, Utf8Detection::Deny);
        // A few letters are often the same in several encodings of Europe.
        let decode = |encoding: &'static encoding_rs::Encoding| {
            encoding.decode_without_bom_handling(sample).0
        };
        match decode(guess) == decode(WINDOWS_1252) {
            true => Self(WINDOWS_1252),
            false => Self(guess),
        }
    }
}

impl Display for Encoding {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Encoding {
    type Err = String;

    /// Finds an encoding by a name of the standard, or by a name that Python uses.
    fn from_str(name: &str) -> Result<Self, String> {
        const ALIASES: [(&str, &str); 9] = [
            ("latin-1", "latin1"),
            ("utf-8-sig", "utf-8"),
            ("utf16", "utf-16"),
            ("utf-16-le", "utf-16le"),
            ("utf-16-be", "utf-16be"),
            ("cp932", "shift_jis"),
            ("cp936", "gbk"),
            ("cp949", "euc-kr"),
            ("cp950", "big5"),
        ];
        let wanted = name.trim().to_ascii_lowercase();
        let dashed = wanted.replace('_', "-");
        let alias = ALIASES.iter().find(|(alias, _)| *alias == dashed);
        let labels = [
            wanted.as_str(),
            dashed.as_str(),
            alias.map_or("", |(_, label)| label),
        ];
        let found = labels
            .iter()
            .find_map(|label| encoding_rs::Encoding::for_label_no_replacement(label.as_bytes()));
        found.map(Self).ok_or_else(|| {
            "unknown encoding: use a name such as utf-8, windows-1252, iso-8859-2, shift_jis or utf-16le".to_owned()
        })
    }
}

/// Whether nearly all bytes that are not ASCII form valid UTF-8.
fn is_mostly_utf8(sample: &[u8], is_end: bool) -> bool {
    let (mut valid, mut invalid, mut left) = (0, 0, sample.len());
    for chunk in sample.utf8_chunks() {
        left -= chunk.valid().len() + chunk.invalid().len();
        valid += chunk
            .valid()
            .chars()
            .filter(|character| !character.is_ascii())
            .count();
        // The sample may end in the middle of a character.
        let is_cut_off = left == 0 && !is_end;
        invalid += usize::from(!chunk.invalid().is_empty() && !is_cut_off);
    }
    valid >= VALID_PER_INVALID * invalid
}

/// How a [`Transcoder`] treats the next bytes.
enum State {
    /// All bytes so far are ASCII, which is the same in UTF-8 and in every encoding that detection can find then.
    Ascii,
    /// They are UTF-8, or are to be refused as such.
    Utf8,
    /// They are in another encoding.
    Other(Decoder),
}

/// Called with the encoding of a text, once it is known.
type OnDetection<'a> = Box<dyn FnOnce(Encoding) + 'a>;

/// A reader that converts text in any encoding to UTF-8.
///
/// If the encoding is not known, it is detected at the first byte that is not ASCII, wherever that is. Bytes that are
/// invalid in the encoding become bytes that are invalid in UTF-8, so that they are refused with their place.
pub struct Transcoder<'a, R> {
    input: R,
    state: State,
    /// Bytes of the input that have not been converted.
    raw: Vec<u8>,
    has_ended: bool,
    /// UTF-8 that has not been read, from `next` on.
    ready: Vec<u8>,
    next: usize,
    /// The last ASCII bytes before detection.
    context: Vec<u8>,
    on_detection: Option<OnDetection<'a>>,
}

impl<'a, R: Read> Transcoder<'a, R> {
    /// Converts `input` from its beginning. Calls `on_detection` if the encoding is detected.
    pub fn new(
        input: R,
        encoding: Option<Encoding>,
        on_detection: impl FnOnce(Encoding) + 'a,
    ) -> Self {
        Self {
            input,
            state: encoding.map_or(State::Ascii, state_of),
            raw: Vec::new(),
            has_ended: false,
            ready: Vec::new(),
            next: 0,
            context: Vec::new(),
            on_detection: Some(Box::new(on_detection)),
        }
    }

    /// Reads bytes up to the size of a sample, and detects the encoding.
    fn detect(&mut self) -> io::Result<()> {
        while self.raw.len() < SAMPLE_BYTES && !self.has_ended {
            self.read_raw()?;
        }
        let sample = self.raw.get(..SAMPLE_BYTES).unwrap_or(&self.raw);
        let is_end = self.has_ended && sample.len() == self.raw.len();
        let sample = [self.context.as_slice(), sample].concat();
        let encoding = Encoding::detect(&sample, is_end);
        self.state = state_of(encoding);
        if let Some(tell) = self.on_detection.take() {
            tell(encoding);
        }
        Ok(())
    }

    fn read_raw(&mut self) -> io::Result<()> {
        let before = self.raw.len();
        self.raw.resize(before + CHUNK_BYTES, 0);
        let read = loop {
            match self
                .input
                .read(self.raw.get_mut(before..).unwrap_or_default())
            {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.raw.truncate(before + *read.as_ref().unwrap_or(&0));
        self.has_ended = read? == 0;
        Ok(())
    }

    /// Makes more UTF-8 ready. Returns false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        self.ready.clear();
        self.next = 0;
        if self.raw.is_empty() && !self.has_ended {
            self.read_raw()?;
        }
        if let State::Ascii = self.state {
            let ascii = self.raw.iter().take_while(|byte| byte.is_ascii()).count();
            if ascii > 0 || self.raw.is_empty() {
                self.ready.extend(self.raw.drain(..ascii));
                let kept = self.ready.len().saturating_sub(CONTEXT_BYTES);
                self.context
                    .extend_from_slice(self.ready.get(kept..).unwrap_or_default());
                self.context
                    .drain(..self.context.len().saturating_sub(CONTEXT_BYTES));
                return Ok(ascii > 0);
            }
            self.detect()?;
        }
        match &mut self.state {
            State::Ascii => {}
            State::Utf8 => std::mem::swap(&mut self.ready, &mut self.raw),
            State::Other(decoder) => {
                decode(decoder, &mut self.raw, self.has_ended, &mut self.ready);
                // A decoder must not be used behind the end.
                if self.has_ended {
                    self.state = State::Utf8;
                }
            }
        }
        Ok(!self.ready.is_empty() || !self.has_ended)
    }
}

fn state_of(encoding: Encoding) -> State {
    match encoding == Encoding::UTF_8 {
        true => State::Utf8,
        false => State::Other(encoding.0.new_decoder_with_bom_removal()),
    }
}

/// Converts all bytes of `raw` that form whole characters.
fn decode(decoder: &mut Decoder, raw: &mut Vec<u8>, is_end: bool, ready: &mut Vec<u8>) {
    let mut read = 0;
    let mut buffer = [0; CHUNK_BYTES];
    loop {
        let rest = raw.get(read..).unwrap_or_default();
        let (result, used, written) =
            decoder.decode_to_utf8_without_replacement(rest, &mut buffer, is_end);
        read += used;
        ready.extend_from_slice(buffer.get(..written).unwrap_or_default());
        match result {
            DecoderResult::InputEmpty => break,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => ready.push(UNDECODABLE),
        }
    }
    raw.clear();
}

impl<R: Read> Read for Transcoder<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.next == self.ready.len() && !buffer.is_empty() {
            if let (State::Utf8, true) = (&self.state, self.raw.is_empty()) {
                return self.input.read(buffer);
            }
            if !self.fill()? {
                return Ok(0);
            }
        }
        let mut ready = self.ready.get(self.next..).unwrap_or_default();
        let read = ready.read(buffer)?;
        self.next += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Converts bytes, and returns the detected encoding.
    fn convert(bytes: &[u8], encoding: Option<Encoding>) -> (Vec<u8>, Option<Encoding>) {
        let mut detected = None;
        let mut text = Vec::new();
        let encoding = encoding.or_else(|| Encoding::of_start(bytes));
        Transcoder::new(bytes, encoding, |found| detected = Some(found))
            .read_to_end(&mut text)
            .unwrap();
        (text, encoding.or(detected))
    }

    fn name(bytes: &[u8]) -> &'static str {
        convert(bytes, None).1.map_or("ASCII", Encoding::name)
    }

    fn encoded(text: &str, label: &str) -> Vec<u8> {
        let encoding: Encoding = label.parse().unwrap();
        encoding.0.encode(text).0.into_owned()
    }

    #[test]
    fn text_of_common_encodings_is_converted() {
        for (label, row) in [
            (
                "utf-8",
                "M\u{fc}nchen;\u{141}\u{f3}d\u{17a};\u{6771}\u{4eac}\n",
            ),
            ("windows-1252", "K\u{f6}ln;M\u{fc}nchen;\u{20ac} 5\n"),
            (
                "windows-1250",
                "\u{141}\u{f3}d\u{17a};Gda\u{144}sk;\u{10c}e\u{161}ka\n",
            ),
            (
                "windows-1251",
                "\u{41c}\u{43e}\u{441}\u{43a}\u{432}\u{430};\u{43c}\u{443}\u{436}\n",
            ),
            ("shift_jis", "\u{6771}\u{4eac};\u{5927}\u{962a};\u{5973}\n"),
            (
                "euc-jp",
                "\u{6771}\u{4eac};\u{5927}\u{962a};\u{5973}\u{3067}\u{3059}\n",
            ),
            ("gbk", "\u{5317}\u{4eac};\u{4e0a}\u{6d77};\u{5973}\n"),
            (
                "euc-kr",
                "\u{c11c}\u{c6b8};\u{bd80}\u{c0b0};\u{c5ec}\u{c790}\n",
            ),
        ] {
            let text = format!("stadt;x;y\n{}", row.repeat(20));
            let (converted, found) = convert(&encoded(&text, label), None);
            assert_eq!(
                String::from_utf8_lossy(&converted),
                text,
                "{label}, read as {found:?}"
            );
        }
    }

    #[test]
    fn utf16_is_converted_with_and_without_a_mark() {
        let text = "a;b\nK\u{f6}ln;\u{1f600}\n";
        for mark in ["", "\u{feff}"] {
            let units: Vec<u16> = mark.encode_utf16().chain(text.encode_utf16()).collect();
            let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
            for bytes in [little, big] {
                assert_eq!(convert(&bytes, None).0, text.as_bytes());
            }
        }
    }

    #[test]
    fn few_invalid_bytes_in_utf8_stay() {
        let mut bytes = "D\u{fc}ren;1\n".repeat(20).into_bytes();
        bytes.extend(b"Bonn\xe4;2\n");
        assert_eq!(
            convert(&bytes, None),
            (bytes.clone(), Some(Encoding::UTF_8))
        );
        let mut few = "D\u{fc}ren;1\n".repeat(3).into_bytes();
        few.extend(b"Bonn\xe4;2\n");
        assert_ne!(name(&few), "UTF-8");
    }

    #[test]
    fn encoding_is_detected_by_the_first_bytes_beyond_ascii() {
        let ascii = "1;2;3\n".repeat(100_000);
        for (label, text) in [
            ("windows-1252", "K\u{f6}ln;2;\u{fc}\n"),
            ("utf-8", "K\u{f6}ln;2;3\n"),
        ] {
            let text = format!("{ascii}{text}");
            let (converted, found) = convert(&encoded(&text, label), None);
            assert_eq!(
                found.map(Encoding::name).unwrap_or_default().to_lowercase(),
                label
            );
            assert_eq!(converted, text.as_bytes());
        }
        assert_eq!(name(ascii.as_bytes()), "ASCII");
    }

    #[test]
    fn single_letter_of_western_europe_is_detected() {
        for bytes in [
            &b"a;b\nK\xf6ln;5\n"[..],
            b"name\nRen\xe9\n",
            b"a;b\nK\xf6ln;\x80 5\n",
            b"x,c,y\n1,red,0\n2,\xff,1\n",
            b"x,\xe9,y\n1,red,0\n",
        ] {
            assert_eq!(
                name(bytes),
                "windows-1252",
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
    }

    #[test]
    fn undecodable_bytes_are_invalid_utf8() {
        let encoding = Some("shift_jis".parse().unwrap());
        let (text, _) = convert(b"a\n\x93\x8c\n\xff\n", encoding);
        assert_eq!(text, b"a\n\xe6\x9d\xb1\n\xff\n");
        let encoding = Some("utf-16le".parse().unwrap());
        assert_eq!(convert(b"a\0\x00\xd8b\0c", encoding).0, b"a\xffb\xff");
    }

    #[test]
    fn names_of_encodings_are_understood() {
        for (given, found) in [
            ("latin1", "windows-1252"),
            ("Latin-1", "windows-1252"),
            ("cp1252", "windows-1252"),
            ("UTF8", "UTF-8"),
            ("utf_8_sig", "UTF-8"),
            ("UTF-16", "UTF-16LE"),
            ("cp932", "Shift_JIS"),
            ("gb2312", "GBK"),
            ("macintosh", "macintosh"),
        ] {
            let parsed = given.parse::<Encoding>().map(Encoding::name);
            assert_eq!(parsed.as_deref(), Ok(found), "{given}");
        }
        for unknown in ["cp437", "iso-2022-kr"] {
            let error = unknown.parse::<Encoding>().unwrap_err();
            assert!(error.starts_with("unknown encoding"), "{error}");
        }
    }

    /// A reader that returns a few bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(self.1);
            self.0.read(buffer.get_mut(..length).unwrap_or_default())
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_converted(bytes: Vec<u8>, mark in 0usize..4) {
            let mark: &[u8] = [&[][..], &[0xff, 0xfe], &[0xfe, 0xff], &[0xef, 0xbb, 0xbf]][mark];
            convert(&[mark, &bytes].concat(), None);
        }

        #[test]
        fn conversion_does_not_depend_on_the_size_of_reads(
            bytes in proptest::collection::vec(prop_oneof![3 => 32u8..127, 1 => any::<u8>()], 0..200), size in 1usize..9,
        ) {
            let whole = convert(&bytes, None);
            let mut detected = None;
            let start = Encoding::of_start(&bytes);
            let mut text = Vec::new();
            Transcoder::new(Pieces(&bytes, size), start, |found| detected = Some(found))
                .read_to_end(&mut text).unwrap();
            prop_assert_eq!((text, start.or(detected)), whole);
        }
    }
}
