//! What a holder sees of a computation that did other than it was asked.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Schema, Table};
use fhaim_dp::{Allocator, Ladder, LadderPlan};
use fhaim_release::{Axis, ReleaseRequest, Source, Statistic};
use fhaim_synth::{
    PlaintextSource, exact,
    verify::{Answered, Difference, difference},
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

/// The noise of so many holders, added.
fn ladder(holders: u64) -> Ladder {
    let plan = LadderPlan::new(64, UNITS).unwrap();
    let draw = |seed| Ladder::draw(plan, &mut StdRng::seed_from_u64(seed));
    Ladder::sum(&(0..holders).map(draw).collect::<Vec<_>>()).unwrap()
}

fn asked(attribute: usize) -> ReleaseRequest {
    ReleaseRequest {
        number: 0,
        statistic: Statistic::OneWay(Axis::identity(attribute, 3)),
        variance_units: UNITS,
    }
}

fn answered(table: &Table, ladder: &Ladder, computed: usize) -> Answered {
    let mut source = PlaintextSource::with_ladder(table, ladder);
    let cells = source.release(&[asked(computed)]).unwrap().remove(0);
    let spans = Allocator::new(ladder.plan()).allocate(0, 3).unwrap();
    Answered {
        request: asked(0),
        spans,
        cells,
    }
}

#[test]
fn an_honest_answer_is_equal_and_any_other_is_caught() {
    let table = table();
    for holders in [1, 3] {
        let ladder = ladder(holders);
        let honest = answered(&table, &ladder, 0);
        assert_eq!(difference(&table, &ladder, &honest).unwrap(), None);

        let mut changed = honest.clone();
        changed.cells[1] += 1;
        let expected = honest.cells[1];
        let found = Difference::Cell {
            cell: 1,
            expected,
            released: expected + 1,
        };
        assert_eq!(difference(&table, &ladder, &changed).unwrap(), Some(found));

        let mut bare = honest.clone();
        bare.cells = exact(&table, &bare.request.statistic).unwrap();
        assert!(difference(&table, &ladder, &bare).unwrap().is_some());

        let other = answered(&table, &ladder, 1);
        assert!(difference(&table, &ladder, &other).unwrap().is_some());

        let mut short = honest.clone();
        short.cells.pop();
        let found = Difference::Length {
            expected: 3,
            released: 2,
        };
        assert_eq!(difference(&table, &ladder, &short).unwrap(), Some(found));
    }
}
