//! What schedules did, as a table.

use std::collections::BTreeMap;
use std::fmt;

/// Counts over one schedule or many.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Schedules played.
    pub schedules: u64,
    /// Tasks gone on with, and messages delivered.
    pub steps: u64,
    /// Messages sent.
    pub messages: u64,
    /// Of these, lost.
    pub dropped: u64,
    /// Of these, sent twice.
    pub repeated: u64,
    /// Of these, late.
    pub delayed: u64,
    /// Kills: holder, CE, CSE, GE, CE2, CSE2.
    pub killed: [u64; 6],
    /// Times that stores were set back, by whose.
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
    /// Lost keys, deviating holders and concurrent uploads, and what followed.
    pub events: BTreeMap<String, u64>,
    /// How schedules with one kind of them, or several, ended.
    pub outcomes: BTreeMap<String, u64>,
    /// Schedules that had each of these events.
    pub events_in: BTreeMap<String, u64>,
    /// Schedules in which the crypto service was set back, and all who knew were too: it went on.
    pub forgotten: u64,
    /// Schedules in which it answered while someone knew who was not asked.
    pub unasked: u64,
    /// Of these, ones in which it decrypted a position for another release.
    pub reused: u64,
    /// Of these, ones in which it gave a run to another job.
    pub reassigned: u64,
}

/// So much of a reason tells it from others.
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

    /// How often each kind of fault was.
    pub fn faults(&self) -> Vec<(&'static str, u64)> {
        // The second computation service is in some schedules alone.
        let killed = self.killed.iter().take(4).copied().min().unwrap_or(0);
        let restored = self.restored.len() as u64;
        vec![
            ("messages lost", self.dropped),
            ("messages repeated", self.repeated),
            ("messages late", self.delayed),
            ("the least killed", killed),
            ("all sets of stores set back", restored / 15),
            ("leases ended", self.leases),
            ("forged requests", self.forged),
            ("sealed requests lost", self.blobs),
            ("jobs refused", self.refused.values().sum()),
        ]
    }

    /// Adds what another schedule did.
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
        row("messages late", self.delayed)?;
        for (name, count) in ["holder", "CE", "CSE", "GE", "CE2", "CSE2"]
            .iter()
            .zip(self.killed)
        {
            row(&format!("killed: {name}"), count)?;
        }
        for (name, count) in &self.restored {
            row(&format!("set back: {name}"), *count)?;
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
            "CSE set back: went on, and all who knew were set back",
            self.forgotten,
        )?;
        row(
            "CSE set back: answered, and who knew was not asked",
            self.unasked,
        )?;
        row(
            "CSE set back: used a position again, and who knew was not asked",
            self.reused,
        )?;
        row(
            "CSE set back: gave a run again, and who knew was not asked",
            self.reassigned,
        )
    }
}
