//! The encryption scheme: rings, parameter sets, keys, ciphertexts and their noise.

pub(crate) mod choice;
pub(crate) mod ciphertext;
pub(crate) mod decryption;
pub(crate) mod encryption;
pub(crate) mod evaluation_keys;
pub(crate) mod keyswitch;
pub(crate) mod noise;
pub(crate) mod params;
pub(crate) mod public_key;
pub(crate) mod residues;
pub(crate) mod ring;
pub(crate) mod root;
pub(crate) mod secret_key;
pub(crate) mod switch_key;
pub(crate) mod upload;
