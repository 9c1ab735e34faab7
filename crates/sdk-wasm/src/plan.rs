//! Plans of uploads, made before encryption.

use fhaim_domain::Schema;
use fhaim_dp::{Rho, accounting};
use fhaim_he::Layout;
use fhaim_protocol::holder::check_records;
use fhaim_protocol::part::PartPlan;
use fhaim_protocol::roster::ContributionKind;
use fhaim_protocol::terms::{Plan, Terms};
use fhaim_release::{Generator, ReleaseRequest, Statistic, UNIT_VARIANCE};
use fhaim_synth::{MechanismName, MechanismStep, Mechanisms};
use serde::Serialize;

use crate::Error;

/// The plan of a sole holder's upload, and the consequences of its terms.
#[derive(Debug, Serialize)]
pub(crate) struct Planned {
    /// Number of the encryption parameter set.
    parameter_set: u8,
    /// The whole budget, as a number.
    rho: f64,
    /// The whole budget as a count of 2^-80.
    budget: Rho,
    /// One run's share of the budget.
    run_rho: f64,
    /// The layout, by which an upload reveals the number of records; `null` for counts.
    layout: Option<Told>,
    /// Names of all objects, in the order of the upload.
    objects: Vec<String>,
    /// Size of all objects in bytes.
    bytes: u64,
    /// Standard deviation of the noise on each count of the first batch, by attribute; `null` without noise.
    sigmas: Vec<Option<f64>>,
}

/// A layout, in the form that the computation service receives.
#[derive(Debug, Serialize)]
struct Told {
    chunks: usize,
    stride: usize,
}

impl Planned {
    pub(crate) fn of(terms: &Terms, records: usize) -> Result<Self, Error> {
        check_records(records, terms.record_bound)?;
        let terms = &terms.clone().complete(&Mechanisms)?;
        let plan = terms.plan()?;
        let layout = layout(terms, records)?;
        let upload = part_plan(terms, records)?;
        Ok(Self {
            parameter_set: plan.core.set.id,
            rho: plan.core.budget.to_f64(),
            budget: plan.core.budget,
            run_rho: plan.job.rho.to_f64(),
            layout: layout.map(|layout| Told {
                chunks: layout.chunks(),
                stride: layout.stride(),
            }),
            objects: upload
                .objects()
                .iter()
                .map(|object| object.name())
                .collect(),
            bytes: upload.bytes(&plan.parameters()?),
            sigmas: first_sigmas(terms, &plan)?,
        })
    }
}

/// Rejects uploads that only the command can make. The command compares the keys with the confirmations of all key
/// services, and fetches the upload key of a holder of a roster.
fn check_uploadable(terms: &Terms) -> Result<(), Error> {
    let reason = if terms.roster.is_some() {
        "this dataset has several holders"
    } else if !terms.key_services.is_empty() {
        "this dataset has a key that several services share"
    } else {
        return Ok(());
    };
    let refused = format!("{reason}: upload to it with `fhaim dataset upload`");
    Err(fhaim_protocol::Error::Terms(refused).into())
}

/// A holder's part of a dataset.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    schema: Schema,
    record_bound: u64,
}

impl Part {
    pub(crate) fn of(terms: &Terms, part: u32) -> Result<Self, Error> {
        let (schema, record_bound) = terms.part_schema(part)?;
        Ok(Self {
            schema,
            record_bound,
        })
    }
}

/// Completes new terms with everything that their holder leaves to the program, as the command does.
///
/// # Errors
/// An unknown mechanism, or terms that cannot be met.
pub(crate) fn named(terms: Terms) -> Result<Terms, Error> {
    Ok(terms.complete(&Mechanisms)?)
}

/// A mechanism to choose from.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    /// Its name in terms.
    name: &'static str,
    /// A short description for the choice.
    label: &'static str,
    /// A line on how it works.
    about: &'static str,
}

/// Returns the mechanisms that run under encryption, the default first.
pub(crate) fn mechanisms() -> Vec<Listed> {
    let listed = |mechanism: MechanismName| Listed {
        name: mechanism.as_str(),
        label: mechanism.label(),
        about: mechanism.about(),
    };
    MechanismName::encrypted().map(listed).collect()
}

/// The total cost of several uses of the same records.
#[derive(Debug, Serialize)]
pub(crate) struct Composed {
    rho: f64,
    epsilon: f64,
}

impl Composed {
    pub(crate) fn of(costs: &[Rho], delta: f64) -> Result<Self, Error> {
        let sum = Rho::checked_sum(costs.iter().copied());
        let rho = sum.ok_or(Error::Order("the total cost exceeds every possible budget"))?;
        let epsilon = accounting::epsilon(rho, delta).map_err(fhaim_protocol::Error::from)?;
        let rho = rho.to_f64();
        Ok(Self { rho, epsilon })
    }
}

/// Returns the layout by which an upload reveals the number of records, or `None` for counts.
fn layout(terms: &Terms, records: usize) -> Result<Option<Layout>, Error> {
    if terms.contribution == ContributionKind::Counts {
        return Ok(None);
    }
    let layout = Layout::for_records(records).map_err(fhaim_protocol::Error::from)?;
    Ok(Some(layout))
}

/// Returns the plan of an upload of a sole holder's table with `records` records.
pub(crate) fn part_plan(terms: &Terms, records: usize) -> Result<PartPlan, Error> {
    check_uploadable(terms)?;
    Ok(terms.part_plan(0, layout(terms, records)?)?)
}

/// Returns the noise of the first batch, which every mechanism spends on single columns. Nothing is released: the
/// mechanism only returns its requests.
fn first_sigmas(terms: &Terms, plan: &Plan) -> Result<Vec<Option<f64>>, Error> {
    let mut sigmas = vec![None; plan.job.domain.len()];
    let machine = Mechanisms.start(terms.choice(), plan.job.clone());
    let mut machine = machine.map_err(fhaim_protocol::Error::Mechanism)?;
    if let MechanismStep::Release(requests) = machine.step(&[])? {
        for request in &requests {
            if let Some((attribute, sigma)) = one_way_sigma(request)
                && let Some(place) = sigmas.get_mut(attribute)
            {
                *place = Some(sigma);
            }
        }
    }
    Ok(sigmas)
}

/// Returns the noise on a 1-way's counts. For a scaled and shifted indicator, this is the noise divided by the scale.
fn one_way_sigma(request: &ReleaseRequest) -> Option<(usize, f64)> {
    let Statistic::OneWay(axis) = &request.statistic else {
        return None;
    };
    let function = axis.functions.first()?;
    let scale = function.iter().max()? - function.iter().min()?;
    let sigma = (UNIT_VARIANCE as f64 * request.variance_units as f64).sqrt();
    (scale > 0).then(|| (axis.attribute, sigma / scale as f64))
}
