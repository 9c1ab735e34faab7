//! Long work on threads of its own, so that the threads that answer stay free.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::Failure;

/// Does long work on a thread for it.
///
/// # Errors
/// The work panicked.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failure::internal)
}

/// Long work that anyone may ask for: some of it at a time, so that nobody stops the service.
#[derive(Debug)]
pub struct Few(Arc<Semaphore>);

impl Few {
    /// So many at a time, at least one.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most.max(1))))
    }

    /// As [`blocking`], when its turn has come.
    ///
    /// # Errors
    /// The work panicked.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let permit = self.0.clone().acquire_owned().await;
        let permit = permit.map_err(Failure::internal)?;
        blocking(holding(permit, work)).await
    }
}

/// Work that keeps its place until it is done, whether or not anybody still waits for it: a caller who
/// hangs up drops what waits, and a thread cannot be stopped.
fn holding<T>(
    place: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> impl FnOnce() -> T + Send + 'static {
    move || {
        let _place = place;
        work()
    }
}

/// [`Few`], of which no owner has more than one at a time: who asks for many waits for itself, and
/// others wait for one of each owner's at most.
#[derive(Debug)]
pub struct Shared {
    few: Few,
    /// Whoever has work under way or waiting.
    owners: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

impl Shared {
    /// So many at a time, at least one.
    pub fn new(most: usize) -> Self {
        Self {
            few: Few::new(most),
            owners: Mutex::default(),
        }
    }

    /// As [`Few::blocking`], when the owner's turn has come.
    ///
    /// # Errors
    /// The work panicked.
    pub async fn blocking<T: Send + 'static>(
        &self,
        owner: Uuid,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = self.turn_of(owner).acquire_owned().await;
        let turn = turn.map_err(Failure::internal)?;
        self.few.blocking(holding(turn, work)).await
    }

    fn turn_of(&self, owner: Uuid) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = owners.get(&owner).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Semaphore::new(1));
        owners.insert(owner, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[tokio::test]
    async fn no_more_than_a_few_run_at_a_time() {
        let few = Few::new(2);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = || {
            let (now, most) = (now.clone(), most.clone());
            few.blocking(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                now.fetch_sub(1, Ordering::SeqCst);
            })
        };
        let done = futures_util::future::join_all((0..6).map(|_| work())).await;
        assert!(done.iter().all(Result::is_ok));
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }

    /// Work went on past the bound where those who had asked for it hung up.
    #[tokio::test]
    async fn who_hangs_up_leaves_no_place_to_others() {
        let shared = Shared::new(2);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for caller in 0..12 {
            let (now, most) = (now.clone(), most.clone());
            let work = shared.blocking(Uuid::from_u128(caller % 3), move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(40));
                now.fetch_sub(1, Ordering::SeqCst);
            });
            let _ = tokio::time::timeout(Duration::from_millis(5), work).await;
        }
        let last = shared.blocking(Uuid::from_u128(9), || ()).await;
        assert!(last.is_ok());
        assert!(most.load(Ordering::SeqCst) <= 2, "{most:?} at a time");
    }

    /// One account that asked for dozens of key sets kept others waiting for all of them.
    #[tokio::test]
    async fn who_asks_for_many_waits_for_itself() {
        let shared = Shared::new(2);
        let done = Arc::new(AtomicUsize::new(0));
        let (eve, ana) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let work = |owner| {
            let done = done.clone();
            shared.blocking(owner, move || {
                std::thread::sleep(Duration::from_millis(20));
                done.fetch_add(1, Ordering::SeqCst)
            })
        };
        let many = futures_util::future::join_all((0..30).map(|_| work(eve)));
        let one = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            work(ana).await
        };
        let (many, before) = tokio::join!(many, one);
        assert!(many.iter().all(Result::is_ok));
        assert!(before.unwrap() < 8, "it waited for the other's");
        assert!(shared.turn_of(ana).available_permits() == 1);
        assert_eq!(
            shared.owners.lock().unwrap().len(),
            1,
            "who has nothing under way is kept"
        );
    }
}
