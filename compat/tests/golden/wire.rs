//! JSON bodies that holders, programs and services exchange, and those that services store.

use crate::files::{golden, json, refuses_unknown_fields, text};
use crate::history::receipt;
use crate::request::releases;
use crate::terms::terms;
use fhaim_api::account::{Credentials, KeyExchange, NewApiKey, Refresh, Secret, Session};
use fhaim_api::batch::{Batch, BatchStatus};
use fhaim_api::dataset::{Dataset, DatasetState, NewDataset, WireTerms};
use fhaim_api::job::{Happening, Job, JobProgress, JobState, NewJob};
use fhaim_api::keys::{
    DatasetLedger, DebitedByServices, DebitedRelease, DebitedReleases, Decrypted, KeySet,
    LedgerEntry, NewKeySet, NewRun, PlacedRelease, Receipt, ReleasedBatch, RunStanding, Witnessed,
};
use fhaim_api::problem::{Problem, ProblemKind};
use fhaim_api::token::{Claims, Role, Service};
use fhaim_api::upload::{
    Complete, Contribution, Listing, Missing, NewUpload, Upload, UploadState, WireLayout,
};
use fhaim_api::{Cost, Digest};
use fhaim_dp::Rho;
use fhaim_protocol::committee::ServiceSigningKey;
use fhaim_sdk::{Endpoints, Login};
use time::OffsetDateTime;
use uuid::Uuid;

pub const DATASET: Uuid = Uuid::from_bytes([0xd5; 16]);
const JOB: Uuid = Uuid::from_bytes([0x0b; 16]);
const LAYOUT: WireLayout = WireLayout {
    chunks: 2,
    stride: 4096,
};

fn secret(text: &str) -> Secret {
    Secret(text.to_owned())
}

fn wire_terms() -> WireTerms {
    WireTerms(terms("staged"))
}

fn time() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_795_000_000).unwrap()
}

fn cost() -> Cost {
    Rho::ratio_up(1, 3).unwrap().into()
}

fn progress() -> JobProgress {
    JobProgress {
        phase: "pair contrasts".to_owned(),
        round: 2,
        rounds: 5,
    }
}

#[test]
fn account_messages_are_unchanged() {
    text(
        "credentials.json",
        &Credentials {
            email: "ana@hospital.example".to_owned(),
            password: secret("a long password"),
        },
    );
    text(
        "session.json",
        &Session {
            access_token: secret("a.b.c"),
            witness_token: None,
            computation_token: secret("d.e.f"),
            crypto_token: secret("g.h.i"),
            expires_in: 600,
            refresh_token: Some(secret("r")),
        },
    );
    let refresh_token = secret("r");
    text("refresh.json", &Refresh { refresh_token });
    let api_key = secret("k");
    text("key-exchange.json", &KeyExchange { api_key });
    let name = "a program".to_owned();
    text("new-api-key.json", &NewApiKey { name });
    let claims = Claims {
        iss: Service::Generation,
        aud: vec![Service::Computation, Service::Crypto],
        role: Role::User,
        sub: Some(DATASET),
        dataset: None,
        epoch: Some(3),
        by_key: false,
        iat: 1_795_000_000,
        exp: 1_795_000_600,
        jti: JOB,
    };
    json("claims.json", &claims);
}

/// `fhaim account login` stores the endpoints and one of the two kinds of login.
#[test]
fn stored_logins_are_unchanged() {
    let endpoints = Endpoints::behind("https://fhaim.example/");
    json("endpoints.witness.json", &endpoints);
    let without = Endpoints {
        witness: None,
        ..endpoints
    };
    json("endpoints.json", &without);
    text("login.refresh.json", &Login::Refresh(secret("r")));
    text("login.api-key.json", &Login::ApiKey(secret("k")));
}

#[test]
fn dataset_messages_are_unchanged() {
    let name = "people".to_owned();
    let terms = wire_terms();
    text("new-dataset.json", &NewDataset { name, terms });
    refuses_unknown_fields::<NewDataset>("new-dataset.json");
    text(
        "dataset.json",
        &Dataset {
            id: DATASET,
            name: "people".to_owned(),
            terms: wire_terms(),
            state: DatasetState::Ready,
            budget: cost(),
            runs_left: 2,
            holders: Vec::new(),
            created_at: time(),
        },
    );
}

#[test]
fn upload_messages_are_unchanged() {
    let new = NewUpload {
        terms: wire_terms(),
        layout: Some(LAYOUT),
    };
    json("new-upload.json", &new);
    refuses_unknown_fields::<NewUpload>("new-upload.json");
    let contribution = Contribution {
        number: 0,
        chunks: [0, 2],
        columns: [0, 26],
        state: UploadState::Open,
        objects_present: 7,
        objects: 64,
        bytes_present: 1 << 40,
        object_bytes: 245_784,
    };
    let upload = Upload {
        dataset: DATASET,
        layout: Some(LAYOUT),
        contributions: vec![contribution],
    };
    json("upload.json", &upload);
    let objects = vec!["column/12/3".to_owned(), "noise/0/4/1".to_owned()];
    let listed = objects
        .iter()
        .map(|name| (name.clone(), Digest::of(name.as_bytes())));
    let listing = Listing {
        objects: listed.collect(),
    };
    json("listing.json", &listing);
    refuses_unknown_fields::<Listing>("listing.json");
    let witnessed = Witnessed {
        asked: Digest::of(b"asked"),
        request: Digest::of(b"request"),
    };
    json("witnessed.json", &witnessed);
    refuses_unknown_fields::<Witnessed>("witnessed.json");
    json("missing.json", &Missing { objects });
    let manifest = Digest::of(b"manifest");
    json("complete.json", &Complete { manifest });
    refuses_unknown_fields::<Complete>("complete.json");
}

#[test]
fn job_messages_are_unchanged() {
    text(
        "job.json",
        &Job {
            note: String::new(),
            id: JOB,
            dataset: DATASET,
            state: JobState::Running,
            progress: Some(progress()),
            releases: 17,
            spent: cost(),
            attempts: 1,
            error: None,
            created_at: time(),
            updated_at: time(),
        },
    );
    let happenings = vec![
        Happening::State {
            state: JobState::Failed,
            error: Some("why".to_owned()),
        },
        Happening::Phase {
            progress: progress(),
            releases: 17,
        },
        Happening::Computing { seconds: 1.5 },
        Happening::Released {
            releases: 18,
            cells: 40,
            spent: cost(),
        },
    ];
    json("happenings.json", &happenings);
    json(
        "new-job.json",
        &NewJob {
            receipt: Some(receipt()),
        },
    );
    refuses_unknown_fields::<NewJob>("new-job.json");
}

#[test]
fn batch_messages_are_unchanged() {
    let batch = Batch {
        requests: releases(),
        receipts: Vec::new(),
        again: false,
    };
    json("batch.json", &batch);
    refuses_unknown_fields::<Batch>("batch.json");
    let with_receipts = Batch {
        receipts: vec![receipt(), receipt()],
        again: true,
        ..batch
    };
    json("batch.receipts.json", &with_receipts);
    let released = || BatchStatus::Released {
        answers: vec![vec![3], vec![-1, i64::MAX]],
        compute_seconds: 0.25,
        receipt: receipt(),
    };
    let reason = "why".to_owned();
    let statuses = vec![
        BatchStatus::Queued,
        BatchStatus::Running { seconds: 1.5 },
        BatchStatus::Waiting {
            reason: reason.clone(),
        },
        released(),
        BatchStatus::Refused {
            reason,
            without_run: false,
        },
    ];
    json("batch-statuses.json", &statuses);
    json("batch-status.json", &released());
}

#[test]
fn problem_documents_are_unchanged() {
    let mut problem = Problem::new(ProblemKind::BudgetSpent).with_detail("why");
    problem.request_id = Some("r".to_owned());
    problem.retry_after = Some(3);
    json("problem.json", &problem);
    let later = [ProblemKind::Frozen, ProblemKind::Restored].map(Problem::new);
    json("problems.json", &later.to_vec());
}

#[test]
fn key_messages_are_unchanged() {
    let terms = wire_terms();
    json(
        "new-key-set.json",
        &NewKeySet {
            terms,
            voucher: None,
        },
    );
    refuses_unknown_fields::<NewKeySet>("new-key-set.json");
    let set = KeySet {
        dataset: DATASET,
        terms: wire_terms(),
        parameter_set: 1,
        public_key: Digest::of(b"public"),
        evaluation_keys: Digest::of(b"evaluation"),
        budget: cost(),
        spent: cost(),
        runs_begun: 1,
        receipt_key: "a2V5".to_owned(),
        receipt: receipt(),
        holders: Vec::new(),
        confirmation: None,
        created_at: time(),
    };
    json("key-set.json", &set);
    let answers = vec![vec![3], vec![-1, i64::MIN]];
    let decrypted = Decrypted {
        answers,
        receipt: receipt(),
    };
    json("decrypted.json", &decrypted);
    let upload = Digest::of(b"upload");
    json("new-run.json", &NewRun { upload });
    refuses_unknown_fields::<NewRun>("new-run.json");
    let release = PlacedRelease {
        cells: 12,
        statement: Digest::of(b"statement"),
    };
    let standing = RunStanding {
        run: 2,
        releases: vec![release],
        receipt: receipt(),
    };
    json("run-standing.json", &standing);
    let ledger = DatasetLedger {
        dataset: DATASET,
        budget: cost(),
        spent: cost(),
        unclaimed: cost(),
        runs: Vec::new(),
        frozen: Some("why".to_owned()),
        receipt: receipt(),
    };
    text("dataset-ledger.json", &ledger);
}

#[test]
fn released_batch_is_unchanged() {
    let batch = ReleasedBatch {
        height: 7,
        job: JOB,
        run: 1,
        entries: Vec::new(),
        requests: releases(),
        answers: vec![vec![-3, 5], vec![i64::MIN]],
    };
    text("released-batch.json", &batch);
}

#[test]
fn ledger_entry_is_unchanged() {
    let entry = LedgerEntry {
        height: 2,
        act: "{\"act\":\"thawed\"}".to_owned(),
    };
    json("ledger-entry.json", &entry);
    refuses_unknown_fields::<LedgerEntry>("ledger-entry.json");
}

/// The signed bytes are part of the format.
#[test]
fn signed_debited_releases_are_unchanged() {
    let release = DebitedRelease {
        job: JOB,
        number: 3,
        statement: Digest::of(b"statement"),
    };
    let debited = DebitedReleases::sign(
        DATASET,
        vec![release],
        &ServiceSigningKey::from_bytes(&[2; 32]),
    );
    let all = DebitedByServices {
        services: vec![debited],
    };
    json("debited.json", &all);
    refuses_unknown_fields::<DebitedByServices>("debited.json");
}

#[test]
fn receipts_in_json_and_in_headers_are_unchanged() {
    json("receipt.json", &receipt());
    refuses_unknown_fields::<Receipt>("receipt.json");
    let made = || receipt().to_header().into_bytes();
    let header = golden("receipt.header", made);
    assert_eq!(Receipt::from_header(&header), Some(receipt()));
    assert_eq!(receipt().to_header().as_bytes(), header);
    for length in 0..header.len() {
        assert_eq!(Receipt::from_header(&header[..length]), None);
    }
}
