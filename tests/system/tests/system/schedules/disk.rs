//! A separate disk for the data of each service, which the test can fill.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use fhaim_kit::NAMES;
use tempfile::TempDir;

/// Size of a disk that is not full. It has room for ten minutes of uploads, which are not deleted. The disk is in
/// memory, and takes only the memory for its files.
const SIZE: &str = "8g";

/// Number of tries to shrink a disk to its used size, because that size can grow in between.
const TRIES: usize = 20;

/// A file system in memory for each service. Unmounted when dropped.
pub struct Disks {
    folder: TempDir,
}

impl Disks {
    /// Mounts a disk for each service.
    ///
    /// # Errors
    /// If mounting fails. Only root can mount, and not in every container.
    pub fn mount() -> Result<Self, String> {
        let disks = Self {
            folder: TempDir::new().map_err(|error| error.to_string())?,
        };
        // A Postgres server, which runs as another user, can have its data there.
        fs::set_permissions(disks.folder.path(), Permissions::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        for path in disks.homes() {
            fs::create_dir(&path).map_err(|error| error.to_string())?;
            let size = format!("size={SIZE}");
            output_of(
                Command::new("mount")
                    .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                    .arg(&path),
            )?;
        }
        Ok(disks)
    }

    /// Returns the data folders of the services.
    pub fn homes(&self) -> [PathBuf; 3] {
        NAMES.map(|name| self.folder.path().join(name))
    }

    /// Shrinks a service's disk to the space that it uses.
    ///
    /// # Errors
    /// The system's message, if the disk cannot be resized.
    pub fn fill(&self, service: usize) -> Result<(), String> {
        let path = &self.homes()[service];
        let mut last = String::new();
        for _ in 0..TRIES {
            match resize(path, &used(path)?.to_string()) {
                Ok(()) => return Ok(()),
                // The service wrote in the meantime, and uses more than the new size.
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Gives a service's disk its full size again.
    ///
    /// # Errors
    /// The system's message, if the disk cannot be resized.
    pub fn free(&self, service: usize) -> Result<(), String> {
        resize(&self.homes()[service], SIZE)
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for path in self.homes() {
            // Fails if the disk was never mounted.
            let _ = output_of(Command::new("umount").arg("-l").arg(path));
        }
    }
}

fn resize(path: &Path, size: &str) -> Result<(), String> {
    let option = format!("remount,size={size}");
    output_of(Command::new("mount").args(["-o", &option]).arg(path)).map(|_| ())
}

/// Returns the number of bytes in use on the disk mounted at a path. The result is never 0, because a size of 0 means
/// no limit.
fn used(path: &Path) -> Result<u64, String> {
    let text = output_of(
        Command::new("stat")
            .args(["-f", "-c", "%b %f %S"])
            .arg(path),
    )?;
    let numbers: Vec<u64> = text.split_whitespace().flat_map(str::parse).collect();
    match numbers[..] {
        [blocks, free, size] => Ok(((blocks - free) * size).max(size)),
        _ => Err(text),
    }
}

/// Runs a command, and returns its standard output, or its standard error if it fails.
fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
