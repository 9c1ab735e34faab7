//! Tests attacks by a dishonest holder of a roster that uploads forged objects. All services follow
//! the protocol.
//!
//! If holders encrypted under the dataset's public key, such a holder could read the dataset's
//! secret key s from the released integers: it would add (0, K (q + 1) / t) to an honest
//! ciphertext, and the integers would then contain K s. Instead, its objects are under an upload
//! key h, and it does not make the keys that bring them to s.
//!
//! Each test compares the released integers with an ideal: the noisy sums of the honest holders,
//! plus the release of the rogue's objects in a dataset without other holders, whose secret key is
//! independent of s.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod dataset;
mod forge;

use dataset::{Case, Dataset, Objects, Outcome, requests, table};
use fhaim_he::{COMPACT, DEGREE, PAGE, ParameterSet, STANDARD, UploadKey, coefficient};
use fhaim_protocol::Error;
use fhaim_protocol::encryption::{Encryption, Payload};
use fhaim_protocol::part::PartPlan;
use fhaim_protocol::roster::ContributionKind;
use fhaim_protocol::upload::Object;
use forge::{Forgery, Pattern};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

/// The objects that the rogue holder forges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Noise,
    /// Columns or counts.
    Data,
    All,
}

impl Target {
    fn has(self, object: Object) -> bool {
        let noise = matches!(object, Object::Noise { .. });
        match self {
            Self::Noise => noise,
            Self::Data => !noise,
            Self::All => true,
        }
    }
}

/// Makes the objects of a holder and forges some of them.
fn forged(
    case: &Case,
    holder: usize,
    key: &UploadKey,
    target: Target,
    forgery: Forgery,
) -> Objects {
    let mut rng = ChaCha20Rng::seed_from_u64(300);
    let mut objects = case.honest_objects(holder, key);
    for (object, payload) in &mut objects {
        if target.has(*object) {
            *payload = forgery.of(key, payload, &mut rng);
        }
    }
    objects
}

/// Makes the objects of all holders. `rogue` has the given ones.
fn uploads(dataset: &Dataset, rogue: usize, objects: &Objects) -> Vec<Objects> {
    let holders = 0..dataset.case.tables.len();
    let upload = |holder| match holder == rogue {
        true => objects.clone(),
        false => {
            let key = dataset.upload_key(holder);
            dataset.case.honest_objects(holder, &key)
        }
    };
    holders.map(upload).collect()
}

/// Returns the release of the rogue's objects in a dataset without other holders, under another
/// secret key. The rogue makes the switching keys of its upload key itself.
fn ideal(case: &Case, rogue: usize, key: &UploadKey, objects: &Objects) -> Outcome {
    let case = case.alone(rogue);
    let mut dataset = Dataset::of_one(&case, 0x1dea1);
    let layout = match case.part_plan(0, Encryption::OwnKey) {
        PartPlan::Records(plan) => Some(plan.layout),
        PartPlan::Counts(_) => None,
    };
    let mut rng = ChaCha20Rng::seed_from_u64(400);
    let keys = key.switch_keys(&dataset.public, layout, &mut rng).unwrap();
    let mut objects = objects.clone();
    objects.insert(Object::Keys, Payload::Keys(Box::new(keys)));
    dataset.release(&[objects]).unwrap()
}

/// Returns the difference between each integer and the sum of two others, centred modulo t.
fn differences(set: &ParameterSet, released: &[i64], one: &[i64], other: &[i64]) -> Vec<i64> {
    let [t] = set.plaintext_moduli else {
        panic!("a set with one plaintext modulus");
    };
    let t = i128::from(*t);
    let all = released.iter().zip(one).zip(other);
    let difference = |((&released, &one), &other): ((&i64, &i64), &i64)| {
        let difference = i128::from(released) - i128::from(one) - i128::from(other);
        ((difference + t / 2).rem_euclid(t) - t / 2) as i64
    };
    all.map(difference).collect()
}

/// Asserts that integers agree with the secret key no more than by chance. `released` has the
/// integers by position, of which the attack expects scale times s.
fn assert_no_more_than_chance(name: &str, released: &[i64], scale: i64, secret: &[i64]) {
    assert_eq!((released.len(), secret.len()), (PAGE, DEGREE));
    for scale in [scale, -scale, 1] {
        let mut found = vec![0; DEGREE];
        for (position, &value) in released.iter().enumerate() {
            found[coefficient(position)] = (value as f64 / scale as f64).round() as i64;
        }
        let (equal, expected) = agreement(&found, secret);
        let line = format!(
            "{name} over {scale}: {equal} of {DEGREE} coefficients equal those of s; by chance {expected:.0}"
        );
        if scale > 1 {
            eprintln!("{line}");
        }
        assert!(
            equal as f64 <= expected + 6.0 * expected.sqrt() + 6.0,
            "{line}"
        );
    }
}

/// Returns the number of integers that are equal at their places, and the expected number at random
/// places.
fn agreement(found: &[i64], secret: &[i64]) -> (usize, f64) {
    let pairs = found.iter().zip(secret);
    let equal = pairs.filter(|(found, secret)| found == secret).count();
    let count = |all: &[i64], value| all.iter().filter(|&&one| one == value).count() as f64;
    let values = (-64..=64).map(|value| count(found, value) * count(secret, value));
    (equal, values.sum::<f64>() / DEGREE as f64)
}

fn case(set: ParameterSet, contribution: ContributionKind, key_services: usize) -> Case {
    // A page of sums for forged noise. The attack on columns needs products too.
    let requests = match contribution {
        ContributionKind::Records => requests(PAGE - 64 * 16, [64, 16]),
        ContributionKind::Counts => requests(PAGE - 64 * 64, [64, 64]),
    };
    Case {
        set,
        contribution,
        key_services,
        tables: vec![table(60, 1), table(40, 2)],
        requests,
    }
}

/// Runs the attack: holder 1 of two adds K (q + 1) / t times a polynomial to honest objects.
///
/// Under two secret keys the services release the same integers. They equal the ideal ones and do
/// not contain s.
fn attack(case: &Case, target: Target, forgery: Forgery, scale: i64) {
    let rogue = 1;
    let sums = case.sums_without(rogue);
    let mut first: Option<Vec<i64>> = None;
    for seed in [3, 4] {
        let mut dataset = Dataset::of_roster(case, seed);
        let key = dataset.upload_key(rogue);
        let objects = forged(case, rogue, &key, target, forgery);
        let outcome = dataset.release(&uploads(&dataset, rogue, &objects));
        let Outcome::Released(released) = outcome.unwrap() else {
            panic!("frozen: {forgery:?}");
        };
        let secret = dataset.secret();
        let own = differences(&case.set, &released, &sums, &vec![0; PAGE]);
        for (name, integers) in [("integers", &released), ("own part", &own)] {
            let name = format!("{target:?}, {forgery:?}, {name}");
            assert_no_more_than_chance(&name, integers, scale, &secret);
        }
        // The key services made another upload key. The released integers do not reveal that
        // either.
        if let Some(first) = &first {
            assert_eq!(*first, released, "{forgery:?}");
            continue;
        }
        let Outcome::Released(ideal) = ideal(case, rogue, &key, &objects) else {
            panic!("frozen in the ideal: {forgery:?}");
        };
        let rest = differences(&case.set, &released, &sums, &ideal);
        assert_eq!(rest, vec![0; PAGE], "{forgery:?}");
        first = Some(released);
    }
}

const SCALE: i64 = 1 << 16;

#[test]
fn agreement_with_the_secret_key_is_measured() {
    let case = case(STANDARD, ContributionKind::Counts, 2);
    let dataset = Dataset::of_roster(&case, 3);
    let secret = dataset.secret();
    let (equal, expected) = agreement(&secret, &secret);
    assert!(
        equal == DEGREE && expected < 0.2 * DEGREE as f64,
        "{expected}"
    );
}

const CONSTANT: Forgery = Forgery::Constant(SCALE as u64);

#[test]
#[ignore = "slow"]
fn noise_of_a_rogue_holder_of_records_does_not_show_the_secret_key() {
    for (set, forgery) in [
        (COMPACT, CONSTANT),
        (COMPACT, Forgery::Message(SCALE, Pattern::Signs(1))),
        (STANDARD, CONSTANT),
    ] {
        let case = Case {
            requests: requests(PAGE, [0, 0]),
            ..case(set, ContributionKind::Records, 1)
        };
        attack(&case, Target::Noise, forgery, SCALE);
    }
}

#[test]
#[ignore = "slow"]
fn columns_of_a_rogue_holder_of_records_do_not_show_the_secret_key() {
    for (set, forgery) in [
        (COMPACT, CONSTANT),
        (COMPACT, Forgery::Message(1 << 8, Pattern::Ramp)),
        (STANDARD, CONSTANT),
    ] {
        attack(
            &case(set, ContributionKind::Records, 1),
            Target::Data,
            forgery,
            SCALE,
        );
    }
}

#[test]
fn counts_of_a_rogue_holder_do_not_show_the_secret_key() {
    for set in [COMPACT, STANDARD] {
        for (target, forgery) in [
            (Target::Data, CONSTANT),
            (Target::Data, Forgery::Message(SCALE, Pattern::Uniform(2))),
            (Target::Noise, Forgery::Message(SCALE, Pattern::Signs(1))),
        ] {
            attack(
                &case(set, ContributionKind::Counts, 1),
                target,
                forgery,
                SCALE,
            );
        }
    }
}

#[test]
#[ignore = "slow"]
fn noise_of_a_rogue_holder_does_not_show_a_split_key() {
    for (key_services, contribution, forgery) in [
        (2, ContributionKind::Records, CONSTANT),
        (
            3,
            ContributionKind::Records,
            Forgery::Message(SCALE, Pattern::Flat),
        ),
        (
            2,
            ContributionKind::Counts,
            Forgery::Message(SCALE, Pattern::Signs(1)),
        ),
        (3, ContributionKind::Counts, CONSTANT),
    ] {
        let case = Case {
            requests: requests(PAGE, [0, 0]),
            ..case(STANDARD, contribution, key_services)
        };
        attack(&case, Target::Noise, forgery, SCALE);
    }
}

/// A small batch, for tests of the outcome only.
fn small(set: ParameterSet, contribution: ContributionKind, key_services: usize) -> Case {
    Case {
        requests: requests(60, [4, 4]),
        ..case(set, contribution, key_services)
    }
}

/// Objects that are not encryptions under the rogue's upload key have the largest possible noise.
#[test]
#[ignore = "slow"]
fn objects_that_encrypt_nothing_freeze_the_dataset() {
    for (set, contribution, key_services) in [
        (COMPACT, ContributionKind::Records, 1),
        (STANDARD, ContributionKind::Records, 1),
        (COMPACT, ContributionKind::Counts, 1),
        (STANDARD, ContributionKind::Records, 2),
        (STANDARD, ContributionKind::Counts, 3),
    ] {
        let case = small(set, contribution, key_services);
        let forgeries = [
            Forgery::Ones,
            Forgery::Random(5),
            Forgery::Zeros,
            Forgery::Largest,
        ];
        for forgery in forgeries
            .into_iter()
            .take(if key_services == 1 { 4 } else { 2 })
        {
            for target in [Target::Noise, Target::Data] {
                let mut dataset = Dataset::of_roster(&case, 3);
                let key = dataset.upload_key(1);
                let objects = forged(&case, 1, &key, target, forgery);
                let outcome = dataset.release(&uploads(&dataset, 1, &objects));
                assert_eq!(outcome.unwrap(), Outcome::Frozen, "{target:?} {forgery:?}");
            }
        }
    }
}

/// A holder sends a copy of another holder's objects as its own. They are under the other's upload
/// key.
#[test]
fn copy_of_another_holders_objects_freezes_the_dataset() {
    for (contribution, key_services) in [
        (ContributionKind::Records, 1),
        (ContributionKind::Counts, 1),
        (ContributionKind::Records, 2),
    ] {
        let case = Case {
            tables: vec![table(60, 1), table(60, 2)],
            ..small(STANDARD, contribution, key_services)
        };
        let mut dataset = Dataset::of_roster(&case, 3);
        let [honest, own] = [0, 1].map(|holder| dataset.upload_key(holder));
        let mut objects = case.honest_objects(0, &honest);
        for payload in objects.values_mut() {
            *payload = forge::renamed(&dataset.params, payload, own.id());
        }
        let outcome = dataset.release(&uploads(&dataset, 1, &objects));
        assert_eq!(outcome.unwrap(), Outcome::Frozen, "{contribution:?}");
    }
}

/// The computation service knows the upload key of each holder.
#[test]
fn objects_under_another_holders_id_are_refused() {
    for contribution in [ContributionKind::Records, ContributionKind::Counts] {
        let case = Case {
            tables: vec![table(60, 1), table(60, 2)],
            ..small(COMPACT, contribution, 1)
        };
        let mut dataset = Dataset::of_roster(&case, 3);
        let [honest, own] = [0, 1].map(|holder| dataset.upload_key(holder));
        let copies = case.honest_objects(0, &honest);
        for target in [Target::Noise, Target::Data] {
            // An unchanged copy, and an object of its own under the other's key id.
            let copied = |(object, payload): (&Object, &Payload)| match target.has(*object) {
                true => (*object, copies[object].clone()),
                false => (*object, payload.clone()),
            };
            let named = |(object, payload): (&Object, &Payload)| match target.has(*object) {
                true => (
                    *object,
                    forge::renamed(&dataset.params, payload, honest.id()),
                ),
                false => (*object, payload.clone()),
            };
            let objects = case.honest_objects(1, &own);
            let attempts: [Objects; 2] = [
                objects.iter().map(copied).collect(),
                objects.iter().map(named).collect(),
            ];
            for objects in &attempts {
                for (object, payload) in objects {
                    assert_eq!(payload.is_under(own.id()), !target.has(*object));
                }
                let refused = dataset.release(&uploads(&dataset, 1, objects)).unwrap_err();
                match (contribution, target) {
                    (ContributionKind::Counts, Target::Data) => assert!(
                        matches!(
                            refused,
                            Error::Encryption(fhaim_he::Error::Mismatch(
                                "the ciphertext is under another holder's key"
                            ))
                        ),
                        "{refused:?}"
                    ),
                    _ => assert!(
                        matches!(
                            refused,
                            Error::Object("an object is under another key than its upload")
                        ),
                        "{refused:?}"
                    ),
                }
            }
        }
    }
}

#[test]
fn objects_that_are_not_seeded_ciphertexts_are_refused() {
    for contribution in [ContributionKind::Records, ContributionKind::Counts] {
        let case = small(COMPACT, contribution, 1);
        let dataset = Dataset::of_roster(&case, 3);
        let params = &dataset.params;
        let own = dataset.upload_key(1);
        let plan = case.part_plan(1, Encryption::RosterKey);
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let whole = dataset.public.encrypt(&[1], &mut rng).unwrap()[0].to_bytes(params);
        let extractor = {
            let like = dataset.public.encrypt(&[1], &mut rng).unwrap();
            forge::extractor(params, &like[0]).to_bytes(params)
        };
        let seeded = &own.encrypt(&[1], &mut rng).unwrap()[0];
        let bytes = seeded.to_bytes(params);
        for object in plan.objects() {
            plan.decode(params, object, &bytes).unwrap();
            // Both polynomials, as in ciphertexts under the public key.
            for unseeded in [&whole, &extractor] {
                let refused = plan.decode(params, object, unseeded);
                assert!(
                    matches!(refused, Err(Error::Object("truncated or too long"))),
                    "{refused:?}"
                );
            }
            let malformed = [
                whole[..bytes.len()].to_vec(),
                forge::of_kind(1, bytes.clone()),
                forge::of_kind(14, bytes.clone()),
                forge::with_too_large_residue(params, seeded),
            ];
            for bytes in &malformed {
                let refused = plan.decode(params, object, bytes);
                assert!(
                    matches!(
                        refused,
                        Err(Error::Encryption(fhaim_he::Error::Malformed { .. }))
                    ),
                    "{refused:?}"
                );
            }
        }
        // A holder of a roster cannot upload switching keys.
        let layout = match &plan {
            PartPlan::Records(plan) => Some(plan.layout),
            PartPlan::Counts(_) => None,
        };
        let keys = own.switch_keys(&dataset.public, layout, &mut rng).unwrap();
        let refused = plan.decode(params, Object::Keys, &keys.to_bytes());
        assert!(
            matches!(refused, Err(Error::Object("the upload has no such object"))),
            "{refused:?}"
        );
    }
}

/// A rogue holder at some place in a roster.
#[derive(Clone, Debug)]
struct Attempt {
    case: Case,
    rogue: usize,
    target: Target,
    forgery: Forgery,
}

fn any_attempt() -> impl Strategy<Value = Attempt> {
    let contribution = prop_oneof![
        Just(ContributionKind::Records),
        Just(ContributionKind::Counts)
    ];
    let target = prop_oneof![Just(Target::Noise), Just(Target::Data), Just(Target::All)];
    let forgery = (contribution, target).prop_flat_map(|(contribution, target)| {
        let multiplied = contribution == ContributionKind::Records && target != Target::Noise;
        (Just(contribution), Just(target), any_forgery(multiplied))
    });
    // All with the same stride, as in the ideal. Forged columns beyond the stride would add to
    // cells that depend on it.
    let holders = (1..=3usize).prop_flat_map(|others| {
        let records = proptest::collection::vec(65..=128u32, others + 1);
        (records, 0..=others)
    });
    let services = prop_oneof![
        2 => Just((COMPACT, 1)),
        1 => Just((STANDARD, 1)),
        1 => Just((STANDARD, 2)),
    ];
    (holders, services, forgery).prop_map(
        |((records, rogue), (set, key_services), (contribution, target, forgery))| {
            let tables = (0..)
                .zip(records)
                .map(|(salt, records)| table(records, salt));
            Attempt {
                case: Case {
                    tables: tables.collect(),
                    ..small(set, contribution, key_services)
                },
                rogue,
                target,
                forgery,
            }
        },
    )
}

/// Products of columns multiply their noise. If it is large, the errors of the switching keys,
/// which differ in the ideal, decide whether a page is refused.
fn any_forgery(multiplied: bool) -> impl Strategy<Value = Forgery> {
    let pattern = prop_oneof![
        Just(Pattern::Flat),
        Just(Pattern::Ramp),
        any::<u64>().prop_map(Pattern::Signs),
        any::<u64>().prop_map(Pattern::Uniform),
    ];
    let scale = (0..20u32, any::<bool>());
    let scale = scale.prop_map(|(bits, negative)| if negative { -(1 << bits) } else { 1 << bits });
    let noise_bits = if multiplied { 0..10u32 } else { 0..60 };
    prop_oneof![
        4 => (scale, pattern).prop_map(|(scale, pattern)| Forgery::Message(scale, pattern)),
        3 => (0..1u64 << 32).prop_map(Forgery::Constant),
        2 => noise_bits.prop_map(Forgery::Noise),
        1 => prop_oneof![
            Just(Forgery::Ones),
            Just(Forgery::Zeros),
            Just(Forgery::Largest),
            any::<u64>().prop_map(Forgery::Random),
        ],
    ]
}

/// Checks that the services treat a rogue's objects as in the ideal: they release the honest
/// holders' sums plus a function of these objects and their upload key, or nothing.
fn check(attempt: &Attempt) {
    let Attempt {
        case,
        rogue,
        target,
        forgery,
    } = attempt;
    let mut dataset = Dataset::of_roster(case, 11);
    let key = dataset.upload_key(*rogue);
    let objects = forged(case, *rogue, &key, *target, *forgery);
    let outcome = dataset
        .release(&uploads(&dataset, *rogue, &objects))
        .unwrap();
    let ideal = ideal(case, *rogue, &key, &objects);
    match (&outcome, &ideal) {
        (Outcome::Released(released), Outcome::Released(ideal)) => {
            let sums = case.sums_without(*rogue);
            let rest = differences(&case.set, released, &sums, ideal);
            assert!(
                rest.iter().all(|rest| (-1..=1).contains(rest)),
                "{attempt:?}"
            );
        }
        (Outcome::Frozen, Outcome::Frozen) => assert!(!forgery.encrypts(), "{attempt:?}"),
        (real, _) => panic!(
            "frozen in one only, released is {}: {attempt:?}",
            *real != Outcome::Frozen
        ),
    }
}

#[test]
#[ignore = "slow"]
fn release_of_any_forged_object_equals_the_ideal() {
    let config = Config {
        cases: 24,
        max_shrink_iters: 16,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[17; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner
        .run(&any_attempt(), |attempt| {
            check(&attempt);
            Ok(())
        })
        .unwrap();
}
