//! Places for tables that are being drawn. Each takes some dozens of megabytes until its client has read it.

use fhaim_platform::Failure;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Places for tables, of which one account can take only some.
pub struct Places {
    all: Arc<Semaphore>,
    per_account: usize,
    /// The accounts that draw tables or wait for a place.
    accounts: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

/// A place, which is free again when it is dropped.
pub struct Place {
    _of_account: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Places {
    /// Returns `all` places, of which one account can take `per_account`; at least one each.
    pub fn new(all: usize, per_account: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all.max(1))),
            per_account: per_account.max(1),
            accounts: Mutex::default(),
        }
    }

    /// Waits for a place. An account that has all of its places waits for its own tables, and keeps nobody else waiting.
    ///
    /// # Errors
    /// [`Failure::internal`], which does not occur: the semaphores are never closed.
    pub async fn take(&self, account: Uuid) -> Result<Place, Failure> {
        let of_account = self.of(account).acquire_owned().await;
        let of_account = of_account.map_err(Failure::internal)?;
        let of_all = self.all.clone().acquire_owned().await;
        Ok(Place {
            _of_account: of_account,
            _of_all: of_all.map_err(Failure::internal)?,
        })
    }

    /// Returns the places of an account.
    fn of(&self, account: Uuid) -> Arc<Semaphore> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.retain(|_, places| places.strong_count() > 0);
        if let Some(places) = accounts.get(&account).and_then(Weak::upgrade) {
            return places;
        }
        let places = Arc::new(Semaphore::new(self.per_account));
        accounts.insert(account, Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn account_without_a_place_keeps_no_other_account_waiting() {
        let places = Places::new(3, 2);
        let (ana, ben) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let of = async |account| {
            let place = tokio::time::timeout(Duration::from_millis(50), places.take(account)).await;
            place.ok().map(Result::unwrap)
        };
        let first = of(ana).await;
        let second = of(ana).await;
        assert!(first.is_some() && second.is_some());
        assert!(of(ana).await.is_none());
        let third = of(ben).await;
        assert!(third.is_some());
        assert!(of(ben).await.is_none());
        drop(first);
        assert!(of(ana).await.is_some());
        drop(third);
        assert!(of(ben).await.is_some());
        assert_eq!(places.accounts.lock().unwrap().len(), 2);
    }
}
