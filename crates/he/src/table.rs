//! Encrypted columns, and combinations of them ready to be multiplied.

use crate::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::noise::{self, Variance};
use crate::params::Parameters;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Consecutive record chunks of a column, or of a combination of columns.
pub type Chunks = Vec<Arc<Ciphertext>>;

/// Where the ciphertexts of a table's one-hot columns are found: in memory, or wherever a service
/// keeps them. An evaluator asks for a few record chunks at a time.
pub trait Columns: fmt::Debug + Send + Sync {
    /// The parameters they were encrypted under.
    fn params(&self) -> &Parameters;

    /// The public shape.
    fn layout(&self) -> Layout;

    /// Number of one-hot columns.
    fn count(&self) -> usize;

    /// Record chunks `chunks` of each of `columns`, under plaintext modulus number `residue`.
    /// All three are within what the table has.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where one cannot be read.
    fn read(&self, residue: usize, columns: &[usize], chunks: Range<usize>) -> Result<Vec<Chunks>>;

    /// Where a record chunk of a column is kept, for a backend that reads it on another machine; its
    /// bytes are the chunk's ciphertexts under all plaintext moduli, in order. `None` where it is in
    /// memory alone.
    fn place(&self, _column: usize, _chunk: usize) -> Option<Place> {
        None
    }
}

/// The name of an object in the blob store that a service and its backend share, and what must be
/// found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the blob.
    pub name: String,
    /// SHA-256 of its bytes.
    pub digest: [u8; 32],
}

/// An encrypted table in memory: one ciphertext a one-hot column, record chunk and plaintext
/// modulus.
#[derive(Clone, Debug)]
pub struct EncryptedTable {
    params: Parameters,
    layout: Layout,
    /// `columns[residue][column][chunk]`
    columns: Vec<Vec<Chunks>>,
}

impl EncryptedTable {
    /// A table from ciphertexts as [`crate::PublicKey::encrypt`] makes them:
    /// `columns[column][chunk][residue]`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where a column lacks a chunk or a residue.
    pub fn new(
        params: &Parameters,
        layout: Layout,
        columns: Vec<Vec<Vec<Ciphertext>>>,
    ) -> Result<Self> {
        let mut by_residue: Vec<Vec<Chunks>> = vec![Vec::new(); params.residues()];
        for chunks in columns {
            if chunks.len() != layout.chunks() {
                return Err(Error::Mismatch("a column has another number of chunks"));
            }
            let mut column = vec![Chunks::new(); params.residues()];
            for residues in chunks {
                if residues.len() != params.residues()
                    || residues.iter().enumerate().any(|(k, c)| c.residue != k)
                {
                    return Err(Error::Mismatch("a chunk lacks a residue"));
                }
                for (chunks, ciphertext) in column.iter_mut().zip(residues) {
                    chunks.push(Arc::new(ciphertext));
                }
            }
            for (all, chunks) in by_residue.iter_mut().zip(column) {
                all.push(chunks);
            }
        }
        Ok(Self {
            params: params.clone(),
            layout,
            columns: by_residue,
        })
    }
}

impl Columns for EncryptedTable {
    fn params(&self) -> &Parameters {
        &self.params
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn count(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    fn read(&self, residue: usize, columns: &[usize], chunks: Range<usize>) -> Result<Vec<Chunks>> {
        let read = |&column: &usize| {
            let column = self.columns.get(residue)?.get(column)?;
            Some(column.get(chunks.clone())?.to_vec())
        };
        let read: Option<Vec<Chunks>> = columns.iter().map(read).collect();
        read.ok_or(Error::OutOfRange("a column or a record chunk"))
    }
}

/// An integer combination of one-hot columns: (column, coefficient) pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Combination(pub Vec<(usize, i64)>);

impl Combination {
    /// One column as it is.
    pub fn column(column: usize) -> Self {
        Self(vec![(column, 1)])
    }

    /// The column, if this is one as it is.
    pub(crate) fn single(&self) -> Option<usize> {
        match self.0[..] {
            [(column, 1)] => Some(column),
            _ => None,
        }
    }

    /// Variance of the noise of this combination of fresh columns.
    pub(crate) fn variance(&self, params: &Parameters) -> Variance {
        let energy: f64 = self.0.iter().map(|&(_, c)| (c as f64).powi(2)).sum();
        noise::fresh_variance(params).times(energy)
    }
}

/// The combinations that [`crate::Cell`]s name by their indices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Factors<'a> {
    /// Left factors, and those that are only summed.
    pub left: &'a [Combination],
    /// Right factors.
    pub right: &'a [Combination],
}

impl Factors<'_> {
    /// The columns they name.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> {
        let named = self.left.iter().chain(self.right).flat_map(|c| &c.0);
        named.map(|&(column, _)| column)
    }
}
