//! Decryption requests: fuzzed bytes, alone or after a valid beginning, and edits of a valid request.

#![no_main]

use std::sync::LazyLock;

use fhaim_domain::Clique;
use fhaim_dp::{LadderPlan, PAGE, Span};
use fhaim_fuzz::{KEYS, choice, edited, with_digest};
use fhaim_protocol::request::{DatasetId, DecryptRequest, JobId, PageSpan, SealedPage};
use fhaim_protocol::window::Window;
use fhaim_release::{Axis, ReleaseRequest, SquaredTerm, Statistic};
use libfuzzer_sys::fuzz_target;

/// Length of magic, version, parameter set, dataset and job.
const BEGINNING: usize = 8 + 2 * 16;
const DIGEST: usize = 32;

static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let statistics = [
        Statistic::Total,
        Statistic::OneWay(Axis::identity(2, 3)),
        Statistic::Product(Axis::identity(0, 2), Axis::identity(3, 4)),
        Statistic::SquaredScores(vec![SquaredTerm {
            clique: Clique::new([1, 4]),
            weight: 3,
            target: vec![0, 5, i64::MAX],
        }]),
    ];
    let releases = (0..)
        .zip(statistics)
        .map(|(number, statistic)| ReleaseRequest {
            number,
            statistic,
            variance_units: 77,
        });
    let span = Span {
        page: 2,
        start: 0,
        len: 13,
    };
    let request = DecryptRequest {
        dataset: DatasetId([3; 16]),
        job: JobId([9; 16]),
        releases: releases.collect(),
        pages: vec![SealedPage {
            ciphertexts: KEYS[0].ciphertexts(),
            variance_units: 77,
            parts: vec![PageSpan { number: 0, span }],
        }],
    };
    let mut bytes = request.to_bytes(&KEYS[0].params);
    bytes.truncate(bytes.len() - DIGEST);
    bytes
});

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let bytes = match choice(&mut data) % 4 {
        0 => data.to_vec(),
        1 | 2 => with_digest([&VALID[..BEGINNING], data].concat()),
        _ => with_digest(edited(&VALID, data)),
    };
    let params = &KEYS[0].params;
    if let Ok(request) = DecryptRequest::from_bytes(params, &bytes) {
        assert!(request.to_bytes(params) == bytes);
        // Every decoded request is placed or rejected.
        let ladder = LadderPlan::new(3 * PAGE, 1 << 20).expect("a small ladder");
        let window = Window::new(request.dataset, request.job, 0, ladder);
        let _ = window.place(&request.releases);
    }
});
