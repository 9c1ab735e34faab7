//! The ledgers of key services at several times, and the rule that a position of the noise ladder serves one release.

use std::collections::{BTreeMap, BTreeSet};

use fhaim_kit::Services;
use fhaim_protocol::crypto::chain::Act;
use uuid::Uuid;

use crate::operators::on_database;

/// The acts of each dataset, in order, as a key service has them at one moment.
pub type Chains = BTreeMap<String, Vec<Act>>;

/// A release: its dataset, job, and number within the job.
pub type ReleaseName = (String, String, u32);

/// A position of a dataset's ladder: the dataset, its run, and the number of the release in that run. The cells of
/// earlier releases of the run determine the positions on the ladder.
type Position = (String, u32, u32);

/// Reads the chains of a key service, which may be running or not.
pub fn read(services: &Services, service: usize) -> Chains {
    let acts = "SELECT dataset || ' ' || act FROM chain ORDER BY dataset, height";
    let mut chains = Chains::new();
    for row in on_database(services, service, acts).1 {
        let (dataset, act) = row.split_once(' ').unwrap();
        let act = serde_json::from_str(act).unwrap();
        chains.entry(dataset.to_owned()).or_default().push(act);
    }
    chains
}

/// Reads the datasets of which a key service has a share of the key, and whether the share is confirmed. A key service
/// other than the first one has no act of a dataset before its first batch.
pub fn shares(services: &Services, service: usize) -> BTreeSet<(String, bool)> {
    let rows = "SELECT dataset || CASE WHEN confirmation IS NULL THEN '' ELSE ' confirmed' END FROM shared_keys";
    let row = |row: String| match row.split_once(' ') {
        Some((dataset, _)) => (dataset.to_owned(), true),
        None => (row, false),
    };
    let rows = on_database(services, service, rows).1;
    rows.into_iter().map(row).collect()
}

/// Returns the datasets with acts that the first state has and the second one lacks.
pub fn lost_between(before: &Chains, after: &Chains) -> BTreeSet<String> {
    let lost = before.iter().filter(|(dataset, acts)| {
        let kept = after.get(*dataset).map_or(&[][..], Vec::as_slice);
        !kept.starts_with(acts)
    });
    lost.map(|(dataset, _)| dataset.clone()).collect()
}

/// Returns the released statements of a chain with their positions: the digest of each statement by its job and number.
fn released<'a>(
    dataset: &'a str,
    acts: &'a [Act],
) -> impl Iterator<Item = (Position, ReleaseName, [u8; 32])> + 'a {
    let mut runs = BTreeMap::new();
    acts.iter().flat_map(move |act| match act {
        Act::RunBegun { job, run, .. } => {
            runs.insert(*job, *run);
            Vec::new()
        }
        Act::Released { job, entries, .. } => {
            let run = runs.get(job).copied().unwrap_or(u32::MAX);
            let name = Uuid::from_bytes(job.0).to_string();
            let each = entries.iter().map(|entry| {
                let number = entry.debit.number;
                let position = (dataset.to_owned(), run, number);
                (
                    position,
                    (dataset.to_owned(), name.clone(), number),
                    entry.debit.digest,
                )
            });
            each.collect()
        }
        _ => Vec::new(),
    })
}

/// Returns the names of all releases.
pub fn releases(chains: &Chains) -> BTreeSet<ReleaseName> {
    let each = chains
        .iter()
        .flat_map(|(dataset, acts)| released(dataset, acts));
    each.map(|(_, name, _)| name).collect()
}

/// Returns the releases at positions that served another release as well, in any of a key service's histories.
pub fn doubled<'a>(histories: impl IntoIterator<Item = &'a Chains>) -> Vec<[ReleaseName; 2]> {
    let mut served: BTreeMap<Position, (ReleaseName, [u8; 32])> = BTreeMap::new();
    let mut doubled = Vec::new();
    let chains = histories.into_iter().flatten();
    for (position, name, digest) in chains.flat_map(|(dataset, acts)| released(dataset, acts)) {
        let first = served
            .entry(position)
            .or_insert_with(|| (name.clone(), digest));
        if *first != (name.clone(), digest) {
            doubled.push([first.0.clone(), name]);
        }
    }
    doubled
}

/// Returns whether a dataset is frozen.
pub fn is_frozen(chains: &Chains, dataset: &str) -> bool {
    let acts = chains.get(dataset).map_or(&[][..], Vec::as_slice);
    acts.iter().any(|act| matches!(act, Act::Frozen { .. }))
}

/// Returns whether the keys of a dataset exist.
pub fn has_keys(chains: &Chains, dataset: &str) -> bool {
    let acts = chains.get(dataset).map_or(&[][..], Vec::as_slice);
    !acts.is_empty() && !acts.iter().any(|act| matches!(act, Act::KeysDestroyed))
}
