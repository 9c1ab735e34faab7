//! Every format has version 1.

use crate::encryption::public;
use crate::files::{names, refuses_other_versions, stored};
use fhaim_api::Digest;
use fhaim_he::{
    Ciphertext, Parameters, PublicKey, STANDARD, SecretKey, SeededCiphertext, UploadKey,
};
use fhaim_pgm::Model;
use fhaim_protocol::align::Message;
use fhaim_protocol::request::DecryptRequest;
use fhaim_sdk::{Journal, KeptLadder};
use std::path::{Path, PathBuf};
use uuid::Uuid;

const DATASET: Uuid = Uuid::from_bytes([0xd5; 16]);

/// Golden files without a version: hashes and texts that are compared with computed ones, sealed values, and bodies
/// of requests to addresses that begin with `/v1/`.
const UNVERSIONED: [&str; 10] = [
    "chain",
    "decrypt-request.around-page",
    "fingerprint",
    "link",
    "receipt-keys",
    "receipt.header",
    "sealed",
    "sealing",
    "share.answer",
    "share.call",
];

/// The constants of the source that hold versions of formats.
const CONSTANTS: [(&str, &str); 13] = [
    ("crates/domain/src/schema.rs", "FORMAT_VERSION"),
    ("crates/files/src/memory/stored.rs", "VERSION"),
    ("crates/he/src/wire/mod.rs", "VERSION"),
    ("crates/pgm/src/saved.rs", "VERSION"),
    ("crates/protocol/src/align/wire.rs", "VERSION"),
    ("crates/protocol/src/codec.rs", "VERSION"),
    ("crates/protocol/src/committee/message.rs", "VERSION"),
    ("crates/protocol/src/terms.rs", "TERMS_VERSION"),
    ("crates/sdk/src/journal.rs", "VERSION"),
    ("crates/sdk/src/ladder.rs", "VERSION"),
    ("crates/sdk/src/verify/shares.rs", "RECORD_VERSION"),
    ("crates/sdk/src/verify/shares.rs", "SHARE_VERSION"),
    ("research/gan/src/saved.rs", "VERSION"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the constants of a file whose names end in VERSION and whose values are numbers.
fn versions(text: &str) -> Vec<(String, u64)> {
    let constant = |line: &str| {
        let (_, rest) = line.split_once("const ")?;
        let (name, rest) = rest.split_once(": ")?;
        let (_, value) = rest.split_once(" = ")?;
        let value = value.trim_end_matches(';').parse().ok()?;
        name.ends_with("VERSION").then(|| (name.to_owned(), value))
    };
    text.lines().filter_map(constant).collect()
}

#[test]
fn every_version_constant_is_1_and_listed() {
    let mut found = Vec::new();
    for folder in ["crates", "services", "research", "engine"] {
        let mut files = Vec::new();
        rust_files(&root().join(folder), &mut files);
        for file in files {
            for (name, value) in versions(&std::fs::read_to_string(&file).unwrap()) {
                let file = file.strip_prefix(root()).unwrap().to_str().unwrap();
                assert_eq!(value, 1, "{file}: {name}");
                found.push((file.to_owned(), name));
            }
        }
    }
    found.sort();
    let listed = CONSTANTS.map(|(file, name)| (file.to_owned(), name.to_owned()));
    assert_eq!(found, listed);
}

/// Decodes a golden file that is not JSON. Returns whether it was accepted, and the position of its version.
fn decode(name: &str, bytes: &[u8]) -> Option<(bool, usize)> {
    let params = Parameters::new(STANDARD).unwrap();
    Some(match name {
        "ciphertext.standard" => (Ciphertext::from_bytes(&params, bytes).is_ok(), 6),
        "public-key.standard" => (PublicKey::from_bytes(&params, bytes).is_ok(), 6),
        "secret-key.standard" => (SecretKey::from_bytes(&params, bytes).is_ok(), 6),
        "object.counts.standard" | "seeded-ciphertext.standard" => {
            (SeededCiphertext::from_bytes(&params, bytes).is_ok(), 6)
        }
        "upload-key.standard" => (UploadKey::from_bytes(&params, bytes).is_ok(), 6),
        "decrypt-request" => (DecryptRequest::from_bytes(&params, bytes).is_ok(), 6),
        "align.list" | "align.half" | "align.answers" | "align.common" => {
            (Message::from_bytes(bytes).is_ok(), 7)
        }
        "model" | "model.beside" => (Model::load(bytes, 1 << 20).is_ok(), 8),
        _ => return None,
    })
}

#[test]
fn other_versions_of_binary_formats_are_rejected() {
    let _ = public(&Parameters::new(STANDARD).unwrap());
    for name in names() {
        let texts = [".json", ".digest", ".sha256", ".journal", ".ladder"];
        if texts.iter().any(|end| name.ends_with(end)) || UNVERSIONED.contains(&name.as_str()) {
            continue;
        }
        let bytes = stored(&name);
        let (decoded, place) = decode(&name, &bytes).unwrap_or_else(|| {
            panic!("{name}: add its decoder to `decode`, or its name to UNVERSIONED")
        });
        assert!(decoded && bytes[place] == 1, "{name}");
        for version in [0, 2, 255] {
            let mut other = bytes.clone();
            other[place] = version;
            assert_eq!(
                decode(&name, &other),
                Some((false, place)),
                "{name}: {version}"
            );
        }
    }
}

#[test]
fn other_versions_of_a_holders_files_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for name in ["upload.journal", "upload.key.journal", "upload.ladder"] {
        let text = stored(name);
        assert!(text.starts_with(br#"{"version":1,"#), "{name}");
        refuses_other_versions(&text, |other, version| {
            std::fs::write(&path, other).unwrap();
            let (refused, words) = match name {
                // The error message for this file does not quote it.
                "upload.ladder" => (
                    KeptLadder::read(&path, DATASET).unwrap_err(),
                    "not a ladder key of version 1".to_owned(),
                ),
                _ => (
                    Journal::open(&path, DATASET, Digest::of(b"table")).unwrap_err(),
                    format!("version {version} is not known"),
                ),
            };
            assert!(refused.to_string().contains(&words), "{name}: {refused}");
        });
    }
}
