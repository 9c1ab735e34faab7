//! Formats of output tables, by the extension of the file's name.

use std::path::Path;

use crate::Error;

/// Format of a table that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text with a delimiter. Also for names without an extension, and for devices and pipes.
    Csv,
    /// Parquet, with a type for each column.
    Parquet,
}

/// Extensions of files that are not written, and the names of their formats.
const REFUSED: [(&str, &str); 22] = [
    ("xlsx", "Excel workbooks"),
    ("xlsm", "Excel workbooks"),
    ("xlsb", "Excel workbooks"),
    ("xls", "Excel workbooks"),
    ("ods", "OpenDocument spreadsheets"),
    ("docx", "Word documents"),
    ("doc", "Word documents"),
    ("odt", "OpenDocument texts"),
    ("pdf", "PDF documents"),
    ("html", "HTML pages"),
    ("xml", "XML documents"),
    ("sqlite", "SQLite databases"),
    ("json", "JSON tables"),
    ("jsonl", "JSON tables"),
    ("feather", "Feather files"),
    ("arrow", "Arrow files"),
    ("dta", "Stata files"),
    ("sav", "SPSS files"),
    ("sas7bdat", "SAS files"),
    ("gz", "compressed files"),
    ("zst", "compressed files"),
    ("zip", "compressed files"),
];

impl OutputFormat {
    /// Returns the format of an output table. Call it before long work.
    ///
    /// # Errors
    /// [`Error::Format`] if the extension is that of a format that is not written.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let extension = path.extension().unwrap_or_default();
        let extension = extension.to_string_lossy().to_ascii_lowercase();
        if extension == "parquet" || extension == "pq" {
            return Ok(Self::Parquet);
        }
        match REFUSED.iter().find(|(refused, _)| *refused == extension) {
            Some((_, format)) => Err(Error::Format {
                path: path.to_owned(),
                format,
            }),
            None => Ok(Self::Csv),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_follows_from_the_extension() {
        for (name, format) in [
            ("s.csv", OutputFormat::Csv),
            ("s.tsv", OutputFormat::Csv),
            ("s", OutputFormat::Csv),
            ("/dev/stdout", OutputFormat::Csv),
            ("S.PARQUET", OutputFormat::Parquet),
            ("s.pq", OutputFormat::Parquet),
        ] {
            assert_eq!(OutputFormat::of(Path::new(name)).unwrap(), format, "{name}");
        }
    }

    #[test]
    fn unsupported_format_is_refused_with_the_supported_ones() {
        for (name, words) in [
            ("s.xlsx", "Excel workbooks"),
            ("s.docx", "Word documents"),
            ("s.csv.gz", "compressed files"),
        ] {
            let told = OutputFormat::of(Path::new(name)).unwrap_err().to_string();
            assert!(told.contains(words) && told.contains(".parquet"), "{told}");
        }
    }
}
