//! What each service keeps on a disk of its own, which can be full.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use fhaim_kit::NAMES;
use tempfile::TempDir;

/// Room on a disk that is not full: ten minutes of uploads, which nobody deletes. It is memory, and only
/// what is used of it.
const SIZE: &str = "8g";

/// Tries to make a disk as large as what is on it, while that grows.
const TRIES: usize = 20;

/// A file system in memory for each service; unmounted when dropped.
pub struct Disks {
    folder: TempDir,
}

impl Disks {
    /// Mounts them.
    ///
    /// # Errors
    /// Why that cannot be done here: only root may, and not in every container.
    pub fn mount() -> Result<Self, String> {
        let disks = Self {
            folder: TempDir::new().map_err(|error| error.to_string())?,
        };
        for path in disks.homes() {
            std::fs::create_dir(&path).map_err(|error| error.to_string())?;
            let size = format!("size={SIZE}");
            said(
                Command::new("mount")
                    .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                    .arg(&path),
            )?;
        }
        Ok(disks)
    }

    /// Where the services keep things.
    pub fn homes(&self) -> [PathBuf; 3] {
        NAMES.map(|name| self.folder.path().join(name))
    }

    /// Leaves a service no room but what it uses.
    ///
    /// # Errors
    /// What the system says.
    pub fn fill(&self, service: usize) -> Result<(), String> {
        let path = &self.homes()[service];
        let mut last = String::new();
        for _ in 0..TRIES {
            match resize(path, &used(path)?.to_string()) {
                Ok(()) => return Ok(()),
                // What the service wrote meanwhile is more than the new size.
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Makes room again.
    ///
    /// # Errors
    /// What the system says.
    pub fn free(&self, service: usize) -> Result<(), String> {
        resize(&self.homes()[service], SIZE)
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for path in self.homes() {
            // One that was never mounted has nothing to unmount.
            let _ = said(Command::new("umount").arg("-l").arg(path));
        }
    }
}

fn resize(path: &Path, size: &str) -> Result<(), String> {
    let option = format!("remount,size={size}");
    said(Command::new("mount").args(["-o", &option]).arg(path)).map(|_| ())
}

/// Bytes in use on the disk mounted at a path; never none, which would mean no limit.
fn used(path: &Path) -> Result<u64, String> {
    let text = said(
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

/// What a command says that succeeds.
fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
