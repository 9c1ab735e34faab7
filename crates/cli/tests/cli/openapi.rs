//! The documents in `openapi/` are what the services write.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use crate::fhaim;

#[test]
fn documents_are_as_the_services_write_them() {
    let documents = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../openapi");
    for service in ["generation", "computation", "crypto", "keyshare"] {
        let folder = TempDir::new().unwrap();
        let output = fhaim(folder.path(), &["serve", service, "--openapi"]);
        assert!(output.status.success());
        let kept = fs::read(documents.join(format!("{service}.json"))).unwrap();
        assert!(
            output.stdout == kept,
            "openapi/{service}.json: write it anew with `fhaim serve {service} --openapi`"
        );
    }
}
