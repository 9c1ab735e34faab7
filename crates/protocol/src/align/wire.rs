//! Encodes and decodes the messages of an alignment.
//!
//! Magic `FHALIGN`, version, session (32 bytes), owner, stage, number of values (4 bytes,
//! little-endian), values of 32 bytes. The stage is 0 for a whole list, and 1 or 2 for a list under
//! 1 or 2 exponents. For common values it is 128 plus the number of exponents that are removed.
//! Every accepted message encodes to the same bytes again. Values are canonical encodings of group
//! elements other than the identity. Values of a list ascend. Common values are in the common
//! order, each once.

use super::{AlignError, MAX_PARTIES};
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::traits::IsIdentity;
use fhaim_he::map;

/// Most rows that a party may align. Its list then takes half a gigabyte.
pub const MAX_KEYS: usize = 1 << 24;

/// An encoded element of the group.
pub type GroupElement = [u8; 32];

const MAGIC: &[u8; 7] = b"FHALIGN";
const VERSION: u8 = 1;

/// The progress of a list through the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// On its way, under this number of exponents.
    Round(u8),
    /// Complete: under the exponents of all parties.
    Whole,
    /// The values that all lists have, on their way to their owner, with the number of removed
    /// exponents.
    Common(u8),
}

/// Stage byte of common values from which no exponent is removed yet.
const COMMON: u8 = 128;

/// A party's list, or the common values for a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The alignment that the message belongs to.
    pub session: [u8; 32],
    /// The party whose list it is.
    pub owner: usize,
    /// Progress of the list.
    pub stage: Stage,
    /// The values: ascending for a list, in the common order for common values.
    pub values: Vec<GroupElement>,
}

impl Message {
    /// Encodes the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(46 + 32 * self.values.len());
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&self.session);
        out.push(self.owner as u8);
        out.push(match self.stage {
            Stage::Whole => 0,
            Stage::Round(exponents) => exponents,
            Stage::Common(without) => COMMON + without,
        });
        // At most MAX_KEYS, so that the number fits.
        out.extend_from_slice(&(self.values.len() as u32).to_le_bytes());
        self.values
            .iter()
            .for_each(|value| out.extend_from_slice(value));
        out
    }

    /// Decodes a message, strictly.
    ///
    /// # Errors
    /// [`AlignError::Message`] with the first rule that the bytes break.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AlignError> {
        let refuse = AlignError::Message;
        let truncated = refuse("truncated");
        let rest = bytes
            .strip_prefix(MAGIC)
            .ok_or(refuse("not a message of an alignment"))?;
        let (&version, rest) = rest.split_first().ok_or(truncated.clone())?;
        if version != VERSION {
            return Err(refuse("a version that this program does not know"));
        }
        let (session, rest) = rest.split_first_chunk::<32>().ok_or(truncated.clone())?;
        let (&[owner, stage], rest) = rest.split_first_chunk::<2>().ok_or(truncated.clone())?;
        let (count, rest) = rest.split_first_chunk::<4>().ok_or(truncated)?;
        let count = u32::from_le_bytes(*count) as usize;
        let (stage, hops) = match stage {
            0 => (Stage::Whole, 0),
            1..COMMON => (Stage::Round(stage), stage),
            COMMON.. => (Stage::Common(stage - COMMON), stage - COMMON),
        };
        if usize::from(owner) >= MAX_PARTIES || usize::from(hops) >= MAX_PARTIES {
            return Err(refuse("for an unknown party"));
        }
        let (values, left) = rest.as_chunks::<32>();
        let may_be_empty = matches!(stage, Stage::Common(_));
        let empty = count == 0 && !may_be_empty;
        if empty || count > MAX_KEYS || values.len() != count || !left.is_empty() {
            return Err(refuse("the number of values is wrong"));
        }
        check_values(stage, values)?;
        Ok(Self {
            session: *session,
            owner: usize::from(owner),
            stage,
            values: values.to_vec(),
        })
    }
}

fn check_values(stage: Stage, values: &[GroupElement]) -> Result<(), AlignError> {
    let in_group = map(values.iter().collect(), |value| {
        let point = CompressedRistretto(*value).decompress();
        point.is_some_and(|point| !point.is_identity())
    });
    if in_group.contains(&false) {
        return Err(AlignError::Message("a value outside of the group"));
    }
    if !matches!(stage, Stage::Common(_)) {
        return match values.is_sorted_by(|one, next| one < next) {
            true => Ok(()),
            false => Err(AlignError::Message("values that do not ascend")),
        };
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    match sorted.is_sorted_by(|one, next| one < next) {
        true => Ok(()),
        false => Err(AlignError::Message("a repeated value")),
    }
}
