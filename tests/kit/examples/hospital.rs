//! Prints the export of a hospital in the format of an old program: semicolons, decimal commas,
//! one byte per letter (Windows-1252). The argument is the number of stays, 3,000 by default.
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
    let records = records
        .map_err(|_| io::Error::other("the argument must be a number of records, such as 3000"))?;
    io::stdout().write_all(&fhaim_kit::hospital::one_byte_a_letter(records))
}
