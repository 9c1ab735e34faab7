//! Users that make datasets, upload and run jobs with the command, and repeat commands that fail.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use fhaim_kit::Services;
use serde_json::{Value, json};

use super::{COMPUTATION, GENERATION, Stage};

/// A clock is right again after this time.
const LONGEST_JUMP: Duration = Duration::from_secs(10);

/// Number of runs in a dataset's budget, and of jobs that a user starts over it.
pub const RUNS: usize = 3;

/// Time limit of a command in seconds. A command that takes longer hangs.
const COMMAND: &str = "300";

/// Time within which a user must succeed.
const PATIENCE: Duration = Duration::from_secs(900);

/// Pause before a user tries again.
const PAUSE: Duration = Duration::from_millis(700);

/// Numbers of records and columns, and seed of the ladder, of each table.
pub const VARIANTS: [(usize, usize, &str); 3] = [(60, 3, "5"), (300, 5, "6"), (450, 6, "7")];

/// A dataset and its jobs.
#[derive(Clone, Debug)]
pub struct Owned {
    pub user: String,
    pub dataset: String,
    pub variant: usize,
    pub jobs: Vec<String>,
}

/// Counts of a user's actions and failures.
#[derive(Debug, Default)]
pub struct Diary {
    /// Commands that failed and were repeated.
    pub repeated: usize,
    /// Sessions that ended, so that the user signed in again.
    pub signed_out: usize,
    /// Jobs that failed and were retried.
    pub retried: usize,
    /// Reasons for failed jobs.
    pub failures: BTreeSet<String>,
    /// Downloaded tables.
    pub downloads: usize,
    /// Duration of each job in seconds.
    pub seconds: Vec<f64>,
    /// Longest time without an event of a job.
    pub outage: Duration,
}

/// Result of a command.
struct CommandResult {
    success: bool,
    out: String,
    err: String,
}

/// A user with an account.
pub struct User<'a> {
    stage: &'a Stage,
    name: String,
    diary: Mutex<Diary>,
}

/// Writes the tables of all variants. The categories of neighbouring columns depend on each other.
pub fn write_tables(services: &Services) {
    for (variant, &(records, columns, _)) in VARIANTS.iter().enumerate() {
        let folder = services.folder.path().join(format!("variant-{variant}"));
        std::fs::create_dir(&folder).unwrap();
        let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
        let schema = names.iter().map(|name| {
            let categories = ["0", "1", "2", "3"];
            json!({ "name": name, "kind": "categorical", "categories": categories })
        });
        let schema = json!({ "name": "faults", "columns": schema.collect::<Vec<_>>() });
        let mut table = names.join(",");
        for row in 0..records {
            let value = |column| (row * (column + 1) % 7 + column) % 4;
            let values: Vec<String> = (0..columns).map(|c| value(c).to_string()).collect();
            table = format!("{table}\n{}", values.join(","));
        }
        std::fs::write(folder.join("t.csv"), table + "\n").unwrap();
        std::fs::write(folder.join("t.schema.json"), schema.to_string()).unwrap();
    }
}

impl<'a> User<'a> {
    pub fn new(stage: &'a Stage, name: String) -> Self {
        stage.services.sign_up(&name);
        Self {
            stage,
            name,
            diary: Mutex::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn into_diary(self) -> Diary {
        self.diary.into_inner().unwrap()
    }

    /// Runs the jobs of a first dataset, then makes datasets and runs their jobs as long as `loaded` returns true.
    /// Users begin with different tables.
    pub fn work(&self, first: Owned, loaded: impl Fn() -> bool) -> Vec<Owned> {
        let mut owned = vec![self.jobs(first)];
        for number in 1.. {
            if !loaded() {
                break;
            }
            let variant = (owned[0].variant + number) % VARIANTS.len();
            let dataset = self.dataset(variant, &format!("{}-{number}", self.name));
            owned.push(self.jobs(dataset));
        }
        owned
    }

    /// Runs all jobs of a dataset to their ends.
    pub fn jobs(&self, mut owned: Owned) -> Owned {
        for _ in 0..RUNS {
            let job = self.start(&owned);
            self.complete(&job);
            owned.jobs.push(job);
            self.look_around(&owned);
        }
        owned
    }

    /// Makes a dataset and uploads it.
    pub fn dataset(&self, variant: usize, name: &str) -> Owned {
        let (csv, schema) = files(variant);
        let runs = RUNS.to_string();
        let create = ["dataset", "create", "--schema", &schema, "--data", &csv];
        let more = ["--epsilon", "1", "--runs", &runs, "--name", name, "--yes"];
        let create = [&create[..], &more[..]].concat();
        let dataset = self.until(&create, |result| match result.success {
            true => Some(result.out.trim().to_owned()),
            // The service may have made the dataset although the answer was lost.
            false => self.find(&["dataset", "list"], |dataset| dataset["name"] == name),
        });
        self.upload(&dataset, variant);
        Owned {
            user: self.name.clone(),
            dataset,
            variant,
            jobs: Vec::new(),
        }
    }

    fn upload(&self, dataset: &str, variant: usize) {
        let ((csv, _), seed) = (files(variant), VARIANTS[variant].2);
        let upload = ["dataset", "upload", dataset, "--data", &csv];
        let upload = [&upload[..], &["--seed", seed, "--yes"]].concat();
        self.until(&upload, |result| {
            (result.success || result.err.contains("uploaded already")).then_some(())
        });
    }

    /// Starts a job. The command prints the job's identifier first. A repeated command with this identifier asks for
    /// the same job.
    pub fn start(&self, owned: &Owned) -> String {
        let (started, mut again) = (Instant::now(), None);
        loop {
            let mut run = vec!["job", "run", &owned.dataset, "--yes", "--json"];
            run.extend(again.iter().flat_map(|job: &String| ["--job", job]));
            let result = self.run_gated(&run);
            if result.success {
                return id(&serde_json::from_str(&result.out).unwrap());
            }
            let spent = result.err.contains("none is left");
            assert!(!spent, "{owned:?}: {}", result.err);
            self.note_failure(&run, &result, started);
            if result.err.contains("upload its records first") {
                // After a rollback, the generation service may not know that the upload is complete.
                self.upload(&owned.dataset, owned.variant);
            }
            let told = result
                .err
                .lines()
                .find_map(|line| line.strip_prefix("job "));
            again = again.or(told.map(str::to_owned));
        }
    }

    /// Watches a job until it is done, and retries it when it fails.
    fn complete(&self, job: &str) {
        let started = Instant::now();
        let mut seen = Seen::default();
        loop {
            if self.watch(job, &mut seen).success {
                break;
            }
            let state = self.persist(&["job", "show", job]);
            let error = state["error"].as_str().unwrap_or_default().to_owned();
            match state["state"].as_str().unwrap() {
                "done" => break,
                "failed" | "cancelled" => self.retry(job, error),
                _ => assert!(started.elapsed() < PATIENCE, "{job} hangs: {state}"),
            }
            thread::sleep(PAUSE);
        }
        seen.note();
        let mut diary = self.diary.lock().unwrap();
        diary.outage = diary.outage.max(seen.longest);
        diary.seconds.push(started.elapsed().as_secs_f64());
    }

    fn retry(&self, job: &str, error: String) {
        self.stage
            .log(&format!("{}: job {job} failed: {error}", self.name));
        if error.contains("refused a release") {
            self.stage
                .finding(format!("job {job} of {}: {error}", self.name));
        }
        let mut diary = self.diary.lock().unwrap();
        diary.retried += 1;
        diary.failures.insert(error);
        drop(diary);
        self.persist(&["job", "retry", job]);
    }

    /// Watches a job until it ends or the command gives up. Returns whether the job is done.
    pub fn see(&self, job: &str) -> bool {
        self.watch(job, &mut Seen::default()).success
    }

    /// Starts a job that must fail, and returns the reason.
    pub fn refused(&self, owned: &Owned) -> String {
        let result = self.run(&["job", "run", &owned.dataset, "--yes", "--json"], |_| ());
        if !result.success {
            return result.err;
        }
        let job = id(&serde_json::from_str(&result.out).unwrap());
        match self.see(&job) {
            true => "the job is done".to_owned(),
            false => self.persist(&["job", "show", &job])["error"].to_string(),
        }
    }

    fn watch(&self, job: &str, seen: &mut Seen) -> CommandResult {
        let result = self.run(&["job", "watch", job, "--json"], |line| {
            let event: Value = serde_json::from_str(line).unwrap_or_default();
            if event["number"].as_u64() > Some(seen.number) {
                seen.number = event["number"].as_u64().unwrap_or_default();
                seen.note();
            }
        });
        if !result.success {
            self.note_failure(&["job", "watch", job], &result, Instant::now());
        }
        result
    }

    /// Reads the ledger and downloads a synthetic table.
    fn look_around(&self, owned: &Owned) {
        self.persist(&["ledger", &owned.dataset]);
        let out = format!("{}.csv", self.name);
        let download = [
            "download",
            &owned.jobs[0],
            "--rows",
            "50",
            "--out",
            &out,
            "--force",
        ];
        self.until(&download, |result| result.success.then_some(()));
        self.diary.lock().unwrap().downloads += 1;
    }

    /// Repeats a command with JSON output until it succeeds.
    pub fn persist(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        self.until(&arguments, |result| {
            result
                .success
                .then(|| serde_json::from_str(&result.out).unwrap())
        })
    }

    /// Returns the identifier of the first listed item that matches.
    fn find(&self, list: &[&str], is: impl Fn(&Value) -> bool) -> Option<String> {
        let items = self.persist(list);
        let mut items = items.as_array().unwrap().iter();
        items.find(|item| is(item)).map(id)
    }

    /// Repeats a command until `wanted` returns a value.
    fn until<T>(&self, arguments: &[&str], wanted: impl Fn(&CommandResult) -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            let result = self.run_gated(arguments);
            if let Some(found) = wanted(&result) {
                return found;
            }
            self.note_failure(arguments, &result, started);
        }
    }

    /// Runs a command. If a rollback could lose its result, waits at the service's gate first.
    fn run_gated(&self, arguments: &[&str]) -> CommandResult {
        let service = match arguments {
            ["dataset", "create", ..] | ["job", "run", ..] => Some(GENERATION),
            ["dataset", "upload", ..] => Some(COMPUTATION),
            _ => None,
        };
        let _inside = service.map(|service| self.stage.gates[service].enter());
        self.run(arguments, |_| ())
    }

    /// Records a failed command, signs in again if the session has ended, and waits for a pause.
    fn note_failure(&self, arguments: &[&str], result: &CommandResult, since: Instant) {
        let (name, err) = (&self.name, result.err.trim());
        self.stage
            .log(&format!("{name}: {}: {err}", arguments.join(" ")));
        assert!(since.elapsed() < PATIENCE, "{name}: {arguments:?}: {err}");
        self.diary.lock().unwrap().repeated += 1;
        // A token can be refused because of a clock jump, which ends without a new sign-in. A rollback also loses the
        // token that replaced another shortly before, and then only a new sign-in helps.
        let is_lasting = !err.contains("the token") || since.elapsed() > LONGEST_JUMP;
        if err.contains("account login") && is_lasting {
            self.diary.lock().unwrap().signed_out += 1;
            self.stage.services.try_sign_in(name);
        }
        thread::sleep(PAUSE);
    }

    fn run(&self, arguments: &[&str], mut line: impl FnMut(&str)) -> CommandResult {
        let mut limit = Command::new("timeout");
        limit.args(["-s", "KILL", COMMAND]);
        let mut command = self
            .stage
            .services
            .command_under(limit, &self.name, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let err = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text)
        });
        let mut out = String::new();
        for text in BufReader::new(stdout).lines() {
            let text = text.unwrap();
            line(&text);
            out.push_str(&text);
            out.push('\n');
        }
        let status = child.wait().unwrap();
        if matches!(status.code(), Some(124 | 137)) {
            self.stage
                .finding(format!("{}: {arguments:?} hangs", self.name));
        }
        CommandResult {
            success: status.success(),
            out,
            err: err.join().unwrap().unwrap(),
        }
    }
}

/// Last seen event of a job.
struct Seen {
    number: u64,
    last: Instant,
    longest: Duration,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            number: 0,
            last: Instant::now(),
            longest: Duration::ZERO,
        }
    }
}

impl Seen {
    fn note(&mut self) {
        self.longest = self.longest.max(self.last.elapsed());
        self.last = Instant::now();
    }
}

fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap().to_owned()
}

/// Returns the paths of a variant's table and schema.
fn files(variant: usize) -> (String, String) {
    let of = |name| format!("variant-{variant}/{name}");
    (of("t.csv"), of("t.schema.json"))
}
