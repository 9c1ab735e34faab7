//! Samples records that satisfy a schema's constraints.

use fhaim_domain::Schema;
use rand::RngCore;

use crate::{Error, FittedModel};

/// After [`MIN_DRAWN`] draws, at most this many records are drawn for each one that is kept.
const MAX_DRAWN_FOR_ONE: usize = 1_000;
const MIN_DRAWN: usize = 10_000;

/// At most this many records are drawn at a time for each one that is still missing.
const MAX_AHEAD: usize = 16;

/// Sampled records.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Columns of codes, by attribute.
    pub columns: Vec<Vec<u32>>,
    /// Share of the drawn records that the constraints allow; 1 without constraints.
    pub allowed: f64,
}

/// Draws records that the schema's constraints allow, from the model's distribution conditioned on
/// the constraints.
///
/// Like any use of a model, this costs no privacy and reads no record. Without constraints it is
/// [`FittedModel::sample`].
///
/// # Errors
/// [`Error::Disallowed`] if almost no record of the model is allowed.
pub fn sample_allowed(
    model: &dyn FittedModel,
    schema: &Schema,
    records: usize,
    rng: &mut dyn RngCore,
) -> Result<Sampled, Error> {
    if schema.constraints().is_empty() {
        let columns = model.sample(records, rng);
        return Ok(Sampled {
            columns,
            allowed: 1.0,
        });
    }
    let mut columns: Vec<Vec<u32>> = vec![Vec::with_capacity(records); schema.columns().len()];
    let (mut drawn, mut kept) = (0usize, 0usize);
    while kept < records {
        let wanted = records - kept;
        if drawn >= MIN_DRAWN && drawn / MAX_DRAWN_FOR_ONE >= kept.max(1) {
            return Err(Error::Disallowed { kept, drawn });
        }
        // The number of draws that should be enough at the rate so far.
        let rate = (drawn / kept.max(1)).clamp(1, MAX_AHEAD);
        let batch = model.sample(wanted.saturating_mul(rate), rng);
        let length = batch.first().map_or(0, Vec::len);
        drawn += length;
        for row in 0..length {
            // A model draws equally many codes for every attribute.
            if kept < records && schema.allows(&|attribute| batch[attribute][row]) {
                columns
                    .iter_mut()
                    .zip(&batch)
                    .for_each(|(to, from)| to.push(from[row]));
                kept += 1;
            } else if kept == records {
                // The rest of the batch was not checked, so it does not count.
                drawn -= length - row;
                break;
            }
        }
        if length == 0 {
            return Err(Error::Disallowed { kept, drawn });
        }
    }
    let allowed = if drawn == 0 {
        1.0
    } else {
        kept as f64 / drawn as f64
    };
    Ok(Sampled { columns, allowed })
}
