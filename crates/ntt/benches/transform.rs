//! Times of transforms at primes that parameter sets use.

#![allow(clippy::unwrap_used)] // a bench stops if its setup fails

use criterion::{Criterion, criterion_group, criterion_main};
use fhaim_ntt::Transform;
use std::hint::black_box;

/// Number of coefficients of a polynomial.
const DEGREE: usize = 8192;

fn transforms(c: &mut Criterion) {
    let mut group = c.benchmark_group("transform");
    for (name, q) in [
        ("60 bits", 0x0fff_ffff_fffe_8001),
        ("54 bits", 0x003f_ffff_ffe7_c001),
        ("51 bits", 0x0007_ffff_fffe_0001),
    ] {
        let transform = Transform::new(DEGREE, q).unwrap();
        let mut values: Vec<u64> = (0..DEGREE as u64).map(|i| (i << 40) % q).collect();
        group.bench_function(format!("{name}, forward"), |b| {
            b.iter(|| transform.forward(black_box(&mut values)));
        });
        group.bench_function(format!("{name}, inverse"), |b| {
            b.iter(|| transform.inverse(black_box(&mut values)));
        });
    }
    group.finish();
}

criterion_group!(benches, transforms);
criterion_main!(benches);
