//! Long work on separate threads, so that the threads that answer requests stay free.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::Failure;

/// Runs long work on a blocking thread.
///
/// # Errors
/// [`Failure::internal`] if the work panicked.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failure::internal)
}

/// Limits long work that anyone may request: only a few run at a time, so that no caller can stop the service.
#[derive(Debug)]
pub struct Few(Arc<Semaphore>);

impl Few {
    /// Makes a limit of `most` pieces of work at a time, and at least one.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most.max(1))))
    }

    /// Like [`blocking`], after waiting for a turn.
    ///
    /// # Errors
    /// [`Failure::internal`] if the work panicked.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let permit = self.0.clone().acquire_owned().await;
        let permit = permit.map_err(Failure::internal)?;
        blocking(holding(permit, work)).await
    }
}

/// Makes work keep its place until it is done, even if no caller waits for it any more. A caller that hangs up drops
/// its future, but a thread cannot be stopped.
fn holding<T>(
    place: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> impl FnOnce() -> T + Send + 'static {
    move || {
        let _place = place;
        work()
    }
}

/// [`Few`] with at most one piece of work per owner at a time. An owner that asks for many waits for its own work, and
/// other owners wait for at most one piece of work of each owner.
#[derive(Debug)]
pub struct Shared {
    few: Few,
    /// The owners with work that runs or waits.
    owners: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

impl Shared {
    /// Makes a limit of `most` pieces of work at a time, and at least one.
    pub fn new(most: usize) -> Self {
        Self {
            few: Few::new(most),
            owners: Mutex::default(),
        }
    }

    /// Like [`Few::blocking`], after waiting for the owner's turn.
    ///
    /// # Errors
    /// [`Failure::internal`] if the work panicked.
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
    async fn amount_of_concurrent_work_is_limited() {
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

    /// Work of callers that have hung up must count towards the limit.
    #[tokio::test]
    async fn work_of_callers_that_hang_up_counts_towards_the_limit() {
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

    /// An account that asks for dozens of key sets must not keep others waiting for all of them.
    #[tokio::test]
    async fn owner_with_many_requests_does_not_delay_others() {
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
        assert!(
            before.unwrap() < 8,
            "the second owner waited for the first one's work"
        );
        assert!(shared.turn_of(ana).available_permits() == 1);
        assert_eq!(
            shared.owners.lock().unwrap().len(),
            1,
            "an owner without work is kept"
        );
    }
}
