//! Shows the benefit of the parts of the staged mechanism's probes, on tables made up for it.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Clique, Domain, Schema, Table};
use fhaim_dp::accounting;
use fhaim_release::MechanismJob;
use fhaim_synth::{Ablations, Mechanism, RunOutcome, Staged, StagedOptions};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

const COLUMNS: usize = 9;
const SIZE: u32 = 10;

fn normal(rng: &mut StdRng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Returns nine columns of ten ordered values each. They share three factors, so all pairs are
/// correlated.
fn ordered(records: usize, seed: u64) -> Table {
    let mut rng = StdRng::seed_from_u64(seed);
    let factors: Vec<[f64; 3]> = (0..records)
        .map(|_| [(); 3].map(|()| normal(&mut rng)))
        .collect();
    let column = |_| {
        let loads = [(); 3].map(|()| normal(&mut rng));
        let norm = (1.0 + loads.iter().map(|load| load * load).sum::<f64>()).sqrt();
        let mut value = |factors: &[f64; 3]| {
            let common: f64 = loads.iter().zip(factors).map(|(l, f)| l * f).sum();
            let share = ((common + normal(&mut rng)) / norm + 3.0) / 6.0;
            (share.clamp(0.0, 1.0 - 1e-9) * f64::from(SIZE)) as u32
        };
        factors.iter().map(&mut value).collect()
    };
    let codes: Vec<Vec<u32>> = (0..COLUMNS).map(column).collect();
    let columns = (0..COLUMNS).map(|a| {
        let values: Vec<String> = (0..SIZE).map(|x| x.to_string()).collect();
        json!({"name": format!("c{a}"), "kind": "categorical", "categories": values})
    });
    let columns: Vec<Value> = columns.collect();
    let schema = json!({"name": "ordered", "columns": columns}).to_string();
    Table::new(
        Schema::from_json("ordered", schema.as_bytes()).unwrap(),
        codes,
    )
    .unwrap()
}

/// Returns the mean L1 error over all pairs and four runs of the default mechanism without some of
/// its parts.
fn error(epsilon: f64, ablations: Ablations) -> f64 {
    let mechanism = Staged::without(ablations);
    let errors = (0..4).map(|seed| run(&ordered(40_000, seed), &mechanism, epsilon, seed));
    errors.sum::<f64>() / 4.0
}

fn outcome(table: &Table, mechanism: &dyn Mechanism, epsilon: f64, seed: u64) -> RunOutcome {
    let rho = accounting::rho(epsilon, 1e-9).unwrap();
    let mut job = MechanismJob::new(table.domain().clone(), rho, table.records() as u64);
    job.model_bytes = 1_000_000;
    let mut rng = StdRng::seed_from_u64(seed);
    let outcome = mechanism.run_in_the_clear(table, &job, &mut rng, &mut |_| {});
    outcome.unwrap()
}

fn run(table: &Table, mechanism: &dyn Mechanism, epsilon: f64, seed: u64) -> f64 {
    let outcome = outcome(table, mechanism, epsilon, seed);
    let pairs = Domain::pairs(table.domain());
    let model = outcome.model.as_ref();
    let marginals = model.marginals().unwrap().marginals_of(&pairs).unwrap();
    let distance = |(pair, marginal): (&Clique, &Vec<f64>)| {
        let counts = table.counts(pair).unwrap();
        let cells = counts.iter().zip(marginal);
        cells.map(|(&n, m)| (n as f64 - m).abs()).sum::<f64>() / table.records() as f64
    };
    pairs.iter().zip(&marginals).map(distance).sum::<f64>() / pairs.len() as f64
}

/// Without a coarse look, the first look at a finer probe sees nothing here, and no pair is
/// measured.
#[test]
fn coarse_look_sees_an_order_that_eight_groups_miss() {
    let with = error(0.1, Ablations::default());
    let without = error(
        0.1,
        Ablations {
            coarse_look: true,
            ..Ablations::default()
        },
    );
    assert!(with < 0.9 * without, "{with} with a coarse look, {without}");
}

#[test]
fn clear_probe_lowers_the_error_by_measuring_more() {
    let clear = error(10.0, Ablations::default());
    let equal_weight = error(
        10.0,
        Ablations {
            clear_probe: true,
            ..Ablations::default()
        },
    );
    assert!(
        clear < 0.98 * equal_weight,
        "{clear}, and {equal_weight} with the general weight of noise"
    );
}

fn phases(outcome: &RunOutcome) -> Vec<String> {
    let mut phases: Vec<String> = outcome
        .releases
        .iter()
        .map(|release| release.phase.to_string())
        .collect();
    phases.dedup();
    phases
}

const ONE_WAYS: &str = "Counting values of each column";
const LOOK: &str = "Finding relationships";
const PROBE: &str = "Choosing pairs";
const FIRST_STAGE: &str = "Measuring the strongest pairs";
const SECOND_STAGE: &str = "Measuring the pairs that the model explains worst";

#[test]
fn run_without_a_first_look_requests_its_probe_at_once() {
    let table = ordered(20_000, 0);
    let whole = outcome(&table, &Staged::default(), 1.0, 0);
    let all = [ONE_WAYS, LOOK, PROBE, FIRST_STAGE, SECOND_STAGE];
    assert_eq!(phases(&whole), all);
    let first_look = Ablations {
        first_look: true,
        ..Ablations::default()
    };
    let without = outcome(&table, &Staged::without(first_look), 1.0, 0);
    assert_eq!(
        phases(&without),
        [ONE_WAYS, PROBE, FIRST_STAGE, SECOND_STAGE]
    );
}

#[test]
fn run_without_penalties_or_shrinkage_fits_another_model() {
    let table = ordered(20_000, 0);
    let model = |ablations| {
        let outcome = outcome(&table, &Staged::without(ablations), 1.0, 0);
        outcome.model.save()
    };
    let penalties = Ablations {
        penalties: true,
        ..Ablations::default()
    };
    let shrinkage = Ablations {
        shrinkage: true,
        ..Ablations::default()
    };
    let whole = model(Ablations::default());
    assert_ne!(model(penalties), whole);
    assert_ne!(model(shrinkage), whole);
}

/// The model has room for a few of the 36 pairs.
#[test]
fn pairs_that_exceed_the_cap_are_measured_only_with_extra_pairs() {
    let table = ordered(20_000, 0);
    let measured = |extra_pairs| {
        let options = StagedOptions {
            extra_pairs,
            ..StagedOptions::default()
        };
        let outcome = outcome(&table, &Staged::new(options).unwrap(), 10.0, 0);
        let stages = outcome.releases.iter();
        let stages = stages.filter(|release| release.phase.to_string() == SECOND_STAGE);
        stages
            .filter(|release| release.request.statistic.clique().len() == 2)
            .count()
    };
    let (with, without) = (measured(true), measured(false));
    assert!(
        without < with && with > 30,
        "{with} pairs, {without} without"
    );
}

/// The one-way and probe shares determine the spending of their phases.
#[test]
fn shares_of_the_budget_are_spent_in_their_phases() {
    let table = ordered(20_000, 0);
    let spent = |options: StagedOptions, phases: [&str; 2]| {
        let outcome = outcome(&table, &Staged::new(options).unwrap(), 1.0, 0);
        let releases = outcome.releases.iter();
        let releases = releases.filter(|r| phases.contains(&r.phase.to_string().as_str()));
        releases.map(|release| release.rho.to_f64()).sum::<f64>()
    };
    let rho = accounting::rho(1.0, 1e-9).unwrap().to_f64();
    for share in [0.1, 0.3] {
        let one_ways = StagedOptions {
            one_way_share: share,
            ..StagedOptions::default()
        };
        let probe = StagedOptions {
            probe_share: share,
            ..StagedOptions::default()
        };
        for spent in [
            spent(one_ways, [ONE_WAYS, ONE_WAYS]),
            spent(probe, [LOOK, PROBE]),
        ] {
            assert!((spent / rho / share - 1.0).abs() < 0.02, "{spent} of {rho}");
        }
    }
}
