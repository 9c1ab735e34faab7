//! The density of records.

use std::borrow::Cow;
use std::ops::Range;

use crate::blocked::{self, SLAB};
use crate::propagation::NodePlan;
use crate::{Error, Model};

impl Model {
    /// Returns ln p(x) of each record x, and minus infinity for a record that the model considers
    /// impossible. Records are given as columns of categories, one column for each attribute.
    ///
    /// p(x) is a product over the nodes of the junction tree: each node contributes its cell
    /// divided by its separator's cell (Koller and Friedman 2009, section 10.1.3). For attributes
    /// that the tree has in groups, the category's share of its group is another factor.
    ///
    /// # Errors
    /// [`Error::Columns`], [`Error::UnknownValue`].
    pub fn log_densities(&self, columns: &[Vec<u32>]) -> Result<Vec<f64>, Error> {
        let records = self.check_columns(columns)?;
        let groups = self.groups_of(columns);
        let attribute_of = self.attributes_by_rank();
        let mut densities = vec![0.0; records];
        for (node, plan) in self.propagation.nodes().iter().enumerate() {
            let columns: Vec<&[u32]> = (plan.axes.iter())
                .map(|axis| &*groups[attribute_of[axis.rank]])
                .collect();
            let (belief, separator) = (self.beliefs.node(plan, node), self.beliefs.separator(node));
            let shares = Shares::new(belief, separator, records);
            let parts = densities.chunks_mut(SLAB).enumerate();
            blocked::all(parts, records, |(i, part): (usize, &mut [f64])| {
                let (above, cells) = places(plan, &columns, i * SLAB, part.len());
                shares.add(&above, &cells, part);
                true
            });
        }
        for (column, shares) in columns.iter().zip(&self.shares) {
            let Some(shares) = shares else { continue };
            for (density, &category) in densities.iter_mut().zip(column) {
                *density += log_share(shares[category as usize], 1.0);
            }
        }
        Ok(densities)
    }

    /// Checks that the columns are records over the domain, and returns their number.
    fn check_columns(&self, columns: &[Vec<u32>]) -> Result<usize, Error> {
        let records = columns.first().map_or(0, Vec::len);
        if columns.len() != self.domain.len() || columns.iter().any(|c| c.len() != records) {
            return Err(Error::Columns {
                attributes: self.domain.len(),
            });
        }
        for (attribute, column) in columns.iter().enumerate() {
            let size = self.domain.size(attribute);
            if let Some(&value) = column.iter().find(|&&value| value as usize >= size) {
                let value = value as usize;
                return Err(Error::UnknownValue { attribute, value });
            }
        }
        Ok(records)
    }

    /// Returns the group of each category of each column, which index the tree's tables.
    fn groups_of<'c>(&self, columns: &'c [Vec<u32>]) -> Vec<Cow<'c, [u32]>> {
        let grouped =
            |(attribute, column): (usize, &'c Vec<u32>)| match self.resolution.split(attribute) {
                Some(split) => column.iter().map(|&c| split[c as usize]).collect(),
                None => Cow::Borrowed(&column[..]),
            };
        columns.iter().enumerate().map(grouped).collect()
    }
}

/// The cells of a node divided by their separators' cells, as logarithms.
enum Shares<'a> {
    /// Of every cell, if there are at most as many cells as records.
    All(Vec<f64>),
    /// To be computed from the node's cells and the separator's, in this order.
    Asked(&'a [f64], &'a [f64]),
}

impl<'a> Shares<'a> {
    fn new(belief: &'a [f64], separator: &'a [f64], records: usize) -> Self {
        if belief.len() > records {
            return Self::Asked(belief, separator);
        }
        let block = belief.len() / separator.len();
        let blocks = belief.chunks_exact(block).zip(separator);
        let shares =
            blocks.flat_map(|(cells, &whole)| cells.iter().map(move |&part| (part, whole)));
        Self::All(shares.map(|(part, whole)| log_share(part, whole)).collect())
    }

    /// Adds each record's share to its density, given the record's cells in the separator and in
    /// the node.
    fn add(&self, above: &[usize], cells: &[usize], densities: &mut [f64]) {
        match self {
            Self::All(shares) => {
                for (density, &cell) in densities.iter_mut().zip(cells) {
                    *density += shares[cell];
                }
            }
            Self::Asked(belief, separator) => {
                for ((density, &above), &cell) in densities.iter_mut().zip(above).zip(cells) {
                    *density += log_share(belief[cell], separator[above]);
                }
            }
        }
    }
}

/// Returns the cells of some records, from `first` on, in a node's separator and in the node.
fn places(
    plan: &NodePlan,
    columns: &[&[u32]],
    first: usize,
    records: usize,
) -> (Vec<usize>, Vec<usize>) {
    // The outer loop is over axes, so that the loop over records is vectorized.
    let extend = |cells: &mut [usize], depths: Range<usize>| {
        for (axis, column) in plan.axes[depths.clone()].iter().zip(&columns[depths]) {
            for (cell, &value) in cells.iter_mut().zip(&column[first..]) {
                *cell = *cell * axis.size + value as usize;
            }
        }
    };
    let mut cells = vec![0; records];
    extend(&mut cells, 0..plan.separator);
    let above = cells.clone();
    extend(&mut cells, plan.separator..plan.axes.len());
    (above, cells)
}

/// Returns ln(part / whole), and minus infinity if the part is 0.
fn log_share(part: f64, whole: f64) -> f64 {
    if part > 0.0 {
        (part / whole).ln()
    } else {
        f64::NEG_INFINITY
    }
}
