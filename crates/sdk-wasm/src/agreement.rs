//! What a holder signs. The browser keeps the key and signs: no secret of it is ever here.

use fhaim_protocol::request::DatasetId;
use fhaim_protocol::roster::Agreement;
use sha2::{Digest, Sha256};

use crate::Error;
use crate::request::AgreementRequest;

/// The bytes to sign, in hexadecimal.
///
/// # Errors
/// Identifiers or digests that are none.
pub(crate) fn message(asked: &AgreementRequest) -> Result<String, Error> {
    let dataset = asked.dataset.replace('-', "");
    let agreement = Agreement {
        dataset: DatasetId(bytes(&dataset).ok_or(Error::Digits("dataset"))?),
        // As every service writes them, and so as they are stored.
        terms: Sha256::digest(serde_json::to_vec(&asked.terms)?).into(),
        public_key: bytes(&asked.public_key).ok_or(Error::Digits("public_key"))?,
        evaluation_keys: bytes(&asked.evaluation_keys).ok_or(Error::Digits("evaluation_keys"))?,
    };
    let digits = agreement.message().into_iter();
    Ok(digits.map(|byte| format!("{byte:02x}")).collect())
}

/// `N` bytes of hexadecimal digits in lower case, and nothing else.
fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let lower = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 2 * N || !digits.bytes().all(|digit| lower(&digit)) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
