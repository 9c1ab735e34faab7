//! `fhaim-lab federate synthfs`: makes tables of parties whose features differ (FLAIM, appendix B.1.1).

use fhaim_domain::{Error as DomainError, WriteOptions, counted, write_csv};
use fhaim_federated::partition::synthfs;
use fhaim_files::shown_path;

use super::args::SynthFsArguments;
use super::split::{create_part, make_folder};
use crate::{
    error::Error,
    output::{self, Existing, StagedFile, rename_all},
    randomness::{InsecureTestSeed, Purpose, generator},
};

/// Runs the command: makes the tables, and writes a file for each party and one for the schema.
pub fn run(arguments: &SynthFsArguments, seed: Option<InsecureTestSeed>) -> Result<(), Error> {
    let (parties, records) = (arguments.parties.get(), arguments.records.get());
    let mut rng = generator(seed, Purpose::Records)?;
    let (table, rows) = synthfs(parties, records, arguments.skew, &mut rng)?;
    let mut schema = StagedFile::create(&arguments.schema, Existing::Refuse)?;
    schema.write_bytes(table.schema().to_json().as_bytes())?;
    make_folder(&arguments.out)?;
    let mut files = Vec::with_capacity(parties + 1);
    for (party, rows) in rows.iter().enumerate() {
        let part = table.select(rows).map_err(DomainError::from)?;
        let mut file = create_part(&arguments.out, party, parties)?;
        let options = WriteOptions::new(arguments.out.to_string_lossy());
        write_csv(&part, &mut file, &mut rng, &options)?;
        files.push(file.finish()?);
    }
    files.push(schema.finish()?);
    rename_all(files)?;
    output::print(&format!(
        "{} of {} each in {}\n",
        counted(parties, "party"),
        counted(records, "record"),
        shown_path(&arguments.out)
    ))
}
