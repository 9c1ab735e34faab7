//! Shrinkage: moves a noisy block towards the model's counts from before the pair joined the model
//! (docs/MECHANISM.md, C step 4).

use fhaim_pgm::Measurement;

use crate::mechanisms::columns::Measured;

/// Blocks of fewer dimensions are not shrunk, because the James-Stein estimate does not improve
/// them.
const MIN_FREEDOM: f64 = 3.0;

/// Least share of a block's distance that shrinkage keeps. A block that shows only noise then
/// counts as a measurement with some precision, and not as certainty.
const MIN_KEPT: f64 = 0.05;

/// Returns the shrunk measurement of a block for the fit, or `None` before the first answer.
/// `counts` are the pair's counts in a model without the pair, row-major over all categories of
/// both attributes.
///
/// With Y the block's table, B the model's, s the noise's scale and b the dimension of the span,
/// the table becomes B + k (Y - B), at scale s sqrt k. The factor k = 1 - (b - 2) s^2 / ||Y - B||^2
/// (James and Stein 1961) is the share of the distance that noise does not account for.
pub(super) fn shrunk(measured: &Measured, counts: &[f64]) -> Option<Measurement> {
    let mut measurement = measured.measurement()?;
    let freedom = measured.block.freedom();
    if freedom < MIN_FREEDOM {
        return Some(measurement);
    }
    let expected = measured.block.project(counts);
    let cells = measurement.values.iter().zip(&expected);
    let distance: f64 = cells.map(|(y, b)| (y - b) * (y - b)).sum();
    let noise = (freedom - 2.0) * measured.scale() * measured.scale();
    // A distance of 0 is explained by noise completely.
    let kept = if distance > noise {
        (1.0 - noise / distance).max(MIN_KEPT)
    } else {
        MIN_KEPT
    };
    for (y, b) in measurement.values.iter_mut().zip(expected) {
        *y = b + kept * (*y - b);
    }
    measurement.sigma *= kept.sqrt();
    Some(measurement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Release, ReleaseAccount};
    use crate::mechanisms::block::{Block, BlockAxis};
    use crate::mechanisms::merge::Merges;
    use fhaim_domain::Domain;
    use fhaim_dp::Rho;
    use fhaim_release::{Holders, MechanismJob, Phase};

    /// Returns a block of two attributes of `size` values, measured once with the given values.
    fn measured(size: usize, value: impl Fn(usize) -> i64) -> Measured {
        let rho = Rho::from_f64_down(0.1).unwrap();
        let job = MechanismJob::new(Domain::new(vec![size; 2]), rho, 1000);
        let merges = Merges::new(&vec![1.0; size]);
        let axis = |attribute| BlockAxis::merged(attribute, &merges, size);
        let mut measured = Measured::new(Block::pair(axis(0), axis(1)));
        let mut account = ReleaseAccount::new(&job);
        let statistic = measured.block.statistic();
        let offer = account.offer(statistic, 0.05, u64::MAX).unwrap().unwrap();
        account.ask(Phase::ONE_WAYS, vec![offer]).unwrap();
        let cells = measured.block.statistic().cells();
        let answer: Vec<i64> = (0..cells).map(value).collect();
        account.settle(&[answer]).unwrap();
        let release: &Release = &account.settled()[0];
        measured.add(release, &Holders::default());
        measured
    }

    #[test]
    fn shrinkage_removes_noise_and_keeps_signal() {
        let sign = |cell: usize| if cell.is_multiple_of(2) { 1 } else { -1 };
        let counts = vec![1000.0 / 16.0; 16];
        // Values far below the noise shrink to almost 0, with a small scale.
        let noise = measured(4, sign);
        let raw = noise.measurement().unwrap();
        let shrunk_noise = shrunk(&noise, &counts).unwrap();
        assert!((shrunk_noise.sigma / raw.sigma - MIN_KEPT.sqrt()).abs() < 1e-12);
        let most = |values: &[f64]| values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        assert!(most(&shrunk_noise.values) <= MIN_KEPT * most(&raw.values) + 1e-9);
        // Values far above the noise stay as they are.
        let signal = measured(4, |cell| 1_000_000 * i64::from(cell == 5));
        let raw = signal.measurement().unwrap();
        let kept = shrunk(&signal, &counts).unwrap();
        assert!((kept.sigma / raw.sigma - 1.0).abs() < 1e-3);
        let cells = kept.values.iter().zip(&raw.values);
        assert!(
            cells
                .into_iter()
                .all(|(k, y)| (k - y).abs() <= 1e-3 * y.abs().max(1.0))
        );
    }

    #[test]
    fn single_contrast_is_not_shrunk() {
        let contrast = measured(2, |_| 3);
        let raw = contrast.measurement().unwrap();
        assert_eq!(shrunk(&contrast, &[250.0; 4]), Some(raw));
    }
}
