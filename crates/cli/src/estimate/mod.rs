//! Forecasts memory, upload and seconds of an encrypted run from public numbers, before anything is encrypted.

mod speeds;
mod work;

use std::{fmt, time::Instant};

use fhaim_domain::Domain;
use fhaim_dp::LadderPlan;
use fhaim_he::{Layout, PAGE, ParameterSet, Parameters, RosterShape, WORKING_BYTES};
use fhaim_protocol::{
    counts::CountTables,
    encryption::{Encryption, Form},
    part::PartPlan,
    roster::ContributionKind,
    terms::encryption,
    upload::UploadPlan,
};
use fhaim_release::{Holders, MechanismJob};
use fhaim_synth::{ExpectedBatch, MechanismName, drawing_threads};
use serde::Serialize;

use self::speeds::Speeds;
pub use self::work::{ExpectedWork, Load};
use self::work::{PACKING_KEYS, drawn_values};
use crate::{error::Error, size};

/// Memory of a switching key, in ciphertexts at most.
const KEY_CIPHERTEXTS: u64 = 4;

/// Ratio of the combinations of columns that a batch holds at once, in left and right form, to the columns. An
/// evaluator may hold fewer.
const COMBINATIONS: u64 = 4;

/// Forecast of a run on this machine.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Estimate {
    /// Memory, at most.
    pub memory_bytes: u64,
    /// Size of the upload.
    pub upload_bytes: u64,
    /// Seconds without the fits, if this machine stays as busy as now.
    pub seconds: f64,
    /// Seconds of planning and fits, for models of the size that is expected for this number of records.
    pub fit_seconds: f64,
    /// Seconds in which as many synthetic records are drawn and written.
    pub draw_seconds: f64,
    /// Seconds that the measurement of this machine took.
    pub measured_seconds: f64,
    /// Seconds from the start of the run until the forecast, in which the table is read and this machine measured.
    pub said_seconds: f64,
    /// Expected numbers of operations.
    pub work: ExpectedWork,
    /// Speed of this machine.
    pub speeds: Speeds,
}

/// Expected work of a run of `mechanism` on a table of `records` records over `domain`. Each holder uploads its part as
/// a contribution of the given kind.
///
/// # Errors
/// The run cannot be planned.
pub fn load(
    mechanism: MechanismName,
    job: &MechanismJob,
    domain: &Domain,
    records: usize,
    contribution: ContributionKind,
) -> Result<Load, Error> {
    let count = job.holders.count();
    let uploads = match (contribution, job.holders.owners()) {
        (ContributionKind::Counts, _) => RosterShape::Counts(count as usize),
        (ContributionKind::Records, None) => RosterShape::Records(count as usize),
        (ContributionKind::Records, Some(_)) => RosterShape::Columns(count as usize),
    };
    let holders = match job.holders.owners() {
        // In a coarser domain, the assignment of columns to holders makes little difference to sizes.
        Some(owners) if owners.len() != domain.len() => {
            let holders = Holders::of_records(count, job.holders.honest());
            holders.map_err(fhaim_protocol::Error::from)?
        }
        _ => job.holders.clone(),
    };
    let job = MechanismJob {
        domain: domain.clone(),
        holders,
        ..job.clone()
    };
    let need = fhaim_synth::need(&*mechanism, &job)?;
    let (set, ladder) = encryption(&job.domain, job.record_bound, &need, &job.holders)?;
    let own_records = match uploads {
        RosterShape::Records(holders) => records.div_ceil(holders.max(1)),
        RosterShape::Columns(_) | RosterShape::Counts(_) => records,
    };
    let plan = UploadPlan::for_table(domain, own_records, ladder, &set)?;
    let shape = Shape::new(&plan, domain, uploads)?;
    let uploaded = shape.uploaded();
    let expected = mechanism.expected(&job, records)?;
    let polynomials = usize::try_from(uploaded / shape.residues.max(1)).unwrap_or(usize::MAX);
    let records_uploaded = contribution == ContributionKind::Records;
    let form = Form {
        encryption: match count {
            1 => Encryption::OwnKey,
            _ => Encryption::RosterKey,
        },
        layout: records_uploaded.then_some(plan.layout),
    };
    let threads = drawing_threads(domain.len(), records as u64).max(1) as f64;
    let mut load = Load {
        memory_bytes: 0,
        upload_bytes: form.bytes(&Parameters::shared(set)?, polynomials),
        set,
        layout: shape.layout,
        upload: ExpectedWork {
            keys: shape.keys() as f64,
            encryptions: uploaded as f64,
            samples: (ladder.samples() * count as usize) as f64,
            vectors: shape.contents() as f64,
            conversions: match contribution {
                ContributionKind::Records => 0.0,
                ContributionKind::Counts => shape.contents() as f64,
            },
            ..ExpectedWork::default()
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
    load.stages = expected
        .batches
        .iter()
        .map(|batch| load.batch(batch, &shape))
        .collect();
    // The last two fits follow the last two batches; all other fits are earlier.
    let stages = load.stages.len();
    for (place, fit) in expected.fits.iter().rev().enumerate() {
        let stage = stages.saturating_sub(1 + place.min(2));
        if let Some(stage) = load.stages.get_mut(stage) {
            stage.fit(fit);
        }
    }
    let mut held = shape.held() + KEY_CIPHERTEXTS * shape.keys();
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

/// Sizes of the uploads that all batches of a run are computed from.
struct Shape {
    /// Kind of the uploads. A sole holder has the shape of a roster of one.
    uploads: RosterShape,
    columns: u64,
    /// Number of attributes, each of which has a column per value.
    attributes: usize,
    /// Record chunks of all holders' tables; 0 for counts.
    chunks: u64,
    /// Ciphertexts of one holder's counts; 0 for records.
    counts: u64,
    residues: u64,
    /// Packing of the cells.
    layout: Layout,
    /// Noise ciphertexts of one holder under one plaintext modulus: of all pages, and of one page.
    noise: u64,
    page_noise: usize,
}

impl Shape {
    /// Shape of all uploads together, where `plan` is the plan of one of them.
    fn new(plan: &UploadPlan, domain: &Domain, uploads: RosterShape) -> Result<Self, Error> {
        let own = plan.layout.chunks() as u64;
        let (chunks, counts, layout) = match uploads {
            // Holders of records do not share a chunk.
            RosterShape::Records(holders) => (own * holders as u64, 0, plan.layout),
            RosterShape::Columns(_) => (own, 0, plan.layout),
            RosterShape::Counts(_) => {
                let tables = CountTables::new(domain)?;
                let ciphertexts = tables.layout().ciphertexts() as u64;
                (0, ciphertexts, tables.layout().packing()?)
            }
        };
        let vectors = plan.ladder.vectors();
        Ok(Self {
            uploads,
            columns: domain.columns() as u64,
            attributes: domain.len(),
            chunks,
            counts,
            residues: plan.residues as u64,
            layout,
            noise: vectors as u64,
            page_noise: vectors / plan.ladder.pages().max(1),
        })
    }

    fn holders(&self) -> u64 {
        self.uploads.holders() as u64
    }

    /// Switching keys. Those for columns have images at each of eight packing levels.
    fn keys(&self) -> u64 {
        let of_uploads = match self.uploads {
            RosterShape::Counts(_) => self.holders(),
            // Its first merges take one level only.
            RosterShape::Records(1) => 5,
            RosterShape::Records(_) => 19 * self.holders(),
            RosterShape::Columns(_) => 3 * self.holders() + 18,
        };
        PACKING_KEYS + of_uploads
    }

    /// Ciphertexts of all holders' columns or counts.
    fn contents(&self) -> u64 {
        (self.columns * self.chunks + self.counts * self.holders()) * self.residues
    }

    /// Ciphertexts that all holders upload.
    fn uploaded(&self) -> u64 {
        self.contents() + self.noise * self.holders() * self.residues
    }

    /// Number of uploaded ciphertexts that a run keeps in memory. Of counts, it keeps the sums; their noise is in a file.
    fn held(&self) -> u64 {
        match self.counts {
            0 => self.uploaded(),
            counts => counts * self.residues,
        }
    }

    /// Number of keys under which each leaf of a page is merged: one per holder of records, and a joint one of all
    /// holders of columns.
    fn merging_keys(&self) -> f64 {
        match self.uploads {
            RosterShape::Records(holders) => holders as f64,
            RosterShape::Columns(_) | RosterShape::Counts(_) => 1.0,
        }
    }

    /// Key switches per product. With several holders of columns, the left factor is switched to their joint key, too.
    fn factor_switches(&self) -> f64 {
        match self.uploads {
            RosterShape::Columns(_) => 2.0,
            RosterShape::Records(_) | RosterShape::Counts(_) => 1.0,
        }
    }
}

/// Size of all holders' noise samples in memory, before encryption.
fn samples_bytes(ladder: LadderPlan, holders: u32) -> u64 {
    let samples = ladder.vectors().saturating_mul(PAGE * size_of::<i64>());
    (samples as u64).saturating_mul(u64::from(holders))
}

impl Load {
    /// Work of a batch. Key switches turn combinations of columns into factors, and merge the leaves of a page. The
    /// first merge of two leaves switches two polynomials for sums, and four for products, under each key of the
    /// leaves. Each later merge switches one polynomial, and so does each merge of counts. The releases of each
    /// variance on a page are sealed and decrypted separately, with separate noise.
    fn batch(&self, batch: &ExpectedBatch, shape: &Shape) -> ExpectedWork {
        let slots = shape.layout.slots();
        let cells = batch.sums + batch.products;
        let pages = cells.div_ceil(PAGE).max(1);
        let leaves = |cells: usize| cells.div_ceil(slots) as f64;
        // Each level of a page's tree takes at least one key switch.
        let levels = pages as f64 * f64::from(shape.layout.stride().ilog2());
        let (residues, holders) = (shape.residues as f64, shape.holders() as f64);
        let mut work = ExpectedWork::default();
        if shape.chunks > 0 {
            let chunks = shape.chunks as f64;
            work.products = residues * chunks * batch.products as f64;
            let (sums, products) = (leaves(batch.sums), leaves(batch.products));
            let first = shape.merging_keys() * (sums + 2.0 * products);
            let above = 0.5 * (sums + products) + levels;
            let factors = shape.factor_switches() * batch.factors as f64 * chunks;
            work.key_switches = residues * (first + above + factors);
        } else {
            let all = leaves(batch.sums) + leaves(batch.products);
            work.key_switches = residues * (all + levels);
            work.weighings = residues * (leaves(cells) + batch.statistics as f64);
        }
        // On average, each variance needs one of the two vectors of a level.
        let read = 1.0 - 0.5f64.powi(batch.variances as i32);
        work.vectors = residues * holders * (pages * shape.page_noise) as f64 * read;
        work.sheets = residues * (batch.variances + pages - 1) as f64;
        work.conversions = holders * work.sheets;
        // The counts of all columns are estimated after every batch.
        work.columns = shape.attributes as f64;
        work
    }

    /// Measures this machine and returns the forecast of a run that began at `begun`.
    ///
    /// # Errors
    /// The operating system has no randomness.
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
            seconds: encrypted,
            fit_seconds: fits,
            draw_seconds: speeds.draw_seconds(self),
            measured_seconds: started.elapsed().as_secs_f64(),
            said_seconds: begun.elapsed().as_secs_f64(),
            work,
            speeds,
        })
    }

    /// Measures this machine and returns the seconds of each batch with the fits that follow it, as services do them.
    ///
    /// # Errors
    /// The operating system has no randomness.
    pub fn stages(&self) -> Result<Vec<f64>, Error> {
        let speeds = Speeds::measure(self)?;
        let seconds = |stage: &ExpectedWork| speeds.seconds(stage).iter().sum();
        Ok(self.stages.iter().map(seconds).collect())
    }
}

/// Forecast of a holder's upload on this machine.
#[derive(Clone, Copy, Debug)]
pub struct UploadEstimate {
    bytes: u64,
    seconds: f64,
}

impl UploadEstimate {
    /// Measures this machine and returns the forecast for a holder's part.
    ///
    /// # Errors
    /// The operating system has no randomness.
    pub fn estimate(set: ParameterSet, part: &PartPlan) -> Result<Self, Error> {
        let params = Parameters::shared(set)?;
        let polynomials = part.object_count() * params.residues();
        let samples = part.ladder().samples();
        Ok(Self {
            bytes: part.bytes(&params),
            seconds: speeds::upload_seconds(&params, polynomials, samples)?,
        })
    }
}

impl fmt::Display for UploadEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} MB to send; encryption takes about {}, and sending depends on the connection",
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
            "needs at most {memory} MB of memory and {upload} MB of uploads; takes about {}, and {} to fit a model \
             and sample from it",
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
