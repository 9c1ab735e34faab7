//! Outputs that are something else as well.

use std::path::{Path, PathBuf};

use crate::{
    Error, home,
    target::{folder, followed},
};

/// Refuses outputs that would overwrite an input, each other, or what is remembered of spending.
///
/// # Errors
/// [`Error::TwoPurposes`] or [`Error::Remembered`], with the name of the output.
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

/// Where a name leads, written in one way alone: also where there is no file yet.
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
    fn a_name_for_two_purposes_is_refused_however_it_is_written() {
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
            // Neither is there yet.
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
