//! An upload: encrypted on all cores while it is sent, gone on with after a break.

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
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::client::Body;
use crate::{Client, Error, Journal, KeptLadder};

/// So many objects are on their way at a time.
const PARALLEL: usize = 4;

/// So many encrypted objects wait to be sent.
const WAITING: usize = 16;

/// A holder's records, as its dataset wants them.
#[derive(Clone, Debug)]
pub enum Records {
    /// As they are, to be encrypted one by one.
    Table(Arc<Table>),
    /// Counted.
    Tally(Arc<PairCounts>),
}

impl Records {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Table(table) => table.records(),
            Self::Tally(pair_counts) => {
                usize::try_from(pair_counts.records()).unwrap_or(usize::MAX)
            }
        }
    }

    /// What an upload tells of their number: nothing, of counts.
    ///
    /// # Errors
    /// A table of more records than any dataset has.
    pub fn layout(&self) -> Result<Option<Layout>, Error> {
        match self {
            Self::Table(table) => {
                let layout = Layout::for_records(table.records());
                Ok(Some(layout.map_err(fhaim_protocol::Error::from)?))
            }
            Self::Tally(_) => Ok(None),
        }
    }
}

/// What is to be uploaded.
#[derive(Clone, Debug)]
pub struct UploadSource {
    /// The account's part of the table.
    pub records: Records,
    /// Where its noise comes from.
    pub noise: NoiseSource,
    /// The key that the holder signs with, where the dataset has several holders: it signs the request for the upload
    /// key.
    pub signer: Option<Arc<HolderSigningKey>>,
}

/// Where a holder's noise comes from.
#[derive(Clone, Debug, Default)]
pub enum NoiseSource {
    /// Drawn as it is encrypted, and forgotten: what is released cannot be checked.
    #[default]
    System,
    /// Drawn before, one ladder for all runs.
    Drawn(Arc<Ladder>),
    /// Drawn from a key that is kept in this file, so that [`Client::verify`] can check what is released: a
    /// new key for every upload, and the same where one goes on.
    Kept(PathBuf),
}

impl NoiseSource {
    /// Digest of a part's upload, where it was kept with the key of its noise.
    fn manifest(&self, part: UploadedPart) -> Result<Option<Digest>, Error> {
        let Self::Kept(path) = self else {
            return Ok(None);
        };
        let kept = KeptLadder::read(path, part.dataset)?;
        let kept = kept.filter(|kept| kept.part() == part.number);
        Ok(kept.and_then(|kept| kept.manifest()))
    }

    /// The key of an upload that begins, or goes on; none where none is kept.
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

/// How far an upload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadProgress {
    /// Objects there, those of earlier attempts included.
    pub done: usize,
    /// Objects there will be.
    pub objects: usize,
    /// Bytes sent by this attempt.
    pub bytes_sent: u64,
}

impl Client {
    /// Encrypts and uploads the account's part of a dataset, or what is missing of it, and completes
    /// the dataset where it is the last.
    ///
    /// # Errors
    /// What the services refuse, and what [`Client::prepare`] does. Nothing is lost: the same
    /// call with the same journal continues. [`Error::Mixed`] where another upload of the same part ran at the same
    /// time: the same call sends everything again. [`Error::UploadedElsewhere`] where another upload of the same part
    /// was completed first.
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
        // Refused before anything is sent, and again where it is encrypted.
        check_records(source.records.count(), record_bound)?;
        let layout = source.records.layout()?;
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
                    // A complete part takes no further objects, so the journal is of no more use.
                    journal.finish();
                    return Err(Error::UploadedElsewhere(dataset.id));
                }
                // The journal of a complete upload is deleted. The dataset is not ready if another service was
                // set back.
                self.have_copied_again(dataset, part, &source.noise).await?;
                self.make_ready(part, &there).await?;
                journal.finish();
                return Ok(there);
            }
        }
        // Nothing that was sent counts any more: its noise need not be that of what is there.
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

    /// Objects to send: those the service lacks, and those it has that the journal knows no
    /// digest of.
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
        let mut headers = self.authorized(&address).await?;
        let text = format!("sha-256=:{}:", STANDARD.encode(digest.0));
        if let Ok(value) = text.parse() {
            headers.insert("content-digest", value);
        }
        self.send(Method::PUT, &address, &Body::Bytes(bytes), headers)
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
                // Which objects are not this upload's is not known. As long as it is not complete all can be sent again.
                journal.restart()?;
                return Err(Error::Mixed(dataset.id));
            }
            Err(error) => return Err(error),
        };
        // Whether this was the last part, the second says, where there is one: it has each after the first has.
        let last = match self.second(dataset)? {
            Some(second) => &self.have_copied(second, part, &body).await?,
            None => &upload,
        };
        self.make_ready(part, last).await?;
        journal.finish();
        Ok(upload)
    }

    /// Whether the account's part, which is complete, is the upload of a manifest: to say so again changes
    /// nothing, and of another the service says that it is not.
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

    /// Has the second computation service copy the part from the first: it holds what it gets against the
    /// manifest that it is told here.
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

    /// Whether the second computation service of a dataset lacks the account's part, as where it was set back
    /// to before that was uploaded. None lacks it where the terms have no second one.
    ///
    /// # Errors
    /// [`Error::NoWitness`]; what the services refuse.
    pub async fn lacks_copy(&self, dataset: &Dataset) -> Result<bool, Error> {
        let Some(second) = self.second(dataset)? else {
            return Ok(false);
        };
        let part = UploadedPart {
            dataset: dataset.id,
            number: self.part_number(dataset).await?,
            of: dataset.terms.0.part_count(),
        };
        let address = format!("{second}/v1/datasets/{}", dataset.id);
        match self
            .json::<Upload>(Method::GET, &address, Body::Empty)
            .await
        {
            Ok(there) => Ok(!part.is_complete(&there)),
            Err(error) if error.kind() == Some(ProblemKind::NotFound) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Has the second computation service copy a part that it lacks, and the first has. What it may take is still
    /// what the holder says: what was kept of the upload, and nothing that the first says of it.
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

    /// Tells the generation service, if all parts are there.
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
    /// How many parts there will be.
    of: usize,
}

impl UploadedPart {
    fn is_complete(self, upload: &Upload) -> bool {
        let mut parts = upload.contributions.iter();
        parts.any(|part| part.number == self.number && part.state == UploadState::Complete)
    }

    /// Whether all parts are complete.
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

/// Encrypts objects on all cores; they come out in any order, no more of them waiting than can be
/// sent soon. Ends early when nobody receives any more.
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
            Records::Tally(pair_counts) => Content::Counts(pair_counts),
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
                // Nobody receives any more: there is nobody to tell.
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

    /// Before anything is sent: there is nobody at the address.
    #[tokio::test]
    async fn a_table_over_the_record_bound_is_refused() {
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
