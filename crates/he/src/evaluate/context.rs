//! A dataset's evaluation keys, with the tables that are computed once from them and a layout.

use crate::error::{Error, Result};
use crate::evaluate::packing::Packer;
use crate::evaluate::work::EvaluationWork;
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::evaluation_keys::{EvaluationKeys, ScoreKeys};
use crate::scheme::keyswitch::Scratch;
use crate::scheme::params::Parameters;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::{Pair, Poly, Ring};
use crate::scheme::switch_key::KeySwitchKey;
use crate::scheme::upload::ProductKey;
use crate::scheme::upload::{MergeKeys, UploadKeyId, UploadSwitchKeys};
use crate::table::Section;
use crate::table::layout::Layout;
use fhaim_ntt::Permutation;
use std::sync::{Arc, Mutex, PoisonError};

/// Evaluation keys with the tables for one layout. Together with the table, a thread or another machine needs
/// this to run a task.
#[derive(Debug)]
pub struct EvaluationContext<'a> {
    keys: &'a EvaluationKeys,
    /// The switching keys that a sole holder made for its upload.
    own: Option<&'a UploadSwitchKeys>,
    layout: Layout,
    pub(crate) packer: Packer<'a>,
    /// The permutation of X -> X^-1.
    inversion: Permutation,
    /// Transform of sum over r < stride of X^-r, in Montgomery form. Its product with a column
    /// holds the column's sum at slot 0.
    pub(crate) ones: Poly,
    /// Scratches that no thread is using. Allocating one for each tile would cost page faults.
    scratches: Mutex<Vec<Scratch>>,
}

impl<'a> EvaluationContext<'a> {
    /// Computes the tables for one layout.
    pub fn new(keys: &'a EvaluationKeys, layout: Layout) -> Self {
        let ring = keys.params.ring();
        Self {
            keys,
            own: None,
            layout,
            packer: Packer::new(keys, layout.slots()),
            inversion: ring.automorphism(2 * DEGREE - 1),
            ones: ones(ring, layout.stride()),
            scratches: Mutex::default(),
        }
    }

    /// Adds the switching keys that a sole holder made for its upload.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for keys of another parameter set, keys for columns of another layout, and keys without
    /// those for products.
    pub fn with_switch_keys(self, keys: &'a UploadSwitchKeys) -> Result<Self> {
        self.params().check_same(keys.params())?;
        keys.merge_keys(self.layout)?;
        Ok(Self {
            own: Some(keys),
            ..self
        })
    }

    /// Returns the switching keys of an upload key.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for an upload key that the dataset does not have.
    pub(crate) fn upload_keys(&self, id: UploadKeyId) -> Result<&'a UploadSwitchKeys> {
        let own = self.own.filter(|own| own.id() == id);
        own.or_else(|| self.keys.upload(id)).ok_or(Error::Mismatch(
            "the columns are under an upload key that the dataset does not have",
        ))
    }

    /// Returns the switching keys of the key of a section's products.
    ///
    /// # Errors
    /// The same as for [`EvaluationContext::upload_keys`], and [`Error::Mismatch`] for keys of another stride.
    pub(crate) fn product_keys(&self, key: ProductKey) -> Result<&'a UploadSwitchKeys> {
        let keys = match key {
            ProductKey::Upload(id) => {
                Some(self.upload_keys(id)?).filter(|keys| keys.products.is_some())
            }
            ProductKey::Joint => None,
        };
        let keys = keys.or_else(|| self.keys.joint()).ok_or(Error::Mismatch(
            "the upload key has no switching keys for products of columns",
        ))?;
        keys.merge_keys(self.layout)?;
        Ok(keys)
    }

    /// Returns the keys that merge a section's products.
    pub(crate) fn merge_keys(&self, key: ProductKey) -> Result<MergeKeys<'a>> {
        self.product_keys(key)?.merge_keys(self.layout)
    }

    /// Rejects sections under keys that the dataset does not have.
    pub(crate) fn check_sections(&self, sections: &[Section]) -> Result<()> {
        let known = |section: &Section| self.product_keys(section.key).map(|_| ());
        sections.iter().try_for_each(known)
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

    /// Rejects objects that were planned for other parameters or another layout.
    pub(crate) fn check(&self, params: &Parameters, layout: Layout) -> Result<()> {
        self.params().check_same(params)?;
        if layout == self.layout {
            Ok(())
        } else {
            Err(Error::Mismatch("the table has another layout"))
        }
    }

    /// Lends a scratch to a closure, and adds the scratch's counters to `work`.
    pub(crate) fn with_scratch<T>(
        &self,
        work: &mut EvaluationWork,
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

    /// Returns the pair under s with the message that the triple encrypts under (1, s, s^2).
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a dataset without squared scores.
    pub(crate) fn relinearise(
        &self,
        [c0, c1, c2]: [Poly; 3],
        scratch: &mut Scratch,
    ) -> Result<Pair> {
        let switcher = &self.packer.switcher;
        let key = &self.score_keys()?.relinearise;
        let mut lifted = switcher.lift([c0, c1]);
        switcher.add(&[(key, &c2)], &mut lifted, scratch);
        Ok(switcher.lower(lifted, scratch))
    }

    /// Returns the image under X -> X^-1 of a ciphertext under s.
    ///
    /// # Errors
    /// The same as for [`EvaluationContext::relinearise`].
    pub(crate) fn invert(&self, c: &Ciphertext, scratch: &mut Scratch) -> Result<Ciphertext> {
        Ok(self.invert_with(&self.score_keys()?.inversion, c, scratch))
    }

    fn score_keys(&self) -> Result<&'a ScoreKeys> {
        let keys = self.keys.scores.as_ref();
        keys.ok_or(Error::Mismatch(
            "the dataset has no keys for squared scores",
        ))
    }

    /// Makes a left factor: switches a combination of columns from the upload key `id` to the key of its products. A
    /// combination of no columns has no key.
    ///
    /// # Errors
    /// The same as for [`EvaluationContext::upload_keys`], and [`Error::Mismatch`] for the keys of an upload of
    /// counts.
    pub(crate) fn left_factor(
        &self,
        c: Arc<Ciphertext>,
        id: Option<UploadKeyId>,
        scratch: &mut Scratch,
    ) -> Result<Arc<Ciphertext>> {
        let Some(id) = id else { return Ok(c) };
        let Some(key) = &self.upload_keys(id)?.factor_keys()?.left else {
            return Ok(c);
        };
        let [c0, c1] = &c.c;
        let switcher = &self.packer.switcher;
        let switched = switcher.switch(c0.clone(), &[(key, c1)], scratch);
        Ok(Arc::new(Ciphertext {
            residue: c.residue,
            c: switcher.lower(switched, scratch),
        }))
    }

    /// Makes a right factor: the image under X -> X^-1 of a combination of columns under the upload key `id`,
    /// switched to the key of its products.
    ///
    /// # Errors
    /// The same as for [`EvaluationContext::left_factor`].
    pub(crate) fn right_factor(
        &self,
        c: &Ciphertext,
        id: Option<UploadKeyId>,
        scratch: &mut Scratch,
    ) -> Result<Ciphertext> {
        let Some(id) = id else { return Ok(c.clone()) };
        let key = &self.upload_keys(id)?.factor_keys()?.right;
        Ok(self.invert_with(key, c, scratch))
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

/// Returns the transform of sum over r < stride of X^-r, in Montgomery form.
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
