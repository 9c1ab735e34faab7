//! What an encrypted run will take, by its public numbers alone, before anything is encrypted.

use std::{fmt, panic::resume_unwind, thread, time::Instant};

use fhaim_domain::Domain;
use fhaim_he::{DEGREE, PAGE, ParameterSet, Parameters, SecretKey, WORKING_BYTES};
use fhaim_protocol::{
    counts::CountTables,
    encryption::{Encryption, Form},
    roster::Contribution,
    terms::encryption,
    upload::UploadPlan,
};
use fhaim_release::{Holders, Job};
use fhaim_synth::MechanismName;
use serde::Serialize;

use crate::{error::Error, randomness::system, size};

/// Key material, in ciphertexts: some forty key-switching keys of a few polynomials each.
const KEY_CIPHERTEXTS: u64 = 160;

/// Combinations of columns that a batch holds at once, left and right forms, over the columns, if
/// that is less than an evaluator may take.
const COMBINATIONS: u64 = 4;

/// What takes as long as how many encryptions of a ciphertext on all cores (`fhaim run --json`, seven tables):
/// keys and what each batch takes anyway; a page of releases, for each ciphertext of records and of counts that it
/// is made of; a ladder's position, decrypted; the squares of a pair of columns.
const FIXED: f64 = 200.0;
const PAGE_OF_RECORDS: f64 = 1.3;
const PAGE_OF_COUNTS: f64 = 7.0;
const POSITION: f64 = 0.01;
const SQUARED_PAIR: f64 = 110.0;

/// Encryptions that the fits of a model of a megabyte take as long as.
const MODEL_MEGABYTE: f64 = 130.0;

/// Encryptions that a synthetic record takes as long as, for each pair of its columns and each column.
const DRAWN_PAIR: f64 = 1.5e-5;

/// Encryptions that each core is timed at, and how often: a moment's measurement of this machine as it is now.
const TIMED: usize = 8;
const TIMES: usize = 3;

/// What a run has to do and to hold: sizes at most.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Memory: the upload, what is computed from it, the keys, and what a run in the clear needs.
    pub memory_bytes: u64,
    upload_bytes: u64,
    /// Work besides fits, in encryptions of a ciphertext.
    encryptions: f64,
    /// Of the model that is expected.
    model_bytes: f64,
    set: ParameterSet,
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
    let residues = plan.residues as u64;
    let noise = plan.ladder.vectors() as u64 * u64::from(count);
    let (chunks, counts) = match contribution {
        Contribution::Records => (plan.layout.chunks() as u64 + u64::from(count) - 1, 0),
        Contribution::Counts => {
            let tables = CountTables::new(domain)?;
            (0, tables.layout().ciphertexts() as u64 * u64::from(count))
        }
    };
    let columns = domain.columns() as u64 * chunks * residues;
    let upload = columns + (noise + counts) * residues;
    let mut ciphertexts = upload.saturating_add(KEY_CIPHERTEXTS);
    let ciphertext_bytes = set.memory_bytes() as u64;
    let combinations = columns.saturating_mul(COMBINATIONS * ciphertext_bytes);
    let pages = ladder.positions().div_ceil(PAGE) as f64;
    let mut encryptions = FIXED
        + upload as f64
        + pages * PAGE_OF_RECORDS * columns as f64
        + pages * PAGE_OF_COUNTS * (counts * residues) as f64
        + POSITION * ladder.positions() as f64
        + DRAWN_PAIR * records as f64 * (domain.len() * (domain.len() + 1) / 2) as f64;
    if mechanism.releases_squares() {
        // Every pair's marginal and its square.
        let pairs = job.workload.pairs().len();
        ciphertexts += 2 * residues * pairs as u64;
        encryptions += SQUARED_PAIR * pairs as f64;
    }
    let polynomials = usize::try_from(upload / residues).unwrap_or(usize::MAX);
    let form = Form {
        encryption: key,
        layout: (contribution == Contribution::Records).then_some(plan.layout),
    };
    Ok(Load {
        memory_bytes: size::local_bytes(domain, records, job.model_bytes)
            .saturating_add(ciphertexts.saturating_mul(ciphertext_bytes))
            .saturating_add(combinations.min(WORKING_BYTES as u64)),
        upload_bytes: form.bytes(&Parameters::shared(set)?, polynomials),
        encryptions,
        model_bytes: expected_model(mechanism, &job, records),
        set,
    })
}

/// Bytes of the model that a mechanism can be expected to make: within the cap, and no more than a table of the whole
/// domain takes.
fn expected_model(mechanism: MechanismName, job: &Job, records: usize) -> f64 {
    let sizes = job.domain.sizes().iter();
    let whole: f64 = sizes.map(|&size| size as f64).product::<f64>() * size_of::<f64>() as f64;
    let share = mechanism.model_share(job, records);
    whole.min(job.model_bytes as f64 * share)
}

impl Load {
    /// The estimate for this machine, of which a moment is measured.
    ///
    /// # Errors
    /// A system without randomness.
    pub fn estimate(&self) -> Result<Estimate, Error> {
        let one = encryption_seconds(self.set)?;
        Ok(Estimate {
            memory_bytes: self.memory_bytes,
            upload_bytes: self.upload_bytes,
            seconds: one * self.encryptions,
            fit_seconds: one * MODEL_MEGABYTE * self.model_bytes / 1e6,
        })
    }
}

/// Seconds that this machine takes for an encryption when all of its cores encrypt, which two threads of one core do
/// no faster than one; the least of some tries, as what else runs only adds.
fn encryption_seconds(set: ParameterSet) -> Result<f64, Error> {
    let mut rng = system()?;
    let params = Parameters::shared(set)?;
    let key = SecretKey::random(&params, &mut rng)?.public_key(&mut rng)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let coefficients = vec![1; DEGREE];
    let encrypt = || -> Result<usize, Error> {
        let mut rng = system()?;
        let mut ciphertexts = 0;
        for _ in 0..TIMED {
            ciphertexts += key.encrypt(&coefficients, &mut rng)?.len();
        }
        Ok(ciphertexts)
    };
    let mut least = f64::INFINITY;
    for _ in 0..TIMES {
        let start = Instant::now();
        let all: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(encrypt)).collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let mut ciphertexts = 0;
        for done in all {
            ciphertexts += done.unwrap_or_else(|panic| resume_unwind(panic))?;
        }
        least = least.min(start.elapsed().as_secs_f64() / ciphertexts.max(1) as f64);
    }
    Ok(least)
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, upload) = (self.memory_bytes, self.upload_bytes);
        let [memory, upload] = [memory, upload].map(size::megabytes);
        write!(
            f,
            "at most {memory} MB of memory, {upload} MB to upload, about {}, and {} for the \
             fits",
            duration(self.seconds),
            duration(self.fit_seconds)
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
