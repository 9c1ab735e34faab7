//! Correlated noise (CAPE; Saha, Tonoy and Imtiaz 2025, Algorithm 1): Gaussians that cancel in the sum of all parties.

use fhaim_dp::DiscreteGaussian;
use rand::CryptoRng;

use crate::Error;

/// The noise of parties that send `x_s + e_s + g_s` to a server, where all e_s add up to zero.
///
/// Each party draws ê_s; secure aggregation gives everyone the sum of the draws, and e_s is ê_s minus their mean. The
/// deviations are those that the paper intends: g_s has 1/sqrt(S) of that of ê_s, so that `e_s + g_s` together have
/// the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correlated {
    parties: u32,
    /// Scale of g_s.
    own: u64,
    /// Scale of ê_s.
    cancelled: u64,
}

impl Correlated {
    /// Plans noise for a number of parties. `scale` is that of the noise on a single party's vector; the noise of g_s
    /// is rounded up to an integer of at least `least`.
    pub(crate) fn new(parties: u32, scale: u64, least: u64) -> Self {
        let own = (scale as f64 / f64::from(parties).sqrt()).ceil();
        Self {
            parties,
            own: (own as u64).max(least),
            cancelled: scale,
        }
    }

    /// Returns the deviation of independent noise on a single vector that costs a record as much as all vectors here
    /// do, if `honest` parties do not collude. Discrete noise is charged like continuous noise.
    pub(crate) fn protection(self, honest: u32) -> f64 {
        let rho = correlated_rho(1.0, honest, self.own as f64, self.cancelled as f64);
        (2.0 * rho).sqrt().recip()
    }

    /// Returns the deviation of g_s, which the paper's Theorem 1 charges.
    pub(crate) fn of_own(self) -> f64 {
        self.own as f64
    }

    /// Returns the deviation of `e_s + g_s`, which the paper's appendix charges.
    pub(crate) fn of_vector(self) -> f64 {
        let [own, cancelled] = [self.own, self.cancelled].map(|scale| (scale as f64).powi(2));
        (own + cancelled * (1.0 - f64::from(self.parties).recip())).sqrt()
    }

    /// Returns the distribution of g_s.
    pub(crate) fn own(self) -> Result<DiscreteGaussian, Error> {
        Ok(DiscreteGaussian::new(self.own)?)
    }

    /// Returns the parties' messages, from vectors that have g_s: each plus e_s, in units of 1/S, where they are
    /// integers.
    pub(crate) fn messages<R: CryptoRng + ?Sized>(
        self,
        vectors: &[Vec<i64>],
        rng: &mut R,
    ) -> Result<Vec<Vec<i64>>, Error> {
        let noise = DiscreteGaussian::new(self.cancelled)?;
        let draws: Vec<Vec<i64>> = vectors
            .iter()
            .map(|vector| vector.iter().map(|_| noise.sample(rng)).collect())
            .collect();
        let width = vectors.first().map_or(0, Vec::len);
        let all = crate::cda::sum(&draws, width);
        let parties = i64::from(self.parties);
        let message = |(vector, draws): (&Vec<i64>, &Vec<i64>)| {
            let values = vector.iter().zip(draws).zip(&all);
            values
                .map(|((value, draw), all)| parties * (value + draw) - all)
                .collect()
        };
        Ok(vectors.iter().zip(&draws).map(message).collect())
    }

    /// Returns the sum of the parties' vectors from their messages. The draws ê_s cancel.
    pub(crate) fn sum(self, messages: &[Vec<i64>], width: usize) -> Vec<i64> {
        let mut sums = crate::cda::sum(messages, width);
        sums.iter_mut()
            .for_each(|sum| *sum /= i64::from(self.parties));
        sums
    }
}

/// Cost in zCDP of the correlated Gaussians that CAPE itself uses.
///
/// `honest` parties do not collude; every other party tells the server its draws. One record moves a party's vector by
/// `delta` (L2). Party s adds g_s, of deviation `own`, and e_s: a draw of deviation `cancelled` minus the mean of all
/// parties' draws.
///
/// Given the sum of their draws, the honest parties' vectors have covariance `own^2 I + cancelled^2 (I - 11'/h)`. The
/// cost is `delta^2 / 2` times the first entry of its inverse.
pub fn correlated_rho(delta: f64, honest: u32, own: f64, cancelled: f64) -> f64 {
    let alone = 1.0 / f64::from(honest);
    let (own, cancelled) = (own * own, cancelled * cancelled);
    delta * delta / 2.0 * (alone / own + (1.0 - alone) / (own + cancelled))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's own values")]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    /// Messages have the planned variance, of which only that of g_s remains in the sum.
    #[test]
    fn messages_hide_vectors_and_cancel_in_the_sum() {
        let noise = Correlated::new(4, 100, 4);
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let width = 20_000;
        let vectors: Vec<Vec<i64>> = (0..4).map(|party| vec![party; width]).collect();
        let messages = noise.messages(&vectors, &mut rng).unwrap();
        assert_eq!(noise.sum(&messages, width), vec![6; width]);
        for (party, message) in messages.iter().enumerate() {
            let off = message
                .iter()
                .map(|&value| value as f64 / 4.0 - party as f64);
            let variance = off.map(|off| off * off).sum::<f64>() / width as f64;
            // (1 - 1/S) 100^2.
            assert!((variance / 7500.0 - 1.0).abs() < 0.05, "{variance}");
        }
        assert_eq!((noise.of_own(), noise.of_vector()), (50.0, 100.0));
    }

    /// The first entry of a matrix's inverse, by Gauss-Jordan elimination on the first unit vector.
    fn first_of_inverse(mut matrix: Vec<Vec<f64>>) -> f64 {
        let n = matrix.len();
        let mut right = vec![0.0; n];
        right[0] = 1.0;
        for pivot in 0..n {
            let divisor = matrix[pivot][pivot];
            for row in (0..n).filter(|&row| row != pivot) {
                let factor = matrix[row][pivot] / divisor;
                let above = matrix[pivot].clone();
                for (entry, above) in matrix[row].iter_mut().zip(above) {
                    *entry -= factor * above;
                }
                right[row] -= factor * right[pivot];
            }
        }
        right[0] / matrix[0][0]
    }

    #[test]
    fn correlated_rho_matches_the_inverse_covariance() {
        for (honest, own, cancelled) in [(1u32, 0.7, 2.0), (2, 1.0, 0.5), (7, 0.3, 3.0)] {
            let n = honest as usize;
            let entry = |row: usize, column: usize| {
                let same = f64::from(u8::from(row == column));
                own * own * same + cancelled * cancelled * (same - 1.0 / n as f64)
            };
            let covariance = (0..n)
                .map(|r| (0..n).map(|c| entry(r, c)).collect())
                .collect();
            let expected = 1.3f64.powi(2) / 2.0 * first_of_inverse(covariance);
            let found = correlated_rho(1.3, honest, own, cancelled);
            assert!(
                (found / expected - 1.0).abs() < 1e-9,
                "{honest}: {found} {expected}"
            );
        }
    }

    /// With CAPE's intended deviations and all S parties honest, the cost is 2S/(S+1) times the claim.
    #[test]
    fn cape_deviations_cost_nearly_twice_the_claim() {
        for parties in [2u32, 10, 50] {
            let all = f64::from(parties);
            let local: f64 = 3.0;
            let claim = 1.0 / (2.0 * local * local);
            let cost = correlated_rho(1.0, parties, local / all.sqrt(), local);
            assert!((cost / claim - 2.0 * all / (all + 1.0)).abs() < 1e-9);
        }
    }
}
