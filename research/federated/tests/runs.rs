//! Tests of whole runs: all methods, the payments of each party, and equality of a single party's run with AIM.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use std::sync::Arc;

use fhaim_domain::{Clique, Schema, Table};
use fhaim_dp::{Rho, accounting};
use fhaim_federated::partition::{Rule, partition};
use fhaim_federated::{
    FederatedSetting, FederatedSource, Group, Method, PairKeys, Parts, Plan, PooledRun, Reply,
    Request, Server, Spending, play, play_with, random_triples,
};
use fhaim_release::{MechanismJob, MechanismRun, Workload};
use fhaim_synth::{Aim, AimOptions, FINAL_STEPS, FIT_STEPS, FixedRounds, Mechanism, MechanismName};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_chacha::ChaCha20Rng;

/// Records over five attributes, each of which depends on the one before.
fn table(records: usize) -> Table {
    let column = |i: usize| {
        let categories = ["\"p\"", "\"q\"", "\"r\""].join(", ");
        format!(r#"{{"name": "c{i}", "kind": "categorical", "categories": [{categories}]}}"#)
    };
    let columns: Vec<String> = (0..5).map(column).collect();
    let json = format!(r#"{{"name": "t", "columns": [{}]}}"#, columns.join(", "));
    let schema = Schema::from_json("t", json.as_bytes()).unwrap();
    let mut rng = StdRng::seed_from_u64(12);
    let mut columns = vec![Vec::new(); 5];
    for _ in 0..records {
        let mut code = rng.random_range(0..3u32);
        for column in &mut columns {
            if rng.random::<f64>() < 0.3 {
                code = rng.random_range(0..3);
            }
            column.push(code);
        }
    }
    Table::new(schema, columns).unwrap()
}

fn setting(table: &Table, method: Method, epsilon: f64) -> FederatedSetting {
    let rho = accounting::rho(epsilon, 1e-5).unwrap();
    let mut job = MechanismJob::new(table.domain().clone(), rho, 1 << 20);
    job.workload = random_triples(table.domain(), 6, &mut StdRng::seed_from_u64(1)).unwrap();
    FederatedSetting {
        rounds: 6,
        participation: 0.4,
        fit_steps: [40, 80],
        ..FederatedSetting::new(job, method)
    }
}

fn parties(table: &Table, count: usize) -> Vec<Table> {
    let mut rng = StdRng::seed_from_u64(2);
    let dealt = partition(table, count, &Rule::Equal, &mut rng).unwrap();
    dealt
        .iter()
        .map(|rows| table.select(rows).unwrap())
        .collect()
}

fn error(model: &fhaim_pgm::Model, table: &Table) -> f64 {
    let cliques = table.domain().pairs();
    let distance = |clique: &Clique| -> f64 {
        let counts = table.counts(clique).unwrap();
        let marginal = model.marginal(clique).unwrap();
        let cells = counts.iter().zip(&marginal);
        let records = table.records() as f64;
        cells
            .map(|(&m, mu)| (m as f64 / records - mu / model.total()).abs())
            .sum()
    };
    cliques.iter().map(distance).sum::<f64>() / cliques.len() as f64
}

/// Every party's ledger shows the rho_k that follows from its participation. No party pays more than the budget, or
/// takes part more often than allowed.
#[test]
fn ledgers_match_the_participation_of_each_party() {
    let table = table(3000);
    let tables = parties(&table, 12);
    for method in Method::ALL {
        for local_steps in [1, 2] {
            let setting = FederatedSetting {
                local_steps,
                ..setting(&table, method, 3.0)
            };
            let plan = Plan::new(&setting).unwrap();
            let setting = Arc::new(setting);
            let mut rng = ChaCha20Rng::seed_from_u64(3);
            let mut server = StdRng::seed_from_u64(4);
            let run = play(&setting, &tables, &mut rng, &mut server, &mut |_| {}).unwrap();
            assert_eq!(run.outcome.dropped, 0);
            for ledger in &run.ledgers {
                let rounds_of = |spending| {
                    let entries = ledger.entries().iter().filter(|e| e.spending == spending);
                    let mut rounds: Vec<u32> = entries.map(|e| e.round).collect();
                    rounds.dedup();
                    rounds
                };
                let summed = rounds_of(Spending::Sum);
                let rounds = summed.iter().filter(|&&round| round > 0).count() as u32;
                assert!(rounds <= setting.most_rounds);
                let before_last = summed
                    .iter()
                    .filter(|&&r| r > 0 && r < setting.rounds)
                    .count();
                let proxied = match method.combines_one_ways() {
                    true => before_last as u32,
                    false => 0,
                };
                let parts = Parts {
                    rounds,
                    first: summed.contains(&0),
                    proxied,
                };
                let nothing = ledger.entries().is_empty();
                let expected = match nothing {
                    true => Rho::ZERO,
                    false => plan.party_rho(&setting, parts).unwrap(),
                };
                let spent = ledger.spent();
                assert!(spent <= setting.job.rho);
                if local_steps > 1 {
                    // A candidate that is chosen twice in a round is summed once.
                    assert!(spent.to_f64() <= expected.to_f64() * (1.0 + 1e-9));
                } else {
                    // The amounts agree except for the gaps of sums of noise.
                    assert!(spent >= expected, "{method}: {spent} {expected}");
                    assert!(spent.to_f64() - expected.to_f64() < 1e-9);
                }
            }
        }
    }
}

#[test]
fn single_party_run_equals_aim_integer_for_integer() {
    let table = table(2000);
    let mut setting = setting(&table, Method::Naive, 2.0);
    setting.job.workload = Workload::all_pairs(table.domain());
    setting.participation = 1.0;
    setting.most_rounds = setting.rounds;
    setting.fit_steps = [FIT_STEPS, FINAL_STEPS];
    let plan = Plan::new(&setting).unwrap();
    let options = AimOptions {
        fixed: Some(FixedRounds {
            rounds: setting.rounds,
            total_units: plan.total_units,
            variance_units: plan.variance_units,
            epsilon: plan.epsilon,
        }),
        ..AimOptions::default()
    };
    let generator = || ChaCha20Rng::seed_from_u64(77);
    let aim = Aim::new(options).unwrap();
    let job = setting.job.clone();
    let alone = aim.run_in_the_clear(&table, &job, &mut generator(), &mut |_| {});
    let alone = alone.unwrap();

    let keys = PairKeys::agree(1, &mut ChaCha20Rng::seed_from_u64(5));
    let mut server = StdRng::seed_from_u64(6);
    let (setting, tables) = (Arc::new(setting), [table]);
    let run = play_with(
        &setting,
        &tables,
        keys,
        vec![generator()],
        &mut server,
        &mut |_| {},
    );
    let run = run.unwrap();
    let measured = |entry: &&fhaim_federated::PartyEntry| entry.spending == Spending::Sum;
    let chosen: Vec<Vec<usize>> = run.ledgers[0]
        .entries()
        .iter()
        .filter(measured)
        .map(|entry| entry.attributes.clone())
        .collect();
    let released = alone.releases.iter().skip(1);
    let released: Vec<Vec<usize>> = released
        .map(|release| release.request.statistic.clique().attributes().to_vec())
        .collect();
    assert_eq!(chosen, released);
    assert_eq!(run.ledgers[0].spent(), alone.spent);
    assert_eq!(run.outcome.model.save(), alone.model.save());
}

/// With almost no noise, all parties in every round, and similar parties, each adaptive method comes close to the
/// table. Independent attributes do not.
#[test]
fn adaptive_methods_learn_the_table_and_independent_attributes_do_not() {
    let table = table(6000);
    let tables = parties(&table, 4);
    let learned = |method| {
        let setting = FederatedSetting {
            participation: 1.0,
            most_rounds: 6,
            ..setting(&table, method, 200.0)
        };
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let mut server = StdRng::seed_from_u64(9);
        let run = play(
            &Arc::new(setting),
            &tables,
            &mut rng,
            &mut server,
            &mut |_| {},
        );
        error(&run.unwrap().outcome.model, &table)
    };
    let independent = learned(Method::NaiveBayes);
    let adaptive = [
        Method::Naive,
        Method::AugOracle,
        Method::AugOracleCombined,
        Method::AugProxy,
        Method::AugPrivate,
    ];
    for method in adaptive {
        let error = learned(method);
        assert!(
            error < 0.1 * independent,
            "{method}: {error}, independent {independent}"
        );
    }
    assert!(learned(Method::Random) < 0.8 * independent);
}

#[test]
fn annealing_stays_within_every_partys_budget() {
    let table = table(3000);
    let tables = parties(&table, 6);
    for method in [Method::Naive, Method::AugPrivate] {
        let mut setting = setting(&table, method, 5.0);
        setting.rounds = 40;
        setting.most_rounds = 40;
        setting.anneal = true;
        setting.participation = 0.5;
        let mut rng = ChaCha20Rng::seed_from_u64(10);
        let mut server = StdRng::seed_from_u64(11);
        let rho = setting.job.rho;
        let run = play(
            &Arc::new(setting),
            &tables,
            &mut rng,
            &mut server,
            &mut |_| {},
        )
        .unwrap();
        assert!(run.outcome.rounds < 40, "no round was annealed");
        assert!(run.ledgers.iter().all(|ledger| ledger.spent() <= rho));
    }
    let mut setting = setting(&table, Method::Naive, 5.0);
    (setting.rounds, setting.most_rounds, setting.anneal) = (40, 40, true);
    let mut rng = ChaCha20Rng::seed_from_u64(12);
    let run = PooledRun::new(&setting, &tables, &mut rng).unwrap();
    let (outcome, ledgers) = run.run(&mut |_| {}).unwrap();
    assert!(outcome.rounds < 40, "no round was annealed");
    let spent = ledgers.iter().map(|ledger| ledger.spent());
    assert!(spent.max().unwrap() <= setting.job.rho);
}

/// FLAIM (Random): parties of the same round draw different candidates.
#[test]
fn parties_of_random_draw_their_own_candidates() {
    let table = table(3000);
    let tables = parties(&table, 8);
    let setting = FederatedSetting {
        rounds: 1,
        most_rounds: 1,
        participation: 1.0,
        ..setting(&table, Method::Random, 5.0)
    };
    let mut rng = ChaCha20Rng::seed_from_u64(30);
    let mut server = StdRng::seed_from_u64(31);
    let run = play(
        &Arc::new(setting),
        &tables,
        &mut rng,
        &mut server,
        &mut |_| {},
    )
    .unwrap();
    let chosen = run.ledgers.iter().map(|ledger| {
        let last = ledger.entries().last().unwrap();
        assert_eq!((last.round, last.spending), (1, Spending::Sum));
        last.attributes.clone()
    });
    let distinct: std::collections::BTreeSet<Vec<usize>> = chosen.collect();
    assert!(distinct.len() > 3, "{distinct:?}");
}

/// In every local step, the penalty compares with the global model (Algorithm 1, line 7): a candidate that it rules out
/// in the first step is ruled out in the second.
#[test]
fn penalty_of_later_local_steps_is_that_of_the_global_model() {
    let table = table(3000);
    let setting = FederatedSetting {
        local_steps: 2,
        rounds: 2,
        most_rounds: 2,
        participation: 1.0,
        ..setting(&table, Method::AugProxy, 500.0)
    };
    let mut rng = ChaCha20Rng::seed_from_u64(32);
    let independent = FederatedSetting {
        method: Method::NaiveBayes,
        local_steps: 1,
        ..setting.clone()
    };
    let tables = [table.clone()];
    let run = play(
        &Arc::new(independent),
        &tables,
        &mut rng,
        &mut StdRng::seed_from_u64(33),
        &mut |_| {},
    );
    let model = Arc::new(run.unwrap().outcome.model);
    let candidates = setting.candidates();
    let cliques: Vec<Clique> = candidates.iter().map(|c| c.clique.clone()).collect();
    let mut one_ways: Vec<Vec<f64>> = (0..5)
        .map(|a| model.marginal(&Clique::new([a])).unwrap())
        .collect();
    // The global model claims that attribute 0 never has its real values, so each candidate with it is penalised.
    one_ways[0] = vec![1e6; 3];
    let call = fhaim_federated::Call {
        round: 1,
        plan: Plan::new(&setting).unwrap(),
        marginals: cliques.iter().map(|c| model.marginal(c).unwrap()).collect(),
        one_ways,
        measurements: Arc::default(),
        model,
        eligible: (0..candidates.len()).collect(),
        pooled: None,
    };
    let keys = PairKeys::agree(1, &mut rng).remove(0);
    let mut client = fhaim_federated::Client::new(Arc::new(setting), table, keys, rng).unwrap();
    client.total().unwrap();
    for choice in client.choose(&call).unwrap() {
        assert!(!cliques[choice].attributes().contains(&0), "{choice}");
    }
}

#[test]
fn estimated_number_of_records_covers_parties_that_never_took_part() {
    let table = table(6000);
    let tables = parties(&table, 20);
    let setting = FederatedSetting {
        rounds: 2,
        most_rounds: 2,
        participation: 0.2,
        ..setting(&table, Method::Naive, 5.0)
    };
    let mut rng = ChaCha20Rng::seed_from_u64(34);
    let mut server = StdRng::seed_from_u64(35);
    let run = play(
        &Arc::new(setting),
        &tables,
        &mut rng,
        &mut server,
        &mut |_| {},
    )
    .unwrap();
    let silent = run.ledgers.iter().filter(|l| l.entries().is_empty());
    assert!(silent.count() > 3);
    let records = run.outcome.records;
    assert!((5700.0..6300.0).contains(&records), "{records}");
}

#[test]
fn pooled_run_learns_and_charges_every_party_in_the_pool() {
    let table = table(6000);
    let tables = parties(&table, 8);
    let mut setting = setting(&table, Method::Naive, 50.0);
    setting.participation = 0.3;
    let mut rng = ChaCha20Rng::seed_from_u64(13);
    let run = PooledRun::new(&setting, &tables, &mut rng).unwrap();
    let (outcome, ledgers) = run.run(&mut |_| {}).unwrap();
    assert!(error(&outcome.model, &table) < 0.1);
    let first = ledgers
        .iter()
        .map(|ledger| ledger.entries().len())
        .max()
        .unwrap();
    // The number of records, all 1-ways, and a choice and a measurement per round.
    assert_eq!(first, 1 + 5 + 2 * 6);
    assert!(
        ledgers
            .iter()
            .all(|ledger| ledger.spent() <= setting.job.rho)
    );
}

/// The sums of the parties' counts are the table's counts, with the noise of the parties that do not collude.
#[test]
fn any_mechanism_runs_over_parties() {
    let table = table(6000);
    let tables = parties(&table, 5);
    let rho = accounting::rho(20.0, 1e-5).unwrap();
    let job = MechanismJob::new(table.domain().clone(), rho, 1 << 13);
    let staged = MechanismName::default();
    let machine = staged.start(job.clone()).unwrap();
    let run = MechanismRun::new(machine, job, Vec::new()).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(14);
    let mut source = FederatedSource::new(&tables, 1, &mut rng);
    let outcome = fhaim_synth::drive(run, &mut source, &mut |_| {}).unwrap();
    assert!(source.gaps() > Rho::ZERO && source.gaps().to_f64() < 1e-9);
    let marginal = outcome
        .model
        .marginals()
        .unwrap()
        .marginal(&Clique::new([0, 1]))
        .unwrap();
    let counts = table.counts(&Clique::new([0, 1])).unwrap();
    let distance: f64 = counts
        .iter()
        .zip(&marginal)
        .map(|(&m, mu)| (m as f64 - mu).abs())
        .sum();
    assert!(distance < 200.0, "{distance}");
}

#[test]
fn runs_are_reproducible_and_clients_answer_once() {
    let table = table(1500);
    let tables = parties(&table, 6);
    let setting = Arc::new(setting(&table, Method::AugPrivate, 1.0));
    let model = || {
        let mut rng = ChaCha20Rng::seed_from_u64(20);
        let mut server = StdRng::seed_from_u64(21);
        let run = play(&setting, &tables, &mut rng, &mut server, &mut |_| {}).unwrap();
        run.outcome.model.save()
    };
    assert_eq!(model(), model());

    let mut keys = PairKeys::agree(2, &mut ChaCha20Rng::seed_from_u64(22));
    let rng = ChaCha20Rng::seed_from_u64(23);
    let client = fhaim_federated::Client::new(setting, tables[0].clone(), keys.remove(0), rng);
    let mut client = client.unwrap();
    assert_eq!(client.total().unwrap(), client.total().unwrap());
    let group = |message, attributes: &[usize], parties: Vec<usize>| Group {
        message,
        round: 0,
        clique: attributes.to_vec().into(),
        parties,
        variance_units: 100,
    };
    assert!(client.add(&group(1, &[0], vec![0, 1])).is_ok());
    let other_round = Group {
        round: 1,
        ..group(7, &[1], vec![0, 1])
    };
    let noiseless = Group {
        variance_units: 0,
        ..group(8, &[1], vec![0, 1])
    };
    let no_group = "the group is invalid, or does not include this party";
    let no_new_sum = "the sum is of another round, or was already answered";
    let refused = [
        (
            group(1, &[1], vec![0, 1]),
            "the number of the sum was used before",
        ),
        (group(2, &[0], vec![0, 1]), no_new_sum),
        (group(3, &[0, 1], vec![0, 1]), "the sum was not chosen"),
        (group(4, &[1], vec![1]), no_group),
        (group(5, &[1], vec![0, 0]), no_group),
        (group(6, &[1], vec![0, 2]), no_group),
        (other_round, no_new_sum),
        (noiseless, "has noise of variance zero"),
    ];
    let before = client.ledger().clone();
    for (group, words) in refused {
        let error = client.add(&group).unwrap_err().to_string();
        assert!(error.contains(words), "{group:?}: {error}");
    }
    assert_eq!(client.ledger(), &before);
    let cheap = Group {
        variance_units: 1,
        ..group(9, &[1], vec![0, 1])
    };
    let broke = client.add(&cheap);
    assert!(matches!(
        broke,
        Err(fhaim_federated::Error::OverBudget { .. })
    ));
}

#[test]
fn columns_with_digits_are_rejected_by_name() {
    let json = r#"{"name": "t", "columns": [
        {"name": "a", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10, "digits": 10},
        {"name": "b", "kind": "categorical", "categories": ["x", "y"]},
        {"name": "c", "kind": "categorical", "categories": ["x", "y"]}]}"#;
    let schema = Schema::from_json("t", json.as_bytes()).unwrap();
    let rho = accounting::rho(1.0, 1e-5).unwrap();
    let job = MechanismJob::new(schema.domain().clone(), rho, 100);
    let method = "naive".parse().unwrap();
    let refused = FederatedSetting::new(job, method)
        .check()
        .unwrap_err()
        .to_string();
    assert!(refused.contains("`digits`"), "{refused}");
}

#[test]
fn calls_for_random_choices_have_no_marginals() {
    let table = table(500);
    for (method, is_scored) in [(Method::Random, false), (Method::Naive, true)] {
        let setting = FederatedSetting {
            participation: 1.0,
            ..setting(&table, method, 1.0)
        };
        let mut server = Server::new(Arc::new(setting), 4).unwrap();
        let mut rng = StdRng::seed_from_u64(5);
        let zeros = |group: &Group| {
            let cells = table.domain().cells(&group.clique).unwrap();
            vec![vec![0; cells]; group.parties.len()]
        };
        let mut reply = None;
        let call = loop {
            reply = Some(match server.step(reply, &mut rng).unwrap() {
                Request::Totals(asked) => Reply::Totals(vec![125; asked.len()]),
                Request::Sums(groups) => Reply::Sums(groups.iter().map(zeros).collect()),
                Request::Choices(_, call) => break call,
                Request::Done(_) => panic!("the run ended without choices"),
            });
        };
        assert_eq!(!call.marginals.is_empty(), is_scored, "{method}");
        assert!(!call.eligible.is_empty());
    }
}
