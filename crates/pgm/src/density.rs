//! The density of records.

use std::borrow::Cow;
use std::ops::Range;

use fhaim_domain::Clique;

use crate::blocked::{self, SLAB};
use crate::given::RULED_OUT;
use crate::model::Potentials;
use crate::observations::ranked;
use crate::propagation::NodePlan;
use crate::{Error, Model};

impl Model {
    /// Returns ln p(x) of each record x, and minus infinity for a record with a value that a
    /// condition rules out ([`Model::given`]). Records are given as columns of categories, one
    /// column for each attribute.
    ///
    /// p(x) is a product over the nodes of the junction tree: each node contributes its cell
    /// divided by its separator's cell (Koller and Friedman 2009, section 10.1.3). For attributes
    /// that the tree has in groups, the category's share of its group is another factor. If one of
    /// these cells is too small for a double, ln p(x) is computed from the log-potentials.
    ///
    /// # Errors
    /// [`Error::Columns`], [`Error::UnknownValue`].
    pub fn log_densities(&self, columns: &[Vec<u32>]) -> Result<Vec<f64>, Error> {
        let records = self.check_columns(columns)?;
        let mut densities = self.log_products(columns, records);
        let tiny: Vec<usize> = (0..records)
            .filter(|&record| densities[record] == f64::NEG_INFINITY)
            .collect();
        if !tiny.is_empty() {
            let of_tiny = |column: &Vec<u32>| tiny.iter().map(|&record| column[record]).collect();
            let columns: Vec<Vec<u32>> = columns.iter().map(of_tiny).collect();
            let probable = self.probable_record();
            let scale = self.log_products(&probable, 1)[0] - self.log_weights(&probable, 1)[0];
            let weights = self.log_weights(&columns, tiny.len());
            for (record, weight) in tiny.into_iter().zip(weights) {
                densities[record] = weight + scale;
            }
        }
        Ok(densities)
    }

    /// Returns the logarithms of the products of cells, and minus infinity if one is too small.
    fn log_products(&self, columns: &[Vec<u32>], records: usize) -> Vec<f64> {
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
        densities
    }

    /// Returns the sum of each record's log-potentials, which is ln p(x) up to a constant. It is
    /// minus infinity for a record with a value that a condition rules out.
    fn log_weights(&self, columns: &[Vec<u32>], records: usize) -> Vec<f64> {
        let groups = self.groups_of(columns);
        let attribute_of = self.attributes_by_rank();
        let mut weights = vec![0.0; records];
        let Potentials {
            cliques, ranges, ..
        } = &self.potentials;
        for (clique, range) in cliques.iter().zip(ranges) {
            let table = &self.potentials.tables[range.clone()];
            if let [attribute] = *clique.attributes() {
                for (weight, &category) in weights.iter_mut().zip(&columns[attribute]) {
                    *weight += table[category as usize];
                }
                continue;
            }
            let axes = ranked(clique, self.resolution.domain(), &self.tree);
            for (record, weight) in weights.iter_mut().enumerate() {
                let cell = axes.iter().fold(0, |cell, axis| {
                    cell * axis.size + groups[attribute_of[axis.rank]][record] as usize
                });
                *weight += table[cell];
            }
        }
        // The table of a single attribute is over categories, so shares are part of it.
        for (attribute, shares) in self.shares.iter().enumerate() {
            let Some(shares) = shares else { continue };
            if self.potentials.of(&Clique::new([attribute])).is_none() {
                for (weight, &category) in weights.iter_mut().zip(&columns[attribute]) {
                    *weight += shares[category as usize].ln();
                }
            }
        }
        for weight in &mut weights {
            if *weight <= RULED_OUT / 2.0 {
                *weight = f64::NEG_INFINITY;
            }
        }
        weights
    }

    /// Returns a record whose cells are not zero, as columns: in each node, the largest cell next
    /// to the values that its parent has.
    fn probable_record(&self) -> Vec<Vec<u32>> {
        let attribute_of = self.attributes_by_rank();
        let mut groups = vec![0; self.domain.len()];
        for (node, plan) in self.propagation.nodes().iter().enumerate() {
            let (above, own) = plan.axes.split_at(plan.separator);
            let row = above.iter().fold(0, |cell, axis| {
                cell * axis.size + groups[attribute_of[axis.rank]]
            });
            let mut cell = largest(
                &self.beliefs.node(plan, node)[row * plan.block()..(row + 1) * plan.block()],
            );
            for axis in own.iter().rev() {
                groups[attribute_of[axis.rank]] = cell % axis.size;
                cell /= axis.size;
            }
        }
        let category = |(attribute, &group): (usize, &usize)| {
            let split = self.resolution.split(attribute);
            let (Some(split), Some(shares)) = (split, &self.shares[attribute]) else {
                return vec![group as u32];
            };
            let in_group = |(&of, &share): (&u32, &f64)| match of as usize == group {
                true => share,
                false => 0.0,
            };
            let shares: Vec<f64> = split.iter().zip(shares).map(in_group).collect();
            vec![largest(&shares) as u32]
        };
        groups.iter().enumerate().map(category).collect()
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

/// Returns the place of the largest value.
fn largest(values: &[f64]) -> usize {
    let places = 0..values.len();
    places
        .max_by(|&one, &other| values[one].total_cmp(&values[other]))
        .unwrap_or(0)
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

/// Returns ln(part / whole), and minus infinity if the part has not the precision of a double.
fn log_share(part: f64, whole: f64) -> f64 {
    if part >= f64::MIN_POSITIVE {
        (part / whole).ln()
    } else {
        f64::NEG_INFINITY
    }
}

#[cfg(test)]
mod tests {
    use fhaim_domain::Domain;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::FitReport;
    use crate::extra_pairs::ExtraPairs;
    use crate::resolution::Resolution;
    use crate::saved::Parts;

    const SIZES: [usize; 4] = [3, 6, 4, 2];
    const GROUPS: [u32; 6] = [0, 0, 1, 1, 1, 2];

    /// Returns log-potentials from -2000 to 0 over a chain of attributes, the second of which is in groups, and for each
    /// record the sum of its log-potentials.
    fn steep_parts(rng: &mut ChaCha8Rng, single: bool) -> (Parts, Vec<f64>) {
        let domain = Domain::new(SIZES.to_vec());
        let splits = vec![None, Some(GROUPS.to_vec()), None, None];
        let resolution = Resolution::with_splits(&domain, splits);
        let sets: &[&[usize]] = match single {
            true => &[&[0, 1], &[1], &[1, 2], &[2, 3]],
            false => &[&[0, 1], &[1, 2], &[2, 3]],
        };
        let cells = |set: &[usize]| match set {
            [attribute] => SIZES[*attribute],
            _ => set.iter().map(|&a| resolution.domain().size(a)).product(),
        };
        let mut table = |set: &&[usize]| {
            (0..cells(set))
                .map(|_| rng.random_range(-2000.0..0.0))
                .collect()
        };
        let tables: Vec<Vec<f64>> = sets.iter().map(&mut table).collect();
        let weight = |record: &[usize]| -> f64 {
            let group = GROUPS[record[1]] as usize;
            let grouped = [record[0], group, record[2], record[3]];
            let of_set = |(set, table): (&&[usize], &Vec<f64>)| match **set {
                [attribute] => table[record[attribute]],
                [one, other] => {
                    table[grouped[one] * resolution.domain().size(other) + grouped[other]]
                }
                _ => unreachable!(),
            };
            let alike = GROUPS
                .iter()
                .filter(|&&other| other as usize == group)
                .count();
            let share = if single { 0.0 } else { -(alike as f64).ln() };
            sets.iter().zip(&tables).map(of_set).sum::<f64>() + share
        };
        let weights = records().iter().map(|record| weight(record)).collect();
        let parts = Parts {
            resolution,
            total: 100.0,
            report: FitReport::default(),
            cliques: sets.iter().map(|set| Clique::new(set.to_vec())).collect(),
            tables,
            beside: ExtraPairs::default(),
            domain,
        };
        (parts, weights)
    }

    /// Returns all records over the four attributes.
    fn records() -> Vec<[usize; 4]> {
        let record = |mut cell: usize| {
            SIZES.map(|size| {
                let value = cell % size;
                cell /= size;
                value
            })
        };
        (0..SIZES.iter().product()).map(record).collect()
    }

    #[test]
    fn densities_too_small_for_a_double_are_finite() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let columns: Vec<Vec<u32>> = (0..SIZES.len())
            .map(|a| records().iter().map(|record| record[a] as u32).collect())
            .collect();
        let mut smallest = 0.0f64;
        for single in [false, true].repeat(20) {
            let (parts, weights) = steep_parts(&mut rng, single);
            let model = Model::assemble(parts, usize::MAX).unwrap();
            let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = weights.iter().map(|weight| (weight - most).exp()).sum();
            let densities = model.log_densities(&columns).unwrap();
            for (density, weight) in densities.iter().zip(&weights) {
                let expected = weight - most - sum.ln();
                assert!((density - expected).abs() < 1e-6, "{density} {expected}");
                smallest = smallest.min(*density);
            }
            // A condition rules out all records with another value, however improbable the others are.
            let value = (0..3)
                .find(|&value| model.given(&[(0, value)]).is_ok())
                .unwrap();
            let given = model
                .given(&[(0, value)])
                .unwrap()
                .log_densities(&columns)
                .unwrap();
            for (density, &own) in given.iter().zip(&columns[0]) {
                assert_eq!(density.is_finite(), own == value);
            }
        }
        assert!(smallest < -2000.0, "{smallest}");
    }
}
