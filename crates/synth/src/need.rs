//! The noise and encryption that a run needs, for callers that do not know the mechanisms.

use fhaim_domain::Clique;
use serde_json::Value;

use fhaim_release::{
    Catalogue, Choice, Generator, MechanismJob, Need, Options, Refusal, SquaredTerm, Statistic,
};

use crate::engine::AnyMachine;
use crate::mechanisms::block::{Block, BlockAxis, MAX_CENTRED};
use crate::mechanisms::merge::Merges;
use crate::{Error, Mechanism, MechanismName};

/// The mechanisms of this crate, by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mechanisms;

impl Catalogue for Mechanisms {
    fn options(&self, choice: Choice<'_>) -> Result<Options, Refusal> {
        match chosen(choice)?.options()? {
            Value::Object(options) => Ok(options),
            _ => Err(Error::Internal("a mechanism's options are not a JSON object").into()),
        }
    }

    fn squares(&self, choice: Choice<'_>) -> Result<bool, Refusal> {
        let mechanism = chosen(choice)?;
        if mechanism.clear_only() {
            return Err(Error::PlaintextOnly(mechanism.name()).into());
        }
        Ok(mechanism.releases_squares())
    }

    fn need(&self, choice: Choice<'_>, job: &MechanismJob) -> Result<Need, Refusal> {
        Ok(need(&*chosen(choice)?, job)?)
    }
}

impl Generator for Mechanisms {
    type Machine = AnyMachine;

    fn start(&self, choice: Choice<'_>, job: MechanismJob) -> Result<Box<AnyMachine>, Refusal> {
        Ok(chosen(choice)?.start(job)?)
    }
}

/// Returns the chosen mechanism with its chosen options.
fn chosen(choice: Choice<'_>) -> Result<Box<dyn Mechanism>, Error> {
    let name: MechanismName = choice.mechanism.parse()?;
    let options = choice.options.cloned().unwrap_or_default();
    name.with_options(&Value::Object(options))
}

/// Returns the noise and encryption that a run of a mechanism needs with its options.
///
/// # Errors
/// As [`Mechanism::ladder_need`].
pub fn need(mechanism: &dyn Mechanism, job: &MechanismJob) -> Result<Need, Error> {
    let ladder = mechanism.ladder_need(job)?;
    let squares = mechanism.releases_squares();
    // The values of a 1-way's function are below the attribute's size.
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

/// Returns the statistics with the largest cells of all mechanisms, except 1-ways.
fn largest_statistics(job: &MechanismJob, squares: bool) -> Vec<Statistic> {
    let [a, b] = most_centred(job);
    let contrasts = |attribute: usize, groups| {
        let merges = Merges::new(&[1.0; MAX_CENTRED]);
        BlockAxis::merged(attribute, &merges, groups)
    };
    let mut largest = vec![Block::pair(contrasts(0, a), contrasts(1, b)).statistic()];
    if squares {
        // A target is at most the number of records.
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

/// Returns the largest numbers of groups in which two attributes are measured centred. An attribute
/// has no more groups than values, and functions of more groups have larger values.
fn most_centred(job: &MechanismJob) -> [usize; 2] {
    let sizes = job.domain.sizes().iter();
    sizes.fold([2; 2], |[first, second], &size| {
        let size = size.clamp(2, MAX_CENTRED);
        [first.max(size), second.max(size.min(first))]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Domain;
    use fhaim_dp::Rho;

    #[test]
    fn largest_cells_belong_to_contrasts_wide_columns_and_scores() {
        let job = |sizes: Vec<usize>| {
            MechanismJob::new(Domain::new(sizes), Rho::from_f64_down(0.5).unwrap(), 1000)
        };
        let name = |name: &str| name.parse::<MechanismName>().unwrap();
        let narrow = need(&*name("staged"), &job(vec![3, 4])).unwrap();
        assert_eq!(narrow.largest_cell, 2 * 3 * 1000);
        for (sizes, largest) in [
            (vec![4, 2, 4, 4], 3 * 3),
            (vec![20, 3, 8], 49),
            (vec![2, 2, 2], 2),
        ] {
            let need = need(&*name("staged"), &job(sizes)).unwrap();
            assert_eq!(need.largest_cell, largest * 1000);
        }
        let wide = need(&*name("one-ways"), &job(vec![3, 400])).unwrap();
        assert_eq!(wide.largest_cell, 400 * 1000);
        let scored = need(&*name("fhaim-l2"), &job(vec![3, 4])).unwrap();
        let overlap = 2;
        assert_eq!(scored.largest_cell, overlap * 2 * 1000 * 1000);
        assert!(scored.squares && !narrow.squares);
    }

    fn choice(mechanism: &str) -> Choice<'_> {
        Choice {
            mechanism,
            options: None,
        }
    }

    fn with(options: &Options) -> Choice<'_> {
        Choice {
            options: Some(options),
            ..choice("staged")
        }
    }

    #[test]
    fn mechanism_in_the_clear_only_and_unknown_mechanism_are_rejected() {
        let refused = |mechanism| {
            let refusal = Mechanisms.squares(choice(mechanism)).unwrap_err();
            refusal.to_string()
        };
        let aim = "aim reads exact marginals and runs in the clear only";
        assert_eq!(refused("aim"), aim);
        let unknown = refused("nothing");
        assert!(
            unknown.starts_with("unknown mechanism \"nothing\""),
            "{unknown}"
        );
        assert!(!Mechanisms.squares(choice("one-ways")).unwrap());
    }

    /// A probe with a larger share of the budget affords more integers, so the need depends on
    /// options as well.
    #[test]
    fn options_get_defaults_change_the_need_and_are_rejected_by_name() {
        let job = MechanismJob::new(
            Domain::new(vec![30; 40]),
            Rho::from_f64_down(0.01).unwrap(),
            1000,
        );
        let some = |text: &str| serde_json::from_str::<Options>(text).unwrap();
        let (more, wrong, far) = (
            some(r#"{"probe_share":0.3}"#),
            some(r#"{"no_such":1}"#),
            some(r#"{"probe_share":0.01}"#),
        );
        let all = Mechanisms.options(with(&more)).unwrap();
        let default = Mechanisms.options(choice("staged")).unwrap();
        assert_eq!(
            (all.len(), &all["probe_share"]),
            (default.len(), &0.3.into())
        );
        let cells = |choice| Mechanisms.need(choice, &job).unwrap().ladder.cells;
        assert!(cells(with(&more)) > cells(choice("staged")));
        assert_eq!(cells(with(&more)), cells(with(&all)));
        assert_eq!(cells(with(&default)), cells(choice("staged")));
        for (options, named) in [(wrong, "no_such"), (far, "probe_share")] {
            let refused = Mechanisms.start(with(&options), job.clone()).err().unwrap();
            assert!(refused.to_string().contains(named), "{refused}");
        }
    }
}
