//! Records in blocks.

use fhaim_domain::{Schema, Table};
use fhaim_synth::{FittedModel, sample_allowed};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A block has about so many cells, which are in memory together, whatever the number of columns.
const CELLS: usize = 1 << 20;

/// Upper bound on the records of a block; wide tables go down to a thousandth of it.
const MAX_RECORDS: usize = 1 << 16;

/// So many blocks are drawn ahead of the one that is written, each on a thread of its own. No more:
/// what is drawn is in memory.
const AT_ONCE: usize = 2;

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
/// the same table, however many threads draw it: each block has two streams of ChaCha20 of its own,
/// one for codes and one for numbers within bins.
pub struct Blocks {
    schema: Arc<Schema>,
    model: Arc<dyn FittedModel>,
    rows: u64,
    seed: u64,
    begun: u64,
    /// Those that are drawn already or being drawn, in order.
    ahead: VecDeque<JoinHandle<io::Result<Block>>>,
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
            ahead: VecDeque::new(),
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

    /// Begins to draw as many blocks as may be drawn, and as there are.
    fn begin(&mut self) -> io::Result<()> {
        while self.ahead.len() < AT_ONCE {
            let records = self.records() as u64;
            let left = self.rows - (self.begun * records).min(self.rows);
            if left == 0 {
                break;
            }
            let thread = thread::Builder::new().name("block".to_owned());
            self.ahead.push_back(thread.spawn(self.drawing(left))?);
            self.begun += 1;
        }
        Ok(())
    }

    /// What draws the next block of those that are left.
    fn drawing(&self, left: u64) -> impl FnOnce() -> io::Result<Block> + Send + 'static {
        let (number, records) = (self.begun, self.records() as u64);
        let (schema, model, seed) = (self.schema.clone(), self.model.clone(), self.seed);
        let place = Place {
            first: number * records,
            // At most a block's records.
            records: left.min(records) as usize,
            streams: [2 * number, 2 * number + 1],
        };
        move || draw(&schema, model.as_ref(), seed, place)
    }
}

/// Where a block is in its table.
#[derive(Clone, Copy)]
struct Place {
    first: u64,
    records: usize,
    /// Of ChaCha20: for codes, and for numbers within bins.
    streams: [u64; 2],
}

fn draw(
    schema: &Arc<Schema>,
    model: &dyn FittedModel,
    seed: u64,
    place: Place,
) -> io::Result<Block> {
    let [mut codes, values] = place.streams.map(|stream| {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        rng
    });
    let sampled = sample_allowed(model, schema, place.records, &mut codes);
    let columns = sampled.map_err(io::Error::other)?.columns;
    let table = Table::new(schema.clone(), columns).map_err(io::Error::other)?;
    let first = place.first;
    Ok(Block {
        table,
        first,
        values,
    })
}

impl Iterator for Blocks {
    type Item = io::Result<Block>;

    fn next(&mut self) -> Option<io::Result<Block>> {
        if let Err(error) = self.begin() {
            return Some(Err(error));
        }
        let block = self.ahead.pop_front()?.join();
        // The next are drawn while this one is written.
        let begun = self.begin();
        let panicked = |_| Err(io::Error::other("a block was not drawn"));
        Some(begun.and_then(|()| block.unwrap_or_else(panicked)))
    }
}
