//! The tables of many parties: the files of a folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Error, data::refuse_pipe, distinct::place, target::folder};

/// The tables of a folder, CSV and Parquet, by name.
///
/// # Errors
/// [`Error::Read`]; [`Error::Content`] for a folder without a table, [`Error::Pipe`] for a pipe among them.
pub fn part_files(parts: &Path) -> Result<Vec<PathBuf>, Error> {
    let refuse = |source| Error::Read {
        path: parts.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(parts).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        if is_part(&path) {
            files.push(path);
        }
    }
    files.sort();
    files.iter().try_for_each(|path| refuse_pipe(path))?;
    if files.is_empty() {
        return Err(Error::Content {
            path: parts.to_owned(),
            problem: "there is no table in it: `fhaim federate split` makes some".to_owned(),
        });
    }
    Ok(files)
}

/// Refuses outputs that the next run would take for a party's table.
///
/// # Errors
/// [`Error::AmongParties`].
pub fn check_apart(parts: &Path, outputs: &[&Path]) -> Result<(), Error> {
    let Ok(parts) = parts.canonicalize() else {
        return Ok(()); // nothing is in a folder that is not there
    };
    let is_among = |output: &&&Path| {
        let place = place(output);
        is_part(&place) && folder(&place) == parts
    };
    match outputs.iter().find(is_among) {
        Some(output) => Err(Error::AmongParties {
            path: (*output).to_owned(),
            parts,
        }),
        None => Ok(()),
    }
}

fn is_part(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension == "csv" || extension == "parquet")
}
