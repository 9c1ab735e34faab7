//! Tests of the text of typed values.

use super::*;

fn text(form: &ValueForm, cell: TypedCell<'_>) -> String {
    let mut out = Vec::new();
    form.write(cell, &mut out);
    String::from_utf8(out).unwrap()
}

/// Writes a column of counts.
fn column(mut form: ValueForm, counts: &[i128]) -> Vec<String> {
    let cells = || counts.iter().map(|&count| TypedCell::Integer(count));
    cells().for_each(|cell| form.look(cell));
    cells().map(|cell| text(&form, cell)).collect()
}

#[test]
fn numbers_are_exact_and_whole_floats_have_no_fraction() {
    let plain = |cell| text(&ValueForm::Plain, cell);
    assert_eq!(
        plain(TypedCell::Integer(u64::MAX.into())),
        "18446744073709551615"
    );
    assert_eq!(plain(TypedCell::Double(70.0)), "70");
    assert_eq!(plain(TypedCell::Double(61.5)), "61.5");
    assert_eq!(plain(TypedCell::Single(0.1)), "0.1");
    assert_eq!(plain(TypedCell::Double(-0.0)), "0");
    assert_eq!(plain(TypedCell::Double(f64::NAN)), "");
    assert_eq!(plain(TypedCell::Missing), "");
    assert_eq!(plain(TypedCell::Flag(true)), "true");
    assert_eq!(plain(TypedCell::Bytes("Süd".as_bytes())), "Süd");
}

#[test]
fn half_floats_have_as_few_digits_as_needed() {
    let half = |number: f32| {
        let bytes = ::half::f16::from_f32(number).to_le_bytes();
        text(&ValueForm::Half, TypedCell::Bytes(&bytes))
    };
    for (number, written) in [
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (70.0, "70"),
        (65504.0, "65504"),
        (0.3333, "0.3333"),
    ] {
        assert_eq!(half(number), written);
    }
    assert_eq!(half(f32::NAN), "");
}

#[test]
fn decimals_keep_their_scale() {
    let decimal = |unscaled, scale| text(&ValueForm::Decimal(scale), TypedCell::Integer(unscaled));
    assert_eq!(decimal(990_630, 2), "9906.30");
    assert_eq!(decimal(-5, 2), "-0.05");
    assert_eq!(decimal(0, 2), "0.00");
    assert_eq!(decimal(17, 0), "17");
    assert_eq!(
        decimal(i128::MIN, 38),
        "-1.70141183460469231731687303715884105728"
    );
}

#[test]
fn decimals_in_bytes_equal_those_in_integers() {
    let bytes = |bytes: &[u8], scale| text(&ValueForm::Decimal(scale), TypedCell::Bytes(bytes));
    for number in [0, 1, -1, 127, -128, 990_630, i64::MIN.into(), i128::MAX] {
        let number: i128 = number;
        for scale in [0, 2, 38] {
            let expected = text(&ValueForm::Decimal(scale), TypedCell::Integer(number));
            assert_eq!(bytes(&number.to_be_bytes(), scale), expected);
            let wide = [if number < 0 { 0xff } else { 0 }; 16];
            let wide = [wide, number.to_be_bytes()].concat();
            assert_eq!(bytes(&wide, scale), expected);
        }
    }
    // 2^130, which has more bits than the largest integer of the language.
    let mut wide = vec![0; 17];
    wide[0] = 4;
    assert_eq!(bytes(&wide, 0), "1361129467683753853853498429727072845824");
    assert_eq!(bytes(&[], 2), "0.00");
}

#[test]
fn decimals_of_a_second_are_those_that_the_column_needs() {
    let moments = |per_second, counts: &[i128]| {
        column(ValueForm::Moment(Clock::new(per_second), None), counts)
    };
    assert_eq!(moments(1, &[3_661]), ["1970-01-01 01:01:01"]);
    assert_eq!(
        moments(1_000_000, &[1_500_000, 0]),
        ["1970-01-01 00:00:01.500", "1970-01-01 00:00:00.000"]
    );
    assert_eq!(moments(NANOS, &[-1_000]), ["1969-12-31 23:59:59.999999"]);
    assert_eq!(moments(NANOS, &[1]), ["1970-01-01 00:00:00.000000001"]);
    assert_eq!(moments(1_000, &[5_000]), ["1970-01-01 00:00:05"]);
}

#[test]
fn moments_that_are_all_midnight_are_dates() {
    let form = || ValueForm::Moment(Clock::new(1_000), None);
    let day = 86_400_000;
    assert_eq!(column(form(), &[0, day]), ["1970-01-01", "1970-01-02"]);
    assert_eq!(column(form(), &[0, day + 1_000])[0], "1970-01-01 00:00:00");
    let utc = ValueForm::Moment(Clock::new(1), Some(Zone::Utc));
    assert_eq!(column(utc, &[0]), ["1970-01-01T00:00:00Z"]);
}

#[test]
fn moments_of_a_zone_have_its_offset() {
    let moment = |zone: &str, seconds: i128| {
        let zone = Zone::of(zone).unwrap();
        column(ValueForm::Moment(Clock::new(1), Some(zone)), &[seconds]).concat()
    };
    let (winter, summer) = (1_705_320_000, 1_721_044_800);
    assert_eq!(moment("Europe/Berlin", winter), "2024-01-15T13:00:00+01:00");
    assert_eq!(moment("Europe/Berlin", summer), "2024-07-15T14:00:00+02:00");
    assert_eq!(moment("-03:30", winter), "2024-01-15T08:30:00-03:30");
    assert_eq!(moment("+0530", winter), "2024-01-15T17:30:00+05:30");
    for universal in ["UTC", "Etc/UTC", "+00:00", "Z"] {
        assert_eq!(moment(universal, winter), "2024-01-15T12:00:00Z");
    }
    // Zones had offsets with seconds before they had standard times.
    assert_eq!(
        moment("Europe/Berlin", -3_000_000_000),
        "1874-12-07T19:33:28+00:53:28"
    );
    // No database has offsets for such years.
    assert!(moment("Europe/Berlin", 1 << 60).ends_with("+00:00"));
    for unknown in ["Europe/Atlantis", "+2", "+99:00", "+aa:bb", "+\u{fc}"] {
        assert!(Zone::of(unknown).is_none(), "{unknown}");
    }
}

#[test]
fn times_of_day_and_durations_have_hours() {
    let times = ValueForm::TimeOfDay(Clock::new(1_000_000));
    assert_eq!(
        column(times, &[25_500_250_000, 0]),
        ["07:05:00.250", "00:00:00.000"]
    );
    let durations = ValueForm::Duration(Clock::new(1));
    assert_eq!(
        column(durations, &[777_600, 65, -3_600]),
        ["216:00:00", "0:01:05", "-1:00:00"]
    );
    let durations = ValueForm::Duration(Clock::new(1_000));
    assert_eq!(column(durations, &[-1_500]), ["-0:00:01.500"]);
}

#[test]
fn extreme_counts_are_written() {
    for count in [i128::MIN, -1, 0, i128::MAX, i64::MAX.into()] {
        for per_second in [1, NANOS] {
            let clock = || Clock::new(per_second);
            column(ValueForm::Moment(clock(), None), &[count]);
            column(ValueForm::Moment(clock(), Zone::of("Asia/Tokyo")), &[count]);
            column(ValueForm::Duration(clock()), &[count]);
            column(ValueForm::TimeOfDay(clock()), &[count]);
        }
        column(ValueForm::Date, &[count]);
    }
}

#[test]
fn uuids_have_hyphens() {
    let bytes: Vec<u8> = (0..16).collect();
    assert_eq!(
        text(&ValueForm::Uuid, TypedCell::Bytes(&bytes)),
        "00010203-0405-0607-0809-0a0b0c0d0e0f"
    );
    assert_eq!(text(&ValueForm::Uuid, TypedCell::Bytes(&[1])), "");
}
