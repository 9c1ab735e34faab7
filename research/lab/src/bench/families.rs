//! Generated tables for benchmarks: families of distributions that a mechanism may meet. Generators have fixed seeds,
//! so that everybody can reproduce the tables.

use std::{fmt, str::FromStr};

use fhaim_domain::{Schema, Table};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;

use crate::error::Error;

/// A family of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Every column depends on an earlier one; sizes from 2 to 12.
    Tree,
    /// Ten ordered columns from a Gaussian copula; every pair is correlated.
    Copula,
    /// Eight hidden classes; columns are independent within a class.
    Mixture,
    /// Independent columns.
    Independent,
    /// Most columns are a function of an earlier one, except in one record of fifty.
    Functions,
    /// 26 columns and few records; every column depends on an earlier one, most of them weakly.
    Wide,
    /// Four columns and few records.
    Narrow,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 7] = [
        Self::Tree,
        Self::Copula,
        Self::Mixture,
        Self::Independent,
        Self::Functions,
        Self::Wide,
        Self::Narrow,
    ];

    /// Returns the name of the family on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Copula => "copula",
            Self::Mixture => "mixture",
            Self::Independent => "independent",
            Self::Functions => "functions",
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }

    /// Returns the number of records and of columns of its tables.
    fn shape(self) -> (usize, usize) {
        match self {
            Self::Tree => (20_000, 12),
            Self::Copula => (50_000, 10),
            Self::Mixture => (10_000, 14),
            Self::Independent => (20_000, 12),
            Self::Functions => (20_000, 10),
            Self::Wide => (10_000, 26),
            Self::Narrow => (2_000, 4),
        }
    }

    /// Generates a table of the family. The same seed gives the same table.
    ///
    /// # Errors
    /// None: the generated schemas are always valid.
    pub fn table(self, seed: u64) -> Result<Table, Error> {
        let mut rng = StdRng::seed_from_u64(seed);
        let (records, columns) = self.shape();
        let sizes = self.sizes(columns, &mut rng);
        let codes = match self {
            Self::Tree | Self::Narrow => hanging(records, &sizes, 0.6, &mut rng),
            Self::Wide => hanging(records, &sizes, 3.0, &mut rng),
            Self::Copula => copula(records, &sizes, &mut rng),
            Self::Mixture => mixture(records, &sizes, 8, &mut rng),
            Self::Independent => mixture(records, &sizes, 1, &mut rng),
            Self::Functions => functions(records, &sizes, &mut rng),
        };
        named(self.as_str(), &sizes, codes)
    }

    /// Draws the number of categories of each column.
    fn sizes(self, columns: usize, rng: &mut StdRng) -> Vec<usize> {
        let sizes: &[usize] = match self {
            Self::Copula => &[10],
            Self::Wide => &[2, 2, 3, 4, 5, 8, 12, 16],
            Self::Narrow => &[2, 3, 5, 8],
            _ => &[2, 3, 4, 6, 8, 12],
        };
        (0..columns)
            .map(|_| sizes[rng.random_range(0..sizes.len())])
            .collect()
    }
}

/// Generates a table of `columns` columns with the sizes of the `tree` family, each of which depends on an earlier one.
/// The same seed gives the same table.
///
/// # Errors
/// [`Error::Product`] for zero records or columns.
pub fn hanging_table(records: usize, columns: usize, seed: u64) -> Result<Table, Error> {
    let mut rng = StdRng::seed_from_u64(seed);
    let sizes = Family::Tree.sizes(columns, &mut rng);
    let codes = hanging(records, &sizes, 0.6, &mut rng);
    named("hanging", &sizes, codes)
}

/// Makes a table of categories with generic names.
fn named(name: &str, sizes: &[usize], codes: Vec<Vec<u32>>) -> Result<Table, Error> {
    let columns = sizes.iter().enumerate().map(|(a, size)| {
        let categories: Vec<String> = (0..*size).map(|x| format!("v{x}")).collect();
        json!({"name": format!("c{a}"), "kind": "categorical", "categories": categories})
    });
    let columns: Vec<_> = columns.collect();
    let schema = json!({"name": name, "columns": columns});
    let schema = Schema::from_json(name, schema.to_string().as_bytes())?;
    let table = Table::new(schema, codes);
    Ok(table.map_err(fhaim_synth::Error::from)?)
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == name);
        let known = Self::ALL.map(Self::as_str).join(", ");
        found.ok_or_else(|| format!("unknown family {name:?}: choose from {known}"))
    }
}

/// Draws shares that sum to 1 from a Dirichlet distribution whose parameters are all `alpha`. `alpha` is rounded to a
/// multiple of one half, because a sum of squared normal deviates is a gamma deviate.
fn shares(size: usize, alpha: f64, rng: &mut StdRng) -> Vec<f64> {
    let degrees = (2.0 * alpha).round().max(1.0) as usize;
    let gamma = |rng: &mut StdRng| (0..degrees).map(|_| normal(rng).powi(2)).sum::<f64>();
    let drawn: Vec<f64> = (0..size).map(|_| gamma(rng) + 1e-9).collect();
    let sum: f64 = drawn.iter().sum();
    drawn.iter().map(|share| share / sum).collect()
}

/// Draws a standard normal deviate (Box and Muller).
pub fn normal(rng: &mut StdRng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Draws a category by its share.
fn draw(shares: &[f64], rng: &mut StdRng) -> u32 {
    let mut left: f64 = rng.random();
    let found = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    found.unwrap_or(shares.len() - 1) as u32
}

/// Draws columns one by one: the first independently, every other one given an earlier column.
fn hanging(records: usize, sizes: &[usize], alpha: f64, rng: &mut StdRng) -> Vec<Vec<u32>> {
    let mut columns: Vec<Vec<u32>> = Vec::new();
    for &size in sizes {
        let column = if columns.is_empty() {
            let shares = shares(size, 1.0, rng);
            (0..records).map(|_| draw(&shares, rng)).collect()
        } else {
            let parent = rng.random_range(0..columns.len());
            let given: Vec<_> = (0..sizes[parent])
                .map(|_| shares(size, alpha, rng))
                .collect();
            let parent = columns[parent].iter();
            parent.map(|&x| draw(&given[x as usize], rng)).collect()
        };
        columns.push(column);
    }
    columns
}

/// Draws columns that are independent within each of `classes` classes.
fn mixture(records: usize, sizes: &[usize], classes: usize, rng: &mut StdRng) -> Vec<Vec<u32>> {
    let weights = shares(classes, 1.0, rng);
    let class: Vec<u32> = (0..records).map(|_| draw(&weights, rng)).collect();
    let column = |&size: &usize| {
        let given: Vec<_> = (0..classes).map(|_| shares(size, 0.5, rng)).collect();
        let class = class.iter();
        class.map(|&c| draw(&given[c as usize], rng)).collect()
    };
    sizes.iter().map(column).collect()
}

/// Draws normal deviates with three common factors, and cuts them into bins from -3 to 3.
fn copula(records: usize, sizes: &[usize], rng: &mut StdRng) -> Vec<Vec<u32>> {
    let factors: Vec<[f64; 3]> = (0..records)
        .map(|_| [(); 3].map(|()| normal(rng)))
        .collect();
    let column = |&size: &usize| {
        let loads = [(); 3].map(|()| normal(rng));
        let norm = (1.0 + loads.iter().map(|l| l * l).sum::<f64>()).sqrt();
        let value = |factors: &[f64; 3]| {
            let common: f64 = loads.iter().zip(factors).map(|(l, f)| l * f).sum();
            let share = ((common + normal(rng)) / norm + 3.0) / 6.0;
            (share.clamp(0.0, 1.0 - 1e-9) * size as f64) as u32
        };
        factors.iter().map(value).collect()
    };
    sizes.iter().map(column).collect()
}

/// Draws the first three columns independently. Every other column is a function of an earlier one, except in one
/// record of fifty.
fn functions(records: usize, sizes: &[usize], rng: &mut StdRng) -> Vec<Vec<u32>> {
    let mut columns = mixture(records, &sizes[..3.min(sizes.len())], 1, rng);
    for &size in sizes.iter().skip(columns.len()) {
        let parent = rng.random_range(0..columns.len());
        let image: Vec<u32> = (0..sizes[parent])
            .map(|_| rng.random_range(0..size as u32))
            .collect();
        let value = |&x: &u32| match rng.random_range(0..50) {
            0 => rng.random_range(0..size as u32),
            _ => image[x as usize],
        };
        let column = columns[parent].iter().map(value).collect();
        columns.push(column);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_parsed_by_name_and_tables_are_reproducible() {
        for family in Family::ALL {
            assert_eq!(family.as_str().parse(), Ok(family));
            let table = family.table(1).unwrap();
            let (records, columns) = family.shape();
            assert_eq!((table.records(), table.domain().len()), (records, columns));
            let (again, other) = (family.table(1).unwrap(), family.table(2).unwrap());
            assert_eq!(table.column(0), again.column(0));
            assert_ne!(table.column(0), other.column(0));
        }
        assert!("trees".parse::<Family>().unwrap_err().contains("tree,"));
    }

    #[test]
    fn shares_are_positive_and_sum_to_one() {
        let mut rng = StdRng::seed_from_u64(1);
        for alpha in [0.5, 1.0, 3.0] {
            let shares = shares(7, alpha, &mut rng);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(shares.iter().all(|&share| share > 0.0));
        }
    }
}
