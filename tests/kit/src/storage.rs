//! The stored data of one service under test, and copies of it to which the service can be set back.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use fhaim_platform::{blobs::Blobs, config};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::{Backing, files, until};

/// Where a service stores its data.
pub(crate) enum Storage {
    /// A SQLite database and blobs in the service's folder.
    Folder(PathBuf),
    /// A Postgres database and a prefix of an S3 bucket.
    Servers(Servers),
}

/// A copy of a service's data. Deleted when dropped.
pub struct DataCopy(Copied);

enum Copied {
    Folder(TempDir),
    Servers(Servers),
}

impl Storage {
    /// Returns new storage for a service with this folder. If the service has its own disk, a Postgres database is on
    /// it as well.
    pub(crate) fn new(backing: &Backing, home: &Path, disk: Option<&Path>) -> Self {
        match backing {
            Backing::Local => Self::Folder(home.to_owned()),
            Backing::Remote {
                postgres,
                s3_endpoint,
            } => {
                let tablespace = disk.map(|disk| tablespace(postgres, &disk.join("postgres")));
                let servers = Servers::new(postgres, s3_endpoint, tablespace);
                servers.create_database(None);
                Self::Servers(servers)
            }
        }
    }

    /// Returns the address of the database.
    pub(crate) fn database(&self) -> String {
        match self {
            Self::Folder(home) => format!("sqlite://{}/store.db", home.display()),
            Self::Servers(servers) => servers.address(),
        }
    }

    /// Returns the fields of the configuration of blobs.
    pub(crate) fn blobs(&self) -> String {
        match self {
            Self::Folder(home) => format!("url = \"file://{}/blobs\"", home.display()),
            Self::Servers(servers) => format!(
                "url = \"{}\"\nendpoint = \"{}\"\nregion = \"eu\"",
                servers.prefix(),
                servers.s3_endpoint
            ),
        }
    }

    /// Copies the data of a service that is not running.
    pub(crate) fn copy(&self) -> DataCopy {
        DataCopy(match self {
            Self::Folder(home) => {
                let folder = TempDir::new().unwrap();
                files::copy(home, folder.path());
                Copied::Folder(folder)
            }
            Self::Servers(servers) => {
                let copy = Servers::new(&servers.postgres, &servers.s3_endpoint, None);
                copy.fill_from(servers);
                Copied::Servers(copy)
            }
        })
    }

    /// Replaces the data of a service that is not running.
    pub(crate) fn set_back(&self, copy: &DataCopy) {
        match (self, &copy.0) {
            (Self::Folder(home), Copied::Folder(copy)) => {
                // The folder itself can be a mount point, and stays.
                for entry in fs::read_dir(home).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        fs::remove_dir_all(path).unwrap();
                    } else {
                        fs::remove_file(path).unwrap();
                    }
                }
                files::copy(copy.path(), home);
            }
            (Self::Servers(servers), Copied::Servers(copy)) => {
                servers.remove();
                servers.fill_from(copy);
            }
            _ => panic!("the copy is of other storage"),
        }
    }
}

/// A database of a Postgres server, and a prefix of the bucket `fhaim` of an S3 server. Both are removed when this is
/// dropped.
pub(crate) struct Servers {
    postgres: String,
    s3_endpoint: String,
    /// Name of the database and of the prefix.
    name: String,
    tablespace: Option<String>,
}

impl Servers {
    fn new(postgres: &str, s3_endpoint: &str, tablespace: Option<String>) -> Self {
        Self {
            postgres: postgres.to_owned(),
            s3_endpoint: s3_endpoint.to_owned(),
            name: format!("fhaim_{}", Uuid::new_v4().simple()),
            tablespace,
        }
    }

    fn address(&self) -> String {
        let (base, _) = self.postgres.rsplit_once('/').unwrap();
        format!("{base}/{}", self.name)
    }

    fn prefix(&self) -> String {
        format!("s3://fhaim/{}", self.name)
    }

    /// Creates the database, as a copy of another one if there is one.
    fn create_database(&self, template: Option<&str>) {
        let template = template.map_or_else(String::new, |name| format!(" TEMPLATE {name}"));
        let tablespace = self.tablespace.as_ref();
        let tablespace = tablespace.map_or_else(String::new, |name| format!(" TABLESPACE {name}"));
        let create = format!("CREATE DATABASE {}{template}{tablespace}", self.name);
        // The server cannot create a database while the disk of another one is full.
        until(|| execute(&self.postgres, &create).map_err(|error| error.to_string()));
    }

    /// Creates the database and the blobs as copies of others.
    fn fill_from(&self, other: &Self) {
        // Otherwise connections of a killed service could still be open.
        let end = format!(
            "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE datname = '{}'",
            other.name
        );
        until(|| match execute(&self.postgres, &end) {
            Ok(0) => Ok(()),
            other => Err(format!("connections do not end: {other:?}")),
        });
        self.create_database(Some(&other.name));
        let (from, to) = (other.open_blobs(), self.open_blobs());
        Runtime::new().unwrap().block_on(async {
            for blob in from.list("", Duration::ZERO).await.unwrap() {
                let bytes = from.get(&blob.name).await.unwrap();
                to.put(&blob.name, bytes).await.unwrap();
            }
        });
    }

    fn open_blobs(&self) -> Blobs {
        // Also chooses the process's provider of cryptography, which the client of S3 needs.
        fhaim_platform::peer::http_client().unwrap();
        let config = config::Blobs {
            url: self.prefix(),
            endpoint: Some(self.s3_endpoint.clone()),
            region: Some("eu".to_owned()),
        };
        Blobs::open(&config).unwrap()
    }

    fn remove(&self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        until(|| execute(&self.postgres, &drop).map_err(|error| error.to_string()));
        let blobs = self.open_blobs();
        let deleted = Runtime::new().unwrap().block_on(blobs.delete_folder(""));
        deleted.unwrap();
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.remove();
        if let Some(name) = &self.tablespace {
            execute(&self.postgres, &format!("DROP TABLESPACE {name}")).unwrap();
        }
    }
}

/// Creates a tablespace in a new folder, and returns its name. The server runs on this machine as the user postgres.
fn tablespace(server: &str, folder: &Path) -> String {
    fs::create_dir(folder).unwrap();
    let given = Command::new("chown").arg("postgres").arg(folder).status();
    assert!(given.unwrap().success());
    let name = format!("fhaim_{}", Uuid::new_v4().simple());
    let create = format!("CREATE TABLESPACE {name} LOCATION '{}'", folder.display());
    execute(server, &create).unwrap();
    name
}

/// Runs a statement on a Postgres server, and returns the number of selected rows.
fn execute(server: &str, statement: &str) -> Result<usize, sqlx::Error> {
    Runtime::new().unwrap().block_on(async {
        let mut connection = PgConnection::connect(server).await?;
        let statement = AssertSqlSafe(statement.to_owned());
        let rows = sqlx::query(statement).fetch_all(&mut connection).await?;
        connection.close().await?;
        Ok(rows.iter().filter(|row| !row.is_empty()).count())
    })
}
