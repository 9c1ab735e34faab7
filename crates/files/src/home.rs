//! What a holder's programs keep on this machine: a folder and files readable by their owner alone.

use std::{
    fs::{File, TryLockError},
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    Error, note, shown_path,
    target::{folder as folder_of, sync_folder},
};

/// How often a lock is asked for before it is said that it is waited for, and how long after each time.
const TRIES: u32 = 40;
const BETWEEN_TRIES: Duration = Duration::from_millis(25);

/// The folder of the login and of uploads under way.
///
/// # Errors
/// [`Error::NoHome`].
pub fn folder() -> Result<PathBuf, Error> {
    let folder = of("FHAIM_CONFIG_DIR")
        .or_else(|| Some(of("XDG_CONFIG_HOME")?.join("fhaim")))
        .or_else(|| Some(of("HOME")?.join(".config/fhaim")));
    folder.ok_or(Error::NoHome)
}

/// The folder of what is remembered for good, whoever signs in: that of the login unless
/// FHAIM_MEMORY_DIR names another.
///
/// # Errors
/// [`Error::NoHome`].
pub fn memory() -> Result<PathBuf, Error> {
    match of("FHAIM_MEMORY_DIR") {
        Some(folder) => Ok(folder),
        None => folder(),
    }
}

/// Whether a file, its folder written in one way alone, is one of those in which it is remembered what was spent.
pub fn remembers(path: &Path) -> bool {
    let named = path.file_name().and_then(|name| name.to_str());
    let in_memory = || {
        let memory = memory().ok()?.canonicalize().ok()?;
        Some(path.parent()? == memory)
    };
    named.is_some_and(|name| name.starts_with("memory.")) && in_memory().unwrap_or(false)
}

/// The folder that a variable names. One that is empty names none: it is not the folder that a command happens to run in.
fn of(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// A folder, made for its owner alone if it is not there.
///
/// # Errors
/// [`Error::Write`].
pub fn made(path: PathBuf) -> Result<PathBuf, Error> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&path).map_err(|source| Error::Write {
        path: path.clone(),
        source,
    })?;
    Ok(path)
}

/// A file's bytes, if it is there.
///
/// # Errors
/// [`Error::Read`].
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Writes a file for its owner alone, in the place of any that was there.
///
/// # Errors
/// [`Error::Write`].
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let refuse = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    // A temporary file is its owner's alone; renamed, the old content is gone at once or not at all.
    let parent = folder_of(path);
    let mut file = tempfile::NamedTempFile::new_in(parent).map_err(refuse)?;
    file.write_all(bytes).map_err(refuse)?;
    file.as_file().sync_all().map_err(refuse)?;
    file.persist(path).map_err(|error| refuse(error.error))?;
    sync_folder(parent).map_err(refuse)
}

/// Waits until no other program of this machine has a file's lock, and says so where that takes a while; it is free again
/// when what is returned is dropped.
///
/// # Errors
/// [`Error::Write`].
pub fn lock(path: &Path) -> Result<File, Error> {
    let locked = File::create(path).and_then(|file| {
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        note(format_args!(
            "another program has {}: waiting for it",
            shown_path(path)
        ));
        file.lock().map(|()| file)
    });
    locked.map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's own files")]
mod tests {
    use super::*;

    /// Whoever waits for another program is told so.
    #[test]
    fn a_lock_that_is_waited_for_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.lock");
        let (first, remarks) = crate::keeping(|| lock(&path).unwrap());
        assert!(remarks.is_empty(), "{remarks:?}");
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || crate::keeping(|| lock(&path).map(drop)).1
        });
        std::thread::sleep(BETWEEN_TRIES * (TRIES + 20));
        drop(first);
        let remarks = waiting.join().unwrap();
        assert_eq!(
            remarks,
            [format!(
                "another program has {}: waiting for it",
                path.display()
            )]
        );
    }
}
