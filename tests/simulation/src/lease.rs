//! Leases on tasks, as in the modules `lease` and `runner` of `platform`, with a simulated store.

use crate::world::World;

/// The lease fields of a task's row.
#[derive(Clone, Default)]
pub(crate) struct Lease {
    token: Option<u64>,
    /// When the lease ends, or when a postponed task may be taken.
    until: u64,
    /// Number of attempts in a row without progress, including the current one.
    faults: u32,
    outages: u32,
}

/// A task that a worker has taken.
#[derive(Clone, Copy)]
pub(crate) struct Taken<Id> {
    pub id: Id,
    pub token: u64,
    /// Number of previous attempts in a row that ended without progress.
    pub faults: u32,
}

/// Pauses between attempts, and the number of attempts.
pub(crate) struct Policy {
    pub first_pause: u64,
    pub max_faults: u32,
}

/// Number of times that a pause can double.
const MAX_DOUBLINGS: u32 = 5;

impl Policy {
    fn pause(&self, doublings: u32) -> u64 {
        self.first_pause << doublings.min(MAX_DOUBLINGS)
    }

    /// Checks whether a task has had too many faults for another attempt.
    pub(crate) fn gives_up<Id>(&self, taken: &Taken<Id>) -> bool {
        taken.faults >= self.max_faults
    }
}

impl Lease {
    /// Checks whether a worker may take the task.
    pub(crate) fn is_free(&self, w: &World) -> bool {
        self.until <= w.now.get() && !self.token.is_some_and(|token| w.is_at_work(token))
    }

    pub(crate) fn take<Id>(&mut self, w: &World, id: Id, token: u64) -> Taken<Id> {
        let faults = self.faults;
        (self.token, self.faults) = (Some(token), faults + 1);
        self.renew(w);
        Taken { id, token, faults }
    }

    pub(crate) fn is_held_by<Id>(&self, taken: &Taken<Id>) -> bool {
        self.token == Some(taken.token)
    }

    pub(crate) fn renew(&mut self, w: &World) {
        self.until = w.now.get() + w.lease;
    }

    /// Resets the counts of faults and outages, because the task has made progress.
    pub(crate) fn step(&mut self) {
        (self.faults, self.outages) = (0, 0);
    }

    /// Postpones the task after an outage of another service.
    pub(crate) fn put_off_for_outage(&mut self, w: &World, policy: &Policy) {
        self.until = w.now.get() + policy.pause(self.outages);
        (self.token, self.faults, self.outages) = (None, 0, self.outages + 1);
    }

    /// Postpones the task after a fault. Returns `false` if it has had too many faults.
    pub(crate) fn put_off_for_fault(&mut self, w: &World, policy: &Policy) -> bool {
        if self.faults >= policy.max_faults {
            return false;
        }
        self.until = w.now.get() + policy.pause(self.faults);
        (self.token, self.outages) = (None, 0);
        true
    }

    /// Ends the lease, as after a jump of the clock.
    pub(crate) fn end(&mut self) {
        (self.token, self.until) = (None, 0);
    }

    /// Resets the lease to that of a new task.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}
