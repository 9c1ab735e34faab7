//! Gates that keep users from making new data while a service may be rolled back. A rollback would lose all data made
//! after the copy, in any system.

use std::{
    sync::{Condvar, Mutex},
    time::Duration,
};

#[derive(Default)]
struct State {
    inside: usize,
    closed: bool,
}

/// A gate that users pass to make new data.
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

/// Guard of a user that is inside the gate.
pub struct Inside<'a>(&'a Gate);

/// Guard that keeps the gate closed.
pub struct Closed<'a>(&'a Gate);

impl Gate {
    /// Waits until the gate is open, and enters it.
    pub fn enter(&self) -> Inside<'_> {
        let state = self.state.lock().unwrap();
        let mut state = self
            .changed
            .wait_while(state, |state| state.closed)
            .unwrap();
        state.inside += 1;
        Inside(self)
    }

    /// Closes the gate, and waits until all users have left it. Returns `None` and opens the gate again if that takes
    /// longer than `patience`.
    pub fn close(&self, patience: Duration) -> Option<Closed<'_>> {
        let mut state = self.state.lock().unwrap();
        state.closed = true;
        let waited = self
            .changed
            .wait_timeout_while(state, patience, |state| state.inside > 0);
        let (state, waited) = waited.unwrap();
        drop(state);
        let closed = Closed(self);
        (!waited.timed_out()).then_some(closed)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().inside -= 1;
        self.0.changed.notify_all();
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().closed = false;
        self.0.changed.notify_all();
    }
}
