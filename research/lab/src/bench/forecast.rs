//! `fhaim-lab bench forecast`: compares forecasts with the outcomes of runs.

use std::borrow::Cow;

use clap::Args;
use fhaim_domain::{Clique, Table};
use fhaim_dp::accounting;
use fhaim_files::progress::Progress;
use fhaim_release::MechanismJob;
use fhaim_synth::{
    FittedModel, Forecast, MechanismName,
    forecast::{RecordCount, forecast},
};
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;

use super::{
    Dataset, args::OwnTables, endings::Skew, families::Family, own_tables, rows::Rows, tables,
};
use crate::{args::DEFAULT_DELTA, error::Error};

/// Largest number of columns of a generated table that is hard to fit, as in `bench endings`.
const MAX_COLUMNS: u8 = 30;

pub const FORECAST_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim-lab bench forecast --json > forecast.json
  fhaim-lab bench forecast --family tree --epsilon 1 --seeds 3
  fhaim-lab bench forecast compas adult-32 --mechanism aim --seeds 2";

/// Arguments of `bench forecast`.
#[derive(Debug, Args)]
pub struct ForecastArguments {
    /// Published tables to run on [default: all, unless a family is named]
    pub datasets: Vec<String>,
    /// Family of generated tables (may be repeated)
    #[arg(long, value_name = "FAMILY")]
    pub family: Vec<Family>,
    /// Family of tables that are hard to fit (may be repeated)
    #[arg(long, value_name = "FAMILY")]
    pub skew: Vec<Skew>,
    /// Privacy budget (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [0.1, 1.0, 10.0])]
    pub epsilon: Vec<f64>,
    /// Mechanism to run (may be repeated)
    #[arg(long, value_name = "M", default_values_t = [MechanismName::default()])]
    pub mechanism: Vec<MechanismName>,
    /// Number of runs of each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// First seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first_seed: u64,
    #[command(flatten)]
    pub own: OwnTables,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// The forecast and the outcome of one run.
#[derive(Debug, Serialize)]
struct Row {
    dataset: String,
    mechanism: String,
    epsilon: f64,
    seed: u64,
    records: usize,
    /// Number of pairs that the budget can measure above the noise, according to the forecast.
    pairs_above_noise: usize,
    sentence: String,
    columns: Vec<Compared>,
    pairs: Vec<Compared>,
}

/// A column or pair.
#[derive(Clone, Copy, Debug, Serialize)]
struct Compared {
    /// Expected total variation distance.
    expected: f64,
    above_noise: bool,
    /// Total variation distance of the model from the table.
    outcome: f64,
}

/// The data of the runs.
enum Subject {
    Table(Dataset),
    Family(Family),
    Skew(Skew),
}

impl Subject {
    fn name(&self) -> &str {
        match self {
            Self::Table(dataset) => &dataset.name,
            Self::Family(family) => family.as_str(),
            Self::Skew(family) => family.as_str(),
        }
    }

    fn table(&self, seed: u64) -> Result<Cow<'_, Table>, Error> {
        match self {
            Self::Table(dataset) => Ok(Cow::Borrowed(&dataset.table)),
            Self::Family(family) => Ok(Cow::Owned(family.table(seed)?)),
            Self::Skew(family) => Ok(Cow::Owned(family.table(MAX_COLUMNS, seed)?)),
        }
    }
}

/// Runs the command: every mechanism on every table at every budget.
pub fn run(arguments: &ForecastArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    for subject in subjects(arguments)? {
        for &mechanism in &arguments.mechanism {
            for &epsilon in &arguments.epsilon {
                let seeds = arguments.first_seed..arguments.first_seed + arguments.seeds;
                let name = format!("{} {mechanism} e{epsilon}", subject.name());
                let phase = progress.counted(name, arguments.seeds, "runs");
                for (done, seed) in (1..).zip(seeds) {
                    let table = subject.table(seed)?;
                    match compare(subject.name(), &table, mechanism, epsilon, seed) {
                        Err(error) if error.is_refusal_of_noise() => {
                            progress.say(&format!("{} {mechanism}: {error}", subject.name()));
                            break;
                        }
                        made => rows.push(&made?)?,
                    }
                    phase.reach(done);
                }
                phase.finish();
            }
        }
    }
    rows.end("Errors are total variation distances, from 0 to 1.\n")
}

/// Returns the named tables and families, or else the published tables.
fn subjects(arguments: &ForecastArguments) -> Result<Vec<Subject>, Error> {
    let only_families = !(arguments.family.is_empty() && arguments.skew.is_empty());
    let named = match arguments.datasets.is_empty() && only_families {
        true => own_tables(&arguments.own)?,
        false => tables(&arguments.datasets, &arguments.own)?,
    };
    let families = arguments.family.iter().copied().map(Subject::Family);
    let skewed = arguments.skew.iter().copied().map(Subject::Skew);
    let named = named.into_iter().map(Subject::Table);
    Ok(named.chain(families).chain(skewed).collect())
}

/// Forecasts a run, and runs it.
fn compare(
    name: &str,
    table: &Table,
    mechanism: MechanismName,
    epsilon: f64,
    seed: u64,
) -> Result<Row, Error> {
    let rho = accounting::rho(epsilon, DEFAULT_DELTA)?;
    let job = MechanismJob::new(table.domain().clone(), rho, table.records() as u64);
    fhaim_synth::check_start(&*mechanism, &job)?;
    let budget = (epsilon, DEFAULT_DELTA);
    let records = RecordCount::Exactly(table.records() as u64);
    let forecast = forecast(&*mechanism, &job, table.schema(), budget, records);
    let no_forecast = fhaim_synth::Error::Internal("the mechanism has no forecast");
    let forecast = forecast.ok_or(no_forecast)?;
    let mut rng = StdRng::seed_from_u64(seed);
    let made = mechanism.run_in_the_clear(table, &job, &mut rng, &mut |_| {})?;
    let model = made.model.as_ref();
    let columns: Vec<Clique> = table
        .domain()
        .coarse_attributes()
        .into_iter()
        .map(|a| Clique::new([a]))
        .collect();
    let outcomes = distances(table, model, &columns)?;
    let columns = forecast
        .columns
        .iter()
        .zip(outcomes)
        .map(|(column, outcome)| Compared {
            expected: column.error,
            above_noise: column.above_noise,
            outcome,
        });
    Ok(Row {
        dataset: name.to_owned(),
        mechanism: mechanism.to_string(),
        epsilon,
        seed,
        records: table.records(),
        pairs_above_noise: forecast.pairs.above_noise,
        sentence: forecast.sentence.clone(),
        columns: columns.collect(),
        pairs: compare_pairs(table, model, &forecast)?,
    })
}

/// Compares the pairs of columns that vary.
fn compare_pairs(
    table: &Table,
    model: &dyn FittedModel,
    forecast: &Forecast,
) -> Result<Vec<Compared>, Error> {
    let pairs = table.domain().pairs();
    let outcomes = distances(table, model, &pairs)?;
    let compared = pairs.iter().zip(outcomes).filter_map(|(pair, outcome)| {
        let mut values = [0, 1].map(|i| table.domain().size(pair.attributes()[i]));
        values.sort_unstable();
        let sizes = forecast
            .pairs
            .sizes
            .iter()
            .find(|sizes| sizes.values == values)?;
        Some(Compared {
            expected: sizes.error,
            above_noise: sizes.above_noise,
            outcome,
        })
    });
    Ok(compared.collect())
}

const HEADING: &str = "dataset        mechanism epsilon  seed  columns: expected outcome  pairs: expected outcome  above\n";

fn line(row: &Row) -> String {
    let mean = |compared: &[Compared], value: fn(&Compared) -> f64| {
        compared.iter().map(value).sum::<f64>() / compared.len().max(1) as f64
    };
    format!(
        "{:14} {:9} {:>7} {:>5}           {:>7.4} {:>7.4}         {:>7.4} {:>7.4}  {:>5}\n",
        row.dataset,
        row.mechanism,
        row.epsilon,
        row.seed,
        mean(&row.columns, |column| column.expected),
        mean(&row.columns, |column| column.outcome),
        mean(&row.pairs, |pair| pair.expected),
        mean(&row.pairs, |pair| pair.outcome),
        row.pairs_above_noise,
    )
}

/// Returns the total variation distance of each clique's shares in the model from those in the table.
fn distances(
    table: &Table,
    model: &dyn FittedModel,
    cliques: &[Clique],
) -> Result<Vec<f64>, Error> {
    let no_marginals = fhaim_synth::Error::Internal("a model of the table has no marginals");
    let marginals = model.marginals().ok_or(no_marginals)?.marginals_of(cliques);
    let marginals = marginals.map_err(fhaim_synth::Error::from)?;
    let (total, records) = (model.total(), table.records() as f64);
    let mut all = Vec::new();
    for (clique, marginal) in cliques.iter().zip(marginals) {
        let counts = table.counts(clique).map_err(fhaim_synth::Error::from)?;
        let apart = counts
            .iter()
            .zip(&marginal)
            .map(|(&x, y)| (x as f64 / records - y / total).abs());
        all.push(0.5 * apart.sum::<f64>());
    }
    Ok(all)
}
