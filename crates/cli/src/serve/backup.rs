//! `fhaim admin backup` and `fhaim admin restore`: copies the data of `fhaim up` while it runs, and restores it.
//!
//! Each service's database is copied before its blobs, because a blob is written before the row that refers to it.
//! The crypto service is copied last: the other services catch up with a ledger that is ahead of them, but refuse one
//! that is behind.

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
  fhaim admin backup --data-dir fhaim-data --out /backup/2026-11-22

The backup has databases and blobs in OUT/SERVICE, and sealing keys in OUT/keys. Store the keys in a
different place: anyone with both can read the tables. `fhaim up` may run during the backup. For Postgres
and S3, use their own tools, in the order that infra/README.md describes.";

pub const RESTORE_EXAMPLES: &str = "\
Examples:
  fhaim admin restore --from /backup/2026-11-22 --data-dir fhaim-data
  fhaim admin compare --data-dir fhaim-data

A restored ledger lacks the budget that was spent after the backup. If a request later carries a newer
receipt of a dataset, that dataset is frozen permanently, and only its finished tables remain. If no
program has a newer receipt, nobody notices the lost spending. Therefore restore only lost data, and use
the latest backup.";

/// Flags of `admin backup`.
#[derive(Debug, Args)]
pub struct BackupArguments {
    /// Data folder of `fhaim up`
    #[arg(long, value_name = "DIR", default_value = "fhaim-data")]
    pub data_dir: PathBuf,
    /// Folder for the backup. It must not exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Flags of `admin restore`.
#[derive(Debug, Args)]
pub struct RestoreArguments {
    /// Folder of the backup
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// New data folder for `fhaim up`. It must not exist
    #[arg(long, value_name = "DIR", default_value = "fhaim-data")]
    pub data_dir: PathBuf,
}

/// Returns the services with data in a folder, the crypto service last.
fn order(folder: &Path) -> Vec<Service> {
    let is_there = |service: &Service| folder.join(service.as_str()).exists();
    let mut all = vec![Service::Generation, Service::Computation];
    all.extend(Some(Service::Witness).filter(is_there));
    all.extend(Service::KEYSHARES.into_iter().filter(is_there));
    all.push(Service::Crypto);
    all
}

/// Runs `fhaim admin backup`.
pub async fn backup(arguments: &BackupArguments) -> Result<(), Error> {
    let (data, out) = (&arguments.data_dir, &arguments.out);
    // Fail before creating anything.
    for service in order(data) {
        up::stored(data, service)?;
    }
    let partial = begin(out)?;
    let files = copy_services(data, &partial).await?;
    finish(&partial, out)?;
    output::print(&format!(
        "{}: {} and {files} blobs; store {} in a different place\n",
        out.display(),
        counted(order(data).len(), "database"),
        out.join("keys").display()
    ))
}

/// Creates a temporary folder next to `out`, so that `out` appears complete or not at all.
///
/// Removes the temporary folder of an earlier, interrupted copy.
fn begin(out: &Path) -> Result<PathBuf, Error> {
    if out.exists() {
        return Err(Error::Usage(format!(
            "{} already exists: name a new folder",
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

/// Renames a complete copy to `out`.
fn finish(partial: &Path, out: &Path) -> Result<(), Error> {
    fs::rename(partial, out).map_err(|source| Error::Write {
        path: out.to_owned(),
        source,
    })
}

/// Removes the temporary folder of an interrupted copy, if it exists.
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

/// Copies databases, blobs and keys of all services, and returns the number of blobs.
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

/// Runs `fhaim admin restore`.
pub async fn restore(arguments: &RestoreArguments) -> Result<(), Error> {
    let (from, data) = (&arguments.from, &arguments.data_dir);
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
            let reason = "the sealing key is missing: copy it to this place";
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
        "{}: restored; check the services with `fhaim admin compare --data-dir {}`\n",
        data.display(),
        data.display()
    ))
}

/// Copies all files below a folder, which must exist, and returns their number.
///
/// Ignores files and folders that disappear during the copy, because their owner has deleted them.
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

/// Copies a file to a file that only its owner can read, and flushes it to disk.
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

    /// Deleting a dataset during the copy also deletes its folder.
    #[test]
    fn folders_that_disappear_during_the_copy_are_ignored() {
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
            "a missing folder is not an empty folder"
        );
    }
}
