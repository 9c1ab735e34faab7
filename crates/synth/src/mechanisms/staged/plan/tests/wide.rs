//! Measures the time of plans of wide tables.

use std::time::Instant;

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::plain::plain_plan;
use super::*;

const RECORDS: f64 = 100_000.0;

/// rho of epsilon 1, of which a fifth went to the 1-ways and another fifth to the probe.
const RHO: f64 = 0.0115;

/// Returns all pairs of columns of four values, where each column equals the one before with
/// probability 0.7. The distances are those of the chain plus some noise of a probe.
fn chain(columns: usize) -> Vec<Candidate> {
    let mut rng = StdRng::seed_from_u64(1);
    let pairs = (0..columns).flat_map(|a| (a + 1..columns).map(move |b| [a, b]));
    let pairs: Vec<[usize; 2]> = pairs.collect();
    let resolution = |(k, resolved): (usize, f64)| Resolution {
        groups: [k, k],
        resolved: resolved * resolved,
        spent: 0.0,
    };
    let resolutions = [(2, 2.0 / 3.0), (3, 5.0 / 6.0), (4, 1.0)].map(resolution);
    let draw = |&attributes: &[usize; 2]| {
        let apart = (attributes[1] - attributes[0]) as i32;
        let seen = 1.5 * RECORDS * 0.7f64.powi(apart);
        let noise: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let shrunk = if seen < 800.0 { 0.3 } else { 1.0 };
        Candidate {
            resolutions: resolutions.to_vec(),
            probe: [4, 4],
            probe_rho: 0.2 * RHO / pairs.len() as f64,
            probe_resolved: 1.0,
            ..candidate(attributes, shrunk * (seen + 800.0 * noise).abs())
        }
    };
    pairs.iter().map(draw).collect()
}

/// Times the choice of a stage's exponent at a cap of 8 MB, and then its plan, with four pairs
/// between two scorings. With few columns, compares the plan with the plain loop's.
/// `cargo test --release -p fhaim-synth plans_of_wide_tables -- --nocapture` prints the seconds.
#[test]
fn plans_of_wide_tables_match_a_plain_loop() {
    for (columns, beside_plain) in [(20, true), (50, false)] {
        let domain = Domain::new(vec![4; columns]);
        let fixed = Fixed {
            noise_terms: 0.5 * columns as f64 * (3.0 * columns as f64).powf(2.0 / 3.0),
            spent: 0.2 * RHO,
            left: 0.6 * RHO,
        };
        let mut options = PlanOptions {
            additions: 4,
            block_cells: 1 << 16,
            ..options(1 << 20)
        };
        let mut candidates = chain(columns);
        let mut plain = candidates.clone();
        let start = Instant::now();
        let penalties = [0.1, 0.25, 0.5, 0.75];
        options.gamma = best_gamma(&domain, &fixed, &options, &penalties, &candidates);
        let weighed = start.elapsed().as_secs_f64();
        while plan(&domain, &fixed, &options, &mut candidates) {}
        let planned = start.elapsed().as_secs_f64() - weighed;
        let members = candidates.iter();
        let members = members
            .filter(|c| c.standing != CandidateStatus::Outside)
            .count();
        eprintln!(
            "{columns} columns: exponent {} in {weighed:.2} s, {members} pairs in {planned:.2} s",
            options.gamma
        );
        assert!(members > columns, "{members}");
        if beside_plain {
            while plain_plan(&domain, &fixed, &options, &mut plain) {}
            assert_eq!(candidates, plain);
        }
    }
}
