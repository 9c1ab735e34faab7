//! Tests that a second computation service prevents a release of any request that it did not
//! compute.
//!
//! Each attack is run twice, and succeeds without the second service.

use super::*;
use fhaim_he::{DEGREE, SecretKey};
use fhaim_protocol::Error;
use fhaim_protocol::crypto::{Digests, chain::Freeze};
use sha2::{Digest, Sha256};

/// The request that one computation service sends, and the one that the other computed from the
/// holder's upload.
struct Attempt {
    setting: Setting,
    sent: DecryptRequest,
    witness: DecryptRequest,
}

impl Attempt {
    /// Runs the attack under terms with or without a second computation service.
    fn new(witness: bool, attack: impl Fn(&mut Setting, &Objects) -> DecryptRequest) -> Self {
        let mut setting = Setting::new(witness);
        let objects = setting.objects();
        Self {
            witness: setting.request(&objects),
            sent: attack(&mut setting, &objects),
            setting,
        }
    }

    fn digests(&self) -> Digests {
        let digest = |request: &DecryptRequest| {
            let bytes = request.to_bytes(&self.setting.params);
            Sha256::digest(bytes).into()
        };
        Digests {
            sent: digest(&self.sent),
            witness: Some(digest(&self.witness)),
        }
    }

    fn release(&mut self) -> Result<Vec<Vec<i64>>, Error> {
        let digests = self.digests();
        let crypto = &mut self.setting.crypto;
        crypto.decrypt_witnessed(&self.sent, digests)
    }
}

/// Checks that the attack releases nothing with the second service, and that the dataset is frozen
/// with nothing debited. Returns the attack without the second service.
fn succeeds_only_without_witness(
    attack: impl Fn(&mut Setting, &Objects) -> DecryptRequest,
) -> Attempt {
    let mut watched = Attempt::new(true, &attack);
    assert!(matches!(watched.release(), Err(Error::Refused)));
    let crypto = &mut watched.setting.crypto;
    let chain_state = crypto.record().chain_state();
    assert_eq!(chain_state.frozen(), Some(Freeze::Witness));
    assert_eq!(crypto.ledger(JOB).unwrap().entries().len(), 0);
    // Later requests are refused too, even one that both computed.
    watched.sent = watched.witness.clone();
    let error = watched.release().unwrap_err();
    assert!(matches!(error, Error::Frozen(Freeze::Witness)), "{error}");
    Attempt::new(false, attack)
}

#[test]
fn two_services_that_follow_the_protocol_agree() {
    let mut attempt = Attempt::new(true, Setting::request);
    let digests = attempt.digests();
    assert_eq!(Some(digests.sent), digests.witness);
    // Before the second service has computed it, nothing is decrypted and nothing is lost.
    let crypto = &mut attempt.setting.crypto;
    let early = crypto.decrypt(&attempt.sent);
    assert!(matches!(early, Err(Error::Unwitnessed)), "{early:?}");
    let released = attempt.release().unwrap();
    assert_eq!(attempt.setting.found(&released), [None; 3]);
    // A repetition is answered from the store, regardless of the second service.
    let crypto = &mut attempt.setting.crypto;
    assert_eq!(crypto.decrypt(&attempt.sent).unwrap(), released);
}

#[test]
fn batch_without_noise_is_not_released() {
    let mut alone = succeeds_only_without_witness(|setting, objects| {
        let objects = without_noise(setting, objects);
        setting.request(&objects)
    });
    let released = alone.release().unwrap();
    let bare = exact(&alone.setting.table, &requests()[2].statistic).unwrap();
    assert_eq!(released[2], bare);
}

#[test]
fn cell_changed_by_one_is_not_released() {
    let mut alone = succeeds_only_without_witness(|setting, objects| {
        let mut request = setting.request(objects);
        setting.add(&mut request, &one_more());
        request
    });
    let released = alone.release().unwrap();
    let crypto = &mut alone.setting.crypto;
    assert_eq!(crypto.decrypt(&alone.sent).unwrap(), released);
}

#[test]
fn wrong_column_is_not_released() {
    let mut alone =
        succeeds_only_without_witness(|setting, objects| setting.request(&another_column(objects)));
    assert!(alone.release().is_ok());
}

/// (0, (q + 1)/t) decrypts to the key itself, without noise that a check could see. Each position
/// of a release reveals one of its coefficients.
#[test]
fn secret_key_is_not_released() {
    let mut alone = succeeds_only_without_witness(|setting, objects| {
        let mut request = setting.request(objects);
        for (residue, sealed) in request.pages[0].ciphertexts.iter_mut().enumerate() {
            *sealed = key_extractor(&setting.params, residue, sealed);
        }
        request
    });
    let released = alone.release().unwrap();
    // The key service draws its own key first.
    let params = &alone.setting.params;
    let key = SecretKey::random(params, &mut Setting::generator()).unwrap();
    let read: Vec<i64> = released.into_iter().flatten().collect();
    let own = (0..read.len()).map(|position| key.coefficients()[coefficient(position)]);
    assert_eq!(read, own.collect::<Vec<_>>());
}

/// Whether the decryption of a page fails depends on its noise, so each answer is an answer about
/// the key. Without a second service, the key service decrypts a page that is just within the
/// bound, and freezes on the first one beyond.
#[test]
fn noise_of_a_page_is_not_an_oracle() {
    let mut alone = succeeds_only_without_witness(|setting, objects| {
        let mut request = setting.request(objects);
        let zero = vec![0; PAGE];
        for _ in 0..8 {
            setting.add(&mut request, &zero);
        }
        request
    });
    let released = alone.release().unwrap();
    assert_eq!(alone.setting.found(&released), [None; 3]);
}

/// (0, D) for a plaintext modulus t, where D is the integer next to q/t. The polynomials are
/// constant, so their transforms are too.
fn key_extractor(params: &Parameters, residue: usize, other: &Ciphertext) -> Ciphertext {
    let set = params.set();
    let t = u128::from(set.plaintext_moduli[residue]);
    let moduli = set.ciphertext_moduli;
    // q + r is divisible by t, with r = -q modulo t.
    let q = moduli.iter().fold(1, |q, &p| q * (u128::from(p) % t) % t);
    let r = (t - q) % t;
    let mut body = Vec::new();
    for second in [false, true] {
        for &p in moduli {
            let wide = u128::from(p);
            let scaled = r % wide * power(t % wide, wide - 2, wide) % wide;
            let value = if second { scaled } else { 0 };
            put(&mut body, p, value);
        }
    }
    let bytes = other.to_bytes(params);
    let header = bytes.len() - body.len();
    let before = &bytes[..header - 8];
    let checksum = Sha256::new().chain_update(before).chain_update(&body);
    let checksum = checksum.finalize();
    let bytes = [before, &checksum[..8], &body].concat();
    Ciphertext::from_bytes(params, &bytes).unwrap()
}

fn power(base: u128, mut exponent: u128, modulus: u128) -> u128 {
    let (mut result, mut base) = (1, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    result
}

/// A limb with the same residue everywhere, packed to the bits of its prime.
fn put(out: &mut Vec<u8>, p: u64, residue: u128) {
    let bits = 64 - p.leading_zeros();
    let (mut held, mut word) = (0, 0u128);
    for _ in 0..DEGREE {
        word |= residue << held;
        held += bits;
        while held >= 8 {
            out.push(word as u8);
            word >>= 8;
            held -= 8;
        }
    }
}
