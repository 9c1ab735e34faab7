//! The usage history of a machine, as programs without a terminal use it.
#![allow(clippy::unwrap_used)]

use std::{
    env,
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use fhaim_domain::{Dialect, ReadOptions, Schema, read_csv_watched};
use fhaim_dp::Rho;
use fhaim_files::{
    Error, FormatArguments,
    data::Data,
    keeping,
    memory::{self, RecordSource, RecordWatch, RunJournal, Use, UseCost},
};
use uuid::Uuid;

/// Set in the processes that [`in_own_process`] starts.
const OWN_PROCESS: &str = "FHAIM_FILES_TEST_OWN_PROCESS";

/// Runs a test in a separate process without a terminal, with an empty history and an empty current folder.
fn in_own_process(test: &str, work: impl FnOnce()) {
    if env::var_os(OWN_PROCESS).is_some() {
        return work();
    }
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(env::current_exe().unwrap())
        .args([&format!("history::{test}"), "--exact"])
        .env(OWN_PROCESS, "1")
        .env("FHAIM_MEMORY_DIR", folder.path().join("history"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

fn table(records: std::ops::Range<usize>) -> String {
    let mut text = "id,town\n".to_owned();
    for record in records {
        writeln!(text, "{record},Ulm").unwrap();
    }
    text
}

fn cost() -> UseCost {
    UseCost::zcdp("fhaim", Rho::ratio_up(1, 2).unwrap())
}

/// Looks up a table for a use. Returns the outcome and the remarks.
fn look_up(
    path: &str,
    same: Option<Uuid>,
    yes: bool,
) -> (Result<Option<memory::KnownRecords>, Error>, String) {
    let (data, format) = (Data::from(Path::new(path)), FormatArguments::default());
    let records = RecordSource::Table(&data, &format);
    let (found, remarks) = keeping(|| memory::look_up(records, cost(), 1e-9, same, yes));
    (found, remarks.join("\n"))
}

fn run(path: &str) -> Use {
    Use::Run {
        out: format!("{path}.out"),
        journal: None,
    }
}

/// Uses a table that was not used before.
fn use_first(path: &str, used_for: &Use) {
    let (found, remarks) = look_up(path, None, false);
    assert_eq!(remarks, "");
    let known = found.unwrap().unwrap();
    known.remember(used_for, cost()).unwrap();
}

#[test]
fn first_use_starts_and_second_use_stops_without_a_terminal() {
    in_own_process(
        "first_use_starts_and_second_use_stops_without_a_terminal",
        || {
            fs::write("t.csv", table(0..100)).unwrap();
            use_first("t.csv", &run("t.csv"));
            // The same records, with one row fewer, in another order, and with another delimiter.
            let text = table(1..100).replace(',', ";");
            let (header, rows) = text.split_once('\n').unwrap();
            let rows: Vec<&str> = rows.lines().rev().collect();
            fs::write("u.csv", format!("{header}\n{}\n", rows.join("\n"))).unwrap();
            let (found, remarks) = look_up("u.csv", None, false);
            let refused = found.err().unwrap();
            assert!(matches!(refused, Error::UsedBefore), "{refused}");
            assert_eq!(refused.exit_code(), 2);
            assert!(
                remarks.contains("these records were used before"),
                "{remarks}"
            );
            // Other records with the same columns are not.
            fs::write("v.csv", table(200..300)).unwrap();
            use_first("v.csv", &run("v.csv"));
        },
    );
}

#[test]
fn costs_of_recognised_records_add_up_with_yes() {
    in_own_process("costs_of_recognised_records_add_up_with_yes", || {
        fs::write("t.csv", table(0..100)).unwrap();
        use_first("t.csv", &run("t.csv"));
        let (found, _) = look_up("t.csv", None, true);
        let known = found.unwrap().unwrap();
        known.remember(&run("again"), cost()).unwrap();
        let (_, remarks) = look_up("t.csv", None, true);
        assert!(remarks.contains("into t.csv.out: rho 0.5"), "{remarks}");
        assert!(remarks.contains("into again.out: rho 0.5"), "{remarks}");
    });
}

#[test]
fn half_of_the_records_are_reported_and_count_in_full() {
    in_own_process("half_of_the_records_are_reported_and_count_in_full", || {
        fs::write("t.csv", table(0..10_000)).unwrap();
        use_first("t.csv", &run("t.csv"));
        fs::write("u.csv", table(5_000..15_000)).unwrap();
        let (found, remarks) = look_up("u.csv", None, false);
        assert!(matches!(found.err().unwrap(), Error::UsedBefore));
        assert!(
            remarks.contains("about half of these records were used before"),
            "{remarks}"
        );
        // Rho 1/2 before, and 1 with this use.
        let (_, whole) = look_up("t.csv", None, true);
        let total = |text: &str| text.lines().last().unwrap().to_owned();
        assert_eq!(total(&remarks), total(&whole));
    });
}

#[test]
fn file_that_is_no_table_is_recognised_by_its_bytes() {
    in_own_process("file_that_is_no_table_is_recognised_by_its_bytes", || {
        let look_up = |bytes: &[u8]| {
            fs::write("images", bytes).unwrap();
            let data = Data::from(Path::new("images"));
            let records = RecordSource::Bytes(&data);
            keeping(|| memory::look_up(records, cost(), 1e-9, None, false)).0
        };
        let first = look_up(&[1, 2, 3]).unwrap().unwrap();
        first.remember(&run("images"), cost()).unwrap();
        assert!(look_up(&[1, 2, 4]).is_ok());
        let again = look_up(&[1, 2, 3]).err().unwrap();
        assert!(matches!(again, Error::UsedBefore), "{again}");
    });
}

/// The uses before such a file are unknown.
#[test]
fn use_without_a_readable_history_needs_consent() {
    in_own_process("use_without_a_readable_history_needs_consent", || {
        fs::create_dir_all("history").unwrap();
        fs::write("history/memory.json", r#"{"version":2,"uses":[]}"#).unwrap();
        fs::write("t.csv", table(0..100)).unwrap();
        let (refused, remarks) = look_up("t.csv", None, false);
        let refused = refused.err().unwrap();
        assert!(matches!(refused, Error::UnknownUses), "{refused}");
        assert_eq!(refused.exit_code(), 2);
        assert!(look_up("t.csv", None, true).0.unwrap().is_none());
        let reason = "it has version 2, but this program reads version 1";
        assert!(remarks.contains(reason), "{remarks}");
        assert!(
            remarks.contains("move it away to start a new history"),
            "{remarks}"
        );
    });
}

#[test]
fn dataset_is_not_a_reason_to_stop_its_own_upload() {
    in_own_process("dataset_is_not_a_reason_to_stop_its_own_upload", || {
        fs::write("t.csv", table(0..100)).unwrap();
        let id = Uuid::from_u128(7);
        let dataset = Use::Dataset {
            id,
            server: "http://s".to_owned(),
        };
        use_first("t.csv", &dataset);
        let (found, remarks) = look_up("t.csv", Some(id), false);
        assert_eq!(remarks, "");
        let known = found.unwrap().unwrap();
        known.remember(&dataset, cost()).unwrap();
        let (_, remarks) = look_up("t.csv", None, true);
        assert_eq!(remarks.matches("dataset 0").count(), 1, "{remarks}");
    });
}

#[test]
fn forgotten_dataset_does_not_count() {
    in_own_process("forgotten_dataset_does_not_count", || {
        fs::write("t.csv", table(0..100)).unwrap();
        let id = Uuid::from_u128(7);
        let server = "http://s".to_owned();
        use_first("t.csv", &Use::Dataset { id, server });
        memory::forget_dataset(Uuid::from_u128(8));
        let stopped = look_up("t.csv", None, false).0.err().unwrap();
        assert!(matches!(stopped, Error::UsedBefore), "{stopped}");
        memory::forget_dataset(id);
        use_first("t.csv", &run("t.csv"));
    });
}

#[test]
fn watched_table_is_not_read_again() {
    in_own_process("watched_table_is_not_read_again", || {
        fs::write("t.csv", table(0..100)).unwrap();
        use_first("t.csv", &run("t.csv"));
        let (data, format) = (Data::from(Path::new("t.csv")), FormatArguments::default());
        let schema = r#"{"name": "t", "columns": [
            {"name": "id", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10},
            {"name": "town", "kind": "categorical", "categories": ["Ulm"]}]}"#;
        let schema = Schema::from_json("t.json", schema.as_bytes()).unwrap();
        let options = ReadOptions {
            dialect: Dialect::default(),
            ..ReadOptions::new("t.csv")
        };
        let mut watch = RecordWatch::new(&data);
        let text = fs::read("t.csv").unwrap();
        read_csv_watched(schema, &text[..], &options, |records| watch.see(records)).unwrap();
        watch.finish();
        fs::remove_file("t.csv").unwrap();
        let records = RecordSource::Table(&data, &format);
        let (found, _) = keeping(|| memory::look_up(records, cost(), 1e-9, None, false));
        assert!(matches!(found.err().unwrap(), Error::UsedBefore));
    });
}

#[test]
fn table_that_cannot_be_read_is_an_error() {
    in_own_process("table_that_cannot_be_read_is_an_error", || {
        fs::write("t.csv", "a,b\n1,2\n3\n").unwrap();
        let error = look_up("t.csv", None, true).0.err().unwrap();
        assert!(matches!(error, Error::Table(_)), "{error}");
    });
}

#[test]
fn journalled_run_has_one_entry_with_its_latest_cost() {
    in_own_process("journalled_run_has_one_entry_with_its_latest_cost", || {
        fs::write("t.csv", table(0..100)).unwrap();
        fs::write("u.csv", table(200..300)).unwrap();
        let records = look_up("t.csv", None, false).0.unwrap().unwrap();
        let id = Uuid::from_u128(7);
        assert_eq!(records.run(id).unwrap(), None);
        for states in [vec!["a"], vec!["a", "b"]] {
            let states = states.into_iter().map(str::to_owned).collect();
            let journal = RunJournal { id, states };
            let out = Path::new("out.csv");
            records.remember_run(out, journal, &cost()).unwrap();
        }
        let known = records.run(id).unwrap().unwrap();
        assert_eq!(known.journal.states, ["a", "b"]);
        assert!(known.has_these_records);
        let others = look_up("u.csv", None, false).0.unwrap().unwrap();
        assert!(!others.run(id).unwrap().unwrap().has_these_records);
        // The run itself is no earlier use, and other runs see its cost once.
        assert_eq!(look_up("t.csv", Some(id), false).1, "");
        let (_, remarks) = look_up("t.csv", None, true);
        assert_eq!(remarks.matches("into out.csv").count(), 1, "{remarks}");
    });
}

/// The history has another draft of the records, which cost less than that of the schema.
#[test]
fn total_has_the_draft_of_the_schema_unless_the_history_has_it() {
    in_own_process(
        "total_has_the_draft_of_the_schema_unless_the_history_has_it",
        || {
            fs::write("t.csv", table(0..100)).unwrap();
            let records = look_up("t.csv", None, false).0.unwrap().unwrap();
            let draft = |rho: u128| {
                let rho = Rho::ratio_up(rho, 10).unwrap();
                UseCost::zcdp_but_for("fhaim", rho, 5e-11)
            };
            let out = "s.json".to_owned();
            records.remember(&Use::Draft { out }, draft(1)).unwrap();
            let uses = |draft| records.total(1e-9, Some(draft)).unwrap().uses;
            assert_eq!(uses(draft(1)), 1);
            assert_eq!(uses(draft(5)), 2);
        },
    );
}

/// The tables have more records than a sample, and differ in one.
#[test]
fn run_continues_only_with_exactly_its_records() {
    in_own_process("run_continues_only_with_exactly_its_records", || {
        fs::write("t.csv", table(0..5_000)).unwrap();
        let records = look_up("t.csv", None, false).0.unwrap().unwrap();
        let id = Uuid::from_u128(7);
        let journal = RunJournal {
            id,
            states: vec!["a".to_owned()],
        };
        let out = Path::new("out.csv");
        records.remember_run(out, journal, &cost()).unwrap();
        for other in 0..20 {
            let changed = table(0..5_000).replacen(&format!("\n{other},"), "\n9999,", 1);
            fs::write("u.csv", changed).unwrap();
            let others = look_up("u.csv", None, true).0.unwrap().unwrap();
            let run = others.run(id).unwrap().unwrap();
            assert!(!run.has_these_records, "record {other}");
        }
    });
}

/// Two programs continue copies of one releases file, each in its own folder.
#[test]
fn run_that_another_program_continued_makes_no_more_releases() {
    in_own_process(
        "run_that_another_program_continued_makes_no_more_releases",
        || {
            fs::write("t.csv", table(0..100)).unwrap();
            let records = look_up("t.csv", None, false).0.unwrap().unwrap();
            let debit = |before: &str, after: &str| {
                let journal = RunJournal {
                    id: Uuid::from_u128(7),
                    states: vec![before.to_owned(), after.to_owned()],
                };
                records.remember_run(Path::new("out.csv"), journal, &cost())
            };
            debit("empty", "a").unwrap();
            debit("a", "b").unwrap();
            let refused = debit("empty", "other").err().unwrap();
            assert!(matches!(refused, Error::RunElsewhere), "{refused}");
            debit("b", "c").unwrap();
        },
    );
}

#[test]
fn unwritable_history_refuses_the_releases_of_a_run() {
    in_own_process("unwritable_history_refuses_the_releases_of_a_run", || {
        fs::write("t.csv", table(0..100)).unwrap();
        let records = look_up("t.csv", None, false).0.unwrap().unwrap();
        let journal = RunJournal {
            id: Uuid::from_u128(7),
            states: Vec::new(),
        };
        let memory = env::var("FHAIM_MEMORY_DIR").unwrap();
        fs::remove_dir_all(&memory).unwrap();
        fs::write(&memory, "").unwrap();
        let refused = records.remember_run(Path::new("out.csv"), journal, &cost());
        assert!(matches!(refused, Err(Error::Write { .. })), "{refused:?}");
        let refused = records.remember(&run("t.csv"), cost());
        assert!(matches!(refused, Err(Error::Write { .. })), "{refused:?}");
    });
}
