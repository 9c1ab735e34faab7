//! `fhaim-lab bench federated`: repeats FLAIM's tables, and shows printed figures next to the results.
//!
//! For each seed, nine tenths of the records are split among parties, and the rest is held out. The workload is 64
//! random triples, or those of a file. Errors are mean L1 distances of shares, for as many records drawn from the model
//! as were split.

mod contender;
mod printed;
mod source;
mod trial;

use std::path::PathBuf;

use clap::Args;
use fhaim_domain::{Clique, Domain};
use fhaim_federated::{Accounting, heterogeneity, partition::Rule, partition::partition};
use fhaim_files::progress::Progress;
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;

use self::contender::Contender;
use self::source::Source;
use self::trial::{Trial, trial};
use super::rows::{Rows, bracketed};
use super::trial::mean_and_error;
use crate::{args::megabytes, error::Error};

/// The end of the text of `--help`.
pub const BENCH_FEDERATED_EXAMPLES: &str = "\
Examples:
  research/bench/tables.sh data && FHAIM_DATA_DIR=data fhaim-lab bench federated magic census --seeds 3
  FHAIM_DATA_DIR=data fhaim-lab bench federated adult --method aug-private --epsilon 5
  FHAIM_DATA_DIR=data fhaim-lab bench federated adult --accounting printed
  fhaim-lab bench federated synthfs:2 --method naive --method aug-private
  FHAIM_DATA_DIR=data fhaim-lab bench federated adult magic --heterogeneity

A table NAME is NAME.csv with NAME.schema.json in FHAIM_DATA_DIR. The table synthfs:A is made for \
each run: 500 records for each party, whose features have means from a Zipf distribution with \
exponent A.

Printed figures are shown only at the paper's setting: 100 parties by `cluster`, T = R = 10, \
p = 0.1 and s = 1. dist-aim computes in the clear what servers would compute on secret shares. \
Printed accounting is not private.";

/// delta of all of FLAIM's figures.
const DELTA: f64 = 1e-5;

/// Arguments of `bench federated`.
#[derive(Debug, Args)]
pub struct FederatedArguments {
    /// Names of tables
    #[arg(required = true, value_name = "NAME")]
    pub tables: Vec<String>,
    /// Measure how much the parties differ under each rule, and run no method
    #[arg(long, conflicts_with_all = ["method", "epsilon", "rule", "participation", "rounds", "most_rounds", "local_steps", "measure_share", "anneal", "accounting", "model_mb", "fit_steps", "workload"])]
    pub heterogeneity: bool,
    /// Method to run, by its complete name (may be repeated) [default: all]
    #[arg(long, value_name = "METHOD")]
    pub method: Vec<Contender>,
    /// Privacy budget (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [1.0], allow_negative_numbers = true)]
    pub epsilon: Vec<f64>,
    /// Number of runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Rule for splitting records among parties
    #[arg(long, value_name = "RULE", default_value = "cluster")]
    pub rule: Rule,
    /// Number of parties
    #[arg(long, value_name = "K", default_value_t = 100)]
    pub parties: usize,
    /// Probability that a party takes part in a round
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.1,
        allow_negative_numbers = true
    )]
    pub participation: f64,
    /// Number of rounds; with --anneal, the maximum [default: 10; with --anneal, 8 per column]
    #[arg(long, value_name = "T")]
    pub rounds: Option<u32>,
    /// Maximum number of rounds per party [default: 3; with --anneal or printed accounting, all]
    #[arg(long, value_name = "R")]
    pub most_rounds: Option<u32>,
    /// Number of choices that a party makes in a round
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub local_steps: u32,
    /// Share of the budget for measurements; the rest is for choices
    #[arg(
        long,
        value_name = "R",
        default_value_t = 0.9,
        allow_negative_numbers = true
    )]
    pub measure_share: f64,
    /// Halve the noise after a round that hardly changed the model
    #[arg(long)]
    pub anneal: bool,
    /// corrected: charge every release; printed: as the FLAIM paper, which charges too little
    #[arg(long, value_name = "RULES", default_value_t = Accounting::Corrected)]
    pub accounting: Accounting,
    /// Maximum memory for a model, in MB
    #[arg(long, value_name = "MB", default_value_t = 80.0, value_parser = megabytes)]
    pub model_mb: f64,
    /// Maximum number of steps of each fit [default: 100 in a round, and 1000 at the end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub fit_steps: Option<u64>,
    /// JSON with the workload's triples of column names, for all runs [default: random triples for each run]
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// Default number of rounds.
const ROUNDS: u32 = 10;

/// Default number of rounds per column with annealing (FLAIM, appendix B.4).
const ANNEALED_ROUNDS: u32 = 8;

/// Default number of rounds per party.
const MOST_ROUNDS: u32 = 3;

impl FederatedArguments {
    fn rounds(&self, domain: &Domain) -> u32 {
        let usual = match self.anneal {
            true => ANNEALED_ROUNDS.saturating_mul(u32::try_from(domain.len()).unwrap_or(u32::MAX)),
            false => ROUNDS,
        };
        self.rounds.unwrap_or(usual)
    }

    fn most_rounds(&self, rounds: u32) -> u32 {
        let charges_all = self.anneal || self.accounting == Accounting::Printed;
        let usual = if charges_all { rounds } else { MOST_ROUNDS };
        self.most_rounds.unwrap_or(usual).min(rounds)
    }

    /// Returns how many rounds a record is charged for at most: DistAIM and AIM charge all of them.
    fn charged_rounds(&self, contender: Contender, rounds: u32) -> u32 {
        match contender {
            Contender::DistAim | Contender::Aim => rounds,
            _ => self.most_rounds(rounds),
        }
    }

    /// Whether this is the setting of the paper's tables 1 and 2: its parties, rounds and participation, and every
    /// record charged for all rounds.
    fn is_papers_setting(&self, contender: Contender) -> bool {
        self.rule == Rule::Cluster
            && self.parties == 100
            && self.participation == 0.1
            && self.rounds.unwrap_or(ROUNDS) == ROUNDS
            && self.charged_rounds(contender, ROUNDS) == ROUNDS
            && self.local_steps == 1
            && !self.anneal
    }
}

/// The results of a method on a table at one budget.
#[derive(Debug, Serialize)]
struct Row {
    table: String,
    method: &'static str,
    epsilon: f64,
    /// The rule of the partition; `synthfs` for a table that is made with its parties.
    rule: String,
    parties: usize,
    participation: f64,
    rounds: u32,
    most_rounds: u32,
    local_steps: u32,
    measure_share: f64,
    anneal: bool,
    accounting: Accounting,
    seeds: usize,
    /// Mean L1 error over the workload, and its standard error.
    error: f64,
    error_standard_error: Option<f64>,
    /// Mean L1 error over all subsets of the workload's triples.
    error_subsets: f64,
    /// Mean negative log-likelihood of held-out records, and its standard error.
    nll: f64,
    nll_standard_error: Option<f64>,
    /// Area under the ROC curve of trees trained on synthetic records, if the target is binary.
    auc: Option<f64>,
    /// Megabytes of masked cells and models that a party sent and received, over those that took part.
    traffic_mb: Option<f64>,
    /// Printed error and NLL, if available.
    printed_error: Option<f64>,
    printed_nll: Option<f64>,
    seconds: f64,
    trials: Vec<Trial>,
}

/// How much the parties of a rule differ.
#[derive(Debug, Serialize)]
struct Skew {
    table: String,
    rule: &'static str,
    seeds: u64,
    heterogeneity: f64,
    standard_error: Option<f64>,
    printed: Option<f64>,
}

/// Runs the command: every method on every table, or measurements of the partitions.
pub fn run(arguments: &FederatedArguments, progress: &Progress) -> Result<(), Error> {
    if arguments.heterogeneity {
        return measure_partitions(arguments, progress);
    }
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    for name in &arguments.tables {
        let source = Source::read(name)?;
        for contender in Contender::ALL {
            if !wanted(arguments, contender) {
                continue;
            }
            for &epsilon in &arguments.epsilon {
                let label = format!("{name} {} e{epsilon}", contender.name());
                let phase = progress.counted(label, arguments.seeds, "runs");
                let mut trials = Vec::new();
                for seed in 0..arguments.seeds {
                    trials.push(trial(&source, contender, arguments, epsilon, seed)?);
                    phase.reach(seed + 1);
                }
                phase.finish();
                rows.push(&row(arguments, (name, &source), contender, epsilon, trials))?;
            }
        }
    }
    rows.end("")
}

fn wanted(arguments: &FederatedArguments, contender: Contender) -> bool {
    arguments.method.is_empty() || arguments.method.contains(&contender)
}

fn row(
    arguments: &FederatedArguments,
    (table, source): (&str, &Source),
    contender: Contender,
    epsilon: f64,
    trials: Vec<Trial>,
) -> Row {
    let of = |value: fn(&Trial) -> f64| {
        let values: Vec<f64> = trials.iter().map(value).collect();
        mean_and_error(&values)
    };
    let (error, error_standard_error) = of(|trial| trial.error);
    let (nll, nll_standard_error) = of(|trial| trial.nll);
    let mean = |value: fn(&Trial) -> Option<f64>| {
        let values: Vec<f64> = trials.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| mean_and_error(&values).0)
    };
    let printed = match arguments.is_papers_setting(contender) {
        true => printed::figures(table, contender.name(), epsilon),
        false => None,
    };
    let rounds = trials.iter().map(|trial| trial.rounds).max().unwrap_or(0);
    Row {
        table: table.to_owned(),
        method: contender.name(),
        epsilon,
        rule: source.rule(&arguments.rule),
        parties: arguments.parties,
        participation: arguments.participation,
        rounds,
        most_rounds: arguments.charged_rounds(contender, rounds),
        local_steps: arguments.local_steps,
        measure_share: arguments.measure_share,
        anneal: arguments.anneal,
        accounting: arguments.accounting,
        seeds: trials.len(),
        error,
        error_standard_error,
        error_subsets: of(|trial| trial.error_subsets).0,
        nll,
        nll_standard_error,
        auc: mean(|trial| trial.auc),
        traffic_mb: mean(|trial| trial.traffic_mb),
        printed_error: printed.and_then(|(error, _)| error),
        printed_nll: printed.map(|(_, nll)| nll),
        seconds: of(|trial| trial.seconds).0,
        trials,
    }
}

const HEADING: &str = "table      method              epsilon  error (s.e.)    printed  subsets  NLL (s.e.)       printed    AUC  \
     seconds  seeds\n";

fn line(row: &Row) -> String {
    let optional = |value: Option<f64>, digits| match value {
        Some(value) => format!("{value:.digits$}"),
        None => String::new(),
    };
    format!(
        "{:10} {:19} {:>7}  {:.3} {} {:>10}  {:>7.3}  {:>7.2} {} {:>10}  {:>5} {:>8.1} {:>6}\n",
        row.table,
        row.method,
        row.epsilon,
        row.error,
        bracketed(row.error_standard_error, 3),
        optional(row.printed_error, 2),
        row.error_subsets,
        row.nll,
        bracketed(row.nll_standard_error, 2),
        optional(row.printed_nll, 2),
        optional(row.auc, 3),
        row.seconds,
        row.seeds
    )
}

/// The rules for which FLAIM prints figures.
const RULES: [(&str, Rule); 4] = [
    ("ns", Rule::Equal),
    ("cluster", Rule::Cluster),
    ("dli:0.1", Rule::ClassShares(0.1)),
    ("dli:0.8", Rule::ClassShares(0.8)),
];

fn measure_partitions(arguments: &FederatedArguments, progress: &Progress) -> Result<(), Error> {
    let heading = "table      rule      heterogeneity (s.e.)  printed\n";
    let mut skews = Rows::begin(arguments.json, heading, skew_line)?;
    for name in &arguments.tables {
        let Source::Table(table) = Source::read(name)? else {
            return Err(Error::Usage(format!(
                "{name} has no rule for splitting its records: leave out --heterogeneity"
            )));
        };
        let cliques: Vec<Clique> = (1..=3).flat_map(|k| table.domain().subsets(k)).collect();
        for (rule_name, rule) in RULES {
            let phase = progress.counted(format!("{name} {rule_name}"), arguments.seeds, "draws");
            let mut found = Vec::new();
            for seed in 0..arguments.seeds {
                let mut rng = StdRng::seed_from_u64(seed);
                let parties = partition(&table, arguments.parties, &rule, &mut rng)?;
                found.push(heterogeneity(&table, &parties, &cliques)?);
                phase.reach(seed + 1);
            }
            phase.finish();
            let (mean, standard_error) = mean_and_error(&found);
            skews.push(&Skew {
                table: name.clone(),
                rule: rule_name,
                seeds: arguments.seeds,
                heterogeneity: mean,
                standard_error,
                printed: match arguments.parties {
                    100 => printed::heterogeneity(name, rule_name),
                    _ => None,
                },
            })?;
        }
    }
    skews.end("")
}

fn skew_line(skew: &Skew) -> String {
    let printed = skew.printed.map(|figure| format!("{figure:.3}"));
    format!(
        "{:10} {:9} {:>13.3} {} {:>8}\n",
        skew.table,
        skew.rule,
        skew.heterogeneity,
        bracketed(skew.standard_error, 3),
        printed.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use fhaim_federated::Method;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: FederatedArguments,
    }

    fn is_papers_setting(flags: &str, contender: Contender) -> bool {
        let words = ["bench", "adult"]
            .into_iter()
            .chain(flags.split_whitespace());
        let command = Command::try_parse_from(words).unwrap();
        command.arguments.is_papers_setting(contender)
    }

    #[test]
    fn printed_figures_appear_only_at_the_papers_setting() {
        let naive = Contender::Flaim(Method::Naive);
        assert!(is_papers_setting("--accounting printed", naive));
        assert!(is_papers_setting("--most-rounds 10", naive));
        assert!(!is_papers_setting("", naive));
        assert!(is_papers_setting("", Contender::DistAim));
        assert!(is_papers_setting("", Contender::Aim));
        let others = [
            "--rule ns",
            "--rule dli:0.1",
            "--parties 50",
            "--participation 0.2",
            "--rounds 20",
            "--local-steps 4",
            "--anneal",
        ];
        for flags in others {
            let flags = format!("--accounting printed {flags}");
            assert!(!is_papers_setting(&flags, naive), "{flags}");
            assert!(!is_papers_setting(&flags, Contender::DistAim), "{flags}");
        }
    }
}
