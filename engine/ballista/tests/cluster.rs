//! A scheduler and three executors as processes. Pages equal those of the local backend bit for bit, even if a process
//! is killed.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod common;

use common::{Authority, Process, free_port};
use fhaim_api::Digest;
use fhaim_ballista::choice::BySize;
use fhaim_ballista::tls::Identity;
use fhaim_ballista::{Ballista, Settings};
use fhaim_computation::engine::Certificates;
use fhaim_he::{
    Backend, BlobPlace, Cell, Chunks, Ciphertext, Columns, Combination, EncryptedTable,
    EvaluationKeys, EvaluationWork, Evaluator, Factors, JointTable, Layout, Parameters, Rectangle,
    Result, RosterShape, STANDARD, SecretKey, Section, Threads, UploadKey,
};
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const COLUMNS: usize = 16;
/// Two holders have three record chunks each.
const HOLDERS: usize = 2;
const CHUNKS: usize = 6;
/// Memory for two tiles per task and two record chunks at a time.
const TASK_BYTES: usize = 30 << 20;
/// More tasks than tiles (9 per page), so that each task is over one tile and a third of the record chunks.
const MANY: usize = 40;

/// A holder's table with its objects also in a folder.
#[derive(Debug)]
struct Placed {
    table: EncryptedTable,
    places: HashMap<(usize, usize), BlobPlace>,
}

impl Columns for Placed {
    fn params(&self) -> &Parameters {
        self.table.params()
    }

    fn layout(&self) -> Layout {
        self.table.layout()
    }

    fn count(&self) -> usize {
        self.table.count()
    }

    fn read(&self, residue: usize, columns: &[usize], chunks: Range<usize>) -> Result<Vec<Chunks>> {
        self.table.read(residue, columns, chunks)
    }

    fn sections(&self) -> Vec<Section> {
        self.table.sections()
    }

    fn place(&self, column: usize, chunk: usize) -> Option<BlobPlace> {
        self.places.get(&(column, chunk)).cloned()
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    keys: EvaluationKeys,
    keys_at: BlobPlace,
    /// The table of each holder.
    parts: Vec<Arc<Placed>>,
    table: JointTable,
    expected: Vec<Option<Ciphertext>>,
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> BlobPlace {
    let path = folder.join("blobs").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    BlobPlace {
        name: name.to_owned(),
        digest: Digest::of(bytes).0,
    }
}

/// Returns the cells of two pages: all pairs of columns, and all columns.
fn cells() -> Vec<Vec<(usize, Cell)>> {
    let pairs =
        (0..COLUMNS).flat_map(|left| (0..left).map(move |right| Cell::Product { left, right }));
    let sums = (0..COLUMNS).map(|left| Cell::Sum { left });
    let page: Vec<(usize, Cell)> = pairs.chain(sums).enumerate().collect();
    vec![page.clone(), page]
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut rng = rand::rngs::StdRng::seed_from_u64(16);
        let params = Parameters::new(STANDARD).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let shape = RosterShape::Records(HOLDERS);
        let keys = secret.roster_evaluation_keys(shape, &mut rng).unwrap();
        let own_chunks = CHUNKS / HOLDERS;
        let layout = Layout::for_records(own_chunks * 8192).unwrap();
        let mut part = |holder: usize| {
            let seeds = vec![secret.upload_seed(holder)];
            let upload = UploadKey::from_seeds(&params, seeds).unwrap();
            let mut places = HashMap::new();
            let mut columns = Vec::new();
            for column in 0..COLUMNS {
                let mut chunks = Vec::new();
                for chunk in 0..own_chunks {
                    let records: Vec<i64> = (0..8192).map(|_| rng.random_range(0..2)).collect();
                    let object = upload.encrypt(&records, &mut rng).unwrap();
                    let bytes: Vec<u8> = object.iter().flat_map(|c| c.to_bytes(&params)).collect();
                    let name = format!("table/{column}/{}", holder * own_chunks + chunk);
                    places.insert((column, chunk), put(folder.path(), &name, &bytes));
                    let expanded = object.into_iter().map(|c| c.expand(&params).unwrap());
                    chunks.push(expanded.collect());
                }
                columns.push(chunks);
            }
            let table = EncryptedTable::new(&params, layout, columns).unwrap();
            Arc::new(Placed { table, places })
        };
        let parts: Vec<Arc<Placed>> = (0..HOLDERS).map(&mut part).collect();
        let rectangle = |(holder, part): (usize, &Arc<Placed>)| Rectangle {
            first_chunk: holder * own_chunks,
            columns: (0..COLUMNS).collect(),
            table: part.clone(),
        };
        let rectangles = parts.iter().enumerate().map(rectangle).collect();
        let mut fixture = Self {
            keys_at: put(folder.path(), "table/evaluation", &keys.to_bytes()),
            table: JointTable::new(COLUMNS, rectangles).unwrap(),
            parts,
            folder,
            keys,
            expected: Vec::new(),
        };
        assert_eq!(fixture.table.sections().len(), HOLDERS);
        let started = Instant::now();
        fixture.expected = fixture.pages(Arc::new(Threads::default())).unwrap();
        let seconds = started.elapsed().as_secs_f64();
        println!("on the threads of this process: {seconds:.1} s");
        fixture
    }

    fn pages(&self, backend: Arc<dyn Backend>) -> Result<Vec<Option<Ciphertext>>> {
        let all: Vec<Combination> = (0..COLUMNS).map(Combination::column).collect();
        let factors = Factors {
            left: &all,
            right: &all,
        };
        let evaluator = Evaluator::new(&self.keys, self.table.layout()).with_backend(backend);
        let pages = evaluator.pages(
            &self.table,
            0,
            factors,
            &cells(),
            &mut EvaluationWork::default(),
        )?;
        Ok(pages
            .iter()
            .map(|page| Some(page.as_ref()?.ciphertext().clone()))
            .collect())
    }
}

struct Cluster {
    folder: tempfile::TempDir,
    port: u16,
    /// Certificate of all programs, because all have the same host.
    files: Certificates,
    scheduler: Process,
    executors: Vec<Process>,
}

impl Cluster {
    /// Starts a scheduler and three executors. The first executor has `first` bytes of memory.
    fn start(fixture: &Fixture, first: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let files = Authority::new(folder.path()).issue("127.0.0.1");
        let scheduler = Self::scheduler(folder.path(), port, &files);
        let blobs = fixture.folder.path().join("blobs");
        let executor = |number: usize| {
            let memory = if number == 0 { first } else { 1 << 30 };
            let work = folder.path().join(format!("work{number}"));
            let config = common::executor(free_port(), port, (memory, &work, &blobs), &files);
            let name = format!("executor{number}");
            let program = env!("CARGO_BIN_EXE_fhaim-executor");
            Process::start(program, folder.path(), &name, &config)
        };
        let executors = (0..3).map(executor).collect();
        // Wait until all are registered. Each polls for work several times per second.
        std::thread::sleep(Duration::from_secs(3));
        Self {
            folder,
            port,
            files,
            scheduler,
            executors,
        }
    }

    fn scheduler(folder: &Path, port: u16, files: &Certificates) -> Process {
        let program = env!("CARGO_BIN_EXE_fhaim-scheduler");
        Process::start(
            program,
            folder,
            "scheduler",
            &common::scheduler(port, files),
        )
    }

    /// Returns a backend that divides batches into at least `tasks` tasks.
    fn backend(&self, fixture: &Fixture, tasks: usize) -> Arc<dyn Backend> {
        let settings = Settings {
            scheduler: format!("https://127.0.0.1:{}", self.port),
            identity: Identity::read(&self.files).unwrap(),
            task_bytes: TASK_BYTES,
            packers: tasks,
            attempts: 10,
            pause: Duration::from_secs(2),
        };
        Arc::new(Ballista::new(settings, fixture.keys_at.clone()))
    }

    /// Computes the pages with many tasks while `meanwhile` runs, checks them, and prints statistics.
    fn check(self, fixture: &Fixture, name: &str, meanwhile: impl FnOnce(&mut Self)) -> Self {
        self.check_of(MANY, fixture, name, meanwhile)
    }

    fn check_of(
        mut self,
        tasks: usize,
        fixture: &Fixture,
        name: &str,
        meanwhile: impl FnOnce(&mut Self),
    ) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _within = runtime.enter();
        let backend = self.backend(fixture, tasks);
        let started = Instant::now();
        let pages = std::thread::scope(|scope| {
            let run = scope.spawn(|| fixture.pages(backend));
            meanwhile(&mut self);
            run.join().unwrap()
        });
        let logs: Vec<String> = self.executors.iter().map(Process::log).collect();
        let pages = pages.unwrap_or_else(|error| panic!("{name}: {error}\n{}", logs.join("\n")));
        assert!(pages == fixture.expected, "{name}: the pages differ");
        println!(
            "{name}: same pages in {:.1} s; sums {} bytes, roots {} bytes, tasks per executor {:?}",
            started.elapsed().as_secs_f64(),
            self.bytes("multiply: done"),
            self.bytes("pack: done"),
            logs.iter()
                .map(|log| log.matches("multiply: done").count())
                .collect::<Vec<_>>(),
        );
        self
    }

    /// Returns the sum of `bytes=` in the executors' log lines with this text.
    fn bytes(&self, said: &str) -> u64 {
        self.executors.iter().map(|e| total(&e.log(), said)).sum()
    }

    /// Waits until an executor logs this text, and returns the executor's number.
    fn wait_for(&self, said: &str) -> usize {
        let started = Instant::now();
        loop {
            let found = self.executors.iter().position(|e| e.log().contains(said));
            if let Some(found) = found {
                return found;
            }
            assert!(
                started.elapsed() < Duration::from_secs(900),
                "no executor logged {said:?}"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the sum of `bytes=` in the lines with this text.
fn total(log: &str, said: &str) -> u64 {
    let lines = log.lines().filter(|line| line.contains(said));
    let bytes = lines.filter_map(|line| {
        line.split("bytes=")
            .nth(1)?
            .split(' ')
            .next()?
            .parse::<u64>()
            .ok()
    });
    bytes.sum()
}

#[test]
fn pages_are_unchanged_when_a_process_is_killed() {
    let fixture = Fixture::new();
    let start = || Cluster::start(&fixture, 1 << 30);
    let plain = start().check(&fixture, "three executors", |_| {});
    let worked = plain
        .executors
        .iter()
        .filter(|e| e.log().contains("multiply: done"));
    assert!(worked.count() > 1, "one executor ran all tasks");
    drop(plain);
    // With fewer tasks than tiles, each task is over all record chunks, and no sums are exchanged between stages.
    let few = start().check_of(3, &fixture, "few tasks", |_| {});
    let roots = few.bytes("pack: done");
    assert!(roots > 0 && few.bytes("multiply: done") == roots);
    drop(few);
    for stage in ["multiply: begins", "pack: begins"] {
        start().check(&fixture, &format!("killed at {stage:?}"), |cluster| {
            let victim = cluster.wait_for(stage);
            cluster.executors[victim].kill();
        });
    }
    start().check(&fixture, "scheduler killed", |cluster| {
        cluster.wait_for("multiply: begins");
        cluster.scheduler.kill();
        std::thread::sleep(Duration::from_secs(1));
        cluster.scheduler = Cluster::scheduler(cluster.folder.path(), cluster.port, &cluster.files);
    });
    let small = Cluster::start(&fixture, 1 << 20).check(&fixture, "one with 1 MiB", |_| {});
    let log = small.executors[0].log();
    assert!(log.contains("too little memory"), "{log}");
    assert!(!log.contains("multiply: done"), "{log}");
}

/// Returns an identity for tests without connections.
fn nobody() -> Identity {
    let folder = tempfile::tempdir().unwrap();
    Identity::read(&Authority::new(folder.path()).issue("nobody")).unwrap()
}

/// For a table of two tiles over six record chunks, [`cells`] has 2 * 120 products per chunk.
#[test]
fn small_batches_run_locally() {
    let fixture = Fixture::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let choice = |least| {
        let settings = Settings {
            // No scheduler listens there, so a submitted batch fails.
            scheduler: format!("https://127.0.0.1:{}", free_port()),
            identity: nobody(),
            task_bytes: TASK_BYTES,
            packers: 1,
            attempts: 1,
            pause: Duration::ZERO,
        };
        let large = Ballista::new(settings, fixture.keys_at.clone());
        let products = (2 * CHUNKS * COLUMNS * (COLUMNS - 1) / 2) as u64;
        fixture.pages(Arc::new(BySize::new(large, products + least)))
    };
    assert!(choice(1).unwrap() == fixture.expected);
    assert!(matches!(choice(0), Err(fhaim_he::Error::Unavailable(_))));
}

/// The places of a joint table's columns are those of the holder's table.
#[test]
fn joint_table_has_the_places_of_its_holders() {
    let fixture = Fixture::new();
    for column in 0..COLUMNS {
        for chunk in 0..CHUNKS {
            let place = fixture.table.place(column, chunk).unwrap();
            assert_eq!(place.name, format!("table/{column}/{chunk}"));
        }
        assert_eq!(fixture.table.place(column, CHUNKS), None);
    }
    assert_eq!(fixture.table.place(COLUMNS, 0), None);
}

#[test]
fn table_that_is_only_in_memory_is_refused() {
    let fixture = Fixture::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let settings = Settings {
        scheduler: "https://127.0.0.1:1".to_owned(),
        identity: nobody(),
        task_bytes: TASK_BYTES,
        packers: 1,
        attempts: 1,
        pause: Duration::ZERO,
    };
    let backend = Ballista::new(settings, fixture.keys_at.clone());
    let all: Vec<Combination> = (0..COLUMNS).map(Combination::column).collect();
    let factors = Factors {
        left: &all,
        right: &all,
    };
    let table = &fixture.parts[0].table;
    let evaluator = Evaluator::new(&fixture.keys, table.layout()).with_backend(Arc::new(backend));
    let pages = evaluator.pages(table, 0, factors, &cells(), &mut EvaluationWork::default());
    assert!(matches!(pages, Err(fhaim_he::Error::Unavailable(_))));
}
