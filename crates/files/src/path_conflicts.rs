//! Rejects an output path that is also an input or another output.

use std::path::{Path, PathBuf};

use crate::{
    Error, home,
    target::{folder, followed},
};

/// Rejects outputs that would overwrite an input, each other, or the usage history.
///
/// # Errors
/// [`Error::TwoPurposes`] or [`Error::Remembered`], with the path of the output.
pub fn check_distinct(inputs: &[&Path], outputs: &[&Path]) -> Result<(), Error> {
    let mut taken: Vec<PathBuf> = inputs.iter().map(|input| place(input)).collect();
    for output in outputs {
        let place = place(output);
        if taken.contains(&place) {
            return Err(Error::TwoPurposes((*output).to_owned()));
        }
        if home::remembers(&place) {
            return Err(Error::Remembered((*output).to_owned()));
        }
        taken.push(place);
    }
    Ok(())
}

/// Returns the canonical path of a file, with all links followed. The file need not exist.
pub fn place(path: &Path) -> PathBuf {
    let path = followed(path).unwrap_or_else(|_| path.to_owned());
    match (folder(&path).canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's own files")]
mod tests {
    use super::*;

    #[test]
    fn conflicting_paths_are_rejected_in_any_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("table.csv"), "records").unwrap();
        std::fs::create_dir(at("parts")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("table.csv", at("link.csv")).unwrap();
        let (table, new) = (at("table.csv"), at("new.csv"));
        let outputs = [&*new, &at("other.csv")];
        check_distinct(&[&table], &outputs).unwrap();
        for (input, output) in [
            (&table, at("table.csv")),
            (&table, at("parts/../table.csv")),
            #[cfg(unix)]
            (&table, at("link.csv")),
            // These files do not exist yet.
            (&new, at("./new.csv")),
            (&new, at("parts/../new.csv")),
        ] {
            let as_input = check_distinct(&[input], &[&output]);
            assert!(matches!(as_input, Err(Error::TwoPurposes(name)) if name == output));
            let as_output = check_distinct(&[], &[input, &output]);
            assert!(
                matches!(as_output, Err(Error::TwoPurposes(_))),
                "{output:?}"
            );
        }
    }
}
