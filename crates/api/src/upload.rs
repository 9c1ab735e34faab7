//! A holder's upload to the computation service: named objects, each a few ciphertexts.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Digest;
use crate::dataset::WireTerms;

/// How many records a chunk has room for, and how many chunks there are: all that is told of the
/// number of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WireLayout {
    /// Record chunks.
    #[schema(minimum = 1)]
    pub chunks: usize,
    /// Positions a chunk's records take: a power of two.
    #[schema(minimum = 64, maximum = 8192)]
    pub stride: usize,
}

/// Registers a dataset, or the caller's part of one, for upload. The service fetches the dataset's public and evaluation keys
/// from the crypto service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUpload {
    /// The dataset's terms.
    pub terms: WireTerms,
    /// What is told of the caller's number of records; absent where it uploads counts, which tell
    /// nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layout: Option<WireLayout>,
}

/// How far an upload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UploadState {
    /// Objects are missing, or `complete` was not called.
    Open,
    /// Sealed: every object is there.
    Complete,
}

/// What one holder uploads: records, a rectangle of the dataset's grid (record chunks down, columns
/// across), or counts. A dataset of one holder has one, number 0; of several, each has that of its
/// number in the roster, once it is registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Contribution {
    /// Its number within the dataset.
    pub number: u32,
    /// The first record chunk of this part, and how many it has: none where it is counts.
    pub chunks: [usize; 2],
    /// The first one-hot column of this part, and how many it has.
    pub columns: [usize; 2],
    /// How far its upload is.
    pub state: UploadState,
    /// Objects there.
    pub objects_present: u64,
    /// Objects there will be.
    pub objects: u64,
    /// Bytes of the objects there.
    pub bytes_present: u64,
    /// Bytes of one object that is encrypted; the keys of a holder's own are of another size.
    pub object_bytes: u64,
}

/// An upload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Upload {
    /// The dataset.
    pub dataset: Uuid,
    /// What is told of the number of records; of holders of several parts, of the first that was
    /// registered; absent where they upload counts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layout: Option<WireLayout>,
    /// Its contributions.
    pub contributions: Vec<Contribution>,
}

/// Objects of a contribution that are still missing, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Missing {
    /// Names such as `column/12/3`, `noise/0/4/1` and `keys`.
    pub objects: Vec<String>,
}

/// Objects of a contribution that are there, for the second computation service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Their digests, by their names.
    pub objects: BTreeMap<String, Digest>,
}

/// Seals an upload: nothing can be added or changed after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    /// Digest of the manifest: of every object in ascending order of name, `name`, a space, its
    /// digest in hexadecimal and a newline.
    pub manifest: Digest,
}
