//! Storage of the services under test: folders, or the servers that the environment names.

use sqlx::Connection;
use uuid::Uuid;

/// Environment variable with the address of a Postgres server on which tests may create databases.
const POSTGRES: &str = "FHAIM_TEST_POSTGRES";

/// Environment variable with the address of an S3 server that has a bucket `fhaim`.
const S3: &str = "FHAIM_TEST_S3";

/// Where the services under test store their data.
#[derive(Clone, Debug)]
pub enum Backing {
    /// SQLite and folders.
    Local,
    /// A new database for each service on a Postgres server, and an S3 bucket.
    Remote {
        /// Address of the Postgres server.
        postgres: String,
        /// Address of the S3 server.
        s3_endpoint: String,
    },
}

impl Backing {
    /// Returns the servers that the environment names, for a test with
    /// `#[ignore = "needs FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]`.
    ///
    /// # Panics
    /// If one of the two variables is not set.
    pub fn remote() -> Self {
        Self::Remote {
            postgres: postgres_server(),
            s3_endpoint: std::env::var(S3).expect("FHAIM_TEST_S3 must name an S3 server"),
        }
    }
}

/// Returns the Postgres server that the environment names, for a test with
/// `#[ignore = "needs FHAIM_TEST_POSTGRES"]`.
///
/// # Panics
/// If the variable is not set.
pub fn postgres_server() -> String {
    std::env::var(POSTGRES).expect("FHAIM_TEST_POSTGRES must name a Postgres server")
}

/// Creates a database on a Postgres server for one test, and returns its address.
pub async fn fresh_database(server: &str) -> String {
    let name = format!("fhaim_{}", Uuid::new_v4().simple());
    let mut connection = sqlx::PgConnection::connect(server).await.unwrap();
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::query(create).execute(&mut connection).await.unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}
