//! Tests that the documents in `openapi/` are up to date.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use crate::fhaim;

#[test]
fn openapi_documents_equal_the_services_output() {
    let documents = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../openapi");
    for service in ["generation", "computation", "crypto", "keyshare"] {
        let folder = TempDir::new().unwrap();
        let output = fhaim(folder.path(), &["serve", service, "--openapi"]);
        assert!(output.status.success());
        let kept = fs::read(documents.join(format!("{service}.json"))).unwrap();
        assert!(
            output.stdout == kept,
            "openapi/{service}.json is outdated: write it with `fhaim serve {service} --openapi`"
        );
    }
}
