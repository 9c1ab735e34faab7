//! Encodings of key shares and messages.

use super::*;
use crate::wire::HEADER;
use rand::Rng;
use sha2::{Digest, Sha256};

/// Stored bytes must stay readable. This test compares digests of objects drawn from fixed seeds.
#[test]
fn encodings_are_unchanged_and_damage_is_rejected() {
    let committee = committee(STANDARD, 2, 70);
    let params = &committee.params;
    let share = KeyShare::from_root(params, Root::from_bytes([3; 32])).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(71);
    let page = committee.encrypt(&[4, 5, 6], &mut rng);
    let opening = Opening::new(params, &page[0], &[0, 5]).unwrap();
    let sent = share
        .decryption_share(&page[0], &[0, 5], &[8; 32], 3)
        .unwrap();
    let objects = [
        ("key share", share.to_bytes().to_vec()),
        ("first round", committee.first[0].to_bytes(params)),
        ("second round", committee.second[1].to_bytes(params)),
        ("evaluation keys", committee.keys.to_bytes()),
        ("public key", committee.public.to_bytes().unwrap()),
        ("opening", opening.to_bytes(params)),
        ("decryption share", sent.to_bytes(params)),
    ];
    let lines = objects.iter().map(|(name, bytes)| {
        format!(
            "{name} {} {}\n",
            bytes.len(),
            hex(&digest(b"golden", &[bytes])[..8])
        )
    });
    let lines: String = lines.collect();
    assert_eq!(lines, GOLDEN);
    let reads = |bytes: &[u8]| reads(params, bytes);
    let whole = Parameters::shared(STANDARD).unwrap();
    let three = whole.with_shares(3).unwrap();
    for (name, bytes) in objects.iter().filter(|(name, _)| *name != "public key") {
        let read: Vec<_> = reads(bytes).into_iter().flatten().collect();
        assert_eq!(
            read,
            std::slice::from_ref(bytes),
            "{name}: exactly one decoder accepts it, and encodes the same bytes"
        );
        let cut = &bytes[..bytes.len() - 1];
        let longer = [bytes.as_slice(), &[0]].concat();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 4;
        for damaged in [cut, &longer, &flipped, &bytes[..24], &[]] {
            assert!(reads(damaged).iter().all(Option::is_none), "{name}");
        }
        assert!(
            matches!(
                EvaluationKeys::from_bytes(&whole, bytes),
                Err(Error::Malformed { .. })
            ),
            "{name}"
        );
        assert!(
            matches!(
                FirstRound::from_bytes(&three, None, bytes),
                Err(Error::Malformed { .. })
            ),
            "{name}"
        );
        assert!(
            matches!(
                KeyShare::from_bytes(&three, bytes),
                Err(Error::Malformed { .. })
            ),
            "{name}"
        );
    }
}

/// Decodes bytes with each decoder, and encodes the results again.
fn reads(params: &Parameters, bytes: &[u8]) -> [Option<Vec<u8>>; 6] {
    let share = KeyShare::from_bytes(params, bytes).ok();
    let first = FirstRound::from_bytes(params, None, bytes).ok();
    let second = SecondRound::from_bytes(params, None, bytes).ok();
    let keys = EvaluationKeys::from_bytes(params, bytes).ok();
    let opening = Opening::from_bytes(params, bytes).ok();
    let sent = DecryptionShare::from_bytes(params, bytes).ok();
    [
        share.map(|x| x.to_bytes().to_vec()),
        first.map(|x| x.to_bytes(params)),
        second.map(|x| x.to_bytes(params)),
        keys.map(|x| x.to_bytes()),
        opening.map(|x| x.to_bytes(params)),
        sent.map(|x| x.to_bytes(params)),
    ]
}

/// Changes bytes and repairs length and checksum, as anyone can who knows the format. Accepted bytes are encoded
/// unchanged, and nothing panics.
#[test]
fn forged_bytes_are_rejected_or_round_trip() {
    let committee = committee(STANDARD, 2, 75);
    let params = &committee.params;
    let mut rng = ChaCha20Rng::seed_from_u64(76);
    let page = committee.encrypt(&[4, 5, 6], &mut rng);
    let opening = Opening::new(params, &page[0], &[0, 5, 9]).unwrap();
    let sent = of_page(&committee.shares[0], &page, &[0, 5, 9]).swap_remove(0);
    let objects = [
        (committee.shares[0].to_bytes().to_vec(), 2000),
        (opening.to_bytes(params), 2000),
        (sent.to_bytes(params), 2000),
        (committee.first[0].to_bytes(params), 5),
        (committee.second[0].to_bytes(params), 10),
        (committee.keys.to_bytes(), 5),
    ];
    let (mut read, mut refused) = (0, 0);
    for (valid, rounds) in objects {
        for round in 0..rounds {
            let mut forged = valid.clone();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..forged.len());
                forged[at] = rng.random();
            }
            match round % 4 {
                0 => forged.truncate(rng.random_range(0..forged.len())),
                1 => forged.extend((0..rng.random_range(1..40)).map(|_| rng.random::<u8>())),
                _ => {}
            }
            if round % 2 == 0 {
                repair_length(&mut forged);
            }
            repair_checksum(&mut forged);
            for again in reads(params, &forged) {
                assert!(again.as_ref().is_none_or(|again| *again == forged));
                *(if again.is_some() {
                    &mut read
                } else {
                    &mut refused
                }) += 1;
            }
        }
    }
    eprintln!("{read} read, {refused} refused");
    assert!(read > 500 && refused > 10_000);
}

/// Writes the body's length to the header.
fn repair_length(bytes: &mut [u8]) {
    let length = bytes.len().saturating_sub(HEADER) as u32;
    if let Some(field) = bytes.get_mut(12..16) {
        field.copy_from_slice(&length.to_le_bytes());
    }
}

fn repair_checksum(bytes: &mut [u8]) {
    let Some((header, rest)) = bytes.split_at_mut_checked(16) else {
        return;
    };
    let Some((checksum, body)) = rest.split_at_mut_checked(8) else {
        return;
    };
    let digest = Sha256::new().chain_update(header).chain_update(body);
    checksum.copy_from_slice(&digest.finalize()[..8]);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const GOLDEN: &str = "\
key share 57 be5c762b3f8eb275
first round 8355866 cd17a9263d132934
second round 25 ecd3f5c52fc64e6a
evaluation keys 8147386 51b0cec034fc31ff
public key 417816 420222a6800eb0ea
opening 72 7d958d682693b344
decryption share 72 bd49426715d04f47
";
