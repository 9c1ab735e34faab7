//! Where services keep things: in folders, or on the servers that the environment names.

use sqlx::Connection;
use uuid::Uuid;

/// Names a Postgres server on which tests may make databases.
const POSTGRES: &str = "FHAIM_TEST_POSTGRES";

/// Names an S3 server that has a bucket `fhaim`.
const S3: &str = "FHAIM_TEST_S3";

/// Where the services keep things.
#[derive(Clone, Debug)]
pub enum Backing {
    /// SQLite and folders.
    Local,
    /// A Postgres server (each service is made a database), and an S3 bucket if there is a server.
    Remote {
        /// Address of the Postgres server.
        postgres: String,
        /// Address of the S3 server.
        s3_endpoint: Option<String>,
    },
}

impl Backing {
    /// The servers that the environment names; says what is skipped where it names none.
    pub fn remote() -> Option<Self> {
        let postgres = postgres_server()?;
        let s3_endpoint = std::env::var(S3).ok();
        if s3_endpoint.is_none() {
            eprintln!("skipped: {S3} is not set: blobs go to folders");
        }
        Some(Self::Remote {
            postgres,
            s3_endpoint,
        })
    }
}

/// The Postgres server that the environment names; says that it is skipped where it names none.
pub fn postgres_server() -> Option<String> {
    let server = std::env::var(POSTGRES).ok();
    if server.is_none() {
        eprintln!("skipped: {POSTGRES} is not set");
    }
    server
}

/// A new database on a Postgres server, which no other test sees; its address.
pub async fn fresh_database(server: &str) -> String {
    let name = format!("fhaim_{}", Uuid::new_v4().simple());
    let mut connection = sqlx::PgConnection::connect(server).await.unwrap();
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::query(create).execute(&mut connection).await.unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}
