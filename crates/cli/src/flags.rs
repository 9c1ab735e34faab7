//! Flags and values that several commands share.

use std::num::NonZeroUsize;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fhaim_synth::MechanismName;

/// delta unless another is asked for.
pub const DEFAULT_DELTA: f64 = 1e-9;

/// Model cap in MB unless another is asked for.
pub const DEFAULT_MODEL_MB: usize = 64;

/// The release and, where the build knows it, the commit: `0.1.0 (3de8e94c0a1b)`.
pub const VERSION: &str = env!("FHAIM_VERSION");

/// A number of things, as a flag has it.
///
/// # Errors
/// Which numbers there may be, where it is another.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| format!("a whole number from 1 to {}", usize::MAX))
}

/// What follows the flags of a command that takes a mechanism: examples, and what each of the
/// mechanisms is.
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

/// Reads a mechanism by its name.
pub fn mechanism() -> impl TypedValueParser<Value = MechanismName> {
    PossibleValuesParser::new(MechanismName::all().map(MechanismName::as_str))
        .try_map(|name| name.parse())
}
