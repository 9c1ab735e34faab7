//! The crypto service: ledger and decryption as in `services/crypto`, with a simulated store.

use crate::ghost::{self, Knowledge, Known};
use crate::keyshare::Call as Share;
use crate::setting::DATASET;
use crate::world::{Envelope, Failure, Node, W};
use crate::{Mutant, pages::Look};
use fhaim_api::keys::{Decrypted, NewRun, Receipt, RunStanding, Witnessed};
use fhaim_api::problem::ProblemKind;
use fhaim_dp::{Debit, Entry, Rho};
use fhaim_protocol::Error;
use fhaim_protocol::crypto::chain::{self, Act, Freeze, ReceiptKey, Tip};
use fhaim_protocol::crypto::history::{Begun, ChainLink, ChainState};
use fhaim_protocol::crypto::job_ledger::JobLedger;
use fhaim_protocol::crypto::judge::{Grant, Rules};
use fhaim_protocol::crypto::ruling::{Released, Ruling};
use fhaim_protocol::crypto::{Digests, Judged, RequestOutcome, rule};
use fhaim_protocol::request::{self, JobId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Stored state of the crypto service.
#[derive(Clone, Default)]
pub(crate) struct Db {
    /// The number of the dataset's keys, once they are made.
    keys: Option<u64>,
    /// Rows of the chain. A row's height is its index plus one.
    rows: Vec<Rc<Row>>,
    /// Digests of the second computation service's batches, by job and digest of the releases.
    witnessed: BTreeMap<(JobId, [u8; 32]), [u8; 32]>,
    /// Requests promised to the service that shares the key, until they are released.
    promises: BTreeMap<JobId, [u8; 32]>,
}

struct Row {
    kind: Kind,
    job: Option<JobId>,
    act: String,
    answers: Option<String>,
    head: [u8; 32],
    record: Known,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    KeysMade,
    RunBegun,
    Debited,
    Released,
    Frozen,
    Thawed,
}

/// A call to the crypto service.
#[derive(Serialize, Deserialize)]
pub(crate) enum Call {
    Begin {
        job: JobId,
        new: NewRun,
        receipts: Vec<String>,
    },
    Decrypt {
        job: JobId,
        receipts: Vec<String>,
    },
    /// Sends the digest of a batch from the second computation service.
    Witnessed {
        job: JobId,
        new: Witnessed,
        receipts: Vec<String>,
    },
    Show {
        receipts: Vec<String>,
    },
    /// Returns the number of the dataset's keys.
    Keys {
        receipts: Vec<String>,
    },
    /// Makes the dataset's keys, for a caller that the generation service vouches for.
    Create {
        receipts: Vec<String>,
    },
    Thaw,
}

/// Returns the key that signs receipts. It belongs to the dataset's keys, and is the same in all schedules.
fn receipt_key(keys: u64) -> ReceiptKey {
    let mut bytes = [9; 32];
    for (byte, number) in bytes.iter_mut().zip(keys.to_le_bytes()) {
        *byte ^= number;
    }
    ReceiptKey::from_bytes(&bytes).expect("32 bytes are a key")
}

fn receipt(keys: u64, tip: Tip) -> Receipt {
    receipt_key(keys).sign(DATASET, tip).into()
}

fn no_keys() -> Failure {
    Failure::new(ProblemKind::NotFound, "the dataset has no keys")
}

/// Converts the protocol's error to the answer for the caller.
fn failure(error: Error) -> Failure {
    let kind = match &error {
        Error::Frozen(Freeze::Restored | Freeze::UnknownReceipt) => ProblemKind::Restored,
        Error::Frozen(_) => ProblemKind::Frozen,
        Error::FrozenForGood(_) | Error::NotFrozen | Error::OtherUpload => ProblemKind::Conflict,
        Error::NoRunLeft(_) => ProblemKind::BudgetSpent,
        Error::Overtaken | Error::Unwitnessed => ProblemKind::Unavailable,
        _ => ProblemKind::Internal,
    };
    Failure::new(kind, error)
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(
        ProblemKind::Internal,
        format!("the stored ledger is damaged: {error}"),
    )
}

impl Db {
    /// Returns the number of the dataset's keys.
    fn keys(&self) -> Result<u64, Failure> {
        self.keys.ok_or_else(no_keys)
    }

    /// Makes the dataset's first keys.
    pub(crate) fn first_keys(&mut self) {
        self.make_keys(0)
            .expect("an empty chain accepts a first act");
    }

    fn make_keys(&mut self, keys: u64) -> Result<(), Failure> {
        let digest: [u8; 32] = Sha256::digest(keys.to_le_bytes()).into();
        let made = Act::KeysMade {
            terms: [0; 32],
            public_key: digest,
            evaluation_keys: digest,
        };
        let link = ChainState::new(DATASET).append(made).map_err(failure)?;
        self.keys = Some(keys);
        self.rows.push(Rc::new(Row {
            kind: Kind::KeysMade,
            job: None,
            act: link.text,
            answers: None,
            head: link.tip.head,
            record: 0,
        }));
        Ok(())
    }

    /// Returns the freezes that were not lifted.
    fn freezes(&self) -> Vec<Freeze> {
        let kinds = [Kind::Frozen, Kind::Thawed];
        let rows = self.rows.iter().filter(|row| kinds.contains(&row.kind));
        ghost::frozen(rows.filter_map(|row| serde_json::from_str(&row.act).ok()))
    }

    fn known(&self) -> Known {
        self.rows.iter().fold(0, |known, row| known | row.record)
    }

    fn chain_state(&self) -> Result<ChainState, Failure> {
        let tip = self.rows.last().map_or_else(Tip::default, |last| Tip {
            height: self.rows.len() as u64,
            head: last.head,
        });
        let debits = [Kind::Debited, Kind::Released];
        let rows = self.rows.iter().filter(|row| !debits.contains(&row.kind));
        let acts: Vec<Act> = rows
            .map(|row| serde_json::from_str(&row.act).map_err(broken))
            .collect::<Result<_, _>>()?;
        ChainState::read(DATASET, tip, acts).map_err(failure)
    }

    fn job_ledger(&self, rules: &Rules, job: JobId, run: u32) -> Result<JobLedger, Failure> {
        let released = |row: &&Rc<Row>| row.kind == Kind::Released && row.job == Some(job);
        let stored = |row: &Rc<Row>| {
            let act: Act = serde_json::from_str(&row.act).map_err(broken)?;
            let answers = row.answers.as_deref().unwrap_or_default();
            Ok((act, serde_json::from_str(answers).map_err(broken)?))
        };
        let rows = self.rows.iter().filter(released).map(stored);
        let releases: Vec<_> = rows.collect::<Result<_, Failure>>()?;
        let debited = |row: &&Rc<Row>| row.kind == Kind::Debited && row.job == Some(job);
        let debited = self.rows.iter().rev().find(debited);
        let debited = debited.map(|row| serde_json::from_str(&row.act).map_err(broken));
        JobLedger::read(rules, job, run, releases, debited.transpose()?).map_err(failure)
    }

    /// Appends a link (compare and set): fails unless the chain still ends just below the link's height.
    fn append(
        &mut self,
        w: &W,
        link: &ChainLink,
        answers: Option<&[Vec<i64>]>,
    ) -> Result<Known, Failure> {
        let same = link.tip.height == self.rows.len() as u64 + 1;
        if !same && !w.is(Mutant::CryptoAppendsBlindly) {
            let detail = "another request of the dataset was stored in the meantime";
            return Err(Failure::new(ProblemKind::Unavailable, detail));
        }
        let text = link.text.clone();
        let (kind, job) = match &link.act {
            Act::RunBegun { job, .. } => (Kind::RunBegun, Some(*job)),
            Act::Debited { job, .. } => (Kind::Debited, Some(*job)),
            Act::Released { job, .. } => (Kind::Released, Some(*job)),
            Act::Thawed => (Kind::Thawed, None),
            Act::KeysMade { .. } => (Kind::KeysMade, None),
            _ => (Kind::Frozen, None),
        };
        let record = record_of(w, self.keys()?, &link.act)?;
        let frozen = self.freezes();
        w.ghost.borrow_mut().appended(&link.act, &frozen, &w.roster);
        if let Act::Frozen { reason } = &link.act {
            w.event(&format!("frozen: {reason:?}"));
            let bad = w.roster.bad_attribute.is_some();
            w.ghost.borrow_mut().frozen(*reason, bad);
        }
        let answers = answers
            .map(serde_json::to_string)
            .transpose()
            .map_err(broken)?;
        self.rows.push(Rc::new(Row {
            kind,
            job,
            act: text,
            answers,
            head: link.tip.head,
            record,
        }));
        w.trace(|| {
            format!(
                "Crypto appends {:?}",
                self.rows[self.rows.len() - 1].act.get(..90)
            )
        });
        Ok(record)
    }

    /// Returns the entries of a job.
    fn released(&self, job: JobId) -> Known {
        let of = |row: &&Rc<Row>| row.job == Some(job);
        self.rows
            .iter()
            .filter(of)
            .fold(0, |known, row| known | row.record)
    }
}

/// Returns the ledger entry of an act under the keys of this number. A debit and its release are one entry.
fn record_of(w: &W, keys: u64, act: &Act) -> Result<Known, Failure> {
    let text = match act {
        Act::Debited { job, entries, .. } | Act::Released { job, entries, .. } => {
            serde_json::to_string(&(job, entries))
        }
        Act::RunBegun { .. } => serde_json::to_string(act),
        _ => return Ok(0),
    };
    let mut text = text.map_err(broken)?;
    if keys > 0 {
        text = format!("{keys} {text}");
    }
    Ok(w.ghost.borrow_mut().record(&text))
}

fn knowledge(w: &W, db: &Db, asked: Known) -> Knowledge {
    Knowledge {
        ledger: db.known(),
        asked,
        anyone: w.everyone_knows(),
    }
}

/// Answers a call.
pub(crate) async fn handle(w: &W, envelope: &Envelope) -> Result<Envelope, Failure> {
    let call = envelope.open()?;
    if w.crypto.get().keys.is_none() && !matches!(call, Call::Create { .. }) {
        return Err(no_keys());
    }
    match call {
        Call::Begin { job, new, receipts } => {
            check_receipts(w, &receipts).await?;
            begin(w, job, &new, envelope.known).await
        }
        Call::Decrypt { job, receipts } => {
            let answer = attempt(w, job, &receipts, envelope).await;
            answer.map_err(|failure| match failure.kind {
                ProblemKind::Internal
                | ProblemKind::Unavailable
                | ProblemKind::Frozen
                | ProblemKind::Restored
                | ProblemKind::NotFound => failure,
                _ => {
                    w.trace(|| format!("Crypto refuses: {}", failure.detail));
                    Failure::new(ProblemKind::Refused, "refused")
                }
            })
        }
        Call::Witnessed { job, new, receipts } => {
            check_receipts(w, &receipts).await?;
            witness(w, job, &new, envelope.known).await
        }
        Call::Show { receipts } => {
            check_receipts(w, &receipts).await?;
            show(w, envelope.known).await
        }
        Call::Keys { receipts } => {
            check_receipts(w, &receipts).await?;
            w.pause().await;
            Ok(Envelope::new(&w.crypto.get().keys()?, 0))
        }
        Call::Create { receipts } => create(w, &receipts, envelope.known).await,
        Call::Thaw => thaw(w).await,
    }
}

/// Returns a receipt of the current ledger.
async fn show(w: &W, asked: Known) -> Result<Envelope, Failure> {
    w.pause().await;
    let db = w.crypto.get();
    let chain_state = db.chain_state()?;
    chain_state.check_open().map_err(failure)?;
    let mut ghost = w.ghost.borrow_mut();
    ghost.answered("a receipt", knowledge(w, &db, asked));
    let receipt = receipt(db.keys()?, chain_state.tip());
    Ok(Envelope::new(&receipt, db.known()))
}

/// Makes the dataset's keys unless they exist. The generation service has vouched for the dataset.
async fn create(w: &W, receipts: &[String], asked: Known) -> Result<Envelope, Failure> {
    w.pause().await;
    if w.crypto.get().keys.is_some() {
        check_receipts(w, receipts).await?;
        return Ok(Envelope::new(&w.crypto.get().keys()?, 0));
    }
    if !receipts.is_empty() && !w.is(Mutant::CryptoMakesKeysAgain) {
        w.event("other keys were refused to a caller with a receipt");
        let detail = "the caller has a receipt of the dataset, but its keys are missing here";
        return Err(Failure::new(ProblemKind::Restored, detail));
    }
    let keys = w.fresh();
    if w.has_keyshare() {
        let call = Envelope::new(&Share::Make { keys }, 0);
        w.call(Node::Crypto, Node::Keyshare, call).await?;
    }
    w.tx(&w.crypto, |db| {
        if db.keys.is_none() {
            db.make_keys(keys)?;
            w.event("other keys were made");
            let mut ghost = w.ghost.borrow_mut();
            ghost.answered("a request for keys", knowledge(w, db, asked));
        }
        Ok(Envelope::new(&db.keys()?, 0))
    })
    .await
}

async fn thaw(w: &W) -> Result<Envelope, Failure> {
    w.tx(&w.crypto, |db| {
        let rules = w.roster.thaw_rules(w);
        let link = db.chain_state()?.thaw(&rules).map_err(failure)?;
        db.witnessed.clear();
        db.append(w, &link, None)
    })
    .await?;
    Ok(Envelope::new(&(), 0))
}

async fn witness(w: &W, job: JobId, new: &Witnessed, asked: Known) -> Result<Envelope, Failure> {
    let chain_state = w
        .tx(&w.crypto, |db| {
            let mut chain_state = db.chain_state()?;
            chain_state.check_open().map_err(failure)?;
            let known = db.witnessed.insert((job, new.asked.0), new.request.0);
            if known.is_some_and(|known| known != new.request.0) {
                w.ghost.borrow_mut().disagreement();
                if let Some(link) = chain_state.freeze(Freeze::Witness).map_err(failure)? {
                    db.append(w, &link, None)?;
                }
                return Ok(None);
            }
            let mut ghost = w.ghost.borrow_mut();
            ghost.answered("a digest", knowledge(w, db, asked));
            let receipt = receipt(db.keys()?, chain_state.tip());
            Ok::<_, Failure>(Some((receipt, db.known())))
        })
        .await?;
    match chain_state {
        Some((receipt, known)) => Ok(Envelope::new(&receipt, known)),
        None => Err(failure(Error::Frozen(Freeze::Witness))),
    }
}

async fn begin(w: &W, job: JobId, new: &NewRun, asked: Known) -> Result<Envelope, Failure> {
    let rules = &w.setting.rules;
    let begun = w.tx(&w.crypto, |db| {
        let mut chain_state = db.chain_state()?;
        let begun = chain_state.begin(rules, job, new.upload.0);
        let Begun { run, link } = begun.map_err(failure)?;
        let before = knowledge(w, db, asked);
        let job_ledger = match link {
            None => db.job_ledger(rules, job, run)?,
            Some(link) => {
                let record = db.append(w, &link, None)?;
                let mut ghost = w.ghost.borrow_mut();
                ghost.begun((job, run), db.keys()?, record, before);
                JobLedger::new(rules, job, run)
            }
        };
        w.ghost
            .borrow_mut()
            .answered("a run", knowledge(w, db, asked));
        let chain_state = RunStanding {
            run: job_ledger.window().run(),
            releases: job_ledger
                .window()
                .placed()
                .iter()
                .map(Into::into)
                .collect(),
            receipt: receipt(db.keys()?, chain_state.tip()),
        };
        Ok((chain_state, db.released(job)))
    });
    let (chain_state, known) = begun.await?;
    Ok(Envelope::new(&chain_state, known))
}

async fn attempt(
    w: &W,
    job: JobId,
    receipts: &[String],
    envelope: &Envelope,
) -> Result<Envelope, Failure> {
    check_receipts(w, receipts).await?;
    let refused = |detail: &str| Failure::new(ProblemKind::Refused, detail);
    let rules = &w.setting.rules;
    let read = |db: &Db| {
        let chain_state = db.chain_state()?;
        check_open(w, &chain_state)?;
        let run = chain_state
            .run(job)
            .ok_or_else(|| refused("the job has no run"))?;
        let job_ledger = db.job_ledger(rules, job, run)?;
        Ok::<_, Failure>((chain_state, job_ledger))
    };
    w.pause().await;
    let db = w.crypto.get();
    let keys = db.keys()?;
    let (chain_state, mut before) = read(&db)?;
    w.pause().await;
    let body = envelope
        .body
        .as_deref()
        .ok_or_else(|| refused("the request has no body"))?;
    let look = w
        .setting
        .engine
        .look(body)
        .map_err(|e| refused(&e.to_string()))?;
    let sent: [u8; 32] = Sha256::digest(body).into();
    let witness = db.witnessed.get(&(job, request::asked(&look.releases)));
    let witness = match w.is(Mutant::CryptoDoesNotWait) {
        true => Some(sent),
        false => witness.copied(),
    };
    let digests = Digests { sent, witness };
    let judged = if w.is(Mutant::CryptoTrustsSpans) {
        trusting(w, &before, &look, body).map(Judged::Done)
    } else {
        w.setting.engine.judge(rules, &before, body, digests)
    };
    let judged = judged.map_err(|e| match e {
        Error::Unwitnessed => failure(e),
        e => refused(&e.to_string()),
    })?;
    let ruling = match judged {
        Judged::Done(RequestOutcome::Repeated(answers)) => {
            let known = knowledge(w, &db, envelope.known);
            w.ghost.borrow_mut().answered("a repetition", known);
            let receipt = receipt(keys, chain_state.tip());
            return Ok(decrypted(answers, receipt, db.released(job)));
        }
        Judged::Done(RequestOutcome::Ruled(ruling)) => {
            if ruling.answers().is_none() {
                w.ghost.borrow_mut().disagreement();
            }
            *ruling
        }
        Judged::Granted(grant) => {
            let shares = w.has_keyshare() && !w.is(Mutant::CryptoSharesWithNoOne);
            if shares {
                have_shared(w, &before, body).await?;
            }
            let late = w.is(Mutant::CryptoAnswersFirst) || w.is(Mutant::CryptoDebitsLate);
            if !late {
                debit(w, job, (&mut before, &grant), sent).await?;
            }
            let answers = w.setting.engine.open(body, keys);
            let answers = answers.map_err(|e| refused(&e.to_string()))?;
            let act = Act::Debited {
                job,
                entries: grant.entries().to_vec(),
                request: sent,
            };
            let record = record_of(w, keys, &act)?;
            let known = knowledge(w, &w.crypto.get(), envelope.known);
            // Other keys than the page's reveal nothing.
            if look.under.keys == keys {
                w.ghost.borrow_mut().decrypted(&look, record, known);
            }
            if shares && answers.is_none() {
                let frozen = Envelope::new(&Share::Freeze, 0);
                w.post(Node::Crypto, Node::Keyshare, w.fresh(), frozen);
            }
            rule(&before, *grant, answers)
        }
    };
    check_ruling(w, &ruling, (&look, keys), &sent);
    if w.is(Mutant::CryptoAnswersFirst)
        && let Some(answers) = ruling.answers()
    {
        let record = record_of(w, keys, ruling.act())?;
        let told = decrypted(answers.to_vec(), receipt(keys, chain_state.tip()), record);
        let later = Rc::clone(w);
        w.spawn(Node::Crypto, async move {
            later.sleep(5).await;
            let stored = later.tx(&later.crypto, |db| {
                let link = db.chain_state()?.append(ruling.act().clone());
                db.append(&later, &link.map_err(failure)?, ruling.answers())
            });
            drop(stored.await);
        });
        return Ok(told);
    }
    let stored = w.tx(&w.crypto, |db| {
        let (mut chain_state, now) = read(db)?;
        let now = match w.is(Mutant::CryptoAppendsBlindly) {
            true => &before,
            false => &now,
        };
        let link = ruling.append_to(&mut chain_state, now).map_err(failure)?;
        let record = db.append(w, &link, ruling.answers())?;
        db.promises.remove(&job);
        if ruling.answers().is_some() {
            let mut ghost = w.ghost.borrow_mut();
            if w.is(Mutant::CryptoTrustsSpans) {
                ghost.decrypted(&look, record, knowledge(w, db, envelope.known));
            }
            ghost.answered("a release", knowledge(w, db, envelope.known));
        }
        Ok((link.tip, db.released(job), now.window().run()))
    });
    let (tip, known, run) = stored.await?;
    let Ok(Released { answers, .. }) = ruling.into_released() else {
        return Err(refused("the dataset is frozen"));
    };
    check_answers(w, run, &look, &answers);
    Ok(decrypted(answers, receipt(keys, tip), known))
}

/// Checks that the other services have done their part before a release, and that the keys are the upload's.
fn check_ruling(w: &W, ruling: &Ruling, (look, keys): (&Look, u64), sent: &[u8; 32]) {
    let mut ghost = w.ghost.borrow_mut();
    if ruling.answers().is_none() {
        if look.under.keys != keys {
            w.event("a page under lost keys could not be decrypted");
        }
        return;
    }
    ghost.released(look, keys);
    if keys > 0 {
        w.event("a batch was released under other keys and an upload for them");
    }
    if w.has_keyshare() && !ghost.shared.contains(sent) {
        ghost.violation("10: a batch was released that only one service had debited".to_owned());
    }
    if w.has_witness() && !ghost.witnessed.contains(sent) {
        ghost.violation("8: a batch was decrypted that only one service had computed".to_owned());
    }
}

/// Returns an error if the dataset is frozen.
fn check_open(w: &W, chain_state: &ChainState) -> Result<(), Failure> {
    match w.is(Mutant::CryptoReleasesWhileFrozen) {
        true => Ok(()),
        false => chain_state.check_open().map_err(failure),
    }
}

/// Debits a batch before it is decrypted.
async fn debit(
    w: &W,
    job: JobId,
    (judged, grant): (&mut JobLedger, &Grant),
    sent: [u8; 32],
) -> Result<(), Failure> {
    let before = judged.clone();
    let debited = w.tx(&w.crypto, |db| {
        let mut chain_state = db.chain_state()?;
        check_open(w, &chain_state)?;
        let run = chain_state
            .run(job)
            .ok_or_else(|| failure(Error::Overtaken))?;
        let mut now = db.job_ledger(&w.setting.rules, job, run)?;
        if w.is(Mutant::CryptoAppendsBlindly) {
            now = before.clone();
        }
        if now != before {
            return Err(failure(Error::Overtaken));
        }
        let link = now.debit(&mut chain_state, grant, sent).map_err(failure)?;
        if let Some(link) = link {
            db.append(w, &link, None)?;
        }
        Ok(now)
    });
    *judged = debited.await?;
    Ok(())
}

/// Promises a batch, and has the service that shares the key debit it.
async fn have_shared(w: &W, judged: &JobLedger, body: &[u8]) -> Result<(), Failure> {
    let refused = |detail: &str| Failure::new(ProblemKind::Refused, detail);
    let sent: [u8; 32] = Sha256::digest(body).into();
    let job = judged.window().job();
    let promised = w.tx(&w.crypto, |db| {
        let chain_state = db.chain_state()?;
        chain_state.check_open().map_err(failure)?;
        let run = chain_state
            .run(job)
            .ok_or_else(|| refused("the job has no run"))?;
        // Another copy of the same request was released in the meantime. Its promise is fulfilled, and a new one would
        // never be.
        if db.job_ledger(&w.setting.rules, job, run)? != *judged
            && !w.is(Mutant::CryptoPromisesLate)
        {
            return Err(failure(Error::Overtaken));
        }
        if *db.promises.entry(job).or_insert(sent) != sent {
            return Err(refused("another request for these releases was promised"));
        }
        w.ghost.borrow_mut().promised.insert(sent);
        let upload = chain_state.upload();
        let upload = upload.ok_or_else(|| refused("the dataset has no upload"))?;
        Ok(Share::Share {
            keys: db.keys()?,
            job,
            run,
            upload,
        })
    });
    let mut envelope = Envelope::new(&promised.await?, 0);
    envelope.body = Some(body.into());
    w.call(Node::Crypto, Node::Keyshare, envelope).await?;
    Ok(())
}

fn decrypted(answers: Vec<Vec<i64>>, receipt: Receipt, known: Known) -> Envelope {
    Envelope::new(&Decrypted { answers, receipt }, known)
}

/// Checks that released integers are those of an undisturbed run at these release numbers.
fn check_answers(w: &W, run: u32, look: &Look, answers: &[Vec<i64>]) {
    let undisturbed = &w.setting.runs[run as usize];
    let same = undisturbed
        .batches
        .iter()
        .any(|batch| batch.requests == look.releases && batch.released == answers);
    if !same {
        let what = format!("2: run {run} released other integers than the undisturbed run");
        w.ghost.borrow_mut().violation(what);
    }
}

/// Compares receipts with the chain. A receipt that it does not contain, or that another key signed, freezes the
/// dataset permanently.
async fn check_receipts(w: &W, receipts: &[String]) -> Result<(), Failure> {
    if w.is(Mutant::ReceiptsNotChecked) {
        return Ok(());
    }
    for header in receipts {
        let invalid = || Failure::new(ProblemKind::Invalid, "a receipt is invalid");
        let receipt = Receipt::from_header(header.as_bytes()).ok_or_else(invalid)?;
        let shown = chain::ChainReceipt::try_from(&receipt).map_err(|_| invalid())?;
        if shown.dataset != DATASET {
            return Err(invalid());
        }
        let public = receipt_key(w.crypto.get().keys()?).public();
        if w.verify(&shown, &public).is_err() {
            if w.is(Mutant::CryptoIgnoresUnknownReceipts) {
                continue;
            }
            return Err(freeze(w, Freeze::UnknownReceipt).await);
        }
        w.pause().await;
        let db = w.crypto.get();
        let head = |height: u64| {
            let index = usize::try_from(height).ok()?.checked_sub(1)?;
            db.rows.get(index).map(|row| row.head)
        };
        if !shown.is_of(head) {
            return Err(freeze(w, Freeze::Restored).await);
        }
    }
    Ok(())
}

/// Freezes the dataset because of a receipt, and returns the refusal.
async fn freeze(w: &W, reason: Freeze) -> Failure {
    let frozen = w.tx(&w.crypto, |db| {
        let link = db.chain_state()?.freeze(reason).map_err(failure)?;
        if let Some(link) = link {
            db.append(w, &link, None)?;
        }
        Ok::<_, Failure>(())
    });
    match frozen.await {
        Ok(()) => Failure::new(ProblemKind::Restored, reason.detail()),
        Err(failure) => failure,
    }
}

/// Judges a request as a service that trusts the sender's positions. It only checks that the release numbers are new.
fn trusting(
    w: &W,
    job_ledger: &JobLedger,
    look: &Look,
    body: &[u8],
) -> Result<RequestOutcome, Error> {
    let next = job_ledger.window().placed().len();
    let numbers = look.releases.iter().map(|release| release.number as usize);
    if numbers.clone().all(|number| number < next) {
        return Ok(RequestOutcome::Repeated(
            numbers.map(|n| job_ledger.answers()[n].clone()).collect(),
        ));
    }
    if !numbers.eq(next..next + look.releases.len()) {
        return Err(Error::Request("the release numbers are not the next ones"));
    }
    let answers = w.setting.engine.read(body)?;
    let entry = |release: &fhaim_release::ReleaseRequest| {
        let digest = Sha256::digest(release.number.to_le_bytes()).into();
        Ok::<_, Error>(Entry::price(Debit {
            number: release.number,
            description: String::new(),
            digest,
            delta2_squared: 1,
            variance_units: release.variance_units,
            honest: 1,
            cells: release.statistic.cells() as u64,
            leak: Rho::ZERO,
        })?)
    };
    let entries = look.releases.iter().map(entry).collect::<Result<_, _>>()?;
    let released = Released {
        answers,
        job_ledger: job_ledger.clone(),
    };
    let ruling = Ruling::release(job_ledger.clone(), entries, released);
    Ok(RequestOutcome::Ruled(Box::new(ruling)))
}
