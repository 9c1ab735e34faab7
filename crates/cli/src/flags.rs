//! Flags and defaults that several commands share.

use std::num::NonZeroUsize;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fhaim_synth::MechanismName;

/// Default of `--delta`.
pub const DEFAULT_DELTA: f64 = 1e-9;

/// [`DEFAULT_DELTA`] as help shows it.
pub const DEFAULT_DELTA_TEXT: &str = "1e-9";

/// Default of `--model-mb`.
pub const DEFAULT_MODEL_MB: usize = 64;

/// Version and, if the build knows it, the commit, such as `0.1.0 (3de8e94c0a1b)`.
pub const VERSION: &str = env!("FHAIM_VERSION");

/// Parses a positive number.
///
/// # Errors
/// A description of valid numbers.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| format!("use a whole number from 1 to {}", usize::MAX))
}

/// Returns the last part of the help of a command with `--mechanism`: its examples, and a description of each
/// mechanism.
pub fn with_mechanisms(examples: &str) -> String {
    let mut text = format!("{examples}\n\nMechanisms:");
    for mechanism in MechanismName::all() {
        let where_to = if mechanism.clear_only() {
            " (fhaim local only)"
        } else {
            ""
        };
        text.push_str(&format!(
            "\n  {mechanism:9}  {}{where_to}",
            mechanism.about()
        ));
    }
    text
}

/// Returns a parser for the name of a mechanism.
pub fn mechanism() -> impl TypedValueParser<Value = MechanismName> {
    PossibleValuesParser::new(MechanismName::all().map(MechanismName::as_str))
        .try_map(|name| name.parse())
}
