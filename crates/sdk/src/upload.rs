//! An upload: encrypted on all cores while it is sent, gone on with after a break.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::dataset::Dataset;
use fhaim_api::upload::{Complete, Missing, Upload};
use fhaim_domain::Table;
use fhaim_dp::Ladder;
use fhaim_he::{Layout, PublicKey};
use fhaim_protocol::holder::{Holder, Noise};
use fhaim_protocol::upload::{Object, UploadPlan};
use futures_util::{StreamExt, stream};
use rand::TryRngCore;
use rand::rngs::OsRng;
use reqwest::Method;
use reqwest::header::HeaderMap;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::client::Body;
use crate::{Client, Error, Journal};

/// Objects on their way at a time.
const PARALLEL: usize = 4;

/// Objects that wait to be sent.
const WAITING: usize = 16;

/// What is to be uploaded.
#[derive(Clone, Debug)]
pub struct Source {
    /// The table.
    pub table: Arc<Table>,
    /// Noise drawn before, one ladder for all runs; drawn as it is encrypted unless given.
    pub ladder: Option<Arc<Ladder>>,
}

/// How far an upload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Objects there, those of earlier attempts included.
    pub done: usize,
    /// Objects there will be.
    pub objects: usize,
    /// Bytes sent by this attempt.
    pub bytes_sent: u64,
}

impl Client {
    /// Encrypts and uploads a table, or what is missing of it, and completes the dataset.
    ///
    /// # Errors
    /// What the services refuse, and what [`Client::prepare`] does. Nothing is lost: the same
    /// call with the same journal goes on.
    pub async fn upload(
        &self,
        dataset: &Dataset,
        source: &Source,
        mut journal: Journal,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Upload, Error> {
        let layout = Layout::for_records(source.table.records());
        let layout = layout.map_err(fhaim_protocol::Error::from)?;
        let (plan, public) = self.prepare(dataset, layout).await?;
        let upload_plan = UploadPlan {
            columns: plan.job.domain.columns(),
            layout,
            ladder: plan.ladder()?,
            residues: plan.set.plaintext_moduli.len(),
        };
        let missing = self.missing(dataset.id, &upload_plan, &mut journal).await?;
        let mut state = Progress {
            done: upload_plan.object_count() - missing.len(),
            objects: upload_plan.object_count(),
            bytes_sent: 0,
        };
        progress(state);
        let encrypted = encrypt(source, public, upload_plan, missing);
        let sending = stream::unfold(encrypted, |mut encrypted| async {
            encrypted.recv().await.map(|object| (object, encrypted))
        })
        .map(|encrypted| async {
            let (object, bytes) = encrypted?;
            let (size, digest) = (bytes.len() as u64, Digest::of(&bytes));
            self.put(dataset.id, object, digest, bytes).await?;
            Ok::<_, Error>((object, digest, size))
        })
        .buffer_unordered(PARALLEL);
        let mut sending = std::pin::pin!(sending);
        while let Some(sent) = sending.next().await {
            let (object, digest, size) = sent?;
            journal.confirm(object, digest)?;
            state.done += 1;
            state.bytes_sent += size;
            progress(state);
        }
        self.complete(dataset.id, journal).await
    }

    /// Objects to send: those the service lacks, and those it has that the journal knows no
    /// digest of.
    async fn missing(
        &self,
        dataset: Uuid,
        plan: &UploadPlan,
        journal: &mut Journal,
    ) -> Result<Vec<Object>, Error> {
        let base = &self.endpoints().computation;
        let address = format!("{base}/v1/datasets/{dataset}/contributions/0/missing");
        let missing: Missing = self.json(Method::GET, &address, Body::Empty).await?;
        for name in &missing.objects {
            journal.forget(name);
        }
        let unknown = |object: &Object| !journal.sent().contains_key(&object.name());
        Ok(plan.objects().filter(unknown).collect())
    }

    async fn put(
        &self,
        dataset: Uuid,
        object: Object,
        digest: Digest,
        bytes: Bytes,
    ) -> Result<(), Error> {
        let base = &self.endpoints().computation;
        let name = object.name().replace('/', "%2F");
        let address = format!("{base}/v1/datasets/{dataset}/contributions/0/objects/{name}");
        let mut headers = HeaderMap::new();
        self.authorize(&mut headers, &self.token().await?, &address)?;
        let text = format!("sha-256=:{}:", STANDARD.encode(digest.0));
        if let Ok(value) = text.parse() {
            headers.insert("content-digest", value);
        }
        self.send(Method::PUT, &address, &Body::Bytes(bytes), Some(headers))
            .await?;
        Ok(())
    }

    async fn complete(&self, dataset: Uuid, journal: Journal) -> Result<Upload, Error> {
        let base = &self.endpoints().computation;
        let address = format!("{base}/v1/datasets/{dataset}/contributions/0/complete");
        let body = Body::json(&Complete {
            manifest: manifest(journal.sent()),
        });
        let upload = self.json(Method::POST, &address, body).await?;
        let base = &self.endpoints().generation;
        let ready = format!("{base}/v1/datasets/{dataset}/ready");
        self.call(Method::POST, &ready, Body::Empty).await?;
        journal.finish();
        Ok(upload)
    }
}

fn manifest(objects: &BTreeMap<String, Digest>) -> Digest {
    let mut hash = Sha256::new();
    for (name, digest) in objects {
        hash.update(format!("{name} {digest}\n"));
    }
    Digest(hash.finalize().into())
}

/// Encrypts objects on all cores; they come out in any order, no more of them waiting than can be
/// sent soon. Ends early when nobody receives any more.
fn encrypt(
    source: &Source,
    public: PublicKey,
    plan: UploadPlan,
    objects: Vec<Object>,
) -> mpsc::Receiver<Result<(Object, Bytes), Error>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let source = source.clone();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::task::spawn_blocking(move || {
        let noise = match &source.ladder {
            Some(ladder) => Noise::Drawn(ladder),
            None => Noise::Fresh,
        };
        let holder = match Holder::new(&source.table, noise, &public, plan) {
            Ok(holder) => holder,
            Err(error) => {
                // Nobody receives any more: there is nobody to tell.
                let _ = sender.blocking_send(Err(error.into()));
                return;
            }
        };
        let next = AtomicUsize::new(0);
        let work = || {
            let mut rng = OsRng.unwrap_err();
            while let Some(&object) = objects.get(next.fetch_add(1, Ordering::Relaxed)) {
                let encoded = holder.encode(object, &mut rng);
                let encoded = encoded.map(|bytes| (object, Bytes::from(bytes)));
                if sender.blocking_send(encoded.map_err(Error::from)).is_err() {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(work);
            }
        });
    });
    receiver
}
