//! The privacy ledger: costs, debits, and the remaining budget.

use crate::files::{json, stored};
use fhaim_dp::{Debit, Entry, Ledger, Rho};

fn debit(number: u32, variance_units: u64) -> Debit {
    Debit {
        number,
        description: format!("release {number} of \"a\" and \u{df}"),
        digest: [number as u8; 32],
        delta2_squared: (1 << 20) + u128::from(number),
        variance_units,
        honest: 1,
        cells: 12,
        leak: Rho::ratio_up(3, 1 << 40).unwrap(),
    }
}

fn ledger() -> Ledger {
    let mut ledger = Ledger::new(Rho::ratio_up(5, 3).unwrap());
    // Variances of sums of one, several and many samples of the ladder.
    for (number, variance_units) in (0..).zip([699_051, 1 << 18, (1 << 19) - 1]) {
        ledger.debit(debit(number, variance_units)).unwrap();
    }
    ledger
}

#[test]
fn costs_are_written_as_exact_counts() {
    let costs = [
        Rho::ZERO,
        Rho::ratio_up(1, 1 << 80).unwrap(),
        Rho::ratio_up(1, 3).unwrap(),
        Rho::ratio_up((1 << 48) - 1, 1).unwrap(),
    ];
    json("costs.json", &costs.to_vec());
}

#[test]
fn ledger_is_unchanged_and_wrong_costs_are_rejected() {
    json("ledger.json", &ledger());
    json("entries.json", &ledger().entries().to_vec());
    let text = String::from_utf8(stored("ledger.json")).unwrap();
    let entry: Entry = ledger().entries()[1].clone();
    let cost = serde_json::to_string(&entry.rho).unwrap();
    assert!(text.contains(&cost));
    let cheaper = text.replacen(&cost, "\"1\"", 1);
    let refused = serde_json::from_str::<Ledger>(&cheaper).unwrap_err();
    let broken = fhaim_dp::Error::BrokenLedger.to_string();
    assert!(refused.to_string().starts_with(&broken), "{refused}");
}
