//! Writes mixes: as records drawn from their shares, or as images of their means.

use std::path::{Path, PathBuf};

use fhaim_domain::{Table, WriteOptions, write_csv};
use fhaim_mix::{Mixes, Points, Standard, idx};
use rand::Rng;
use rand_chacha::ChaCha20Rng;

use super::{Origin, args::MixArguments};
use crate::{
    error::Error,
    input::{self, Data},
    output::{Existing, StagedFile, check_distinct, commit_all},
};

/// The result files that are being written.
pub struct Files {
    out: StagedFile,
    labels: Option<StagedFile>,
}

impl Files {
    /// Creates the files before any computation, so that errors appear early.
    pub fn create(arguments: &MixArguments) -> Result<Self, Error> {
        let records = [&arguments.data, &arguments.images].into_iter().flatten();
        let others = [&arguments.schema, &arguments.labels].into_iter().flatten();
        let inputs = records.filter_map(Data::file);
        let inputs: Vec<&Path> = inputs.chain(others.map(PathBuf::as_path)).collect();
        let outputs = [arguments.out.as_path()].into_iter();
        let outputs: Vec<&Path> = outputs.chain(arguments.out_labels.as_deref()).collect();
        check_distinct(&inputs, &outputs)?;
        Ok(Self {
            out: StagedFile::create(&arguments.out, Existing::Replace)?,
            labels: (arguments.out_labels.as_deref())
                .map(|path| StagedFile::create(path, Existing::Replace))
                .transpose()?,
        })
    }

    /// Writes mixes in the format of their source, and returns the number of synthetic records.
    pub fn write(
        mut self,
        arguments: &MixArguments,
        origin: &Origin,
        shape: &Points,
        mixes: &Mixes,
        rng: &mut ChaCha20Rng,
    ) -> Result<usize, Error> {
        let records = match origin {
            Origin::Table(table) => {
                let drawn = draw(table, shape, mixes, rng)?;
                let mut options = WriteOptions::new(arguments.out.to_string_lossy());
                if let Some(data) = &arguments.data {
                    options.delimiter = input::delimiter(data, &arguments.format)?;
                }
                write_csv(&drawn, &mut self.out, rng, &options)?;
                drawn.records()
            }
            Origin::Images { rows, columns } => {
                let images = images(shape, mixes, (*rows, *columns));
                self.out.write_bytes(&idx::write_images(&images))?;
                self.out.end()?;
                if let Some(file) = &mut self.labels {
                    // A class is below the number of classes, which is at most 256 for images.
                    let labels: Vec<u8> = mixes.labels.iter().map(|&label| label as u8).collect();
                    file.write_bytes(&idx::write_labels(&labels))?;
                }
                images.len()
            }
        };
        commit_all([self.out].into_iter().chain(self.labels))?;
        Ok(records)
    }
}

/// Draws records from each mix: as many as it is estimated to have, or one if mixes overlap. Each attribute is drawn by
/// its shares in the mix, which are the positive parts of its sums.
fn draw(
    table: &Table,
    shape: &Points,
    mixes: &Mixes,
    rng: &mut ChaCha20Rng,
) -> Result<Table, Error> {
    let domain = table.domain();
    let target = table.schema().target().unwrap_or(0);
    let mut columns = vec![Vec::new(); domain.len()];
    for number in 0..mixes.len() {
        let records = if mixes.full {
            1
        } else {
            mixes.size(number, shape).round() as usize
        };
        let mut first = 0;
        for (attribute, column) in columns.iter_mut().enumerate() {
            if attribute == target {
                column.resize(column.len() + records, mixes.labels[number]);
                continue;
            }
            let size = domain.size(attribute);
            let sums = &mixes.sum(number)[first..first + size];
            first += size;
            column.extend((0..records).map(|_| draw_code(sums, rng)));
        }
    }
    Ok(Table::new(table.shared_schema(), columns).map_err(fhaim_domain::Error::from)?)
}

/// Draws a code with a probability proportional to the positive part of its sum. If no sum is positive, all codes are
/// equally likely.
fn draw_code(sums: &[i64], rng: &mut ChaCha20Rng) -> u32 {
    let total: i64 = sums.iter().map(|&sum| sum.max(0)).sum();
    if total == 0 {
        return rng.random_range(0..sums.len() as u32);
    }
    let mut left = rng.random_range(0..total);
    for (code, &sum) in (0..).zip(sums) {
        left -= sum.max(0);
        if left < 0 {
            return code;
        }
    }
    // Unreachable: `left` started below the total of all sums.
    0
}

/// Converts means to pixels. Each mean is scaled back as if its image had the norm of an image with the standard
/// deviation of [`Standard::MNIST`].
fn images(shape: &Points, mixes: &Mixes, (rows, columns): (usize, usize)) -> idx::Images {
    let norm = ((rows * columns) as f64).sqrt();
    let Standard { mean, deviation } = Standard::MNIST;
    let pixel = |x: f64| {
        ((x * norm * deviation + mean) * 255.0)
            .round()
            .clamp(0.0, 255.0) as u8
    };
    let pixels = (0..mixes.len()).flat_map(|number| mixes.mean(number, shape));
    idx::Images {
        rows,
        columns,
        pixels: pixels.map(pixel).collect(),
    }
}
