//! `fhaim download --card`: the card of a job's or a link's result.

use std::path::{Path, PathBuf};

use fhaim_api::job::{JobState, ReleasedStatistic};
use fhaim_card::{
    Card, CardFacts, CardSetting, CardTable, CardTerms, RecordsSpending, SpendingSource,
};
use fhaim_dp::{Rho, accounting};
use fhaim_sdk::{Client, LinkAddress};
use uuid::Uuid;

use crate::{
    card::{self, CardForm},
    error::Error,
    flags::VERSION,
    output::{self, StagedFile},
};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// An output file for a card.
#[derive(Clone, Debug)]
pub struct CardFile {
    /// Path of the file.
    pub path: PathBuf,
    form: CardForm,
}

impl CardFile {
    /// Parses a path whose ending names the form of the card.
    pub fn parse(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let ending = path.extension().and_then(|ending| ending.to_str());
        let form = match ending.map(str::to_ascii_lowercase).as_deref() {
            Some("html") => CardForm::Html,
            Some("json") => CardForm::Json,
            _ => {
                return Err(
                    "use a name that ends in .html, for a page, or in .json, for Croissant metadata"
                        .to_owned(),
                );
            }
        };
        Ok(Self { path, form })
    }

    /// Writes the card to its started file, and prints the name of the file.
    pub fn write(&self, file: StagedFile, card: &Card) -> Result<(), Error> {
        card::write(file, card, self.form)?;
        output::print(&format!("{}: data card\n", self.path.display()))
    }
}

/// Returns the card of a job's result, and of a table that was drawn from it, if there is one.
///
/// # Errors
/// A job that is not done; the errors of the services.
pub async fn of_job(client: &Client, job: Uuid, table: Option<CardTable>) -> Result<Card, Error> {
    let job = client.job(job).await?;
    if job.state != JobState::Done {
        return Err(Error::Job(format!(
            "job {} has no result to describe: wait until it is done",
            job.id
        )));
    }
    let terms = client.dataset(job.dataset).await?.terms.0;
    let releases: Vec<ReleasedStatistic> = client.releases(job.id).await?;
    let releases = releases
        .iter()
        .map(|release| (&release.statistic, release.variance_units));
    Ok(Card::new(CardFacts {
        setting: CardSetting::Services,
        noise: Some(card::noise(&terms, releases)?),
        spending: spending(client, job.dataset, terms.delta).await,
        table,
        model_sha256: None,
        made_on: job.updated_at.unix_timestamp().div_euclid(DAY),
        program: format!("fhaim {VERSION}"),
        terms: CardTerms::from(&terms),
    }))
}

/// Returns the card of the result that a link opens, and of a table that was drawn from it, if there is one. A link shows
/// neither the releases nor the parties.
///
/// # Errors
/// The errors of the service.
pub async fn of_link(
    client: &Client,
    link: &LinkAddress,
    table: Option<CardTable>,
) -> Result<Card, Error> {
    let result = client.open(link).await?;
    Ok(Card::new(CardFacts {
        terms: CardTerms {
            schema: result.schema,
            epsilon: result.epsilon,
            delta: result.delta,
            runs: result.runs,
            mechanism: result.mechanism,
            record_bound: None,
            holders: None,
            witness: false,
            key_services: Vec::new(),
        },
        setting: CardSetting::UnstatedServices,
        noise: None,
        spending: None,
        table,
        model_sha256: None,
        made_on: result.made_at.unix_timestamp().div_euclid(DAY),
        program: format!("fhaim {VERSION}"),
    }))
}

/// Returns the spending over a dataset, or `None` if the key service does not state it now.
async fn spending(client: &Client, dataset: Uuid, delta: f64) -> Option<RecordsSpending> {
    let ledger = client.ledger(dataset).await.ok()?;
    let spent = Rho::from_count(ledger.spent.exact.parse().ok()?);
    Some(RecordsSpending {
        uses: ledger.runs.len(),
        epsilon: accounting::epsilon(spent, delta).ok()?,
        delta,
        uncounted: 0,
        source: SpendingSource::Ledger,
    })
}

/// Describes a table that was downloaded.
pub fn downloaded(
    path: &Path,
    is_csv: bool,
    records: Option<u64>,
) -> Result<Option<CardTable>, Error> {
    card::table(path, is_csv.then_some(','), records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_of_a_card_names_its_form() {
        let form = |name| CardFile::parse(name).map(|file| file.form);
        assert_eq!(form("a/card.html"), Ok(CardForm::Html));
        assert_eq!(form("a/card.JSON"), Ok(CardForm::Json));
        for other in ["card.pdf", "card", "html"] {
            assert!(
                form(other).unwrap_err().contains("ends in .html"),
                "{other}"
            );
        }
    }
}
