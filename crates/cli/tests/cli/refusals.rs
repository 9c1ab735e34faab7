//! Tests of invalid input: a one-line error with the file, the place and a way out, exit code 2, and no files left
//! behind.
//!
//! Damaged ciphertexts and keys are tested in `fhaim-he`, whose codecs reject them.

use std::{fs, process::Output};

use tempfile::TempDir;

use crate::{SCHEMA, fhaim, folder, generate, names, stderr, table};

const E1: [&str; 2] = ["--epsilon", "1"];

/// Checks for exit code 2 and one error, after notes if any: one line, or a list of a table's problems. The output must
/// contain all of `says`.
fn check_refusal(output: &Output, says: &[&str]) {
    let errors = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    let mut lines = errors.lines().filter(|line| !line.starts_with("note: "));
    let error = lines.next();
    assert!(
        error.is_some_and(|line| line.starts_with("error: "))
            && lines.all(|line| line.starts_with("  ") || line.starts_with('(')),
        "{errors}"
    );
    for words in says {
        assert!(errors.contains(words), "{words:?} is not in: {errors}");
    }
    assert!(output.stdout.is_empty());
}

/// Checks that `local` and `run` fail in the same way, and leave the folder unchanged.
fn refused_with(csv: &[u8], schema: &[u8], more: &[&str], says: &[&str]) {
    for command in ["local", "run"] {
        let folder = folder(csv, schema);
        check_refusal(&fhaim(folder.path(), &generate(command, more)), says);
        assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
        assert_eq!(fs::read(folder.path().join("t.csv")).unwrap(), csv);
    }
}

fn refused_table(csv: impl AsRef<[u8]>, says: &[&str]) {
    refused_with(csv.as_ref(), SCHEMA.as_bytes(), &E1, says);
}

fn refused_arguments(more: &[&str], says: &[&str]) {
    refused_with(table(20).as_bytes(), SCHEMA.as_bytes(), more, says);
}

#[test]
fn invalid_identifiers_are_rejected_with_their_form() {
    let folder = TempDir::new().unwrap();
    for command in [&["job", "run", "1234"][..], &["link", "revoke", "1", "2"]] {
        let output = fhaim(folder.path(), command);
        assert_eq!(output.status.code(), Some(2));
        let told = stderr(&output);
        assert!(told.contains("32 hexadecimal digits"), "{told}");
    }
}

/// The number of records decides how much noise the scores of `fhaim-l2` need.
#[test]
fn more_noise_than_can_be_drawn_is_rejected_before_the_first_release() {
    let more = "--mechanism fhaim-l2 --epsilon 0.1 --record-bound 1000000";
    let more: Vec<&str> = more.split(' ').collect();
    refused_arguments(
        &more,
        &[
            "standard deviation of 2^3",
            "2^28",
            "staged",
            "raise epsilon",
        ],
    );
    let folder = folder(table(20).as_bytes(), SCHEMA.as_bytes());
    let check = "schema check t.schema.json --mechanism fhaim-l2 --epsilon 0.1 --rows 1000000";
    let check: Vec<&str> = check.split(' ').collect();
    check_refusal(&fhaim(folder.path(), &check), &["2^28", "staged"]);
}

#[test]
fn values_outside_the_schema_are_rejected_with_their_place() {
    let place = |column: &str| format!("t.csv: row 2 (line 3), column \"{column}\": ");
    for (record, column, says) in [
        (
            "2,pink,1",
            "c",
            ["\"pink\" is not one of", "\"other\": CATEGORY"],
        ),
        ("11,red,0", "x", ["\"11\" is outside", "--clamp"]),
        ("-1,red,0", "x", ["from 0 to 10", "--clamp"]),
        ("NaN,red,0", "x", ["\"NaN\" is not a number", "--missing"]),
        ("?,red,0", "x", ["\"?\" is not a number", "--missing"]),
        (",red,0", "x", ["the value is missing", "nullable"]),
        ("1,,0", "c", ["the value is missing", "nullable"]),
    ] {
        let csv = format!("x,c,y\n1,red,0\n{record}\n");
        refused_table(csv, &[&place(column), says[0], says[1]]);
    }
}

#[test]
fn all_kinds_of_problems_are_listed_with_their_ways_out() {
    let csv = "x,c,y,z\n11,pink,0,1\n?,red,0,1\n12,red,0,1\n1,red,0\n";
    let says = [
        "error: t.csv: the table has 5 kinds of problems:\n  column \"z\" is not in the schema\n",
        "\n  row 1 (line 2), column \"x\": \"11\" is outside the schema's range from 0 to 10; again in row 3 (line 4)\n",
        "\n  row 1 (line 2), column \"c\": \"pink\" is not one of",
        "\n  row 2 (line 3), column \"x\": \"?\" is not a number\n",
        "\n  row 4 (line 5): 3 fields where the header has 4, in the last row: it is a footer, or the file was cut off\n(",
        "--ignore-columns; correct it, widen the schema's range, or use --clamp; ",
    ];
    refused_table(csv, &says);
    let folder = folder(csv, SCHEMA);
    let check = ["schema", "check", "t.schema.json", "--data", "t.csv"];
    check_refusal(&fhaim(folder.path(), &check), &says);
}

#[test]
fn lists_of_values_of_single_records_are_rejected() {
    let names: Vec<String> = (0..40).map(|number| format!("\"name {number}\"")).collect();
    let schema = format!(
        r#"{{"name":"t","columns":[{{"name":"surname","kind":"categorical","categories":[{}]}}]}}"#,
        names.join(",")
    );
    let csv = format!("surname\n{}\n", names.join("\n"));
    let says = [
        "t.csv: column \"surname\": the schema lists 40 values",
        "`identifier`",
        "`left-out`",
        "code book",
    ];
    refused_with(csv.as_bytes(), schema.as_bytes(), &E1, &says);
    let folder = folder(&csv, &schema);
    let check = ["schema", "check", "t.schema.json", "--data", "t.csv"];
    check_refusal(&fhaim(folder.path(), &check), &says);
}

#[test]
fn rows_with_wrong_number_of_fields_are_rejected() {
    let says = "t.csv: row 2 (line 3): 2 fields where the header has 3";
    refused_table("x,c,y\n1,red,0\n2,red\n", &[says, "--delimiter"]);
    let says = "t.csv: row 1 (line 2): 4 fields where the header has 3";
    refused_table("x,c,y\n1,red,0,5\n2,red,0\n", &[says]);
    // An open quote extends to the end of the file.
    let says = "t.csv: row 1 (line 2), column \"x\": the quote that opens here is never closed";
    refused_table("x,c,y\n\"1,red,0\n2,red,1\n", &[says, "--quote none"]);
}

#[test]
fn tables_without_records_are_rejected() {
    refused_table("", &["t.csv: the file is empty: it has no header"]);
    refused_table("\n\n", &["t.csv: the file is empty: it has no header"]);
    refused_table("x,c,y\n", &["t.csv: the table has no records"]);
    refused_table("x,c,y", &["t.csv: the table has no records"]);
}

#[test]
fn tables_with_other_columns_are_rejected() {
    let missing = "t.csv: the schema's column \"c\" is missing from the header";
    refused_table("x,y\n1,0\n", &[missing, "correct the schema or the table"]);
    let unlisted = "t.csv: column \"z\" is not in the schema";
    refused_table("x,c,y,z\n1,red,0,5\n", &[unlisted, "--ignore-columns"]);
    let repeated = "t.csv: column \"x\" appears twice";
    refused_table("x,c,y,x\n1,red,0,5\n", &[repeated, "rename"]);
    refused_table("x y c\n1 0 red\n", &["\"x\" is missing", "--delimiter"]);
}

#[test]
fn invalid_bytes_in_text_are_rejected() {
    // A table that is not UTF-8 is read in the detected encoding, with a note.
    let latin = "note: t.csv: read as windows-1252";
    let says = "t.csv: row 2 (line 3), column \"c\": \"\u{ff}\" is not one of";
    refused_table(b"x,c,y\n1,red,0\n2,\xff,1\n", &[latin, says]);
    refused_table(b"x,\xe9,y\n1,red,0\n", &[latin, "\"c\" is missing"]);
    let says = "t.csv: row 1 (line 2), column \"c\": the field has a NUL character";
    refused_table(b"x,c,y\n1,re\0d,0\n", &[says, "remove the character"]);
    let says = "t.csv: the name of column 1 (line 1): the field has a NUL character";
    refused_table(b"x\0,c,y\n1,red,0\n", &[says]);
    refused_table([0; 100], &["t.csv: ", "a file in a binary format"]);
}

#[test]
fn quotes_and_footers_are_reported_with_their_flag() {
    let says = "t.csv: row 2 (line 3), column \"c\": the quote that opens here is never closed";
    refused_table("x,c,y\n1,red,0\n2,\"red,1\n", &[says, "--quote none"]);
    let says = "row 2 (line 3), the last one, begins with \"total\"";
    refused_table("x,c,y\n1,red,0\nTotal,,1\n", &[says, "--skip-footer 1"]);
    refused_table(
        "x,c,y\n1,red,0\nend\n",
        &["in the last row", "--skip-footer"],
    );
}

#[test]
fn budgets_out_of_range_are_rejected() {
    for epsilon in ["0", "-1", "-0", "NaN", "inf", "1e-300"] {
        let says = "epsilon must be a positive number";
        refused_arguments(&["--epsilon", epsilon], &[says, "not "]);
    }
    for delta in ["0", "1", "2", "-0.5", "NaN", "inf"] {
        let says = "delta must lie strictly between 0 and 1";
        refused_arguments(&["--epsilon", "1", "--delta", delta], &[says, "not "]);
    }
    let tiny = ["--epsilon", "1e-9"];
    refused_arguments(&tiny, &["too small", "raise epsilon"]);
    refused_arguments(&["--epsilon", "one"], &["'one'", "--epsilon", "--help"]);
}

#[test]
fn arguments_out_of_range_are_rejected() {
    let mechanism = ["--epsilon", "1", "--mechanism", "rap"];
    let known = "possible values: staged, fhaim-l2, aim, mst, one-ways";
    refused_arguments(&mechanism, &["'rap'", "--mechanism", known]);
    refused_arguments(&["--epsilon", "1", "--rows", "0"], &["--rows"]);
    let cap = ["--epsilon", "1", "--model-mb", "0"];
    refused_arguments(&cap, &["model cap", "raise --model-mb"]);
    let bound = ["--epsilon", "1", "--record-bound", "19"];
    let says = "more than the 19 records that --record-bound allows";
    refused_arguments(&bound, &[says]);
    let unknown = ["--epsilon", "1", "--sigma", "3"];
    refused_arguments(&unknown, &["'--sigma'"]);
    refused_arguments(&[], &["--epsilon <E>"]);
}

#[test]
fn aim_under_encryption_is_rejected() {
    let folder = folder(table(20), SCHEMA);
    let arguments = generate("run", &["--epsilon", "1", "--mechanism", "aim"]);
    let says = ["aim reads exact marginals", "fhaim local"];
    check_refusal(&fhaim(folder.path(), &arguments), &says);
    assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
}

#[test]
fn missing_files_and_folders_are_rejected() {
    let folder = folder(table(20), SCHEMA);
    let refused = |arguments: &[&str], says: &[&str]| {
        check_refusal(&fhaim(folder.path(), arguments), says);
        assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
    };
    for command in ["local", "run"] {
        let run = |data: &str, schema: &str, out: &str, report: &str, says: &[&str]| {
            let files = ["--data", data, "--schema", schema, "--out", out];
            let rest = ["--report", report, "--epsilon", "1"];
            refused(&[&[command], &files[..], &rest[..]].concat(), says);
        };
        let (csv, json) = ("t.csv", "t.schema.json");
        run("no.csv", json, "o.csv", "r.html", &["no.csv: No such file"]);
        run(".", json, "o.csv", "r.html", &[".: is a directory"]);
        run(csv, "no.json", "o.csv", "r.html", &["no.json: No such"]);
        let no_folder = ["no/o.csv: the folder no does not exist: create it first"];
        run(csv, json, "no/o.csv", "r.html", &no_folder);
        let no_folder = ["no/r.html: the folder no does not exist: create it first"];
        run(csv, json, "o.csv", "no/r.html", &no_folder);
        let named_twice = ["named both as an output and as another file"];
        run(csv, json, "./t.csv", "r.html", &named_twice);
        run(csv, json, "r.html", "r.html", &named_twice);
        run(csv, json, "o.csv", "o.model", &named_twice);
        run(csv, json, "o.model", "r.html", &named_twice);
    }
}

#[test]
fn results_never_replace_their_inputs() {
    let folder = folder(table(20), SCHEMA);
    let table = fs::read(folder.path().join("t.csv")).unwrap();
    for arguments in [
        "schema infer --data t.csv --out ./t.csv",
        "sample --model t.csv --schema t.schema.json --out ./t.csv",
        "evaluate --real t.csv --synthetic t.csv --schema t.schema.json --out ./t.csv",
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = fhaim(folder.path(), &arguments);
        check_refusal(
            &output,
            &["./t.csv is named both as an output and as another file"],
        );
        assert_eq!(fs::read(folder.path().join("t.csv")).unwrap(), table);
    }
    assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
}

#[test]
fn results_never_replace_a_folder() {
    let folder = folder(table(20), SCHEMA);
    fs::create_dir(folder.path().join("out.csv")).unwrap();
    for command in ["local", "run"] {
        let output = fhaim(folder.path(), &generate(command, &E1));
        check_refusal(&output, &["out.csv is a folder: name a file in it"]);
    }
    assert!(names(&folder.path().join("out.csv")).is_empty());
}

#[test]
fn truncated_schema_is_rejected() {
    let whole = SCHEMA.as_bytes();
    for length in (0..whole.len()).step_by(9) {
        let folder = folder(table(20), &whole[..length]);
        let output = fhaim(folder.path(), &generate("run", &E1));
        let says = ["t.schema.json: not a schema: ", "schema infer"];
        check_refusal(&output, &says);
        assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
    }
}

/// A flipped bit may give a valid schema with other names or limits. Then the table matches it or is rejected.
/// Otherwise, the schema is rejected.
#[test]
fn schema_with_flipped_bit_is_rejected_or_valid() {
    let mut refused = 0;
    for bit in (0..8 * SCHEMA.len()).step_by(23) {
        let mut schema = SCHEMA.as_bytes().to_vec();
        schema[bit / 8] ^= 1 << (bit % 8);
        let folder = folder(table(20), schema);
        let output = fhaim(folder.path(), &generate("local", &["--epsilon", "1", "-q"]));
        if output.status.success() {
            let check = ["schema", "check", "t.schema.json", "--data", "out.csv"];
            assert!(fhaim(folder.path(), &check).status.success(), "bit {bit}");
        } else {
            check_refusal(&output, &["error: t."]);
            assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
            refused += 1;
        }
    }
    assert!(refused > 50, "{refused} refused");
}

#[test]
fn run_that_needs_more_memory_than_allowed_is_rejected() {
    let tight = ["--epsilon", "1", "--memory-mb", "10"];
    let says = ["MB of memory, but only 10 MB may be used", "--model-mb"];
    refused_arguments(&tight, &says);
}

/// Returns a schema of 60 columns with `bins` bins, except c3, which has `most`.
fn wide_schema(bins: usize, most: usize) -> String {
    let column = |i: usize| {
        let bins = if i == 3 { most } else { bins };
        format!(r#"{{"name":"c{i}","kind":"numeric","min":0,"max":1,"bins":{bins}}}"#)
    };
    let columns: Vec<String> = (0..60).map(column).collect();
    format!(r#"{{"name":"wide","columns":[{}]}}"#, columns.join(","))
}

#[test]
fn schema_too_large_for_memory_is_rejected_with_the_column_to_coarsen() {
    let schema = wide_schema(400, 500);
    let header: Vec<String> = (0..60).map(|i| format!("c{i}")).collect();
    let csv = format!("{}\n{}\n", header.join(","), ["0.5"; 60].join(","));
    let memory = ["--epsilon", "1", "--memory-mb", "2000"];
    let says = [
        "MB of memory, but only 2000 MB",
        "coarsen column \"c3\" from 500 to ",
    ];
    refused_with(csv.as_bytes(), schema.as_bytes(), &memory, &says);
}

/// The schema has more one-hot columns than allowed.
#[test]
fn too_wide_schema_is_rejected_with_its_widest_column() {
    let schema = wide_schema(2000, 9000);
    let says = ["t.schema.json: ", "column \"c3\" has the most"];
    refused_with(b"c1\n1\n", schema.as_bytes(), &E1, &says);
}

#[test]
fn invalid_tables_are_rejected_by_evaluate_and_schema() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.schema.json"), SCHEMA).unwrap();
    fs::write(folder.path().join("t.csv"), table(20)).unwrap();
    fs::write(folder.path().join("bad.csv"), "x,c,y\n1,pink,0\n").unwrap();
    let place = "bad.csv: row 1 (line 2), column \"c\": \"pink\"";
    for command in [
        "evaluate --real t.csv --synthetic bad.csv --schema t.schema.json --out r.html",
        "evaluate --real bad.csv --synthetic t.csv --schema t.schema.json --out r.html",
        "schema check t.schema.json --data bad.csv",
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        check_refusal(&fhaim(folder.path(), &arguments), &[place]);
    }
    fs::write(folder.path().join("bad.csv"), "x,c,y\n1,pink\n").unwrap();
    let infer = "schema infer --data bad.csv --out s.json".split(' ');
    let ragged = "bad.csv: row 1 (line 2): 2 fields where the header has 3";
    check_refusal(&fhaim(folder.path(), &infer.collect::<Vec<_>>()), &[ragged]);
    assert_eq!(names(folder.path()), ["bad.csv", "t.csv", "t.schema.json"]);
}

#[test]
fn invalid_numbers_of_holders_are_rejected() {
    let refused = |more: &str, says: &[&str]| {
        let more: Vec<&str> = E1.into_iter().chain(more.split(' ')).collect();
        refused_arguments(&more, says);
    };
    refused("--holders 0", &["--holders", "1 to 128"]);
    refused("--holders 129", &["--holders", "1 to 128"]);
    refused("--honest 2", &["--honest", "--holders"]);
    refused("--holders 2 --honest 3", &["3", "2"]);
    refused("--holders 21", &["fewer records than --holders"]);
    refused("--holders 4 --by columns", &["holder"]);
    refused(
        "--holders 2 --by columns --contribution counts",
        &["contribution", "use records"],
    );
}
