//! Waits for another process or thread.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Time after which a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `look` until it succeeds. Panics after a minute with the message of the last attempt.
pub fn until<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(lacking) => assert!(Instant::now() < deadline, "{lacking}"),
        }
        thread::sleep(PAUSE);
    }
}
