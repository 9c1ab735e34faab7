//! Key-switching keys of an upload key, which the evaluator uses.

use super::{UploadCiphertext, UploadKey, UploadKeyId};
use crate::error::{Error, Result};
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::keyswitch::{KeySwitcher, Scratch};
use crate::scheme::params::Parameters;
use crate::scheme::public_key::PublicKey;
use crate::scheme::ring::DEGREE;
use crate::scheme::switch_key::{KeySwitchKey, cover, full_transform, permuted, small, squared};
use crate::table::layout::Layout;
use rand::{CryptoRng, RngCore};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// The keys that the evaluator needs to compute on ciphertexts under an upload key h. None of them is secret.
#[derive(Clone, Debug)]
pub struct UploadSwitchKeys {
    pub(crate) params: Parameters,
    pub(crate) id: UploadKeyId,
    /// The party that made the keys, on which their errors depend.
    pub(crate) origin: Origin,
    /// h -> s.
    pub(crate) linear: KeySwitchKey,
    /// Keys that turn columns into factors. Counts and noise need none.
    pub(crate) factors: Option<FactorKeys>,
    /// Keys that bring products to s.
    pub(crate) products: Option<ProductKeys>,
}

/// The party that made an upload key's switching keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The holder, with the dataset's public key.
    Holder,
    /// The holders of the dataset's secret key.
    KeyServices,
}

/// Keys that turn columns under h into factors under the key x of their products. x is h itself or the joint key.
#[derive(Clone, Debug)]
pub(crate) struct FactorKeys {
    /// h -> x, for left factors. Absent if x is h.
    pub(crate) left: Option<KeySwitchKey>,
    /// h(X^-1) -> x, for right factors.
    pub(crate) right: KeySwitchKey,
}

/// Keys that bring products under (1, x, x^2) to s.
#[derive(Clone, Debug)]
pub(crate) struct ProductKeys {
    /// x^2 -> s.
    pub(crate) square: KeySwitchKey,
    /// Keys for images, by the packing level that merges leaves.
    pub(crate) images: BTreeMap<usize, ImageKeys>,
}

/// Keys for the automorphism sigma: X -> X^(2^level + 1) of one packing level.
#[derive(Clone, Debug)]
pub(crate) struct ImageKeys {
    /// sigma(x) -> s.
    pub(crate) linear: KeySwitchKey,
    /// sigma(x^2) -> s.
    pub(crate) square: KeySwitchKey,
}

/// The keys for a merge of two leaves, for one stride.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeKeys<'a> {
    pub(crate) linear: &'a KeySwitchKey,
    pub(crate) square: &'a KeySwitchKey,
    pub(crate) images: &'a ImageKeys,
}

impl UploadKey {
    /// Generates the keys that the evaluator needs. With a layout, they allow products of the columns of a table;
    /// without one, only sums and switches to the service's key (tables of counts, noise).
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a public key of another parameter set.
    pub fn switch_keys<R: RngCore + CryptoRng>(
        &self,
        public: &PublicKey,
        layout: Option<Layout>,
        rng: &mut R,
    ) -> Result<UploadSwitchKeys> {
        if public.params().set() != self.params.set() {
            return Err(Error::Mismatch(
                "the public key belongs to another parameter set",
            ));
        }
        let linear = encrypt_source(public, &self.transform, rng)?;
        let of_columns = layout.map(|layout| self.column_keys(public, layout, rng));
        let (factors, products) = of_columns.transpose()?.unzip();
        Ok(UploadSwitchKeys {
            params: public.params().clone(),
            id: self.id,
            origin: Origin::Holder,
            linear,
            factors,
            products,
        })
    }

    fn column_keys<R: RngCore + CryptoRng>(
        &self,
        public: &PublicKey,
        layout: Layout,
        rng: &mut R,
    ) -> Result<(FactorKeys, ProductKeys)> {
        let ring = self.params.ring();
        let level = first_level(layout);
        let sigma = ring.automorphism((1 << level) + 1);
        let square = squared(ring, &self.transform);
        let inverted = permuted(&self.transform, &ring.automorphism(2 * DEGREE - 1));
        let mut key = |source: &[u64]| encrypt_source(public, source, rng);
        let of_square = key(&square)?;
        let images = ImageKeys {
            linear: key(&permuted(&self.transform, &sigma))?,
            square: key(&permuted(&square, &sigma))?,
        };
        let factors = FactorKeys {
            left: None,
            right: KeySwitchKey::generate(ring, &self.transform, &inverted, rng)?,
        };
        let products = ProductKeys {
            square: of_square,
            images: BTreeMap::from([(level, images)]),
        };
        Ok((factors, products))
    }
}

/// Returns the number of the packing level that merges a layout's leaves.
pub(crate) fn first_level(layout: Layout) -> usize {
    layout.slots().trailing_zeros() as usize + 1
}

/// Encrypts a polynomial, given as its transform over all primes, under the public key (b, a). This gives a switching
/// key to s. Digit by digit it is (b u + e1 + P g s', a u + e2), for the g that the digit stands for.
fn encrypt_source<R: RngCore + CryptoRng>(
    public: &PublicKey,
    source: &[u64],
    rng: &mut R,
) -> Result<KeySwitchKey> {
    let params = public.params();
    let ring = params.ring();
    // With a uniform half of zero, `cover` adds only the error.
    let none = vec![vec![0; source.len()]; ring.digits()];
    let mut first = cover(ring, &none, source, Some(source), rng)?;
    let mut second = none;
    let [public_b, public_a] = public.polynomials();
    for (b, a) in first.iter_mut().zip(&mut second) {
        let u = full_transform(ring, &small(rng)?);
        let error = full_transform(ring, &small(rng)?);
        add_products(params, public_b, &u, None, b);
        add_products(params, public_a, &u, Some(error), a);
    }
    Ok(KeySwitchKey {
        seed: None,
        b: first,
        a: second,
    })
}

/// Computes `out` += key u + error. `out` is in Montgomery form, and the others are plain transforms over all primes.
fn add_products(
    params: &Parameters,
    key: &[u64],
    u: &[u64],
    error: Option<Zeroizing<Vec<u64>>>,
    out: &mut [u64],
) {
    let zero = Zeroizing::new(Vec::new());
    let error = error.unwrap_or(zero);
    let limbs = params.ring().limbs().iter();
    let errors = error.iter().copied().chain(std::iter::repeat(0));
    let moduli = limbs.flat_map(|limb| std::iter::repeat_n(limb.modulus, DEGREE));
    let terms = key.iter().zip(u).zip(errors);
    for ((out, m), ((&key, &u), error)) in out.iter_mut().zip(moduli).zip(terms) {
        *out = m.add(*out, m.mont(m.add(m.mul(key, u), error)));
    }
}

impl UploadSwitchKeys {
    /// Returns the parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// Returns the identifier of the upload key.
    pub fn id(&self) -> UploadKeyId {
        self.id
    }

    /// Returns the keys that bring products of columns with a layout to s.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if there are no such keys, or only for another stride.
    pub(crate) fn merge_keys(&self, layout: Layout) -> Result<MergeKeys<'_>> {
        let merge_keys = || {
            let products = self.products.as_ref()?;
            Some(MergeKeys {
                linear: &self.linear,
                square: &products.square,
                images: products.images.get(&first_level(layout))?,
            })
        };
        merge_keys().ok_or(Error::Mismatch(
            "the upload key's switching keys are not for this layout",
        ))
    }

    /// Returns the keys that turn columns into factors.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for the keys of an upload of counts.
    pub(crate) fn factor_keys(&self) -> Result<&FactorKeys> {
        let factors = self.factors.as_ref();
        factors.ok_or(Error::Mismatch(
            "the upload key has no switching keys for columns",
        ))
    }

    /// Switches a ciphertext to the service's key.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a ciphertext under another holder's key, or of another parameter set.
    pub fn switch(&self, ciphertext: &UploadCiphertext) -> Result<Ciphertext> {
        if ciphertext.key != self.id {
            return Err(Error::Mismatch(
                "the ciphertext is under another holder's key",
            ));
        }
        ciphertext.ciphertext.check(&self.params)?;
        let ring = self.params.ring();
        let switcher = KeySwitcher::new(ring);
        let scratch = &mut Scratch::new(ring);
        let Ciphertext { residue, c } = &ciphertext.ciphertext;
        let [c0, c1] = c;
        let switched = switcher.switch(c0.clone(), &[(&self.linear, c1)], scratch);
        Ok(Ciphertext {
            residue: *residue,
            c: switcher.lower(switched, scratch),
        })
    }
}
