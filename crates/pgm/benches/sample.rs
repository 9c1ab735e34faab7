//! Measures queries of a fitted model: `cargo bench -p fhaim-pgm --bench sample`.

mod adult_like;

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fhaim_pgm::Passes;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn asking(criterion: &mut Criterion) {
    let domain = adult_like::domain();
    let measured = adult_like::measurements(&domain, 500);
    let model = adult_like::model(&domain, &measured, (Passes::Contractions, 100));
    let pairs = domain.pairs();
    let mut group = criterion.benchmark_group("asking a model of 500 kB");
    group.sample_size(10);
    group.bench_function("all pairs", |b| {
        b.iter(|| model.pair_marginals(black_box(&pairs)));
    });
    for records in [1000, adult_like::RECORDS] {
        group.throughput(Throughput::Elements(records as u64));
        let rng = || ChaCha8Rng::seed_from_u64(8);
        group.bench_function(BenchmarkId::new("records", records), |b| {
            b.iter_batched(
                rng,
                |mut rng| model.sample(records, &mut rng),
                BatchSize::LargeInput,
            );
        });
        let columns = model.sample(records, &mut rng());
        group.bench_function(BenchmarkId::new("densities", records), |b| {
            b.iter(|| model.log_densities(black_box(&columns)));
        });
    }
    group.finish();
}

criterion_group!(benches, asking);
criterion_main!(benches);
