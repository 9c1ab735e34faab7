//! Routes of the crypto service: key sets, decryption and the ledger.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fhaim_dp::{Entry, hex_digest};
use fhaim_protocol::committee::{KeyCommittee, KeyService, ServiceSigningKey, confirmation};
use fhaim_protocol::crypto::chain::{self, Tip};
use fhaim_protocol::crypto::debited;
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::roster::{Agreement, MemberSignature};
use fhaim_protocol::window::Placed;
use fhaim_release::ReleaseRequest;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::account::Secret;
use crate::batch::ReleaseRequestDocument;
use crate::dataset::WireTerms;
use crate::{Cost, Digest};

/// Makes a dataset's key set, and fixes its plan and budget permanently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKeySet {
    /// The dataset's terms.
    pub terms: WireTerms,
    /// The generation service's voucher for the dataset: see its route
    /// `/v1/datasets/{dataset}/voucher`. It is not needed once the keys are made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub voucher: Option<Secret>,
}

/// A dataset's key set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeySet {
    /// The dataset.
    pub dataset: Uuid,
    /// The terms, which cannot change.
    pub terms: WireTerms,
    /// Number of the encryption parameter set.
    pub parameter_set: u8,
    /// Digest of the public key.
    pub public_key: Digest,
    /// Digest of the evaluation keys.
    pub evaluation_keys: Digest,
    /// Budget of the dataset.
    pub budget: Cost,
    /// Cost of all releases so far.
    pub spent: Cost,
    /// Number of runs that have begun.
    pub runs_begun: u32,
    /// The public key that the dataset's receipts are checked with: Ed25519, base64url.
    pub receipt_key: String,
    /// Receipt of the current ledger.
    pub receipt: Receipt,
    /// The holders of the roster, in its order. Empty if one holder has the whole table.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub holders: Vec<HolderStanding>,
    /// The confirmations of the keys by all services, if several share the secret key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub confirmation: Option<Confirmation>,
    /// Time of creation.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The confirmations of a key by all services that share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// Identifier of the attempt that made the key: base64url.
    pub attempt: String,
    /// A signed message of each service: base64url.
    pub messages: Vec<String>,
}

/// Makes a share of a dataset's key: the first key service's request to another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewShare {
    /// The account that makes the dataset's keys.
    pub owner: Uuid,
    /// The dataset's terms.
    pub terms: WireTerms,
    /// Identifier of this attempt: base64url of 16 random bytes.
    pub attempt: String,
}

/// A service that can share a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyServiceDocument {
    /// Name of the service, for people.
    pub name: String,
    /// The Ed25519 public key of its signatures: 64 hexadecimal digits.
    pub key: Digest,
}

/// The services that can share a key here, starting with the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyServices {
    /// The services, in the order of their numbers.
    pub services: Vec<KeyServiceDocument>,
}

impl From<KeyService> for KeyServiceDocument {
    fn from(service: KeyService) -> Self {
        Self {
            name: service.name,
            key: Digest(service.key),
        }
    }
}

impl From<KeyServiceDocument> for KeyService {
    fn from(service: KeyServiceDocument) -> Self {
        Self {
            name: service.name,
            key: service.key.0,
        }
    }
}

impl Confirmation {
    /// Creates the confirmation of an attempt from the messages at its end.
    pub fn new(attempt: &[u8; 16], messages: &[Vec<u8>]) -> Self {
        let text = |message: &Vec<u8>| URL_SAFE_NO_PAD.encode(message);
        Self {
            attempt: URL_SAFE_NO_PAD.encode(attempt),
            messages: messages.iter().map(text).collect(),
        }
    }

    /// Returns the identifier of the attempt.
    ///
    /// # Errors
    /// Text that is not an attempt's identifier.
    pub fn attempt(&self) -> Result<[u8; 16], &'static str> {
        read_attempt(&self.attempt)
    }

    /// Returns the messages.
    ///
    /// # Errors
    /// Text that is not base64url.
    pub fn messages(&self) -> Result<Vec<Vec<u8>>, &'static str> {
        let read = |text: &String| {
            URL_SAFE_NO_PAD
                .decode(text)
                .map_err(|_| "a confirmation is not base64url")
        };
        self.messages.iter().map(read).collect()
    }
}

/// Parses the identifier of an attempt to make a key: 16 bytes, base64url.
///
/// # Errors
/// Text that is not such an identifier.
pub fn read_attempt(text: &str) -> Result<[u8; 16], &'static str> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or("an attempt's identifier must be 16 bytes in base64url")
}

impl KeySet {
    /// Checks that all services that share the key have confirmed it, if the terms name several.
    /// The service that shows the keys could otherwise have made them by itself.
    ///
    /// # Errors
    /// The missing confirmation, or the confirmation of other keys.
    pub fn check_confirmed(&self) -> Result<(), String> {
        let services = &self.terms.0.key_services;
        if services.is_empty() {
            return Ok(());
        }
        let confirmation = self.confirmation.as_ref();
        let confirmation = confirmation.ok_or("no key service has confirmed the keys")?;
        let Agreement {
            dataset,
            terms,
            public_key,
            evaluation_keys,
        } = self.agreement();
        let committee =
            KeyCommittee::new(dataset, &terms, &confirmation.attempt()?, services.clone());
        let messages = confirmation.messages()?;
        let checked = committee.and_then(|committee| {
            confirmation::check(&committee, &public_key, &evaluation_keys, &messages)
        });
        checked.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Returns the agreement that every holder signs, as in this key set.
    pub fn agreement(&self) -> Agreement {
        // Text, numbers and digests always serialize.
        let terms = serde_json::to_vec(&self.terms).unwrap_or_default();
        Agreement {
            dataset: DatasetId(self.dataset.into_bytes()),
            terms: Digest::of(&terms).0,
            public_key: self.public_key.0,
            evaluation_keys: self.evaluation_keys.0,
        }
    }

    /// Returns the holders that have not signed or have withdrawn.
    pub fn missing(&self) -> impl Iterator<Item = &HolderStanding> {
        let missing = |holder: &&HolderStanding| !holder.signed || holder.withdrawn;
        self.holders.iter().filter(missing)
    }
}

/// A holder of the roster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HolderStanding {
    /// Account of the holder, as in the roster.
    pub account: String,
    /// Whether it has signed the terms and keys.
    pub signed: bool,
    /// Whether it has withdrawn, so that no further run can begin.
    pub withdrawn: bool,
}

/// A holder's consent to a dataset's terms and keys. A run can begin only when all holders have
/// signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSignature {
    /// Ed25519 signature with the holder's key in the roster. It covers `fhaim agreement 1`, the
    /// dataset's identifier, and the SHA-256 of the stored terms, of the public key and of the
    /// evaluation keys.
    #[schema(value_type = String, pattern = "^[0-9a-f]{128}$")]
    pub signature: MemberSignature,
}

/// A holder's request for its upload key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadKeyRequest {
    /// The X25519 public key that the answer is encrypted to. It is used for this request only.
    #[serde(with = "hex_digest")]
    #[schema(value_type = String, pattern = "^[0-9a-f]{64}$")]
    pub one_time_key: [u8; 32],
    /// Ed25519 signature with the holder's key in the roster. It covers `fhaim upload key request
    /// 1`, the dataset's identifier, the holder's number (4 bytes, little-endian), the SHA-256 of
    /// the evaluation keys, and the one-time key.
    #[schema(value_type = String, pattern = "^[0-9a-f]{128}$")]
    pub signature: MemberSignature,
}

/// A holder's upload key, as the key services send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadKeySeeds {
    /// The seed of each key service, in the order of the terms: base64url of an HPKE message (RFC
    /// 9180, base mode, X25519, HKDF-SHA256, ChaCha20-Poly1305).
    pub seeds: Vec<String>,
}

impl UploadKeySeeds {
    /// Returns the encrypted seeds.
    ///
    /// # Errors
    /// A seed that is not base64url.
    pub fn bytes(&self) -> Result<Vec<Vec<u8>>, &'static str> {
        let decode = |seed: &String| URL_SAFE_NO_PAD.decode(seed);
        let seeds: Result<_, _> = self.seeds.iter().map(decode).collect();
        seeds.map_err(|_| "a seed is not base64url")
    }
}

/// The first key service's call to another one when a holder fetches its upload key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadSeedCall {
    /// The holder's number in the roster.
    pub holder: u32,
    /// The holder's request.
    pub request: UploadKeyRequest,
    /// The confirmations of the keys by all services.
    pub confirmation: Confirmation,
}

/// Released integers: the answer to a decryption request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decrypted {
    /// The integers of each release, in the order of the request.
    pub answers: Vec<Vec<i64>>,
    /// Receipt of the ledger including these releases.
    pub receipt: Receipt,
}

/// The header for kept receipts, with one receipt in each header: base64url of the [`Receipt`]'s
/// JSON.
pub const RECEIPT_HEADER: &str = "fhaim-receipt";

/// The end of a dataset's ledger at some time, signed by the crypto service. The ledger is a hash
/// chain: a receipt shows whether the service was set back to a state before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The dataset.
    pub dataset: Uuid,
    /// Number of entries in the ledger.
    pub height: u64,
    /// Hash over all entries.
    pub head: Digest,
    /// Ed25519 signature, base64url.
    pub signature: String,
}

impl Receipt {
    /// Returns the value of [`RECEIPT_HEADER`].
    pub fn to_header(&self) -> String {
        // Text, numbers and digests always serialize.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Parses a value of [`RECEIPT_HEADER`].
    pub fn from_header(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(value).ok()?).ok()
    }

    /// Updates the kept receipts after an answer with `receipt` to a call that showed `shown`. The
    /// crypto service has checked the shown receipts, so the new one covers them. It says nothing
    /// about other receipts. A higher receipt may be of another history: a client that kept only
    /// that one would lose the receipts that could refute it.
    pub fn keep(kept: &mut Vec<Self>, shown: &[Self], receipt: &Self) {
        kept.retain(|known| known != receipt && !shown.contains(known));
        kept.push(receipt.clone());
    }

    /// Returns the receipt with the larger height, if there is one.
    pub fn higher(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if a.height >= b.height { a } else { b }),
            (a, b) => a.or(b),
        }
    }
}

impl From<chain::ChainReceipt> for Receipt {
    fn from(receipt: chain::ChainReceipt) -> Self {
        Self {
            dataset: Uuid::from_bytes(receipt.dataset.0),
            height: receipt.tip.height,
            head: Digest(receipt.tip.head),
            signature: URL_SAFE_NO_PAD.encode(receipt.signature),
        }
    }
}

impl TryFrom<&Receipt> for chain::ChainReceipt {
    type Error = fhaim_protocol::Error;

    fn try_from(receipt: &Receipt) -> Result<Self, Self::Error> {
        let signature = URL_SAFE_NO_PAD.decode(&receipt.signature).ok();
        let signature = signature.and_then(|bytes| bytes.try_into().ok());
        Ok(Self {
            dataset: DatasetId(receipt.dataset.into_bytes()),
            tip: Tip {
                height: receipt.height,
                head: receipt.head.0,
            },
            signature: signature.ok_or(fhaim_protocol::Error::Request(
                "a receipt's signature must have 64 bytes",
            ))?,
        })
    }
}

/// Requests a job's run, before anything of it is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// Digest of the upload's manifest, the same for all runs of a dataset.
    pub upload: Digest,
}

/// The second computation service's result for a batch. The keeper of the ledger compares it with
/// the request that it receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Witnessed {
    /// Digest of the batch's releases.
    pub asked: Digest,
    /// Digest of the resulting request for decryption.
    pub request: Digest,
}

/// A job's run, as in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunStanding {
    /// Number of the run, which determines its window of the noise ladder.
    pub run: u32,
    /// Its releases, by number.
    pub releases: Vec<PlacedRelease>,
    /// Receipt of the ledger including the run.
    pub receipt: Receipt,
}

/// A release with its positions assigned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacedRelease {
    /// Number of cells.
    pub cells: usize,
    /// Digest of the release and of its positions.
    pub statement: Digest,
}

impl From<&Placed> for PlacedRelease {
    fn from(placed: &Placed) -> Self {
        Self {
            cells: placed.cells,
            statement: Digest(placed.statement),
        }
    }
}

impl From<&PlacedRelease> for Placed {
    fn from(placed: &PlacedRelease) -> Self {
        Self {
            cells: placed.cells,
            statement: placed.statement.0,
        }
    }
}

/// The ledger of a dataset: all debits, and the remaining budget.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DatasetLedger {
    /// The dataset.
    pub dataset: Uuid,
    /// Budget of the dataset.
    pub budget: Cost,
    /// Cost of all releases so far.
    pub spent: Cost,
    /// Budget that no run has yet.
    pub unclaimed: Cost,
    /// The runs that have begun, oldest first.
    pub runs: Vec<RunLedger>,
    /// The reason for which nothing more is released, if the dataset is frozen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frozen: Option<String>,
    /// Receipt of the current ledger.
    pub receipt: Receipt,
}

/// The ledger of one run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunLedger {
    /// The job.
    pub job: Uuid,
    /// The run's share of the budget.
    pub budget: Cost,
    /// Cost of its releases so far.
    pub spent: Cost,
    /// The debits of the run.
    #[schema(value_type = Vec<Object>)]
    pub entries: Vec<Entry>,
}

/// A batch of releases in the ledger: requests, debits and answers. The positions of its noise on
/// the ladder follow from the run and from the cells of earlier releases.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReleasedBatch {
    /// Number of its entry in the dataset's ledger.
    pub height: u64,
    /// The job.
    pub job: Uuid,
    /// The job's run, which determines its window of the noise ladder.
    pub run: u32,
    /// Its debits, one for each release.
    #[schema(value_type = Vec<Object>)]
    pub entries: Vec<Entry>,
    /// The requests, one for each release.
    #[schema(value_type = Vec<ReleaseRequestDocument>)]
    pub requests: Vec<ReleaseRequest>,
    /// The integers of each release.
    pub answers: Vec<Vec<i64>>,
}

/// An entry of a dataset's ledger, in the form that the ledger's hash covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerEntry {
    /// Number of the entry in the ledger, from 1.
    pub height: u64,
    /// The hashed text: JSON.
    pub act: String,
}

/// A release that a key service has debited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DebitedRelease {
    /// The job.
    pub job: Uuid,
    /// The release's number within the job.
    pub number: u32,
    /// Digest of the release and of its positions.
    pub statement: Digest,
}

/// Everything that a key service has debited of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DebitedReleases {
    /// The releases, oldest first.
    pub releases: Vec<DebitedRelease>,
    /// Ed25519 signature, with the service's key in the dataset's terms: base64url.
    pub signature: String,
}

/// The debits of all further key services of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DebitedByServices {
    /// One list for each service in the order of the terms, without the first service, which
    /// returns this next to its own ledger.
    pub services: Vec<DebitedReleases>,
}

impl DebitedReleases {
    /// Signs the debited releases of a service.
    pub fn sign(dataset: Uuid, releases: Vec<DebitedRelease>, key: &ServiceSigningKey) -> Self {
        let dataset = DatasetId(dataset.into_bytes());
        let signature = debited::sign(key, dataset, &protocol_releases(&releases));
        Self {
            signature: URL_SAFE_NO_PAD.encode(signature),
            releases,
        }
    }

    /// Checks the signature with the service's public key.
    ///
    /// # Errors
    /// [`fhaim_protocol::Error::Committee`] for a signature of another list or by another key.
    pub fn verify(&self, dataset: Uuid, key: &[u8; 32]) -> Result<(), fhaim_protocol::Error> {
        let signature = URL_SAFE_NO_PAD.decode(&self.signature).ok();
        let signature = signature.and_then(|bytes| bytes.try_into().ok());
        let signature = signature.ok_or(fhaim_protocol::Error::Committee(
            "a signature must have 64 bytes",
        ))?;
        let dataset = DatasetId(dataset.into_bytes());
        debited::verify(key, dataset, &protocol_releases(&self.releases), &signature)
    }
}

fn protocol_releases(releases: &[DebitedRelease]) -> Vec<debited::DebitRecord> {
    let release = |release: &DebitedRelease| debited::DebitRecord {
        job: JobId(release.job.into_bytes()),
        number: release.number,
        statement: release.statement.0,
    };
    releases.iter().map(release).collect()
}

/// An action of the crypto service on behalf of a caller.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Number of the entry within the dataset.
    pub number: u64,
    /// Time of the action.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The caller: a user's identifier or a service's name.
    pub actor: String,
    /// The requested action.
    pub action: String,
    /// Whether it was done.
    pub granted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_survive_their_header_and_other_values_are_rejected() {
        let receipt = |height| Receipt {
            dataset: Uuid::nil(),
            height,
            head: Digest::of(b"head"),
            signature: URL_SAFE_NO_PAD.encode([7; 64]),
        };
        let header = receipt(3).to_header();
        assert_eq!(Receipt::from_header(header.as_bytes()), Some(receipt(3)));
        assert!(chain::ChainReceipt::try_from(&receipt(3)).is_ok());
        for wrong in ["", "e30", "%%%", &header[1..]] {
            assert_eq!(Receipt::from_header(wrong.as_bytes()), None, "{wrong}");
        }
        let mut short = receipt(3);
        short.signature.pop();
        assert!(matches!(
            chain::ChainReceipt::try_from(&short),
            Err(fhaim_protocol::Error::Request(..))
        ));
        let mut kept = vec![receipt(3), receipt(9)];
        Receipt::keep(&mut kept, &[receipt(3)], &receipt(4));
        assert_eq!(kept, [receipt(9), receipt(4)]);
        let (low, high) = (Some(receipt(3)), Some(receipt(4)));
        assert_eq!(Receipt::higher(low.clone(), high.clone()), high);
        assert_eq!(Receipt::higher(None, low.clone()), low);
    }
}
