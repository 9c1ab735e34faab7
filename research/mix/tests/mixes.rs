//! Tests of mixes: exact sums, noise, refusals, and equality of clear and encrypted releases.

#![allow(clippy::unwrap_used, reason = "a test's own values")]

use fhaim_domain::{Schema, Table};
use fhaim_dp::{Ladder, Leak, Ledger, Rho};
use fhaim_he::SecretKey;
use fhaim_mix::{Cda, CdaNoise, Error, Groups, Points, TABLE_UNIT, encrypted};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// Records of three columns and a class column with two values.
fn points(records: usize, seed: u64) -> Points {
    let json = r#"{"name":"t","target":"class","columns":[
        {"name":"a","kind":"categorical","categories":["p","q","r"]},
        {"name":"b","kind":"categorical","categories":["p","q","r","s"]},
        {"name":"c","kind":"categorical","categories":["p","q"]},
        {"name":"class","kind":"categorical","categories":["no","yes"]}]}"#;
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let columns = [3, 4, 2].map(|n| (0..records).map(|_| rng.random_range(0..n)).collect());
    let mut columns = Vec::from(columns);
    columns.push((0..records as u32).map(|n| n % 2).collect());
    Points::from_table(&Table::new(schema, columns).unwrap()).unwrap()
}

fn rho(value: f64) -> Rho {
    Rho::from_f64_down(value).unwrap()
}

#[test]
fn noiseless_mix_of_a_whole_class_is_its_mean() {
    let points = points(40, 1);
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    for (parties, noise) in [
        (1, CdaNoise::Conventional),
        (4, CdaNoise::Conventional),
        (4, CdaNoise::Shared),
        (4, CdaNoise::Correlated),
    ] {
        let parts = points.deal(parties, &mut rng).unwrap();
        let mix = 20 / parties;
        let cda = Cda::plan(&parts, mix, 6, noise, None).unwrap();
        let mixes = cda.run(&parts, &mut rng).unwrap();
        assert_eq!(mixes.len(), 6);
        for number in 0..6 {
            let class = mixes.labels[number] as usize;
            let records = &points.by_class()[class];
            for feature in 0..points.width() {
                let sum: i32 = records.iter().map(|&r| points.record(r)[feature]).sum();
                assert_eq!(mixes.sum(number)[feature], i64::from(sum));
                let mean = mixes.mean(number, &points)[feature];
                assert!((mean - f64::from(sum) / (20.0 * TABLE_UNIT as f64)).abs() < 1e-12);
            }
        }
        assert_eq!(cda.cost().epsilon, f64::INFINITY);
    }
}

/// The deviation of a release from the exact sums matches the plan; shared and correlated noise are smaller.
#[test]
fn noise_has_the_planned_deviation_and_joint_noise_is_smaller() {
    let points = points(4000, 2);
    let mut deviations = Vec::new();
    for noise in [
        CdaNoise::Conventional,
        CdaNoise::Shared,
        CdaNoise::Correlated,
    ] {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let parts = points.deal(10, &mut rng).unwrap();
        let cda = Cda::plan(&parts, 8, 4000, noise, Some((5.0, 1e-5))).unwrap();
        let cost = cda.cost();
        assert!(cost.epsilon <= 5.0 && cost.epsilon > 3.0, "{cost:?}");
        assert_eq!(cost.rate, 8.0 / 200.0);
        assert_eq!(cost.samples, 2000);
        let mixes = cda.run(&parts, &mut rng).unwrap();
        // Every attribute's features sum to the number of records, so the difference is noise.
        let all = 80 * TABLE_UNIT;
        let off = (0..mixes.len()).map(|n| mixes.sum(n)[..3].iter().sum::<i64>() - all);
        let off = off.map(|o| o as f64 / TABLE_UNIT as f64);
        let squares: f64 = off.map(|o| o * o / 3.0).sum();
        deviations.push((squares / mixes.len() as f64).sqrt());
        // With three attributes, a replaced record moves a sum by sqrt(6); a record of norm 1 moves it by 2.
        let party = cost.deviation * 8.0 * 6f64.sqrt() / 2.0;
        let share = match noise {
            CdaNoise::Conventional => 1.0,
            CdaNoise::Shared => 1.0 / 7.0,
            // g_s has a tenth of the variance of e_s + g_s, and the server's view costs 10/7 + 6/7 / 1.1 times the
            // claim.
            CdaNoise::Correlated => (10.0 / 7.0 + 6.0 / 7.7) / 10.0,
        };
        let expected = party * f64::sqrt(10.0 * share);
        let released = expected / 10.0 / (8.0 * 6f64.sqrt() / 2.0);
        assert!((cost.released / released - 1.0).abs() < 0.01, "{cost:?}");
        let found = deviations.last().unwrap() / expected;
        assert!((found - 1.0).abs() < 0.1, "{noise:?}: {found}");
    }
    assert!(deviations[1] < 0.6 * deviations[0], "{deviations:?}");
    assert!(deviations[2] < 0.6 * deviations[0], "{deviations:?}");
}

/// Theorem 1 of the paper charges too much for correlated noise, and its appendix too little.
#[test]
fn cost_of_correlated_noise_is_between_the_two_claims() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let parts = points(4000, 2).deal(10, &mut rng).unwrap();
    let budget = Some((5.0, 1e-5));
    let cost = Cda::plan(&parts, 8, 4000, CdaNoise::Correlated, budget)
        .unwrap()
        .cost();
    let claims = cost.claims.unwrap();
    assert!(
        claims.appendix < 0.8 * cost.epsilon && cost.epsilon < 0.8 * claims.theorem,
        "{cost:?}"
    );
}

#[test]
fn small_classes_and_invalid_settings_are_rejected() {
    let points = points(40, 1);
    let parts = points.deal(4, &mut ChaCha20Rng::seed_from_u64(0)).unwrap();
    let refused = Cda::plan(&parts, 6, 10, CdaNoise::Shared, None).unwrap_err();
    assert!(matches!(
        refused,
        Error::SmallClass {
            found: 5,
            needed: 6,
            ..
        }
    ));
    assert!(matches!(
        Cda::plan(&[], 6, 10, CdaNoise::Shared, None),
        Err(Error::Setting { .. })
    ));
    let many = Cda::plan(&parts, 2, 1 << 30, CdaNoise::Shared, None).unwrap_err();
    assert!(many.to_string().contains("too many"), "{many}");
    assert!(matches!(
        Cda::plan(&parts, 0, 10, CdaNoise::Shared, None),
        Err(Error::Setting { .. })
    ));
    assert!(matches!(
        Cda::plan(&parts, 2, 10, CdaNoise::Shared, Some((-1.0, 1e-5))),
        Err(Error::Privacy(..))
    ));
    // Orders end at 256, so ln(1/delta) / 255 remains with any noise.
    let floor = Cda::plan(&parts, 2, 1000, CdaNoise::Shared, Some((0.04, 1e-5))).unwrap_err();
    assert!(matches!(floor, Error::OutOfReach { .. }), "{floor}");
}

/// Removing a record that is on a place moves all sums by exactly the charged sensitivity.
#[test]
fn removed_record_moves_sums_by_the_charged_sensitivity() {
    let all = points(24, 3);
    for memberships in [1u32, 2, 3] {
        let groups = Groups::new(5, memberships, &[16, 16], 9).unwrap();
        let release = |numbers: &[usize]| {
            // A class's records are placed in order, so the same generator puts a record on the same place even if
            // later records are missing.
            let mut rng = ChaCha20Rng::seed_from_u64(1);
            let placed = groups.place(&all.select(numbers), &mut rng).unwrap();
            let mut ledger = Ledger::new(rho(1e9));
            let priced = groups.price(&all, rho(1e8), &Leak::NONE).unwrap();
            let plan = priced.ladder().unwrap();
            let ladder = Ladder::draw(plan, &mut ChaCha20Rng::seed_from_u64(2));
            groups
                .release_with(&placed, &priced, &mut ledger, &ladder)
                .unwrap()
        };
        let numbers: Vec<usize> = (0..24).collect();
        let whole = release(&numbers);
        // Leave out the last record of each class, so that the others keep their places.
        for left_out in [22, 23] {
            let rest: Vec<usize> = numbers.iter().copied().filter(|&n| n != left_out).collect();
            let without = release(&rest);
            let moves = whole
                .sums
                .iter()
                .zip(&without.sums)
                .map(|(x, y)| (x - y).pow(2) as u128);
            assert_eq!(moves.sum::<u128>(), groups.delta2_squared(&all));
        }
        let record = 3 * u128::from(TABLE_UNIT.unsigned_abs()).pow(2);
        assert_eq!(
            groups.delta2_squared(&all),
            u128::from(memberships) * record
        );
    }
}

#[test]
fn release_is_debited_once_within_its_budget() {
    let points = points(40, 1);
    let groups = Groups::new(4, 1, &[32, 32], 0).unwrap();
    let budget = rho(0.5);
    let priced = groups.price(&points, budget, &Leak::NONE).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let placed = groups.place(&points, &mut rng).unwrap();
    let mut ledger = Ledger::new(budget);
    let mixes = groups
        .release(&placed, &priced, &mut ledger, &mut rng)
        .unwrap();
    assert!(ledger.spent() <= budget && ledger.spent().to_f64() > 0.49);
    let sizes: f64 = (0..mixes.len()).map(|n| mixes.size(n, &points)).sum();
    assert!((10.0..70.0).contains(&sizes), "{sizes}");
    // A budget that is too small is refused before any computation.
    let mut poor = Ledger::new(rho(0.01));
    assert!(matches!(
        groups.release(&placed, &priced, &mut poor, &mut rng),
        Err(Error::Privacy(..))
    ));
    assert!(matches!(
        groups.price(&points, Rho::ZERO, &Leak::NONE),
        Err(Error::Privacy(..))
    ));
    assert!(matches!(
        Groups::new(4, 1, &[19, 32], 0)
            .unwrap()
            .place(&points, &mut rng),
        Err(Error::NoPlace {
            class: 0,
            capacity: 19
        })
    ));
    for nothing in [
        Groups::new(0, 1, &[4], 0),
        Groups::new(1, 0, &[4], 0),
        Groups::new(1, 1, &[], 0),
    ] {
        assert!(matches!(
            nothing,
            Err(Error::Setting { what: "groups", .. })
        ));
    }
    // A place is listed once for each of its groups, so the number of memberships is bounded.
    assert!(matches!(
        Groups::new(1, u32::MAX, &[4], 0),
        Err(Error::Setting { .. })
    ));
    // With three attributes and values counted in units of 1, a budget above 3/8 could not be spent in full.
    for budget in [0.4, 5.0, 400.0] {
        let groups = Groups::new(4, 1, &[32, 32], 0).unwrap();
        let priced = groups.price(&points, rho(budget), &Leak::NONE).unwrap();
        let mut ledger = Ledger::new(rho(budget));
        groups
            .release(&placed, &priced, &mut ledger, &mut rng)
            .unwrap();
        let spent = ledger.spent().to_f64();
        assert!(spent <= budget && spent > 0.98 * budget, "{spent}");
    }
}

/// The same places and the same ladder give the same integers under encryption and in the clear. The release has more
/// than one page, and each place is in two groups.
#[test]
fn encrypted_mixes_equal_clear_mixes() {
    let points = points(600, 7);
    let groups = Groups::new(2, 2, &[512, 512], 4).unwrap();
    let budget = rho(2.0);
    let setup = encrypted::Setup::new(groups, &points, budget).unwrap();
    assert!(setup.priced().cells > fhaim_he::PAGE);
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let placed = setup.groups().place(&points, &mut rng).unwrap();
    let ladder = Ladder::draw(setup.ladder(), &mut rng);
    let mut ledger = Ledger::new(budget);
    let clear = setup
        .groups()
        .release_with(&placed, setup.priced(), &mut ledger, &ladder)
        .unwrap();

    let secret = SecretKey::random(setup.params(), &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    let keys = secret.evaluation_keys(&mut rng).unwrap();
    let upload = encrypted::encrypt(&setup, &placed, &ladder, &public, &mut rng).unwrap();
    let sealed = encrypted::compute(&setup, &upload, &keys, &public, &mut rng).unwrap();
    let mut paid = Ledger::new(budget);
    let released = encrypted::decrypt(&setup, &sealed, &secret, &mut paid).unwrap();
    assert!(released == clear);
    assert_eq!(paid.entries(), ledger.entries());
    assert!(paid.entries()[0].debit.leak > Rho::ZERO);
    let mut poor = Ledger::new(rho(0.1));
    assert!(matches!(
        encrypted::decrypt(&setup, &sealed, &secret, &mut poor),
        Err(Error::Privacy(..))
    ));
}
