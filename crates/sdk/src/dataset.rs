//! Datasets: creation at all three services, lists, and deletion.

use fhaim_api::Digest;
use fhaim_api::dataset::{Dataset, NewDataset, NewName, Voucher, WireTerms};
use fhaim_api::keys::{AuditEntry, DatasetLedger, KeyServices, KeySet, NewKeySet};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_api::upload::{NewUpload, Upload, WireLayout};
use fhaim_he::{Layout, PublicKey};
use fhaim_protocol::committee::KeyService;
use fhaim_protocol::terms::{Plan, Terms};
use fhaim_synth::Mechanisms;
use reqwest::Method;
use uuid::Uuid;

use crate::client::Body;
use crate::{Client, Endpoints, Error, List};

impl Client {
    /// Creates a dataset at the generation service under a new identifier. Repeating the call does not create another
    /// dataset.
    ///
    /// # Errors
    /// [`Error::Disagreement`] if the service answers with other terms. Also terms that cannot be met, and the errors
    /// of the service.
    pub async fn create_dataset(
        &self,
        id: Uuid,
        name: &str,
        terms: Terms,
    ) -> Result<Dataset, Error> {
        let service = &self.endpoints().generation;
        let address = format!("{service}/v1/datasets/{id}");
        let body = Body::json(&NewDataset {
            name: name.to_owned(),
            terms: WireTerms(terms.clone()),
        });
        let made = self.json(Method::PUT, &address, body).await;
        let made: Dataset = made.map_err(|error: Error| error.of_new_dataset(id, service))?;
        let told = made.terms.0.clone();
        let checking = tokio::task::spawn_blocking(move || check_terms(terms, &told));
        checking.await.map_err(|_| Error::Interrupted)??;
        Ok(made)
    }

    /// Returns all datasets of the account, newest first.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn datasets(&self) -> Result<List<Dataset>, Error> {
        self.list(&format!("{}/v1/datasets", self.endpoints().generation))
            .await
    }

    /// Returns one dataset.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn dataset(&self, id: Uuid) -> Result<Dataset, Error> {
        let address = format!("{}/v1/datasets/{id}", self.endpoints().generation);
        self.json(Method::GET, &address, Body::Empty).await
    }

    /// Renames a dataset that the account made.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn rename_dataset(&self, id: Uuid, name: &str) -> Result<Dataset, Error> {
        let address = format!("{}/v1/datasets/{id}/name", self.endpoints().generation);
        let body = Body::json(&NewName {
            name: name.to_owned(),
        });
        self.json(Method::PUT, &address, body).await
    }

    /// Returns the number of the account's part of a dataset: 0 if one holder has the whole table.
    ///
    /// # Errors
    /// [`Error::Outsider`], and the errors of the service.
    pub async fn part_number(&self, dataset: &Dataset) -> Result<u32, Error> {
        let terms = &dataset.terms.0;
        if terms.roster.is_none() {
            return Ok(0);
        }
        let account = self.account().await?.id.to_string();
        let number = terms.part_of(&account);
        number.ok_or(Error::Outsider(dataset.id))
    }

    /// Prepares the upload of the account's part of a dataset. Has the dataset's keys made and registers the part.
    /// Checks that the terms state what their mechanism needs, and that the services have the same plan as this
    /// machine. Returns the plan, the crypto service's record of the keys, and the public key.
    ///
    /// # Errors
    /// [`Error::Disagreement`] if a service has another plan. Also terms that state something else than their mechanism
    /// needs, and the errors of the services.
    pub async fn prepare(
        &self,
        dataset: &Dataset,
        layout: Option<Layout>,
    ) -> Result<(Plan, KeySet, PublicKey), Error> {
        let (plan, set) = self.prepare_keys(dataset).await?;
        let public = self.public_key(dataset.id, &set, &plan).await?;
        self.register(dataset, layout).await?;
        Ok((plan, set, public))
    }

    /// Has the dataset's keys made, if this account made the dataset. Checks that they belong to the plan that this
    /// machine derives from the terms.
    ///
    /// # Errors
    /// The same as [`Client::prepare`].
    pub async fn prepare_keys(&self, dataset: &Dataset) -> Result<(Plan, KeySet), Error> {
        let terms = dataset.terms.0.clone();
        let plan = tokio::task::spawn_blocking(move || terms.complete(&Mechanisms)?.plan())
            .await
            .map_err(|_| Error::Interrupted)??;
        let set = if self.part_number(dataset).await? == 0 {
            self.make_keys(dataset).await?
        } else {
            self.key_set(dataset.id).await?
        };
        if set.terms != dataset.terms {
            return Err(Error::Disagreement("the keys were made with other terms"));
        }
        let confirmed = set.check_confirmed();
        confirmed.map_err(|reason| Error::Unconfirmed(dataset.id, reason))?;
        if set.parameter_set != plan.core.set.id || set.budget != plan.core.budget.into() {
            return Err(Error::Disagreement(
                "the keys have another budget or other parameters",
            ));
        }
        Ok((plan, set))
    }

    /// Returns the first `most` of the services that can share a key, in the form that terms name them.
    ///
    /// # Errors
    /// [`Error::KeyServices`] if there are fewer. Also the errors of the service.
    pub async fn key_services(&self, most: usize) -> Result<Vec<KeyService>, Error> {
        let address = format!("{}/v1/key-services", self.endpoints().crypto);
        let known: KeyServices = self.json(Method::GET, &address, Body::Empty).await?;
        let known: Vec<KeyService> = known.services.into_iter().map(Into::into).collect();
        match known.get(..most) {
            Some(first) => Ok(first.to_vec()),
            None => Err(Error::KeyServices {
                known: known.len(),
                wanted: most,
            }),
        }
    }

    /// Returns the crypto service's record of a dataset's keys, and of the holders that agreed to them.
    ///
    /// # Errors
    /// [`Error::Restored`] if its ledger was set back. Also the errors of the service.
    pub async fn key_set(&self, id: Uuid) -> Result<KeySet, Error> {
        self.of_ledger(Method::GET, id, "", Body::Empty).await
    }

    /// Returns the dataset's keys, and has them made if they do not exist yet. The generation service vouches only for
    /// datasets that never had keys.
    async fn make_keys(&self, dataset: &Dataset) -> Result<KeySet, Error> {
        match self.key_set(dataset.id).await {
            Err(error) if error.kind() == Some(ProblemKind::NotFound) => {}
            known => return known,
        }
        let generation = &self.endpoints().generation;
        let address = format!("{generation}/v1/datasets/{}/voucher", dataset.id);
        let vouched: Voucher = self.json(Method::GET, &address, Body::Empty).await?;
        let body = Body::json(&NewKeySet {
            terms: dataset.terms.clone(),
            voucher: Some(vouched.voucher),
        });
        let made = self.of_ledger(Method::PUT, dataset.id, "", body).await;
        let service = &self.endpoints().crypto;
        made.map_err(|error: Error| error.of_new_dataset(dataset.id, service))
    }

    async fn public_key(&self, id: Uuid, set: &KeySet, plan: &Plan) -> Result<PublicKey, Error> {
        let address = format!("{}/v1/datasets/{id}/public-key", self.endpoints().crypto);
        let response = self.call(Method::GET, &address, Body::Empty).await?;
        let bytes = response.bytes().await;
        let bytes = bytes.map_err(|error| Error::unreachable(&address, error))?;
        if Digest::of(&bytes) != set.public_key {
            return Err(Error::Disagreement(
                "the public key differs from the announced one",
            ));
        }
        let key = PublicKey::from_bytes(&plan.parameters()?, &bytes);
        Ok(key.map_err(fhaim_protocol::Error::from)?)
    }

    /// Returns the address of a dataset's second computation service, or `None` if its terms do not have one.
    ///
    /// # Errors
    /// [`Error::NoWitness`].
    pub(crate) fn second(&self, dataset: &Dataset) -> Result<Option<&str>, Error> {
        if !dataset.terms.0.witness {
            return Ok(None);
        }
        let base = self.endpoints().witness.as_deref();
        base.map(Some).ok_or(Error::NoWitness(dataset.id))
    }

    async fn register(&self, dataset: &Dataset, layout: Option<Layout>) -> Result<Upload, Error> {
        if let Some(second) = self.second(dataset)? {
            self.register_at(second, dataset, layout).await?;
        }
        self.register_at(&self.endpoints().computation, dataset, layout)
            .await
    }

    async fn register_at(
        &self,
        service: &str,
        dataset: &Dataset,
        layout: Option<Layout>,
    ) -> Result<Upload, Error> {
        let id = dataset.id;
        let address = format!("{service}/v1/datasets/{id}");
        let body = Body::json(&NewUpload {
            terms: dataset.terms.clone(),
            layout: layout.map(|layout| WireLayout {
                chunks: layout.chunks(),
                stride: layout.stride(),
            }),
        });
        let made = self.json(Method::PUT, &address, body).await;
        made.map_err(|error: Error| error.of_new_dataset(id, service))
    }

    /// Returns the state of a dataset's upload.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn upload_state(&self, id: Uuid) -> Result<Upload, Error> {
        let address = format!("{}/v1/datasets/{id}", self.endpoints().computation);
        self.json(Method::GET, &address, Body::Empty).await
    }

    /// Returns the dataset's privacy ledger, directly from the crypto service.
    ///
    /// # Errors
    /// [`Error::Restored`] if the ledger was set back; [`Error::NoLedger`] if the crypto service has none of this
    /// dataset. Also the errors of the service.
    pub async fn ledger(&self, id: Uuid) -> Result<DatasetLedger, Error> {
        let ledger = self.of_ledger(Method::GET, id, "/ledger", Body::Empty);
        self.expect_ledger(id, ledger.await).await
    }

    /// Names a dataset that the generation service knows, and the crypto service does not.
    pub(crate) async fn expect_ledger<T>(
        &self,
        id: Uuid,
        answer: Result<T, Error>,
    ) -> Result<T, Error> {
        match answer {
            Err(error) if is_unknown(&error) && self.dataset(id).await.is_ok() => {
                Err(Error::NoLedger(id))
            }
            answer => answer,
        }
    }

    /// Returns all requests to the dataset's keys, oldest first.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn audit(&self, id: Uuid) -> Result<Vec<AuditEntry>, Error> {
        let address = format!("{}/v1/datasets/{id}/audit", self.endpoints().crypto);
        Ok(self.list(&address).await?.items)
    }

    /// Deletes a dataset everywhere, also if its stored data is damaged. First the generation service marks it as being
    /// deleted, so that it continues the deletion if this call is interrupted. Running jobs are stopped. Then the keys
    /// are destroyed, after which nothing of the dataset can be decrypted. Then its ciphertexts are deleted, and at last
    /// its jobs and results.
    ///
    /// # Errors
    /// The errors of the services. Deleted data stays deleted, and the call can be repeated. [`Error::OtherMaker`] if
    /// another holder made the dataset; [`ProblemKind::NotFound`] if no service knows the dataset.
    pub async fn delete_dataset(&self, id: Uuid) -> Result<(), Error> {
        let found = self.dataset(id).await;
        // The generation service may finish the deletion of a known dataset meanwhile.
        let mut is_known = found.is_ok();
        let second = match found {
            Ok(dataset) if self.part_number(&dataset).await? != 0 => {
                return Err(Error::OtherMaker(id));
            }
            // Before the keys: without the second service's address, nothing is deleted.
            Ok(dataset) => self.second(&dataset)?,
            // Another call may have deleted it at the generation service already.
            Err(error) if is_unknown_or_damaged(&error) => self.second_if_signed_in().await?,
            Err(error) => return Err(error),
        };
        let mark = format!("{}/v1/datasets/{id}/deletion", self.endpoints().generation);
        unless_unknown(self.call(Method::PUT, &mark, Body::Empty).await)?;
        self.cancel_all(id).await?;
        let Endpoints {
            generation,
            computation,
            crypto,
            ..
        } = self.endpoints();
        let all = [Some(&**crypto), Some(computation), second, Some(generation)];
        let mut unknown = None;
        for service in all.into_iter().flatten() {
            let address = format!("{service}/v1/datasets/{id}");
            match self.call(Method::DELETE, &address, Body::Empty).await {
                Ok(_) => is_known = true,
                // The dataset never reached this service, or an earlier call deleted it.
                Err(error) if is_unknown(&error) => unknown = Some(error),
                Err(error) => return Err(error),
            }
        }
        match unknown {
            Some(error) if !is_known => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the address of the second computation service, if there is one for which the session has a token.
    async fn second_if_signed_in(&self) -> Result<Option<&str>, Error> {
        let Some(second) = &self.endpoints().witness else {
            return Ok(None);
        };
        match self.token(Service::Witness).await {
            Ok(_) => Ok(Some(second)),
            Err(Error::NoToken(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Cancels the jobs of a dataset that have not ended.
    async fn cancel_all(&self, id: Uuid) -> Result<(), Error> {
        let jobs = match self.jobs(id).await {
            // The jobs of a damaged dataset end with it.
            Err(error) if is_unknown_or_damaged(&error) => return Ok(()),
            jobs => jobs?.items,
        };
        for job in jobs.iter().filter(|job| !job.state.is_final()) {
            match self.cancel(job.id).await {
                // The job has ended in the meantime.
                Err(error) if error.kind() == Some(ProblemKind::Conflict) => {}
                cancelled => drop(cancelled?),
            }
        }
        Ok(())
    }
}

/// Returns whether a service does not know a dataset.
fn is_unknown(error: &Error) -> bool {
    error.kind() == Some(ProblemKind::NotFound)
}

/// Returns whether a service does not know a dataset, or cannot read its stored data.
fn is_unknown_or_damaged(error: &Error) -> bool {
    is_unknown(error) || error.kind() == Some(ProblemKind::Damaged)
}

/// Accepts the answer that the service does not know a dataset.
pub(crate) fn unless_unknown<T>(answer: Result<T, Error>) -> Result<(), Error> {
    match answer {
        Err(error) if is_unknown(&error) => Ok(()),
        answer => answer.map(drop),
    }
}

/// Rejects an answer with terms other than the completed ones that were sent. The table is encrypted under the terms of
/// the answer, and another epsilon in them would be spent.
fn check_terms(sent: Terms, told: &Terms) -> Result<(), Error> {
    if sent.complete(&Mechanisms)? == *told {
        Ok(())
    } else {
        Err(Error::Disagreement("the dataset was made with other terms"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Schema;

    #[test]
    fn answer_with_other_terms_is_rejected() {
        let json = br#"{"name":"t","columns":[
            {"name":"a","kind":"categorical","categories":["1","2"]},
            {"name":"b","kind":"categorical","categories":["1","2","3"]}]}"#;
        let schema = Schema::from_json("t", json).unwrap();
        let sent = Terms::new(schema, 1.0, 1e-9, 600);
        let told = sent.clone().complete(&Mechanisms).unwrap();
        check_terms(sent.clone(), &told).unwrap();
        for other in [
            Terms {
                epsilon: 50.0,
                ..told.clone()
            },
            Terms {
                runs: 2,
                ..told.clone()
            },
        ] {
            let refused = check_terms(sent.clone(), &other);
            assert!(matches!(refused, Err(Error::Disagreement(_))));
        }
    }
}
