//! `fhaim verify`: whether what was released is what this machine's table and noise come to.

use clap::Args;
use fhaim_api::dataset::Dataset;
use fhaim_api::job::Job;
use fhaim_domain::counted;
use fhaim_files::{FormatArguments, StrictnessArguments};
use fhaim_files::{note, progress::Progress};
use fhaim_sdk::{Client, Fault, KeptLadder, Share, Verification, VerifyFinding};
use std::path::{Path, PathBuf};
use uuid::Uuid;

use super::{dataset, login};
use crate::{
    error::Error,
    input::Data,
    output::{self, StagedFile},
};

pub const VERIFY_EXAMPLES: &str = "\
Examples:
  fhaim verify 0198c0de-0000-7000-8000-000000000000 --data compas.csv
  fhaim verify 0198c0de-0000-7000-8000-000000000000 --data compas.csv --json
  fhaim verify 0198c0de-0000-7000-8000-000000000000 --data my-part.csv --share-out ana.share
  fhaim verify 0198c0de-0000-7000-8000-000000000000 --share ana.share --share ben.share

`fhaim dataset upload` keeps the key of its noise in a file of its own, DATASET.ladder beside the login.
With it and the table this works out every integer that should have been released, and compares it
with what the key service did release: a computation service that left noise out, changed a cell or
counted another column is found out, after the fact. Nothing is sent. It ends with 1 if a
release differs or cannot be checked.
What an integer comes to is as private as the table, once another was released in its place: tell the
services' operators which release and which cell differ, and no numbers.

Of several holders of records each writes its share: what it adds to each release, masked so that only the
sum of all shares says something, which is what was released. A party with one share of each holder compares. Where
that sum differs it is a second answer about all records: stop, and show it to no one. No share is written
unless the key service shows the same releases as the generation service, as every other key service, and as
this machine recorded when it watched the job end.

The key undoes the noise: whoever has it, and reads what was released, has exact counts of the table.
Keep it like the table itself, and delete it once nothing is to be checked any more.";

/// Flags of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// The dataset
    pub dataset: Uuid,
    /// The table that was uploaded
    #[arg(long, value_name = "CSV", required_unless_present = "shares")]
    pub data: Option<Data>,
    /// Write this holder's share here and compare nothing, where there are several holders
    #[arg(long, value_name = "FILE", requires = "data")]
    pub share_out: Option<PathBuf>,
    /// Share of a holder: once for each, this one's too
    #[arg(long = "share", value_name = "FILE", conflicts_with_all = ["data", "share_out"])]
    pub shares: Vec<PathBuf>,
    /// How the table is written.
    #[command(flatten)]
    pub format: FormatArguments,
    /// What to do with values that the schema does not have.
    #[command(flatten)]
    pub strictness: StrictnessArguments,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

/// `fhaim verify`.
pub async fn run(arguments: &VerifyArguments, progress: &Progress) -> Result<(), Error> {
    let client = login::client()?;
    let of = client.dataset(arguments.dataset).await?;
    let Some(data) = &arguments.data else {
        let shares = arguments.shares.iter().map(|path| read_share(path));
        let shares = shares.collect::<Result<Vec<_>, Error>>()?;
        return judged(arguments, &client.verify_shares(&of, &shares).await?);
    };
    let kept = kept(&of)?;
    let terms = &of.terms.0;
    let (schema, _) = terms.part_schema(kept.part())?;
    let (format, strictness) = (&arguments.format, &arguments.strictness);
    let records = dataset::read(data, format, strictness, schema, terms.contribution)?;
    if let Some(out) = &arguments.share_out {
        let mut file = StagedFile::create_private(out)?;
        let key = login::signing_key(&login::folder()?)?;
        let share = client.share(&of, &records, &kept, &key).await?;
        file.write_bytes(output::to_json(&share)?.as_bytes())?;
        return Ok(file.commit()?);
    }
    let phase = progress.uncounted("compare what was released");
    let found = client.verify(&of, &records, &kept).await?;
    phase.finish();
    judged(arguments, &found)
}

/// Records what an ended job released, where this machine has the key of the upload's noise: a history that a key
/// service invents later is then given no share. The job has ended in any case, so a failure is only reported.
pub async fn record(client: &Client, job: &Job) {
    if let Err(error) = try_to_record(client, job).await {
        note(format_args!(
            "what job {} released was not recorded, and `fhaim verify --share-out` will compare it with \
             less: {error}",
            job.id
        ));
    }
}

async fn try_to_record(client: &Client, job: &Job) -> Result<(), Error> {
    let path = login::ladder(&login::folder()?, job.dataset);
    if job.releases == 0 || !path.exists() {
        return Ok(());
    }
    let dataset = client.dataset(job.dataset).await?;
    client.record(&dataset, job.id, &path).await?;
    Ok(())
}

fn read_share(path: &Path) -> Result<Share, Error> {
    let text = std::fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|_| Error::Content {
        path: path.to_owned(),
        problem: "not a share of `fhaim verify --share-out`".to_owned(),
    })
}

/// Prints what was found; an error unless everything was checked and is as it should be.
fn judged(arguments: &VerifyArguments, found: &Verification) -> Result<(), Error> {
    if arguments.json {
        output::print_json(found)?;
    } else {
        output::print(&told(found))?;
    }
    judge(found)
}

/// The key of the upload's noise.
fn kept(dataset: &Dataset) -> Result<KeptLadder, Error> {
    let path = login::ladder(&login::folder()?, dataset.id);
    KeptLadder::read(&path, dataset.id)?.ok_or_else(|| {
        Error::Usage(format!(
            "this machine has no key of the noise of dataset {} ({}): it was uploaded elsewhere, from \
             the page or by another program. Its releases cannot be \
             checked; an upload of a new dataset by `fhaim dataset upload` keeps a key",
            dataset.id,
            path.display()
        ))
    })
}

/// What was found, a line each.
fn told(found: &Verification) -> String {
    let mut text: String = found.findings.iter().map(line).collect();
    text.push_str(&format!(
        "{} compared, {} equal to the statistic with its noise\n",
        counted(found.integers, "integer"),
        counted(found.equal, "release"),
    ));
    text
}

fn line(finding: &VerifyFinding) -> String {
    let what = match &finding.fault {
        Fault::Unanswered => "was debited, and the key service shows no integers for it".to_owned(),
        Fault::Undebited => "was released, and the ledger has no debit of it".to_owned(),
        Fault::Statement => "what is said to have been asked is not what was debited".to_owned(),
        Fault::Square => "cannot be checked: a square is no sum over holders".to_owned(),
        Fault::Unshared(holder) => format!("holder {} shared nothing of it", holder + 1),
        Fault::Length { expected, released } => format!(
            "{} released, the statistic has {}",
            counted(*released, "cell"),
            counted(*expected, "cell")
        ),
        Fault::Cells {
            count,
            first,
            expected,
            released,
        } => format!(
            "{} other than the statistic with its noise; cell {first} was released as \
             {released}, and comes to {expected}",
            counted(*count, "cell")
        ),
    };
    format!(
        "job {}, release {} ({}): {what}\n",
        finding.job, finding.number, finding.statistic
    )
}

/// An error unless everything was checked and is as it should be.
fn judge(found: &Verification) -> Result<(), Error> {
    let wrong = found.findings.len();
    if wrong == 0 {
        return Ok(());
    }
    let is_unchecked =
        |finding: &&VerifyFinding| matches!(finding.fault, Fault::Square | Fault::Unshared(_));
    let unchecked = found.findings.iter().filter(is_unchecked).count();
    let of = wrong + found.equal;
    let text = if unchecked == wrong {
        format!("{unchecked} of {of} releases cannot be checked")
    } else {
        format!(
            "{} of {of} releases are not what this table and its noise come to. Start no further run; \
             the services' operators have to explain it, unless this part was uploaded again from \
             elsewhere since",
            wrong - unchecked
        )
    };
    Err(Error::Unequal(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(faults: Vec<Fault>) -> Verification {
        let finding = |(number, fault)| VerifyFinding {
            job: Uuid::nil(),
            number,
            statistic: "attributes 1 and 2".to_owned(),
            fault,
        };
        Verification {
            equal: 3,
            integers: 12,
            findings: (7..).zip(faults).map(finding).collect(),
        }
    }

    #[test]
    fn every_difference_is_named_and_none_is_a_success() {
        let good = found(Vec::new());
        judge(&good).unwrap();
        let whole = "12 integers compared, 3 releases equal to the statistic with its noise\n";
        assert_eq!(told(&good), whole);
        let cells = Fault::Cells {
            count: 2,
            first: 4,
            expected: -3,
            released: 5,
        };
        let bad = found(vec![cells, Fault::Square]);
        let text = told(&bad);
        let line = "job 00000000-0000-0000-0000-000000000000, release 7 (attributes 1 and 2): 2 cells \
                    other than the statistic with its noise; cell 4 was released as 5, and \
                    comes to -3\n";
        assert!(text.starts_with(line), "{text}");
        assert!(text.ends_with(whole), "{text}");
        let error = judge(&bad).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("1 of 5 releases are not what"),
            "{error}"
        );
        assert_eq!(error.exit_code(), 1);
        let unknown = judge(&found(vec![Fault::Square])).unwrap_err();
        assert_eq!(unknown.to_string(), "1 of 4 releases cannot be checked");
        for fault in [
            Fault::Unanswered,
            Fault::Statement,
            Fault::Length {
                expected: 1,
                released: 2,
            },
        ] {
            assert!(matches!(
                judge(&found(vec![fault])),
                Err(Error::Unequal(..))
            ));
        }
    }
}
