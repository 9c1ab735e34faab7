//! Datasets of several holders, from the view of the holders' accounts.

use crate::common::{Kind, Service, User, fresh, problem, read, terms};
use fhaim_api::dataset::{Dataset, NewDataset, WireTerms};
use fhaim_api::job::{Job, JobState};
use fhaim_api::keys::Receipt;
use fhaim_api::link::{Link, LinkMade};
use fhaim_api::{Digest, Page};
use fhaim_platform::program::Program;
use fhaim_protocol::crypto::chain::{ReceiptKey, Tip};
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::roster::{HolderSigningKey, Member, Partition, Roster};
use fhaim_protocol::terms::Terms;
use fhaim_release::MAX_HOLDERS;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use reqwest::{Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

over_both!(
    forged_receipt_replaces_no_other_holders_receipt,
    all_holders_manage_links_and_notes,
    roster_length_is_bounded,
);

/// Returns terms in which each of these accounts holds records.
fn of(accounts: &[Uuid]) -> Terms {
    let member = |(number, account): (u32, &Uuid)| Member {
        account: account.to_string(),
        columns: Vec::new(),
        record_bound: 1,
        key: HolderSigningKey::from_bytes(&[(number % 251) as u8 + 1; 32]).public(),
    };
    let roster = Roster {
        partition: Partition::Records,
        honest: 1,
        holders: (0..).zip(accounts).map(member).collect(),
    };
    Terms {
        roster: Some(roster),
        runs: 2,
        ..terms().choices()
    }
}

/// Returns a receipt of a height. Another `key` makes it a forgery.
fn receipt(dataset: Uuid, height: u64, key: u64) -> Receipt {
    let key = ReceiptKey::random(&mut ChaCha20Rng::seed_from_u64(key));
    let tip = Tip {
        height,
        head: Digest::of(b"head").0,
    };
    key.sign(DatasetId(dataset.into_bytes()), tip).into()
}

async fn new_job(user: &User<'_>, dataset: Uuid, receipt: &Receipt) -> Job {
    let path = fresh(&format!("/v1/datasets/{dataset}/jobs"));
    let made = user.put(&path, json!({ "receipt": receipt })).await;
    read(made, StatusCode::CREATED).await
}

/// Guards against a holder who claims to have seen more of the ledger than exists: its receipt must not
/// replace those of the other holders.
async fn forged_receipt_replaces_no_other_holders_receipt(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let eve = service.user("eve@x.example").await;
    let terms = of(&[ana.account.id, eve.account.id]);
    let dataset: Dataset = ana.new_dataset(terms).await;
    let ready = sqlx::query("UPDATE datasets SET state = 'ready'");
    ready
        .execute(service.state.base().store.pool())
        .await
        .unwrap();
    let forged = receipt(dataset.id, i64::MAX as u64, 2);
    let first = new_job(&eve, dataset.id, &forged).await;
    service.wait_done(&eve, first.id).await;
    let genuine = receipt(dataset.id, 3, 1);
    let second = new_job(&ana, dataset.id, &genuine).await;
    service.wait_done(&ana, second.id).await;
    let shown = service.computation.receipts(second.id);
    assert!(!shown.is_empty());
    for receipts in shown {
        assert_eq!(receipts, [genuine.clone(), forged.clone()]);
    }
    // The holder shows a later receipt and then an earlier one: the later one is kept.
    let later = receipt(dataset.id, 4, 1);
    for seen in [&later, &genuine] {
        let path = format!("/v1/datasets/{}/jobs/{}", dataset.id, second.id);
        let again = ana.put(&path, json!({ "receipt": seen })).await;
        assert!(again.status().is_success(), "{}", again.status());
    }
    let kept = sqlx::query_scalar::<_, String>("SELECT receipt FROM holders WHERE account = $1");
    let kept = kept.bind(ana.account.id.to_string());
    let kept = kept
        .fetch_one(service.state.base().store.pool())
        .await
        .unwrap();
    assert_eq!(serde_json::from_str::<Receipt>(&kept).unwrap(), later);
}

/// Any holder sees and revokes the links of the others and edits notes. Only the dataset's creator
/// renames it.
async fn all_holders_manage_links_and_notes(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let ben = service.user("ben@x.example").await;
    let terms = of(&[ana.account.id, ben.account.id]);
    let dataset: Dataset = ana.new_dataset(terms).await;
    let ready = sqlx::query("UPDATE datasets SET state = 'ready'");
    let pool = service.state.base().store.pool();
    ready.execute(pool).await.unwrap();
    let job = new_job(&ana, dataset.id, &receipt(dataset.id, 3, 1)).await;
    service.wait_done(&ana, job.id).await;
    let links = format!("/v1/jobs/{}/links", job.id);
    let made = ana.put(&fresh(&links), json!({ "name": "Carl" })).await;
    let made: LinkMade = read(made, StatusCode::CREATED).await;
    let seen: Page<Link> = ben.get(&links).await;
    assert_eq!(seen.items[0].id, made.link.id);
    let path = format!("{links}/{}", made.link.id);
    let revoked = ben.send(Method::DELETE, &path, None).await;
    assert_eq!(revoked.status(), StatusCode::NO_CONTENT);
    assert!(ana.get::<Page<Link>>(&links).await.items.is_empty());
    let note = format!("/v1/jobs/{}/note", job.id);
    let noted = ben.put(&note, json!({ "note": "ours" })).await;
    assert_eq!(read::<Job>(noted, StatusCode::OK).await.note, "ours");
    let name = format!("/v1/datasets/{}/name", dataset.id);
    problem(ben.put(&name, json!({ "name": "Ben's" })).await, 404).await;
}

impl Service {
    async fn wait_done(&self, user: &User<'_>, job: Uuid) {
        let done = user.wait_for(job, JobState::Done).await;
        assert_eq!(done.state, JobState::Done);
    }
}

/// A long roster is refused by its length, before its accounts are looked up.
async fn roster_length_is_bounded(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let accounts: Vec<Uuid> = std::iter::once(ana.account.id)
        .chain((1..=MAX_HOLDERS).map(|_| Uuid::new_v4()))
        .collect();
    let new = NewDataset {
        name: "t".to_owned(),
        terms: WireTerms(of(&accounts)),
    };
    let made = ana
        .put(&fresh("/v1/datasets"), serde_json::to_value(new).unwrap())
        .await;
    let refused = problem(made, 422).await;
    let words = refused.detail.unwrap();
    assert!(words.contains("at most 128 holders"), "{words}");
}
