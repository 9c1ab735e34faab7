//! Resolves the path of an output.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf, is_separator},
};

/// Maximum number of symbolic links to follow, as in Linux.
const MAX_LINKS: usize = 40;

/// The target of an output path, after following all links.
#[derive(Debug)]
pub enum Target {
    /// A file that can be replaced, or a path where no file exists yet.
    File(PathBuf),
    /// A device or an open stream of the process, which must not be replaced.
    Open(File),
    /// A named pipe, not yet opened.
    Pipe(PathBuf),
}

/// Resolves an output path. The file need not exist.
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
        // A path that ends in a separator is a folder.
        Err(_) if path.to_string_lossy().ends_with(is_separator) => {
            Err(io::ErrorKind::IsADirectory.into())
        }
        // Other problems show when the folder is written to.
        Ok(_) | Err(_) => Ok(Target::File(path)),
    }
}

/// Whether an output path is that of a file, and not of a pipe, a device or an open stream of the process. The file need
/// not exist.
pub fn is_regular_output(path: &Path) -> bool {
    let Ok(path) = followed(path) else {
        return true;
    };
    let is_other = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    stream_number(&path).is_none() && !fs::metadata(&path).is_ok_and(is_other)
}

/// Conventional name of standard output. A file of that name is `./-`.
const DASH: &str = "-";

/// Follows all links of a path, up to an open stream of the process.
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
            // This is not a link, or does not exist.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Flushes the names in a folder to disk.
///
/// Syncing a file does not flush its name, and without this a power loss can undo a rename. The function does nothing
/// for folders without read access, on file systems without support, and on systems that cannot open folders: the file
/// is in place anyway.
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

/// Returns the folder of a path; `.` if the path has none.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Whether a path leads to standard output.
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

/// Returns the file descriptor of an open stream of the process, if the path is one, such as the target of /dev/stdout.
fn stream_number(path: &Path) -> Option<u32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let folder = folder(path).canonicalize().ok()?;
    let is_folder = |streams: &&str| Path::new(streams).canonicalize().is_ok_and(|s| s == folder);
    let streams = ["/proc/self/fd", "/dev/fd"];
    streams.iter().any(is_folder).then_some(number)
}

/// Duplicates an open stream of the process. Opening it by its name would overwrite a file from the beginning.
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
