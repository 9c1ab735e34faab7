//! Compares fitted models with the joint distribution, cell by cell.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Clique, Domain};
use fhaim_pgm::{AxisView, Ending, Error, FitOptions, Measurement, Model, Passes, fit, fit_once};
use rand::seq::index;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A row-major table over all attributes of a domain.
struct Joint<'a> {
    domain: &'a Domain,
    cells: Vec<f64>,
}

impl<'a> Joint<'a> {
    fn of(model: &'a Model) -> Self {
        let all = Clique::new(0..model.domain().len());
        Self {
            domain: model.domain(),
            cells: model.marginal(&all).unwrap(),
        }
    }

    fn value(&self, cell: usize, attribute: usize) -> usize {
        let inner: usize = self.domain.sizes()[attribute + 1..].iter().product();
        cell / inner % self.domain.size(attribute)
    }

    /// Returns the row-major cell of the marginal over `clique`.
    fn place(&self, cell: usize, clique: &Clique) -> usize {
        (clique.attributes().iter()).fold(0, |place, &a| {
            place * self.domain.size(a) + self.value(cell, a)
        })
    }

    fn marginal(&self, clique: &Clique) -> Vec<f64> {
        let mut sums = vec![0.0; self.domain.cells(clique).unwrap()];
        for (cell, x) in self.cells.iter().enumerate() {
            sums[self.place(cell, clique)] += x;
        }
        sums
    }
}

/// Computes the view of a marginal from its definition, with P and G as sums over all coordinates.
fn view(domain: &Domain, measurement: &Measurement, marginal: &[f64]) -> Vec<f64> {
    let shape = measurement.shape(domain);
    let attributes = measurement.clique.attributes();
    let mut table = vec![0.0; shape.iter().product()];
    for (cell, x) in marginal.iter().enumerate() {
        let mut rest = cell;
        let mut values: Vec<usize> = Vec::new();
        for &a in attributes.iter().rev() {
            values.push(rest % domain.size(a));
            rest /= domain.size(a);
        }
        values.reverse();
        let place =
            (values.iter().zip(&measurement.axes).zip(&shape)).fold(0, |p, ((&v, axis), k)| {
                p * k + axis.groups.as_ref().map_or(v, |groups| groups[v] as usize)
            });
        table[place] += x;
    }
    for i in (0..shape.len()).filter(|&i| measurement.axes[i].centred) {
        let inner: usize = shape[i + 1..].iter().product();
        let old = table.clone();
        for (place, x) in table.iter_mut().enumerate() {
            let first = place - place / inner % shape[i] * inner;
            let sum: f64 = (0..shape[i]).map(|j| old[first + j * inner]).sum();
            *x -= sum / shape[i] as f64;
        }
    }
    table
}

fn loss(domain: &Domain, measurements: &[Measurement], joint: &Joint) -> f64 {
    (measurements.iter())
        .map(|m| {
            let seen = view(domain, m, &joint.marginal(&m.clique));
            // The part of the measurement outside the image of P is not part of the loss.
            let target = project(domain, m, &m.values);
            let squares = seen.iter().zip(&target).map(|(a, b)| (a - b).powi(2));
            0.5 * squares.sum::<f64>() / m.sigma.powi(2)
        })
        .sum()
}

/// Centres values that are already merged.
fn project(domain: &Domain, measurement: &Measurement, values: &[f64]) -> Vec<f64> {
    let merged = Domain::new(measurement.shape(domain));
    let identity = Measurement {
        clique: Clique::new(0..merged.len()),
        axes: (measurement.axes.iter())
            .map(|axis| AxisView {
                groups: None,
                centred: axis.centred,
            })
            .collect(),
        ..measurement.clone()
    };
    view(&merged, &identity, values)
}

fn random_domain(rng: &mut ChaCha8Rng) -> Domain {
    let attributes = rng.random_range(1..6);
    Domain::new((0..attributes).map(|_| rng.random_range(1..5)).collect())
}

fn random_axis(rng: &mut ChaCha8Rng, size: usize) -> AxisView {
    let groups = rng.random_bool(0.4).then(|| {
        let k = rng.random_range(1..=size as u32);
        // Every group has a category; the other categories are in random groups.
        (0..size as u32)
            .map(|c| if c < k { c } else { rng.random_range(0..k) })
            .collect()
    });
    AxisView {
        groups,
        centred: rng.random_bool(0.3),
    }
}

fn random_measurement(rng: &mut ChaCha8Rng, domain: &Domain) -> Measurement {
    let count = rng.random_range(0..=domain.len().min(3));
    let clique = Clique::new(index::sample(rng, domain.len(), count));
    let axes = (clique.attributes().iter())
        .map(|&a| random_axis(rng, domain.size(a)))
        .collect();
    let mut measurement = Measurement {
        clique,
        axes,
        values: Vec::new(),
        sigma: rng.random_range(0.5..3.0),
    };
    let cells = measurement.shape(domain).iter().product();
    measurement.values = (0..cells).map(|_| rng.random_range(-3.0..40.0)).collect();
    measurement
}

fn random_problem(rng: &mut ChaCha8Rng) -> (Domain, Vec<Measurement>) {
    let domain = random_domain(rng);
    let measurements = (0..rng.random_range(0..8))
        .map(|_| random_measurement(rng, &domain))
        .collect();
    (domain, measurements)
}

fn exact(steps: usize) -> FitOptions {
    FitOptions {
        steps,
        tolerance: 0.0,
        total: Some(100.0),
        ..FitOptions::default()
    }
}

fn assert_close(a: &[f64], b: &[f64], within: f64) {
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= within, "{x} and {y}");
    }
}

#[test]
fn every_marginal_belongs_to_a_single_joint_distribution() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..150 {
        let (domain, measurements) = random_problem(&mut rng);
        let model = fit_once(&domain, &measurements, &exact(30), None).unwrap();
        let joint = Joint::of(&model);
        assert!((joint.cells.iter().sum::<f64>() - 100.0).abs() < 1e-9);
        let subsets: Vec<Clique> = (0..1u32 << domain.len())
            .map(|bits| Clique::new((0..domain.len()).filter(|&a| bits >> a & 1 == 1)))
            .collect();
        for clique in &subsets {
            assert_close(
                &model.marginal(clique).unwrap(),
                &joint.marginal(clique),
                1e-9,
            );
        }
        let many = model.pair_marginals(&subsets).unwrap();
        for (clique, marginal) in subsets.iter().zip(&many) {
            assert_close(marginal, &joint.marginal(clique), 1e-9);
        }
    }
}

/// Uses domains whose joint table is far too large to store: trees with many nodes, where pairs
/// meet at any height, and several components.
#[test]
fn pair_marginals_equal_single_marginals() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for attributes in [2, 8, 14, 30] {
        let domain = Domain::new((0..attributes).map(|_| rng.random_range(1..6)).collect());
        let pairs = domain.pairs();
        let measured = index::sample(&mut rng, pairs.len(), pairs.len().min(attributes));
        let measurements: Vec<Measurement> = (measured.iter())
            .map(|i| {
                let cells = domain.cells(&pairs[i]).unwrap();
                let values = (0..cells).map(|_| rng.random_range(0.0..30.0)).collect();
                Measurement::cells(pairs[i].clone(), values, 2.0)
            })
            .collect();
        let model = fit_once(&domain, &measurements, &exact(100), None).unwrap();
        // In reverse order, some of them twice, together with cliques of other sizes.
        let mut asked: Vec<Clique> = pairs.iter().rev().cloned().collect();
        asked.extend([[0, 1], [0, 1]].map(Clique::new));
        asked.extend([Clique::new([]), Clique::new([1]), Clique::new(0..2)]);
        let many = model.pair_marginals(&asked).unwrap();
        for (clique, marginal) in asked.iter().zip(&many) {
            assert_close(marginal, &model.marginal(clique).unwrap(), 1e-9);
        }
        let unknown = [Clique::new([0, attributes])];
        assert!(matches!(
            model.pair_marginals(&unknown),
            Err(Error::UnknownAttribute { .. })
        ));
    }
}

/// The attributes are a chain and a star. A table over a triple and the attributes between them has
/// four attributes, and more bytes than the cap.
#[test]
fn marginals_across_cliques_need_no_table_with_all_attributes_between() {
    let mut rng = ChaCha8Rng::seed_from_u64(14);
    let domain = Domain::new((20..30).collect());
    let edges = [
        [0, 1],
        [1, 2],
        [2, 3],
        [3, 4],
        [5, 6],
        [5, 7],
        [5, 8],
        [5, 9],
    ]
    .map(Clique::new);
    let measurements: Vec<Measurement> = (edges.iter())
        .map(|edge| {
            let cells = domain.cells(edge).unwrap();
            let values = (0..cells).map(|_| rng.random_range(0.0..30.0)).collect();
            Measurement::cells(edge.clone(), values, 2.0)
        })
        .collect();
    let model = fit_once(&domain, &measurements, &exact(50), None).unwrap();
    let limited = Model::load(&model.save(), 1_500_000).unwrap();
    for triple in [
        [0, 2, 4],
        [0, 1, 4],
        [0, 3, 4],
        [6, 7, 8],
        [7, 8, 9],
        [1, 4, 9],
    ] {
        let triple = Clique::new(triple);
        let whole = model.marginal(&triple).unwrap();
        assert_close(&limited.marginal(&triple).unwrap(), &whole, 1e-9);
    }
    let leaves = Clique::new([6, 7, 8, 9]);
    assert!(matches!(
        limited.marginal(&leaves),
        Err(Error::TooLarge { .. })
    ));
}

#[test]
fn densities_equal_those_of_the_joint_distribution() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    for _ in 0..40 {
        let (domain, measurements) = random_problem(&mut rng);
        let model = fit_once(&domain, &measurements, &exact(200), None).unwrap();
        let joint = Joint::of(&model);
        let records = 0..joint.cells.len();
        let columns: Vec<Vec<u32>> = (0..domain.len())
            .map(|a| records.clone().map(|x| joint.value(x, a) as u32).collect())
            .collect();
        let densities = model.log_densities(&columns).unwrap();
        for (density, count) in densities.iter().zip(&joint.cells) {
            assert!((density.exp() - count / model.total()).abs() < 1e-9);
        }
        let sum: f64 = densities.iter().map(|density| density.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        // Conditional densities, by the definition of conditional probability.
        let share = model.marginal(&Clique::new([0])).unwrap()[0] / model.total();
        let Ok(given) = model.given(&[(0, 0)]) else {
            continue;
        };
        for (record, density) in given.log_densities(&columns).unwrap().iter().enumerate() {
            let expected = match columns[0][record] {
                0 => densities[record].exp() / share,
                _ => 0.0,
            };
            assert!((density.exp() - expected).abs() < 1e-9);
        }
    }
}

/// With many records, densities are looked up in tables; with few, each is computed.
#[test]
fn density_of_a_record_does_not_depend_on_other_records() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..50 {
        let (domain, measurements) = random_problem(&mut rng);
        let model = fit_once(&domain, &measurements, &exact(50), None).unwrap();
        let many: Vec<Vec<u32>> = (domain.sizes().iter())
            .map(|&size| {
                (0..5000)
                    .map(|_| rng.random_range(0..size) as u32)
                    .collect()
            })
            .collect();
        let densities = model.log_densities(&many).unwrap();
        for record in (0..5000).step_by(499) {
            let one: Vec<Vec<u32>> = many.iter().map(|column| vec![column[record]]).collect();
            let density = model.log_densities(&one).unwrap()[0];
            assert_eq!(density.to_bits(), densities[record].to_bits());
        }
    }
}

#[test]
fn densities_of_invalid_records_are_rejected() {
    let domain = Domain::new(vec![2, 3]);
    let measured = [Measurement::cells(Clique::new([0]), vec![3.0, 5.0], 1.0)];
    let model = fit_once(&domain, &measured, &FitOptions::default(), None).unwrap();
    let columns = Err(Error::Columns { attributes: 2 });
    assert_eq!(model.log_densities(&[vec![0]]), columns);
    assert_eq!(model.log_densities(&[vec![0], vec![0, 1]]), columns);
    let unknown = Error::UnknownValue {
        attribute: 1,
        value: 3,
    };
    assert_eq!(model.log_densities(&[vec![1], vec![3]]), Err(unknown));
    assert_eq!(model.log_densities(&[vec![], vec![]]), Ok(vec![]));
}

#[test]
fn loss_matches_its_definition_and_is_minimal() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for _ in 0..150 {
        let (domain, measurements) = random_problem(&mut rng);
        for passes in [Passes::Tables, Passes::Contractions] {
            let options = FitOptions {
                passes,
                ..exact(3000)
            };
            let model = fit_once(&domain, &measurements, &options, None).unwrap();
            let joint = Joint::of(&model);
            let expected = loss(&domain, &measurements, &joint);
            assert!((model.loss() - expected).abs() <= 1e-9 * (1.0 + expected));
            let gap = optimality_gap(&domain, &measurements, &joint);
            assert!(
                gap <= 1e-3 * (1.0 + expected),
                "{passes:?}: gap {gap} at loss {expected}"
            );
        }
    }
}

/// Returns an upper bound on the distance of the loss from the least over all distributions. By
/// convexity, it is the gradient times the joint table, minus the total times the gradient's
/// smallest entry.
fn optimality_gap(domain: &Domain, measurements: &[Measurement], joint: &Joint) -> f64 {
    let mut gradient = vec![0.0; joint.cells.len()];
    for m in measurements {
        let seen = view(domain, m, &joint.marginal(&m.clique));
        let target = project(domain, m, &m.values);
        let residual: Vec<f64> = (seen.iter().zip(&target))
            .map(|(a, b)| (a - b) / m.sigma.powi(2))
            .collect();
        for (cell, g) in gradient.iter_mut().enumerate() {
            let mut unit = vec![0.0; domain.cells(&m.clique).unwrap()];
            unit[joint.place(cell, &m.clique)] = 1.0;
            // P is its own transpose and the residual is in its image.
            let cell_view = view(domain, m, &unit);
            *g += cell_view
                .iter()
                .zip(&residual)
                .map(|(a, b)| a * b)
                .sum::<f64>();
        }
    }
    let least = gradient.iter().copied().fold(f64::INFINITY, f64::min);
    let total: f64 = joint.cells.iter().sum();
    gradient
        .iter()
        .zip(&joint.cells)
        .map(|(g, x)| g * x)
        .sum::<f64>()
        - total * least
}

/// Replaces the values of a measurement by the view of a distribution, with noise.
fn measure(rng: &mut ChaCha8Rng, joint: &Joint, measurement: &mut Measurement) {
    let seen = view(
        joint.domain,
        measurement,
        &joint.marginal(&measurement.clique),
    );
    let noisy = |x: &f64| x + measurement.sigma * rng.random_range(-1.7..1.7);
    measurement.values = seen.iter().map(noisy).collect();
}

#[test]
fn warm_start_and_cold_start_reach_the_same_loss() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for round in 0..400 {
        let (domain, mut measurements) = random_problem(&mut rng);
        measurements.extend((0..3).map(|_| random_measurement(&mut rng, &domain)));
        let joint = skewed_joint(&mut rng, &domain, 100.0);
        for measurement in &mut measurements {
            measure(&mut rng, &joint, measurement);
        }
        let before = &measurements[..measurements.len() - 3];
        let first = fit_once(&domain, before, &exact(200), None).unwrap();
        if round % 2 == 0 {
            // The start is the distribution of measurements that have since been removed.
            measurements.remove(0);
        }
        let cold = fit_once(&domain, &measurements, &exact(3000), None).unwrap();
        let warm = fit_once(&domain, &measurements, &exact(3000), Some(&first)).unwrap();
        let apart = (cold.loss() - warm.loss()).abs();
        assert!(
            apart <= 5e-3 * (1.0 + cold.loss()),
            "cold {}, warm {}",
            cold.loss(),
            warm.loss()
        );
    }
}

/// Models grow by one pair in each round, with ever less noise. A cell that early, noisy rounds
/// drive to zero must recover when later rounds see it.
#[test]
fn models_that_grow_by_warm_starts_do_not_get_stuck() {
    let sizes = [2, 3, 6, 3, 2, 3, 2];
    let domain = Domain::new(sizes.to_vec());
    let options = FitOptions {
        steps: 100,
        tolerance: 1e-3,
        ..FitOptions::default()
    };
    for seed in 0..15 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let joint = skewed_joint(&mut rng, &domain, 5000.0);
        let mut noisy = |clique: Clique, sigma: f64| {
            let marginal = joint.marginal(&clique).into_iter();
            let values = marginal
                .map(|x| x + sigma * rng.random_range(-1.7..1.7))
                .collect();
            Measurement::cells(clique, values, sigma)
        };
        let mut measurements: Vec<Measurement> = (0..sizes.len())
            .map(|a| noisy(Clique::new([a]), 60.0))
            .collect();
        let mut warm = fit(&domain, &measurements, &options, None).unwrap();
        for round in 0..14 {
            let (a, b) = (round % 7, (round * 3 + 1 + round / 7) % 7);
            let clique = Clique::new(if a == b { [0, 2] } else { [a, b] });
            // From 60 records down to 5.
            let sigma = 60.0 * (1.0f64 / 12.0).powf(round as f64 / 13.0);
            measurements.push(noisy(clique, sigma));
            warm = fit(&domain, &measurements, &options, Some(&warm)).unwrap();
            let cold = fit(&domain, &measurements, &options, None).unwrap();
            // Within half of the loss that noise accounts for.
            let noise = 0.5 * warm.report().values as f64;
            assert!(
                warm.loss() <= cold.loss() + 0.5 * noise,
                "seed {seed}, round {round}: cold {}, warm {}",
                cold.loss(),
                warm.loss()
            );
        }
    }
}

/// Returns a distribution with rare and frequent categories, not quite independent.
fn skewed_joint<'a>(rng: &mut ChaCha8Rng, domain: &'a Domain, total: f64) -> Joint<'a> {
    let shares: Vec<Vec<f64>> = (domain.sizes().iter())
        .map(|&size| {
            (0..size)
                .map(|_| rng.random_range(-3.0f64..3.0).exp())
                .collect()
        })
        .collect();
    let mut joint = Joint {
        domain,
        cells: Vec::new(),
    };
    for cell in 0..domain.sizes().iter().product() {
        let independent: f64 = (shares.iter().enumerate())
            .map(|(a, shares)| shares[joint.value(cell, a)])
            .product();
        let cell = independent * rng.random_range(-1.0f64..1.0).exp();
        joint.cells.push(cell);
    }
    let sum: f64 = joint.cells.iter().sum();
    joint.cells.iter_mut().for_each(|cell| *cell *= total / sum);
    joint
}

#[test]
fn warm_start_at_the_optimum_stays_there() {
    let domain = Domain::new(vec![3, 4, 2]);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    // The values are close to the marginals of a distribution without rare cells, so that no
    // potential is deep.
    let joint: Vec<f64> = (0..24).map(|_| rng.random_range(4.0..6.0)).collect();
    let joint = Joint {
        domain: &domain,
        cells: joint,
    };
    let measurements: Vec<Measurement> = [[0, 1], [1, 2]]
        .map(|pair| {
            let clique = Clique::new(pair);
            let noisy = joint.marginal(&clique).into_iter();
            let values = noisy.map(|x| x + rng.random_range(-0.3..0.3)).collect();
            Measurement::cells(clique, values, 1.0)
        })
        .into();
    let options = exact(500);
    let cold = fit_once(&domain, &measurements, &options, None).unwrap();
    let few = FitOptions {
        steps: 2,
        ..options
    };
    let warm = fit_once(&domain, &measurements, &few, Some(&cold)).unwrap();
    let nowhere = fit_once(&domain, &measurements, &few, None).unwrap();
    assert!((warm.loss() - cold.loss()).abs() < 1e-9 * cold.loss());
    assert!(nowhere.loss() > cold.loss() * (1.0 + 1e-3));
    assert!(warm.report().steps <= 2);
}

#[test]
fn total_is_the_inverse_variance_mean_of_the_measurements_that_show_it() {
    let domain = Domain::new(vec![2, 3]);
    let centred = AxisView {
        groups: None,
        centred: true,
    };
    let measurements = [
        Measurement::cells(Clique::new([]), vec![90.0], 2.0),
        Measurement::cells(Clique::new([1]), vec![30.0, 40.0, 50.0], 1.0),
        Measurement {
            clique: Clique::new([0]),
            axes: vec![centred],
            values: vec![700.0, -700.0],
            sigma: 1e-3,
        },
    ];
    let options = FitOptions::default();
    let model = fit_once(&domain, &measurements, &options, None).unwrap();
    // Variances 4 and 3.
    let expected = (90.0 / 4.0 + 120.0 / 3.0) / (1.0 / 4.0 + 1.0 / 3.0);
    assert!((model.total() - expected).abs() < 1e-9);
    let blind = fit_once(&domain, &measurements[2..], &options, None);
    assert_eq!(blind.err(), Some(Error::UnknownTotal));
}

#[test]
fn fit_without_measurements_is_uniform() {
    let domain = Domain::new(vec![2, 3, 1]);
    let model = fit_once(&domain, &[], &exact(10), None).unwrap();
    let pair = model.marginal(&Clique::new([0, 1])).unwrap();
    assert_close(&pair, &[100.0 / 6.0; 6], 1e-12);
    assert_eq!(model.loss(), 0.0);
    let empty = fit_once(&Domain::new(vec![]), &[], &exact(10), None).unwrap();
    assert_eq!(empty.marginal(&Clique::new([])).unwrap(), [100.0]);
    assert!(
        empty
            .sample(5, &mut ChaCha8Rng::seed_from_u64(0))
            .is_empty()
    );
}

#[test]
fn extreme_totals_and_scales_give_finite_models() {
    let domain = Domain::new(vec![2, 3, 2]);
    for (total, sigma) in [(1e12, 1e-6), (1e-9, 1e9), (1e15, 1e15), (1.0, 1e-9)] {
        let measure = |clique: Clique| {
            let cells = domain.cells(&clique).unwrap();
            let values = (0..cells)
                .map(|i| total * (i as f64 - 0.5) / cells as f64)
                .collect();
            Measurement::cells(clique, values, sigma)
        };
        let measurements = [[0, 1], [1, 2], [0, 2]].map(Clique::new).map(measure);
        let options = FitOptions {
            total: Some(total),
            ..FitOptions::default()
        };
        let model = fit_once(&domain, &measurements, &options, None).unwrap();
        let joint = Joint::of(&model);
        assert!(model.loss().is_finite());
        assert!(joint.cells.iter().all(|x| x.is_finite() && *x >= 0.0));
        assert!((joint.cells.iter().sum::<f64>() / total - 1.0).abs() < 1e-9);
        let uniform = fit_once(&domain, &measurements, &exact(1), None).unwrap();
        assert!(model.loss() <= uniform.loss() || total != 100.0);
    }
    let far = [Measurement::cells(
        Clique::new([0]),
        vec![1e200, 0.0],
        1e-10,
    )];
    let result = fit_once(&domain, &far, &exact(10), None);
    assert_eq!(result.err(), Some(Error::LossOverflow));
}

#[test]
fn almost_impossible_states_leave_no_gap_in_marginals() {
    let domain = Domain::new(vec![2, 3, 2, 3]);
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    for _ in 0..200 {
        let measurements: Vec<Measurement> = [[0, 1], [1, 2], [2, 3]]
            .map(|pair| {
                let clique = Clique::new(pair);
                let values = (0..6).map(|_| rng.random_range(-300.0..100.0)).collect();
                Measurement::cells(clique, values, rng.random_range(0.01..1.0))
            })
            .into();
        let model = fit_once(&domain, &measurements, &exact(400), None).unwrap();
        let pairs = domain.pairs();
        let many = model.pair_marginals(&pairs).unwrap();
        for (pair, marginal) in pairs.iter().zip(&many) {
            assert!((marginal.iter().sum::<f64>() - 100.0).abs() < 1e-9);
            assert_close(marginal, &model.marginal(pair).unwrap(), 1e-9);
        }
    }
}

#[test]
fn invalid_input_is_rejected_with_its_reason() {
    let domain = Domain::new(vec![2, 3]);
    let good = Measurement::cells(Clique::new([0]), vec![1.0, 2.0], 1.0);
    let refuse = |domain: &Domain, m: &Measurement, options: &FitOptions| {
        fit_once(domain, std::slice::from_ref(m), options, None)
            .err()
            .map(|e| e.to_string())
    };
    let options = FitOptions::default();
    let nan = Measurement::cells(Clique::new([0]), vec![1.0, f64::NAN], 1.0);
    assert_eq!(
        refuse(&domain, &nan, &options).as_deref(),
        Some("measurement 0, cell 1: the value is not a finite number")
    );
    let silent = Measurement {
        sigma: 0.0,
        ..good.clone()
    };
    assert_eq!(
        refuse(&domain, &silent, &options).as_deref(),
        Some("measurement 0: sigma 0 is not a usable positive number")
    );
    let hollow = Domain::new(vec![2, 0]);
    assert_eq!(
        refuse(&hollow, &good, &options).as_deref(),
        Some("attribute 1 has no values")
    );
    for total in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let options = FitOptions {
            total: Some(total),
            ..options.clone()
        };
        assert!(matches!(
            fit_once(&domain, &[], &options, None),
            Err(Error::Total { .. })
        ));
    }
    let negative = FitOptions {
        tolerance: -1.0,
        ..options.clone()
    };
    assert!(matches!(
        fit_once(&domain, &[], &negative, None),
        Err(Error::Option { .. })
    ));
    let model = fit_once(&domain, &[good], &options, None).unwrap();
    assert!(matches!(
        model.marginal(&Clique::new([5])),
        Err(Error::UnknownAttribute { attribute: 5, .. })
    ));
}

#[test]
fn model_beyond_the_cap_is_rejected_with_its_largest_clique() {
    let domain = Domain::new(vec![50, 60, 2, 70]);
    let wide = Measurement::cells(Clique::new([0, 1]), vec![1.0; 3000], 1.0);
    let options = FitOptions {
        max_bytes: 20_000,
        ..FitOptions::default()
    };
    match fit_once(&domain, &[wide], &options, None) {
        Err(Error::TooLarge {
            bytes,
            cap,
            largest,
            cells,
        }) => {
            assert!(bytes > Some(24_000));
            assert_eq!((cap, cells), (20_000, Some(3000)));
            assert_eq!(largest, Clique::new([0, 1]));
        }
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn estimated_bytes_bound_the_size_of_a_model() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..50 {
        let (domain, measurements) = random_problem(&mut rng);
        let cliques: Vec<Clique> = measurements.iter().map(|m| m.clique.clone()).collect();
        let estimate = fhaim_pgm::model_bytes(&domain, &cliques).unwrap();
        let model = fit_once(&domain, &measurements, &exact(5), None).unwrap();
        assert!(model.bytes() <= estimate, "{} of {estimate}", model.bytes());
        let cells = fhaim_pgm::model_cells(&domain, &cliques).unwrap();
        assert!(model.bytes() >= 8 * cells);
    }
}

#[test]
fn samples_reproduce_every_pair_within_a_few_records() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for _ in 0..40 {
        let (domain, measurements) = random_problem(&mut rng);
        let model = fit_once(&domain, &measurements, &exact(200), None).unwrap();
        let records = 20_000;
        let columns = model.sample(records, &mut rng);
        assert_eq!(columns.len(), domain.len());
        for clique in domain.pairs() {
            let mut counts = vec![0.0; domain.cells(&clique).unwrap()];
            let place = |record: usize| {
                (clique.attributes().iter())
                    .fold(0, |p, &a| p * domain.size(a) + columns[a][record] as usize)
            };
            for place in (0..records).map(place) {
                counts[place] += 1.0;
            }
            let marginal = model.marginal(&clique).unwrap();
            for (count, x) in counts.iter().zip(&marginal) {
                // Independent draws would typically be 60 records off, and sometimes three times
                // that.
                let off = count - x * records as f64 / 100.0;
                assert!(off.abs() <= 15.0, "{clique:?}: {off}");
            }
        }
    }
}

/// Categories that no table of several attributes distinguishes form a single group in the tree.
#[test]
fn tree_over_groups_gives_the_same_model_with_fewer_cells() {
    let domain = Domain::new(vec![12, 9, 8, 3]);
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    let mut measurements: Vec<Measurement> = (0..4)
        .map(|a| {
            let values = (0..domain.size(a)).map(|_| rng.random_range(1.0..30.0));
            Measurement::cells(Clique::new([a]), values.collect(), 1.0)
        })
        .collect();
    for pair in [[0, 1], [1, 2], [0, 2], [2, 3]] {
        let groups = pair.map(|a| AxisView {
            groups: Some((0..domain.size(a) as u32).map(|c| c % 3).collect()),
            centred: rng.random_bool(0.5),
        });
        measurements.push(Measurement {
            clique: Clique::new(pair),
            axes: groups.into(),
            values: (0..9).map(|_| rng.random_range(0.0..30.0)).collect(),
            sigma: 1.0,
        });
    }
    let coarse = fit_once(&domain, &measurements, &exact(500), None).unwrap();
    // Measurements with huge noise tell almost nothing about these cells, but distinguish them.
    for pair in [[0, 1], [1, 2], [0, 2], [2, 3]] {
        let cells = domain.cells(&Clique::new(pair)).unwrap();
        measurements.push(Measurement::cells(Clique::new(pair), vec![0.0; cells], 1e8));
    }
    let fine = fit_once(&domain, &measurements, &exact(500), None).unwrap();
    assert!(5 * coarse.bytes() < fine.bytes());
    assert!((coarse.loss() - fine.loss()).abs() < 1e-6 * fine.loss());
    let (coarse, fine) = (Joint::of(&coarse), Joint::of(&fine));
    assert_close(&coarse.cells, &fine.cells, 1e-3);
}

#[test]
fn warm_start_converts_between_coarse_and_fine_groups() {
    let domain = Domain::new(vec![8, 6]);
    // Counts that grow along both attributes.
    let joint = Joint {
        domain: &domain,
        cells: (0..48)
            .map(|cell| f64::from(cell) * 100.0 / 1128.0)
            .collect(),
    };
    let measure = |divisor: u32| {
        let axes = [8, 6].map(|size: u32| AxisView {
            groups: (divisor > 1).then(|| (0..size).map(|c| c / divisor).collect()),
            centred: false,
        });
        let mut measurement = Measurement {
            clique: Clique::new([0, 1]),
            axes: axes.into(),
            values: Vec::new(),
            sigma: 0.2,
        };
        measurement.values = view(&domain, &measurement, &joint.cells);
        measurement
    };
    let (coarse, fine) = (measure(4), measure(2));
    let first = fit_once(&domain, std::slice::from_ref(&coarse), &exact(300), None).unwrap();
    let both = [coarse, fine];
    let few = exact(2);
    let cold = fit_once(&domain, &both, &few, None).unwrap();
    let warm = fit_once(&domain, &both, &few, Some(&first)).unwrap();
    assert!(warm.loss() < cold.loss());
    // In the other direction, the start distinguishes groups that the measurements do not.
    let end = fit_once(&domain, &both, &exact(500), None).unwrap();
    let back = fit_once(&domain, &both[..1], &exact(500), Some(&end)).unwrap();
    assert!((back.loss() - first.loss()).abs() < 1e-6 * (1.0 + first.loss()));
}

#[test]
fn few_records_are_drawn_without_bias() {
    let domain = Domain::new(vec![3, 2]);
    let clique = Clique::new([0, 1]);
    let weights = vec![1.0, 4.0, 10.0, 35.0, 30.0, 20.0];
    let measurements = [Measurement::cells(clique, weights.clone(), 1.0)];
    let model = fit_once(&domain, &measurements, &exact(1000), None).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    // A single record is an exact draw. Over more records, the effect of balancing averages out.
    for (records, rounds) in [(1, 60_000), (40, 1500)] {
        let mut counts = [0.0; 6];
        for _ in 0..rounds {
            let columns = model.sample(records, &mut rng);
            for (&x, &y) in columns[0].iter().zip(&columns[1]) {
                counts[x as usize * 2 + y as usize] += 1.0 / (rounds * records) as f64;
            }
        }
        for (count, weight) in counts.iter().zip(&weights) {
            assert!((count - weight / 100.0).abs() < 0.01, "{counts:?}");
        }
    }
}

#[test]
fn sampling_with_the_same_seed_gives_the_same_records() {
    let domain = Domain::new(vec![3, 2, 4]);
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let measurements: Vec<Measurement> = (0..4)
        .map(|_| random_measurement(&mut rng, &domain))
        .collect();
    let model = fit_once(&domain, &measurements, &exact(50), None).unwrap();
    let draw = |seed| model.sample(100, &mut ChaCha8Rng::seed_from_u64(seed));
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

/// Returns a table in which one record in five has an amount, as counts of (claims, amount) with
/// little noise.
fn zero_inflated() -> (Domain, Vec<Measurement>, Vec<Measurement>) {
    let domain = Domain::new(vec![3, 12]);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut joint = vec![0.0; 36];
    joint[0] = 16_000.0;
    for (cell, count) in joint.iter_mut().enumerate().skip(13) {
        *count = if cell % 12 == 0 { 0.0 } else { 4000.0 / 22.0 };
    }
    let mut noisy = |clique: Clique, counts: Vec<f64>, sigma: f64| {
        let values = counts
            .iter()
            .map(|x| x + sigma * rng.random_range(-1.7..1.7));
        Measurement::cells(clique, values.collect(), sigma)
    };
    let amounts: Vec<f64> = (0..12)
        .map(|a| joint[a] + joint[12 + a] + joint[24 + a])
        .collect();
    let only_zeros: Vec<f64> = (0..12)
        .map(|a| if a == 0 { 20_000.0 } else { 0.0 })
        .collect();
    let zeros = vec![noisy(Clique::new([1]), only_zeros, 3.0)];
    let measured = vec![
        noisy(Clique::new([1]), amounts, 3.0),
        noisy(Clique::new([0, 1]), joint, 3.0),
    ];
    (domain, zeros, measured)
}

#[test]
fn values_that_a_warm_start_considers_impossible_recover() {
    let (domain, zeros, measured) = zero_inflated();
    for passes in [Passes::Tables, Passes::Contractions] {
        let options = FitOptions {
            steps: 100,
            tolerance: 1e-3,
            passes,
            ..FitOptions::default()
        };
        let warm = fit(&domain, &zeros, &options, None).unwrap();
        let model = fit_once(&domain, &measured, &options, Some(&warm)).unwrap();
        assert!(model.report().is_explained(), "{:?}", model.report());
        let amounts = model.marginal(&Clique::new([1])).unwrap();
        let others: f64 = amounts[1..].iter().sum();
        assert!((others - 4000.0).abs() < 100.0, "{others}");
    }
}

#[test]
fn fit_ends_as_converged_once_its_loss_no_longer_falls() {
    let (domain, _, measured) = zero_inflated();
    let model = fit(&domain, &measured, &FitOptions::default(), None).unwrap();
    let report = model.report();
    assert_eq!(report.ending, Ending::Converged);
    assert_eq!(report.values, 12 + 36);
    assert_eq!((report.chain.unexplained, report.chain.fits), (0, 1));
}

#[test]
fn fit_that_is_out_of_steps_starts_again_from_nothing() {
    let (domain, zeros, measured) = zero_inflated();
    let options = FitOptions {
        steps: 6,
        ..FitOptions::default()
    };
    let warm = fit_once(&domain, &zeros, &FitOptions::default(), None).unwrap();
    let once = fit_once(&domain, &measured, &options, Some(&warm)).unwrap();
    assert_eq!(once.report().ending, Ending::OutOfSteps);
    assert!(!once.report().is_explained());
    let model = fit(&domain, &measured, &options, Some(&warm)).unwrap();
    let report = model.report();
    assert!(report.is_explained(), "{report:?}");
    assert_eq!(report.chain.unexplained, 1);
    assert!(report.steps > options.steps && report.steps <= 10 * options.steps);
}

#[test]
fn fit_to_contradictory_measurements_ends_with_their_attributes() {
    let (domain, zeros, mut measured) = zero_inflated();
    // One measurement says that all amounts are zero, the others that one in five is not.
    measured.extend(zeros);
    let once = fit_once(&domain, &measured, &exact(3000), None).unwrap();
    assert_ne!(once.report().ending, Ending::Converged);
    let error = fit(&domain, &measured, &FitOptions::default(), None).unwrap_err();
    let Error::Unexplained {
        loss,
        values,
        attributes,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(*values, 12 + 36 + 12);
    assert!(*loss > 1e4, "{loss}");
    assert_eq!(attributes[..], [0, 1]);
    assert!(
        error.to_string().contains("noise accounts for about 30"),
        "{error}"
    );
}

/// Noise of two standard errors makes the total too small for the counts of every attribute.
#[test]
fn too_small_total_is_raised() {
    let domain = Domain::new(vec![4; 20]);
    let centred = |attribute| Measurement {
        clique: Clique::new([attribute]),
        axes: vec![AxisView {
            groups: None,
            centred: true,
        }],
        // 300 records, all with the first category.
        values: vec![225.0, -75.0, -75.0, -75.0],
        sigma: 60.0,
    };
    let total = Measurement::cells(Clique::new([]), vec![20.0], 140.0);
    let measured: Vec<Measurement> = (0..20).map(centred).chain([total]).collect();
    let options = FitOptions::default();
    let once = fit_once(&domain, &measured, &options, None).unwrap();
    assert!(!once.report().is_explained(), "{:?}", once.report());
    let model = fit(&domain, &measured, &options, None).unwrap();
    assert!(model.report().is_explained(), "{:?}", model.report());
    assert!(
        model.total() > 100.0 && model.total() < 450.0,
        "{}",
        model.total()
    );
}
