//! Tables of common kinds, with the variations that hospitals, schools, banks and shops have.

#![allow(clippy::unwrap_used)]

use fhaim_domain::{ReadOptions, UnlistedColumn, form::ColumnForm, read_csv};
use fhaim_intake::{Draft, InferOptions, infer_schema};
use serde_json::{Value as Json, json};

/// Drafts a table of `records` records.
fn draft(header: &str, records: usize, record: impl Fn(usize) -> String) -> Draft {
    let lines: Vec<String> = (0..records).map(record).collect();
    let csv = format!("{header}\n{}\n", lines.join("\n"));
    let draft = infer_schema(csv.as_bytes(), &InferOptions::new("t.csv", "t")).unwrap();
    let mut all = draft.clone();
    all.accept(&(0..draft.rules.len()).collect::<Vec<usize>>())
        .unwrap();
    let read = ReadOptions {
        unlisted: UnlistedColumn::LeaveOut,
        ..ReadOptions::new("t.csv")
    };
    read_csv(all.schema, csv.as_bytes(), &read).unwrap();
    draft
}

fn column(draft: &Draft, name: &str) -> Json {
    let schema: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
    let columns = schema["columns"].as_array().unwrap();
    let column = columns.iter().find(|column| column["name"] == name);
    column.cloned().unwrap()
}

fn rules(draft: &Draft) -> Vec<&str> {
    draft.rules.iter().map(|rule| rule.rule.as_str()).collect()
}

/// A number that looks random, below `below`.
fn mix(row: usize, salt: usize, below: usize) -> usize {
    let mut hash = (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (salt as u64 + 7) << 32;
    hash = (hash ^ hash >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((hash >> 33) as usize) % below
}

/// A date that is `days` days after 1 January of a year, in years of 336 days.
fn iso(year: usize, days: usize) -> String {
    let (year, month, day) = (year + days / 336, days / 28 % 12 + 1, days % 28 + 1);
    format!("{year:04}-{month:02}-{day:02}")
}

#[test]
fn word_that_most_cells_have_is_a_special_value_of_numbers_and_times() {
    let draft = draft("pendler,distanz,abfahrt,seit", 800, |row| {
        match mix(row, 0, 5) {
            0..3 => "nein,entf.,entf.,entf.".to_owned(),
            _ => format!(
                "ja,{} km,{:02}:{:02},{}",
                1 + mix(row, 1, 60),
                5 + mix(row, 2, 18),
                mix(row, 3, 60),
                iso(2018, mix(row, 4, 1_500))
            ),
        }
    });
    for (name, kind) in [("distanz", "number"), ("abfahrt", "time"), ("seit", "date")] {
        let column = column(&draft, name);
        assert_eq!(column["kind"], kind, "{name}");
        let special = column["special"].as_array().unwrap();
        assert!(special.contains(&json!("entf.")), "{column}");
    }
    let found = rules(&draft);
    let rule = "records with \"pendler\" \"nein\" have \"abfahrt\" \"entf.\" and \"distanz\" \"entf.\" and \"seit\" \"entf.\"";
    assert!(found.contains(&rule), "{found:?}");
    for name in ["distanz", "abfahrt", "seit"] {
        let rule = format!("records with \"{name}\" \"entf.\" have \"pendler\" \"nein\"");
        assert!(found.contains(&rule.as_str()), "{found:?}");
    }
}

#[test]
fn missing_value_occurs_only_with_the_answers_that_explain_it() {
    let draft = draft("status,wage,age", 900, |row| match mix(row, 0, 3) {
        0 => format!(
            "employed,{},{}",
            400 + mix(row, 1, 4_000),
            18 + mix(row, 2, 60)
        ),
        1 => format!("retired,,{}", 18 + mix(row, 2, 60)),
        _ => format!("student,,{}", 18 + mix(row, 2, 60)),
    });
    let rule = "records with \"wage\" no value have \"status\" \"retired\" or \"student\"";
    let found = rules(&draft);
    let turned = "records with \"wage\" no value have \"status\" \"student\" or \"retired\"";
    assert!(
        found.contains(&rule) || found.contains(&turned),
        "{found:?}"
    );
}

#[test]
fn month_is_compared_with_the_month_of_a_date() {
    let draft = draft("diagnosis,relapse,arm", 600, |row| {
        let day = mix(row, 0, 2_000);
        let relapse = iso(2015, day + mix(row, 1, 900));
        format!(
            "{},{},{}",
            iso(2015, day),
            &relapse[..7],
            ["a", "b"][mix(row, 2, 2)]
        )
    });
    assert_eq!(rules(&draft), ["\"diagnosis\" is never after \"relapse\""]);
}

#[test]
fn month_of_a_date_is_no_month_before_or_after_it() {
    let draft = draft("date,period", 600, |row| {
        let date = iso(2015, mix(row, 0, 2_000));
        format!("{date},{}", &date[..7])
    });
    let period = column(&draft, "period");
    assert_eq!(period["relative_to"], "date");
    assert_eq!(
        (&period["min"], &period["max"]),
        (&json!(0), &json!(0)),
        "{period}"
    );
}

#[test]
fn equal_dates_of_two_forms_have_no_distance() {
    let draft = draft("iso,german", 600, |row| {
        let date = iso(2015, mix(row, 0, 2_000));
        format!("{date},{}.{}.{}", &date[8..], &date[5..7], &date[..4])
    });
    let german = column(&draft, "german");
    assert_eq!(
        (&german["min"], &german["max"]),
        (&json!(0), &json!(0)),
        "{german}"
    );
}

#[test]
fn datetimes_with_offsets_are_ordered_in_universal_time() {
    let draft = draft("created,closed", 600, |row| {
        let (minute, later) = (mix(row, 0, 26 * 1_440), mix(row, 1, 300));
        let text = |minute: usize, hours: usize| {
            let local = minute + 60 * hours;
            let clock = local % 1_440;
            format!(
                "{}T{:02}:{:02}:00+{hours:02}:00",
                iso(2024, local / 1_440),
                clock / 60,
                clock % 60
            )
        };
        format!(
            "{},{}",
            text(minute, mix(row, 2, 3)),
            text(minute + later, mix(row, 3, 3))
        )
    });
    assert_eq!(rules(&draft), ["\"created\" is never after \"closed\""]);
}

#[test]
fn small_numbers_keep_their_decimals() {
    let draft = draft("concentration", 500, |row| {
        format!(
            "{}.{:02}e-0{}",
            1 + mix(row, 0, 9),
            mix(row, 1, 100),
            4 + mix(row, 2, 4)
        )
    });
    assert_eq!(column(&draft, "concentration")["decimals"], 9);
}

#[test]
fn ratios_are_categories_and_no_times() {
    let titres = ["1:10", "1:20", "1:40", "1:80"];
    let draft = draft("titre,n", 600, |row| {
        format!("{},{}", titres[mix(row, 0, 4)], mix(row, 1, 90))
    });
    let titre = column(&draft, "titre");
    assert_eq!(titre["categories"], json!(titres), "{titre}");
}

#[test]
fn score_is_the_sum_of_items_with_few_values() {
    let draft = draft("pulse,tone,colour,score,sex", 600, |row| {
        let items = [0, 1, 2].map(|salt| mix(row, salt, 3));
        let [pulse, tone, colour] = items;
        let score: usize = items.iter().sum();
        format!(
            "{pulse},{tone},{colour},{score},{}",
            ["f", "m"][mix(row, 4, 2)]
        )
    });
    assert_eq!(
        rules(&draft),
        ["\"score\" is the sum of \"pulse\", \"tone\" and \"colour\""]
    );
}

#[test]
fn answers_of_yes_and_no_stay_categories() {
    let draft = draft("a,b,c,count", 600, |row| {
        let [a, b, c] = [0, 1, 2].map(|salt| mix(row, salt, 2));
        format!("{a},{b},{c},{}", a + b + c)
    });
    for name in ["a", "b", "c", "count"] {
        assert_eq!(column(&draft, name)["kind"], "categorical", "{name}");
    }
}

#[test]
fn age_of_children_follows_from_their_dates_of_birth() {
    let draft = draft("born,age", 600, |row| {
        let born = iso(2006, mix(row, 0, 2_000));
        let year: i64 = born[..4].parse().unwrap();
        format!("{born},{}", 2023 - year)
    });
    assert_eq!(
        rules(&draft),
        ["\"age\" is 2023 minus the year of \"born\""]
    );
}

#[test]
fn age_follows_from_a_month_of_birth() {
    let draft = draft("born,visit,age", 900, |row| {
        let (born, visit) = (iso(1950, mix(row, 0, 15_000)), iso(2022, mix(row, 1, 600)));
        let (born, visit) = (&born[..7], &visit[..]);
        let number = |text: &str| -> usize { text.parse().unwrap() };
        let years = number(&visit[..4]) - number(&born[..4]);
        let (month, of_birth) = (number(&visit[5..7]), number(&born[5..7]));
        let before = month < of_birth || (month == of_birth && mix(row, 2, 2) == 0);
        format!("{born},{visit},{}", years - usize::from(before))
    });
    let found = rules(&draft);
    let rule = "\"age\" is the number of whole years from \"born\" to \"visit\"";
    assert!(found.contains(&rule), "{found:?}");
}

#[test]
fn open_ends_with_a_time_are_written_as_they_are() {
    let draft = draft("begin,end", 800, |row| {
        let minute = mix(row, 0, 400_000);
        let text = |minute: usize| {
            let clock = minute % 1_440;
            format!(
                "{} {:02}:{:02}",
                iso(2023, minute / 1_440),
                clock / 60,
                clock % 60
            )
        };
        let end = match mix(row, 1, 6) {
            0 => "9999-12-31 23:59".to_owned(),
            1 => "9999-12-31 00:00".to_owned(),
            _ => text(minute + mix(row, 2, 20_000)),
        };
        format!("{},{end}", text(minute))
    });
    let end = column(&draft, "end");
    assert_eq!(end["relative_to"], "begin");
    let mut special: Vec<&str> = end["special"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s.as_str().unwrap())
        .collect();
    special.sort_unstable();
    assert_eq!(special, ["9999-12-31 00:00", "9999-12-31 23:59"]);
}

#[test]
fn column_can_be_left_out_after_rules_about_it_were_accepted() {
    let mut draft = draft("code,label,smoker,cigarettes", 900, |row| {
        let code = mix(row, 0, 3);
        let smokes = mix(row, 1, 2) == 0;
        let cigarettes = if smokes {
            (1 + mix(row, 2, 40)).to_string()
        } else {
            String::new()
        };
        let smoker = if smokes { "yes" } else { "no" };
        format!("c{code},Department {code},{smoker},{cigarettes}")
    });
    let before = draft.schema.clone();
    draft
        .accept(&(0..draft.rules.len()).collect::<Vec<usize>>())
        .unwrap();
    draft
        .leave_out(&["code".to_owned(), "smoker".to_owned()])
        .unwrap();
    assert!(draft.schema.constraints().is_empty());
    let form = |schema: &fhaim_domain::Schema| -> ColumnForm {
        let columns = fhaim_domain::SchemaForm::from(schema.clone()).columns;
        columns
            .into_iter()
            .find(|form| form.name == "label")
            .unwrap()
    };
    assert_eq!(form(&draft.schema), form(&before));
    assert_eq!(draft.columns[1].kind, "categorical");
}

#[test]
fn plus_signs_are_written() {
    let draft = draft("change,growth,n", 500, |row| {
        let tenths = mix(row, 0, 101) as i64 - 50;
        let sign = if tenths < 0 { '-' } else { '+' };
        let size = tenths.abs();
        format!(
            "{sign}{size},{sign}{}.{} %,{}",
            size / 10,
            size % 10,
            mix(row, 1, 90)
        )
    });
    assert_eq!(column(&draft, "change")["negative"], "plus-minus");
    assert_eq!(column(&draft, "growth")["negative"], "plus-minus");
    assert_eq!(column(&draft, "n").get("negative"), None);
}
