//! What an encrypted run will take, by its public numbers alone, before anything is encrypted.

mod speeds;

use std::{fmt, time::Instant};

use fhaim_domain::Domain;
use fhaim_dp::LadderPlan;
use fhaim_he::{Layout, PAGE, ParameterSet, Parameters, WORKING_BYTES};
use fhaim_protocol::{
    counts::CountTables,
    encryption::{Encryption, Form},
    roster::Contribution,
    terms::encryption,
    upload::UploadPlan,
};
use fhaim_release::{Holders, Job};
use fhaim_synth::{ExpectedBatch, MechanismName, drawing_threads};
use serde::Serialize;

use self::speeds::Speeds;
use crate::{error::Error, size};

/// Key material, in ciphertexts: some forty key-switching keys of a few polynomials each.
const KEY_CIPHERTEXTS: u64 = 160;

/// Combinations of columns that a batch holds at once, left and right forms, over the columns, if
/// that is less than an evaluator may take.
const COMBINATIONS: u64 = 4;

/// What all fits of a run take for each megabyte of the model that is expected, in steps of the small fit for each of
/// its own: a fit takes more steps, and most of them are of models that are smaller yet (adult at the default cap).
const FITS: f64 = 150.0;

/// What a run has to do and to hold: sizes at most.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Memory: the upload, what is computed from it, the keys, and what a run in the clear needs.
    pub memory_bytes: u64,
    upload_bytes: u64,
    set: ParameterSet,
    /// What the upload is encrypted under.
    key: Encryption,
    /// How often a run does what speeds are measured of.
    encryptions: f64,
    key_switches: f64,
    products: f64,
    releases: f64,
    squares: f64,
    /// Of the thread that draws most.
    drawn_values: f64,
    /// Of the model that is expected.
    model_bytes: f64,
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
    /// Seconds of the fits, of a model as large as is expected of so many records.
    pub fit_seconds: f64,
    /// Seconds of drawing as many synthetic records.
    pub draw_seconds: f64,
    /// Seconds that measuring the machine took.
    pub measured_seconds: f64,
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
    let (set, ladder) = encryption(job.record_bound, &need, &job.holders, job.leak.form, key)?;
    let plan = UploadPlan::for_table(domain, records, ladder, &set)?;
    let shape = Shape::new(&plan, domain, count, contribution)?;
    let uploaded = shape.uploaded(&plan, count);
    let expected = mechanism.expected(&job, records)?;
    let polynomials = usize::try_from(uploaded / shape.residues.max(1)).unwrap_or(usize::MAX);
    let form = Form {
        encryption: key,
        layout: (contribution == Contribution::Records).then_some(plan.layout),
    };
    let mut load = Load {
        memory_bytes: 0,
        upload_bytes: form.bytes(&Parameters::shared(set)?, polynomials),
        set,
        key,
        encryptions: uploaded as f64,
        key_switches: 0.0,
        products: 0.0,
        releases: 0.0,
        squares: 0.0,
        drawn_values: records as f64 * drawn_values(domain)
            / drawing_threads(domain.len(), records as u64).max(1) as f64,
        model_bytes: model_bytes(&job, expected.model_share),
    };
    for batch in &expected.batches {
        load.add(batch, &shape);
    }
    let mut held = shape.held(&plan, count).saturating_add(KEY_CIPHERTEXTS);
    if mechanism.releases_squares() {
        // Every pair's marginal and its square.
        let pairs = job.workload.pairs();
        held += 2 * shape.residues * pairs.len() as u64;
        let cells = pairs.iter().filter_map(|pair| domain.cells(&pair.clique()));
        let pages: usize = cells.map(|cells| cells.div_ceil(PAGE)).sum();
        load.squares = (pages * plan.residues) as f64;
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
    /// Record chunks of all holders' tables; of counts there are none.
    chunks: u64,
    /// Ciphertexts of counts, of all holders; of records there are none.
    counts: u64,
    residues: u64,
    /// What cells are packed by.
    layout: Layout,
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
                let tables = CountTables::new(domain, contribution.form_of_new())?;
                let ciphertexts = tables.layout().ciphertexts() as u64 * u64::from(holders);
                (0, ciphertexts, tables.layout().packing()?)
            }
        };
        Ok(Self {
            columns: domain.columns() as u64,
            chunks,
            counts,
            residues: plan.residues as u64,
            layout,
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

/// Bytes of the model that a mechanism can be expected to make: within the cap, and no more than a table of the whole
/// domain takes.
fn model_bytes(job: &Job, share: f64) -> f64 {
    let sizes = job.domain.sizes().iter();
    let whole: f64 = sizes.map(|&size| size as f64).product::<f64>() * size_of::<f64>() as f64;
    whole.min(job.model_bytes as f64 * share)
}

impl Load {
    /// Adds what a batch takes: of records, a key switch to make each second factor, one to relinearise each product
    /// that cells share, and one to pack it; of counts, to pack alone. Every variance on it is sealed and decrypted by
    /// itself.
    fn add(&mut self, batch: &ExpectedBatch, shape: &Shape) {
        let shared = |cells: usize| cells.div_ceil(shape.layout.slots()) as u64;
        // Where cells are few, each level of a page's tree still takes one.
        let levels = u64::from(shape.layout.stride().ilog2());
        let mut key_switches = shared(batch.sums) + shared(batch.products) + levels;
        if shape.chunks > 0 {
            let over_chunks = batch.products as u64 + shape.columns;
            self.products += (shape.residues * shape.chunks * over_chunks) as f64;
            key_switches += shared(batch.products) + batch.factors as u64 * shape.chunks;
        }
        self.key_switches += (shape.residues * key_switches) as f64;
        self.releases += batch.variances as f64;
    }

    /// The estimate for this machine, of which a moment is measured.
    ///
    /// # Errors
    /// A system without randomness.
    pub fn estimate(&self) -> Result<Estimate, Error> {
        let started = Instant::now();
        let speeds = Speeds::measure(self.set, self.key)?;
        let seconds = speeds.keys
            + self.encryptions * speeds.encryption
            + self.key_switches * speeds.key_switch
            + self.products * speeds.product
            + self.releases * speeds.release
            + self.squares * speeds.square;
        Ok(Estimate {
            memory_bytes: self.memory_bytes,
            upload_bytes: self.upload_bytes,
            seconds,
            fit_seconds: FITS * speeds.fit_megabyte * self.model_bytes / 1e6,
            draw_seconds: self.drawn_values * speeds.drawn_value,
            measured_seconds: started.elapsed().as_secs_f64(),
        })
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

fn duration(seconds: f64) -> String {
    if seconds < 100.0 {
        format!("{:.0} s", seconds.max(1.0))
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}
