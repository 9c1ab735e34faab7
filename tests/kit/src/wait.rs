//! Waiting for what happens elsewhere.

use std::{
    thread,
    time::{Duration, Instant},
};

/// What has not happened after so long never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks again and again until there is what is looked for; ends the test with what the last look
/// found lacking, after a minute.
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
