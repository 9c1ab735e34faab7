//! Jobs: starting, watching and cancelling them, and fetching their results.

use bytes::Bytes;
use fhaim_api::job::{
    Draw, Job, JobEvent, ModelView, NewJob, NewNote, ReleasedStatistic, TableFormat,
};
use fhaim_api::keys::Receipt;
use fhaim_api::problem::ProblemKind;
use futures_util::{Stream, StreamExt};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, Response};
use std::collections::HashSet;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use uuid::Uuid;

use crate::client::Body;
use crate::{Client, Error, List};

/// Time that a run waits for the crypto service before it starts without it.
const LEDGER_WAIT: Duration = Duration::from_secs(5);

/// Returns whether a crypto service gave no information about a ledger, rather than a contradiction.
fn is_away(error: &Error) -> bool {
    match error.kind() {
        Some(kind) => matches!(kind, ProblemKind::NotFound | ProblemKind::Unavailable),
        None => matches!(error, Error::Unreachable { .. } | Error::Answer { .. }),
    }
}

impl Client {
    fn jobs_address(&self, rest: &str) -> String {
        format!("{}/v1/jobs/{rest}", self.endpoints().generation)
    }

    /// Starts a run over a dataset, as a job with a new identifier. Store the identifier before the call. If the answer
    /// is lost, repeating the call starts and spends nothing more.
    ///
    /// # Errors
    /// [`Error::Restored`] if the crypto service was set back, and [`Error::ForgottenJob`] if the generation service
    /// was; then nothing is started. Also the errors of the services.
    pub async fn run(&self, dataset: Uuid, job: Uuid) -> Result<Job, Error> {
        // The other services check the crypto service against the receipt, as this program just did.
        let receipt = self.held_to_receipt(dataset).await?;
        self.check_forgotten(dataset, job).await?;
        let base = &self.endpoints().generation;
        let address = format!("{base}/v1/datasets/{dataset}/jobs/{job}");
        let body = Body::json(&NewJob { receipt });
        self.json(Method::PUT, &address, body).await
    }

    /// Checks the crypto service against the last receipt of a dataset's ledger, before more is spent, and returns the
    /// current receipt. If the service is away or does not know the ledger, returns the last receipt.
    async fn held_to_receipt(&self, dataset: Uuid) -> Result<Option<Receipt>, Error> {
        match timeout(LEDGER_WAIT, self.receipt(dataset)).await {
            Ok(Ok(receipt)) => Ok(Some(receipt)),
            Ok(Err(error)) if !is_away(&error) => Err(error),
            Ok(Err(_)) | Err(_) => Ok(self.receipts().load(dataset)),
        }
    }

    /// Checks that the generation service knows all jobs that have a run, unless `job` is one of them and continues with
    /// its run. A service that was set back has forgotten some, and another job would be paid for in addition.
    async fn check_forgotten(&self, dataset: Uuid, job: Uuid) -> Result<(), Error> {
        let Ok(Ok(ledger)) = timeout(LEDGER_WAIT, self.ledger(dataset)).await else {
            return Ok(()); // reported by the run itself
        };
        if ledger.runs.iter().any(|run| run.job == job) {
            return Ok(());
        }
        let List { items, damaged } = self.jobs(dataset).await?;
        let known: HashSet<Uuid> = items.iter().map(|job| job.id).chain(damaged).collect();
        match ledger.runs.iter().find(|run| !known.contains(&run.job)) {
            Some(run) => Err(Error::ForgottenJob {
                dataset,
                job: run.job,
            }),
            None => Ok(()),
        }
    }

    /// Returns all jobs of a dataset, newest first.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn jobs(&self, dataset: Uuid) -> Result<List<Job>, Error> {
        let base = &self.endpoints().generation;
        self.list(&format!("{base}/v1/datasets/{dataset}/jobs"))
            .await
    }

    /// Returns one job. Once the job has ended, this also stores the receipt of a ledger that contains its releases.
    /// Without it, a program that only runs, watches and downloads could not notice that all services were set back to
    /// before these releases.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn job(&self, id: Uuid) -> Result<Job, Error> {
        let address = self.jobs_address(&id.to_string());
        let job: Job = self.json(Method::GET, &address, Body::Empty).await?;
        if job.state.is_final() && job.releases > 0 {
            // A problem with the ledger does not change the job, and the next run reports it.
            let _ = timeout(LEDGER_WAIT, self.receipt(job.dataset)).await;
        }
        Ok(job)
    }

    /// Sets a job's note for the dataset's holders. An empty note removes it.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn annotate(&self, id: Uuid, note: &str) -> Result<Job, Error> {
        let body = Body::json(&NewNote {
            note: note.to_owned(),
        });
        let address = self.jobs_address(&format!("{id}/note"));
        self.json(Method::PUT, &address, body).await
    }

    /// Stops a job.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn cancel(&self, id: Uuid) -> Result<Job, Error> {
        let address = self.jobs_address(&format!("{id}/cancel"));
        self.json(Method::POST, &address, Body::Empty).await
    }

    /// Resumes a failed job.
    ///
    /// # Errors
    /// [`Error::Restored`] if the crypto service was set back; then nothing is resumed. Also the errors of the
    /// services.
    pub async fn retry(&self, id: Uuid) -> Result<Job, Error> {
        let job: Job = self
            .json(
                Method::GET,
                &self.jobs_address(&id.to_string()),
                Body::Empty,
            )
            .await?;
        self.held_to_receipt(job.dataset).await?;
        let address = self.jobs_address(&format!("{id}/retry"));
        self.json(Method::POST, &address, Body::Empty).await
    }

    /// Returns everything that the job released.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn releases(&self, id: Uuid) -> Result<Vec<ReleasedStatistic>, Error> {
        let address = self.jobs_address(&format!("{id}/releases"));
        self.json(Method::GET, &address, Body::Empty).await
    }

    /// Returns the model of a finished job.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn model(&self, id: Uuid) -> Result<ModelView, Error> {
        let address = self.jobs_address(&format!("{id}/model"));
        self.json(Method::GET, &address, Body::Empty).await
    }

    /// Writes the model of a finished job as it arrives: a file for `fhaim sample` and `fhaim-lab attack`. Returns the
    /// number of bytes.
    ///
    /// # Errors
    /// The errors of the service, a broken connection, or a failed write.
    pub async fn download_model(
        &self,
        id: Uuid,
        writer: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<u64, Error> {
        let address = self.jobs_address(&format!("{id}/model/file"));
        let response = self.call(Method::GET, &address, Body::Empty).await?;
        write(&address, response, writer).await
    }

    /// Draws a synthetic table and writes it as it arrives. Returns the number of bytes.
    ///
    /// # Errors
    /// The errors of the service, a broken connection, or a failed write.
    pub async fn download(
        &self,
        id: Uuid,
        draw: &Draw,
        writer: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<u64, Error> {
        let address = self.jobs_address(&format!("{id}/synthetic{}", query(draw)));
        let response = self.call(Method::GET, &address, Body::Empty).await?;
        let bytes = write(&address, response, writer).await?;
        // This stores the receipt. The table is already complete, so errors are ignored.
        let _ = self.job(id).await;
        Ok(bytes)
    }

    /// Returns a job's events after number `after`, until the job ends or the connection breaks.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn events(&self, id: Uuid, after: u64) -> Result<Events, Error> {
        let address = self.jobs_address(&format!("{id}/events"));
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert("last-event-id", HeaderValue::from(after));
        let response = self
            .call_with(Method::GET, &address, Body::Empty, &headers)
            .await?;
        Ok(Events {
            address,
            bytes: Box::pin(response.bytes_stream()),
            text: Vec::new(),
        })
    }
}

/// Writes an answer as it arrives, and returns the number of bytes.
pub(crate) async fn write(
    address: &str,
    mut response: Response,
    writer: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<u64, Error> {
    let mut bytes = 0;
    loop {
        let chunk = response.chunk().await;
        match chunk.map_err(|error| Error::unreachable(address, error))? {
            Some(chunk) => {
                bytes += chunk.len() as u64;
                writer.write_all(&chunk).await?;
            }
            None => break,
        }
    }
    writer.flush().await?;
    Ok(bytes)
}

/// Returns the query that requests a table.
pub(crate) fn query(draw: &Draw) -> String {
    let format = match draw.format {
        TableFormat::Csv => "csv",
        TableFormat::Parquet => "parquet",
    };
    let mut query = format!("?format={format}");
    if let Some(rows) = draw.rows {
        query.push_str(&format!("&rows={rows}"));
    }
    if let Some(seed) = draw.seed {
        query.push_str(&format!("&seed={seed}"));
    }
    if let Some(conditions) = &draw.r#where {
        query.push_str("&where=");
        for byte in conditions.bytes() {
            match byte {
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' => {
                    query.push(char::from(byte));
                }
                other => query.push_str(&format!("%{other:02X}")),
            }
        }
    }
    query
}

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, reqwest::Error>> + Send>>;

/// The events of a job as they arrive.
pub struct Events {
    address: String,
    bytes: Chunks,
    text: Vec<u8>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Events({})", self.address)
    }
}

impl Events {
    /// Returns the next event, or `None` when the stream ends.
    ///
    /// # Errors
    /// A connection that breaks, or an event that cannot be read.
    pub async fn next(&mut self) -> Result<Option<JobEvent>, Error> {
        loop {
            while let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.text.drain(..end + 2).collect();
                if let Some(event) = self.read(&event)? {
                    return Ok(Some(event));
                }
            }
            match self.bytes.next().await {
                Some(Ok(bytes)) => self.text.extend_from_slice(&bytes),
                Some(Err(error)) => return Err(Error::unreachable(&self.address, error)),
                None => return Ok(None),
            }
        }
    }

    /// Reads the event of a block of lines, or `None` for a comment.
    fn read(&self, block: &[u8]) -> Result<Option<JobEvent>, Error> {
        let data: Vec<&[u8]> = block
            .split(|&byte| byte == b'\n')
            .filter_map(|line| line.strip_prefix(b"data:"))
            .collect();
        if data.is_empty() {
            return Ok(None);
        }
        let event = serde_json::from_slice(&data.concat());
        event.map(Some).map_err(|error| Error::Answer {
            address: self.address.clone(),
            reason: error.to_string(),
        })
    }
}
