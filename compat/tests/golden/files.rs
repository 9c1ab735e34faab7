//! Reading golden files, writing those of a new release, and damaging bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// The release that landed first: a ledger without a chain, and no receipts.
pub const LANDED: &str = "6a670d3";

/// The release in which every dataset got a chain of acts, receipts, and windows.
pub const CHAIN: &str = "f7f67d9";

/// The release in which terms got a version, and say what their mechanism needs.
pub const NEED: &str = "3566376";

/// The release in which terms may name their mechanism's options.
pub const OPTIONS: &str = "6ef238c";

/// The release in which datasets got several holders.
pub const PARTIES: &str = "fb48e3e";

/// The release in which schemas have a second version: digits, times, codes, identifiers.
pub const DIGITS: &str = "fb48e3e";

/// The release in which terms name the form of their noise ladder.
pub const LADDER: &str = "67b03a2";

/// The release in which schemas may have constraints.
pub const CONSTRAINTS: &str = "67b03a2";

/// The release in which results have links, and jobs have notes.
pub const LINKS: &str = "820786a";

/// The release in which holders keep the key of their noise, and see what was released.
pub const KEPT: &str = "6e76476";

/// The release with a second computation service.
pub const WITNESS: &str = "5dc0dbd";

/// The release whose services can share keys.
pub const SHARED: &str = "6159faf";

/// The release in which holders have keys of their own, and there is a parameter set for those alone.
pub const HOLDER: &str = "0c2e92c";

/// The release in which terms name the form of their counts.
pub const COUNTS_FORM: &str = "83a2abb";

/// The release whose models have pairs beside their trees.
pub const BESIDE: &str = "aecbdca";

fn path(release: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(release)
        .join(name)
}

/// The bytes of a golden file. `make` is called only where the file is not there and
/// `FHAIM_COMPAT_WRITE` asks for it: a golden file is written once, and never again.
pub fn golden(release: &str, name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let path = path(release, name);
    if std::env::var_os("FHAIM_COMPAT_WRITE").is_some() && !path.exists() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, make()).unwrap();
    }
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A value whose JSON is stored or sent: the golden text is read as `value`, and `value` is written
/// as the golden text.
pub fn json<T>(release: &str, name: &str, value: &T)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let text = golden(release, name, || serde_json::to_vec(value).unwrap());
    let read: T = serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(&read, value, "{name}");
    rewritten::<T>(release, name, &text);
}

/// The same for values that cannot be compared: they are compared as they are written.
pub fn text<T: Serialize + DeserializeOwned>(release: &str, name: &str, value: &T) {
    let text = golden(release, name, || serde_json::to_vec(value).unwrap());
    assert_eq!(text, serde_json::to_vec(value).unwrap(), "{name}");
    rewritten::<T>(release, name, &text);
}

fn rewritten<T: Serialize + DeserializeOwned>(release: &str, name: &str, text: &[u8]) {
    let read: T = serde_json::from_slice(text).unwrap();
    let written = serde_json::to_string(&read).unwrap();
    assert_eq!(written.as_bytes(), text, "{release}/{name}");
    refuses_damaged_json::<T>(name, text);
}

/// Truncated or extended JSON is refused; a flipped bit at any place does not end the program, and
/// what is read in spite of it is written as it was read.
pub fn refuses_damaged_json<T: Serialize + DeserializeOwned>(name: &str, text: &[u8]) {
    let read = |bytes: &[u8]| serde_json::from_slice::<T>(bytes);
    for length in 0..text.len() {
        assert!(read(&text[..length]).is_err(), "{name}: {length} bytes");
    }
    assert!(read(&[text, b"0"].concat()).is_err(), "{name}: extended");
    for bit in 0..8 * text.len() {
        if let Ok(other) = read(&flipped(text, bit)) {
            let written = serde_json::to_vec(&other).unwrap();
            let again = serde_json::to_vec(&read(&written).unwrap()).unwrap();
            assert_eq!(written, again, "{name}: bit {bit}");
        }
    }
}

/// Whether a field that the format does not have is refused.
pub fn refuses_unknown_fields<T: DeserializeOwned>(release: &str, name: &str) {
    let text = std::fs::read_to_string(path(release, name)).unwrap();
    let surplus = text.replacen('{', r#"{"surplus":1,"#, 1);
    assert!(serde_json::from_str::<T>(&surplus).is_err(), "{name}");
}

/// The bytes with one bit flipped.
pub fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    flipped[bit / 8] ^= 1 << (bit % 8);
    flipped
}

/// Truncated at every edge of the header and at some places behind it, extended by a byte, and with
/// any bit of the first `header` bytes flipped: `refused` has to find a typed error.
pub fn refuses_damage(bytes: &[u8], header: usize, refused: impl Fn(&[u8])) {
    for length in (0..=header).chain([bytes.len() / 2, bytes.len() - 1]) {
        refused(&bytes[..length]);
    }
    refused(&[bytes, &[0]].concat());
    for bit in 0..8 * header {
        refused(&flipped(bytes, bit));
    }
}
