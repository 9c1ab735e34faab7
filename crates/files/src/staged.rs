//! Output files that appear complete or not at all.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use tempfile::TempPath;

use crate::{
    Error, output,
    target::{Target, folder, followed, is_regular_output, sync_folder, target},
};

/// What happens to a file that has the name of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the output is refused.
    Refuse,
    /// The output replaces it.
    Replace,
}

/// The option to replace files.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OverwriteArguments {
    /// Replace output files that exist
    #[arg(long)]
    pub force: bool,
}

impl OverwriteArguments {
    /// Returns what happens to files that exist.
    pub fn existing(self) -> Existing {
        match self.force {
            true => Existing::Replace,
            false => Existing::Refuse,
        }
    }
}

/// An output file that gets its name only when it is complete.
///
/// A file of that name is refused or replaced, as [`Existing`] says. Pipes, devices and standard output never count as
/// existing files.
///
/// Dropping it without [`StagedFile::commit`] leaves nothing behind. A killed program leaves nothing behind either,
/// where the system supports files without a name (Linux, except on some network file systems).
///
/// A symbolic link is kept, and the file that it leads to is replaced. A pipe, a device or standard output is written
/// to directly. A pipe is opened at its first byte, or at its end if it is empty. Two pipes can therefore be read one
/// after the other, in the order in which they are written, if each ends ([`StagedFile::end`]) before the first byte of
/// the next.
#[derive(Debug)]
pub struct StagedFile {
    writer: BufWriter<Sink>,
    place: Place,
    existing: Existing,
    /// The path as the user named it.
    path: PathBuf,
}

/// The destination of written bytes.
#[derive(Debug)]
enum Sink {
    Open(File),
    /// A pipe without any bytes yet. Opening it waits for its reader, which may wait for another result.
    Pipe(PathBuf),
    /// A pipe that was ended.
    Ended,
}

impl Sink {
    fn file(&mut self) -> io::Result<&mut File> {
        if let Self::Pipe(path) = self {
            *self = Self::Open(OpenOptions::new().write(true).open(path)?);
        }
        match self {
            Self::Open(file) => Ok(file),
            Self::Pipe(_) | Self::Ended => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Open(file) => file.flush(),
            Self::Pipe(_) | Self::Ended => Ok(()),
        }
    }
}

/// Where the bytes are until the file is complete.
#[derive(Debug)]
enum Place {
    /// In a file without a name, in the folder of this final path.
    Unnamed(PathBuf),
    /// In a file with a temporary name, in the folder of this final path.
    Temporary(TempPath, PathBuf),
    /// At their destination.
    Gone,
    /// In a pipe that closes after the last byte.
    Pipe,
}

/// A complete and closed file that still has a temporary name.
///
/// Dropping it leaves nothing behind, but a killed program leaves the temporary file.
#[derive(Debug)]
pub struct Whole {
    /// Temporary name and final path; `None` if the content is already at its destination.
    place: Option<(TempPath, PathBuf)>,
    existing: Existing,
    path: PathBuf,
}

/// Who may read a file: everyone that the process's umask allows, or only the owner.
#[derive(Clone, Copy)]
enum Readers {
    Usual,
    Owner,
}

impl Readers {
    fn mode(self) -> u32 {
        match self {
            Self::Usual => 0o666,
            Self::Owner => 0o600,
        }
    }
}

impl StagedFile {
    /// Starts a file. Call it before long work, so that a folder without write access fails early.
    ///
    /// # Errors
    /// [`Error::Exists`]; [`Error::NoFolder`]; [`Error::Folder`]; [`Error::Write`] for any other error of the system.
    pub fn create(path: &Path, existing: Existing) -> Result<Self, Error> {
        Self::start(path, existing, Readers::Usual)
    }

    /// Like [`StagedFile::create`], for a file that only its owner may read.
    ///
    /// # Errors
    /// As [`StagedFile::create`].
    pub fn create_private(path: &Path, existing: Existing) -> Result<Self, Error> {
        Self::start(path, existing, Readers::Owner)
    }

    fn start(path: &Path, existing: Existing, readers: Readers) -> Result<Self, Error> {
        let refuse = |source| Error::Write {
            path: path.to_owned(),
            source,
        };
        let target = target(path).map_err(|source| match source.kind() {
            io::ErrorKind::IsADirectory => Error::Folder(path.to_owned()),
            _ => refuse(source),
        });
        let new = |sink, place| Self::new(path, existing, sink, place);
        let real = match target? {
            Target::File(real) => real,
            Target::Open(file) => {
                output::take(path);
                return Ok(new(Sink::Open(file), Place::Gone));
            }
            Target::Pipe(pipe) => return Ok(new(Sink::Pipe(pipe), Place::Pipe)),
        };
        if existing == Existing::Refuse && real.exists() {
            return Err(Error::Exists(path.to_owned()));
        }
        let folder = folder(&real);
        if !folder.is_dir() {
            return Err(Error::NoFolder {
                path: path.to_owned(),
                folder: folder.to_owned(),
            });
        }
        if let Some(file) = unnamed(folder, readers) {
            return Ok(new(Sink::Open(file), Place::Unnamed(real)));
        }
        let made = temporary(readers).tempfile_in(folder);
        // The error's own text would name the temporary file.
        let made = made.map_err(|error| refuse(error.kind().into()))?;
        let (file, name) = made.into_parts();
        Ok(new(Sink::Open(file), Place::Temporary(name, real)))
    }

    fn new(path: &Path, existing: Existing, sink: Sink, place: Place) -> Self {
        Self {
            writer: BufWriter::new(sink),
            place,
            existing,
            path: path.to_owned(),
        }
    }

    /// Writes the whole content from memory.
    ///
    /// # Errors
    /// [`Error::Write`], for example if the disk is full or the pipe's reader has closed it.
    pub fn write_bytes(&mut self, content: &[u8]) -> Result<(), Error> {
        let written = self.write_all(content);
        written.map_err(|source| self.refused(source))
    }

    /// Returns another handle of the same file, for a writer that must not block. Waits here for the reader of a pipe.
    ///
    /// # Errors
    /// [`Error::Write`] if the process has too many open files.
    pub fn handle(&mut self) -> Result<File, Error> {
        let file = self.writer.get_mut().file();
        let handle = file.and_then(|file| file.try_clone());
        handle.map_err(|source| self.refused(source))
    }

    /// Ends the output. The reader of a pipe gets its end now, before the program starts another result.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn end(&mut self) -> Result<(), Error> {
        let ended = self.close_pipe();
        ended.map_err(|source| self.refused(source))
    }

    fn close_pipe(&mut self) -> io::Result<()> {
        if matches!(self.place, Place::Pipe) {
            self.writer.flush()?;
            // An empty pipe also has a reader that waits for its end.
            self.writer.get_mut().file()?;
            *self.writer.get_mut() = Sink::Ended;
            self.place = Place::Gone;
        }
        Ok(())
    }

    /// Gives the file its final name.
    ///
    /// # Errors
    /// [`Error::Exists`] if another program has made a file of that name since; [`Error::Write`].
    pub fn commit(self) -> Result<(), Error> {
        commit_all([self])
    }

    /// Flushes all bytes to disk under a temporary name, and closes the file.
    ///
    /// A program that commits thousands of files together needs only one open file at a time.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(mut self) -> Result<Whole, Error> {
        let place = self.named();
        let place = place.map_err(|source| self.refused(source))?;
        Ok(Whole {
            place,
            existing: self.existing,
            path: self.path.clone(),
        })
    }

    fn named(&mut self) -> io::Result<Option<(TempPath, PathBuf)>> {
        self.close_pipe()?;
        self.writer.flush()?;
        match std::mem::replace(&mut self.place, Place::Gone) {
            Place::Gone | Place::Pipe => Ok(None),
            Place::Temporary(name, real) => {
                self.writer.get_mut().file()?.sync_all()?;
                Ok(Some((name, real)))
            }
            Place::Unnamed(real) => {
                let file = self.writer.get_mut().file()?;
                file.sync_all()?;
                // The file exists already and keeps its mode.
                let name =
                    temporary(Readers::Usual).make_in(folder(&real), |name| link(file, name))?;
                Ok(Some((name.into_temp_path(), real)))
            }
        }
    }

    fn refused(&self, source: io::Error) -> Error {
        Error::Write {
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        let sink = self.writer.get_mut();
        // Flushing an abandoned result into a pipe would wait for its reader.
        if matches!(sink, Sink::Pipe(_)) {
            *sink = Sink::Ended;
        }
    }
}

/// Writes to the staged content, not to the final path.
impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Whole {
    /// Gives the file its final name. Returns the folder, whose names must then be flushed to disk, if it was renamed.
    fn rename(self) -> Result<Option<PathBuf>, Error> {
        let Some((name, real)) = self.place else {
            return Ok(None);
        };
        let named = match self.existing {
            Existing::Refuse => name.persist_noclobber(&real),
            Existing::Replace => name.persist(&real),
        };
        named.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists(self.path),
            _ => Error::Write {
                path: self.path,
                source: error.error,
            },
        })?;
        Ok(Some(folder(&real).to_owned()))
    }
}

/// Gives all files their final names after all of them are complete and on disk.
///
/// No file has its name before that. A program that is killed between two renames leaves some of the files, each
/// complete.
///
/// # Errors
/// [`Error::Write`] for the first file that cannot be written; [`Error::Exists`] as [`StagedFile::commit`].
pub fn commit_all(files: impl IntoIterator<Item = StagedFile>) -> Result<(), Error> {
    let whole = files.into_iter().map(StagedFile::finish);
    rename_all(whole.collect::<Result<Vec<_>, _>>()?)
}

/// Gives finished files their final names; see [`commit_all`].
///
/// # Errors
/// [`Error::Write`] for the first file that cannot be renamed, or a folder whose names cannot be flushed to disk.
pub fn rename_all(files: Vec<Whole>) -> Result<(), Error> {
    let renamed = files.into_iter().map(Whole::rename);
    let folders: Result<BTreeSet<Option<PathBuf>>, Error> = renamed.collect();
    folders?.into_iter().flatten().try_for_each(|folder| {
        sync_folder(&folder).map_err(|source| Error::Write {
            path: folder,
            source,
        })
    })
}

/// Removes the file that an output path leads to, if there is one. Keeps links, pipes and devices.
///
/// # Errors
/// [`Error::Write`].
pub fn remove_output(path: &Path) -> Result<(), Error> {
    let removed = followed(path).and_then(|real| match is_regular_output(&real) {
        true => std::fs::remove_file(real),
        false => Ok(()),
    });
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::Write {
            path: path.to_owned(),
            source: error,
        }),
        _ => Ok(()),
    }
}

/// Prefix of the temporary names of incomplete files, on systems without unnamed files.
pub(crate) const UNFINISHED: &str = ".fhaim-";

fn temporary(readers: Readers) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The process's umask still applies.
        builder.permissions(std::fs::Permissions::from_mode(readers.mode()));
    }
    builder
}

/// Creates a file without a name, which disappears when the program ends, even if it is killed.
///
/// Returns `None` if the file could not get a name later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path, readers: Readers) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file: File = open(folder, flags, Mode::from_raw_mode(readers.mode()))
        .ok()?
        .into();
    stream_of(&file).exists().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path, _: Readers) -> Option<File> {
    None
}

/// Returns the path by which the process can refer to an open file.
#[cfg(target_os = "linux")]
fn stream_of(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives a file without a name a name that no other file has.
#[cfg(target_os = "linux")]
fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(
        CWD,
        stream_of(file),
        CWD,
        name,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests;
