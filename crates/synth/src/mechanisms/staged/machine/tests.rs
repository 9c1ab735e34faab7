//! Runs on made-up answers, to check which releases are requested.

use super::*;
use crate::mechanisms::staged::{Ablations, StagedOptions};
use fhaim_domain::Domain;
use fhaim_dp::Rho;
use fhaim_release::{ReleaseRequest, Statistic, UNIT_VARIANCE};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Returns answers about a uniform and independent table of `records` records, without noise.
fn answers(requests: &[ReleaseRequest], records: i64) -> Vec<Vec<i64>> {
    let answer = |request: &ReleaseRequest| match request.statistic {
        Statistic::Total => vec![records],
        ref centred => vec![0; centred.cells()],
    };
    requests.iter().map(answer).collect()
}

/// Returns whether a run on `records` records requests anything about a pair.
fn asks_about_pairs(rho: f64, records: i64) -> bool {
    let rho = Rho::from_f64_down(rho).unwrap();
    let job = MechanismJob::new(Domain::new(vec![3; 6]), rho, records as u64);
    let mut staged = StagedMachine::new(job, Staged::default()).unwrap();
    let (mut given, mut pairs) = (Vec::new(), false);
    while let MechanismStep::Release(requests) = staged.step(&given).unwrap() {
        pairs |= (requests.iter()).any(|r| matches!(r.statistic, Statistic::Product(..)));
        given = answers(&requests, records);
    }
    let spent = staged.account.spent().to_f64();
    assert!(spent > 0.98 * rho.to_f64(), "{spent} of {}", rho.to_f64());
    pairs
}

#[test]
fn probe_that_would_see_only_noise_is_skipped() {
    // 15 pairs of two contrasts: s is about 43 records.
    assert!(!asks_about_pairs(0.01, 100));
    assert!(!asks_about_pairs(0.01, 300));
    assert!(asks_about_pairs(0.01, 400));
    assert!(asks_about_pairs(0.2, 100));
}

/// Returns the number of pair blocks that the stages request, on counts of a uniform and
/// independent table with noise of the requested variances.
fn blocks_of_noise(mechanism: Staged, seed: u64) -> usize {
    let rho = Rho::from_f64_down(0.01).unwrap();
    let job = MechanismJob::new(Domain::new(vec![4; 12]), rho, 20_000);
    let mut staged = StagedMachine::new(job, mechanism).unwrap();
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut given, mut blocks) = (Vec::new(), 0);
    while let MechanismStep::Release(requests) = staged.step(&given).unwrap() {
        if matches!(staged.state, State::Stage(_)) {
            let pairs = requests.iter();
            let pairs = pairs.filter(|r| matches!(r.statistic, Statistic::Product(..)));
            blocks += pairs.count();
        }
        let noise = |request: &ReleaseRequest| {
            let sigma = (UNIT_VARIANCE as f64 * request.variance_units as f64).sqrt();
            let cells = request.statistic.cells();
            let values = (0..cells).map(|_| (sigma * normal(&mut rng)).round() as i64);
            values.collect::<Vec<i64>>()
        };
        let noise = requests.iter().map(noise).collect::<Vec<_>>();
        let exact = answers(&requests, 20_000);
        let sum = |(exact, noise): (Vec<i64>, Vec<i64>)| {
            exact.iter().zip(noise).map(|(x, n)| x + n).collect()
        };
        given = exact.into_iter().zip(noise).map(sum).collect();
    }
    blocks
}

fn normal(rng: &mut StdRng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[test]
fn mixture_prior_measures_fewer_blocks_of_noise_than_a_single_one() {
    // Without a first look, which would end nearly all of these runs before their stages.
    let blocks = |mixture_prior| {
        let mechanism = Staged::without(Ablations {
            mixture_prior,
            first_look: true,
            ..Ablations::default()
        });
        let runs = (0..8).map(|seed| blocks_of_noise(mechanism, seed));
        runs.sum::<usize>()
    };
    let (mixture, single) = (blocks(false), blocks(true));
    assert!(
        2 * mixture < single,
        "{mixture} blocks of pairs, {single} with a single prior"
    );
}

/// Returns the number of pair requests in each phase, on a table of 20,000 records at epsilon 1,
/// with noise. If `linked`, the first two attributes are far from independent.
fn asked_by_phase(linked: bool, seed: u64) -> Vec<(Phase, usize)> {
    let rho = Rho::from_f64_down(0.012).unwrap();
    let job = MechanismJob::new(Domain::new(vec![4; 12]), rho, 20_000);
    let mut staged = StagedMachine::new(job, Staged::default()).unwrap();
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut given, mut asked) = (Vec::new(), Vec::new());
    while let MechanismStep::Release(requests) = staged.step(&given).unwrap() {
        let of_pairs = |r: &&ReleaseRequest| matches!(r.statistic, Statistic::Product(..));
        let pairs = requests.iter().filter(of_pairs).count();
        asked.push((staged.progress().phase, pairs));
        given = answers(&requests, 20_000);
        for (request, answer) in requests.iter().zip(&mut given) {
            let first = request.statistic.clique().attributes() == [0, 1];
            if linked && first {
                answer.fill(-8_000);
                answer[0] = 24_000;
            }
            let sigma = (UNIT_VARIANCE as f64 * request.variance_units as f64).sqrt();
            for value in answer {
                *value += (sigma * normal(&mut rng)).round() as i64;
            }
        }
    }
    let spent = staged.account.spent().to_f64();
    assert!(spent > 0.98 * rho.to_f64(), "{spent} of {}", rho.to_f64());
    asked
}

#[test]
fn rest_of_a_probe_is_requested_only_if_its_first_part_sees_dependence() {
    let probed = |linked| {
        let runs = (0..8).map(|seed| asked_by_phase(linked, seed));
        runs.inspect(|asked| assert_eq!(asked[1], (LOOK, 66)))
            .filter(|asked| asked[2] == (PROBE, 66))
            .count()
    };
    let (linked, independent) = (probed(true), probed(false));
    assert_eq!(linked, 8);
    assert!(independent <= 4, "{independent} of 8");
}

/// Returns the number of integers that a run requests, on a table whose attributes all follow the
/// first, and whether its probe was a fine one.
fn asked_cells(job: &MechanismJob, released: i64) -> (usize, bool) {
    let mut staged = StagedMachine::new(job.clone(), Staged::default()).unwrap();
    let (mut given, mut cells) = (Vec::new(), 0);
    loop {
        let requests = match staged.step(&given) {
            Ok(MechanismStep::Release(requests)) => requests,
            // No table has all of these answers.
            Ok(MechanismStep::Done(_)) | Err(Error::Unfitted(_)) => break,
            Err(error) => panic!("{error}"),
        };
        cells += requests.iter().map(|r| r.statistic.cells()).sum::<usize>();
        given = answers(&requests, released);
        for (request, answer) in requests.iter().zip(&mut given) {
            if matches!(request.statistic, Statistic::Product(..)) {
                answer[0] = released;
            }
        }
    }
    (cells, staged.fine_probe)
}

/// Covers tables without a probe up to tables with a fine one, with released totals up to twice the
/// bound.
#[test]
#[ignore = "slow"]
fn run_never_requests_more_integers_than_its_ladder_has() {
    let rho = Rho::from_f64_down(0.01).unwrap();
    let (mut coarse, mut fine, mut nearest) = (0, 0, 0.0_f64);
    for sizes in [vec![2; 9], vec![4; 9], vec![10, 3, 5, 2, 2, 7, 4, 4]] {
        for bound in [200, 400, 800, 1_600, 3_200, 6_400] {
            let job = MechanismJob::new(Domain::new(sizes.clone()), rho, bound);
            let most = need(&job, &StagedOptions::default()).unwrap().cells;
            for released in [bound as i64 / 2, bound as i64, 2 * bound as i64] {
                let (cells, is_fine) = asked_cells(&job, released);
                assert!(
                    cells <= most,
                    "{cells} of {most}: {sizes:?}, {bound}, {released}"
                );
                nearest = nearest.max(cells as f64 / most as f64);
                *(if is_fine { &mut fine } else { &mut coarse }) += 1;
            }
        }
    }
    assert!(
        coarse > 10 && fine > 10 && nearest > 0.5,
        "{coarse} coarse, {fine} fine, {nearest} of the noise"
    );
}

#[test]
fn record_bound_limits_the_noise_for_a_wide_table() {
    let job = |bound| {
        let rho = Rho::from_f64_down(0.01).unwrap();
        MechanismJob::new(Domain::new(vec![4; 100]), rho, bound)
    };
    let options = StagedOptions::default();
    let cells = |bound| need(&job(bound), &options).unwrap().cells;
    // Without a probe there are only the total and the 1-ways, three times.
    assert_eq!(cells(50), 3 * 401);
    assert!(4 * cells(1_000) < cells(1_000_000));
}
