//! Folders and files that fhaim's programs keep for a user, accessible only to their owner.

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

/// Number of attempts to take a lock before the program reports that it is waiting.
const TRIES: u32 = 40;
/// Pause between two attempts to take a lock.
const BETWEEN_TRIES: Duration = Duration::from_millis(25);

/// Returns the folder of the login and of unfinished uploads.
///
/// # Errors
/// [`Error::NoHome`].
pub fn folder() -> Result<PathBuf, Error> {
    let folder = of("FHAIM_CONFIG_DIR")
        .or_else(|| Some(of("XDG_CONFIG_HOME")?.join("fhaim")))
        .or_else(|| Some(of("HOME")?.join(".config/fhaim")));
    folder.ok_or(Error::NoHome)
}

/// Returns the folder of the usage history, which all accounts share: FHAIM_MEMORY_DIR, or by default the folder of the
/// login.
///
/// # Errors
/// [`Error::NoHome`].
pub fn memory() -> Result<PathBuf, Error> {
    match of("FHAIM_MEMORY_DIR") {
        Some(folder) => Ok(folder),
        None => folder(),
    }
}

/// Whether a file belongs to the usage history. The folder in `path` must be canonical.
pub fn remembers(path: &Path) -> bool {
    let named = path.file_name().and_then(|name| name.to_str());
    let in_memory = || {
        let memory = memory().ok()?.canonicalize().ok()?;
        Some(path.parent()? == memory)
    };
    named.is_some_and(|name| name.starts_with("memory.")) && in_memory().unwrap_or(false)
}

/// Returns the folder in an environment variable. An empty variable counts as unset: it must not mean the current
/// folder.
fn of(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Creates a folder that only its owner can access, unless it exists, and returns its path.
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

/// Reads a file; returns `None` if it does not exist.
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

/// Writes a file that only its owner can read, and replaces any existing file of that name.
///
/// # Errors
/// [`Error::Write`].
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let refuse = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    // A temporary file is readable only by its owner, and renaming it replaces the old content atomically.
    let parent = folder_of(path);
    let mut file = tempfile::NamedTempFile::new_in(parent).map_err(refuse)?;
    file.write_all(bytes).map_err(refuse)?;
    file.as_file().sync_all().map_err(refuse)?;
    file.persist(path).map_err(|error| refuse(error.error))?;
    sync_folder(parent).map_err(refuse)
}

/// Locks a file against other programs on this machine, and reports a long wait.
///
/// Dropping the returned file releases the lock.
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
            "waiting for another program to release {}",
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

    #[test]
    fn waiting_for_a_lock_is_reported() {
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
                "waiting for another program to release {}",
                path.display()
            )]
        );
    }
}
