//! Noisy linear views of clique marginals.

use fhaim_domain::{Clique, Domain};

use crate::Error;

/// The view of one axis of a measured table: merged, and then optionally centred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AxisView {
    /// The group of each category, numbered from 0 without gaps; `None` keeps the categories.
    pub groups: Option<Vec<u32>>,
    /// Whether the mean along this axis is projected out: I - 11'/k on k groups.
    pub centred: bool,
}

impl AxisView {
    /// Returns the number of groups on the axis of an attribute with `size` values.
    pub fn size(&self, size: usize) -> usize {
        match &self.groups {
            None => size,
            Some(groups) => groups.iter().max().map_or(0, |&g| g as usize + 1),
        }
    }
}

/// A measurement y = P(G(mu)) + noise of the marginal mu of `clique`.
///
/// G merges every axis, and P subtracts the mean along every centred axis. The noise is independent
/// Gaussian noise of standard deviation `sigma` in every direction that P keeps.
///
/// An empty clique with one value measures the number of records.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Attributes of the table.
    pub clique: Clique,
    /// One view for each attribute of the clique, ascending.
    pub axes: Vec<AxisView>,
    /// Cells of the merged table, row-major (the last axis varies fastest). The part outside the
    /// image of P is removed before the fit.
    pub values: Vec<f64>,
    /// Standard deviation of the noise, in records.
    pub sigma: f64,
}

impl Measurement {
    /// Returns a measurement of all cells of a marginal as they are.
    pub fn cells(clique: Clique, values: Vec<f64>, sigma: f64) -> Self {
        Self {
            axes: vec![AxisView::default(); clique.len()],
            clique,
            values,
            sigma,
        }
    }

    /// Whether the cells add up to the number of records, because no axis is centred.
    pub fn sees_total(&self) -> bool {
        self.axes.iter().all(|axis| !axis.centred)
    }

    /// Returns the shape of the merged table in `domain`.
    pub fn shape(&self, domain: &Domain) -> Vec<usize> {
        let attributes = self.clique.attributes();
        (attributes.iter().zip(&self.axes))
            .map(|(&a, axis)| axis.size(domain.size(a)))
            .collect()
    }

    /// Checks the measurement against the domain. `number` identifies it in errors.
    pub(crate) fn check(&self, number: usize, domain: &Domain) -> Result<(), Error> {
        check_clique(&self.clique, domain)?;
        if self.axes.len() != self.clique.len() {
            return Err(Error::AxisCount {
                measurement: number,
                expected: self.clique.len(),
                found: self.axes.len(),
            });
        }
        for (&attribute, axis) in self.clique.attributes().iter().zip(&self.axes) {
            let Some(groups) = &axis.groups else {
                continue;
            };
            check_groups(groups, domain.size(attribute)).map_err(|problem| Error::Groups {
                measurement: number,
                attribute,
                problem,
            })?;
        }
        self.check_values(number, domain)
    }

    fn check_values(&self, number: usize, domain: &Domain) -> Result<(), Error> {
        let shape = self.shape(domain);
        let cells = shape.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
        if cells != Some(self.values.len()) {
            return Err(Error::ValueCount {
                measurement: number,
                expected: cells.unwrap_or(usize::MAX),
                found: self.values.len(),
            });
        }
        if let Some(cell) = self.values.iter().position(|y| !y.is_finite()) {
            return Err(Error::NotFinite {
                measurement: number,
                cell,
            });
        }
        let weight = 1.0 / (self.sigma * self.sigma);
        if self.sigma > 0.0 && weight.is_normal() {
            Ok(())
        } else {
            Err(Error::Sigma {
                measurement: number,
                sigma: self.sigma,
            })
        }
    }
}

/// Checks that every attribute of `clique` is one of `domain`.
pub(crate) fn check_clique(clique: &Clique, domain: &Domain) -> Result<(), Error> {
    match clique.attributes().last() {
        Some(&attribute) if attribute >= domain.len() => Err(Error::UnknownAttribute {
            attribute,
            attributes: domain.len(),
        }),
        _ => Ok(()),
    }
}

/// Checks that there is one group for each of `size` categories, and that every group has a
/// category.
pub(crate) fn check_groups(groups: &[u32], size: usize) -> Result<(), &'static str> {
    if groups.len() != size {
        return Err("must have one entry for each category");
    }
    if groups.iter().any(|&g| g as usize >= size) {
        return Err("must not be more than the categories");
    }
    let count = groups.iter().max().map_or(0, |&g| g as usize + 1);
    let mut used = vec![false; count];
    for &g in groups {
        used[g as usize] = true;
    }
    if used.contains(&false) {
        return Err("must be numbered without gaps");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain() -> Domain {
        Domain::new(vec![2, 3])
    }

    fn pair(values: Vec<f64>, sigma: f64) -> Measurement {
        Measurement::cells(Clique::new([0, 1]), values, sigma)
    }

    #[test]
    fn table_of_the_right_shape_is_accepted() {
        assert_eq!(pair(vec![1.0; 6], 1.0).check(0, &domain()), Ok(()));
        let total = Measurement::cells(Clique::new([]), vec![5.0], 1.0);
        assert_eq!(total.check(0, &domain()), Ok(()));
    }

    #[test]
    fn invalid_values_and_scales_are_rejected() {
        let check = |values, sigma| pair(values, sigma).check(4, &domain());
        assert_eq!(
            check(vec![1.0; 5], 1.0),
            Err(Error::ValueCount {
                measurement: 4,
                expected: 6,
                found: 5
            })
        );
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut values = vec![0.0; 6];
            values[2] = bad;
            assert_eq!(
                check(values, 1.0),
                Err(Error::NotFinite {
                    measurement: 4,
                    cell: 2
                })
            );
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-200, 1e200] {
            assert!(matches!(
                check(vec![0.0; 6], bad),
                Err(Error::Sigma { measurement: 4, .. })
            ));
        }
    }

    #[test]
    fn invalid_groups_are_rejected() {
        let grouped = |groups: Vec<u32>, values: usize| {
            let mut measurement = pair(vec![0.0; values], 1.0);
            measurement.axes[1].groups = Some(groups);
            measurement.check(0, &domain())
        };
        assert_eq!(grouped(vec![0, 1, 1], 4), Ok(()));
        for (groups, values) in [
            (vec![0, 1], 4),
            (vec![0, 1, 7], 16),
            (vec![0, 2, 2], 6),
            (vec![1, 1, 1], 4),
        ] {
            assert!(matches!(
                grouped(groups, values),
                Err(Error::Groups { attribute: 1, .. })
            ));
        }
    }

    #[test]
    fn views_and_attributes_must_match_the_domain() {
        let mut measurement = pair(vec![0.0; 6], 1.0);
        measurement.axes.pop();
        assert!(matches!(
            measurement.check(0, &domain()),
            Err(Error::AxisCount { .. })
        ));
        let measurement = Measurement::cells(Clique::new([2]), vec![0.0], 1.0);
        assert!(matches!(
            measurement.check(0, &domain()),
            Err(Error::UnknownAttribute { attribute: 2, .. })
        ));
    }
}
