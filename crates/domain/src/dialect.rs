//! How the text of a table is written.

/// How the text of a table is written: what separates its fields, and which lines are no records.
///
/// The default is plain CSV: commas, fields in double quotes where they need it, and the names of the columns in
/// the first line.
///
/// ```
/// use fhaim_domain::{Dialect, TableRecords};
///
/// let text = "Export of May\nage; city\n41; \"Bonn; Rhein\"\n";
/// let dialect = Dialect { skip_rows: 1, trim: true, ..Dialect::of_delimiter(b';') };
/// let mut records = TableRecords::open("people.csv", &dialect, text.as_bytes())?;
/// assert_eq!(records.header(), ["age", "city"]);
/// assert!(records.advance()?);
/// assert_eq!(records.bytes(1), b"Bonn; Rhein");
/// # Ok::<(), fhaim_domain::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Byte between fields.
    pub delimiter: u8,
    /// Byte around fields that contain delimiters, line breaks or quotes. Two of them inside such a field stand for
    /// one. `None` if no byte has this meaning.
    pub quote: Option<u8>,
    /// Byte before a delimiter, quote, line break or escape that belongs to a field. Before another byte it has no
    /// meaning, so that `\N` stays `\N`.
    pub escape: Option<u8>,
    /// Byte that begins lines which are not part of the table.
    pub comment: Option<u8>,
    /// Number of lines before the header.
    pub skip_rows: u64,
    /// Number of rows at the end that are no records. They are held in memory while the table is read.
    pub skip_footer: usize,
    /// Whether a last row that begins with a word for a total, such as "Total", is refused. Its other cells must be sums
    /// or empty.
    pub refuse_total: bool,
    /// Whether blanks around fields are not part of them, also before and after quotes.
    pub trim: bool,
    /// Whether each row ends with one more delimiter. The header may have it too.
    pub trailing_delimiter: bool,
    /// Whether only the header ends with one more delimiter.
    pub header_delimiter: bool,
    /// Whether the rows have one field more than the header: the first one, which names the row. Its column is named
    /// `row`.
    pub row_names: bool,
    /// Whether runs of blanks and tabs separate fields. The delimiter has no meaning then.
    pub whitespace: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            comment: None,
            skip_rows: 0,
            skip_footer: 0,
            refuse_total: false,
            trim: false,
            trailing_delimiter: false,
            header_delimiter: false,
            row_names: false,
            whitespace: false,
        }
    }
}

impl Dialect {
    /// Returns plain CSV with this byte between fields.
    pub fn of_delimiter(delimiter: u8) -> Self {
        Self {
            delimiter,
            ..Self::default()
        }
    }

    /// Returns the delimiter for another table that is to be written like this one: the same, or a comma if runs of
    /// blanks separate the fields, because these cannot express an empty field.
    pub fn delimiter_for_writing(&self) -> u8 {
        match self.whitespace {
            true => b',',
            false => self.delimiter,
        }
    }
}
