//! Time of the parts of a batch, on one thread: the tensor, key switches and packing. Each is compared with its
//! limit, a loop in the first-level cache that does nothing else.

#![allow(clippy::unwrap_used)] // a bench stops if its setup fails

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fhaim_he::{
    COMPACT, Cell, Combination, DEGREE, EncryptedTable, EvaluationContext, EvaluationKeys,
    EvaluationWork, Factors, Layout, Operands, PagePlan, ParameterSet, Parameters, STANDARD,
    SecretKey, TileSums, TileTask, UploadKey, UploadSwitchKeys,
};
use fhaim_ntt::{Modulus, Transform};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::hint::black_box;

/// Number of columns on each side. Their products are 16 cells, a tile of leaves with one cell each.
const SIDE: usize = 4;

struct Fixture {
    keys: EvaluationKeys,
    own: UploadSwitchKeys,
    table: EncryptedTable,
    layout: Layout,
}

impl Fixture {
    fn new(set: ParameterSet, records: usize) -> Self {
        Self::with_columns(set, records, 2 * SIDE)
    }

    fn with_columns(set: ParameterSet, records: usize, columns: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let params = Parameters::new(set).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let keys = secret.evaluation_keys(&mut rng).unwrap();
        let layout = Layout::for_records(records).unwrap();
        let ones = vec![1; layout.stride()];
        let key = UploadKey::random(&params, &mut rng).unwrap();
        let own = key.switch_keys(&public, Some(layout), &mut rng).unwrap();
        let mut chunk = || {
            let seeded = key.encrypt(&ones, &mut rng).unwrap().into_iter();
            seeded.map(|c| c.expand(&params).unwrap()).collect()
        };
        let mut column = || (0..layout.chunks()).map(|_| chunk()).collect();
        let columns = (0..columns).map(|_| column()).collect();
        let table = EncryptedTable::new(&params, layout, columns).unwrap();
        Self {
            keys,
            own,
            table,
            layout,
        }
    }

    fn context(&self) -> EvaluationContext<'_> {
        let context = EvaluationContext::new(&self.keys, self.layout);
        context.with_switch_keys(&self.own).unwrap()
    }

    /// Makes one task of the products of all left with all right columns, repeated to fill the cells.
    fn products(&self, cells: usize, side: usize) -> TileTask {
        let left: Vec<_> = (0..side).map(Combination::column).collect();
        let right: Vec<_> = (SIDE..SIDE + side).map(Combination::column).collect();
        let factors = Factors {
            left: &left,
            right: &right,
        };
        let cell = |p| Cell::Product {
            left: p % side,
            right: p / side % side,
        };
        let page = (0..cells).map(|p| (p, cell(p))).collect();
        let context = self.context();
        let plan = PagePlan::new(&context, &self.table, 0, factors, &[page]).unwrap();
        plan.tasks(usize::MAX).remove(0)
    }

    fn operands(&self, context: &EvaluationContext<'_>, task: &TileTask) -> Operands {
        Operands::read(context, &self.table, task, &mut EvaluationWork::default()).unwrap()
    }
}

fn first_tile(
    context: &EvaluationContext<'_>,
    task: &TileTask,
    operands: &Operands,
) -> (TileSums, EvaluationWork) {
    let mut tiles = context.multiply(task, operands);
    tiles.next().unwrap().unwrap()
}

/// Sums of ciphertext products of a tile: leaves of one cell over four chunks, and leaves whose 16 cells are sums of
/// shifted columns.
fn tensor(c: &mut Criterion) {
    let mut group = c.benchmark_group("tensor");
    for (name, set, records) in [
        (
            "tile of 16 cells, 4 chunks, standard set",
            STANDARD,
            4 * DEGREE,
        ),
        (
            "tile of 16 cells, 4 chunks, compact set",
            COMPACT,
            4 * DEGREE,
        ),
        ("tile of 256 cells, 16 slots, standard set", STANDARD, 512),
        ("tile of 256 cells, 16 slots, compact set", COMPACT, 512),
    ] {
        let fixture = Fixture::new(set, records);
        let context = fixture.context();
        let task = fixture.products(16 * fixture.layout.slots(), SIDE);
        let operands = fixture.operands(&context, &task);
        let (_, work) = first_tile(&context, &task, &operands);
        group.throughput(Throughput::Elements(work.multiply_accumulates));
        group.bench_function(name, |b| {
            b.iter(|| first_tile(&context, &task, &operands));
        });
    }
    const STRIP: usize = 256;
    const TERMS: usize = 8;
    for (name, set) in [("standard set", STANDARD), ("compact set", COMPACT)] {
        let modulus = Modulus::new(set.ciphertext_moduli[0]);
        let x: [u64; STRIP] = std::array::from_fn(|i| modulus.value() - 1 - i as u64);
        let mut sums = [[0; STRIP]; 3];
        group.throughput(Throughput::Elements((4 * TERMS * STRIP) as u64));
        group.bench_function(format!("limit: products in cache, {name}"), |b| {
            b.iter(|| modulus.tensor(&[[black_box(&x); 4]; TERMS], black_box(&mut sums)));
        });
    }
    group.finish();
}

/// The centred basis of 32 columns in 8 groups and in 32, as left factors over four chunks.
fn contrasts(c: &mut Criterion) {
    const COLUMNS: usize = 32;
    let fixture = Fixture::with_columns(STANDARD, 4 * DEGREE, COLUMNS + 1);
    let context = fixture.context();
    let function = |k: usize, group: usize| {
        let value = |x: usize| k as i64 * i64::from(x * k / COLUMNS == group) - 1;
        Combination((0..COLUMNS).map(|x| (x, value(x))).collect())
    };
    let left: Vec<_> = [8, COLUMNS]
        .into_iter()
        .flat_map(|k| (0..k).map(move |group| (k, group)))
        .map(|(k, group)| function(k, group))
        .collect();
    let right = [Combination::column(COLUMNS)];
    let factors = Factors {
        left: &left,
        right: &right,
    };
    let mut group = c.benchmark_group("contrasts");
    for (name, cell) in [
        ("as factors", |left| Cell::Product { left, right: 0 }),
        ("summed", |left| Cell::Sum { left }),
    ] as [(&str, fn(usize) -> Cell); 2]
    {
        let page = (0..left.len()).map(|p| (p, cell(p))).collect();
        let plan = PagePlan::new(&context, &fixture.table, 0, factors, &[page]).unwrap();
        let task = plan.tasks(usize::MAX).remove(0);
        group.throughput(Throughput::Elements(left.len() as u64));
        group.bench_function(name, |b| b.iter(|| fixture.operands(&context, &task)));
    }
    group.finish();
}

/// A right form: one key switch of one polynomial and its division. At two ciphertext primes that is 12 transforms,
/// with one digit or two, and at three it is 20.
fn key_switch(c: &mut Criterion) {
    let mut group = c.benchmark_group("key switch");
    for (name, set) in [
        ("right form, standard set", STANDARD),
        ("right form, compact set", COMPACT),
    ] {
        let fixture = Fixture::new(set, DEGREE);
        let context = fixture.context();
        let task = fixture.products(1, 1);
        group.throughput(Throughput::Elements(1));
        group.bench_function(name, |b| b.iter(|| fixture.operands(&context, &task)));
        let transform = Transform::new(DEGREE, set.special_moduli[0]).unwrap();
        let mut values: Vec<u64> = (0..DEGREE as u64).collect();
        let limit = name.replace("right form", "limit: one transform in cache");
        group.bench_function(limit, |b| {
            b.iter(|| transform.forward(black_box(&mut values)));
        });
    }
    group.finish();
}

/// Packing of a tile: 8 merges of leaves, which relinearise, and 7 merges of their results.
fn packing(c: &mut Criterion) {
    let mut group = c.benchmark_group("packing");
    for (name, set) in [
        ("tile of 16 leaves, standard set", STANDARD),
        ("tile of 16 leaves, compact set", COMPACT),
    ] {
        let fixture = Fixture::new(set, DEGREE);
        let context = fixture.context();
        let task = fixture.products(16, SIDE);
        let operands = fixture.operands(&context, &task);
        let (sums, _) = first_tile(&context, &task, &operands);
        group.throughput(Throughput::Elements(16));
        group.bench_function(name, |b| {
            let pack = |sums| context.pack(sums).unwrap();
            b.iter_batched(|| sums.clone(), pack, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, tensor, contrasts, key_switch, packing);
criterion_main!(benches);
