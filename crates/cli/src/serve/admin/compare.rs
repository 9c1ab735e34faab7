//! `fhaim admin compare`: compares the stores of the three services.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fhaim_api::keys::Receipt;
use fhaim_crypto::store::{chain, keys};
use fhaim_platform::Failure;
use fhaim_platform::housekeeping::Held;
use fhaim_platform::program::Program;
use uuid::Uuid;

use super::{
    args::{CompareArguments, Place},
    open,
};
use crate::{error::Error, output};

/// The stores of the three services.
struct All {
    generation: BTreeMap<Uuid, Held>,
    computation: BTreeMap<Uuid, Held>,
    crypto: BTreeSet<Uuid>,
}

/// Runs `fhaim admin compare`: prints the number of datasets at each service, and the differences.
pub async fn run(arguments: &CompareArguments) -> Result<(), Error> {
    let place = |config: &Option<PathBuf>| Place {
        config: config.clone(),
        data_dir: arguments.data_dir.clone(),
    };
    let generation: fhaim_generation::State = open(&place(&arguments.generation)).await?;
    let computation: fhaim_computation::State = open(&place(&arguments.computation)).await?;
    let crypto: fhaim_crypto::State = open(&place(&arguments.crypto)).await?;
    let by_dataset = |held: Vec<Held>| held.into_iter().map(|held| (held.dataset, held));
    let store = &crypto.base().store;
    let all = All {
        generation: by_dataset(generation.holdings().await?).collect(),
        computation: by_dataset(computation.holdings().await?).collect(),
        crypto: (keys::all(store).await.map_err(Failure::from)?)
            .into_iter()
            .collect(),
    };
    let mut differences = all.differences();
    for (who, held) in [
        ("generation", &all.generation),
        ("computation", &all.computation),
    ] {
        for (dataset, held) in held {
            for receipt in &held.receipts {
                if !is_of_chain(&crypto, receipt).await? {
                    differences.push(format!(
                        "{dataset}: {who} has a receipt of height {} that is not in crypto's chain: \
                         crypto was set back to an older copy",
                        receipt.height
                    ));
                }
            }
        }
    }
    let chains = chain::datasets(store).await.map_err(Failure::from)?;
    for &dataset in &chains {
        if let Some(damage) = fhaim_crypto::ledger::damage_of_chain(&crypto, dataset).await? {
            differences.push(format!(
                "{dataset}: crypto's ledger is damaged ({damage}): acts are missing, or were changed"
            ));
        }
    }
    tell(&all, chains.len(), &differences)
}

/// Whether a receipt is in the crypto service's present chain.
async fn is_of_chain(crypto: &fhaim_crypto::State, receipt: &Receipt) -> Result<bool, Error> {
    let Ok(height) = i64::try_from(receipt.height) else {
        return Ok(false);
    };
    let head = chain::head(&crypto.base().store, receipt.dataset, height).await;
    Ok(head.map_err(Failure::from)? == Some(receipt.head.0))
}

fn tell(all: &All, chains: usize, differences: &[String]) -> Result<(), Error> {
    let mut text = format!(
        "generation {} datasets, computation {} uploads, crypto {} key sets and {chains} chains\n",
        all.generation.len(),
        all.computation.len(),
        all.crypto.len()
    );
    for difference in differences {
        text.push_str(&format!("{difference}\n"));
    }
    output::print(&text)?;
    match differences.len() {
        0 => Ok(()),
        count => Err(Error::Service(format!(
            "the stores of the services have {count} differences"
        ))),
    }
}

impl All {
    fn differences(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (dataset, _) in self.generation.iter().filter(|(_, held)| held.complete) {
            if !self.crypto.contains(dataset) {
                found.push(format!("{dataset}: ready, but crypto has no keys for it"));
            }
            if !self
                .computation
                .get(dataset)
                .is_some_and(|upload| upload.complete)
            {
                let lacking = "ready, but computation has no complete upload of it";
                found.push(format!("{dataset}: {lacking}"));
            }
        }
        for dataset in self.computation.keys() {
            if !self.crypto.contains(dataset) {
                found.push(format!(
                    "{dataset}: uploaded, but crypto has no keys for it"
                ));
            }
            if !self.generation.contains_key(dataset) {
                found.push(format!(
                    "{dataset}: uploaded, but generation does not know it"
                ));
            }
        }
        for dataset in &self.crypto {
            if !self.generation.contains_key(dataset) {
                found.push(format!(
                    "{dataset}: crypto has keys, but generation does not know it"
                ));
            }
        }
        found
    }
}
