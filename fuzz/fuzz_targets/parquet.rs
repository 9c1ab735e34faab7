//! Tables in Parquet: files that were edited, and fuzzed bytes. A file that is read to its end has equally long
//! records, and can be drafted.

#![no_main]

use std::io::{Read, Write};

use fhaim_domain::Dialect;
use fhaim_files::{data::Data, keeping};
use fhaim_fuzz::{choice, draft_and_read, edited};
use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;

const VALID: [&[u8]; 5] = [
    include_bytes!("../../crates/files/tests/parquet/kinds.parquet"),
    include_bytes!("../../crates/files/tests/parquet/int96.parquet"),
    include_bytes!("../../crates/files/tests/parquet/pandas-names.parquet"),
    include_bytes!("../../crates/files/tests/parquet/polars-kinds.parquet"),
    include_bytes!("../../crates/files/tests/parquet/pyarrow-gzip.parquet"),
];

/// Bytes of text that are read. A small file may have very many equal records.
const MOST: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let bytes = match VALID.get(usize::from(choice(&mut data)) % (VALID.len() + 1)) {
        Some(valid) => edited(valid, data),
        None => data.to_vec(),
    };
    let mut file = NamedTempFile::new().expect("there is a folder for temporary files");
    file.write_all(&bytes).expect("the disk has room");
    // Remarks are kept, and not printed.
    let (Ok(text), _) = keeping(|| Data::from(file.path()).open()) else {
        return;
    };
    let mut read = Vec::new();
    let done = text.take(MOST).read_to_end(&mut read);
    if bytes.starts_with(b"PAR1") && done.is_ok_and(|bytes| (bytes as u64) < MOST) {
        let mut table = csv::ReaderBuilder::new().from_reader(read.as_slice());
        for record in table.byte_records() {
            record.expect("the records are as long as the header");
        }
        draft_and_read(&read, &Dialect::default());
    }
});
