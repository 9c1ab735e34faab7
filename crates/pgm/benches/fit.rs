//! Measures planning and fitting: `cargo bench -p fhaim-pgm --bench fit`.

mod adult_like;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fhaim_domain::Clique;
use fhaim_pgm::{ModelGraph, Passes, model_cells};

/// Kinds of passes.
const WAYS: [(&str, Passes); 2] = [
    ("tables", Passes::Tables),
    ("contractions", Passes::Contractions),
];

/// Measures the computation of a model's size from its pairs, and of the size with one more pair.
fn planning(criterion: &mut Criterion) {
    let domain = adult_like::domain();
    let pairs = domain.pairs();
    let extra = Clique::new([12, 13]);
    let mut group = criterion.benchmark_group("planning");
    for count in [13, 30, 91] {
        let cliques = &pairs[..count];
        group.bench_with_input(BenchmarkId::new("whole", count), cliques, |b, cliques| {
            b.iter(|| model_cells(&domain, black_box(cliques)));
        });
        let mut graph = ModelGraph::new(&domain);
        cliques.iter().for_each(|clique| graph.add(clique));
        group.bench_with_input(BenchmarkId::new("one more", count), &graph, |b, graph| {
            b.iter(|| graph.cells_with(black_box(&extra)));
        });
    }
    group.finish();
}

/// Measures a fit between two batches, of 100 steps, for several model sizes.
fn fitting(criterion: &mut Criterion) {
    let domain = adult_like::domain();
    let mut group = criterion.benchmark_group("fit, 100 steps");
    group.sample_size(10);
    for kilobytes in [100, 500, 1000] {
        let measured = adult_like::measurements(&domain, kilobytes);
        for (unit, passes) in WAYS.map(|(way, passes)| (format!("kB, {way}"), passes)) {
            let name = BenchmarkId::new(unit, kilobytes);
            group.bench_with_input(name, &measured, |b, measured| {
                b.iter(|| adult_like::model(&domain, black_box(measured), (passes, 100)));
            });
        }
    }
    group.finish();
}

/// Measures models that exceed the caches, with few steps, each of which passes over all cells.
fn large(criterion: &mut Criterion) {
    let domain = adult_like::domain();
    let mut group = criterion.benchmark_group("fit, 10 steps");
    group.sample_size(10);
    for megabytes in [1, 8, 64] {
        let measured = adult_like::measurements(&domain, 1000 * megabytes);
        for (unit, passes) in WAYS.map(|(way, passes)| (format!("MB, {way}"), passes)) {
            let name = BenchmarkId::new(unit, megabytes);
            group.bench_with_input(name, &measured, |b, measured| {
                b.iter(|| adult_like::model(&domain, black_box(measured), (passes, 10)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, planning, fitting, large);
criterion_main!(benches);
