//! Candidates of the adaptive mechanisms: cliques that may be measured next, their weights, and
//! which of them the model still has room for.

use fhaim_domain::{Clique, Digit, Domain};
use fhaim_pgm::{Measurement, ModelGraph};

use super::digits::expected_alone;
use crate::Release;
use fhaim_release::{Axis, MechanismJob, Statistic};

/// Where little noise is wanted, cells are released times this: the least noise on a cell is then a
/// sixteenth of the ladder's two counts.
pub(crate) const CELL_SCALE: i64 = 16;

/// A clique and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its attributes.
    pub clique: Clique,
    /// AIM's w: how much of the workload it overlaps.
    pub weight: u64,
    /// Cells of its marginal.
    pub cells: usize,
}

/// What is measured before anything is chosen: all attributes that are no digits, and each digit
/// with what it hangs on.
pub(crate) fn first_cliques(domain: &Domain) -> Vec<Clique> {
    let singles = domain
        .coarse_attributes()
        .into_iter()
        .map(|a| Clique::new([a]));
    singles
        .chain(domain.digits().iter().map(Digit::clique))
        .collect()
}

/// The workload's pairs and triples, the pairs within triples, and, if asked for, all attributes
/// alone that are no digits; by size, then in lexicographic order.
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

/// Indices of the candidates that a model of at most `share` of the cap can take in (AIM's
/// max_model_size * rho_used / rho); where there are none, of those within the whole cap.
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

/// `scale` times all cells of a marginal of one or two attributes: noise of variance v on it is
/// noise of variance v / scale^2 on the cells.
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

/// A release of [`cells_statistic`] with the noise of all holders, for the fit; of a digit's table, what
/// is to be expected of it.
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

/// L1 distance of two tables.
pub(crate) fn l1_distance(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(x, y)| (x - y).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_dp::Rho;

    #[test]
    fn candidates_outgrow_a_small_model() {
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
        // Too little for anything: the whole cap counts.
        let small = all[3..].to_vec();
        assert_eq!(eligible(&job, &graph, &small, 1e-6), [1, 2]);
    }
}
