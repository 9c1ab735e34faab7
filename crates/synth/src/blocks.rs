//! Draws the records of a table in blocks.

use std::{
    sync::{Arc, mpsc},
    thread::{self, available_parallelism},
};

use fhaim_domain::{Schema, Table, WriteOptions, write_csv};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::{Error, FittedModel, sample_allowed};

/// Approximate number of cells of a block, all of which are in memory together. It does not depend
/// on the number of columns.
const CELLS: usize = 1 << 20;

/// Largest number of records of a block. Blocks of wide tables have as few as a thousandth of it.
const MAX_RECORDS: usize = 1 << 16;

/// Most threads that draw one table, because other tables are drawn at the same time.
const MAX_THREADS: usize = 4;

/// A block of records, and the random numbers to draw values from their bins.
#[derive(Debug)]
pub struct Block {
    /// The codes of the records.
    pub table: Table,
    /// The number of the block's first record, counted from 0. Identifiers derive from it.
    pub first: u64,
    /// Number of records that were drawn to get those that the schema's constraints allow.
    pub drawn: f64,
    /// Randomness for [`Schema::values`], row by row.
    pub values: ChaCha20Rng,
}

impl Block {
    /// Writes the block as part of a CSV file; the first block includes the header. The block
    /// overrides the options that depend on its position: the number of preceding records, and the
    /// header.
    ///
    /// # Errors
    /// As [`write_csv`].
    pub fn csv(&mut self, options: &WriteOptions) -> Result<Vec<u8>, fhaim_domain::Error> {
        let mut text = Vec::new();
        let options = WriteOptions {
            before: self.first,
            header: self.first == 0,
            ..options.clone()
        };
        write_csv(&self.table, &mut text, &mut self.values, &options)?;
        Ok(text)
    }
}

fn block_records(columns: usize) -> usize {
    (CELLS / columns.max(1)).clamp(MAX_RECORDS / 1000, MAX_RECORDS)
}

/// Returns the number of threads that draw a table with this number of columns and records in
/// parallel.
pub fn drawing_threads(columns: usize, records: u64) -> usize {
    let threads = available_parallelism().map_or(1, usize::from);
    let blocks = records.div_ceil(block_records(columns) as u64);
    // The value is at most [`MAX_THREADS`], so the cast is exact.
    (threads.min(MAX_THREADS) as u64).min(blocks) as usize
}

/// The records of a table, drawn block by block.
///
/// The same model, seed and number of records give the same table. Each block has two streams of
/// ChaCha20, one for codes and one for numbers within bins, so blocks may be drawn in any order and
/// in parallel.
#[derive(Clone, Debug)]
pub struct Blocks {
    schema: Arc<Schema>,
    model: Arc<dyn FittedModel>,
    rows: u64,
    seed: u64,
}

impl Blocks {
    /// Returns blocks of `rows` records in total, drawn from a model over the schema's domain.
    pub fn new(schema: Arc<Schema>, model: Arc<dyn FittedModel>, rows: u64, seed: u64) -> Self {
        Self {
            schema,
            model,
            rows,
            seed,
        }
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the total number of records.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the schema of the records.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the number of records of every block but the last.
    pub fn records(&self) -> usize {
        block_records(self.schema.columns().len())
    }

    /// Draws block `number`, counted from 0. Returns `None` past the last block.
    ///
    /// # Errors
    /// The model does not fit the schema, or almost no record of it satisfies the schema's
    /// constraints.
    pub fn draw(&self, number: u64) -> Result<Option<Block>, Error> {
        let records = self.records() as u64;
        let first = number.saturating_mul(records);
        let left = self.rows.saturating_sub(first);
        if left == 0 {
            return Ok(None);
        }
        // At most a block's records, so the cast is exact.
        let wanted = left.min(records) as usize;
        let mut codes = self.stream(2 * number);
        let sampled = sample_allowed(self.model.as_ref(), &self.schema, wanted, &mut codes)?;
        Ok(Some(Block {
            table: Table::new(self.schema.clone(), sampled.columns)?,
            first,
            drawn: wanted as f64 / sampled.allowed,
            values: self.stream(2 * number + 1),
        }))
    }

    /// Draws all blocks in separate threads, each of which converts its blocks with `make`. Passes
    /// the results to `take` in the order of the blocks.
    ///
    /// At any time, each thread holds at most one block and two results in memory.
    ///
    /// # Errors
    /// Errors of drawing, of `make` and of `take`. After an error, no more blocks are drawn.
    pub fn each<T: Send, E: From<Error> + Send>(
        &self,
        make: impl Fn(Block) -> Result<T, E> + Sync,
        mut take: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let threads = drawing_threads(self.schema.columns().len(), self.rows);
        thread::scope(|scope| {
            let begin = |first: u64| {
                let (sender, made) = mpsc::sync_channel(1);
                let numbers = (first..).step_by(threads);
                let make = &make;
                scope.spawn(move || {
                    for number in numbers {
                        let block = self.draw(number).transpose();
                        let Some(block) = block else { return };
                        // An error is the last item, and a closed channel ends the thread.
                        let block = block.map_err(E::from).and_then(make);
                        let last = block.is_err();
                        if sender.send(block).is_err() || last {
                            return;
                        }
                    }
                });
                made
            };
            let made: Vec<_> = (0..threads as u64).map(begin).collect();
            // Blocks alternate between the threads; the first thread without a block is past the
            // last one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Domain;
    use rand::RngCore;

    /// A model that draws only red and new records.
    #[derive(Debug)]
    struct Red(Domain);

    impl FittedModel for Red {
        fn domain(&self) -> &Domain {
            &self.0
        }

        fn total(&self) -> f64 {
            10.0
        }

        fn bytes(&self) -> usize {
            0
        }

        fn sample(&self, records: usize, _: &mut dyn RngCore) -> Vec<Vec<u32>> {
            vec![vec![0; records], vec![1; records]]
        }

        fn save(&self) -> Vec<u8> {
            Vec::new()
        }
    }

    #[test]
    fn blocks_are_taken_in_order_until_the_end_or_a_failure() {
        let json = r#"{"name": "t", "columns": [
            {"name": "c", "kind": "categorical", "categories": ["red", "green"]},
            {"name": "y", "kind": "categorical", "categories": ["old", "new"]}]}"#;
        let schema = Arc::new(Schema::from_json("t", json.as_bytes()).unwrap());
        let model: Arc<dyn FittedModel> = Arc::new(Red(schema.domain().clone()));
        let of = |rows| Blocks::new(schema.clone(), model.clone(), rows, 1);
        let whole = of(1).records() as u64;
        for rows in [1, whole, 5 * whole, 6 * whole + 7] {
            let mut next = 0;
            let length = |block: Block| Ok((block.first, block.table.records() as u64));
            let taken = of(rows).each(length, |(first, records)| {
                assert_eq!(first, next);
                next += records;
                Ok(())
            });
            let taken: Result<(), Error> = taken;
            taken.unwrap();
            assert_eq!(next, rows);
        }
        let broken = || Error::Done;
        let mut taken = 0;
        let gone = of(9 * whole).each(Ok, |block| {
            taken += 1;
            if block.first < 3 * whole {
                Ok(())
            } else {
                Err(broken())
            }
        });
        assert!(matches!(gone, Err(Error::Done)));
        assert_eq!(taken, 4);
        let second = |block: Block| {
            if block.first == whole {
                Err(broken())
            } else {
                Ok(())
            }
        };
        assert!(matches!(of(9 * whole).each(second, Ok), Err(Error::Done)));
    }

    /// Only the first block writes a header, regardless of the number of records before a block.
    #[test]
    fn csv_blocks_concatenate_to_one_file() {
        let json = r#"{"name": "t", "columns": [
            {"name": "c", "kind": "categorical", "categories": ["red", "green"]},
            {"name": "y", "kind": "categorical", "categories": ["old", "new"]}]}"#;
        let schema = Arc::new(Schema::from_json("t", json.as_bytes()).unwrap());
        let model: Arc<dyn FittedModel> = Arc::new(Red(schema.domain().clone()));
        let blocks = Blocks::new(schema, model, 150_000, 1);
        let options = WriteOptions::new("t.csv");
        let mut text = Vec::new();
        let csv = |mut block: Block| -> Result<Vec<u8>, Error> { Ok(block.csv(&options).unwrap()) };
        let append = |part: Vec<u8>| {
            text.extend_from_slice(&part);
            Ok(())
        };
        blocks.each(csv, append).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (header, records) = text.split_once('\n').unwrap();
        assert_eq!(header, "c,y");
        assert_eq!(records, "red,new\n".repeat(150_000));
    }
}
