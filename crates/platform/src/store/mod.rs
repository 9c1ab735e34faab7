//! The database: SQLite or Postgres behind the same statements.
//!
//! Statements use `$1` parameters, 64-bit integers, doubles, text and blobs, which both databases have. They differ
//! only in how a transaction takes its locks, which this module hides. SQLite is opened with a write-ahead log that
//! is flushed at every commit, so a committed ledger entry survives any crash.

use sqlx::any::{AnyPoolOptions, AnyRow};
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Any, AnyPool, AssertSqlSafe, Connection, Executor, Row as _, SqlSafeStr, Transaction};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;
use uuid::Uuid;

use crate::config;
use fhaim_api::token::Service;

mod trouble;

pub use trouble::{Trouble, trouble};

/// A database error.
pub type StoreError = sqlx::Error;

/// The reason why a database was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database failed, or refused a migration.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another build made the database's tables.
    #[error(
        "the database at {address} was made by another build of fhaim, and its tables differ from \
         those of this one ({cause}); run the build that made it, or delete the database (of \
         `fhaim up`: the data folder) and start with an empty one"
    )]
    OtherTables {
        /// Address of the database, without a password.
        address: String,
        /// The migration that differs.
        cause: MigrateError,
    },
    /// The database of another service.
    #[error(
        "the database at {address} belongs to the {found} service, and not to the {wanted} service: give the \
         configuration of the {wanted} service"
    )]
    OtherService {
        /// Address of the database, without a password.
        address: String,
        /// The service that the database belongs to.
        found: String,
        /// The service that opens it.
        wanted: Service,
    },
}

/// A row of a result.
pub type Row = AnyRow;

/// A transaction. It is rolled back unless it is committed.
pub type Tx = Transaction<'static, Any>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Sqlite,
    Postgres,
}

/// A migration: its version, its name, and its statements for SQLite and for Postgres.
///
/// A database runs each version once. The platform's versions are below [`Step::FIRST_OF_SERVICE`].
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The version. Steps run in ascending order.
    pub version: i64,
    /// The name of the step's files.
    pub name: &'static str,
    /// Statements for SQLite.
    pub sqlite: &'static str,
    /// Statements for Postgres.
    pub postgres: &'static str,
}

impl Step {
    /// The first version of a service's own steps.
    pub const FIRST_OF_SERVICE: i64 = 1000;
}

/// Makes the migration of a version from the files `migrations/{sqlite,postgres}/<name>.sql`.
#[macro_export]
macro_rules! step {
    ($version:expr, $name:literal) => {
        $crate::store::Step {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../migrations/sqlite/",
                $name,
                ".sql"
            )),
            postgres: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../migrations/postgres/",
                $name,
                ".sql"
            )),
        }
    };
}

/// The tables that every service has.
const PLATFORM: Step = crate::step!(1, "platform");

/// Installs the database drivers once.
static DRIVERS: Once = Once::new();

/// A connection pool. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    dialect: Dialect,
    /// Address of the database, for messages.
    address: Arc<str>,
    /// Whether deleted data may still be in SQLite's log.
    unforgotten: Arc<AtomicBool>,
}

/// Number of attempts to truncate SQLite's log, and the pause between them.
const LOG_TRIES: usize = 20;
const LOG_PAUSE: Duration = Duration::from_millis(50);

impl Store {
    /// Connects, and runs the steps of the platform and the service that the database has not run.
    ///
    /// # Errors
    /// [`OpenError::Store`] if there is no connection or a step fails. [`OpenError::OtherTables`] for a database that
    /// has run other steps than these.
    pub async fn open(config: &config::Database, steps: &[Step]) -> Result<Self, OpenError> {
        let store = Self::connect(config).await?;
        store.migrate(steps).await?;
        // The last process may have been killed before it did this.
        store.forget_deleted().await?;
        Ok(store)
    }

    /// Like [`Store::open`], and checks that the database belongs to a service, or is new.
    ///
    /// # Errors
    /// [`OpenError::OtherService`] for the database of another service. The errors of [`Store::open`].
    pub async fn open_of(
        wanted: Service,
        config: &config::Database,
        steps: &[Step],
    ) -> Result<Self, OpenError> {
        let store = Self::connect(config).await?;
        // Before the steps, because those of another service would fail with a reason that misleads.
        match store.service().await {
            Err(StoreError::Database(error)) if is_absent_table(&*error) => {}
            found => store.must_be_of(wanted, found?)?,
        }
        store.migrate(steps).await?;
        let found = match store.service().await? {
            Some(found) => Some(found),
            None => {
                sqlx::query(
                    "INSERT INTO service (one, name) VALUES (1, $1) ON CONFLICT DO NOTHING",
                )
                .bind(wanted.as_str())
                .execute(&store.pool)
                .await?;
                // Another service may have opened the database at the same moment.
                store.service().await?
            }
        };
        store.must_be_of(wanted, found)?;
        // The last process may have been killed before it did this.
        store.forget_deleted().await?;
        Ok(store)
    }

    /// Returns the name of the service that the database belongs to.
    async fn service(&self) -> Result<Option<String>, StoreError> {
        let row = sqlx::query("SELECT name FROM service");
        let row = row.fetch_optional(&self.pool).await?;
        row.map(|row| row.try_get("name")).transpose()
    }

    fn must_be_of(&self, wanted: Service, found: Option<String>) -> Result<(), OpenError> {
        match found {
            Some(found) if found != wanted.as_str() => Err(OpenError::OtherService {
                address: self.address.to_string(),
                found,
                wanted,
            }),
            _ => Ok(()),
        }
    }

    async fn connect(config: &config::Database) -> Result<Self, OpenError> {
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        let dialect = if config.url.starts_with("sqlite:") {
            Dialect::Sqlite
        } else {
            Dialect::Postgres
        };
        if dialect == Dialect::Sqlite {
            keep_to_owner(&config.url)?;
        }
        let mut url = config.url.clone();
        if dialect == Dialect::Sqlite && !url.contains("mode=") {
            url.push_str(if url.contains('?') { "&" } else { "?" });
            url.push_str("mode=rwc");
        }
        let options = AnyPoolOptions::new()
            .max_connections(config.connections)
            .acquire_timeout(Duration::from_secs(20))
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    if dialect == Dialect::Sqlite {
                        connection
                            .execute(
                                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                                 PRAGMA busy_timeout = 20000; PRAGMA foreign_keys = ON; \
                                 PRAGMA secure_delete = ON;",
                            )
                            .await?;
                    }
                    Ok(())
                })
            })
            .after_release(|connection, _| {
                Box::pin(async move {
                    // The answer comes after the rollback of an uncommitted transaction.
                    connection.ping().await?;
                    // On a full disk SQLite rolls back by itself. The driver's own rollback then fails, and it would
                    // never begin another transaction on this connection.
                    Ok(!connection.is_in_transaction())
                })
            });
        let address = without_secrets(&config.url);
        let pool = options.connect(&url).await.map_err(|error| match error {
            // The pool's error does not name the address, which the operator needs.
            sqlx::Error::PoolTimedOut | sqlx::Error::Io(_) => {
                let what = format!("cannot reach the database at {address}: {error}");
                sqlx::Error::Io(std::io::Error::other(what))
            }
            other => other,
        })?;
        Ok(Self {
            pool,
            dialect,
            address: address.into(),
            unforgotten: Arc::default(),
        })
    }

    async fn migrate(&self, steps: &[Step]) -> Result<(), OpenError> {
        let migrations = [PLATFORM].iter().chain(steps).map(|step| {
            let sql = match self.dialect {
                Dialect::Sqlite => step.sqlite,
                Dialect::Postgres => step.postgres,
            };
            Migration::new(
                step.version,
                Cow::Borrowed(step.name),
                MigrationType::Simple,
                sql.into_sql_str(),
                false,
            )
        });
        let migrator = Migrator::with_migrations(migrations.collect());
        migrator.run(&self.pool).await.map_err(|cause| match cause {
            MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_) => {
                OpenError::OtherTables {
                    address: self.address.to_string(),
                    cause,
                }
            }
            other => OpenError::Store(other.into()),
        })
    }

    /// Returns the address of the database, without a user name or a password.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the numbers of open connections and of idle ones among them.
    pub fn connections(&self) -> (u32, usize) {
        (self.pool.size(), self.pool.num_idle())
    }

    /// Copies the current state of a SQLite database to a new file, even while others write to the database. Neither
    /// creates nor migrates the database.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not exist, or if the file exists or cannot be written.
    pub async fn copy(config: &config::Database, to: &std::path::Path) -> Result<(), StoreError> {
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        let mut connection = sqlx::AnyConnection::connect(&config.url).await?;
        let to = to
            .to_str()
            .ok_or_else(|| sqlx::Error::Io(std::io::Error::other("the path is not UTF-8")))?;
        // Safe: quotes are doubled, and nothing else ends an SQL string.
        let copy = format!("VACUUM INTO '{}'", to.replace('\'', "''"));
        sqlx::query(AssertSqlSafe(copy))
            .execute(&mut connection)
            .await?;
        connection.close().await
    }

    /// Checks the integrity of all pages of a SQLite database.
    ///
    /// # Errors
    /// [`StoreError`] if the database cannot be read or is damaged.
    pub async fn check_whole(config: &config::Database) -> Result<(), StoreError> {
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        let mut connection = sqlx::AnyConnection::connect(&config.url).await?;
        let row = sqlx::query("PRAGMA integrity_check")
            .fetch_one(&mut connection)
            .await?;
        let found: String = row.try_get(0)?;
        connection.close().await?;
        match found.as_str() {
            "ok" => Ok(()),
            _ => Err(sqlx::Error::Io(std::io::Error::other(found))),
        }
    }

    /// Returns the pool, for statements outside a transaction.
    pub fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// Begins a transaction that will write. On SQLite it takes the write lock immediately, so that what it reads
    /// stays true until it commits. On Postgres, the relevant rows must be locked with [`Store::locking`].
    ///
    /// # Errors
    /// [`StoreError`] if there is no connection, or no lock in time.
    pub async fn begin(&self) -> Result<Tx, StoreError> {
        match self.dialect {
            Dialect::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await,
            // The driver does not notice that a transaction has begun if the caller stops waiting before the answer. Later
            // statements on the connection would then succeed, and not be committed. The task always waits.
            Dialect::Postgres => {
                let pool = self.pool.clone();
                let begun = tokio::spawn(async move { pool.begin().await }).await;
                begun.map_err(|_| StoreError::WorkerCrashed)?
            }
        }
    }

    /// Makes a query whose rows stay locked until the transaction ends. Rows that refer to them can still be written.
    /// Postgres looks up a row's parent when the row is written twice in one transaction. If the lock on the parent
    /// excluded this, a transaction that locks the parent first and then wants the row would wait forever.
    pub fn locking(&self, select: &str) -> AssertSqlSafe<String> {
        self.with_suffix(select, " FOR NO KEY UPDATE")
    }

    /// Makes a query whose rows are locked, and which skips rows that another transaction has locked.
    pub fn locking_free(&self, select: &str) -> AssertSqlSafe<String> {
        self.with_suffix(select, " FOR UPDATE SKIP LOCKED")
    }

    fn with_suffix(&self, select: &str, suffix: &str) -> AssertSqlSafe<String> {
        let suffix = match self.dialect {
            Dialect::Sqlite => "", // the transaction has the only write lock
            Dialect::Postgres => suffix,
        };
        // Safe: both parts are written in this code base.
        AssertSqlSafe(format!("{select}{suffix}"))
    }

    /// Checks whether the database can be written to. On a full disk it still answers reads.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written to.
    pub async fn check(&self) -> Result<(), StoreError> {
        // A new value each time, because SQLite does not write a row that stays the same.
        sqlx::query("UPDATE readiness SET checks = checks + 1")
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Erases deleted data. SQLite overwrites it in the database itself; this call also writes the log back and
    /// truncates it. Returns `false` if a reader blocks the log for so long that the call has to be repeated. On
    /// Postgres, deleted data stays until it vacuums, and in its log for as long as that is kept.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn forget_deleted(&self) -> Result<bool, StoreError> {
        if self.dialect == Dialect::Postgres {
            return Ok(true);
        }
        self.unforgotten.store(true, Ordering::SeqCst);
        for _ in 0..LOG_TRIES {
            let row = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
                .fetch_one(&self.pool)
                .await?;
            if row.try_get::<i64, _>(0)? == 0 {
                self.unforgotten.store(false, Ordering::SeqCst);
                return Ok(true);
            }
            tokio::time::sleep(LOG_PAUSE).await;
        }
        Ok(false)
    }

    /// Records that something is about to be deleted permanently. [`Store::forget_deleted_if_due`] then erases it
    /// even if the code that deletes it does not get to that, because its caller hangs up. Must be called before the
    /// deletion commits.
    pub fn owe_forgetting(&self) {
        self.unforgotten.store(true, Ordering::SeqCst);
    }

    /// Calls [`Store::forget_deleted`] if it has to be repeated, or has not been called after a deletion.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn forget_deleted_if_due(&self) -> Result<(), StoreError> {
        if self.unforgotten.load(Ordering::SeqCst) {
            self.forget_deleted().await?;
        }
        Ok(())
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Returns a database's address without user name and password.
fn without_secrets(url: &str) -> String {
    let url = url.split('?').next().unwrap_or(url);
    match url.split_once("://") {
        // A password may contain an `@`, but what follows it does not.
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, place)) => format!("{scheme}://{place}"),
            None => url.to_owned(),
        },
        None => url.to_owned(),
    }
}

/// Returns the file of a SQLite database.
pub(crate) fn file_of(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:")?.trim_start_matches("//");
    let path = path.split('?').next().unwrap_or(path);
    (!path.is_empty() && path != ":memory:").then(|| PathBuf::from(path))
}

/// Creates a database file, or changes an existing one, so that only its owner can read it: it has sealed keys and
/// released values. Its log and index files get the same permissions.
fn keep_to_owner(url: &str) -> Result<(), StoreError> {
    #[cfg(unix)]
    if let Some(path) = file_of(url) {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true).mode(0o600).open(&path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Makes all other transactions that lock the same owner wait for this one. The owner's rows can then be counted and
/// added to safely.
///
/// # Errors
/// A failure of the database.
pub async fn lock_owner(tx: &mut Tx, owner: Uuid) -> Result<(), StoreError> {
    let lock = "INSERT INTO owners (owner) VALUES ($1) \
                ON CONFLICT (owner) DO UPDATE SET owner = excluded.owner";
    let lock = sqlx::query(lock).bind(owner.to_string());
    lock.execute(&mut **tx).await.map(drop)
}

/// Returns whether an error says that a row with the same key already exists.
pub fn is_duplicate(error: &StoreError) -> bool {
    error
        .as_database_error()
        .is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// SQLSTATE of Postgres for a table that does not exist.
const UNDEFINED_TABLE: &str = "42P01";

/// Returns whether a statement failed because its table does not exist. Only SQLite is recognised by its message, which
/// it does not translate: its code is that of many errors.
fn is_absent_table(error: &dyn sqlx::error::DatabaseError) -> bool {
    error.code().as_deref() == Some(UNDEFINED_TABLE) || error.message().starts_with("no such table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[ignore = "slow"]
    async fn unreachable_database_is_reported_without_its_password() {
        for (url, address) in [
            (
                "postgres://a:p@ss/w@db:5432/x?sslmode=off",
                "postgres://db:5432/x",
            ),
            ("postgres://db/x", "postgres://db/x"),
            ("sqlite:///var/a.db?mode=rwc", "sqlite:///var/a.db"),
        ] {
            assert_eq!(without_secrets(url), address);
        }
        let config = config::Database {
            url: "postgres://crypto:pw@127.0.0.1:9/crypto".to_owned(),
            connections: 1,
        };
        let error = Store::open(&config, &[]).await.unwrap_err().to_string();
        assert!(error.contains("postgres://127.0.0.1:9/crypto"), "{error}");
        assert!(!error.contains("pw"), "{error}");
    }

    const TABLE: Step = Step {
        version: Step::FIRST_OF_SERVICE,
        name: "tests",
        sqlite: "CREATE TABLE tests (id TEXT PRIMARY KEY)",
        postgres: "CREATE TABLE tests (id TEXT PRIMARY KEY)",
    };

    fn in_folder(folder: &tempfile::TempDir) -> config::Database {
        config::Database {
            url: format!("sqlite://{}/store.db", folder.path().display()),
            connections: 1,
        }
    }

    #[tokio::test]
    async fn later_step_changes_a_table_and_keeps_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let config = in_folder(&folder);
        let store = Store::open(&config, &[TABLE]).await.unwrap();
        let insert = sqlx::query("INSERT INTO tests (id) VALUES ('a')");
        insert.execute(store.pool()).await.unwrap();
        store.close().await;
        let later = Step {
            version: TABLE.version + 1,
            name: "later",
            sqlite: "ALTER TABLE tests ADD COLUMN note TEXT NOT NULL DEFAULT 'none'",
            ..TABLE
        };
        for _ in 0..2 {
            let store = Store::open(&config, &[TABLE, later]).await.unwrap();
            let row = sqlx::query("SELECT id, note FROM tests");
            let row = row.fetch_one(store.pool()).await.unwrap();
            let found: [String; 2] = [row.try_get("id").unwrap(), row.try_get("note").unwrap()];
            assert_eq!(found, ["a", "none"]);
            store.close().await;
        }
    }

    #[tokio::test]
    async fn database_of_another_build_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let config = in_folder(&folder);
        let store = Store::open(&config, &[TABLE]).await.unwrap();
        store.close().await;
        let changed = Step {
            sqlite: "CREATE TABLE tests (id BIGINT PRIMARY KEY)",
            ..TABLE
        };
        for steps in [&[changed][..], &[]] {
            let error = Store::open(&config, steps).await.unwrap_err();
            assert!(matches!(error, OpenError::OtherTables { .. }), "{error}");
            let words = error.to_string();
            assert!(
                words.contains("store.db was made by another build"),
                "{words}"
            );
            assert!(words.contains("delete the database"), "{words}");
        }
    }

    #[tokio::test]
    async fn database_of_another_service_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let config = in_folder(&folder);
        for _ in 0..2 {
            let store = Store::open_of(Service::Crypto, &config, &[TABLE]).await;
            store.unwrap().close().await;
        }
        // Key services have the same tables.
        for (wanted, steps) in [
            (Service::Keyshare1, &[TABLE][..]),
            (Service::Generation, &[]),
        ] {
            let refused = Store::open_of(wanted, &config, steps).await.unwrap_err();
            let words = refused.to_string();
            assert!(
                words.contains("store.db belongs to the crypto service"),
                "{words}"
            );
            assert!(!words.contains("delete"), "{words}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn database_files_are_readable_only_by_their_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        // A file that everyone may read.
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let config = config::Database {
            url: format!("sqlite://{}", path.display()),
            connections: 1,
        };
        let store = Store::open(&config, &[]).await.unwrap();
        store.check().await.unwrap();
        for name in ["store.db", "store.db-wal"] {
            let file = std::fs::metadata(folder.path().join(name)).unwrap();
            assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
        }
        store.close().await;
    }
}
