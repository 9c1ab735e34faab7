//! The messages of an alignment, as bytes.
//!
//! Magic `FHALIGN`, version, session (32 bytes), owner, stage (0 for a whole list, else under how many
//! exponents it is), number of values (4 bytes, little-endian), values of 32 bytes. What decodes
//! encodes to the same bytes; values are canonical, in the group, not its identity, and each is in a
//! list once.

use super::{AlignError, MAX_PARTIES};
use crate::holder::map;
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::traits::IsIdentity;

/// The most rows that a party may align: its list takes half a gigabyte.
pub const MAX_KEYS: usize = 1 << 24;

/// An element of the group.
pub type Value = [u8; 32];

const MAGIC: &[u8; 7] = b"FHALIGN";
const VERSION: u8 = 1;

/// How far a list has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// On its way, under so many exponents.
    Round(u8),
    /// Under those of all parties.
    Whole,
}

/// A party's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The alignment that it belongs to.
    pub session: [u8; 32],
    /// Whose list it is.
    pub owner: usize,
    /// How far it has come.
    pub stage: Stage,
    /// Its values, in the owner's order.
    pub values: Vec<Value>,
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
        if usize::from(owner) >= MAX_PARTIES || usize::from(stage) >= MAX_PARTIES {
            return Err(refuse("of no party"));
        }
        let (values, left) = rest.as_chunks::<32>();
        if count == 0 || count > MAX_KEYS || values.len() != count || !left.is_empty() {
            return Err(refuse("another number of values than it says"));
        }
        check_values(values)?;
        Ok(Self {
            session: *session,
            owner: usize::from(owner),
            stage: match stage {
                0 => Stage::Whole,
                exponents => Stage::Round(exponents),
            },
            values: values.to_vec(),
        })
    }
}

fn check_values(values: &[Value]) -> Result<(), AlignError> {
    let in_group = map(values, |value| {
        let point = CompressedRistretto(*value).decompress();
        point.is_some_and(|point| !point.is_identity())
    });
    if in_group.contains(&false) {
        return Err(AlignError::Message("a value outside of the group"));
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    if sorted
        .windows(2)
        .any(|pair| matches!(pair, [one, next] if one == next))
    {
        return Err(AlignError::Message("a value that is there twice"));
    }
    Ok(())
}
