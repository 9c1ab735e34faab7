//! Commands that succeed, and what they leave behind.

use std::fs;

use tempfile::TempDir;

use crate::{SCHEMA, fhaim, folder, generate, names, stderr, table};

#[test]
fn local_and_run_write_a_table_that_fits_the_schema() {
    for command in ["local", "run"] {
        let folder = folder(table(200), SCHEMA);
        let more = "--epsilon 10 --records 50 --ledger l.json --report r.html --json";
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
            ["l.json", "out.csv", "r.html", "t.csv", "t.schema.json"]
        );
        let check = ["schema", "check", "t.schema.json", "--data", "out.csv"];
        let output = fhaim(folder.path(), &check);
        assert!(String::from_utf8_lossy(&output.stdout).contains("the table fits: 50 records"));
        let evaluate = "evaluate --real t.csv --synthetic out.csv --schema t.schema.json";
        let evaluate: Vec<&str> = evaluate.split(' ').collect();
        assert!(fhaim(folder.path(), &evaluate).status.success());
    }
}

#[test]
fn a_draft_is_a_schema_and_says_that_it_is_a_draft() {
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
}

/// One screen, of a table that encryption has counted.
#[test]
fn the_bench_measures_ones_own_table() {
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
    // Nothing is spent.
    assert!(
        !folder
            .path()
            .join(crate::CONFIG)
            .join("memory.json")
            .exists()
    );
}

/// One table, one budget: the demo ends with a table that fits its schema and a page.
#[test]
fn the_demo_leaves_a_table_and_a_page() {
    let folder = TempDir::new().unwrap();
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

/// Six columns of two values, for three holders of two columns each.
const SIX: &str = r#"{"name": "six", "columns": [
    {"name": "a", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "b", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "c", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "d", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "e", "kind": "categorical", "categories": ["0", "1"]},
    {"name": "f", "kind": "categorical", "categories": ["0", "1"]}]}"#;

/// A table of [`SIX`] as CSV.
fn six(records: usize) -> String {
    let row = |i: usize| {
        let values = [2, 3, 5, 7, 11, 13].map(|prime| (i / prime % 2).to_string());
        values.join(",") + "\n"
    };
    let rows: String = (0..records).map(row).collect();
    format!("a,b,c,d,e,f\n{rows}")
}

/// Each of several holders is told what it would have got alone.
#[test]
fn three_holders_are_told_what_each_would_have_got_alone() {
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
        assert!(page.contains("Holder 3") && page.contains("alone"), "{by}");
    }
}

/// A pipe gives its bytes once, and a table is looked at before it is read; by counts it is read twice.
#[test]
fn a_table_comes_through_a_pipe() {
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

/// A dash stands for standard output, as elsewhere, and a table that goes there is all that goes there.
#[cfg(unix)]
#[test]
fn a_dash_is_standard_output() {
    let folder = folder(table(200), SCHEMA);
    let line = "local --data t.csv --schema t.schema.json --epsilon 1 --out -";
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = fhaim(folder.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let header = |text: &[u8]| text.split(|&byte| byte == b'\n').next().map(<[u8]>::to_vec);
    let table = fs::read(folder.path().join("t.csv")).unwrap();
    assert_eq!(header(&output.stdout), header(&table));
    assert!(stderr(&output).contains("rho"), "{}", stderr(&output));
    assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
}

/// Links are written through, and what is no file (a device, standard output) is not replaced by one.
#[cfg(unix)]
#[test]
fn results_go_where_links_lead() {
    let folder = folder(table(200), SCHEMA);
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("kept")).unwrap();
    for (link, leads_to) in [
        ("out.csv", "kept/synthetic.csv"),
        ("ledger", "/dev/null"),
        ("model", "/dev/stdout"),
    ] {
        std::os::unix::fs::symlink(leads_to, at(link)).unwrap();
    }
    let more = [
        "--epsilon",
        "1",
        "--ledger",
        "ledger",
        "--model-out",
        "model",
    ];
    let output = fhaim(folder.path(), &generate("local", &more));
    assert!(output.status.success(), "{}", stderr(&output));
    for link in ["out.csv", "ledger", "model"] {
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
    assert_eq!(names(&at("kept")), ["synthetic.csv"]);
    // The model alone: what the command says of itself is not part of it.
    assert!(fhaim_synth::load_model(&output.stdout, usize::MAX).is_ok());
    assert!(stderr(&output).contains("rho"), "{}", stderr(&output));
}
