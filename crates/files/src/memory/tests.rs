//! Tests of the entries in the history file, and of the account that a holder sees.

use fhaim_dp::{Rho, accounting};

use super::*;

fn entry(cost: UseCost) -> Entry {
    Entry {
        table: 0,
        used_for: Use::Run {
            out: "a.csv".to_owned(),
            journal: None,
        },
        cost,
    }
}

fn told(before: &[UseCost], next: UseCost, delta: f64) -> String {
    let earlier = |cost: &UseCost| Earlier {
        entry: entry(cost.clone()),
        share: 1.0,
    };
    let before: Vec<Earlier> = before.iter().map(earlier).collect();
    let account = Account {
        before: &before,
        next,
        delta,
    };
    account.to_string()
}

fn half() -> Rho {
    Rho::ratio_up(1, 2).unwrap()
}

/// Rho 1/2 + 1/2 = 1 before, and 3/2 with another 1/2.
#[test]
fn account_lists_uses_and_the_total_for_their_unit() {
    let cost = UseCost::zcdp("fhaim", half());
    let found = told(&[cost.clone(), cost.clone()], cost, 1e-9);
    let epsilon = |halves: u64| {
        let rho = half().checked_mul(halves).unwrap();
        cost::decimals_up(accounting::epsilon(rho, 1e-9).unwrap(), 3)
    };
    let expected = format!(
        "these records were used before, and the privacy costs add up:\n  a run of fhaim, into a.csv: rho 0.500000\n  \
         a run of fhaim, into a.csv: rho 0.500000\nfor a record added or removed: epsilon {} at delta 1e-9 so far, \
         epsilon {} at delta 1e-9 with this use",
        epsilon(2),
        epsilon(3)
    );
    assert_eq!(found, expected);
}

/// A party's epsilon is 1 + 2. A record's is twice that, with 1e-6 (1 + e) + 1e-6 (1 + e^2) = 1.2108e-5.
#[test]
fn account_has_a_line_for_every_unit() {
    let party = |epsilon| UseCost::approximate("fhaim-lab gan", Unit::Party, epsilon, 1e-6);
    let record = UseCost::approximate("fhaim-lab mix", Unit::Replaced, 0.5, 1e-6);
    let found = told(&[party(1.0), record], party(2.0), 1e-9);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(
        lines[1..3],
        [
            "  a run of fhaim-lab gan, into a.csv: epsilon 1.000 at delta 1e-6 for a party",
            "  a run of fhaim-lab mix, into a.csv: epsilon 0.500 at delta 1e-6 for a record replaced",
        ]
    );
    // 2 * 1 + 0.5, and 2 * 2 more; 1e-6 (1 + e + 1) = 4.7183e-6, and 1e-6 (1 + e^2) = 8.389e-6 more.
    assert_eq!(
        lines[3..],
        [
            "for a record replaced: epsilon 2.500 at delta 4.72e-6 so far, epsilon 6.500 at delta 1.32e-5 with this use",
            "for a party: epsilon 1.000 at delta 1e-6 so far, epsilon 3.000 at delta 2e-6 with this use; not including \
             1 use with another privacy unit",
        ]
    );
}

#[test]
fn account_shows_the_delta_of_a_draft() {
    let draft = Entry {
        used_for: Use::Draft {
            out: "s.json".to_owned(),
        },
        ..entry(UseCost::zcdp_but_for("fhaim", half(), 5e-11))
    };
    let said = draft.to_string();
    assert_eq!(
        said,
        "a schema drafted privately by fhaim, s.json: rho 0.500000 and delta 5e-11"
    );
}

/// The uses of a history file, for a table with the hashes 1 (once) and 2 (three times). 2^79 units of 2^-80 are 1/2.
const USES: &str = r#"[{"table":0,"used_for":{"run":{"out":"a.csv"}},"program":"fhaim","unit":"added-or-removed","epsilon":"0e0","delta":"0e0","rho":"604462909807314587353088"},{"table":0,"used_for":{"run":{"out":"a.csv"}},"program":"fhaim-lab mix","unit":"replaced","epsilon":"2.0000000000000004e0","delta":"1e-5"}]"#;

fn uses() -> Vec<Entry> {
    let costs = [
        UseCost::zcdp("fhaim", half()),
        UseCost::approximate("fhaim-lab mix", Unit::Replaced, 2f64.next_up(), 1e-5),
    ];
    costs.map(entry).to_vec()
}

fn compact(history: History) -> String {
    let text: serde_json::Value = serde_json::from_slice(&history.encode().unwrap()).unwrap();
    text.to_string()
}

#[test]
fn history_round_trips_through_the_file() {
    let tables = r#"[{"records":{"hashes":"AQAAAAAAAAACAAAAAAAAAA==","times":[1,3],"whole":{"records":4,"sum":7}}}]"#;
    let text = format!(r#"{{"version":1,"tables":{tables},"uses":{USES}}}"#);
    let history = History::decode(text.as_bytes()).unwrap();
    assert_eq!(history.uses, uses());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(compact(history), value.to_string());
}

#[test]
fn removed_uses_leave_the_tables_of_the_others() {
    let mut history = History::default();
    let run = |out: &str| Use::Run {
        out: out.to_owned(),
        journal: None,
    };
    for (digit, out) in [(1, "a"), (2, "b"), (3, "c"), (1, "d")] {
        let cost = UseCost::zcdp("fhaim", half());
        history.add(&Identity::File([digit; 32]), &run(out), cost);
    }
    history.remove(|entry| entry.used_for == run("b"));
    let files = [1, 3].map(|digit| Identity::File([digit; 32]));
    assert_eq!(history.tables, files);
    let tables: Vec<usize> = history.uses.iter().map(|entry| entry.table).collect();
    assert_eq!(tables, [0, 1, 0]);
}

#[test]
fn damaged_file_is_rejected() {
    let history = History {
        tables: vec![Identity::File([0x5a; 32])],
        uses: vec![entry(UseCost::approximate("p", Unit::Party, 1.0, 0.5))],
    };
    let text = compact(history);
    assert!(History::decode(text.as_bytes()).is_ok());
    for (old, new, problem) in [
        (
            r#""version":1"#,
            r#""version":2"#,
            "it has version 2, but this program reads version 1",
        ),
        (r#","version":1"#, "", "missing field `version`"),
        (r#""table":0"#, r#""table":1"#, "a use has no table"),
        (&"5a".repeat(32), "5a", "it is damaged"),
        (r#""program":"p","#, "", "missing field `program`"),
        (
            r#""program""#,
            r#""mixing":1,"program""#,
            "unknown field `mixing`",
        ),
        (r#""party""#, r#""house""#, "unknown variant `house`"),
        (r#""1e0""#, r#""NaN""#, "epsilon is \"NaN\""),
        (r#""1e0""#, r#""inf""#, "epsilon is \"inf\""),
        (r#""1e0""#, r#""-1""#, "epsilon is \"-1\""),
        (r#""5e-1""#, r#""1.5""#, "delta is \"1.5\""),
        (r#""5e-1""#, "0.5", "invalid type: floating point"),
    ] {
        assert!(text.contains(old), "{text}");
        let refused = History::decode(text.replace(old, new).as_bytes()).unwrap_err();
        assert!(refused.contains(problem), "{problem:?} is not in {refused}");
    }
}
