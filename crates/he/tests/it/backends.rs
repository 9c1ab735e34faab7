//! The pages of a batch do not depend on how the batch is divided, on where its tasks run, or on the order of
//! results, residue for residue. Damaged, lost and duplicated results are detected.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_he::{
    Backend, Cell, Ciphertext, Columns, Combination, EncryptedTable, Error, EvaluationContext,
    EvaluationKeys, EvaluationWork, Evaluator, Factors, Layout, PagePlan, ParameterSet, Parameters,
    Partial, Result, STANDARD, SecretKey, Threads, TileId, TileSums, TileTask, UploadKey,
    UploadSwitchKeys, WIDE, spread,
};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Bytes before an object's body, the last 8 of which are its checksum.
const HEADER: usize = 24;

struct Fixture {
    params: Parameters,
    keys: EvaluationKeys,
    own: UploadSwitchKeys,
    table: EncryptedTable,
}

impl Fixture {
    /// Encrypts columns of the given number of records.
    fn new(set: ParameterSet, columns: usize, records: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(records as u64);
        let params = Parameters::new(set).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let keys = secret.evaluation_keys(&mut rng).unwrap();
        let layout = Layout::for_records(records).unwrap();
        let key = UploadKey::random(&params, &mut rng).unwrap();
        let own = key.switch_keys(&public, Some(layout), &mut rng).unwrap();
        let mut column = || {
            let records: Vec<i64> = (0..records).map(|_| rng.random_range(0..2)).collect();
            let chunks = records.chunks(8192);
            chunks
                .map(|chunk| {
                    let seeded = key.encrypt(chunk, &mut rng).unwrap().into_iter();
                    seeded.map(|c| c.expand(&params).unwrap()).collect()
                })
                .collect()
        };
        let columns = (0..columns).map(|_| column()).collect();
        let table = EncryptedTable::new(&params, layout, columns).unwrap();
        Self {
            params,
            keys,
            own,
            table,
        }
    }

    fn context(&self) -> EvaluationContext<'_> {
        let context = EvaluationContext::new(&self.keys, self.table.layout());
        context.with_switch_keys(&self.own).unwrap()
    }

    fn params(&self) -> &Parameters {
        &self.params
    }

    /// Computes the pages of a batch under the last plaintext modulus.
    fn pages(&self, batch: &Batch, backend: Arc<dyn Backend>) -> Result<Vec<Option<Ciphertext>>> {
        let evaluator = Evaluator::new(&self.keys, self.table.layout());
        let evaluator = evaluator
            .with_switch_keys(&self.own)
            .unwrap()
            .with_backend(backend);
        let residue = self.params().residues() - 1;
        let mut work = EvaluationWork::default();
        let (factors, cells) = (batch.factors(), &batch.pages);
        let pages = evaluator.pages(&self.table, residue, factors, cells, &mut work)?;
        let pages = pages
            .into_iter()
            .map(|page| Some(page?.ciphertext().clone()));
        Ok(pages.collect())
    }

    /// Returns the tasks of a batch.
    fn tasks(&self, batch: &Batch, memory: usize) -> Vec<TileTask> {
        let residue = self.params().residues() - 1;
        let context = self.context();
        let plan = PagePlan::new(
            &context,
            &self.table,
            residue,
            batch.factors(),
            &batch.pages,
        );
        plan.unwrap().tasks(memory)
    }
}

struct Batch {
    left: Vec<Combination>,
    right: Vec<Combination>,
    pages: Vec<Vec<(usize, Cell)>>,
}

impl Batch {
    /// Products and sums of six columns: a page of two full pieces with a gap, a page without cells, and a page
    /// whose cells are far apart.
    fn new() -> Self {
        let left = vec![
            Combination(vec![(0, 2), (1, -3)]),
            Combination::column(2),
            Combination(vec![(0, 1), (3, 1)]),
        ];
        let right = vec![Combination::column(4), Combination(vec![(4, 1), (5, -1)])];
        let products =
            (0..3).flat_map(|left| (0..2).map(move |right| Cell::Product { left, right }));
        let sums = (0..3).map(|left| Cell::Sum { left });
        let cells: Vec<Cell> = products.chain(sums).collect();
        let placed = |count: usize, step: usize| {
            let cells = cells.iter().cycle().take(count).enumerate();
            cells.map(|(k, &cell)| (k * step, cell)).collect()
        };
        let mut first: Vec<(usize, Cell)> = placed(20, 1);
        first.extend([(40, cells[0]), (8191, cells[8])]);
        let pages = vec![first, Vec::new(), placed(5, 1500)];
        Self { left, right, pages }
    }

    fn factors(&self) -> Factors<'_> {
        Factors {
            left: &self.left,
            right: &self.right,
        }
    }
}

/// A failure between a task and its result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mishap {
    Nothing,
    /// One result does not arrive.
    Lost,
    /// One result arrives twice.
    Doubled,
    /// One result belongs to another tile than the task's.
    Foreign,
}

/// Runs each task as on another machine: tasks and results are encoded, and results arrive in random order.
#[derive(Debug)]
struct Elsewhere {
    params: Parameters,
    memory: usize,
    /// Whether this backend also adds up and packs sums.
    packs: bool,
    mishap: Mishap,
}

impl Elsewhere {
    fn results(
        &self,
        context: &EvaluationContext<'_>,
        table: &dyn Columns,
        task: &TileTask,
    ) -> Result<Vec<Vec<u8>>> {
        let bytes = task.to_bytes(&self.params)?;
        let read = TileTask::from_bytes(&self.params, &bytes)?;
        assert_eq!(&read, task);
        let results = Mutex::new(Vec::new());
        let take = |partial: Partial| {
            results.lock().unwrap().push(partial.to_bytes()?);
            Ok(())
        };
        // Like a machine that has memory for one record chunk at a time.
        let bands = read.bands(&self.params, 0);
        assert_eq!(bands.len(), read.band().len());
        Threads::default().run(context, table, &bands, &take)?;
        Ok(results.into_inner().unwrap())
    }

    /// Returns the roots of all tiles.
    fn packed(&self, context: &EvaluationContext<'_>, results: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        let mut sums: BTreeMap<TileId, TileSums> = BTreeMap::new();
        let mut roots = Vec::new();
        for bytes in results {
            let new = match Partial::from_bytes(&self.params, bytes)? {
                Partial::Root(_) => {
                    roots.push(bytes.clone());
                    continue;
                }
                Partial::Sums(new) => new,
            };
            match sums.get_mut(&new.tile()) {
                Some(sums) => sums.add(&new)?,
                None => drop(sums.insert(new.tile(), new)),
            }
        }
        for sums in sums.into_values() {
            roots.push(Partial::Root(context.pack(sums)?.0).to_bytes()?);
        }
        Ok(roots)
    }
}

impl Backend for Elsewhere {
    fn task_memory(&self) -> usize {
        self.memory
    }

    fn run(
        &self,
        context: &EvaluationContext<'_>,
        table: &dyn Columns,
        tasks: &[TileTask],
        take: &(dyn Fn(Partial) -> Result<()> + Sync),
    ) -> Result<EvaluationWork> {
        let mut rng = ChaCha20Rng::seed_from_u64(tasks.len() as u64);
        let mut results = Vec::new();
        for task in tasks {
            results.extend(self.results(context, table, task)?);
        }
        results.shuffle(&mut rng);
        if self.packs {
            results = self.packed(context, &results)?;
        }
        match self.mishap {
            Mishap::Nothing => {}
            Mishap::Lost => drop(results.pop()),
            Mishap::Doubled => results.push(results[0].clone()),
            // The page number follows header and tag.
            Mishap::Foreign => results[0] = with_checksum(&results[0], |body| body[1] ^= 1),
        }
        for bytes in results {
            take(Partial::from_bytes(&self.params, &bytes)?)?;
        }
        Ok(EvaluationWork::default())
    }
}

/// Changes the body of an object, and corrects its length and checksum.
fn with_checksum(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let (header, body) = bytes.split_at(HEADER);
    let (mut header, mut body) = (header.to_vec(), body.to_vec());
    change(&mut body);
    header[12..16].copy_from_slice(&(body.len() as u32).to_le_bytes());
    let digest = Sha256::new()
        .chain_update(&header[..16])
        .chain_update(&body);
    header[16..].copy_from_slice(&digest.finalize()[..8]);
    [header, body].concat()
}

#[test]
#[ignore = "slow"]
fn tasks_on_other_machines_give_the_same_pages() {
    let batch = Batch::new();
    // Three chunks; one chunk with 16 slots for each product; two plaintext moduli.
    for (set, records) in [(STANDARD, 2 * 8192 + 5), (STANDARD, 300), (WIDE, 60)] {
        let fixture = Fixture::new(set, 6, records);
        let whole = fixture.pages(&batch, Arc::new(Threads::default())).unwrap();
        assert_eq!(
            whole.iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, false, true]
        );
        for memory in [0, usize::MAX] {
            let tasks = fixture.tasks(&batch, memory);
            let many = memory == 0 && fixture.table.layout().chunks() > 1;
            assert_eq!(tasks.len() > 1, many, "{} tasks", tasks.len());
            for packs in [false, true] {
                let elsewhere = Elsewhere {
                    params: fixture.params().clone(),
                    memory,
                    packs,
                    mishap: Mishap::Nothing,
                };
                let pages = fixture.pages(&batch, Arc::new(elsewhere)).unwrap();
                assert!(pages == whole, "{records} records, {memory} bytes, {packs}");
            }
        }
    }
}

/// A backend that divides tasks again before it sends them.
#[derive(Debug)]
struct Spread {
    elsewhere: Elsewhere,
    least: usize,
    /// Number of tasks sent, and the number of those over all record chunks.
    sent: Mutex<(usize, usize)>,
}

impl Backend for Spread {
    fn task_memory(&self) -> usize {
        self.elsewhere.task_memory()
    }

    fn run(
        &self,
        context: &EvaluationContext<'_>,
        table: &dyn Columns,
        tasks: &[TileTask],
        take: &(dyn Fn(Partial) -> Result<()> + Sync),
    ) -> Result<EvaluationWork> {
        let tasks = spread(tasks, self.least);
        let chunks = table.layout().chunks();
        let whole = tasks.iter().filter(|task| task.band() == (0..chunks));
        *self.sent.lock().unwrap() = (tasks.len(), whole.count());
        self.elsewhere.run(context, table, &tasks, take)
    }
}

/// With four tiles over three record chunks, up to four tasks are over all chunks, and more tasks are not.
#[test]
#[ignore = "slow"]
fn tasks_that_are_divided_again_give_the_same_pages() {
    let batch = Batch::new();
    let fixture = Fixture::new(STANDARD, 6, 2 * 8192 + 5);
    let whole = fixture.pages(&batch, Arc::new(Threads::default())).unwrap();
    let tiles: usize = fixture
        .tasks(&batch, usize::MAX)
        .iter()
        .map(|task| task.tiles().count())
        .sum();
    for (memory, least, sent) in [
        (0, 0, (tiles, tiles)),
        (0, tiles, (tiles, tiles)),
        (0, tiles + 1, (2 * tiles, 0)),
        (0, 1000, (3 * tiles, 0)),
        (usize::MAX, 0, (1, 1)),
        (usize::MAX, 2, (2, 2)),
        (usize::MAX, 1000, (3 * tiles, 0)),
    ] {
        let backend = Arc::new(Spread {
            elsewhere: Elsewhere {
                params: fixture.params().clone(),
                memory,
                packs: true,
                mishap: Mishap::Nothing,
            },
            least,
            sent: Mutex::default(),
        });
        let pages = fixture.pages(&batch, backend.clone()).unwrap();
        assert!(pages == whole, "{memory} bytes, {least} tasks");
        assert_eq!(*backend.sent.lock().unwrap(), sent, "{memory}, {least}");
    }
}

#[test]
#[ignore = "slow"]
fn lost_duplicated_and_foreign_results_are_rejected() {
    let batch = Batch::new();
    let fixture = Fixture::new(STANDARD, 6, 2 * 8192 + 5);
    for mishap in [Mishap::Lost, Mishap::Doubled, Mishap::Foreign] {
        for (memory, packs) in [(0, false), (0, true), (usize::MAX, false)] {
            let elsewhere = Elsewhere {
                params: fixture.params().clone(),
                memory,
                packs,
                mishap,
            };
            let refused = fixture.pages(&batch, Arc::new(elsewhere)).err();
            let refused = refused.expect("a page was made although results were wrong");
            assert!(
                matches!(refused, Error::Mismatch(_)),
                "{mishap:?}: {refused}"
            );
        }
    }
}

/// A backend that does nothing.
#[derive(Debug)]
struct Idle;

impl Backend for Idle {
    fn task_memory(&self) -> usize {
        0
    }

    fn run(
        &self,
        _: &EvaluationContext<'_>,
        _: &dyn Columns,
        _: &[TileTask],
        _: &(dyn Fn(Partial) -> Result<()> + Sync),
    ) -> Result<EvaluationWork> {
        Ok(EvaluationWork::default())
    }
}

#[test]
fn pages_without_results_are_rejected() {
    let fixture = Fixture::new(STANDARD, 6, 60);
    let missed = fixture.pages(&Batch::new(), Arc::new(Idle)).err();
    assert!(matches!(missed, Some(Error::Mismatch(_))), "{missed:?}");
}

/// Checks that a decoder only accepts bytes that it encodes to the same bytes again. Truncated, extended and flipped
/// bytes are rejected. With a corrected checksum, changed bytes are rejected or have another valid meaning. Returns
/// how many of the changes were accepted.
fn survives_damage(
    bytes: &[u8],
    changes: usize,
    encode_again: impl Fn(&[u8]) -> Result<Vec<u8>>,
) -> usize {
    assert!(encode_again(bytes).unwrap() == bytes);
    let refused = |bytes: &[u8]| match encode_again(bytes) {
        Err(Error::Malformed { .. }) => {}
        other => panic!("{other:?}"),
    };
    let mut rng = ChaCha20Rng::seed_from_u64(bytes.len() as u64);
    for length in (0..=HEADER).chain([bytes.len() / 2, bytes.len() - 1]) {
        refused(&bytes[..length]);
    }
    refused(&[bytes, &[0]].concat());
    for _ in 0..50 {
        let mut flipped = bytes.to_vec();
        flipped[rng.random_range(0..bytes.len())] ^= 1 << rng.random_range(0..8);
        refused(&flipped);
    }
    refused(&with_checksum(bytes, |body| body.push(0)));
    refused(&with_checksum(bytes, |body| body.truncate(body.len() - 1)));
    refused(&with_checksum(bytes, Vec::clear));
    let mut accepted = 0;
    for _ in 0..changes {
        let changed = with_checksum(bytes, |body| {
            // Most of a body is residues or coefficients, so half of the changes are at its beginning.
            let most = if rng.random() {
                body.len()
            } else {
                body.len().min(100)
            };
            body[rng.random_range(0..most)] = rng.random();
        });
        match encode_again(&changed) {
            Ok(again) => {
                assert!(again == changed);
                accepted += 1;
            }
            Err(Error::Malformed { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    accepted
}

#[test]
fn damaged_tasks_and_results_are_rejected() {
    let fixture = Fixture::new(STANDARD, 6, 8192 + 5);
    let params = fixture.params();
    let batch = Batch::new();
    let tasks = fixture.tasks(&batch, 0);
    for task in &tasks {
        let bytes = task.to_bytes(params).unwrap();
        let again = |bytes: &[u8]| TileTask::from_bytes(params, bytes)?.to_bytes(params);
        let accepted = survives_damage(&bytes, 300, again);
        assert!((1..300).contains(&accepted), "{accepted} accepted");
    }
    // A single product and a single sum, over both chunks and over one.
    let context = fixture.context();
    for (cell, memory) in [(0, 0), (8, 0), (0, usize::MAX), (8, usize::MAX)] {
        let small = Batch {
            pages: vec![vec![(3, batch.pages[0][cell].1)]],
            ..Batch::new()
        };
        let mut results = Mutex::new(Vec::new());
        let take = |partial: Partial| {
            results.lock().unwrap().push(partial.to_bytes()?);
            Ok(())
        };
        let tasks = fixture.tasks(&small, memory);
        let run = Threads::default().run(&context, &fixture.table, &tasks[..1], &take);
        run.unwrap();
        for bytes in results.get_mut().unwrap() {
            let again = |bytes: &[u8]| Partial::from_bytes(params, bytes)?.to_bytes();
            let accepted = survives_damage(bytes, 40, again);
            assert!((1..40).contains(&accepted), "{accepted} accepted");
        }
    }
}

/// The backend rejects a task that names columns or operands that do not exist.
#[test]
fn changed_tasks_run_or_are_rejected() {
    let fixture = Fixture::new(STANDARD, 6, 300);
    let params = fixture.params();
    let context = fixture.context();
    let tasks = fixture.tasks(&Batch::new(), 0);
    let bytes = tasks[0].to_bytes(params).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let (mut ran, mut refused) = (0, 0);
    for _ in 0..120 {
        let changed = with_checksum(&bytes, |body| {
            let place = rng.random_range(0..body.len());
            body[place] ^= 1 << rng.random_range(0..8);
        });
        let Ok(task) = TileTask::from_bytes(params, &changed) else {
            continue;
        };
        match Threads::default().run(&context, &fixture.table, &[task], &|_| Ok(())) {
            Ok(_) => ran += 1,
            Err(Error::Mismatch(_) | Error::OutOfRange(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(ran > 0 && refused > 0, "{ran} ran, {refused} were refused");
}
