//! Names of downloaded files.

use axum::http::HeaderValue;
use fhaim_platform::Failure;

/// Returns a `Content-Disposition` header that makes a browser save the response as a file.
///
/// The file name is `name`, with everything but ASCII letters, digits, `.`, `_` and `-` replaced by
/// `_`, followed by `ending`.
///
/// # Errors
/// `ending` has characters that are not allowed in a header.
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
