//! Compares the releases of a dataset that the key service shows with every other record of them.
//!
//! A holder's share contains its noise at the positions of each release. A key service that shows other releases at
//! these positions would learn the sum of the shares, and with it the real releases without their noise. Therefore
//! nothing is shared unless these records agree:
//!
//! - the entries of the ledger, whose hashes end in the receipts that this machine stores;
//! - the requests and answers of the generation service, release by release;
//! - the debits that every further key service signs;
//! - the record that this machine made when jobs ended, and when it shared before.
//!
//! The terms, and with them the keys of services and holders, are those that this holder signed.

use fhaim_api::Digest;
use fhaim_api::dataset::Dataset;
use fhaim_api::job::ReleasedStatistic;
use fhaim_api::keys::{DebitedByServices, DebitedReleases, LedgerEntry, Receipt, ReleasedBatch};
use fhaim_domain::counted;
use fhaim_protocol::committee::KeyService;
use fhaim_protocol::crypto::chain::{Act, Tip, answers_digest};
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::roster::Agreement;
use fhaim_protocol::terms::Terms;
use fhaim_release::ReleaseRequest;
use reqwest::Method;
use std::collections::BTreeMap;
use uuid::Uuid;

use super::Told;
use crate::client::Body;
use crate::{Client, Error};

#[cfg(test)]
mod tests;

/// What to do if two records of a release differ.
pub(super) const TELL: &str = "Do not share anything: the sum of all shares could show exact counts. Tell the other holders \
     and the services' operators what differs, and do not send numbers to anyone";

/// A dataset's ledger, entry by entry.
pub(super) struct LedgerChain {
    /// The end of the ledger after each entry.
    tips: Vec<Tip>,
    acts: Vec<Act>,
}

impl LedgerChain {
    /// Reads entries and computes their hashes.
    ///
    /// # Errors
    /// Entries that are not numbered from 1, or are not acts.
    pub(super) fn read(dataset: Uuid, entries: &[LedgerEntry]) -> Result<Self, String> {
        let id = DatasetId(dataset.into_bytes());
        let mut chain = Self {
            tips: Vec::with_capacity(entries.len()),
            acts: Vec::with_capacity(entries.len()),
        };
        for entry in entries {
            let tip = chain.tip().append(id, &entry.act);
            let act = serde_json::from_str(&entry.act);
            match act {
                Ok(act) if tip.height == entry.height => chain.acts.push(act),
                _ => {
                    return Err(format!(
                        "entry {} of the key service's ledger is malformed or out of order. Try again, \
                         with a newer `fhaim` if there is one",
                        tip.height
                    ));
                }
            }
            chain.tips.push(tip);
        }
        Ok(chain)
    }

    /// The end of the ledger.
    pub(super) fn tip(&self) -> Tip {
        self.tips.last().copied().unwrap_or_default()
    }

    /// Returns whether the ledger has this hash at this height.
    pub(super) fn contains(&self, height: u64, head: &Digest) -> bool {
        let index = height
            .checked_sub(1)
            .and_then(|at| usize::try_from(at).ok());
        match index {
            None => true,
            Some(index) => self.tips.get(index).is_some_and(|tip| tip.head == head.0),
        }
    }

    /// Rejects a ledger that does not continue the one of a receipt.
    fn check_receipt(&self, receipt: &Receipt) -> Result<(), String> {
        match self.contains(receipt.height, &receipt.head) {
            true => Ok(()),
            false => Err(format!(
                "the key service shows another ledger than the one of this machine's receipt, at entry {}: it \
                 was set back, or it invents releases. {TELL}",
                receipt.height
            )),
        }
    }

    /// Rejects batches that are not the ledger's own releases.
    fn check_batches(&self, batches: &[ReleasedBatch]) -> Result<(), String> {
        let mut shown = batches.iter();
        for (height, act) in (1..).zip(&self.acts) {
            let Act::Released {
                job,
                entries,
                answers,
            } = act
            else {
                continue;
            };
            let same = shown.next().is_some_and(|batch| {
                (batch.height, batch.job.as_bytes()) == (height, &job.0)
                    && batch.entries == *entries
                    && answers_digest(&batch.answers) == *answers
            });
            if !same {
                return Err(differing_batch(height));
            }
        }
        match shown.next() {
            None => Ok(()),
            Some(batch) => Err(differing_batch(batch.height)),
        }
    }

    /// Rejects terms other than those that the holder `part` signed for this dataset.
    pub(super) fn check_terms(
        &self,
        dataset: Uuid,
        terms: &Terms,
        part: u32,
    ) -> Result<(), String> {
        // Text and numbers: writing them cannot fail.
        let digest = Digest::of(&serde_json::to_vec(terms).unwrap_or_default()).0;
        let agreements = self.acts.iter().filter_map(|act| match act {
            Act::KeysMade {
                public_key,
                evaluation_keys,
                ..
            } => Some(Agreement {
                dataset: DatasetId(dataset.into_bytes()),
                terms: digest,
                public_key: *public_key,
                evaluation_keys: *evaluation_keys,
            }),
            _ => None,
        });
        let roster = terms.roster.as_ref();
        let own = roster.and_then(|roster| roster.holders.get(part as usize));
        let signed = agreements.zip(own).any(|(agreement, own)| {
            self.acts.iter().any(|act| match act {
                Act::Signed { member, signature } => {
                    *member == part && agreement.verify(own, signature).is_ok()
                }
                _ => false,
            })
        });
        match signed {
            true => Ok(()),
            false => Err(format!(
                "the ledger has no signature of this holder for the terms that the generation service shows: \
                 they are not the terms that were signed here. {TELL}"
            )),
        }
    }
}

fn differing_batch(height: u64) -> String {
    format!(
        "the key service shows other releases than those in entry {height} of its own ledger. If a job has \
         begun in the meantime, try again. {TELL}"
    )
}

/// Rejects releases of a job that are not, in this order, the requests and answers of the generation service.
fn check_generation(
    job: Uuid,
    batches: &[ReleasedBatch],
    known: &[ReleasedStatistic],
) -> Result<(), String> {
    let of_job = batches.iter().filter(|batch| batch.job == job);
    let shown = of_job.flat_map(|batch| batch.requests.iter().zip(&batch.answers));
    let shown: Vec<(&ReleaseRequest, &Vec<i64>)> = shown.collect();
    for ((request, answers), known) in shown.iter().zip(known) {
        let same = request.number == known.number
            && request.statistic == known.statistic
            && request.variance_units == known.variance_units
            && **answers == known.values;
        if !same {
            return Err(format!(
                "release {} of job {}: the key service and the generation service show different requests or \
                 integers, so one of them invents or has lost data. {TELL}",
                request.number, job
            ));
        }
    }
    if shown.len() == known.len() {
        return Ok(());
    }
    Err(format!(
        "job {job}: the key service shows {}, but the generation service has {}. If the job failed or was \
         cancelled, `fhaim job retry {job}` completes it; share after that. Otherwise: {TELL}",
        counted(shown.len(), "release"),
        counted(known.len(), "release"),
    ))
}

/// Rejects releases that a further key service has not debited.
fn check_key_service(
    dataset: Uuid,
    service: &KeyService,
    batches: &[ReleasedBatch],
    debited: &DebitedReleases,
) -> Result<(), String> {
    let name = &service.name;
    if debited.verify(dataset, &service.key).is_err() {
        return Err(format!(
            "key service {name} did not sign the debits that are shown for it. {TELL}"
        ));
    }
    let releases = debited.releases.iter();
    let statements: BTreeMap<(Uuid, u32), [u8; 32]> = releases
        .map(|release| ((release.job, release.number), release.statement.0))
        .collect();
    for batch in batches {
        for debit in batch.entries.iter().map(|entry| &entry.debit) {
            if statements.get(&(batch.job, debit.number)) != Some(&debit.digest) {
                return Err(format!(
                    "release {} of job {}: key service {name} has not debited the release that the first key \
                     service shows, so one of them invents or has lost data. {TELL}",
                    debit.number, batch.job
                ));
            }
        }
    }
    Ok(())
}

/// Rejects batches that one of these records contradicts: the generation service's, for some jobs, or those of the
/// further key services.
pub(super) fn compare(
    dataset: Uuid,
    batches: &[ReleasedBatch],
    generation: &[(Uuid, Vec<ReleasedStatistic>)],
    key_services: &[KeyService],
    debited: &DebitedByServices,
) -> Result<(), String> {
    for (job, known) in generation {
        check_generation(*job, batches, known)?;
    }
    let others = key_services.get(1..).unwrap_or_default();
    if others.len() != debited.services.len() {
        return Err(format!(
            "the terms have {} further key services, but the first one shows the debits of {}. {TELL}",
            others.len(),
            debited.services.len()
        ));
    }
    for (service, debited) in others.iter().zip(&debited.services) {
        check_key_service(dataset, service, batches, debited)?;
    }
    Ok(())
}

/// Releases on which all records agree.
pub(super) struct Agreed {
    pub(super) told: Told,
    pub(super) chain: LedgerChain,
}

impl Client {
    /// Returns the releases of one job or of all jobs of a dataset, if all records of them agree.
    ///
    /// # Errors
    /// [`Error::Contradicted`], and the errors of the services.
    pub(super) async fn agreed(
        &self,
        dataset: &Dataset,
        job: Option<Uuid>,
    ) -> Result<Agreed, Error> {
        let id = dataset.id;
        let contradicted = |reason| Error::Contradicted {
            dataset: id,
            reason,
        };
        // Load the receipt before an answer replaces it.
        let receipt = self.receipts().load(id);
        let mut told = self.told(id).await?;
        let entries = self.list(&self.of_dataset(id, "chain")).await?.items;
        let chain = LedgerChain::read(id, &entries).map_err(contradicted)?;
        if let Some(receipt) = receipt {
            chain.check_receipt(&receipt).map_err(contradicted)?;
        }
        chain.check_batches(&told.batches).map_err(contradicted)?;
        if let Some(job) = job {
            told.batches.retain(|batch| batch.job == job);
            told.runs.retain(|run| run.job == job);
        }
        let generation = self.at_generation(id, job, &told).await?;
        let services = &dataset.terms.0.key_services;
        let debited = match services.is_empty() {
            true => DebitedByServices {
                services: Vec::new(),
            },
            false => {
                let address = self.of_dataset(id, "debited");
                self.json(Method::GET, &address, Body::Empty).await?
            }
        };
        compare(id, &told.batches, &generation, services, &debited).map_err(contradicted)?;
        Ok(Agreed { told, chain })
    }

    fn of_dataset(&self, dataset: Uuid, what: &str) -> String {
        let crypto = &self.endpoints().crypto;
        format!("{crypto}/v1/datasets/{dataset}/{what}")
    }

    /// Returns the generation service's record of a dataset's jobs, or of one job. All must have ended, because a
    /// running job differs between two services at any moment.
    async fn at_generation(
        &self,
        dataset: Uuid,
        job: Option<Uuid>,
        told: &Told,
    ) -> Result<Vec<(Uuid, Vec<ReleasedStatistic>)>, Error> {
        let contradicted = |reason| Error::Contradicted { dataset, reason };
        let mut jobs = self.jobs(dataset).await?.items;
        if let Some(job) = job {
            jobs.retain(|known| known.id == job);
        }
        if let Some(job) = jobs.iter().find(|job| !job.state.is_final()) {
            return Err(contradicted(format!(
                "job {id} has not ended. Wait for its end (`fhaim job watch {id}`), then share",
                id = job.id
            )));
        }
        let unknown = told
            .batches
            .iter()
            .find(|batch| jobs.iter().all(|job| job.id != batch.job));
        if let Some(batch) = unknown {
            return Err(contradicted(format!(
                "the generation service does not have job {id}, of which the key service shows releases. If \
                 it has forgotten the job, `fhaim job run {dataset} --job {id}` runs it to its end; share \
                 after that. Otherwise: {TELL}",
                id = batch.job
            )));
        }
        let mut known = Vec::with_capacity(jobs.len());
        for job in jobs {
            let releases = self.releases(job.id).await?;
            known.push((job.id, releases));
        }
        Ok(known)
    }
}
