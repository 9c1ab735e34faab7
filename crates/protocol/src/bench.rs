//! Measures the Compute phase: every cell of every pair of attributes, under encryption.

use crate::Error;
use fhaim_domain::{Clique, Table};
use fhaim_dp::fork;
use fhaim_he::map;
use fhaim_he::{
    Cell, Combination, EncryptedTable, EvaluationWork, Evaluator, Factors, Layout, PAGE,
    PackedPage, ParameterSet, Parameters, SecretKey, SeededCiphertext, UploadCiphertext, UploadKey,
    UploadSwitchKeys, coefficient,
};
use rand::{CryptoRng, RngCore};
use std::time::Instant;
use zeroize::Zeroizing;

/// Measurements of the computation of all pairs of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Compute {
    /// Number of records in the table.
    pub records: usize,
    /// Number of cells of all pairs.
    pub cells: usize,
    /// Identifier of the parameter set.
    pub set: u8,
    /// Seconds in which the holder draws its keys and encrypts the columns.
    pub encrypt_seconds: f64,
    /// Seconds to expand the parts of ciphertexts that are sent as seeds.
    pub expand_seconds: f64,
    /// Wall-clock seconds of Compute: right forms, tensor, key switches, packing.
    pub seconds: f64,
    /// Processor seconds of Compute, if the system reports them. Other load on the machine does not
    /// affect them.
    pub cpu_seconds: Option<f64>,
    /// Counts, and seconds summed over threads.
    pub work: EvaluationWork,
    /// Bytes of the columns' ciphertexts and of the holder's keys.
    pub bytes_up: u64,
    /// Bits between the largest noise and the noise at which decryption fails.
    pub noise_bits_left: f64,
}

/// Encrypts `table` under a holder's own key, computes all its pairs, decrypts them, and compares
/// every cell with its count.
///
/// # Errors
/// [`Error::Table`] if a cell differs; errors of the entities.
pub fn compute<R: RngCore + CryptoRng>(
    table: &Table,
    set: ParameterSet,
    rng: &mut R,
) -> Result<Compute, Error> {
    let params = Parameters::new(set)?;
    let secret = SecretKey::random(&params, rng)?;
    let public = secret.public_key(rng)?;
    let keys = secret.evaluation_keys(rng)?;
    let layout = Layout::for_records(table.records())?;
    let started = Instant::now();
    let key = UploadKey::random(&params, rng)?;
    let own = key.switch_keys(&public, Some(layout), rng)?;
    let columns = encrypt(table, &key, rng)?;
    let encrypt_seconds = started.elapsed().as_secs_f64();
    let chunks: usize = columns.iter().map(Vec::len).sum();
    let started = Instant::now();
    let encrypted = EncryptedTable::new(&params, layout, expand(&params, &columns)?)?;
    let expand_seconds = started.elapsed().as_secs_f64();

    let cells = all_pairs(table);
    let columns: Vec<_> = (0..table.domain().columns())
        .map(Combination::column)
        .collect();
    let (started, cpu_started) = (Instant::now(), cpu_seconds());
    let mut work = EvaluationWork::default();
    let evaluator = Evaluator::new(&keys, layout).with_switch_keys(&own)?;
    let factors = Factors {
        left: &columns,
        right: &columns,
    };
    let placed = cells.chunks(PAGE).map(|c| c.iter().copied().enumerate());
    let placed: Vec<Vec<(usize, Cell)>> = placed.map(Iterator::collect).collect();
    let pages = evaluator.pages(&encrypted, 0, factors, &placed, &mut work)?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = cpu_seconds()
        .zip(cpu_started)
        .map(|(end, start)| end - start);

    let noise = check(&secret, pages.iter().flatten(), &all_counts(table)?)?;
    let each = set.plaintext_moduli.len() * set.seeded_bytes();
    Ok(Compute {
        records: table.records(),
        cells: cells.len(),
        set: set.id,
        encrypt_seconds,
        expand_seconds,
        seconds,
        cpu_seconds,
        bytes_up: (chunks * each + UploadSwitchKeys::bytes(&params, Some(layout))) as u64,
        noise_bits_left: set.noise_budget() - noise,
        work,
    })
}

/// For each column and record chunk, the ciphertexts under all plaintext moduli, as they are sent.
type Sent = Vec<Vec<Vec<SeededCiphertext>>>;

/// Encrypts all columns. Each record chunk has its own generator, so that threads do not share one.
fn encrypt<R: RngCore + CryptoRng>(
    table: &Table,
    key: &UploadKey,
    rng: &mut R,
) -> Result<Sent, Error> {
    let columns = 0..table.domain().columns();
    let positions = columns.filter_map(|column| table.domain().one_hot_position(column));
    let chunks = positions.flat_map(|(attribute, category)| {
        let chunks = table.column(attribute).chunks(PAGE);
        chunks.map(move |codes| (codes, category))
    });
    let chunks: Vec<_> = chunks.map(|chunk| (chunk, fork(rng))).collect();
    let encrypt = |((codes, category), generator): &((&[u32], u32), _)| {
        let bits = codes.iter().map(|code| i64::from(code == category));
        let bits = Zeroizing::new(bits.collect::<Vec<i64>>());
        key.encrypt(&bits, &mut Clone::clone(generator))
    };
    let encrypted = map(chunks.iter().collect(), encrypt).into_iter();
    let encrypted = encrypted.collect::<Result<Vec<_>, _>>()?;
    let each = table.records().div_ceil(PAGE).max(1);
    Ok(encrypted.chunks(each).map(<[_]>::to_vec).collect())
}

/// Expands the seeded part of every ciphertext.
fn expand(
    params: &Parameters,
    columns: &[Vec<Vec<SeededCiphertext>>],
) -> Result<Vec<Vec<Vec<UploadCiphertext>>>, fhaim_he::Error> {
    let expand = |chunks: &Vec<Vec<SeededCiphertext>>| {
        let chunk = |residues: &Vec<SeededCiphertext>| {
            let residues = residues.iter().cloned();
            residues.map(|c| c.expand(params)).collect()
        };
        chunks.iter().map(chunk).collect()
    };
    map(columns.iter().collect(), expand).into_iter().collect()
}

/// Decrypts pages of cells and compares them with counts. Returns the largest noise, in bits.
fn check<'a>(
    secret: &SecretKey,
    pages: impl Iterator<Item = &'a PackedPage>,
    counts: &[u64],
) -> Result<f64, Error> {
    let mut noise = 0f64;
    for (page, counts) in pages.zip(counts.chunks(PAGE)) {
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
    Ok(noise)
}

/// Returns the processor seconds of this process so far, on Linux.
fn cpu_seconds() -> Option<f64> {
    // The command's name, in parentheses, may contain anything. User and system time are the 12th
    // and 13th field after it, in units of 1/100 s on every machine.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

/// Returns the cells of all pairs: for each category of the first attribute, all categories of the
/// second.
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
