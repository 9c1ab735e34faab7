//! The usual column and the usual dependence, which a forecast assumes of every table.

use std::collections::BTreeMap;

use crate::mechanisms::merge::Merges;

/// Total variation distance of a usual column from even shares. A released column with much noise
/// is estimated as nearly even, so its error is at most about this.
pub(super) const COLUMN_VARIATION: f64 = 0.3;

/// Total variation distance of a usual pair from independent columns. A pair that is not measured
/// has about this error.
pub(super) const PAIR_VARIATION: f64 = 0.1;

/// Number of values from which on a usual column's groups are computed as for this number.
const MOST_VALUES: usize = 1024;

/// A number of groups of a usual column, and the share of its variation that they resolve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Groups {
    pub(super) count: usize,
    pub(super) resolved: f64,
}

/// Returns the groups that resolve each of `shares` of a usual column, for all `sizes`.
///
/// The n-th most common value of a usual column has a share in proportion to 1 / n (Zipf).
pub(super) fn usual_groups(sizes: &[usize], shares: &[f64]) -> BTreeMap<usize, Vec<Groups>> {
    let mut all = BTreeMap::new();
    for &size in sizes {
        all.entry(size).or_insert_with(|| groups(size, shares));
    }
    all
}

fn groups(size: usize, shares: &[f64]) -> Vec<Groups> {
    let masses: Vec<f64> = (1..=size.min(MOST_VALUES))
        .map(|rank| 1.0 / rank as f64)
        .collect();
    let merges = Merges::new(&masses);
    let resolving = |&share: &f64| match share {
        all if all >= 1.0 => Groups {
            count: size,
            resolved: 1.0,
        },
        share => {
            let count = merges.groups_resolving(share);
            Groups {
                count,
                resolved: merges.resolved(count),
            }
        }
    };
    shares.iter().map(resolving).collect()
}
