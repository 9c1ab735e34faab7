//! Explains conditions that a model cannot satisfy.

use fhaim_domain::Schema;
use fhaim_platform::Failure;
use fhaim_synth::ModelError;

use crate::problem::Refusal;

/// Converts a model's refusal of conditions into a message that names the conditions.
pub fn explain(error: &ModelError, conditions: &[(usize, u32)], schema: &Schema) -> Failure {
    let ModelError::Impossible { attribute, .. } = error else {
        return Failure::internal(error);
    };
    // The model applies conditions in order: the last one named is the one that left none.
    let upto = conditions.iter().position(|(other, _)| other == attribute);
    let texts = conditions.iter().take(upto.map_or(0, |place| place + 1));
    let texts = texts.map(|&(attribute, code)| {
        let column = &schema.columns()[attribute];
        format!("{}={}", column.name(), column.label(code))
    });
    let texts = texts.collect::<Vec<_>>().join(" and ");
    Refusal::Impossible(texts).into()
}
