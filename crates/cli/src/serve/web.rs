//! Serves the web page: the files of a folder, with a content security policy that allows only the page's own origin.
//!
//! All files are read once at the start, so that no request accesses the file system. If there is a file `x.gz` next to
//! `x`, browsers that accept gzip get it instead.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

use crate::error::Error;

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; \
         img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::VARY, "accept-encoding"),
];

/// The page's files by path, without the leading slash.
type Files = BTreeMap<String, Bytes>;

/// Serves the page from a folder.
///
/// # Errors
/// [`Error::Read`] if the folder or a file cannot be read, or if the folder has no `index.html`.
pub fn router(folder: &Path) -> Result<Router, Error> {
    let refuse = |source| Error::Read {
        path: folder.to_owned(),
        source,
    };
    let mut files = Files::new();
    collect(folder, "", &mut files).map_err(refuse)?;
    if !files.contains_key("index.html") {
        return Err(refuse(io::Error::other("the folder has no index.html")));
    }
    Ok(Router::new()
        .fallback(get(answer))
        .with_state(Arc::new(files)))
}

/// Returns the folder of the page's build in this source checkout, if it exists.
pub fn default_folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    folder.join("index.html").exists().then_some(folder)
}

fn collect(folder: &Path, prefix: &str, files: &mut Files) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name, fs::read(entry.path())?.into());
        }
    }
    Ok(())
}

async fn answer(State(files): State<Arc<Files>>, request: Request) -> Response {
    let path = request.uri().path().trim_start_matches('/');
    let found = if files.contains_key(path) {
        path
    } else if path.starts_with("assets/") || path.contains('.') {
        return (StatusCode::NOT_FOUND, "File not found.\n").into_response();
    } else {
        // Other paths are addresses within the page, which handles them itself.
        "index.html"
    };
    let (body, gzip) = body(&files, found, request.headers());
    let mut response = body.into_response();
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let immutable = found.starts_with("assets/");
    let caching = if immutable {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(content_type(found)),
    );
    if gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Returns a file's content, and whether it is compressed. It is if there is a `.gz` file and the browser accepts it.
fn body(files: &Files, path: &str, headers: &HeaderMap) -> (Bytes, bool) {
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepted = accepted.and_then(|value| value.to_str().ok()).unwrap_or("");
    let welcome = accepted
        .split(',')
        .any(|coding| coding.split(';').next().is_some_and(|c| c.trim() == "gzip"));
    match files.get(&format!("{path}.gz")) {
        Some(bytes) if welcome => (bytes.clone(), true),
        _ => (files.get(path).cloned().unwrap_or_default(), false),
    }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("assets")).unwrap();
        for (name, text) in [
            ("index.html", "page"),
            ("assets/a.js", "code"),
            ("assets/a.js.gz", "pressed"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn ask(path: &str, encoding: &'static str) -> (StatusCode, HeaderMap, Bytes) {
        let mut all = Files::new();
        collect(files().path(), "", &mut all).unwrap();
        let request = axum::http::Request::get(path)
            .header(header::ACCEPT_ENCODING, encoding)
            .body(axum::body::Body::empty())
            .unwrap();
        let runtime = crate::serve::runtime().unwrap();
        runtime.block_on(async {
            let (parts, body) = answer(State(Arc::new(all)), request).await.into_parts();
            let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            (parts.status, parts.headers, bytes)
        })
    }

    #[test]
    fn files_are_served_with_their_types_and_other_paths_with_the_page() {
        for path in ["/", "/datasets/12/new"] {
            let (status, headers, bytes) = ask(path, "");
            assert_eq!((status, bytes.as_ref()), (StatusCode::OK, &b"page"[..]));
            assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
            let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(
                policy.contains("frame-ancestors 'none'") && policy.contains("connect-src 'self'")
            );
        }
        let (_, headers, bytes) = ask("/assets/a.js", "br, gzip;q=0.8");
        assert_eq!(bytes.as_ref(), b"pressed");
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
        let (_, headers, bytes) = ask("/assets/a.js", "br");
        assert_eq!(bytes.as_ref(), b"code");
        assert!(!headers.contains_key(header::CONTENT_ENCODING));
    }

    #[test]
    fn missing_files_and_paths_outside_the_folder_are_not_found() {
        for path in [
            "/assets/none.js",
            "/../Cargo.toml",
            "/assets/../../etc/passwd.txt",
        ] {
            assert_eq!(ask(path, "").0, StatusCode::NOT_FOUND, "{path}");
        }
        assert!(matches!(
            router(Path::new("/nonexistent")),
            Err(Error::Read { .. })
        ));
        assert!(matches!(
            router(tempfile::tempdir().unwrap().path()),
            Err(Error::Read { .. })
        ));
    }
}
