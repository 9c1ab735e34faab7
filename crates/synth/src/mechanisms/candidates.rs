//! Candidates of the adaptive mechanisms: cliques that may be measured next, their weights, and a
//! filter for those that still fit into the model.

use fhaim_domain::{Clique, Digit, Domain};
use fhaim_pgm::{Measurement, ModelGraph};

use super::digits::expected_alone;
use crate::Release;
use fhaim_release::{Axis, MechanismJob, Statistic};

/// Factor on released cells where little noise is wanted. The least noise on a cell is then a
/// sixteenth of the ladder's, which is two counts.
pub(crate) const CELL_SCALE: i64 = 16;

/// A clique that may be measured, and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The clique.
    pub clique: Clique,
    /// AIM's w, the clique's overlap with the workload.
    pub weight: u64,
    /// Number of cells of its marginal.
    pub cells: usize,
}

/// Returns the cliques that are measured before the first selection: all attributes that are not
/// digits, and each digit with its coarse attribute.
pub(crate) fn first_cliques(domain: &Domain) -> Vec<Clique> {
    let singles = domain
        .coarse_attributes()
        .into_iter()
        .map(|a| Clique::new([a]));
    singles
        .chain(domain.digits().iter().map(Digit::clique))
        .collect()
}

/// Returns the workload's pairs and triples, and the pairs within triples. With `one_ways`, adds
/// all single attributes that are not digits. The order is by size, then lexicographic.
pub fn candidates(job: &MechanismJob, one_ways: bool) -> Vec<Candidate> {
    let singles = job
        .domain
        .coarse_attributes()
        .into_iter()
        .filter(|_| one_ways);
    let singles = singles.map(|a| Clique::new([a]));
    let pairs = job.workload.within_pairs();
    let pairs = pairs.pairs().iter().map(|pair| pair.clique());
    let triples = job.workload.triples().iter();
    let triples = triples.map(|triple| Clique::new(triple.attributes));
    let weights = job.workload.attribute_weights(&job.domain);
    let weight = |clique: &Clique| clique.attributes().iter().map(|&a| weights[a]).sum();
    singles
        .chain(pairs)
        .chain(triples)
        .filter_map(|clique| {
            Some(Candidate {
                weight: weight(&clique),
                cells: job.domain.cells(&clique)?,
                clique,
            })
        })
        .collect()
}

/// Returns the indices of the candidates that a model of at most `share` of the cap has room for
/// (AIM's max_model_size * rho_used / rho). If no candidate fits, returns those within the whole
/// cap.
pub fn eligible(
    job: &MechanismJob,
    graph: &ModelGraph,
    candidates: &[Candidate],
    share: f64,
) -> Vec<usize> {
    let cap = job.model_cells();
    let sizes: Vec<Option<usize>> = candidates
        .iter()
        .map(|candidate| {
            if graph.contains(&candidate.clique) {
                Some(0)
            } else {
                graph.cells_with(&candidate.clique)
            }
        })
        .collect();
    let within = |limit: f64| -> Vec<usize> {
        (0..sizes.len())
            .filter(|&i| sizes[i].is_some_and(|cells| cells as f64 <= limit))
            .collect()
    };
    let now = within(cap as f64 * share);
    if now.is_empty() {
        within(cap as f64)
    } else {
        now
    }
}

/// Returns `scale` times all cells of a marginal of one or two attributes. Noise of variance v on
/// this statistic is noise of variance v / scale^2 on the cells.
pub(crate) fn cells_statistic(job: &MechanismJob, clique: &Clique, scale: i64) -> Statistic {
    let axis = |a: usize| Axis::identity(a, job.domain.size(a));
    let scaled = |a: usize| {
        let mut axis = axis(a);
        axis.functions
            .iter_mut()
            .flatten()
            .for_each(|x| *x *= scale);
        axis
    };
    match *clique.attributes() {
        [a, b, ..] => Statistic::Product(scaled(a), axis(b)),
        [a] => Statistic::OneWay(scaled(a)),
        [] => Statistic::Total,
    }
}

/// Converts a release of [`cells_statistic`] to a measurement with the noise of all holders, for
/// the fit. For a digit's table, the values are the expected ones.
pub(crate) fn cells_measurement(job: &MechanismJob, release: &Release) -> Measurement {
    let statistic = &release.request.statistic;
    let scale = match statistic {
        Statistic::OneWay(axis) | Statistic::Product(axis, _) => axis.largest_value().max(1),
        Statistic::Total | Statistic::SquaredScores(_) => 1,
    } as f64;
    let values = release.values.iter().map(|&value| value as f64 / scale);
    let variance = job.holders.fit_variance(release.request.variance_units);
    let sigma = (variance as f64).sqrt() / scale;
    let mut measurement = Measurement::cells(statistic.clique(), values.collect(), sigma);
    let mut digits = job.domain.digits().iter();
    if let Some(digit) = digits.find(|digit| digit.clique() == measurement.clique) {
        measurement.values = expected_alone(&measurement.values, digit, sigma);
    }
    measurement
}

/// Returns the L1 distance of two tables.
pub(crate) fn l1_distance(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(x, y)| (x - y).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_dp::Rho;

    #[test]
    fn candidates_that_exceed_the_cap_are_not_eligible() {
        let rho = Rho::from_f64_down(1.0).unwrap();
        let mut job = MechanismJob::new(Domain::new(vec![10, 10, 2]), rho, 100);
        job.model_bytes = 8 * 60;
        let all = candidates(&job, true);
        assert_eq!(all.len(), 6);
        let graph = ModelGraph::new(&job.domain);
        let fitting = eligible(&job, &graph, &all, 1.0);
        let cliques: Vec<_> = fitting.iter().map(|&i| all[i].clique.clone()).collect();
        assert!(!cliques.contains(&Clique::new([0, 1])));
        assert!(cliques.contains(&Clique::new([0, 2])));
        // The share is too small for any candidate, so the whole cap counts.
        let small = all[3..].to_vec();
        assert_eq!(eligible(&job, &graph, &small, 1e-6), [1, 2]);
    }
}
