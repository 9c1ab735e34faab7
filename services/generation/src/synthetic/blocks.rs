//! Records in blocks.

use fhaim_domain::{Schema, Table};
use fhaim_synth::{FittedModel, sample_allowed};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::io;
use std::sync::Arc;

/// A block has about so many cells, which are in memory together, whatever the number of columns.
const CELLS: usize = 1 << 20;

/// Upper bound on the records of a block; wide tables go down to a thousandth of it.
const MAX_RECORDS: usize = 1 << 16;

/// A block of records, and what draws numbers from their bins.
pub struct Block {
    /// Codes.
    pub table: Table,
    /// The number of its first record, counted from 0: identifiers are made of it.
    pub first: u64,
    /// Randomness for [`fhaim_domain::Schema::values`], row by row.
    pub values: ChaCha20Rng,
}

/// The records of a table, drawn block by block. The same model, seed and number of records give
/// the same table: each block has two streams of ChaCha20 of its own, one for codes and one for
/// numbers within bins.
pub struct Blocks {
    schema: Arc<Schema>,
    model: Arc<dyn FittedModel>,
    rows: u64,
    seed: u64,
    begun: u64,
}

impl Blocks {
    /// `rows` records of a model over the schema's domain.
    pub fn new(schema: Arc<Schema>, model: Arc<dyn FittedModel>, rows: u64, seed: u64) -> Self {
        Self {
            schema,
            model,
            rows,
            seed,
            begun: 0,
        }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// All records.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The schema of the records.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Records of every block but the last.
    pub fn records(&self) -> usize {
        let columns = self.schema.columns().len();
        (CELLS / columns.max(1)).clamp(MAX_RECORDS / 1000, MAX_RECORDS)
    }

    fn stream(&self, stream: u64) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }
}

impl Iterator for Blocks {
    type Item = io::Result<Block>;

    fn next(&mut self) -> Option<io::Result<Block>> {
        let records = self.records() as u64;
        let left = self.rows - (self.begun * records).min(self.rows);
        if left == 0 {
            return None;
        }
        let number = self.begun;
        self.begun += 1;
        let mut codes = self.stream(2 * number);
        // At most a block's records.
        let wanted = left.min(records) as usize;
        let sampled = sample_allowed(self.model.as_ref(), &self.schema, wanted, &mut codes);
        let sampled = sampled.map_err(io::Error::other);
        let table = sampled.and_then(|sampled| {
            Table::new(self.schema.clone(), sampled.columns).map_err(io::Error::other)
        });
        Some(table.map(|table| Block {
            table,
            first: number * records,
            values: self.stream(2 * number + 1),
        }))
    }
}
