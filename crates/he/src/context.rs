//! A dataset's evaluation keys, with what is worked out of them and a layout once.

use crate::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::keys::{EvaluationKeys, KeySwitchKey};
use crate::keyswitch::Scratch;
use crate::layout::Layout;
use crate::packing::Packer;
use crate::params::{DEGREE, Parameters};
use crate::ring::{Pair, Poly, Ring};
use crate::work::Work;
use std::sync::{Mutex, PoisonError};

/// Evaluation keys with the tables that one layout asks for: what a thread, or another machine,
/// needs to run a task, beside the table.
#[derive(Debug)]
pub struct EvaluationContext<'a> {
    keys: &'a EvaluationKeys,
    layout: Layout,
    pub(crate) packer: Packer<'a>,
    /// The permutation of X -> X^-1.
    inversion: Vec<u32>,
    /// Transform of sum over r < stride of X^-r, in Montgomery form: its product with a column
    /// holds the column's sum at slot 0.
    pub(crate) ones: Poly,
    /// What no thread uses at present: made anew for each tile, they cost page faults.
    scratches: Mutex<Vec<Scratch>>,
}

impl<'a> EvaluationContext<'a> {
    /// Tables for one layout.
    pub fn new(keys: &'a EvaluationKeys, layout: Layout) -> Self {
        let ring = keys.params.ring();
        Self {
            keys,
            layout,
            packer: Packer::new(keys, layout.slots()),
            inversion: ring.automorphism(2 * DEGREE - 1),
            ones: ones(ring, layout.stride()),
            scratches: Mutex::default(),
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn params(&self) -> &Parameters {
        &self.keys.params
    }

    pub(crate) fn keys(&self) -> &'a EvaluationKeys {
        self.keys
    }

    /// Refuses what was planned for other parameters or another layout.
    pub(crate) fn check(&self, params: &Parameters, layout: Layout) -> Result<()> {
        self.params().check_same(params)?;
        if layout == self.layout {
            Ok(())
        } else {
            Err(Error::Mismatch("the table has another layout"))
        }
    }

    /// Lends a scratch, and adds what it counts to `work`.
    pub(crate) fn with_scratch<T>(
        &self,
        work: &mut Work,
        use_it: impl FnOnce(&mut Scratch) -> T,
    ) -> T {
        let scratches = || {
            self.scratches
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let spare = scratches().pop();
        let mut scratch = spare.unwrap_or_else(|| Scratch::new(self.params().ring()));
        let done = use_it(&mut scratch);
        let (switches, transforms) = scratch.take_counts();
        work.key_switches += switches;
        work.transforms += transforms;
        scratches().push(scratch);
        done
    }

    /// The pair under s that encrypts what the triple encrypts under (1, s, s^2).
    pub(crate) fn relinearise(&self, [c0, c1, c2]: [Poly; 3], scratch: &mut Scratch) -> Pair {
        self.switch([c0, c1], &self.keys.relinearise, &c2, scratch)
    }

    /// `pair` plus the pair under s that encrypts `d` under the key's source.
    fn switch(&self, pair: Pair, key: &KeySwitchKey, d: &Poly, scratch: &mut Scratch) -> Pair {
        let switcher = &self.packer.switcher;
        let mut lifted = switcher.lift(pair);
        switcher.add(&[(key, d)], &mut lifted, scratch);
        switcher.lower(lifted, scratch)
    }

    /// The image under X -> X^-1.
    pub(crate) fn invert(&self, c: &Ciphertext, scratch: &mut Scratch) -> Ciphertext {
        let image = |p: &Poly| p.permuted(&self.inversion);
        let [c0, c1] = &c.c;
        let pair = [image(c0), self.params().ring().zero()];
        Ciphertext {
            residue: c.residue,
            c: self.switch(pair, &self.keys.inversion, &image(c1), scratch),
        }
    }
}

/// Transform of sum over r < stride of X^-r, in Montgomery form.
fn ones(ring: &Ring, stride: usize) -> Poly {
    // X^-r is -X^(n - r).
    let coefficient = |i: usize| match i {
        0 => 1,
        i if i > DEGREE - stride => -1,
        _ => 0,
    };
    let coefficients: Vec<i128> = (0..DEGREE).map(coefficient).collect();
    let mut ones = ring.transform_signed(&coefficients);
    for (j, limb) in ring.ciphertext_limbs().iter().enumerate() {
        let m = limb.modulus;
        ones.limb_mut(j).iter_mut().for_each(|x| *x = m.mont(*x));
    }
    ones
}
