//! The messages of an alignment, as bytes.
//!
//! Magic `FHALIGN`, version, session (32 bytes), owner, stage, number of values (4 bytes, little-endian), values of
//! 32 bytes. The stage is 0 for a whole list, 1 and 2 for one under 1 or 2 exponents, and 128 plus a number for common
//! values from which that number of exponents is removed. What decodes encodes to the same bytes. Values are canonical, in
//! the group, and not its identity. Those of lists ascend; common values are in the common order, each once.

use super::{AlignError, MAX_PARTIES};
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::traits::IsIdentity;
use fhaim_he::map;

/// The most rows that a party may align: its list takes half a gigabyte.
pub const MAX_KEYS: usize = 1 << 24;

/// An element of the group.
pub type GroupElement = [u8; 32];

const MAGIC: &[u8; 7] = b"FHALIGN";
const VERSION: u8 = 1;

/// How far a list has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// On its way, under so many exponents.
    Round(u8),
    /// Under those of all parties.
    Whole,
    /// The values that all lists have, on their way to their owner, and the number of exponents that are removed.
    Common(u8),
}

/// The stage of common values of which no exponent is taken off.
const COMMON: u8 = 128;

/// A party's list, or common values for a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The alignment that it belongs to.
    pub session: [u8; 32],
    /// Whose list it is.
    pub owner: usize,
    /// How far it has come.
    pub stage: Stage,
    /// Its values: of a list in ascending order, else in the common order.
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
        // At most MAX_KEYS.
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
            .ok_or(refuse("not of an alignment"))?;
        let (&version, rest) = rest.split_first().ok_or(truncated.clone())?;
        if version != VERSION {
            return Err(refuse("of a version that this program does not know"));
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
            return Err(refuse("of no party"));
        }
        let (values, left) = rest.as_chunks::<32>();
        let may_be_empty = matches!(stage, Stage::Common(_));
        let empty = count == 0 && !may_be_empty;
        if empty || count > MAX_KEYS || values.len() != count || !left.is_empty() {
            return Err(refuse("another number of values than it says"));
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
        false => Err(AlignError::Message("a value that is there twice")),
    }
}
