//! `fhaim-lab gan bench --table`: measures tables that networks generate, as `fhaim-lab bench federated` does.
//!
//! Nine tenths of the records are split among parties; the rest is held out. The error is the mean L1 distance of
//! shares over 64 random triples of columns, for as many generated records as were split. Boosted trees are trained on
//! generated records and tested on held-out ones. Networks have no density, so there is no likelihood.

use std::path::PathBuf;
use std::time::Instant;

use fhaim_domain::{Clique, Table};
use fhaim_eval::{Boosted, BoostingOptions, auc, workload_error};
use fhaim_federated::partition::{Rule, partition};
use fhaim_federated::random_triples;
use fhaim_files::progress::Progress;
use fhaim_gan::Examples;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use super::{budget, rules};
use crate::gan::args::{BenchArguments, ReadingArguments};
use crate::gan::data;
use crate::gan::failure::Failure;
use crate::gan::method::{Method, keep, train_by};

/// Share of the records that are split among parties.
const SEEN: f64 = 0.9;

/// Number of triples of columns that are compared.
const TRIPLES: usize = 64;

/// The results of a method on a table, with one seed.
#[derive(Debug, Serialize)]
struct Row {
    table: String,
    method: String,
    rule: String,
    seed: u64,
    epsilon: Option<f64>,
    multiplier: Option<f64>,
    error: f64,
    auc: Option<f64>,
    train_seconds: f64,
}

/// Runs the methods on a table, and prints each row as soon as it is complete.
pub fn run(
    arguments: &BenchArguments,
    (name, methods): (&str, &[Method]),
    progress: &Progress,
) -> Result<(), Failure> {
    let folder = std::env::var_os("FHAIM_DATA_DIR")
        .map(PathBuf::from)
        .ok_or(Failure::NoData)?;
    let schema = data::schema(&folder.join(format!("{name}.schema.json")))?;
    let path = folder.join(format!("{name}.csv"));
    let table = data::table(&path.into(), schema, &ReadingArguments::default())?;
    if !arguments.json {
        data::print("table      method      rule     seed  epsilon  error    AUC  train s");
    }
    for seed in 0..arguments.seeds as u64 {
        for &method in methods {
            for rule in rules(arguments, method) {
                let trial = (method, rule.as_str(), seed);
                let row = measure(arguments, (name, &table), trial, progress)?;
                show(&row, arguments.json);
            }
        }
    }
    Ok(())
}

fn measure(
    arguments: &BenchArguments,
    (name, table): (&str, &Table),
    (method, rule, seed): (Method, &str, u64),
    progress: &Progress,
) -> Result<Row, Failure> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let records = (table.records() as f64 * SEEN).round() as usize;
    let (seen, unseen) = table
        .split(records, &mut rng)
        .map_err(fhaim_domain::Error::from)?;
    let workload = random_triples(table.domain(), TRIPLES, &mut rng)?;
    let parsed: Rule = rule.parse().map_err(Failure::Usage)?;
    let parties = partition(&seen, arguments.parties, &parsed, &mut rng)?;
    let parties = parties.iter().map(|rows| {
        let part = seen.select(rows).map_err(fhaim_domain::Error::from)?;
        Ok(Examples::from_table(&part)?)
    });
    let parties = parties.collect::<Result<Vec<_>, Failure>>()?;
    let started = Instant::now();
    let network = &arguments.network;
    let kept = keep(method, &parties, network, budget(arguments, method))?;
    let drawing = (&mut rng, progress);
    let model = train_by(method, &parties, network, kept.as_ref(), drawing)?;
    let train_seconds = started.elapsed().as_secs_f64();
    let drawn = model.sample(seen.records(), &mut rng)?;
    let drawn = drawn
        .table(seen.schema().clone())
        .map_err(fhaim_domain::Error::from)?;
    let drawn =
        drawn.ok_or_else(|| Failure::Usage("the networks do not generate tables".to_owned()))?;
    let triples: Vec<Clique> = workload
        .sets()
        .map(|(attributes, _)| Clique::new(attributes.iter().copied()))
        .collect();
    Ok(Row {
        table: name.to_owned(),
        method: method.name(),
        rule: rule.to_owned(),
        seed,
        epsilon: kept.as_ref().map(|kept| kept.epsilon),
        multiplier: kept.map(|kept| kept.multiplier),
        error: workload_error(&seen, &drawn, &triples).map_err(fhaim_gan::Error::from)?,
        auc: predicted(&drawn, &unseen).map_err(fhaim_gan::Error::from)?,
        train_seconds,
    })
}

/// Returns the AUC of trees that are trained on generated records and tested on held-out ones, if the target has two
/// classes.
fn predicted(drawn: &Table, unseen: &Table) -> Result<Option<f64>, fhaim_eval::Error> {
    let binary = |&target: &usize| drawn.domain().size(target) == 2;
    let Some(target) = drawn.schema().target().filter(binary) else {
        return Ok(None);
    };
    let trees = Boosted::fit(drawn, target, 1, &BoostingOptions::default())?;
    let positive: Vec<bool> = unseen
        .column(target)
        .iter()
        .map(|&code| code == 1)
        .collect();
    Ok(auc(&positive, &trees.margins(unseen)))
}

fn show(row: &Row, json: bool) {
    if json {
        data::print(&serde_json::to_string(row).unwrap_or_default());
        return;
    }
    let given = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |v| format!("{v:.digits$}"))
    };
    data::print(&format!(
        "{:10} {:11} {:8} {:>4} {:>8} {:>6.3} {:>6} {:>8.0}",
        row.table,
        row.method,
        row.rule,
        row.seed,
        given(row.epsilon, 2),
        row.error,
        given(row.auc, 3),
        row.train_seconds
    ));
}
