//! Notices and questions of the command before it spends budget.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use fhaim_kit::{Backing, Services};

use super::PROGRAM;

fn create<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let table = ["--schema", "t.schema.json", "--data", "t.csv"];
    [
        &["dataset", "create"],
        &table[..],
        &["--epsilon", "1"],
        more,
    ]
    .concat()
}

/// Runs the command in a terminal that `script` of util-linux makes, and types an answer. Returns its output, and
/// whether it succeeded.
fn at_a_terminal(services: &Services, arguments: &str, answer: &str) -> (String, bool) {
    let command = format!("{} {arguments}", PROGRAM);
    let child = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(services.folder.path())
        .env_remove("FHAIM_MEMORY_DIR")
        .env("FHAIM_CONFIG_DIR", services.folder.path().join("ana"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("`script` of util-linux must be installed");
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{answer}").unwrap();
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    (shown, output.status.success())
}

/// The command tells the holder which dataset already has the records, and the total cost with the new one.
#[test]
#[ignore = "needs script"]
fn second_dataset_over_the_same_records_shows_the_total_cost() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let said = |arguments: &[&str]| {
        let output = services.command("ana", arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{told}");
        (String::from_utf8(output.stdout).unwrap(), told)
    };
    let quiet = |arguments: &[&str]| said(&[&["--quiet"], arguments].concat());
    let (first, told) = quiet(&create(&[]));
    assert_eq!(told, "");
    let first = first.trim();
    let upload = ["dataset", "upload", first, "--data", "t.csv", "--yes"];
    assert_eq!(quiet(&upload).1, "");

    // Without a terminal, the command stops.
    let output = services.command("ana", &create(&[]));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told.contains("to use them again without a question, add --yes"),
        "{told}"
    );
    let (second, told) = quiet(&create(&["--yes"]));
    assert!(told.contains(&format!("dataset {first} at http")), "{told}");
    // The notice ends with the epsilon and delta of all uses, including this one.
    let (_, together) = told.rsplit_once("epsilon ").unwrap();
    let (epsilon, _) = together.split_once(" at delta").unwrap();
    let epsilon: f64 = epsilon.parse().unwrap();
    assert!(epsilon > 1.2 && epsilon < 2.0, "{told}");
    let second = second.trim();
    let (_, told) = quiet(&["dataset", "upload", second, "--data", "t.csv", "--yes"]);
    assert!(told.contains(first) && !told.contains(second), "{told}");

    // At a terminal the command asks, and creates nothing if the answer is no.
    let arguments = create(&[]).join(" ");
    let (shown, well) = at_a_terminal(&services, &arguments, "n");
    assert!(shown.contains("[y/N]") && !well, "{shown}");
    let datasets = services.json("ana", &["dataset", "list"]);
    assert_eq!(datasets.as_array().unwrap().len(), 2);
    let arguments = create(&["--yes"]).join(" ");
    let (shown, well) = at_a_terminal(&services, &arguments, "");
    assert!(well && !shown.contains("[y/N]"), "{shown}");
}

/// A dataset that another machine uploaded may have the same records, but this machine has no record of it.
#[test]
fn unknown_dataset_with_the_same_schema_is_mentioned() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let first = services.dataset("ana", &[]);
    let unfinished = services.create("ana", &[]);
    let told = |more: &[&str]| {
        let output = services.command("ana", &[&["--quiet"], &create(more)[..]].concat());
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let remembered = told(&["--yes"]);
    assert!(!remembered.contains("with this schema"), "{remembered}");
    for file in ["memory.json", "memory.key"] {
        std::fs::remove_file(services.folder.path().join("ana").join(file)).unwrap();
    }
    let unknown = told(&[]);
    assert!(
        unknown.contains("1 other dataset with this schema") && unknown.contains(&first),
        "{unknown}"
    );
    assert!(!unknown.contains(&unfinished), "{unknown}");
}

/// A dataset that was deleted before its first run does not count, and one with a run does.
#[test]
fn deleted_dataset_counts_only_if_it_had_a_run() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let made = || {
        let dataset = services.run("ana", &create(&[])).trim().to_owned();
        services.run("ana", &["dataset", "upload", &dataset, "--data", "t.csv"]);
        dataset
    };
    let unused = made();
    services.run("ana", &["dataset", "delete", &unused, "--yes"]);
    let used = made();
    services.run("ana", &["job", "run", &used, "--watch"]);
    services.run("ana", &["dataset", "delete", &used, "--yes"]);
    let stopped = services.command("ana", &create(&[]));
    let told = String::from_utf8(stopped.stderr).unwrap();
    assert_eq!(stopped.status.code(), Some(2), "{told}");
    assert!(told.contains(&used) && !told.contains(&unused), "{told}");
}

/// Without a terminal, the first run of a dataset starts, and others need `--yes`.
#[test]
fn second_run_of_a_dataset_stops_a_script() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.create("ana", &["--runs", "2"]);
    services.run("ana", &["dataset", "upload", &dataset, "--data", "t.csv"]);
    let run = ["job", "run", &dataset, "--watch"];
    services.run("ana", &run);
    let stopped = services.command("ana", &run);
    let told = String::from_utf8(stopped.stderr).unwrap();
    assert_eq!(stopped.status.code(), Some(2), "{told}");
    assert!(told.contains("add --yes"), "{told}");
    let jobs = services.json("ana", &["job", "list", &dataset]);
    assert_eq!(jobs.as_array().unwrap().len(), 1);
    services.run("ana", &[&run[..], &["--yes"]].concat());
}

/// At a terminal, the command shows the cost of a run and the runs left, and asks for confirmation.
#[test]
#[ignore = "needs script"]
fn run_asks_before_it_spends() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.create("ana", &["--runs", "2"]);
    services.run(
        "ana",
        &["dataset", "upload", &dataset, "--data", "t.csv", "--yes"],
    );
    let jobs = || {
        let jobs = services.json("ana", &["job", "list", &dataset]);
        jobs.as_array().unwrap().len()
    };
    let run = format!("job run {dataset}");
    let (shown, well) = at_a_terminal(&services, &run, "n");
    assert!(shown.contains("spends at most rho"), "{shown}");
    assert!(shown.contains("2 runs left of 2"), "{shown}");
    assert!(!well && jobs() == 0, "{shown}");
    let (shown, well) = at_a_terminal(&services, &run, "y");
    assert!(well && jobs() == 1, "{shown}");
    let (shown, well) = at_a_terminal(&services, &format!("{run} --yes"), "");
    assert!(
        well && jobs() == 2 && !shown.contains("Start the run?"),
        "{shown}"
    );
}
