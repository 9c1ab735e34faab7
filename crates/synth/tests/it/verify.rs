//! Checks that a holder detects a computation that deviates from its request.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Clique, Schema, Table};
use fhaim_dp::{Allocator, Ladder, LadderPlan, Span};
use fhaim_release::{Axis, ReleaseRequest, ReleaseSource, SquaredTerm, Statistic};
use fhaim_synth::{
    PlaintextSource, exact,
    verify::{Difference, difference, expected},
};
use rand::{SeedableRng, rngs::StdRng};

const UNITS: u64 = 25;

fn table() -> Table {
    let column = |name: &str| {
        format!(r#"{{"name": "{name}", "kind": "categorical", "categories": ["x", "y", "z"]}}"#)
    };
    let columns = ["a", "b"].map(column).join(", ");
    let json = format!(r#"{{"name": "two", "columns": [{columns}]}}"#);
    let schema = Schema::from_json("two", json.as_bytes()).unwrap();
    let columns = vec![vec![0; 90], (0..90).map(|row| row % 3).collect()];
    Table::new(schema, columns).unwrap()
}

/// Returns the sum of the noise of several holders.
fn ladder(holders: u64) -> Ladder {
    let plan = LadderPlan::new(64, UNITS).unwrap();
    let draw = |seed| Ladder::draw(plan, &mut StdRng::seed_from_u64(seed));
    Ladder::sum(&(0..holders).map(draw).collect::<Vec<_>>()).unwrap()
}

fn spans(ladder: &Ladder) -> Vec<Span> {
    Allocator::new(ladder.plan()).allocate(0, 3).unwrap()
}

fn statistic(attribute: usize) -> Statistic {
    Statistic::OneWay(Axis::identity(attribute, 3))
}

fn released(table: &Table, ladder: &Ladder, attribute: usize) -> Vec<i64> {
    let request = ReleaseRequest {
        number: 0,
        statistic: statistic(attribute),
        variance_units: UNITS,
    };
    let mut source = PlaintextSource::with_ladder(table, ladder);
    source.release(&[request]).unwrap().remove(0)
}

#[test]
fn honest_answer_is_accepted_and_any_other_is_detected() {
    let table = table();
    for holders in [1, 3] {
        let ladder = ladder(holders);
        let noise = ladder.release_noise(&spans(&ladder), UNITS).unwrap();
        let wanted = expected(&table, &statistic(0), &noise).unwrap();
        let honest = released(&table, &ladder, 0);
        assert_eq!(difference(&wanted, &honest), None);

        let mut changed = honest.clone();
        changed[1] += 1;
        changed[2] -= 1;
        let found = Difference::Cells {
            count: 2,
            first: 1,
            expected: honest[1],
            released: honest[1] + 1,
        };
        assert_eq!(difference(&wanted, &changed), Some(found));

        let bare = exact(&table, &statistic(0)).unwrap();
        assert!(difference(&wanted, &bare).is_some());
        assert!(difference(&wanted, &released(&table, &ladder, 1)).is_some());
    }
}

/// An answer with a prefix of the expected cells is still a different answer.
#[test]
fn answer_of_wrong_length_is_detected() {
    let wanted = [1, 2, 3];
    for released in [&[1, 2][..], &[1, 2, 3, 4], &[]] {
        let found = Difference::Length {
            expected: 3,
            released: released.len(),
        };
        assert_eq!(difference(&wanted, released), Some(found));
        assert!(matches!(
            expected(&table(), &statistic(0), released),
            Err(fhaim_release::Error::NoiseLength { .. })
        ));
    }
}

/// A squared score is decrypted without its public part, the norm of its target.
#[test]
fn expected_score_excludes_its_public_part() {
    let term = SquaredTerm {
        clique: Clique::new([0, 1]),
        weight: 2,
        target: vec![30, 30, 29, 0, 0, 0, 0, 0, 1],
    };
    let statistic = Statistic::SquaredScores(vec![term]);
    // The counts are 30, 30, 30 and zeros: 2 * (1 + 1), less 2 * (900 + 900 + 841 + 1), and noise.
    let wanted = expected(&table(), &statistic, &[5]).unwrap();
    assert_eq!(wanted, [4 - 5284 + 5]);
    let mut whole = wanted;
    statistic.add_public_part(&mut whole).unwrap();
    assert_eq!(whole, [9]);
}
