//! A batch is debited before it is decrypted. Covers a service that stops in between, and the cost of a page that
//! cannot be decrypted.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use bytes::Bytes;
use common::{OWNER, Place, terms};
use fhaim_api::Digest;
use fhaim_api::keys::{Decrypted, NewRun};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_crypto::decryption::{self, DecryptionCall};
use fhaim_crypto::keys::PublicPart;
use fhaim_crypto::{STEPS, State, keys, ledger};
use fhaim_domain::Table;
use fhaim_dp::Ladder;
use fhaim_he::{EvaluationKeys, PublicKey, SecretKey, UploadKey};
use fhaim_platform::Failure;
use fhaim_platform::store::Store;
use fhaim_platform::token::Peer;
use fhaim_protocol::computation::Computation;
use fhaim_protocol::crypto::judge::Rules;
use fhaim_protocol::crypto::{Digests, Judged, judge};
use fhaim_protocol::encryption::Encryptor;
use fhaim_protocol::holder::{self, Holder, HolderNoise};
use fhaim_protocol::joint::join_uploads;
use fhaim_protocol::request::{DatasetId, DecryptRequest, JobId};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::terms::Plan;
use fhaim_protocol::upload::UploadPlan;
use fhaim_protocol::window::Window;
use fhaim_release::{Holders, ReleaseRequest, Statistic};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::Arc;
use uuid::Uuid;

const JOB: Uuid = Uuid::from_u128(7);

/// A dataset of 40 records whose job has a run, with a computation service that has its upload.
struct Setting {
    place: Place,
    state: State,
    dataset: Uuid,
    plan: Plan,
    computation: Computation,
}

impl Setting {
    async fn new() -> Self {
        let place = Place::new().await;
        let state = place.open().await;
        let dataset = place.dataset(&state, 1).await;
        let stored = keys::find(&state, dataset).await.unwrap();
        let plan = terms(1).plan().unwrap();
        let params = plan.parameters().unwrap();
        let public = keys::part(&state, &stored, PublicPart::Public)
            .await
            .unwrap();
        let public = PublicKey::from_bytes(&params, &public).unwrap();
        let evaluation = keys::part(&state, &stored, PublicPart::Evaluation)
            .await
            .unwrap();
        let evaluation = EvaluationKeys::from_bytes(&params, &evaluation).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let columns = [2, 3].map(|n| (0..40).map(|i| i % n).collect());
        let table = Table::new(Arc::new(terms(1).schema), columns.to_vec()).unwrap();
        let ladder = Ladder::draw(plan.ladder().unwrap(), &mut rng);
        let upload =
            UploadPlan::for_table(table.domain(), 40, ladder.plan(), &plan.core.set).unwrap();
        let key = UploadKey::random(&params, &mut rng).unwrap();
        let encryptor = Encryptor::sole(&public, &key);
        let holder =
            Holder::new(&table, 600, HolderNoise::Drawn(&ladder), encryptor, upload).unwrap();
        let upload = holder::encrypt(&holder, &mut rng, &|| ()).unwrap();
        let holders = Holders::one();
        let upload = join_uploads(table.domain(), &holders, &evaluation, &[upload]).unwrap();
        let id = DatasetId(dataset.into_bytes());
        let domain = table.domain().clone();
        let setting = Self {
            computation: Computation::new(id, domain, public, evaluation, upload),
            place,
            state,
            dataset,
            plan,
        };
        let upload = Digest::of(b"manifest");
        decryption::begin(&setting.state, &setting.call(), &NewRun { upload })
            .await
            .unwrap();
        setting
    }

    fn call(&self) -> DecryptionCall {
        DecryptionCall {
            peer: Peer(Service::Computation),
            dataset: self.dataset,
            job: JOB,
            receipts: Vec::new(),
        }
    }

    /// Seals the first batch of the run: the number of records with noise of this variance.
    fn sealed(&self, variance_units: u64) -> DecryptRequest {
        let (dataset, job) = (
            DatasetId(self.dataset.into_bytes()),
            JobId(JOB.into_bytes()),
        );
        let window = Window::new(dataset, job, 0, self.plan.core.run_ladder);
        let release = ReleaseRequest {
            number: 0,
            statistic: Statistic::Total,
            variance_units,
        };
        let key = SealingKey::from_bytes(&[6; 32]).unwrap();
        self.computation
            .answer(&window, &[release], &key)
            .unwrap()
            .request
    }

    fn body(&self, request: &DecryptRequest) -> Bytes {
        let params = self.plan.parameters().unwrap();
        request.to_bytes(&params).into()
    }

    async fn decrypt(&self, request: &DecryptRequest) -> Result<Decrypted, Failure> {
        decryption::decrypt(&self.state, &self.call(), self.body(request)).await
    }

    /// Stores the debit of a request like a service that is killed before it decrypts, and starts the service again.
    async fn debit_and_restart(&mut self, request: &DecryptRequest) {
        let rules = Rules::new(DatasetId(self.dataset.into_bytes()), &self.plan.core);
        let store = Store::open(&self.place.config.common.database, &STEPS).await;
        let mut tx = store.unwrap().begin().await.unwrap();
        let mut chain_state = ledger::chain_state(&mut tx, self.dataset).await.unwrap();
        let mut job_ledger = ledger::job_ledger(&mut tx, &rules, request.job, 0)
            .await
            .unwrap();
        let digests = Digests {
            sent: Digest::of(&self.body(request)).0,
            witness: None,
        };
        let Judged::Granted(grant) = judge(&rules, &job_ledger, request, digests).unwrap() else {
            panic!("the request is not granted");
        };
        let link = job_ledger
            .debit(&mut chain_state, &grant, digests.sent)
            .unwrap();
        ledger::append(&mut tx, self.dataset, &link.unwrap(), None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        self.state = self.place.open().await;
    }

    /// Returns the number of debited releases of the ledger and their total cost.
    async fn spent(&self) -> (usize, String) {
        let shown = ledger::show(&self.state, self.dataset, OWNER, &[]).await;
        let shown = shown.unwrap();
        let spent = serde_json::to_value(&shown.spent).unwrap()["exact"].to_string();
        (shown.runs[0].entries.len(), spent)
    }
}

#[tokio::test]
async fn service_killed_between_debit_and_answer_releases_once() {
    let undisturbed = Setting::new().await;
    let released = undisturbed.decrypt(&undisturbed.sealed(1 << 16)).await;
    let cost = undisturbed.spent().await;
    assert_eq!((released.unwrap().answers.len(), cost.0), (1, 1));

    let mut setting = Setting::new().await;
    let request = setting.sealed(1 << 16);
    setting.debit_and_restart(&request).await;
    assert_eq!(setting.spent().await, cost, "the release is debited");
    let answers = setting.decrypt(&request).await.unwrap().answers;
    assert_eq!(setting.spent().await, cost, "the release is debited once");
    let again = setting.decrypt(&request).await.unwrap().answers;
    assert_eq!((again, setting.spent().await), (answers, cost));
}

#[tokio::test]
async fn request_other_than_the_debited_one_is_rejected() {
    let mut setting = Setting::new().await;
    let request = setting.sealed(1 << 16);
    setting.debit_and_restart(&request).await;
    let cost = setting.spent().await;
    // Other releases, and other bytes for the same releases.
    let other = setting.sealed(1 << 17);
    let mut changed = request.clone();
    changed.pages[0].ciphertexts = other.pages[0].ciphertexts.clone();
    for other in [other, changed] {
        let refused = setting.decrypt(&other).await.unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::Refused);
    }
    assert_eq!(setting.spent().await, cost);
    setting.decrypt(&request).await.unwrap();
}

#[tokio::test]
async fn page_that_is_too_noisy_is_debited() {
    let setting = Setting::new().await;
    let honest = setting.sealed(1 << 16);
    let params = setting.plan.parameters().unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let other = SecretKey::random(&params, &mut rng).unwrap();
    let other = other.public_key(&mut rng).unwrap();
    let mut noisy = honest.clone();
    noisy.pages[0].ciphertexts = other.encrypt(&[1], &mut rng).unwrap();
    let refused = setting.decrypt(&noisy).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Refused);
    assert_eq!(setting.spent().await.0, 1);
    let frozen = setting.decrypt(&honest).await.unwrap_err();
    assert_eq!(frozen.kind(), ProblemKind::Frozen);
    // The first answer had the noise of these releases, so they are not decrypted in another form.
    ledger::thaw(&setting.state, setting.dataset).await.unwrap();
    let refused = setting.decrypt(&honest).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Refused);
    assert_eq!(setting.spent().await.0, 1);
}
