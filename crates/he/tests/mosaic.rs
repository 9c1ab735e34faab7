//! Several holders' tables are computed on as if one holder had them all.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_he::{
    Cell, Ciphertext, Columns, Combination, EncryptedTable, Error, EvaluationKeys, Evaluator,
    Factors, Layout, Mosaic, P1, Parameters, PublicKey, Rectangle, SecretKey, TileTask, Work,
    coefficient,
};
use rand::{Rng as _, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::sync::Arc;

struct Fixture {
    secret: SecretKey,
    public: PublicKey,
    keys: EvaluationKeys,
    rng: ChaCha20Rng,
}

fn fixture() -> Fixture {
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let params = Parameters::new(P1).unwrap();
    let secret = SecretKey::random(&params, &mut rng).unwrap();
    Fixture {
        public: secret.public_key(&mut rng).unwrap(),
        keys: secret.evaluation_keys(&mut rng).unwrap(),
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

    fn encrypt(&mut self, bits: &[Vec<i64>]) -> Arc<dyn Columns> {
        let layout = Layout::for_records(bits[0].len()).unwrap();
        let column = |bits: &Vec<i64>| {
            let chunks = bits.chunks(8192);
            chunks
                .map(|chunk| self.public.encrypt(chunk, &mut self.rng).unwrap())
                .collect()
        };
        let columns = bits.iter().map(column).collect();
        let table = EncryptedTable::new(self.public.params(), layout, columns);
        Arc::new(table.unwrap())
    }

    /// The products of all columns with the first, and their sums.
    fn check(&self, mosaic: &Mosaic, bits: &[Vec<i64>]) {
        let all: Vec<_> = (0..bits.len()).map(Combination::column).collect();
        let products = (0..bits.len()).map(|left| Cell::Product { left, right: 0 });
        let sums = (0..bits.len()).map(|left| Cell::Sum { left });
        let cells: Vec<_> = products.chain(sums).enumerate().collect();
        let factors = Factors {
            left: &all,
            right: &all,
        };
        let evaluator = Evaluator::new(&self.keys, mosaic.layout());
        let pages = evaluator.pages(mosaic, 0, factors, &[cells], &mut Work::default());
        let page = pages.unwrap().remove(0).unwrap();
        let (values, _) = self.secret.decrypt(&[page.ciphertext().clone()]).unwrap();
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
    }
}

/// One below the other: the parts' records together are the table's.
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
fn holders_of_records_have_chunks_of_their_own() {
    let mut fixture = fixture();
    for sizes in [&[30, 200, 65][..], &[9000, 10], &[77]] {
        let parts: Vec<Bits> = sizes.iter().map(|&n| fixture.bits(3, n)).collect();
        let tables: Vec<_> = parts.iter().map(|bits| fixture.encrypt(bits)).collect();
        let mut first = 0;
        let rectangles = tables.iter().map(|table| {
            let rectangle = rectangle(first, &[0, 1, 2], table);
            first += table.layout().chunks();
            rectangle
        });
        let mosaic = Mosaic::new(3, rectangles.collect()).unwrap();
        assert_eq!(mosaic.layout().chunks(), first);
        fixture.check(&mosaic, &stacked(&parts));
    }
}

#[test]
fn holders_of_columns_have_rows_in_common() {
    let mut fixture = fixture();
    for records in [100, 8200] {
        let bits = fixture.bits(4, records);
        let one = fixture.encrypt(&[bits[2].clone(), bits[0].clone()]);
        let two = fixture.encrypt(&[bits[1].clone(), bits[3].clone()]);
        let rectangles = vec![rectangle(0, &[2, 0], &one), rectangle(0, &[1, 3], &two)];
        fixture.check(&Mosaic::new(4, rectangles).unwrap(), &bits);
    }
}

#[test]
fn gaps_overlaps_and_unaligned_rows_are_refused() {
    let mut fixture = fixture();
    let mut table = |columns, records| {
        let bits = fixture.bits(columns, records);
        fixture.encrypt(&bits)
    };
    let (short, long, wide) = (table(1, 50), table(1, 500), table(2, 50));
    let refused = |count, rectangles: Vec<Rectangle>| {
        assert!(matches!(
            Mosaic::new(count, rectangles),
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
    let mosaic = Mosaic::new(2, vec![rectangle(0, &[1, 0], &wide)]).unwrap();
    for (columns, chunks) in [(&[2][..], 0..1), (&[0], 0..2), (&[0], 1..2)] {
        assert!(mosaic.read(0, columns, chunks).is_err());
    }
    assert_eq!(mosaic.read(0, &[1, 0], 0..1).unwrap().len(), 2);
}

/// A task over several holders' chunks is read back, though no single table has its shape.
#[test]
fn tasks_over_many_holders_chunks_survive_bytes() {
    let mut fixture = fixture();
    let bits = fixture.bits(1, 50);
    let table = fixture.encrypt(&bits);
    let mosaic = Mosaic::new(
        1,
        vec![rectangle(0, &[0], &table), rectangle(1, &[0], &table)],
    );
    let mosaic = mosaic.unwrap();
    let column = [Combination::column(0)];
    let factors = Factors {
        left: &column,
        right: &column,
    };
    let cells = [vec![(0, Cell::Sum { left: 0 })]];
    let plan = fhaim_he::Plan::new(&mosaic, 0, factors, &cells).unwrap();
    for task in plan.tasks(0) {
        let bytes = task.to_bytes(mosaic.params()).unwrap();
        assert_eq!(TileTask::from_bytes(mosaic.params(), &bytes).unwrap(), task);
    }
}

#[test]
fn sums_of_ciphertexts_are_of_one_kind() {
    let mut fixture = fixture();
    let mut encrypt = |value| {
        let (public, rng) = (&fixture.public, &mut fixture.rng);
        public.encrypt(&[value, -value], rng).unwrap().remove(0)
    };
    let terms = [encrypt(3), encrypt(5), encrypt(-10)];
    let params = fixture.public.params();
    let sum = Ciphertext::sum(params, &terms).unwrap();
    let (values, _) = fixture.secret.decrypt(&[sum]).unwrap();
    assert_eq!(values[..2], [-2, 2]);
    assert!(Ciphertext::sum(params, []).is_err());
    let other = Parameters::new(fhaim_he::P2).unwrap();
    assert!(Ciphertext::sum(&other, &terms).is_err());
}
