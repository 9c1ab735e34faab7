//! Where the name of an output leads.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf, is_separator},
};

/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

/// What a name stands for, at the end of all links.
#[derive(Debug)]
pub enum Target {
    /// A file, or none yet: another can come to its place.
    File(PathBuf),
    /// A device, a stream that the process was given: nothing that may be replaced.
    Open(File),
    /// A pipe with a name, not yet opened.
    Pipe(PathBuf),
}

/// Follows links to a file, which may not be there yet.
pub fn target(path: &Path) -> io::Result<Target> {
    let path = followed(path)?;
    if let Some(stream) = stream(&path)? {
        return Ok(Target::Open(stream));
    }
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if is_pipe(&found) => Ok(Target::Pipe(path)),
        Ok(found) if !found.is_file() => {
            let open = OpenOptions::new().write(true).open(&path)?;
            Ok(Target::Open(open))
        }
        // No file has such a name.
        Err(_) if path.to_string_lossy().ends_with(is_separator) => {
            Err(io::ErrorKind::IsADirectory.into())
        }
        // What else is wrong with it shows as soon as its folder is written to.
        Ok(_) | Err(_) => Ok(Target::File(path)),
    }
}

/// What stands for standard output by custom. A file of that name is `./-`.
const DASH: &str = "-";

/// The end of all links of a name; streams of the process are not looked behind.
pub fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = match cfg!(unix) && path == Path::new(DASH) {
        true => PathBuf::from("/dev/stdout"),
        false => path.to_owned(),
    };
    for _ in 0..MAX_LINKS {
        if stream_number(&path).is_some() {
            return Ok(path);
        }
        match fs::read_link(&path) {
            Ok(next) => path = folder(&path).join(next),
            // No link, or nothing at all.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("there are too many links"))
}

/// Brings the names in a folder to the disk, which a file's own bytes do not bring there: without it a loss of power
/// can undo a rename. Folders that may be written to and not read, file systems that cannot do so, and systems that open
/// no folders are left alone: the file is where it belongs.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder)
        && let Err(error) = folder.sync_all()
        && !matches!(
            error.kind(),
            io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
        )
    {
        return Err(error);
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// The folder of a name.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Whether a name is that of standard output, at the end of all links.
pub fn is_standard_output(path: &Path) -> bool {
    followed(path).is_ok_and(|path| stream_number(&path) == Some(1))
}

#[cfg(unix)]
fn is_pipe(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_: &fs::Metadata) -> bool {
    false
}

/// The number of a stream that the process has open, if the name is one's, as /dev/stdout leads to.
fn stream_number(path: &Path) -> Option<u32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let folder = folder(path).canonicalize().ok()?;
    let is_folder = |streams: &&str| Path::new(streams).canonicalize().is_ok_and(|s| s == folder);
    let streams = ["/proc/self/fd", "/dev/fd"];
    streams.iter().any(is_folder).then_some(number)
}

/// A stream that the process has open. Opened by its name a file would be written from its beginning, over what went
/// there before.
#[cfg(unix)]
fn stream(path: &Path) -> io::Result<Option<File>> {
    use std::os::fd::AsFd;
    let owned = match stream_number(path) {
        None => return Ok(None),
        Some(1) => io::stdout().as_fd().try_clone_to_owned()?,
        Some(2) => io::stderr().as_fd().try_clone_to_owned()?,
        Some(_) => return OpenOptions::new().append(true).open(path).map(Some),
    };
    Ok(Some(owned.into()))
}

#[cfg(not(unix))]
fn stream(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}
