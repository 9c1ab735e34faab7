//! Synthetic tables, drawn on request and streamed while they are drawn.
//!
//! Errors in a request are found before the first byte of the response, because the model is loaded
//! and conditioned first. Memory does not grow with the number of records: they are drawn in
//! blocks, a few ahead of the connection.

mod conditions;
mod parquet;
mod pipe;
mod places;

pub use places::Places;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use fhaim_api::job::{Draw, TableFormat};
use fhaim_domain::{Schema, WriteOptions, parse_conditions};
use fhaim_platform::Failure;
use fhaim_platform::threads::blocking;
use fhaim_synth::{Block, Blocks, FittedModel, sample_allowed};
use rand::rngs::OsRng;
use rand::{SeedableRng, TryRngCore};
use rand_chacha::ChaCha20Rng;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use self::pipe::Pipe;
use crate::attachment::attachment;
use crate::problem::Refusal;
use crate::results::Fitted;
use crate::{State, datasets, jobs, results};

const MAX_ROWS: u64 = 100_000_000;

/// Time that a request waits for other requests' tables.
const PATIENCE: Duration = Duration::from_secs(10);

/// Header with the seed of a table.
pub const SEED: &str = "fhaim-seed";

/// Header with the number of records of a table.
pub const ROWS: &str = "fhaim-rows";

/// Draws a synthetic table from the model of a holder's job.
///
/// # Errors
/// No such job, or it is not done; the errors of [`draw`].
pub async fn draw_own(
    state: &State,
    owner: Uuid,
    job: Uuid,
    wanted: Draw,
) -> Result<Response, Failure> {
    let job = jobs::show(state, owner, job).await?;
    let fitted = results::fitted(state, job).await?;
    let dataset = datasets::show(state, owner, fitted.job.dataset).await?;
    draw(state, owner, fitted, &dataset.name, wanted).await
}

/// Draws a synthetic table from a fitted model for an account; `name` is the dataset's name.
///
/// # Errors
/// Conditions that cannot be met; too many tables being drawn.
pub async fn draw(
    state: &State,
    account: Uuid,
    Fitted { terms, model, .. }: Fitted,
    name: &str,
    draw: Draw,
) -> Result<Response, Failure> {
    let place = tokio::time::timeout(PATIENCE, state.tables.take(account)).await;
    let place = place.map_err(|_| busy())??;
    let schema = Arc::new(terms.schema);
    let blocks = blocks(schema.clone(), model, &draw).await?;
    if draw.format == TableFormat::Parquet {
        parquet::check(&blocks).map_err(|error| Refusal::Format(error.to_string()))?;
    }
    let headers = headers(name, draw.format, &blocks)?;
    let (pipe, body) = pipe::pipe();
    spawn_blocking(move || {
        let _place = place;
        write(pipe, &schema, &blocks, draw.format);
    });
    Ok((headers, Body::from_stream(body)).into_response())
}

fn busy() -> Failure {
    let mut failure = Failure::unavailable("too many tables are being drawn; try again later");
    failure.problem.retry_after = Some(PATIENCE.as_secs());
    failure
}

/// Prepares the requested records without drawing any.
async fn blocks(
    schema: Arc<Schema>,
    model: Arc<dyn FittedModel>,
    draw: &Draw,
) -> Result<Blocks, Failure> {
    let rows = match draw.rows {
        Some(rows) if (1..=MAX_ROWS).contains(&rows) => rows,
        Some(_) => return Err(Refusal::Rows(MAX_ROWS).into()),
        None => (model.total().round() as u64).clamp(1, MAX_ROWS),
    };
    let seed = match draw.seed {
        Some(seed) => seed,
        None => OsRng.try_next_u64().map_err(Failure::internal)?,
    };
    let wanted = draw.r#where.as_deref().unwrap_or("");
    let conditions = parse_conditions(wanted, &schema);
    let conditions = conditions.map_err(Refusal::from)?;
    let model = if conditions.is_empty() {
        model
    } else {
        let given = blocking(move || {
            let given = model.conditions().map(|model| model.given(&conditions));
            (given, conditions)
        });
        let (given, conditions) = given.await?;
        let given = given.ok_or(Refusal::NoConditions)?;
        given.map_err(|error| conditions::explain(&error, &conditions, &schema))?
    };
    check_allowed(&schema, &model, wanted).await?;
    Ok(Blocks::new(schema, model, rows, seed))
}

/// Checks that the schema's constraints allow records of the model. An error found while the table
/// is sent would interrupt the response.
async fn check_allowed(
    schema: &Arc<Schema>,
    model: &Arc<dyn FittedModel>,
    wanted: &str,
) -> Result<(), Failure> {
    if schema.constraints().is_empty() {
        return Ok(());
    }
    let (schema, model) = (schema.clone(), model.clone());
    let one = move || {
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        sample_allowed(model.as_ref(), &schema, 1, &mut rng).map(drop)
    };
    let drawn = blocking(one).await?;
    Ok(drawn.map_err(|error| match wanted {
        "" => Refusal::Format(error.to_string()),
        _ => Refusal::Excluded(wanted.to_owned()),
    })?)
}

fn headers(
    name: &str,
    format: TableFormat,
    blocks: &Blocks,
) -> Result<[(&'static str, HeaderValue); 5], Failure> {
    let (media, extension) = match format {
        TableFormat::Csv => ("text/csv; charset=utf-8", "csv"),
        TableFormat::Parquet => ("application/vnd.apache.parquet", "parquet"),
    };
    Ok([
        (
            header::CONTENT_TYPE.as_str(),
            HeaderValue::from_static(media),
        ),
        (
            header::CONTENT_DISPOSITION.as_str(),
            attachment(name, &format!("-synthetic.{extension}"))?,
        ),
        (
            header::CACHE_CONTROL.as_str(),
            HeaderValue::from_static("no-store"),
        ),
        (SEED, HeaderValue::from(blocks.seed())),
        (ROWS, HeaderValue::from(blocks.rows())),
    ])
}

/// Draws a table into a pipe. An error breaks the pipe and the connection, so that the client does
/// not mistake an incomplete table for a complete one.
fn write(mut pipe: Pipe, schema: &Schema, blocks: &Blocks, format: TableFormat) {
    let written = match format {
        TableFormat::Csv => write_blocks(&mut pipe, blocks),
        TableFormat::Parquet => parquet::write(&mut pipe, schema, blocks),
    };
    match written.and_then(|()| pipe.finish()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            tracing::debug!("the client stopped reading a synthetic table");
        }
        Err(error) => tracing::error!(%error, "writing a synthetic table failed"),
    }
}

/// Writes blocks as CSV, the first with a header.
fn write_blocks(pipe: &mut Pipe, blocks: &Blocks) -> io::Result<()> {
    let options = WriteOptions::new("synthetic.csv");
    let written = blocks.each(
        |mut block: Block| Ok(block.csv(&options)?),
        |text| Ok(pipe.write_all(&text)?),
    );
    written.map_err(Failed::into_io)
}

/// An error while a table is drawn.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Draw(#[from] fhaim_synth::Error),
    #[error(transparent)]
    Table(#[from] fhaim_domain::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Failed {
    /// Returns the pipe's own error, or wraps another error so that it breaks the pipe.
    fn into_io(self) -> io::Error {
        match self {
            Self::Io(source) | Self::Table(fhaim_domain::Error::Io { source, .. }) => source,
            other => io::Error::other(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Domain;
    use rand::RngCore;

    /// A model whose records are all red and new.
    #[derive(Debug)]
    struct Red(Domain);

    impl FittedModel for Red {
        fn domain(&self) -> &Domain {
            &self.0
        }

        fn total(&self) -> f64 {
            10.0
        }

        fn bytes(&self) -> usize {
            0
        }

        fn sample(&self, records: usize, _: &mut dyn RngCore) -> Vec<Vec<u32>> {
            vec![vec![0; records], vec![1; records]]
        }

        fn save(&self) -> Vec<u8> {
            Vec::new()
        }
    }

    /// Guards against a table that breaks off after its first line.
    #[tokio::test]
    async fn draw_that_constraints_exclude_is_rejected_before_the_table_begins() {
        let of = |constraints: &str| {
            let json = format!(
                r#"{{"name": "t", "columns": [
                {{"name": "c", "kind": "categorical", "categories": ["red", "green"]}},
                {{"name": "y", "kind": "categorical", "categories": ["old", "new"]}}]
                {constraints}}}"#
            );
            Arc::new(Schema::from_json("t", json.as_bytes()).unwrap())
        };
        let never = of(r#", "constraints": [{"never": {"c": "red", "y": "new"}}]"#);
        let model: Arc<dyn FittedModel> = Arc::new(Red(never.domain().clone()));
        check_allowed(&of(""), &model, "c=red").await.unwrap();
        for (wanted, words) in [("c=red", "c=red"), ("", "constraints allow 0")] {
            let refused = check_allowed(&never, &model, wanted).await.unwrap_err();
            let text = refused.problem.to_string();
            assert!(text.contains(words), "{text}");
        }
        let wanted = Draw {
            rows: Some(3),
            seed: Some(1),
            format: TableFormat::Csv,
            r#where: None,
        };
        let refused = blocks(never, model, &wanted).await.err().unwrap();
        let text = refused.problem.to_string();
        assert!(text.contains("constraints allow 0"), "{text}");
    }
}
