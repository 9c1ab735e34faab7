//! Files that a program writes: whole or not at all.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::TempPath;

use crate::{
    Error, output,
    target::{Target, folder, sync_folder, target},
};

/// A file being written, which comes to its name when it is whole, in the place of any file of that name. Dropped
/// without [`StagedFile::commit`] it leaves nothing behind; nor does a program that is killed, where files can be without a
/// name (on Linux, but for some network file systems).
///
/// A link keeps being one: the file that it leads to is replaced. What is no file (a pipe, a device, standard output) is
/// written to as it is, while it is made. A pipe is opened at its first byte, or at its end if there is none: two of them
/// can be read one after the other, in the order in which they are written, if each has its end ([`StagedFile::end`]) before
/// the next has its first byte.
#[derive(Debug)]
pub struct StagedFile {
    writer: BufWriter<Sink>,
    place: Place,
    /// As it was named.
    path: PathBuf,
}

/// What bytes are written to.
#[derive(Debug)]
enum Sink {
    Open(File),
    /// A pipe that nothing was written to: whoever opens it waits for a reader, who may wait for another result.
    Pipe(PathBuf),
    /// A pipe that has its end.
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

/// Where the bytes are until they are all there.
#[derive(Debug)]
enum Place {
    /// In a file without a name, in the folder of the file at this path.
    Unnamed(PathBuf),
    /// Under a temporary name in that folder.
    Temporary(TempPath, PathBuf),
    /// Where they were to go.
    Gone,
    /// In a pipe, which ends with the last of them.
    Pipe,
}

/// A whole file under a temporary name, closed, and where it belongs; nothing where it is there already. Dropped it leaves
/// nothing behind, but a program that is killed leaves the temporary name.
#[derive(Debug)]
pub struct Whole {
    place: Option<(TempPath, PathBuf)>,
    path: PathBuf,
}

/// Who may read a file: everyone whom the process's mask lets, or its owner alone.
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
    /// Starts a file: made before long work, it shows early that the folder cannot be written to.
    ///
    /// # Errors
    /// [`Error::NoFolder`]; [`Error::Folder`]; [`Error::Write`] for whatever the system refuses.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::start(path, Readers::Usual)
    }

    /// As [`StagedFile::create`], a file that its owner alone may read.
    ///
    /// # Errors
    /// As [`StagedFile::create`].
    pub fn create_private(path: &Path) -> Result<Self, Error> {
        Self::start(path, Readers::Owner)
    }

    fn start(path: &Path, readers: Readers) -> Result<Self, Error> {
        let refuse = |source| Error::Write {
            path: path.to_owned(),
            source,
        };
        let target = target(path).map_err(|source| match source.kind() {
            io::ErrorKind::IsADirectory => Error::Folder(path.to_owned()),
            _ => refuse(source),
        });
        let real = match target? {
            Target::File(real) => real,
            Target::Open(file) => {
                output::take(path);
                return Ok(Self::new(path, Sink::Open(file), Place::Gone));
            }
            Target::Pipe(pipe) => return Ok(Self::new(path, Sink::Pipe(pipe), Place::Pipe)),
        };
        let folder = folder(&real);
        if !folder.is_dir() {
            return Err(Error::NoFolder {
                path: path.to_owned(),
                folder: folder.to_owned(),
            });
        }
        if let Some(file) = unnamed(folder, readers) {
            return Ok(Self::new(path, Sink::Open(file), Place::Unnamed(real)));
        }
        let made = temporary(readers).tempfile_in(folder);
        // The system's own words would name the temporary file.
        let made = made.map_err(|error| refuse(error.kind().into()))?;
        let (file, name) = made.into_parts();
        let file = Sink::Open(file);
        Ok(Self::new(path, file, Place::Temporary(name, real)))
    }

    fn new(path: &Path, sink: Sink, place: Place) -> Self {
        Self {
            writer: BufWriter::new(sink),
            place,
            path: path.to_owned(),
        }
    }

    /// Writes the whole content from memory.
    ///
    /// # Errors
    /// [`Error::Write`]: the disk is full, or nobody reads the pipe any more.
    pub fn write_bytes(&mut self, content: &[u8]) -> Result<(), Error> {
        let written = self.write_all(content);
        written.map_err(|source| self.refused(source))
    }

    /// Another handle of the same file, for a writer that does not block. Whoever waits for a pipe's reader waits here.
    ///
    /// # Errors
    /// [`Error::Write`] where the process has too many files open.
    pub fn handle(&mut self) -> Result<File, Error> {
        let file = self.writer.get_mut().file();
        let handle = file.and_then(|file| file.try_clone());
        handle.map_err(|source| self.refused(source))
    }

    /// Says that nothing more is written: whoever reads a pipe gets its end, before other results are begun with.
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
            // An empty one has a reader too, who waits for its end.
            self.writer.get_mut().file()?;
            *self.writer.get_mut() = Sink::Ended;
            self.place = Place::Gone;
        }
        Ok(())
    }

    /// Gives the file its final name, in the place of any file of that name.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn commit(self) -> Result<(), Error> {
        commit_all([self])
    }

    /// Brings all bytes to the disk, under a temporary name, and closes the file: of thousands that come to their names
    /// together no more than one need be open.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(mut self) -> Result<Whole, Error> {
        let place = self.named();
        let place = place.map_err(|source| self.refused(source))?;
        Ok(Whole {
            place,
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
                // The mode is that of the file, which is there.
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
        // What is given up is not flushed into a pipe, for whose reader it would wait.
        if matches!(sink, Sink::Pipe(_)) {
            *sink = Sink::Ended;
        }
    }
}

/// Bytes go where they are until the file is whole.
impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Whole {
    /// Its folder, where it has one whose names are now others.
    fn rename(self) -> Result<Option<PathBuf>, Error> {
        let Some((name, real)) = self.place else {
            return Ok(None);
        };
        name.persist(&real).map_err(|error| Error::Write {
            path: self.path,
            source: error.error,
        })?;
        Ok(Some(folder(&real).to_owned()))
    }
}

/// Gives all files their final names, when every one of them is whole and on the disk: before that none has it. A
/// program that is killed between two renames leaves some of the files, each whole.
///
/// # Errors
/// [`Error::Write`] for the first that cannot be written.
pub fn commit_all(files: impl IntoIterator<Item = StagedFile>) -> Result<(), Error> {
    let whole = files.into_iter().map(StagedFile::finish);
    rename_all(whole.collect::<Result<Vec<_>, _>>()?)
}

/// As [`commit_all`], of files that are finished.
///
/// # Errors
/// [`Error::Write`] for the first that cannot be renamed, or a folder whose names cannot be brought to the disk.
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

/// What the names of files begin with that are not whole yet, where the system has no files without names.
pub(crate) const UNFINISHED: &str = ".fhaim-";

fn temporary(readers: Readers) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The rights of any new file, less the process's mask.
        builder.permissions(std::fs::Permissions::from_mode(readers.mode()));
    }
    builder
}

/// A file without a name, which is gone with the program however that ends; none where it could get no name later.
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

/// The name by which the process knows an open file.
#[cfg(target_os = "linux")]
fn stream_of(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives a file without a name one that no other has.
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
