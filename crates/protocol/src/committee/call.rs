//! The first key service's call to another one for a batch, and the answer.
//!
//! Byte strings are preceded by their lengths, which are checked against the remaining bytes before
//! anything is allocated. A decoded message encodes to the same bytes.

use crate::Error;
use crate::crypto::chain::Act;
use fhaim_release::codec::{ByteReader, Malformed, Writer};

/// Most byte strings in a list.
const MAX_LIST: usize = 64;

/// The data that the first service shows another.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitteeCall {
    /// Signatures and withdrawals of the roster's holders.
    pub consents: Vec<Act>,
    /// The identifier of the attempt that made the key.
    pub attempt: [u8; 16],
    /// The confirmations of the keys by all services ([`super::confirmation`]).
    pub confirmations: Vec<Vec<u8>>,
    /// The assignment of the job's run.
    pub assignment: Vec<u8>,
    /// The promises so far.
    pub verdicts: Vec<Vec<u8>>,
    /// The sealed request, as the computation service sent it.
    pub request: Vec<u8>,
}

/// Another service's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitteeAnswer {
    /// Its promise.
    pub verdict: Vec<u8>,
    /// Its share, if all services have promised and it has debited the batch.
    pub share: Option<Vec<u8>>,
}

impl CommitteeCall {
    /// Encodes the call.
    ///
    /// # Errors
    /// Never: acts are text.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let consents = serde_json::to_vec(&self.consents).map_err(|error| Error::stored(&error))?;
        let mut out = Writer::default();
        string(&mut out, &consents);
        out.0.extend_from_slice(&self.attempt);
        out.list(&self.confirmations, |out, one| string(out, one));
        string(&mut out, &self.assignment);
        out.list(&self.verdicts, |out, one| string(out, one));
        string(&mut out, &self.request);
        Ok(out.0)
    }

    /// Decodes a call.
    ///
    /// # Errors
    /// [`Error::Request`] for invalid bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut from = ByteReader(bytes);
        let consents = take(&mut from)?;
        let call = Self {
            consents: serde_json::from_slice(&consents)
                .map_err(|_| Error::Request("its acts are invalid"))?,
            attempt: from.take()?,
            confirmations: strings(&mut from)?,
            assignment: take(&mut from)?,
            verdicts: strings(&mut from)?,
            request: take(&mut from)?,
        };
        from.end()?;
        Ok(call)
    }
}

impl CommitteeAnswer {
    /// Encodes the answer.
    pub fn to_bytes(&self) -> Vec<u8> {
        let both = [Some(&self.verdict), self.share.as_ref()];
        let both: Vec<&Vec<u8>> = both.into_iter().flatten().collect();
        messages(&both)
    }

    /// Decodes an answer.
    ///
    /// # Errors
    /// [`Error::Request`] for invalid bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut both = read_messages(bytes)?.into_iter();
        let (verdict, share) = (both.next(), both.next());
        match (verdict, both.next()) {
            (Some(verdict), None) => Ok(Self { verdict, share }),
            _ => Err(Error::Request(
                "an answer must have a promise, or a promise and a share",
            )),
        }
    }
}

/// Encodes a list of messages.
pub fn messages(messages: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut out = Writer::default();
    out.list(messages, |out, one| string(out, one.as_ref()));
    out.0
}

/// Decodes a list of messages.
///
/// # Errors
/// [`Error::Request`] for invalid bytes, and for more messages than a committee sends at once.
pub fn read_messages(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut from = ByteReader(bytes);
    let read = strings(&mut from)?;
    from.end()?;
    Ok(read)
}

fn string(out: &mut Writer, bytes: &[u8]) {
    out.number(bytes.len());
    out.0.extend_from_slice(bytes);
}

fn take(from: &mut ByteReader<'_>) -> Result<Vec<u8>, Malformed> {
    let length = from.number()?;
    let split = from.0.split_at_checked(length);
    let (bytes, rest) = split.ok_or(Malformed("truncated"))?;
    from.0 = rest;
    Ok(bytes.to_vec())
}

fn strings(from: &mut ByteReader<'_>) -> Result<Vec<Vec<u8>>, Error> {
    let read = from.list(8, take)?;
    match read.len() {
        0..=MAX_LIST => Ok(read),
        _ => Err(Error::Request("too many messages")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_or_extended_calls_are_rejected() {
        let call = CommitteeCall {
            consents: vec![Act::Withdrawn { member: 1 }],
            attempt: [9; 16],
            confirmations: vec![vec![1, 2], vec![3]],
            assignment: vec![4; 10],
            verdicts: vec![vec![5]],
            request: vec![6; 20],
        };
        let bytes = call.to_bytes().unwrap();
        assert_eq!(CommitteeCall::from_bytes(&bytes).unwrap(), call);
        for end in 0..bytes.len() {
            assert!(
                matches!(
                    CommitteeCall::from_bytes(&bytes[..end]),
                    Err(Error::Request(..))
                ),
                "{end}"
            );
        }
        assert!(matches!(
            CommitteeCall::from_bytes(&[&bytes[..], &[0]].concat()),
            Err(Error::Request(..))
        ));
        let answer = CommitteeAnswer {
            verdict: vec![7],
            share: Some(vec![8, 9]),
        };
        let bytes = answer.to_bytes();
        assert_eq!(CommitteeAnswer::from_bytes(&bytes).unwrap(), answer);
        assert!(matches!(
            CommitteeAnswer::from_bytes(&messages(&[[0; 0]; 0])),
            Err(Error::Request(..))
        ));
        assert!(matches!(
            CommitteeAnswer::from_bytes(&messages(&[[1], [2], [3]])),
            Err(Error::Request(..))
        ));
        let long = [&(u64::MAX).to_le_bytes()[..], &[0; 8]].concat();
        assert!(matches!(
            CommitteeAnswer::from_bytes(&long),
            Err(Error::Request(..))
        ));
    }
}
