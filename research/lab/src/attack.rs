//! `fhaim-lab attack`: tests whether a model reveals the records that it was made from.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use fhaim_domain::{Schema, Table, counted};
use fhaim_eval::{Attack, MonteCarlo, ScoreAttacks, monte_carlo, score_attacks};
use fhaim_files::progress::Progress;
use fhaim_synth::FittedModel;
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;

use crate::{
    args::{FormatArguments, StrictnessArguments, count},
    error::Error,
    input, output, size,
};

/// The end of the text of `--help`.
pub const ATTACK_EXAMPLES: &str = "\
Examples:
  fhaim local --data members.csv --schema a.json --epsilon 1 --out a.csv
  fhaim-lab attack --model a.model --schema a.json --members members.csv --others others.csv

Members are the records that the model was made from; others are records of the same population.";

/// The most tries of the Monte Carlo attack. With them, its result is accurate to half a percent.
const MAX_TRIES: i64 = 10_000;

/// Arguments of `attack`.
#[derive(Debug, Args)]
pub struct AttackArguments {
    /// Model file, written by `run` and `local`, or by --model-out of `download`
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Schema of all tables
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Records that the model was made from (members)
    #[arg(long, value_name = "CSV")]
    pub members: PathBuf,
    /// Records of the same population that the model was not made from
    #[arg(long, value_name = "CSV")]
    pub others: PathBuf,
    /// Number of records to draw for the Monte Carlo attack
    #[arg(long, value_name = "N", default_value = "100000", value_parser = count)]
    pub drawn: NonZeroUsize,
    /// Number of members, and of others, in each try of the Monte Carlo attack [default: 100, or all if there are
    /// fewer]
    #[arg(long, value_name = "M", value_parser = count)]
    pub records: Option<NonZeroUsize>,
    /// Number of tries of the Monte Carlo attack
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=MAX_TRIES)
    )]
    pub tries: u32,
    /// Maximum memory for reading the model, in MB
    #[arg(long, value_name = "MB", default_value_t = 1000)]
    pub model_mb: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

/// Results of all attacks on one model.
#[derive(Clone, Debug, Serialize)]
pub struct Attacks {
    /// Attacks by the model's density; `None` if the model has no density.
    #[serde(flatten)]
    pub scores: Option<ScoreAttacks>,
    /// Attack by records that the model generates.
    pub monte_carlo: Attack,
}

/// Runs the command: reads a model and two tables, attacks the model, and prints the results.
pub fn run(arguments: &AttackArguments, progress: &Progress) -> Result<(), Error> {
    let schema = input::schema(&arguments.schema)?;
    size::check_drawn(arguments.drawn.get(), schema.columns().len(), "--drawn")?;
    let model = input::model(&arguments.model, arguments.model_mb, &schema)?;
    let read = |path: &PathBuf, schema: Schema| {
        input::table(path, schema, &arguments.format, &arguments.strictness)
    };
    let members = read(&arguments.members, schema.clone())?;
    let others = read(&arguments.others, schema)?;
    let most = members.records().min(others.records());
    if let Some(records) = arguments.records.filter(|records| records.get() > most) {
        return Err(Error::Usage(format!(
            "--records {records}: with {} and {}, a try can have from 1 to {most} of each",
            counted(members.records(), "member"),
            counted(others.records(), "other")
        )));
    }
    let options = MonteCarlo {
        records: arguments.records.map_or(most.min(100), NonZeroUsize::get),
        tries: arguments.tries as usize,
        ..MonteCarlo::default()
    };
    let attacks = attack(
        model.as_ref(),
        (&members, &others),
        arguments.drawn.get(),
        &options,
        progress,
    )?;
    if arguments.json {
        return output::print_json(&attacks);
    }
    output::print(&text(&attacks))
}

/// Runs all attacks on a model. The randomness is not secret: it is derived from the options' seed.
pub fn attack(
    model: &dyn FittedModel,
    (members, others): (&Table, &Table),
    drawn: usize,
    options: &MonteCarlo,
    progress: &Progress,
) -> Result<Attacks, Error> {
    let scores = match model.density() {
        Some(density) => {
            let phase = progress.uncounted("densities");
            let of = |table: &Table| {
                let scores = density.log_densities(table.columns());
                scores.map_err(fhaim_synth::Error::from)
            };
            let scores = score_attacks(&of(members)?, &of(others)?, options.seed)?;
            phase.finish();
            Some(scores)
        }
        None => None,
    };
    let phase = progress.uncounted("draw");
    let drawn = model.sample(drawn, &mut StdRng::seed_from_u64(options.seed));
    phase.finish();
    let phase = progress.uncounted("nearest records");
    let monte_carlo = monte_carlo(members.columns(), others.columns(), &drawn, options)?;
    phase.finish();
    Ok(Attacks {
        scores,
        monte_carlo,
    })
}

fn text(attacks: &Attacks) -> String {
    let mut text = String::from("attack           found  by guessing\n");
    let mut line = |name: &str, attack: Attack| {
        text.push_str(&format!(
            "{name:15} {:>6.3} {:>12.3}\n",
            attack.found, attack.chance
        ));
    };
    if let Some(scores) = attacks.scores {
        line("white box", scores.white_box);
        line("total variation", scores.total_variation);
        line("likelihood", scores.likelihood);
    }
    line("monte carlo", attacks.monte_carlo);
    text
}
