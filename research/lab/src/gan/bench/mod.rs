//! `fhaim-lab gan bench`: measures the quality of images that networks generate, and how much they reveal about training
//! records.
//!
//! Four fifths of the images train the networks, and a classifier that judges generated records. For the attacks, other
//! networks are trained on a tenth of these images (the members); the other nine tenths are the others. The remaining
//! fifth of all images determines the axes of the Monte Carlo attack.

mod printed;
mod tables;

use std::path::PathBuf;
use std::time::Instant;

use fhaim_eval::MonteCarlo;
use fhaim_federated::partition::Rule;
use fhaim_files::progress::Progress;
use fhaim_gan::{Attacks, Examples, Judge, Model, Quality, attack};
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use crate::gan::args::BenchArguments;
use crate::gan::data::{self, CLASSES};
use crate::gan::failure::Failure;
use crate::gan::method::{Kept, Method, Protected, federation, keep, lambda, train_by};

/// delta of all budgets.
const DELTA: f64 = 1e-5;

/// Default budgets, from the paper. The flags' help texts repeat them.
const RECORD_EPSILON: f64 = 4.01;
const PARTY_EPSILON: f64 = 64.11;

/// Share of the images that train networks, and share of these images that are members.
const SEEN: f64 = 0.8;
const MEMBERS: f64 = 0.1;

/// The results of a method under a rule, with one seed.
#[derive(Debug, Serialize)]
struct Row {
    method: String,
    rule: String,
    seed: u64,
    #[serde(flatten)]
    settings: Settings,
    epsilon: Option<f64>,
    multiplier: Option<f64>,
    #[serde(flatten)]
    quality: Quality,
    reference: Reference,
    printed_quality: Option<[f64; 2]>,
    attacks: Option<Attacks>,
    /// White box and Monte Carlo in percent, and total variation.
    printed_attacks: Option<[f64; 3]>,
    train_seconds: f64,
    attack_seconds: f64,
}

/// The settings of a row that the figures of the chapter vary.
#[derive(Debug, Serialize)]
struct Settings {
    parties: usize,
    steps: usize,
    /// The requested budget.
    budget: Option<f64>,
    participation: Option<f64>,
    local_steps: Option<usize>,
    mu: Option<f32>,
    lambda: Option<f32>,
    rate: f32,
}

impl Settings {
    fn of(arguments: &BenchArguments, method: Method) -> Self {
        let network = &arguments.network;
        let federation = method
            .is_federated()
            .then(|| federation(method, network, None));
        Self {
            parties: arguments.parties,
            steps: network.steps,
            budget: budget(arguments, method).map(|(epsilon, _)| epsilon),
            participation: federation.map(|federation| federation.rate),
            local_steps: federation.map(|federation| federation.local_steps),
            mu: federation.map(|federation| federation.mu),
            lambda: (method == Method::Privgan).then(|| lambda(network)),
            rate: network.rate,
        }
    }
}

/// The classifier that judges generated records, and its results for real ones.
#[derive(Debug)]
struct Judgement {
    judge: Judge,
    reference: Reference,
}

/// The results of the classifier for unseen real records.
#[derive(Clone, Copy, Debug, Serialize)]
struct Reference {
    /// Share of the records whose class it predicts correctly.
    accuracy: f64,
    quality: Quality,
}

/// Images with their classes.
struct Images {
    examples: Examples,
    labels: Vec<u8>,
}

impl Images {
    fn select(&self, numbers: &[usize]) -> Result<Self, Failure> {
        Ok(Self {
            examples: self.examples.select(numbers)?,
            // The numbers are those of images, and each image has a class.
            labels: numbers.iter().map(|&n| self.labels[n]).collect(),
        })
    }
}

/// Runs the bench, and prints each row as soon as it is complete.
pub fn run(arguments: &BenchArguments, progress: &Progress) -> Result<(), Failure> {
    arguments.check()?;
    let methods = arguments.methods();
    if let Some(table) = &arguments.table {
        return tables::run(arguments, (table, methods), progress);
    }
    let all = read(&arguments.images)?;
    data::check_drawn("--drawn", arguments.drawn, all.examples.shape())?;
    if !arguments.json {
        data::print(HEAD);
    }
    for seed in 0..arguments.seeds as u64 {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut numbers: Vec<usize> = (0..all.labels.len()).collect();
        numbers.shuffle(&mut rng);
        let (seen, unseen) = numbers.split_at((numbers.len() as f64 * SEEN).round() as usize);
        let (seen, unseen) = (all.select(seen)?, all.select(unseen)?);
        let judgement = judge(&seen, &unseen, (seed, &mut rng), progress)?;
        for &method in methods {
            for rule in rules(arguments, method) {
                let trial = (method, rule.as_str(), seed);
                let row = measure(arguments, (&seen, &unseen, &judgement), trial, progress)?;
                show(&row, arguments.json);
            }
        }
    }
    Ok(())
}

/// Trains the classifier, and reports its results for unseen images on standard error.
fn judge(
    seen: &Images,
    unseen: &Images,
    (seed, rng): (u64, &mut ChaCha20Rng),
    progress: &Progress,
) -> Result<Judgement, Failure> {
    let phase = progress.uncounted("train the classifier");
    let judge = Judge::train(&seen.examples, &seen.labels, CLASSES, rng)?;
    phase.finish();
    let reference = Reference {
        accuracy: judge.accuracy(&unseen.examples, &unseen.labels)?,
        quality: judge.quality(&unseen.examples, &seen.examples)?,
    };
    let quality = reference.quality;
    eprintln!(
        "seed {seed}: the classifier is right on {:.1}% of {} unseen images; these have IS {:.2}, FID {:.2}, entropy \
         {:.3}, diversity {:.3}",
        100.0 * reference.accuracy,
        unseen.labels.len(),
        quality.inception,
        quality.frechet,
        quality.entropy,
        quality.diversity
    );
    Ok(Judgement { judge, reference })
}

fn read(name: &str) -> Result<Images, Failure> {
    let folder = std::env::var_os("FHAIM_DATA_DIR")
        .map(PathBuf::from)
        .ok_or(Failure::NoData)?;
    let examples = data::images(&folder.join(format!("{name}-images.idx3")).into())?;
    let labels = data::labels(&folder.join(format!("{name}-labels.idx1")))?;
    if labels.len() != examples.len() {
        return Err(Failure::Usage(
            "the numbers of classes and of images differ".to_owned(),
        ));
    }
    Ok(Images { examples, labels })
}

fn measure(
    arguments: &BenchArguments,
    (seen, unseen, judgement): (&Images, &Images, &Judgement),
    trial: (Method, &str, u64),
    progress: &Progress,
) -> Result<Row, Failure> {
    let started = Instant::now();
    let (method, rule, seed) = trial;
    let (model, kept) = trained(arguments, seen, trial, progress)?;
    let train_seconds = started.elapsed().as_secs_f64();
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let made = model.sample(seen.labels.len(), &mut rng)?;
    let quality = judgement.judge.quality(&made, &seen.examples)?;
    let started = Instant::now();
    let attacks = match arguments.no_attacks {
        true => None,
        false => Some(attacked(arguments, (seen, unseen), trial, progress)?),
    };
    Ok(Row {
        method: method.name(),
        rule: rule.to_owned(),
        seed,
        settings: Settings::of(arguments, method),
        epsilon: kept.as_ref().map(|kept| kept.epsilon),
        multiplier: kept.map(|kept| kept.multiplier),
        quality,
        reference: judgement.reference,
        printed_quality: printed::quality(arguments, method, rule),
        attacks,
        printed_attacks: printed::attacks(arguments, method, rule),
        train_seconds,
        attack_seconds: started.elapsed().as_secs_f64(),
    })
}

fn trained(
    arguments: &BenchArguments,
    images: &Images,
    (method, rule, seed): (Method, &str, u64),
    progress: &Progress,
) -> Result<(Model, Option<Kept>), Failure> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let rule: Rule = rule.parse().map_err(Failure::Usage)?;
    let split = arguments.split_among.unwrap_or(arguments.parties);
    let mut parties = data::deal(&images.examples, &images.labels, (split, &rule), &mut rng)?;
    parties.truncate(arguments.parties);
    let network = &arguments.network;
    let kept = keep(method, &parties, network, budget(arguments, method))?;
    let drawing = (&mut rng, progress);
    let model = train_by(method, &parties, network, kept.as_ref(), drawing)?;
    Ok((model, kept))
}

/// Returns the rules for a method. Central training does not split records, so it runs with the first rule only.
fn rules(arguments: &BenchArguments, method: Method) -> impl Iterator<Item = &String> {
    let most = if method == Method::Central {
        1
    } else {
        usize::MAX
    };
    arguments.rule.iter().take(most)
}

/// Returns (epsilon, delta) of a method with a budget.
fn budget(arguments: &BenchArguments, method: Method) -> Option<(f64, f64)> {
    method.protected().map(|unit| match unit {
        Protected::Record => (arguments.record_epsilon.unwrap_or(RECORD_EPSILON), DELTA),
        Protected::Party => (arguments.party_epsilon.unwrap_or(PARTY_EPSILON), DELTA),
    })
}

/// Trains networks on the members only, and attacks them.
fn attacked(
    arguments: &BenchArguments,
    (seen, unseen): (&Images, &Images),
    trial: (Method, &str, u64),
    progress: &Progress,
) -> Result<Attacks, Failure> {
    let numbers: Vec<usize> = (0..seen.labels.len()).collect();
    let (members, others) = numbers.split_at((numbers.len() as f64 * MEMBERS).round() as usize);
    let (members, others) = (seen.select(members)?, seen.select(others)?);
    let (model, _) = trained(arguments, &members, trial, progress)?;
    let seed = trial.2;
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let phase = progress.uncounted("attack");
    let drawn = model.sample(arguments.drawn, &mut rng)?;
    let options = MonteCarlo {
        records: members.labels.len().min(100),
        seed,
        ..MonteCarlo::default()
    };
    let records = (&members.examples, &others.examples, &unseen.examples);
    let found = attack(model.gans(), &drawn, records, &options)?;
    phase.finish();
    Ok(found)
}

const HEAD: &str = "method      rule  seed  epsilon     IS printed     FID printed  entropy  diversity    WB%  by chance printed   \
                    MC%  by chance printed   TVD  by chance printed  likelihood  train s  attack s";

fn show(row: &Row, json: bool) {
    if json {
        data::print(&serde_json::to_string(row).unwrap_or_default());
        return;
    }
    let given = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |v| format!("{v:.digits$}"))
    };
    let printed = |which: usize| given(row.printed_attacks.map(|p| p[which]), 2);
    let mut line = format!(
        "{:11} {:5} {:>4} {:>8} {:>6.2} {:>7} {:>7.2} {:>7} {:>8.3} {:>10.3}",
        row.method,
        row.rule,
        row.seed,
        given(row.epsilon, 2),
        row.quality.inception,
        given(row.printed_quality.map(|p| p[0]), 2),
        row.quality.frechet,
        given(row.printed_quality.map(|p| p[1]), 2),
        row.quality.entropy,
        row.quality.diversity,
    );
    if let Some(attacks) = &row.attacks {
        let (scores, monte_carlo) = (&attacks.scores, &attacks.monte_carlo);
        line.push_str(&format!(
            " {:>6.1} {:>10.1} {:>7} {:>5.1} {:>10.1} {:>7} {:>5.3} {:>10.3} {:>7} {:>11.3}",
            100.0 * scores.white_box.found,
            100.0 * scores.white_box.chance,
            printed(0),
            100.0 * monte_carlo.found,
            100.0 * monte_carlo.chance,
            printed(1),
            scores.total_variation.found,
            scores.total_variation.chance,
            printed(2),
            scores.likelihood.found,
        ));
    }
    line.push_str(&format!(
        " {:>8.0} {:>9.0}",
        row.train_seconds, row.attack_seconds
    ));
    data::print(&line);
}
