//! Stopping: one signal that everything long-lived waits for.

use tokio::sync::watch;

/// Whether the process is stopping. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// The other end: stops everything that holds its [`Shutdown`].
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// A signal and what raises it.
pub fn channel() -> (Stopper, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Shutdown(receiver))
}

impl Stopper {
    /// Raises the signal.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Returns when the signal is raised, or can no longer be.
    pub async fn raised(&self) {
        let mut receiver = self.0.clone();
        // An error means that the stopper is gone: stop too.
        let _ = receiver.wait_for(|&stopping| stopping).await;
    }

    /// Whether the signal is raised.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }
}

/// Returns at an interrupt or a request to terminate.
///
/// # Errors
/// Where the system offers no signals.
pub async fn interrupted() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
    }
}
