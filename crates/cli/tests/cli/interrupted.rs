//! Tests of runs that are killed or that cannot write: they lose no release, and pay for none twice.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use fhaim_kit::command::{self, CONFIG};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{SCHEMA, fhaim, first_use, folder, names, stderr, table};

/// A schema with several rounds of releases, which take some time.
const WIDE: &str = r#"{"name": "wide", "columns": [
    {"name": "a", "kind": "number", "integer": true, "min": 0, "max": 9, "bins": 10},
    {"name": "b", "kind": "number", "integer": true, "min": 0, "max": 9, "bins": 10},
    {"name": "c", "kind": "number", "integer": true, "min": 0, "max": 9, "bins": 10},
    {"name": "d", "kind": "number", "integer": true, "min": 0, "max": 9, "bins": 10},
    {"name": "e", "kind": "number", "integer": true, "min": 0, "max": 9, "bins": 10},
    {"name": "f", "kind": "number", "integer": true, "min": 0, "max": 9, "bins": 10}]}"#;

/// Arguments of a command that does not ask, although small tables are expected to give only noise.
fn confirmed<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&first_use(command, more)[..], &["--yes"]].concat()
}

/// Returns a table of [`WIDE`] as CSV. Tables with different seeds have different records.
fn wide(records: usize, seed: usize) -> String {
    let row = |i: usize| {
        let a = i * (7 + seed) % 10;
        format!(
            "{a},{},{},{},{},{}\n",
            a / 2,
            i % 10,
            i / 10 % 10,
            (a + i) % 10,
            9 - a
        )
    };
    let rows: String = (0..records).map(row).collect();
    format!("a,b,c,d,e,f\n{rows}")
}

/// The releases file of the run into `out.csv`.
fn releases(folder: &Path) -> Value {
    let text = fs::read(folder.join("out.releases.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Returns the outputs and costs of all runs in the usage history.
fn history(folder: &Path) -> Vec<(String, String)> {
    let Ok(text) = fs::read(folder.join(CONFIG).join("memory.json")) else {
        return Vec::new();
    };
    let history: Value = serde_json::from_slice(&text).unwrap();
    let of = |used: &Value| {
        let out = used["used_for"]["run"]["out"].as_str().unwrap().to_owned();
        (out, used["rho"].as_str().unwrap().to_owned())
    };
    history["uses"].as_array().unwrap().iter().map(of).collect()
}

/// Checks that the finished run began with the releases of `before`, and that the history has its cost once.
fn check_finished(folder: &Path, before: Option<&Value>) {
    let after = releases(folder);
    assert_eq!(after["finished"], true);
    if let Some(before) = before {
        let (before, after) = (&before["releases"], &after["releases"]);
        let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
        assert!(after.starts_with(before), "a release was made twice");
    }
    let spent = after["spent"].as_str().unwrap().to_owned();
    assert_eq!(history(folder), [("out.csv".to_owned(), spent)]);
    for name in [
        "out.csv",
        "out.model",
        "out.releases.json",
        "out.card.html",
        "out.card.json",
    ] {
        assert!(folder.join(name).is_file(), "{name}");
    }
}

/// Checks that the history has at least the cost of the releases on disk. Returns them.
fn check_interrupted(folder: &Path) -> Option<Value> {
    if !folder.join("out.releases.json").exists() {
        assert!(history(folder).is_empty());
        return None;
    }
    let found = releases(folder);
    let spent: u128 = found["spent"].as_str().unwrap().parse().unwrap();
    let paid: u128 = match &history(folder)[..] {
        [] => 0,
        [(_, rho)] => rho.parse().unwrap(),
        more => panic!("one run has several entries: {more:?}"),
    };
    assert!(paid >= spent, "releases on disk are not in the history");
    Some(found)
}

fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = fhaim(folder, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    stderr(&output)
}

fn refuse(folder: &Path, arguments: &[&str], says: &str) {
    let output = fhaim(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fhaim"));
    command.args(arguments).current_dir(folder);
    command
        .env_remove("FHAIM_MEMORY_DIR")
        .env("FHAIM_CONFIG_DIR", folder.join(CONFIG));
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Starts a run and kills it as soon as `is_time`, or lets it end.
fn kill_when(folder: &Path, arguments: &[&str], is_time: impl Fn() -> bool) {
    let mut child = start(folder, arguments);
    while child.try_wait().unwrap().is_none() {
        if is_time() {
            child.kill().unwrap();
        }
    }
}

/// The files are looked at without a pause, so that the run is killed right behind each of them.
#[test]
fn run_that_is_killed_at_any_output_continues_without_paying_twice() {
    for command in ["local", "run"] {
        for name in [
            "out.releases.json",
            "out.model",
            "out.csv",
            "out.card.json",
            "r.html",
        ] {
            let folder = folder(wide(400, 0), WIDE);
            let arguments = confirmed(command, &["--epsilon", "4", "--report", "r.html"]);
            let path = folder.path().join(name);
            kill_when(folder.path(), &arguments, || path.exists());
            let before = check_interrupted(folder.path());
            assert!(before.is_some(), "{command}, {name}");
            if folder.path().join("r.html").exists() {
                refuse(folder.path(), &arguments, "out.csv exists");
            } else {
                succeed(folder.path(), &arguments);
            }
            check_finished(folder.path(), before.as_ref());
            assert!(folder.path().join("r.html").is_file());
        }
    }
}

/// On a busy machine, a run may write several batches before it is killed. Then the test starts another run.
#[test]
fn run_that_is_killed_after_each_batch_continues_each_time() {
    let partial = (0..50).any(|_| kill_after_each_batch() > 0);
    assert!(partial, "no run was killed between two batches");
}

/// Kills one run again and again, each time behind the next write of its releases, until it is finished. Returns how often
/// it was killed between two batches.
fn kill_after_each_batch() -> usize {
    let folder = folder(wide(400, 0), WIDE);
    let arguments = confirmed("local", &["--epsilon", "4"]);
    let path = folder.path().join("out.releases.json");
    let mut before = Value::Null;
    let mut partial = 0;
    while before["finished"] != true {
        let old = fs::read(&path).ok();
        kill_when(folder.path(), &arguments, || fs::read(&path).ok() != old);
        let now = check_interrupted(folder.path()).unwrap();
        let made = |file: &Value| file["releases"].as_array().cloned().unwrap_or_default();
        let (earlier, later) = (made(&before), made(&now));
        assert!(later.starts_with(&earlier), "a release was made twice");
        partial += usize::from(!earlier.is_empty() && later.len() > earlier.len());
        before = now;
    }
    if !folder.path().join("out.csv").exists() {
        succeed(folder.path(), &arguments);
    }
    check_finished(folder.path(), Some(&before));
    partial
}

/// Runs the command with a limit to the size of each file, which is exceeded like the space of a disk.
#[cfg(unix)]
/// No output of these tests is larger.
const MAX_KILOBYTES: u32 = 4_000;

fn with_file_limit(folder: &Path, kilobytes: u32, arguments: &[&str]) -> Output {
    // The program gets an error instead of a signal. The unit of ulimit is 512 or 1024 bytes.
    let line = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
    let arguments = [&["-c", &line, env!("CARGO_BIN_EXE_fhaim")], arguments].concat();
    command::run("bash", folder, &arguments)
}

/// The limit is raised until the run is finished, so that every write fails once.
#[cfg(unix)]
#[test]
fn full_disk_at_any_write_loses_no_release() {
    for (command, mechanism, step) in [
        ("local", "staged", 2),
        ("run", "staged", 8),
        ("local", "aim", 2),
    ] {
        let folder = folder(wide(200, 0), WIDE);
        let more = ["--epsilon", "4", "--mechanism", mechanism, "--rows", "9000"];
        let arguments = confirmed(command, &more);
        let mut before: Option<Value> = None;
        let mut failures = 0;
        for kilobytes in (0..MAX_KILOBYTES).step_by(step) {
            let output = with_file_limit(folder.path(), kilobytes, &arguments);
            let now = check_interrupted(folder.path());
            if let (Some(before), Some(now)) = (&before, &now) {
                let [before, now] = [before, now].map(|file| file["releases"].as_array().unwrap());
                assert!(now.starts_with(before), "a release was made twice");
            }
            before = now;
            if output.status.success() {
                break;
            }
            failures += 1;
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            let says = stderr(&output).contains("Run the same command again to continue");
            let has_releases = before
                .as_ref()
                .is_some_and(|file| file["releases"] != json!([]));
            assert_eq!(says, has_releases, "{}", stderr(&output));
            let hidden = |name: &String| name.starts_with('.');
            assert!(!names(folder.path()).iter().any(hidden), "a rest of a file");
        }
        assert!(failures > 3, "{command}, {mechanism}: {failures}");
        check_finished(folder.path(), before.as_ref());
    }
}

#[cfg(unix)]
#[test]
fn failed_write_says_how_to_continue() {
    let folder = folder(wide(200, 0), WIDE);
    let arguments = confirmed("local", &["--epsilon", "4", "--report", "/dev/full"]);
    let output = fhaim(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(
        told.contains("/dev/full: No space left on device"),
        "{told}"
    );
    assert!(
        told.contains("out.releases.json has the releases"),
        "{told}"
    );
    assert!(
        told.contains("Run the same command again to continue"),
        "{told}"
    );
    check_finished(folder.path(), None);
}

/// A table that goes to a device cannot be read again. Everything else is kept.
#[cfg(unix)]
#[test]
fn model_is_kept_if_the_table_cannot_be_written() {
    let folder = folder(wide(200, 0), WIDE);
    let line = "local --data t.csv --schema t.schema.json --epsilon 4 --out";
    let to = |out| -> Vec<&str> { line.split(' ').chain([out]).collect() };
    let output = fhaim(folder.path(), &to("/dev/full"));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let written = fs::read(folder.path().join("fhaim.model")).unwrap();
    let output = fhaim(folder.path(), &to("-"));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stdout.starts_with(b"a,b,c,d,e,f\n"));
    assert_eq!(history(folder.path()).len(), 1);
    assert_eq!(
        fs::read(folder.path().join("fhaim.model")).unwrap(),
        written
    );
}

#[cfg(unix)]
#[test]
fn table_can_go_to_a_pipe() {
    let folder = folder(wide(200, 0), WIDE);
    let line = "mkfifo pipe; cat pipe > got.csv & \"$0\" local --data t.csv --schema t.schema.json --epsilon 4 \
                --out pipe && wait || { kill $!; exit 1; }";
    let output = command::run(
        "sh",
        folder.path(),
        &["-c", line, env!("CARGO_BIN_EXE_fhaim")],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let got = fs::read_to_string(folder.path().join("got.csv")).unwrap();
    assert!(got.starts_with("a,b,c,d,e,f\n") && got.lines().count() > 100);
    assert!(folder.path().join("fhaim.releases.json").is_file());
    assert!(folder.path().join("fhaim.model").is_file());
}

#[test]
fn finished_run_is_not_repeated_without_force() {
    for command in ["local", "run"] {
        let folder = folder(table(100), SCHEMA);
        let arguments = confirmed(command, &["--epsilon", "1"]);
        succeed(folder.path(), &arguments);
        let files = ["out.csv", "out.model", "out.releases.json"];
        let read = || files.map(|name| fs::read(folder.path().join(name)).unwrap());
        let written = read();
        refuse(
            folder.path(),
            &arguments,
            "out.csv exists: choose another name, or replace it with --force",
        );
        assert_eq!(read(), written);
        assert_eq!(history(folder.path()).len(), 1);
        succeed(folder.path(), &[&arguments[..], &["--force"]].concat());
        assert!(
            read()
                .iter()
                .zip(&written)
                .all(|(now, before)| now != before)
        );
        assert_eq!(history(folder.path()).len(), 2);
    }
}

#[test]
fn missing_outputs_are_written_again_without_cost() {
    for command in ["local", "run"] {
        let folder = folder(table(100), SCHEMA);
        let arguments = confirmed(command, &["--epsilon", "1", "--report", "r.html"]);
        succeed(folder.path(), &arguments);
        let at = |name: &str| folder.path().join(name);
        let model = fs::read(at("out.model")).unwrap();
        let table = fs::read(at("out.csv")).unwrap();
        let before = releases(folder.path());
        for missing in [
            &["out.csv"][..],
            &["out.model"],
            &["r.html"],
            &["out.model", "out.csv", "r.html"],
        ] {
            for name in missing {
                fs::remove_file(at(name)).unwrap();
            }
            let told = succeed(folder.path(), &arguments);
            assert!(told.contains("which cost nothing more"), "{told}");
            check_finished(folder.path(), Some(&before));
            assert_eq!(fs::read(at("out.model")).unwrap(), model, "{missing:?}");
            assert!(at("r.html").is_file());
        }
        // The report is of the table on disk, which is not drawn again.
        fs::write(at("out.csv"), &table).unwrap();
        fs::remove_file(at("r.html")).unwrap();
        succeed(folder.path(), &arguments);
        assert_eq!(fs::read(at("out.csv")).unwrap(), table);
    }
}

#[test]
fn model_that_cannot_be_made_again_is_missed() {
    let folder = folder(table(100), SCHEMA);
    let arguments = confirmed("local", &["--epsilon", "1", "--mechanism", "aim"]);
    succeed(folder.path(), &arguments);
    fs::remove_file(folder.path().join("out.csv")).unwrap();
    succeed(folder.path(), &arguments);
    check_finished(folder.path(), None);
    fs::remove_file(folder.path().join("out.model")).unwrap();
    refuse(
        folder.path(),
        &arguments,
        "the model of this run is missing",
    );
}

/// The schema fits, so that only the releases file tells which model is the run's.
#[test]
fn model_of_another_run_is_refused() {
    let folder = folder(wide(200, 0), WIDE);
    let path = folder.path();
    let arguments = confirmed("local", &["--epsilon", "4"]);
    succeed(path, &arguments);
    let own = fs::read(path.join("out.model")).unwrap();
    fs::write(path.join("t.csv"), wide(200, 2)).unwrap();
    let line = "local --data t.csv --schema t.schema.json --epsilon 1 --yes --out other.csv";
    succeed(path, &line.split(' ').collect::<Vec<_>>());
    fs::write(path.join("t.csv"), wide(200, 0)).unwrap();
    fs::rename(path.join("other.model"), path.join("out.model")).unwrap();
    fs::remove_file(path.join("out.csv")).unwrap();
    refuse(path, &arguments, "is not the model of this run");
    assert!(!path.join("out.csv").exists());
    fs::remove_file(path.join("out.model")).unwrap();
    succeed(path, &arguments);
    assert_eq!(fs::read(path.join("out.model")).unwrap(), own);
}

/// The command that continues asks for another number of records than the one that wrote the table.
#[test]
fn card_of_a_continued_run_states_the_records_of_the_written_table() {
    for out in ["out.csv", "out.parquet"] {
        let folder = folder(wide(200, 0), WIDE);
        let path = folder.path();
        let line =
            format!("local --data t.csv --schema t.schema.json --epsilon 4 --yes --out {out}");
        let arguments: Vec<&str> = line.split(' ').collect();
        succeed(path, &[&arguments[..], &["--rows", "70"]].concat());
        fs::remove_file(path.join("out.card.json")).unwrap();
        succeed(path, &arguments);
        let card: Value =
            serde_json::from_slice(&fs::read(path.join("out.card.json")).unwrap()).unwrap();
        assert_eq!(card["distribution"][0]["fhaim:records"], 70, "{out}");
    }
}

/// The Parquet table has numbers and dates, and the schema their form as text.
#[test]
fn missing_report_of_a_parquet_table_is_made_from_it() {
    let schema = r#"{"name": "t", "columns": [
        {"name": "price", "kind": "number", "decimals": 2, "decimal_comma": true, "min": 0, "max": 100, "bins": 10},
        {"name": "day", "kind": "date", "format": "%d.%m.%Y", "min": "2024-01-01", "max": "2024-12-31", "bins": 12}]}"#;
    let row = |i: usize| format!("{},{:02};{:02}.03.2024\n", i % 97, i % 100, 1 + i % 28);
    let csv: String = (0..300).map(row).collect();
    let folder = folder(format!("price;day\n{csv}"), schema);
    let path = folder.path();
    let line = "local --data t.csv --schema t.schema.json --epsilon 4 --yes --out out.parquet --report r.html";
    let arguments: Vec<&str> = line.split(' ').collect();
    succeed(path, &arguments);
    fs::remove_file(path.join("r.html")).unwrap();
    succeed(path, &arguments);
    let page = fs::read_to_string(path.join("r.html")).unwrap();
    assert!(page.contains("price"), "{page}");
}

/// `fhaim schema infer 2>&1 | head -1` closes standard error after a line.
#[cfg(unix)]
#[test]
fn closed_standard_error_stops_no_command() {
    let folder = folder(table(100), SCHEMA);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fhaim"));
    command.args(["schema", "infer", "--data", "t.csv", "--out", "draft.json"]);
    command.current_dir(folder.path()).stdin(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(folder.path().join("draft.json").is_file());
}

/// Makes a run that has some, but not all of its releases: the disk is full at a later one. Returns its releases file.
#[cfg(unix)]
fn partial(folder: &Path, arguments: &[&str]) -> Value {
    for kilobytes in 0..MAX_KILOBYTES {
        with_file_limit(folder, kilobytes, arguments);
        if let Some(found) = check_interrupted(folder)
            && !found["releases"].as_array().unwrap().is_empty()
        {
            assert_eq!(found["finished"], false);
            return found;
        }
    }
    panic!("the run has no releases");
}

#[cfg(unix)]
#[test]
fn run_continues_only_with_its_own_request_and_records() {
    let folder = folder(wide(100, 0), WIDE);
    let arguments = confirmed("local", &["--epsilon", "4"]);
    let before = partial(folder.path(), &arguments);
    let path = folder.path();
    for (other, says) in [
        (
            confirmed("local", &["--epsilon", "2"]),
            "epsilon is 4.0 there, and 2.0 here",
        ),
        (
            confirmed("run", &["--epsilon", "4"]),
            r#"command is "local" there, and "run" here"#,
        ),
        (
            confirmed("local", &["--epsilon", "4", "--holders", "2"]),
            "holders is 1 there, and 2 here",
        ),
    ] {
        refuse(path, &other, says);
        refuse(path, &other, "start a new run with --force");
    }
    fs::rename(path.join("t.csv"), path.join("u.csv")).unwrap();
    fs::write(path.join("t.csv"), wide(100, 2)).unwrap();
    refuse(path, &arguments, "its releases are of other records");
    fs::rename(path.join("u.csv"), path.join("t.csv")).unwrap();

    fs::rename(path.join(CONFIG), path.join("kept")).unwrap();
    refuse(path, &arguments, "continue it where it began");
    fs::remove_dir_all(path.join(CONFIG)).unwrap();
    fs::rename(path.join("kept"), path.join(CONFIG)).unwrap();

    assert_eq!(releases(path), before);
    succeed(path, &arguments);
    check_finished(path, Some(&before));
}

#[cfg(unix)]
#[test]
fn changed_releases_are_refused() {
    let folder = folder(wide(100, 0), WIDE);
    let arguments = confirmed("local", &["--epsilon", "4"]);
    let path = folder.path().join("out.releases.json");
    partial(folder.path(), &arguments);
    let old = fs::read_to_string(&path).unwrap();
    let damaged = ["", "{}", &old[..old.len() / 2], "table,of,numbers\n1,2,3\n"];
    for text in damaged {
        fs::write(&path, text).unwrap();
        refuse(
            folder.path(),
            &arguments,
            "it is not the releases file of a run, or is damaged",
        );
    }
    fs::write(&path, old.replacen("\"values\":[", "\"values\":[1", 1)).unwrap();
    refuse(
        folder.path(),
        &arguments,
        "it was changed, or is an older copy",
    );
    fs::write(&path, &old).unwrap();
    succeed(folder.path(), &arguments);

    // An older copy: the run would make releases again with new noise.
    fs::write(&path, &old).unwrap();
    for name in ["out.csv", "out.model", "out.card.html", "out.card.json"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    refuse(
        folder.path(),
        &arguments,
        "it was changed, or is an older copy",
    );
    assert_eq!(history(folder.path()).len(), 1);
}

/// Collects the states of the file during a run, and puts each of them back.
#[cfg(unix)]
#[test]
fn copies_of_all_earlier_states_are_refused() {
    let folder = folder(wide(400, 0), WIDE);
    let arguments = confirmed("local", &["--epsilon", "4"]);
    let path = folder.path().join("out.releases.json");
    let copies = std::cell::RefCell::new(Vec::new());
    kill_when(folder.path(), &arguments, || {
        let state = fs::read(&path).unwrap_or_default();
        let mut copies = copies.borrow_mut();
        if !state.is_empty() && copies.last() != Some(&state) {
            copies.push(state);
        }
        false
    });
    check_finished(folder.path(), None);
    let mut copies = copies.into_inner();
    copies.retain(|state| {
        let file: Value = serde_json::from_slice(state).unwrap();
        file["releases"] != json!([]) && *state != fs::read(&path).unwrap()
    });
    assert!(copies.len() > 2, "{} states were seen", copies.len());
    for name in ["out.csv", "out.model", "out.card.html", "out.card.json"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    for state in copies.iter().rev() {
        fs::write(&path, state).unwrap();
        refuse(
            folder.path(),
            &arguments,
            "it was changed, or is an older copy",
        );
    }
}

#[cfg(unix)]
#[test]
fn two_programs_do_not_continue_one_run() {
    let folder = folder(wide(100, 0), WIDE);
    let arguments = confirmed("local", &["--epsilon", "4"]);
    partial(folder.path(), &arguments);
    let file = fs::File::open(folder.path().join("out.releases.json")).unwrap();
    file.try_lock().unwrap();
    refuse(
        folder.path(),
        &arguments,
        "another program is working on this run",
    );
    let forced = [&arguments[..], &["--force"]].concat();
    refuse(
        folder.path(),
        &forced,
        "another program is working on this run",
    );
    drop(file);
    succeed(folder.path(), &arguments);
}

/// A run that released nothing costs nothing, so its file is in nobody's way.
#[test]
fn file_without_releases_is_replaced() {
    let folder = killed_at_its_beginning(100, &confirmed("run", &["--epsilon", "4"]));
    succeed(folder.path(), &confirmed("local", &["--epsilon", "2"]));
    check_finished(folder.path(), None);
}

/// Returns a folder with the file of a run over this number of records that has no releases, because it was killed before
/// the first one. On a busy machine, a run may release something before it is killed. Then another one is started.
fn killed_at_its_beginning(records: usize, arguments: &[&str]) -> TempDir {
    for _ in 0..50 {
        let folder = folder(wide(records, 0), WIDE);
        let path = folder.path().join("out.releases.json");
        kill_when(folder.path(), arguments, || path.exists());
        if releases(folder.path())["releases"] == json!([]) {
            return folder;
        }
    }
    panic!("no run was killed before its first release");
}

/// Keeps only a copy of the file that a run had at its beginning.
fn only_the_beginning(folder: &Path, beginning: &[u8]) {
    for name in names(folder) {
        if name.starts_with("out.") {
            fs::remove_file(folder.join(name)).unwrap();
        }
    }
    fs::write(folder.join("out.releases.json"), beginning).unwrap();
}

/// The run of the copy makes other releases, whose cost adds to the first one's.
#[test]
fn copied_file_without_releases_begins_a_new_run() {
    let unconfirmed = first_use("local", &["--epsilon", "4"]);
    let arguments = confirmed("local", &["--epsilon", "4"]);
    let folder = killed_at_its_beginning(400, &arguments);
    let path = folder.path();
    let beginning = fs::read(path.join("out.releases.json")).unwrap();
    succeed(path, &arguments);
    check_finished(path, None);
    only_the_beginning(path, &beginning);
    refuse(path, &unconfirmed, "these records were used before");
    succeed(path, &arguments);
    assert_eq!(history(path).len(), 2);
    // Other records do not take the first run's place in the history.
    only_the_beginning(path, &beginning);
    fs::write(path.join("t.csv"), wide(400, 2)).unwrap();
    succeed(path, &arguments);
    assert_eq!(history(path).len(), 3);
}

/// Commands that make no releases keep existing files as well.
#[test]
fn existing_outputs_are_replaced_only_with_force() {
    let folder = folder(table(100), SCHEMA);
    succeed(folder.path(), &confirmed("local", &["--epsilon", "1"]));
    for line in [
        "sample --model out.model --schema t.schema.json --out kept",
        "evaluate --real t.csv --synthetic out.csv --schema t.schema.json --out kept",
        "schema infer --data t.csv --out kept",
        "local --data t.csv --schema t.schema.json --epsilon 1 --yes --out kept",
        "local --data t.csv --schema t.schema.json --epsilon 1 --yes --out new.csv --report kept",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        let kept = folder.path().join("kept");
        fs::write(&kept, "kept").unwrap();
        let says = "kept exists: choose another name, or replace it with --force";
        refuse(folder.path(), &arguments, says);
        assert_eq!(fs::read(&kept).unwrap(), b"kept");
        assert!(!folder.path().join("new.csv").exists());
        succeed(folder.path(), &[&arguments[..], &["--force"]].concat());
        assert_ne!(fs::read(&kept).unwrap(), b"kept");
    }
}

/// Nobody can make a file in `/sys`, not even the superuser.
#[cfg(target_os = "linux")]
#[test]
fn folder_without_write_access_is_refused_before_any_release() {
    let folder = folder(table(100), SCHEMA);
    let line = "local --data t.csv --schema t.schema.json --epsilon 1 --out /sys/out.csv";
    let output = fhaim(folder.path(), &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("/sys/out.csv: "), "{told}");
    assert!(history(folder.path()).is_empty());
}
