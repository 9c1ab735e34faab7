//! Tests of the usage history.

use std::{fs, io::Write};

use parquet::{
    data_type::{ByteArray, ByteArrayType, Int32Type},
    file::writer::SerializedFileWriter,
    schema::parser::parse_message_type,
};
use serde_json::Value;

use crate::{CONFIG, SCHEMA, fhaim, first_use, folder, generate, stderr, table};

/// The costs of two runs over the same records add up, and the second run shows the total. A corrected value changes
/// nothing.
#[test]
fn second_run_over_the_same_records_shows_the_total_cost() {
    let folder = folder(table(200), SCHEMA);
    let run = |more: &[&str]| {
        let arguments = [&["--quiet"], &first_use("run", more)[..], &["--force"]].concat();
        let output = fhaim(folder.path(), &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert_eq!(run(&["--epsilon", "1"]), "");
    // The same records in another file with the same name.
    fs::rename(folder.path().join("t.csv"), folder.path().join("u.csv")).unwrap();
    fs::copy(folder.path().join("u.csv"), folder.path().join("t.csv")).unwrap();
    let told = run(&["--epsilon", "1", "--yes"]);
    assert!(told.contains("these records were used before"), "{told}");
    assert!(
        told.contains("a run of fhaim, into out.csv: rho "),
        "{told}"
    );
    // The total is less than 1 + 1, but more than 1.
    let (_, line) = told.split_once("for a record added or removed: ").unwrap();
    let with_this = line
        .trim()
        .strip_suffix(" at delta 1e-9 with this use")
        .unwrap();
    let epsilon: f64 = with_this
        .rsplit_once("epsilon ")
        .unwrap()
        .1
        .parse()
        .unwrap();
    assert!(epsilon > 1.2 && epsilon < 2.0, "{told}");

    let csv = fs::read_to_string(folder.path().join("t.csv")).unwrap();
    fs::write(folder.path().join("t.csv"), csv.replacen("red", "blue", 1)).unwrap();
    let told = run(&["--epsilon", "1", "--yes"]);
    assert!(told.contains("records were used before"), "{told}");
}

/// Without a terminal, a first run over these records starts.
#[test]
fn first_run_without_a_terminal_starts() {
    let folder = folder(table(200), SCHEMA);
    let output = fhaim(
        folder.path(),
        &first_use("local", &["--epsilon", "1", "--quiet"]),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}

/// Without a terminal, a run over records that were used before stops unless `--yes` is given.
#[test]
fn second_run_without_a_terminal_stops_unless_yes_is_given() {
    let folder = folder(table(200), SCHEMA);
    let run = |command: &str, more: &[&str]| {
        let more = [&["--epsilon", "1", "--quiet", "--force"], more].concat();
        fhaim(folder.path(), &first_use(command, &more))
    };
    assert!(run("local", &[]).status.success());
    let written = fs::read(folder.path().join("out.csv")).unwrap();
    for command in ["local", "run"] {
        let stopped = run(command, &[]);
        assert_eq!(stopped.status.code(), Some(2));
        let told = stderr(&stopped);
        assert!(told.contains("these records were used before"), "{told}");
        assert!(told.contains("add --yes"), "{told}");
        assert_eq!(fs::read(folder.path().join("out.csv")).unwrap(), written);
    }
    let output = run("local", &["--yes"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Returns the rows of a table as Parquet.
fn parquet(rows: &str) -> Vec<u8> {
    let schema =
        "message t {required int32 x; required binary c (UTF8); required binary y (UTF8);}";
    let schema = parse_message_type(schema).unwrap().into();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for column in 0..3 {
        let cells = rows.lines().map(|row| row.split(',').nth(column).unwrap());
        let mut of_group = group.next_column().unwrap().unwrap();
        if column == 0 {
            let numbers: Vec<i32> = cells.map(|cell| cell.parse().unwrap()).collect();
            of_group
                .typed::<Int32Type>()
                .write_batch(&numbers, None, None)
                .unwrap();
        } else {
            let texts: Vec<ByteArray> = cells.map(ByteArray::from).collect();
            of_group
                .typed::<ByteArrayType>()
                .write_batch(&texts, None, None)
                .unwrap();
        }
        of_group.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// A table in other forms: the name of each file, and its content.
fn other_forms(csv: &str) -> Vec<(&'static str, Vec<u8>)> {
    let (header, rows) = csv.split_once('\n').unwrap();
    let mut sorted: Vec<&str> = rows.lines().collect();
    sorted.sort_unstable();
    let sorted = format!("{header}\n{}\n", sorted.join("\n"));
    let (_, fewer) = rows.split_once('\n').unwrap();
    let reordered = csv.lines().map(|row| {
        let cells: Vec<&str> = row.split(',').rev().collect();
        cells.join(",") + "\n"
    });
    let quoted = csv
        .lines()
        .map(|row| format!("\"{}\"\r\n", row.replace(',', "\",\"")));
    let utf_16: Vec<u8> = csv.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(csv.as_bytes()).unwrap();
    vec![
        ("same.csv", csv.into()),
        ("sorted.csv", sorted.into()),
        ("fewer.csv", format!("{header}\n{fewer}").into()),
        ("semicolons.csv", csv.replace(',', ";").into()),
        ("tabs.tsv", csv.replace(',', "\t").into()),
        ("reordered.csv", reordered.collect::<String>().into()),
        ("quoted.csv", quoted.collect::<String>().into()),
        ("mark.csv", format!("\u{feff}{csv}").into()),
        ("utf-16.csv", [&[0xff, 0xfe], &utf_16[..]].concat()),
        ("gzip.csv.gz", gzip.finish().unwrap()),
        ("table.parquet", parquet(rows)),
    ]
}

/// Without a terminal, a run over the same records stops in every form of the table, and keeps existing outputs.
#[test]
fn same_records_in_another_form_stop_a_script() {
    let folder = folder(table(200), SCHEMA);
    let local = |data: &str, more: &[&str]| {
        let files = [
            "local",
            "--data",
            data,
            "--schema",
            "t.schema.json",
            "--out",
            "out.csv",
        ];
        let how = ["--epsilon", "1", "--quiet", "--force"];
        let arguments = [&files[..], &how, more].concat();
        fhaim(folder.path(), &arguments)
    };
    let first = local("t.csv", &[]);
    assert!(first.status.success(), "{}", stderr(&first));
    let written = fs::read(folder.path().join("out.csv")).unwrap();
    for (name, content) in other_forms(&table(200)) {
        fs::write(folder.path().join(name), content).unwrap();
        let stopped = local(name, &[]);
        let told = stderr(&stopped);
        assert_eq!(stopped.status.code(), Some(2), "{name}: {told}");
        assert!(
            told.contains("these records were used before"),
            "{name}: {told}"
        );
        assert_eq!(
            fs::read(folder.path().join("out.csv")).unwrap(),
            written,
            "{name}"
        );
    }
}

/// Numbers with decimal commas are the same numbers.
#[test]
fn same_records_with_decimal_commas_stop_a_script() {
    let folder = folder(table(200), SCHEMA);
    let epsilon = ["--epsilon", "1", "--quiet", "--force"];
    let first = fhaim(folder.path(), &first_use("local", &epsilon));
    assert!(first.status.success(), "{}", stderr(&first));
    let csv = table(200).replace(',', ";");
    let with_comma = |row: &str| row.replacen(';', ",0;", 1) + "\n";
    let (header, rows) = csv.split_once('\n').unwrap();
    let rows: String = rows.lines().map(with_comma).collect();
    fs::write(folder.path().join("t.csv"), format!("{header}\n{rows}")).unwrap();
    let number =
        r#""kind": "number", "decimals": 1, "trailing_zeros": true, "decimal_comma": true"#;
    let schema = SCHEMA.replacen(r#""kind": "numeric""#, number, 1);
    fs::write(folder.path().join("t.schema.json"), schema).unwrap();
    let stopped = fhaim(folder.path(), &first_use("local", &epsilon));
    let told = stderr(&stopped);
    assert_eq!(stopped.status.code(), Some(2), "{told}");
    assert!(told.contains("these records were used before"), "{told}");
}

/// Records with other columns are other records.
#[test]
fn table_with_another_column_is_not_recognised() {
    let folder = folder(table(200), SCHEMA);
    let first = fhaim(
        folder.path(),
        &first_use("local", &["--epsilon", "1", "--quiet"]),
    );
    assert!(first.status.success(), "{}", stderr(&first));
    let csv = fs::read_to_string(folder.path().join("t.csv")).unwrap();
    let wider: String = csv.lines().map(|row| format!("{row},z\n")).collect();
    fs::write(folder.path().join("t.csv"), wider).unwrap();
    let more = "--epsilon 1 --quiet --ignore-columns --json --force";
    let more: Vec<&str> = more.split(' ').collect();
    let output = fhaim(folder.path(), &first_use("local", &more));
    let told = stderr(&output);
    assert!(
        output.status.success() && !told.contains("used before"),
        "{told}"
    );
}

/// Without the key, the history does not reveal which records were used. Only its owner can read it.
#[test]
fn history_is_keyed_and_readable_only_by_its_owner() {
    let hashes = [(); 2].map(|()| {
        let folder = folder(table(50), SCHEMA);
        let local = generate("local", &["--epsilon", "1"]);
        let output = fhaim(folder.path(), &local);
        assert!(output.status.success(), "{}", stderr(&output));
        let config = folder.path().join(CONFIG);
        #[cfg(unix)]
        for name in ["memory.key", "memory.json"] {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(config.join(name))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let entries = fs::read(config.join("memory.json")).unwrap();
        let entries: Value = serde_json::from_slice(&entries).unwrap();
        let hashes = &entries["tables"][0]["records"]["hashes"];
        hashes.as_str().unwrap().to_owned()
    });
    // The hashes of the same records differ on two machines.
    assert_ne!(hashes[0], hashes[1]);
}

/// A file name may contain any characters. Control characters must not reach the terminal.
#[cfg(unix)]
#[test]
fn control_characters_in_the_history_are_escaped() {
    let folder = folder(table(50), SCHEMA);
    let mut local = generate("local", &["--epsilon", "1", "--quiet", "--yes"]);
    let out = local.iter().position(|argument| *argument == "out.csv");
    local[out.unwrap()] = "a\u{1b}[2J\u{7}.csv";
    let [first, second] = [(); 2].map(|()| fhaim(folder.path(), &local));
    assert!(first.status.success(), "{}", stderr(&first));
    let told = stderr(&second);
    assert!(
        told.contains(r#"into "a\u{1b}[2J\u{7}.csv": rho"#),
        "{told}"
    );
    assert!(!told.contains('\u{1b}'), "{told}");
}

/// Without the key, no table can be recognised. A new key would make all tables look unused.
#[test]
fn missing_history_key_is_reported() {
    let folder = folder(table(50), SCHEMA);
    let local = generate("local", &["--epsilon", "1", "--quiet", "--yes"]);
    let run = || {
        let output = fhaim(folder.path(), &local);
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert_eq!(run(), "");
    let key = folder.path().join(CONFIG).join("memory.key");
    fs::remove_file(&key).unwrap();
    let told = run();
    assert!(told.contains("memory.key: the key is missing"), "{told}");
    assert!(!key.exists(), "a new key hides earlier uses");
}

/// A result must not overwrite the history.
#[test]
fn output_over_the_history_is_rejected() {
    let folder = folder(table(50), SCHEMA);
    let mut local = generate("local", &["--epsilon", "1", "--quiet", "--yes"]);
    let out = local.iter().position(|argument| *argument == "out.csv");
    assert!(fhaim(folder.path(), &local).status.success());
    let memory = format!("{CONFIG}/memory.json");
    local[out.unwrap()] = &memory;
    let before = fs::read(folder.path().join(&memory)).unwrap();
    let output = fhaim(folder.path(), &local);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(
        told.contains("this name is reserved for the history of earlier runs"),
        "{told}"
    );
    assert_eq!(fs::read(folder.path().join(&memory)).unwrap(), before);
}
