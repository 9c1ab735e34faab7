//! A holder's program. It chooses a job's name before it asks for the job, shows the receipts that it has kept, repeats
//! calls whose answers are lost, and compares receipts when the job is done.

use crate::crypto::Call as CryptoCall;
use crate::generation::{self, Call, Shown, State};
use crate::ghost::Known;
use crate::keyshare::Call as Share;
use crate::receipts;
use crate::upload;
use crate::world::{Envelope, Failure, Node, W};
use fhaim_api::keys::Receipt;
use fhaim_api::problem::ProblemKind;
use fhaim_protocol::request::JobId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Stored state of the program.
#[derive(Clone, Default)]
pub(crate) struct Db {
    receipts: receipts::Text,
    known: Known,
    ended: BTreeMap<JobId, End>,
    pub journal: upload::Journal,
}

/// How a wanted job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The job is done. Has the undisturbed run with the same answers and model, if there is one.
    Done(Option<usize>),
    Refused(String),
}

impl Db {
    pub(crate) fn known(&self) -> Known {
        self.known
    }

    pub(crate) fn receipts(&self) -> &receipts::Text {
        &self.receipts
    }

    pub(crate) fn ended(&self) -> &BTreeMap<JobId, End> {
        &self.ended
    }
}

/// Number of tries after the end of all faults. A holder then accepts a refusal as final.
const LAST_TRIES: u32 = 10;

/// Like [`LAST_TRIES`], while the dataset's upload is not complete, because programs may still upload it.
const LAST_TRIES_BEFORE_UPLOAD: u32 = 100;

/// Starts the program. It continues every job that has not ended.
pub(crate) fn start(w: &W) {
    if w.roster.concurrent.is_some() {
        upload::start(w, Node::Holder);
    }
    for wanted in 0..w.wanted {
        let world = Rc::clone(w);
        let job = JobId([wanted as u8 + 1; 16]);
        w.spawn(Node::Holder, async move {
            world.sleep(world.below(300)).await;
            if !world.holder.get().ended.contains_key(&job) {
                let end = see_through(&world, job).await;
                world.trace(|| format!("Holder: job {} ended: {end:?}", job.0[0]));
                let stored = world.tx(&world.holder, |db| {
                    db.ended.insert(job, end);
                    Ok::<_, ()>(())
                });
                let _: Result<(), ()> = stored.await;
            }
        });
    }
}

/// Has the operators of the key services thaw a frozen dataset.
pub(crate) fn thaw(w: &W) {
    thaw_at(w, Node::Crypto, Envelope::new(&CryptoCall::Thaw, 0));
    if w.has_keyshare() {
        thaw_at(w, Node::Keyshare, Envelope::new(&Share::Thaw, 0));
    }
}

fn thaw_at(w: &W, node: Node, envelope: Envelope) {
    let world = Rc::clone(w);
    w.spawn(Node::Holder, async move {
        while let Err(failure) = world.call(Node::Holder, node, envelope.clone()).await {
            if failure.kind == ProblemKind::Conflict {
                return;
            }
            world.sleep(10).await;
        }
    });
}

/// Counts refusals after the end of all faults.
#[derive(Default)]
struct Tries(u32);

impl Tries {
    async fn again(&mut self, w: &W) -> bool {
        self.again_of(w, LAST_TRIES).await
    }

    async fn again_of(&mut self, w: &W, most: u32) -> bool {
        self.0 += u32::from(!w.faulty.get());
        w.sleep(40).await;
        self.0 < most
    }
}

async fn see_through(w: &W, job: JobId) -> End {
    let (mut tries, mut before_upload) = (Tries::default(), Tries::default());
    loop {
        match attempt(w, job, &mut tries).await {
            Ok(end) => return end,
            Err(failure) if failure.kind == ProblemKind::Restored => {
                return End::Refused(failure.detail);
            }
            Err(failure) if passes(failure.kind) => w.sleep(15).await,
            Err(failure) if failure.detail == generation::NOT_READY => {
                if !before_upload.again_of(w, LAST_TRIES_BEFORE_UPLOAD).await {
                    return End::Refused(failure.detail);
                }
            }
            Err(failure) => {
                if !tries.again(w).await {
                    return End::Refused(failure.detail);
                }
            }
        }
    }
}

fn passes(kind: ProblemKind) -> bool {
    matches!(kind, ProblemKind::Unavailable | ProblemKind::Internal)
}

async fn attempt(w: &W, job: JobId, tries: &mut Tries) -> Result<End, Failure> {
    have_keys(w).await?;
    ask(w, &Call::Create(job)).await?;
    loop {
        let (shown, known) = ask(w, &Call::Show(job)).await?;
        match shown.state {
            State::Queued | State::Running => w.sleep(30).await,
            State::Failed => {
                let reason = shown.error.unwrap_or_default();
                if !tries.again(w).await {
                    return Ok(End::Refused(reason));
                }
                ask(w, &Call::Retry(job)).await?;
            }
            State::Done => {
                let result = w.generation.get().result(job);
                let told = show_receipts(w, shown.receipts, known).await;
                if let Err(failure) = told
                    && passes(failure.kind)
                {
                    return Err(failure);
                }
                // The generation service was rolled back between the two calls: ask again.
                let Some((answers, model)) = result else {
                    continue;
                };
                let run = w.setting.run_of(&answers);
                let run = run.filter(|&run| w.setting.runs[run].model == model);
                return Ok(End::Done(run));
            }
        }
    }
}

/// Shows receipts to the key service, and asks for new keys if it has lost the dataset's keys.
async fn have_keys(w: &W) -> Result<(), Failure> {
    match show_receipts(w, Vec::new(), 0).await {
        Err(failure) if failure.kind == ProblemKind::NotFound => {
            upload::make_keys(w, Node::Holder).await?;
            show_receipts(w, Vec::new(), 0).await
        }
        shown => shown,
    }
}

async fn ask(w: &W, call: &impl Serialize) -> Result<(Shown, Known), Failure> {
    let envelope = Envelope::new(call, w.holder.get().known);
    let answer = w.call(Node::Holder, Node::Generation, envelope).await?;
    Ok((answer.open()?, answer.known))
}

/// Shows the holder's receipts to the key service, and keeps the receipt that it returns.
async fn show_receipts(w: &W, told: Vec<Receipt>, known: Known) -> Result<(), Failure> {
    w.pause().await;
    let db = w.holder.get();
    let own = receipts::read(&db.receipts).into_iter();
    let shown = receipts::distinct(own.chain(told));
    let receipts = shown.iter().map(Receipt::to_header).collect();
    let envelope = Envelope::new(&CryptoCall::Show { receipts }, db.known | known);
    let answer = w.call(Node::Holder, Node::Crypto, envelope).await?;
    let receipt: Receipt = answer.open()?;
    w.tx(&w.holder, |db| {
        db.receipts = receipts::keep(w, &db.receipts, &shown, &receipt);
        db.known |= answer.known;
        Ok(())
    })
    .await
}
