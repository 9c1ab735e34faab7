//! Space that is kept free on the disk of a SQLite database, so that data can be deleted and users can sign in when the
//! disk is full.
//!
//! The space is an allocated file. A request that makes room, or that begins a session, removes the file if the disk is
//! full. Until the disk has room for the file again, all other requests that write are refused, so that they do not use
//! the space.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Failure;
use crate::config::Common;
use crate::store;
use crate::threads::blocking;

/// The reserved space of a service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reserve(Option<Arc<Kept>>);

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    bytes: u64,
    /// Held while the file is made or removed.
    changing: Mutex<()>,
}

impl Reserve {
    /// Reserves the configured space, if the database is a file.
    pub fn open(common: &Common) -> Self {
        let file = store::file_of(&common.database.url);
        let kept = file.filter(|_| common.reserve_bytes > 0).map(|file| {
            let mut path = file.into_os_string();
            path.push("-reserve");
            Arc::new(Kept {
                path: path.into(),
                bytes: common.reserve_bytes,
                changing: Mutex::default(),
            })
        });
        let reserve = Self(kept);
        if !reserve.fill() {
            tracing::warn!("the disk has no room to reserve space for deletions and sign-ins");
        }
        reserve
    }

    /// Reserves the space again if the disk has room. Returns whether it is reserved, or need not be.
    pub fn fill(&self) -> bool {
        self.0.as_ref().is_none_or(|kept| kept.fill())
    }

    /// Puts routes behind the rules of the reserved space.
    pub fn around(&self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(self.clone(), make_room))
    }

    /// Gives the space free if the disk is nearly full.
    fn release_if_full(&self) {
        if let Some(kept) = &self.0
            && kept.room() < kept.bytes
        {
            kept.release();
        }
    }
}

impl Kept {
    /// Returns the free bytes of the disk.
    fn room(&self) -> u64 {
        let folder = self
            .path
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        let disk = rustix::fs::statvfs(folder.unwrap_or(Path::new(".")));
        disk.map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn is_kept(&self) -> bool {
        let file = std::fs::metadata(&self.path);
        file.is_ok_and(|file| file.len() == self.bytes)
    }

    fn fill(&self) -> bool {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_kept() {
            return true;
        }
        // A disk with less room would be full again at once.
        if self.room() < self.bytes.saturating_mul(2) {
            return false;
        }
        let allocated = allocate(&self.path, self.bytes);
        if let Err(error) = &allocated {
            tracing::warn!(path = %self.path.display(), %error, "no space could be reserved");
            // The file may not exist.
            let _ = std::fs::remove_file(&self.path);
        }
        allocated.is_ok()
    }

    fn release(&self) {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        match std::fs::remove_file(&self.path) {
            Ok(()) => {
                let bytes = self.bytes;
                tracing::error!(
                    bytes,
                    "the disk is full: its reserved space is used for deletions and sign-ins"
                );
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::error!(%error, "the reserved space could not be used"),
        }
    }
}

/// Makes a file with allocated blocks.
fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    let flags = rustix::fs::FallocateFlags::empty();
    match rustix::fs::fallocate(&file, flags, 0, bytes) {
        // A file system without this call gets the bytes.
        Err(rustix::io::Errno::OPNOTSUPP) => {
            io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut &file)?;
        }
        allocated => allocated?,
    }
    file.sync_all()
}

/// Returns whether a request makes room, or begins or ends a session.
fn may_use_reserve(request: &Request) -> bool {
    let path = request.uri().path();
    match *request.method() {
        Method::DELETE => true,
        Method::POST => path.starts_with("/v1/sessions") || path.ends_with("/cancel"),
        Method::PUT => path.ends_with("/deletion"),
        _ => false,
    }
}

/// Frees the reserved space for a request that may use it. Refuses other requests that write while it is used.
async fn make_room(State(reserve): State<Reserve>, request: Request, next: Next) -> Response {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    if reserve.0.is_none() || reads {
        return next.run(request).await;
    }
    if may_use_reserve(&request) {
        // A failure leaves the space reserved, and the request may fail.
        let _ = blocking(move || reserve.release_if_full()).await;
        return next.run(request).await;
    }
    match blocking(move || reserve.fill()).await {
        Ok(false) => Failure::full().into_response(),
        _ => next.run(request).await,
    }
}
