//! Measures Compute: every cell of every pair of attributes, under encryption.

use crate::Error;
use crate::holder::{self, Holder, Noise};
use crate::upload::UploadPlan;
use fhaim_domain::{Clique, Table};
use fhaim_dp::LadderPlan;
use fhaim_he::{
    Cell, Combination, Evaluator, Factors, PAGE, ParameterSet, Parameters, SecretKey, Work,
    coefficient,
};
use rand::{CryptoRng, RngCore};

/// What computing all pairs of a table took.
#[derive(Clone, Debug, PartialEq)]
pub struct Compute {
    /// Records of the table.
    pub records: usize,
    /// Cells of all pairs.
    pub cells: usize,
    /// Seconds the holder took to encrypt the columns.
    pub encrypt_seconds: f64,
    /// Wall seconds of Compute: right forms, tensor, key switches, packing.
    pub seconds: f64,
    /// Processor seconds of Compute, where the system tells: what a busy machine leaves alone.
    pub cpu_seconds: Option<f64>,
    /// Counts, and seconds summed over threads.
    pub work: Work,
    /// Bytes of the columns' ciphertexts.
    pub bytes_up: u64,
    /// Bits between the largest noise and the size at which decryption errs.
    pub noise_bits_left: f64,
}

/// Encrypts `table`, computes all its pairs, decrypts and compares every cell with its count.
///
/// # Errors
/// [`Error::Table`] where a cell differs; what the entities refuse.
pub fn compute<R: RngCore + CryptoRng>(
    table: &Table,
    set: ParameterSet,
    rng: &mut R,
) -> Result<Compute, Error> {
    let params = Parameters::new(set)?;
    let secret = SecretKey::random(&params, rng)?;
    let public = secret.public_key(rng)?;
    let keys = secret.evaluation_keys(rng)?;
    let started = std::time::Instant::now();
    let no_noise = LadderPlan::new(0, 1)?;
    let plan = UploadPlan::for_table(table.domain(), table.records(), no_noise, &set)?;
    let records = table.records() as u64;
    let holder = Holder::new(table, records, Noise::Fresh, &public, plan)?;
    let upload = holder::encrypt(&holder, rng, &|| ())?;
    let encrypt_seconds = started.elapsed().as_secs_f64();
    let cells = all_pairs(table);
    let columns: Vec<_> = (0..table.domain().columns())
        .map(Combination::column)
        .collect();

    let (started, cpu_started) = (std::time::Instant::now(), cpu_seconds());
    let mut work = Work::default();
    let evaluator = Evaluator::new(&keys, upload.table.layout());
    let factors = Factors {
        left: &columns,
        right: &columns,
    };
    let placed = cells.chunks(PAGE).map(|c| c.iter().copied().enumerate());
    let placed: Vec<Vec<(usize, Cell)>> = placed.map(Iterator::collect).collect();
    let pages = evaluator.pages(&*upload.table, 0, factors, &placed, &mut work)?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = cpu_seconds()
        .zip(cpu_started)
        .map(|(end, start)| end - start);

    let counts = all_counts(table)?;
    let mut noise = 0f64;
    for (page, counts) in pages.iter().flatten().zip(counts.chunks(PAGE)) {
        let (values, bits) = secret.decrypt(std::slice::from_ref(page.ciphertext()))?;
        noise = noise.max(bits);
        if counts
            .iter()
            .enumerate()
            .any(|(p, &c)| values[coefficient(p)] != i128::from(c))
        {
            return Err(Error::Table(
                "a decrypted cell differs from its count".to_owned(),
            ));
        }
    }
    Ok(Compute {
        records: table.records(),
        cells: cells.len(),
        encrypt_seconds,
        seconds,
        cpu_seconds,
        bytes_up: plan.ciphertext_count() as u64 * set.ciphertext_bytes() as u64,
        noise_bits_left: set.noise_budget() - noise,
        work,
    })
}

/// Processor seconds of this process so far, on Linux.
fn cpu_seconds() -> Option<f64> {
    // The command's name, in brackets, may hold anything; user and system time follow it as the
    // 12th and 13th number, in units of 1/100 s whatever the machine.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

/// Cells of all pairs: for each category of the first attribute, all of the second's.
fn all_pairs(table: &Table) -> Vec<Cell> {
    let domain = table.domain();
    let offsets = domain.one_hot_offsets();
    let cell = |pair: &Clique| {
        let [a, b] = [pair.attributes()[0], pair.attributes()[1]];
        let (first, second) = (offsets[a]..offsets[a + 1], offsets[b]..offsets[b + 1]);
        first.flat_map(move |right| {
            second
                .clone()
                .map(move |left| Cell::Product { left, right })
        })
    };
    domain.pairs().iter().flat_map(cell).collect()
}

fn all_counts(table: &Table) -> Result<Vec<u64>, Error> {
    let mut counts = Vec::new();
    for pair in table.domain().pairs() {
        counts.extend(
            table
                .counts(&pair)
                .map_err(|e| Error::Table(e.to_string()))?,
        );
    }
    Ok(counts)
}
