//! Programs that upload the holder's part, as in `crates/sdk/src/upload.rs`, with simulated stores. Two of them run at
//! the same time on two machines, each with its own record of sent objects.

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

/// A program's record of its upload.
#[derive(Clone, Default)]
pub(crate) struct Journal {
    /// Identifies the upload key and noise that the program draws when it begins an upload.
    session: Option<u64>,
    /// Digests of the sent objects.
    sent: BTreeMap<u8, [u8; 32]>,
    /// Manifest of the completed upload, kept for a second computation service that loses its copy.
    manifest: Option<[u8; 32]>,
}

impl Journal {
    /// Returns the manifest of the completed upload, if there is one.
    pub(crate) fn kept(&self) -> Option<[u8; 32]> {
        self.manifest
    }

    fn manifest(&self) -> [u8; 32] {
        manifest(self.sent.iter().map(|(name, digest)| (name, *digest)))
    }

    /// Forgets the sent objects and their key.
    fn restart(&mut self) {
        (self.session, self.sent) = (None, BTreeMap::new());
    }
}

/// Starts a program. It uploads again if its upload was lost.
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
        // Another program completed the upload, or this one has lost its record of it.
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

/// Returns the number of the dataset's keys. Has them made if they do not exist.
async fn prepare(w: &W, node: Node) -> Result<u64, Failure> {
    let (receipts, known) = shown(w, node);
    let call = Envelope::new(&CryptoCall::Keys { receipts }, known);
    match w.call(node, Node::Crypto, call).await {
        Err(failure) if failure.kind == ProblemKind::NotFound => make_keys(w, node).await,
        answer => answer?.open(),
    }
}

/// Returns the receipts that a program shows, as headers, and the entries that it knows of. The second program has
/// none of them.
fn shown(w: &W, node: Node) -> (Vec<String>, Known) {
    if node != Node::Holder {
        return (Vec::new(), 0);
    }
    let db = w.holder.get();
    let receipts = receipts::read(db.receipts());
    let receipts = receipts.iter().map(Receipt::to_header).collect();
    (receipts, db.known())
}

/// Asks the generation service for a voucher, and has the key service make keys.
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

/// Returns the session of an upload in progress, or begins a new one.
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

/// Makes an object with a new digest, because every encryption has new randomness.
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
        let detail = "the program was rolled back in the meantime";
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

/// Has the second computation service copy the upload.
async fn have_copied(w: &W, node: Node, manifest: [u8; 32]) -> Result<(), Failure> {
    computation(w, node, Node::Witness, Call::Register).await?;
    computation(w, node, Node::Witness, Call::Complete(manifest)).await?;
    Ok(())
}

/// Has the second computation service copy the upload again if it lost its copy and the program kept the manifest.
async fn have_copied_again(w: &W, node: Node) -> Result<(), Failure> {
    if !w.has_witness() {
        return Ok(());
    }
    let there: State = (computation(w, node, Node::Witness, Call::State).await?).open()?;
    if there.complete {
        return Ok(());
    }
    let detail = "the program does not know the upload's manifest";
    let absent = || Failure::new(ProblemKind::Conflict, detail);
    let manifest = journal(w, node).manifest.ok_or_else(absent)?;
    have_copied(w, node, manifest).await
}

/// Tells the generation service that the upload is complete.
async fn make_ready(w: &W, node: Node) -> Result<(), Failure> {
    ask(w, node, &GenerationCall::Ready, 0).await?;
    Ok(())
}
