//! Rules between quantities that drafts propose.

#![allow(clippy::unwrap_used)]

use fhaim_intake::{Draft, InferOptions, RuleChange, infer_schema};
use rand::Rng;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value as Json, json};

/// Drafts a table whose records `row` returns, as CSV lines.
fn draft(header: &str, records: u64, row: impl Fn(u64, &mut ChaCha8Rng) -> String) -> Draft {
    let mut rng = ChaCha8Rng::seed_from_u64(records);
    let lines: Vec<String> = (1..=records).map(|number| row(number, &mut rng)).collect();
    let csv = format!("{header}\n{}\n", lines.join("\n"));
    infer_schema(csv.as_bytes(), &InferOptions::new("t.csv", "t")).unwrap()
}

/// The proposed rules, with their numbers of records.
fn rules(draft: &Draft) -> Vec<(&str, u64)> {
    draft
        .rules
        .iter()
        .map(|rule| (rule.rule.as_str(), rule.records))
        .collect()
}

/// A date that is a number of days after 1 January of a year, in years of 360 days.
fn iso(year: u64, days: u64) -> String {
    let (year, month, day) = parts(year, days);
    format!("{year:04}-{month:02}-{day:02}")
}

fn parts(year: u64, days: u64) -> (u64, u64, u64) {
    let month = days / 28 % 12;
    (year + days / 336, month + 1, days % 28 + 1)
}

#[test]
fn chain_of_dates_needs_the_rules_of_neighbours() {
    let draft = draft("signed,begun,ended", 300, |_, rng| {
        let begun = rng.random_range(0..2_000);
        let ended = begun + rng.random_range(0..2_000);
        let signed = rng.random_range(0..300);
        format!(
            "{},{},{}",
            iso(1990, signed),
            iso(1995, begun),
            iso(1995, ended)
        )
    });
    let wanted = [
        ("\"signed\" is never after \"begun\"", 300),
        ("\"begun\" is never after \"ended\"", 300),
    ];
    let mut found = rules(&draft);
    found.sort_by_key(|(rule, _)| std::cmp::Reverse(*rule));
    assert_eq!(found, wanted);
}

#[test]
fn dates_that_may_be_missing_link_no_others() {
    let draft = draft("born,moved,died", 300, |number, rng| {
        let moved = rng.random_range(0..6_000);
        let died = moved + rng.random_range(0..6_000);
        let moved = if number % 3 == 0 {
            String::new()
        } else {
            iso(1960, moved)
        };
        format!(
            "{},{moved},{}",
            iso(1930, rng.random_range(0..9_000)),
            iso(1960, died)
        )
    });
    let found = rules(&draft);
    assert!(
        found.contains(&("\"born\" is never after \"died\"", 300)),
        "{found:?}"
    );
    assert!(
        found.contains(&("\"moved\" is never after \"died\"", 200)),
        "{found:?}"
    );
}

#[test]
fn dates_with_few_common_records_are_in_no_rule() {
    let rules_of = |both: u64| {
        let draft = draft("begun,ended", 300, |number, rng| {
            let begun = rng.random_range(0..2_000);
            let ended = begun + rng.random_range(0..2_000);
            match number <= both {
                true => format!("{},{}", iso(2000, begun), iso(2000, ended)),
                false if number % 2 == 0 => format!("{},", iso(2000, begun)),
                false => format!(",{}", iso(2000, ended)),
            }
        });
        draft
            .rules
            .iter()
            .filter(|rule| rule.rule.contains("never after"))
            .count()
    };
    assert_eq!(rules_of(19), 0);
    assert_eq!(rules_of(20), 1);
}

#[test]
fn dates_out_of_order_in_one_late_record_are_in_no_rule() {
    let row = |wrong: u64| {
        move |number: u64, rng: &mut ChaCha8Rng| {
            let begun = rng.random_range(100..2_000);
            let ended = begun + rng.random_range(0..2_000);
            let ended = if number == wrong { begun - 1 } else { ended };
            format!("{},{}", iso(2000, begun), iso(2000, ended))
        }
    };
    assert!(rules(&draft("begun,ended", 3_000, row(2_999))).is_empty());
    assert_eq!(rules(&draft("begun,ended", 3_000, row(0))).len(), 1);
}

#[test]
fn endless_dates_break_the_rule_of_an_earlier_column() {
    let row = |number: u64, rng: &mut ChaCha8Rng| {
        let begun = rng.random_range(0..2_000);
        let ended = begun + rng.random_range(0..2_000);
        let begun = if number.is_multiple_of(9) {
            "9999-12-31".to_owned()
        } else {
            iso(2000, begun)
        };
        format!("{begun},{}", iso(2000, ended))
    };
    assert!(rules(&draft("begun,ended", 400, row)).is_empty());
}

#[test]
fn dates_of_birth_with_two_digit_years_precede_other_dates() {
    let short = |year, days| {
        let (year, month, day) = parts(year, days);
        format!("{day:02}.{month:02}.{:02}", year % 100)
    };
    let draft = draft("date_of_birth,visited", 400, |_, rng| {
        let born = rng.random_range(0..60 * 336);
        format!(
            "{},{}",
            short(1935, born),
            short(2015, rng.random_range(0..3_000))
        )
    });
    assert_eq!(
        rules(&draft),
        [("\"date_of_birth\" is never after \"visited\"", 400)]
    );
}

#[test]
fn relative_dates_need_no_rule() {
    let draft = draft("admitted,discharged", 400, |_, rng| {
        let admitted = rng.random_range(0..3_000);
        format!(
            "{},{}",
            iso(2010, admitted),
            iso(2010, admitted + rng.random_range(0..20))
        )
    });
    assert!(
        draft
            .schema
            .to_json()
            .contains("\"relative_to\": \"admitted\"")
    );
    assert!(rules(&draft).is_empty(), "{:?}", rules(&draft));
}

/// A year of birth or a date of birth, and a date at which a person has an age.
fn person(rng: &mut ChaCha8Rng) -> ((u64, u64, u64), (u64, u64, u64), u64) {
    let born = parts(1930, rng.random_range(0..70 * 336));
    let at = parts(2015, rng.random_range(0..2_000));
    let age = at.0 - born.0 - u64::from((at.1, at.2) < (born.1, born.2));
    (born, at, age)
}

#[test]
fn age_between_two_dates_is_proposed() {
    let draft = draft("geb,age,seen", 400, |_, rng| {
        let (born, at, age) = person(rng);
        let date = |(year, month, day): (u64, u64, u64)| format!("{day:02}.{month:02}.{year:04}");
        format!("{},{age},{} 10:30", date(born), date(at))
    });
    let wanted = (
        "\"age\" is the number of whole years from \"geb\" to \"seen\"",
        400,
    );
    assert!(rules(&draft).contains(&wanted), "{:?}", rules(&draft));
}

#[test]
fn age_and_year_of_birth_at_a_date_are_proposed() {
    let draft = draft("year_of_birth,age,seen", 400, |_, rng| {
        let (born, at, age) = person(rng);
        format!("{},{age},{:04}-{:02}-{:02}", born.0, at.0, at.1, at.2)
    });
    let wanted = (
        "\"age\" is the year of \"seen\" minus \"year_of_birth\", or one less",
        400,
    );
    assert_eq!(rules(&draft), [wanted]);
}

#[test]
fn age_and_year_of_birth_in_one_year_are_proposed() {
    let row = |wrong: u64| {
        move |number: u64, rng: &mut ChaCha8Rng| {
            let born = rng.random_range(1935..2000);
            let age = 2021 - born - rng.random_range(0..=1);
            format!("{},{born}", if number == wrong { age + 2 } else { age })
        }
    };
    let right = draft("age,born", 2_000, row(0));
    assert_eq!(
        rules(&right),
        [("\"age\" is 2021 minus \"born\", or one less", 2_000)]
    );
    assert!(rules(&draft("age,born", 2_000, row(1_990))).is_empty());
}

/// The drafted rule of `age`, as JSON.
fn age_rule(draft: &Draft) -> Json {
    let rule = draft.rules.iter().find(|rule| rule.columns[0] == "age");
    match &rule.unwrap().change {
        RuleChange::Constraint(constraint) => serde_json::to_value(constraint).unwrap(),
        RuleChange::Column(_) => panic!("{rule:?}"),
    }
}

#[test]
fn age_that_is_a_year_minus_the_year_of_birth_is_proposed_exactly() {
    let row = |loose: u64| {
        move |number: u64, rng: &mut ChaCha8Rng| {
            let born = rng.random_range(1935..2000);
            format!("{},{born}", 2024 - born - u64::from(number == loose))
        }
    };
    let exact = draft("age,born", 2_000, row(0));
    assert_eq!(rules(&exact), [("\"age\" is 2024 minus \"born\"", 2_000)]);
    let at = json!({"end_of": 2024});
    assert_eq!(
        age_rule(&exact),
        json!({"age": {"age": "age", "born": "born", "at": at}})
    );
    let loose = draft("age,born", 2_000, row(1_990));
    let sentence = "\"age\" is 2024 minus \"born\", or one less";
    assert_eq!(rules(&loose), [(sentence, 2_000)]);
    assert_eq!(
        age_rule(&loose),
        json!({"age": {"age": "age", "born": "born", "at": 2024}})
    );
}

#[test]
fn age_that_is_the_year_of_a_date_minus_the_year_of_birth_is_proposed_exactly() {
    let drafted = |born_has_days: bool| {
        draft("born,age,seen", 400, move |_, rng| {
            let (born, at, _) = person(rng);
            let birth = match born_has_days {
                true => format!("{:04}-{:02}-{:02}", born.0, born.1, born.2),
                false => born.0.to_string(),
            };
            format!(
                "{birth},{},{:04}-{:02}-{:02}",
                at.0 - born.0,
                at.0,
                at.1,
                at.2
            )
        })
    };
    for (born_has_days, since) in [(false, "\"born\""), (true, "the year of \"born\"")] {
        let draft = drafted(born_has_days);
        let sentence = format!("\"age\" is the year of \"seen\" minus {since}");
        assert!(
            rules(&draft).contains(&(sentence.as_str(), 400)),
            "{:?}",
            rules(&draft)
        );
        let at = json!({"end_of": "seen"});
        assert_eq!(
            age_rule(&draft),
            json!({"age": {"age": "age", "born": "born", "at": at}})
        );
    }
}

#[test]
fn exact_year_is_preferred_to_a_date_that_leaves_two_ages() {
    let draft = draft("born,age,seen", 400, |_, rng| {
        let born = rng.random_range(1935..2000);
        let (year, month, day) = parts(2024, rng.random_range(0..600));
        format!("{born},{},{year:04}-{month:02}-{day:02}", 2024 - born)
    });
    let wanted = ("\"age\" is 2024 minus \"born\"", 400);
    assert_eq!(rules(&draft), [wanted]);
}

#[test]
fn age_that_another_column_does_not_follow_is_in_no_rule() {
    let draft = draft("age,seen,score", 600, |_, rng| {
        let (_, at, age) = person(rng);
        format!(
            "{age},{:04}-{:02}-{:02},{}",
            at.0,
            at.1,
            at.2,
            rng.random_range(1900..2000)
        )
    });
    assert!(rules(&draft).is_empty(), "{:?}", rules(&draft));
}

#[test]
fn sum_of_written_amounts_is_proposed() {
    let euros = |cents: u64| {
        let whole = cents / 100;
        let whole = match whole / 1_000 {
            0 => whole.to_string(),
            thousands => format!("{thousands}.{:03}", whole % 1_000),
        };
        format!("\"{whole},{:02} €\"", cents % 100)
    };
    let draft = draft("brutto,netto,steuer", 400, |_, rng| {
        let (net, tax) = (
            rng.random_range(100..900_000),
            rng.random_range(100..200_000),
        );
        format!("{},{},{}", euros(net + tax), euros(net), euros(tax))
    });
    assert_eq!(
        rules(&draft),
        [("\"brutto\" is the sum of \"netto\" and \"steuer\"", 400)]
    );
}

#[test]
fn sum_of_numbers_with_other_decimals_is_not_proposed() {
    let draft = draft("paid,price,tip", 400, |_, rng| {
        let (price, tip) = (rng.random_range(1_000..9_000), rng.random_range(1..80));
        let paid: u64 = price + 100 * tip;
        format!(
            "{}.{:02},{}.{:02},{tip}",
            paid / 100,
            paid % 100,
            price / 100,
            price % 100
        )
    });
    assert!(rules(&draft).is_empty(), "{:?}", rules(&draft));
}

#[test]
fn rules_are_valid_together() {
    let mut draft = draft("a,b,ab,age,c,abc,born,seen", 500, |_, rng| {
        let ((year, month, day), at, age) = person(rng);
        let (a, b) = (rng.random_range(0..900), rng.random_range(0..900));
        let c = 100 - age;
        let seen = format!("{:04}-{:02}-{:02}", at.0, at.1, at.2);
        format!(
            "{a},{b},{},{age},{c},{},{year:04}-{month:02}-{day:02},{seen}",
            a + b,
            age + c
        )
    });
    let sums = draft
        .rules
        .iter()
        .filter(|rule| rule.rule.contains("sum"))
        .count();
    assert_eq!(sums, 1, "{:?}", rules(&draft));
    let all: Vec<usize> = (0..draft.rules.len()).collect();
    draft.accept(&all).unwrap();
    assert!(draft.rules.is_empty());
}
