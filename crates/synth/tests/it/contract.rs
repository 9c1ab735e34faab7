//! Checks the promises of the `Mechanism` trait for every mechanism of the list, and for one
//! outside it.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../examples/mechanism.rs"]
mod toy;

use fhaim_domain::{Schema, Table};
use fhaim_dp::{Ladder, Rho};
use fhaim_release::{MechanismJob, ReleaseRequest, ReleaseSource, Statistic};
use fhaim_synth::{
    AnyMachine, Error, Mechanism, MechanismName, MechanismStep, ModelError, PlaintextSource,
    RunOutcome, load_model,
};
use rand::{SeedableRng, rngs::StdRng};
use serde_json::json;

fn table() -> Table {
    let column = |name: &str| {
        format!(r#"{{"name": "{name}", "kind": "categorical", "categories": ["x", "y", "z"]}}"#)
    };
    let columns = ["a", "b", "c"].map(column).join(", ");
    let json = format!(r#"{{"name": "three", "columns": [{columns}]}}"#);
    let schema = Schema::from_json("three", json.as_bytes()).unwrap();
    let columns = [1, 2, 4].map(|period| (0..300).map(|row| row / period % 3).collect());
    Table::new(schema, columns.to_vec()).unwrap()
}

fn job(table: &Table) -> MechanismJob {
    let rho = Rho::from_f64_down(0.3).unwrap();
    MechanismJob::new(table.domain().clone(), rho, 512)
}

/// One batch: the requests and their answers.
type Batch = (Vec<ReleaseRequest>, Vec<Vec<i64>>);

/// Runs a machine against the ladder that its mechanism needs.
fn play(mechanism: &dyn Mechanism, table: &Table, job: &MechanismJob) -> (Vec<Batch>, RunOutcome) {
    let need = mechanism.ladder_need(job).unwrap();
    assert_eq!(mechanism.ladder_need(job).unwrap(), need);
    let ladder = Ladder::draw(need.plan().unwrap(), &mut StdRng::seed_from_u64(5));
    let mut source = PlaintextSource::with_ladder(table, &ladder);
    let mut machine = mechanism.start(job.clone()).unwrap();
    let (mut batches, mut cells): (Vec<Batch>, usize) = (Vec::new(), 0);
    loop {
        let answers = batches.last().map_or(&[][..], |(_, answers)| answers);
        let next = machine.step(answers).unwrap();
        let at = machine.progress();
        assert!(1 <= at.round && at.round <= at.rounds, "{at:?}");
        match next {
            MechanismStep::Release(requests) => {
                for request in &requests {
                    let squares = matches!(request.statistic, Statistic::SquaredScores(_));
                    assert!(mechanism.releases_squares() || !squares);
                    assert!(request.variance_units <= need.largest_variance_units);
                    cells += request.statistic.cells();
                }
                assert!(cells <= need.cells);
                let answers = source.release(&requests).unwrap();
                batches.push((requests, answers));
            }
            MechanismStep::Done(outcome) => {
                assert!(matches!(machine.step(&[]), Err(Error::Done)));
                return (batches, *outcome);
            }
        }
    }
}

/// Runs a fresh machine on stored answers. It must make the same requests.
fn replay(mut machine: Box<AnyMachine>, batches: &[Batch]) -> RunOutcome {
    let mut answers: &[Vec<i64>] = &[];
    for (requests, next) in batches {
        match machine.step(answers).unwrap() {
            MechanismStep::Release(asked) => assert_eq!(&asked, requests),
            MechanismStep::Done(_) => panic!("finished before its last batch"),
        }
        answers = next;
    }
    match machine.step(answers).unwrap() {
        MechanismStep::Done(outcome) => *outcome,
        MechanismStep::Release(more) => panic!("requests {} more releases", more.len()),
    }
}

fn check_options(mechanism: &dyn Mechanism) {
    let options = mechanism.options().unwrap();
    let same = mechanism.with_options(&options).unwrap();
    assert_eq!(same.options().unwrap(), options);
    assert_eq!(same.name(), mechanism.name());
    let default = mechanism.with_options(&json!({})).unwrap();
    assert_eq!(default.options().unwrap(), options);
    for wrong in [json!({ "no_such_option": 1 }), json!(null), json!("fast")] {
        let refused = mechanism.with_options(&wrong);
        assert!(matches!(refused, Err(Error::Options(..))), "{wrong}");
    }
    for (name, value) in options.as_object().unwrap() {
        assert!(!value.is_null(), "{name} cannot be written");
        let wrong = json!({ name: { "not": "a value" } });
        assert!(
            matches!(mechanism.with_options(&wrong), Err(Error::Options(..))),
            "{name}"
        );
    }
}

/// Checks the properties of every outcome.
fn check_outcome(outcome: &RunOutcome, table: &Table, job: &MechanismJob) {
    assert!(outcome.spent <= job.rho);
    let model = &outcome.model;
    assert_eq!(model.domain(), table.domain());
    assert!(model.total() > 0.0 && model.bytes() > 0);
    let draw = || model.sample(100, &mut StdRng::seed_from_u64(8));
    let columns = draw();
    assert_eq!(columns, draw());
    let drawn = Table::new(table.shared_schema(), columns.clone()).unwrap();
    assert_eq!(drawn.records(), 100);
    if let Some(density) = model.density() {
        let densities = density.log_densities(&columns).unwrap();
        assert_eq!(densities.len(), 100);
        assert!(densities.iter().all(|x| x.is_finite() && *x < 0.0));
    }
}

fn check(mechanism: &dyn Mechanism) {
    let (name, about) = (mechanism.name(), mechanism.about());
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(!name.is_empty() && name.chars().all(plain), "{name}");
    assert!(!about.is_empty() && about.len() <= 90, "{name}: {about}");
    let label = mechanism.label();
    assert!(!label.is_empty() && label.len() <= 30, "{name}: {label}");
    assert!(!about.contains('\n') && !about.ends_with('.'), "{about}");
    check_options(mechanism);

    let table = table();
    let job = job(&table);
    let mut rng = StdRng::seed_from_u64(4);
    let mut last = 0;
    let outcome = mechanism.run_in_the_clear(&table, &job, &mut rng, &mut |at| {
        assert!(at.round >= last && at.round <= at.rounds, "{at:?}");
        last = at.round;
    });
    check_outcome(&outcome.unwrap(), &table, &job);

    if mechanism.clear_only() {
        let refused = |error: Error| matches!(error, Error::PlaintextOnly(only) if only == name);
        assert!(mechanism.ladder_need(&job).is_err_and(refused));
        assert!(mechanism.start(job).is_err_and(refused));
        return;
    }
    let (batches, outcome) = play(mechanism, &table, &job);
    check_outcome(&outcome, &table, &job);
    // Only releases cost budget.
    let costs = outcome.releases.iter().map(|release| release.rho);
    assert_eq!(Rho::checked_sum(costs).unwrap(), outcome.spent);
    let again = replay(mechanism.start(job).unwrap(), &batches);
    assert_eq!(again.releases, outcome.releases);
    assert_eq!(again.model.save(), outcome.model.save());
}

#[test]
fn every_listed_mechanism_keeps_the_contract() {
    let mut names = Vec::new();
    for mechanism in MechanismName::all() {
        println!("{mechanism}");
        assert!(!names.contains(&mechanism.as_str()));
        names.push(mechanism.as_str());
        check(&*mechanism);
    }
    assert_eq!(names, ["staged", "fhaim-l2", "aim", "mst", "one-ways"]);
}

#[test]
fn mechanism_outside_the_crate_keeps_the_contract() {
    check(&toy::Counts::default());
    let refused = toy::Counts::default().with_options(&json!({ "total_share": 1.0 }));
    assert!(matches!(
        refused,
        Err(Error::Option {
            name: "total_share",
            ..
        })
    ));
}

#[test]
fn graphical_model_implements_marginals_conditions_and_storage() {
    let table = table();
    let job = job(&table);
    let mut rng = StdRng::seed_from_u64(6);
    let mechanism = MechanismName::default();
    let outcome = mechanism.run_in_the_clear(&table, &job, &mut rng, &mut |_| {});
    let model = outcome.unwrap().model;
    let loaded = load_model(&model.save(), 1 << 24).unwrap();
    assert_eq!(loaded.save(), model.save());

    let marginals = model.marginals().unwrap();
    let pairs = table.domain().pairs();
    let at_once = marginals.marginals_of(&pairs).unwrap();
    for (pair, marginal) in pairs.iter().zip(&at_once) {
        assert!((marginal.iter().sum::<f64>() / model.total() - 1.0).abs() < 1e-9);
        for (one, other) in marginals.marginal(pair).unwrap().iter().zip(marginal) {
            assert!((one - other).abs() < 1e-6);
        }
    }
    // Given value 1 of the first column, the marginal of the second is that row of their common
    // marginal, scaled to the total.
    let conditions = model.conditions().unwrap();
    let given = conditions.given(&[(0, 1)]).unwrap();
    let second = [fhaim_domain::Clique::new([1])];
    let conditional = given.marginals().unwrap().marginals_of(&second).unwrap();
    let row = &at_once[0][3..6];
    let scale = model.total() / row.iter().sum::<f64>();
    for (found, expected) in conditional[0].iter().zip(row) {
        assert!((found - expected * scale).abs() < 1e-6);
    }
    assert!(given.sample(20, &mut rng)[0].iter().all(|&code| code == 1));
    assert!(matches!(
        given.conditions().unwrap().given(&[(0, 2)]),
        Err(ModelError::Impossible {
            attribute: 0,
            value: 2
        })
    ));
}
