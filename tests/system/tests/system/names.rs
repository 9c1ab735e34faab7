//! Names of datasets and notes of jobs.

use fhaim_kit::{Backing, Services};

use super::PROGRAM;

#[test]
fn owner_renames_dataset_and_notes_job() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    services.sign_up("ben");
    let dataset = services.create("ana", &["--runs", "2"]);
    services.run(
        "ana",
        &["dataset", "upload", &dataset, "--data", "t.csv", "--yes"],
    );
    services.run("ana", &["dataset", "rename", &dataset, "Admissions 2026"]);
    let shown = services.json("ana", &["dataset", "show", &dataset]);
    assert_eq!(shown["name"], "Admissions 2026");
    // Jobs still run, because data is bound to the dataset's terms and not to its name.
    let job = services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let job = job.lines().next().unwrap();
    let noted = services.run("ana", &["job", "note", job, "fewer columns"]);
    assert!(noted.contains("(fewer columns)"), "{noted}");
    let listed = services.run("ana", &["job", "list", &dataset]);
    assert!(listed.contains("(fewer columns)"), "{listed}");
    services.run("ana", &["job", "note", job, ""]);
    let bare = services.json("ana", &["job", "show", job]);
    assert!(bare.get("note").is_none(), "{bare}");
    for closed in [
        ["dataset", "rename", &dataset, "mine"],
        ["job", "note", job, "mine"],
    ] {
        assert!(!services.command("ben", &closed).status.success());
    }
    services.run("ana", &["verify", &dataset, "--data", "t.csv"]);
}
