//! Jobs: started, watched, cancelled, their results fetched.

use bytes::Bytes;
use fhaim_api::job::{Draw, Job, JobEvent, ModelView, ReleasedStatistic, TableFormat};
use futures_util::{Stream, StreamExt};
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use std::pin::Pin;
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use crate::client::Body;
use crate::{Client, Error};

impl Client {
    fn jobs_address(&self, rest: &str) -> String {
        format!("{}/v1/jobs/{rest}", self.endpoints().generation)
    }

    /// Starts a run over a dataset.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn run(&self, dataset: Uuid) -> Result<Job, Error> {
        let base = &self.endpoints().generation;
        let address = format!("{base}/v1/datasets/{dataset}/jobs");
        self.json(Method::POST, &address, Body::Empty).await
    }

    /// All jobs of a dataset, newest first.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn jobs(&self, dataset: Uuid) -> Result<Vec<Job>, Error> {
        let base = &self.endpoints().generation;
        self.list(&format!("{base}/v1/datasets/{dataset}/jobs"))
            .await
    }

    /// One job.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn job(&self, id: Uuid) -> Result<Job, Error> {
        let address = self.jobs_address(&id.to_string());
        self.json(Method::GET, &address, Body::Empty).await
    }

    /// Stops a job.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn cancel(&self, id: Uuid) -> Result<Job, Error> {
        let address = self.jobs_address(&format!("{id}/cancel"));
        self.json(Method::POST, &address, Body::Empty).await
    }

    /// Lets a failed job go on where it was.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn retry(&self, id: Uuid) -> Result<Job, Error> {
        let address = self.jobs_address(&format!("{id}/retry"));
        self.json(Method::POST, &address, Body::Empty).await
    }

    /// Everything the job released.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn releases(&self, id: Uuid) -> Result<Vec<ReleasedStatistic>, Error> {
        let address = self.jobs_address(&format!("{id}/releases"));
        self.json(Method::GET, &address, Body::Empty).await
    }

    /// The model of a finished job.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn model(&self, id: Uuid) -> Result<ModelView, Error> {
        let address = self.jobs_address(&format!("{id}/model"));
        self.json(Method::GET, &address, Body::Empty).await
    }

    /// Draws a synthetic table and writes it as it comes; the number of bytes.
    ///
    /// # Errors
    /// What the service refuses; a connection that breaks off; a writer that fails.
    pub async fn download(
        &self,
        id: Uuid,
        draw: &Draw,
        writer: &mut (dyn tokio::io::AsyncWrite + Send + Unpin),
    ) -> Result<u64, Error> {
        let address = self.jobs_address(&format!("{id}/synthetic{}", query(draw)));
        let mut response = self.call(Method::GET, &address, Body::Empty).await?;
        let mut bytes = 0;
        loop {
            let chunk = response.chunk().await;
            match chunk.map_err(|error| Error::unreachable(&address, error))? {
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

    /// A job's events from a number on, until it is over or the connection breaks.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn events(&self, id: Uuid, after: u64) -> Result<Events, Error> {
        let address = self.jobs_address(&format!("{id}/events"));
        let mut headers = HeaderMap::new();
        self.authorize(&mut headers, &self.token().await?, &address)?;
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert("last-event-id", HeaderValue::from(after));
        let response = self
            .send(Method::GET, &address, &Body::Empty, Some(headers))
            .await?;
        Ok(Events {
            address,
            bytes: Box::pin(response.bytes_stream()),
            text: Vec::new(),
        })
    }
}

fn query(draw: &Draw) -> String {
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

/// The events of a job as they come.
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
    /// The next event; `None` when the stream ends.
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

    /// The event of a block of lines; none for a comment.
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
