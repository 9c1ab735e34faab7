//! The strict binary form of a release request, and the building blocks of other messages.
//!
//! Numbers are little-endian. Lists are preceded by their length, which is checked against the
//! remaining bytes before anything is allocated. A decoded message encodes to the same bytes.

use fhaim_domain::Clique;

use crate::{Axis, ReleaseRequest, SquaredTerm, Statistic};

/// First byte of an encoded statistic.
#[derive(Clone, Copy)]
enum Tag {
    Total = 0,
    OneWay = 1,
    Product = 2,
    SquaredScores = 3,
}

/// An error for malformed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Lower bound on the bytes of a release. The length of a list is checked against it.
pub const RELEASE_BYTES: usize = 4 + 8 + 1;

/// Bytes that are being written.
#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Writes a number as eight bytes.
    pub fn number(&mut self, n: usize) {
        self.0.extend_from_slice(&(n as u64).to_le_bytes());
    }

    /// Writes a list, preceded by its length.
    pub fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.number(items.len());
        for one in items {
            item(self, one);
        }
    }

    /// Writes an integer as eight bytes.
    pub fn integer(&mut self, value: &i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a release request.
    pub fn release(&mut self, release: &ReleaseRequest) {
        self.0.extend_from_slice(&release.number.to_le_bytes());
        self.0
            .extend_from_slice(&release.variance_units.to_le_bytes());
        match &release.statistic {
            Statistic::Total => self.0.push(Tag::Total as u8),
            Statistic::OneWay(axis) => {
                self.0.push(Tag::OneWay as u8);
                self.axis(axis);
            }
            Statistic::Product(a, b) => {
                self.0.push(Tag::Product as u8);
                self.axis(a);
                self.axis(b);
            }
            Statistic::SquaredScores(terms) => {
                self.0.push(Tag::SquaredScores as u8);
                self.list(terms, Self::term);
            }
        }
    }

    fn axis(&mut self, axis: &Axis) {
        self.number(axis.attribute);
        self.list(&axis.functions, |out, function| {
            out.list(function, Self::integer);
        });
    }

    fn term(&mut self, term: &SquaredTerm) {
        self.list(term.clique.attributes(), |out, &a| out.number(a));
        self.integer(&term.weight);
        self.list(&term.target, Self::integer);
    }
}

/// Bytes that are being read, from the front.
#[derive(Debug)]
pub struct ByteReader<'a>(pub &'a [u8]);

impl ByteReader<'_> {
    /// Reads the next `N` bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(Malformed("truncated"))?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Checks that no bytes are left.
    ///
    /// # Errors
    /// Some bytes are left.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed("too long"))
        }
    }

    /// Reads a number of eight bytes.
    ///
    /// # Errors
    /// Too few bytes, or a number that does not fit into `usize`.
    pub fn number(&mut self) -> Result<usize, Malformed> {
        let n = u64::from_le_bytes(self.take()?);
        usize::try_from(n).map_err(|_| Malformed("a number is too large"))
    }

    /// Reads a list whose items take at least `least` bytes each.
    ///
    /// # Errors
    /// A length that the remaining bytes cannot hold; errors of an item.
    pub fn list<T, E: From<Malformed>>(
        &mut self,
        least: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let length = self.number()?;
        if length > self.0.len() / least {
            return Err(Malformed("a list is longer than its bytes").into());
        }
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads an integer of eight bytes.
    ///
    /// # Errors
    /// Too few bytes.
    pub fn integer(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_le_bytes(self.take()?))
    }

    /// Reads a release request.
    ///
    /// # Errors
    /// The first rule that the bytes break.
    pub fn release(&mut self) -> Result<ReleaseRequest, Malformed> {
        let number = u32::from_le_bytes(self.take()?);
        let variance_units = u64::from_le_bytes(self.take()?);
        let [tag] = self.take()?;
        let statistic = match tag {
            tag if tag == Tag::Total as u8 => Statistic::Total,
            tag if tag == Tag::OneWay as u8 => Statistic::OneWay(self.axis()?),
            tag if tag == Tag::Product as u8 => Statistic::Product(self.axis()?, self.axis()?),
            tag if tag == Tag::SquaredScores as u8 => {
                // The lengths of a clique and a target, and the weight.
                Statistic::SquaredScores(self.list(3 * 8, Self::term)?)
            }
            _ => return Err(Malformed("unknown statistic")),
        };
        Ok(ReleaseRequest {
            number,
            statistic,
            variance_units,
        })
    }

    fn axis(&mut self) -> Result<Axis, Malformed> {
        Ok(Axis {
            attribute: self.number()?,
            functions: self.list(8, |input| input.list(8, Self::integer))?,
        })
    }

    fn term(&mut self) -> Result<SquaredTerm, Malformed> {
        let attributes = self.list(8, Self::number)?;
        if attributes.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Malformed("a clique's attributes do not ascend"));
        }
        Ok(SquaredTerm {
            clique: Clique::new(attributes),
            weight: self.integer()?,
            target: self.list(8, Self::integer)?,
        })
    }
}

/// Returns the encoding of one release, for digests.
pub fn release_bytes(release: &ReleaseRequest) -> Vec<u8> {
    let mut out = Writer::default();
    out.release(release);
    out.0
}
