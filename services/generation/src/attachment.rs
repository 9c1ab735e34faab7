//! What a downloaded file is called.

use axum::http::HeaderValue;
use fhaim_platform::Failure;

/// The header that has a browser keep an answer as a file, whose name is a dataset's, in plain characters, and an ending.
///
/// # Errors
/// An ending that no header takes.
pub fn attachment(name: &str, ending: &str) -> Result<HeaderValue, Failure> {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(plain).collect();
    let value = format!("attachment; filename=\"{name}{ending}\"");
    HeaderValue::try_from(value).map_err(Failure::internal)
}
