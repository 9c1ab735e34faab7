//! After `dataset delete`, no file of any service holds a part of the dataset's ciphertexts, its sealed pages or its
//! sealed secret key.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use fhaim_kit::{Backing, NAMES, ServiceOptions, Services, pieces::Pieces, until};
use sqlx::{Connection, Row, SqliteConnection};

use super::PROGRAM;

const GENERATION: usize = 0;
const COMPUTATION: usize = 1;
const CRYPTO: usize = 2;

/// Returns all files below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    entries
        .flatten()
        .flat_map(|entry| below(entry.path()))
        .collect()
}

/// Returns a file that holds a piece, if there is one.
fn holder(services: &Services, pieces: &Pieces) -> Option<PathBuf> {
    let homes = (0..3).map(|service| services.home(service));
    let mut all = homes.flat_map(|home| files(&home));
    all.find(|path| {
        let bytes = fs::read(path).unwrap_or_default();
        pieces.is_in(&bytes)
    })
}

/// Returns the pieces of all stored data that must be deleted with a dataset.
fn pieces(services: &Services, dataset: &str) -> Pieces {
    let mut pieces = Pieces::new();
    // Ciphertexts, sealed pages and models.
    for (service, folder) in [
        (COMPUTATION, "blobs/uploads"),
        (GENERATION, "blobs/datasets"),
    ] {
        for path in files(&services.home(service).join(folder).join(dataset)) {
            let name = path.file_name().unwrap();
            // The keys are public, and also stored elsewhere. A file that is being written is renamed soon, so it may
            // be missing.
            if name != "public" && name != "evaluation" {
                pieces.add(&fs::read(path).unwrap_or_default());
            }
        }
    }
    let secret = column(
        services,
        CRYPTO,
        "SELECT secret FROM key_sets WHERE dataset = $1",
        dataset,
    );
    assert!(secret.len() > 32);
    pieces.add(&secret);
    let sealing = "SELECT sealing_key FROM uploads WHERE dataset = $1";
    let sealing = column(services, COMPUTATION, sealing, dataset);
    assert!(sealing.len() > 32);
    pieces.add(&sealing);
    assert!(pieces.count() > 10_000, "{} pieces", pieces.count());
    pieces
}

/// Returns the bytes of a column that a service's database has for a dataset.
fn column(services: &Services, service: usize, select: &'static str, dataset: &str) -> Vec<u8> {
    let url = format!("sqlite://{}/store.db", services.home(service).display());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let row = sqlx::query(select)
            .bind(dataset)
            .fetch_one(&mut connection)
            .await;
        let bytes = row.unwrap().get(0);
        connection.close().await.unwrap();
        bytes
    })
}

/// Returns the number of sealed pages of a dataset.
fn pages(services: &Services, dataset: &str) -> usize {
    let uploads = services
        .home(COMPUTATION)
        .join("blobs/uploads")
        .join(dataset);
    let files = files(&uploads);
    let sealed = files
        .iter()
        .filter(|path| path.parent().is_some_and(|at| at.ends_with("sealed")));
    sealed.count()
}

/// Starts services that delete orphaned data every three seconds.
fn start() -> Services {
    let sweep = |name: &str| {
        let variable = format!("FHAIM_{}__COMMON__ORPHAN_SECONDS", name.to_uppercase());
        vec![(variable, "3".to_owned())]
    };
    let setting = ServiceOptions {
        variables: NAMES.map(sweep),
        ..ServiceOptions::new(PROGRAM)
    };
    let services = Services::start_in(&Backing::Local, setting);
    services.sign_up("ana");
    services
}

/// Waits until no file holds a piece.
fn must_be_gone(services: &Services, pieces: &Pieces, place: &str) {
    until(|| match holder(services, pieces) {
        None => Ok(()),
        Some(path) => Err(format!("{place}: {} still holds a piece", path.display())),
    });
}

#[test]
fn deleted_dataset_leaves_no_bytes_in_any_file() {
    let services = start();
    let dataset = services.dataset("ana", &[]);
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    assert!(pages(&services, &dataset) > 0);
    let models = services
        .home(GENERATION)
        .join("blobs/datasets")
        .join(&dataset);
    assert!(!files(&models).is_empty());
    let pieces = pieces(&services, &dataset);
    assert!(holder(&services, &pieces).is_some());
    services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
    let held = holder(&services, &pieces);
    assert!(held.is_none(), "{held:?}");
    assert_eq!(
        services.json("ana", &["dataset", "list"]),
        serde_json::json!([])
    );
}

/// A running job must not stop the deletion halfway.
#[test]
#[ignore = "slow"]
fn dataset_is_deleted_during_its_job() {
    let services = start();
    for wait in [0, 150, 400] {
        let dataset = services.dataset("ana", &[]);
        services.run("ana", &["job", "run", &dataset, "--yes"]);
        if wait > 0 {
            // The middle of the job: a page is sealed, and others follow.
            until(|| match pages(&services, &dataset) {
                0 => Err("no page is sealed yet".to_owned()),
                _ => Ok(()),
            });
        }
        std::thread::sleep(Duration::from_millis(wait));
        let pieces = pieces(&services, &dataset);
        services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
        let shown = services.command("ana", &["dataset", "show", &dataset]);
        assert!(!shown.status.success());
        must_be_gone(
            &services,
            &pieces,
            &format!("during a job, after {wait} ms"),
        );
    }
    // The interrupted workers continue with the batches of other datasets.
    let other = services.dataset("ana", &[]);
    services.run("ana", &["job", "run", &other, "--yes", "--watch"]);
}

/// Kills a service at several points of the deletion, with and without a job.
#[test]
#[ignore = "slow"]
fn deletion_interrupted_by_a_kill_leaves_nothing() {
    let services = start();
    for point in 0..9 {
        let dataset = services.dataset("ana", &[]);
        if point % 4 < 2 {
            services.run("ana", &["job", "run", &dataset, "--yes"]);
        }
        let pieces = pieces(&services, &dataset);
        let service = [COMPUTATION, CRYPTO, GENERATION][point % 3];
        let services = &services;
        std::thread::scope(|scope| {
            let delete = ["dataset", "delete", &dataset, "--yes"];
            let deleting = scope.spawn(move || services.command("ana", &delete));
            std::thread::sleep(Duration::from_millis(40 * point as u64));
            services.kill(service);
            std::thread::sleep(Duration::from_millis(200));
            services.launch(service);
            services.wait_until_ready();
            let deleted = deleting.join().unwrap();
            assert!(
                deleted.status.success(),
                "{}",
                String::from_utf8_lossy(&deleted.stderr)
            );
        });
        let place = format!("{} killed at point {point}", NAMES[service]);
        must_be_gone(services, &pieces, &place);
    }
}
