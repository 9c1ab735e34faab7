//! The FHAIM paper's polynomial approximation of |x|, of degree 10: |x| is about B P(x / B) with B = 10,000. P is the
//! least-squares polynomial on [-1, 1]. `fhaim_synth::Score::PolynomialL1` has the same coefficients as constants.

/// The range B.
pub const RANGE: u64 = 10_000;

/// Number of coefficients: those of the even powers from 0 to 10.
pub const TERMS: usize = 6;

/// The polynomial P in even powers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polynomial {
    /// Coefficients of 1, x^2, x^4, ...
    pub coefficients: [f64; TERMS],
}

impl Polynomial {
    /// Solves the normal equations: row i has the integrals over [0, 1] of x^2i x^2j and of x^2i x.
    pub fn of_the_paper() -> Self {
        let mut rows = [[0.0; TERMS + 1]; TERMS];
        for (i, row) in rows.iter_mut().enumerate() {
            for (j, entry) in row.iter_mut().take(TERMS).enumerate() {
                *entry = 1.0 / (2 * (i + j) + 1) as f64;
            }
            row[TERMS] = 1.0 / (2 * i + 2) as f64;
        }
        // The matrix is positive definite, so elimination needs no pivots.
        for pivot in 0..TERMS {
            let scaled = rows[pivot].map(|entry| entry / rows[pivot][pivot]);
            for (i, row) in rows.iter_mut().enumerate() {
                let factor = row[pivot];
                for (entry, scaled) in row.iter_mut().zip(scaled) {
                    *entry = if i == pivot {
                        scaled
                    } else {
                        *entry - factor * scaled
                    };
                }
            }
        }
        Self {
            coefficients: rows.map(|row| row[TERMS]),
        }
    }

    /// Returns B P(x / B), in records.
    pub fn value(&self, x: f64) -> f64 {
        let square = (x / RANGE as f64).powi(2);
        let terms = self.coefficients.iter().rev();
        RANGE as f64 * terms.fold(0.0, |sum, coefficient| sum * square + coefficient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants are those of `fhaim_synth`'s `polynomial-l1`.
    #[test]
    fn normal_equations_give_the_coefficients_of_the_score() {
        let found = Polynomial::of_the_paper();
        let known = [
            0.055_515_3,
            3.608_493_8,
            -12.028_312_7,
            24.537_757_9,
            -23.786_602_0,
            8.633_655_5,
        ];
        for (found, known) in found.coefficients.iter().zip(known) {
            assert!((found - known).abs() < 1e-6, "{found} and {known}");
        }
        assert_eq!(found.value(0.0).round(), 555.0);
        assert_eq!(found.value(100.0).round(), 559.0);
    }
}
