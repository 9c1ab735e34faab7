//! Requests to the computation and crypto services: statistics, as JSON and in binary.

use crate::encryption::{HIDDEN, ciphertext, secret};
use crate::files::{flipped, golden, json, refuses_damage};
use fhaim_domain::Clique;
use fhaim_dp::Span;
use fhaim_he::{Ciphertext, Parameters, STANDARD};
use fhaim_protocol::Error;
use fhaim_protocol::request::{DatasetId, DecryptRequest, JobId, PageSpan, SealedPage};
use fhaim_release::{Axis, ReleaseRequest, SquaredTerm, Statistic};
use sha2::{Digest, Sha256};

pub const DATASET: DatasetId = DatasetId([0xd5; 16]);
pub const JOB: JobId = JobId([0x0b; 16]);

/// Length of magic, version, set, dataset, job, and the number of releases.
const HEADER: usize = 6 + 1 + 1 + 16 + 16 + 8;

/// Returns one release of every kind.
pub fn releases() -> Vec<ReleaseRequest> {
    let contrast = Axis {
        attribute: 4,
        functions: vec![vec![2, -1, -1], vec![0, i64::MAX, i64::MIN]],
    };
    let term = |a, b| SquaredTerm {
        clique: Clique::new([a, b]),
        weight: -3,
        target: vec![0, 5, 1 << 40, 1],
    };
    let statistics = [
        Statistic::Total,
        Statistic::OneWay(Axis::identity(2, 3)),
        Statistic::Product(Axis::identity(0, 2), contrast),
        Statistic::SquaredScores(vec![term(0, 1), term(1, 300)]),
    ];
    let variances = [1, 77, 1 << 33, u64::MAX];
    (0..)
        .zip(statistics.into_iter().zip(variances))
        .map(|(number, (statistic, variance_units))| ReleaseRequest {
            number,
            statistic,
            variance_units,
        })
        .collect()
}

#[test]
fn releases_are_unchanged() {
    json("releases.json", &releases());
}

#[test]
fn answers_are_unchanged() {
    let answers = vec![vec![0], vec![-1, i64::MAX, i64::MIN], Vec::new()];
    json("answers.json", &answers);
}

fn refused(params: &Parameters, bytes: &[u8]) {
    match DecryptRequest::from_bytes(params, bytes) {
        Err(Error::Request(_) | Error::Encryption(_)) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a damaged request was accepted"),
    }
}

fn sealed_again(body: &[u8]) -> Vec<u8> {
    [body, &Sha256::digest(body)].concat()
}

#[test]
fn decryption_request_is_unchanged() {
    let params = Parameters::new(STANDARD).unwrap();
    let request = DecryptRequest {
        dataset: DATASET,
        job: JOB,
        releases: releases(),
        pages: Vec::new(),
    };
    let bytes = golden("decrypt-request", || request.to_bytes(&params));
    let read = DecryptRequest::from_bytes(&params, &bytes).unwrap();
    assert_eq!(read, request);
    assert_eq!(read.to_bytes(&params), bytes);
    refuses_damage(&bytes, bytes.len() - 1, |bytes| refused(&params, bytes));

    // Damage with a matching checksum is rejected, or read as the other request that it has become.
    let body = &bytes[..bytes.len() - 32];
    for length in 0..body.len() {
        refused(&params, &sealed_again(&body[..length]));
    }
    refused(&params, &sealed_again(&[body, &[0]].concat()));
    for bit in 0..8 * body.len() {
        let forged = sealed_again(&flipped(body, bit));
        match DecryptRequest::from_bytes(&params, &forged) {
            Ok(other) => assert_eq!(other.to_bytes(&params), forged),
            Err(Error::Request(_) | Error::Encryption(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// The file has the bytes before and after the page's ciphertext, which is the golden ciphertext.
#[test]
fn decryption_request_with_a_page_is_unchanged() {
    let params = Parameters::new(STANDARD).unwrap();
    let page = ciphertext(&params);
    let part = |number, start, len| PageSpan {
        number,
        span: Span {
            page: 2,
            start,
            len,
        },
    };
    let request = DecryptRequest {
        dataset: DATASET,
        job: JOB,
        releases: releases()[..2].to_vec(),
        pages: vec![SealedPage {
            ciphertexts: vec![Ciphertext::from_bytes(&params, &page).unwrap()],
            variance_units: 77,
            parts: vec![part(0, 0, 1), part(1, 1, 3)],
        }],
    };
    let around = golden("decrypt-request.around-page", || {
        let bytes = request.to_bytes(&params);
        let (head, digest) = bytes.split_at(bytes.len() - 32);
        [&head[..head.len() - page.len()], digest].concat()
    });
    let (head, digest) = around.split_at(around.len() - 32);
    let bytes = [head, &page, digest].concat();
    let mut read = DecryptRequest::from_bytes(&params, &bytes).unwrap();
    assert_eq!(read, request);
    assert_eq!(read.to_bytes(&params), bytes);
    refuses_damage(&bytes, HEADER, |bytes| refused(&params, bytes));
    let (values, _) = secret(&params)
        .decrypt(&read.pages.remove(0).ciphertexts)
        .unwrap();
    assert_eq!(values[0], i128::from(HIDDEN[0]));
}
