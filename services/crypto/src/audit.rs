//! The audit log: all requests for a dataset's keys and releases, and whether they were granted.

use fhaim_platform::Failure;
use fhaim_platform::clock::Millis;
use fhaim_platform::store::{StoreError, Tx};
use fhaim_platform::token::Caller;
use uuid::Uuid;

use crate::State;
use crate::store::{audit as store, keys};

/// A request to be logged.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The dataset.
    pub dataset: Uuid,
    /// The caller.
    pub actor: Caller,
    /// The requested action.
    pub action: &'a str,
}

impl Asked<'_> {
    /// Writes the entry in a transaction. The dataset's row must be locked, or not exist.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn write(&self, tx: &mut Tx, granted: bool) -> Result<(), StoreError> {
        store::write(tx, self.dataset, &self.actor(), self.action, granted).await
    }

    /// Counts the granted entries with the same dataset, caller and action since a time.
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

    /// Writes a refusal in its own transaction.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn refused(&self, state: &State) -> Result<(), Failure> {
        let mut tx = state.base.store.begin().await?;
        let known = keys::lock(&state.base.store, &mut tx, self.dataset).await?;
        // Nothing is logged for unknown datasets, or anyone could fill the disk.
        if known.is_some() {
            self.write(&mut tx, false).await?;
        }
        Ok(tx.commit().await?)
    }
}
