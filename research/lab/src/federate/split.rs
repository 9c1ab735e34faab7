//! `fhaim-lab federate split`: splits the records of a table among parties, and writes them as they are in the file.

use std::{fs, io, path::Path};

use fhaim_domain::{TableRecords, counted};
use fhaim_federated::partition::partition;
use fhaim_files::{data::dialect_text, shown_path};

use super::args::SplitArguments;
use crate::{
    error::Error,
    input,
    output::{self, Existing, StagedFile, rename_all},
    randomness::{InsecureTestSeed, Purpose, generator},
};

/// Runs the command: reads and checks the table, splits its records, and writes a file for each party.
pub fn run(arguments: &SplitArguments, seed: Option<InsecureTestSeed>) -> Result<(), Error> {
    let SplitArguments {
        data,
        format,
        strictness,
        out,
        ..
    } = arguments;
    input::refuse_pipe(data)?;
    let schema = input::schema(&arguments.schema)?;
    let table = input::table(data, schema, format, strictness)?;
    let mut rng = generator(seed, Purpose::Records)?;
    let parties = partition(&table, arguments.parties.get(), &arguments.rule, &mut rng)?;
    let mut owners = vec![0; table.records()];
    for (party, rows) in parties.iter().enumerate() {
        rows.iter().for_each(|&row| owners[row] = party);
    }
    make_folder(out)?;
    let (text, dialect) = dialect_text(&input::Data::from(data), format)?;
    let records = TableRecords::open(&data.to_string_lossy(), &dialect, text)?;
    let delimiter = dialect.delimiter_for_writing();
    write(data, records, delimiter, &owners, parties.len(), out)?;
    let sizes = parties.iter().map(Vec::len);
    let (least, most) = (sizes.clone().min(), sizes.max());
    output::print(&format!(
        "{} of {} to {} each in {}\n",
        counted(parties.len(), "party"),
        least.unwrap_or(0),
        counted(most.unwrap_or(0), "record"),
        shown_path(out)
    ))
}

/// Creates the folder. It must be empty, because a run would read other files in it as parties' tables.
pub(super) fn make_folder(out: &Path) -> Result<(), Error> {
    let refuse = |source| Error::Write {
        path: out.to_owned(),
        source,
    };
    fs::create_dir_all(out).map_err(refuse)?;
    if fs::read_dir(out).map_err(refuse)?.next().is_some() {
        let name = shown_path(out);
        return Err(Error::Usage(format!(
            "{name} is not empty: choose another folder, or empty it first"
        )));
    }
    Ok(())
}

/// Copies each record of the table to its owner's file: plain CSV in UTF-8, with the same texts in its fields.
fn write(
    data: &Path,
    mut records: TableRecords<impl io::Read>,
    delimiter: u8,
    owners: &[usize],
    parties: usize,
    out: &Path,
) -> Result<(), Error> {
    let unwritten = |error: csv::Error| Error::Write {
        path: out.to_owned(),
        source: io::Error::other(error),
    };
    let header = records.header().to_vec();
    let writer = || {
        let mut writer = csv::WriterBuilder::new()
            .delimiter(delimiter)
            .from_writer(Vec::new());
        writer.write_record(&header).map(|()| writer)
    };
    let mut writers = (0..parties)
        .map(|_| writer())
        .collect::<Result<Vec<_>, _>>()
        .map_err(unwritten)?;
    let mut read = 0;
    while read < owners.len() && records.advance()? {
        let fields = (0..header.len()).map(|field| records.bytes(field));
        writers[owners[read]]
            .write_record(fields)
            .map_err(unwritten)?;
        read += 1;
    }
    // The table was read from the same file. It has as many records unless another program has changed it since.
    if read < owners.len() {
        return Err(Error::Content {
            path: data.to_owned(),
            problem: "it has fewer records than when it was first read: do not change it during the command"
                .to_owned(),
        });
    }
    let mut files = Vec::with_capacity(parties);
    for (party, writer) in writers.into_iter().enumerate() {
        let bytes = writer
            .into_inner()
            .map_err(|error| unwritten(error.into_error().into()))?;
        let mut file = create_part(out, party, parties)?;
        file.write_bytes(&bytes)?;
        // There can be more parties than files that a process may keep open.
        files.push(file.finish()?);
    }
    Ok(rename_all(files)?)
}

/// Creates the file of a party.
pub(super) fn create_part(out: &Path, party: usize, parties: usize) -> Result<StagedFile, Error> {
    let width = parties.to_string().len().max(3);
    let path = out.join(format!("part-{party:0width$}.csv"));
    Ok(StagedFile::create(&path, Existing::Replace)?)
}
