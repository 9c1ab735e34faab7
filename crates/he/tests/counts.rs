//! Counts computed under encryption equal the plaintext's, cell for cell.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_he::{
    Cell, Combination, EncryptedTable, EvaluationKeys, Evaluator, Layout, P1, PAGE, ParameterSet,
    Parameters, PublicKey, SecretKey, Work, coefficient,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

struct Keys {
    secret: SecretKey,
    public: PublicKey,
    evaluation: EvaluationKeys,
}

fn keys(set: ParameterSet, rng: &mut ChaCha20Rng) -> Keys {
    let params = Parameters::new(set).unwrap();
    let secret = SecretKey::random(&params, rng).unwrap();
    let public = secret.public_key(rng).unwrap();
    let evaluation = secret.evaluation_keys(rng).unwrap();
    Keys {
        secret,
        public,
        evaluation,
    }
}

/// Encrypts one-hot columns of coded attributes.
fn encrypt(
    keys: &Keys,
    sizes: &[usize],
    columns: &[Vec<u32>],
    rng: &mut ChaCha20Rng,
) -> EncryptedTable {
    let records = columns[0].len();
    let layout = Layout::for_records(records).unwrap();
    let mut encrypted = Vec::new();
    for (&size, column) in sizes.iter().zip(columns) {
        for category in 0..size as u32 {
            let chunks = column.chunks(8192).map(|chunk| {
                let bits: Vec<i64> = chunk.iter().map(|&x| i64::from(x == category)).collect();
                keys.public.encrypt(&bits, rng).unwrap()
            });
            encrypted.push(chunks.collect());
        }
    }
    EncryptedTable::new(keys.public.params(), layout, encrypted).unwrap()
}

/// All pairs and all sums, compared with plaintext counts; returns the largest noise seen.
fn check_all_pairs(
    keys: &Keys,
    sizes: &[usize],
    columns: &[Vec<u32>],
    rng: &mut ChaCha20Rng,
) -> f64 {
    let table = encrypt(keys, sizes, columns, rng);
    let evaluator = Evaluator::new(&keys.evaluation, table.layout());
    let all: Vec<Combination> = (0..table.columns()).map(Combination::column).collect();
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
                let mut work = Work::default();
                let operands = evaluator
                    .operands(&table, residue, &all, &all, &mut work)
                    .unwrap();
                evaluator
                    .pack(&operands, &placed, &mut work)
                    .unwrap()
                    .unwrap()
                    .ciphertext()
                    .clone()
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

#[test]
fn every_layout_counts_exactly() {
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let keys = keys(P1, &mut rng);
    for records in [
        1, 63, 64, 65, 286, 4095, 4096, 4097, 8191, 8192, 8193, 20_000,
    ] {
        let sizes = [3, 2, 4];
        let columns = random_table(&sizes, records, &mut rng);
        let noise = check_all_pairs(&keys, &sizes, &columns, &mut rng);
        eprintln!("{records} records: noise {noise} bits");
    }
}
