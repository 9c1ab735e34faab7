//! `fhaim-lab mix`: makes noisy means of a few records, from a table or from images.

pub mod args;
mod output;

use std::{
    io::Read,
    num::{NonZeroU32, NonZeroUsize},
    path::Path,
    time::Instant,
};

use fhaim_domain::{Table, counted};
use fhaim_dp::{Ladder, Leak, Ledger, Rho, accounting};
use fhaim_files::{
    memory::{self, RecordSource, Unit, Use, UseCost},
    progress::Progress,
    shown,
};
use fhaim_he::SecretKey;
use fhaim_mix::{
    Cda, CdaNoise, Groups, MAX_PLACES, MAX_VALUES, Mixes, Points, Priced, Standard, encrypted, idx,
};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use self::args::{Method, MixArguments};
use self::output::Files;
use crate::{
    budget::too_small,
    error::Error,
    input::{self, Data},
    output as written,
    randomness::{InsecureTestSeed, Purpose, generator, system},
    size,
};

/// The source of the records, which determines the format of synthetic ones.
enum Origin {
    Table(Box<Table>),
    Images { rows: usize, columns: usize },
}

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    method: String,
    mix: usize,
    mixes: usize,
    features: usize,
    epsilon: f64,
    delta: f64,
    /// Cost of public groups. DP-CDA is accounted in epsilon only.
    #[serde(skip_serializing_if = "Option::is_none")]
    rho_spent: Option<f64>,
    /// Accounted epsilon of DP-CDA.
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_spent: Option<f64>,
    encrypted: bool,
    records: usize,
    seconds: f64,
    out: String,
}

/// Mixes that are ready to be made, because all checks have passed.
enum Planned {
    Groups(Groups, Priced),
    Encrypted(Box<encrypted::Setup>),
    Cda(Box<PlannedCda>),
}

/// DP-CDA among these parties, with the generator that split the records.
struct PlannedCda {
    planned: Cda,
    delta: f64,
    parties: Vec<Points>,
    rng: ChaCha20Rng,
}

/// The name of this program in the usage history.
const PROGRAM: &str = "fhaim-lab mix";

/// Mixes with their privacy cost.
struct Made {
    mixes: Mixes,
    spent: UseCost,
    epsilon: Option<f64>,
}

/// Runs the command: reads records, mixes them, and writes the synthetic records.
pub fn run(
    arguments: &MixArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let start = Instant::now();
    let rho = accounting::rho(arguments.epsilon, arguments.delta)?;
    check(arguments)?;
    let (origin, points, data) = read(arguments)?;
    let files = Files::create(arguments)?;
    let planned = match arguments.method {
        Method::Groups => groups(arguments, &points, rho)?,
        Method::Cda => cda(arguments, &points, seed)?,
    };
    let cost = planned.cost(rho);
    let records = match arguments.images {
        Some(_) => RecordSource::Bytes(data),
        None => RecordSource::Table(data, &arguments.format),
    };
    let known = memory::look_up(records, cost, arguments.delta, None, arguments.yes)?;
    let made = planned.make(&points, rho, seed, progress)?;
    if let Some(records) = &known {
        let out = arguments.out.display().to_string();
        records.remember(&Use::Run { out, journal: None }, made.spent.clone())?;
    }
    let mut rng = generator(seed, Purpose::Records)?;
    let records = files.write(arguments, &origin, &points, &made.mixes, &mut rng)?;
    let summary = Summary {
        method: arguments.method.to_string(),
        mix: arguments.mix.get(),
        mixes: made.mixes.len(),
        features: points.width(),
        epsilon: arguments.epsilon,
        delta: arguments.delta,
        rho_spent: made.spent.rho().map(Rho::to_f64),
        epsilon_spent: made.epsilon,
        encrypted: arguments.encrypted,
        records,
        seconds: start.elapsed().as_secs_f64(),
        out: arguments.out.display().to_string(),
    };
    print(arguments, &summary, rho)
}

/// Rejects flags that do not fit together.
fn check(arguments: &MixArguments) -> Result<(), Error> {
    let refuse = |text: &str| Err(Error::Usage(text.to_owned()));
    if arguments.images.is_some() && arguments.out_labels.is_none() {
        return refuse("the classes of images need a file: add --out-labels");
    }
    let written = arguments.format.is_any() || arguments.strictness.is_any();
    if arguments.images.is_some() && written {
        return refuse(
            "flags for reading tables, such as --delimiter, --missing and --clamp, do not work for images: leave them out",
        );
    }
    let several = arguments.parties.is_some_and(|parties| parties.get() > 1);
    let of_groups = arguments.memberships.is_some() || arguments.capacity.is_some();
    let of_cda = arguments.noise.is_some() || arguments.samples.is_some();
    match arguments.method {
        Method::Groups if several => {
            refuse("public groups work for one party only: use --method dp-cda for several")
        }
        Method::Groups if of_cda => refuse("--noise and --samples need --method dp-cda"),
        Method::Cda if arguments.encrypted => refuse(
            "the choice of records in DP-CDA must stay secret: use --method groups for --encrypted",
        ),
        Method::Cda if of_groups => refuse("--memberships and --capacity need --method groups"),
        _ => Ok(()),
    }
}

/// Returns the records, their source, and the file that identifies them in the usage history.
fn read(arguments: &MixArguments) -> Result<(Origin, Points, &Data), Error> {
    if let (Some(data), Some(schema)) = (&arguments.data, &arguments.schema) {
        let schema = input::schema(schema)?;
        let table = input::table(data, schema, &arguments.format, &arguments.strictness)?;
        let points = Points::from_table(&table)?;
        return Ok((Origin::Table(Box::new(table)), points, data));
    }
    let (Some(images), Some(labels)) = (&arguments.images, &arguments.labels) else {
        return Err(Error::Usage(
            "the records are missing: add --data and --schema for a table, or --images and --labels".to_owned(),
        ));
    };
    let content = |path: &Path| {
        let path = path.to_owned();
        move |error: fhaim_mix::Error| Error::Content {
            path,
            problem: error.to_string(),
        }
    };
    let mut bytes = Vec::new();
    let read = images.open()?.read_to_end(&mut bytes);
    read.map_err(|source| images.fault(source))?;
    let name = images.name();
    let pixels = idx::read_images(&bytes).map_err(content(Path::new(&name)))?;
    let bytes = std::fs::read(labels).map_err(|source| Error::Read {
        path: labels.to_owned(),
        source,
    })?;
    let labels = idx::read_labels(&bytes).map_err(content(labels))?;
    let sized = arguments.method == Method::Groups;
    let classes = arguments.classes.into();
    let points = Points::from_images(&pixels, &labels, classes, Standard::MNIST, sized)?;
    let origin = Origin::Images {
        rows: pixels.rows,
        columns: pixels.columns,
    };
    Ok((origin, points, images))
}

/// Plans public groups for the records, at the least noise that keeps the budget.
fn groups(arguments: &MixArguments, points: &Points, rho: Rho) -> Result<Planned, Error> {
    let largest = points.by_class().iter().map(Vec::len).max().unwrap_or(1);
    let shown = largest.max(1).next_power_of_two();
    let capacity = arguments.capacity.map_or(shown, NonZeroUsize::get);
    let memberships = arguments.memberships.map_or(1, NonZeroU32::get);
    let places = capacity.saturating_mul(points.classes());
    if places.saturating_mul(memberships as usize) > MAX_PLACES {
        return Err(Error::Usage(format!(
            "--capacity {capacity} times {} classes times --memberships {memberships} may be at most {MAX_PLACES}",
            points.classes()
        )));
    }
    let mix = arguments.mix.get();
    if mix > capacity {
        return Err(Error::Usage(format!(
            "--mix {mix}: a class has {}, so a mix can have from 1 to {capacity} records (see --capacity)",
            counted(capacity, "place")
        )));
    }
    // The groups are public, so their seed is public too.
    let groups = Groups::new(mix, memberships, &vec![capacity; points.classes()], 0)?;
    let budget = (arguments.epsilon, arguments.delta);
    if arguments.encrypted {
        let setup = |rho| encrypted::Setup::new(groups.clone(), points, rho);
        let planned =
            setup(rho).map_err(|error| too_small(budget, error, |rho| setup(rho).is_ok()))?;
        check_memory(&planned)?;
        return Ok(Planned::Encrypted(Box::new(planned)));
    }
    let price = |rho| groups.price(points, rho, &Leak::NONE);
    let priced = price(rho).map_err(|error| too_small(budget, error, |rho| price(rho).is_ok()))?;
    Ok(Planned::Groups(groups, priced))
}

/// Rejects ciphertexts that do not fit into memory.
fn check_memory(setup: &encrypted::Setup) -> Result<(), Error> {
    let bytes = setup.ciphertexts() as u64 * setup.params().set().memory_bytes() as u64;
    let limit = size::limit(None);
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::TooLarge {
        reason: format!(
            "the ciphertexts take {} MB, and only {} MB may be used",
            size::megabytes(bytes),
            size::megabytes(limit)
        ),
        advice: "mix more records, or use fewer features".to_owned(),
    })
}

/// Plans DP-CDA for one or more parties.
fn cda(
    arguments: &MixArguments,
    points: &Points,
    seed: Option<InsecureTestSeed>,
) -> Result<Planned, Error> {
    let samples = arguments.samples.map_or(points.len(), NonZeroUsize::get);
    let most = MAX_VALUES / points.width();
    if samples > most {
        return Err(Error::Usage(format!(
            "--samples {samples}: there can be at most {most} mixes of {}",
            counted(points.width(), "feature")
        )));
    }
    let mut rng = generator(seed, Purpose::Noise)?;
    let parties = points.deal(arguments.parties.map_or(1, NonZeroUsize::get), &mut rng)?;
    let planned = Cda::plan(
        &parties,
        arguments.mix.get(),
        samples,
        arguments.noise.unwrap_or(CdaNoise::Shared),
        Some((arguments.epsilon, arguments.delta)),
    )?;
    Ok(Planned::Cda(Box::new(PlannedCda {
        planned,
        delta: arguments.delta,
        parties,
        rng,
    })))
}

impl PlannedCda {
    /// Returns the cost. DP-CDA hides only which record of a class a record is.
    fn cost(&self) -> UseCost {
        let epsilon = self.planned.cost().epsilon;
        UseCost::approximate(PROGRAM, Unit::Replaced, epsilon, self.delta)
    }
}

impl Planned {
    /// Returns the largest cost of the mixes with a budget of `rho`.
    fn cost(&self, rho: Rho) -> UseCost {
        match self {
            Self::Groups(..) | Self::Encrypted(_) => UseCost::zcdp(PROGRAM, rho),
            Self::Cda(cda) => cda.cost(),
        }
    }

    /// Makes the mixes, in the clear or under encryption.
    fn make(
        self,
        points: &Points,
        rho: Rho,
        seed: Option<InsecureTestSeed>,
        progress: &Progress,
    ) -> Result<Made, Error> {
        match self {
            Self::Groups(groups, priced) => {
                let (mut rng, mut ledger) = (generator(seed, Purpose::Noise)?, Ledger::new(rho));
                let placed = groups.place(points, &mut rng)?;
                let mixes = groups.release(&placed, &priced, &mut ledger, &mut rng)?;
                Ok(Made::of(mixes, &ledger))
            }
            Self::Encrypted(setup) => {
                let (mut rng, mut ledger) = (generator(seed, Purpose::Noise)?, Ledger::new(rho));
                let mixes = under_encryption(&setup, points, &mut ledger, &mut rng, progress)?;
                Ok(Made::of(mixes, &ledger))
            }
            Self::Cda(cda) => {
                let spent = cda.cost();
                let PlannedCda {
                    planned,
                    parties,
                    mut rng,
                    ..
                } = *cda;
                let phase = progress.uncounted("mix");
                let mixes = planned.run(&parties, &mut rng)?;
                phase.finish();
                Ok(Made {
                    mixes,
                    spent,
                    epsilon: Some(planned.cost().epsilon),
                })
            }
        }
    }
}

impl Made {
    fn of(mixes: Mixes, ledger: &Ledger) -> Self {
        Self {
            mixes,
            spent: UseCost::zcdp(PROGRAM, ledger.spent()),
            epsilon: None,
        }
    }
}

fn under_encryption(
    setup: &encrypted::Setup,
    points: &Points,
    ledger: &mut Ledger,
    rng: &mut ChaCha20Rng,
    progress: &Progress,
) -> Result<Mixes, Error> {
    let mut keys_rng = system()?;
    let phase = progress.uncounted("keys");
    let secret = SecretKey::random(setup.params(), &mut keys_rng)?;
    let public = secret.public_key(&mut keys_rng)?;
    let keys = secret.evaluation_keys(&mut keys_rng)?;
    phase.finish();
    let phase = progress.uncounted("encrypt");
    let placed = setup.groups().place(points, rng)?;
    let ladder = Ladder::draw(setup.ladder(), rng);
    let upload = encrypted::encrypt(setup, &placed, &ladder, &public, &mut keys_rng)?;
    phase.finish();
    let phase = progress.uncounted("compute");
    let sealed = encrypted::compute(setup, &upload, &keys, &public, &mut keys_rng)?;
    phase.finish();
    Ok(encrypted::decrypt(setup, &sealed, &secret, ledger)?)
}

fn print(arguments: &MixArguments, summary: &Summary, rho: Rho) -> Result<(), Error> {
    if arguments.json {
        return written::print_json(summary);
    }
    let cost = match (summary.rho_spent, summary.epsilon_spent) {
        (_, Some(epsilon)) => {
            format!(
                "epsilon {epsilon:.4} as accounted, for a record that is replaced by another of its class"
            )
        }
        (spent, None) => format!("rho = {:.6} of {:.6}", spent.unwrap_or(0.0), rho.to_f64()),
    };
    written::print(&format!(
        "{} of at most {}, {}; {} in {}\n{cost} (epsilon {}, delta {:e}); {:.2} s\n",
        counted(summary.mixes, "mix"),
        counted(summary.mix, "record"),
        counted(summary.features, "feature"),
        counted(summary.records, "synthetic record"),
        shown(&summary.out),
        summary.epsilon,
        summary.delta,
        summary.seconds
    ))
}
