//! Helpers that read golden files, write them for `compat/regenerate`, and damage bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("v1").join(name)
}

/// Returns the bytes of a golden file. Calls `make` only if the file does not exist and `FHAIM_COMPAT_WRITE` is set,
/// as `compat/regenerate` does.
pub fn golden(name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let path = path(name);
    if std::env::var_os("FHAIM_COMPAT_WRITE").is_some() && !path.exists() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, make()).unwrap();
    }
    stored(name)
}

/// Returns the bytes of a golden file that the same test has read with [`golden`], [`json`] or [`text`].
pub fn stored(name: &str) -> Vec<u8> {
    let path = path(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the names of all golden files.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(path("")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Checks a value whose JSON is stored or sent: the golden text is read as `value`, and `value` is written as the
/// golden text.
pub fn json<T>(name: &str, value: &T)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let text = golden(name, || serde_json::to_vec(value).unwrap());
    let read: T = serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(&read, value, "{name}");
    rewritten::<T>(name, &text);
}

/// Like [`json`], for values that cannot be compared: compares their JSON.
pub fn text<T: Serialize + DeserializeOwned>(name: &str, value: &T) {
    let text = golden(name, || serde_json::to_vec(value).unwrap());
    assert_eq!(text, serde_json::to_vec(value).unwrap(), "{name}");
    rewritten::<T>(name, &text);
}

fn rewritten<T: Serialize + DeserializeOwned>(name: &str, text: &[u8]) {
    let read: T = serde_json::from_slice(text).unwrap();
    let written = serde_json::to_string(&read).unwrap();
    assert_eq!(written.as_bytes(), text, "{name}");
    refuses_damaged_json::<T>(name, text);
    refuses_other_versions(text, |other, version| {
        let refused = refusal::<T>(name, other);
        let words = format!("version {version} is not known");
        assert!(refused.contains(&words), "{name}: {refused}");
    });
}

/// Returns the message of the error with which JSON is rejected.
fn refusal<T: DeserializeOwned>(name: &str, text: &[u8]) -> String {
    match serde_json::from_slice::<T>(text) {
        Ok(_) => panic!("{name}: accepted: {}", text.escape_ascii()),
        Err(error) => error.to_string(),
    }
}

/// Changes the version in JSON to 0, 2 and 255, if it has one. `refused` checks the error for the changed text, and
/// also gets the changed version.
pub fn refuses_other_versions(text: &[u8], refused: impl Fn(&[u8], u8)) {
    let text = std::str::from_utf8(text).unwrap();
    for version in [0, 2, 255] {
        let other = text.replace(r#""version":1,"#, &format!(r#""version":{version},"#));
        if other != text {
            refused(other.as_bytes(), version);
        }
    }
}

/// Checks that truncated and extended JSON is rejected. A flipped bit at any place must not cause a panic. If the
/// flipped text can be read, its value must be written and read again as the same JSON.
pub fn refuses_damaged_json<T: Serialize + DeserializeOwned>(name: &str, text: &[u8]) {
    let read = |bytes: &[u8]| serde_json::from_slice::<T>(bytes);
    for length in 0..text.len() {
        let refused = refusal::<T>(name, &text[..length]);
        let expected = refused.starts_with("EOF while parsing");
        assert!(expected, "{name}: {length} bytes: {refused}");
    }
    let refused = refusal::<T>(name, &[text, b"0"].concat());
    let expected = refused.starts_with("trailing characters");
    assert!(expected, "{name}: extended: {refused}");
    for bit in 0..8 * text.len() {
        if let Ok(other) = read(&flipped(text, bit)) {
            let written = serde_json::to_vec(&other).unwrap();
            let again = serde_json::to_vec(&read(&written).unwrap()).unwrap();
            assert_eq!(written, again, "{name}: bit {bit}");
        }
    }
}

/// Checks that an unknown field is rejected with its name in the message.
pub fn refuses_unknown_fields<T: DeserializeOwned>(name: &str) {
    let text = String::from_utf8(stored(name)).unwrap();
    let surplus = text.replacen('{', r#"{"surplus":1,"#, 1);
    let refused = refusal::<T>(name, surplus.as_bytes());
    let expected = refused.contains("unknown field `surplus`");
    assert!(expected, "{name}: {refused}");
}

/// Returns the bytes with one bit flipped.
pub fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    flipped[bit / 8] ^= 1 << (bit % 8);
    flipped
}

/// Damages bytes: truncates them at every edge of the header and at some places after it, extends them by a byte, and
/// flips each bit of the first `header` bytes. `refused` must check for a typed error.
pub fn refuses_damage(bytes: &[u8], header: usize, refused: impl Fn(&[u8])) {
    for length in (0..=header).chain([bytes.len() / 2, bytes.len() - 1]) {
        refused(&bytes[..length]);
    }
    refused(&[bytes, &[0]].concat());
    for bit in 0..8 * header {
        refused(&flipped(bytes, bit));
    }
}
