//! Tasks under leases over a simulated store, as `platform`'s `lease` and `runner` have them: taken,
//! held, put off, given up.

use crate::world::World;

/// What a task's row has of its lease.
#[derive(Clone, Default)]
pub(crate) struct Lease {
    token: Option<u64>,
    /// When the lease ends, or when a task that was put off may be taken.
    until: u64,
    /// Attempts in a row without a step; the one under way is one of them.
    faults: u32,
    outages: u32,
}

/// A task taken.
#[derive(Clone, Copy)]
pub(crate) struct Taken<Id> {
    pub id: Id,
    pub token: u64,
    /// Attempts in a row before this one that ended without a step.
    pub faults: u32,
}

/// How long tasks are put off, and when they are given up.
pub(crate) struct Policy {
    pub first_pause: u64,
    pub max_faults: u32,
}

/// The most that a pause is of the first one.
const MAX_DOUBLINGS: u32 = 5;

impl Policy {
    fn pause(&self, doublings: u32) -> u64 {
        self.first_pause << doublings.min(MAX_DOUBLINGS)
    }

    /// Whether a task is given up before another attempt.
    pub(crate) fn gives_up<Id>(&self, taken: &Taken<Id>) -> bool {
        taken.faults >= self.max_faults
    }
}

impl Lease {
    /// Whether anyone may take the task.
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

    /// Counts faults and outages anew: the task is nearer to its end.
    pub(crate) fn step(&mut self) {
        (self.faults, self.outages) = (0, 0);
    }

    /// Puts the task off for something that is away.
    pub(crate) fn put_off_for_outage(&mut self, w: &World, policy: &Policy) {
        self.until = w.now.get() + policy.pause(self.outages);
        (self.token, self.faults, self.outages) = (None, 0, self.outages + 1);
    }

    /// Puts the task off for a fault; not where there were too many, and it is given up.
    pub(crate) fn put_off_for_fault(&mut self, w: &World, policy: &Policy) -> bool {
        if self.faults >= policy.max_faults {
            return false;
        }
        self.until = w.now.get() + policy.pause(self.faults);
        (self.token, self.outages) = (None, 0);
        true
    }

    /// Ends the lease, as a clock that jumps would.
    pub(crate) fn end(&mut self) {
        (self.token, self.until) = (None, 0);
    }

    /// The task is tried again, as if it were new.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}
