//! Shutdown: one signal that all long-lived work waits for.

use tokio::sync::watch;

/// The signal that the process is stopping. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// The other end of the signal. It stops everything that holds a [`Shutdown`].
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Makes a signal, and the stopper that raises it.
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
    /// Returns when the signal is raised, or when it can no longer be raised.
    pub async fn raised(&self) {
        let mut receiver = self.0.clone();
        // An error means that the stopper has been dropped, which also counts as a stop.
        let _ = receiver.wait_for(|&stopping| stopping).await;
    }

    /// Returns whether the signal is raised.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }
}

/// Returns when the process gets an interrupt or a request to terminate.
///
/// # Errors
/// An I/O error if the system offers no signals.
pub async fn interrupted() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
    }
}
