//! Results of a job: its releases and its model.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use fhaim_api::job::{Job, JobState, ModelView, OneWayView, ReleasedStatistic};
use fhaim_domain::{Clique, Schema};
use fhaim_platform::Failure;
use fhaim_platform::threads::blocking;
use fhaim_protocol::terms::Terms;
use fhaim_release::{Axis, ReleaseRequest, Statistic};
use fhaim_synth::{FittedModel, Marginals};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

use crate::attachment::attachment;
use crate::problem::Refusal;
use crate::store::{batches, datasets};
use crate::{State, jobs, models};

/// A release with its phase.
struct Released {
    phase: String,
    request: ReleaseRequest,
    values: Vec<i64>,
}

/// Returns all releases of a job so far, in order.
///
/// # Errors
/// No such job.
pub async fn releases(
    state: &State,
    owner: Uuid,
    job: Uuid,
) -> Result<Vec<ReleasedStatistic>, Failure> {
    let job = jobs::show(state, owner, job).await?;
    let terms = terms(state, job.dataset).await?;
    let released = released(state, job.id).await?;
    let itemised = blocking(move || {
        let job = terms.plan().map_err(Failure::internal)?.job;
        let item = |released| itemise(&terms.schema, &job, released);
        released.into_iter().map(item).collect()
    });
    itemised.await?
}

fn itemise(
    schema: &Schema,
    job: &fhaim_release::MechanismJob,
    released: Released,
) -> Result<ReleasedStatistic, Failure> {
    let Released {
        phase,
        request,
        values,
    } = released;
    let clique = request.statistic.clique();
    let columns = clique.attributes().iter();
    let names = columns.filter_map(|&a| Some(schema.columns().get(a)?.name().to_owned()));
    Ok(ReleasedStatistic {
        number: request.number,
        phase,
        attributes: names.collect(),
        variance_units: request.variance_units,
        sigma: (job.holders.fit_variance(request.variance_units) as f64).sqrt(),
        cost: request.cost(job).map_err(Failure::internal)?.into(),
        statistic: request.statistic,
        values,
    })
}

async fn terms(state: &State, dataset: Uuid) -> Result<Terms, Failure> {
    let terms = datasets::terms(&state.base.store, dataset).await?;
    terms.ok_or_else(Failure::not_found)
}

async fn released(state: &State, job: Uuid) -> Result<Vec<Released>, Failure> {
    let mut released = Vec::new();
    for batch in batches::answered(&state.base.store, job).await? {
        let pairs = batch.requests.into_iter().zip(batch.answers);
        released.extend(pairs.map(|(request, values)| Released {
            phase: batch.progress.phase.clone(),
            request,
            values,
        }));
    }
    Ok(released)
}

/// A finished job's model, with its job and terms.
pub struct Fitted {
    /// The job.
    pub job: Job,
    /// The dataset's terms.
    pub terms: Terms,
    /// The model.
    pub model: Arc<dyn FittedModel>,
}

fn check_done(job: &Job) -> Result<(), Refusal> {
    match job.state {
        JobState::Done => Ok(()),
        other => Err(Refusal::NoModel(other)),
    }
}

/// Returns the model of a job.
///
/// # Errors
/// The job is not done.
pub async fn fitted(state: &State, job: Job) -> Result<Fitted, Failure> {
    check_done(&job)?;
    let terms = terms(state, job.dataset).await?;
    let model = models::get(state, job.dataset, job.id, terms.model_bytes).await?;
    Ok(Fitted { job, terms, model })
}

/// Returns the model as a file for `fhaim sample` and `fhaim-lab attack`.
///
/// # Errors
/// No such job, or it is not done.
pub async fn file(state: &State, owner: Uuid, job: Uuid) -> Result<Response, Failure> {
    let job = jobs::show(state, owner, job).await?;
    check_done(&job)?;
    let dataset = crate::datasets::show(state, owner, job.dataset).await?;
    let (bytes, pieces) = models::stream(state, job.dataset, job.id).await?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        ),
        (header::CONTENT_LENGTH, HeaderValue::from(bytes)),
        (
            header::CONTENT_DISPOSITION,
            attachment(&dataset.name, ".model")?,
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Returns a view of the model for people.
///
/// # Errors
/// No such job; a job that is not done; a model without marginals.
pub async fn view(state: &State, owner: Uuid, job: Uuid) -> Result<ModelView, Failure> {
    let job = jobs::show(state, owner, job).await?;
    let Fitted { job, terms, model } = fitted(state, job).await?;
    let released = released(state, job.id).await?;
    blocking(move || model_view(&terms.schema, model.as_ref(), &released)).await?
}

fn model_view(
    schema: &Schema,
    model: &dyn FittedModel,
    released: &[Released],
) -> Result<ModelView, Failure> {
    let marginals = model.marginals().ok_or(Refusal::NoMarginals)?;
    let mut pairs = BTreeSet::new();
    for released in released {
        if let Statistic::Product(a, b) = &released.request.statistic {
            pairs.insert([a.attribute, b.attribute]);
        }
    }
    let one_way = |a| one_way(schema, (model.total(), marginals), released, a);
    let one_ways = (0..schema.columns().len()).map(one_way);
    Ok(ModelView {
        total: model.total(),
        attributes: (schema.columns().iter())
            .map(|column| column.name().to_owned())
            .collect(),
        measured_pairs: pairs.into_iter().collect(),
        cliques: marginals
            .cliques()
            .iter()
            .map(|c| c.attributes().to_vec())
            .collect(),
        one_ways: one_ways.collect::<Result<_, _>>()?,
        bytes: model.bytes(),
    })
}

fn one_way(
    schema: &Schema,
    (total, marginals): (f64, &dyn Marginals),
    released: &[Released],
    attribute: usize,
) -> Result<OneWayView, Failure> {
    let column = &schema.columns()[attribute];
    let fitted = marginals.marginal(&Clique::new([attribute]));
    let releases = released.iter().filter_map(|released| {
        let Statistic::OneWay(axis) = &released.request.statistic else {
            return None;
        };
        let counts =
            (axis.attribute == attribute).then(|| counts(axis, &released.values, total))?;
        Some((counts?, 1.0 / released.request.variance_units as f64))
    });
    Ok(OneWayView {
        // A schema's columns have at most 10,001 codes.
        labels: (0..column.size() as u32)
            .map(|code| column.label(code))
            .collect(),
        fitted: fitted.map_err(Failure::internal)?,
        measured: weighted_mean(releases),
    })
}

/// Returns the mean of counts, weighted; empty without counts.
fn weighted_mean(counts: impl Iterator<Item = (Vec<f64>, f64)>) -> Vec<f64> {
    let (mut mean, mut weights) = (Vec::new(), 0.0);
    for (counts, weight) in counts {
        weights += weight;
        if mean.is_empty() {
            mean = vec![0.0; counts.len()];
        }
        for (mean, count) in mean.iter_mut().zip(counts) {
            *mean += (count - *mean) * weight / weights;
        }
    }
    mean
}

/// Reconstructs the counts of an attribute's categories from its released functions, which are the
/// contrast of two categories, centred indicators or plain indicators (docs/MECHANISM.md, C).
/// `total` supplies the part that was not released. Returns `None` for other functions.
fn counts(axis: &Axis, values: &[i64], total: f64) -> Option<Vec<f64>> {
    let functions = &axis.functions;
    let categories = functions.first()?.len();
    if let [function] = functions.as_slice()
        && function.as_slice() == [1, -1]
        && let [difference] = values
    {
        let half = *difference as f64 / 2.0;
        return Some(vec![total / 2.0 + half, total / 2.0 - half]);
    }
    if functions.len() != categories || values.len() != categories {
        return None;
    }
    let is_diagonal = |own: i64, other: i64| {
        (functions.iter().enumerate()).all(|(f, function)| {
            let mut values = function.iter().enumerate();
            values.all(|(x, &value)| value == if x == f { own } else { other })
        })
    };
    let k = categories as i64;
    if is_diagonal(1, 0) {
        Some(values.iter().map(|&count| count as f64).collect())
    } else if is_diagonal(k - 1, -1) {
        // value = k * count - total
        let count = |&value: &i64| (value as f64 + total) / k as f64;
        Some(values.iter().map(count).collect())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_counts_are_reconstructed_from_every_kind_of_function() {
        let released = |functions: &[Vec<i64>], truth: &[i64]| {
            let axis = Axis {
                attribute: 0,
                functions: functions.to_vec(),
            };
            let value = |u: &Vec<i64>| u.iter().zip(truth).map(|(u, n)| u * n).sum();
            let values: Vec<i64> = functions.iter().map(value).collect();
            counts(&axis, &values, truth.iter().sum::<i64>() as f64)
        };
        let truth = [7.0, 11.0, 2.0];
        let plain = [vec![1, 0, 0], vec![0, 1, 0], vec![0, 0, 1]];
        let centred = [vec![2, -1, -1], vec![-1, 2, -1], vec![-1, -1, 2]];
        assert_eq!(released(&plain, &[7, 11, 2]).unwrap(), truth);
        assert_eq!(released(&centred, &[7, 11, 2]).unwrap(), truth);
        assert_eq!(released(&[vec![1, -1]], &[9, 4]).unwrap(), [9.0, 4.0]);
        assert_eq!(released(&[vec![1, 2, 3]], &[7, 11, 2]), None);
    }

    #[test]
    fn sigma_includes_the_noise_of_all_holders() {
        let schema: Schema = serde_json::from_str(
            r#"{"name":"t","columns":[{"name":"a","kind":"categorical","categories":["x","y"]}]}"#,
        )
        .unwrap();
        let sigma = |holders| {
            let rho = fhaim_dp::accounting::rho(1.0, 1e-9).unwrap();
            let mut job = fhaim_release::MechanismJob::new(schema.domain().clone(), rho, 100);
            job.holders = fhaim_release::Holders::of_records(holders, 1).unwrap();
            let released = Released {
                phase: String::new(),
                request: ReleaseRequest {
                    number: 0,
                    statistic: Statistic::Total,
                    variance_units: 25,
                },
                values: vec![100],
            };
            itemise(&schema, &job, released).unwrap().sigma
        };
        assert!((sigma(1) - 10.0).abs() < 1e-12);
        assert!((sigma(4) - 20.0).abs() < 1e-12);
    }

    #[test]
    fn repeated_measurements_are_weighted_by_precision() {
        let mean = weighted_mean([(vec![1.0, 0.0], 1.0), (vec![4.0, 3.0], 2.0)].into_iter());
        assert_eq!(mean, [3.0, 2.0]);
        assert!(weighted_mean(std::iter::empty()).is_empty());
    }
}
