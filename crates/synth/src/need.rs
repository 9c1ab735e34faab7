//! What a run of a mechanism needs of noise and encryption, for those who do not know mechanisms.

use fhaim_domain::Clique;
use fhaim_release::{Catalogue, Generator, Job, Need, Refusal, SquaredTerm, Statistic};

use crate::engine::AnyMachine;
use crate::mechanisms::block::{Block, BlockAxis, MAX_CENTRED};
use crate::mechanisms::merge::Merges;
use crate::{Error, MechanismName};

/// The mechanisms of this crate, by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mechanisms;

impl Catalogue for Mechanisms {
    fn squares(&self, mechanism: &str) -> Result<bool, Refusal> {
        let name: MechanismName = mechanism.parse()?;
        if name.clear_only() {
            return Err(Error::PlaintextOnly(name.as_str()).into());
        }
        Ok(name.releases_squares())
    }

    fn need(&self, mechanism: &str, job: &Job) -> Result<Need, Refusal> {
        Ok(mechanism.parse::<MechanismName>()?.need(job)?)
    }
}

impl Generator for Mechanisms {
    type Machine = AnyMachine;

    fn start(&self, mechanism: &str, job: Job) -> Result<Box<AnyMachine>, Refusal> {
        Ok(mechanism.parse::<MechanismName>()?.start(job)?)
    }
}

impl MechanismName {
    /// What a run of the mechanism with default options needs.
    ///
    /// # Errors
    /// As [`crate::Mechanism::ladder_need`].
    pub fn need(self, job: &Job) -> Result<Need, Error> {
        let ladder = self.ladder_need(job)?;
        let squares = self.releases_squares();
        // The values of a 1-way are below its size; earlier releases planned by the size itself, and
        // their datasets keep their plan.
        let widest = job.domain.sizes().iter().copied().max().unwrap_or(1);
        let mut largest_cell = (widest as u128).saturating_mul(u128::from(job.record_bound));
        for statistic in largest_statistics(job, squares) {
            largest_cell = statistic.largest_cell(job.record_bound)?.max(largest_cell);
        }
        Ok(Need {
            ladder,
            largest_cell,
            squares,
        })
    }
}

/// The statistics whose cells no other of the mechanisms exceeds, 1-ways aside.
fn largest_statistics(job: &Job, squares: bool) -> Vec<Statistic> {
    let contrasts = |attribute| {
        let merges = Merges::new(&[1.0; MAX_CENTRED]);
        BlockAxis::merged(attribute, &merges, MAX_CENTRED)
    };
    let mut largest = vec![Block::pair(contrasts(0), contrasts(1)).statistic()];
    if squares {
        // A target holds at most as many records as the table.
        let bound = i64::try_from(job.record_bound).unwrap_or(i64::MAX);
        let pairs = job.workload.pairs().iter();
        let weights = job.workload.attribute_weights(&job.domain);
        let term = |clique: Clique| SquaredTerm {
            weight: i64::try_from(clique.attributes().iter().map(|&a| weights[a]).sum::<u64>())
                .unwrap_or(i64::MAX),
            clique,
            target: vec![bound],
        };
        largest.push(Statistic::SquaredScores(
            pairs.map(|pair| term(pair.clique())).collect(),
        ));
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Domain;
    use fhaim_dp::Rho;

    #[test]
    fn the_largest_cells_are_those_of_contrasts_wide_columns_and_scores() {
        let job = |sizes: Vec<usize>| {
            Job::new(Domain::new(sizes), Rho::from_f64_down(0.5).unwrap(), 1000)
        };
        let name = |name: &str| name.parse::<MechanismName>().unwrap();
        let narrow = name("staged").need(&job(vec![3, 4])).unwrap();
        assert_eq!(narrow.largest_cell, 49 * 1000);
        let wide = name("one-ways").need(&job(vec![3, 400])).unwrap();
        assert_eq!(wide.largest_cell, 400 * 1000);
        let scored = name("fhaim-l2").need(&job(vec![3, 4])).unwrap();
        let overlap = 2;
        assert_eq!(scored.largest_cell, overlap * 2 * 1000 * 1000);
        assert!(scored.squares && !narrow.squares);
    }

    #[test]
    fn what_runs_in_the_clear_only_needs_nothing_and_is_refused() {
        assert!(Mechanisms.squares("aim").is_err());
        assert!(Mechanisms.squares("nothing").is_err());
        assert!(!Mechanisms.squares("one-ways").unwrap());
    }
}
