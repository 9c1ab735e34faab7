//! Calibration computes marginals from potentials, by tables or by contraction.

use std::ops::Range;

use crate::buckets::Plan;
use crate::contraction::Contraction;
use crate::junction::JunctionTree;
use crate::propagation::{Beliefs, Propagation};
use crate::resolution::Folding;
use crate::table::Axis;
use crate::{FitOptions, FitWork, Passes};

/// The inputs of a calibration plan.
#[derive(Debug)]
pub(crate) struct Blueprint<'a> {
    pub tree: &'a JunctionTree,
    /// Sizes of the attributes in the tree.
    pub sizes: &'a [usize],
    /// Axes of the potentials' tables, by rank.
    pub axes: &'a [Vec<Axis>],
}

impl Blueprint<'_> {
    fn propagation(&self) -> Propagation {
        Propagation::new(self.tree, self.sizes, self.axes)
    }

    /// Returns the range of each potential in the list of all potentials.
    fn ranges(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let range = |axes: &Vec<Axis>| {
            let start = end;
            end += crate::table::cells(axes);
            start..end
        };
        self.axes.iter().map(range).collect()
    }
}

/// The method of a calibration.
#[derive(Debug)]
enum Way {
    Tables(Box<(Propagation, Beliefs)>),
    Contraction(Box<Contraction>),
}

impl Way {
    fn tables(blueprint: &Blueprint<'_>) -> Self {
        let propagation = blueprint.propagation();
        let beliefs = propagation.beliefs();
        Self::Tables(Box::new((propagation, beliefs)))
    }
}

/// Calibration for a fit.
#[derive(Debug)]
pub(crate) struct Calibration<'a> {
    blueprint: Blueprint<'a>,
    way: Way,
    /// The work done so far.
    pub work: FitWork,
}

impl<'a> Calibration<'a> {
    /// Returns a calibration of the kind that the options name. Uses tables if contracting would
    /// take more than `options.max_bytes`.
    pub fn new(blueprint: Blueprint<'a>, options: &FitOptions) -> Self {
        let plan = match options.passes {
            Passes::Tables => None,
            Passes::Contractions => {
                let plan = Plan::new(blueprint.tree, blueprint.sizes, blueprint.axes);
                let fits = plan.bytes().is_some_and(|bytes| bytes <= options.max_bytes);
                fits.then_some(plan)
            }
        };
        let way = match plan {
            None => Way::tables(&blueprint),
            Some(plan) => Way::Contraction(Box::new(Contraction::new(&plan, blueprint.ranges()))),
        };
        Self {
            blueprint,
            way,
            work: FitWork::default(),
        }
    }

    /// Computes marginals scaled to `total` from log-potentials of the tree's cliques. Once a
    /// contraction came near underflow, all later calibrations use tables.
    pub fn calibrate(&mut self, potentials: &[f64], total: f64, marginals: &mut [f64]) {
        if let Way::Contraction(contraction) = &mut self.way {
            self.work = self.work + contraction.work();
            if contraction.calibrate(potentials, total, marginals) {
                return;
            }
            self.way = Way::tables(&self.blueprint);
        }
        if let Way::Tables(tables) = &mut self.way {
            let (propagation, beliefs) = &mut **tables;
            self.work = self.work + propagation.work();
            propagation.calibrate(potentials, total, beliefs, marginals);
        }
    }

    /// As [`Calibration::calibrate`], from the potentials of the measured cliques to their
    /// marginals. Applies a folding if there is one.
    pub fn calibrate_folded(
        &mut self,
        folding: Option<&mut Folding>,
        potentials: &[f64],
        total: f64,
        marginals: &mut [f64],
    ) {
        let Some(folding) = folding else {
            return self.calibrate(potentials, total, marginals);
        };
        folding.fold(potentials);
        self.calibrate(&folding.potentials, total, &mut folding.marginals);
        folding.unfold(potentials, marginals);
    }

    /// Returns the tables of the whole tree, calibrated to `potentials`, which must be those of the
    /// last calibration.
    pub fn into_tables(
        self,
        folding: Option<&mut Folding>,
        potentials: &[f64],
        total: f64,
    ) -> (Propagation, Beliefs) {
        if let Way::Tables(tables) = self.way {
            return *tables;
        }
        // The contraction's memory is freed before the tables are allocated.
        let Self { blueprint, way, .. } = self;
        drop(way);
        let propagation = blueprint.propagation();
        let mut beliefs = propagation.beliefs();
        let mut marginals = vec![0.0; potentials.len()];
        propagation.calibrate_folded(folding, potentials, total, &mut beliefs, &mut marginals);
        (propagation, beliefs)
    }
}

#[cfg(test)]
mod tests {
    use fhaim_domain::{Clique, Domain};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::estimate::junction_tree;
    use crate::observations::ranked;
    use crate::table::cells;

    const TOTAL: f64 = 1000.0;

    /// A tree with random potentials between 0 and minus a depth, over cliques of up to four
    /// attributes.
    struct Problem {
        domain: Domain,
        tree: JunctionTree,
        axes: Vec<Vec<Axis>>,
        potentials: Vec<f64>,
    }

    impl Problem {
        fn random(rng: &mut ChaCha8Rng, depth: f64) -> Self {
            let sizes: Vec<usize> = (0..rng.random_range(1..=8))
                .map(|_| rng.random_range(1..=6))
                .collect();
            let attributes = sizes.len();
            let domain = Domain::new(sizes);
            let mut cliques: Vec<Clique> = (0..rng.random_range(0..=12))
                .map(|_| {
                    let members = rng.random_range(1..=attributes.min(4));
                    Clique::new((0..members).map(|_| rng.random_range(0..attributes)))
                })
                .collect();
            cliques.sort_unstable();
            cliques.dedup();
            let tree = junction_tree(&domain, &cliques);
            let axes: Vec<Vec<Axis>> = (cliques.iter())
                .map(|clique| ranked(clique, &domain, &tree))
                .collect();
            let count = axes.iter().map(|axes| cells(axes)).sum();
            let potentials = (0..count).map(|_| -depth * rng.random::<f64>()).collect();
            Self {
                domain,
                tree,
                axes,
                potentials,
            }
        }

        fn blueprint(&self) -> Blueprint<'_> {
            Blueprint {
                tree: &self.tree,
                sizes: self.domain.sizes(),
                axes: &self.axes,
            }
        }

        /// Returns the marginals, and whether they were computed by the requested method.
        fn marginals(&self, passes: Passes) -> (Vec<f64>, bool) {
            let options = FitOptions {
                passes,
                ..FitOptions::default()
            };
            let mut calibration = Calibration::new(self.blueprint(), &options);
            let mut marginals = vec![f64::NAN; self.potentials.len()];
            calibration.calibrate(&self.potentials, TOTAL, &mut marginals);
            let contracts = matches!(calibration.way, Way::Contraction(_));
            (marginals, contracts == (passes == Passes::Contractions))
        }
    }

    #[test]
    fn contraction_and_tables_give_the_same_marginals() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..300 {
            let problem = Problem::random(&mut rng, 5.0);
            let (by_tables, _) = problem.marginals(Passes::Tables);
            let (contracted, as_asked) = problem.marginals(Passes::Contractions);
            assert!(as_asked);
            for (x, y) in by_tables.iter().zip(&contracted) {
                assert!((x - y).abs() <= 1e-9 * TOTAL, "{x} by tables, {y}");
            }
        }
    }

    #[test]
    fn contraction_near_underflow_falls_back_to_tables() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut left = 0;
        for _ in 0..100 {
            let problem = Problem::random(&mut rng, 2000.0);
            let (by_tables, _) = problem.marginals(Passes::Tables);
            let (contracted, as_asked) = problem.marginals(Passes::Contractions);
            left += usize::from(!as_asked);
            for (x, y) in by_tables.iter().zip(&contracted) {
                assert!((x - y).abs() <= 1e-9 * TOTAL, "{x} by tables, {y}");
            }
        }
        assert!(left > 20, "{left} problems of 100");
    }

    #[test]
    fn contraction_beyond_the_cap_falls_back_to_tables() {
        let problem = Problem::random(&mut ChaCha8Rng::seed_from_u64(3), 1.0);
        let options = FitOptions {
            passes: Passes::Contractions,
            max_bytes: 0,
            ..FitOptions::default()
        };
        let calibration = Calibration::new(problem.blueprint(), &options);
        assert!(matches!(calibration.way, Way::Tables(_)));
    }

    /// A fit ends with the tables of its final potentials, for either method.
    #[test]
    fn final_tables_do_not_depend_on_the_method() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for _ in 0..50 {
            let problem = Problem::random(&mut rng, 5.0);
            let tables = [Passes::Tables, Passes::Contractions].map(|passes| {
                let options = FitOptions {
                    passes,
                    ..FitOptions::default()
                };
                let mut calibration = Calibration::new(problem.blueprint(), &options);
                let mut marginals = vec![0.0; problem.potentials.len()];
                calibration.calibrate(&problem.potentials, TOTAL, &mut marginals);
                calibration.into_tables(None, &problem.potentials, TOTAL)
            });
            for axes in &problem.axes {
                let [one, other] = tables
                    .each_ref()
                    .map(|(plan, beliefs)| plan.marginal(beliefs, axes));
                assert_eq!(one, other);
            }
        }
    }
}
