//! Converts a sheet of a workbook (Excel or OpenDocument) to CSV: UTF-8, commas, and an empty field for an empty cell.

mod cells;

use std::io::Cursor;

use calamine::{Data as Value, Ods, Reader, SheetVisible, Xls, Xlsb, Xlsx, open_workbook_from_rs};
use zeroize::Zeroizing;
use zip::ZipArchive;

use crate::guard::guarded;
use cells::Cells;

/// Maximum size of a workbook, in bytes. Its reader is not bounded in memory.
pub const MAX_WORKBOOK_BYTES: u64 = 50 << 20;

/// Maximum size of a workbook after decompression, in bytes.
const MAX_CONTENT_BYTES: u64 = 1 << 30;

/// Maximum number of cells of a sheet that are not empty.
const MAX_CELLS: usize = 20_000_000;

/// Maximum number of columns of a sheet. Excel has no more.
const MAX_SHEET_COLUMNS: u32 = 1 << 14;

/// The first bytes of a file that is a zip archive: all workbooks except those of old versions of Excel.
const ZIP: &[u8] = b"PK";

/// A sheet as CSV.
#[derive(Debug)]
pub struct SheetText {
    /// The text.
    pub text: Zeroizing<Vec<u8>>,
    /// A remark on the choice of the sheet, if the workbook has several and the holder named none.
    pub remark: Option<String>,
}

/// A workbook in one of the formats.
enum Workbook {
    Xls(Xls<Bytes>),
    Xlsx(Box<Xlsx<Bytes>>),
    Xlsb(Box<Xlsb<Bytes>>),
    Ods(Ods<Bytes>),
}

type Bytes = Cursor<Zeroizing<Vec<u8>>>;

/// Converts a sheet: the one with this name or number (counted from 1), or the first visible one that is not empty.
///
/// Numbers have at most 15 digits, as in Excel, and no rounding errors. Dates and times are in the form of ISO 8601:
/// a column of dates without times has only dates. Rows that are empty are left out.
///
/// # Errors
/// A description of the problem: a damaged or protected workbook, one that is too large, no such sheet, or no sheet that
/// is not empty.
pub fn csv(bytes: Zeroizing<Vec<u8>>, sheet: Option<&str>) -> Result<SheetText, String> {
    if bytes.len() as u64 > MAX_WORKBOOK_BYTES {
        return Err(too_large());
    }
    let converted = guarded(|| {
        let mut workbook = Workbook::open(bytes)?;
        workbook.convert(sheet)
    });
    converted.unwrap_or_else(|| {
        Err(
            "this workbook is damaged: open it and save it again, or save the table as CSV"
                .to_owned(),
        )
    })
}

/// Returns the problem of a workbook that is too large.
pub fn too_large() -> String {
    format!(
        "workbooks may have at most {} MB, or {} million cells: save the table as CSV, which may have any size",
        MAX_WORKBOOK_BYTES >> 20,
        MAX_CELLS / 1_000_000
    )
}

fn unreadable(error: &dyn std::fmt::Display) -> String {
    format!("this workbook cannot be read ({error}): save the table as CSV")
}

impl Workbook {
    fn open(bytes: Zeroizing<Vec<u8>>) -> Result<Self, String> {
        if !bytes.starts_with(ZIP) {
            let workbook = open_workbook_from_rs(Cursor::new(bytes));
            return workbook
                .map(Self::Xls)
                .map_err(|error: calamine::XlsError| match error {
                    // Protected workbooks of all versions begin alike.
                    calamine::XlsError::Password => protected(),
                    other => unreadable(&other),
                });
        }
        let mut archive =
            ZipArchive::new(Cursor::new(bytes.as_slice())).map_err(|error| unreadable(&error))?;
        let mut size = 0u64;
        for place in 0..archive.len() {
            let entry = archive
                .by_index_raw(place)
                .map_err(|error| unreadable(&error))?;
            size = size.saturating_add(entry.size());
        }
        if size > MAX_CONTENT_BYTES {
            return Err(too_large());
        }
        let has = |name: &str| archive.index_for_name(name).is_some();
        let (is_binary, is_open_document) = (has("xl/workbook.bin"), has("content.xml"));
        let bytes = Cursor::new(bytes);
        if is_open_document {
            let workbook = open_workbook_from_rs(bytes);
            return workbook
                .map(Self::Ods)
                .map_err(|error: calamine::OdsError| match error {
                    calamine::OdsError::Password => protected(),
                    other => unreadable(&other),
                });
        }
        if is_binary {
            let workbook = open_workbook_from_rs(bytes);
            return workbook
                .map(|workbook| Self::Xlsb(Box::new(workbook)))
                .map_err(|error: calamine::XlsbError| unreadable(&error));
        }
        let workbook = open_workbook_from_rs(bytes);
        workbook
            .map(|workbook| Self::Xlsx(Box::new(workbook)))
            .map_err(|error: calamine::XlsxError| unreadable(&error))
    }

    /// Returns the names of the visible sheets, or of all.
    fn names(&self, with_hidden: bool) -> Vec<String> {
        let sheets = match self {
            Self::Xls(workbook) => workbook.sheets_metadata(),
            Self::Xlsx(workbook) => workbook.sheets_metadata(),
            Self::Xlsb(workbook) => workbook.sheets_metadata(),
            Self::Ods(workbook) => workbook.sheets_metadata(),
        };
        let shown = sheets
            .iter()
            .filter(|sheet| with_hidden || sheet.visible == SheetVisible::Visible);
        shown.map(|sheet| sheet.name.clone()).collect()
    }

    fn convert(&mut self, wanted: Option<&str>) -> Result<SheetText, String> {
        let all = self.names(true);
        if let Some(wanted) = wanted {
            let number = || wanted.parse::<usize>().ok()?.checked_sub(1);
            let name = all.iter().find(|name| *name == wanted);
            let Some(name) = name.or_else(|| all.get(number()?)).cloned() else {
                return Err(format!(
                    "there is no sheet {wanted:?}: name one of {} with --sheet",
                    listed(&all)
                ));
            };
            let cells = self.cells(&name)?;
            if cells.is_empty() {
                return Err(format!(
                    "the sheet {name:?} is empty: name another with --sheet"
                ));
            }
            return Ok(SheetText {
                text: cells.csv(),
                remark: None,
            });
        }
        for name in self.names(false) {
            let cells = self.cells(&name)?;
            if !cells.is_empty() {
                let remark = (all.len() > 1).then(|| {
                    format!(
                        "read the sheet {name:?}, the first of {} that is not empty; use --sheet to read another",
                        all.len()
                    )
                });
                return Ok(SheetText {
                    text: cells.csv(),
                    remark,
                });
            }
        }
        Err("the workbook has no sheet with a table".to_owned())
    }

    /// Returns the cells of a sheet that are not empty.
    fn cells(&mut self, name: &str) -> Result<Cells, String> {
        let mut cells = Cells::default();
        let mut add = |row: u32, column: u32, value: Value| {
            if column >= MAX_SHEET_COLUMNS || cells.len() >= MAX_CELLS {
                return Err(too_large());
            }
            cells.add(row, column, value);
            Ok(())
        };
        let range = match self {
            // Reading cell by cell needs no memory for empty ones.
            Self::Xlsx(workbook) => {
                let reader = workbook.worksheet_cells_reader(name);
                let mut reader = reader.map_err(|error| unreadable(&error))?;
                while let Some(cell) = reader.next_cell().map_err(|error| unreadable(&error))? {
                    let (row, column) = cell.get_position();
                    add(row, column, Value::from(cell.get_value().clone()))?;
                }
                return Ok(cells);
            }
            Self::Xls(workbook) => workbook
                .worksheet_range(name)
                .map_err(|error| unreadable(&error)),
            Self::Xlsb(workbook) => workbook
                .worksheet_range(name)
                .map_err(|error| unreadable(&error)),
            Self::Ods(workbook) => workbook
                .worksheet_range(name)
                .map_err(|error| unreadable(&error)),
        }?;
        let (top, left) = range.start().unwrap_or_default();
        for (row, column, value) in range.used_cells() {
            let (row, column) = (u32::try_from(row), u32::try_from(column));
            if let (Ok(row), Ok(column)) = (row, column) {
                add(
                    top.saturating_add(row),
                    left.saturating_add(column),
                    value.clone(),
                )?;
            }
        }
        Ok(cells)
    }
}

fn protected() -> String {
    "this workbook is protected by a password: save it without one, or save the table as CSV"
        .to_owned()
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
