//! Prints the export of a hospital, 3,000 stays or as many as are asked for, as a program of old
//! writes it: semicolons, decimal commas, one byte a letter (Windows-1252).
//!
//! ```sh
//! cargo run -p fhaim-kit --example hospital > export.csv
//! fhaim schema infer --data export.csv --out export.schema.json
//! fhaim run --data export.csv --schema export.schema.json --epsilon 1 --out new.csv
//! fhaim evaluate --real export.csv --synthetic new.csv --schema export.schema.json --out report.html
//! ```

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let asked = std::env::args().nth(1);
    let records = asked.map_or(Ok(3_000), |records| records.parse());
    let records = records.map_err(|_| io::Error::other("how many records is not a number"))?;
    io::stdout().write_all(&fhaim_kit::hospital::one_byte_a_letter(records))
}
