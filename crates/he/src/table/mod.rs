//! Encrypted columns, and combinations of columns that are ready to be multiplied.

pub(crate) mod joint;
pub(crate) mod layout;

use crate::error::{Error, Result};
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::noise::Variance;
use crate::scheme::params::Parameters;
use crate::scheme::upload::{ProductKey, UploadCiphertext, UploadKeyId};
use crate::table::layout::Layout;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Consecutive record chunks of a column, or of a combination of columns, in the form that the evaluator
/// computes on. The code that holds them keeps track of their key.
pub(crate) type Operand = Vec<Arc<Ciphertext>>;

/// Consecutive record chunks of a column, all under one upload key.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    /// The upload key, if there is at least one chunk.
    key: Option<UploadKeyId>,
    ciphertexts: Operand,
}

/// Consecutive record chunks of a table whose products are under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The record chunks.
    pub chunks: Range<usize>,
    /// The key that products of their columns are under.
    pub key: ProductKey,
}

/// Largest number of sections of a table: one for each holder of a roster.
pub(crate) const MAX_SECTIONS: usize = 128;

impl Chunks {
    /// Collects chunks under an upload key.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for no chunk, and for chunks under several keys.
    pub fn of_holder(chunks: impl IntoIterator<Item = UploadCiphertext>) -> Result<Self> {
        let (keys, ciphertexts): (Vec<_>, Operand) = chunks
            .into_iter()
            .map(|chunk| {
                let (key, ciphertext) = chunk.into_parts();
                (key, Arc::new(ciphertext))
            })
            .unzip();
        let key = keys.first().copied();
        if key.is_none() || keys.iter().any(|&other| Some(other) != key) {
            return Err(OTHER_KEY);
        }
        Ok(Self { key, ciphertexts })
    }

    /// Appends chunks under the same key.
    pub(crate) fn append(&mut self, more: Self) -> Result<()> {
        if self.ciphertexts.is_empty() {
            self.key = more.key;
        }
        if self.key != more.key {
            return Err(OTHER_KEY);
        }
        self.ciphertexts.extend(more.ciphertexts);
        Ok(())
    }

    /// Returns the number of chunks.
    pub(crate) fn len(&self) -> usize {
        self.ciphertexts.len()
    }

    /// Returns the upload key and the ciphertexts.
    pub(crate) fn into_parts(self) -> (Option<UploadKeyId>, Operand) {
        (self.key, self.ciphertexts)
    }
}

pub(crate) const OTHER_KEY: Error =
    Error::Mismatch("the columns are not all under the upload key of this computation");

/// A source of the ciphertexts of a table's one-hot columns: in memory, or in the storage of a service. An
/// evaluator reads a few record chunks at a time.
pub trait Columns: fmt::Debug + Send + Sync {
    /// Returns the parameters of the ciphertexts.
    fn params(&self) -> &Parameters;

    /// Returns the public shape.
    fn layout(&self) -> Layout;

    /// Returns the number of one-hot columns.
    fn count(&self) -> usize;

    /// Reads record chunks `chunks` of each of `columns`, under plaintext modulus number `residue`. The caller passes
    /// only numbers that the table has.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if a chunk cannot be read.
    fn read(&self, residue: usize, columns: &[usize], chunks: Range<usize>) -> Result<Vec<Chunks>>;

    /// Returns the record chunks by the key of their products, in order. Each chunk is in one section.
    fn sections(&self) -> Vec<Section>;

    /// Returns where that holder's [`crate::UploadSwitchKeys`] are stored, for a backend that reads them on another
    /// machine.
    fn switch_keys_place(&self) -> Option<BlobPlace> {
        None
    }

    /// Returns where a record chunk of a column is stored, for a backend that reads it on another machine, or `None`
    /// if it is only in memory. The stored bytes are the chunk's ciphertexts under all plaintext moduli, in order.
    fn place(&self, _column: usize, _chunk: usize) -> Option<BlobPlace> {
        None
    }
}

/// The name of an object in the blob store that a service and its backend share, and the expected digest of
/// its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPlace {
    /// Name of the blob.
    pub name: String,
    /// SHA-256 of the blob's bytes.
    pub digest: [u8; 32],
}

/// An encrypted table in memory: one ciphertext for each one-hot column, record chunk and plaintext
/// modulus, all under one upload key.
#[derive(Clone, Debug)]
pub struct EncryptedTable {
    params: Parameters,
    layout: Layout,
    key: UploadKeyId,
    /// `columns[residue][column][chunk]`
    columns: Vec<Vec<Operand>>,
}

impl EncryptedTable {
    /// Makes a table from ciphertexts: `columns[column][chunk][residue]`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if there is no column, if a column lacks a chunk or a residue, or if there are several
    /// upload keys.
    pub fn new(
        params: &Parameters,
        layout: Layout,
        columns: Vec<Vec<Vec<UploadCiphertext>>>,
    ) -> Result<Self> {
        let first = columns.iter().flatten().flatten().next();
        let key = first.ok_or(OTHER_KEY)?.key_id();
        let mut by_residue: Vec<Vec<Operand>> = vec![Vec::new(); params.residues()];
        for chunks in columns {
            if chunks.len() != layout.chunks() {
                return Err(Error::Mismatch("a column has the wrong number of chunks"));
            }
            let mut column = vec![Operand::new(); params.residues()];
            for residues in chunks {
                if residues.len() != params.residues()
                    || residues.iter().enumerate().any(|(k, c)| c.residue() != k)
                {
                    return Err(Error::Mismatch("a chunk lacks a residue"));
                }
                for (chunks, ciphertext) in column.iter_mut().zip(residues) {
                    let (under, ciphertext) = ciphertext.into_parts();
                    if under != key {
                        return Err(OTHER_KEY);
                    }
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
            key,
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
            Some(Chunks {
                key: Some(self.key),
                ciphertexts: column.get(chunks.clone())?.to_vec(),
            })
        };
        let read: Option<Vec<Chunks>> = columns.iter().map(read).collect();
        read.ok_or(Error::OutOfRange("number of a column or record chunk"))
    }

    fn sections(&self) -> Vec<Section> {
        let key = ProductKey::Upload(self.key);
        let chunks = 0..self.layout.chunks();
        vec![Section { chunks, key }]
    }
}

/// An integer combination of one-hot columns: (column, coefficient) pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Combination(pub Vec<(usize, i64)>);

impl Combination {
    /// Returns the combination that consists of one column with coefficient 1.
    pub fn column(column: usize) -> Self {
        Self(vec![(column, 1)])
    }

    /// Returns the column, if the combination is one column with coefficient 1.
    pub(crate) fn single(&self) -> Option<usize> {
        match self.0[..] {
            [(column, 1)] => Some(column),
            _ => None,
        }
    }

    /// Returns the variance of the noise of this combination, for columns of variance `fresh`.
    pub(crate) fn variance(&self, fresh: Variance) -> Variance {
        let energy: f64 = self.0.iter().map(|&(_, c)| (c as f64).powi(2)).sum();
        fresh.times(energy)
    }
}

/// The combinations that [`crate::Cell`]s refer to by index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Factors<'a> {
    /// Left factors, and combinations that are only summed.
    pub left: &'a [Combination],
    /// Right factors.
    pub right: &'a [Combination],
}

impl Factors<'_> {
    /// Returns the numbers of all columns of the combinations.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> {
        let named = self.left.iter().chain(self.right).flat_map(|c| &c.0);
        named.map(|&(column, _)| column)
    }
}
