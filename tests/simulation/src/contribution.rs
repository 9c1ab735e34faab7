//! Contributions as in `services/computation/src/uploads`, with a simulated store. The dataset has one part.

use crate::Mutant;
use crate::crypto::Call as CryptoCall;
use crate::pages::Under;
use crate::world::{Envelope, Failure, Node, W};
use fhaim_api::problem::ProblemKind;
use fhaim_protocol::sealing::SealingKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Number of objects in the part.
pub(crate) const OBJECTS: u8 = 4;

/// Digest of an upload that is complete from the beginning.
const FROM_THE_BEGINNING: [u8; 32] = crate::setting::UPLOAD;

/// An object. Instead of ciphertexts it has the origin of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Object {
    pub digest: [u8; 32],
    /// The table, noise and upload key that it was made from, and the dataset's keys.
    pub under: Under,
}

/// A stored upload.
#[derive(Clone, Default)]
pub(crate) struct Contribution {
    /// Number of the key service's keys when the upload was registered.
    keys: Option<u64>,
    objects: BTreeMap<u8, Object>,
    complete: bool,
    /// Digest that runs are bound to, once the upload is complete.
    bound: [u8; 32],
}

/// A call by an uploading program or by the second computation service.
#[derive(Serialize, Deserialize)]
pub(crate) enum Call {
    Register,
    /// Returns the names of the stored objects, and whether the upload is complete.
    State,
    Put(u8, Object),
    /// Completes the upload, if it has this manifest.
    Complete([u8; 32]),
    /// Returns the objects and the sealing key to the second computation service.
    Copy,
}

/// Progress of an upload.
#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    pub present: Vec<u8>,
    pub complete: bool,
}

/// Answer to [`Call::Copy`]: the objects, and the sealing key once there is one.
#[derive(Serialize, Deserialize)]
struct Copied {
    objects: BTreeMap<u8, Object>,
    key: Option<[u8; 32]>,
}

/// Returns the digest over all objects.
pub(crate) fn manifest<'a>(digests: impl Iterator<Item = (&'a u8, [u8; 32])>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (name, digest) in digests {
        hash.update([*name]);
        hash.update(digest);
    }
    hash.finalize().into()
}

impl Contribution {
    /// Returns an upload that is complete from the beginning.
    pub(crate) fn from_the_beginning() -> Self {
        Self {
            keys: Some(0),
            complete: true,
            bound: FROM_THE_BEGINNING,
            ..Self::default()
        }
    }

    /// Returns the digest that runs are bound to, if the upload is complete.
    pub(crate) fn completed(&self) -> Option<[u8; 32]> {
        self.complete.then_some(self.bound)
    }

    /// Returns the digest that runs are bound to.
    ///
    /// # Errors
    /// If the upload is not complete.
    pub(crate) fn bound(&self) -> Result<[u8; 32], Failure> {
        let absent = || Failure::new(ProblemKind::NotFound, "the upload is not complete");
        self.completed().ok_or_else(absent)
    }

    /// Returns the table, noise and keys of pages that are computed from the upload. Objects under several keys make
    /// pages that nobody can decrypt.
    pub(crate) fn under(&self) -> Under {
        let all = || self.objects.values().map(|object| object.under);
        let Some(first) = all().next() else {
            return Under::default();
        };
        let of_one = all().all(|under| under == first) && Some(first.keys) == self.keys;
        match of_one {
            true => first,
            false => Under {
                keys: u64::MAX,
                ..first
            },
        }
    }

    fn sessions(&self) -> Vec<u64> {
        let mut all: Vec<u64> = (self.objects.values())
            .map(|object| object.under.session)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn manifest(&self) -> [u8; 32] {
        manifest(self.objects.iter().map(|(name, o)| (name, o.digest)))
    }

    fn state(&self) -> State {
        State {
            present: self.objects.keys().copied().collect(),
            complete: self.complete,
        }
    }
}

/// Answers a call.
pub(crate) async fn handle(w: &W, node: Node, call: Call) -> Result<Envelope, Failure> {
    match call {
        Call::Register => register(w, node).await?,
        Call::State => {
            w.pause().await;
            let db = w.computing(node).get();
            return Ok(Envelope::new(&db.contribution.state(), 0));
        }
        Call::Put(name, object) => put(w, node, name, object).await?,
        Call::Complete(manifest) => complete(w, node, manifest).await?,
        Call::Copy => {
            w.pause().await;
            let db = w.computing(node).get();
            let copied = Copied {
                objects: db.contribution.objects.clone(),
                key: db.sealing_key,
            };
            return Ok(Envelope::new(&copied, 0));
        }
    }
    Ok(Envelope::new(&(), 0))
}

async fn register(w: &W, node: Node) -> Result<(), Failure> {
    w.pause().await;
    if w.computing(node).get().contribution.keys.is_some() {
        return Ok(());
    }
    let receipts = Vec::new();
    let call = Envelope::new(&CryptoCall::Keys { receipts }, 0);
    let keys: u64 = w.call(node, Node::Crypto, call).await?.open()?;
    w.tx(w.computing(node), |db| {
        db.contribution.keys.get_or_insert(keys);
        let known = [&w.computation, &w.witness].map(|store| store.get().contribution.keys);
        let otherwise = known.into_iter().flatten().any(|known| known != keys);
        w.ghost.borrow_mut().registered_otherwise |= otherwise;
        Ok(())
    })
    .await
}

async fn put(w: &W, node: Node, name: u8, object: Object) -> Result<(), Failure> {
    w.tx(w.computing(node), |db| {
        let there = &mut db.contribution;
        if there.complete {
            return Err(Failure::new(
                ProblemKind::Conflict,
                "the upload is complete",
            ));
        }
        let absent = || Failure::new(ProblemKind::NotFound, "the upload is not registered");
        let keys = there.keys.ok_or_else(absent)?;
        // With several holders, the key services make the upload key together with the dataset's keys.
        if w.roster.holders > 1 && keys != object.under.keys {
            let detail = "the object is under another upload key";
            return Err(Failure::new(ProblemKind::Invalid, detail));
        }
        there.objects.insert(name, object);
        Ok(())
    })
    .await
}

/// Completes an upload if its manifest is the one that the program sends.
async fn complete(w: &W, node: Node, manifest: [u8; 32]) -> Result<(), Failure> {
    let key = match node {
        Node::Witness => copy(w, node, manifest).await?,
        _ => Some(w.roster_key()),
    };
    w.tx(w.computing(node), |db| {
        let there = &mut db.contribution;
        if there.objects.len() < usize::from(OBJECTS) {
            return Err(Failure::new(ProblemKind::Conflict, "objects are missing"));
        }
        let same = there.manifest() == manifest;
        if !same && !w.is(Mutant::ComputationCompletesMixed) {
            w.event("an upload was refused for its manifest");
            return Err(another_manifest());
        }
        let detail = "the first computation service has no sealing key yet";
        let key = (db.sealing_key.or(key))
            .ok_or_else(|| Failure::new(ProblemKind::Unavailable, detail))?;
        let damaged = || Failure::new(ProblemKind::Internal, "the sealing key is damaged");
        let sealing = SealingKey::from_bytes(&key).ok_or_else(damaged)?;
        w.ghost.borrow_mut().completed(node, &there.sessions());
        if !there.complete {
            w.event(match node {
                Node::Witness => "an upload was copied",
                _ => "an upload was completed",
            });
            there.bound = sealing.commitment(&there.manifest());
        }
        there.complete = true;
        db.sealing_key = Some(key);
        Ok(())
    })
    .await
}

fn another_manifest() -> Failure {
    let detail = "the stored objects have another manifest";
    Failure::new(ProblemKind::DigestMismatch, detail)
}

/// Copies the objects of the first computation service, if they have the program's manifest. Returns the sealing key.
async fn copy(w: &W, node: Node, of: [u8; 32]) -> Result<Option<[u8; 32]>, Failure> {
    let call = super::computation::Call::Upload(Call::Copy);
    let answer = w.call(node, Node::Computation, Envelope::new(&call, 0));
    let Copied { objects, key } = answer.await?.open()?;
    if manifest(objects.iter().map(|(name, o)| (name, o.digest))) != of {
        return Err(another_manifest());
    }
    for (name, object) in objects {
        let there = w
            .computing(node)
            .get()
            .contribution
            .objects
            .get(&name)
            .copied();
        if there != Some(object) {
            put(w, node, name, object).await?;
        }
    }
    Ok(key)
}
