//! A stand-in for the computation service with the same routes, which computes on plaintext.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use fhaim_api::Digest;
use fhaim_api::batch::{Batch, BatchStatus};
use fhaim_api::keys::Receipt;
use fhaim_api::problem::{MEDIA_TYPE, Problem, ProblemKind};
use fhaim_api::upload::{Contribution, Upload, UploadState, WireLayout};
use fhaim_domain::Table;
use fhaim_release::{ReleaseRequest, ReleaseSource};
use fhaim_synth::PlaintextSource;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// How the stand-in answers batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Releases after this number of looks.
    Release(u32),
    /// Never releases.
    Hang,
    /// Refuses.
    Refuse,
    /// Refuses because no run is left.
    WithoutRun,
    /// Answers with a problem.
    Problem(ProblemKind),
    /// Releases one number too few.
    Garble,
}

/// A requested batch.
#[derive(Clone, Debug)]
struct Asked {
    requests: Vec<ReleaseRequest>,
    looks: u32,
    /// Number of `PUT` calls.
    puts: usize,
    /// Receipts shown in the last `PUT` call.
    receipts: Vec<Receipt>,
}

struct Inner {
    table: Table,
    manner: Manner,
    uploads: BTreeSet<Uuid>,
    /// Datasets whose batches are never released.
    hanging: BTreeSet<Uuid>,
    /// The token of each call that deleted an upload, and its dataset.
    deleted: Vec<(Uuid, String)>,
    /// Keyed by job and number of the first release.
    asked: BTreeMap<(Uuid, u32), Asked>,
    /// Errors of the client.
    faults: Vec<String>,
}

/// The stand-in for the computation service.
#[derive(Clone)]
pub struct Computation {
    pub base: String,
    inner: Arc<Mutex<Inner>>,
}

impl Computation {
    pub async fn start(table: Table) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let computation = Self {
            base: format!("http://{}", listener.local_addr().unwrap()),
            inner: Arc::new(Mutex::new(Inner {
                table,
                manner: Manner::Release(1),
                uploads: BTreeSet::new(),
                hanging: BTreeSet::new(),
                deleted: Vec::new(),
                asked: BTreeMap::new(),
                faults: Vec::new(),
            })),
        };
        let routes = Router::new()
            .route("/v1/datasets/{dataset}", get(upload).delete(delete))
            .route(
                "/v1/datasets/{dataset}/jobs/{job}/batches/{first}",
                get(look).put(ask),
            )
            .with_state(computation.inner.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        computation
    }

    pub fn complete_upload(&self, dataset: Uuid) {
        self.inner.lock().unwrap().uploads.insert(dataset);
    }

    /// Never releases a batch of a dataset.
    pub fn hang(&self, dataset: Uuid) {
        self.inner.lock().unwrap().hanging.insert(dataset);
    }

    /// Returns the tokens of the calls that deleted an upload.
    pub fn deletions(&self, dataset: Uuid) -> Vec<String> {
        let inner = self.inner.lock().unwrap();
        let of_it = inner.deleted.iter().filter(|(other, _)| *other == dataset);
        of_it.map(|(_, token)| token.clone()).collect()
    }

    pub fn answer(&self, manner: Manner) {
        self.inner.lock().unwrap().manner = manner;
    }

    /// Returns the number of batches that a job asked for.
    pub fn batches(&self, job: Uuid) -> usize {
        let inner = self.inner.lock().unwrap();
        inner
            .asked
            .keys()
            .filter(|(other, _)| *other == job)
            .count()
    }

    /// Returns the numbers of `PUT` calls and of looks for each batch of a job.
    pub fn asks(&self, job: Uuid) -> Vec<(usize, u32)> {
        let inner = self.inner.lock().unwrap();
        let of_job = inner.asked.iter().filter(|((other, _), _)| *other == job);
        of_job.map(|(_, asked)| (asked.puts, asked.looks)).collect()
    }

    /// Returns the receipts that were shown with each batch of a job.
    pub fn receipts(&self, job: Uuid) -> Vec<Vec<Receipt>> {
        let inner = self.inner.lock().unwrap();
        let of_job = inner.asked.iter().filter(|((other, _), _)| *other == job);
        of_job.map(|(_, asked)| asked.receipts.clone()).collect()
    }

    /// Forgets all batches, like a service that is restored from a backup.
    pub fn forget(&self) {
        self.inner.lock().unwrap().asked.clear();
    }

    /// Panics if a client made an error.
    pub fn check(&self) {
        let inner = self.inner.lock().unwrap();
        assert!(inner.faults.is_empty(), "{:?}", inner.faults);
    }
}

fn problem(kind: ProblemKind) -> Response {
    let problem = Problem::new(kind);
    let status = StatusCode::from_u16(problem.status).unwrap();
    (status, [("content-type", MEDIA_TYPE)], Json(problem)).into_response()
}

/// Reports one missing object for an upload that is not complete.
async fn upload(State(inner): State<Arc<Mutex<Inner>>>, Path(dataset): Path<Uuid>) -> Response {
    let complete = inner.lock().unwrap().uploads.contains(&dataset);
    let contribution = Contribution {
        number: 0,
        chunks: [0, 1],
        columns: [0, 1],
        state: if complete {
            UploadState::Complete
        } else {
            UploadState::Open
        },
        objects_present: 4 + u64::from(complete),
        objects: 5,
        bytes_present: 0,
        object_bytes: 1,
    };
    let layout = Some(WireLayout {
        chunks: 1,
        stride: 2048,
    });
    let contributions = vec![contribution];
    Json(Upload {
        dataset,
        layout,
        contributions,
    })
    .into_response()
}

async fn delete(
    State(inner): State<Arc<Mutex<Inner>>>,
    Path(dataset): Path<Uuid>,
    headers: HeaderMap,
) -> StatusCode {
    let token = headers["authorization"].to_str().unwrap().to_owned();
    inner.lock().unwrap().deleted.push((dataset, token));
    StatusCode::NO_CONTENT
}

async fn ask(
    State(inner): State<Arc<Mutex<Inner>>>,
    Path((dataset, job, first)): Path<(Uuid, Uuid, u32)>,
    headers: HeaderMap,
    Json(batch): Json<Batch>,
) -> Response {
    let mut inner = inner.lock().unwrap();
    inner.check_token(&headers);
    if batch.requests.first().map(|request| request.number) != Some(first) {
        inner
            .faults
            .push(format!("a batch under a wrong number: {first}"));
    }
    let asked = inner.asked.entry((job, first)).or_insert_with(|| Asked {
        requests: batch.requests.clone(),
        looks: 0,
        puts: 0,
        receipts: Vec::new(),
    });
    asked.puts += 1;
    asked.receipts.clone_from(&batch.receipts);
    if asked.requests != batch.requests {
        inner
            .faults
            .push(format!("batch {first} was asked for with other requests"));
    }
    inner.status(dataset, job, first)
}

async fn look(
    State(inner): State<Arc<Mutex<Inner>>>,
    Path((dataset, job, first)): Path<(Uuid, Uuid, u32)>,
    headers: HeaderMap,
) -> Response {
    let mut inner = inner.lock().unwrap();
    inner.check_token(&headers);
    if !inner.asked.contains_key(&(job, first)) {
        return problem(ProblemKind::NotFound);
    }
    inner.status(dataset, job, first)
}

impl Inner {
    fn check_token(&mut self, headers: &HeaderMap) {
        if !headers.contains_key("authorization") {
            self.faults.push("a call without a token".to_owned());
        }
    }

    fn status(&mut self, dataset: Uuid, job: Uuid, first: u32) -> Response {
        let asked = self.asked.get_mut(&(job, first)).unwrap();
        asked.looks += 1;
        let (looks, requests) = (asked.looks, asked.requests.clone());
        let needed = match self.manner {
            Manner::Problem(kind) => return problem(kind),
            Manner::Refuse => {
                let reason = "the crypto service refused".to_owned();
                let without_run = false;
                let refused = BatchStatus::Refused {
                    reason,
                    without_run,
                };
                return Json(refused).into_response();
            }
            Manner::WithoutRun => {
                let reason = "the budget is spent".to_owned();
                let without_run = true;
                let refused = BatchStatus::Refused {
                    reason,
                    without_run,
                };
                return Json(refused).into_response();
            }
            _ if self.hanging.contains(&dataset) => u32::MAX,
            Manner::Hang => u32::MAX,
            Manner::Release(looks) => looks,
            Manner::Garble => 0,
        };
        if looks <= needed {
            let status = match looks {
                1 => BatchStatus::Queued,
                _ => BatchStatus::Running {
                    seconds: f64::from(looks),
                },
            };
            return (StatusCode::ACCEPTED, Json(status)).into_response();
        }
        let mut answers: Vec<Vec<i64>> = (requests.iter())
            .map(|request| release(&self.table, request))
            .collect();
        if self.manner == Manner::Garble {
            answers[0].pop();
        }
        // The stand-in has no ledger, so it returns the caller's receipt.
        let shown = self.asked[&(job, first)].receipts.first().cloned();
        Json(BatchStatus::Released {
            receipt: shown.unwrap_or_else(|| Receipt {
                dataset: Uuid::nil(),
                height: 1,
                head: Digest::of(b"head"),
                signature: String::new(),
            }),
            answers,
            compute_seconds: 0.1,
        })
        .into_response()
    }
}

/// Returns the same answer for the same release in every job.
fn release(table: &Table, request: &ReleaseRequest) -> Vec<i64> {
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(request.number));
    let mut first = request.clone();
    first.number = 0;
    let mut source = PlaintextSource::with_rng(table, &mut rng);
    source.release(&[first]).unwrap().remove(0)
}
