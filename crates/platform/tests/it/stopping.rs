//! The end of a program that is still at work.

use std::{
    sync::mpsc::{self, Sender},
    thread,
    time::Duration,
};

use fhaim_platform::program;

/// Reports at its drop whether its thread panicked.
struct Watched(Sender<bool>);

impl Drop for Watched {
    fn drop(&mut self) {
        // The receiver is gone when the test is over.
        let _ = self.0.send(thread::panicking());
    }
}

#[test]
fn work_after_the_end_does_not_panic() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let (begun, begins) = mpsc::channel();
    let (ended, ends) = mpsc::channel();
    let handle = runtime.handle().clone();
    // Like a job: long work on a separate thread, which sometimes waits for a service.
    let worker = thread::spawn(move || {
        let _watched = Watched(ended);
        let _ = begun.send(());
        thread::sleep(Duration::from_millis(300));
        handle.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
    });
    begins.recv()?;
    program::leave(runtime);
    assert!(!ends.recv()?, "the work panicked");
    worker.join().map_err(|_| "the work panicked")?;
    Ok(())
}
