//! `fhaim-lab bench mix`: trains classifiers on mixes of images, and shows printed figures next to the results.
//!
//! Four fifths of the images are mixed, the rest is for testing. The CAPE column of the paper shows central DP-CDA (see
//! docs/research/cape.md), so it appears next to that.

mod printed;

use std::{path::PathBuf, time::Instant};

use clap::Args;
use fhaim_dp::{Ladder, Leak, Ledger, accounting};
use fhaim_files::progress::Progress;
use fhaim_he::SecretKey;
use fhaim_lab_eval::{Labelled, Perceptron, PerceptronOptions};
use fhaim_mix::{Cda, CdaCost, CdaNoise, Groups, Mixes, Points, Standard, encrypted, idx};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use super::FOLDER;
use super::rows::{Rows, bracketed};
use super::trial::mean_and_error;
use crate::error::Error;

/// The end of the text of `--help`.
pub const BENCH_MIX_EXAMPLES: &str = "\
Examples:
  research/bench/tables.sh data && FHAIM_DATA_DIR=data fhaim-lab bench mix
  FHAIM_DATA_DIR=data fhaim-lab bench mix --mix 4 --mix 32 --epsilon 10 --seeds 3 --json
  FHAIM_DATA_DIR=data fhaim-lab bench mix --mix 4 --parties 5 --parties 20 --way correlated
  FHAIM_DATA_DIR=data fhaim-lab bench mix --encrypted --mix 128

Images are mnist-images.idx3 and mnist-labels.idx1 in FHAIM_DATA_DIR.";

/// delta of all of the paper's figures, as far as it can be determined.
const DELTA: f64 = 1e-5;

/// Number of classes of images.
const CLASSES: usize = 10;

/// Share of the images that are mixed.
const SEEN: f64 = 0.8;

/// Number of training steps of a classifier, for any number of mixes.
const STEPS: usize = 1500;

/// Arguments of `bench mix`.
#[derive(Debug, Args)]
pub struct BenchMixArguments {
    /// Number of records in a mix (may be repeated) [default: 1, 2, 4, ... 512]
    #[arg(long, value_name = "L")]
    pub mix: Vec<usize>,
    /// Privacy budget, in addition to no noise (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [20.0, 10.0], allow_negative_numbers = true)]
    pub epsilon: Vec<f64>,
    /// Number of parties of federated methods (may be repeated)
    #[arg(long, value_name = "S", default_values_t = [10])]
    pub parties: Vec<usize>,
    /// Way of mixing (may be repeated): central, conventional, shared, correlated or groups [default: all]
    #[arg(long, value_name = "W", value_parser = way)]
    pub way: Vec<Way>,
    /// Number of runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Time public groups under encryption and compare them with those in the clear, without training
    #[arg(long, conflicts_with_all = ["parties", "way", "seeds"])]
    pub encrypted: bool,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// A way of mixing images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// DP-CDA over all images.
    Central,
    /// DP-CDA among parties that each add enough noise for themselves.
    Conventional,
    /// DP-CDA among parties that add noise together under masks.
    Shared,
    /// DP-CDA among parties whose noise mostly cancels in the sum: the paper's Algorithm 1 (CAPE).
    Correlated,
    /// Public groups.
    Groups,
}

fn way(name: &str) -> Result<Way, String> {
    let found = Way::ALL.into_iter().find(|way| way.name() == name);
    found.ok_or_else(|| {
        let names = Way::ALL.map(Way::name);
        format!("choose from {}", names.join(", "))
    })
}

impl Way {
    const ALL: [Self; 5] = [
        Self::Central,
        Self::Conventional,
        Self::Shared,
        Self::Correlated,
        Self::Groups,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Central => "central",
            Self::Conventional => "conventional",
            Self::Shared => "shared",
            Self::Correlated => "correlated",
            Self::Groups => "groups",
        }
    }

    /// Whether the images are split among parties.
    fn has_parties(self) -> bool {
        !matches!(self, Self::Central | Self::Groups)
    }
}

/// One setting of the bench.
#[derive(Clone, Copy, Debug)]
struct Setting {
    way: Way,
    mix: usize,
    /// `None` for no noise.
    epsilon: Option<f64>,
    parties: usize,
}

/// The mixes of one seed, and their price if it is DP-CDA's.
struct Made {
    mixes: Mixes,
    cost: Option<CdaCost>,
}

/// The results of a way at one budget.
#[derive(Debug, Serialize)]
struct Row {
    way: &'static str,
    mix: usize,
    /// `None` for central mixes and public groups.
    parties: Option<usize>,
    /// `None` for no noise.
    epsilon: Option<f64>,
    /// For DP-CDA with noise, of the last seed: the deviation of the noise on a feature of a released mean of images of
    /// norm 1, and with correlated noise what the paper's Theorem 1 and its appendix claim.
    deviation: Option<f64>,
    theorem_epsilon: Option<f64>,
    appendix_epsilon: Option<f64>,
    /// Number of seeds with results, and of seeds for which a party has too few images for a mix, or no noise keeps the
    /// budget.
    seeds: usize,
    refused: usize,
    /// Accuracy on images that were not mixed, in percent, and its standard error (`None` for a single run). Both are
    /// `None` if all seeds were refused.
    accuracy: Option<f64>,
    standard_error: Option<f64>,
    printed: Option<f64>,
    mixes: usize,
    seconds: f64,
}

/// The times of an encrypted release.
#[derive(Debug, Serialize)]
struct Encrypted {
    mix: usize,
    mixes: usize,
    features: usize,
    ciphertexts: usize,
    equal_to_clear: bool,
    encrypt_seconds: f64,
    compute_seconds: f64,
    decrypt_seconds: f64,
}

/// Runs the command: mixes and trains, or times encryption.
pub fn run(arguments: &BenchMixArguments, progress: &Progress) -> Result<(), Error> {
    let (images, labels) = read()?;
    let usual: Vec<usize> = (0..10).map(|power| 1 << power).collect();
    let mixes = if arguments.mix.is_empty() {
        &usual
    } else {
        &arguments.mix
    };
    if arguments.encrypted {
        return time_encryption(arguments, &images, &labels, mixes, progress);
    }
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    for setting in settings(arguments, mixes) {
        let images = (&images, labels.as_slice());
        rows.push(&measure(setting, arguments.seeds, images, progress)?)?;
    }
    rows.end("")
}

/// Returns all settings to measure. Ways without parties are measured once.
fn settings(arguments: &BenchMixArguments, mixes: &[usize]) -> Vec<Setting> {
    let ways = match arguments.way.as_slice() {
        [] => &Way::ALL,
        chosen => chosen,
    };
    let mut settings = Vec::new();
    for &mix in mixes {
        for &way in ways {
            let parties = match way.has_parties() {
                true => arguments.parties.as_slice(),
                false => &[1],
            };
            for &parties in parties {
                let budgets =
                    std::iter::once(None).chain(arguments.epsilon.iter().copied().map(Some));
                settings.extend(budgets.map(|epsilon| Setting {
                    way,
                    mix,
                    epsilon,
                    parties,
                }));
            }
        }
    }
    settings
}

fn read() -> Result<(idx::Images, Vec<u8>), Error> {
    let folder = std::env::var_os(FOLDER)
        .map(PathBuf::from)
        .ok_or(Error::Environment(FOLDER, "of the images"))?;
    let bytes = |name: &str| {
        let path = folder.join(name);
        let bytes = std::fs::read(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        Ok::<_, Error>((path, bytes))
    };
    let content = |path: PathBuf| {
        move |error: fhaim_mix::Error| Error::Content {
            path,
            problem: error.to_string(),
        }
    };
    let (path, images) = bytes("mnist-images.idx3")?;
    let images = idx::read_images(&images).map_err(content(path))?;
    let (path, labels) = bytes("mnist-labels.idx1")?;
    let labels = idx::read_labels(&labels).map_err(content(path))?;
    Ok((images, labels))
}

fn measure(
    setting: Setting,
    seeds: u64,
    (images, labels): (&idx::Images, &[u8]),
    progress: &Progress,
) -> Result<Row, Error> {
    let started = Instant::now();
    let Setting {
        way,
        mix,
        epsilon,
        parties,
    } = setting;
    let budget = epsilon.unwrap_or(f64::INFINITY);
    let label = format!("{} l {mix} e{budget} S {parties}", way.name());
    let phase = progress.counted(label, seeds, "runs");
    let mut accuracies = Vec::new();
    let (mut made, mut cost, mut refused) = (0, None, 0);
    for seed in 0..seeds {
        let sized = way == Way::Groups;
        let points = Points::from_images(images, labels, CLASSES, Standard::MNIST, sized)?;
        let (seen, unseen) = split(&points, seed);
        // A seed can be refused because of its split, while the next one succeeds.
        match mixes(setting, &seen, seed)? {
            Some(Made { mixes, cost: price }) => {
                (made, cost) = (mixes.len(), price.filter(|_| epsilon.is_some()));
                accuracies.push(100.0 * train_and_test(&mixes, &seen, &unseen, seed)?);
            }
            None => refused += 1,
        }
        phase.reach(seed + 1);
    }
    phase.finish();
    let figures = (!accuracies.is_empty()).then(|| mean_and_error(&accuracies));
    let claims = cost.and_then(|cost| cost.claims);
    Ok(Row {
        way: way.name(),
        mix,
        parties: way.has_parties().then_some(parties),
        epsilon,
        deviation: cost.map(|cost| cost.released),
        theorem_epsilon: claims.map(|claims| claims.theorem),
        appendix_epsilon: claims.map(|claims| claims.appendix),
        seeds: accuracies.len(),
        refused,
        accuracy: figures.map(|(mean, _)| mean),
        standard_error: figures.and_then(|(_, error)| error),
        printed: printed::mnist(way.name(), mix, epsilon, parties),
        mixes: made,
        seconds: started.elapsed().as_secs_f64() / accuracies.len().max(1) as f64,
    })
}

fn split(points: &Points, seed: u64) -> (Points, Points) {
    let mut numbers: Vec<usize> = (0..points.len()).collect();
    numbers.shuffle(&mut StdRng::seed_from_u64(seed));
    let (seen, unseen) = numbers.split_at((points.len() as f64 * SEEN).round() as usize);
    (points.select(seen), points.select(unseen))
}

/// Returns the mixes of a way, or `None` if a party has fewer images of a class than a mix takes, or no noise keeps the
/// budget.
fn mixes(setting: Setting, seen: &Points, seed: u64) -> Result<Option<Made>, Error> {
    let Setting {
        way,
        mix,
        epsilon,
        parties,
    } = setting;
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let noise = match way {
        Way::Central | Way::Conventional => CdaNoise::Conventional,
        Way::Shared => CdaNoise::Shared,
        Way::Correlated => CdaNoise::Correlated,
        Way::Groups => {
            let mixes = groups(seen, mix, epsilon, &mut rng)?;
            return Ok(Some(Made { mixes, cost: None }));
        }
    };
    let parts = seen.deal(parties, &mut rng)?;
    let budget = epsilon.map(|epsilon| (epsilon, DELTA));
    match Cda::plan(&parts, mix, seen.len(), noise, budget) {
        Ok(planned) => Ok(Some(Made {
            mixes: planned.run(&parts, &mut rng)?,
            cost: Some(planned.cost()),
        })),
        Err(fhaim_mix::Error::SmallClass { .. } | fhaim_mix::Error::OutOfReach { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns mixes of public groups. The number of images per class is public, too.
fn groups(
    seen: &Points,
    mix: usize,
    epsilon: Option<f64>,
    rng: &mut ChaCha20Rng,
) -> Result<Mixes, Error> {
    let groups = grouped(seen, mix)?;
    let placed = groups.place(seen, rng)?;
    // Without a budget, use the smallest possible noise: variance 4, on sums in units of 1/4096.
    let rho = match epsilon {
        Some(epsilon) => accounting::rho(epsilon, DELTA)?,
        None => fhaim_dp::Rho::from_f64_down(1e9)?,
    };
    let priced = groups.price(seen, rho, &Leak::NONE)?;
    Ok(groups.release(&placed, &priced, &mut Ledger::new(rho), rng)?)
}

fn grouped(seen: &Points, mix: usize) -> Result<Groups, Error> {
    let capacities: Vec<usize> = seen.by_class().iter().map(Vec::len).collect();
    Ok(Groups::new(mix, 1, &capacities, 0)?)
}

/// Trains a classifier on mixes, and returns its accuracy on images that were not mixed.
fn train_and_test(mixes: &Mixes, seen: &Points, unseen: &Points, seed: u64) -> Result<f64, Error> {
    let width = seen.features();
    // Vectors of norm 1 get values with a deviation of about 1.
    let scale = (width as f64).sqrt();
    let scaled = |x: f64| (x * scale) as f32;
    let values: Vec<f32> = (0..mixes.len())
        .flat_map(|number| mixes.mean(number, seen))
        .map(scaled)
        .collect();
    let options = PerceptronOptions {
        epochs: (STEPS * 64).div_ceil(mixes.len()),
        seed,
        ..PerceptronOptions::default()
    };
    let train = Labelled {
        width,
        values: &values,
        labels: &mixes.labels,
    };
    let learner = Perceptron::fit(train, CLASSES, &options)?;
    let values: Vec<f32> = (0..unseen.len())
        .flat_map(|number| &unseen.record(number)[..width])
        .map(|&x| scaled(f64::from(x) / unseen.unit()))
        .collect();
    Ok(learner.accuracy(Labelled {
        width,
        values: &values,
        labels: unseen.labels(),
    })?)
}

const HEADING: &str = "way             l  parties  epsilon  accuracy (s.e.)  printed  deviation    mixes  seconds  seeds  refused\n";

fn line(row: &Row) -> String {
    let accuracy = match row.accuracy {
        Some(accuracy) => format!("{accuracy:>8.2} {}", bracketed(row.standard_error, 2)),
        None => "not possible".to_owned(),
    };
    let epsilon = row
        .epsilon
        .map_or("none".to_owned(), |epsilon| epsilon.to_string());
    let printed = row
        .printed
        .map_or(String::new(), |printed| format!("{printed:.2}"));
    let parties = row
        .parties
        .map_or(String::new(), |parties| parties.to_string());
    let deviation = row
        .deviation
        .map_or(String::new(), |deviation| format!("{deviation:.5}"));
    format!(
        "{:12} {:>4} {parties:>8} {epsilon:>8}  {accuracy:>15}  {printed:>7} {deviation:>10} {:>8} {:>8.1} {:>6} {:>8}\n",
        row.way, row.mix, row.mixes, row.seconds, row.seeds, row.refused
    )
}

fn time_encryption(
    arguments: &BenchMixArguments,
    images: &idx::Images,
    labels: &[u8],
    mixes: &[usize],
    progress: &Progress,
) -> Result<(), Error> {
    let points = Points::from_images(images, labels, CLASSES, Standard::MNIST, true)?;
    let (seen, _) = split(&points, 0);
    let rho = accounting::rho(arguments.epsilon.last().copied().unwrap_or(10.0), DELTA)?;
    let heading = "   l    mixes  ciphertexts  equal  encrypt s  compute s  decrypt s\n";
    let mut timed = Rows::begin(arguments.json, heading, timed_line)?;
    for &mix in mixes {
        let phase = progress.uncounted(format!("encrypted, l {mix}"));
        let row = encrypt(grouped(&seen, mix)?, &seen, rho, mix)?;
        phase.finish();
        timed.push(&row)?;
    }
    timed.end("")
}

fn timed_line(row: &Encrypted) -> String {
    format!(
        "{:>4} {:>8} {:>12} {:>6} {:>10.1} {:>10.1} {:>10.1}\n",
        row.mix,
        row.mixes,
        row.ciphertexts,
        row.equal_to_clear,
        row.encrypt_seconds,
        row.compute_seconds,
        row.decrypt_seconds
    )
}

fn encrypt(
    groups: Groups,
    seen: &Points,
    rho: fhaim_dp::Rho,
    mix: usize,
) -> Result<Encrypted, Error> {
    let setup = encrypted::Setup::new(groups, seen, rho)?;
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let placed = setup.groups().place(seen, &mut rng)?;
    let ladder = Ladder::draw(setup.ladder(), &mut rng);
    let mut ledger = Ledger::new(rho);
    let clear = setup
        .groups()
        .release_with(&placed, setup.priced(), &mut ledger, &ladder)?;
    let secret = SecretKey::random(setup.params(), &mut rng)?;
    let public = secret.public_key(&mut rng)?;
    let keys = secret.evaluation_keys(&mut rng)?;
    let started = Instant::now();
    let upload = encrypted::encrypt(&setup, &placed, &ladder, &public, &mut rng)?;
    let encrypt_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let sealed = encrypted::compute(&setup, &upload, &keys, &public, &mut rng)?;
    let compute_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let released = encrypted::decrypt(&setup, &sealed, &secret, &mut Ledger::new(rho))?;
    Ok(Encrypted {
        mix,
        mixes: released.len(),
        features: seen.width(),
        ciphertexts: setup.ciphertexts(),
        equal_to_clear: released == clear,
        encrypt_seconds,
        compute_seconds,
        decrypt_seconds: started.elapsed().as_secs_f64(),
    })
}
