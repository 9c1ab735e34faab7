//! Tests the noise ladder: its plan, the allocation of positions, and the noise.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use std::collections::HashSet;

use fhaim_dp::{
    Allocator, DIGIT_SAMPLES, Digits, Error, LEVEL_VECTORS, Ladder, LadderPlan, PAGE, Span,
    most_pages,
};
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

fn ladder(plan: LadderPlan, seed: u64) -> Ladder {
    Ladder::draw(plan, &mut ChaCha20Rng::seed_from_u64(seed))
}

/// Returns the positions of `spans`, counted over all pages.
fn positions(spans: &[Span]) -> Vec<usize> {
    spans
        .iter()
        .flat_map(|span| span.range().map(|p| span.page * PAGE + p))
        .collect()
}

#[test]
fn base_4_digits_add_up_to_the_variance() {
    for units in [0, 1, 2, 3, 4, 5, 63, 64, 1_000_003, u64::MAX] {
        let sum: u128 = Digits::of(units)
            .iter()
            .map(|(level, digit)| (digit as u128) << (2 * level))
            .sum();
        assert_eq!(sum, u128::from(units));
        assert!(
            Digits::of(units)
                .iter()
                .all(|(_, digit)| digit <= DIGIT_SAMPLES)
        );
    }
    assert_eq!(
        [0, 1, 3, 4, u64::MAX].map(|units| Digits::of(units).levels()),
        [0, 1, 1, 2, 32]
    );
}

#[test]
fn ladder_plan_survives_json_and_invalid_plans_are_rejected() {
    let plan = LadderPlan::new(10_000, 4u64.pow(5)).unwrap();
    assert_eq!((plan.pages(), plan.levels(), plan.vectors()), (2, 6, 24));
    assert_eq!(plan.samples(), 10_000 * 6 * 3);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<LadderPlan>(&text).unwrap(), plan);
    assert_eq!(text, r#"{"positions":10000,"levels":6}"#);
    let size = |levels, positions| Err(Error::LadderSize { levels, positions });
    assert_eq!(LadderPlan::new(1, 4u64.pow(27)), size(28, 1));
    assert_eq!(LadderPlan::new(usize::MAX, 1), size(1, usize::MAX));
    for (text, words) in [
        (
            r#"{"positions":1,"levels":28}"#,
            "a noise ladder of 28 levels and 1 positions",
        ),
        (
            r#"{"positions":1,"levels":0}"#,
            "a noise ladder of 0 levels and 1 positions",
        ),
        (
            r#"{"positions":1099511627776,"levels":1}"#,
            "a noise ladder of 1 levels and 1099511627776 positions",
        ),
        (
            r#"{"positions":1,"levels":1,"form":"dense"}"#,
            "unknown field `form`",
        ),
    ] {
        let refused = serde_json::from_str::<LadderPlan>(text).unwrap_err();
        assert!(refused.to_string().starts_with(words), "{text}: {refused}");
    }
}

#[test]
fn releases_take_consecutive_positions_across_pages() {
    let mut allocator = Allocator::new(LadderPlan::new(3 * PAGE, 1).unwrap());
    let mut at = |number, cells| allocator.allocate(number, cells);
    let span = |page, start, len| Span { page, start, len };
    assert_eq!(at(0, 5000), Ok(vec![span(0, 0, 5000)]));
    let across = vec![span(0, 5000, PAGE - 5000), span(1, 0, 1808)];
    assert_eq!(at(1, PAGE - 5000 + 1808), Ok(across.clone()));
    let large = vec![span(1, 1808, PAGE - 1808), span(2, 0, 1798)];
    assert_eq!(at(3, PAGE - 10), Ok(large));
    assert_eq!(
        at(1, PAGE - 5000 + 1808),
        Ok(across),
        "a repetition gets the same positions"
    );
    assert_eq!(at(3, 1), Err(Error::Conflict(3)));
    assert_eq!(at(2, 1), Err(Error::Order { number: 2, last: 3 }));
    let left = PAGE - 1798;
    let number = 4;
    let cells = left + 1;
    assert_eq!(
        at(number, cells),
        Err(Error::LadderExhausted {
            number,
            cells,
            left
        })
    );
    assert_eq!(
        at(4, left),
        Ok(vec![span(2, 1798, left)]),
        "the refusal used no positions"
    );
    assert_eq!(
        at(5, 1),
        Err(Error::LadderExhausted {
            number: 5,
            cells: 1,
            left: 0
        })
    );
}

#[test]
fn forged_stored_allocator_is_rejected() {
    let mut allocator = Allocator::new(LadderPlan::new(100, 1).unwrap());
    allocator.allocate(1, 10).unwrap();
    allocator.allocate(2, 10).unwrap();
    let value = serde_json::to_value(&allocator).unwrap();
    let stored: Allocator = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(stored, allocator);
    let exhausted = Error::LadderExhausted {
        number: 2,
        cells: 200,
        left: 90,
    };
    for (field, forged, error) in [
        ("first", 0, Error::Conflict(2)),
        ("cells", 200, exhausted),
        ("number", 1, Error::Conflict(1)),
    ] {
        let mut value = value.clone();
        value["served"][1][field] = forged.into();
        let refused = serde_json::from_value::<Allocator>(value).unwrap_err();
        assert_eq!(refused.to_string(), error.to_string(), "{field}");
    }
}

proptest! {
    #[test]
    fn no_position_is_given_twice_and_plans_suffice(
        sizes in prop::collection::vec(prop_oneof![0..50usize, 2000..9000usize, 9000..30_000usize], 1..25),
    ) {
        let total = sizes.iter().sum();
        let plan = LadderPlan::new(total, 1).unwrap();
        let mut allocator = Allocator::new(plan);
        let mut seen = HashSet::new();
        for (number, &cells) in (0..).zip(&sizes) {
            let spans = allocator.allocate(number, cells).unwrap();
            let positions = positions(&spans);
            prop_assert_eq!(positions.len(), cells);
            prop_assert!(positions.iter().all(|&p| p < plan.positions() && seen.insert(p)));
            prop_assert!(spans.len() <= most_pages(cells));
        }
        prop_assert_eq!(seen.len(), total);
    }
}

#[test]
fn noise_is_the_sum_of_the_digits_samples() {
    let plan = LadderPlan::new(PAGE + 100, 63).unwrap();
    let ladder = ladder(plan, 1);
    let spans = [
        Span {
            page: 0,
            start: PAGE - 2,
            len: 2,
        },
        Span {
            page: 1,
            start: 0,
            len: 100,
        },
    ];
    for units in [0b01, 0b10, 0b11, 0b10_01_11, 0b11_10_01] {
        let noise = ladder.release_noise(&spans, units).unwrap();
        for (cell, position) in positions(&spans).into_iter().enumerate() {
            let (page, offset) = (position / PAGE, position % PAGE);
            let at = |level, index| ladder.vector(page, level, index).unwrap()[offset];
            let of_level = |level| match units >> (2 * level) & 3 {
                0 => 0,
                1 => at(level, 0),
                2 => at(level, 1),
                _ => at(level, 0) + at(level, 1),
            };
            assert_eq!(noise[cell], (0..3).map(of_level).sum::<i64>(), "{units:b}");
        }
    }
    assert!(
        ladder
            .release_noise(&spans, 0)
            .unwrap()
            .iter()
            .all(|&noise| noise == 0)
    );
}

#[test]
fn noise_has_the_requested_variance() {
    let cells = 4 * PAGE;
    let ladder = ladder(LadderPlan::new(cells, 1 << 20).unwrap(), 2);
    let spans = Allocator::new(ladder.plan()).allocate(0, cells).unwrap();
    for units in [1u64, 2, 7, 38, 1023, 4096, 999_999] {
        let noise = ladder.release_noise(&spans, units).unwrap();
        let squares: f64 = noise.iter().map(|&x| (x as f64).powi(2)).sum();
        let ratio = squares / cells as f64 / (4.0 * units as f64);
        assert!(
            (ratio - 1.0).abs() < 4.0 * (2.0 / cells as f64).sqrt(),
            "{units}: {ratio}"
        );
    }
}

#[test]
fn vectors_are_distinct_reproducible_and_zero_beyond_the_plan() {
    let plan = LadderPlan::new(PAGE + 5, 20).unwrap();
    let (first, again, other) = (ladder(plan, 3), ladder(plan, 3), ladder(plan, 4));
    let mut seen = HashSet::new();
    for page in 0..plan.pages() {
        for level in 0..plan.levels() {
            for index in 0..LEVEL_VECTORS {
                let vector = first.vector(page, level, index).unwrap();
                assert_eq!(vector.len(), PAGE);
                assert_eq!(Some(vector), again.vector(page, level, index));
                assert_ne!(Some(vector), other.vector(page, level, index));
                assert!(seen.insert(vector.to_vec()), "two vectors are equal");
                assert!(page == 0 || vector[5..].iter().all(|&sample| sample == 0));
            }
        }
    }
    assert_eq!(seen.len(), plan.vectors());
}

#[test]
fn requests_outside_the_ladder_are_rejected() {
    let ladder = ladder(LadderPlan::new(10, 3).unwrap(), 5);
    assert!(ladder.vector(1, 0, 0).is_none());
    assert!(ladder.vector(0, 1, 0).is_none());
    assert!(ladder.vector(0, 0, LEVEL_VECTORS).is_none());
    for (page, start, len) in [
        (0, 0, 11),
        (0, 10, 1),
        (1, 0, 1),
        (0, usize::MAX, 2),
        (usize::MAX, 0, 1),
    ] {
        let refused = ladder.noise(Span { page, start, len }, 1);
        assert!(
            matches!(refused, Err(Error::OutsideLadder { .. })),
            "{page} {start} {len}"
        );
    }
    let refused = ladder.noise(
        Span {
            page: 0,
            start: 0,
            len: 1,
        },
        4,
    );
    assert_eq!(
        refused.unwrap_err(),
        Error::VarianceTooLarge {
            units: 4,
            levels: 1
        }
    );
    assert!(
        format!("{ladder:?}").len() < 100,
        "no samples in debug output"
    );
}
