//! Key-switching keys of a holder, for the evaluator.

use super::{HolderCiphertext, HolderKey, HolderKeyId};
use crate::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::keys::{KeySwitchKey, PublicKey, cover, full_transform, permuted, small};
use crate::keyswitch::{KeySwitcher, Scratch};
use crate::layout::Layout;
use crate::params::{DEGREE, Parameters};
use rand::{CryptoRng, RngCore};
use zeroize::Zeroizing;

/// What the evaluator needs beside [`crate::EvaluationKeys`] to compute on what a holder encrypted under
/// its own key. None of it is secret.
#[derive(Clone, Debug)]
pub struct HolderKeys {
    pub(super) params: Parameters,
    pub(super) id: HolderKeyId,
    /// h -> s.
    pub(crate) linear: KeySwitchKey,
    pub(super) products: Option<ProductKeys>,
}

/// Keys for products of columns, for tables of one stride.
#[derive(Clone, Debug)]
pub(crate) struct ProductKeys {
    /// The packing level that merges leaves: its automorphism is sigma: X -> X^(2^level + 1).
    pub(crate) level: usize,
    /// h(X^-1) -> h: turns a left form into a right form.
    pub(crate) inversion: KeySwitchKey,
    /// h^2 -> s.
    pub(crate) square: KeySwitchKey,
    /// sigma(h) -> s.
    pub(crate) image: KeySwitchKey,
    /// sigma(h^2) -> s.
    pub(crate) square_image: KeySwitchKey,
}

impl HolderKey {
    /// The keys that the evaluator needs: for products of the columns of a table with this layout, or,
    /// without one, for what is only added and switched (tables of counts, noise).
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a public key of another parameter set.
    pub fn switch_keys<R: RngCore + CryptoRng>(
        &self,
        public: &PublicKey,
        layout: Option<Layout>,
        rng: &mut R,
    ) -> Result<HolderKeys> {
        if public.params().set() != self.params.set() {
            return Err(Error::Mismatch("a public key of another parameter set"));
        }
        Ok(HolderKeys {
            params: public.params().clone(),
            id: self.id,
            linear: encrypt_source(public, &self.transform, rng)?,
            products: layout
                .map(|layout| self.product_keys(public, layout, rng))
                .transpose()?,
        })
    }

    fn product_keys<R: RngCore + CryptoRng>(
        &self,
        public: &PublicKey,
        layout: Layout,
        rng: &mut R,
    ) -> Result<ProductKeys> {
        let ring = self.params.ring();
        let level = first_level(layout);
        let sigma = ring.automorphism((1 << level) + 1);
        let mut square = self.transform.clone();
        for (limb, values) in ring.limbs().iter().zip(square.chunks_exact_mut(DEGREE)) {
            values
                .iter_mut()
                .for_each(|x| *x = limb.modulus.mul(*x, *x));
        }
        let inverted = permuted(&self.transform, &ring.automorphism(2 * DEGREE - 1));
        let mut key = |source: &[u64]| encrypt_source(public, source, rng);
        Ok(ProductKeys {
            level,
            square: key(&square)?,
            image: key(&permuted(&self.transform, &sigma))?,
            square_image: key(&permuted(&square, &sigma))?,
            inversion: KeySwitchKey::generate(ring, &self.transform, &inverted, rng)?,
        })
    }
}

/// Number of the packing level that merges a layout's leaves.
pub(super) fn first_level(layout: Layout) -> usize {
    layout.slots().trailing_zeros() as usize + 1
}

/// A key from a polynomial, its transform over all primes, to s, made with the public key (b, a): digit by
/// digit (b u + e1 + P g s', a u + e2), for the g that the digit stands for.
fn encrypt_source<R: RngCore + CryptoRng>(
    public: &PublicKey,
    source: &[u64],
    rng: &mut R,
) -> Result<KeySwitchKey> {
    let params = public.params();
    let ring = params.ring();
    // Covered by nothing but an error so far: the uniform half is zero.
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

/// `out` += key u + error, in Montgomery form; the rest are plain transforms over all primes.
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

impl HolderKeys {
    /// The parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// Which holder's key they are of.
    pub fn id(&self) -> HolderKeyId {
        self.id
    }

    /// The keys for products of columns with a layout.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for keys without them, or for those of another stride.
    pub(crate) fn products(&self, layout: Layout) -> Result<&ProductKeys> {
        let products = self.products.as_ref();
        products
            .filter(|products| products.level == first_level(layout))
            .ok_or(Error::Mismatch("holder's keys for another layout"))
    }

    /// The same under the service's key.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a ciphertext under another holder's key, or of another parameter set.
    pub fn switch(&self, ciphertext: &HolderCiphertext) -> Result<Ciphertext> {
        if ciphertext.key != self.id {
            return Err(Error::Mismatch("a ciphertext under another holder's key"));
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
