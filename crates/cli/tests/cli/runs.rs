//! Tests of successful commands and their output files.

use std::fs;

use tempfile::TempDir;

use crate::{SCHEMA, fhaim, folder, generate, names, stderr, table};

#[test]
fn local_and_run_write_a_table_that_matches_the_schema() {
    for command in ["local", "run"] {
        let folder = folder(table(200), SCHEMA);
        let more = "--epsilon 10 --rows 50 --report r.html --json";
        let more: Vec<&str> = more.split(' ').collect();
        let output = fhaim(folder.path(), &generate(command, &more));
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["records"], 50);
        assert!(summary["rho_spent"].as_f64() <= summary["rho"].as_f64());
        assert_eq!(summary["encryption"].is_object(), command == "run");
        assert_eq!(stderr(&output).contains("at most "), command == "run");
        let names = names(folder.path());
        assert_eq!(
            names,
            [
                "out.card.html",
                "out.card.json",
                "out.csv",
                "out.model",
                "out.releases.json",
                "r.html",
                "t.csv",
                "t.schema.json"
            ]
        );
        let check = ["schema", "check", "t.schema.json", "--data", "out.csv"];
        let output = fhaim(folder.path(), &check);
        assert!(
            String::from_utf8_lossy(&output.stdout)
                .contains("the table matches the schema: 50 records")
        );
        let evaluate = "evaluate --real t.csv --synthetic out.csv --schema t.schema.json";
        let evaluate: Vec<&str> = evaluate.split(' ').collect();
        assert!(fhaim(folder.path(), &evaluate).status.success());
    }
}

#[test]
fn draft_is_a_valid_schema_with_a_notice() {
    let folder = folder(table(50), SCHEMA);
    let infer = ["schema", "infer", "--data", "t.csv", "--target", "y"];
    let output = fhaim(folder.path(), &infer);
    assert!(output.status.success());
    assert!(stderr(&output).contains("This is a draft."));
    fs::write(folder.path().join("draft.json"), &output.stdout).unwrap();
    let check = ["schema", "check", "draft.json", "--data", "t.csv", "--json"];
    let output = fhaim(folder.path(), &check);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["records"], 50);
    assert!(report["local_bytes"].as_u64() < report["run_bytes"].as_u64());
}

#[test]
fn identifiers_missing_texts_and_others_follow_the_schema() {
    let schema = r#"{"name":"t","columns":[
        {"name":"id","kind":"identifier","pattern":"S[0-9]"},
        {"name":"town","kind":"categorical","categories":["Ulm","rest"],"other":"rest"},
        {"name":"age","kind":"number","integer":true,"min":0,"max":99,"bins":10,"nullable":true,
         "missing":["NA","-9"],"invalid":"missing"}]}"#;
    let row = |number: usize| match number % 4 {
        0 => format!("{number},Ulm,{}\n", number % 100),
        1 => format!("{number},Bonn,NA\n"),
        2 => format!("{number},Ulm,-9\n"),
        _ => format!("{number},Ulm,4o\n"),
    };
    let rows: String = (0..200).map(row).collect();
    let folder = folder(format!("id,town,age\n{rows}"), schema);
    let check = ["schema", "check", "t.schema.json", "--data", "t.csv"];
    let output = fhaim(folder.path(), &check);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = stderr(&output);
    for words in [
        "column \"town\": 50 values outside the schema's list read as `other`, \"rest\"",
        "column \"age\": 50 cells without a valid value read as missing",
        "column \"id\": the pattern has 10 identifiers for 200 records",
    ] {
        assert!(told.contains(words), "{told}");
    }
    let more = ["--epsilon", "10", "--rows", "200"];
    let output = fhaim(folder.path(), &generate("local", &more));
    assert!(output.status.success(), "{}", stderr(&output));
    let made = fs::read_to_string(folder.path().join("out.csv")).unwrap();
    let rows: Vec<Vec<&str>> = made
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    let ids: std::collections::HashSet<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(ids.len(), 200);
    assert!(rows.iter().any(|row| row[2] == "NA"), "{made}");
    assert!(
        rows.iter()
            .all(|row| row[2] == "NA" || row[2].parse::<u32>().is_ok()),
        "{made}"
    );
}

/// The bench counts a table under encryption, and prints one screen.
#[test]
fn bench_measures_the_given_table() {
    let folder = folder(table(200), SCHEMA);
    let bench = "bench --data t.csv --schema t.schema.json --quiet";
    let output = fhaim(folder.path(), &bench.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", stderr(&output));
    let screen = String::from_utf8(output.stdout).unwrap();
    assert!(screen.starts_with("small: 200 records, "), "{screen}");
    for line in ["encrypt the table ", "compute all pairs ", "noise margin "] {
        assert!(screen.contains(&format!("\n{line}")), "{screen}");
    }
    assert!(screen.ends_with("Every cell was decrypted and equals its count.\n"));
    assert!(screen.lines().count() < 24 && screen.lines().all(|line| line.len() <= 100));
    // The bench spends no budget.
    assert!(
        !folder
            .path()
            .join(crate::CONFIG)
            .join("memory.json")
            .exists()
    );
}

/// The demo writes a table that matches its schema, and a report. It replaces its own files.
#[test]
fn demo_writes_a_table_and_a_report() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("d/synthetic.csv"), "old").unwrap();
    let output = fhaim(folder.path(), &["demo", "--out", "d", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let demo: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = demo["report"].as_str().unwrap();
    assert!(report.starts_with("file:///") && report.ends_with("/d/report.html"));
    let page = fs::read_to_string(folder.path().join("d/report.html")).unwrap();
    assert!(
        page.to_lowercase().starts_with("<!doctype html>") && page.trim_end().ends_with("</html>")
    );
    let check = [
        "schema",
        "check",
        "d/adult.schema.json",
        "--data",
        "d/synthetic.csv",
    ];
    assert!(fhaim(folder.path(), &check).status.success());
}

/// Six columns of two values, so that each of three holders has two columns.
const SIX: &str = r#"{"name": "six", "columns": [
    {"name": "a", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "b", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "c", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "d", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "e", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "f", "kind": "categorical", "categories": ["0", "1"]}]}"#;

/// Returns a table of [`SIX`] as CSV.
fn six(records: usize) -> String {
    let row = |i: usize| {
        let values = [2, 3, 5, 7, 11, 13].map(|prime| (i / prime % 2).to_string());
        values.join(",") + "\n"
    };
    let rows: String = (0..records).map(row).collect();
    format!("a,b,c,d,e,f\n{rows}")
}

#[test]
fn summary_and_report_compare_each_holders_result_with_the_common_one() {
    for (by, records, pairs) in [
        ("records", [100.0; 3], [15.0; 3]),
        ("columns", [300.0; 3], [1.0; 3]),
    ] {
        let folder = folder(six(300), SIX);
        let more = ["--epsilon", "1", "--report", "r.html", "--json"];
        let holders = ["--holders", "3", "--by", by];
        let output = fhaim(
            folder.path(),
            &generate("run", &[&more[..], &holders].concat()),
        );
        assert!(output.status.success(), "{by}: {}", stderr(&output));
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let alone = summary["alone"].as_array().unwrap();
        let of_each = |name: &str| -> Vec<f64> {
            let numbers = alone.iter().map(|alone| alone[name].as_f64());
            numbers.map(Option::unwrap).collect()
        };
        assert_eq!(of_each("pairs"), pairs, "{by}");
        assert_eq!(of_each("records"), records, "{by}");
        for name in ["error", "together"] {
            assert!(of_each(name).iter().sum::<f64>() > 0.0, "{by}: {name}");
        }
        let page = fs::read_to_string(folder.path().join("r.html")).unwrap();
        assert!(
            page.contains("Holder 3") && page.contains("on its own"),
            "{by}"
        );
    }
}

/// A pipe gives its bytes only once. But a table's dialect is detected before it is read, and counting reads it twice.
#[test]
fn table_can_be_read_from_a_pipe() {
    let folder = folder(table(200), SCHEMA);
    let draft = "\"$0\" schema infer --data /dev/stdin --out draft.json";
    let run = |command: &str, out: &str, more: &str| {
        format!(
            "\"$0\" {command} --data /dev/stdin --schema t.schema.json --epsilon 10 --out {out} --yes {more}"
        )
    };
    for command in [
        draft.to_owned(),
        run("local", "one.csv", ""),
        run("local", "two.csv", "--holders 2 --contribution counts"),
        run("run", "three.csv", "--contribution auto"),
    ] {
        let line = format!("cat t.csv | {command}");
        let program = env!("CARGO_BIN_EXE_fhaim");
        let output = fhaim_kit::command::run("sh", folder.path(), &["-c", &line, program]);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
    let made = fs::read_to_string(folder.path().join("three.csv")).unwrap();
    let records = made.lines().count() - 1;
    assert!(records.abs_diff(200) < 20, "{records}");
}

/// A dash means standard output. If the table goes there, nothing else does.
#[cfg(unix)]
#[test]
fn dash_as_output_writes_only_the_table_to_standard_output() {
    let folder = folder(table(200), SCHEMA);
    let line = "local --data t.csv --schema t.schema.json --epsilon 1 --out -";
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = fhaim(folder.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let header = |text: &[u8]| text.split(|&byte| byte == b'\n').next().map(<[u8]>::to_vec);
    let table = fs::read(folder.path().join("t.csv")).unwrap();
    assert_eq!(header(&output.stdout), header(&table));
    assert!(stderr(&output).contains("rho"), "{}", stderr(&output));
    assert_eq!(
        names(folder.path()),
        [
            "fhaim.card.html",
            "fhaim.card.json",
            "fhaim.model",
            "fhaim.releases.json",
            "t.csv",
            "t.schema.json"
        ]
    );
}

/// Results are written to the targets of links. A device or standard output is not replaced by a file.
#[cfg(unix)]
#[test]
fn results_are_written_to_the_targets_of_links() {
    let folder = folder(table(200), SCHEMA);
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("kept")).unwrap();
    for (link, leads_to) in [
        ("out.csv", "kept/synthetic.csv"),
        ("out.releases.json", "kept/releases.json"),
        ("out.model", "/dev/stdout"),
    ] {
        std::os::unix::fs::symlink(leads_to, at(link)).unwrap();
    }
    let output = fhaim(folder.path(), &generate("local", &["--epsilon", "1"]));
    assert!(output.status.success(), "{}", stderr(&output));
    for link in ["out.csv", "out.releases.json", "out.model"] {
        assert!(
            fs::symlink_metadata(at(link)).unwrap().is_symlink(),
            "{link}"
        );
    }
    assert!(
        fs::read_to_string(at("kept/synthetic.csv"))
            .unwrap()
            .lines()
            .count()
            > 1
    );
    assert_eq!(names(&at("kept")), ["releases.json", "synthetic.csv"]);
    // Standard output has only the model, not the command's messages.
    assert!(fhaim_synth::load_model(&output.stdout, usize::MAX).is_ok());
    assert!(stderr(&output).contains("rho"), "{}", stderr(&output));
}
