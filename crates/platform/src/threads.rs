//! Long work on threads of its own, so that the threads that answer stay free.

use tokio::sync::Semaphore;

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
pub struct Few(Semaphore);

impl Few {
    /// So many at a time, at least one.
    pub fn new(most: usize) -> Self {
        Self(Semaphore::new(most.max(1)))
    }

    /// As [`blocking`], when its turn has come.
    ///
    /// # Errors
    /// The work panicked.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let _permit = self.0.acquire().await.map_err(Failure::internal)?;
        blocking(work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
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
}
