//! `fhaim-lab bench paper`: repeats the experiment of the FHAIM paper, and shows printed figures next to the results.
//!
//! A run sees four fifths of the records. The error is over all pairs, for as many drawn records. A logistic regression
//! is trained on drawn records and tested on the remaining fifth. The paper's first budget is without noise: the rows
//! `exact` have ten rounds without any noise, as the authors' public program. Its second, strict budget is epsilon 1, as
//! in that program.

use clap::Args;
use fhaim_domain::Table;
use fhaim_dp::accounting;
use fhaim_eval::{Prediction, predict_held_out, workload_error};
use fhaim_files::progress::Progress;
use fhaim_release::MechanismJob;
use fhaim_synth::{Mechanism, MechanismName};
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;
use serde_json::json;

use super::args::OwnTables;
use super::exact::{self, ExactScore};
use super::rows::{Rows, bracketed};
use super::trial::mean_and_error;
use super::{Dataset, tables};
use crate::error::Error;

/// The end of the text of `--help`.
pub const PAPER_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim-lab bench paper
  FHAIM_DATA_DIR=data fhaim-lab bench paper compas --seeds 3 --json
  FHAIM_DATA_DIR=data fhaim-lab bench paper --rounds 16 --delta 1e-9 --model-mb 80
  fhaim-lab bench paper --data diabetes.csv --schema diabetes-32.schema.json";

/// The strict budget.
const EPSILON: f64 = 1.0;

/// The names of the budgets in the results: without any noise, then the strict one.
const BUDGETS: [&str; 2] = ["exact", "1"];

/// The scores of the rows without any noise. Without noise, `FHAIM-L2` is `AIM-L2`.
const EXACT: [(&str, ExactScore); 3] = [
    ("AIM-L1", ExactScore::L1),
    ("FHAIM-L1", ExactScore::PolynomialL1),
    ("AIM-L2", ExactScore::SquaredL2),
];

/// Share of the records that a run sees.
const SEEN: f64 = 0.8;

/// The tables of the paper, in its order.
const TABLES: [&str; 3] = ["breast-cancer", "compas", "diabetes"];

/// Error, accuracy and F1.
type Figures = [f64; 3];

/// Printed figures of a row, by budget (without noise, then strict) and by table.
type Printed = [[Figures; 3]; 2];

/// The rows of the paper: names and printed figures.
#[allow(
    clippy::approx_constant,
    reason = "0.318 is a printed F1 score, not an approximation of 1/pi"
)]
const PRINTED: [(&str, Printed); 4] = [
    (
        "AIM-L1",
        [
            [
                [0.057, 0.680, 0.318],
                [0.013, 0.622, 0.605],
                [0.297, 0.708, 0.582],
            ],
            [
                [0.415, 0.456, 0.338],
                [0.019, 0.625, 0.628],
                [0.361, 0.601, 0.299],
            ],
        ],
    ),
    (
        "FHAIM-L1",
        [
            [
                [0.105, 0.693, 0.104],
                [0.031, 0.544, 0.139],
                [0.321, 0.708, 0.491],
            ],
            [
                [0.475, 0.591, 0.349],
                [0.035, 0.532, 0.504],
                [0.382, 0.535, 0.355],
            ],
        ],
    ),
    (
        "AIM-L2",
        [
            [
                [0.058, 0.684, 0.284],
                [0.014, 0.625, 0.610],
                [0.300, 0.699, 0.577],
            ],
            [
                [0.441, 0.614, 0.307],
                [0.028, 0.580, 0.597],
                [0.435, 0.519, 0.278],
            ],
        ],
    ),
    (
        "FHAIM-L2",
        [
            [
                [0.058, 0.684, 0.321],
                [0.014, 0.625, 0.610],
                [0.298, 0.701, 0.583],
            ],
            [
                [0.476, 0.616, 0.495],
                [0.028, 0.575, 0.620],
                [0.444, 0.549, 0.218],
            ],
        ],
    ),
];

/// Accuracy and F1 of the same classifier trained on real records, as printed.
const PRINTED_REAL: [[f64; 2]; 3] = [[0.702, 0.585], [0.635, 0.625], [0.708, 0.602]];

/// Arguments of `bench paper`.
#[derive(Debug, Args)]
pub struct PaperArguments {
    /// Datasets to run on: breast-cancer, compas, diabetes [default: all]
    pub datasets: Vec<String>,
    /// Number of runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Maximum memory for a model, in MB
    #[arg(long, value_name = "MB", default_value_t = 8)]
    pub model_mb: usize,
    /// Number of rounds for each attribute (T divided by the number of attributes) of the paper's mechanisms
    #[arg(long, value_name = "N", default_value_t = 4.0)]
    pub rounds: f64,
    /// Delta of the strict budget
    #[arg(long, value_name = "D", default_value_t = 1e-5)]
    pub delta: f64,
    #[command(flatten)]
    pub own: OwnTables,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// A mean with its standard error and the printed figure.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figure {
    mean: f64,
    standard_error: Option<f64>,
    printed: Option<f64>,
}

/// The results of a mechanism on a table at one budget.
#[derive(Debug, Serialize)]
struct Row {
    dataset: String,
    mechanism: &'static str,
    epsilon: &'static str,
    seeds: usize,
    error: Option<Figure>,
    accuracy: Figure,
    f1: Figure,
}

/// Runs the command: the paper's mechanisms, and fhaim's own.
pub fn run(arguments: &PaperArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    for dataset in wanted(arguments)? {
        let bench = Bench {
            arguments,
            progress,
            dataset: &dataset,
        };
        rows.push(&bench.real()?)?;
        for (name, score) in EXACT {
            rows.push(&bench.row(name, 0, &Means::Exact(score))?)?;
        }
        for (name, mechanism) in contenders(arguments.rounds)? {
            rows.push(&bench.row(name, 1, &Means::Private(&*mechanism))?)?;
        }
    }
    rows.end("")
}

/// Reads the requested tables: the named ones and the user's own, or those of the paper.
fn wanted(arguments: &PaperArguments) -> Result<Vec<Dataset>, Error> {
    let named = match (&arguments.datasets[..], arguments.own.data.is_empty()) {
        ([], true) => TABLES.map(str::to_owned).to_vec(),
        (named, _) => named.to_vec(),
    };
    tables(&named, &arguments.own)
}

/// A bench of one table.
struct Bench<'a> {
    arguments: &'a PaperArguments,
    progress: &'a Progress,
    dataset: &'a Dataset,
}

/// The way in which records are made.
enum Means<'a> {
    /// A mechanism, at the strict budget.
    Private(&'a dyn Mechanism),
    /// Ten rounds without noise.
    Exact(ExactScore),
}

impl Bench<'_> {
    /// Measures the records of one row.
    fn row(&self, name: &'static str, budget: usize, means: &Means) -> Result<Row, Error> {
        let epsilon = BUDGETS[budget];
        let label = format!("{} {name} e{epsilon}", self.dataset.name);
        let phase = (self.progress).counted(label, self.arguments.seeds, "runs");
        let mut found = Vec::new();
        for seed in 0..self.arguments.seeds {
            found.extend(self.trial(means, seed)?);
            phase.reach(seed + 1);
        }
        phase.finish();
        let printed = printed(&self.dataset.name, name, budget);
        let figure = |which: usize| figure(&found, which, printed.map(|p| p[which]));
        Ok(Row {
            dataset: self.dataset.name.clone(),
            mechanism: name,
            epsilon,
            seeds: found.len(),
            error: Some(figure(0)),
            accuracy: figure(1),
            f1: figure(2),
        })
    }

    /// Measures the classifier that is trained on real records.
    fn real(&self) -> Result<Row, Error> {
        let mut found = Vec::new();
        for seed in 0..self.arguments.seeds {
            let (seen, unseen) = split(&self.dataset.table, &mut StdRng::seed_from_u64(seed))?;
            let prediction = predict_held_out(&seen, &seen, &unseen)?;
            found.extend(prediction.map(|p: Prediction| [0.0, p.real.accuracy, p.real.f1]));
        }
        let table = TABLES.iter().position(|&table| table == self.dataset.name);
        let printed = table.map(|table| PRINTED_REAL[table]);
        Ok(Row {
            dataset: self.dataset.name.clone(),
            mechanism: "real",
            epsilon: "",
            seeds: found.len(),
            error: None,
            accuracy: figure(&found, 1, printed.map(|p| p[0])),
            f1: figure(&found, 2, printed.map(|p| p[1])),
        })
    }

    /// Returns error, accuracy and F1 of one run, or `None` if the table's target cannot be predicted.
    fn trial(&self, means: &Means, seed: u64) -> Result<Option<Figures>, Error> {
        let table = &self.dataset.table;
        let mut rng = StdRng::seed_from_u64(seed);
        let (seen, unseen) = split(table, &mut rng)?;
        let rho = accounting::rho(EPSILON, self.arguments.delta)?;
        let mut job = MechanismJob::new(table.domain().clone(), rho, seen.records() as u64);
        job.model_bytes = self.arguments.model_mb.saturating_mul(1_000_000);
        let columns = match means {
            Means::Private(mechanism) => {
                let outcome = mechanism.run_in_the_clear(&seen, &job, &mut rng, &mut |_| {})?;
                outcome.model.sample(seen.records(), &mut rng)
            }
            Means::Exact(score) => {
                let model = exact::model(&seen, &job, *score)?;
                model.sample(seen.records(), &mut rng)
            }
        };
        let drawn =
            Table::new(table.shared_schema(), columns).map_err(fhaim_domain::Error::from)?;
        let error = workload_error(&seen, &drawn, &table.domain().pairs())?;
        let prediction = predict_held_out(&seen, &drawn, &unseen)?;
        Ok(prediction.map(|p| [error, p.synthetic.accuracy, p.synthetic.f1]))
    }
}

/// A mechanism with its options, under the paper's name.
type Contender = (&'static str, Box<dyn Mechanism>);

/// Returns the four mechanisms of the paper with a number of rounds for each attribute, and the default mechanism.
fn contenders(rounds: f64) -> Result<Vec<Contender>, Error> {
    let aim = |score: &str| {
        (
            "aim",
            json!({ "score": score, "rounds_per_attribute": rounds }),
        )
    };
    let rows = [
        ("AIM-L1", aim("l1")),
        ("FHAIM-L1", aim("polynomial-l1")),
        ("AIM-L2", aim("squared-l2")),
        (
            "FHAIM-L2",
            ("fhaim-l2", json!({ "rounds_per_attribute": rounds })),
        ),
        ("staged", ("staged", json!({}))),
    ];
    let contender = |(name, (mechanism, options)): (_, (&str, serde_json::Value))| {
        let mechanism: MechanismName = mechanism.parse()?;
        Ok((name, mechanism.with_options(&options)?))
    };
    rows.into_iter().map(contender).collect()
}

/// Returns the printed figures of a row.
fn printed(dataset: &str, mechanism: &str, budget: usize) -> Option<Figures> {
    let table = TABLES.iter().position(|&table| table == dataset)?;
    let (_, figures) = PRINTED.iter().find(|(name, _)| *name == mechanism)?;
    figures.get(budget)?.get(table).copied()
}

fn figure(found: &[Figures], which: usize, printed: Option<f64>) -> Figure {
    let values: Vec<f64> = found.iter().map(|figures| figures[which]).collect();
    let (mean, standard_error) = mean_and_error(&values);
    Figure {
        mean,
        standard_error,
        printed,
    }
}

/// Splits a table into training records and held-out records.
fn split(table: &Table, rng: &mut StdRng) -> Result<(Table, Table), Error> {
    let records = (table.records() as f64 * SEEN).round() as usize;
    Ok(table
        .split(records, rng)
        .map_err(fhaim_domain::Error::from)?)
}

const HEADING: &str = "table          mechanism  epsilon  error (s.e.)   printed  accuracy (s.e.)  printed     F1 (s.e.)     printed  \
     seeds\n";

fn line(row: &Row) -> String {
    let shown = |figure: Option<Figure>| match figure {
        Some(figure) => {
            let printed = figure.printed.map_or(String::new(), |p| format!("{p:.3}"));
            let error = bracketed(figure.standard_error, 3);
            format!("{:.3} {error} {printed:>8}", figure.mean)
        }
        None => String::new(),
    };
    format!(
        "{:14} {:9} {:>8}  {:>22}  {:>24}  {:>22} {:>6}\n",
        row.dataset,
        row.mechanism,
        row.epsilon,
        shown(row.error),
        shown(Some(row.accuracy)),
        shown(Some(row.f1)),
        row.seeds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_figures_belong_to_known_mechanisms() {
        let names: Vec<&str> = contenders(4.0)
            .unwrap()
            .iter()
            .map(|(name, _)| *name)
            .collect();
        assert!(PRINTED.iter().all(|(name, _)| names.contains(name)));
        assert_eq!(
            printed("diabetes", "FHAIM-L2", 1),
            Some([0.444, 0.549, 0.218])
        );
        assert_eq!(printed("compas", "AIM-L1", 0), Some([0.013, 0.622, 0.605]));
        assert_eq!(printed("compas", "staged", 0), None);
        assert_eq!(printed("adult-32", "AIM-L1", 0), None);
    }
}
