//! Programs that upload the holder's part: `crates/sdk/src/upload.rs` over simulated stores. Two of them run at a
//! time, on two machines, each with a record of the objects that it sent.

use crate::computation::Call as ComputationCall;
use crate::contribution::{Call, OBJECTS, Object, State, manifest};
use crate::crypto::Call as CryptoCall;
use crate::generation::Call as GenerationCall;
use crate::ghost::Known;
use crate::pages::Under;
use crate::receipts;
use crate::world::{Envelope, Failure, Node, W};
use fhaim_api::keys::Receipt;
use fhaim_api::problem::ProblemKind;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// What a program keeps of its upload.
#[derive(Clone, Default)]
pub(crate) struct Journal {
    /// Names its upload key and its noise, which are drawn when it begins.
    session: Option<u64>,
    sent: BTreeMap<u8, [u8; 32]>,
    /// The manifest that it completed. It sends it to a second computation service that lost its copy.
    manifest: Option<[u8; 32]>,
}

impl Journal {
    /// The manifest that it completed, if it did.
    pub(crate) fn kept(&self) -> Option<[u8; 32]> {
        self.manifest
    }

    fn manifest(&self) -> [u8; 32] {
        manifest(self.sent.iter().map(|(name, digest)| (name, *digest)))
    }

    /// Forgets the objects that were sent, and their key.
    fn restart(&mut self) {
        (self.session, self.sent) = (None, BTreeMap::new());
    }
}

/// Begins a program. It uploads again if its upload was lost.
pub(crate) fn start(w: &W, node: Node) {
    let world = std::rc::Rc::clone(w);
    w.spawn(node, async move {
        loop {
            match attempt(&world, node).await {
                Ok(()) => world.sleep(150).await,
                Err(failure) => {
                    world.trace(|| format!("{node:?} uploads: {}", failure.detail));
                    world.sleep(10 + world.roster_below(60)).await;
                }
            }
        }
    });
}

fn journal(w: &W, node: Node) -> Journal {
    match node {
        Node::Holder => w.holder.get().journal.clone(),
        _ => Journal::clone(&w.uploader.get()),
    }
}

/// Changes a program's record.
async fn write(w: &W, node: Node, change: impl FnOnce(&mut Journal)) -> Result<(), Failure> {
    match node {
        Node::Holder => {
            let change = |db: &mut crate::holder::Db| {
                change(&mut db.journal);
                Ok(())
            };
            w.tx(&w.holder, change).await
        }
        _ => {
            let change = |journal: &mut Journal| {
                change(journal);
                Ok(())
            };
            w.tx(&w.uploader, change).await
        }
    }
}

async fn computation(w: &W, node: Node, to: Node, call: Call) -> Result<Envelope, Failure> {
    let call = ComputationCall::Upload(call);
    w.call(node, to, Envelope::new(&call, 0)).await
}

/// Uploads the missing objects and completes the upload.
async fn attempt(w: &W, node: Node) -> Result<(), Failure> {
    let first = Node::Computation;
    let there: State = computation(w, node, first, Call::State).await?.open()?;
    write(w, node, |journal| {
        journal.sent.retain(|name, _| there.present.contains(name));
    })
    .await?;
    let mut sent = journal(w, node).sent;
    if there.complete && sent.len() < usize::from(OBJECTS) {
        // Complete, and of another program or of no record any more.
        have_copied_again(w, node).await?;
        return make_ready(w, node).await;
    }
    let keys = prepare(w, node).await?;
    register(w, node).await?;
    let session = begin(w, node).await?;
    for name in (0..OBJECTS).filter(|name| !sent.contains_key(name)) {
        let object = encrypt(w, name, Under { session, keys });
        computation(w, node, first, Call::Put(name, object)).await?;
        write(w, node, |journal| {
            journal.sent.insert(name, object.digest);
        })
        .await?;
    }
    sent = journal(w, node).sent;
    complete(w, node, sent.len()).await
}

/// Registers the upload, with the second computation service first.
async fn register(w: &W, node: Node) -> Result<(), Failure> {
    if w.has_witness() {
        computation(w, node, Node::Witness, Call::Register).await?;
    }
    computation(w, node, Node::Computation, Call::Register).await?;
    Ok(())
}

/// The dataset's keys, made now unless they were made before.
async fn prepare(w: &W, node: Node) -> Result<u64, Failure> {
    let (receipts, known) = shown(w, node);
    let call = Envelope::new(&CryptoCall::Keys { receipts }, known);
    match w.call(node, Node::Crypto, call).await {
        Err(failure) if failure.kind == ProblemKind::NotFound => make_keys(w, node).await,
        answer => answer?.open(),
    }
}

/// The receipts that a program shows as headers, and its knowledge. The second machine has none.
fn shown(w: &W, node: Node) -> (Vec<String>, Known) {
    if node != Node::Holder {
        return (Vec::new(), 0);
    }
    let db = w.holder.get();
    let receipts = receipts::read(db.receipts());
    let receipts = receipts.iter().map(Receipt::to_header).collect();
    (receipts, db.known())
}

/// Has keys made that the generation service vouches for.
pub(crate) async fn make_keys(w: &W, node: Node) -> Result<u64, Failure> {
    let (receipts, known) = shown(w, node);
    let vouched = ask(w, node, &GenerationCall::Vouch, known).await?;
    let call = CryptoCall::Create { receipts };
    let call = Envelope::new(&call, known | vouched.known);
    w.call(node, Node::Crypto, call).await?.open()
}

async fn ask(w: &W, node: Node, call: &impl Serialize, known: Known) -> Result<Envelope, Failure> {
    let call = Envelope::new(call, known);
    w.call(node, Node::Generation, call).await
}

/// The session of an upload that begins or continues.
async fn begin(w: &W, node: Node) -> Result<u64, Failure> {
    let known = journal(w, node);
    match known.session.filter(|_| !known.sent.is_empty()) {
        Some(session) => Ok(session),
        None => {
            let session = w.fresh();
            write(w, node, |journal| journal.session = Some(session)).await?;
            Ok(session)
        }
    }
}

/// Every encryption has other randomness.
fn encrypt(w: &W, name: u8, under: Under) -> Object {
    let mut hash = Sha256::new();
    hash.update([name]);
    for number in [under.session, under.keys, w.fresh()] {
        hash.update(number.to_le_bytes());
    }
    Object {
        digest: hash.finalize().into(),
        under,
    }
}

async fn complete(w: &W, node: Node, sent: usize) -> Result<(), Failure> {
    if sent < usize::from(OBJECTS) {
        let detail = "the program was set back meanwhile";
        return Err(Failure::new(ProblemKind::Unavailable, detail));
    }
    let manifest = journal(w, node).manifest();
    write(w, node, |journal| journal.manifest = Some(manifest)).await?;
    let done = computation(w, node, Node::Computation, Call::Complete(manifest)).await;
    match done {
        Err(failure) if failure.kind == ProblemKind::DigestMismatch => {
            write(w, node, Journal::restart).await?;
            return Err(failure);
        }
        done => done?,
    };
    if w.has_witness() {
        have_copied(w, node, manifest).await?;
    }
    make_ready(w, node).await?;
    write(w, node, Journal::restart).await
}

/// Has the second computation service copy the part.
async fn have_copied(w: &W, node: Node, manifest: [u8; 32]) -> Result<(), Failure> {
    computation(w, node, Node::Witness, Call::Register).await?;
    computation(w, node, Node::Witness, Call::Complete(manifest)).await?;
    Ok(())
}

/// The same for a copy that was lost: what the program completed, if it did.
async fn have_copied_again(w: &W, node: Node) -> Result<(), Failure> {
    if !w.has_witness() {
        return Ok(());
    }
    let there: State = (computation(w, node, Node::Witness, Call::State).await?).open()?;
    if there.complete {
        return Ok(());
    }
    let detail = "the upload's manifest is not known";
    let absent = || Failure::new(ProblemKind::Conflict, detail);
    let manifest = journal(w, node).manifest.ok_or_else(absent)?;
    have_copied(w, node, manifest).await
}

/// Tells the generation service that the upload is complete.
async fn make_ready(w: &W, node: Node) -> Result<(), Failure> {
    ask(w, node, &GenerationCall::Ready, 0).await?;
    Ok(())
}
