//! Estimation: finds the marginals closest to the measurements.

use std::sync::OnceLock;
use std::time::Instant;

use fhaim_domain::{Clique, Domain};

use crate::calibration::{Blueprint, Calibration};
use crate::descent;
use crate::extra_pairs::ExtraPairs;
use crate::junction::{JunctionTree, ModelGraph};
use crate::measurement::check_clique;
use crate::model::{Model, Potentials};
use crate::observations::{Observations, ascending_cells, ranked};
use crate::options::FitOptions;
use crate::problem::Problem;
use crate::propagation;
use crate::resolution::{Folding, Resolution, shares};
use crate::table::cells;
use crate::{Error, Measurement};

/// Factor on the steps of a fit that is repeated from nothing because the first one ended too far
/// from its measurements.
const RESTART_STEPS: usize = 10;

/// Standard errors that repetitions add to the estimated total, one after the other.
///
/// Noise may make the estimate too small. Because counts are not negative, a total that is too
/// small leaves no room for the counts of other measurements. The loss includes the distance from
/// the estimate.
const RESTART_TOTALS: [f64; 4] = [0.0, 1.0, 2.0, 3.0];

/// Fits a model to measurements.
///
/// Among all distributions over `domain`, scaled to the total, that factor over the junction tree
/// of the measured cliques, the model's marginals minimise 0.5 * sum ||P(G(mu)) - y||^2 / sigma^2.
///
/// With `warm_start`, the search begins with that model's potentials of the cliques measured now.
/// If measurements were only added, this start is close to the earlier distribution. A model over
/// another domain is ignored.
///
/// Noise accounts for a loss of about half of the number of measured values. If a fit ends with a
/// loss above that number, it starts again from nothing with ten times the steps. If this does not
/// help, it tries totals up to three standard errors above the estimate.
///
/// # Errors
/// * the measurements do not fit the domain;
/// * a value or scale is not a usable number;
/// * the total is unknown;
/// * the model takes more than `max_bytes`;
/// * [`Error::Unexplained`]: every fit ended with a loss above the number of measured values.
pub fn fit(
    domain: &Domain,
    measurements: &[Measurement],
    options: &FitOptions,
    warm_start: Option<&Model>,
) -> Result<Model, Error> {
    check(domain, measurements, options)?;
    let total = total_of(measurements, options)?;
    let (first, _) = attempt(domain, measurements, options, total.count, warm_start)?;
    if first.report.is_explained() {
        return Ok(first);
    }
    let options = FitOptions {
        steps: options.steps.saturating_mul(RESTART_STEPS),
        ..options.clone()
    };
    let mut chain = first.report.chain;
    let mut closest: Option<(f64, Vec<usize>)> = None;
    for errors in RESTART_TOTALS {
        let count = total.count + errors * total.standard_error;
        if errors > 0.0 && count <= total.count {
            break;
        }
        let (mut model, attributes) = attempt(domain, measurements, &options, count, None)?;
        chain = chain.and(&model.report);
        if model.report.is_explained() {
            model.report.chain = chain;
            return Ok(model);
        }
        let loss = model.report.loss;
        if closest.as_ref().is_none_or(|(least, _)| loss < *least) {
            closest = Some((loss, attributes));
        }
    }
    let (loss, attributes) = closest.unwrap_or((first.report.loss, Vec::new()));
    Err(Error::Unexplained {
        loss,
        values: first.report.values,
        attributes,
    })
}

/// Fits a model like [`fit`], without repeating the fit. The model may be far from its
/// measurements.
///
/// # Errors
/// As [`fit`], except for [`Error::Unexplained`].
pub fn fit_once(
    domain: &Domain,
    measurements: &[Measurement],
    options: &FitOptions,
    warm_start: Option<&Model>,
) -> Result<Model, Error> {
    check(domain, measurements, options)?;
    let total = total_of(measurements, options)?;
    let (model, _) = attempt(domain, measurements, options, total.count, warm_start)?;
    Ok(model)
}

/// An estimated number of records.
struct Total {
    count: f64,
    standard_error: f64,
}

/// Returns the total of the options, or else its estimate.
fn total_of(measurements: &[Measurement], options: &FitOptions) -> Result<Total, Error> {
    match options.total {
        Some(count) => Ok(Total {
            count,
            standard_error: 0.0,
        }),
        None => estimate_total(measurements).ok_or(Error::UnknownTotal),
    }
}

/// Fits a model with `total` records once. Also returns the attributes of the cliques that differ
/// more from their measurements than noise accounts for.
fn attempt(
    domain: &Domain,
    measurements: &[Measurement],
    options: &FitOptions,
    total: f64,
    warm_start: Option<&Model>,
) -> Result<(Model, Vec<usize>), Error> {
    let started = Instant::now();
    let resolution = Resolution::new(domain, measurements);
    let measured: Vec<Clique> = measurements.iter().map(|m| m.clique.clone()).collect();
    let tree = junction_tree(resolution.domain(), &measured);
    check_size(
        resolution.domain(),
        &tree,
        &measured,
        (options.max_bytes, options.memory),
    )?;

    let observations = Observations::new(domain, &resolution, &tree, measurements, total);
    let start = match warm_start.filter(|model| model.domain == *domain) {
        Some(model) => warm_potentials(model, &resolution, &tree, &observations),
        None => vec![0.0; observations.cells()],
    };
    let axes: Vec<_> = (observations.cliques.iter())
        .map(|clique| ranked(clique, resolution.domain(), &tree))
        .collect();
    let blueprint = Blueprint {
        tree: &tree,
        sizes: resolution.domain().sizes(),
        axes: &axes,
    };
    let calibration = Calibration::new(blueprint, options);
    let folding = Folding::new(domain, &resolution, &observations.cliques);
    let (cliques, ranges) = (observations.cliques.clone(), observations.ranges.clone());
    let values = measurements.iter().map(|m| m.values.len()).sum();
    let mut problem = Problem::new(calibration, observations, folding, total, values);
    let (found, mut report) = descent::minimise(&mut problem, start, options)?;
    let furthest = problem.observations.furthest(&found.residuals);
    let tables = found.potentials;
    let (propagation, beliefs) = problem.into_tables(&tables);
    report.cells = propagation.cells();
    report.seconds = started.elapsed().as_secs_f64();
    let before = warm_start.map(|model| model.report.chain);
    report.chain = before.unwrap_or_default().and(&report);
    let potentials = Potentials {
        cliques,
        ranges,
        tables,
    };
    let model = Model {
        domain: domain.clone(),
        shares: category_shares(&resolution, &potentials),
        resolution,
        tree,
        propagation,
        beliefs,
        total,
        potentials,
        report,
        extra_pairs: ExtraPairs::default(),
        measured: OnceLock::new(),
        max_bytes: options.max_bytes,
    };
    Ok((model, furthest))
}

/// Returns each category's share of its group, for attributes whose categories are grouped.
pub(crate) fn category_shares(
    resolution: &Resolution,
    potentials: &Potentials,
) -> Vec<Option<Vec<f64>>> {
    (0..resolution.domain().len())
        .map(|a| {
            let groups = resolution.split(a)?;
            Some(shares(groups, potentials.of(&Clique::new([a]))))
        })
        .collect()
}

/// Returns the bytes that a model over `cliques` takes during a fit with the default memory of
/// steps. Returns `None` if the number does not fit `usize`, or a clique names an attribute that
/// the domain does not have.
///
/// This is slower than [`crate::model_cells`], which is meant for planning.
pub fn model_bytes(domain: &Domain, cliques: &[Clique]) -> Option<usize> {
    if cliques.iter().any(|c| check_clique(c, domain).is_err()) {
        return None;
    }
    let tree = junction_tree(domain, cliques);
    tree_bytes(domain, &tree, cliques, FitOptions::default().memory)
}

fn tree_bytes(
    domain: &Domain,
    tree: &JunctionTree,
    cliques: &[Clique],
    memory: usize,
) -> Option<usize> {
    let nodes = tree.nodes.iter().map(|node| node.clique());
    nodes
        .map(|clique| domain.cells(&clique))
        .sum::<Option<usize>>()?;
    let mut distinct: Vec<&Clique> = cliques.iter().filter(|c| !c.is_empty()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let axes: Vec<_> = distinct.iter().map(|c| ranked(c, domain, tree)).collect();
    let measured = axes.iter().map(|axes| cells(axes)).sum();
    propagation::bytes(tree, domain.sizes(), &axes)?.checked_add(descent::bytes(measured, memory)?)
}

/// Checks a model against a cap, for a fit that remembers `memory` steps. The error names the
/// largest clique, which should be coarsened.
pub(crate) fn check_size(
    domain: &Domain,
    tree: &JunctionTree,
    cliques: &[Clique],
    (cap, memory): (usize, usize),
) -> Result<(), Error> {
    let bytes = tree_bytes(domain, tree, cliques, memory);
    if bytes.is_some_and(|bytes| bytes <= cap) {
        return Ok(());
    }
    let nodes = tree.nodes.iter().map(|node| node.clique());
    let largest = nodes
        .max_by_key(|clique| domain.cells(clique).unwrap_or(usize::MAX))
        .unwrap_or_else(|| Clique::new([]));
    Err(Error::TooLarge {
        bytes,
        cap,
        cells: domain.cells(&largest),
        largest,
    })
}

pub(crate) fn junction_tree(domain: &Domain, cliques: &[Clique]) -> JunctionTree {
    let mut graph = ModelGraph::new(domain);
    cliques.iter().for_each(|clique| graph.add(clique));
    graph.junction_tree()
}

fn check(domain: &Domain, measurements: &[Measurement], options: &FitOptions) -> Result<(), Error> {
    if let Some(attribute) = domain.sizes().iter().position(|&size| size == 0) {
        return Err(Error::EmptyAttribute { attribute });
    }
    for (number, measurement) in measurements.iter().enumerate() {
        measurement.check(number, domain)?;
    }
    match options.total {
        Some(total) if !(total.is_normal() && total > 0.0) => return Err(Error::Total { total }),
        _ => {}
    }
    if !(options.tolerance >= 0.0 && options.tolerance.is_finite()) {
        return Err(Error::Option {
            option: "tolerance",
        });
    }
    Ok(())
}

/// Returns the inverse-variance estimate of the number of records, at least 1. The sum of the m
/// cells of a measurement without centred axes has variance m sigma^2. Returns `None` if there is
/// no such measurement.
fn estimate_total(measurements: &[Measurement]) -> Option<Total> {
    let (mut weights, mut sum) = (0.0, 0.0);
    for measurement in measurements.iter().filter(|m| m.sees_total()) {
        let cells = measurement.values.len() as f64;
        let weight = 1.0 / (cells * measurement.sigma * measurement.sigma);
        weights += weight;
        sum += weight * measurement.values.iter().sum::<f64>();
    }
    (weights > 0.0).then(|| Total {
        count: (sum / weights).max(1.0),
        standard_error: weights.sqrt().recip(),
    })
}

/// Converts an earlier model's potentials from its rank order and groups to those of `tree`.
/// Cliques without an earlier potential get zeros.
fn warm_potentials(
    model: &Model,
    resolution: &Resolution,
    tree: &JunctionTree,
    observations: &Observations,
) -> Vec<f64> {
    let mut potentials = vec![0.0; observations.cells()];
    for (clique, range) in observations.cliques.iter().zip(&observations.ranges) {
        let Some(earlier) = model.potentials.of(clique) else {
            continue;
        };
        let now = &mut potentials[range.clone()];
        let attributes = clique.attributes();
        if attributes.len() == 1 {
            // A single attribute's table is over categories, so its groups do not matter.
            now.copy_from_slice(earlier);
            continue;
        }
        let sizes = |resolution: &Resolution| -> Vec<usize> {
            let size = |&a: &usize| resolution.domain().size(a);
            attributes.iter().map(size).collect()
        };
        let (old_sizes, new_sizes) = (sizes(&model.resolution), sizes(resolution));
        let mut ascending = vec![0.0; earlier.len()];
        let places = ascending_cells(attributes, &old_sizes, &model.tree);
        for (&place, &x) in places.iter().zip(earlier) {
            ascending[place] = x;
        }
        let earlier_cells = earlier_cells(model, resolution, attributes, &old_sizes);
        let places = ascending_cells(attributes, &new_sizes, tree);
        for (x, &place) in now.iter_mut().zip(&places) {
            *x = ascending[earlier_cells[place]];
        }
    }
    potentials
}

/// For each cell of a table over groups of `resolution`, returns the cell of the same table over an
/// earlier model's groups that has a category of each of its groups. Both tables are row-major over
/// `attributes`; `old_sizes` are those of the earlier table.
fn earlier_cells(
    model: &Model,
    resolution: &Resolution,
    attributes: &[usize],
    old_sizes: &[usize],
) -> Vec<usize> {
    let mut cells = vec![0];
    for (&a, &size) in attributes.iter().zip(old_sizes) {
        let categories = resolution.representatives(a);
        let groups: Vec<usize> = (categories.into_iter())
            .map(|category| match model.resolution.split(a) {
                Some(groups) => groups[category] as usize,
                None => category,
            })
            .collect();
        cells = (cells.iter())
            .flat_map(|&cell| groups.iter().map(move |group| cell * size + group))
            .collect();
    }
    cells
}
