//! Counts of the events in schedules, printed as a table.

use std::collections::BTreeMap;
use std::fmt;

/// Counts of the events in one or more schedules.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Schedules played.
    pub schedules: u64,
    /// Steps: tasks continued and messages delivered.
    pub steps: u64,
    /// Messages sent.
    pub messages: u64,
    /// Messages lost.
    pub dropped: u64,
    /// Messages sent twice.
    pub repeated: u64,
    /// Messages delayed.
    pub delayed: u64,
    /// Kills: holder, CE, CSE, GE, CE2, CSE2.
    pub killed: [u64; 6],
    /// Rollbacks, by the set of stores.
    pub restored: BTreeMap<String, u64>,
    /// Times that all leases ended.
    pub leases: u64,
    /// Forged requests.
    pub forged: u64,
    /// Sealed requests lost.
    pub blobs: u64,
    /// Jobs done, with the tables of undisturbed runs.
    pub done: u64,
    /// Jobs refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Lost keys, deviating holders, concurrent uploads, and their consequences.
    pub events: BTreeMap<String, u64>,
    /// Outcomes of the schedules that have such events, by kind.
    pub outcomes: BTreeMap<String, u64>,
    /// Number of schedules with each of these events.
    pub events_in: BTreeMap<String, u64>,
    /// Schedules in which the crypto service and all entities that knew of an entry were rolled back, so that it gave
    /// a release or a run again.
    pub forgotten: u64,
    /// Schedules in which the crypto service answered after a rollback although an entity that was not asked knew of a
    /// lost entry.
    pub unasked: u64,
    /// Schedules of these in which it decrypted a position for another release.
    pub reused: u64,
    /// Schedules of these in which it gave a run to another job.
    pub reassigned: u64,
}

/// Number of characters of a reason that distinguish it from others.
const REASON: usize = 100;

impl Counts {
    pub(crate) fn refuse(&mut self, reason: &str) {
        let reason = reason.chars().filter(|c| !c.is_ascii_digit()).take(REASON);
        *self.refused.entry(reason.collect()).or_default() += 1;
    }

    pub(crate) fn event(&mut self, name: &str) {
        *self.events.entry(name.to_owned()).or_default() += 1;
    }

    pub(crate) fn outcome(&mut self, name: &str) {
        *self.outcomes.entry(name.to_owned()).or_default() += 1;
    }

    /// Returns how often each kind of fault occurred.
    pub fn faults(&self) -> Vec<(&'static str, u64)> {
        // Only some schedules have a second computation service.
        let killed = self.killed.iter().take(4).copied().min().unwrap_or(0);
        let restored = self.restored.len() as u64;
        vec![
            ("messages lost", self.dropped),
            ("messages repeated", self.repeated),
            ("messages delayed", self.delayed),
            ("kills of the least killed process", killed),
            ("all sets of stores rolled back", restored / 15),
            ("leases ended", self.leases),
            ("forged requests", self.forged),
            ("sealed requests lost", self.blobs),
            ("jobs refused", self.refused.values().sum()),
        ]
    }

    /// Adds the counts of other schedules.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.schedules, other.schedules),
            (&mut self.steps, other.steps),
            (&mut self.messages, other.messages),
            (&mut self.dropped, other.dropped),
            (&mut self.repeated, other.repeated),
            (&mut self.delayed, other.delayed),
            (&mut self.leases, other.leases),
            (&mut self.forged, other.forged),
            (&mut self.blobs, other.blobs),
            (&mut self.done, other.done),
            (&mut self.forgotten, other.forgotten),
            (&mut self.unasked, other.unasked),
            (&mut self.reused, other.reused),
            (&mut self.reassigned, other.reassigned),
        ];
        for (sum, more) in pairs {
            *sum += more;
        }
        for (sum, more) in self.killed.iter_mut().zip(other.killed) {
            *sum += more;
        }
        for (sums, more) in [
            (&mut self.restored, &other.restored),
            (&mut self.refused, &other.refused),
            (&mut self.events, &other.events),
            (&mut self.outcomes, &other.outcomes),
            (&mut self.events_in, &other.events_in),
        ] {
            for (name, count) in more {
                *sums.entry(name.clone()).or_default() += count;
            }
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, count: u64| writeln!(f, "| {name} | {count} |");
        row("schedules", self.schedules)?;
        row("steps", self.steps)?;
        row("messages", self.messages)?;
        row("messages lost", self.dropped)?;
        row("messages repeated", self.repeated)?;
        row("messages delayed", self.delayed)?;
        for (name, count) in ["holder", "CE", "CSE", "GE", "CE2", "CSE2"]
            .iter()
            .zip(self.killed)
        {
            row(&format!("killed: {name}"), count)?;
        }
        for (name, count) in &self.restored {
            row(&format!("rolled back: {name}"), *count)?;
        }
        row("leases ended", self.leases)?;
        row("forged requests", self.forged)?;
        row("sealed requests lost", self.blobs)?;
        row("jobs done", self.done)?;
        row("jobs refused", self.refused.values().sum())?;
        for (reason, count) in &self.refused {
            row(&format!("refused: {reason}"), *count)?;
        }
        for (event, count) in &self.events {
            row(event, *count)?;
            let schedules = self.events_in.get(event).copied().unwrap_or(0);
            row(&format!("{event} (schedules)"), schedules)?;
        }
        for (outcome, count) in &self.outcomes {
            row(outcome, *count)?;
        }
        row(
            "CSE rolled back: repeated a lost entry that nobody knew of",
            self.forgotten,
        )?;
        row(
            "CSE rolled back: answered, and an entity that was not asked knew",
            self.unasked,
        )?;
        row(
            "CSE rolled back: reused a position, and an entity that was not asked knew",
            self.reused,
        )?;
        row(
            "CSE rolled back: gave a run again, and an entity that was not asked knew",
            self.reassigned,
        )
    }
}
