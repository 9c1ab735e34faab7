//! The complete path from a new account to a synthetic table.

use std::{
    fs, io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use fhaim_kit::{Backing, Services, files::read_json, tables};
use rand::Rng;
use serde_json::Value;

use super::PROGRAM;

/// Returns the integers of every release, in order.
pub fn answers(releases: &Value, field: &str) -> Vec<Vec<i64>> {
    let releases = releases.as_array().unwrap().iter();
    releases
        .map(|release| {
            let values = release[field].as_array().unwrap().iter();
            values.map(|value| value.as_i64().unwrap()).collect()
        })
        .collect()
}

fn get(services: &Services, user: &str, job: &str) -> Value {
    let releases = services.run(user, &["job", "releases", job, "--json"]);
    serde_json::from_str(&releases).unwrap()
}

/// Returns the integers that a job released.
pub fn released(services: &Services, user: &str, job: &str) -> Vec<Vec<i64>> {
    answers(&get(services, user, job), "values")
}

/// Signs up, creates, uploads, runs, watches and downloads. The releases equal those of `fhaim run` with the same seed,
/// integer for integer, and the model is the same file.
fn whole(services: &Services) {
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    let job = services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let job = job.lines().next().unwrap().to_owned();
    services.run("ana", &["download", &job, "--out", "synthetic.csv"]);
    let synthetic = fs::read_to_string(services.folder.path().join("synthetic.csv")).unwrap();
    assert_eq!(synthetic.lines().next(), Some("x,c,y"));
    assert!(synthetic.lines().count() > 100);

    let data = [
        "--data",
        "t.csv",
        "--schema",
        "t.schema.json",
        "--epsilon",
        "1",
    ];
    let files = ["--out", "own.csv", "--seed", "5", "--yes", "--force"];
    services.run("ana", &[&["run"], &data[..], &files[..]].concat());
    let own = read_json(&services.folder.path().join("own.releases.json"));
    let served = get(services, "ana", &job);
    assert_eq!(
        answers(&served, "values"),
        answers(&own["releases"], "values")
    );

    same_model(services, &job);

    let ledger = services.json("ana", &["ledger", &dataset]);
    let debits = ledger["runs"][0]["releases"].as_array().unwrap();
    assert!(
        debits
            .iter()
            .any(|debit| debit["columns"] == serde_json::json!(["x", "c"]))
    );
    let phases = ledger["runs"][0]["phases"].as_array().unwrap();
    let in_phases = phases
        .iter()
        .map(|phase| phase["releases"].as_u64().unwrap());
    assert_eq!(in_phases.sum::<u64>(), debits.len() as u64);
    assert_eq!(phases[0]["phase"], "Counting values of each column");
    let text = services.run("ana", &["ledger", &dataset]);
    assert!(
        text.contains("  x x c\n") && !text.contains("attribute"),
        "{text}"
    );
    assert_eq!(debits.len(), served.as_array().unwrap().len());
    assert!(ledger["spent"]["rho"].as_f64().unwrap() <= ledger["budget"]["rho"].as_f64().unwrap());

    // The budget allows only one run.
    let again = services.command("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    assert!(!again.status.success());
    let told = String::from_utf8_lossy(&again.stderr).to_lowercase();
    assert!(told.contains("budget"), "{told}");

    services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
    let gone = services.command("ana", &["dataset", "show", &dataset]);
    assert!(!gone.status.success());
}

/// Checks that the downloaded model equals that of the same run in one process.
fn same_model(services: &Services, job: &str) {
    services.run("ana", &["download", job, "--model-out", "served.model"]);
    let file = |name: &str| fs::read(services.folder.path().join(name)).unwrap();
    assert_eq!(file("served.model"), file("own.model"));
}

#[test]
fn whole_path_works_on_sqlite_and_folders() {
    whole(&Services::start(PROGRAM, &Backing::Local));
}

/// The table has several record chunks, and no memory to keep its columns. Each batch reads them from storage, band by
/// band.
#[test]
#[ignore = "slow"]
fn whole_path_works_without_memory_for_columns() {
    let services = Services::start(PROGRAM, &Backing::Local);
    tables::write_small(services.folder.path(), 20_000);
    let computation = 1;
    services.kill(computation);
    let config = services.home(computation).join("config.toml");
    let mut text = fs::read_to_string(&config).unwrap();
    text += "[memory]\ndataset_bytes = 0\nworking_bytes = 0\n";
    fs::write(config, text).unwrap();
    services.launch(computation);
    services.wait_until_ready();
    whole(&services);
}

#[test]
#[ignore = "needs FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]
fn whole_path_works_on_postgres_and_s3() {
    whole(&Services::start(PROGRAM, &Backing::remote()));
}

/// Synthetic tables of published tables, made on Postgres and S3, have the same number of records and the same domain.
#[test]
#[ignore = "slow; needs FHAIM_DATA_DIR, FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]
fn published_tables_are_synthesized_on_postgres_and_s3() {
    let data = tables::published();
    let services = Services::start(PROGRAM, &Backing::remote());
    services.sign_up("ana");
    for (table, schema, records) in [("compas", "compas", 7214), ("adult", "adult-32", 48_842)] {
        let path = |name: String| data.join(name).display().to_string();
        let csv = path(format!("{table}.csv"));
        let schema = path(format!("{schema}.schema.json"));
        let create = ["--schema", &schema, "--data", &csv, "--epsilon", "1"];
        let dataset = services.run("ana", &[&["dataset", "create"], &create[..]].concat());
        let dataset = dataset.trim();
        let started = Instant::now();
        services.run(
            "ana",
            &["dataset", "upload", dataset, "--data", &csv, "--yes"],
        );
        let uploaded = started.elapsed().as_secs_f64();
        let job = services.run("ana", &["job", "run", dataset, "--yes", "--watch"]);
        let ran = started.elapsed().as_secs_f64() - uploaded;
        eprintln!("{table}: upload {uploaded:.1} s, job {ran:.1} s\n{job}");
        let job = job.lines().next().unwrap();
        let rows = records.to_string();
        services.run(
            "ana",
            &[
                "download", job, "--rows", &rows, "--out", "made.csv", "--force",
            ],
        );
        let check = ["schema", "check", &schema, "--data", "made.csv"];
        services.run("ana", &check);
        let made = fs::read_to_string(services.folder.path().join("made.csv")).unwrap();
        assert_eq!(made.lines().count(), records + 1);
    }
}

/// With a budget for two runs, exactly two of four concurrent jobs get a run.
#[test]
fn concurrent_jobs_share_the_budget_exactly() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &["--runs", "2"]);
    let started: Vec<Option<String>> = std::thread::scope(|scope| {
        let start = || {
            let output = services.command("ana", &["job", "run", &dataset, "--yes", "--json"]);
            let job: Value = serde_json::from_slice(&output.stdout).ok()?;
            Some(job["id"].as_str()?.to_owned())
        };
        let racing: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        racing
            .into_iter()
            .map(|race| race.join().unwrap())
            .collect()
    });
    let done = started
        .iter()
        .flatten()
        .filter(|job| {
            let watched = services.command("ana", &["job", "watch", job]);
            watched.status.success()
        })
        .count();
    assert_eq!(done, 2);
    let ledger = services.json("ana", &["ledger", &dataset]);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 2);
    assert!(ledger["spent"]["rho"].as_f64().unwrap() <= ledger["budget"]["rho"].as_f64().unwrap());
}

/// The command uploads the missing objects after it and the computation service were killed.
#[test]
fn interrupted_upload_is_resumed() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let id = services.create("ana", &[]);
    for wait in [20, 60, 150] {
        let folder = services.folder.path().to_owned();
        let mut child = std::process::Command::new(PROGRAM)
            .args(["dataset", "upload", &id, "--data", "t.csv", "--yes"])
            .current_dir(&folder)
            .env_remove("FHAIM_MEMORY_DIR")
            .env("FHAIM_CONFIG_DIR", folder.join("ana"))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        services.kill(1);
        services.launch(1);
        services.wait_until_ready();
    }
    let uploaded = services.command(
        "ana",
        &["dataset", "upload", &id, "--data", "t.csv", "--yes"],
    );
    let told = String::from_utf8_lossy(&uploaded.stderr);
    assert!(
        uploaded.status.success() || told.contains("uploaded already"),
        "{told}"
    );
    services.run("ana", &["job", "run", &id, "--yes", "--watch"]);
}

/// Starts a proxy that breaks every connection after a random number of bytes from the caller, up to a dozen objects.
/// Returns its address, and the number of broken connections.
fn breaking(to: &str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let to = to.trim_start_matches("http://").to_owned();
    let broken = Arc::new(AtomicUsize::new(0));
    let count = broken.clone();
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let (to, count) = (to.clone(), count.clone());
            std::thread::spawn(move || {
                if relay(&caller.unwrap(), &to).is_ok_and(|whole| !whole) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    (address, broken)
}

/// Forwards bytes in both directions until a random number of them came from the caller. Returns whether the caller
/// finished before that.
fn relay(caller: &TcpStream, to: &str) -> io::Result<bool> {
    let service = TcpStream::connect(to)?;
    let (mut answers, mut back) = (service.try_clone()?, caller.try_clone()?);
    std::thread::spawn(move || io::copy(&mut answers, &mut back));
    let most = rand::rng().random_range(1..1_500_000);
    let passed = io::copy(&mut io::Read::take(caller, most), &mut &service)?;
    // Both connections may already be closed.
    let _ = service.shutdown(Shutdown::Both);
    let _ = caller.shutdown(Shutdown::Both);
    Ok(passed < most)
}

/// An upload whose connections break at random bytes leads to the same releases as an undisturbed one. It is an upload
/// of counts, whose longest object (the keys) gets through about every other time.
#[test]
#[ignore = "slow"]
fn upload_over_breaking_connections_gives_the_same_releases() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let direct = [0, 1, 2].map(|service| services.address(service));
    let (proxy, broken) = breaking(&direct[1]);
    services.sign_up_at("ana", &[direct[0].clone(), proxy, direct[2].clone()]);
    services.sign_up_at("bob", &direct);
    let [disturbed, undisturbed] = ["ana", "bob"].map(|user| {
        let dataset = services.dataset(user, &["--contribution", "counts", "--runs", "3"]);
        let job = services.run(user, &["job", "run", &dataset, "--yes", "--watch"]);
        get(&services, user, job.lines().next().unwrap())
    });
    assert_eq!(
        answers(&disturbed, "values"),
        answers(&undisturbed, "values")
    );
    let broken = broken.load(Ordering::Relaxed);
    assert!(broken > 5, "only {broken} connections were broken");
}
