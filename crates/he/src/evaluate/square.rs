//! Squared scores of the FHAIM paper: ||M||^2 - 2 <M, target> under encryption.
//!
//! With the cells of a marginal M as coefficients, the constant coefficient of M(X) M(X^-1) is
//! ||M||^2, and that of M(X) T(X^-1) is <M, T> for a public T. The square, a scale-invariant
//! ciphertext product, is computed once for each clique. Each round of scores then takes only
//! plaintext products and one packing.

use crate::error::{Error, Result};
use crate::evaluate::Evaluator;
use crate::evaluate::packing::{Packer, merge_row};
use crate::evaluate::work::{Clock, EvaluationWork};
use crate::release::page::{PackedPage, PageNoise};
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::keyswitch::Scratch;
use crate::scheme::noise;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::Poly;
use crate::table::layout::{PAGE, coefficient};

/// One clique's cells and their square, which the computation service keeps for scoring.
#[derive(Clone, Debug)]
pub struct SquaredScore {
    cells: PackedPage,
    square: Ciphertext,
}

impl SquaredScore {
    /// Squares a page that holds a marginal's cells at positions 0, 1, ... in row-major order.
    ///
    /// # Errors
    /// [`Error::Mismatch`] under parameters that do not support a second product.
    pub fn new(
        evaluator: &Evaluator<'_>,
        cells: PackedPage,
        work: &mut EvaluationWork,
    ) -> Result<Self> {
        let started = Clock::start();
        let context = evaluator.context();
        let params = context.params();
        if !params.set().has_squares() {
            return Err(Error::Mismatch(
                "the parameter set does not support squared scores",
            ));
        }
        let invert = |scratch: &mut Scratch| context.invert(&cells.ciphertext, scratch);
        let inverted = context.with_scratch(work, invert)?;
        let residue = cells.ciphertext.residue;
        let product = &cells.ciphertext.to_scheme(params)? * &inverted.to_scheme(params)?;
        let [c0, c1, c2] = &product[..] else {
            return Err(Error::Mismatch("a product must have three polynomials"));
        };
        let poly = |p: &fhe_math::rq::Poly| {
            Poly::from_residues(DEGREE, p.coefficients().iter().copied().collect())
        };
        let product = [poly(c0), poly(c1), poly(c2)];
        let relinearise = |scratch: &mut Scratch| context.relinearise(product, scratch);
        let c = context.with_scratch(work, relinearise)?;
        work.switching += started.seconds();
        Ok(Self {
            cells,
            square: Ciphertext { residue, c },
        })
    }

    #[cfg(test)]
    pub(crate) fn square(&self) -> &Ciphertext {
        &self.square
    }
}

/// The parts of one clique's score, each with the targets of its cells.
pub type ScoreParts<'s> = Vec<(&'s SquaredScore, &'s [i64])>;

impl Evaluator<'_> {
    /// Computes one page with weight_k * (||M_k||^2 - 2 <M_k, target_k>) at position `start` + k. The caller adds the
    /// public weight_k * ||target_k||^2. A clique larger than a page has several parts, whose scores add up.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more scores or more cells than a page holds.
    pub fn score_at(
        &self,
        start: usize,
        terms: &[(i64, ScoreParts<'_>)],
        work: &mut EvaluationWork,
    ) -> Result<Option<PackedPage>> {
        if start.saturating_add(terms.len()) > PAGE {
            return Err(Error::OutOfRange("more scores than positions"));
        }
        let context = self.context();
        let started = Clock::start();
        let mut leaves: Vec<Option<Ciphertext>> = vec![None; start];
        let mut noisiest = 0f64;
        for (weight, parts) in terms {
            let mut sum: Option<Ciphertext> = None;
            let mut variance = 0f64;
            for (score, target) in parts {
                let part = self.score_part(*weight, score, target)?;
                let t = context.params().plaintext_modulus(part.residue);
                let square =
                    noise::square_deviation(context.params(), t, score.cells.noise.norm_squared);
                variance += (*weight as f64 * square).powi(2);
                match &mut sum {
                    Some(sum) => sum.add_assign(&part, context.params()),
                    None => sum = Some(part),
                }
            }
            noisiest = noisiest.max(variance);
            leaves.push(sum);
        }
        work.tensor += started.seconds();
        let merge = noise::linear_merge_variance(context.params());
        let packing = noise::packing_variance(context.params(), DEGREE, merge);
        let deviation = (noisiest + packing).sqrt();
        let started = Clock::start();
        let packed = self.trace(leaves, work);
        work.packing += started.seconds();
        Ok(packed.map(|ciphertext| PackedPage {
            ciphertext,
            noise: PageNoise {
                deviation,
                norm_squared: DEGREE as f64 * deviation.powi(2),
            },
        }))
    }

    /// Returns weight * n^-1 * (square - 2 cells * target(X^-1)), with the score at the constant coefficient.
    fn score_part(&self, weight: i64, score: &SquaredScore, target: &[i64]) -> Result<Ciphertext> {
        if target.len() > PAGE {
            return Err(Error::OutOfRange("more cells than a page holds"));
        }
        let ring = self.context().params().ring();
        let mut reversed = vec![0i128; DEGREE];
        for (p, &value) in target.iter().enumerate() {
            // The cell is the coefficient of X^c, and its target that of X^-c = -X^(n - c).
            let (place, value) = match coefficient(p) {
                0 => (0, i128::from(value)),
                c => (DEGREE - c, -i128::from(value)),
            };
            if let Some(place) = reversed.get_mut(place) {
                *place = value;
            }
        }
        let reversed = ring.transform_signed(&reversed);
        let mut out = score.square.clone();
        for (out, cells) in out.c.iter_mut().zip(&score.cells.ciphertext.c) {
            for (j, limb) in ring.ciphertext_limbs().iter().enumerate() {
                let m = limb.modulus;
                let unit = m.inv(DEGREE as u64 % m.value());
                let scale = m.mont(m.mul(m.residue_of(i128::from(weight)), unit));
                let operands = cells.limb(j).iter().zip(reversed.limb(j));
                for (o, (&x, &y)) in out.limb_mut(j).iter_mut().zip(operands) {
                    let inner = m.mul(x, y);
                    let score = m.sub(*o, m.add(inner, inner));
                    *o = m.redc(u128::from(score) * u128::from(scale));
                }
            }
        }
        Ok(out)
    }

    /// Packs constant coefficients, from leaf k to position k, independently of the table's layout.
    fn trace(
        &self,
        leaves: Vec<Option<Ciphertext>>,
        work: &mut EvaluationWork,
    ) -> Option<Ciphertext> {
        let packer = Packer::new(self.context().keys(), 1);
        let residue = leaves.iter().flatten().next()?.residue;
        let row = leaves.into_iter().map(|leaf| Some(leaf?.c)).collect();
        self.context().with_scratch(work, |scratch| {
            let mut nodes = merge_row(row, |u, v| {
                let spread = packer.spread_leaves(u, v)?;
                Some(packer.merge_leaves(spread, scratch))
            });
            for height in 1..packer.height() {
                nodes = merge_row(nodes, |u, v| packer.merge(height, u, v, scratch));
            }
            let root = nodes.pop().flatten()?;
            Some(packer.finish(residue, root, scratch))
        })
    }
}
