//! Encodes and decodes the messages of an alignment.
//!
//! Magic `FHALIGN`, version, session (32 bytes), sender, kind, the numbers of numbers (1 byte), values
//! (4 bytes) and coefficients (4 bytes), then these: numbers of 4 bytes, values and coefficients of 32
//! bytes each. All numbers are little-endian. Every accepted message encodes to the same bytes again.
//! Values are canonical encodings of group elements other than the identity, and no two are equal.
//! Coefficients are canonical scalars.

use super::error::{AlignError, MAX_KEYS, MAX_PARTIES, MIN_PARTIES};
use super::group::GroupElement;
use super::table;
use curve25519_dalek::Scalar;
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::traits::IsIdentity;
use fhaim_he::map;

const MAGIC: &[u8; 7] = b"FHALIGN";
const VERSION: u8 = 1;

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// From the first party: its keys under its exponent, ascending.
    List(Vec<GroupElement>),
    /// Between the second and the third party: half of the exchange of their secret.
    Half(GroupElement),
    /// To the first party.
    Answers {
        /// Number of rows of the sender.
        rows: usize,
        /// The values of the list under the sender's exponent, too, in the order of the list.
        values: Vec<GroupElement>,
        /// The sender's table.
        table: Vec<Scalar>,
    },
    /// From the first party.
    Common {
        /// Number of rows of every party.
        sizes: Vec<usize>,
        /// The common keys under the recipient's exponent, in the common order.
        values: Vec<GroupElement>,
    },
}

/// The kinds of [`Content`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageKind {
    /// [`Content::List`].
    List = 1,
    /// [`Content::Half`].
    Half = 2,
    /// [`Content::Answers`].
    Answers = 3,
    /// [`Content::Common`].
    Common = 4,
}

impl MessageKind {
    const ALL: [Self; 4] = [Self::List, Self::Half, Self::Answers, Self::Common];

    /// Returns a word for names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Half => "half",
            Self::Answers => "answers",
            Self::Common => "common",
        }
    }
}

/// A message between two parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The alignment that the message belongs to.
    pub session: [u8; 32],
    /// The party that sent it.
    pub sender: usize,
    /// Its content.
    pub content: Content,
}

/// The parts that every content has, some of them empty.
struct Parts {
    numbers: Vec<usize>,
    values: Vec<GroupElement>,
    table: Vec<Scalar>,
}

impl Message {
    /// Returns the kind of the content.
    pub fn kind(&self) -> MessageKind {
        match self.content {
            Content::List(_) => MessageKind::List,
            Content::Half(_) => MessageKind::Half,
            Content::Answers { .. } => MessageKind::Answers,
            Content::Common { .. } => MessageKind::Common,
        }
    }

    /// Encodes the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let one;
        let (numbers, values, table): (&[usize], &[GroupElement], &[Scalar]) = match &self.content {
            Content::List(values) => (&[], values, &[]),
            Content::Half(value) => (&[], std::slice::from_ref(value), &[]),
            Content::Answers {
                rows,
                values,
                table,
            } => {
                one = [*rows];
                (&one, values, table)
            }
            Content::Common { sizes, values } => (sizes, values, &[]),
        };
        let mut out = Vec::with_capacity(64 + 32 * (values.len() + table.len()));
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&self.session);
        out.push(self.sender as u8);
        out.push(self.kind() as u8);
        out.push(numbers.len() as u8);
        // Numbers are at most MAX_KEYS, and lengths below 2^26, so all fit.
        for length in [values.len(), table.len()] {
            out.extend_from_slice(&(length as u32).to_le_bytes());
        }
        for &number in numbers {
            out.extend_from_slice(&(number as u32).to_le_bytes());
        }
        values.iter().for_each(|v| out.extend_from_slice(v));
        table
            .iter()
            .for_each(|c| out.extend_from_slice(c.as_bytes()));
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
        let (&[sender, kind, numbers], rest) =
            rest.split_first_chunk::<3>().ok_or(truncated.clone())?;
        let kind = MessageKind::ALL
            .into_iter()
            .find(|known| *known as u8 == kind);
        let kind = kind.ok_or(refuse("of an unknown kind"))?;
        if usize::from(sender) >= MAX_PARTIES {
            return Err(refuse("from an unknown party"));
        }
        let (&[values, table], rest) = rest
            .as_chunks::<4>()
            .0
            .first_chunk::<2>()
            .zip(rest.get(8..))
            .ok_or(truncated)?;
        let parts = Parts::read(
            usize::from(numbers),
            [values, table].map(u32::from_le_bytes),
            rest,
        )?;
        Ok(Self {
            session: *session,
            sender: usize::from(sender),
            content: parts.content(kind)?,
        })
    }
}

impl Parts {
    fn read(numbers: usize, lengths: [u32; 2], bytes: &[u8]) -> Result<Self, AlignError> {
        let refuse = Err(AlignError::Message("the number of values is wrong"));
        let [values, table] = lengths.map(|length| length as usize);
        let (Some((head, rest)), true) = (bytes.split_at_checked(4 * numbers), values <= MAX_KEYS)
        else {
            return refuse;
        };
        let (all, left) = rest.as_chunks::<32>();
        if !left.is_empty() || values.checked_add(table) != Some(all.len()) {
            return refuse;
        }
        let (values, table) = all.split_at(values);
        check_values(values)?;
        let scalars = table
            .iter()
            .map(|c| Scalar::from_canonical_bytes(*c).into());
        let scalars: Option<Vec<Scalar>> = scalars.collect();
        let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
        Ok(Self {
            numbers: head.as_chunks().0.iter().map(number).collect(),
            values: values.to_vec(),
            table: scalars.ok_or(AlignError::Message("a coefficient outside of the field"))?,
        })
    }

    fn content(self, kind: MessageKind) -> Result<Content, AlignError> {
        let Self {
            numbers,
            values,
            table,
        } = self;
        let are_rows = numbers.iter().all(|rows| (1..=MAX_KEYS).contains(rows));
        match (kind, numbers.as_slice(), values.as_slice()) {
            (MessageKind::List, [], [_, ..]) if table.is_empty() => {
                match values.is_sorted_by(|one, next| one < next) {
                    true => Ok(Content::List(values)),
                    false => Err(AlignError::Message("values that do not ascend")),
                }
            }
            (MessageKind::Half, [], [value]) if table.is_empty() => Ok(Content::Half(*value)),
            (MessageKind::Answers, &[rows], [_, ..])
                if are_rows && table.len() == table::length(rows) =>
            {
                Ok(Content::Answers {
                    rows,
                    values,
                    table,
                })
            }
            (MessageKind::Common, sizes, _)
                if are_rows
                    && table.is_empty()
                    && (MIN_PARTIES..=MAX_PARTIES).contains(&sizes.len()) =>
            {
                Ok(Content::Common {
                    sizes: numbers,
                    values,
                })
            }
            _ => Err(AlignError::Message("the number of values is wrong")),
        }
    }
}

fn check_values(values: &[GroupElement]) -> Result<(), AlignError> {
    let in_group = map(values.iter().collect(), |value: &GroupElement| {
        let point = CompressedRistretto(*value).decompress();
        point.is_some_and(|point| !point.is_identity())
    });
    if in_group.contains(&false) {
        return Err(AlignError::Message("a value outside of the group"));
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    match sorted.is_sorted_by(|one, next| one < next) {
        true => Ok(()),
        false => Err(AlignError::Message("a repeated value")),
    }
}
