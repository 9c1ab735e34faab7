//! `fhaim admin backup` and `fhaim admin restore`: copies the data of `fhaim up` while it runs, and puts it back.
//!
//! Each service's database is copied before its blobs: a blob is there before the row that names it.
//! The crypto service goes last: the others catch up with a ledger that is ahead of them, and refuse
//! one that is behind.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use clap::Args;
use fhaim_api::token::Service;
use fhaim_domain::counted;
use fhaim_platform::Failure;
use fhaim_platform::config::Database;
use fhaim_platform::store::Store;

use super::up;
use crate::{error::Error, output};

pub const BACKUP_EXAMPLES: &str = "\
Examples:
  fhaim admin backup --data fhaim-data --out /backup/2026-11-22

Databases and blobs go to OUT/SERVICE, sealing keys to OUT/keys: keep those apart from the rest, or
the copy is as good as the tables. `fhaim up` may run meanwhile. For Postgres and S3 use their own
tools: infra/README.md says in which order.";

pub const RESTORE_EXAMPLES: &str = "\
Examples:
  fhaim admin restore --from /backup/2026-11-22 --data fhaim-data
  fhaim admin compare --data fhaim-data

A restored ledger forgets what was spent after it was copied. A dataset that has moved on since is
frozen for good at the first request that carries a later receipt: its finished tables stay. Where no
program has one, nothing is noticed: restore only what is lost, and as late a copy as there is.";

/// Flags of `admin backup`.
#[derive(Debug, Args)]
pub struct BackupArguments {
    /// Folder of `fhaim up`
    #[arg(long, value_name = "DIR", default_value = "fhaim-data")]
    pub data: PathBuf,
    /// Folder for the copy. It must not exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Flags of `admin restore`.
#[derive(Debug, Args)]
pub struct RestoreArguments {
    /// Folder of the copy
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// Folder for `fhaim up`. It must not exist
    #[arg(long, value_name = "DIR", default_value = "fhaim-data")]
    pub data: PathBuf,
}

/// The services that a folder has parts of, the crypto service last.
fn order(folder: &Path) -> Vec<Service> {
    let is_there = |service: &Service| folder.join(service.as_str()).exists();
    let mut all = vec![Service::Generation, Service::Computation];
    all.extend(Some(Service::Witness).filter(is_there));
    all.extend(Service::KEYSHARES.into_iter().filter(is_there));
    all.push(Service::Crypto);
    all
}

/// Copies what `fhaim up` keeps.
pub async fn backup(arguments: &BackupArguments) -> Result<(), Error> {
    let (data, out) = (&arguments.data, &arguments.out);
    // Refused before anything is made.
    for service in order(data) {
        up::stored(data, service)?;
    }
    let partial = begin(out)?;
    let files = copy_services(data, &partial).await?;
    finish(&partial, out)?;
    output::print(&format!(
        "{}: {} and {files} blobs; keep {} apart from the rest\n",
        out.display(),
        counted(order(data).len(), "database"),
        out.join("keys").display()
    ))
}

/// A folder for what is copied to `out`, beside it: `out` is there whole or not at all. One that was
/// broken off is in nobody's way.
fn begin(out: &Path) -> Result<PathBuf, Error> {
    if out.exists() {
        return Err(Error::Usage(format!(
            "{} is there already: name a folder that is not",
            out.display()
        )));
    }
    let mut name = std::ffi::OsString::from(".");
    name.push(out.file_name().unwrap_or_default());
    name.push(".fhaim-partial");
    let partial = out.with_file_name(name);
    remove(&partial)?;
    up::make_folder(&partial)?;
    Ok(partial)
}

/// Gives a whole copy its place.
fn finish(partial: &Path, out: &Path) -> Result<(), Error> {
    fs::rename(partial, out).map_err(|source| Error::Write {
        path: out.to_owned(),
        source,
    })
}

/// Removes what an earlier copy left that was broken off.
fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Write {
            path: folder.to_owned(),
            source,
        }),
        Ok(()) => Ok(()),
    }
}

/// Copies databases, blobs and keys of all services; how many blobs.
async fn copy_services(data: &Path, out: &Path) -> Result<usize, Error> {
    let keys = out.join("keys");
    up::make_folder(&keys)?;
    let mut files = 0;
    for service in order(data) {
        let (from, to) = (data.join(service.as_str()), out.join(service.as_str()));
        up::make_folder(&to)?;
        let database = up::stored(data, service)?.database;
        let copied = Store::copy(&database, &to.join("store.db")).await;
        copied.map_err(Failure::from)?;
        files += copy(&from.join("blobs"), &to.join("blobs"))?;
        copy_file(
            &from.join("sealing.key"),
            &keys.join(format!("{service}.key")),
        )?;
    }
    let first = data.join("first-account");
    if first.exists() {
        copy_file(&first, &keys.join("first-account"))?;
    }
    Ok(files)
}

/// Puts a copy where `fhaim up` finds it.
pub async fn restore(arguments: &RestoreArguments) -> Result<(), Error> {
    let (from, data) = (&arguments.from, &arguments.data);
    let keys = from.join("keys");
    for service in order(from) {
        let path = from.join(service.as_str()).join("store.db");
        let url = format!("sqlite://{}", path.display());
        let connections = 1;
        let whole = Store::check_whole(&Database { url, connections }).await;
        whole.map_err(|error| Error::Content {
            path,
            problem: error.to_string(),
        })?;
        let key = keys.join(format!("{service}.key"));
        if !key.exists() {
            let reason = "there is no sealing key: put the one that was kept apart there";
            return Err(Error::Usage(format!("{}: {reason}", key.display())));
        }
    }
    let partial = begin(data)?;
    for service in order(from) {
        let (from, to) = (from.join(service.as_str()), partial.join(service.as_str()));
        up::make_folder(&to)?;
        copy_file(&from.join("store.db"), &to.join("store.db"))?;
        copy(&from.join("blobs"), &to.join("blobs"))?;
        copy_file(
            &keys.join(format!("{service}.key")),
            &to.join("sealing.key"),
        )?;
    }
    let first = keys.join("first-account");
    if first.exists() {
        copy_file(&first, &partial.join("first-account"))?;
    }
    finish(&partial, data)?;
    output::print(&format!(
        "{}: restored; `fhaim admin compare --data {}` holds the services against each other\n",
        data.display(),
        data.display()
    ))
}

/// Copies all files below a folder, which must be there; how many. What goes meanwhile was deleted by
/// its owner: files, and folders with all that is in them.
fn copy(from: &Path, to: &Path) -> Result<usize, Error> {
    up::make_folder(to)?;
    let unreadable = |source| Error::Read {
        path: from.to_owned(),
        source,
    };
    let mut files = 0;
    for entry in fs::read_dir(from).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let copied = match path.is_dir() {
            true => copy(&path, &target),
            false => copy_file(&path, &target).map(|()| 1),
        };
        match copied {
            Err(Error::Read { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            copied => files += copied?,
        }
    }
    Ok(files)
}

/// Copies a file for its owner alone, and waits until it is on the disk.
fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    let bytes = fs::read(from).map_err(|source| Error::Read {
        path: from.to_owned(),
        source,
    })?;
    up::write_secret(to, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dataset that is deleted while the folder is copied takes its folder with it.
    #[test]
    fn folders_that_go_meanwhile_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        let from = place.path().join("from");
        fs::create_dir_all(from.join("stays/1")).unwrap();
        fs::write(from.join("stays/1/blob"), "here").unwrap();
        let busy = {
            let from = from.clone();
            std::thread::spawn(move || {
                for round in 0..4000 {
                    let dataset = from.join(format!("{}", round % 20));
                    let _ = fs::create_dir_all(dataset.join("objects"));
                    let _ = fs::write(dataset.join("objects/blob"), "soon gone");
                    let _ = fs::remove_dir_all(&dataset);
                }
            })
        };
        for copies in 0.. {
            let to = place.path().join(format!("to {copies}"));
            assert!(copy(&from, &to).unwrap() >= 1);
            assert_eq!(fs::read_to_string(to.join("stays/1/blob")).unwrap(), "here");
            if busy.is_finished() {
                break;
            }
        }
        busy.join().unwrap();
        let none = copy(&from.join("none"), &place.path().join("none"));
        assert!(
            matches!(none, Err(Error::Read { .. })),
            "a folder that is not there is no empty one"
        );
    }
}
