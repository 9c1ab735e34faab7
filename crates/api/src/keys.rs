//! Key sets, decryption and the ledger: routes of the crypto service.

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

/// Makes a dataset's key set and fixes its plan and budget for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKeySet {
    /// The dataset's terms.
    pub terms: WireTerms,
    /// What the generation service says of the dataset: see its route
    /// `/v1/datasets/{dataset}/voucher`. Not needed again once the keys are made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub voucher: Option<Secret>,
}

/// A dataset's key set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeySet {
    /// The dataset.
    pub dataset: Uuid,
    /// What is fixed for good.
    pub terms: WireTerms,
    /// Number of the encryption parameter set.
    pub parameter_set: u8,
    /// Digest of the public key.
    pub public_key: Digest,
    /// Digest of the evaluation keys.
    pub evaluation_keys: Digest,
    /// The budget.
    pub budget: Cost,
    /// What has been spent.
    pub spent: Cost,
    /// Runs begun.
    pub runs_begun: u32,
    /// What the dataset's receipts are checked with: an Ed25519 public key, base64url.
    pub receipt_key: String,
    /// The ledger as it is now.
    pub receipt: Receipt,
    /// The holders of the roster, in its order; none where one holder has the whole table.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub holders: Vec<HolderStanding>,
    /// What all services said of the keys, where several share them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub confirmation: Option<Confirmation>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// What all services that share a key said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// What the attempt to make the key was named by: base64url.
    pub attempt: String,
    /// A signed message of each service: base64url.
    pub messages: Vec<String>,
}

/// Makes a share of a dataset's key: what the first key service asks of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewShare {
    /// The account that makes the dataset's keys.
    pub owner: Uuid,
    /// The dataset's terms.
    pub terms: WireTerms,
    /// What names this attempt: base64url of 16 random bytes.
    pub attempt: String,
}

/// A service that can share a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyServiceDocument {
    /// What people call it.
    pub name: String,
    /// The Ed25519 public key that it signs with: 64 hexadecimal digits.
    pub key: Digest,
}

/// The services that can share a key here, the first of them first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyServices {
    /// In the order of their numbers.
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
    /// Of an attempt and what was said at its end.
    pub fn new(attempt: &[u8; 16], messages: &[Vec<u8>]) -> Self {
        let text = |message: &Vec<u8>| URL_SAFE_NO_PAD.encode(message);
        Self {
            attempt: URL_SAFE_NO_PAD.encode(attempt),
            messages: messages.iter().map(text).collect(),
        }
    }

    /// The attempt.
    ///
    /// # Errors
    /// Text that is none.
    pub fn attempt(&self) -> Result<[u8; 16], &'static str> {
        read_attempt(&self.attempt)
    }

    /// The messages.
    ///
    /// # Errors
    /// Text that is no bytes.
    pub fn messages(&self) -> Result<Vec<Vec<u8>>, &'static str> {
        let read = |text: &String| {
            URL_SAFE_NO_PAD
                .decode(text)
                .map_err(|_| "it is not base64url")
        };
        self.messages.iter().map(read).collect()
    }
}

/// What names an attempt to make a key: 16 bytes, base64url.
///
/// # Errors
/// Text that is none.
pub fn read_attempt(text: &str) -> Result<[u8; 16], &'static str> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or("an attempt is 16 bytes, base64url")
}

impl KeySet {
    /// Refuses keys that the terms say several services share, and that not all of them have confirmed: the
    /// one that shows them could have made them alone.
    ///
    /// # Errors
    /// What is missing, or said of other keys.
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

    /// What every holder signs, as this key set has it.
    pub fn agreement(&self) -> Agreement {
        // Text, numbers and digests: writing them cannot fail.
        let terms = serde_json::to_vec(&self.terms).unwrap_or_default();
        Agreement {
            dataset: DatasetId(self.dataset.into_bytes()),
            terms: Digest::of(&terms).0,
            public_key: self.public_key.0,
            evaluation_keys: self.evaluation_keys.0,
        }
    }

    /// Accounts of holders that have not signed, or that withdrew.
    pub fn missing(&self) -> impl Iterator<Item = &HolderStanding> {
        let missing = |holder: &&HolderStanding| !holder.signed || holder.withdrawn;
        self.holders.iter().filter(missing)
    }
}

/// A holder of the roster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HolderStanding {
    /// Its account, as the roster has it.
    pub account: String,
    /// Whether it has signed terms and keys.
    pub signed: bool,
    /// Whether it lets no further run begin.
    pub withdrawn: bool,
}

/// A holder's consent to a dataset's terms and keys. No run begins before all holders have signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSignature {
    /// Ed25519 signature, with the holder's key in the roster, of `fhaim agreement 1`, the dataset's
    /// identifier, and the SHA-256 of the stored terms, of the public and of the evaluation keys.
    #[schema(value_type = String, pattern = "^[0-9a-f]{128}$")]
    pub signature: MemberSignature,
}

/// A holder's request for its upload key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadKeyRequest {
    /// The X25519 public key that the answer is encrypted to, made for only this request.
    #[serde(with = "hex_digest")]
    #[schema(value_type = String, pattern = "^[0-9a-f]{64}$")]
    pub one_time_key: [u8; 32],
    /// Ed25519 signature, with the holder's key in the roster, of `fhaim upload key request 1`, the dataset's identifier,
    /// the holder's number (4 bytes, little-endian), the SHA-256 of the evaluation keys, and the one-time key.
    #[schema(value_type = String, pattern = "^[0-9a-f]{128}$")]
    pub signature: MemberSignature,
}

/// A holder's upload key, as the key services send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadKeySeeds {
    /// The seed of each key service, in the order of the terms: base64url of an HPKE message (RFC 9180, base mode, X25519,
    /// HKDF-SHA256, ChaCha20-Poly1305).
    pub seeds: Vec<String>,
}

impl UploadKeySeeds {
    /// The encrypted seeds.
    ///
    /// # Errors
    /// A seed that is not base64url.
    pub fn bytes(&self) -> Result<Vec<Vec<u8>>, &'static str> {
        let decode = |seed: &String| URL_SAFE_NO_PAD.decode(seed);
        let seeds: Result<_, _> = self.seeds.iter().map(decode).collect();
        seeds.map_err(|_| "a seed is not base64url")
    }
}

/// What the first key service asks another for when a holder fetches its upload key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadSeedCall {
    /// The holder's number in the roster.
    pub holder: u32,
    /// What the holder asks.
    pub request: UploadKeyRequest,
    /// What all services said of the keys.
    pub confirmation: Confirmation,
}

/// Released integers: the answer to a decryption request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decrypted {
    /// The integers of each release, in the order of the request.
    pub answers: Vec<Vec<i64>>,
    /// The ledger with them in it.
    pub receipt: Receipt,
}

/// The header that carries receipts kept from before, one each: the [`Receipt`]'s JSON, base64url.
pub const RECEIPT_HEADER: &str = "fhaim-receipt";

/// The end of a dataset's ledger at some time, signed by the crypto service. The ledger is a hash
/// chain: whoever shows a receipt finds out whether the service was set back behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The dataset.
    pub dataset: Uuid,
    /// Entries of the ledger.
    pub height: u64,
    /// The hash over all of them.
    pub head: Digest,
    /// Ed25519 signature, base64url.
    pub signature: String,
}

impl Receipt {
    /// The value of [`RECEIPT_HEADER`].
    pub fn to_header(&self) -> String {
        // Text, numbers and digests: writing them cannot fail.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads a value of [`RECEIPT_HEADER`].
    pub fn from_header(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(value).ok()?).ok()
    }

    /// What is kept after an answer that came with `receipt`, to a call that showed `shown`. The
    /// crypto service looked for those, so the new one contains them; of any other nothing is
    /// known. One that is merely higher may be of another history, and whoever kept it alone
    /// would forget what could refute it.
    pub fn keep(kept: &mut Vec<Self>, shown: &[Self], receipt: &Self) {
        kept.retain(|known| known != receipt && !shown.contains(known));
        kept.push(receipt.clone());
    }

    /// The one of two receipts that tells more, whichever are there.
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
            signature: signature
                .ok_or(fhaim_protocol::Error::Request("a signature of 64 bytes"))?,
        })
    }
}

/// Asks for a job's run, before anything of it is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// Digest of the upload's manifest: the same for all of a dataset's runs.
    pub upload: Digest,
}

/// What the second computation service computed a batch to, for the keeper of the ledger to hold what it
/// is sent against.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Witnessed {
    /// Digest of what was asked: the batch's releases.
    pub asked: Digest,
    /// Digest of the request for decryption that came of it.
    pub request: Digest,
}

/// A job's run, as the keeper of the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunStanding {
    /// Its number: which window of the noise ladder it has.
    pub run: u32,
    /// What it has released, by number.
    pub releases: Vec<PlacedRelease>,
    /// The ledger with the run in it.
    pub receipt: Receipt,
}

/// A release that has its positions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacedRelease {
    /// Its cells.
    pub cells: usize,
    /// Digest of the releases and of their positions.
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

/// The ledger of a dataset: every debit taken, and what is left.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DatasetLedger {
    /// The dataset.
    pub dataset: Uuid,
    /// The budget.
    pub budget: Cost,
    /// What has been spent.
    pub spent: Cost,
    /// What no run has been promised yet.
    pub unclaimed: Cost,
    /// The runs begun, oldest first.
    pub runs: Vec<RunLedger>,
    /// Why nothing more is released, if so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frozen: Option<String>,
    /// The ledger as it is now.
    pub receipt: Receipt,
}

/// The ledger of one run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunLedger {
    /// The job.
    pub job: Uuid,
    /// Its share of the budget.
    pub budget: Cost,
    /// What it has spent.
    pub spent: Cost,
    /// Its debits.
    #[schema(value_type = Vec<Object>)]
    pub entries: Vec<Entry>,
}

/// A batch of releases as the ledger has it: what was asked, debited and answered. Where its noise
/// lies on the ladder follows from the run and from the cells of the releases before it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReleasedBatch {
    /// Its place in the dataset's ledger.
    pub height: u64,
    /// The job.
    pub job: Uuid,
    /// The job's run: which window of the noise ladder it has.
    pub run: u32,
    /// Its debits, one a release.
    #[schema(value_type = Vec<Object>)]
    pub entries: Vec<Entry>,
    /// The requests, one per release.
    #[schema(value_type = Vec<ReleaseRequestDocument>)]
    pub requests: Vec<ReleaseRequest>,
    /// The integers of each release.
    pub answers: Vec<Vec<i64>>,
}

/// An entry of a dataset's ledger, as the hash over the ledger takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerEntry {
    /// Its place in the ledger, from 1.
    pub height: u64,
    /// The text that is hashed: JSON.
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
    /// Digest of the releases and of their positions.
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

/// What each further key service of a dataset has debited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DebitedByServices {
    /// In the order of the terms, without the first service, whose ledger this is next to.
    pub services: Vec<DebitedReleases>,
}

impl DebitedReleases {
    /// Signs what a service has debited.
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
    /// [`fhaim_protocol::Error::Committee`] for a signature of something else or by another key.
    pub fn verify(&self, dataset: Uuid, key: &[u8; 32]) -> Result<(), fhaim_protocol::Error> {
        let signature = URL_SAFE_NO_PAD.decode(&self.signature).ok();
        let signature = signature.and_then(|bytes| bytes.try_into().ok());
        let signature =
            signature.ok_or(fhaim_protocol::Error::Committee("a signature has 64 bytes"))?;
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

/// What the crypto service did at someone's request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number within the dataset.
    pub number: u64,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Who asked: a user's identifier or a service's name.
    pub actor: String,
    /// What for.
    pub action: String,
    /// Whether it was done.
    pub granted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_pass_through_a_header_and_nothing_else_does() {
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
