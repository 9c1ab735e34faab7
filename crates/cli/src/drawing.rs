//! Draws synthetic tables from a model block by block, and writes each block immediately.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use fhaim_domain::{Schema, WriteOptions};
use fhaim_files::{OutputFormat, progress::PhaseProgress};
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

/// Draws a table with one thread per core and writes it, in the format that the extension of `options.file` names.
/// Also appends its text as CSV to `copy`, if given.
pub fn write(
    blocks: &Blocks,
    options: &WriteOptions,
    writer: &mut (dyn Write + Send),
    mut copy: Option<&mut Vec<u8>>,
    phase: &PhaseProgress,
) -> Result<(), Error> {
    let (mut written, mut drawn) = (0, 0.0);
    let mut reach = |block: &Block| {
        written += block.table.records() as u64;
        drawn += block.drawn;
        phase.reach(written);
    };
    match OutputFormat::of(Path::new(&options.file))? {
        OutputFormat::Csv => write_csv(blocks, options, writer, |block, text| {
            if let Some(copy) = &mut copy {
                copy.extend_from_slice(text);
            }
            reach(block);
        })?,
        OutputFormat::Parquet => write_parquet(blocks, options, writer, |block| {
            if let Some(copy) = &mut copy {
                // The text has the same random values as the Parquet file.
                let mut block = Block {
                    table: block.table.clone(),
                    values: block.values.clone(),
                    ..*block
                };
                copy.extend_from_slice(&block.csv(options)?);
            }
            reach(block);
            Ok(())
        })?,
    }
    input::remark_on_constraints(blocks.schema(), written as f64 / drawn);
    Ok(())
}

fn write_csv(
    blocks: &Blocks,
    options: &WriteOptions,
    writer: &mut dyn Write,
    mut take: impl FnMut(&Block, &[u8]),
) -> Result<(), Error> {
    let make = |mut block: Block| -> Result<_, Error> {
        let text = block.csv(options)?;
        Ok((block, text))
    };
    blocks.each(make, |(block, text)| {
        let written = writer.write_all(&text);
        written.map_err(|source| Error::Write {
            path: options.file.clone().into(),
            source,
        })?;
        take(&block, &text);
        Ok(())
    })
}

fn write_parquet(
    blocks: &Blocks,
    options: &WriteOptions,
    writer: &mut (dyn Write + Send),
    mut take: impl FnMut(&Block) -> Result<(), fhaim_domain::Error>,
) -> Result<(), Error> {
    fhaim_parquet::check(blocks).map_err(|error| Error::Usage(format!("--{error}")))?;
    let take = |block: &Block| Ok(take(block).map_err(io::Error::other)?);
    let written = fhaim_parquet::write(writer, blocks, take);
    written.map_err(|error| match error {
        fhaim_parquet::Error::Draw(error) => error.into(),
        fhaim_parquet::Error::Write(source) => Error::Write {
            path: options.file.clone().into(),
            source,
        },
        other => Error::Content {
            path: options.file.clone().into(),
            problem: other.to_string(),
        },
    })
}
