//! Configurations for tests that run a service in their own process.

use std::{collections::BTreeMap, path::Path};

use fhaim_platform::{
    config::{Blobs, Common, Database, Log, Sealing},
    seal::Sealer,
};

use crate::backing::{fresh_database, postgres_server};

/// Returns a configuration whose sealing key, database and blobs are in a folder. Creates the key
/// if the folder has none. The configuration names no peers and listens on any free port.
pub fn in_folder(folder: &Path) -> Common {
    let keys = folder.join("keys");
    if !keys.exists() {
        std::fs::write(&keys, Sealer::new_key().unwrap().as_str()).unwrap();
    }
    Common {
        listen: "127.0.0.1:0".parse().unwrap(),
        database: sqlite(folder),
        blobs: Blobs {
            url: format!("file://{}/blobs", folder.display()),
            endpoint: None,
            region: None,
        },
        sealing: Sealing {
            file: Some(keys),
            variable: None,
        },
        peers: BTreeMap::new(),
        log: Log::default(),
        workers: 1,
        lease_seconds: 1,
        orphan_seconds: 3600,
        reserve_bytes: 1 << 16,
        attempt_seconds: 24 * 3600,
    }
}

/// Returns the SQLite database `store.db` of a folder.
pub fn sqlite(folder: &Path) -> Database {
    at(format!("sqlite://{}/store.db", folder.display()))
}

/// Creates a database on the Postgres server that the environment names.
pub async fn postgres() -> Database {
    at(fresh_database(&postgres_server()).await)
}

fn at(url: String) -> Database {
    Database {
        url,
        connections: 8,
    }
}
