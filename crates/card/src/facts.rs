//! The public facts that a card is made from.

use fhaim_domain::{Schema, date_from_days};
use fhaim_protocol::{
    roster::{ContributionKind, Partition},
    terms::Terms,
};

use crate::AttributeNoise;

/// Public facts about a synthetic table.
///
/// None of them may depend on the records, except through releases that a privacy budget has paid for.
#[derive(Clone, Debug)]
pub struct CardFacts {
    /// The terms under which the records were used.
    pub terms: CardTerms,
    /// Where the records were processed.
    pub setting: CardSetting,
    /// Noise of the released counts, if the releases are known.
    pub noise: Option<AttributeNoise>,
    /// Total privacy cost of all uses of the records, if it is known.
    pub spending: Option<RecordsSpending>,
    /// The file that the card belongs to. Without it, the card describes all tables that the model can draw.
    pub table: Option<CardTable>,
    /// SHA-256 of the saved model, if it is known.
    pub model_sha256: Option<[u8; 32]>,
    /// The day on which the table was made, counted from 1970-01-01.
    pub made_on: i64,
    /// Name and version of the program that made the table.
    pub program: String,
}

impl CardFacts {
    /// Returns the day on which the table was made, such as `2026-01-31`.
    pub fn date(&self) -> String {
        match date_from_days(self.made_on) {
            Some((year, month, day)) => format!("{year:04}-{month:02}-{day:02}"),
            None => "unknown".to_owned(),
        }
    }
}

/// The parts of a dataset's terms that a card states.
#[derive(Clone, Debug)]
pub struct CardTerms {
    /// Public description of the table.
    pub schema: Schema,
    /// Epsilon of the budget of all runs together.
    pub epsilon: f64,
    /// Delta of this budget.
    pub delta: f64,
    /// Number of runs that share the budget.
    pub runs: u32,
    /// Name of the mechanism.
    pub mechanism: String,
    /// Upper bound on the number of records, if it was published before the run.
    pub record_bound: Option<u64>,
    /// The holders, if there are several.
    pub holders: Option<CardHolders>,
    /// Whether a second computation service computes everything as well.
    pub witness: bool,
    /// Names of the services that share the secret key; empty if one service has the whole key.
    pub key_services: Vec<String>,
}

/// The holders of a dataset that has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardHolders {
    /// Number of holders.
    pub count: u32,
    /// Number of holders whose noise the guarantee relies on.
    pub honest: u32,
    /// Part of the table that each holder has.
    pub partition: Partition,
    /// Content of each holder's upload.
    pub contribution: ContributionKind,
}

impl From<&Terms> for CardTerms {
    fn from(terms: &Terms) -> Self {
        let holders = terms.roster.as_ref().map(|roster| CardHolders {
            // A roster has at most 128 holders.
            count: u32::try_from(roster.holders.len()).unwrap_or(u32::MAX),
            honest: roster.honest,
            partition: roster.partition,
            contribution: terms.contribution,
        });
        let names = terms
            .key_services
            .iter()
            .map(|service| service.name.clone());
        Self {
            schema: terms.schema.clone(),
            epsilon: terms.epsilon,
            delta: terms.delta,
            runs: terms.runs,
            mechanism: terms.mechanism.clone(),
            record_bound: Some(terms.record_bound),
            holders,
            witness: terms.witness,
            key_services: names.collect(),
        }
    }
}

/// Where the records were processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardSetting {
    /// In the clear, by one program on the holder's machine.
    InTheClear,
    /// Under encryption, by one program on the holder's machine that has the roles of all services.
    OneProgram,
    /// Under encryption, by services that the terms state.
    Services,
    /// Under encryption, by services whose number is not known here. The terms state no holders, either.
    UnstatedServices,
}

/// Total privacy cost of the known uses of some records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordsSpending {
    /// Number of uses, including the one that made the table.
    pub uses: usize,
    /// Epsilon of all uses together. Above any bound if it is infinite.
    pub epsilon: f64,
    /// Delta of all uses together.
    pub delta: f64,
    /// Number of further uses whose cost has another unit and is not part of the total.
    pub uncounted: usize,
    /// The party that knows the uses.
    pub source: SpendingSource,
}

/// The party that states a total of spending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendingSource {
    /// The holder, from the usage history of its machine.
    Holder,
    /// The key service, from the ledger of the dataset.
    Ledger,
}

/// A synthetic table as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardTable {
    /// Name of the file, without its folder.
    pub name: String,
    /// Delimiter between the fields of a CSV file; `None` for a Parquet file.
    pub delimiter: Option<char>,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
    /// Number of synthetic records, if it is known.
    pub records: Option<u64>,
}
