//! Who checks: sees everything, and has a part in nothing.

use crate::pages::{Look, Under};
use crate::roster::Roster;
use crate::world::Node;
use fhaim_protocol::crypto::chain::{Act, Freeze};
use fhaim_protocol::request::{DecryptRequest, JobId};
use fhaim_release::ReleaseRequest;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};

/// A set of entries of the ledger, in whatever copy they were made: runs begun and batches
/// released.
pub(crate) type Known = u128;

/// What is remembered of a schedule.
#[derive(Default)]
pub(crate) struct Ghost {
    /// Entries by their text.
    records: HashMap<String, u32>,
    /// Which release each position of an upload's noise was decrypted for, by which entry.
    decrypted: HashMap<(u64, usize, usize), (Statement, Known)>,
    /// What was sent to be decrypted at each position.
    sent: HashMap<(Under, usize, usize), (Statement, [u8; 32])>,
    /// Which job each run was given to, by which entry.
    runs: HashMap<(u64, u32), (JobId, Known)>,
    /// Jobs by the client's call that they are for.
    pub calls: HashMap<JobId, JobId>,
    /// What must not happen, and did.
    pub violations: Vec<String>,
    /// A release or a run was given again since the crypto service was set back, and no one who
    /// was asked knew.
    pub forgotten: u64,
    /// Positions decrypted for another release, while someone knew who was not asked.
    pub reused: u64,
    /// Runs given to another job, while someone knew who was not asked.
    pub reassigned: u64,
    /// An answer from a set back ledger, while someone knew who was not asked.
    pub unasked: u64,
    /// Whether the crypto service was set back at all.
    pub crypto_restored: bool,
    /// Whether the generation service was.
    pub generation_restored: bool,
    /// Whether a page was spoilt.
    pub spoilt: bool,
    /// Digests of what the second computation service computed.
    pub witnessed: HashSet<[u8; 32]>,
    /// Digests of the requests that the crypto service promised, and of those that the other service debited.
    pub promised: HashSet<[u8; 32]>,
    pub shared: HashSet<[u8; 32]>,
    /// Which release the other service debited each position for.
    debited: HashMap<(u64, usize, usize), Statement>,
    /// Whether the service that shares the key was set back.
    pub keyshare_restored: bool,
    /// Whether the dataset was frozen over an unknown receipt or a page of bad objects.
    pub deviated: bool,
    /// Whether a computation service lost an upload that a run had begun over, or that the other one has, or the holder's
    /// program lost the manifest that the second computation service needs to copy it.
    pub upload_lost: bool,
    /// Whether the computation services registered the upload with different keys: other keys were made in between.
    pub registered_otherwise: bool,
    /// The session whose upload each computation service completed, since it was set back last.
    uploads: HashMap<&'static str, u64>,
}

type Statement = [u8; 32];

fn upload_of(node: Node) -> &'static str {
    match node {
        Node::Witness => "witness",
        _ => "computation",
    }
}

/// The freezes of a chain's acts that were not lifted.
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

/// What is known where the crypto service answers.
#[derive(Clone, Copy)]
pub(crate) struct Knowledge {
    /// What its own ledger has.
    pub ledger: Known,
    /// What those know who were asked.
    pub asked: Known,
    /// What anyone knows.
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

    /// The number of an entry of the ledger, as a set.
    pub(crate) fn record(&mut self, act: &str) -> Known {
        let next = self.records.len() as u32;
        let index = *self.records.entry(act.to_owned()).or_insert(next);
        assert!(index < Known::BITS, "a schedule has few entries");
        1 << index
    }

    /// The crypto service answers: what those know who asked must be in its ledger.
    pub(crate) fn answered(&mut self, what: &str, knowledge: Knowledge) {
        if knowledge.asked & !knowledge.ledger != 0 {
            self.violation(format!(
                "3: {what} was answered from a ledger that lacks what the caller knows"
            ));
        } else if knowledge.anyone & !knowledge.ledger != 0 {
            self.unasked += 1;
        }
    }

    /// Something that was given before is given again, to someone else.
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

    /// A batch is sent to be decrypted by a service that follows the protocol.
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
                            "1: page {} position {position} is sealed for two releases",
                            part.span.page
                        ));
                    }
                    if before.0 == statement && before.1 != page.digest {
                        self.violation(format!(
                            "1: release {} is sealed to two forms",
                            release.number
                        ));
                    }
                }
            }
        }
    }

    /// A batch is decrypted, for the debit that is the entry `record`.
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
                    let what = format!("1: page {page} position {position} serves two releases");
                    self.again(earlier, knowledge, what);
                }
            }
        }
    }

    /// The service that shares the key debits a request.
    pub(crate) fn debited(&mut self, request: &DecryptRequest<()>, session: u64, digest: [u8; 32]) {
        self.shared.insert(digest);
        if !self.promised.contains(&digest) {
            self.violation("11: one debited what the other had not promised".to_owned());
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
                        "12: page {} position {position} is shared for two releases",
                        part.span.page
                    ));
                }
            }
        }
    }

    /// A dataset is frozen as the computation services do not agree. Nobody deviates but who spoils a page.
    pub(crate) fn disagreement(&mut self) {
        if !self.spoilt && !self.registered_otherwise {
            self.violation("9: two services that follow the protocol do not agree".to_owned());
        }
    }

    /// The same at the service that shares the key, which remembers what a batch was computed to in the run that its
    /// job had before the crypto service was set back.
    pub(crate) fn disagreement_at_share(&mut self) {
        if !self.crypto_restored {
            self.disagreement();
        }
    }

    /// A run is given to a job, as the entry `record`.
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
            let what = format!("6: run {run} is given to two jobs");
            self.again(earlier, knowledge, what);
        }
    }

    /// A store is set back.
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

    /// The dataset is frozen; a holder's objects may be bad.
    pub(crate) fn frozen(&mut self, reason: Freeze, bad: bool) {
        let noise = bad && reason == Freeze::Noise;
        self.deviated |= noise || reason == Freeze::UnknownReceipt;
    }

    /// Whether a run has begun.
    pub(crate) fn has_run(&self) -> bool {
        !self.runs.is_empty()
    }

    /// A computation service completes an upload of objects of these sessions.
    pub(crate) fn completed(&mut self, node: Node, sessions: &[u64]) {
        let &[session] = sessions else {
            return self.violation("16: an upload of several sessions is complete".to_owned());
        };
        let before = self.uploads.insert(upload_of(node), session);
        if before.is_some_and(|before| before != session) {
            self.violation("16: the uploads of two sessions are complete".to_owned());
        }
    }

    /// Integers leave the key service that has the keys of this number.
    pub(crate) fn released(&mut self, look: &Look, keys: u64) {
        if look.under.keys != keys {
            self.violation("14: released under other keys than the upload is under".to_owned());
        }
    }

    /// A key service appends to a chain in which these freezes were not lifted.
    pub(crate) fn appended(&mut self, act: &Act, frozen: &[Freeze], roster: &Roster) {
        let releases = matches!(act, Act::Debited { .. } | Act::Released { .. });
        if releases && !frozen.is_empty() {
            self.violation("15: a frozen dataset releases".to_owned());
        }
        let permanent = frozen.iter().any(|&reason| roster.is_permanent(reason));
        if matches!(act, Act::Thawed) && permanent {
            self.violation("15: a freeze was lifted that is permanent".to_owned());
        }
    }

    /// A job is made for a client's call.
    pub(crate) fn made(&mut self, call: JobId, job: JobId) {
        if let Some(other) = self.calls.insert(call, job)
            && other != job
        {
            self.violation("5: one call made two jobs".to_owned());
        }
    }
}
