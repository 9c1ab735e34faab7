//! How fast this machine is now: a moment of everything that a run is made of, in small.
//!
//! No figure here is of another machine, or of another build of the program: what is faster tomorrow is estimated to be.

use std::{panic::resume_unwind, thread, time::Instant};

use fhaim_domain::{Clique, Domain};
use fhaim_he::{
    Cell, Ciphertext, Combination, DEGREE, EncryptedTable, EvaluationKeys, Evaluator, Factors,
    HolderKey, Layout, Page, ParameterSet, Parameters, PublicKey, SecretKey, SquaredScore, Work,
    seal,
};
use fhaim_pgm::{FitOptions, Measurement, Model, fit};
use fhaim_protocol::encryption::Encryption;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::{error::Error, randomness::system};

/// The table that is computed on: all products of its columns.
const COLUMNS: usize = 8;
const CHUNKS: usize = 2;

/// Encryptions that each core is timed at, at least.
const ENCRYPTIONS: usize = 4;

/// Ciphertexts of noise that are added to a page before it is sealed.
const NOISES: usize = 16;

/// How often what is short is timed: the least counts, as what else runs only adds.
const TIMES: usize = 2;

/// The model that is fitted: all pairs of three attributes of so many values, a megabyte; its steps, how often it
/// is fitted, and the records that are drawn from it.
const VALUES: usize = 50;
const STEPS: usize = 6;
const FITS: usize = 6;
const DRAWN: usize = 10_000;

/// Seconds that this machine takes now, all of its cores at work where they are in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speeds {
    /// A dataset's keys.
    pub keys: f64,
    /// An encryption.
    pub encryption: f64,
    /// A key switch: a right form of a column's record chunk, and each of a cell's two.
    pub key_switch: f64,
    /// A product of two columns' record chunks, summed.
    pub product: f64,
    /// Sealing a page, and decrypting it.
    pub release: f64,
    /// The square of a page of counts.
    pub square: f64,
    /// A step of a fit, for a megabyte of the model.
    pub fit_megabyte: f64,
    /// A record that is drawn, for each value that is looked at ([`super::drawn_values`]).
    pub drawn_value: f64,
}

impl Speeds {
    /// Measures this machine: half a second, where it is two cores and quiet.
    ///
    /// # Errors
    /// A system without randomness.
    pub(super) fn measure(set: ParameterSet, key: Encryption) -> Result<Self, Error> {
        let started = Instant::now();
        let bench = Bench::new(set)?;
        let keys = started.elapsed().as_secs_f64();
        let table = EncryptedTable::new(&bench.params, bench.layout, bench.columns()?)?;
        let (key_switch, product, page) = bench.compute(&table)?;
        let square = match set.squares {
            true => bench.square(&page)?,
            false => 0.0,
        };
        let (fit_megabyte, drawn_value) = model()?;
        Ok(Self {
            keys,
            encryption: bench.encryption(key)?,
            key_switch,
            product,
            release: bench.release(&page)?,
            square,
            fit_megabyte,
            drawn_value,
        })
    }
}

/// Ciphertexts of columns, by record chunk and plaintext modulus.
type Columns = Vec<Vec<Vec<Ciphertext>>>;

/// Keys of its own, and the shape of a small table.
struct Bench {
    params: Parameters,
    secret: SecretKey,
    public: PublicKey,
    keys: EvaluationKeys,
    layout: Layout,
}

impl Bench {
    fn new(set: ParameterSet) -> Result<Self, Error> {
        let mut rng = system()?;
        let params = Parameters::shared(set)?;
        let secret = SecretKey::random(&params, &mut rng)?;
        Ok(Self {
            public: secret.public_key(&mut rng)?,
            keys: secret.evaluation_keys(&mut rng)?,
            layout: Layout::for_records(CHUNKS * DEGREE)?,
            params,
            secret,
        })
    }

    /// Seconds of an encryption when all cores encrypt, which two threads of one core do no faster than one.
    fn encryption(&self, key: Encryption) -> Result<f64, Error> {
        let zeros = vec![0; DEGREE];
        let own = match key {
            Encryption::PublicKey => None,
            Encryption::HolderKey => Some(HolderKey::random(&self.params, &mut system()?)?),
        };
        let encrypt = |rng: &mut ChaCha20Rng| match &own {
            None => self.public.encrypt(&zeros, rng).map(|all| all.len()),
            Some(own) => own.encrypt(&zeros, rng).map(|all| all.len()),
        };
        let mut least = f64::INFINITY;
        for _ in 0..TIMES {
            let started = Instant::now();
            let ciphertexts: usize = on_all_cores(ENCRYPTIONS, &encrypt)?.into_iter().sum();
            least = least.min(started.elapsed().as_secs_f64() / ciphertexts.max(1) as f64);
        }
        Ok(least)
    }

    /// The columns of a table, all of their records 1.
    fn columns(&self) -> Result<Columns, Error> {
        let ones = vec![1; DEGREE];
        let encrypt = |rng: &mut ChaCha20Rng| self.public.encrypt(&ones, rng);
        let encrypted = on_all_cores((COLUMNS * CHUNKS).div_ceil(cores()), &encrypt)?;
        let columns = encrypted.chunks_exact(CHUNKS).take(COLUMNS);
        Ok(columns.map(<[_]>::to_vec).collect())
    }

    /// Seconds of a key switch and of a product, with all cores at work, and the page that they made.
    fn compute(&self, table: &EncryptedTable) -> Result<(f64, f64, Page), Error> {
        let all: Vec<Combination> = (0..COLUMNS).map(Combination::column).collect();
        let factors = Factors {
            left: &all,
            right: &all,
        };
        let pairs =
            (0..COLUMNS).flat_map(|left| (0..left).map(move |right| Cell::Product { left, right }));
        let cells: Vec<(usize, Cell)> = pairs.enumerate().collect();
        let evaluator = Evaluator::new(&self.keys, self.layout);
        let mut best = (f64::INFINITY, Work::default());
        let mut page = None;
        for _ in 0..TIMES {
            let mut work = Work::default();
            let started = Instant::now();
            let batch = std::slice::from_ref(&cells);
            let pages = evaluator.pages(table, 0, factors, batch, &mut work)?;
            let seconds = started.elapsed().as_secs_f64();
            if seconds < best.0 {
                best = (seconds, work);
            }
            page = pages.into_iter().flatten().next().or(page);
        }
        let (seconds, work) = best;
        // The threads' seconds together are more than the clock's.
        let switching = work.switching + work.packing;
        let share = seconds / (switching + work.tensor).max(f64::MIN_POSITIVE);
        let products = (cells.len() * CHUNKS) as f64;
        Ok((
            share * switching / work.key_switches.max(1) as f64,
            share * work.tensor / products,
            page.ok_or(fhaim_he::Error::Mismatch("a page without cells"))?,
        ))
    }

    /// Seconds of sealing a page under every plaintext modulus, and of decrypting as much.
    fn release(&self, page: &Page) -> Result<f64, Error> {
        let mut rng = system()?;
        let fresh = self.public.encrypt(&vec![0; DEGREE], &mut rng)?;
        let mut least = f64::INFINITY;
        for _ in 0..TIMES {
            let started = Instant::now();
            for _ in &fresh {
                // The page is one under the first modulus: each takes as long.
                let noise = fresh.iter().take(1).cycle().take(NOISES);
                seal(&self.public, page, noise, 0..1, &mut rng)?;
            }
            self.secret.decrypt(&fresh)?;
            least = least.min(started.elapsed().as_secs_f64());
        }
        Ok(least)
    }

    /// Seconds of the square of a page.
    fn square(&self, page: &Page) -> Result<f64, Error> {
        let evaluator = Evaluator::new(&self.keys, self.layout);
        let started = Instant::now();
        SquaredScore::new(&evaluator, page.clone(), &mut Work::default())?;
        Ok(started.elapsed().as_secs_f64())
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Has a thread of each core do something so often.
fn on_all_cores<T: Send>(
    times: usize,
    work: &(impl Fn(&mut ChaCha20Rng) -> fhaim_he::Result<T> + Sync),
) -> Result<Vec<T>, Error> {
    let one = || -> Result<Vec<T>, Error> {
        let mut rng = system()?;
        let done = (0..times).map(|_| work(&mut rng));
        Ok(done.collect::<Result<_, _>>()?)
    };
    let all: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores()).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut together = Vec::new();
    for done in all {
        together.extend(done.unwrap_or_else(|panic| resume_unwind(panic))?);
    }
    Ok(together)
}

/// Seconds of a megabyte's step in a fit; and of drawing a record, for each value that is looked at.
fn model() -> Result<(f64, f64), Error> {
    let domain = Domain::new(vec![VALUES; 3]);
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let pairs = [[0, 1], [0, 2], [1, 2]].map(|pair| {
        // No distribution has these marginals, so the fit goes on for all of its steps.
        let counts = (0..VALUES * VALUES).map(|_| f64::from(rng.next_u32() % 1000));
        Measurement::cells(Clique::new(pair), counts.collect(), 1.0)
    });
    let options = FitOptions {
        steps: STEPS,
        tolerance: f64::MIN_POSITIVE,
        ..FitOptions::default()
    };
    let mut best: Option<Model> = None;
    for _ in 0..FITS {
        let model = fit(&domain, &pairs, &options, None).map_err(fhaim_synth::Error::from)?;
        let report = model.report();
        if best
            .as_ref()
            .is_none_or(|best| report.seconds < best.report().seconds)
        {
            best = Some(model);
        }
    }
    let Some(model) = best else {
        return Ok((0.0, 0.0));
    };
    let report = model.report();
    let megabytes = model.bytes() as f64 / 1e6;
    let mut draw = |records| {
        let started = Instant::now();
        model.sample(records, &mut rng);
        started.elapsed().as_secs_f64()
    };
    // What is done once is left out.
    let (first, all) = (draw(1), draw(DRAWN));
    let values = DRAWN as f64 * super::drawn_values(&domain);
    Ok((
        report.seconds / report.steps.max(1) as f64 / megabytes,
        (all - first).max(0.0) / values,
    ))
}
