//! `fhaim align`: the common rows of two or three holders' tables, in one order, by messages that are
//! files in a folder which all of them reach, or copy from one to the other.

use fhaim_files::FormatArguments;
use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use fhaim_domain::counted;
use fhaim_files::{ask, can_ask, home, progress::Progress};
use fhaim_protocol::{
    align::{AlignError, Aligned, Message, Outgoing, Party, Stage, normalised},
    request::DatasetId,
};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{
    error::Error,
    input,
    output::{self, StagedFile},
    randomness::system,
};

pub const ALIGN_EXAMPLES: &str = "\
Examples:
  fhaim align --data ana.csv --on id --me 1 --of 2 --session trial-7 --messages shared --out ana-rows.csv
  fhaim align --data ben.csv --on name,born --me 2 --of 3 --session trial-7 --messages shared --out b.csv

Every holder runs it at the same time, on its own machine. Messages are files in a folder that all of
them reach, or that they copy to each other's; they must not be shown to anybody else. A session's name is
the same for all, and new every time. Keys are compared without regard to case and space.";

/// Flags of `align`.
#[derive(Debug, Args)]
pub struct AlignArguments {
    /// This holder's table
    #[arg(long, value_name = "CSV")]
    pub data: PathBuf,
    /// Columns that tell whose a record is, separated by commas: in one order for all holders
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    pub on: Vec<String>,
    /// Which of the holders this is, counted from 1
    #[arg(long, value_name = "N")]
    pub me: usize,
    /// How many holders there are: 2 or 3
    #[arg(long, value_name = "K")]
    pub of: usize,
    /// Name of this alignment
    #[arg(long, value_name = "NAME")]
    pub session: String,
    /// Folder of the messages
    #[arg(long, value_name = "FOLDER")]
    pub messages: PathBuf,
    /// Where the common rows go
    #[arg(long, value_name = "CSV")]
    pub out: PathBuf,
    /// Minutes to wait for the others
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=MAX_WAIT))]
    pub wait: u64,
    /// Do it without asking
    #[arg(long)]
    pub yes: bool,
    /// How the table is written.
    #[command(flatten)]
    pub format: FormatArguments,
}

/// The longest wait for the others, in minutes: a week.
const MAX_WAIT: u64 = 7 * 24 * 60;

/// How often the folder is looked into.
const LOOK: Duration = Duration::from_millis(200);

/// A table as its text has it.
struct Rows {
    delimiter: u8,
    header: csv::StringRecord,
    records: Vec<csv::StringRecord>,
}

/// Reads the table, takes part until every list is whole, and writes the common rows.
pub fn run(arguments: &AlignArguments, progress: &Progress) -> Result<(), Error> {
    let AlignArguments { of, me, out, .. } = arguments;
    let me = me.checked_sub(1).ok_or(AlignError::Parties)?;
    output::check_distinct(&[&arguments.data], &[out])?;
    let rows = read(arguments)?;
    let keys = keys(arguments, &rows)?;
    confirmed(arguments)?;
    let mut file = StagedFile::create(out)?;
    let session: [u8; 32] = Sha256::digest(arguments.session.as_bytes()).into();
    // The dataset is made of what comes of this: the session stands for it.
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
    mailbox.send(&first)?;
    let phase = progress.uncounted("align");
    let aligned = mailbox.exchange(&mut party, arguments.wait)?;
    phase.finish();
    write(&mut file, &rows, &aligned)?;
    file.commit()?;
    tell(arguments, &aligned)
}

fn read(arguments: &AlignArguments) -> Result<Rows, Error> {
    let (text, delimiter) = input::text(&arguments.data, &arguments.format)?;
    let refuse = |error: csv::Error| Error::Content {
        path: arguments.data.clone(),
        problem: error.to_string(),
    };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .from_reader(text);
    let header = reader.headers().map_err(refuse)?.clone();
    let records = reader.records().collect::<Result<_, _>>().map_err(refuse)?;
    Ok(Rows {
        delimiter,
        header,
        records,
    })
}

/// The join key of every row.
fn keys(arguments: &AlignArguments, rows: &Rows) -> Result<Vec<Zeroizing<Vec<u8>>>, Error> {
    let place = |name: &String| {
        let place = rows.header.iter().position(|column| column == name);
        place.ok_or_else(|| Error::Content {
            path: arguments.data.clone(),
            problem: format!("there is no column {name:?} to align by: --on names columns"),
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

/// A refusal with its place in the file, where records are counted from 1.
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

/// Says what everyone will learn, and asks.
fn confirmed(arguments: &AlignArguments) -> Result<(), Error> {
    let pairs = match arguments.of {
        2 => "",
        _ => ", and how many rows each two have in common, but not which",
    };
    eprintln!(
        "note: all parties learn which of their rows are common to all, how many rows each of them \
         has{pairs}; a party that puts keys of its choice into its table learns whether others have \
         them"
    );
    if arguments.yes || !can_ask() || ask("Go on?")? {
        return Ok(());
    }
    Err(Error::Usage("nothing was sent".to_owned()))
}

/// Messages as files, each party numbered from 1: `FROM-TO-OWNER.align` for lists, `FROM-TO-OWNER-common.align` for
/// common rows.
struct Mailbox {
    folder: PathBuf,
    me: usize,
}

impl Mailbox {
    /// Refuses a folder with messages of this party: its exponent of then is gone.
    fn must_be_new(&self) -> Result<(), Error> {
        let own = format!("{}-", self.me + 1);
        for name in self.names()? {
            if name.starts_with(&own) {
                let folder = self.folder.display();
                return Err(Error::Usage(format!(
                    "{folder}: it has messages that this party sent before: begin again in an empty \
                     folder, all parties, with another --session"
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
        let Message { owner, stage, .. } = Message::from_bytes(&out.bytes)?;
        let owner = owner + 1;
        let kind = match stage {
            Stage::Common(_) => "-common",
            Stage::Round(_) | Stage::Whole => "",
        };
        for to in &out.to {
            let name = format!("{}-{}-{owner}{kind}.align", self.me + 1, to + 1);
            // Renamed into its place: nobody reads half of it.
            home::replace(&self.folder.join(name), &out.bytes)?;
        }
        Ok(())
    }

    /// Answers every message for this party until it has its rows.
    fn exchange(&self, party: &mut Party, wait: u64) -> Result<Aligned, Error> {
        // At most a week, which every clock has before it.
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
                    "{folder}: the other parties' messages did not come within {}: begin again with \
                     another --session, or a longer --wait",
                    counted(usize::try_from(wait).unwrap_or(usize::MAX), "minute")
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Who sent a message, if it is for this party.
    fn sender(&self, name: &str) -> Option<usize> {
        let mut numbers = name.strip_suffix(".align")?.split('-');
        let mut number = || numbers.next()?.parse::<usize>().ok()?.checked_sub(1);
        let (from, to) = (number()?, number()?);
        (to == self.me).then_some(from)
    }
}

/// Writes the header, and the common rows in their order.
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
    for ([a, b], rows) in &aligned.overlaps {
        text.push_str(&format!(
            "parties {} and {}: {rows} in common\n",
            a + 1,
            b + 1
        ));
    }
    let (rows, out) = (aligned.rows.len(), arguments.out.display());
    text.push_str(&format!(
        "{} of all are in {out}, in one order\n",
        counted(rows, "row")
    ));
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_for_whom_their_names_say() {
        let mailbox = Mailbox {
            folder: PathBuf::from("."),
            me: 1,
        };
        assert_eq!(mailbox.sender("1-2-1.align"), Some(0));
        assert_eq!(mailbox.sender("3-2-1.align"), Some(2));
        assert_eq!(mailbox.sender("3-2-1-common.align"), Some(2));
        for other in [
            "2-1-1.align",
            "1-2-1",
            "0-2-1.align",
            "x-2-1.align",
            "align",
        ] {
            assert_eq!(mailbox.sender(other), None, "{other}");
        }
    }
}
