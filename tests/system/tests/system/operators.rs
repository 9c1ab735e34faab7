//! Tools of operators: logs, readiness, metrics and `fhaim admin`.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime},
};

use fhaim_kit::{Backing, NAMES, PASSWORD, ServiceOptions, Services, until};
use fhaim_protocol::crypto::chain::{Act, Freeze, Tip};
use fhaim_protocol::request::DatasetId;
use serde_json::{Value, json};

use super::PROGRAM;

/// Sends a request, and returns the answer's status and text.
pub fn ask(address: &str, token: Option<&str>, body: Option<Value>) -> (u16, String) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let http = fhaim_platform::peer::http_client().unwrap();
    let mut request = match body {
        Some(body) => http.post(address).json(&body),
        None => http.get(address),
    };
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    runtime.block_on(async {
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    })
}

/// Failed sign-ins, refused tokens and requests for other accounts' datasets are in the security log.
#[test]
fn refused_requests_are_in_the_security_log() {
    let variable = "FHAIM_GENERATION__COMMON__LOG__FILTER".to_owned();
    let setting = ServiceOptions {
        variables: [vec![(variable, "info".to_owned())], vec![], vec![]],
        ..ServiceOptions::new(PROGRAM)
    };
    let services = Services::start_in(&Backing::Local, setting);
    services.sign_up("ana");
    services.sign_up("eve");
    let dataset = services.create("ana", &[]);
    let wrong = json!({ "email": "ana@example.org", "password": "not the password" });
    let sessions = format!("{}/v1/sessions", services.address(0));
    assert_eq!(ask(&sessions, None, Some(wrong)).0, 401);
    let account = format!("{}/v1/account", services.address(0));
    assert_eq!(ask(&account, Some("a.b.c"), None).0, 401);
    let stolen = services.command("eve", &["dataset", "show", &dataset]);
    assert!(!stolen.status.success());
    let log = services.log(0);
    for event in ["sign-in-failed", "token-refused", "foreign-id"] {
        let line = log.lines().find(|line| line.contains(event));
        assert!(
            line.is_some_and(|line| line.contains("security")),
            "{event}: {log}"
        );
    }
    assert!(
        log.lines()
            .any(|line| line.contains("foreign-id") && line.contains(&dataset))
    );
    // The access log has the route, but no identifier, address or secret.
    let access = log.lines().find(|line| line.contains("answered"));
    assert!(access.unwrap().contains("/v1/"), "{log}");
    for secret in [PASSWORD, "not the password", "a.b.c"] {
        assert!(!log.contains(secret), "{secret}");
    }
}

#[test]
#[ignore = "slow"]
fn readiness_names_the_unreachable_peer() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let peers = |service: usize| {
        ask(
            &format!("{}/readyz/peers", services.address(service)),
            None,
            None,
        )
    };
    for (service, name) in NAMES.iter().enumerate() {
        assert_eq!(peers(service).0, 200, "{name}");
    }
    services.kill(2);
    let away = services.address(2);
    until(|| match peers(1) {
        (503, words) if words.contains("crypto") && words.contains(&away) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert!(
        services.is_ready(1),
        "a service without its peer must be ready"
    );
    // Gauges are set every few seconds.
    until(|| {
        let metrics = ask(&format!("{}/metrics", services.address(1)), None, None).1;
        let mut names = [
            "tasks_queued{task=\"batch\"} 0",
            "peer_up{peer=\"crypto\"} 0",
            "disk_free_bytes{service=\"computation\"}",
            "database_connections{service=\"computation\"}",
        ]
        .into_iter();
        match names.find(|name| !metrics.contains(name)) {
            Some(missing) => Err(format!("{missing}: {metrics}")),
            None => Ok(()),
        }
    });
}

/// Runs `fhaim admin` on the store of a running service. Returns whether it succeeded, and its output.
pub fn admin(services: &Services, service: usize, command: &[&str]) -> (bool, String) {
    let config = services.home(service).join("config.toml");
    let place = ["--config", config.to_str().unwrap()];
    let done = services.command("ana", &[&["admin"], command, &place[..]].concat());
    let words = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(words).unwrap())
}

#[test]
fn orphans_are_listed_and_deleted() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    let list = ["orphans", "computation", "--age", "0"];
    assert_eq!(
        admin(&services, 1, &list),
        (true, "found: 0, 0.0 MB\n".to_owned())
    );
    let lost = services.home(1).join("blobs/uploads/lost/page");
    fs::create_dir_all(lost.parent().unwrap()).unwrap();
    fs::write(&lost, [7; 100]).unwrap();
    let (well, words) = admin(&services, 1, &list);
    assert!(well && words.contains("100 uploads/lost/page"), "{words}");
    // A blob of this age may belong to an upload that is under way.
    let (well, words) = admin(&services, 1, &[&list[..], &["--delete"]].concat());
    assert!(!well && words.contains("at least 3600 s"), "{words}");
    assert!(lost.exists());
    let old = SystemTime::now() - Duration::from_secs(7200);
    let file = fs::File::options().write(true).open(&lost).unwrap();
    file.set_modified(old).unwrap();
    assert!(admin(&services, 1, &["orphans", "computation", "--delete"]).0);
    assert!(!lost.exists());
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let (well, words) = admin(&services, 1, &["release", "computation", "nobody/0"]);
    assert!(!well && words.contains("no worker has a lease"), "{words}");
    let none = uuid::Uuid::nil().to_string();
    assert!(!admin(&services, 1, &["reopen", &dataset, &none, "0"]).0);
}

#[test]
fn compare_finds_changed_and_missing_acts() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let config = |service: usize| services.home(service).join("config.toml");
    let paths = [0, 1, 2].map(config);
    let [generation, computation, crypto] = paths.each_ref().map(|path| path.to_str().unwrap());
    let compare = || {
        let arguments = [
            "admin",
            "compare",
            "--generation",
            generation,
            "--computation",
            computation,
            "--crypto",
            crypto,
        ];
        let done = services.command("ana", &arguments);
        let words = String::from_utf8(done.stdout).unwrap();
        (done.status.success(), words)
    };
    let (well, words) = compare();
    assert!(well, "{words}");
    assert_eq!(
        words,
        "generation 1 datasets, computation 1 uploads, crypto 1 key sets and 1 chains\n"
    );
    // A changed act with an unchanged head.
    edit(
        &services,
        "UPDATE chain SET act = act || ' ' WHERE height = 2",
    );
    let (well, words) = compare();
    assert!(!well && words.contains("act 2 of the ledger"), "{words}");
    edit(
        &services,
        "UPDATE chain SET act = RTRIM(act) WHERE height = 2",
    );
    // An older copy of the crypto service's store: it lacks the last act, of which other services have the receipt.
    services.kill(2);
    let last = "(SELECT MAX(height) FROM chain)";
    edit(
        &services,
        &format!("DELETE FROM chain WHERE height = {last}"),
    );
    let (well, words) = compare();
    assert!(!well && words.contains("crypto was set back"), "{words}");
}

/// Runs a statement on the crypto service's database.
fn edit(services: &Services, statement: &str) {
    let changed = on_database(services, 2, statement);
    assert!(changed.0 > 0, "no row was changed: {statement}");
}

/// Runs a statement on the database of a service. Returns the number of changed rows and the first column of
/// the selected rows.
pub fn on_database(services: &Services, service: usize, statement: &str) -> (u64, Vec<String>) {
    use sqlx::{Connection, Row};
    sqlx::any::install_default_drivers();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let url = services.database(service);
        let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
        let text = || sqlx::AssertSqlSafe(statement.to_owned());
        let done = match statement.starts_with("SELECT") {
            true => {
                let found = sqlx::query(text()).fetch_all(&mut connection).await;
                let found = found.unwrap();
                (0, found.iter().map(|row| row.get::<String, _>(0)).collect())
            }
            false => {
                let changed = sqlx::query(text()).execute(&mut connection).await;
                (changed.unwrap().rows_affected(), Vec::new())
            }
        };
        connection.close().await.unwrap();
        done
    })
}

/// A killed worker holds a job until its lease of ten minutes ends, unless an operator releases the job.
#[test]
#[ignore = "slow"]
fn operator_releases_the_job_of_a_killed_worker() {
    let mut setting = ServiceOptions::new(PROGRAM);
    let long = ("FHAIM_GENERATION__COMMON__LEASE_SECONDS", "600");
    setting.variables[0].push((long.0.to_owned(), long.1.to_owned()));
    let services = Services::start_in(&Backing::Local, setting);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    // Without the computation service, the job waits for its first batch.
    services.kill(1);
    let started = services.run("ana", &["job", "run", &dataset, "--yes"]);
    let job = started.lines().next().unwrap().to_owned();
    let held = "SELECT lease_token FROM jobs WHERE state = 'running' AND lease_token <> ''";
    until(|| match on_database(&services, 0, held).1.len() {
        1 => Ok(()),
        n => Err(format!("{n} jobs have a lease")),
    });
    services.kill(0);
    services.launch(0);
    services.launch(1);
    services.wait_until_ready();
    // For two seconds, no other worker takes the job.
    let token = on_database(&services, 0, held).1;
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(on_database(&services, 0, held).1, token);
    let (well, words) = admin(&services, 0, &["release", "generation", &job]);
    assert!(well && words == format!("{job} is free\n"), "{words}");
    services.run("ana", &["job", "watch", &job]);
}

#[test]
fn reopened_batch_is_released_and_paid_once() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    let ran = services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let job = ran.lines().next().unwrap().to_owned();
    let ledger = || services.json("ana", &["ledger", &dataset]);
    let (before, first) = (
        ledger(),
        "job = '{job}' AND first = 0".replace("{job}", &job),
    );
    let answers = format!("SELECT answers FROM batches WHERE {first}");
    let released = on_database(&services, 1, &answers).1;
    assert!(!released[0].is_empty());
    let reopen = ["reopen", &dataset, &job, "0"];
    let (well, words) = admin(&services, 1, &reopen);
    assert!(!well, "a released batch was reopened: {words}");
    // The state of a batch that was refused because of a damaged blob.
    let refuse = format!(
        "UPDATE batches SET state = 'refused', reason = 'damaged', answers = NULL WHERE {first}"
    );
    assert_eq!(on_database(&services, 1, &refuse).0, 1);
    let (well, words) = admin(&services, 1, &reopen);
    assert!(well && words == format!("{job}/0 is queued\n"), "{words}");
    let answers = format!("{answers} AND state = 'released'");
    until(|| match on_database(&services, 1, &answers).1 {
        again if again == released => Ok(()),
        again => Err(format!("{again:?}")),
    });
    assert_eq!(ledger()["spent"], before["spent"]);
    assert_eq!(ledger()["receipt"], before["receipt"]);
}

/// Appends the act with which the key service freezes a dataset.
pub fn freeze(services: &Services, dataset: &str, reason: Freeze) {
    let last = format!(
        "SELECT height || ' ' || head FROM chain WHERE dataset = '{dataset}' ORDER BY height DESC LIMIT 1"
    );
    let last = on_database(services, 2, &last).1;
    let (height, head) = last[0].split_once(' ').unwrap();
    let head: fhaim_api::Digest = head.parse().unwrap();
    let tip = Tip {
        height: height.parse().unwrap(),
        head: head.0,
    };
    let act = serde_json::to_string(&Act::Frozen { reason }).unwrap();
    let id: uuid::Uuid = dataset.parse().unwrap();
    let next = tip.append(DatasetId(id.into_bytes()), &act);
    edit(
        services,
        &format!(
            "INSERT INTO chain (dataset, height, kind, act, head, at) VALUES \
             ('{dataset}', {}, 'frozen', '{act}', '{}', 0)",
            next.height,
            fhaim_api::Digest(next.head)
        ),
    );
}

/// A dataset that is frozen because a page could not be decrypted continues once an operator has thawed it.
#[test]
fn thawed_dataset_continues() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    let thaw = ["thaw", dataset.as_str()];
    let (well, words) = admin(&services, 2, &thaw);
    assert!(!well, "a dataset that is not frozen was thawed: {words}");
    freeze(&services, &dataset, Freeze::Noise);
    let run = ["job", "run", &dataset, "--yes", "--watch"];
    let told = services.command("ana", &run);
    let words = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(
        !told.status.success() && words.contains("frozen"),
        "{words}"
    );
    let (well, words) = admin(&services, 2, &thaw);
    assert!(
        well && words == format!("{dataset} is resumed\n"),
        "{words}"
    );
    let jobs = services.json("ana", &["job", "list", &dataset]);
    let failed = jobs
        .as_array()
        .unwrap()
        .iter()
        .find_map(|job| job["id"].as_str());
    match failed {
        Some(job) => {
            services.run("ana", &["job", "retry", job]);
            services.run("ana", &["job", "watch", job])
        }
        None => services.run("ana", &run),
    };
    let ledger = services.json("ana", &["ledger", &dataset]);
    assert_eq!(ledger["frozen"], Value::Null);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn operator_sets_a_new_password() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let (well, words) = admin(&services, 0, &["password", "ana@example.org"]);
    assert!(well, "{words}");
    assert!(!services.try_sign_in("ana").status.success());
    let body = json!({ "email": "ana@example.org", "password": words.trim() });
    let sessions = format!("{}/v1/sessions", services.address(0));
    assert_eq!(ask(&sessions, None, Some(body)).0, 201);
}

/// All three services in one process. Killed when dropped.
pub struct Up {
    pub child: Child,
    pub address: String,
}

impl Up {
    /// Starts the services at a fixed address, because the holder's program stores receipts by address.
    pub fn start(data: &Path, listen: &str) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["up", "--listen", listen, "--data-dir"])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first
            .split_whitespace()
            .find(|word| word.starts_with("http"));
        let address = address.unwrap().trim_end_matches(',').to_owned();
        // The process would fail to print if nobody read its output.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Fails if the process has already ended.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Runs the command as the owner of the first account. Returns whether it succeeded, and its output or errors.
pub fn fhaim(folder: &Path, data: &Path, arguments: &[&str]) -> (bool, String) {
    let first = fs::read_to_string(data.join("first-account")).unwrap_or_default();
    let done = Command::new(PROGRAM)
        .args(arguments)
        .current_dir(folder)
        .env_remove("FHAIM_MEMORY_DIR")
        .env("FHAIM_CONFIG_DIR", folder.join("config"))
        .env("FHAIM_MEMORY_DIR", folder.join("memory"))
        .env("FHAIM_PASSWORD", first.lines().nth(1).unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let words = if done.status.success() {
        done.stdout
    } else {
        done.stderr
    };
    (done.status.success(), String::from_utf8(words).unwrap())
}
