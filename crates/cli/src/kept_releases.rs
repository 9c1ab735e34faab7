//! Saves the releases of a run that ends without a table, because they have been paid for.

use std::path::{Path, PathBuf};

use crate::{
    error::Error,
    output::{Existing, StagedFile, commit_all},
};

/// Writes a ledger to a new file next to `out`. If that folder cannot be written to, or `out` is a pipe, the file goes
/// to the current folder. Returns the path of the file.
///
/// # Errors
/// If neither folder can be written to, or the disk is full.
pub fn write(out: &Path, ledger: &str) -> Result<PathBuf, Error> {
    write_to(&[out, Path::new("fhaim")], ledger)
}

/// Writes to a new file named after the first of these paths whose folder can be written to.
fn write_to(places: &[&Path], ledger: &str) -> Result<PathBuf, Error> {
    let mut refused = Error::Usage("there is no folder for the releases of the run".into());
    for place in places {
        let path = unused_path(place);
        match write_new(&path, ledger) {
            Ok(()) => return Ok(path),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn write_new(path: &Path, ledger: &str) -> Result<(), Error> {
    let mut file = StagedFile::create(path, Existing::Refuse)?;
    file.write_bytes(ledger.as_bytes())?;
    file.end()?;
    Ok(commit_all([file])?)
}

/// Returns the first of OUT.releases.json, OUT.releases-2.json, ... that does not exist.
fn unused_path(out: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut path = out.as_os_str().to_owned();
        match number {
            1 => path.push(".releases.json"),
            _ => path.push(format!(".releases-{number}.json")),
        }
        PathBuf::from(path)
    };
    let unused = (1..=u32::MAX).map(numbered).find(|path| !path.exists());
    unused.unwrap_or_else(|| numbered(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_written_next_to_the_output_without_overwriting_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("o.csv");
        for (number, name) in ["o.csv.releases.json", "o.csv.releases-2.json"]
            .iter()
            .enumerate()
        {
            let path = write(&out, &number.to_string()).unwrap();
            assert_eq!(path, folder.path().join(name));
        }
        let first = std::fs::read_to_string(folder.path().join("o.csv.releases.json"));
        assert_eq!(first.unwrap(), "0");
    }

    #[test]
    fn releases_go_to_the_next_path_if_the_first_has_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing/o.csv");
        let here = folder.path().join("fhaim");
        let path = write_to(&[&missing, &here], "{}").unwrap();
        assert_eq!(path, folder.path().join("fhaim.releases.json"));
        let nowhere = write_to(&[&missing], "{}").unwrap_err();
        assert!(matches!(nowhere, Error::Files(_)), "{nowhere}");
    }
}
