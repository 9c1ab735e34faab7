//! Assessment of a synthetic table: its possible uses, and the checks that it fails.
//!
//! Every distance is compared with a *baseline*: the distance that a second sample of the same population, with as many
//! records, would show. A check fails if the baseline does not explain the distance, and if the distance matters for one
//! of the purposes.

mod calendar;
mod coarse;
mod columns;
mod copies;
mod decide;
mod evidence;
mod form;
mod formulas;
mod interaction;
mod models;
mod pairs;
mod rules;
mod spikes;
mod statistics;
mod summary;
mod tails;
mod triples;

use serde::Serialize;

pub(crate) use coarse::{Coarse, cells};
pub(crate) use columns::{code_checks, value_checks};
pub(crate) use copies::copy_check;
pub use copies::{Copies, count_copies};
pub(crate) use decide::assess;
pub(crate) use evidence::{Evidence, Family};
pub(crate) use form::form_checks;
pub(crate) use formulas::{determined_checks, sum_checks};
pub(crate) use models::{membership_check, prediction_check};
pub(crate) use pairs::Columns;
pub(crate) use rules::{constraint_checks, order_checks};
pub(crate) use summary::served;

/// What a synthetic table can be used for. It feeds the report, the page, the JSON output and the Python client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Assessment {
    /// Sentences for a reader without statistics: failed checks first, then the purposes that the table serves.
    pub summary: Vec<String>,
    /// Failed checks, the most severe first.
    pub findings: Vec<Finding>,
    /// One score for each area that was examined.
    pub areas: Vec<Area>,
    /// Purposes of each column and of the examined pairs.
    pub uses: Vec<ColumnUse>,
}

/// A failed check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The columns that it is about: none, one, two or three.
    pub columns: Vec<String>,
    /// The measured distance, in the unit of the check.
    pub distance: f64,
    /// The distance that a second real sample would exceed in few cases, in the same unit.
    pub baseline: f64,
    /// How severe the failure is.
    pub severity: Severity,
    /// The failure, as a sentence without a full stop.
    pub text: String,
}

/// How severe a failed check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The table serves the purpose roughly.
    Minor,
    /// The table does not serve the purpose.
    Major,
}

/// A check of a synthetic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Raw texts have the form, precision and step of the real ones.
    Form,
    /// Values are missing as often.
    Missing,
    /// Categories and frequent single values have their shares.
    Shares,
    /// Numbers and times are distributed alike.
    Distribution,
    /// The smallest and largest values are as far out.
    Tails,
    /// Two columns depend on each other as much.
    Association,
    /// A rate, such as mortality, is the same in each group.
    RateByGroup,
    /// Three columns depend on each other as much.
    Triple,
    /// A rule that holds in the real records holds.
    Rule,
    /// A model trained on the table predicts real records as well.
    Prediction,
    /// Records are not copies of real ones.
    Copies,
    /// Attacks do not tell members from others.
    Membership,
}

/// A group of checks with one score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Area {
    /// The area.
    pub name: AreaName,
    /// What the score measures, as a sentence.
    pub definition: &'static str,
    /// Score from 0 to 1, where 1 is no difference. Absent if the area was not examined.
    pub score: Option<f64>,
    /// Score that a second real sample would have.
    pub baseline: Option<f64>,
    /// Number of examined columns, pairs, triples, rules or attacks.
    pub examined: usize,
    /// Number of them with a finding.
    pub failed: usize,
}

/// The areas of an assessment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AreaName {
    /// Single columns.
    Columns,
    /// Pairs of columns.
    Pairs,
    /// Sets of three columns.
    Triples,
    /// Rules that hold in the real table, and constraints of the schema.
    Rules,
    /// Prediction of the target.
    Prediction,
    /// Copies and membership attacks.
    Privacy,
}

impl AreaName {
    /// All areas, in the order of an assessment.
    pub const ALL: [Self; 6] = [
        Self::Columns,
        Self::Pairs,
        Self::Triples,
        Self::Rules,
        Self::Prediction,
        Self::Privacy,
    ];

    /// Name of the area, for a heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Columns => "Columns",
            Self::Pairs => "Pairs",
            Self::Triples => "Sets of three columns",
            Self::Rules => "Rules",
            Self::Prediction => "Prediction",
            Self::Privacy => "Privacy",
        }
    }
}

/// How well a column or a pair of columns serves its purposes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnUse {
    /// One or two columns.
    pub columns: Vec<String>,
    /// The purposes that were examined, with the result of each.
    pub purposes: Vec<(AnalysisPurpose, Suitability)>,
}

/// A purpose of a synthetic column or pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnalysisPurpose {
    /// Shares of categories.
    Shares,
    /// Means and quantiles.
    Means,
    /// Extreme values.
    Tails,
    /// Strength of association.
    Association,
    /// Rates by group.
    Rates,
}

/// How well a purpose is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suitability {
    /// As well as by a second real sample, or well enough.
    Good,
    /// Roughly.
    Rough,
    /// Not at all.
    Bad,
}
