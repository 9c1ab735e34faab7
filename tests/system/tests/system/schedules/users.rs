//! Users that make datasets, upload, run jobs and delete with the command, and repeat commands that fail. They record
//! all answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    sync::{Mutex, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use fhaim_kit::Services;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Stage, refusals::Refusal};

/// Number of runs in a dataset's budget. A user starts one of them; the last one shows whether the dataset is usable.
pub const RUNS: usize = 2;

/// Time limit of a command in seconds. A command that takes longer hangs.
const COMMAND: &str = "120";

/// Time after the last fault and after a command's first failure within which it must succeed or be refused.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of a user's retries after which a job that fails is stuck. The faults of a schedule cause a few.
const MAX_RETRIES: usize = 10;

/// Words of a refusal to start a job, if a service that was set back does not know a complete upload or a signature.
const WITHOUT_UPLOAD: [&str; 4] = [
    "upload its records first",
    "not complete",
    "no upload has",
    "needs the signatures",
];

/// Longest time for a command and its repetitions, even if the faults never end.
const LIMIT: Duration = Duration::from_secs(300);

/// Pause before a user tries again.
const PAUSE: Duration = Duration::from_millis(500);

/// Numbers of records and columns of each table, and the flags of `dataset create`.
pub const VARIANTS: [(usize, usize, &[&str]); 3] = [
    (40, 3, &[]),
    (60, 4, &["--contribution", "counts"]),
    (100, 3, &[]),
];

/// A user's record of a dataset.
#[derive(Clone, Debug)]
pub struct DatasetRecord {
    pub user: String,
    /// The second holder of the dataset.
    pub partner: Option<String>,
    pub dataset: String,
    pub variant: usize,
    /// Time before the dataset was created.
    pub began: Instant,
    pub jobs: Vec<JobRecord>,
    /// Times at which its deletion began and was confirmed.
    pub deleted: Option<[Instant; 2]>,
    /// Refusal that ended the use of the dataset.
    pub refused: Option<Refusal>,
}

/// A user's record of a job.
#[derive(Clone, Debug)]
pub struct JobRecord {
    pub id: String,
    /// Released integers by the number of the release, and the time at which the user saw them first.
    pub seen: BTreeMap<u32, (Instant, Value)>,
    pub results: Option<Results>,
}

/// Results of a job that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Time at which the user had them.
    pub at: Instant,
    /// Integers of each release.
    pub releases: Vec<Value>,
    /// A synthetic table with a fixed seed.
    pub table: String,
}

impl Results {
    /// Returns whether other results are the same.
    pub fn equal(&self, other: &Self) -> bool {
        (&self.releases, &self.table) == (&other.releases, &other.table)
    }
}

/// Counts of a user's failures.
#[derive(Debug, Default)]
pub struct Diary {
    /// Commands that failed and were repeated.
    pub repeated: usize,
    /// Jobs that failed and were retried.
    pub retried: usize,
    /// Reasons for failed jobs.
    pub failures: BTreeSet<String>,
}

/// Result of a command.
pub struct CommandResult {
    pub success: bool,
    pub out: String,
    pub err: String,
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
        fs::create_dir(&folder).unwrap();
        let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
        let schema = names.iter().map(
            |name| json!({ "name": name, "kind": "categorical", "categories": ["0", "1", "2"] }),
        );
        let schema = json!({ "name": "schedules", "columns": schema.collect::<Vec<_>>() });
        let mut table = names.join(",");
        for row in 0..records {
            let value = |column| (row * (column + 1) % 7 + column) % 3;
            let values: Vec<String> = (0..columns).map(|c| value(c).to_string()).collect();
            table = format!("{table}\n{}", values.join(","));
        }
        fs::write(folder.join("t.csv"), table + "\n").unwrap();
        fs::write(folder.join("t.schema.json"), schema.to_string()).unwrap();
    }
}

impl<'a> User<'a> {
    pub fn new(stage: &'a Stage, name: &str) -> Self {
        stage.services.sign_up(name);
        Self {
            stage,
            name: name.to_owned(),
            diary: Mutex::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn into_diary(self) -> Diary {
        self.diary.into_inner().unwrap()
    }

    /// Uses one dataset after the other as long as `loaded` returns true. If there is a partner, it shares the first
    /// one.
    pub fn work(
        &self,
        seed: u64,
        partner: Option<&str>,
        loaded: impl Fn() -> bool,
    ) -> Vec<DatasetRecord> {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut records = Vec::new();
        while loaded() {
            let variant = rng.random_range(0..VARIANTS.len());
            let partner = partner.filter(|_| records.is_empty());
            let name = format!("{}-{}", self.name, records.len());
            let mut record = self.create(variant, partner, &name);
            let deletion = rng.random_range(0..6);
            self.stage.log(&format!("{name} is {}", record.dataset));
            let used = self.use_once(&mut record, deletion == 0, deletion == 1);
            if let Err(refusal) = used {
                self.stage.log(&format!("{name}: {refusal:?}"));
                record.refused = Some(refusal);
            }
            records.push(record);
        }
        records
    }

    /// Uploads, runs a job, and deletes the dataset during the job or after it.
    fn use_once(
        &self,
        record: &mut DatasetRecord,
        during: bool,
        after: bool,
    ) -> Result<(), Refusal> {
        self.upload(record)?;
        self.stage.uploads.fetch_add(1, Ordering::Relaxed);
        if during {
            self.start(record, &Uuid::now_v7().to_string())?;
            return self.delete(record);
        }
        self.job(record)?;
        self.insist(&record.user, &["ledger", &record.dataset])?;
        match after {
            true => self.delete(record),
            false => Ok(()),
        }
    }

    /// Creates a dataset. The service may have made it although the answer was lost.
    pub fn create(&self, variant: usize, partner: Option<&str>, name: &str) -> DatasetRecord {
        let began = Instant::now();
        let (csv, schema) = files(variant);
        let runs = RUNS.to_string();
        let mut create = ["dataset", "create", "--schema", &schema, "--epsilon", "1"].to_vec();
        create.extend(["--runs", &runs, "--name", name, "--yes"]);
        create.extend(VARIANTS[variant].2);
        let keys = self.stage.setup.keys.to_string();
        if self.stage.setup.keys > 1 {
            create.extend(["--keys", &keys]);
        }
        if self.stage.setup.witness {
            create.push("--witness");
        }
        let cards = partner.map(|partner| [self.card(&self.name), self.card(partner)]);
        match &cards {
            Some(cards) => cards
                .iter()
                .for_each(|card| create.extend(["--holder", card])),
            None => create.extend(["--data", &csv]),
        }
        let made = self.until(&self.name, &create, |result| match result.success {
            true => Some(result.out.trim().to_owned()),
            false => self.find(name),
        });
        DatasetRecord {
            user: self.name.clone(),
            partner: partner.map(str::to_owned),
            // A refusal here is a finding: no data can have been lost.
            dataset: made.unwrap_or_else(|refusal| panic!("{name}: {refusal:?}")),
            variant,
            began,
            jobs: Vec::new(),
            deleted: None,
            refused: None,
        }
    }

    /// Writes a holder's card, and returns its name.
    fn card(&self, holder: &str) -> String {
        let join = ["dataset", "join", "--record-bound", "128"];
        let text = self.until(holder, &join, |result| {
            result.success.then(|| result.out.clone())
        });
        let name = format!("{holder}.card.json");
        let path = self.stage.services.folder.path().join(&name);
        fs::write(path, text.unwrap()).unwrap();
        name
    }

    /// Returns the identifier of the dataset with a name.
    fn find(&self, name: &str) -> Option<String> {
        let listed = self.run(&self.name, &["dataset", "list", "--json"]);
        let listed: Value = serde_json::from_str(&listed.out).ok()?;
        let mut listed = listed.as_array()?.iter();
        let found = listed.find(|dataset| dataset["name"] == name)?;
        Some(found["id"].as_str()?.to_owned())
    }

    /// Uploads the part of each holder. Does nothing if the dataset has it.
    fn upload(&self, record: &DatasetRecord) -> Result<(), Refusal> {
        let (csv, _) = files(record.variant);
        let holders = [Some(&record.user), record.partner.as_ref()];
        for holder in holders.into_iter().flatten() {
            if record.partner.is_some() {
                self.insist(holder, &["dataset", "sign", &record.dataset, "--yes"])?;
            }
            let upload = [
                "dataset",
                "upload",
                &record.dataset,
                "--data",
                &csv,
                "--yes",
            ];
            self.until(holder, &upload, |result| {
                (result.success || result.err.contains("uploaded already")).then_some(())
            })?;
        }
        Ok(())
    }

    /// Starts a job. A repeated command with this identifier asks for the same job.
    fn start(&self, record: &DatasetRecord, job: &str) -> Result<(), Refusal> {
        let run = ["job", "run", &record.dataset, "--job", job, "--yes"];
        loop {
            let start = self.until(&self.name, &run, |result| {
                let lacks_upload = WITHOUT_UPLOAD
                    .iter()
                    .any(|words| result.err.contains(words));
                match forgotten_job(&result.err) {
                    Some(job) => Some(Start::Forgotten(job)),
                    None if lacks_upload => Some(Start::WithoutUpload),
                    None => result.success.then_some(Start::Started),
                }
            })?;
            match start {
                Start::Started => return Ok(()),
                Start::WithoutUpload => self.upload(record)?,
                // A generation service that was set back has forgotten an earlier job, which must continue first.
                Start::Forgotten(other) => self.start(record, &other)?,
            }
        }
    }

    /// Runs a job to its end.
    pub fn job(&self, record: &mut DatasetRecord) -> Result<(), Refusal> {
        record.jobs.push(JobRecord {
            id: Uuid::now_v7().to_string(),
            seen: BTreeMap::new(),
            results: None,
        });
        let mut job = record.jobs.pop().unwrap();
        let finished = self.finish(record, &mut job);
        record.jobs.push(job);
        finished
    }

    /// Follows a job until it is done. Starts it again if the service has forgotten it, and retries it when it fails.
    pub fn finish(&self, record: &DatasetRecord, job: &mut JobRecord) -> Result<(), Refusal> {
        let began = Instant::now();
        self.start(record, &job.id)?;
        loop {
            let watched = self.run(&self.name, &["job", "watch", &job.id, "--json"]);
            self.see(job);
            let shown = match self.insist(&self.name, &["job", "show", &job.id]) {
                Ok(shown) => shown,
                // A generation service that was set back does not know the job.
                Err(_) => {
                    self.start(record, &job.id)?;
                    continue;
                }
            };
            let shown: Value = serde_json::from_str(&shown).unwrap();
            match shown["state"].as_str().unwrap() {
                "done" => match self.results(&job.id) {
                    Ok(results) => {
                        job.results = Some(results);
                        return Ok(());
                    }
                    Err(refusal) if began.elapsed() > PATIENCE => return Err(refusal),
                    Err(_) => {}
                },
                "failed" | "cancelled" => self.retry(record, &job.id, &shown)?,
                _ if self.is_hopeless(began) => return Err(Refusal::stuck(&shown.to_string())),
                _ => self.note_failure(&self.name, &["job", "watch"], &watched),
            }
        }
    }

    /// Uploads again where that helps, and retries a job that failed.
    fn retry(&self, record: &DatasetRecord, job: &str, shown: &Value) -> Result<(), Refusal> {
        let error = shown["error"].as_str().unwrap_or_default().to_owned();
        self.stage
            .log(&format!("{}: job {job} failed: {error}", self.name));
        let mut diary = self.diary.lock().unwrap();
        diary.retried += 1;
        let failures = diary.retried;
        diary.failures.insert(error.clone());
        drop(diary);
        if let Some(refusal) = Refusal::of(&error) {
            return Err(refusal);
        }
        if failures > MAX_RETRIES {
            return Err(Refusal::stuck(&error));
        }
        self.upload(record)?;
        // The job may not be known any more; then it is started again.
        let retry = ["job", "retry", job];
        let retried = self.until(&self.name, &retry, |result| {
            let is_unknown = result.err.contains("\"kind\":\"not-found\"");
            let is_started = result.err.contains("\"kind\":\"conflict\"");
            (result.success || is_unknown || is_started).then_some(())
        });
        thread::sleep(PAUSE);
        retried
    }

    /// Records the integers that a job has released so far. Reports integers that differ from those seen before.
    fn see(&self, job: &mut JobRecord) {
        let listed = self.run(&self.name, &["job", "releases", &job.id, "--json"]);
        let Ok(Value::Array(releases)) = serde_json::from_str(&listed.out) else {
            return;
        };
        for release in releases {
            let number = u32::try_from(release["number"].as_u64().unwrap()).unwrap();
            let values = &release["values"];
            let (_, first) = job
                .seen
                .entry(number)
                .or_insert_with(|| (Instant::now(), values.clone()));
            if first != values {
                self.stage.finding(format!(
                    "release {number} of job {} has two answers: {first} and {values}",
                    job.id
                ));
            }
        }
    }

    /// Fetches the results of a job that is done. A service that is set back meanwhile releases the same integers again,
    /// so they are read until they are the same before and after the table.
    pub fn results(&self, job: &str) -> Result<Results, Refusal> {
        let mut releases = self.releases(job)?;
        loop {
            let table = self.download(job)?;
            let again = self.releases(job)?;
            if again == releases {
                return Ok(Results {
                    at: Instant::now(),
                    releases,
                    table,
                });
            }
            releases = again;
        }
    }

    /// Fetches the integers of all releases of a job.
    fn releases(&self, job: &str) -> Result<Vec<Value>, Refusal> {
        let releases = self.insist(&self.name, &["job", "releases", job])?;
        let releases: Vec<Value> = serde_json::from_str(&releases).unwrap();
        let values = |release: &Value| release["values"].clone();
        Ok(releases.iter().map(values).collect())
    }

    /// Draws a table with the model of a job that is done.
    fn download(&self, job: &str) -> Result<String, Refusal> {
        let out = format!("{}.csv", self.name);
        let draw = ["download", job, "--rows", "40", "--seed", "3"];
        let download = [&draw[..], &["--out", &out, "--force"]].concat();
        self.until(&self.name, &download, |result| result.success.then_some(()))?;
        let table = self.stage.services.folder.path().join(out);
        Ok(fs::read_to_string(table).unwrap())
    }

    /// Deletes a dataset.
    pub fn delete(&self, record: &mut DatasetRecord) -> Result<(), Refusal> {
        let began = Instant::now();
        let delete = ["dataset", "delete", &record.dataset, "--yes"];
        self.until(&self.name, &delete, |result| {
            let is_gone = result.err.contains("Not found");
            (result.success || is_gone).then_some(())
        })?;
        record.deleted = Some([began, Instant::now()]);
        Ok(())
    }

    /// Repeats a command until it succeeds, and returns its JSON output.
    pub fn insist(&self, who: &str, arguments: &[&str]) -> Result<String, Refusal> {
        self.until(who, arguments, |result| {
            result.success.then(|| result.out.clone())
        })
    }

    /// Repeats a command until `wanted` returns a value, or the command is refused for a reason that stays.
    fn until<T>(
        &self,
        who: &str,
        arguments: &[&str],
        wanted: impl Fn(&CommandResult) -> Option<T>,
    ) -> Result<T, Refusal> {
        let started = Instant::now();
        // The others do not have the flag, or print something else with it.
        let json: &[&str] = match arguments[..2] {
            ["dataset", "join" | "delete" | "create"] | ["download", _] => &[],
            _ => &["--json"],
        };
        let arguments = [arguments, json].concat();
        loop {
            let result = self.run(who, &arguments);
            if let Some(found) = wanted(&result) {
                return Ok(found);
            }
            if let Some(refusal) = Refusal::of(&result.err) {
                return Err(refusal);
            }
            if self.is_hopeless(started) {
                return Err(Refusal::stuck(&format!("{arguments:?}: {}", result.err)));
            }
            self.note_failure(who, &arguments, &result);
        }
    }

    /// Returns whether a command that fails since `started` should have succeeded.
    fn is_hopeless(&self, started: Instant) -> bool {
        let quiet = *self.stage.quiet.lock().unwrap();
        let is_quiet = quiet.is_some_and(|quiet| quiet.elapsed() > PATIENCE);
        (is_quiet && started.elapsed() > PATIENCE) || started.elapsed() > LIMIT
    }

    /// Records a failed command, signs in again if the session has ended, and waits for a pause.
    fn note_failure(&self, who: &str, arguments: &[&str], result: &CommandResult) {
        let err = result.err.trim();
        let (command, last) = (&arguments[..2], err.lines().last().unwrap_or_default());
        self.stage
            .log(&format!("{who}: {}: {last}", command.join(" ")));
        self.diary.lock().unwrap().repeated += 1;
        // A service that was set back does not know the session. A token that is refused because of a clock is valid
        // again when the clock is right.
        if err.contains("account login") && !err.contains("token's time") {
            self.stage.services.try_sign_in(who);
        }
        thread::sleep(PAUSE);
    }

    pub fn run(&self, who: &str, arguments: &[&str]) -> CommandResult {
        let mut limit = Command::new("timeout");
        limit.args(["-s", "KILL", COMMAND]);
        let services = &self.stage.services;
        let output = services.command_under(limit, who, arguments).output();
        let output = output.unwrap();
        // A program that `timeout` has to kill with this signal is killed together with `timeout`.
        if matches!(output.status.code(), None | Some(124 | 137)) {
            self.stage.finding(format!("{who}: {arguments:?} hangs"));
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        CommandResult {
            success: output.status.success(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
}

/// Returns the paths of a variant's table and schema.
fn files(variant: usize) -> (String, String) {
    let of = |name| format!("variant-{variant}/{name}");
    (of("t.csv"), of("t.schema.json"))
}

/// Returns the path of a variant's table.
pub fn table(variant: usize) -> String {
    files(variant).0
}

/// The result of starting a job.
enum Start {
    Started,
    WithoutUpload,
    /// Another job has a run, and the generation service does not know it.
    Forgotten(String),
}

/// Returns the job that the generation service has forgotten, if an error names one.
fn forgotten_job(error: &str) -> Option<String> {
    let (_, rest) = error.split_once("has forgotten job ")?;
    let job = rest.split(' ').next()?;
    Some(job.to_owned())
}
