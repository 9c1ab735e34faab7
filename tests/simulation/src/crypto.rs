//! The crypto service: `services/crypto`'s ledger and decryption over a simulated store.

use crate::ghost::{Knowledge, Known};
use crate::setting::DATASET;
use crate::world::{Envelope, Failure, Node, W};
use crate::{Mutant, pages::Look};
use fhaim_api::Digest;
use fhaim_api::keys::{Decrypted, NewRun, Receipt, RunStanding};
use fhaim_api::problem::ProblemKind;
use fhaim_dp::{Debit, Entry, Rho};
use fhaim_protocol::Error;
use fhaim_protocol::crypto::Outcome;
use fhaim_protocol::crypto::chain::{self, Act, Freeze, ReceiptKey, Tip};
use fhaim_protocol::crypto::judge::{Book, Rules};
use fhaim_protocol::request::JobId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::rc::Rc;

/// The chain's rows; a row's height is one more than its index.
#[derive(Clone, Default)]
pub(crate) struct Db {
    rows: Vec<Rc<Row>>,
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
    RunBegun,
    Released,
    Frozen,
    Thawed,
}

/// What is asked.
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
    Show {
        receipts: Vec<String>,
    },
    Thaw,
}

#[derive(Clone, Default, PartialEq)]
struct Standing {
    tip: Tip,
    jobs: Vec<JobId>,
    upload: Option<[u8; 32]>,
    frozen: Option<Freeze>,
}

impl Standing {
    fn run(&self, job: JobId) -> Option<u32> {
        let index = self.jobs.iter().position(|&known| known == job)?;
        u32::try_from(index).ok()
    }

    fn check_open(&self) -> Result<(), Failure> {
        let Some(reason) = self.frozen else {
            return Ok(());
        };
        let kind = match reason {
            Freeze::Restored => ProblemKind::Restored,
            Freeze::Noise | Freeze::Adopted => ProblemKind::Frozen,
        };
        Err(Failure::new(kind, reason.detail()))
    }
}

/// The key that signs receipts: the same in all schedules.
fn key() -> ReceiptKey {
    ReceiptKey::from_bytes(&[9; 32]).expect("32 bytes are a key")
}

fn receipt(tip: Tip) -> Receipt {
    key().sign(DATASET, tip).into()
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(ProblemKind::Internal, format!("the stored ledger: {error}"))
}

impl Db {
    fn known(&self) -> Known {
        self.rows.iter().fold(0, |known, row| known | row.record)
    }

    fn standing(&self) -> Result<Standing, Failure> {
        let mut standing = Standing::default();
        if let Some(last) = self.rows.last() {
            standing.tip = Tip {
                height: self.rows.len() as u64,
                head: last.head,
            };
        }
        for row in self.rows.iter().filter(|row| row.kind != Kind::Released) {
            match serde_json::from_str(&row.act).map_err(broken)? {
                Act::RunBegun { job, upload, .. } => {
                    standing.jobs.push(job);
                    standing.upload = Some(upload);
                }
                Act::Frozen { reason } => standing.frozen = Some(reason),
                Act::Thawed => standing.frozen = None,
                _ => {}
            }
        }
        Ok(standing)
    }

    fn book(&self, rules: &Rules, job: JobId, run: u32) -> Result<Book, Failure> {
        let mut book = Book::new(rules, job, run);
        let released = |row: &&Rc<Row>| row.kind == Kind::Released && row.job == Some(job);
        for row in self.rows.iter().filter(released) {
            let act = serde_json::from_str(&row.act).map_err(broken)?;
            let answers = row.answers.as_deref().unwrap_or_default();
            let answers: Vec<Vec<i64>> = serde_json::from_str(answers).map_err(broken)?;
            let Act::Released {
                entries,
                answers: digest,
                ..
            } = act
            else {
                return Err(broken("an act that is none of a release"));
            };
            if chain::answers_digest(&answers) != digest {
                return Err(broken("integers that are not those of their act"));
            }
            book.restore(entries, answers).map_err(broken)?;
        }
        Ok(book)
    }

    /// Compare and set: appends behind `tip`, and nowhere else.
    fn append(
        &mut self,
        w: &W,
        tip: Tip,
        act: &Act,
        answers: Option<&[Vec<i64>]>,
    ) -> Result<(Tip, Known), Failure> {
        let same = tip.height == self.rows.len() as u64;
        if !same && !w.is(Mutant::CryptoAppendsBlindly) {
            let detail = "another request of the dataset was stored meanwhile";
            return Err(Failure::new(ProblemKind::Unavailable, detail));
        }
        let text = serde_json::to_string(act).map_err(broken)?;
        let next = tip.append(DATASET, &text);
        let (kind, job) = match act {
            Act::RunBegun { job, .. } => (Kind::RunBegun, Some(*job)),
            Act::Released { job, .. } => (Kind::Released, Some(*job)),
            Act::Thawed => (Kind::Thawed, None),
            _ => (Kind::Frozen, None),
        };
        let record = match kind {
            Kind::RunBegun | Kind::Released => w.ghost.borrow_mut().record(&text),
            _ => 0,
        };
        let answers = answers
            .map(serde_json::to_string)
            .transpose()
            .map_err(broken)?;
        self.rows.push(Rc::new(Row {
            kind,
            job,
            act: text,
            answers,
            head: next.head,
            record,
        }));
        w.trace(|| {
            format!(
                "Crypto appends {:?}",
                self.rows[self.rows.len() - 1].act.get(..90)
            )
        });
        Ok((next, record))
    }

    /// Entries of a job's batch.
    fn released(&self, job: JobId) -> Known {
        let of = |row: &&Rc<Row>| row.job == Some(job);
        self.rows
            .iter()
            .filter(of)
            .fold(0, |known, row| known | row.record)
    }
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
    match envelope.open()? {
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
        Call::Show { receipts } => {
            check_receipts(w, &receipts).await?;
            w.pause().await;
            let db = w.crypto.get();
            let standing = db.standing()?;
            standing.check_open()?;
            let mut ghost = w.ghost.borrow_mut();
            ghost.answered("a receipt", knowledge(w, &db, envelope.known));
            Ok(Envelope::new(&receipt(standing.tip), db.known()))
        }
        Call::Thaw => thaw(w).await,
    }
}

async fn thaw(w: &W) -> Result<Envelope, Failure> {
    w.tx(&w.crypto, |db| {
        let standing = db.standing()?;
        if standing.frozen != Some(Freeze::Noise) {
            return Err(Failure::new(ProblemKind::Conflict, "not to be thawed"));
        }
        db.append(w, standing.tip, &Act::Thawed, None)
    })
    .await?;
    Ok(Envelope::new(&(), 0))
}

async fn begin(w: &W, job: JobId, new: &NewRun, asked: Known) -> Result<Envelope, Failure> {
    let rules = &w.setting.rules;
    let begun = w.tx(&w.crypto, |db| {
        let standing = db.standing()?;
        standing.check_open()?;
        if standing.upload.is_some_and(|known| known != new.upload.0) {
            let detail = "the dataset's runs were begun over another upload";
            return Err(Failure::new(ProblemKind::Conflict, detail));
        }
        let before = knowledge(w, db, asked);
        let (book, tip) = match standing.run(job) {
            Some(run) => (db.book(rules, job, run)?, standing.tip),
            None => {
                let run = next_run(db, rules, &standing)?;
                let act = Act::RunBegun {
                    job,
                    run,
                    upload: new.upload.0,
                };
                let (tip, record) = db.append(w, standing.tip, &act, None)?;
                let mut ghost = w.ghost.borrow_mut();
                ghost.begun(job, run, record, before);
                (Book::new(rules, job, run), tip)
            }
        };
        w.ghost
            .borrow_mut()
            .answered("a run", knowledge(w, db, asked));
        let standing = RunStanding {
            run: book.window().run(),
            releases: book.window().placed().iter().map(Into::into).collect(),
            receipt: receipt(tip),
        };
        Ok((standing, db.released(job)))
    });
    let (standing, known) = begun.await?;
    Ok(Envelope::new(&standing, known))
}

fn next_run(db: &Db, rules: &Rules, standing: &Standing) -> Result<u32, Failure> {
    let begun = standing.jobs.len() as u32;
    let spent = match rules.next_run(begun) {
        Ok(run) => return Ok(run),
        Err(spent) => spent,
    };
    for (run, &job) in (0..).zip(&standing.jobs) {
        if db.book(rules, job, run)?.answers().is_empty() {
            let detail = format!("{spent}; another job has a run and has released nothing");
            return Err(Failure::new(ProblemKind::BudgetSpent, detail));
        }
    }
    Err(Failure::new(ProblemKind::BudgetSpent, spent))
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
        let standing = db.standing()?;
        standing.check_open()?;
        let run = standing
            .run(job)
            .ok_or_else(|| refused("the job has no run"))?;
        let book = db.book(rules, job, run)?;
        Ok::<_, Failure>((standing, book))
    };
    w.pause().await;
    let db = w.crypto.get();
    let (standing, before) = read(&db)?;
    w.pause().await;
    let body = envelope.body.as_deref().ok_or_else(|| refused("no body"))?;
    let look = w
        .setting
        .engine
        .look(body)
        .map_err(|e| refused(&e.to_string()))?;
    let outcome = if w.is(Mutant::CryptoTrustsSpans) {
        trusting(w, &before, &look, body)
    } else {
        w.setting.engine.judge(rules, &before, body)
    };
    let outcome = outcome.map_err(|e| refused(&e.to_string()))?;
    let (act, answers) = match outcome {
        Outcome::Repeated(answers) => {
            let known = knowledge(w, &db, envelope.known);
            w.ghost.borrow_mut().answered("a repetition", known);
            return Ok(decrypted(answers, standing.tip, db.released(job)));
        }
        Outcome::Released { answers, act, .. } => (act, Some(answers)),
        Outcome::Frozen(act) => (act, None),
    };
    if w.is(Mutant::CryptoAnswersFirst)
        && let Some(answers) = &answers
    {
        let mut ghost = w.ghost.borrow_mut();
        let record = ghost.record(&serde_json::to_string(&act).map_err(broken)?);
        ghost.decrypted(&look, record, knowledge(w, &db, envelope.known));
        drop(ghost);
        let (w, act, answers) = (Rc::clone(w), act, answers.clone());
        let told = decrypted(answers.clone(), standing.tip, record);
        let later = Rc::clone(&w);
        w.spawn(Node::Crypto, async move {
            later.sleep(5).await;
            let stored = later.tx(&later.crypto, |db| {
                let tip = db.standing()?.tip;
                db.append(&later, tip, &act, Some(&answers))
            });
            drop(stored.await);
        });
        return Ok(told);
    }
    let stored = w.tx(&w.crypto, |db| {
        let (mut standing, now) = read(db)?;
        if now != before && !w.is(Mutant::CryptoAppendsBlindly) {
            let detail = "another request of the job was debited meanwhile";
            return Err(Failure::new(ProblemKind::Unavailable, detail));
        }
        let known = knowledge(w, db, envelope.known);
        standing.tip = db.append(w, standing.tip, &act, answers.as_deref())?.0;
        if answers.is_some() {
            let record = db.rows[db.rows.len() - 1].record;
            let mut ghost = w.ghost.borrow_mut();
            ghost.decrypted(&look, record, known);
            ghost.answered("a release", knowledge(w, db, envelope.known));
        }
        Ok((standing.tip, db.released(job), now.window().run()))
    });
    let (tip, known, run) = stored.await?;
    let Some(answers) = answers else {
        return Err(refused("the dataset is frozen"));
    };
    check_answers(w, run, &look, &answers);
    Ok(decrypted(answers, tip, known))
}

fn decrypted(answers: Vec<Vec<i64>>, tip: Tip, known: Known) -> Envelope {
    let receipt = receipt(tip);
    Envelope::new(&Decrypted { answers, receipt }, known)
}

/// What leaves must be what an undisturbed run has at these numbers.
fn check_answers(w: &W, run: u32, look: &Look, answers: &[Vec<i64>]) {
    let undisturbed = &w.setting.runs[run as usize];
    let same = undisturbed
        .batches
        .iter()
        .any(|batch| batch.requests == look.releases && batch.released == answers);
    if !same {
        let what = format!("2: run {run} released other integers than undisturbed");
        w.ghost.borrow_mut().violation(what);
    }
}

/// Holds receipts against the chain; one that it does not contain freezes the dataset for good.
async fn check_receipts(w: &W, receipts: &[String]) -> Result<(), Failure> {
    if w.is(Mutant::ReceiptsNotChecked) {
        return Ok(());
    }
    for header in receipts {
        let invalid = || Failure::new(ProblemKind::Invalid, "a receipt that is none");
        let receipt = Receipt::from_header(header.as_bytes()).ok_or_else(invalid)?;
        let shown = chain::Receipt::try_from(&receipt).map_err(|_| invalid())?;
        if shown.dataset != DATASET || w.verify(&shown, &key().public()).is_err() {
            return Err(invalid());
        }
        w.pause().await;
        let db = w.crypto.get();
        let head = |height: u64| {
            let index = usize::try_from(height).ok()?.checked_sub(1)?;
            db.rows.get(index).map(|row| row.head)
        };
        if !shown.is_of(head) {
            let reason = Freeze::Restored;
            let frozen = w.tx(&w.crypto, |db| {
                let standing = db.standing()?;
                if standing.frozen != Some(reason) {
                    db.append(w, standing.tip, &Act::Frozen { reason }, None)?;
                }
                Ok::<_, Failure>(())
            });
            frozen.await?;
            return Err(Failure::new(ProblemKind::Restored, reason.detail()));
        }
    }
    Ok(())
}

/// A service that takes the sender's word for positions, as the first release of fhaim did: it
/// checks that numbers are new, and nothing about where they are.
fn trusting(w: &W, book: &Book, look: &Look, body: &[u8]) -> Result<Outcome, Error> {
    let next = book.window().placed().len();
    let numbers = look.releases.iter().map(|release| release.number as usize);
    if numbers.clone().all(|number| number < next) {
        return Ok(Outcome::Repeated(
            numbers.map(|n| book.answers()[n].clone()).collect(),
        ));
    }
    if !numbers.eq(next..next + look.releases.len()) {
        return Err(Error::Request("not the next"));
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
    let act = Act::Released {
        job: look.job,
        entries: look.releases.iter().map(entry).collect::<Result<_, _>>()?,
        answers: chain::answers_digest(&answers),
    };
    Ok(Outcome::Released {
        book: book.clone(),
        answers,
        act,
    })
}

/// A request to begin a run.
pub(crate) fn new_run() -> NewRun {
    NewRun {
        upload: Digest(crate::setting::UPLOAD),
    }
}
