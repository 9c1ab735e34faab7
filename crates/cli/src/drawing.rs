//! Draws synthetic tables from a model block by block, and writes each block immediately.

use std::{io::Write, sync::Arc};

use fhaim_domain::{Schema, WriteOptions};
use fhaim_files::progress::PhaseProgress;
use fhaim_synth::{Block, Blocks, FittedModel};
use rand::Rng;

use crate::{error::Error, input};

/// Returns the blocks of `records` records of a model, seeded with a number from `rng`.
pub fn blocks(
    schema: &Arc<Schema>,
    model: &Arc<dyn FittedModel>,
    records: usize,
    rng: &mut impl Rng,
) -> Blocks {
    Blocks::new(schema.clone(), model.clone(), records as u64, rng.random())
}

/// Draws a table with one thread per core and writes it as CSV. Also appends the text to `copy`, if given.
pub fn write(
    blocks: &Blocks,
    options: &WriteOptions,
    writer: &mut dyn Write,
    mut copy: Option<&mut Vec<u8>>,
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
        if let Some(copy) = &mut copy {
            copy.extend_from_slice(&text);
        }
        written += block.table.records() as u64;
        drawn += block.drawn;
        phase.reach(written);
        Ok(())
    })?;
    input::remark_on_constraints(blocks.schema(), written as f64 / drawn);
    Ok(())
}
