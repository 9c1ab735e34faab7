//! Everything that was asked of a dataset's keys, and whether it was granted.

use fhaim_platform::Failure;
use fhaim_platform::clock::Millis;
use fhaim_platform::store::{StoreError, Tx};
use fhaim_platform::token::Caller;
use uuid::Uuid;

use crate::State;
use crate::store::{audit as store, keys};

/// Who asked for what.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The dataset.
    pub dataset: Uuid,
    /// Who asked.
    pub actor: Caller,
    /// For what.
    pub action: &'a str,
}

impl Asked<'_> {
    /// Writes it into a transaction. The dataset's row must be locked, or not be there.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn write(&self, tx: &mut Tx, granted: bool) -> Result<(), StoreError> {
        store::write(tx, self.dataset, &self.actor(), self.action, granted).await
    }

    /// How often the same was granted since a time.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn count(&self, tx: &mut Tx, since: Millis) -> Result<u64, StoreError> {
        store::count(tx, self.dataset, &self.actor(), self.action, since).await
    }

    fn actor(&self) -> String {
        match self.actor {
            Caller::User(account) => format!("user {account}"),
            Caller::Service(service) => format!("service {service}"),
        }
    }

    /// Writes a refusal, in a transaction of its own.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn refused(&self, state: &State) -> Result<(), Failure> {
        let mut tx = state.base.store.begin().await?;
        let known = keys::lock(&state.base.store, &mut tx, self.dataset).await?;
        // Nothing is kept of datasets that are not there, or anyone could fill the disk.
        if known.is_some() {
            self.write(&mut tx, false).await?;
        }
        Ok(tx.commit().await?)
    }
}
