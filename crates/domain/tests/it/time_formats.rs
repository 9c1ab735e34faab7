//! Formats of dates, datetimes, times of day and durations: which texts they read and write.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{DAY, FormatProblem, TimeFormat, TimeNames, TimeOptions, form::KindForm};
use proptest::prelude::*;

use KindForm::{Date, Datetime, Duration, Time};

/// Formats of every kind, each with a text that it reads and writes.
const FORMATS: [(&str, KindForm, &str); 57] = [
    ("%Y-%m-%d", Date, "2024-02-29"),
    ("%Y.%m.%d", Date, "2024.02.29"),
    ("%d.%m.%Y", Date, "29.02.2024"),
    ("%-d.%-m.%Y", Date, "1.2.2024"),
    ("%d/%m/%y", Date, "31/08/33"),
    ("%m/%d/%y", Date, "08/31/72"),
    ("%Y%m%d", Date, "20220426"),
    ("%y%m%d", Date, "220426"),
    ("%d-%^b-%Y", Date, "18-MAY-2022"),
    ("%d %b %Y", Date, "19 Sep 2022"),
    ("%d-%#b-%y", Date, "19-sep-22"),
    ("%B %-d, %Y", Date, "March 5, 2021"),
    ("%-d. %B %Y", Date, "5. March 2021"),
    ("%^B %e %Y", Date, "MARCH  5 2021"),
    ("%a, %d %b %Y", Date, "Mon, 05 Sep 2022"),
    ("%A, %B %-d, %Y", Date, "Monday, September 5, 2022"),
    ("%#A %d.%m.%Y", Date, "monday 05.09.2022"),
    ("%Y-%m", Date, "2024-05"),
    ("%b %Y", Date, "May 2024"),
    ("%m/%y", Date, "05/24"),
    ("%Y-%m-%d 00:00:00", Date, "2024-02-29 00:00:00"),
    ("%d%% %m %Y", Date, "29% 02 2024"),
    ("%Y-%m-%dT%H:%M:%S", Datetime, "2024-01-31T23:09:02"),
    ("%Y-%m-%dT%H:%M:%SZ", Datetime, "2024-01-31T23:09:02Z"),
    ("%Y-%m-%d %H:%M", Datetime, "2024-01-31 23:09"),
    ("%Y%m%d%H%M%S", Datetime, "20240131230902"),
    ("%d.%m.%Y %-H:%M", Datetime, "31.01.2024 7:09"),
    ("%d.%m.%Y %k:%M", Datetime, "31.01.2024  7:09"),
    ("%m/%d/%Y %I:%M %p", Datetime, "01/31/2024 11:09 PM"),
    ("%-m/%-d/%Y %-I:%M:%S %p", Datetime, "1/31/2024 7:09:02 AM"),
    ("%b %e %Y %l:%M%p", Datetime, "Jan  1 2024 12:00AM"),
    ("%d/%m/%y %I:%M %P", Datetime, "31/01/24 12:30 pm"),
    ("%Y-%m-%d %H", Datetime, "2024-01-31 07"),
    ("%Y-%m-%d %H:00:00", Datetime, "2024-01-31 07:00:00"),
    (
        "%Y-%m-%dT%H:%M:%S%:z",
        Datetime,
        "2024-01-23T22:01:54+01:00",
    ),
    ("%Y-%m-%dT%H:%M:%S%z", Datetime, "2024-01-23T22:01:54+0200"),
    (
        "%Y-%m-%d %H:%M:%S%:::z",
        Datetime,
        "2024-01-23 22:01:54+05:30",
    ),
    (
        "%a %b %d %H:%M:%S %Z %Y",
        Datetime,
        "Tue Jan 23 22:01:54 CEST 2024",
    ),
    ("%H:%M", Time, "22:05"),
    ("%-H:%M:%S", Time, "7:05:59"),
    ("%I:%M %p", Time, "12:05 AM"),
    ("%I:%M %p", Time, "12:05 PM"),
    ("%-I %P", Time, "7 pm"),
    ("%H Uhr %M", Time, "07 Uhr 05"),
    ("%H:%M:%S", Duration, "36:05:00"),
    ("%H:%M:%S", Duration, "-100:05:00"),
    ("%-H:%M", Duration, "0:15"),
    ("%-H:%M", Duration, "-0:15"),
    ("%M:%S", Duration, "136:05"),
    ("%-d days %H:%M:%S", Duration, "12 days 04:22:37"),
    ("PT%-HH%-MM", Duration, "PT36H5M"),
    ("%S", Duration, "4222"),
    ("P[%-dD]T[%-HH][%-MM][%-SS]", Duration, "P1DT2H5S"),
    ("P[%-dD]T[%-HH]", Duration, "-P3D"),
    ("PT[%-HH][%-MM]", Duration, "PT36H"),
    ("PT[%-MM][%-SS]", Duration, "PT0S"),
    ("P[%-dD]", Duration, "P12D"),
];

fn parse(format: &str, kind: KindForm) -> TimeFormat {
    let offsets = match format {
        _ if format.contains("%z") => ["+0100", "+0200"],
        _ if format.contains("%:z") => ["+01:00", "+02:00"],
        _ if format.contains("%Z") => ["CET", "CEST"],
        _ => ["+01", "+05:30"],
    };
    let options = TimeOptions {
        first_year: Some(1930),
        midnight: false,
        offsets: offsets.map(str::to_owned).to_vec(),
        ..TimeOptions::default()
    };
    TimeFormat::with_options(format, kind, options).unwrap()
}

fn with_midnight(format: &str, kind: KindForm) -> TimeFormat {
    let options = TimeOptions {
        midnight: true,
        ..TimeOptions::default()
    };
    TimeFormat::with_options(format, kind, options).unwrap()
}

#[test]
fn text_is_written_as_it_is_read() {
    for (format, kind, text) in FORMATS {
        let parsed = parse(format, kind);
        let seconds = parsed
            .read(text)
            .unwrap_or_else(|| panic!("{format}: {text}"));
        let written = parsed.show(seconds).to_string();
        let offset = parsed.offset(text).unwrap_or("");
        let first = parsed.offset(&written).unwrap_or("");
        assert_eq!(written.replace(first, offset), text, "{format}");
        assert_eq!(
            parsed.read(&format!("  {text}\t")),
            Some(seconds),
            "{format}"
        );
    }
}

#[test]
fn text_in_another_form_is_not_read() {
    for (format, kind, texts) in [
        (
            "%d.%m.%Y %H:%M",
            Datetime,
            &[
                "29.02.2023 07:05",
                "29.2.2024 07:05",
                "29.02.2024 24:00",
                "29.02.2024 07:60",
                "29.02.2024 07:05x",
                "29.02.2024  07:05",
                "29.02.2024",
                "29.02.0000 07:05",
                "",
            ][..],
        ),
        (
            "%d-%^b-%Y",
            Date,
            &["18-May-2022", "18-MAI-2022", "31-FEB-2022", "18-05-2022"],
        ),
        (
            "%d %b %Y",
            Date,
            &["18 may 2022", "18 Sept 2022", "18 March 2022"],
        ),
        (
            "%a, %d %b %Y",
            Date,
            &["Tue, 05 Sep 2022", "mon, 05 Sep 2022"],
        ),
        (
            "%b %e %Y",
            Date,
            &["Mar 5 2021", "Mar 05 2021", "Mar   5 2021"],
        ),
        (
            "%I:%M %p",
            Time,
            &["00:05 AM", "13:05 PM", "07:05 am", "07:05", "7:05 AM"],
        ),
        ("%H:%M", Time, &["24:00", "7:05", "-07:05", "007:05"]),
        (
            "%H:%M:%S",
            Duration,
            &[
                "4:00:00",
                "036:00:00",
                "-00:00:00",
                "36:60:00",
                "--36:00:00",
            ],
        ),
        (
            "%-H:%M",
            Duration,
            &["004:00", "+4:00", "4:0", "1234567890:00"],
        ),
        (
            "%Y-%m-%d %H:%M:%S%.3f",
            Datetime,
            &["2024-01-31 07:05:01", "2024-01-31 07:05:01.4055"],
        ),
        (
            "%Y-%m-%d %H:%M%:z",
            Datetime,
            &["2024-01-31 07:05+03:00", "2024-01-31 07:05+0100"],
        ),
    ] {
        let parsed = parse(format, kind);
        for text in texts {
            assert_eq!(parsed.read(text), None, "{format}: {text}");
        }
    }
}

#[test]
fn leading_zero_is_read_by_a_part_without_one() {
    let short = parse("%-d.%-m.%Y", Date);
    assert_eq!(short.read("01.02.2024"), short.read("1.2.2024"));
    assert_eq!(short.show(0).to_string(), "1.1.1970");
    assert_eq!(parse("%-H:%M", Duration).read("04:15"), Some(15_300));
}

#[test]
fn two_digit_years_begin_at_the_first_year() {
    let year = |first_year, text: &str| {
        let options = TimeOptions {
            first_year: Some(first_year),
            ..TimeOptions::default()
        };
        let format = TimeFormat::with_options("%d/%m/%y", Date, options).unwrap();
        let days = format.read(text).unwrap().div_euclid(DAY);
        fhaim_domain::date_from_days(days).unwrap().0
    };
    assert_eq!(year(1930, "31/08/33"), 1933);
    assert_eq!(year(1930, "31/08/29"), 2029);
    assert_eq!(year(1930, "31/08/30"), 1930);
    assert_eq!(year(1900, "29/02/00".replace("29", "28").as_str()), 1900);
    assert_eq!(year(2000, "29/02/00"), 2000);
    assert_eq!(year(9900, "31/12/99"), 9999);
    for first_year in [None, Some(0), Some(9901), Some(i64::MIN), Some(i64::MAX)] {
        let options = TimeOptions {
            first_year,
            ..TimeOptions::default()
        };
        let refused = TimeFormat::with_options("%d/%m/%y", Date, options).unwrap_err();
        assert_eq!(refused, FormatProblem::FirstYear);
    }
}

#[test]
fn midnight_is_written_as_the_end_of_the_day_before() {
    let format = with_midnight("%Y-%m-%d %H:%M", Datetime);
    let end = format.read("2022-04-08 24:00").unwrap();
    assert_eq!(format.read("2022-04-09 00:00"), Some(end));
    assert_eq!(format.show(end).to_string(), "2022-04-08 24:00");
    assert_eq!(format.show(end + 60).to_string(), "2022-04-09 00:01");
    assert_eq!(format.day(end) + 1, format.day(end + 60));
    assert_eq!(format.read("2022-04-08 24:01"), None);
    assert_eq!(format.read("2022-04-08 25:00"), None);
    let last = format.read("9999-12-31 24:00").unwrap();
    assert_eq!(format.show(last).to_string(), "9999-12-31 24:00");
    assert_eq!(format.show(i64::MAX).to_string(), "9999-12-31 24:00");
    assert_eq!(format.show(i64::MIN).to_string(), "0001-01-01 00:01");
    let time = with_midnight("%H:%M", Time);
    assert_eq!(
        (time.read("00:00"), time.read("24:00")),
        (Some(DAY), Some(DAY))
    );
    assert_eq!(time.show(DAY).to_string(), "24:00");
}

#[test]
fn fractions_are_rounded_down_and_written_with_their_digits() {
    let fixed = parse("%Y-%m-%dT%H:%M:%S%.3fZ", Datetime);
    let seconds = fixed.read("2024-01-31T23:09:02.999Z").unwrap();
    assert_eq!(fixed.read("2024-01-31T23:09:02.000Z"), Some(seconds));
    assert_eq!(fixed.show(seconds).to_string(), "2024-01-31T23:09:02.000Z");
    let comma = parse("%H:%M:%S,%2f", Time);
    assert_eq!(comma.read("00:00:59,99"), Some(59));
    let open = parse("%H:%M:%S%.f", Time);
    for text in ["00:00:59", "00:00:59.5", "00:00:59.123456789"] {
        assert_eq!(open.read(text), Some(59), "{text}");
    }
    assert_eq!(open.read("00:00:59."), None);
    assert_eq!(open.show(59).to_string(), "00:00:59");
    assert_eq!(parse("%S.%f", Duration).show(59).to_string(), "59.0");
    assert_eq!(parse("%M:%S.%1f", Duration).read("-0:00.5"), None);
    assert_eq!(parse("%-M:%S.%1f", Duration).read("-0:00.5"), Some(-1));
}

#[test]
fn offset_of_a_text_is_found_without_a_list() {
    let any = TimeFormat::parse("%Y-%m-%d %H:%M:%S%:z", Datetime).unwrap();
    for offset in ["+01:00", "-11:30", "Z"] {
        let text = format!("2024-01-31 23:09:02{offset}");
        assert_eq!(any.offset(&text), Some(offset));
        assert!(any.read(&text).is_some());
    }
    assert_eq!(any.offset("2024-01-31 23:09:02+1:00"), None);
    assert_eq!(any.offset("2024-02-31 23:09:02+01:00"), None);
    assert_eq!(parse("%Y-%m-%d", Date).offset("2024-01-31"), None);
}

#[test]
fn iso_durations_are_read_in_any_shape_and_written_without_zeros() {
    let hours = parse("PT[%-HH][%-MM][%-S%.fS]", Duration);
    for (text, written) in [
        ("PT5M", "PT5M"),
        ("PT65M", "PT1H5M"),
        ("P1DT2H", "PT26H"),
        ("PT0H05M0S", "PT5M"),
        ("-PT90S", "-PT1M30S"),
        ("PT1.25S", "PT1.25S"),
        ("P0D", "PT0S"),
    ] {
        let seconds = hours.read(text).unwrap();
        if text != "PT1.25S" {
            assert_eq!(hours.show(seconds).to_string(), written, "{text}");
        }
    }
    let days = parse("P[%-dD]T[%-HH][%-MM]", Duration);
    assert_eq!(days.show(93_900).to_string(), "P1DT2H5M");
    assert_eq!(days.show(0).to_string(), "PT0M");
    for other in [
        "P",
        "PT",
        "P1DT",
        "5M",
        "PT5",
        "P1M",
        "P1W",
        "PT5M3H",
        "PT1H2H",
        "PT5S",
        "PT1.5M",
        "PT1234567890M",
        "PT-5M",
        "-PT0M",
        "pt5m",
        "PT 5M",
    ] {
        assert_eq!(days.read(other), None, "{other}");
    }
    for format in [
        "P[%-dD]T[%-MM]",
        "P[%dD]",
        "P[]",
        "PT[%-HH",
        "PT[%-MM][%-HH]",
        "PT[%-HH]x",
        "P[%-HH]",
        "PT[%-H%.fH]",
    ] {
        let refused = TimeFormat::parse(format, Duration).unwrap_err();
        assert!(
            matches!(refused, FormatProblem::Iso | FormatProblem::Parts(_)),
            "{format}: {refused}"
        );
    }
}

const GERMAN: &str = "Jan Feb März Apr Mai Juni Juli Aug Sept Okt Nov Dez";

fn names(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn german(format: &str) -> Result<TimeFormat, FormatProblem> {
    let spellings = format!("{GERMAN} {}", GERMAN.replace("Sept", "Sep"));
    let options = TimeOptions {
        months: Some(TimeNames::months(names(&spellings)).unwrap()),
        weekdays: Some(TimeNames::weekdays(names("Mo Di Mi Do Fr Sa So")).unwrap()),
        ..TimeOptions::default()
    };
    TimeFormat::with_options(format, Date, options)
}

#[test]
fn own_names_are_read_and_written() {
    let format = german("%a, %-d. %b %Y").unwrap();
    let text = "Sa, 5. März 2022";
    let seconds = format.read(text).unwrap();
    assert_eq!(format.show(seconds).to_string(), text);
    assert_eq!(format.month_name(text), Some("März"));
    assert_eq!(format.weekday_name(text), Some("Sa"));
    for other in ["Sat, 5. Mar 2022", "So, 5. März 2022", "sa, 5. märz 2022"] {
        assert_eq!(format.read(other), None, "{other}");
    }
    let other = format.read("Mo, 5. Sep 2022").unwrap();
    assert_eq!(format.show(other).to_string(), "Mo, 5. Sept 2022");
    let capitals = german("%^b %Y").unwrap();
    let seconds = capitals.read("MÄRZ 2022").unwrap();
    assert_eq!(capitals.show(seconds).to_string(), "MÄRZ 2022");
}

#[test]
fn names_that_run_into_the_next_text_are_rejected() {
    for format in ["%bt %Y", "%b%a %d %Y"] {
        assert_eq!(
            german(format).unwrap_err(),
            FormatProblem::Adjacent("a name"),
            "{format}"
        );
    }
    assert!(german("%b. %Y").is_ok());
}

#[test]
fn formats_that_determine_no_value_are_rejected() {
    for (format, kind) in [
        ("%Y", Date),
        ("%d.%m", Date),
        ("%Y-%m-%d %Y", Date),
        ("%Y-%m-%d %y", Date),
        ("%Y-%m %a", Date),
        ("%Y-%m-%d %H", Date),
        ("%Y-%m-%d%:z", Date),
        ("%Y-%m-%d", Datetime),
        ("%Y-%m %H", Datetime),
        ("%Y-%m-%d %S", Datetime),
        ("%Y-%m-%d %I:%M", Datetime),
        ("%Y-%m-%d %H:%M %p", Datetime),
        ("%Y-%m-%d %H %I %p", Datetime),
        ("%Y-%m-%d %H:%M:%f", Datetime),
        ("%M:%S", Time),
        ("%d %H:%M", Time),
        ("%H:%S", Duration),
        ("%d days", Duration),
        ("%d %M:%S", Duration),
        ("%I:%M %p", Duration),
        ("%H:%M %p", Duration),
        ("x", Duration),
    ] {
        let refused = TimeFormat::parse(format, kind).unwrap_err();
        assert!(
            matches!(refused, FormatProblem::Parts(_)),
            "{format}: {refused}"
        );
    }
}

#[test]
fn formats_with_unknown_letters_are_rejected() {
    for (format, letter) in [
        ("%q", "%q"),
        ("%-Y", "%-Y"),
        ("%", "%"),
        ("%Y-%m-%d %", "%"),
        ("%.0f", "%.0f"),
        ("%10f", "%10f"),
        ("%^d", "%^d"),
        ("%j", "%j"),
        ("%::z", "%::z"),
    ] {
        let refused = TimeFormat::parse(format, Date).unwrap_err();
        assert_eq!(
            refused,
            FormatProblem::Letter(letter.to_owned()),
            "{format}"
        );
    }
    assert_eq!(
        TimeFormat::parse("", Date).unwrap_err(),
        FormatProblem::Length
    );
    assert_eq!(
        TimeFormat::parse("%Y\n%m", Date).unwrap_err(),
        FormatProblem::Length
    );
    assert_eq!(
        TimeFormat::parse(&"x".repeat(65), Date).unwrap_err(),
        FormatProblem::Length
    );
}

#[test]
fn formats_whose_parts_run_together_are_rejected() {
    for (format, kind) in [
        ("%-d%m%Y", Date),
        ("%-d0.%m.%Y", Date),
        ("%e%m%Y", Date),
        ("%m %-d%e %Y %H", Datetime),
        ("%Y-%m-%d %H:%M:%S.%f0", Datetime),
        ("%Y-%m-%d %H:%M:%S%.f.", Datetime),
        ("%H:%M%:z%Y-%m-%d", Datetime),
        ("%Y-%m-%d %H:%M %ZT", Datetime),
        ("%H%M", Duration),
    ] {
        let refused = TimeFormat::parse(format, kind).unwrap_err();
        let known = matches!(
            refused,
            FormatProblem::Adjacent(_) | FormatProblem::Parts(_)
        );
        assert!(known, "{format}: {refused}");
    }
    assert!(TimeFormat::parse("%H%M", Time).is_ok());
    assert_eq!(
        TimeFormat::parse("-%H:%M", Duration).unwrap_err(),
        FormatProblem::Minus
    );
}

/// Formats of known letters in any order, with characters between them.
fn formats() -> impl Strategy<Value = String> {
    const LETTERS: [&str; 28] = [
        "%Y", "%Y", "%y", "%m", "%m", "%-m", "%b", "%^B", "%d", "%d", "%-d", "%e", "%a", "%H",
        "%H", "%-H", "%k", "%I", "%l", "%p", "%M", "%M", "%S", "%f", "%.f", "%.3f", "%:z", "%Z",
    ];
    let letter = proptest::sample::select(LETTERS.to_vec());
    let between = proptest::sample::select(vec!["", " ", "-", ":", ".", "T", "5", "%%"]);
    let items = proptest::collection::vec((letter, between), 1..8);
    items.prop_map(|items| {
        items
            .iter()
            .map(|(letter, between)| format!("{letter}{between}"))
            .collect()
    })
}

/// Texts of letters that formats and times consist of.
fn texts() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[%YymbBdaAeHIklpPMSfzZ0-9:. /+TCMaynuJ^#é-]{0,24}").unwrap()
}

fn kinds() -> impl Strategy<Value = KindForm> {
    prop_oneof![Just(Date), Just(Datetime), Just(Time), Just(Duration)]
}

proptest! {
    #[test]
    fn value_round_trips_through_text(
        place in 0..FORMATS.len(), seconds in -62_135_596_800i64..253_402_300_800, midnight: bool,
    ) {
        let (format, kind, _) = FORMATS[place];
        let parsed = match midnight && format.contains("%H") && !format.contains(['y', 'z', 'Z']) {
            true => with_midnight(format, kind),
            false => parse(format, kind),
        };
        let seconds = match kind {
            Time => seconds.rem_euclid(DAY),
            Duration => seconds / 1_000,
            _ => seconds,
        };
        let shown = parsed.show(seconds);
        let text = shown.to_string();
        let read = parsed.read(&text);
        prop_assert!(read.is_some(), "{}: {}", format, text);
        let read = read.unwrap();
        prop_assert_eq!(parsed.show(read).to_string(), text);
        if kind != Date && !format.contains('y') {
            prop_assert_eq!(read, shown.seconds().div_euclid(parsed.grain()) * parsed.grain());
        }
    }

    #[test]
    fn arbitrary_format_and_text_do_not_panic(
        format in prop_oneof![texts(), formats()], text in texts(), kind in kinds(), seconds: i64,
        first_year in proptest::option::of(-100i64..11_000), midnight: bool,
    ) {
        let offsets = vec!["Z".to_owned(), format.clone()];
        let options = TimeOptions { first_year, midnight, offsets, ..TimeOptions::default() };
        if let Ok(parsed) = TimeFormat::with_options(&format, kind, options) {
            let _ = parsed.read(&text);
            let _ = parsed.offset(&text);
            let _ = (parsed.grain(), parsed.day(seconds));
            let written = parsed.show(seconds).to_string();
            let again = parsed.read(&written).map(|seconds| parsed.show(seconds).to_string());
            if parsed.offset(&written).is_none() && kind != Duration {
                prop_assert_eq!(again, Some(written));
            }
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic(text: String, place in 0..FORMATS.len()) {
        let (format, kind, _) = FORMATS[place];
        let _ = parse(format, kind).read(&text);
        let _ = TimeFormat::parse(&text, kind);
    }
}
