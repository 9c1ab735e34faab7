//! Tests of the recognition of records, and measurements of its rates.
//!
//! `cargo test -p fhaim-files --lib memory::sketch -- --nocapture` prints the measured rates.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use parquet::{
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type},
    file::writer::{SerializedFileWriter, SerializedRowGroupWriter},
    schema::parser::parse_message_type,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;

const KEY: [u8; 32] = [7; 32];

/// A record of the test table: day since 1970-01-01, town, number, and a weight that may be missing.
type Row = (i32, &'static str, i32, Option<f64>);

const TOWNS: [&str; 4] = ["Ulm", "Bad \"A\", B", "Köln", ""];

fn rows(records: usize, seed: u64) -> Vec<Row> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let row = |_| {
        let weight = f64::from(rng.random_range(0..20_000)) / 100.0;
        (
            19_000 + rng.random_range(0..700),
            TOWNS[rng.random_range(0..TOWNS.len())],
            rng.random_range(0..90),
            rng.random_bool(0.9).then_some(weight),
        )
    };
    (0..records).map(row).collect()
}

fn day(days: i32) -> String {
    let (year, month, day) = fhaim_domain::date_from_days(days.into()).unwrap();
    format!("{year:04}-{month:02}-{day:02}")
}

fn csv(rows: &[Row]) -> String {
    let mut text = "seen,town,n,weight\n".to_owned();
    for (seen, town, n, weight) in rows {
        let town = town.replace('"', "\"\"");
        let weight = weight.map_or_else(String::new, |weight| weight.to_string());
        writeln!(text, "{},\"{town}\",{n},{weight}", day(*seen)).unwrap();
    }
    text
}

fn sketch_file(path: &Path) -> Sketch {
    Sketch::of(&KEY, &path.into(), &FormatArguments::default()).unwrap()
}

fn sketch_csv(text: &str) -> Sketch {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    fs::write(&path, text).unwrap();
    sketch_file(&path)
}

fn sketch(rows: &[Row]) -> Sketch {
    sketch_csv(&csv(rows))
}

/// Returns the sketch of a table with one record.
fn record(cells: &[&str]) -> Sketch {
    let quoted: Vec<String> = cells.iter().map(|cell| format!("\"{cell}\"")).collect();
    sketch_csv(&format!("a,b,c\n{}\n", quoted.join(",")))
}

#[test]
fn records_differ_if_the_texts_of_their_cells_together_are_the_same() {
    let records = [
        ["abc", "", ""],
        ["ab", "c", ""],
        ["", "abc", ""],
        ["a", "b", "c"],
    ];
    let hashes: Vec<u64> = records
        .iter()
        .flat_map(|cells| record(cells).records.into_keys())
        .collect();
    let different: std::collections::BTreeSet<&u64> = hashes.iter().collect();
    assert_eq!(different.len(), 4);
}

/// Makes a sketch of hashes.
fn sketcher() -> RecordSketcher {
    RecordSketcher::new(&KEY, &["a".to_owned()]).unwrap()
}

#[test]
fn times_are_exact_and_memory_is_bounded() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut sketch = sketcher();
    for _ in 0..100_000 {
        let record = rng
            .random_range(0..30_000u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *counts.entry(record).or_default() += 1;
        sketch.add_hash(record);
        assert!(sketch.sketch.records.len() <= SKETCHED);
    }
    let smallest: BTreeMap<u64, u64> = counts.into_iter().take(SKETCHED).collect();
    assert_eq!(sketch.finish().records, smallest);
}

#[test]
fn the_same_records_are_recognised_in_any_order_and_text_format() {
    let all = rows(5_000, 1);
    let known = sketch(&all);
    let mut sorted = all.clone();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(sketch(&sorted), known);

    let mut german = "n;weight;seen;town\r\n".to_owned();
    let mut numbered = ",\"seen\",\"town\",\"n\",\"weight\"\n".to_owned();
    for (number, (seen, town, n, weight)) in sorted.iter().enumerate() {
        let (date, quoted) = (day(*seen), town.replace('"', "\"\""));
        let shown = weight.map_or_else(|| "NA".to_owned(), |weight| format!("{weight:.4}"));
        let comma = shown.replace('.', ",");
        let dotted = format!("{}.{}.{}", &date[8..], &date[5..7], &date[..4]);
        write!(german, "{n};{comma};{dotted};\"{quoted}\"\r\n").unwrap();
        writeln!(
            numbered,
            "{number},{date} 00:00:00,\"{quoted}\",{n}.0,{shown}"
        )
        .unwrap();
    }
    assert_eq!(sketch_csv(&german), known);
    assert_eq!(sketch_csv(&numbered), known);
}

#[test]
fn the_same_records_with_a_row_fewer_are_recognised() {
    for records in [6, 50, 5_000, 100_000] {
        let all = rows(records, 1);
        let overlap = sketch(&all[1..]).overlap(&sketch(&all));
        assert!(
            overlap.is_large() && overlap.share() == 1.0,
            "{records}: {overlap:?}"
        );
    }
}

#[test]
fn the_same_records_are_recognised_in_parquet() {
    let all = rows(5_000, 1);
    let file = tempfile::NamedTempFile::new().unwrap();
    let message = "message t {optional int32 seen (DATE); optional binary town (UTF8); required int32 n; optional double weight;}";
    let schema = parse_message_type(message).unwrap().into();
    let mut writer =
        SerializedFileWriter::new(file.reopen().unwrap(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    column::<Int32Type>(&mut group, all.iter().map(|row| Some(row.0)), true);
    let towns = all.iter().map(|row| Some(ByteArray::from(row.1)));
    column::<ByteArrayType>(&mut group, towns, true);
    column::<Int32Type>(&mut group, all.iter().map(|row| Some(row.2)), false);
    column::<DoubleType>(&mut group, all.iter().map(|row| row.3), true);
    group.close().unwrap();
    writer.close().unwrap();
    assert_eq!(sketch_file(file.path()), sketch(&all));
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, fs::File>,
    values: impl Iterator<Item = Option<T::T>> + Clone,
    is_optional: bool,
) {
    let there: Vec<i16> = values.clone().map(|value| value.is_some().into()).collect();
    let values: Vec<T::T> = values.flatten().collect();
    let mut column = group.next_column().unwrap().unwrap();
    let there = is_optional.then_some(&there[..]);
    let typed = column.typed::<T>();
    typed.write_batch(&values, there, None).unwrap();
    column.close().unwrap();
}

/// Tables as pyarrow and openpyxl write them, and the same tables as plain CSV. Three of them have a column that the
/// plain table lacks, or lack one.
#[test]
fn tables_of_other_programs_are_recognised_as_csv() {
    const OTHER_COLUMNS: [&str; 3] = [
        "duration-binary.parquet",
        "pandas-index.parquet",
        "types.parquet",
    ];
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut missed = Vec::new();
    for folder in ["tables", "situations"] {
        for plain in fs::read_dir(tests.join(folder).join("plain")).unwrap() {
            let plain = plain.unwrap().path();
            let name = plain.file_stem().unwrap();
            for extension in ["parquet", "xlsx"] {
                let path = tests.join(folder).join(name).with_extension(extension);
                if path.exists() && !sketch_file(&path).overlap(&sketch_file(&plain)).is_large() {
                    missed.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
    }
    missed.sort();
    assert_eq!(missed, OTHER_COLUMNS);
}

#[test]
fn other_columns_are_other_records() {
    let all = csv(&rows(1_000, 1));
    let renamed = all.replacen("weight", "mass", 1);
    let overlap = sketch_csv(&renamed).overlap(&sketch_csv(&all));
    assert!(!overlap.is_large());
}

#[test]
fn another_key_gives_other_hashes() {
    let data = Data::in_memory("t.csv", csv(&rows(1_000, 1)).into_bytes(), Vec::new());
    let format = FormatArguments::default();
    let [one, other] = [[1; 32], [2; 32]].map(|key| Sketch::of(&key, &data, &format).unwrap());
    assert!(one.hashes().all(|hash| !other.records.contains_key(&hash)));
}

#[test]
fn half_of_the_records_are_recognised_with_their_share() {
    let (all, more) = (rows(20_000, 1), rows(10_000, 2));
    let mixed = [&all[..10_000], &more[..]].concat();
    let overlap = sketch(&mixed).overlap(&sketch(&all));
    assert!(overlap.is_large(), "{overlap:?}");
    assert!((0.45..0.55).contains(&overlap.share()), "{overlap:?}");
    // A table that grows keeps the records of the earlier one.
    let grown = [&all[..], &rows(60_000, 3)[..]].concat();
    let overlap = sketch(&grown).overlap(&sketch(&all));
    assert!(
        overlap.is_large() && overlap.earlier.share(overlap.matching) > 0.9,
        "{overlap:?}"
    );
    assert!((0.2..0.3).contains(&overlap.share()), "{overlap:?}");
}

/// A table of `records` random records, of which each is in `known` with probability `share`.
fn sharing(known: &[u64], share: f64, records: usize, rng: &mut ChaCha20Rng) -> Sketch {
    let mut sketch = sketcher();
    for &record in &known[..records] {
        let is_shared = rng.random_bool(share);
        sketch.add_hash(if is_shared { record } else { rng.random() });
    }
    sketch.finish()
}

/// Probability that a normal variable exceeds its mean by this many standard deviations (Abramowitz and Stegun 26.2.17,
/// error below 1e-7).
fn beyond(deviations: f64) -> f64 {
    if deviations < 0.0 {
        return 1.0 - beyond(-deviations);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * deviations);
    let series = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum: f64 = series
        .iter()
        .rev()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    sum * (-deviations * deviations / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// The share of matching records in a sample is binomial. 1,000 tables for each overlap.
#[test]
#[ignore = "slow"]
fn recognition_rates_are_as_derived() {
    const TABLES: usize = 1_000;
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let known: Vec<u64> = (0..8_000).map(|_| rng.random()).collect();
    let earlier = sharing(&known, 1.0, known.len(), &mut rng);
    println!("overlap  recognised  derived");
    for share in [0.0f64, 0.3, 0.4, 0.43, 0.44, 0.45, 0.46, 0.47, 0.5, 0.9] {
        let mut recognised = 0;
        for _ in 0..TABLES {
            let table = sharing(&known, share, known.len(), &mut rng);
            recognised += usize::from(table.overlap(&earlier).is_large());
        }
        let rate = recognised as f64 / TABLES as f64;
        let deviation = (share * (1.0 - share) / SKETCHED as f64).sqrt().max(1e-9);
        let derived = beyond((LARGE_OVERLAP - share) / deviation);
        println!("{share:7}  {rate:10.4}  {derived:.4}");
        // The larger of two nearly equal shares counts, so that the rate may be higher than that of one.
        assert!(
            (rate - derived).abs() < 0.12,
            "{share}: {rate}, derived {derived}"
        );
    }
}

/// Tables of one population that were drawn independently of each other: every record occurs at this rate on average,
/// or at rates that follow a power law.
#[test]
fn independent_tables_of_one_population_are_not_recognised() {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    println!("records  population  size ratio  largest overlap");
    for (records, ratio) in [(20_000usize, 1usize), (5_000, 4), (20_000, 10)] {
        // Rates from 100 to 0.01 per table.
        for kinds in [200u64, 5_000, 20_000, 25_000, 200_000, 2_000_000] {
            for is_even in [true, false] {
                let mut largest = 0.0f64;
                for _ in 0..3 {
                    let one = drawn(records, kinds, is_even, &mut rng);
                    let other = drawn(records * ratio, kinds, is_even, &mut rng);
                    let overlap = one.overlap(&other);
                    let of_earlier = overlap.earlier.share(overlap.matching);
                    largest = largest.max(overlap.share()).max(of_earlier);
                }
                println!("{records:7}  {kinds:10}  {ratio:10}  {largest:.3} {is_even}");
                assert!(largest < LARGE_OVERLAP, "{kinds} {ratio}: {largest}");
            }
        }
    }
}

/// The rate of false matches of small tables: pairs of independent tables of one population.
#[test]
fn independent_small_tables_of_one_population_are_rarely_recognised() {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    println!("records  kinds  even   distinct records  recognised");
    for (records, pairs) in [
        (5usize, 1_000),
        (10, 1_000),
        (20, 1_000),
        (50, 1_000),
        (1_000, 100),
    ] {
        for kinds in [2u64, 4, 8, 16, 64, 1_000] {
            for is_even in [true, false] {
                let (mut recognised, mut distinct) = (0, 0);
                for _ in 0..pairs {
                    let [one, other] = [(); 2].map(|()| drawn(records, kinds, is_even, &mut rng));
                    recognised += usize::from(one.overlap(&other).is_large());
                    distinct += one.records.len();
                }
                let rate = recognised as f64 / f64::from(pairs);
                let distinct = distinct as f64 / f64::from(pairs);
                println!("{records:7}  {kinds:5}  {is_even:5}  {distinct:16.1}  {rate:.3}");
                // Chernoff's bound for either table. Few kinds of records leave little to compare.
                assert!(kinds < 8 || records < 10 || rate <= 2.0 * MAX_CHANCE);
            }
        }
    }
}

/// Two tables of other people with the same columns: halves of one table.
#[test]
fn other_records_of_the_same_population_are_not_recognised() {
    let all = rows(10_000, 1);
    let coarse = |rows: &[Row]| {
        let mut text = "town,tens\n".to_owned();
        for (_, town, n, _) in rows {
            let first: String = town.chars().take(1).collect();
            writeln!(text, "{first},{}", n / 10).unwrap();
        }
        sketch_csv(&text)
    };
    let (one, other) = all.split_at(5_000);
    assert!(!sketch(one).overlap(&sketch(other)).is_large());
    assert!(!coarse(one).overlap(&coarse(other)).is_large());
    assert!(coarse(one).overlap(&coarse(one)).is_large());
}

/// A table of equal records has nothing but their number.
#[test]
fn table_of_equal_records_is_recognised_by_their_number() {
    let equal = |records: usize| sketch_csv(&format!("a\n{}", "x\n".repeat(records)));
    assert!(equal(50).overlap(&equal(50)).is_large());
    assert!(!equal(49).overlap(&equal(50)).is_large());
}

fn drawn(records: usize, kinds: u64, is_even: bool, rng: &mut ChaCha20Rng) -> Sketch {
    let mut sketch = sketcher();
    let hasher = SipHasher13::new_with_key(&[1; 16]);
    for _ in 0..records {
        let place: f64 = rng.random();
        // Kind number i has a probability of about 1 / i if the kinds are uneven.
        let kind = match is_even {
            true => place * kinds as f64,
            false => (kinds as f64).powf(place),
        };
        sketch.add_hash(hasher.hash(&(kind as u64).to_le_bytes()));
    }
    sketch.finish()
}

/// A table of a million records as a survey has it: 15 columns, 98 bytes on average.
fn survey(records: usize) -> String {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let words = |kinds: usize, long: usize| -> Vec<String> {
        (0..kinds)
            .map(|kind| format!("{}{kind}", "Word-of-a-list-".repeat(2).split_at(long).0))
            .collect()
    };
    let lists = [
        (9, 8),
        (16, 7),
        (7, 16),
        (15, 12),
        (6, 9),
        (5, 5),
        (2, 5),
        (42, 10),
        (2, 3),
    ];
    let lists = lists.map(|(kinds, long)| words(kinds, long));
    let mut text =
        "age,class,weight,school,years,marital,job,role,race,sex,gain,loss,hours,country,income\n"
            .to_owned();
    for _ in 0..records {
        let word = |list: usize, rng: &mut ChaCha20Rng| {
            lists[list][rng.random_range(0..lists[list].len())].as_str()
        };
        write!(text, "{},{},", rng.random_range(17..90), word(0, &mut rng)).unwrap();
        write!(
            text,
            "{},{},",
            rng.random_range(12_000..1_400_000),
            word(1, &mut rng)
        )
        .unwrap();
        write!(
            text,
            "{},{},{},",
            rng.random_range(1..17),
            word(2, &mut rng),
            word(3, &mut rng)
        )
        .unwrap();
        write!(
            text,
            "{},{},{},",
            word(4, &mut rng),
            word(5, &mut rng),
            word(6, &mut rng)
        )
        .unwrap();
        let gain = if rng.random_bool(0.08) {
            rng.random_range(100..99_999)
        } else {
            0
        };
        write!(text, "{gain},0,{},", rng.random_range(1..99)).unwrap();
        writeln!(text, "{},{}", word(7, &mut rng), word(8, &mut rng)).unwrap();
    }
    text
}

/// Processor time of a sketch next to that of reading the table, on Linux. With 1,000,000 records and `--release`, this
/// is the figure of docs/PRIVACY.md.
#[test]
#[ignore = "slow"]
fn time_of_a_sketch_is_a_small_part_of_reading() {
    const RECORDS: usize = 100_000;
    const ROUNDS: usize = 5;
    // The time that this thread had on a processor, because other programs are running.
    let seconds = || {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let nanos: f64 = text.split(' ').next().unwrap().parse().unwrap();
        nanos / 1e9
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let text = survey(RECORDS);
    fs::write(&path, &text).unwrap();
    let options = fhaim_intake::InferOptions::new("t.csv", "t");
    let schema = fhaim_intake::infer_schema(text.as_bytes(), &options)
        .unwrap()
        .schema;
    let format = FormatArguments::default();
    let least = |work: &mut dyn FnMut()| {
        let times = (0..ROUNDS).map(|_| {
            let start = seconds();
            work();
            seconds() - start
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let reading = least(&mut || {
        let (text, dialect) = data::text(&path, &format).unwrap();
        let options = fhaim_domain::ReadOptions {
            dialect,
            ..fhaim_domain::ReadOptions::new("t.csv")
        };
        let read = fhaim_domain::read_csv(schema.clone(), text, &options).unwrap();
        assert_eq!(read.table.records(), RECORDS);
    });
    let splitting = least(&mut || {
        let (text, dialect) = data::dialect_text(&Data::from(&path), &format).unwrap();
        let mut records = TableRecords::open("t.csv", &dialect, text).unwrap();
        while records.advance().unwrap() {}
    });
    let digest = least(&mut || {
        let mut hash = <Sha256 as sha2::Digest>::new();
        let mut piece = vec![0; 1 << 16];
        let mut file = fs::File::open(&path).unwrap();
        while let bytes @ 1.. = file.read(&mut piece).unwrap() {
            sha2::Digest::update(&mut hash, &piece[..bytes]);
        }
    });
    let sketch = least(&mut || drop(sketch_file(&path)));
    let watched = least(&mut || {
        let (text, dialect) = data::text(&path, &format).unwrap();
        let options = fhaim_domain::ReadOptions {
            dialect,
            ..fhaim_domain::ReadOptions::new("t.csv")
        };
        let mut sketcher = None;
        let watch = |records: &TableRecords<_>| {
            let begin = || RecordSketcher::new(&KEY, records.header()).unwrap();
            sketcher.get_or_insert_with(begin).add(records);
        };
        fhaim_domain::read_csv_watched(schema.clone(), text, &options, watch).unwrap();
    });
    println!(
        "{} MB: reading {reading:.3} s, splitting into records {splitting:.3} s, SHA-256 of the file {digest:.3} s, reading with a sketch {watched:.3} s, sketch in a separate pass {sketch:.3} s",
        text.len() / 1_000_000
    );
    assert!(watched < 1.5 * reading);
}
