//! The density of records.

use crate::propagation::NodePlan;
use crate::slabs::{self, SLAB};
use crate::{Error, Model};

impl Model {
    /// ln p(x) of each record x, for records given as columns of categories, one column for each
    /// attribute; minus infinity where the model deems a record impossible.
    ///
    /// p(x) is the product over the nodes of the junction tree of the node's share of what its
    /// separator holds (Koller and Friedman 2009, section 10.1.3), times, for attributes that the
    /// tree has in groups, the share of the category in its group.
    ///
    /// # Errors
    /// [`Error::Columns`], [`Error::UnknownValue`].
    pub fn log_densities(&self, columns: &[Vec<u32>]) -> Result<Vec<f64>, Error> {
        let records = self.check_columns(columns)?;
        let groups = self.groups_of(columns);
        let attribute_of = self.attributes_by_rank();
        let mut densities = vec![0.0; records];
        for (node, plan) in self.propagation.nodes().iter().enumerate() {
            let (belief, separator) = (self.beliefs.node(plan, node), self.beliefs.separator(node));
            let columns: Vec<&[u32]> = (plan.axes.iter())
                .map(|axis| groups[attribute_of[axis.rank]].as_slice())
                .collect();
            let parts = densities.chunks_mut(SLAB).enumerate();
            slabs::all(parts, records, |(i, part): (usize, &mut [f64])| {
                for (record, density) in (i * SLAB..).zip(part) {
                    let (above, cell) = places(plan, &columns, record);
                    *density += log_share(belief[cell], separator[above]);
                }
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

    /// The number of records of columns that are some over the domain.
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

    /// The group of each category of each column: what the tree's tables are over.
    fn groups_of(&self, columns: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let grouped =
            |(attribute, column): (usize, &Vec<u32>)| match self.resolution.split(attribute) {
                Some(split) => column.iter().map(|&c| split[c as usize]).collect(),
                None => column.clone(),
            };
        columns.iter().enumerate().map(grouped).collect()
    }
}

/// A record's cell in a node's separator, and in the node.
fn places(plan: &NodePlan, columns: &[&[u32]], record: usize) -> (usize, usize) {
    let place = |depth: usize| {
        let axes = plan.axes[..depth].iter().zip(columns);
        axes.fold(0, |place, (axis, column)| {
            place * axis.size + column[record] as usize
        })
    };
    (place(plan.separator), place(plan.axes.len()))
}

/// ln(part / whole), minus infinity where the part is nothing.
fn log_share(part: f64, whole: f64) -> f64 {
    if part > 0.0 {
        (part / whole).ln()
    } else {
        f64::NEG_INFINITY
    }
}
