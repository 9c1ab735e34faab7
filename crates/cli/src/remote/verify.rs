//! `fhaim verify`: checks released integers against this machine's table and noise.

use clap::Args;
use fhaim_api::dataset::Dataset;
use fhaim_api::job::Job;
use fhaim_domain::{NearUnique, counted};
use fhaim_files::{FormatArguments, StrictnessArguments};
use fhaim_files::{note, progress::Progress};
use fhaim_sdk::{Client, Fault, KeptLadder, Share, Verification, VerifyFinding};
use std::path::{Path, PathBuf};
use uuid::Uuid;

use super::{args::identifier, dataset, login};
use crate::{
    error::Error,
    input::Data,
    output::{self, OverwriteArguments, StagedFile},
};

pub const VERIFY_EXAMPLES: &str = "\
Examples:
  fhaim verify 0198c0de-0000-7000-8000-000000000000 --data compas.csv
  fhaim verify 0198c0de-0000-7000-8000-000000000000 --data compas.csv --json
  fhaim verify 0198c0de-0000-7000-8000-000000000000 --data my-part.csv --share-out ana.share
  fhaim verify 0198c0de-0000-7000-8000-000000000000 --share ana.share --share ben.share

`fhaim dataset upload` stores the key of its noise in the file DATASET.ladder, next to the login. With
this key and the table, the command computes every integer that should have been released, and compares it
with the integer that the key service released. This detects a computation service that left out noise,
changed a cell or counted another column. The table and the key do not leave this machine. The exit code
is 1 if a release differs or cannot be checked.

If a release differs, the correct integers are as private as the table. Tell the services' operators which
release and which cell differ, but no numbers.

With several holders of records, each holder writes a share: its contribution to each release, masked so
that only the sum of all shares is meaningful. The sum must equal the released integers. A party with one
share from each holder compares them. If the sum differs, it is a second answer about all records: stop,
and show it to nobody. The command writes a share only if the key service shows the same releases as the
generation service, as every other key service, and as this machine recorded at the end of the job.

The key can remove the noise: anyone with the key and the releases has exact counts of the table. Protect
it like the table, and delete it when you do not need to check the releases any more.";

/// Flags of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// Identifier of the dataset
    #[arg(value_parser = identifier)]
    pub dataset: Uuid,
    /// Table that was uploaded
    #[arg(long, value_name = "TABLE", required_unless_present = "shares")]
    pub data: Option<Data>,
    /// Output file for this holder's share, for a dataset with several holders. Compares nothing
    #[arg(long, value_name = "FILE", requires = "data")]
    pub share_out: Option<PathBuf>,
    #[command(flatten)]
    pub overwriting: OverwriteArguments,
    /// Share of a holder. Repeat the flag for each holder, including this one
    #[arg(long = "share", value_name = "FILE", conflicts_with_all = ["data", "share_out"])]
    pub shares: Vec<PathBuf>,
    /// Text format of the table.
    #[command(flatten)]
    pub format: FormatArguments,
    /// Handling of values and columns that are not in the schema.
    #[command(flatten)]
    pub strictness: StrictnessArguments,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs `fhaim verify`.
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
    let records = dataset::read(
        data,
        format,
        strictness,
        schema,
        terms.contribution,
        NearUnique::Report,
    )?;
    if let Some(out) = &arguments.share_out {
        let mut file = StagedFile::create_private(out, arguments.overwriting.existing())?;
        let key = login::signing_key(&login::folder()?)?;
        let share = client.share(&of, &records, &kept, &key).await?;
        file.write_bytes(output::to_json(&share)?.as_bytes())?;
        return Ok(file.commit()?);
    }
    let phase = progress.uncounted("compare the releases");
    let found = client.verify(&of, &records, &kept).await?;
    phase.finish();
    judged(arguments, &found)
}

/// Records the releases of an ended job, if this machine has the key of the upload's noise.
///
/// With the record, no share is written for a history that a key service invents later. The job has ended in any case,
/// so a failure is only reported.
pub async fn record(client: &Client, job: &Job) {
    if let Err(error) = try_to_record(client, job).await {
        note(format_args!(
            "cannot record the releases of job {}, so `fhaim verify --share-out` will have less to compare \
             them with: {error}",
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
        problem: "not a share from `fhaim verify --share-out`".to_owned(),
    })
}

/// Prints the result. Returns an error unless everything was checked and is correct.
fn judged(arguments: &VerifyArguments, found: &Verification) -> Result<(), Error> {
    if arguments.json {
        output::print_json(found)?;
    } else {
        output::print(&told(found))?;
    }
    judge(found)
}

/// Reads the key of the upload's noise.
fn kept(dataset: &Dataset) -> Result<KeptLadder, Error> {
    let path = login::ladder(&login::folder()?, dataset.id);
    KeptLadder::read(&path, dataset.id)?.ok_or_else(|| {
        Error::Usage(format!(
            "this machine has no key of the noise of dataset {} ({}), because the dataset was uploaded from \
             another machine, from the web page or by another program. Its releases cannot be checked here. \
             `fhaim dataset upload` stores the key for a new dataset",
            dataset.id,
            path.display()
        ))
    })
}

/// Describes the findings, one line each, and the totals.
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
        Fault::Unanswered => "was debited, but the key service shows no integers for it".to_owned(),
        Fault::Undebited => "was released, but the ledger has no debit for it".to_owned(),
        Fault::Statement => "the shown request is not the one that was debited".to_owned(),
        Fault::Square => "cannot be checked: squares are not sums over holders".to_owned(),
        Fault::Unshared(holder) => format!("holder {} has no share of it", holder + 1),
        Fault::Length { expected, released } => format!(
            "{} released, but the statistic has {}",
            counted(*released, "cell"),
            counted(*expected, "cell")
        ),
        Fault::Cells {
            count,
            first,
            expected,
            released,
        } => format!(
            "{} not equal to the statistic with its noise; cell {first} was released as \
             {released}, but should be {expected}",
            counted(*count, "cell")
        ),
    };
    format!(
        "job {}, release {} ({}): {what}\n",
        finding.job, finding.number, finding.statistic
    )
}

/// Returns an error unless everything was checked and is correct.
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
            "{} of {of} releases differ from this table with its noise. If this part was not uploaded \
             again from another place, start no further run, and ask the services' operators for an \
             explanation",
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
    fn every_difference_is_reported_as_an_error() {
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
                    not equal to the statistic with its noise; cell 4 was released as 5, but \
                    should be -3\n";
        assert!(text.starts_with(line), "{text}");
        assert!(text.ends_with(whole), "{text}");
        let error = judge(&bad).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("1 of 5 releases differ from this table"),
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
