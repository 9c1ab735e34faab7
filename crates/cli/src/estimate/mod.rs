//! What an encrypted run will take, by its public numbers alone, before anything is encrypted.

mod speeds;

use std::{fmt, ops::Add, time::Instant};

use fhaim_domain::Domain;
use fhaim_dp::LadderPlan;
use fhaim_he::{LEAVES_A_THREAD, Layout, PAGE, ParameterSet, Parameters, WORKING_BYTES};
use fhaim_protocol::{
    counts::CountTables,
    encryption::{Encryption, Form},
    part::PartPlan,
    roster::Contribution,
    terms::encryption,
    upload::UploadPlan,
};
use fhaim_release::{Holders, Job};
use fhaim_synth::{ExpectedBatch, ExpectedFit, MechanismName, drawing_threads};
use serde::Serialize;

use self::speeds::Speeds;
use crate::{error::Error, size};

/// Key material, in ciphertexts: some forty key-switching keys of a few polynomials each.
const KEY_CIPHERTEXTS: u64 = 160;

/// Combinations of columns that a batch holds at once, left and right forms, over the columns, if
/// that is less than an evaluator may take.
const COMBINATIONS: u64 = 4;

/// What a run has to do and to hold: sizes at most.
#[derive(Clone, Debug)]
pub struct Load {
    /// Memory: the upload, what is computed from it, the keys, and what a run in the clear needs.
    pub memory_bytes: u64,
    upload_bytes: u64,
    set: ParameterSet,
    /// What the upload is encrypted under.
    key: Encryption,
    /// How cells are packed.
    layout: Layout,
    /// Whether there are columns of records, and keys to multiply them with.
    records: bool,
    /// What holders do.
    upload: Work,
    /// What is done for each batch, and then with its answers.
    stages: Vec<Work>,
    /// Sizes of the attributes, and cells of the largest model that is expected.
    sizes: Vec<usize>,
    model_cells: usize,
    /// Values that the thread looks at that draws most, and those that it writes.
    drawn_values: f64,
    written_values: f64,
}

/// How often a run does what takes its time, as it is expected before anything is known of the table.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Work {
    /// Ciphertexts of columns or counts, and of noise.
    pub encryptions: f64,
    /// Values of noise that holders draw.
    pub samples: f64,
    /// Ciphertexts that are read, of noise for pages, and of records once.
    pub vectors: f64,
    /// Ciphertexts of counts that are brought under the dataset's key.
    pub opened: f64,
    /// Ciphertexts that are sealed and decrypted.
    pub sheets: f64,
    /// Polynomials whose key is switched.
    pub key_switches: f64,
    /// Products of two combinations of a record chunk, summed.
    pub products: f64,
    /// Tables of counts that are weighed for a leaf of a page.
    pub weighings: f64,
    /// Of key switches and of weighings of counts those that one thread does while all others wait:
    pub lone_switches: f64,
    /// of the second.
    pub lone_weighings: f64,
    /// Squares of pages.
    pub squares: f64,
    /// Columns whose counts are estimated from what was released of them.
    pub columns: f64,
    /// Fits: calibrations,
    pub fit_steps: f64,
    /// the cells of their junction trees, each as often as it is calibrated,
    pub fit_cells: f64,
    /// values that they are fitted to, as often,
    pub fit_values: f64,
    /// and the cells of all trees, once.
    pub fit_tables: f64,
}

/// What a run will take on this machine.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Estimate {
    /// Memory, at most.
    pub memory_bytes: u64,
    /// Bytes that are encrypted and sent.
    pub upload_bytes: u64,
    /// Seconds if this machine is as busy as now, fits aside.
    pub seconds: f64,
    /// Seconds of planning and of the fits, of models as large as are expected of so many records.
    pub fit_seconds: f64,
    /// Seconds of drawing as many synthetic records.
    pub draw_seconds: f64,
    /// Seconds that measuring the machine took.
    pub measured_seconds: f64,
    /// Seconds from the run's start until this was said: of reading the table, and measuring.
    pub said_seconds: f64,
    /// What is expected to be done,
    pub work: Work,
    /// and how fast this machine is.
    pub speeds: Speeds,
}

/// What a run of `mechanism` has to do for a table of `records` records over `domain`, of whose holders
/// each uploads a contribution, encrypted under one key or another.
///
/// # Errors
/// What cannot be planned.
pub fn load(
    mechanism: MechanismName,
    job: &Job,
    domain: &Domain,
    records: usize,
    (contribution, key): (Contribution, Encryption),
) -> Result<Load, Error> {
    // Which column is whose makes no difference to sizes, and another domain has other columns.
    let count = job.holders.count();
    let holders = Holders::of_records(count, job.holders.honest());
    let holders = holders.map_err(fhaim_protocol::Error::from)?;
    let job = Job {
        domain: domain.clone(),
        holders,
        ..job.clone()
    };
    let need = fhaim_synth::need(&*mechanism, &job)?;
    let (set, ladder) = encryption(&job.domain, job.record_bound, &need, &job.holders, key)?;
    let plan = UploadPlan::for_table(domain, records, ladder, &set)?;
    let shape = Shape::new(&plan, domain, count, contribution)?;
    let uploaded = shape.uploaded(&plan, count);
    let expected = mechanism.expected(&job, records)?;
    let polynomials = usize::try_from(uploaded / shape.residues.max(1)).unwrap_or(usize::MAX);
    let form = Form {
        encryption: key,
        layout: (contribution == Contribution::Records).then_some(plan.layout),
    };
    let threads = drawing_threads(domain.len(), records as u64).max(1) as f64;
    let mut load = Load {
        memory_bytes: 0,
        upload_bytes: form.bytes(&Parameters::shared(set)?, polynomials),
        set,
        key,
        layout: shape.layout,
        records: contribution == Contribution::Records,
        upload: Work {
            encryptions: uploaded as f64,
            samples: (ladder.samples() * count as usize) as f64,
            ..Work::default()
        },
        stages: Vec::new(),
        sizes: domain.sizes().to_vec(),
        model_cells: expected
            .fits
            .iter()
            .fold(0.0, |most, fit| fit.cells.max(most)) as usize,
        drawn_values: records as f64 * drawn_values(domain) / threads,
        written_values: (records * domain.len()) as f64 / threads,
    };
    if key == Encryption::HolderKey {
        let content = uploaded - plan.ladder.vectors() as u64 * shape.residues;
        match contribution {
            Contribution::Records => load.upload.vectors = content as f64,
            Contribution::Counts => load.upload.opened = content as f64,
        }
    }
    load.stages = expected
        .batches
        .iter()
        .map(|batch| load.batch(batch, &shape))
        .collect();
    // The last two fits are made of the answers to the last two batches, and all others before.
    let stages = load.stages.len();
    for (place, fit) in expected.fits.iter().rev().enumerate() {
        let stage = stages.saturating_sub(1 + place.min(2));
        if let Some(stage) = load.stages.get_mut(stage) {
            stage.fit(fit);
        }
    }
    let mut held = shape.held(&plan, count).saturating_add(KEY_CIPHERTEXTS);
    if mechanism.releases_squares() {
        // Every pair's marginal and its square.
        let pairs = job.workload.pairs();
        held += 2 * shape.residues * pairs.len() as u64;
        let cells = pairs.iter().filter_map(|pair| domain.cells(&pair.clique()));
        let pages: usize = cells.map(|cells| cells.div_ceil(PAGE)).sum();
        load.upload.squares = (pages * plan.residues) as f64;
    }
    let bytes = |ciphertexts: u64| ciphertexts.saturating_mul(set.memory_bytes() as u64);
    let combinations = bytes(COMBINATIONS * shape.columns * shape.chunks * shape.residues);
    load.memory_bytes = size::local_bytes(domain, records, job.model_bytes)
        .saturating_add(bytes(held))
        .saturating_add(samples_bytes(ladder, count))
        .saturating_add(combinations.min(WORKING_BYTES as u64));
    Ok(load)
}

/// What all batches of a run are computed on.
struct Shape {
    columns: u64,
    /// Attributes, which have a column for each value.
    attributes: usize,
    /// Record chunks of all holders' tables; of counts there are none.
    chunks: u64,
    /// Ciphertexts of counts, of all holders; of records there are none.
    counts: u64,
    residues: u64,
    /// What cells are packed by.
    layout: Layout,
    /// Ciphertexts of noise that a page has, under a plaintext modulus.
    vectors: usize,
}

impl Shape {
    fn new(
        plan: &UploadPlan,
        domain: &Domain,
        holders: u32,
        contribution: Contribution,
    ) -> Result<Self, Error> {
        let (chunks, counts, layout) = match contribution {
            Contribution::Records => {
                let chunks = plan.layout.chunks() as u64 + u64::from(holders) - 1;
                (chunks, 0, plan.layout)
            }
            Contribution::Counts => {
                let tables = CountTables::new(domain)?;
                let ciphertexts = tables.layout().ciphertexts() as u64 * u64::from(holders);
                (0, ciphertexts, tables.layout().packing()?)
            }
        };
        Ok(Self {
            columns: domain.columns() as u64,
            attributes: domain.len(),
            chunks,
            counts,
            residues: plan.residues as u64,
            layout,
            vectors: plan.ladder.vectors() / plan.ladder.pages().max(1),
        })
    }

    /// Ciphertexts that a run keeps in memory of what all holders upload: of a contribution of counts the noise is in
    /// a file.
    fn held(&self, plan: &UploadPlan, holders: u32) -> u64 {
        match self.counts {
            0 => self.uploaded(plan, holders),
            counts => counts * self.residues,
        }
    }

    /// Ciphertexts that all holders upload.
    fn uploaded(&self, plan: &UploadPlan, holders: u32) -> u64 {
        let noise = plan.ladder.vectors() as u64 * u64::from(holders);
        (self.columns * self.chunks + self.counts + noise) * self.residues
    }
}

/// Bytes of all holders' noise as it is drawn, before it is encrypted.
fn samples_bytes(ladder: LadderPlan, holders: u32) -> u64 {
    let samples = ladder.vectors().saturating_mul(PAGE * size_of::<i64>());
    (samples as u64).saturating_mul(u64::from(holders))
}

/// What drawing a record looks at: every value of a column, beside each of the columns drawn before.
fn drawn_values(domain: &Domain) -> f64 {
    let values: usize = domain.sizes().iter().sum();
    values as f64 * (domain.len() + 1) as f64 / 2.0
}

impl Load {
    /// What a batch takes. Of records: a key switch to make each second factor, those that merge leaves of a page,
    /// and bring products under the key, and one for each leaf above. Of counts the last alone. Every variance on a page
    /// is made of noise, sealed and decrypted by itself.
    fn batch(&self, batch: &ExpectedBatch, shape: &Shape) -> Work {
        let slots = shape.layout.slots();
        let cells = batch.sums + batch.products;
        // The noise of the batch, from wherever the one before ended.
        let pages = cells.div_ceil(PAGE).max(1);
        let shared = |cells: usize| cells.div_ceil(slots) as f64;
        // Where cells are few, each level of a page's tree still takes one.
        let levels = pages as f64 * f64::from(shape.layout.stride().ilog2());
        let residues = shape.residues as f64;
        let mut work = Work::default();
        let mut key_switches = shared(batch.sums) + shared(batch.products) + levels;
        if shape.chunks > 0 {
            let chunks = shape.chunks as f64;
            work.products = residues * chunks * batch.products as f64;
            let [sum, product] = self.merging();
            key_switches += shared(batch.sums) * sum + shared(batch.products) * product;
            key_switches += batch.factors as f64 * chunks;
        } else {
            work.weighings = residues * (shared(cells) + batch.statistics as f64);
            work.lone_switches = residues * levels;
        }
        work.key_switches = residues * key_switches;
        if shape.chunks == 0 && shared(cells) <= (pages * LEAVES_A_THREAD) as f64 {
            // Leaves are so few that one thread has them all.
            work.lone_switches = work.key_switches;
            work.lone_weighings = work.weighings;
        }
        // Every variance takes one of the two vectors of a level, on average.
        let read = 1.0 - 0.5f64.powi(batch.variances as i32);
        work.vectors = residues * (pages * shape.vectors) as f64 * read;
        work.sheets = residues * (batch.variances + pages - 1) as f64;
        // Those of all columns are estimated anew after every batch.
        work.columns = shape.attributes as f64;
        work
    }

    /// Key switches of each leaf of sums, and of products, beside that of merging: a product is under the square of its
    /// key, too, and what is under a holder's key has to come under the dataset's.
    fn merging(&self) -> [f64; 2] {
        match self.key {
            Encryption::PublicKey => [0.0, 1.0],
            Encryption::HolderKey => [0.5, 1.5],
        }
    }

    /// The estimate for this machine, of which a moment is measured, for a run that has begun before.
    ///
    /// # Errors
    /// A system without randomness.
    pub fn estimate(&self, begun: Instant) -> Result<Estimate, Error> {
        let started = Instant::now();
        let speeds = Speeds::measure(self)?;
        let work = self
            .stages
            .iter()
            .fold(self.upload, |sum, &stage| sum + stage);
        let [encrypted, fits] = speeds.seconds(&work);
        Ok(Estimate {
            memory_bytes: self.memory_bytes,
            upload_bytes: self.upload_bytes,
            seconds: speeds.keys + encrypted,
            fit_seconds: fits,
            draw_seconds: self.drawn_values * speeds.drawn_value
                + self.written_values * speeds.written_value,
            measured_seconds: started.elapsed().as_secs_f64(),
            said_seconds: begun.elapsed().as_secs_f64(),
            work,
            speeds,
        })
    }

    /// Seconds of each batch, and of what comes of its answers, on a machine as fast as this one: what services do.
    ///
    /// # Errors
    /// A system without randomness.
    pub fn stages(&self) -> Result<Vec<f64>, Error> {
        let speeds = Speeds::measure(self)?;
        let seconds = |stage: &Work| speeds.seconds(stage).iter().sum();
        Ok(self.stages.iter().map(seconds).collect())
    }
}

impl Work {
    /// Counts a fit.
    fn fit(&mut self, fit: &ExpectedFit) {
        self.fit_steps += fit.steps;
        self.fit_cells += fit.steps * fit.cells;
        self.fit_values += fit.steps * fit.values;
        self.fit_tables += fit.cells;
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            encryptions: self.encryptions + other.encryptions,
            samples: self.samples + other.samples,
            vectors: self.vectors + other.vectors,
            opened: self.opened + other.opened,
            sheets: self.sheets + other.sheets,
            key_switches: self.key_switches + other.key_switches,
            products: self.products + other.products,
            weighings: self.weighings + other.weighings,
            lone_switches: self.lone_switches + other.lone_switches,
            lone_weighings: self.lone_weighings + other.lone_weighings,
            squares: self.squares + other.squares,
            columns: self.columns + other.columns,
            fit_steps: self.fit_steps + other.fit_steps,
            fit_cells: self.fit_cells + other.fit_cells,
            fit_values: self.fit_values + other.fit_values,
            fit_tables: self.fit_tables + other.fit_tables,
        }
    }
}

/// What a holder's upload will take on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Upload {
    bytes: u64,
    seconds: f64,
}

impl Upload {
    /// The estimate of a part, of which a moment is measured.
    ///
    /// # Errors
    /// A system without randomness.
    pub fn estimate(set: ParameterSet, part: &PartPlan) -> Result<Self, Error> {
        let params = Parameters::shared(set)?;
        let [encryption, sample] = speeds::holder(&params, part.form().encryption)?;
        let ciphertexts = part.object_count() * params.residues();
        Ok(Self {
            bytes: part.bytes(&params),
            seconds: ciphertexts as f64 * encryption + part.ladder().samples() as f64 * sample,
        })
    }
}

impl fmt::Display for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} MB to send, about {} to encrypt here; what sending takes beside that is the connection's to say",
            size::megabytes(self.bytes),
            duration(self.seconds)
        )
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, upload) = (self.memory_bytes, self.upload_bytes);
        let [memory, upload] = [memory, upload].map(size::megabytes);
        write!(
            f,
            "at most {memory} MB of memory, {upload} MB to upload, about {}, and {} to fit a model and \
             draw from it",
            duration(self.seconds),
            duration(self.fit_seconds + self.draw_seconds)
        )
    }
}

pub fn duration(seconds: f64) -> String {
    if seconds < 100.0 {
        format!("{:.0} s", seconds.max(1.0))
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}
