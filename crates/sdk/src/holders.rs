//! Datasets of several holders: agreement and withdrawal.

use fhaim_api::dataset::Dataset;
use fhaim_api::keys::{KeySet, NewSignature, UploadKeyRequest, UploadKeySeeds};
use fhaim_api::problem::ProblemKind;
use fhaim_he::{Parameters, UploadKey};
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::roster::HolderSigningKey;
use fhaim_protocol::upload_key::{OneTimeKey, SeedRequest, upload_key};
use reqwest::Method;

use crate::client::Body;
use crate::{Client, Error};

/// Rejects a key that is not the holder's key in the roster.
fn check_signer(dataset: &Dataset, number: u32, key: &HolderSigningKey) -> Result<(), Error> {
    let roster = dataset.terms.0.roster.as_ref();
    let member = roster.and_then(|roster| roster.holders.get(number as usize));
    if member.ok_or(Error::Outsider(dataset.id))?.key == key.public() {
        Ok(())
    } else {
        Err(Error::OtherKey(dataset.id))
    }
}

impl Client {
    /// Signs a dataset's terms and keys for this account. It first checks that the services have the same terms and
    /// plan as this machine, and that the roster has this key. No run begins before all holders have signed.
    ///
    /// # Errors
    /// [`Error::Outsider`], [`Error::OtherKey`], [`Error::Disagreement`], and the errors of the crypto service.
    pub async fn sign(&self, dataset: &Dataset, key: &HolderSigningKey) -> Result<KeySet, Error> {
        let number = self.part_number(dataset).await?;
        check_signer(dataset, number, key)?;
        let (_, set) = self.prepare_keys(dataset).await?;
        let body = Body::json(&NewSignature {
            signature: key.sign(&set.agreement()),
        });
        self.of_ledger(Method::PUT, dataset.id, "/signature", body)
            .await
    }

    /// Fetches the account's upload key from the key services, with a request that the holder signs. A party that has the key
    /// can read everything that is encrypted under it.
    ///
    /// # Errors
    /// [`Error::Outsider`], [`Error::OtherKey`], seeds that do not belong to this request, and the errors of the crypto
    /// service.
    pub(crate) async fn fetch_upload_key(
        &self,
        dataset: &Dataset,
        set: &KeySet,
        params: &Parameters,
        key: &HolderSigningKey,
    ) -> Result<UploadKey, Error> {
        let number = self.part_number(dataset).await?;
        check_signer(dataset, number, key)?;
        let one_time_key = OneTimeKey::random();
        let request = SeedRequest {
            dataset: DatasetId(dataset.id.into_bytes()),
            holder: number,
            evaluation_keys: set.evaluation_keys.0,
            one_time_key: one_time_key.public(),
        };
        let crypto = &self.endpoints().crypto;
        let address = format!("{crypto}/v1/datasets/{}/upload-key", dataset.id);
        let body = Body::json(&UploadKeyRequest {
            one_time_key: request.one_time_key,
            signature: request.sign(key),
        });
        let answer: UploadKeySeeds = self.json(Method::POST, &address, body).await?;
        let sealed = answer.bytes().map_err(|reason| Error::Answer {
            address: address.clone(),
            reason: reason.to_owned(),
        })?;
        let seeds = sealed.iter().enumerate();
        let seeds = seeds.map(|(service, sealed)| one_time_key.open(&request, service, sealed));
        let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
        Ok(upload_key(params, seeds)?)
    }

    /// Prevents further runs of a dataset, and takes the account's part back if no run over it has begun.
    ///
    /// # Errors
    /// [`Error::Outsider`], and the errors of the services.
    pub async fn withdraw(&self, dataset: &Dataset) -> Result<Withdrawal, Error> {
        let number = self.part_number(dataset).await?;
        if dataset.terms.0.roster.is_none() {
            return Err(Error::Outsider(dataset.id));
        }
        let withdrawn: Result<KeySet, Error> = self
            .of_ledger(Method::PUT, dataset.id, "/withdrawal", Body::Empty)
            .await;
        let set = match withdrawn {
            Err(error) if error.kind() == Some(ProblemKind::NotFound) => None,
            withdrawn => Some(withdrawn?),
        };
        let kept_by_second = match self.second(dataset)? {
            Some(second) => self.take_back(second, dataset, number).await? == WithdrawnPart::Kept,
            None => false,
        };
        let first = &self.endpoints().computation;
        let part = match self.take_back(first, dataset, number).await? {
            _ if kept_by_second => WithdrawnPart::Kept,
            part => part,
        };
        Ok(Withdrawal { set, part })
    }

    async fn take_back(
        &self,
        base: &str,
        dataset: &Dataset,
        number: u32,
    ) -> Result<WithdrawnPart, Error> {
        let address = format!("{base}/v1/datasets/{}/contributions/{number}", dataset.id);
        match self.call(Method::DELETE, &address, Body::Empty).await {
            Ok(_) => Ok(WithdrawnPart::Deleted),
            Err(error) if error.kind() == Some(ProblemKind::NotFound) => Ok(WithdrawnPart::Absent),
            Err(error) if error.kind() == Some(ProblemKind::Conflict) => Ok(WithdrawnPart::Kept),
            Err(error) => Err(error),
        }
    }
}

/// The result of a withdrawal.
#[derive(Clone, Debug)]
pub struct Withdrawal {
    /// The key set that records the withdrawal. `None` if there is no key set: then no run can begin, and nothing is
    /// recorded.
    pub set: Option<KeySet>,
    /// What happened to the account's uploaded part.
    pub part: WithdrawnPart,
}

/// What happened to the part of a holder who withdrew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithdrawnPart {
    /// It is deleted.
    Deleted,
    /// Nothing was uploaded, or it was already deleted.
    Absent,
    /// A run over it has begun, so it stays until its dataset is deleted.
    Kept,
}
