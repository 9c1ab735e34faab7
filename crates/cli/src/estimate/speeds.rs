//! How fast this machine is now: a moment of everything that a run is made of, in small.
//!
//! No figure here is of another machine, or of another build of the program: what is faster tomorrow is estimated to be.

use std::{iter::repeat_n, panic::resume_unwind, sync::Arc, thread, time::Instant};

use fhaim_domain::{Clique, Domain, Schema, Table, WriteOptions};
use fhaim_dp::{Ladder, LadderPlan, Rho};
use fhaim_he::{
    Cell, Combination, CountsLayout, DEGREE, EncryptedCounts, EncryptedTable, EvaluationKeys,
    EvaluationWork, Evaluator, Factors, LEAVES_A_THREAD, Layout, PAGE, PackedPage, Parameters,
    PublicKey, SecretKey, SeededCiphertext, SquaredScore, UploadCiphertext, UploadKey,
    UploadSwitchKeys, Weights, seal,
};
use fhaim_pgm::{FitOptions, Measurement, Model, ModelGraph, Passes, fit_once};
use fhaim_release::MechanismJob;
use fhaim_synth::{Blocks, FittedModel, Mechanism, OneWaysOnly};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::work::{self, ExpectedWork as Todo, Load, PACKING_KEYS};
use crate::{error::Error, holders::key_digests, randomness::system};

/// The tables that are computed on, of so many record chunks each: all products of their columns. What a record chunk
/// takes is the difference.
const COLUMNS: usize = 8;
const CHUNKS: [usize; 2] = [1, 4];

/// Encryptions that each core is timed at, at least.
const ENCRYPTIONS: usize = 4;

/// Ciphertexts of noise that are added to a page before it is sealed.
const NOISES: usize = 16;

/// Positions and levels of the noise that is drawn.
const POSITIONS: usize = 512;
const LEVELS: usize = 12;

/// How often what is short is timed: the least counts, as what else runs only adds.
const TIMES: usize = 2;

/// One model that is fitted is of so many attributes and values, each attribute with the next: it takes what measurements
/// take.
const CHAIN: [usize; 2] = [40, 8];

/// The other has as many cells as the run's largest is expected to have, and at most so many; of the run's first columns, as
/// coarse as most are measured: what a cell takes hangs on how many columns a clique has.
const MAX_CELLS: usize = 1 << 21;
const MAX_ATTRIBUTES: usize = 20;
const MAX_GROUPS: usize = 8;

/// The first steps of a fit fill its memory. As many more are timed as pass over so many cells, within limits.
const FIRST_STEPS: usize = 4;
const TIMED_CELLS: usize = 1 << 23;
const MIN_TIMED: usize = 4;
const MAX_TIMED: usize = 60;
const MEMORY: usize = 20;

/// A table of so many columns and values is drawn and written.
const DRAWN_COLUMNS: [usize; 2] = [6, 8];

/// Records that are drawn and written.
const DRAWN: usize = 10_000;

/// Seconds that this machine takes now, all of its cores at work where they are in a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speeds {
    /// A switching key, made and encoded.
    pub key: f64,
    /// An encryption.
    pub encryption: f64,
    /// A value of noise, drawn.
    pub sample: f64,
    /// A ciphertext of noise, read and brought into the form that it is added in.
    pub vector: f64,
    /// Switching a ciphertext from an upload key to the dataset's key.
    pub conversion: f64,
    /// Adding noise to a ciphertext of a page, sealing and decrypting it.
    pub sheet: f64,
    /// A key switch: a right form of a column's record chunk, and each of a leaf's.
    pub key_switch: f64,
    /// A product of two columns' record chunks, summed.
    pub product: f64,
    /// A table of counts, weighed for a leaf.
    pub weighing: f64,
    /// The same two of a page that one thread makes, while all others wait.
    pub alone: Alone,
    /// The square of a page of counts.
    pub square: f64,
    /// Estimating a column's counts from what was released of it.
    pub column: f64,
    /// A step of a fit, for a cell of the model's cliques,
    pub fit_cell: f64,
    /// and for a value that it is fitted to.
    pub fit_value: f64,
    /// What a fit takes once, for a cell of the model's cliques.
    pub fit_table: f64,
    /// A record that is drawn, for each value that is looked at ([`work::drawn_values`]),
    pub drawn_value: f64,
    /// and for each value of it that is written.
    pub written_value: f64,
}

/// Seconds of what one thread does, while all others wait.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Alone {
    key_switch: f64,
    weighing: f64,
}

impl Alone {
    /// What some threads take together, over what one of them takes for the same: of a page for which each had as many
    /// leaves as one thread has, each with one table, in so many seconds.
    fn share(&self, seconds: f64, key_switches: f64, threads: f64) -> f64 {
        let leaves = threads * LEAVES_A_THREAD as f64;
        let merges = leaves - threads;
        let together = leaves * self.weighing + merges * self.key_switch;
        // What is above is one thread's again.
        let above = (key_switches - merges) * self.key_switch;
        let share = (seconds - above) / together.max(f64::MIN_POSITIVE);
        share.clamp(threads.recip(), 1.0)
    }
}

impl Speeds {
    /// Measures this machine, in a moment: how long one is, the estimate says (`measured_seconds`).
    ///
    /// # Errors
    /// A system without randomness.
    pub(super) fn measure(load: &Load) -> Result<Self, Error> {
        let started = Instant::now();
        let bench = Bench::new(load)?;
        let keys = started.elapsed().as_secs_f64();
        let made = PACKING_KEYS as usize + if load.records { 5 } else { 1 };
        let compute = match load.records {
            true => bench.columns()?,
            false => bench.counts()?,
        };
        let square = match load.upload.squares > 0.0 {
            true => bench.square(&compute.page)?,
            false => 0.0,
        };
        let [vector, conversion, sheet] = bench.release(&compute.page)?;
        let synthetic = Synthetic::measure()?;
        let (chain, model) = (Fits::chain()?, Fits::of_run(load)?);
        let fit_value = chain.step / chain.values;
        let fit_cell = (model.step - model.values * fit_value).max(0.0) / model.cells;
        Ok(Self {
            key: keys / made as f64,
            encryption: encryption(&bench.upload)?,
            sample: sample()?,
            vector,
            conversion,
            sheet,
            key_switch: compute.key_switch,
            product: compute.product,
            weighing: compute.weighing,
            alone: compute.alone,
            square,
            column: synthetic.column,
            fit_cell,
            fit_value,
            fit_table: model.once / model.cells,
            drawn_value: synthetic.drawn_value,
            written_value: synthetic.written_value,
        })
    }

    /// Seconds of some work: under encryption, and of planning and fits.
    pub(super) fn seconds(&self, work: &Todo) -> [f64; 2] {
        let encrypted = work.keys * self.key
            + work.encryptions * self.encryption
            + work.samples * self.sample
            + work.vectors * self.vector
            + work.conversions * self.conversion
            + work.sheets * self.sheet
            + (work.key_switches - work.lone_switches) * self.key_switch
            + work.lone_switches * self.alone.key_switch
            + work.products * self.product
            + (work.weighings - work.lone_weighings) * self.weighing
            + work.lone_weighings * self.alone.weighing
            + work.squares * self.square;
        let fits = work.columns * self.column
            + work.fit_cells * self.fit_cell
            + work.fit_values * self.fit_value
            + work.fit_tables * self.fit_table;
        [encrypted, fits]
    }
}

/// Seconds of an encryption and of a value of noise, without a dataset's keys.
///
/// # Errors
/// A system without randomness.
pub(super) fn holder(params: &Parameters) -> Result<[f64; 2], Error> {
    let key = UploadKey::random(params, &mut system()?)?;
    Ok([encryption(&key)?, sample()?])
}

/// Seconds of an encryption when all cores encrypt, which two threads of one core do no faster than one.
fn encryption(key: &UploadKey) -> Result<f64, Error> {
    let params = key.params();
    let zeros = vec![0; DEGREE];
    let encrypt = |rng: &mut ChaCha20Rng| -> fhaim_he::Result<()> {
        for one in key.encrypt(&zeros, rng)? {
            one.to_bytes(params);
        }
        Ok(())
    };
    let seconds = least(|| on_all_cores(ENCRYPTIONS, &encrypt).map(|_| ()))?;
    Ok(seconds / (cores() * ENCRYPTIONS * params.residues()) as f64)
}

/// What computing a page took.
struct Compute {
    key_switch: f64,
    product: f64,
    weighing: f64,
    alone: Alone,
    page: PackedPage,
}

/// The keys of a sole holder's dataset.
struct Bench {
    params: Parameters,
    secret: SecretKey,
    public: PublicKey,
    keys: EvaluationKeys,
    /// How cells are packed.
    layout: Layout,
    /// The upload key, and its switching keys.
    upload: UploadKey,
    switch_keys: Arc<UploadSwitchKeys>,
}

impl Bench {
    fn new(load: &Load) -> Result<Self, Error> {
        let mut rng = system()?;
        let params = Parameters::shared(load.set)?;
        let secret = SecretKey::random(&params, &mut rng)?;
        let public = secret.public_key(&mut rng)?;
        let keys = secret.evaluation_keys(&mut rng)?;
        key_digests(&public, &keys)?;
        let upload = UploadKey::random(&params, &mut rng)?;
        let records = load.records.then_some(load.layout);
        let switch_keys = Arc::new(upload.switch_keys(&public, records, &mut rng)?);
        Ok(Self {
            params,
            secret,
            public,
            keys,
            layout: load.layout,
            upload,
            switch_keys,
        })
    }

    /// At least this many polynomials of ones, as the computation service has them.
    fn encrypted(&self, polynomials: usize) -> Result<Vec<Vec<UploadCiphertext>>, Error> {
        let ones = vec![1; DEGREE];
        let times = polynomials.div_ceil(cores());
        on_all_cores(times, &|rng: &mut ChaCha20Rng| {
            let sent = self.upload.encrypt(&ones, rng)?.into_iter();
            sent.map(|one| one.expand(&self.params)).collect()
        })
    }

    /// Seconds of a key switch and of a product of a record chunk, with all cores at work.
    fn columns(&self) -> Result<Compute, Error> {
        let [few, many] = CHUNKS;
        let (_, one, _) = self.products(few)?;
        let (key_switch, all, page) = self.products(many)?;
        let product = (all - one).max(0.0) / (many - few) as f64;
        Ok(Compute {
            key_switch,
            product,
            weighing: 0.0,
            alone: Alone {
                key_switch,
                weighing: 0.0,
            },
            page,
        })
    }

    /// Seconds of a key switch and of a cell's products in a table of so many record chunks, and the page of all cells.
    fn products(&self, chunks: usize) -> Result<(f64, f64, PackedPage), Error> {
        let layout = Layout::of_many(chunks, self.layout.stride())?;
        let mut sent = self.encrypted(COLUMNS * chunks)?.into_iter();
        let columns = (0..COLUMNS).map(|_| sent.by_ref().take(chunks).collect());
        let table = EncryptedTable::new(&self.params, layout, columns.collect())?;
        let evaluator = Evaluator::new(&self.keys, layout).with_switch_keys(&self.switch_keys)?;
        let all: Vec<Combination> = (0..COLUMNS).map(Combination::column).collect();
        let factors = Factors {
            left: &all,
            right: &all,
        };
        let pairs = (0..COLUMNS)
            .flat_map(|left| (0..COLUMNS).map(move |right| Cell::Product { left, right }));
        let cells: Vec<(usize, Cell)> = pairs.enumerate().collect();
        let batch = std::slice::from_ref(&cells);
        let (seconds, work, page) = computed(|work| {
            let pages = evaluator.pages(&table, 0, factors, batch, work)?;
            Ok(pages.into_iter().flatten().next())
        })?;
        // The threads' seconds together are more than the clock's.
        let switching = work.switching + work.packing;
        let share = seconds / (switching + work.tensor).max(f64::MIN_POSITIVE);
        Ok((
            share * switching / work.key_switches.max(1) as f64,
            share * work.tensor / cells.len() as f64,
            page,
        ))
    }

    /// Seconds of a key switch and of weighing a table of counts for a leaf, with all cores at work and of one thread.
    fn counts(&self) -> Result<Compute, Error> {
        let stride = self.layout.stride();
        let layout = CountsLayout::new(&[stride; COLUMNS])?;
        let sent = self.encrypted(COLUMNS)?.into_iter();
        let sent = sent.take(COLUMNS).map(|one| Ok::<_, Error>(vec![one]));
        let keys = std::slice::from_ref(&self.switch_keys);
        let counts = EncryptedCounts::of_holders(keys, layout, sent)?;
        let evaluator = Evaluator::new(&self.keys, self.layout);
        let slots = self.layout.slots();
        let weights = |tables: usize| Weights((0..tables).map(|t| (t * stride, 1)).collect());
        let time = |leaves: usize, tables: usize| {
            let places = (0..leaves).map(|leaf| leaf * slots);
            let cells: Vec<_> = places.map(|place| (place, weights(tables))).collect();
            let batch = [cells];
            computed(|work| {
                let pages = evaluator.count_pages(&counts, 0, &batch, work)?;
                Ok(pages.into_iter().flatten().next())
            })
        };
        // Each leaf weighs one table, and then all of them; one thread has all leaves.
        let few = COLUMNS.min(LEAVES_A_THREAD).min(PAGE / slots);
        let (one, work, _) = time(few, 1)?;
        let (all, _, page) = time(few, COLUMNS)?;
        let weighing = (all - one).max(0.0) / (few * (COLUMNS - 1)) as f64;
        let switches = (one - few as f64 * weighing).max(0.0);
        let alone = Alone {
            key_switch: switches / work.key_switches.max(1) as f64,
            weighing,
        };
        // And then every thread has some.
        let threads = cores().min(PAGE / slots / LEAVES_A_THREAD).max(1);
        let share = match threads {
            1 => 1.0,
            _ => {
                let (seconds, work, _) = time(threads * LEAVES_A_THREAD, 1)?;
                alone.share(seconds, work.key_switches as f64, threads as f64)
            }
        };
        Ok(Compute {
            key_switch: share * alone.key_switch,
            product: 0.0,
            weighing: share * alone.weighing,
            alone,
            page,
        })
    }

    /// Seconds of reading a ciphertext of noise, of switching it to the dataset's key, and of sealing and decrypting one
    /// of a page.
    fn release(&self, page: &PackedPage) -> Result<[f64; 3], Error> {
        const NONE: fhaim_he::Error = fhaim_he::Error::OutOfRange("plaintext modulus");
        let (params, mut rng) = (&self.params, system()?);
        let sent = self.upload.encrypt(&vec![0; DEGREE], &mut rng)?;
        let bytes = sent.first().ok_or(NONE)?.to_bytes(params);
        let vector = least(|| {
            let read = SeededCiphertext::from_bytes(params, &bytes)?;
            Sha256::digest(read.to_bytes(params));
            read.expand(params)?;
            Ok(())
        })?;
        let expanded = sent.into_iter().map(|one| one.expand(params));
        let expanded = expanded.collect::<fhaim_he::Result<Vec<_>>>()?;
        let mut converted = Vec::new();
        let conversion = least(|| {
            let all = expanded.iter().map(|one| self.switch_keys.switch(one));
            converted = all.collect::<fhaim_he::Result<_>>()?;
            Ok(())
        })?;
        // The page is one under the first modulus: each takes as long.
        let (noise, added) = expanded.first().zip(converted.first()).ok_or(NONE)?;
        let sealed = least(|| {
            UploadCiphertext::sum(params, repeat_n(noise, NOISES))?;
            seal(&self.public, page, [added], 0..1, &mut rng)?;
            Ok(())
        })?;
        let decrypted = least(|| {
            self.secret.decrypt_sealed(&converted, &[0; 32], 0)?;
            Ok(())
        })?;
        let residues = params.residues() as f64;
        Ok([vector, conversion / residues, sealed + decrypted / residues])
    }

    /// Seconds of the square of a page.
    fn square(&self, page: &PackedPage) -> Result<f64, Error> {
        let evaluator = Evaluator::new(&self.keys, self.layout);
        let started = Instant::now();
        SquaredScore::new(&evaluator, page.clone(), &mut EvaluationWork::default())?;
        Ok(started.elapsed().as_secs_f64())
    }
}

/// Seconds of the quickest of some times.
fn least(mut work: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut least = f64::INFINITY;
    for _ in 0..TIMES {
        let started = Instant::now();
        work()?;
        least = least.min(started.elapsed().as_secs_f64());
    }
    Ok(least)
}

/// As [`least`], with the page that comes of it and what was done for it.
fn computed(
    mut page: impl FnMut(&mut EvaluationWork) -> fhaim_he::Result<Option<PackedPage>>,
) -> Result<(f64, EvaluationWork, PackedPage), Error> {
    let mut best: Option<(f64, EvaluationWork, PackedPage)> = None;
    for _ in 0..TIMES {
        let mut work = EvaluationWork::default();
        let started = Instant::now();
        let made = page(&mut work)?;
        let seconds = started.elapsed().as_secs_f64();
        if let Some(made) = made
            && best.as_ref().is_none_or(|(least, ..)| seconds < *least)
        {
            best = Some((seconds, work, made));
        }
    }
    Ok(best.ok_or(fhaim_he::Error::Mismatch("a page without cells"))?)
}

/// Seconds of drawing a value of noise, as one thread does it.
fn sample() -> Result<f64, Error> {
    let plan = LadderPlan::new(POSITIONS, 1 << (2 * LEVELS - 2))?;
    let mut rng = system()?;
    let seconds = least(|| {
        Ladder::draw(plan, &mut rng);
        Ok(())
    })?;
    Ok(seconds / plan.samples() as f64)
}

/// A table to be written.
fn made_up() -> Result<Table, Error> {
    let [columns, values] = DRAWN_COLUMNS;
    let categories: Vec<String> = (0..values).map(|value| format!("\"{value}\"")).collect();
    let categories = categories.join(",");
    let column = |number: usize| {
        format!(r#"{{"name":"{number}","kind":"categorical","categories":[{categories}]}}"#)
    };
    let all: Vec<String> = (0..columns).map(column).collect();
    let json = format!(r#"{{"name":"made up","columns":[{}]}}"#, all.join(","));
    let schema = Schema::from_json("made up", json.as_bytes())?;
    let codes = (0..columns).map(|column| {
        let rows = (0..DRAWN).map(|row| (row / (column + 1) % values) as u32);
        rows.collect()
    });
    Ok(Table::new(schema, codes.collect()).map_err(fhaim_domain::Error::from)?)
}

/// Seconds of what is done for each column of a run, and for each value of the table that it writes.
struct Synthetic {
    column: f64,
    drawn_value: f64,
    written_value: f64,
}

impl Synthetic {
    fn measure() -> Result<Self, Error> {
        let table = made_up()?;
        let (column, model) = columns_estimated(&table)?;
        let (schema, columns) = (table.shared_schema(), table.domain().len());
        let blocks = Blocks::new(schema, model, DRAWN as u64, 0);
        let records = blocks.records().min(DRAWN) as f64;
        let mut block = None;
        let drawn = least(|| {
            block = blocks.draw(0)?;
            Ok(())
        })?;
        let options = WriteOptions::new("");
        let written = least(|| {
            if let Some(block) = &mut block {
                block.csv(&options)?;
            }
            Ok(())
        })?;
        Ok(Self {
            column,
            drawn_value: drawn / (records * work::drawn_values(table.domain())),
            written_value: written / (records * columns as f64),
        })
    }
}

/// Seconds of estimating a column's counts from what was released of it, and a model of all columns.
fn columns_estimated(table: &Table) -> Result<(f64, Arc<dyn FittedModel>), Error> {
    let domain = table.domain().clone();
    let columns = domain.len();
    let job = MechanismJob::new(domain, Rho::from_f64_down(0.01)?, table.records() as u64);
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let made = OneWaysOnly.run_in_the_clear(table, &job, &mut rng, &mut |_| ())?;
    let fitted = made.model.fit().map_or(0.0, |fit| fit.seconds);
    let last = made.timings.last().map_or(0.0, |last| last.plan_seconds);
    Ok(((last - fitted).max(0.0) / columns as f64, made.model))
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

/// Fits of made-up measurements, as the default mechanism fits.
struct Fits {
    /// Cells of the model's cliques.
    cells: f64,
    /// Values that it is fitted to.
    values: f64,
    /// Seconds of a step.
    step: f64,
    /// Seconds of all that a fit does once.
    once: f64,
}

impl Fits {
    /// Each attribute with the next.
    fn chain() -> Result<Self, Error> {
        let [attributes, values] = CHAIN;
        let domain = Domain::new(vec![values; attributes]);
        let links = (1..attributes).map(|next| Clique::new([next - 1, next]));
        Self::time(&domain, links.collect())
    }

    /// Those pairs of a run's attributes for which there is room, one after the other.
    fn of_run(load: &Load) -> Result<Self, Error> {
        let sizes = load.sizes.iter().take(MAX_ATTRIBUTES);
        let domain = Domain::new(sizes.map(|&size| size.clamp(1, MAX_GROUPS)).collect());
        let most = load.model_cells.min(MAX_CELLS);
        let mut cliques: Vec<Clique> = (0..domain.len()).map(|a| Clique::new([a])).collect();
        let mut graph = ModelGraph::new(&domain);
        for pair in domain.pairs() {
            let mut with = graph.clone();
            with.add(&pair);
            if with.cells().is_some_and(|cells| cells <= most) {
                graph = with;
                cliques.push(pair);
            }
        }
        Self::time(&domain, cliques)
    }

    /// Of these cliques.
    fn time(domain: &Domain, cliques: Vec<Clique>) -> Result<Self, Error> {
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        let measured = cliques.into_iter().map(|clique| {
            // No distribution has these marginals, so the fit goes on for all of its steps.
            let cells = domain.cells(&clique).unwrap_or(0);
            let counts = (0..cells).map(|_| f64::from(rng.next_u32() % 1000));
            Measurement::cells(clique, counts.collect(), 1.0)
        });
        let measured: Vec<Measurement> = measured.collect();
        let less = fitted(domain, &measured, FIRST_STEPS)?.report();
        let cells = less.cells.max(1);
        let timed = (TIMED_CELLS / cells).clamp(MIN_TIMED, MAX_TIMED);
        let more = fitted(domain, &measured, FIRST_STEPS + timed)?.report();
        let step = match more.steps.saturating_sub(less.steps) {
            // It is so small that it ended by itself.
            0 => more.seconds / more.steps.max(1) as f64,
            steps => (more.seconds - less.seconds).max(0.0) / steps as f64,
        };
        Ok(Self {
            cells: cells as f64,
            values: measured.iter().map(|one| one.values.len() as f64).sum(),
            step,
            once: (more.seconds - step * more.steps as f64).max(0.0),
        })
    }
}

/// The quickest of some fits with so many steps.
fn fitted(domain: &Domain, measured: &[Measurement], steps: usize) -> Result<Model, Error> {
    let options = FitOptions {
        steps,
        tolerance: 0.0,
        passes: Passes::Contractions,
        memory: MEMORY,
        ..FitOptions::default()
    };
    let fit = || fit_once(domain, measured, &options, None);
    let mut best = fit()?;
    for _ in 1..TIMES {
        let next = fit()?;
        if next.report().seconds < best.report().seconds {
            best = next;
        }
    }
    Ok(best)
}
