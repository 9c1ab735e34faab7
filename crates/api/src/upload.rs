//! A holder's upload to the computation service: named objects of a few ciphertexts each.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Digest;
use crate::dataset::WireTerms;

/// Room for records in a chunk, and the number of chunks. This is everything that is disclosed
/// about the number of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WireLayout {
    /// Number of record chunks.
    #[schema(minimum = 1)]
    pub chunks: usize,
    /// Number of positions that a chunk's records take: a power of two.
    #[schema(minimum = 64, maximum = 8192)]
    pub stride: usize,
}

/// Registers a dataset, or the caller's part of one, for upload. The service fetches the dataset's
/// public key and evaluation keys from the crypto service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUpload {
    /// The dataset's terms.
    pub terms: WireTerms,
    /// Layout of the caller's records. Absent if it uploads counts, which disclose nothing about
    /// the number of records.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layout: Option<WireLayout>,
}

/// The state of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UploadState {
    /// Objects are missing, or `complete` was not called.
    Open,
    /// Sealed: all objects have been uploaded.
    Complete,
}

/// One holder's upload: records, as a rectangle of the dataset's grid (record chunks down, columns
/// across), or counts. A dataset with one holder has one contribution, number 0. With several
/// holders, each holder's contribution has the holder's number in the roster, once it is
/// registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Contribution {
    /// Number of the contribution within the dataset.
    pub number: u32,
    /// The first record chunk of this part, and its number of chunks. `[0, 0]` for counts.
    pub chunks: [usize; 2],
    /// The first one-hot column of this part, and its number of columns.
    pub columns: [usize; 2],
    /// State of its upload.
    pub state: UploadState,
    /// Number of uploaded objects.
    pub objects_present: u64,
    /// Number of objects of the complete upload.
    pub objects: u64,
    /// Bytes of the uploaded objects.
    pub bytes_present: u64,
    /// Bytes of one encrypted object. The switching keys of a sole holder have another size.
    pub object_bytes: u64,
}

/// An upload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Upload {
    /// The dataset.
    pub dataset: Uuid,
    /// Layout of the records. With several contributions, that of the first one that was
    /// registered. Absent if the holders upload counts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layout: Option<WireLayout>,
    /// The contributions of the holders.
    pub contributions: Vec<Contribution>,
}

/// Objects of a contribution that are still missing, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Missing {
    /// Names of the objects, such as `column/12/3`, `noise/0/4/1` and `keys`.
    pub objects: Vec<String>,
}

/// Uploaded objects of a contribution, for the second computation service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Digests of the objects, by name.
    pub objects: BTreeMap<String, Digest>,
}

/// Seals an upload. Afterwards, no object can be added or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    /// Digest of the manifest. The manifest has one line for each object, in ascending order of
    /// name: `name`, a space, the object's digest in hexadecimal, and a newline.
    pub manifest: Digest,
}
