//! Cards: the public facts about a synthetic table, in files next to it.

use std::{
    fs::File,
    io,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use fhaim_card::{
    AttributeNoise, Card, CardFacts, CardSetting, CardTable, CardTerms, RecordsSpending,
    SpendingSource,
};
use fhaim_files::memory::{KnownRecords, UseCost};
use fhaim_protocol::terms::Terms;
use fhaim_release::{Holders, Statistic};
use sha2::{Digest, Sha256};

use crate::{error::Error, flags::VERSION, output::StagedFile, spending::PROGRAM};

/// The forms of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardForm {
    /// A page for people.
    Html,
    /// Croissant metadata for programs.
    Json,
}

/// A run of one program, whose table is written.
pub struct CardOfRun<'a> {
    /// The terms of the run.
    pub terms: &'a Terms,
    /// Whether the holder published the terms' bound on the number of records. Otherwise, it follows from the table.
    pub is_bound_public: bool,
    /// Where the records were processed.
    pub setting: CardSetting,
    /// Statistics of the releases, with the units of one holder's noise.
    pub releases: Vec<(&'a Statistic, u64)>,
    /// The records as the usage history knows them, after this use was added.
    pub records: Option<&'a KnownRecords>,
    /// The written table.
    pub table: &'a Path,
    /// Its field delimiter.
    pub delimiter: u8,
    /// Number of synthetic records.
    pub synthetic_records: u64,
    /// The saved model.
    pub model: &'a Path,
}

impl CardOfRun<'_> {
    /// Makes the card.
    ///
    /// # Errors
    /// A table or model that cannot be read.
    pub fn card(&self) -> Result<Card, Error> {
        Ok(Card::new(self.facts()?))
    }

    fn facts(&self) -> Result<CardFacts, Error> {
        let mut terms = CardTerms::from(self.terms);
        terms.record_bound = terms.record_bound.filter(|_| self.is_bound_public);
        let releases = self.releases.iter().copied();
        Ok(CardFacts {
            setting: self.setting,
            noise: Some(noise(self.terms, releases)?),
            spending: self.spending(),
            table: table(
                self.table,
                Some(char::from(self.delimiter)),
                Some(self.synthetic_records),
            )?,
            model_sha256: table(self.model, None, None)?.map(|model| model.sha256),
            made_on: today(),
            program: format!("fhaim {VERSION}"),
            terms,
        })
    }

    fn spending(&self) -> Option<RecordsSpending> {
        let claim = self.terms.schema.claim();
        let draft = claim.map(|claim| {
            let rho = fhaim_dp::Rho::from_count(claim.rho);
            UseCost::zcdp_but_for(PROGRAM, rho, claim.delta / 2.0)
        });
        let known = self.records?.total(self.terms.delta, draft)?;
        Some(RecordsSpending {
            uses: known.uses,
            epsilon: known.epsilon,
            delta: known.delta,
            uncounted: known.uncounted,
            source: SpendingSource::Holder,
        })
    }
}

/// Writes a card to a file, and completes it.
pub fn write(mut file: StagedFile, card: &Card, form: CardForm) -> Result<(), Error> {
    let text = match form {
        CardForm::Html => card.html(),
        CardForm::Json => card.json(),
    };
    let text = text.map_err(|error| Error::Write {
        path: "card".into(),
        source: io::Error::other(error),
    })?;
    file.write_bytes(text.as_bytes())?;
    Ok(file.commit()?)
}

/// Returns the noise of releases, given as statistics with the units of one holder's noise.
pub fn noise<'a>(
    terms: &Terms,
    releases: impl Iterator<Item = (&'a Statistic, u64)> + Clone,
) -> Result<AttributeNoise, Error> {
    let holders: Holders = terms.holders()?;
    let releases =
        releases.map(|(statistic, units)| (statistic, holders.fit_variance(units) as f64));
    Ok(AttributeNoise::of(terms.schema.columns().len(), releases))
}

/// Describes a written file, or returns `None` if it is a pipe or a device.
pub fn table(
    path: &Path,
    delimiter: Option<char>,
    records: Option<u64>,
) -> Result<Option<CardTable>, Error> {
    let is_regular = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let name = path.file_name().filter(|_| is_regular);
    let Some(name) = name else {
        return Ok(None);
    };
    let read = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let mut digest = Sha256::new();
    let mut file = File::open(path).map_err(read)?;
    let bytes = io::copy(&mut file, &mut digest).map_err(read)?;
    Ok(Some(CardTable {
        name: name.to_string_lossy().into_owned(),
        delimiter,
        bytes,
        sha256: digest.finalize().into(),
        records,
    }))
}

/// Returns the day of the system's clock, counted from 1970-01-01.
fn today() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (since.as_secs() / 86_400) as i64
}
