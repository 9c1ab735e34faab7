//! Counts computed under encryption equal the plaintext's, cell for cell.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_he::{
    Cell, Chunks, Columns, Combination, EncryptedTable, Error, EvaluationKeys, EvaluationWork,
    Evaluator, Factors, Layout, PAGE, ParameterSet, Parameters, PublicKey, STANDARD, SecretKey,
    Section, Threads, UploadCiphertext, UploadKey, UploadSwitchKeys, coefficient,
};
use proptest::prelude::*;
use rand::{Rng as _, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

/// A key service's keys and a sole holder's upload key.
struct Keys {
    secret: SecretKey,
    public: PublicKey,
    evaluation: EvaluationKeys,
    upload: UploadKey,
}

/// A table as its sole holder uploads it, with its switching keys.
struct Uploaded {
    table: EncryptedTable,
    own: UploadSwitchKeys,
}

impl Keys {
    fn upload(
        &self,
        layout: Layout,
        columns: Vec<Vec<Vec<UploadCiphertext>>>,
        rng: &mut ChaCha20Rng,
    ) -> Uploaded {
        let own = self.upload.switch_keys(&self.public, Some(layout), rng);
        Uploaded {
            table: EncryptedTable::new(self.public.params(), layout, columns).unwrap(),
            own: own.unwrap(),
        }
    }

    fn encrypt(&self, coefficients: &[i64], rng: &mut ChaCha20Rng) -> Vec<UploadCiphertext> {
        let seeded = self.upload.encrypt(coefficients, rng).unwrap().into_iter();
        seeded
            .map(|c| c.expand(self.public.params()).unwrap())
            .collect()
    }

    fn evaluator<'a>(&'a self, uploaded: &'a Uploaded) -> Evaluator<'a> {
        let evaluator = Evaluator::new(&self.evaluation, uploaded.table.layout());
        evaluator.with_switch_keys(&uploaded.own).unwrap()
    }
}

fn keys(set: ParameterSet, rng: &mut ChaCha20Rng) -> Keys {
    let params = Parameters::new(set).unwrap();
    let secret = SecretKey::random(&params, rng).unwrap();
    let public = secret.public_key(rng).unwrap();
    let evaluation = secret.evaluation_keys(rng).unwrap();
    Keys {
        upload: UploadKey::random(&params, rng).unwrap(),
        secret,
        public,
        evaluation,
    }
}

/// Encrypts one-hot columns of coded attributes.
fn encrypt(keys: &Keys, sizes: &[usize], columns: &[Vec<u32>], rng: &mut ChaCha20Rng) -> Uploaded {
    let records = columns[0].len();
    let layout = Layout::for_records(records).unwrap();
    let mut encrypted = Vec::new();
    for (&size, column) in sizes.iter().zip(columns) {
        for category in 0..size as u32 {
            let chunks = column.chunks(8192).map(|chunk| {
                let bits: Vec<i64> = chunk.iter().map(|&x| i64::from(x == category)).collect();
                keys.encrypt(&bits, rng)
            });
            encrypted.push(chunks.collect());
        }
    }
    keys.upload(layout, encrypted, rng)
}

/// Compares all pairs and all sums with plaintext counts. Returns the largest noise.
fn check_all_pairs(
    keys: &Keys,
    sizes: &[usize],
    columns: &[Vec<u32>],
    rng: &mut ChaCha20Rng,
) -> f64 {
    let uploaded = encrypt(keys, sizes, columns, rng);
    let evaluator = keys.evaluator(&uploaded);
    let table = &uploaded.table;
    let all: Vec<Combination> = (0..table.count()).map(Combination::column).collect();
    let factors = Factors {
        left: &all,
        right: &all,
    };
    let offsets: Vec<usize> = sizes
        .iter()
        .scan(0, |sum, &n| {
            *sum += n;
            Some(*sum - n)
        })
        .collect();
    let mut cells = Vec::new();
    let mut expected = Vec::new();
    for a in 0..sizes.len() {
        for u in 0..sizes[a] {
            cells.push(Cell::Sum {
                left: offsets[a] + u,
            });
            expected.push(columns[a].iter().filter(|&&x| x == u as u32).count() as i128);
        }
        for b in a + 1..sizes.len() {
            for u in 0..sizes[a] {
                for v in 0..sizes[b] {
                    cells.push(Cell::Product {
                        left: offsets[b] + v,
                        right: offsets[a] + u,
                    });
                    let both = columns[a].iter().zip(&columns[b]);
                    let count = both
                        .filter(|&(&x, &y)| x == u as u32 && y == v as u32)
                        .count();
                    expected.push(count as i128);
                }
            }
        }
    }
    let mut largest = 0f64;
    for (cells, expected) in cells.chunks(PAGE).zip(expected.chunks(PAGE)) {
        let placed: Vec<(usize, Cell)> = cells.iter().copied().enumerate().collect();
        let pages: Vec<_> = (0..keys.public.params().residues())
            .map(|residue| {
                let cells = std::slice::from_ref(&placed);
                let pages = evaluator.pages(
                    table,
                    residue,
                    factors,
                    cells,
                    &mut EvaluationWork::default(),
                );
                pages.unwrap()[0].as_ref().unwrap().ciphertext().clone()
            })
            .collect();
        let (values, noise) = keys.secret.decrypt(&pages).unwrap();
        largest = largest.max(noise);
        for p in 0..PAGE {
            let wanted = expected.get(p).copied().unwrap_or(0);
            assert_eq!(values[coefficient(p)], wanted, "position {p}");
        }
    }
    largest
}

fn random_table(sizes: &[usize], records: usize, rng: &mut ChaCha20Rng) -> Vec<Vec<u32>> {
    sizes
        .iter()
        .map(|&n| {
            (0..records)
                .map(|_| rng.random_range(0..n as u32))
                .collect()
        })
        .collect()
}

/// Returns the key set that the tests of this file share.
fn shared_keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| keys(STANDARD, &mut ChaCha20Rng::seed_from_u64(11)))
}

/// Encrypts a random table and compares every cell of every pair with its count.
fn counts_are_exact(records: usize, sizes: &[usize], seed: u64) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let columns = random_table(sizes, records, &mut rng);
    let noise = check_all_pairs(shared_keys(), sizes, &columns, &mut rng);
    eprintln!("{records} records, domains {sizes:?}: noise {noise} bits");
}

/// Numbers of records at the edges of chunks and blocks.
const EDGES: [usize; 12] = [
    1, 63, 64, 65, 2048, 4095, 4096, 4097, 8191, 8192, 8193, 20_000,
];

#[test]
#[ignore = "slow"]
fn counts_at_the_edges_of_chunks_and_blocks_are_exact() {
    for (seed, records) in EDGES.into_iter().enumerate() {
        counts_are_exact(records, &[3, 2, 4], seed as u64);
    }
}

#[test]
#[ignore = "slow"]
fn counts_of_wide_tables_are_exact() {
    counts_are_exact(20_000, &[40, 12], 1);
    counts_are_exact(300, &[40; 3], 2);
    counts_are_exact(60, &[4, 2, 9, 2, 3, 13, 2, 5, 2, 40, 3, 6], 3);
}

/// Largest number of leaves of the packing tree and encrypted ciphertexts for a random table.
const MAX_WORK: usize = 150;

/// Cuts the largest domain, then removes the last attribute, until the table is cheap enough.
fn affordable(records: usize, mut sizes: Vec<usize>) -> Vec<usize> {
    let layout = Layout::for_records(records).unwrap();
    let work = |sizes: &[usize]| {
        let columns: usize = sizes.iter().sum();
        let squares: usize = sizes.iter().map(|n| n * n).sum();
        let cells = (columns * columns - squares) / 2;
        cells / layout.slots() + columns * layout.chunks()
    };
    while work(&sizes) > MAX_WORK {
        match sizes.iter_mut().max() {
            Some(largest) if *largest > 3 => *largest -= *largest / 3,
            _ => drop(sizes.pop()),
        }
    }
    sizes
}

fn any_table() -> impl Strategy<Value = (usize, Vec<usize>, u64)> {
    let records = prop_oneof![
        1 => prop::sample::select(&EDGES[..]),
        2 => 1..600usize,
        1 => 600..=20_000usize,
    ];
    let sizes = prop::collection::vec(2..=40usize, 2..=12);
    (records, sizes, any::<u64>())
        .prop_map(|(records, sizes, seed)| (records, affordable(records, sizes), seed))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12,
        max_shrink_iters: 8,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    #[ignore = "slow"]
    fn counts_are_exact_on_random_tables((records, sizes, seed) in any_table()) {
        counts_are_exact(records, &sizes, seed);
    }
}

/// A table that records how it is read, and that can fail to be read.
#[derive(Debug)]
struct Watched {
    table: EncryptedTable,
    /// For each read, the numbers of columns and of chunks.
    reads: Mutex<Vec<(usize, usize)>>,
    fails: bool,
}

impl Columns for Watched {
    fn params(&self) -> &Parameters {
        self.table.params()
    }

    fn layout(&self) -> Layout {
        self.table.layout()
    }

    fn count(&self) -> usize {
        self.table.count()
    }

    fn sections(&self) -> Vec<Section> {
        self.table.sections()
    }

    fn read(
        &self,
        residue: usize,
        columns: &[usize],
        chunks: Range<usize>,
    ) -> Result<Vec<Chunks>, Error> {
        if self.fails {
            return Err(Error::Unavailable("the disk is gone".to_owned()));
        }
        let read = (columns.len(), chunks.len());
        self.reads.lock().unwrap().push(read);
        self.table.read(residue, columns, chunks)
    }
}

/// With less memory for chunks and sums, the pages stay the same, residue for residue, and no more chunks are read at
/// once than the memory holds.
#[test]
#[ignore = "slow"]
fn division_into_bands_gives_the_same_pages() {
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let keys = keys(STANDARD, &mut rng);
    let records = 4 * 8192 + 5;
    let sizes = [2, 3, 3];
    let draw = |&size: &usize| {
        (0..records)
            .map(|_| rng.random_range(0..size as u32))
            .collect()
    };
    let columns: Vec<Vec<u32>> = sizes.iter().map(draw).collect();
    let Uploaded { table, own } = encrypt(&keys, &sizes, &columns, &mut rng);
    let mut table = Watched {
        table,
        reads: Mutex::default(),
        fails: false,
    };
    // Contrasts on one side and columns on the other, with sums and gaps among the products.
    let left = [
        Combination(vec![(0, 2), (1, -3)]),
        Combination::column(5),
        Combination(vec![(6, 1), (7, 1)]),
    ];
    let right = [Combination::column(2), Combination(vec![(3, 1), (4, -1)])];
    let factors = Factors {
        left: &left,
        right: &right,
    };
    let products = (0..3).flat_map(|left| (0..2).map(move |right| Cell::Product { left, right }));
    let cells: Vec<Cell> = products
        .chain((0..3).map(|left| Cell::Sum { left }))
        .collect();
    let placed = |step: usize| {
        let cells = cells.iter().cycle().take(36).enumerate();
        cells.map(|(k, &cell)| (k * step, cell)).collect()
    };
    let pages = [placed(1), placed(9), Vec::new()];
    let evaluate = |table: &Watched, memory: Option<usize>| {
        let evaluator = Evaluator::new(&keys.evaluation, table.layout());
        let mut evaluator = evaluator.with_switch_keys(&own).unwrap();
        if let Some(memory) = memory {
            evaluator = evaluator.with_backend(Arc::new(Threads::with_memory(memory)));
        }
        let pages = evaluator.pages(table, 0, factors, &pages, &mut EvaluationWork::default())?;
        let of = |page: fhaim_he::PackedPage| (page.ciphertext().clone(), page.deviation());
        let pages = pages.into_iter().map(|page| page.map(of));
        Ok::<_, Error>(pages.collect::<Vec<_>>())
    };
    let reads = |table: &Watched| std::mem::take(&mut *table.reads.lock().unwrap());
    let whole = evaluate(&table, None).unwrap();
    assert!(whole[0].is_some() && whole[1].is_some() && whole[2].is_none());
    assert_eq!(reads(&table), [(8, 5)]);

    let ciphertext = STANDARD.memory_bytes();
    // A chunk has 8 columns, 2 left and 2 right factors: 12 ciphertexts, in half of the memory.
    for (memory, chunks) in [(0, 1), (2 * 2 * 12 * ciphertext, 2)] {
        let banded = evaluate(&table, Some(memory)).unwrap();
        assert!(banded == whole, "other pages with {memory} bytes");
        let reads = reads(&table);
        let of_all_columns = reads.iter().filter(|read| read.0 == 8);
        let most = of_all_columns.map(|read| read.1).max();
        assert_eq!(most, Some(chunks), "with {memory} bytes");
        assert!(reads.len() > 4, "{} reads", reads.len());
    }

    table.fails = true;
    let error = evaluate(&table, Some(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a stored object could not be read, try again: the disk is gone"
    );
}
