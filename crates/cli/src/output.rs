//! Files that a command writes: whole or not at all.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;
use tempfile::NamedTempFile;

use crate::error::Error;

/// A file being written under a temporary name in the folder of its final one. Dropped without
/// [`Staged::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct Staged {
    file: NamedTempFile,
    path: PathBuf,
}

impl Staged {
    /// Starts a file: made before long work, it shows early that the folder cannot be written to.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let refuse = |kind: io::ErrorKind| Error::Write {
            path: path.to_owned(),
            source: kind.into(),
        };
        if path.is_dir() {
            return Err(refuse(io::ErrorKind::IsADirectory));
        }
        if !folder.is_dir() {
            return Err(Error::NoFolder {
                path: path.to_owned(),
                folder: folder.to_owned(),
            });
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".fhaim-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The rights of any new file, less the process's mask.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        // The system's own words would name the temporary file.
        let file = builder
            .tempfile_in(folder)
            .map_err(|error| refuse(error.kind()))?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Writes the whole content.
    pub fn write(
        &mut self,
        content: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut writer = BufWriter::new(self.file.as_file_mut());
        content(&mut writer)?;
        writer.flush().map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }

    /// Writes the whole content from memory.
    pub fn write_bytes(&mut self, content: &[u8]) -> Result<(), Error> {
        let path = self.path.clone();
        self.write(|writer| {
            writer
                .write_all(content)
                .map_err(|source| Error::Write { path, source })
        })
    }

    /// Another handle of the same file, for a writer that does not block.
    pub fn reopen(&self) -> Result<std::fs::File, Error> {
        self.file.reopen().map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }

    /// Gives the file its final name, in the place of any file of that name.
    pub fn commit(self) -> Result<(), Error> {
        let path = self.path;
        let refuse = |source| Error::Write {
            path: path.clone(),
            source,
        };
        self.file.as_file().sync_all().map_err(refuse)?;
        self.file
            .persist(&path)
            .map_err(|error| refuse(error.error))?;
        Ok(())
    }
}

/// Gives all files their final names; called when every one of them is complete.
pub fn commit_all(files: impl IntoIterator<Item = Staged>) -> Result<(), Error> {
    files.into_iter().try_for_each(Staged::commit)
}

/// Prints a text to standard output.
pub fn print(text: &str) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
    written.map_err(|source| Error::Write {
        path: "standard output".into(),
        source,
    })
}

/// Prints a value to standard output as indented JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Error> {
    print(&to_json(value)?)
}

/// Prints a value to standard output as one line of JSON.
pub fn print_json_line(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(value).map_err(|error| Error::Write {
        path: "JSON".into(),
        source: error.into(),
    })?;
    print(&format!("{text}\n"))
}

/// A value as indented JSON with a newline at the end.
pub fn to_json(value: &impl Serialize) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| Error::Write {
        path: "JSON".into(),
        source: error.into(),
    })?;
    text.push('\n');
    Ok(text)
}

/// Refuses outputs that would overwrite an input or each other.
pub fn check_distinct(inputs: &[&Path], outputs: &[&Path]) -> Result<(), Error> {
    for (i, output) in outputs.iter().enumerate() {
        let clashes = inputs.iter().any(|input| same_file(input, output))
            || outputs[..i].iter().any(|other| same_file(other, output));
        if clashes {
            let name = output.display();
            return Err(Error::Usage(format!("{name} is named for two purposes")));
        }
    }
    Ok(())
}

/// Whether two names are of one file, as far as one can tell before it exists.
fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let mut dropped = Staged::create(&path).unwrap();
        dropped.write_bytes(b"half").unwrap();
        assert!(!path.exists());
        drop(dropped);
        assert!(names(folder.path()).is_empty());

        std::fs::write(&path, "old").unwrap();
        let mut staged = Staged::create(&path).unwrap();
        staged.write_bytes(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        staged.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[test]
    fn a_folder_that_is_not_there_shows_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing/out.csv");
        assert!(matches!(
            Staged::create(&missing),
            Err(Error::NoFolder { .. })
        ));
        assert!(matches!(
            Staged::create(folder.path()),
            Err(Error::Write { .. })
        ));
    }
}
