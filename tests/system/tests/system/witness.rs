//! Two computation services. Only batches that both compute to the same bytes are released.

use std::fs;

use fhaim_kit::{
    Backing, ServiceOptions, Services, WITNESS,
    command::stderr,
    files::{copy, read_json},
    until,
};

use super::{
    PROGRAM,
    flow::{answers, released},
    operators::on_database,
};

fn services(backing: &Backing) -> Services {
    let setting = ServiceOptions {
        witness: true,
        ..ServiceOptions::new(PROGRAM)
    };
    Services::start_in(backing, setting)
}

/// Returns the integers of `fhaim run` with the same seed as the noise of [`Services::dataset`].
fn own(services: &Services) -> Vec<Vec<i64>> {
    let data = ["run", "--data", "t.csv", "--schema", "t.schema.json"];
    let more = [
        "--epsilon",
        "1",
        "--out",
        "own.csv",
        "--seed",
        "5",
        "--yes",
        "--force",
    ];
    services.run("ana", &[&data[..], &more].concat());
    let own = read_json(&services.folder.path().join("own.releases.json"));
    answers(&own["releases"], "values")
}

/// Returns the files of all uploads at a service.
fn blobs(services: &Services, service: usize) -> Vec<std::path::PathBuf> {
    fn below(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => below(&path, found),
                false => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    below(&services.home(service).join("blobs/uploads"), &mut found);
    found
}

fn whole(services: &Services) {
    services.sign_up("ana");
    let dataset = services.dataset("ana", &["--witness"]);
    let shown = services.run("ana", &["dataset", "show", &dataset]);
    assert!(shown.contains("second computation service"), "{shown}");
    let job = services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let job = job.lines().next().unwrap().to_owned();
    assert_eq!(released(services, "ana", &job), own(services));
    // The wait of the first service for the second is not logged as a fault.
    assert_eq!(services.log(2), "");
    services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
}

#[test]
fn two_computation_services_release_the_same_as_one() {
    let services = services(&Backing::Local);
    whole(&services);
    assert_eq!(blobs(&services, WITNESS), Vec::<std::path::PathBuf>::new());
    // A dataset without a second computation service still works, and leaves no data there.
    let dataset = services.dataset("ana", &[]);
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    assert_eq!(blobs(&services, WITNESS), Vec::<std::path::PathBuf>::new());
}

#[test]
#[ignore = "needs FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]
fn two_computation_services_release_the_same_on_postgres_and_s3() {
    whole(&services(&Backing::remote()));
}

/// The first service computes from another column than the uploaded one, and has changed its own records to match.
#[test]
#[ignore = "slow"]
fn disagreement_of_computation_services_freezes_the_dataset() {
    let services = services(&Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &["--witness"]);
    let of = |field: &str, name: &str| {
        let select = format!("SELECT {field} FROM objects WHERE name = '{name}'");
        on_database(&services, 1, &select).1.remove(0)
    };
    let file = |name: &str| {
        let version = of("version", name);
        let mut all = blobs(&services, 1).into_iter();
        let found = all.find(|path| path.to_string_lossy().contains(&version));
        found.unwrap()
    };
    let [from, to] = ["column/0/0", "column/1/0"];
    fs::copy(file(from), file(to)).unwrap();
    let digest = of("digest", from);
    let change = format!("UPDATE objects SET digest = '{digest}' WHERE name = '{to}'");
    assert_eq!(on_database(&services, 1, &change).0, 1);

    let told = services.command("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    assert!(!told.status.success());
    assert!(stderr(&told).contains("refused"), "{}", stderr(&told));
    let kinds = "SELECT kind FROM chain ORDER BY height";
    let kinds = on_database(&services, 2, kinds).1;
    assert_eq!(kinds, ["keys-made", "run-begun", "frozen"]);
    let ledger = services.json("ana", &["ledger", &dataset]);
    assert_eq!(ledger["spent"]["rho"].as_f64(), Some(0.0));
    // Nothing of the dataset is decrypted from then on.
    let job = String::from_utf8_lossy(&told.stdout);
    let job = job.lines().next().unwrap();
    services.command("ana", &["job", "retry", job]);
    let again = services.command("ana", &["job", "watch", job]);
    assert!(!again.status.success());
    let words = stderr(&again);
    assert!(words.contains("do not agree"), "{words}");
}

/// The second service is killed while it copies the upload and while a job waits for it, and the key service loses the
/// digest. Both recover.
#[test]
#[ignore = "slow"]
fn jobs_survive_kills_of_the_second_service_and_a_lost_digest() {
    let services = services(&Backing::Local);
    services.sign_up("ana");
    let dataset = services.create("ana", &["--witness"]);
    let upload = [
        "dataset", "upload", &dataset, "--data", "t.csv", "--seed", "5", "--yes",
    ];
    std::thread::scope(|scope| {
        let uploading = scope.spawn(|| services.run("ana", &upload));
        // The program registers the upload with the second service first.
        let first_is = |state: &str| {
            let select = format!("SELECT state FROM contributions WHERE state = '{state}'");
            match on_database(&services, 1, &select).1.len() {
                0 => Err(format!("the first service has no part that is {state}")),
                _ => Ok(()),
            }
        };
        until(|| first_is("open"));
        services.kill(WITNESS);
        until(|| first_is("complete"));
        services.launch(WITNESS);
        uploading.join().unwrap();
    });
    services.kill(WITNESS);
    let job = services.run("ana", &["job", "run", &dataset, "--yes"]);
    let job = job.lines().next().unwrap().to_owned();
    // Nothing is released without the second service, and it sends a lost digest again.
    let released_are = || {
        let decrypted = "SELECT kind FROM chain WHERE kind = 'released'";
        on_database(&services, 2, decrypted).1.len()
    };
    services.kill(1);
    services.launch(WITNESS);
    until(
        || match on_database(&services, 2, "DELETE FROM witnessed").0 {
            0 => Err("the second service has not sent a digest yet".to_owned()),
            _ => Ok(()),
        },
    );
    assert_eq!(released_are(), 0);
    services.launch(1);
    services.run("ana", &["job", "watch", &job]);
    assert!(released_are() > 0);
    assert_eq!(released(&services, "ana", &job), own(&services));
}

/// A second service that was rolled back to a state before an upload copies it again when the holder's program sends
/// the manifest. Without the manifest, or if the first service has other objects, it copies nothing.
#[test]
#[ignore = "slow"]
fn restored_second_service_copies_the_upload_again() {
    let services = services(&Backing::Local);
    services.sign_up("ana");
    let (home, before) = (
        services.home(WITNESS),
        services.folder.path().join("before"),
    );
    services.kill(WITNESS);
    copy(&home, &before);
    services.launch(WITNESS);
    services.wait_until_ready();
    let dataset = services.create("ana", &["--witness"]);
    // Without a seed, so that the program keeps the manifest with the key of its noise.
    let upload = ["dataset", "upload", &dataset, "--data", "t.csv", "--yes"];
    services.run("ana", &upload);
    let refused = |words: &str| {
        let told = services.command("ana", &upload);
        assert!(!told.status.success());
        assert!(stderr(&told).contains(words), "{}", stderr(&told));
    };
    refused("has been uploaded already");

    services.kill(WITNESS);
    fs::remove_dir_all(&home).unwrap();
    copy(&before, &home);
    services.launch(WITNESS);
    services.wait_until_ready();
    let told = services.command("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    assert!(!told.status.success());
    let job = String::from_utf8_lossy(&told.stdout);
    let job = job.lines().next().unwrap();

    let kept = (services.folder.path()).join(format!("ana/{dataset}.ladder"));
    let aside = kept.with_extension("aside");
    fs::rename(&kept, &aside).unwrap();
    refused("has no copy of your part");
    fs::rename(&aside, &kept).unwrap();
    let digest = |name: &str| {
        let select = format!("SELECT digest FROM objects WHERE name = '{name}'");
        on_database(&services, 1, &select).1.remove(0)
    };
    let set = |digest: &str| {
        let change = format!("UPDATE objects SET digest = '{digest}' WHERE name = 'column/1/0'");
        assert_eq!(on_database(&services, 1, &change).0, 1);
    };
    let own_digest = digest("column/1/0");
    set(&digest("column/0/0"));
    refused("manifest");
    let copied = on_database(&services, WITNESS, "SELECT name FROM objects").1;
    assert_eq!(copied, Vec::<String>::new());
    set(&own_digest);

    services.run("ana", &upload);
    refused("has been uploaded already");
    services.run("ana", &["job", "retry", job]);
    services.run("ana", &["job", "watch", job]);
    assert!(!released(&services, "ana", job).is_empty());
}

/// Without a second computation service, `--witness` is refused before anything is uploaded.
#[test]
fn dataset_without_a_second_service_to_witness_is_refused() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let create = [
        "dataset",
        "create",
        "--schema",
        "t.schema.json",
        "--data",
        "t.csv",
    ];
    let more = ["--epsilon", "1", "--witness"];
    let told = services.command("ana", &[&create[..], &more].concat());
    assert!(!told.status.success());
    let words = stderr(&told);
    assert!(words.contains("no second computation service"), "{words}");
}
