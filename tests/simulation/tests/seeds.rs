//! Plays a fixed set of schedules, and checks that the simulation finds built-in faults.

use fhaim_simulation::{Counts, Mutant, Options, Simulation};

fn play(seeds: std::ops::Range<u64>, options: Options) -> (Counts, Vec<String>) {
    let mut simulation = Simulation::default();
    let (mut counts, mut violations) = (Counts::default(), Vec::new());
    for seed in seeds {
        let played = simulation.play(seed, &options);
        counts.add(&played.counts);
        let named = played
            .violations
            .iter()
            .map(|v| format!("seed {seed}: {v}"));
        violations.extend(named);
    }
    (counts, violations)
}

#[test]
fn schedules_with_clear_pages_violate_no_rule() {
    let (counts, violations) = play(0..600, Options::default());
    assert_eq!(violations, Vec::<String>::new(), "{counts}");
    // Every kind of fault occurred, jobs were done, and jobs were refused.
    assert!(counts.done > 600, "{counts}");
    for (name, count) in counts.faults() {
        assert!(count > 0, "{name}: {counts}");
    }
    let seen = |name: &str| counts.events.get(name).copied().unwrap_or(0);
    for name in EVENTS {
        assert!(seen(name) > 0, "{name}: {counts}");
    }
}

/// Events of lost keys, deviating holders and concurrent uploads that must occur in the fixed set.
const EVENTS: [&str; 12] = [
    "keys lost",
    "a voucher was refused",
    "other keys were refused to a caller with a receipt",
    "other keys were made",
    "a batch was released under other keys and an upload for them",
    "a page under lost keys could not be decrypted",
    "receipt invented",
    "frozen: UnknownReceipt",
    "a page of bad objects was sealed",
    "frozen: Noise",
    "an upload was refused for its manifest",
    "an upload was completed",
];

#[test]
fn schedules_with_ciphertexts_violate_no_rule() {
    let encrypted = Options {
        encrypted: true,
        ..Options::default()
    };
    let (counts, violations) = play(0..2, encrypted);
    assert_eq!(violations, Vec::<String>::new(), "{counts}");
    assert!(counts.done > 0, "{counts}");
}

#[test]
fn schedules_with_second_computation_service_violate_no_rule() {
    let with_witness = Options {
        witness: true,
        ..Options::default()
    };
    let (counts, violations) = play(0..300, with_witness);
    assert_eq!(violations, Vec::<String>::new(), "{counts}");
    assert!(counts.done > 300 && counts.killed[4] > 0, "{counts}");
    assert!(
        counts.events.contains_key("an upload was copied"),
        "{counts}"
    );
    let encrypted = Options {
        encrypted: true,
        ..with_witness
    };
    let (counts, violations) = play(0..1, encrypted);
    assert_eq!(violations, Vec::<String>::new(), "{counts}");
}

#[test]
fn schedules_with_key_sharing_service_violate_no_rule() {
    for (witness, seeds) in [(false, 0..300), (true, 1000..1200)] {
        let options = Options {
            witness,
            keyshare: true,
            ..Options::default()
        };
        let (counts, violations) = play(seeds, options);
        assert_eq!(violations, Vec::<String>::new(), "{counts}");
        assert!(counts.done > 200 && counts.killed[5] > 0, "{counts}");
    }
}

/// Checks whether a built-in fault violates the rule of this number in this schedule.
fn is_found(mutant: Mutant, seed: u64, number: u8) -> bool {
    let options = Options {
        mutant: Some(mutant),
        witness: needs_witness(mutant),
        keyshare: needs_keyshare(mutant),
        ..Options::default()
    };
    let (_, violations) = play(seed..seed + 1, options);
    let name = format!("seed {seed}: {number}: ");
    violations
        .iter()
        .any(|violation| violation.starts_with(&name))
}

fn needs_witness(mutant: Mutant) -> bool {
    matches!(
        mutant,
        Mutant::CryptoDoesNotWait | Mutant::WitnessHasItsOwnKey | Mutant::WitnessIsAskedOnce
    )
}

fn needs_keyshare(mutant: Mutant) -> bool {
    matches!(
        mutant,
        Mutant::CryptoSharesWithNoOne
            | Mutant::CryptoPromisesLate
            | Mutant::KeyshareBelievesTheFirst
    )
}

/// Each of these schedules violates the rule with the built-in fault, and no rule without it.
#[test]
fn every_built_in_fault_violates_a_rule() {
    let found = [
        (Mutant::ComputationForgets, 399, 7),
        (Mutant::CryptoTrustsSpans, 47, 1),
        (Mutant::FreshSealing, 5, 1),
        (Mutant::ReceiptsNotChecked, 1, 3),
        (Mutant::ReceiptsNotChecked, 283, 1),
        (Mutant::ReceiptsNotChecked, 25, 6),
        (Mutant::ComputationShowsNoReceipt, 15, 3),
        (Mutant::GenerationShowsNoReceipt, 51, 3),
        (Mutant::EachCallMakesAJob, 3, 5),
        (Mutant::CryptoAnswersFirst, 82, 3),
        (Mutant::CryptoDebitsLate, 0, 13),
        (Mutant::CryptoAppendsBlindly, 3, 7),
        (Mutant::LateSealingKey, 10, 1),
        (Mutant::LostBlobsAreFaults, 8, 7),
        (Mutant::HighestReceiptAlone, 20367, 3),
        (Mutant::RetryClaimsARun, 2032, 7),
        (Mutant::GenerationVouchesAgain, 395, 3),
        (Mutant::CryptoIgnoresUnknownReceipts, 325, 3),
        (Mutant::CryptoMakesKeysAgain, 651, 3),
        (Mutant::CryptoReleasesWhileFrozen, 109, 15),
        (Mutant::ThawIgnoresHolders, 98, 15),
        (Mutant::ComputationCompletesMixed, 4, 16),
        (Mutant::CryptoDoesNotWait, 5, 8),
        (Mutant::WitnessHasItsOwnKey, 0, 9),
        (Mutant::WitnessIsAskedOnce, 801, 4),
        (Mutant::CryptoSharesWithNoOne, 0, 10),
        (Mutant::CryptoPromisesLate, 80, 7),
        (Mutant::KeyshareBelievesTheFirst, 1040, 12),
    ];
    for (mutant, seed, number) in found {
        assert!(is_found(mutant, seed, number), "{mutant:?}, seed {seed}");
        let without = Options {
            witness: needs_witness(mutant),
            keyshare: needs_keyshare(mutant),
            ..Options::default()
        };
        let (_, violations) = play(seed..seed + 1, without);
        assert_eq!(violations, Vec::<String>::new(), "seed {seed}");
    }
    let tried = |mutant: &Mutant| found.iter().any(|(tried, ..)| tried == mutant);
    assert!(Mutant::ALL.iter().all(tried));
}
