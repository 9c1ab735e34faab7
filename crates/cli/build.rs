//! Sets FHAIM_VERSION, the program's version with the commit that it is built from.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=FHAIM_COMMIT");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match env::var("FHAIM_COMMIT").ok().or_else(checked_out) {
        Some(commit) if is_commit(&commit) => format!("{version} ({commit})"),
        _ => version,
    };
    println!("cargo::rustc-env=FHAIM_VERSION={version}");
}

/// Returns the checked-out commit for release builds, or `None` if the sources are not a Git checkout.
///
/// Builds for tests have no commit, because they would otherwise be rebuilt with every commit.
fn checked_out() -> Option<String> {
    if env::var("PROFILE").is_ok_and(|profile| profile != "release") {
        return None;
    }
    println!(
        "cargo::rerun-if-changed={}",
        git(&["rev-parse", "--git-path", "logs/HEAD"])?
    );
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Whether a text is a commit hash, and therefore safe to print in a line.
fn is_commit(text: &str) -> bool {
    (7..=40).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit())
}
