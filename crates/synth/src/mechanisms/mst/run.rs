//! A run of MST, which measures single attributes, chooses a tree, and measures the tree's pairs.

use fhaim_domain::{Clique, Table};
use fhaim_dp::{MAX_SELECTION_EPSILON, Selection};
use fhaim_pgm::{Model, ModelGraph};
use rand::RngCore;

use crate::Error;
use crate::account::{ReleaseAccount, shares};
use crate::engine::RunOutcome;
use crate::mechanisms::candidates::{
    CELL_SCALE, cells_measurement, cells_statistic, first_cliques,
};
use crate::mechanisms::fitting::{
    Effort, FINAL_STEPS, FINAL_TOLERANCE, FIT_STEPS, FIT_TOLERANCE, fit_job,
};
use crate::plaintext::PlaintextSource;
use fhaim_release::{MechanismJob, Phase, ReleaseSource, RunProgress};

/// Number of equal parts of the budget: single attributes, choices, pairs.
pub(super) const PARTS: f64 = 3.0;

/// One run of MST.
pub(super) struct Run<'a> {
    table: &'a Table,
    job: &'a MechanismJob,
    rng: &'a mut dyn RngCore,
    account: ReleaseAccount,
}

/// Two attributes that the tree may join.
struct Edge {
    ends: [usize; 2],
    clique: Clique,
    /// The pair's distance from independence.
    score: i64,
}

impl<'a> Run<'a> {
    /// Prepares a run on a table of the job's domain.
    pub(super) fn new(
        table: &'a Table,
        job: &'a MechanismJob,
        rng: &'a mut dyn RngCore,
    ) -> Result<Self, Error> {
        job.check_pairs()?;
        if table.domain() != &job.domain {
            return Err(Error::OtherDomain);
        }
        Ok(Self {
            table,
            job,
            rng,
            account: ReleaseAccount::new(job),
        })
    }

    /// Runs all three parts, and fits the model to their measurements.
    pub(super) fn run(
        mut self,
        progress: &mut dyn FnMut(RunProgress),
    ) -> Result<RunOutcome, Error> {
        let mut tell = |phase, round| {
            progress(RunProgress {
                phase,
                round,
                rounds: 3,
            });
        };
        let third = self.job.rho.to_f64() / PARTS;
        tell(Phase::ONE_WAYS, 1);
        self.measure(Phase::ONE_WAYS, &first_cliques(&self.job.domain), third)?;
        let alone = self.fit((FIT_STEPS, FIT_TOLERANCE))?;
        tell(Phase::MEASURE, 2);
        let tree = self.choose_tree(&alone, third)?;
        // The last part gets the rest of the budget, including rounding errors of the first two.
        let left = self.account.left().to_f64();
        self.measure(Phase::MEASURE, &tree, left)?;
        tell(Phase::FIT, 3);
        let model = self.fit((FINAL_STEPS, FINAL_TOLERANCE))?;
        Ok(RunOutcome::new(model, &self.account))
    }

    /// Measures cliques in one batch, each with an equal share of `rho`.
    fn measure(&mut self, phase: Phase, cliques: &[Clique], rho: f64) -> Result<(), Error> {
        let mut offers = Vec::with_capacity(cliques.len());
        for (clique, share) in cliques.iter().zip(shares(rho, &vec![1.0; cliques.len()])) {
            let statistic = cells_statistic(self.job, clique, CELL_SCALE);
            let offer = self.account.offer(statistic, share, u64::MAX)?;
            offers.push(offer.ok_or_else(|| Error::budget_too_small(self.job.rho))?);
        }
        if offers.is_empty() {
            return Ok(());
        }
        let requests = self.account.ask(phase, offers)?;
        let mut source = PlaintextSource::continuing(self.table, self.rng, &requests);
        let answers = source.release(&requests)?;
        self.account.settle(&answers).map(|_| ())
    }

    /// Fits a model to all measurements.
    fn fit(&self, (steps, tolerance): (usize, f64)) -> Result<Model, Error> {
        let settled = self.account.settled().iter();
        let measured: Vec<_> = settled.map(|r| cells_measurement(self.job, r)).collect();
        fit_job(
            self.job,
            &self.account,
            &measured,
            Effort::by_tables(steps, tolerance),
            None,
        )
    }

    /// Chooses the edges of a tree over all attributes that are not digits, for `rho`. Each edge
    /// joins two separate parts. Pairs that exceed the model's cap are skipped, so the result may
    /// be several trees.
    fn choose_tree(&mut self, alone: &Model, rho: f64) -> Result<Vec<Clique>, Error> {
        let choices = self.job.domain.coarse_attributes().len().saturating_sub(1);
        let epsilon = (8.0 * rho / choices.max(1) as f64).sqrt();
        let selection = Selection::new(epsilon.min(MAX_SELECTION_EPSILON), 1)?;
        let mut edges = self.edges(alone)?;
        let mut graph = ModelGraph::new(&self.job.domain);
        let first = first_cliques(&self.job.domain);
        first.iter().for_each(|clique| graph.add(clique));
        // The part of each attribute, named by one of its attributes.
        let mut part: Vec<usize> = (0..self.job.domain.len()).collect();
        let mut tree = Vec::with_capacity(choices);
        for _ in 0..choices {
            edges.retain(|edge| {
                let cells = graph.cells_with(&edge.clique);
                // Edge ends are attributes of the domain, so they index `part`.
                part[edge.ends[0]] != part[edge.ends[1]]
                    && cells.is_some_and(|cells| cells <= self.job.model_cells())
            });
            let scores: Vec<i64> = edges.iter().map(|edge| edge.score).collect();
            if scores.is_empty() {
                break;
            }
            if !self.account.spend(selection.rho()?) {
                return Err(Error::budget_too_small(self.job.rho));
            }
            let Some(chosen) = selection.choose(&scores, self.rng) else {
                break;
            };
            // The selection returns an index of `scores`, and so of `edges`.
            let Edge { ends, clique, .. } = edges.swap_remove(chosen);
            let (kept, gone) = (part[ends[0]], part[ends[1]]);
            part.iter_mut()
                .filter(|p| **p == gone)
                .for_each(|p| *p = kept);
            graph.add(&clique);
            tree.push(clique);
        }
        Ok(tree)
    }

    /// Scores all pairs by the L1 distance of their counts from those of a model with independent
    /// attributes. The model's counts are rounded, so that one record changes a score by at most 1.
    fn edges(&self, alone: &Model) -> Result<Vec<Edge>, Error> {
        let attributes = self.job.domain.coarse_attributes();
        let pairs = attributes
            .iter()
            .enumerate()
            .flat_map(|(i, &a)| attributes[i + 1..].iter().map(move |&b| [a, b]));
        let pairs: Vec<[usize; 2]> = pairs.collect();
        let cliques: Vec<Clique> = pairs.iter().map(|&pair| Clique::new(pair)).collect();
        let expected = alone.pair_marginals(&cliques)?;
        let scored = pairs.into_iter().zip(cliques).zip(&expected);
        scored
            .map(|((ends, clique), expected)| {
                let counts = self.table.counts(&clique)?;
                let cells = counts.iter().zip(expected);
                let distance: u64 = cells.map(|(&m, mu)| m.abs_diff(mu.round() as u64)).sum();
                Ok(Edge {
                    ends,
                    clique,
                    score: i64::try_from(distance).unwrap_or(i64::MAX),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::Mechanism;
    use crate::mechanisms::mst::Mst;
    use fhaim_domain::Schema;
    use fhaim_dp::Rho;
    use rand::{SeedableRng, rngs::StdRng};

    /// Returns a chain: each column except the first is a copy of the column before, with every
    /// tenth record changed.
    fn chain() -> Table {
        let column = |n: usize| {
            format!(r#"{{"name":"c{n}","kind":"categorical","categories":["x","y","z"]}}"#)
        };
        let columns: Vec<String> = (0..5).map(column).collect();
        let json = format!(r#"{{"name":"chain","columns":[{}]}}"#, columns.join(","));
        let schema = Schema::from_json("chain", json.as_bytes()).unwrap();
        let mut columns: Vec<Vec<u32>> = vec![(0..900).map(|n| n * 7 % 3).collect()];
        for k in 1..5usize {
            let before = columns[k - 1].clone();
            let copied = before.iter().enumerate();
            let turned = |(n, &code): (usize, &u32)| {
                if (n + 2 * k) % 10 == 0 {
                    (code + 1) % 3
                } else {
                    code
                }
            };
            columns.push(copied.map(turned).collect());
        }
        Table::new(schema, columns).unwrap()
    }

    #[test]
    fn chain_is_found_within_the_budget() {
        let table = chain();
        for (rho, seed) in [(10.0, 0), (0.05, 1)] {
            let rho = Rho::from_f64_down(rho).unwrap();
            let job = MechanismJob::new(table.domain().clone(), rho, 900);
            let mut rng = StdRng::seed_from_u64(seed);
            let outcome = Mst
                .run_in_the_clear(&table, &job, &mut rng, &mut |_| {})
                .unwrap();
            assert!(outcome.spent <= rho);
            assert!(outcome.spent.to_f64() > 0.99 * rho.to_f64());
            let cliques = outcome
                .releases
                .iter()
                .map(|r| r.request.statistic.clique());
            let mut pairs: Vec<Vec<usize>> = cliques
                .filter(|clique| clique.len() == 2)
                .map(|clique| clique.attributes().to_vec())
                .collect();
            pairs.sort();
            assert_eq!(pairs.len(), 4);
            if seed == 0 {
                assert_eq!(pairs, [[0, 1], [1, 2], [2, 3], [3, 4]]);
            }
        }
    }

    /// The price of a selection relies on this: adding any record changes each score by at most 1.
    #[test]
    fn one_more_record_changes_scores_by_at_most_one() {
        let table = chain();
        let rho = Rho::from_f64_down(1.0).unwrap();
        let job = MechanismJob::new(table.domain().clone(), rho, 1000);
        let mut rng = StdRng::seed_from_u64(3);
        let mut run = Run::new(&table, &job, &mut rng).unwrap();
        run.measure(Phase::ONE_WAYS, &first_cliques(&job.domain), 0.3)
            .unwrap();
        let alone = run.fit((50, 1e-3)).unwrap();
        let before: Vec<i64> = run.edges(&alone).unwrap().iter().map(|e| e.score).collect();
        let mut largest = 0;
        for record in 0..3u32.pow(5) {
            let mut columns = table.columns().to_vec();
            for (a, column) in columns.iter_mut().enumerate() {
                column.push(record / 3u32.pow(a as u32) % 3);
            }
            let more = Table::new(table.shared_schema(), columns).unwrap();
            let mut rng = StdRng::seed_from_u64(3);
            let run = Run::new(&more, &job, &mut rng).unwrap();
            let after = run.edges(&alone).unwrap();
            for (before, after) in before.iter().zip(after) {
                largest = largest.max(before.abs_diff(after.score));
            }
        }
        assert_eq!(largest, 1);
    }

    /// A cap without room for any pair leaves single attributes; a cap with room for some pairs
    /// leaves several trees.
    #[test]
    fn pairs_that_exceed_the_cap_are_skipped() {
        let table = chain();
        let rho = Rho::from_f64_down(1.0).unwrap();
        let mut job = MechanismJob::new(table.domain().clone(), rho, 900);
        let mut pairs = |cells: usize| {
            job.model_bytes = 8 * cells;
            let outcome = Mst
                .run_in_the_clear(&table, &job, &mut StdRng::seed_from_u64(3), &mut |_| {})
                .unwrap();
            let cliques = outcome
                .releases
                .iter()
                .map(|r| r.request.statistic.clique());
            cliques.filter(|clique| clique.len() == 2).count()
        };
        assert_eq!(pairs(15), 0);
        let some = pairs(30);
        assert!((1..4).contains(&some), "{some}");
        assert_eq!(pairs(1000), 4);
    }
}
