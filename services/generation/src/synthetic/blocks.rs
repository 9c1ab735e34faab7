//! Records in blocks.

use fhaim_domain::{Schema, Table};
use fhaim_synth::{FittedModel, sample_allowed};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, available_parallelism};

/// A block has about so many cells, which are in memory together, whatever the number of columns.
const CELLS: usize = 1 << 20;

/// Upper bound on the records of a block; wide tables go down to a thousandth of it.
const MAX_RECORDS: usize = 1 << 16;

/// Most threads that draw one table: others are drawn at the same time.
const MAX_THREADS: usize = 4;

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
/// numbers within bins, so blocks may be drawn in any order, and side by side.
pub struct Blocks {
    schema: Arc<Schema>,
    model: Arc<dyn FittedModel>,
    rows: u64,
    seed: u64,
}

impl Blocks {
    /// `rows` records of a model over the schema's domain.
    pub fn new(schema: Arc<Schema>, model: Arc<dyn FittedModel>, rows: u64, seed: u64) -> Self {
        Self {
            schema,
            model,
            rows,
            seed,
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

    /// Draws block `number`, counted from 0; nothing past the last.
    ///
    /// # Errors
    /// A model that does not fit the schema, or has next to no record that its constraints allow.
    pub fn draw(&self, number: u64) -> io::Result<Option<Block>> {
        let records = self.records() as u64;
        let first = number.saturating_mul(records);
        let left = self.rows.saturating_sub(first);
        if left == 0 {
            return Ok(None);
        }
        // At most a block's records.
        let wanted = left.min(records) as usize;
        let mut codes = self.stream(2 * number);
        let sampled = sample_allowed(self.model.as_ref(), &self.schema, wanted, &mut codes);
        let sampled = sampled.map_err(io::Error::other)?;
        let table = Table::new(self.schema.clone(), sampled.columns);
        Ok(Some(Block {
            table: table.map_err(io::Error::other)?,
            first,
            values: self.stream(2 * number + 1),
        }))
    }

    /// Draws all blocks, in threads of their own, and makes each into something there with `make`;
    /// `take` is given what was made, in the blocks' order. As many blocks are in memory as there are
    /// threads, and what two of each have made.
    ///
    /// # Errors
    /// Those of drawing, of `make`, and of `take`, after which no more blocks are drawn.
    pub fn each<T: Send>(
        &self,
        make: impl Fn(Block) -> io::Result<T> + Sync,
        mut take: impl FnMut(T) -> io::Result<()>,
    ) -> io::Result<()> {
        let threads = available_parallelism().map_or(1, usize::from);
        let blocks = self.rows.div_ceil(self.records() as u64);
        let threads = (threads.min(MAX_THREADS) as u64).min(blocks);
        thread::scope(|scope| {
            let begin = |first: u64| {
                let (sender, made) = mpsc::sync_channel(1);
                let numbers = (first..).step_by(threads as usize);
                let make = &make;
                scope.spawn(move || {
                    for number in numbers {
                        let block = self.draw(number).transpose();
                        let Some(block) = block else { return };
                        // Nobody takes any more, or an error is the last that is taken.
                        let block = block.and_then(make);
                        let last = block.is_err();
                        if sender.send(block).is_err() || last {
                            return;
                        }
                    }
                });
                made
            };
            let made: Vec<_> = (0..threads).map(begin).collect();
            // Thread by thread, as their blocks follow each other; the first without any is past the last.
            for of_thread in made.iter().cycle() {
                let Ok(block) = of_thread.recv() else { break };
                take(block?)?;
            }
            Ok(())
        })
    }

    fn stream(&self, stream: u64) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }
}
