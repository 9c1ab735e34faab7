//! The database: SQLite or Postgres behind the same statements.
//!
//! Statements use `$1` parameters, 64-bit integers, doubles, text and blobs, which both have; what
//! differs is how a transaction takes its locks, and that is here. SQLite is opened with a
//! write-ahead log that is flushed at every commit: a ledger entry that was committed is there
//! after any crash.

use sqlx::any::{AnyPoolOptions, AnyRow};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Any, AnyPool, AssertSqlSafe, Executor, SqlSafeStr, Transaction};
use std::borrow::Cow;
use std::sync::Once;
use std::time::Duration;

use crate::config;

/// A database error.
pub type StoreError = sqlx::Error;

/// A row of an answer.
pub type Row = AnyRow;

/// A transaction; rolled back unless committed.
pub type Tx = Transaction<'static, Any>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Sqlite,
    Postgres,
}

/// A migration: its version, its name, and its statements for SQLite and for Postgres.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Steps run in ascending order of version.
    pub version: i64,
    /// What it makes.
    pub name: &'static str,
    /// Statements for SQLite.
    pub sqlite: &'static str,
    /// Statements for Postgres.
    pub postgres: &'static str,
}

/// The migration with the file name `<version>_<name>.sql` of `migrations/{sqlite,postgres}/`
/// and a folder below.
#[macro_export]
macro_rules! step {
    ($folder:literal, $version:literal, $name:literal) => {
        $crate::store::Step {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../migrations/sqlite/",
                $folder,
                "/",
                $version,
                "_",
                $name,
                ".sql"
            )),
            postgres: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../migrations/postgres/",
                $folder,
                "/",
                $version,
                "_",
                $name,
                ".sql"
            )),
        }
    };
}

/// A connection pool. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    dialect: Dialect,
}

impl Store {
    /// Connects, and brings the tables up to date. A database that a newer release has changed,
    /// or whose applied migrations differ from these, is refused.
    ///
    /// # Errors
    /// No connection, or a migration that cannot be applied.
    pub async fn open(config: &config::Database, steps: &[Step]) -> Result<Self, StoreError> {
        static DRIVERS: Once = Once::new();
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        let dialect = if config.url.starts_with("sqlite:") {
            Dialect::Sqlite
        } else {
            Dialect::Postgres
        };
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
                                 PRAGMA busy_timeout = 20000; PRAGMA foreign_keys = ON;",
                            )
                            .await?;
                    }
                    Ok(())
                })
            });
        let store = Self {
            pool: options.connect(&url).await?,
            dialect,
        };
        store.migrate(steps).await?;
        Ok(store)
    }

    async fn migrate(&self, steps: &[Step]) -> Result<(), StoreError> {
        let migrations = steps.iter().map(|step| {
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
        Ok(migrator.run(&self.pool).await?)
    }

    /// For statements outside a transaction.
    pub fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// A transaction that will write. On SQLite it takes the write lock at once, so that what it
    /// reads stays true until it commits; on Postgres, lock the rows that matter with
    /// [`Store::locking`].
    ///
    /// # Errors
    /// No connection, or no lock in time.
    pub async fn begin(&self) -> Result<Tx, StoreError> {
        match self.dialect {
            Dialect::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await,
            Dialect::Postgres => self.pool.begin().await,
        }
    }

    /// A query whose rows stay locked until the transaction ends.
    pub fn locking(&self, select: &'static str) -> AssertSqlSafe<String> {
        self.with_suffix(select, " FOR UPDATE")
    }

    /// A query whose rows are locked, without those that someone else has locked.
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

    /// Whether the database answers.
    ///
    /// # Errors
    /// If not.
    pub async fn check(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(&self.pool).await?;
        Ok(())
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Whether an error says that a row with the same key is there already.
pub fn is_duplicate(error: &StoreError) -> bool {
    error
        .as_database_error()
        .is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// The tables that every service has.
pub const COMMON: Step = crate::step!("platform", 1, "signing_keys");
