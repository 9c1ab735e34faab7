//! Recognition of file types by their first bytes.

use std::fmt::{self, Display, Formatter};

/// A file type that is no plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileType {
    /// What to do with such a file.
    pub family: Family,
    /// What the file is, with its article: "an SPSS file (.sav)".
    pub name: &'static str,
    /// How to get a table that can be read, as an instruction.
    pub way_out: &'static str,
}

/// What to do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Decompress it with gzip.
    Gzip,
    /// Decompress it with Zstandard, where that is available.
    Zstd,
    /// Read it as a workbook (Excel or OpenDocument), where that is available.
    Workbook,
    /// Read it as Parquet, where that is available.
    Parquet,
    /// Refuse it.
    Other,
}

impl Display for FileType {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "this is {}, not a table in text: {}",
            self.name, self.way_out
        )
    }
}

/// The place of fixed bytes, these bytes, and the type of a file that has them.
type Magic = (usize, &'static [u8], FileType);

const fn file(family: Family, name: &'static str, way_out: &'static str) -> FileType {
    FileType {
        family,
        name,
        way_out,
    }
}

const SAVE_AS_CSV: &str = "open it in the program that made it, and save the table as CSV";
const UNPACK: &str = "unpack it, and choose the table in it";
const WITH_PANDAS: &str = "save the table as CSV, for example with `to_csv` of pandas";
const WITH_R: &str =
    "save the table in R with `write.csv(table, \"table.csv\", row.names = FALSE)`";
const WITH_SAS: &str = "save the table as CSV with `proc export`";
const WITH_STATA: &str = "save the table as CSV with `export delimited`";
const WITH_SPSS: &str = "save the table as CSV with `SAVE TRANSLATE`";

const OLE_WORKBOOK: FileType = file(Family::Workbook, "an Excel workbook (.xls)", SAVE_AS_CSV);
const WORKBOOK: FileType = file(Family::Workbook, "an Excel workbook (.xlsx)", SAVE_AS_CSV);
const OPEN_DOCUMENT: FileType = file(
    Family::Workbook,
    "an OpenDocument spreadsheet (.ods)",
    SAVE_AS_CSV,
);
const ZIP: FileType = file(Family::Other, "a zip archive", UNPACK);
const STATA: FileType = file(Family::Other, "a Stata file (.dta)", WITH_STATA);
const SPSS: FileType = file(Family::Other, "an SPSS file (.sav)", WITH_SPSS);
const R_DATA: FileType = file(Family::Other, "an R data file (.rds or .RData)", WITH_R);
const SAS_TRANSPORT: FileType = file(Family::Other, "a SAS transport file (.xpt)", WITH_SAS);
const ARROW: FileType = file(Family::Other, "an Arrow or Feather file", WITH_PANDAS);
const WEB_PAGE: FileType = file(
    Family::Other,
    "a web page",
    "download the table itself, as CSV",
);
const XML: FileType = file(Family::Other, "an XML file", SAVE_AS_CSV);
const JSON: FileType = file(Family::Other, "a JSON file", WITH_PANDAS);
const JSON_LINES: FileType = file(Family::Other, "a file of JSON lines", WITH_PANDAS);
const ORC: FileType = file(Family::Other, "an ORC file", WITH_PANDAS);
const PICKLE: FileType = file(Family::Other, "a pickle of Python", WITH_PANDAS);
const BINARY: FileType = file(Family::Other, "a file in a binary format", SAVE_AS_CSV);

/// File types that begin with fixed bytes: the place of these, the bytes, and the type.
const MAGIC: [Magic; 39] = [
    (0, b"\x1f\x8b", file(Family::Gzip, "a gzip file", UNPACK)),
    (
        0,
        b"\x28\xb5\x2f\xfd",
        file(Family::Zstd, "a Zstandard file (.zst)", UNPACK),
    ),
    (
        0,
        b"PAR1",
        file(Family::Parquet, "a Parquet file", "save the table as CSV"),
    ),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE_WORKBOOK),
    (0, b"BZh", file(Family::Other, "a bzip2 file", UNPACK)),
    (0, b"\xfd7zXZ\0", file(Family::Other, "an xz file", UNPACK)),
    (
        0,
        b"7z\xbc\xaf\x27\x1c",
        file(Family::Other, "a 7-Zip archive", UNPACK),
    ),
    (
        0,
        b"Rar!\x1a\x07",
        file(Family::Other, "a RAR archive", UNPACK),
    ),
    (
        0,
        b"\x04\x22\x4d\x18",
        file(Family::Other, "an LZ4 file", UNPACK),
    ),
    (257, b"ustar", file(Family::Other, "a tar archive", UNPACK)),
    (
        0,
        b"SQLite format 3\0",
        file(
            Family::Other,
            "an SQLite database",
            "export one table as CSV with `.mode csv` and `.once`",
        ),
    ),
    (
        12,
        b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\0",
        file(Family::Other, "a SAS file (.sas7bdat)", WITH_SAS),
    ),
    (
        0,
        b"HEADER RECORD*******LIBRARY HEADER RECORD",
        SAS_TRANSPORT,
    ),
    (0, b"HEADER RECORD*******LIBV8", SAS_TRANSPORT),
    (0, b"<stata_dta>", STATA),
    (0, b"\x71\x01\x01\0", STATA),
    (0, b"\x71\x02\x01\0", STATA),
    (0, b"\x72\x01\x01\0", STATA),
    (0, b"\x72\x02\x01\0", STATA),
    (0, b"\x73\x01\x01\0", STATA),
    (0, b"\x73\x02\x01\0", STATA),
    (0, b"$FL2", SPSS),
    (0, b"$FL3", SPSS),
    (0, b"ARROW1", ARROW),
    (0, b"FEA1", ARROW),
    (0, b"\xff\xff\xff\xff", ARROW),
    (
        0,
        b"Obj\x01",
        file(Family::Other, "an Avro file", WITH_PANDAS),
    ),
    (
        0,
        b"\x89HDF\r\n\x1a\n",
        file(Family::Other, "an HDF5 file", WITH_PANDAS),
    ),
    (
        0,
        b"CDF\x01",
        file(Family::Other, "a netCDF file", WITH_PANDAS),
    ),
    (
        0,
        b"\x93NUMPY",
        file(Family::Other, "a NumPy array", WITH_PANDAS),
    ),
    (
        0,
        b"MATLAB 5.0 MAT-file",
        file(
            Family::Other,
            "a MATLAB file",
            "save the table with `writetable`",
        ),
    ),
    (0, b"RDX2\n", R_DATA),
    (0, b"RDX3\n", R_DATA),
    (0, b"X\n\0\0\0", R_DATA),
    (
        0,
        b"%PDF-",
        file(
            Family::Other,
            "a PDF document",
            "get the table from its author, as CSV",
        ),
    ),
    (
        0,
        b"\x89PNG",
        file(Family::Other, "a picture (PNG)", "choose a table"),
    ),
    (
        0,
        b"\xff\xd8\xff",
        file(Family::Other, "a picture (JPEG)", "choose a table"),
    ),
    (
        0,
        b"GIF8",
        file(Family::Other, "a picture (GIF)", "choose a table"),
    ),
    (
        0,
        b"version https://git-lfs.github.com/spec/",
        file(
            Family::Other,
            "a pointer of Git LFS",
            "get the file itself with `git lfs pull`",
        ),
    ),
];

/// A file is binary if it has more control characters than a few, and than one in this many bytes.
const BYTES_PER_CONTROL: usize = 20;
const FEW_CONTROLS: usize = 3;

/// Recognises a file type by the first bytes of a file. Returns `None` for plain text, and for bytes that no known
/// type begins with.
pub fn identify(head: &[u8]) -> Option<FileType> {
    let begins =
        |&&(at, bytes, _): &&Magic| head.get(at..).is_some_and(|head| head.starts_with(bytes));
    if let Some((_, _, file_type)) = MAGIC.iter().find(begins) {
        return Some(*file_type);
    }
    archive(head)
        .or_else(|| markup(head))
        .or_else(|| binary(head))
}

/// Recognises a zip archive, and documents that are such archives.
fn archive(head: &[u8]) -> Option<FileType> {
    if !head.starts_with(b"PK\x03\x04") && !head.starts_with(b"PK\x05\x06") {
        return None;
    }
    let has = |bytes: &[u8]| head.windows(bytes.len()).any(|window| window == bytes);
    Some(
        if has(b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet") {
            OPEN_DOCUMENT
        } else if has(b"xl/") || (has(b"[Content_Types].xml") && !has(b"word/") && !has(b"ppt/")) {
            WORKBOOK
        } else {
            ZIP
        },
    )
}

/// Recognises JSON, XML and HTML.
fn markup(head: &[u8]) -> Option<FileType> {
    let text = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    let start: Vec<u8> = text.iter().take(16).map(u8::to_ascii_lowercase).collect();
    if [&b"<!doctype html"[..], b"<html", b"<table"]
        .iter()
        .any(|tag| start.starts_with(tag))
    {
        return Some(WEB_PAGE);
    }
    if start.starts_with(b"<?xml") {
        return Some(XML);
    }
    let inside = text.get(1..)?.trim_ascii_start().first()?;
    let is_json = match text.first()? {
        b'{' => matches!(inside, b'"' | b'}'),
        b'[' => matches!(inside, b'{' | b'['),
        _ => false,
    };
    let first_line = text.split(|&byte| byte == b'\n').next()?.trim_ascii_end();
    let is_line =
        first_line.starts_with(b"{") && first_line.ends_with(b"}") && first_line.len() < text.len();
    is_json.then_some(if is_line { JSON_LINES } else { JSON })
}

/// Recognises bytes that cannot be text in any encoding.
fn binary(head: &[u8]) -> Option<FileType> {
    let head = head.get(..4096).unwrap_or(head);
    let is_control = |byte: &&u8| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127);
    let controls = head.iter().filter(is_control).count();
    if head.starts_with(b"ORC") && controls > 0 {
        return Some(ORC);
    }
    if matches!(head, [0x80, 2..=5, ..]) {
        return Some(PICKLE);
    }
    (controls > FEW_CONTROLS + head.len() / BYTES_PER_CONTROL).then_some(BINARY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(head: &[u8]) -> &'static str {
        identify(head).map_or("text", |file_type| file_type.name)
    }

    #[test]
    fn files_are_recognised_by_their_first_bytes() {
        let mut tar = vec![b'a'; 257];
        tar.extend(b"ustar\x0000");
        let sas = [
            &[0; 12][..],
            b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\0\x09\xc7",
        ]
        .concat();
        let ods = b"PK\x03\x04\x14\0\0\0\0\0mimetypeapplication/vnd.oasis.opendocument.spreadsheet";
        for (head, words) in [
            (&b"\x1f\x8b\x08"[..], "gzip"),
            (b"\x28\xb5\x2f\xfd\0", "Zstandard"),
            (b"PK\x03\x04\x14\0_rels/.rels ... xl/workbook.xml", "Excel"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "Excel"),
            (ods, "OpenDocument"),
            (b"PK\x03\x04\x14\0table.csv", "zip"),
            (b"SQLite format 3\0", "SQLite"),
            (&sas, "SAS"),
            (b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!", "SAS"),
            (b"<stata_dta><header>", "Stata"),
            (b"\x73\x02\x01\0", "Stata"),
            (b"$FL2@(#)", "SPSS"),
            (b"ARROW1\0\0", "Arrow"),
            (b"FEA1\0", "Arrow"),
            (b"ORC\x0a\x03\0\0", "ORC"),
            (b"Obj\x01\x04", "Avro"),
            (b"\x89HDF\r\n\x1a\n", "HDF5"),
            (b"RDX3\nX\n\0\0", "R data"),
            (b"X\n\0\0\0\x03", "R data"),
            (b"%PDF-1.7", "PDF"),
            (b"[{\"a\": 1}]", "JSON file"),
            (b"\xef\xbb\xbf {\n \"a\": 1}", "JSON file"),
            (b"{\"a\": 1}\n{\"a\": 2}\n", "JSON lines"),
            (b"<?xml version=\"1.0\"?>", "XML"),
            (b"\n<!DOCTYPE HTML>", "web page"),
            (
                b"version https://git-lfs.github.com/spec/v1\noid",
                "Git LFS",
            ),
            (&tar, "tar"),
            (b"\x80\x04\x95\0\0", "pickle"),
            (b"PAR1\x15", "Parquet"),
            (&[1, 2, 3, 4, 5, 6], "binary"),
        ] {
            assert!(name(head).contains(words), "{words}: {}", name(head));
        }
    }

    #[test]
    fn text_is_no_other_file_type() {
        for head in [
            &b"age,smoker\n41,yes\n"[..],
            b"ORCID,name\n",
            b"[id],[name]\n",
            b"{id};{name}\n",
            b"<0.5,>1\n",
            b"version,x\n",
            b"a,b\n1,x\0y and more text, which is longer\n",
            b"",
            b"K\xf6ln,\x80 5\n",
            b"BZ,x\n",
        ] {
            assert_eq!(identify(head), None, "{}", String::from_utf8_lossy(head));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_identified(head: Vec<u8>) {
            identify(&head);
        }
    }
}
