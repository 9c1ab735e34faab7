//! The cells of a sheet, and their text.

use std::collections::BTreeMap;

use calamine::{Data as Value, ExcelDateTime};
use zeroize::Zeroizing;

/// A sheet is at least this wide if a row with only its first cell at the end is no record.
const MIN_WIDTH_OF_FOOTER: u32 = 3;

/// The cells of a sheet that are not empty, by row and column.
#[derive(Debug, Default)]
pub(super) struct Cells {
    rows: BTreeMap<u32, BTreeMap<u32, Value>>,
    cells: usize,
}

/// How the dates and times of a column are written.
#[derive(Clone, Copy, Debug)]
struct TimeStyle {
    /// Whether all are midnights.
    is_date: bool,
    /// Whether all are on the day 0, so that they are times of day.
    is_clock: bool,
    /// Whether all are whole seconds.
    is_whole: bool,
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        self.cells
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// Adds a cell, unless it is empty.
    pub(super) fn add(&mut self, row: u32, column: u32, value: Value) {
        let is_empty = match &value {
            Value::Empty => true,
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        if !is_empty {
            self.rows.entry(row).or_default().insert(column, value);
            self.cells += 1;
        }
    }

    /// Returns the cells as CSV. Lines have the numbers of the sheet's rows, unless a cell has line breaks.
    ///
    /// Rows above the header and below the records end at their last cell. Detection and reading recognise them by
    /// their number of fields.
    pub(super) fn csv(&self) -> Zeroizing<Vec<u8>> {
        let columns = || self.rows.values().flat_map(BTreeMap::keys).copied();
        let (Some(first), Some(last)) = (columns().min(), columns().max()) else {
            return Zeroizing::default();
        };
        let width = last - first + 1;
        let styles = self.time_styles();
        let (header, end) = self.body(width);
        // Growing vectors leave copies of the table behind in memory, so the size is estimated.
        let mut text = Zeroizing::new(Vec::with_capacity(16 * self.cells));
        let mut line = 0;
        for (&row, cells) in &self.rows {
            // A blank line would be a missing value in a table of one column.
            for _ in line..row {
                text.extend_from_slice(if width == 1 && line > 0 {
                    b"\"\"\n"
                } else {
                    b"\n"
                });
            }
            line = row + 1;
            let row_end = match row < header || row >= end {
                true => cells.keys().next_back().copied().unwrap_or(last),
                false => last,
            };
            for column in first..=row_end {
                if column > first {
                    text.push(b',');
                }
                if let Some(value) = cells.get(&column) {
                    let field = Zeroizing::new(written(value, styles.get(&column)));
                    push_field(&mut text, &field);
                }
            }
            text.push(b'\n');
        }
        text
    }

    /// Returns the row of the header, and the row below the last record. Few cells of the rows above the header are
    /// used, and only the first one of those below the records.
    fn body(&self, width: u32) -> (u32, u32) {
        let is_full = |cells: &BTreeMap<u32, Value>| 2 * cells.len() > width as usize;
        let header = self.rows.iter().find(|(_, cells)| is_full(cells));
        let header = header.map_or(0, |(&row, _)| row);
        let is_record =
            |cells: &BTreeMap<u32, Value>| width < MIN_WIDTH_OF_FOOTER || cells.len() > 1;
        let last = self.rows.iter().rev().find(|(_, cells)| is_record(cells));
        (header, last.map_or(u32::MAX, |(&row, _)| row + 1))
    }

    fn time_styles(&self) -> BTreeMap<u32, TimeStyle> {
        let mut styles = BTreeMap::new();
        for (&column, value) in self.rows.values().flatten() {
            if let Value::DateTime(moment) = value {
                let (_, _, _, hour, minute, second, milli) = moment.to_ymd_hms_milli();
                let style = styles.entry(column).or_insert(TimeStyle {
                    is_date: true,
                    is_clock: true,
                    is_whole: true,
                });
                style.is_date &= (hour, minute, second, milli) == (0, 0, 0, 0);
                style.is_clock &= (0.0..1.0).contains(&moment.as_f64());
                style.is_whole &= milli == 0;
            }
        }
        styles
    }
}

/// Returns the text of a cell.
fn written(value: &Value, style: Option<&TimeStyle>) -> String {
    match value {
        Value::Empty => String::new(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => without_noise(*number),
        Value::String(text) | Value::DateTimeIso(text) => text.clone(),
        Value::Bool(truth) => truth.to_string(),
        Value::DateTime(moment) if moment.is_duration() => lapse(moment.as_f64()),
        Value::DateTime(moment) => time(moment, style),
        Value::DurationIso(text) => clock(text).unwrap_or_else(|| text.clone()),
        Value::Error(error) => error.to_string(),
    }
}

/// Returns a number with at most 15 digits, which are as many as Excel shows and keeps.
fn without_noise(number: f64) -> String {
    let rounded = format!("{number:.14e}").parse::<f64>();
    rounded.unwrap_or(number).to_string()
}

fn time(moment: &ExcelDateTime, style: Option<&TimeStyle>) -> String {
    let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
    let date = format!("{year:04}-{month:02}-{day:02}");
    let Some(style) = style else { return date };
    let mut clock = format!("{hour:02}:{minute:02}:{second:02}");
    if !style.is_whole {
        clock.push_str(&format!(".{milli:03}"));
    }
    match (style.is_date, style.is_clock) {
        (_, true) => clock,
        (true, false) => date,
        (false, false) => format!("{date} {clock}"),
    }
}

/// Returns a number of days as hours, minutes and seconds.
fn lapse(days: f64) -> String {
    let sign = if days < 0.0 { "-" } else { "" };
    let seconds = (days.abs() * 86_400.0).round() as u64;
    let (hours, rest) = (seconds / 3_600, seconds % 3_600);
    format!("{sign}{hours:02}:{:02}:{:02}", rest / 60, rest % 60)
}

/// Converts a duration such as `PT07H05M00S`, as OpenDocument writes times of day.
fn clock(text: &str) -> Option<String> {
    let (hours, rest) = text.strip_prefix("PT")?.split_once('H')?;
    let (minutes, rest) = rest.split_once('M')?;
    let seconds = rest.strip_suffix('S')?;
    let seconds = seconds
        .split_once(['.', ','])
        .map_or(seconds, |(seconds, _)| seconds);
    let number = |text: &str| text.parse::<u32>().ok();
    Some(format!(
        "{:02}:{:02}:{:02}",
        number(hours)?,
        number(minutes)?,
        number(seconds)?
    ))
}

/// Adds a field, in quotes where CSV needs them.
fn push_field(text: &mut Vec<u8>, field: &str) {
    let needs_quotes = field.contains([',', '"', '\n', '\r']) || field.starts_with('#');
    if !needs_quotes {
        text.extend_from_slice(field.as_bytes());
        return;
    }
    text.push(b'"');
    for byte in field.bytes() {
        if byte == b'"' {
            text.push(b'"');
        }
        text.push(byte);
    }
    text.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use calamine::{CellErrorType, ExcelDateTimeType};

    fn moment(days: f64) -> Value {
        Value::DateTime(ExcelDateTime::new(days, ExcelDateTimeType::DateTime, false))
    }

    /// Returns the CSV of rows of cells.
    fn csv(rows: Vec<Vec<Value>>) -> String {
        let mut cells = Cells::default();
        for (row, values) in rows.into_iter().enumerate() {
            for (column, value) in values.into_iter().enumerate() {
                cells.add(row as u32, column as u32, value);
            }
        }
        String::from_utf8(cells.csv().to_vec()).unwrap()
    }

    fn text(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    #[test]
    fn numbers_have_no_noise() {
        for (number, written) in [
            (17.1, "17.1"),
            (0.1 + 0.2, "0.3"),
            (58.0, "58"),
            (1.005, "1.005"),
            (-2.5, "-2.5"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e-7, "0.0000001"),
        ] {
            assert_eq!(without_noise(number), written);
        }
    }

    #[test]
    fn values_are_written_in_their_own_form() {
        let duration =
            ExcelDateTime::new(1.503_472_222_222_22, ExcelDateTimeType::TimeDelta, false);
        let rows = vec![
            ["a", "b", "c", "d", "e", "f"].map(text).to_vec(),
            vec![
                Value::Bool(true),
                Value::Error(CellErrorType::NA),
                moment(45_322.0),
                moment(45_322.5),
                moment(0.25),
                Value::DateTime(duration),
            ],
            vec![
                text("say \"hi\", you"),
                Value::Empty,
                moment(45_323.0),
                moment(45_323.0),
                Value::DurationIso("PT07H05M00S".to_owned()),
                Value::Int(7),
            ],
        ];
        assert_eq!(
            csv(rows),
            "a,b,c,d,e,f\n\
             true,\"#N/A\",2024-01-31,2024-01-31 12:00:00,06:00:00,36:05:00\n\
             \"say \"\"hi\"\", you\",,2024-02-01,2024-02-01 00:00:00,07:05:00,7\n"
        );
    }

    #[test]
    fn titles_and_notes_keep_their_own_width() {
        let rows = vec![
            vec![text("Export of May")],
            vec![],
            ["age", "sex", "ldl"].map(text).to_vec(),
            vec![Value::Int(41), text("f"), Value::Float(7.6)],
            vec![Value::Int(63)],
            vec![],
            vec![Value::Int(70), Value::Empty, Value::Float(2.5)],
            vec![text("Source: registry")],
        ];
        assert_eq!(
            csv(rows),
            "Export of May\n\nage,sex,ldl\n41,f,7.6\n63,,\n\n70,,2.5\nSource: registry\n"
        );
    }
}
