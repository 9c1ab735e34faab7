//! The time of day as each service sees it, by libfaketime. Clocks that nobody sets go on.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use fhaim_kit::NAMES;
use tempfile::TempDir;

/// Where distributions put it: the build for programs with threads.
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
    /// Clocks that are right.
    ///
    /// # Errors
    /// Why clocks cannot be set here.
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

    /// What a service's process is started with.
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

    /// Sets a service's clock so many seconds before (or, negative, behind) what it is.
    ///
    /// # Errors
    /// Of the file that says so.
    pub fn set(&self, service: usize, seconds: i64) -> io::Result<()> {
        let path = self.path(service);
        let new = path.with_extension("new");
        fs::write(&new, format!("{seconds:+}\n"))?;
        fs::rename(new, path)
    }
}
