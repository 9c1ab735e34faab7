//! Detection of a table's dialect from its first records.

use std::collections::HashSet;

use fhaim_domain::{Dialect, ScanError, Scanner};

use super::{Given, Remark, TextError};

/// Delimiters to try, the likelier first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Maximum number of records to look at.
const MAX_ROWS: usize = 100;

/// Maximum number of lines before the header.
const MAX_PREAMBLE: u64 = 40;

/// A byte separates fields if at least this share of the records has the same number of them.
const MIN_SHARE: f64 = 0.8;

/// The same, if lines before the header are skipped.
const MIN_SHARE_BELOW_PREAMBLE: f64 = 0.95;

/// A column is numeric, or has blanks before its fields, if at least this share of its cells is.
const USUAL_SHARE: f64 = 0.9;

/// How many fields the header has, compared with the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Header {
    /// More or fewer by at least two, or one more with a name.
    Other,
    /// One more, without a name.
    OneLong,
    /// One fewer.
    OneShort,
    /// As many.
    Equal,
}

/// A reading of the first records in some dialect.
#[derive(Debug)]
struct Trial {
    dialect: Dialect,
    /// The header and the records.
    rows: Vec<Vec<Vec<u8>>>,
    /// Line where each begins.
    lines: Vec<u64>,
    /// Whether a record cannot be split.
    is_broken: bool,
    /// Number of fields of most records.
    width: usize,
    header: Header,
    /// The field of the records that has no name.
    extra: Option<Extra>,
    /// Share of the records with that number of fields.
    share: f64,
}

/// How well a trial fits: the higher, the better.
type Fit = (bool, bool, Header, u32, usize);

impl Trial {
    /// Reads the first records. `is_whole` tells whether `text` is all of the file.
    fn run(text: &[u8], is_whole: bool, dialect: Dialect) -> Self {
        let mut trial = Self {
            dialect,
            rows: Vec::new(),
            lines: Vec::new(),
            is_broken: false,
            width: 0,
            header: Header::Other,
            extra: None,
            share: 0.0,
        };
        let Ok(mut scanner) = Scanner::new(&dialect, text) else {
            return trial;
        };
        let mut error = None;
        while trial.rows.len() <= MAX_ROWS {
            match scanner.advance() {
                Ok(true) => {
                    let fields = (0..scanner.fields()).map(|field| scanner.field(field).to_vec());
                    trial.rows.push(fields.collect());
                    trial.lines.push(scanner.record_line());
                }
                Ok(false) => break,
                Err(found) => {
                    error = Some(found);
                    break;
                }
            }
        }
        trial.is_broken = match error {
            None => false,
            // NUL characters say nothing about the dialect.
            Some(ScanError::Field { problem, .. }) => match problem {
                fhaim_domain::FieldProblem::Nul => false,
                fhaim_domain::FieldProblem::OpenQuote => is_whole,
                _ => true,
            },
            Some(_) => true,
        };
        let is_cut_off = !is_whole && error.is_none() && trial.rows.len() <= MAX_ROWS;
        if is_cut_off && trial.rows.len() > 2 {
            trial.rows.pop();
        }
        trial.measure();
        trial.extra = trial.extra_field(text);
        trial
    }

    fn measure(&mut self) {
        let Some((header, records)) = self.rows.split_first() else {
            return;
        };
        let count = |width: usize| records.iter().filter(|row| row.len() == width).count();
        let widths: HashSet<usize> = records.iter().map(Vec::len).collect();
        let best = widths
            .into_iter()
            .max_by_key(|&width| (count(width), width));
        self.width = best.unwrap_or(header.len());
        self.share = count(self.width) as f64 / records.len().max(1) as f64;
        if records.is_empty() {
            self.share = 1.0;
        }
        let begins_right = records.first().is_none_or(|row| row.len() == self.width);
        self.header = match header.len() {
            found if found == self.width => Header::Equal,
            found if found + 1 == self.width && begins_right => Header::OneShort,
            found
                if found == self.width + 1
                    && begins_right
                    && header.last().is_some_and(Vec::is_empty) =>
            {
                Header::OneLong
            }
            _ => Header::Other,
        };
    }

    /// Whether the dialect separates fields, in most records alike.
    fn is_plausible(&self, share: f64) -> bool {
        let has_names = self.header == Header::Equal || self.extra.is_some();
        self.width > 1 && has_names && self.share >= share
    }

    fn fit(&self) -> Fit {
        let share = (1000.0 * self.share) as u32;
        (
            self.is_plausible(MIN_SHARE),
            !self.is_broken,
            self.header,
            share,
            self.width,
        )
    }

    fn names(&self) -> &[Vec<u8>] {
        self.rows.first().map_or(&[], Vec::as_slice)
    }

    /// The records with the usual number of fields.
    fn records(&self) -> impl Iterator<Item = &[Vec<u8>]> {
        let rows = self.rows.iter().skip(1).map(Vec::as_slice);
        rows.filter(|row| row.len() == self.width)
    }

    /// The cells of a column, counted from the right: there, header and records match.
    fn column(&self, from_right: usize) -> impl Iterator<Item = &[u8]> {
        let place = self.width.checked_sub(from_right + 1);
        self.records()
            .filter_map(move |row| row.get(place?).map(Vec::as_slice))
    }

    /// Whether the first record of the trial looks like a header: all of its fields are words, none of them is in
    /// the records, and a column of numbers has one of them.
    fn has_header_of_words(&self) -> bool {
        let mut has_numbers_below = false;
        for (from_right, name) in self.names().iter().rev().enumerate() {
            let is_last_empty = from_right == 0 && name.is_empty();
            if is_last_empty {
                continue;
            }
            let is_word = name.iter().any(u8::is_ascii_alphabetic) || !name.is_ascii();
            if !is_word || is_numeric(name) || self.column(from_right).any(|cell| cell == name) {
                return false;
            }
            has_numbers_below |= share_of(self.column(from_right), is_numeric) >= USUAL_SHARE;
        }
        has_numbers_below
    }
    /// Whether the first record may be a title above the header, as spreadsheets export it: at least half of its fields
    /// are empty.
    fn begins_with_title(&self) -> bool {
        let names = self.names();
        let empty = names.iter().filter(|name| name.is_empty()).count();
        names.len() > 1 && 2 * empty >= names.len()
    }

    /// Whether the first record of the trial certainly is no header: it has numbers like the records, no word above a
    /// column of numbers, and values that occur again.
    fn begins_with_record(&self) -> bool {
        if self.header != Header::Equal || !self.is_plausible(MIN_SHARE) {
            return false;
        }
        let (mut numbers, mut words, mut values) = (0, 0, 0);
        for (from_right, name) in self.names().iter().rev().enumerate() {
            if share_of(self.column(from_right), is_numeric) >= USUAL_SHARE {
                numbers += usize::from(is_numeric(name));
                words += usize::from(!is_numeric(name));
            }
            // A single number may recur by chance.
            let again = !name.is_empty() && self.column(from_right).any(|cell| cell == name);
            values += usize::from(again) * if is_numeric(name) { 1 } else { 2 };
        }
        numbers > 0 && words == 0 && values > 1
    }

    /// Returns which field of the records has no name in the header, if that is certain.
    fn extra_field(&self, text: &[u8]) -> Option<Extra> {
        let last = |row: &[Vec<u8>]| row.last().is_some_and(Vec::is_empty);
        if self.width < 2 || self.records().next().is_none() {
            return None;
        }
        let ends_with_delimiter = self.records().all(last) && !self.dialect.whitespace;
        match self.header {
            Header::OneLong => Some(Extra::Header),
            Header::OneShort if ends_with_delimiter => Some(Extra::Last),
            Header::Equal if ends_with_delimiter && last(self.names()) => Some(Extra::Last),
            Header::OneShort if self.has_row_names(text) => Some(Extra::First),
            _ => None,
        }
    }

    /// Whether the first field of each record is the name of a row. Decimal commas also add a field to each record,
    /// so more evidence is needed.
    fn has_row_names(&self, text: &[u8]) -> bool {
        let first = || {
            self.records()
                .filter_map(|row| row.first().map(Vec::as_slice))
        };
        let mut seen = HashSet::new();
        if self.names().len() < 2 || first().count() < 2 || !first().all(|name| seen.insert(name)) {
            return false;
        }
        let numbers = first().map(|name| std::str::from_utf8(name).ok()?.parse::<u64>().ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        let counts_rows = numbers.is_some_and(|numbers| {
            let next = numbers.iter().skip(1);
            numbers
                .iter()
                .zip(next)
                .all(|(one, next)| one.checked_add(1) == Some(*next))
        });
        counts_rows || self.dialect.delimiter != b',' || self.begins_with_quotes(text)
    }

    /// Whether each record begins with a quote.
    fn begins_with_quotes(&self, text: &[u8]) -> bool {
        let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        let begins = |line: &u64| {
            let line = usize::try_from(*line)
                .ok()
                .and_then(|line| lines.get(line.checked_sub(1)?));
            line.and_then(|line| line.first()).copied() == self.dialect.quote
        };
        self.dialect.quote.is_some() && self.lines.iter().skip(1).all(begins)
    }
}

/// Whether a text is a number, a date or the like: it begins with a digit, perhaps after a sign.
fn is_numeric(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    text.first().is_some_and(u8::is_ascii_digit)
}

/// Returns the share of the cells with a property, among those that are not empty; 0 if all are.
fn share_of<'a>(cells: impl Iterator<Item = &'a [u8]>, has: impl Fn(&[u8]) -> bool) -> f64 {
    let (mut all, mut those) = (0u32, 0u32);
    for cell in cells.filter(|cell| !cell.is_empty()) {
        all += 1;
        those += u32::from(has(cell));
    }
    f64::from(those) / f64::from(all.max(1))
}

/// Detects the dialect of a text from its beginning. What `given` states is not detected. A dialect that is in doubt
/// stays plain CSV, and reading then reports the first record that does not fit.
///
/// # Errors
/// [`TextError::NoHeader`].
pub(super) fn detect(
    text: &[u8],
    is_whole: bool,
    given: &Given,
) -> Result<(Dialect, Vec<Remark>), TextError> {
    let mut detection = Detection {
        text,
        is_whole,
        given,
        pairs: Pairs::of(text),
        remarks: Vec::new(),
    };
    let dialect = detection.run()?;
    Ok((dialect, detection.remarks))
}

/// The pairs of bytes in a text that show which dialects to try.
struct Pairs {
    /// By byte: whether a blank follows it somewhere.
    before_blank: [bool; 256],
    /// By byte: whether it follows a backslash somewhere.
    after_backslash: [bool; 256],
    has_apostrophe: bool,
    has_hash_line: bool,
    has_run_of_blanks: bool,
}

impl Pairs {
    fn of(text: &[u8]) -> Self {
        let mut pairs = Self {
            before_blank: [false; 256],
            after_backslash: [false; 256],
            has_apostrophe: text.contains(&b'\''),
            has_hash_line: false,
            has_run_of_blanks: false,
        };
        for (&one, &next) in text.iter().zip(text.iter().skip(1)) {
            match (one, next) {
                (b' ' | b'\t', b' ' | b'\t') => pairs.has_run_of_blanks = true,
                (b'\n', b'#') => pairs.has_hash_line = true,
                _ => {}
            }
            if let (b'\\', Some(entry)) = (one, pairs.after_backslash.get_mut(usize::from(next))) {
                *entry = true;
            }
            if let (b' ', Some(entry)) = (next, pairs.before_blank.get_mut(usize::from(one))) {
                *entry = true;
            }
        }
        pairs
    }
}

/// Returns the entry of a byte.
fn entry(table: &[bool; 256], byte: u8) -> bool {
    table.get(usize::from(byte)).copied().unwrap_or(false)
}

struct Detection<'a> {
    text: &'a [u8],
    is_whole: bool,
    given: &'a Given,
    pairs: Pairs,
    remarks: Vec<Remark>,
}

impl Detection<'_> {
    fn run(&mut self) -> Result<Dialect, TextError> {
        let mut start = self.start();
        let separator = self.separator_line();
        if let Some(delimiter) = separator {
            start.delimiter = self.given.delimiter.unwrap_or(delimiter);
            start.skip_rows = self.given.skip_rows.unwrap_or(1);
        }
        let mut best = self.best(start, separator);
        if self.given.delimiter == Some(b' ') {
            best = self.whitespace(start).unwrap_or(best);
        }
        if !best.is_plausible(MIN_SHARE) || best.begins_with_title() {
            best = self.below_preamble(start, separator).unwrap_or(best);
        }
        if !best.is_plausible(MIN_SHARE) {
            best = self.whitespace(start).unwrap_or(best);
        }
        if !best.is_plausible(MIN_SHARE) && best.names().len() < 2 {
            // Perhaps there is only one column.
            best = self.refine(self.try_out(start));
        }
        if self.given.skip_rows.is_none() && best.begins_with_record() {
            let line = best.lines.first().copied().unwrap_or(1);
            return Err(TextError::NoHeader(line, line - 1));
        }
        self.tell_about(&best, separator);
        Ok(self.shape(&best))
    }

    /// The dialect that the caller gave, and plain CSV in everything else.
    fn start(&self) -> Dialect {
        let given = self.given;
        let plain = Dialect::default();
        Dialect {
            delimiter: given.delimiter.unwrap_or(plain.delimiter),
            quote: given.quote.unwrap_or(plain.quote),
            comment: given.comment.unwrap_or(plain.comment),
            skip_rows: given.skip_rows.unwrap_or(0),
            skip_footer: given.skip_footer.unwrap_or(0),
            refuse_total: given.skip_footer.is_none(),
            ..plain
        }
    }

    fn try_out(&self, dialect: Dialect) -> Trial {
        Trial::run(self.text, self.is_whole, dialect)
    }

    /// Returns the delimiter that a first line such as `sep=;` states, as Excel writes it.
    fn separator_line(&self) -> Option<u8> {
        let text = self.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.text);
        let line = text.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
        let line = line
            .strip_prefix(b"\"")
            .map_or(line, |line| line.strip_suffix(b"\"").unwrap_or(line));
        let (key, value) = line.split_at_checked(4)?;
        match value {
            [delimiter] if key.eq_ignore_ascii_case(b"sep=") && delimiter.is_ascii() => {
                Some(*delimiter)
            }
            b"\\t" if key.eq_ignore_ascii_case(b"sep=") => Some(b'\t'),
            _ => None,
        }
    }

    /// Returns the best trial among all delimiters, quotes and escapes.
    fn best(&self, start: Dialect, separator: Option<u8>) -> Trial {
        let fixed = self.given.delimiter.or(separator);
        let delimiters = fixed.map_or(DELIMITERS.to_vec(), |delimiter| vec![delimiter]);
        let trials = delimiters.into_iter().map(|delimiter| {
            let dialect = Dialect { delimiter, ..start };
            self.refine(self.try_out(dialect))
        });
        let better = |best: Trial, next: Trial| if next.fit() > best.fit() { next } else { best };
        trials.reduce(better).unwrap_or_else(|| self.try_out(start))
    }

    /// Improves a trial by quotes, escapes, comments and blanks around fields, where the text has them.
    fn refine(&self, plain: Trial) -> Trial {
        let start = plain.dialect;
        let may_trim = entry(&self.pairs.before_blank, start.delimiter);
        let quotes = match start.quote {
            Some(b'"') if self.given.quote.is_none() && self.pairs.has_apostrophe => {
                vec![start.quote, Some(b'\'')]
            }
            quote => vec![quote],
        };
        let trims = has_blanks_everywhere(&plain);
        let mut best = plain;
        for quote in quotes {
            let may_escape = quote.is_some_and(|quote| entry(&self.pairs.after_backslash, quote));
            let escapes = [None, may_escape.then_some(b'\\')];
            for escape in escapes.into_iter().take(1 + usize::from(may_escape)) {
                for trim in [false, true].into_iter().take(1 + usize::from(may_trim)) {
                    let dialect = Dialect {
                        quote,
                        escape,
                        trim,
                        ..start
                    };
                    if dialect == start {
                        continue;
                    }
                    let trial = self.try_out(dialect);
                    let is_usual = trim && trims && !best.dialect.trim && trial.fit() >= best.fit();
                    let encloses = quote == start.quote
                        || is_enclosed(&best)
                        || has_quoted_fields(&best, &trial);
                    if encloses && (is_usual || trial.fit() > best.fit() || is_enclosed(&best)) {
                        best = trial;
                    }
                }
            }
        }
        match self.given.comment.is_none() && self.pairs.has_hash_line {
            true => self.without_comments(best),
            false => best,
        }
    }

    /// Skips lines that begin with `#`, if some of them are between the records, and none of them can be one.
    fn without_comments(&self, best: Trial) -> Trial {
        let is_comment =
            |row: &&Vec<Vec<u8>>| row.first().is_some_and(|field| field.starts_with(b"#"));
        let below_header = best.rows.iter().skip_while(is_comment);
        let has_comments = below_header.clone().any(|row| is_comment(&row));
        let trial = self.try_out(Dialect {
            comment: Some(b'#'),
            ..best.dialect
        });
        let may_be_record = best
            .rows
            .iter()
            .any(|row| is_comment(&row) && row.len() == trial.width);
        let begins_with_comment = best.rows.first().is_some_and(|row| is_comment(&row));
        let has_header = !begins_with_comment || trial.has_header_of_words();
        match has_comments && !may_be_record && has_header && trial.fit() > best.fit() {
            true => trial,
            false => best,
        }
    }

    /// Looks for a header below lines of another kind.
    fn below_preamble(&self, start: Dialect, separator: Option<u8>) -> Option<Trial> {
        if self.given.skip_rows.is_some() || separator.is_some() {
            return None;
        }
        let lines = self.text.iter().filter(|&&byte| byte == b'\n').count() as u64;
        (1..=MAX_PREAMBLE.min(lines)).find_map(|skip_rows| {
            let trial = self.best(Dialect { skip_rows, ..start }, separator);
            let fits = trial.is_plausible(MIN_SHARE_BELOW_PREAMBLE) && !trial.is_broken;
            let enough = trial.rows.len() > 2;
            if !fits || !enough || !trial.has_header_of_words() {
                return None;
            }
            let first = trial.lines.first().copied().unwrap_or(1);
            // Blank lines above the header are skipped in any case, and are counted here.
            Some(self.refine(self.try_out(Dialect {
                skip_rows: first - 1,
                ..trial.dialect
            })))
        })
    }

    /// Reads runs of blanks as delimiters, if that makes columns of which one has numbers.
    fn whitespace(&self, start: Dialect) -> Option<Trial> {
        if self
            .given
            .delimiter
            .is_some_and(|delimiter| delimiter != b' ')
        {
            return None;
        }
        let dialect = Dialect {
            delimiter: b' ',
            whitespace: true,
            ..start
        };
        let trial = self.refine(self.try_out(dialect));
        let is_table = trial.share >= 1.0 && trial.rows.len() > 2 && !trial.is_broken;
        let fits = trial.is_plausible(1.0)
            && is_table
            && (trial.width > 2 || self.pairs.has_run_of_blanks);
        (fits && trial.has_header_of_words()).then_some(trial)
    }

    fn tell(&mut self, text: impl Into<String>, flag: Option<&'static str>) {
        self.remarks.push(Remark {
            text: text.into(),
            flag,
        });
    }

    /// Adds a remark for each unusual part of the dialect.
    fn tell_about(&mut self, trial: &Trial, separator: Option<u8>) {
        let (dialect, given) = (trial.dialect, self.given);
        if separator.is_some() && given.skip_rows.is_none() {
            self.tell(
                "the first line states the field delimiter, and was skipped",
                Some("--skip-rows"),
            );
        } else if given.skip_rows.is_none() && dialect.skip_rows > 0 {
            let lines = fhaim_domain::counted(dialect.skip_rows as usize, "line");
            self.tell(
                format!("skipped {lines} before the header"),
                Some("--skip-rows"),
            );
        }
        if given.delimiter.is_none() && dialect.whitespace {
            self.tell("runs of blanks separate the fields", Some("--delimiter"));
        } else if given.delimiter.is_none() && dialect.delimiter != b',' {
            let shown = char::from(dialect.delimiter).escape_default();
            self.tell(
                format!("detected the field delimiter '{shown}'"),
                Some("--delimiter"),
            );
        }
        if given.quote.is_none() && dialect.quote == Some(b'\'') {
            self.tell("fields are enclosed in single quotes", Some("--quote"));
        }
        if dialect.escape.is_some() {
            self.tell(
                "a backslash before a quote makes the quote a part of the field",
                None,
            );
        }
        if given.comment.is_none() && dialect.comment.is_some() {
            self.tell(
                "lines that begin with # are comments, and were skipped",
                Some("--comment"),
            );
        }
        if dialect.trim {
            self.tell("blanks around fields were left out", None);
        }
        let names = trial.names();
        if names.len() > 1 && trial.rows.len() > 1 && names.iter().all(|name| is_numeric(name)) {
            self.tell(
                "the first line has only numbers: if it is a record, add a line with the names of the columns above it",
                None,
            );
        }
    }

    /// Completes the dialect by the number of fields of the header.
    fn shape(&mut self, trial: &Trial) -> Dialect {
        let mut dialect = trial.dialect;
        match trial.extra {
            Some(Extra::Last) => {
                dialect.trailing_delimiter = true;
                self.tell("each row ends with a delimiter, which was left out", None);
            }
            Some(Extra::First) => {
                dialect.row_names = true;
                self.tell("the rows begin with a field without a name: it was read as the name of the row", None);
            }
            Some(Extra::Header) => {
                dialect.header_delimiter = true;
                self.tell("the header ends with a delimiter, which was left out", None);
            }
            None => {}
        }
        dialect
    }
}

/// The field of a record that has no name in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    /// The first one, which names the row.
    First,
    /// The last one, which is empty: a delimiter ends the record.
    Last,
    /// None, but a delimiter ends the header.
    Header,
}

/// Whether some column has cells in single quotes, and no cell with such a quote only before or after it.
fn is_enclosed(trial: &Trial) -> bool {
    let quotes = |cell: &[u8]| {
        let pair = cell.len() > 1 && cell.starts_with(b"'") && cell.ends_with(b"'");
        (
            pair,
            pair || !(cell.starts_with(b"'") || cell.ends_with(b"'")),
        )
    };
    (0..trial.width).any(|column| {
        let cells = || trial.column(column).map(quotes);
        cells().filter(|(is_pair, _)| *is_pair).count() > 1 && cells().all(|(_, is_right)| is_right)
    })
}

/// Whether a trial reads fields in single quotes that are no apostrophes.
fn has_quoted_fields(before: &Trial, quoted: &Trial) -> bool {
    let begins = |row: &Vec<Vec<u8>>| {
        row.iter()
            .any(|field| field.trim_ascii_start().starts_with(b"'"))
    };
    !quoted.is_broken && before.rows.iter().any(begins)
}

/// Whether a blank precedes nearly all fields, in the header and below it, except the first of each line.
fn has_blanks_everywhere(trial: &Trial) -> bool {
    let starts_blank = |cell: &[u8]| cell.starts_with(b" ");
    let names = trial.names().iter().skip(1).map(Vec::as_slice);
    let records = trial
        .records()
        .flat_map(|row| row.iter().skip(1).map(Vec::as_slice));
    share_of(names, starts_blank) >= USUAL_SHARE && share_of(records, starts_blank) >= USUAL_SHARE
}
