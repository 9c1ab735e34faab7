//! Datasets of several holders: agreeing to one, and leaving it.

use fhaim_api::dataset::Dataset;
use fhaim_api::keys::{KeySet, NewSignature};
use fhaim_api::problem::ProblemKind;
use fhaim_protocol::roster::HolderKey;
use reqwest::Method;

use crate::client::Body;
use crate::{Client, Error};

impl Client {
    /// Signs a dataset's terms and keys for this account, after checking that the services have the
    /// same terms and plan as this machine, and that the roster has this key. No run begins before all
    /// holders have signed.
    ///
    /// # Errors
    /// [`Error::Outsider`], [`Error::OtherKey`], [`Error::Disagreement`]; what the crypto service
    /// refuses.
    pub async fn sign(&self, dataset: &Dataset, key: &HolderKey) -> Result<KeySet, Error> {
        let number = self.part_number(dataset).await?;
        let roster = dataset.terms.0.roster.as_ref();
        let member = roster.and_then(|roster| roster.holders.get(number as usize));
        if member.ok_or(Error::Outsider(dataset.id))?.key != key.public() {
            return Err(Error::OtherKey(dataset.id));
        }
        let (_, set) = self.prepare_keys(dataset).await?;
        let body = Body::json(&NewSignature {
            signature: key.sign(&set.agreement()),
        });
        self.of_ledger(Method::PUT, dataset.id, "/signature", body)
            .await
    }

    /// Lets no further run of a dataset begin, and takes the account's part back if no run over it has
    /// begun.
    ///
    /// # Errors
    /// [`Error::Outsider`]; what the services refuse.
    pub async fn withdraw(&self, dataset: &Dataset) -> Result<(), Error> {
        let number = self.part_number(dataset).await?;
        if dataset.terms.0.roster.is_none() {
            return Err(Error::Outsider(dataset.id));
        }
        let withdrawn: Result<KeySet, Error> = self
            .of_ledger(Method::PUT, dataset.id, "/withdrawal", Body::Empty)
            .await;
        match withdrawn {
            // Without keys nothing can begin.
            Err(error) if error.kind() == Some(ProblemKind::NotFound) => {}
            withdrawn => drop(withdrawn?),
        }
        let base = &self.endpoints().computation;
        let address = format!("{base}/v1/datasets/{}/contributions/{number}", dataset.id);
        match self.call(Method::DELETE, &address, Body::Empty).await {
            Ok(_) => Ok(()),
            // Nothing was uploaded, or a run has begun: what it released stays released.
            Err(error)
                if [Some(ProblemKind::NotFound), Some(ProblemKind::Conflict)]
                    .contains(&error.kind()) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
