//! The tables of many parties, as files in a folder.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Error, data::refuse_pipe, note, path_conflicts::place, shown, shown_path, staged::UNFINISHED,
    target::folder,
};

/// Returns the CSV and Parquet files of a folder, sorted by name. Reports that it ignores other files.
///
/// # Errors
/// [`Error::Read`]; [`Error::Content`] for a folder without a table, or with the unfinished file of a killed command;
/// [`Error::Pipe`] if one of the files is a pipe.
pub fn part_files(parts: &Path) -> Result<Vec<PathBuf>, Error> {
    let refuse = |source| Error::Read {
        path: parts.to_owned(),
        source,
    };
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(parts).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        match path.file_name().and_then(OsStr::to_str) {
            Some(name) if name.starts_with(UNFINISHED) => {
                let problem = "a command was killed while it wrote to this folder: if it was `fhaim-lab federate split`, \
                               run it again with an empty folder, otherwise delete this file";
                return Err(Error::Content {
                    path,
                    problem: problem.to_owned(),
                });
            }
            _ if is_part(&path) => files.push(path),
            _ => others.push(path),
        }
    }
    files.sort();
    others.sort();
    if let [first, ..] = others.as_slice() {
        let name = first.file_name().unwrap_or_default().to_string_lossy();
        note(format_args!(
            "in {} {} ignored, for example {}: only files that end in .csv or .parquet are read, and no hidden files",
            shown_path(parts),
            counted_are(others.len()),
            shown(&name)
        ));
    }
    files.iter().try_for_each(|path| refuse_pipe(path))?;
    if files.is_empty() {
        return Err(Error::Content {
            path: parts.to_owned(),
            problem: "the folder contains no table: create some with `fhaim-lab federate split`"
                .to_owned(),
        });
    }
    Ok(files)
}

/// Rejects outputs that the next run would read as a party's table.
///
/// # Errors
/// [`Error::AmongParties`].
pub fn check_apart(parts: &Path, outputs: &[&Path]) -> Result<(), Error> {
    let Ok(parts) = parts.canonicalize() else {
        return Ok(()); // a folder that does not exist contains no output
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

/// Whether a file is a party's table, judged by its name. Hidden files are not.
fn is_part(path: &Path) -> bool {
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    let is_table = |extension: &OsStr| {
        ["csv", "parquet"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    };
    !path.file_name().is_some_and(is_hidden) && path.extension().is_some_and(is_table)
}

fn counted_are(files: usize) -> String {
    match files {
        1 => "1 file is".to_owned(),
        _ => format!("{files} files are"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's own files")]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_are_ignored_and_unfinished_files_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), "a\n1\n").unwrap();
        for name in ["b.CSV", "a.csv", "c.parquet", ".d.csv", "e.txt"] {
            write(name);
        }
        let files = part_files(folder.path()).unwrap();
        let names = files.iter().map(|file| file.file_name().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), ["a.csv", "b.CSV", "c.parquet"]);
        write(".fhaim-Ab12Cd");
        let refused = part_files(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("killed while it wrote"), "{refused}");
        for (output, is_among) in [("x.CSV", true), ("x.csv", true), ("x.txt", false)] {
            let output = folder.path().join(output);
            assert_eq!(check_apart(folder.path(), &[&output]).is_err(), is_among);
        }
    }
}
