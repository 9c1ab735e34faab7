//! Uploads: objects are encrypted on all cores while they are sent, and an interrupted upload is resumed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::dataset::Dataset;
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::{Complete, Missing, Upload, UploadState};
use fhaim_domain::Table;
use fhaim_dp::{Ladder, LadderKey, fork, generator};
use fhaim_he::{Layout, PublicKey, UploadKey};
use fhaim_protocol::counts::pair_counts::PairCounts;
use fhaim_protocol::encryption::{Encryption, Encryptor};
use fhaim_protocol::holder::{HolderNoise, check_records};
use fhaim_protocol::part::{Content, PartHolder, PartPlan};
use fhaim_protocol::roster::HolderSigningKey;
use fhaim_protocol::upload::Object;
use futures_util::{StreamExt, stream};
use reqwest::Method;
use reqwest::header::HeaderMap;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::client::Body;
use crate::{Client, Error, Journal, KeptLadder};

/// Number of objects that are sent at the same time.
const PARALLEL: usize = 4;

/// Maximum number of encrypted objects that wait to be sent.
const WAITING: usize = 16;

/// A holder's records, in the form that its dataset requires.
#[derive(Clone, Debug)]
pub enum Records {
    /// The records themselves, to be encrypted one by one.
    Table(Arc<Table>),
    /// Counts of the records.
    Counts(Arc<PairCounts>),
}

impl Records {
    /// Number of records.
    pub fn count(&self) -> usize {
        match self {
            Self::Table(table) => table.records(),
            Self::Counts(pair_counts) => {
                usize::try_from(pair_counts.records()).unwrap_or(usize::MAX)
            }
        }
    }

    /// Returns the layout by which an upload reveals the number of records: none for counts.
    ///
    /// # Errors
    /// A table with more records than any dataset may have.
    pub fn layout(&self) -> Result<Option<Layout>, Error> {
        match self {
            Self::Table(table) => {
                let layout = Layout::for_records(table.records());
                Ok(Some(layout.map_err(fhaim_protocol::Error::from)?))
            }
            Self::Counts(_) => Ok(None),
        }
    }
}

/// The data of an upload.
#[derive(Clone, Debug)]
pub struct UploadSource {
    /// The account's part of the table.
    pub records: Records,
    /// The source of its noise.
    pub noise: NoiseSource,
    /// The key that the holder signs with, if the dataset has several holders. It signs the request for the upload key.
    pub signer: Option<Arc<HolderSigningKey>>,
}

/// The source of a holder's noise.
#[derive(Clone, Debug, Default)]
pub enum NoiseSource {
    /// Noise that is drawn during encryption and forgotten: releases cannot be checked.
    #[default]
    System,
    /// Noise that was drawn before, as one ladder for all runs.
    Drawn(Arc<Ladder>),
    /// Noise that is drawn from a key in this file, so that [`Client::verify`] can check releases. Every upload has a
    /// new key, and a resumed upload keeps its key.
    Kept(PathBuf),
}

impl NoiseSource {
    /// Returns the digest of a part's upload, if it was stored with the key of its noise.
    fn manifest(&self, part: UploadedPart) -> Result<Option<Digest>, Error> {
        let Self::Kept(path) = self else {
            return Ok(None);
        };
        let kept = KeptLadder::read(path, part.dataset)?;
        let kept = kept.filter(|kept| kept.part() == part.number);
        Ok(kept.and_then(|kept| kept.manifest()))
    }

    /// Returns the key of an upload that begins or is resumed, or `None` if keys are not stored.
    fn key(
        &self,
        part: UploadedPart,
        records: &Records,
        begins: bool,
    ) -> Result<Option<KeptLadder>, Error> {
        let Self::Kept(path) = self else {
            return Ok(None);
        };
        match begins {
            true => KeptLadder::make(path, part.dataset, part.number, records).map(Some),
            false => KeptLadder::go_on(path, part.dataset, part.number, records),
        }
    }
}

/// Progress of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadProgress {
    /// Number of uploaded objects, including those of earlier attempts.
    pub done: usize,
    /// Total number of objects.
    pub objects: usize,
    /// Number of bytes sent by this attempt.
    pub bytes_sent: u64,
}

impl Client {
    /// Encrypts and uploads the account's part of a dataset, or its missing objects. Completes the dataset if this is
    /// its last part.
    ///
    /// # Errors
    /// The errors of the services and of [`Client::prepare`]. Nothing is lost: the same call with the same journal
    /// resumes the upload. [`Error::Mixed`] if another upload of the same part ran at the same time: the same call
    /// sends everything again. [`Error::UploadedElsewhere`] if another upload of the same part was completed first.
    /// [`Error::UploadLost`] if the part is gone, and runs over it have begun.
    pub async fn upload(
        &self,
        dataset: &Dataset,
        source: &UploadSource,
        mut journal: Journal,
        progress: &(dyn Fn(UploadProgress) + Send + Sync),
    ) -> Result<Upload, Error> {
        let terms = &dataset.terms.0;
        let number = self.part_number(dataset).await?;
        let (_, record_bound) = terms.part_schema(number)?;
        // Rejected before anything is sent, and again during encryption.
        check_records(source.records.count(), record_bound)?;
        let layout = source.records.layout()?;
        self.forget_lost_part(dataset, number).await?;
        let (_, set, public) = self.prepare(dataset, layout).await?;
        let plan = terms.part_plan(number, layout)?;
        let part = UploadedPart {
            dataset: dataset.id,
            number,
            of: terms.part_count(),
        };
        let missing = self.missing(part, &plan, &mut journal).await?;
        if !missing.is_empty() {
            let there = self.upload_state(dataset.id).await?;
            if part.is_complete(&there) {
                if !journal.sent().is_empty() {
                    // A complete part takes no further objects, so the journal has no further use.
                    journal.finish();
                    return Err(Error::UploadedElsewhere(dataset.id));
                }
                // A complete upload has no journal. If another service was set back, the dataset is not ready there.
                self.have_copied_again(dataset, part, &source.noise).await?;
                self.make_ready(part, &there).await?;
                journal.finish();
                return Ok(there);
            }
        }
        if set.runs_begun > 0 {
            // The key of the noise is that of the lost upload: with it, the runs can still be verified.
            return Err(Error::UploadLost(dataset.id));
        }
        // If no sent object counts any more, the objects at the service may have other noise.
        let begins = journal.sent().is_empty();
        let upload_key = match plan.form().encryption {
            Encryption::OwnKey => journal.upload_key(public.params())?,
            Encryption::RosterKey => {
                let signer = source.signer.as_deref();
                let signer = signer.ok_or(Error::OtherKey(dataset.id))?;
                self.fetch_upload_key(dataset, &set, public.params(), signer)
                    .await?
            }
        };
        let mut kept = source.noise.key(part, &source.records, begins)?;
        let key = kept.as_ref().map(|kept| kept.key().clone());
        let mut state = UploadProgress {
            done: plan.object_count() - missing.len(),
            objects: plan.object_count(),
            bytes_sent: 0,
        };
        progress(state);
        let encrypted = encrypt(source, key, record_bound, public, upload_key, plan, missing);
        let sending = stream::unfold(encrypted, |mut encrypted| async {
            encrypted.recv().await.map(|object| (object, encrypted))
        })
        .map(|encrypted| async {
            let (object, bytes) = encrypted?;
            let (size, digest) = (bytes.len() as u64, Digest::of(&bytes));
            self.put(part, object, digest, bytes).await?;
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
        if let Some(kept) = &mut kept {
            kept.sent(manifest(journal.sent()))?;
        }
        let upload = self.complete(dataset, part, journal).await?;
        if let Some(kept) = kept {
            kept.finish()?;
        }
        Ok(upload)
    }

    /// Returns the objects to send: those that the service lacks, and those whose digest is not in the journal.
    async fn missing(
        &self,
        part: UploadedPart,
        plan: &PartPlan,
        journal: &mut Journal,
    ) -> Result<Vec<Object>, Error> {
        let address = format!("{}/missing", self.contribution(part));
        let missing: Missing = self.json(Method::GET, &address, Body::Empty).await?;
        for name in &missing.objects {
            journal.forget(name);
        }
        let unknown = |object: &Object| !journal.sent().contains_key(&object.name());
        Ok(plan.objects().into_iter().filter(unknown).collect())
    }

    async fn put(
        &self,
        part: UploadedPart,
        object: Object,
        digest: Digest,
        bytes: Bytes,
    ) -> Result<(), Error> {
        let name = object.name().replace('/', "%2F");
        let address = format!("{}/objects/{name}", self.contribution(part));
        let mut headers = HeaderMap::new();
        let text = format!("sha-256=:{}:", STANDARD.encode(digest.0));
        if let Ok(value) = text.parse() {
            headers.insert("content-digest", value);
        }
        self.call_with(Method::PUT, &address, Body::Bytes(bytes), &headers)
            .await?;
        Ok(())
    }

    async fn complete(
        &self,
        dataset: &Dataset,
        part: UploadedPart,
        mut journal: Journal,
    ) -> Result<Upload, Error> {
        let address = format!("{}/complete", self.contribution(part));
        let body = Body::json(&Complete {
            manifest: manifest(journal.sent()),
        });
        let upload = match self.json(Method::POST, &address, body.clone()).await {
            Ok(upload) => upload,
            Err(error) if error.kind() == Some(ProblemKind::DigestMismatch) => {
                // It is unknown which objects belong to the other upload. Everything can be sent again while the part
                // is not complete.
                journal.restart()?;
                return Err(Error::Mixed(dataset.id));
            }
            Err(error) => return Err(error),
        };
        // If there is a second service, it gets each part after the first, so it knows whether this was the last part.
        let last = match self.second(dataset)? {
            Some(second) => &self.have_copied(second, part, &body).await?,
            None => &upload,
        };
        self.make_ready(part, last).await?;
        journal.finish();
        Ok(upload)
    }

    /// Returns whether the account's complete part is the upload with a manifest. Completing it again with the same
    /// manifest changes nothing, and the service rejects any other manifest.
    pub(crate) async fn is_upload(
        &self,
        dataset: &Dataset,
        number: u32,
        manifest: Digest,
    ) -> Result<bool, Error> {
        let part = UploadedPart {
            dataset: dataset.id,
            number,
            of: dataset.terms.0.part_count(),
        };
        let address = format!("{}/complete", self.contribution(part));
        let body = Body::json(&Complete { manifest });
        match self.json::<Upload>(Method::POST, &address, body).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == Some(ProblemKind::DigestMismatch) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the second computation service copy the part from the first. It checks the copy against the manifest in
    /// this call.
    async fn have_copied(
        &self,
        second: &str,
        part: UploadedPart,
        body: &Body,
    ) -> Result<Upload, Error> {
        let UploadedPart {
            dataset, number, ..
        } = part;
        let address = format!("{second}/v1/datasets/{dataset}/contributions/{number}/complete");
        loop {
            let upload: Upload = self.json(Method::POST, &address, body.clone()).await?;
            if part.is_complete(&upload) {
                return Ok(upload);
            }
        }
    }

    /// Returns whether a computation service lacks the account's part of a dataset, for example because it was set back
    /// to before the upload.
    ///
    /// # Errors
    /// [`Error::UploadLost`] if the part is gone at the first service, and runs over it have begun. [`Error::NoWitness`],
    /// and the errors of the services.
    pub async fn lacks_part(&self, dataset: &Dataset) -> Result<bool, Error> {
        let service = &self.endpoints().computation;
        if !self.lacks_part_at(service, dataset).await? {
            return self.lacks_copy(dataset).await;
        }
        match self.key_set(dataset.id).await {
            Ok(set) if set.runs_begun > 0 => Err(Error::UploadLost(dataset.id)),
            Err(error) if error.kind() != Some(ProblemKind::NotFound) => Err(error),
            _ => Ok(true),
        }
    }

    /// Deletes the second computation service's copy of a part that the first service has lost. The part is encrypted
    /// again, so the copy would not match it.
    async fn forget_lost_part(&self, dataset: &Dataset, number: u32) -> Result<(), Error> {
        let Some(second) = self.second(dataset)? else {
            return Ok(());
        };
        let first = &self.endpoints().computation;
        if self.lacks_part_at(second, dataset).await? || !self.lacks_part_at(first, dataset).await?
        {
            return Ok(());
        }
        let address = format!("{second}/v1/datasets/{}/contributions/{number}", dataset.id);
        match self.call(Method::DELETE, &address, Body::Empty).await {
            Err(error) if error.kind() == Some(ProblemKind::Conflict) => {
                Err(Error::UploadLost(dataset.id))
            }
            Err(error) if error.kind() != Some(ProblemKind::NotFound) => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns whether a computation service does not have the account's complete part of a dataset.
    async fn lacks_part_at(&self, service: &str, dataset: &Dataset) -> Result<bool, Error> {
        let part = UploadedPart {
            dataset: dataset.id,
            number: self.part_number(dataset).await?,
            of: dataset.terms.0.part_count(),
        };
        let address = format!("{service}/v1/datasets/{}", dataset.id);
        match self
            .json::<Upload>(Method::GET, &address, Body::Empty)
            .await
        {
            Ok(there) => Ok(!part.is_complete(&there)),
            Err(error) if error.kind() == Some(ProblemKind::NotFound) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the second computation service of a dataset lacks the account's part, for example because it was
    /// set back to before the upload. Returns false if the terms have no second service.
    ///
    /// # Errors
    /// [`Error::NoWitness`], and the errors of the services.
    async fn lacks_copy(&self, dataset: &Dataset) -> Result<bool, Error> {
        match self.second(dataset)? {
            Some(second) => self.lacks_part_at(second, dataset).await,
            None => Ok(false),
        }
    }

    /// Makes the second computation service copy a part that it lacks and the first one has. The manifest still comes
    /// from the holder: from the record of the upload, and not from the first service.
    async fn have_copied_again(
        &self,
        dataset: &Dataset,
        part: UploadedPart,
        noise: &NoiseSource,
    ) -> Result<(), Error> {
        let Some(second) = self.second(dataset)? else {
            return Ok(());
        };
        if !self.lacks_copy(dataset).await? {
            return Ok(());
        }
        let manifest = noise.manifest(part)?.ok_or(Error::Uncopied(dataset.id))?;
        let body = Body::json(&Complete { manifest });
        self.have_copied(second, part, &body).await?;
        Ok(())
    }

    /// Tells the generation service that all parts are complete, if they are.
    async fn make_ready(&self, part: UploadedPart, upload: &Upload) -> Result<(), Error> {
        if !part.is_last(upload) {
            return Ok(());
        }
        let (base, dataset) = (&self.endpoints().generation, part.dataset);
        let ready = format!("{base}/v1/datasets/{dataset}/ready");
        self.call(Method::POST, &ready, Body::Empty).await?;
        Ok(())
    }

    fn contribution(&self, part: UploadedPart) -> String {
        let (
            base,
            UploadedPart {
                dataset, number, ..
            },
        ) = (&self.endpoints().computation, part);
        format!("{base}/v1/datasets/{dataset}/contributions/{number}")
    }
}

/// One holder's part of an upload.
#[derive(Clone, Copy, Debug)]
struct UploadedPart {
    dataset: Uuid,
    number: u32,
    /// Total number of parts.
    of: usize,
}

impl UploadedPart {
    fn is_complete(self, upload: &Upload) -> bool {
        let mut parts = upload.contributions.iter();
        parts.any(|part| part.number == self.number && part.state == UploadState::Complete)
    }

    /// Returns whether all parts are complete.
    fn is_last(self, upload: &Upload) -> bool {
        let parts = upload.contributions.iter();
        let complete = parts.filter(|part| part.state == UploadState::Complete);
        complete.count() == self.of
    }
}

fn manifest(objects: &BTreeMap<String, Digest>) -> Digest {
    let mut hash = Sha256::new();
    for (name, digest) in objects {
        hash.update(format!("{name} {digest}\n"));
    }
    Digest(hash.finalize().into())
}

/// Encrypts objects on all cores. They come out in any order, and at most [`WAITING`] of them wait to be sent. Ends
/// early when the receiver is dropped.
fn encrypt(
    source: &UploadSource,
    key: Option<LadderKey>,
    record_bound: u64,
    public: PublicKey,
    upload_key: UploadKey,
    plan: PartPlan,
    objects: Vec<Object>,
) -> mpsc::Receiver<Result<(Object, Bytes), Error>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let source = source.clone();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::task::spawn_blocking(move || {
        let noise = match (&source.noise, &key) {
            (NoiseSource::Drawn(ladder), _) => HolderNoise::Drawn(ladder),
            (_, Some(key)) => HolderNoise::Keyed(key),
            (_, None) => HolderNoise::Fresh,
        };
        let content = match &source.records {
            Records::Table(table) => Content::Records(table),
            Records::Counts(pair_counts) => Content::Counts(pair_counts),
        };
        let encryptor = match plan.form().encryption {
            Encryption::OwnKey => Encryptor::sole(&public, &upload_key),
            Encryption::RosterKey => Encryptor::of_roster(&upload_key),
        };
        let holder = PartHolder::new(&content, record_bound, noise, encryptor, &plan);
        let ready = holder.and_then(|holder| Ok((holder, generator()?)));
        let (holder, mut rng) = match ready {
            Ok(ready) => ready,
            Err(error) => {
                // Fails only if the receiver was dropped.
                let _ = sender.blocking_send(Err(error.into()));
                return;
            }
        };
        let next = AtomicUsize::new(0);
        let work = |mut rng| {
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
                let rng = fork(&mut rng);
                scope.spawn(move || work(rng));
            }
        });
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoints;
    use fhaim_api::dataset::{DatasetState, WireTerms};
    use fhaim_domain::Schema;
    use fhaim_protocol::terms::Terms;

    /// The table is rejected before anything is sent: no service listens at the address.
    #[tokio::test]
    async fn table_over_the_record_bound_is_rejected() {
        let schema = br#"{"name":"t","columns":[
            {"name":"a","kind":"categorical","categories":["x","y"]}]}"#;
        let schema = Schema::from_json("t.json", schema).unwrap();
        let terms = Terms::new(schema.clone(), 1.0, 1e-9, 2);
        let terms = terms.complete(&fhaim_synth::Mechanisms).unwrap();
        let dataset: Dataset = serde_json::from_value(serde_json::json!({
            "id": Uuid::nil(), "name": "t", "terms": WireTerms(terms),
            "state": DatasetState::Uploading, "budget": {"exact": "1", "rho": 1.0},
            "runs_left": 1, "created_at": "2026-01-02T03:04:05Z",
        }))
        .unwrap();
        let source = UploadSource {
            records: Records::Table(Arc::new(Table::new(schema, vec![vec![0, 1, 0]]).unwrap())),
            noise: NoiseSource::System,
            signer: None,
        };
        let client = Client::new(Endpoints::behind("http://127.0.0.1:9")).unwrap();
        let uploaded = client.upload(&dataset, &source, Journal::in_memory(), &|_| {});
        let error = uploaded.await.unwrap_err();
        let refusal = fhaim_protocol::Error::Records {
            records: 3,
            bound: 2,
        };
        assert_eq!(error.to_string(), refusal.to_string());
    }
}
