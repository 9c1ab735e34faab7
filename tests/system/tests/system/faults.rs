//! The services under load with one fault per second, from a seed. Every job ends with the releases of an undisturbed
//! run, and is paid once.
//!
//! Environment variables:
//!
//! - `FHAIM_FAULT_SECONDS`: duration of the load
//! - `FHAIM_FAULT_SEED`: seed of the faults
//! - `FHAIM_FAULT_PROGRAM`: program to run instead of the tests' own, such as its release build
//!   (`cargo build --release -p fhaim-system`)
//!
//! Full disks need root, and clock jumps need the Debian package `faketime`.

mod clock;
mod disk;
mod gate;
mod inject;
mod plan;
mod proxy;
mod users;
mod verdict;

use std::{
    collections::BTreeMap,
    env,
    fmt::Write,
    str::FromStr,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use fhaim_kit::{Backing, Between, NAMES, ServiceOptions, Services, until};

use clock::Clocks;
use disk::Disks;
use gate::Gate;
use inject::Injector;
use plan::{Kind, Plan};
use proxy::Proxies;
use users::{Diary, Owned, User, VARIANTS};
use verdict::Left;

use super::PROGRAM;

const GENERATION: usize = 0;
const COMPUTATION: usize = 1;
const CRYPTO: usize = 2;

/// Default duration of the load in seconds.
const SECONDS: u64 = 30;

/// Default seed of the faults.
const SEED: u64 = 9;

const USERS: [&str; 6] = ["ana", "bob", "eve", "ida", "lea", "tom"];

/// Counts for a kind of fault.
#[derive(Default)]
struct Count {
    /// Number of faults that happened.
    happened: usize,
    /// Number of calls that a fault on a link affected.
    met: usize,
    /// Number of faults that did not happen because another fault had the same target.
    held_back: usize,
}

/// State of a fault test.
struct Stage {
    services: Services,
    proxies: Arc<Proxies>,
    disks: Disks,
    clocks: Clocks,
    /// Gates before actions whose results a rollback of a service would lose.
    gates: [Gate; 2],
    started: Instant,
    counts: Mutex<BTreeMap<Kind, Count>>,
    findings: Mutex<Vec<String>>,
}

impl Stage {
    fn new() -> Self {
        let disks = Disks::mount().unwrap();
        let clocks = Clocks::new().unwrap();
        let proxies = Arc::new(Proxies::new());
        let between: Arc<dyn Between> = proxies.clone();
        let mut setting = ServiceOptions {
            between: Some(between),
            homes: Some(disks.homes()),
            ..ServiceOptions::new(PROGRAM)
        };
        if let Some(program) = env::var_os("FHAIM_FAULT_PROGRAM") {
            setting.program = program.into();
        }
        for (service, variables) in setting.variables.iter_mut().enumerate() {
            let workers = format!("FHAIM_{}__COMMON__WORKERS", NAMES[service].to_uppercase());
            variables.push((workers, "2".to_owned()));
            // The test searches the logs for text.
            variables.push(("NO_COLOR".to_owned(), "1".to_owned()));
            variables.extend(clocks.variables(service));
        }
        Self {
            services: Services::start_in(&Backing::Local, setting),
            proxies,
            disks,
            clocks,
            gates: Default::default(),
            started: Instant::now(),
            counts: Mutex::default(),
            findings: Mutex::default(),
        }
    }

    fn log(&self, text: &str) {
        self.log_at(Instant::now(), text);
    }

    fn log_at(&self, at: Instant, text: &str) {
        let seconds = at.saturating_duration_since(self.started).as_secs_f64();
        eprintln!("{seconds:8.2} s  {text}");
    }

    /// Records something that must not happen. The test then fails at its end.
    fn finding(&self, text: String) {
        self.log(&format!("FINDING: {text}"));
        self.findings.lock().unwrap().push(text);
    }

    fn count(&self, kind: Kind, met: Option<usize>) {
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry(kind).or_default();
        match met {
            Some(met) => {
                count.happened += 1;
                count.met += met;
            }
            None => count.held_back += 1,
        }
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

#[test]
#[ignore = "slow; needs mount and faketime"]
fn jobs_under_random_faults_are_done_and_paid_once() {
    let seconds = variable_or("FHAIM_FAULT_SECONDS", SECONDS);
    let seed = variable_or("FHAIM_FAULT_SEED", SEED);
    let stage = Stage::new();
    users::write_tables(&stage.services);
    let undisturbed = undisturbed(&stage);
    clocks_can_be_set(&stage);
    let users = USERS.map(|name| User::new(&stage, name.to_owned()));
    let first = first_datasets(&users);
    stage.log(&format!("{seconds} s of faults with seed {seed}"));
    let injector = Injector::new(&stage);
    let owned: Vec<Owned> = thread::scope(|scope| {
        let _supervised = injector.supervised();
        scope.spawn(|| injector.supervise());
        let until = Instant::now() + Duration::from_secs(seconds);
        let working = users
            .iter()
            .zip(first)
            .map(|(user, first)| scope.spawn(move || user.work(first, || Instant::now() < until)));
        let working: Vec<_> = working.collect();
        let faults = Plan::new(seed);
        injector.run(faults.take(usize::try_from(seconds).unwrap()));
        stage.log("no more faults");
        let owned = working
            .into_iter()
            .flat_map(|work| work.join().unwrap())
            .collect();
        stage.log("all jobs have ended");
        set_back(&stage, &injector, &users[0]);
        owned
    });
    let mut releases = 0;
    for owned in &owned {
        let user = users.iter().find(|user| user.name() == owned.user).unwrap();
        releases += verdict::judge(&stage, user, owned, &undisturbed[owned.variant]);
    }
    users
        .iter()
        .for_each(|user| verdict::no_dataset_twice(&stage, user));
    let diaries = users.map(User::into_diary);
    let text = report(&stage, &owned, releases, &diaries);
    conclude(&stage, &text);
}

/// Creates a dataset for each user, so that jobs run from the first fault on.
fn first_datasets(users: &[User<'_>]) -> Vec<Owned> {
    thread::scope(|scope| {
        let users = users.iter().enumerate().map(|(number, user)| {
            let name = format!("{}-0", user.name());
            scope.spawn(move || user.dataset(number % VARIANTS.len(), &name))
        });
        let users: Vec<_> = users.collect();
        users.into_iter().map(|user| user.join().unwrap()).collect()
    })
}

/// Runs jobs without faults, and returns their results for each table and seed.
fn undisturbed(stage: &Stage) -> Vec<Left> {
    let user = User::new(stage, "undisturbed".to_owned());
    let all = 0..VARIANTS.len();
    let left = all.map(|variant| {
        let owned = user.dataset(variant, &format!("undisturbed-{variant}"));
        Left::of(&user, &user.jobs(owned))
    });
    let left = left.collect();
    let diary = user.into_diary();
    stage.log(&format!(
        "without faults, jobs took {:.1?} s",
        diary.seconds
    ));
    assert_eq!((diary.repeated, diary.retried), (0, 0), "without faults");
    left
}

/// Checks that the services see their clocks jump. Otherwise these faults would have no effect.
fn clocks_can_be_set(stage: &Stage) {
    let clocks = &stage.clocks;
    for (service, name) in NAMES.iter().enumerate() {
        clocks.set(service, 3600).unwrap();
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

/// Rolls the crypto service back to a state before a run. From then on it refuses this dataset, with the reason, and no
/// other.
fn set_back(stage: &Stage, injector: &Injector<'_>, user: &User<'_>) {
    let owned = user.dataset(0, "set-apart");
    let copy = injector.copy(CRYPTO);
    let first = user.start(&owned);
    assert!(user.see(&first), "the job failed without a fault");
    injector.set_back(CRYPTO, copy.path());
    stage.log(&format!(
        "{} rolled back to a state before a run of {}",
        NAMES[CRYPTO], owned.dataset
    ));
    let words = user.refused(&owned);
    if !words.contains("set back") {
        stage.finding(format!(
            "{owned:?}: refused for another reason than the rollback: {words}"
        ));
    }
}

fn report(stage: &Stage, owned: &[Owned], releases: usize, diaries: &[Diary]) -> String {
    let mut text = String::from("fault                   happened  calls hit    skipped\n");
    let counts = stage.counts.lock().unwrap();
    for (kind, count) in counts.iter() {
        let met = match kind {
            Kind::LostAnswers | Kind::LostRequests | Kind::Delays => count.met.to_string(),
            _ => "-".to_owned(),
        };
        let (
            name,
            Count {
                happened,
                held_back,
                ..
            },
        ) = (kind.name(), count);
        writeln!(text, "{name:22}  {happened:8}  {met:>9}  {held_back:9}").unwrap();
    }
    let sum = |of: fn(&Diary) -> usize| diaries.iter().map(of).sum::<usize>();
    let mut seconds: Vec<f64> = diaries
        .iter()
        .flat_map(|diary| diary.seconds.clone())
        .collect();
    seconds.sort_unstable_by(f64::total_cmp);
    let middle = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
    let most = seconds.last().copied().unwrap_or_default();
    let outage = diaries
        .iter()
        .map(|diary| diary.outage)
        .max()
        .unwrap_or_default();
    let rows = [
        ("datasets", owned.len().to_string()),
        (
            "jobs done",
            owned
                .iter()
                .map(|owned| owned.jobs.len())
                .sum::<usize>()
                .to_string(),
        ),
        ("releases", releases.to_string()),
        ("downloads", sum(|diary| diary.downloads).to_string()),
        ("commands repeated", sum(|diary| diary.repeated).to_string()),
        ("jobs retried", sum(|diary| diary.retried).to_string()),
        (
            "repeated sign-ins",
            sum(|diary| diary.signed_out).to_string(),
        ),
        ("expected refusals", "1".to_owned()),
        (
            "seconds per job",
            format!("median {middle:.1}, maximum {most:.1}"),
        ),
        ("longest outage", format!("{:.1} s", outage.as_secs_f64())),
        ("findings", stage.findings.lock().unwrap().len().to_string()),
    ];
    for (name, value) in rows {
        writeln!(text, "{name:22}  {value}").unwrap();
    }
    for failure in diaries.iter().flat_map(|diary| &diary.failures) {
        writeln!(text, "a job failed: {failure}").unwrap();
    }
    text
}

/// Checks the services and their logs, prints the report, and fails if there is a finding.
fn conclude(stage: &Stage, text: &str) {
    stage.services.wait_until_ready();
    for answer in stage.proxies.faulty() {
        stage.finding(format!("a service returned an invalid status: {answer}"));
    }
    let complaints = verdict::read_logs(stage);
    eprintln!("log lines of the services:\n{complaints}\n{text}");
    let findings = stage.findings.lock().unwrap();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
