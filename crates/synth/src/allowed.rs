//! Records that a schema's constraints allow.

use fhaim_domain::Schema;
use rand::RngCore;

use crate::{Error, FittedModel};

/// So many records are drawn for one that is kept, at most, once this many were.
const MAX_DRAWN_FOR_ONE: usize = 1_000;
const MIN_DRAWN: usize = 10_000;

/// So many are drawn at a time, at most, for each that is wanted.
const MAX_AHEAD: usize = 16;

/// Records that were drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Columns of codes, by attribute.
    pub columns: Vec<Vec<u32>>,
    /// Share of what the model drew that the constraints allow: its mass on what may be. 1 without any.
    pub allowed: f64,
}

/// Draws records whose codes a schema allows: from the model's distribution given that it does. Like all that
/// is done with a model it costs nothing, and no record is looked at. Without constraints this is
/// [`FittedModel::sample`].
///
/// # Errors
/// [`Error::Disallowed`] where the model has next to no such records.
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
        // As many as will do at the rate so far.
        let rate = (drawn / kept.max(1)).clamp(1, MAX_AHEAD);
        let batch = model.sample(wanted.saturating_mul(rate), rng);
        let length = batch.first().map_or(0, Vec::len);
        drawn += length;
        for row in 0..length {
            // A model draws as many codes for every attribute.
            if kept < records && schema.allows(&|attribute| batch[attribute][row]) {
                columns
                    .iter_mut()
                    .zip(&batch)
                    .for_each(|(to, from)| to.push(from[row]));
                kept += 1;
            } else if kept == records {
                // What is left over was not looked at.
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
