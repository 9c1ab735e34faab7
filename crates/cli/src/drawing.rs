//! Draws synthetic tables from a model block by block, and writes each block immediately.

use std::{io::Write, sync::Arc};

use fhaim_domain::{Schema, Table, WriteOptions};
use fhaim_files::progress::PhaseProgress;
use fhaim_synth::{Block, Blocks, FittedModel};
use rand::Rng;

use crate::{error::Error, input};

/// A drawn table, kept in memory for a comparison.
#[derive(Debug, Default)]
pub struct Kept {
    columns: Vec<Vec<u32>>,
    /// The written text.
    pub text: Vec<u8>,
}

impl Kept {
    /// Returns the table's codes, and removes them from `self`.
    pub fn table(&mut self, schema: &Arc<Schema>) -> Result<Table, Error> {
        let columns = std::mem::take(&mut self.columns);
        Ok(Table::new(schema.clone(), columns).map_err(fhaim_domain::Error::from)?)
    }

    fn add(&mut self, table: &Table, text: &[u8]) {
        self.columns
            .resize(table.schema().columns().len(), Vec::new());
        for (attribute, column) in self.columns.iter_mut().enumerate() {
            column.extend_from_slice(table.column(attribute));
        }
        self.text.extend_from_slice(text);
    }
}

/// Returns the blocks of `records` records of a model, seeded with a number from `rng`.
pub fn blocks(
    schema: &Arc<Schema>,
    model: &Arc<dyn FittedModel>,
    records: usize,
    rng: &mut impl Rng,
) -> Blocks {
    Blocks::new(schema.clone(), model.clone(), records as u64, rng.random())
}

/// Draws a table with one thread per core and writes it as CSV. Also adds it to `keep`, if given.
pub fn write(
    blocks: &Blocks,
    options: &WriteOptions,
    writer: &mut dyn Write,
    mut keep: Option<&mut Kept>,
    phase: &PhaseProgress,
) -> Result<(), Error> {
    let failed = |source| Error::Write {
        path: options.file.clone().into(),
        source,
    };
    let make = |mut block: Block| -> Result<_, Error> {
        let text = block.csv(options)?;
        Ok((block, text))
    };
    let (mut written, mut drawn) = (0, 0.0);
    blocks.each(make, |(block, text)| {
        writer.write_all(&text).map_err(failed)?;
        if let Some(kept) = &mut keep {
            kept.add(&block.table, &text);
        }
        written += block.table.records() as u64;
        drawn += block.drawn;
        phase.reach(written);
        Ok(())
    })?;
    input::remark_on_constraints(blocks.schema(), written as f64 / drawn);
    Ok(())
}
