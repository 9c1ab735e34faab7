//! Tests the price of replacing one holder's part of a record, against all possible replacements.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::Clique;
use fhaim_release::{Axis, Holders, SquaredTerm, Statistic, Tariff};

/// Draws integers from -`range` to `range`, from a seed.
fn integers(seed: &mut u64, range: i64) -> i64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*seed >> 33) as i64 % (2 * range + 1) - range
}

fn axis(attribute: usize, functions: usize, size: usize, seed: &mut u64) -> Axis {
    let function = |_| (0..size).map(|_| integers(seed, 4)).collect();
    Axis {
        attribute,
        functions: (0..functions).map(function).collect(),
    }
}

fn tariff(owners: Vec<u32>, record_bound: u64) -> Tariff {
    let count = owners.iter().max().map_or(1, |last| last + 1);
    let holders = Holders::of_records(count, 1).unwrap();
    Tariff {
        holders: holders.with_columns(owners).unwrap(),
        ..Tariff::new(record_bound)
    }
}

/// Returns the cells that one record with these values adds.
fn cells(statistic: &Statistic, record: &[usize]) -> Vec<i64> {
    match statistic {
        Statistic::Total => vec![1],
        Statistic::OneWay(axis) => {
            let of = |u: &Vec<i64>| u[record[axis.attribute]];
            axis.functions.iter().map(of).collect()
        }
        Statistic::Product(a, b) => {
            let pairs = a.functions.iter();
            let pairs = pairs.flat_map(|u| b.functions.iter().map(move |v| (u, v)));
            let of =
                |(u, v): (&Vec<i64>, &Vec<i64>)| u[record[a.attribute]] * v[record[b.attribute]];
            pairs.map(of).collect()
        }
        Statistic::SquaredScores(_) => unreachable!("scores are not sums over records"),
    }
}

fn records(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &size in sizes {
        let longer =
            |record: Vec<usize>| (0..size).map(move |x| [record.clone(), vec![x]].concat());
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// Returns the largest squared change over both relations, by trying everything.
fn brute_force(statistic: &Statistic, sizes: &[usize], owners: &[u32]) -> u128 {
    let norm = |moved: Vec<i64>| moved.iter().map(|m| (m * m) as u128).sum::<u128>();
    let mut most = 0;
    for before in records(sizes) {
        let one = cells(statistic, &before);
        most = most.max(norm(one.clone()));
        for after in records(sizes) {
            let changed = (0..sizes.len()).filter(|&a| before[a] != after[a]);
            let mut holders: Vec<u32> = changed.map(|a| owners[a]).collect();
            holders.dedup();
            if holders.len() <= 1 {
                let two = cells(statistic, &after);
                most = most.max(norm(one.iter().zip(two).map(|(x, y)| x - y).collect()));
            }
        }
    }
    most
}

#[test]
fn replacement_sensitivities_equal_brute_force() {
    let mut seed = 1;
    for functions in 1..4 {
        for _ in 0..10 {
            let a = axis(0, functions, 4, &mut seed);
            let b = axis(1, 4 - functions, 3, &mut seed);
            let product = Statistic::Product(a.clone(), b);
            for (owners, sizes) in [(vec![0, 1], &[4, 3][..]), (vec![0, 0, 1], &[4, 3, 2])] {
                let one_way = Statistic::OneWay(a.clone());
                for statistic in [one_way, product.clone(), Statistic::Total] {
                    let exact = statistic.squared_sensitivity_under(&tariff(owners.clone(), 9));
                    assert_eq!(exact.unwrap(), brute_force(&statistic, sizes, &owners));
                }
            }
        }
    }
}

/// Both factors belong to one holder and change together, from 1 to 2 and from 2 to -3. The product
/// changes by more than if only one of them changed.
#[test]
fn both_columns_of_one_holder_change_together() {
    let axis = |attribute, values| Axis {
        attribute,
        functions: vec![values],
    };
    let product = Statistic::Product(axis(0, vec![1, 2]), axis(1, vec![2, -3]));
    let under = |owners| product.squared_sensitivity_under(&tariff(owners, 1));
    // From 2 * 2 to 2 * -3, compared with from 1 * 2 to 2 * -3.
    assert_eq!(under(vec![0, 1]).unwrap(), 100);
    let of_signs = Statistic::Product(axis(0, vec![1, -2]), axis(1, vec![1, 3]));
    let under = |owners| of_signs.squared_sensitivity_under(&tariff(owners, 1));
    assert_eq!(under(vec![0, 0, 1]).unwrap(), (3 + 6) * (3 + 6));
    let apart = Statistic::Product(axis(0, vec![1, 2]), axis(1, vec![1, 3]));
    let under = |owners| apart.squared_sensitivity_under(&tariff(owners, 1));
    // The replacement changes 1 * 1 to 2 * 3, squared 25. Adding the record is 36.
    assert_eq!(under(vec![0, 0, 1]).unwrap(), 36);
}

/// A contrast with opposite signs: replacing a value changes it twice as much as removing the
/// record.
#[test]
fn replacement_may_cost_four_times_as_much_as_removal() {
    let axis = Axis {
        attribute: 0,
        functions: vec![vec![1, -1]],
    };
    let one_way = Statistic::OneWay(axis);
    let under = tariff(vec![0, 1], 1);
    assert_eq!(one_way.squared_sensitivity(1).unwrap(), 1);
    assert_eq!(one_way.squared_sensitivity_under(&under).unwrap(), 4);
    assert_eq!(under.holders.largest_replacement(), 4);
}

/// Two cells of a table of at most N records. One of them loses a record to the other.
#[test]
fn squared_scores_change_by_at_most_their_sensitivity() {
    let bound = 3i64;
    let mut most = 0;
    for (m, other) in (1..=bound).flat_map(|m| (0..=bound - m).map(move |other| (m, other))) {
        for target in 0..=bound {
            for other_target in 0..=bound {
                let before = (m - target).pow(2) + (other - other_target).pow(2);
                let after = (m - 1 - target).pow(2) + (other + 1 - other_target).pow(2);
                most = most.max((after - before).pow(2) as u128);
            }
        }
    }
    assert_eq!(most, (4 * 3 - 2) * (4 * 3 - 2));
    let term = |a, b, weight| SquaredTerm {
        clique: Clique::new([a, b]),
        weight,
        target: vec![0, 1, 2, 3],
    };
    let scores = Statistic::SquaredScores(vec![term(0, 1, 2), term(1, 2, 3), term(0, 2, 1)]);
    let charged = |owners| {
        scores
            .squared_sensitivity_under(&tariff(owners, 3))
            .unwrap()
    };
    // The first holder has a column of every pair. Of three holders, the second has columns of the
    // two heaviest pairs.
    assert_eq!(charged(vec![0, 1, 0]), most * (4 + 9 + 1));
    assert_eq!(charged(vec![0, 1, 2]), most * (4 + 9));
}

/// An attribute with ten thousand values has too many changes, so a bound replaces the maximum.
#[test]
fn sensitivity_of_large_attributes_is_bounded() {
    let under = tariff(vec![0, 1], 1);
    let spread = Statistic::OneWay(Axis {
        attribute: 0,
        functions: vec![(0..10_000).collect()],
    });
    let bound = spread.squared_sensitivity_under(&under).unwrap();
    assert_eq!(bound, 4 * 9_999 * 9_999);
    let wide = Statistic::OneWay(Axis::identity(0, 2_000));
    assert_eq!(wide.squared_sensitivity_under(&under).unwrap(), 2);
}
