//! Statistics of several holders' tables equal those of one holder with all data.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_he::{
    COMPACT, Cell, Ciphertext, Columns, Combination, EncryptedTable, Error, EvaluationContext,
    EvaluationKeys, EvaluationWork, Evaluator, Factors, JointTable, Layout, PagePlan, ParameterSet,
    Parameters, Rectangle, RosterShape, STANDARD, SecretKey, Threads, TileTask, UploadKey,
    coefficient,
};
use rand::{Rng as _, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::sync::Arc;

struct Fixture {
    params: Parameters,
    secret: SecretKey,
    keys: EvaluationKeys,
    rng: ChaCha20Rng,
}

fn fixture(set: ParameterSet, shape: RosterShape) -> Fixture {
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let params = Parameters::new(set).unwrap();
    let secret = SecretKey::random(&params, &mut rng).unwrap();
    Fixture {
        keys: secret.roster_evaluation_keys(shape, &mut rng).unwrap(),
        params,
        secret,
        rng,
    }
}

/// Columns of zeros and ones.
type Bits = Vec<Vec<i64>>;

impl Fixture {
    fn bits(&mut self, columns: usize, records: usize) -> Bits {
        let mut column = || (0..records).map(|_| self.rng.random_range(0..2)).collect();
        (0..columns).map(|_| column()).collect()
    }

    /// Encrypts columns under the upload key of a holder, by its number.
    fn encrypt(&mut self, holder: usize, bits: &[Vec<i64>]) -> Arc<dyn Columns> {
        let layout = Layout::for_records(bits[0].len()).unwrap();
        let seed = self.secret.upload_seed(holder);
        let key = UploadKey::from_seeds(&self.params, vec![seed]).unwrap();
        let mut encrypt = |chunk: &[i64]| {
            let seeded = key.encrypt(chunk, &mut self.rng).unwrap().into_iter();
            seeded.map(|c| c.expand(&self.params).unwrap()).collect()
        };
        let columns = bits.iter();
        let columns = columns.map(|column| column.chunks(8192).map(&mut encrypt).collect());
        let table = EncryptedTable::new(&self.params, layout, columns.collect());
        Arc::new(table.unwrap())
    }

    /// Checks that the products of all columns with the first, and all sums, are exact, and that the page is the same
    /// with little memory.
    fn check(&self, joint: &JointTable, bits: &[Vec<i64>]) {
        let page = self.page(joint, bits.len(), Threads::default());
        let (values, _) = self.secret.decrypt(std::slice::from_ref(&page)).unwrap();
        let product = |column: &Vec<i64>| column.iter().zip(&bits[0]).map(|(x, y)| x * y).sum();
        let sum = |column: &Vec<i64>| column.iter().sum();
        let expected: Vec<i64> = bits
            .iter()
            .map(product)
            .chain(bits.iter().map(sum))
            .collect();
        for (p, expected) in expected.into_iter().enumerate() {
            assert_eq!(values[coefficient(p)], i128::from(expected), "cell {p}");
        }
        assert_eq!(self.page(joint, bits.len(), Threads::with_memory(1)), page);
    }

    /// Computes the page of the products of all columns with the first, and of their sums.
    fn page(&self, joint: &JointTable, columns: usize, backend: Threads) -> Ciphertext {
        let all: Vec<_> = (0..columns).map(Combination::column).collect();
        let products = (0..columns).map(|left| Cell::Product { left, right: 0 });
        let sums = (0..columns).map(|left| Cell::Sum { left });
        let cells: Vec<_> = products.chain(sums).enumerate().collect();
        let factors = Factors {
            left: &all,
            right: &all,
        };
        let evaluator = Evaluator::new(&self.keys, joint.layout()).with_backend(Arc::new(backend));
        let pages = evaluator.pages(joint, 0, factors, &[cells], &mut EvaluationWork::default());
        pages.unwrap().remove(0).unwrap().ciphertext().clone()
    }
}

/// Concatenates the records of several parts.
fn stacked(parts: &[Bits]) -> Bits {
    let column = |c: usize| parts.iter().flat_map(|part| part[c].clone()).collect();
    (0..parts[0].len()).map(column).collect()
}

fn rectangle(first_chunk: usize, columns: &[usize], table: &Arc<dyn Columns>) -> Rectangle {
    Rectangle {
        first_chunk,
        columns: columns.to_vec(),
        table: table.clone(),
    }
}

#[test]
fn statistics_of_several_holders_records_equal_those_of_all_records() {
    for (set, sizes) in [
        (STANDARD, &[30, 200, 65][..]),
        (COMPACT, &[30, 200, 65]),
        (COMPACT, &[9000, 10]),
        (COMPACT, &[77]),
    ] {
        let mut fixture = fixture(set, RosterShape::Records(sizes.len()));
        let parts: Vec<Bits> = sizes.iter().map(|&n| fixture.bits(3, n)).collect();
        let tables = parts.iter().enumerate();
        let tables = tables.map(|(holder, bits)| fixture.encrypt(holder, bits));
        let tables: Vec<_> = tables.collect();
        let mut first = 0;
        let rectangles = tables.iter().map(|table| {
            let rectangle = rectangle(first, &[0, 1, 2], table);
            first += table.layout().chunks();
            rectangle
        });
        let joint = JointTable::new(3, rectangles.collect()).unwrap();
        assert_eq!(joint.layout().chunks(), first);
        fixture.check(&joint, &stacked(&parts));
    }
}

#[test]
fn statistics_of_several_holders_columns_equal_those_of_the_joined_table() {
    for (set, records) in [(STANDARD, 100), (COMPACT, 100), (COMPACT, 8200)] {
        let mut fixture = fixture(set, RosterShape::Columns(2));
        let bits = fixture.bits(4, records);
        let one = fixture.encrypt(0, &[bits[2].clone(), bits[0].clone()]);
        let two = fixture.encrypt(1, &[bits[1].clone(), bits[3].clone()]);
        let rectangles = vec![rectangle(0, &[2, 0], &one), rectangle(0, &[1, 3], &two)];
        fixture.check(&JointTable::new(4, rectangles).unwrap(), &bits);
    }
}

#[test]
fn gaps_overlaps_and_unaligned_rows_are_rejected() {
    let mut fixture = fixture(COMPACT, RosterShape::Columns(1));
    let mut table = |columns, records| {
        let bits = fixture.bits(columns, records);
        fixture.encrypt(0, &bits)
    };
    let (short, long, wide) = (table(1, 50), table(1, 500), table(2, 50));
    let refused = |count, rectangles: Vec<Rectangle>| {
        assert!(matches!(
            JointTable::new(count, rectangles),
            Err(Error::Mismatch(_))
        ));
    };
    refused(1, vec![]);
    refused(2, vec![rectangle(0, &[0], &short)]);
    refused(1, vec![rectangle(1, &[0], &short)]);
    refused(
        1,
        vec![rectangle(0, &[0], &short), rectangle(0, &[0], &short)],
    );
    refused(
        1,
        vec![rectangle(0, &[0], &short), rectangle(2, &[0], &short)],
    );
    refused(1, vec![rectangle(0, &[1], &short)]);
    refused(2, vec![rectangle(0, &[0], &wide)]);
    refused(2, vec![rectangle(0, &[1, 1], &wide)]);
    refused(
        2,
        vec![rectangle(0, &[0], &short), rectangle(0, &[1], &long)],
    );
    let joint = JointTable::new(2, vec![rectangle(0, &[1, 0], &wide)]).unwrap();
    for (columns, chunks) in [(&[2][..], 0..1), (&[0], 0..2), (&[0], 1..2)] {
        assert!(matches!(
            joint.read(0, columns, chunks),
            Err(Error::OutOfRange(..))
        ));
    }
    assert_eq!(joint.read(0, &[1, 0], 0..1).unwrap().len(), 2);
}

/// A task over several holders' chunks round-trips, although no single holder's table has its shape.
#[test]
fn tasks_over_several_holders_chunks_round_trip() {
    let mut fixture = fixture(COMPACT, RosterShape::Records(1));
    let bits = fixture.bits(1, 50);
    let table = fixture.encrypt(0, &bits);
    let joint = JointTable::new(
        1,
        vec![rectangle(0, &[0], &table), rectangle(1, &[0], &table)],
    );
    let joint = joint.unwrap();
    let column = [Combination::column(0)];
    let factors = Factors {
        left: &column,
        right: &column,
    };
    let cells = [vec![(0, Cell::Sum { left: 0 })]];
    let context = EvaluationContext::new(&fixture.keys, joint.layout());
    let plan = PagePlan::new(&context, &joint, 0, factors, &cells).unwrap();
    for task in plan.tasks(0) {
        let bytes = task.to_bytes(joint.params()).unwrap();
        assert_eq!(TileTask::from_bytes(joint.params(), &bytes).unwrap(), task);
    }
}

/// The table is rejected before anything is computed.
#[test]
fn columns_under_unknown_upload_keys_are_rejected() {
    let mut fixture = fixture(COMPACT, RosterShape::Records(2));
    let bits = fixture.bits(1, 50);
    let table = fixture.encrypt(2, &bits);
    let joint = JointTable::new(1, vec![rectangle(0, &[0], &table)]).unwrap();
    let evaluator = Evaluator::new(&fixture.keys, joint.layout());
    let column = [Combination::column(0)];
    let factors = Factors {
        left: &column,
        right: &column,
    };
    let cells = [vec![(0, Cell::Sum { left: 0 })]];
    let pages = evaluator.pages(&joint, 0, factors, &cells, &mut EvaluationWork::default());
    assert!(matches!(pages, Err(Error::Mismatch(_))));
}

/// A holder's seed also expands to the key that the switching keys name.
#[test]
fn roster_keys_round_trip() {
    for shape in [
        RosterShape::Counts(2),
        RosterShape::Records(2),
        RosterShape::Columns(2),
    ] {
        let fixture = fixture(COMPACT, shape);
        let bytes = fixture.keys.to_bytes();
        let read = EvaluationKeys::from_bytes(&fixture.params, &bytes).unwrap();
        assert_eq!(read.to_bytes(), bytes);
        let roster = read.roster().unwrap();
        assert_eq!(roster.shape(), shape);
        for holder in 0..2 {
            let seed = fixture.secret.upload_seed(holder);
            let key = UploadKey::from_seeds(&fixture.params, vec![seed]).unwrap();
            assert_eq!(roster.upload(holder).unwrap().id(), key.id());
        }
        assert!(matches!(
            EvaluationKeys::from_bytes(&fixture.params, &bytes[..bytes.len() - 1]),
            Err(Error::Malformed { .. })
        ));
    }
}
