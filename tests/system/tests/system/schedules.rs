//! Random schedules of faults for the services, under load. Each schedule follows from a seed: the services, the users
//! and one fault per second. A fault kills services, stops one, sets any of them back to copies of their data, fills a
//! disk, moves a clock, or loses and delays messages. Afterwards nothing is lost, nothing is spent twice and nothing is
//! stuck: see `verdict.rs` for the checks.
//!
//! A seed determines the events and their pauses, but not the operating system, so that a repeated schedule can take
//! another course. A schedule prints its events, and its numbers in the columns of `schedules/results.csv`.
//!
//! This command plays 200 schedules, half of them on each storage (`.ci/servers` starts the servers):
//!
//! ```sh
//! FHAIM_SCHEDULES=0..100 cargo nextest run --workspace --run-ignored all --no-capture -E 'test(random_schedules)'
//! ```
//!
//! Environment variables:
//!
//! - `FHAIM_SCHEDULES`: range of the seeds on each storage, such as `7..8`; without it, a few seeds
//! - `FHAIM_SCHEDULE_SECONDS`: number of faults of a schedule, one per second
//! - `FHAIM_SCHEDULE_PROGRAM`: program to run instead of the tests' own, such as its release build
//!   (`cargo build --release -p fhaim-system`)
//!
//! Full disks need root, and clock jumps need the Debian package `faketime`.

mod chains;
mod clock;
mod disk;
mod inject;
mod plan;
mod planted;
mod proxy;
mod refusals;
mod users;
mod verdict;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    str::FromStr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fhaim_kit::{Backing, Between, NAMES, ServiceOptions, Services, until};

use chains::Chains;
use clock::Clocks;
use disk::Disks;
use inject::Injector;
use plan::{Kind, Setup};
use proxy::Proxies;
use users::{DatasetRecord, Diary, User};
use verdict::Outcome;

use super::PROGRAM;

const GENERATION: usize = 0;
const COMPUTATION: usize = 1;
const CRYPTO: usize = 2;

/// Default number of faults of a schedule.
const SECONDS: usize = 10;

/// Seeds that the tests run by default: those that found a defect.
const SEEDS: [u64; 3] = [31, 65, 80];

/// Longest time to wait for the first uploads.
const UPLOADS: Duration = Duration::from_secs(60);

const USERS: [&str; 3] = ["ana", "bob", "eve"];

/// The event that a service was set back to a copy of its data.
struct SetBack {
    service: usize,
    /// A time at which the copy had all data.
    copied: Instant,
    /// Time at which the copy replaced the data.
    at: Instant,
    /// Ledgers of a key service before. Empty for other services.
    before: Chains,
    /// Datasets of which a key service lost acts or keys.
    lost: BTreeSet<String>,
}

/// State of a schedule.
struct Stage {
    setup: Setup,
    services: Services,
    proxies: Arc<Proxies>,
    disks: Disks,
    clocks: Clocks,
    started: Instant,
    /// Number of datasets that users have uploaded.
    uploads: AtomicUsize,
    /// Time at which all faults were over.
    quiet: Mutex<Option<Instant>>,
    set_backs: Mutex<Vec<SetBack>>,
    /// Number of faults of each kind that happened.
    counts: Mutex<BTreeMap<Kind, usize>>,
    findings: Mutex<Vec<String>>,
}

impl Stage {
    fn new(setup: Setup, backing: &Backing) -> Self {
        let disks = Disks::mount().unwrap();
        let clocks = Clocks::new().unwrap();
        let proxies = Arc::new(Proxies::new());
        let between: Arc<dyn Between> = proxies.clone();
        let mut setting = ServiceOptions {
            between: Some(between),
            homes: Some(disks.homes()),
            witness: setup.witness,
            keys: setup.keys,
            ..ServiceOptions::new(PROGRAM)
        };
        if let Some(program) = env::var_os("FHAIM_SCHEDULE_PROGRAM") {
            setting.program = program.into();
        }
        for (service, variables) in setting.variables.iter_mut().enumerate() {
            let workers = format!("FHAIM_{}__COMMON__WORKERS", NAMES[service].to_uppercase());
            variables.push((workers, "2".to_owned()));
            // The test searches the logs for text.
            variables.push(("NO_COLOR".to_owned(), "1".to_owned()));
            variables.extend(clocks.variables(service));
        }
        let stage = Self {
            setup,
            services: Services::start_in(backing, setting),
            proxies,
            disks,
            clocks,
            started: Instant::now(),
            uploads: AtomicUsize::new(0),
            quiet: Mutex::default(),
            set_backs: Mutex::default(),
            counts: Mutex::default(),
            findings: Mutex::default(),
        };
        users::write_tables(&stage.services);
        stage
    }

    fn log(&self, text: &str) {
        self.log_at(Instant::now(), text);
    }

    fn log_at(&self, at: Instant, text: &str) {
        let seconds = at.saturating_duration_since(self.started).as_secs_f64();
        eprintln!("{seconds:8.2} s  {text}");
    }

    /// Records something that must not happen. The schedule then fails at its end.
    fn finding(&self, text: String) {
        self.log(&format!("FINDING: {text}"));
        self.findings.lock().unwrap().push(text);
    }

    /// Returns whether a service was set back to before `time` after it.
    fn is_set_back_before(&self, service: usize, time: Instant) -> bool {
        let set_backs = self.set_backs.lock().unwrap();
        let mut of_service = set_backs
            .iter()
            .filter(|set_back| set_back.service == service);
        of_service.any(|set_back| set_back.copied < time && set_back.at > time)
    }
}

/// Reads an environment variable, or returns a default if it is not set.
fn variable_or<T: FromStr>(name: &str, otherwise: T) -> T {
    match env::var(name) {
        Ok(text) => text
            .parse()
            .ok()
            .unwrap_or_else(|| panic!("{name}={text} is invalid")),
        Err(_) => otherwise,
    }
}

/// Returns the seeds that the environment names.
fn seeds() -> Vec<u64> {
    let Ok(text) = env::var("FHAIM_SCHEDULES") else {
        return SEEDS.to_vec();
    };
    let range = || -> Option<Range<u64>> {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    range()
        .unwrap_or_else(|| panic!("FHAIM_SCHEDULES={text} is not a range such as 0..100"))
        .collect()
}

/// Runs the schedules of all seeds on a storage, and fails if one of them has a finding.
fn run_all(storage: &str, backing: &Backing) {
    let mut failed = Vec::new();
    for seed in seeds() {
        let played = catch_unwind(AssertUnwindSafe(|| {
            run_schedule(storage, Setup::of(seed), backing)
        }));
        match played {
            Ok(findings) if findings.is_empty() => {}
            Ok(findings) => failed.push(format!("seed {seed}: {}", findings.join("\n"))),
            Err(_) => failed.push(format!("seed {seed} panicked")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "slow; needs mount and faketime"]
fn random_schedules_on_sqlite_lose_spend_and_stick_nothing() {
    run_all("sqlite", &Backing::Local);
}

#[test]
#[ignore = "slow; needs mount, faketime, FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]
fn random_schedules_on_postgres_and_s3_lose_spend_and_stick_nothing() {
    run_all("postgres", &Backing::remote());
}

/// Runs a schedule, and returns its findings.
fn run_schedule(storage: &str, setup: Setup, backing: &Backing) -> Vec<String> {
    eprintln!("schedule {} on {storage}: {setup:?}", setup.seed);
    let stage = Stage::new(setup, backing);
    clocks_can_be_set(&stage);
    let users: Vec<User<'_>> = USERS[..setup.users]
        .iter()
        .map(|name| User::new(&stage, name))
        .collect();
    let mut records = disturb(&stage, &users);
    stage.services.wait_until_ready();
    let outcome = verdict::judge(&stage, &users, &mut records);
    for answer in stage.proxies.faulty() {
        stage.finding(format!("a service returned an invalid status: {answer}"));
    }
    let complaints = verdict::read_logs(&stage);
    eprintln!("log lines of the services:\n{complaints}");
    let diaries: Vec<Diary> = users.into_iter().map(User::into_diary).collect();
    eprintln!("{}", result_line(&stage, storage, outcome, &diaries));
    for failure in diaries.iter().flat_map(|diary| &diary.failures) {
        eprintln!("a job failed: {failure}");
    }
    let findings = stage.findings.lock().unwrap();
    findings.clone()
}

/// Runs the users and the faults until both have ended.
fn disturb(stage: &Stage, users: &[User<'_>]) -> Vec<DatasetRecord> {
    let setup = stage.setup;
    let seconds = variable_or("FHAIM_SCHEDULE_SECONDS", SECONDS);
    let injector = Injector::new(stage);
    thread::scope(|scope| {
        let _supervised = injector.supervised();
        scope.spawn(|| injector.supervise());
        let loaded = || stage.quiet.lock().unwrap().is_none();
        let working = users.iter().enumerate().map(|(number, user)| {
            let partner = (setup.is_joint && number == 0).then_some(USERS[1]);
            let seed = setup.seed * 8 + number as u64;
            scope.spawn(move || user.work(seed, partner, loaded))
        });
        let working: Vec<_> = working.collect();
        let start = Instant::now();
        let number = || stage.uploads.load(Ordering::Relaxed);
        while setup.begins_with_jobs && number() < users.len() && start.elapsed() < UPLOADS {
            thread::sleep(Duration::from_millis(20));
        }
        injector.run(setup.faults().take(seconds));
        stage.log("no more faults");
        *stage.quiet.lock().unwrap() = Some(Instant::now());
        let records = working.into_iter().flat_map(|work| work.join().unwrap());
        let records = records.collect();
        stage.log("all users have ended");
        records
    })
}

/// Checks that the services see their clocks jump. Otherwise these faults would have no effect.
fn clocks_can_be_set(stage: &Stage) {
    let clocks = &stage.clocks;
    (0..NAMES.len()).for_each(|service| clocks.set(service, 3600).unwrap());
    for (service, name) in NAMES.iter().enumerate() {
        until(|| match stage.services.clock(service) {
            Some(clock) if clock >= now() + 3000 => Ok(()),
            _ => Err(format!("{name} does not see that its clock was set")),
        });
        clocks.set(service, 0).unwrap();
    }
    thread::sleep(Duration::from_secs(2));
}

/// Returns the current time in seconds since 1970.
fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(now.unwrap().as_secs()).unwrap()
}

/// Returns a schedule's numbers in one line: storage, seed, services, users, faults of each kind, and what became of
/// the datasets.
fn result_line(stage: &Stage, storage: &str, outcome: Outcome, diaries: &[Diary]) -> String {
    let setup = stage.setup;
    let counts = stage.counts.lock().unwrap();
    let faults = Kind::ALL.map(|kind| counts.get(&kind).copied().unwrap_or(0).to_string());
    let sum = |of: fn(&Diary) -> usize| diaries.iter().map(of).sum::<usize>();
    format!(
        "RESULT,{storage},{},{},{},{},{},{},{},{},{},{},{},{},{:.0}",
        setup.seed,
        setup.services().count(),
        setup.users,
        u8::from(setup.is_joint),
        faults.join(","),
        outcome.datasets,
        outcome.deleted,
        outcome.done,
        outcome.lost,
        sum(|diary| diary.repeated),
        sum(|diary| diary.retried),
        stage.findings.lock().unwrap().len(),
        stage.started.elapsed().as_secs_f64(),
    )
}
