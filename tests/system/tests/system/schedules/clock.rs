//! Sets the time of day that each service sees, with libfaketime. Monotonic clocks are not affected.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use fhaim_kit::NAMES;
use tempfile::TempDir;

/// Paths of the build for programs with threads in several distributions.
const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// A clock for each service.
pub struct Clocks {
    folder: TempDir,
    library: &'static str,
}

impl Clocks {
    /// Returns clocks that are correct.
    ///
    /// # Errors
    /// If libfaketime is not installed or a file cannot be written.
    pub fn new() -> Result<Self, String> {
        let library = LIBRARIES.into_iter().find(|path| Path::new(path).exists());
        let clocks = Self {
            library: library.ok_or("libfaketime is not installed (Debian's package faketime)")?,
            folder: TempDir::new().map_err(|error| error.to_string())?,
        };
        for service in 0..NAMES.len() {
            clocks.set(service, 0).map_err(|error| error.to_string())?;
        }
        Ok(clocks)
    }

    fn path(&self, service: usize) -> PathBuf {
        self.folder.path().join(NAMES[service])
    }

    /// Returns the environment variables for a service's process.
    pub fn variables(&self, service: usize) -> Vec<(String, String)> {
        let path = self.path(service).display().to_string();
        let variables = [
            ("LD_PRELOAD", self.library),
            ("FAKETIME_TIMESTAMP_FILE", &path),
            ("FAKETIME_CACHE_DURATION", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("NO_FAKE_STAT", "1"),
        ];
        variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    }

    /// Sets a service's clock ahead of the real time by this number of seconds, or behind if it is negative.
    ///
    /// # Errors
    /// If the file with the offset cannot be written.
    pub fn set(&self, service: usize, seconds: i64) -> io::Result<()> {
        let path = self.path(service);
        let new = path.with_extension("new");
        fs::write(&new, format!("{seconds:+}\n"))?;
        fs::rename(new, path)
    }
}
