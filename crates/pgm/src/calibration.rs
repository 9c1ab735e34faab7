//! From potentials to marginals, in either of two ways.

use std::ops::Range;

use crate::buckets::Plan;
use crate::contraction::Contraction;
use crate::junction::JunctionTree;
use crate::propagation::{Beliefs, Propagation};
use crate::resolution::Folding;
use crate::table::Axis;
use crate::{FitOptions, Passes};

/// What a plan for either way takes.
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

    /// Place of each potential in the list of all.
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

/// How a fit calibrates.
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
}

impl<'a> Calibration<'a> {
    /// The way that the options name, by tables if contracting would take more than `max_bytes`.
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
        Self { blueprint, way }
    }

    /// Calibrates: from log-potentials of the tree's cliques to marginals scaled to `total`. Once a contraction
    /// came near to underflow, it is tables to the end.
    pub fn calibrate(&mut self, potentials: &[f64], total: f64, marginals: &mut [f64]) {
        if let Way::Contraction(contraction) = &mut self.way {
            if contraction.calibrate(potentials, total, marginals) {
                return;
            }
            self.way = Way::tables(&self.blueprint);
        }
        if let Way::Tables(tables) = &mut self.way {
            let (propagation, beliefs) = &mut **tables;
            propagation.calibrate(potentials, total, beliefs, marginals);
        }
    }

    /// As [`Calibration::calibrate`], by way of a folding if there is one: from the potentials of the measured
    /// cliques to their marginals.
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

    /// The tables of the whole tree, calibrated to potentials that were calibrated last.
    pub fn into_tables(
        self,
        folding: Option<&mut Folding>,
        potentials: &[f64],
        total: f64,
    ) -> (Propagation, Beliefs) {
        if let Way::Tables(tables) = self.way {
            return *tables;
        }
        // The contraction's memory is free before the tables take theirs.
        let Self { blueprint, way } = self;
        drop(way);
        let propagation = blueprint.propagation();
        let mut beliefs = propagation.beliefs();
        let mut marginals = vec![0.0; potentials.len()];
        propagation.calibrate_folded(folding, potentials, total, &mut beliefs, &mut marginals);
        (propagation, beliefs)
    }
}
