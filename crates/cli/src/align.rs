//! `fhaim align`: finds the common rows of two or three holders' tables, and writes them in the same order for all
//! holders.
//!
//! The holders exchange messages as files in a shared folder, or copy the files to each other.

use fhaim_files::FormatArguments;
use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use fhaim_domain::{TableRecords, counted};
use fhaim_files::{ask, can_ask, home, progress::Progress};
use fhaim_protocol::{
    align::{AlignError, Aligned, Message, Outgoing, Party, normalised},
    request::DatasetId,
};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{
    error::Error,
    input,
    output::{self, OverwriteArguments, StagedFile},
    randomness::system,
};

pub const ALIGN_EXAMPLES: &str = "\
Examples:
  fhaim align --data ana.csv --on id --holder 1 --holders 2 --session trial-7 --messages shared --out ana-rows.csv
  fhaim align --data ben.csv --on name,born --holder 2 --holders 3 --session trial-7 --messages shared --out b.csv

All holders run the command at the same time, each on its own machine. They exchange messages as files in
a shared folder, or copy the files to each other. Nobody else may change the messages. All holders use the
same session name, and a new name for every alignment. The comparison of rows ignores upper and lower
case and repeated spaces.";

/// Flags of `align`.
#[derive(Debug, Args)]
pub struct AlignArguments {
    /// Table of this holder
    #[arg(long, value_name = "TABLE")]
    pub data: PathBuf,
    /// Columns that identify a row, separated by commas, in the same order for all holders
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    pub on: Vec<String>,
    /// Number of this holder, from 1
    #[arg(long, value_name = "N")]
    pub holder: usize,
    /// Number of holders: 2 or 3
    #[arg(long, value_name = "K")]
    pub holders: usize,
    /// Name of this alignment, the same for all holders and never used before
    #[arg(long, value_name = "NAME")]
    pub session: String,
    /// Folder for the messages between the holders
    #[arg(long, value_name = "DIR")]
    pub messages: PathBuf,
    /// Output file for the common rows
    #[arg(long, value_name = "TABLE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub overwriting: OverwriteArguments,
    /// Minutes to wait for the other holders
    #[arg(long, value_name = "MINUTES", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=MAX_WAIT))]
    pub wait: u64,
    /// Do not ask for confirmation
    #[arg(long, help_heading = "Holders")]
    pub yes: bool,
    /// Text format of the table.
    #[command(flatten)]
    pub format: FormatArguments,
}

/// Longest wait for the other holders, in minutes: a week.
const MAX_WAIT: u64 = 7 * 24 * 60;

/// Pause between two looks into the folder.
const LOOK: Duration = Duration::from_millis(200);

/// The rows of a table, as text.
struct Rows {
    delimiter: u8,
    header: csv::StringRecord,
    records: Vec<csv::StringRecord>,
}

/// Runs `fhaim align`.
pub fn run(arguments: &AlignArguments, progress: &Progress) -> Result<(), Error> {
    let AlignArguments {
        holders: of,
        holder,
        out,
        ..
    } = arguments;
    let me = holder.checked_sub(1).ok_or(AlignError::Parties)?;
    output::check_distinct(&[&arguments.data], &[out])?;
    let rows = read(arguments)?;
    let keys = keys(arguments, &rows)?;
    confirmed(arguments)?;
    let mut file = StagedFile::create(out, arguments.overwriting.existing())?;
    let session: [u8; 32] = Sha256::digest(arguments.session.as_bytes()).into();
    // The dataset does not exist yet, so the session identifies the alignment.
    let dataset = DatasetId([0; 16]);
    let mut rng = system()?;
    let begun = Party::new(dataset, session, [*of, me], &keys, &mut rng);
    let (mut party, first) = begun.map_err(|error| placed(arguments, error))?;
    drop(keys);
    let mailbox = Mailbox {
        folder: home::made(arguments.messages.clone())?,
        me,
    };
    mailbox.must_be_new()?;
    if let Some(first) = first {
        mailbox.send(&first)?;
    }
    let phase = progress.uncounted("align");
    let aligned = mailbox.exchange(&mut party, arguments.wait)?;
    phase.finish();
    write(&mut file, &rows, &aligned)?;
    file.commit()?;
    tell(arguments, &aligned)
}

fn read(arguments: &AlignArguments) -> Result<Rows, Error> {
    let (text, dialect) = input::text(&arguments.data, &arguments.format)?;
    let name = arguments.data.to_string_lossy();
    let mut reader = TableRecords::open(&name, &dialect, text)?;
    let header: csv::StringRecord = reader.header().iter().collect();
    let mut records = Vec::new();
    while reader.advance()? {
        let mut record = csv::StringRecord::new();
        for field in 0..header.len() {
            let text = reader.text(field);
            record.push_field(text.map_err(|problem| reader.refuse(field, problem))?);
        }
        records.push(record);
    }
    Ok(Rows {
        delimiter: dialect.delimiter_for_writing(),
        header,
        records,
    })
}

/// Returns the join key of every row.
fn keys(arguments: &AlignArguments, rows: &Rows) -> Result<Vec<Zeroizing<Vec<u8>>>, Error> {
    let place = |name: &String| {
        let place = rows.header.iter().position(|column| column == name);
        place.ok_or_else(|| Error::Content {
            path: arguments.data.clone(),
            problem: format!("there is no column {name:?}: name columns of the table with --on"),
        })
    };
    let places = arguments.on.iter().map(place);
    let places = places.collect::<Result<Vec<usize>, Error>>()?;
    let key = |record: &csv::StringRecord| {
        let values = places.iter().map(|&place| record.get(place).unwrap_or(""));
        normalised(&values.collect::<Vec<&str>>())
    };
    Ok(rows.records.iter().map(key).collect())
}

/// Adds the file to an error, and counts its rows from 1.
fn placed(arguments: &AlignArguments, error: AlignError) -> Error {
    let error = match error {
        AlignError::EmptyKey(row) => AlignError::EmptyKey(row + 1),
        AlignError::RepeatedKey { first, second } => AlignError::RepeatedKey {
            first: first + 1,
            second: second + 1,
        },
        other => return other.into(),
    };
    Error::Content {
        path: arguments.data.clone(),
        problem: error.to_string(),
    }
}

/// Explains what the parties will learn, and asks for confirmation.
fn confirmed(arguments: &AlignArguments) -> Result<(), Error> {
    let (pairs, pooled) = match arguments.holders {
        2 => ("", ""),
        _ => (
            ", and nothing of rows that only two parties have",
            "; party 1 and another party learn together which rows of party 1 the third party has",
        ),
    };
    fhaim_files::tell_line(format_args!(
        "note: all parties learn which of their rows are common to all, and how many rows each party \
         has{pairs}; a party that adds made-up keys to its table learns which of them all others have{pooled}"
    ));
    if arguments.yes || !can_ask() || ask("Continue?")? {
        return Ok(());
    }
    Err(Error::Usage("cancelled: nothing was sent".to_owned()))
}

/// The folder of messages.
///
/// A message is a file `FROM-TO-KIND.align`, with parties numbered from 1.
struct Mailbox {
    folder: PathBuf,
    me: usize,
}

impl Mailbox {
    /// Rejects a folder with messages of this party: the secret exponents of those messages no longer exist.
    fn must_be_new(&self) -> Result<(), Error> {
        let own = format!("{}-", self.me + 1);
        for name in self.names()? {
            if name.starts_with(&own) {
                let folder = self.folder.display();
                return Err(Error::Usage(format!(
                    "{folder} contains messages of an earlier run of this party: start again with all \
                     parties, in an empty folder and with another --session"
                )));
            }
        }
        Ok(())
    }

    fn names(&self) -> Result<BTreeSet<String>, Error> {
        let refuse = |source| Error::Read {
            path: self.folder.clone(),
            source,
        };
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&self.folder).map_err(refuse)? {
            let name = entry.map_err(refuse)?.file_name();
            names.extend(name.to_str().map(str::to_owned));
        }
        Ok(names)
    }

    fn send(&self, out: &Outgoing) -> Result<(), Error> {
        let kind = Message::from_bytes(&out.bytes)?.kind().name();
        for to in &out.to {
            let name = format!("{}-{}-{kind}.align", self.me + 1, to + 1);
            // The file is renamed into place, so nobody reads an incomplete message.
            home::replace(&self.folder.join(name), &out.bytes)?;
        }
        Ok(())
    }

    /// Answers every message to this party until it knows the common rows.
    fn exchange(&self, party: &mut Party, wait: u64) -> Result<Aligned, Error> {
        // The limit keeps the addition from overflowing.
        let end = Instant::now() + Duration::from_secs(wait.min(MAX_WAIT) * 60);
        let mut taken = BTreeSet::new();
        loop {
            for name in self.names()? {
                let Some(from) = self.sender(&name).filter(|_| !taken.contains(&name)) else {
                    continue;
                };
                let path = self.folder.join(&name);
                let bytes = home::read(&path)?.unwrap_or_default();
                let answers = party.receive(from, &bytes);
                let answers = answers.map_err(|error| Error::Content {
                    path,
                    problem: error.to_string(),
                })?;
                answers.iter().try_for_each(|answer| self.send(answer))?;
                taken.insert(name);
            }
            if let Some(aligned) = party.aligned() {
                return Ok(aligned);
            }
            if Instant::now() > end {
                let folder = self.folder.display();
                return Err(Error::Usage(format!(
                    "{folder}: the other parties' messages did not arrive within {}: start again with \
                     another --session, and wait longer with --wait",
                    counted(usize::try_from(wait).unwrap_or(usize::MAX), "minute")
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Returns the sender of a message, if the message is for this party.
    fn sender(&self, name: &str) -> Option<usize> {
        let mut numbers = name.strip_suffix(".align")?.split('-');
        let mut number = || numbers.next()?.parse::<usize>().ok()?.checked_sub(1);
        let (from, to) = (number()?, number()?);
        (to == self.me).then_some(from)
    }
}

/// Writes the header and the common rows in their order.
fn write(file: &mut StagedFile, rows: &Rows, aligned: &Aligned) -> Result<(), Error> {
    let refuse = |error: csv::Error| Error::Usage(format!("the aligned table: {error}"));
    let mut writer = csv::WriterBuilder::new()
        .delimiter(rows.delimiter)
        .from_writer(Vec::new());
    writer.write_record(&rows.header).map_err(refuse)?;
    for record in aligned.rows.iter().filter_map(|&row| rows.records.get(row)) {
        writer.write_record(record).map_err(refuse)?;
    }
    let text = writer
        .into_inner()
        .map_err(|error| refuse(error.into_error().into()))?;
    Ok(file.write_bytes(&text)?)
}

fn tell(arguments: &AlignArguments, aligned: &Aligned) -> Result<(), Error> {
    let sizes = aligned.sizes.iter().enumerate();
    let mut text: String = sizes
        .map(|(party, rows)| format!("party {}: {}\n", party + 1, counted(*rows, "row")))
        .collect();
    let (rows, out) = (aligned.rows.len(), arguments.out.display());
    text.push_str(&format!(
        "{} written to {out}, in the same order for all parties\n",
        counted(rows, "common row")
    ));
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sender_is_read_from_names_of_messages_to_this_party() {
        let mailbox = Mailbox {
            folder: PathBuf::from("."),
            me: 1,
        };
        assert_eq!(mailbox.sender("1-2-list.align"), Some(0));
        assert_eq!(mailbox.sender("3-2-half.align"), Some(2));
        for other in [
            "2-1-half.align",
            "1-2-list",
            "0-2-list.align",
            "x-2-list.align",
            "align",
        ] {
            assert_eq!(mailbox.sender(other), None, "{other}");
        }
    }
}
