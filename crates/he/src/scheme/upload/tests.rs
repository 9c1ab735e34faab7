use super::*;
use crate::error::Error;
use crate::evaluate::Evaluator;
use crate::evaluate::plan::Cell;
use crate::evaluate::work::EvaluationWork;
use crate::release::page::PackedPage;
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::decryption::inverse_modulo;
use crate::scheme::noise::tests::measured;
use crate::scheme::noise::{ColumnNoise, UPLOAD_FRESH, product_variance, switched_variance};
use crate::scheme::params::{COMPACT, SETS, STANDARD};
use crate::scheme::secret_key::SecretKey;
use crate::scheme::upload::ProductKey;
use crate::table::layout::{Layout, coefficient};
use crate::table::{Combination, EncryptedTable, Factors};
use crate::wire::codec::tests::refuses_damage;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// Encrypts left and right columns of `records` random bits. Returns the pages of all their products and of the
/// left columns' sums, one page under each plaintext modulus, and the expected values.
fn pages(
    key: &UploadKey,
    secret: &SecretKey,
    records: usize,
    rng: &mut ChaCha20Rng,
) -> (Vec<PackedPage>, Vec<i128>) {
    const SIDE: usize = 3;
    let params = key.params();
    let layout = Layout::for_records(records).unwrap();
    let bits: Vec<Vec<i64>> = (0..2 * SIDE)
        .map(|_| (0..records).map(|_| rng.random_range(0..2)).collect())
        .collect();
    let mut encrypt = |chunk: &[i64]| {
        let seeded = key.encrypt(chunk, rng).unwrap().into_iter();
        seeded.map(|c| c.expand(params).unwrap()).collect()
    };
    let columns = bits
        .iter()
        .map(|column| column.chunks(DEGREE).map(&mut encrypt).collect());
    let table = EncryptedTable::new(params, layout, columns.collect()).unwrap();
    let public = secret.public_key(rng).unwrap();
    let keys = secret.evaluation_keys(rng).unwrap();
    let own = key.switch_keys(&public, Some(layout), rng).unwrap();
    let evaluator = Evaluator::new(&keys, layout)
        .with_switch_keys(&own)
        .unwrap();
    let combinations: Vec<_> = (0..2 * SIDE).map(Combination::column).collect();
    let (left, right) = combinations.split_at(SIDE);
    let (mut cells, mut expected) = (Vec::new(), Vec::new());
    for l in 0..SIDE {
        for r in 0..SIDE {
            let pairs = bits[l].iter().zip(&bits[SIDE + r]);
            expected.push(i128::from(pairs.map(|(x, y)| x * y).sum::<i64>()));
            cells.push(Cell::Product { left: l, right: r });
        }
        expected.push(i128::from(bits[l].iter().sum::<i64>()));
        cells.push(Cell::Sum { left: l });
    }
    let cells = [cells.into_iter().enumerate().collect::<Vec<_>>()];
    let factors = Factors { left, right };
    let page = |residue| {
        let pages = evaluator.pages(
            &table,
            residue,
            factors,
            &cells,
            &mut EvaluationWork::default(),
        );
        pages.unwrap().remove(0).unwrap()
    };
    let pages = (0..params.residues()).map(page).collect();
    (pages, expected)
}

/// Covers strides of 64, 256 and 8192, and tables of one and of two record chunks.
#[test]
#[ignore = "slow"]
fn products_and_sums_under_an_upload_key_are_exact() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for set in SETS {
        let params = Parameters::new(set).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let key = UploadKey::random(&params, &mut rng).unwrap();
        for records in [50, 200, 8192 + 5] {
            let (pages, expected) = pages(&key, &secret, records, &mut rng);
            let pages: Vec<Ciphertext> = pages.into_iter().map(|page| page.ciphertext).collect();
            let (values, _) = secret.decrypt(&pages).unwrap();
            for (p, &expected) in expected.iter().enumerate() {
                assert_eq!(
                    values[coefficient(p)],
                    expected,
                    "set {}: {records}",
                    set.id
                );
            }
        }
    }
}

/// Transforms are the main cost of a page. In a tile of 16 leaves with one slot each, a pair of leaves is switched
/// with 16 transforms and not divided. A merge of two nodes divides the polynomial that it switches, which has not
/// been divided before.
#[test]
fn merges_divide_only_the_switched_polynomials() {
    const SIDE: usize = 4;
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let params = Parameters::new(COMPACT).unwrap();
    let secret = SecretKey::random(&params, &mut rng).unwrap();
    let key = UploadKey::random(&params, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    let keys = secret.evaluation_keys(&mut rng).unwrap();
    let layout = Layout::for_records(DEGREE).unwrap();
    let own = key.switch_keys(&public, Some(layout), &mut rng).unwrap();
    let column = key.encrypt(&[1], &mut rng).unwrap().into_iter();
    let column: Vec<_> = column.map(|c| c.expand(&params).unwrap()).collect();
    let columns = vec![vec![column]; 2 * SIDE];
    let table = EncryptedTable::new(&params, layout, columns).unwrap();
    let combinations: Vec<_> = (0..2 * SIDE).map(Combination::column).collect();
    let (left, right) = combinations.split_at(SIDE);
    let cell = |p| {
        let (left, right) = (p % SIDE, p / SIDE);
        (p, Cell::Product { left, right })
    };
    let cells = [(0..SIDE * SIDE).map(cell).collect()];
    let evaluator = Evaluator::new(&keys, layout)
        .with_switch_keys(&own)
        .unwrap();
    let mut work = EvaluationWork::default();
    let factors = Factors { left, right };
    let pages = evaluator.pages(&table, 0, factors, &cells, &mut work);
    let page = pages.unwrap().remove(0).unwrap();
    let (values, _) = secret.decrypt(&[page.ciphertext]).unwrap();
    assert!((0..SIDE * SIDE).all(|p| values[coefficient(p)] == 1));
    let (switch, division) = (4, 4);
    let right_forms = SIDE as u64 * (switch + 2 * division);
    let tile = 8 * 4 * switch + 7 * (switch + division) + division;
    // Nine levels are above the tile. The first of them receives the tile's root, which is already divided.
    let above = switch + 8 * (switch + division) + 2 * division;
    assert_eq!(work.transforms, right_forms + tile + above);
}

/// Compares means over keys, because a page of nine products varies by a tenth.
#[test]
fn noise_under_an_upload_key_has_the_expected_size() {
    const KEYS: usize = 6;
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for set in [STANDARD, COMPACT] {
        let params = Parameters::new(set).unwrap();
        let mut sums = [0.0; 2];
        for _ in 0..KEYS {
            let secret = SecretKey::random(&params, &mut rng).unwrap();
            let public = secret.public_key(&mut rng).unwrap();
            let key = UploadKey::random(&params, &mut rng).unwrap();
            let keys = key.switch_keys(&public, None, &mut rng).unwrap();
            let fresh = key.encrypt(&[1; 64], &mut rng).unwrap().swap_remove(0);
            let switched = keys.switch(&fresh.expand(&params).unwrap()).unwrap();
            let (pages, _) = pages(&key, &secret, 64, &mut rng);
            let squared = |c: &Ciphertext| {
                let noise = measured(&secret, c);
                noise.iter().map(|e| e * e).sum::<f64>()
            };
            let expected =
                switched_variance(&params, Origin::Holder, UPLOAD_FRESH.total) * DEGREE as f64;
            sums[0] += squared(&switched) / expected;
            sums[1] += squared(&pages[0].ciphertext) / pages[0].noise.norm_squared;
        }
        let [switched, page] = sums.map(|sum| sum / KEYS as f64);
        eprintln!("set {}: switched {switched:.3}, page {page:.3}", set.id);
        assert!((switched - 1.0).abs() < 0.15, "switched {switched}");
        assert!((page - 1.0).abs() < 0.2, "page {page}");
    }
}

/// Tests right factors and products before they are switched to the service's key. Both decrypt under h. Compares
/// means over keys, because one secret may shift all roots of a product.
#[test]
fn right_factor_and_product_noise_has_the_expected_size() {
    const KEYS: usize = 6;
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    for set in [STANDARD, COMPACT] {
        let params = Parameters::new(set).unwrap();
        let service = SecretKey::random(&params, &mut rng).unwrap();
        let public = service.public_key(&mut rng).unwrap();
        let evaluation = service.evaluation_keys(&mut rng).unwrap();
        let layout = Layout::for_records(64).unwrap();
        let upload = ProductKey::Upload(UploadKeyId([0; 16]));
        let noise = ColumnNoise::uploaded(&params, Origin::Holder, upload);
        let right_variance = noise.fresh + noise.right;
        let expected = product_variance(set.plaintext_moduli[0], noise.fresh, right_variance);
        let mut sums = [0.0; 2];
        for _ in 0..KEYS {
            let key = UploadKey::random(&params, &mut rng).unwrap();
            let own = key.switch_keys(&public, Some(layout), &mut rng).unwrap();
            let secret = SecretKey::from_coefficients(&params, key.coefficients()).unwrap();
            let evaluator = Evaluator::new(&evaluation, layout);
            let evaluator = evaluator.with_switch_keys(&own).unwrap();
            let [left, right] = [0; 2].map(|_| {
                let mut column = uploaded(&key, &[1; 64], &mut rng);
                column.swap_remove(0).into_parts().1
            });
            let context = evaluator.context();
            let right = context.with_scratch(&mut EvaluationWork::default(), |scratch| {
                context
                    .right_factor(&right, Some(key.id()), scratch)
                    .unwrap()
            });
            let variance = |c: &Ciphertext| {
                let noise = measured(&secret, c);
                noise.iter().map(|e| e * e).sum::<f64>() / DEGREE as f64
            };
            sums[0] += variance(&right) / right_variance.total;
            sums[1] += variance(&product(&key, &left, &right)) / expected;
        }
        let [right, product] = sums.map(|sum| sum / KEYS as f64);
        eprintln!(
            "set {}: right factor {right:.3}, product {product:.3}",
            set.id
        );
        assert!((right - 1.0).abs() < 0.15, "right factor {right}");
        assert!((product - 1.0).abs() < 0.25, "product {product}");
    }
}

/// Computes the product of a left and a right factor under (1, h), for a party that knows h: c2 h^2 is added to the
/// first half.
fn product(key: &UploadKey, left: &Ciphertext, right: &Ciphertext) -> Ciphertext {
    let ring = key.params().ring();
    let t = key.params().set().plaintext_moduli[0];
    let mut out = [ring.zero(), ring.zero()];
    let limbs = ring.ciphertext_limbs().iter().enumerate();
    for ((j, limb), h) in limbs.zip(key.transform().chunks_exact(DEGREE)) {
        let m = limb.modulus;
        for (k, &h) in h.iter().enumerate() {
            let [x0, x1] = [0, 1].map(|half| m.mul(left.c[half].limb(j)[k], t));
            let [y0, y1] = [0, 1].map(|half| right.c[half].limb(j)[k]);
            let square = m.mul(m.mul(x1, y1), m.mul(h, h));
            out[0].limb_mut(j)[k] = m.add(m.mul(x0, y0), square);
            out[1].limb_mut(j)[k] = m.add(m.mul(x0, y1), m.mul(x1, y0));
        }
    }
    Ciphertext { residue: 0, c: out }
}

/// The key service makes the keys that switch upload keys to s. So even if a holder's unseeded (0, K (q + 1) / t)
/// were not refused, the holder would read K times its own upload key, and nothing of s.
#[test]
fn unseeded_ciphertext_reveals_only_its_holders_upload_key() {
    const SCALE: i128 = 10_000;
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    for set in [STANDARD, COMPACT] {
        let params = Parameters::new(set).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let shape = RosterShape::Counts(2);
        let keys = secret.roster_evaluation_keys(shape, &mut rng).unwrap();
        let rogue = UploadKey::from_seeds(&params, vec![secret.upload_seed(1)]).unwrap();
        let ring = params.ring();
        let mut c = [ring.zero(), ring.zero()];
        for (j, limb) in ring.ciphertext_limbs().iter().enumerate() {
            // (q + 1) / t is 1 / t modulo each prime, at every point of the transform.
            let (m, t) = (limb.modulus, set.plaintext_moduli[0]);
            let inverse = inverse_modulo(i128::from(t), i128::from(set.ciphertext_moduli[j]));
            c[1].limb_mut(j).fill(m.mul(inverse as u64, SCALE as u64));
        }
        let unseeded = UploadCiphertext {
            key: rogue.id(),
            ciphertext: Ciphertext { residue: 0, c },
        };
        let switched = keys.upload(rogue.id()).unwrap().switch(&unseeded).unwrap();
        let (values, _) = secret.decrypt(&[switched]).unwrap();
        let (own, secret) = (rogue.coefficients(), secret.coefficients());
        let mut pairs = values.iter().zip(own.iter());
        assert!(pairs.all(|(&value, &h)| value == SCALE * i128::from(h)));
        let seen = own.iter().zip(secret).filter(|(h, s)| h == s).count() as f64;
        let count = |key: &[i64], value| key.iter().filter(|&&one| one == value).count() as f64;
        let chance = (-64..=64)
            .map(|v| count(&own, v) * count(secret, v))
            .sum::<f64>();
        let chance = chance / DEGREE as f64;
        assert!((seen - chance).abs() < 6.0 * chance.sqrt(), "{seen}");
    }
}

/// Cut, extended, flipped and random bytes are rejected, under sets of one special prime and of two.
#[test]
#[ignore = "slow"]
fn damaged_bytes_of_holders_are_rejected() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    for set in [STANDARD, COMPACT] {
        let params = Parameters::new(set).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let key = UploadKey::random(&params, &mut rng).unwrap();
        refuses_damage(&key.to_bytes(), |b| UploadKey::from_bytes(&params, b));
        let seeded = key.encrypt(&[5, -7], &mut rng).unwrap().swap_remove(0);
        refuses_damage(&seeded.to_bytes(&params), |b| {
            SeededCiphertext::from_bytes(&params, b)
        });
        for layout in [None, Layout::for_records(64).ok()] {
            let keys = key.switch_keys(&public, layout, &mut rng).unwrap();
            let bytes = keys.to_bytes();
            assert_eq!(bytes.len(), UploadSwitchKeys::bytes(&params, layout));
            let read = UploadSwitchKeys::from_bytes(&params, layout, &bytes).unwrap();
            assert!(read.to_bytes() == bytes, "set {}", set.id);
            refuses_damage(&bytes, |b| UploadSwitchKeys::from_bytes(&params, layout, b));
        }
    }
    // A set rejects the keys of another set.
    let [p1, p5] = [STANDARD, COMPACT].map(|set| Parameters::new(set).unwrap());
    let key = UploadKey::random(&p5, &mut rng).unwrap();
    assert!(matches!(
        UploadKey::from_bytes(&p1, &key.to_bytes()),
        Err(crate::Error::Malformed { .. })
    ));
    let secret = SecretKey::random(&p1, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    assert!(matches!(
        key.switch_keys(&public, None, &mut rng),
        Err(crate::Error::Mismatch(..))
    ));
}

#[test]
fn upload_key_objects_round_trip_and_foreign_ones_are_rejected() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let params = Parameters::new(STANDARD).unwrap();
    let secret = SecretKey::random(&params, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    let [one, other] = [0; 2].map(|_| UploadKey::random(&params, &mut rng).unwrap());
    let layout = Layout::for_records(64).unwrap();
    let again = UploadKey::from_bytes(&params, &one.to_bytes()).unwrap();
    assert!(again.coefficients() == one.coefficients() && again.id() == one.id());
    let seeded = again.encrypt(&[5, -7], &mut rng).unwrap().swap_remove(0);
    let bytes = seeded.to_bytes(&params);
    assert_eq!(bytes.len(), STANDARD.seeded_bytes());
    assert_eq!(
        SeededCiphertext::from_bytes(&params, &bytes).unwrap(),
        seeded
    );
    assert!(matches!(
        SeededCiphertext::from_bytes(&params, &bytes[1..]),
        Err(crate::Error::Malformed { .. })
    ));
    for layout in [None, Some(layout)] {
        let keys = one.switch_keys(&public, layout, &mut rng).unwrap();
        let bytes = keys.to_bytes();
        assert_eq!(bytes.len(), UploadSwitchKeys::bytes(&params, layout));
        let read = UploadSwitchKeys::from_bytes(&params, layout, &bytes).unwrap();
        assert!(read.to_bytes() == bytes);
        let wrong = Layout::for_records(8192).ok();
        assert!(matches!(
            UploadSwitchKeys::from_bytes(&params, wrong, &bytes),
            Err(crate::Error::Malformed { .. })
        ));
    }
    let keys = one.switch_keys(&public, None, &mut rng).unwrap();
    let own = seeded.expand(&params).unwrap();
    let foreign = other.encrypt(&[1], &mut rng).unwrap().swap_remove(0);
    let foreign = foreign.expand(&params).unwrap();
    let twice = UploadCiphertext::sum(&params, [&own, &own]).unwrap();
    let switched = [keys.switch(&twice).unwrap()];
    assert_eq!(secret.decrypt(&switched).unwrap().0[..2], [10, -14]);
    assert!(matches!(keys.switch(&foreign), Err(Error::Mismatch(_))));
    assert!(matches!(
        UploadCiphertext::sum(&params, [&own, &foreign]),
        Err(crate::Error::Mismatch(..))
    ));
    assert!(matches!(
        EncryptedTable::new(&params, layout, vec![vec![vec![own], vec![foreign]]]),
        Err(crate::Error::Mismatch(..))
    ));
    let evaluation = secret.evaluation_keys(&mut rng).unwrap();
    assert!(matches!(
        Evaluator::new(&evaluation, layout).with_switch_keys(&keys),
        Err(crate::Error::Mismatch(..))
    ));
}
