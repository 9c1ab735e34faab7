//! Runs work on a separate thread, while the interpreter's lock is free and Ctrl-C is handled.

use std::{
    collections::VecDeque,
    panic::resume_unwind,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use fhaim_cli::in_process::{Done, Listener, WorkFailure};
use pyo3::{create_exception, exceptions::PyException, prelude::*};

create_exception!(
    fhaim._native,
    Refused,
    PyException,
    "Work that failed. Its arguments are the kind (refused or used-before), the reason, a solution or None, and remarks."
);

/// Interval at which the interpreter checks for Ctrl-C.
const LISTENING: Duration = Duration::from_millis(50);

/// Progress of a phase: its name, units done, units in total.
type Told = (String, u64, Option<u64>);

/// Messages of the worker that the interpreter has not received yet.
#[derive(Default)]
struct Post {
    told: Mutex<VecDeque<Told>>,
    stopped: AtomicBool,
}

impl Post {
    fn take(&self) -> VecDeque<Told> {
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Listener for Post {
    fn hear(&self, phase: &str, done: u64, total: Option<u64>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match told.back_mut() {
            // Only the latest progress of a phase matters.
            Some(last) if last.0 == phase => (last.1, last.2) = (done, total),
            _ => told.push_back((phase.to_owned(), done, total)),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Runs some work and calls `tell(phase, done, total)` meanwhile. Returns its result and its
/// remarks.
///
/// # Errors
/// [`Refused`], and exceptions of `tell` or of a signal's handler, after the work has stopped.
pub fn follow<T: Send + 'static>(
    py: Python<'_>,
    tell: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<dyn Listener>) -> Result<Done<T>, WorkFailure> + Send + 'static,
) -> PyResult<Done<T>> {
    let post = Arc::new(Post::default());
    let listener: Arc<dyn Listener> = post.clone();
    let worker = thread::Builder::new()
        .name("fhaim".to_owned())
        .spawn(move || work(&listener))?;
    let mut ended = Ok(());
    while ended.is_ok() && !worker.is_finished() {
        py.detach(|| thread::sleep(LISTENING));
        ended = py.check_signals().and_then(|()| pass_on(&post, tell));
    }
    post.stopped.store(ended.is_err(), Ordering::Relaxed);
    let done = py.detach(|| worker.join());
    ended?;
    let done = done
        .unwrap_or_else(|panic| resume_unwind(panic))
        .map_err(refused)?;
    pass_on(&post, tell)?;
    Ok(done)
}

fn pass_on(post: &Post, tell: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let told = post.take();
    let Some(tell) = tell else { return Ok(()) };
    for told in told {
        tell.call1(told)?;
    }
    Ok(())
}

/// Returns a failure as the exception [`Refused`].
pub fn refused(failure: WorkFailure) -> PyErr {
    let reason = failure.to_string();
    let (used_before, way_out, remarks) = match failure {
        WorkFailure::Refused {
            used_before,
            way_out,
            remarks,
            ..
        } => (used_before, way_out, remarks),
        WorkFailure::Stopped => (false, None, Vec::new()),
    };
    let kind = if used_before {
        "used-before"
    } else {
        "refused"
    };
    Refused::new_err((kind, reason, way_out, remarks))
}
