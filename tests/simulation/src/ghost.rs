//! An observer that sees all events, checks the rules, and does not affect the schedule.

use crate::pages::{Look, Under};
use crate::roster::Roster;
use crate::world::Node;
use fhaim_protocol::crypto::chain::{Act, Freeze};
use fhaim_protocol::request::{DecryptRequest, JobId};
use fhaim_release::ReleaseRequest;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};

/// A bit set of ledger entries (runs begun and batches released), from any copy of the ledger.
pub(crate) type Known = u128;

/// Observed events of a schedule.
#[derive(Default)]
pub(crate) struct Ghost {
    /// Numbers of ledger entries by their text.
    records: HashMap<String, u32>,
    /// The release that each position of an upload's noise was decrypted for, and the entry of its debit.
    decrypted: HashMap<(u64, usize, usize), (Statement, Known)>,
    /// The release and page digest that were sent for decryption at each position.
    sent: HashMap<(Under, usize, usize), (Statement, [u8; 32])>,
    /// The job that each run was given to, and the entry of the act.
    runs: HashMap<(u64, u32), (JobId, Known)>,
    /// Jobs by the client's call that made them.
    pub calls: HashMap<JobId, JobId>,
    /// Violated rules.
    pub violations: Vec<String>,
    /// Times that the crypto service gave a release or a run again after a rollback, and no other entity knew of the
    /// first one.
    pub forgotten: u64,
    /// Positions decrypted for another release, although an entity that was not asked knew of the first one.
    pub reused: u64,
    /// Runs given to another job, although an entity that was not asked knew of the first one.
    pub reassigned: u64,
    /// Answers from a ledger that lacks an entry that an entity knows of that was not asked.
    pub unasked: u64,
    /// Whether the crypto service was ever rolled back.
    pub crypto_restored: bool,
    /// Whether the generation service was ever rolled back.
    pub generation_restored: bool,
    /// Whether a page was spoilt.
    pub spoilt: bool,
    /// Digests of the second computation service's batches.
    pub witnessed: HashSet<[u8; 32]>,
    /// Digests of the requests that the crypto service promised.
    pub promised: HashSet<[u8; 32]>,
    /// Digests of the requests that the service that shares the key debited.
    pub shared: HashSet<[u8; 32]>,
    /// The release for which the service that shares the key debited each position.
    debited: HashMap<(u64, usize, usize), Statement>,
    /// Whether the service that shares the key was ever rolled back.
    pub keyshare_restored: bool,
    /// Whether the dataset was frozen because of an unknown receipt or a page of bad objects.
    pub deviated: bool,
    /// Whether a computation service lost an upload over which a run had begun, or that the other one has, or the
    /// holder's program lost the manifest that the second computation service needs to copy it.
    pub upload_lost: bool,
    /// Whether the computation services registered the upload with different keys.
    pub registered_otherwise: bool,
    /// The session whose upload each computation service completed since its last rollback.
    uploads: HashMap<&'static str, u64>,
}

type Statement = [u8; 32];

fn upload_of(node: Node) -> &'static str {
    match node {
        Node::Witness => "witness",
        _ => "computation",
    }
}

/// Returns the freezes of a chain's acts that were not lifted.
pub(crate) fn frozen(acts: impl Iterator<Item = Act>) -> Vec<Freeze> {
    acts.fold(Vec::new(), |mut reasons, act| {
        match act {
            Act::Frozen { reason } => reasons.push(reason),
            Act::Thawed => reasons.clear(),
            _ => {}
        }
        reasons
    })
}

/// Known ledger entries at the time of the crypto service's answer.
#[derive(Clone, Copy)]
pub(crate) struct Knowledge {
    /// Entries of the crypto service's ledger.
    pub ledger: Known,
    /// Entries that the caller knows of, and the entities that the caller asked.
    pub asked: Known,
    /// Entries that any entity knows of.
    pub anyone: Known,
}

fn statement(job: JobId, release: &ReleaseRequest) -> Statement {
    let all = serde_json::to_vec(&(job, release)).expect("releases are text");
    Sha256::digest(&all).into()
}

impl Ghost {
    pub(crate) fn violation(&mut self, what: String) {
        if self.violations.len() < 5 {
            self.violations.push(what);
        }
    }

    /// Returns a ledger entry as a set of one.
    pub(crate) fn record(&mut self, act: &str) -> Known {
        let next = self.records.len() as u32;
        let index = *self.records.entry(act.to_owned()).or_insert(next);
        assert!(index < Known::BITS, "more entries than bits in a set");
        1 << index
    }

    /// Checks an answer of the crypto service: its ledger must have all entries that the caller knows of.
    pub(crate) fn answered(&mut self, what: &str, knowledge: Knowledge) {
        if knowledge.asked & !knowledge.ledger != 0 {
            self.violation(format!(
                "3: {what} was answered from a ledger that lacks what the caller knows"
            ));
        } else if knowledge.anyone & !knowledge.ledger != 0 {
            self.unasked += 1;
        }
    }

    /// Records that a position or a run was given again for another purpose. It is a violation if the crypto service
    /// could have known.
    fn again(&mut self, earlier: Known, knowledge: Knowledge, what: String) {
        if earlier & (knowledge.ledger | knowledge.asked) != 0 {
            self.violation(what);
        } else if earlier & knowledge.anyone == 0 {
            self.forgotten += 1;
        } else if what.starts_with('1') {
            self.reused += 1;
        } else {
            self.reassigned += 1;
        }
    }

    /// Records a batch that a service that follows the protocol sends for decryption.
    pub(crate) fn sent(&mut self, look: &Look) {
        for page in &look.pages {
            for part in &page.parts {
                let release = look.releases.iter().find(|r| r.number == part.number);
                let Some(release) = release else { continue };
                let statement = statement(look.job, release);
                for position in part.span.range() {
                    let now = (statement, page.digest);
                    let place = (look.under, part.span.page, position);
                    let before = *self.sent.entry(place).or_insert(now);
                    if before.0 != statement && !self.crypto_restored {
                        self.violation(format!(
                            "1: page {} position {position} was sealed for two releases",
                            part.span.page
                        ));
                    }
                    if before.0 == statement && before.1 != page.digest {
                        self.violation(format!(
                            "1: release {} was sealed to two forms",
                            release.number
                        ));
                    }
                }
            }
        }
    }

    /// Records that a batch is decrypted. The entry `record` is its debit.
    pub(crate) fn decrypted(&mut self, look: &Look, record: Known, knowledge: Knowledge) {
        if record & !knowledge.ledger != 0 {
            self.violation("13: a page was decrypted before its debit".to_owned());
        }
        for part in look.pages.iter().flat_map(|page| &page.parts) {
            let release = look.releases.iter().find(|r| r.number == part.number);
            let Some(release) = release else { continue };
            let statement = statement(look.job, release);
            for position in part.span.range() {
                let place = (look.under.session, part.span.page, position);
                let known = self.decrypted.insert(place, (statement, record));
                if let Some((before, earlier)) = known
                    && before != statement
                {
                    let page = part.span.page;
                    let what =
                        format!("1: page {page} position {position} was used for two releases");
                    self.again(earlier, knowledge, what);
                }
            }
        }
    }

    /// Records that the service that shares the key debits a request.
    pub(crate) fn debited(&mut self, request: &DecryptRequest<()>, session: u64, digest: [u8; 32]) {
        self.shared.insert(digest);
        if !self.promised.contains(&digest) {
            self.violation(
                "11: a service debited a request that the crypto service had not promised"
                    .to_owned(),
            );
        }
        for part in request.pages.iter().flat_map(|page| &page.parts) {
            let release = request.releases.iter().find(|r| r.number == part.number);
            let Some(release) = release else { continue };
            let statement = statement(request.job, release);
            for position in part.span.range() {
                let place = (session, part.span.page, position);
                let before = self.debited.insert(place, statement);
                let other = before.is_some_and(|before| before != statement);
                if other && !self.keyshare_restored {
                    self.violation(format!(
                        "12: page {} position {position} was debited for two releases",
                        part.span.page
                    ));
                }
            }
        }
    }

    /// Records that a dataset is frozen because the computation services disagree. Only a spoilt page or different
    /// keys excuse this.
    pub(crate) fn disagreement(&mut self) {
        if !self.spoilt && !self.registered_otherwise {
            self.violation("9: two services that follow the protocol disagree".to_owned());
        }
    }

    /// Like [`Ghost::disagreement`], at the service that shares the key. It remembers digests from the run that a job
    /// had before a rollback of the crypto service.
    pub(crate) fn disagreement_at_share(&mut self) {
        if !self.crypto_restored {
            self.disagreement();
        }
    }

    /// Records that a run is given to a job. The entry of the act is `record`.
    pub(crate) fn begun(
        &mut self,
        (job, run): (JobId, u32),
        keys: u64,
        record: Known,
        knowledge: Knowledge,
    ) {
        if let Some((other, earlier)) = self.runs.insert((keys, run), (job, record))
            && other != job
        {
            let what = format!("6: run {run} was given to two jobs");
            self.again(earlier, knowledge, what);
        }
    }

    /// Records that a store is rolled back.
    pub(crate) fn set_back(&mut self, node: Node) {
        match node {
            Node::Crypto => self.crypto_restored = true,
            Node::Generation => self.generation_restored = true,
            Node::Keyshare => self.keyshare_restored = true,
            Node::Computation => drop(self.uploads.remove(upload_of(node))),
            Node::Witness => drop(self.uploads.remove(upload_of(node))),
            Node::Holder | Node::Uploader => {}
        }
    }

    /// Records that the dataset is frozen. `bad` says whether a holder's objects are bad.
    pub(crate) fn frozen(&mut self, reason: Freeze, bad: bool) {
        let noise = bad && [Freeze::Noise, Freeze::Upload].contains(&reason);
        self.deviated |= noise || reason == Freeze::UnknownReceipt;
    }

    /// Checks whether a run has begun.
    pub(crate) fn has_run(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Records that a computation service completes an upload with objects of these sessions.
    pub(crate) fn completed(&mut self, node: Node, sessions: &[u64]) {
        let &[session] = sessions else {
            return self.violation("16: an upload of several sessions was completed".to_owned());
        };
        let before = self.uploads.insert(upload_of(node), session);
        if before.is_some_and(|before| before != session) {
            self.violation("16: the uploads of two sessions were completed".to_owned());
        }
    }

    /// Records a release by the key service that has the keys of this number.
    pub(crate) fn released(&mut self, look: &Look, keys: u64) {
        if look.under.keys != keys {
            self.violation(
                "14: a batch was released under other keys than the upload's".to_owned(),
            );
        }
    }

    /// Records that a key service appends an act to a chain in which these freezes were not lifted.
    pub(crate) fn appended(&mut self, act: &Act, frozen: &[Freeze], roster: &Roster) {
        let releases = matches!(act, Act::Debited { .. } | Act::Released { .. });
        if releases && !frozen.is_empty() {
            self.violation("15: a frozen dataset released a batch".to_owned());
        }
        let permanent = frozen.iter().any(|&reason| roster.is_permanent(reason));
        if matches!(act, Act::Thawed) && permanent {
            self.violation("15: a permanent freeze was lifted".to_owned());
        }
    }

    /// Records that a client's call makes a job.
    pub(crate) fn made(&mut self, call: JobId, job: JobId) {
        if let Some(other) = self.calls.insert(call, job)
            && other != job
        {
            self.violation("5: one call made two jobs".to_owned());
        }
    }
}
