//! A dataset's evaluation keys, with what is worked out of them and a layout once.

use crate::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::holder::{HolderKeyId, HolderKeys, ProductKeys};
use crate::keys::{EvaluationKeys, KeySwitchKey};
use crate::keyswitch::Scratch;
use crate::layout::Layout;
use crate::packing::Packer;
use crate::params::{DEGREE, Parameters};
use crate::ring::{Pair, Poly, Ring};
use crate::work::Work;
use fhaim_ntt::Permutation;
use std::sync::{Mutex, PoisonError};

/// Evaluation keys with the tables that one layout asks for: what a thread, or another machine,
/// needs to run a task, beside the table.
#[derive(Debug)]
pub struct EvaluationContext<'a> {
    keys: &'a EvaluationKeys,
    /// Of the holder whose columns are computed on, where they are under its own key.
    holder: Option<Holder<'a>>,
    layout: Layout,
    pub(crate) packer: Packer<'a>,
    /// The permutation of X -> X^-1.
    inversion: Permutation,
    /// Transform of sum over r < stride of X^-r, in Montgomery form: its product with a column
    /// holds the column's sum at slot 0.
    pub(crate) ones: Poly,
    /// What no thread uses at present: made anew for each tile, they cost page faults.
    scratches: Mutex<Vec<Scratch>>,
}

/// A holder's keys, and those of them that products take.
#[derive(Clone, Copy, Debug)]
struct Holder<'a> {
    keys: &'a HolderKeys,
    products: &'a ProductKeys,
}

impl<'a> EvaluationContext<'a> {
    /// Tables for one layout.
    pub fn new(keys: &'a EvaluationKeys, layout: Layout) -> Self {
        let ring = keys.params.ring();
        Self {
            keys,
            holder: None,
            layout,
            packer: Packer::new(keys, layout.slots()),
            inversion: ring.automorphism(2 * DEGREE - 1),
            ones: ones(ring, layout.stride()),
            scratches: Mutex::default(),
        }
    }

    /// The same, for columns under a holder's own key alone.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for keys of another parameter set, for columns of another layout or without
    /// those for products.
    pub fn with_holder_keys(self, keys: &'a HolderKeys) -> Result<Self> {
        self.params().check_same(keys.params())?;
        let products = keys.products(self.layout)?;
        Ok(Self {
            holder: Some(Holder { keys, products }),
            ..self
        })
    }

    /// The holder's key that columns are under; `None` for the service's.
    pub(crate) fn holder(&self) -> Option<HolderKeyId> {
        self.holder.map(|holder| holder.keys.id())
    }

    /// Refuses what is under another key than the columns that this is for.
    pub(crate) fn check_holder(&self, holder: Option<HolderKeyId>) -> Result<()> {
        if self.holder() == holder {
            Ok(())
        } else {
            Err(Error::Mismatch(
                "columns under another key than is computed with",
            ))
        }
    }

    /// The keys that merge products of a holder's columns: h -> s, and the others.
    pub(crate) fn products(&self) -> Option<(&'a KeySwitchKey, &'a ProductKeys)> {
        let holder = self.holder?;
        Some((&holder.keys.linear, holder.products))
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
        let switcher = &self.packer.switcher;
        let mut lifted = switcher.lift([c0, c1]);
        switcher.add(&[(&self.keys.relinearise, &c2)], &mut lifted, scratch);
        switcher.lower(lifted, scratch)
    }

    /// The image under X -> X^-1 of a ciphertext under the service's key.
    pub(crate) fn invert(&self, c: &Ciphertext, scratch: &mut Scratch) -> Ciphertext {
        self.invert_with(&self.keys.inversion, c, scratch)
    }

    /// The image under X -> X^-1 of a combination of columns, under the same key as they.
    pub(crate) fn invert_column(&self, c: &Ciphertext, scratch: &mut Scratch) -> Ciphertext {
        let own = self.holder.map(|holder| &holder.products.inversion);
        self.invert_with(own.unwrap_or(&self.keys.inversion), c, scratch)
    }

    fn invert_with(&self, key: &KeySwitchKey, c: &Ciphertext, scratch: &mut Scratch) -> Ciphertext {
        let image = |p: &Poly| p.permuted(&self.inversion);
        let [c0, c1] = &c.c;
        let switcher = &self.packer.switcher;
        let switched = switcher.switch(image(c0), &[(key, &image(c1))], scratch);
        Ciphertext {
            residue: c.residue,
            c: switcher.lower(switched, scratch),
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
