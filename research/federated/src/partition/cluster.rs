//! Clusters of similar records: principal components of the standardised codes, then k-means.

use fhaim_domain::Table;
use rand::{Rng, RngCore};

use super::draw::normal;

/// Number of principal components by which records are compared.
const COMPONENTS: usize = 2;

/// Number of steps of the power iteration for one component.
const POWER_STEPS: usize = 100;

/// The most rounds of k-means.
const ROUNDS: usize = 40;

/// Coordinates of a record.
type Point = [f64; COMPONENTS];

/// Returns the rows of each cluster. Clusters can be empty.
pub(super) fn cluster(table: &Table, clusters: usize, rng: &mut dyn RngCore) -> Vec<Vec<usize>> {
    let points = project(&standardised(table), table.records(), rng);
    let mut centres = spread(&points, clusters, rng);
    let mut nearest = vec![usize::MAX; points.len()];
    for _ in 0..ROUNDS {
        let mut moved = false;
        for (point, own) in points.iter().zip(&mut nearest) {
            let closest = closest(point, &centres).0;
            moved |= closest != *own;
            *own = closest;
        }
        if !moved {
            break;
        }
        centres = means(&points, &nearest, &centres);
    }
    let mut dealt = vec![Vec::new(); clusters];
    for (row, cluster) in nearest.into_iter().enumerate() {
        dealt[cluster].push(row);
    }
    dealt
}

/// Standardises columns of codes to mean 0 and variance 1. Leaves out columns with a single value.
fn standardised(table: &Table) -> Vec<Vec<f64>> {
    let records = table.records() as f64;
    let standardise = |codes: &Vec<u32>| {
        let mean = codes.iter().map(|&c| f64::from(c)).sum::<f64>() / records;
        let squares = codes.iter().map(|&c| (f64::from(c) - mean).powi(2));
        let deviation = (squares.sum::<f64>() / records).sqrt();
        let place = |&code: &u32| (f64::from(code) - mean) / deviation;
        (deviation > 0.0).then(|| codes.iter().map(place).collect())
    };
    table.columns().iter().filter_map(standardise).collect()
}

/// Returns each record's coordinates along the first principal components, which are found one by one with power
/// iteration on the correlation matrix.
fn project(columns: &[Vec<f64>], records: usize, rng: &mut dyn RngCore) -> Vec<Point> {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut matrix: Vec<Vec<f64>> = columns
        .iter()
        .map(|a| {
            columns
                .iter()
                .map(|b| product(a, b) / records as f64)
                .collect()
        })
        .collect();
    let mut points = vec![[0.0; COMPONENTS]; records];
    for component in 0..COMPONENTS.min(columns.len()) {
        let mut axis: Vec<f64> = columns.iter().map(|_| normal(rng)).collect();
        let mut length = 1.0;
        for _ in 0..POWER_STEPS {
            let next: Vec<f64> = matrix.iter().map(|row| product(row, &axis)).collect();
            length = product(&next, &next).sqrt().max(f64::MIN_POSITIVE);
            axis = next.into_iter().map(|x| x / length).collect();
        }
        for (row, one) in matrix.iter_mut().zip(&axis) {
            row.iter_mut()
                .zip(&axis)
                .for_each(|(x, two)| *x -= length * one * two);
        }
        for (column, weight) in columns.iter().zip(&axis) {
            let places = points.iter_mut().zip(column);
            places.for_each(|(point, x)| point[component] += weight * x);
        }
    }
    points
}

fn distance(one: &Point, two: &Point) -> f64 {
    one.iter().zip(two).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// Returns the closest centre (the first one in case of a tie) and the squared distance to it.
fn closest(point: &Point, centres: &[Point]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (number, centre) in centres.iter().enumerate() {
        let distance = distance(point, centre);
        if distance < best.1 {
            best = (number, distance);
        }
    }
    best
}

/// Chooses initial centres that are far apart: each is drawn with probability proportional to the squared distance to
/// the nearest earlier one (k-means++, Arthur and Vassilvitskii 2007).
fn spread(points: &[Point], clusters: usize, rng: &mut dyn RngCore) -> Vec<Point> {
    let mut centres = vec![points[rng.random_range(0..points.len())]];
    let mut distances: Vec<f64> = points.iter().map(|p| distance(p, &centres[0])).collect();
    while centres.len() < clusters {
        let total: f64 = distances.iter().sum();
        let mut left = rng.random::<f64>() * total;
        let drawn = distances.iter().position(|d| {
            left -= d;
            left < 0.0
        });
        let centre = points[drawn.unwrap_or(points.len() - 1)];
        for (nearest, point) in distances.iter_mut().zip(points) {
            *nearest = nearest.min(distance(point, &centre));
        }
        centres.push(centre);
    }
    centres
}

/// Returns the mean of each cluster's points. A cluster without points keeps its centre.
fn means(points: &[Point], nearest: &[usize], centres: &[Point]) -> Vec<Point> {
    let mut sums = vec![([0.0; COMPONENTS], 0.0); centres.len()];
    for (point, &cluster) in points.iter().zip(nearest) {
        let (sum, count) = &mut sums[cluster];
        sum.iter_mut().zip(point).for_each(|(s, x)| *s += x);
        *count += 1.0;
    }
    let mean = |((sum, count), centre): ((Point, f64), &Point)| match count {
        0.0 => *centre,
        count => sum.map(|s| s / count),
    };
    sums.into_iter().zip(centres).map(mean).collect()
}
