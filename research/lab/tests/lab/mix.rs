//! Tests of `fhaim-lab mix`, for tables and images.

use std::{fs, process::Command};

use crate::{CONFIG, PROGRAM, folder, lab, names, stderr};

/// The schema of two columns and a class. The second column depends on the class.
const CLASSED: &str = r#"{"name":"t","target":"c","columns":[
    {"name":"a","kind":"categorical","categories":["x","y","z"]},
    {"name":"b","kind":"categorical","categories":["p","q"]},
    {"name":"c","kind":"categorical","categories":["no","yes"]}]}"#;

fn classed(records: usize) -> String {
    let line = |n: usize| {
        let class = ["no", "yes"][n % 2];
        let follows = ["p", "q"][n % 2];
        format!("{},{follows},{class}\n", ["x", "y", "z"][n % 3])
    };
    let lines: String = (0..records).map(line).collect();
    format!("a,b,c\n{lines}")
}

fn mix<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let files = [
        "mix",
        "--data",
        "t.csv",
        "--schema",
        "t.schema.json",
        "--out",
        "s.csv",
    ];
    [&files[..], more].concat()
}

#[test]
fn mixes_preserve_dependence_on_the_class() {
    let folder = folder(classed(400), CLASSED);
    let groups = ["--mix", "20", "--epsilon", "50", "--capacity", "200"];
    let encrypted = [&groups[..], &["--encrypted"]].concat();
    let cda = [
        "--mix",
        "8",
        "--epsilon",
        "50",
        "--delta",
        "1e-5",
        "--method",
        "dp-cda",
    ];
    let shared = [&cda[..], &["--parties", "4"]].concat();
    let conventional = [&shared[..], &["--noise", "conventional"]].concat();
    let correlated = [&shared[..], &["--noise", "correlated"]].concat();
    let ways = [
        &groups[..],
        &encrypted,
        &cda,
        &shared,
        &conventional,
        &correlated,
    ];
    for more in ways {
        let run = lab(folder.path(), &mix(&[more, &["--yes", "--json"]].concat()));
        assert!(run.status.success(), "{more:?}: {}", stderr(&run));
        let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        match summary["rho_spent"].as_f64() {
            // With values counted in units of 1, less than half of this budget could be spent.
            Some(spent) => {
                let budget = fhaim_dp::accounting::rho(50.0, 1e-9).unwrap().to_f64();
                assert!(spent <= budget && spent > 0.9 * budget, "{summary}");
            }
            None => assert!(
                summary["epsilon_spent"].as_f64().unwrap() <= 50.0,
                "{summary}"
            ),
        }
        let synthetic = fs::read_to_string(folder.path().join("s.csv")).unwrap();
        let records = synthetic.lines().skip(1);
        let follows = records
            .clone()
            .filter(|l| l.ends_with("p,no") || l.ends_with("q,yes"));
        let share = follows.count() as f64 / records.clone().count() as f64;
        assert!(share > 0.7, "{more:?}: {share}");
        assert_eq!(
            summary["records"].as_u64().unwrap() as usize,
            records.count()
        );
        fs::remove_file(folder.path().join("s.csv")).unwrap();
    }
}

/// Returns an IDX file of bytes.
fn idx(sizes: &[u32], values: &[u8]) -> Vec<u8> {
    let sizes_in_bytes = sizes.iter().flat_map(|size| size.to_be_bytes());
    let head = [0, 0, 8, sizes.len() as u8].into_iter();
    head.chain(sizes_in_bytes)
        .chain(values.iter().copied())
        .collect()
}

/// There are five images of each of ten classes, and a fifth of all images is for testing. The seed decides whether
/// every class keeps three images.
#[test]
fn bench_continues_after_a_seed_that_is_refused() {
    let folder = folder("", CLASSED);
    let labels: Vec<u8> = (0..50).map(|n| n % 10).collect();
    let images: Vec<u8> = labels.iter().map(|label| 25 * label).collect();
    let write = |name: &str, bytes| fs::write(folder.path().join(name), bytes).unwrap();
    write("mnist-images.idx3", idx(&[50, 1, 1], &images));
    write("mnist-labels.idx1", idx(&[50], &labels));
    let bench = "bench mix --mix 3 --epsilon 20 --parties 1 --seeds 6 --json --quiet";
    let run = Command::new(PROGRAM)
        .args(bench.split_whitespace())
        .env("FHAIM_DATA_DIR", folder.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", stderr(&run));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&run.stdout).unwrap();
    // Five ways, without noise and at epsilon 20.
    assert_eq!(rows.len(), 10);
    for row in &rows {
        let count = |what: &str| row[what].as_u64().unwrap();
        assert_eq!(count("seeds") + count("refused"), 6, "{row}");
        assert_eq!(row["accuracy"].is_null(), count("seeds") == 0, "{row}");
    }
    let central = &rows[0];
    assert!(central["way"] == "central" && central["epsilon"].is_null());
    assert!(central["seeds"].as_u64().unwrap() > 0, "{central}");
    assert!(central["refused"].as_u64().unwrap() > 0, "{central}");
}

#[test]
fn images_are_mixed_to_images() {
    let folder = folder("", CLASSED);
    let images: Vec<u8> = (0..60u8)
        .flat_map(|n| [255 * (n % 2), 128, 255 - 255 * (n % 2), 0])
        .collect();
    fs::write(folder.path().join("i"), idx(&[60, 2, 2], &images)).unwrap();
    let labels: Vec<u8> = (0..60).map(|n| n % 2).collect();
    fs::write(folder.path().join("l"), idx(&[60], &labels)).unwrap();
    let files = [
        "mix",
        "--images",
        "i",
        "--labels",
        "l",
        "--classes",
        "2",
        "--out",
        "si",
    ];
    let budget = ["--mix", "10", "--epsilon", "1000", "--capacity", "30"];
    let all = [&files[..], &budget, &["--out-labels", "sl"]].concat();
    let run = lab(folder.path(), &all);
    assert!(run.status.success(), "{}", stderr(&run));
    let mixed = fs::read(folder.path().join("si")).unwrap();
    let labels = fs::read(folder.path().join("sl")).unwrap();
    assert_eq!((mixed.len(), labels.len()), (16 + 6 * 4, 8 + 6));
    for (image, label) in mixed[16..].chunks(4).zip(&labels[8..]) {
        assert_eq!(image[0] > image[2], *label == 1, "{image:?} {label}");
    }
    let refused = |more: &[&str], says: &str| {
        let output = lab(folder.path(), &[&all[..], more].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    };
    refused(&["--clamp"], "do not work for images");
    let mut many = all.clone();
    many[6] = "257";
    let many = lab(folder.path(), &many);
    assert!(
        stderr(&many).contains("257 is not in 1..=256"),
        "{}",
        stderr(&many)
    );
    let without = lab(folder.path(), &[&files[..], &budget].concat());
    assert!(stderr(&without).contains("--out-labels"));
    fs::write(folder.path().join("i"), idx(&[60, 2, 2], &[])).unwrap();
    let broken = lab(folder.path(), &all);
    assert!(
        stderr(&broken).contains("not an IDX file of images"),
        "{}",
        stderr(&broken)
    );
}

#[test]
fn invalid_mixes_are_rejected_in_one_line() {
    let folder = folder(classed(40), CLASSED);
    let refused = |more: &[&str], says: &str| {
        let output = lab(folder.path(), &mix(more));
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(says), "{says:?} is not in: {errors}");
    };
    refused(&["--mix", "4", "--epsilon", "0"], "epsilon must be");
    refused(
        &["--mix", "4", "--epsilon", "1", "--parties", "2"],
        "use --method dp-cda",
    );
    refused(
        &[
            "--mix",
            "4",
            "--epsilon",
            "1",
            "--method",
            "dp-cda",
            "--encrypted",
        ],
        "must stay secret",
    );
    refused(
        &["--mix", "4", "--epsilon", "1", "--method", "other"],
        "choose groups or dp-cda",
    );
    refused(
        &["--mix", "21", "--epsilon", "1", "--method", "dp-cda"],
        "class 0 has 20 records, and a mix takes 21: mix at most 20\n",
    );
    refused(
        &[
            "--mix",
            "99999999999",
            "--epsilon",
            "1",
            "--method",
            "dp-cda",
        ],
        "class 0 has 20 records, and a mix takes 99999999999: mix at most 20\n",
    );
    refused(
        &["--mix", "99999999999", "--epsilon", "1"],
        "--mix 99999999999: a class has 32 places, so a mix can have from 1 to 32 records (see --capacity)\n",
    );
    let many = "9".repeat(300);
    refused(
        &["--mix", &many, "--epsilon", "1"],
        "a whole number from 1 to ",
    );
    refused(
        &["--mix", "4", "--epsilon", &many],
        "from 1e-9 to 1e9, not 1e300\n",
    );
    refused(
        &["--mix", "4", "--epsilon", "1", "--capacity", "8"],
        "more records than its 8 places",
    );
    refused(
        &[
            "--mix",
            "4",
            "--epsilon",
            "1",
            "--memberships",
            "4000000000",
        ],
        "times --memberships 4000000000 may be at most 16777216",
    );
    refused(
        &["--mix", "4", "--epsilon", "1", "--classes", "3"],
        "cannot be used with",
    );
    refused(
        &["--mix", "4", "--epsilon", "1", "--samples", "3"],
        "--samples need --method dp-cda",
    );
    let cda = ["--mix", "4", "--epsilon", "1", "--method", "dp-cda"];
    let with = |more: &[&'static str]| [&cda[..], more].concat();
    refused(
        &with(&["--memberships", "2"]),
        "--capacity need --method groups",
    );
    refused(
        &with(&["--samples", "18446744073709551615"]),
        "--samples 18446744073709551615: there can be at most 53687091 mixes of 5 features",
    );
    refused(
        &with(&["--parties", "18446744073709551615"]),
        "18446744073709551615 is not between 1 and the number of records, 40",
    );
    let alone = r#"{"name":"t","target":"c","columns":[
        {"name":"c","kind":"categorical","categories":["no","yes"]}]}"#;
    fs::write(folder.path().join("t.schema.json"), alone).unwrap();
    let ignoring = ["--mix", "4", "--epsilon", "1", "--ignore-columns"];
    refused(&ignoring, "no column except its target");
    assert!(!folder.path().join("s.csv").exists());
}

/// A budget that no noise keeps is refused before the usage history is reported. The message contains the least
/// sufficient budget, which is accepted.
#[test]
fn too_small_budget_is_rejected_with_the_least_sufficient_one() {
    let folder = folder(classed(40), CLASSED);
    for more in [
        &["--mix", "4"][..],
        &["--mix", "4", "--encrypted"],
        &["--mix", "4", "--method", "dp-cda", "--delta", "1e-5"],
    ] {
        let more = |epsilon| mix(&[more, &["--yes", "--quiet", "--epsilon", epsilon]].concat());
        let refused = lab(folder.path(), &more("1e-9"));
        let told = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        let (_, least) = told.split_once(" to ").unwrap();
        let (_, least) = least.rsplit_once("to ").unwrap_or(("", least));
        let least = least.split([',', '\n']).next().unwrap();
        let kept = lab(folder.path(), &more(least));
        assert!(kept.status.success(), "{told} {}", stderr(&kept));
    }
}

/// No output replaces an input or another output.
#[test]
fn outputs_cannot_replace_inputs_or_each_other() {
    let folder = folder(classed(40), CLASSED);
    fs::write(folder.path().join("i"), idx(&[40, 1, 1], &[9; 40])).unwrap();
    fs::write(folder.path().join("l"), idx(&[40], &[1; 40])).unwrap();
    let table = "mix --data t.csv --schema t.schema.json --out";
    let images = "mix --images i --labels l --out";
    for line in [
        &format!("{table} t.csv"),
        &format!("{table} ./t.schema.json"),
        &format!("{images} i --out-labels s"),
        &format!("{images} s --out-labels l"),
        &format!("{images} s --out-labels ./s"),
    ] {
        let line = format!("{line} --mix 4 --epsilon 10 --yes");
        let output = lab(folder.path(), &line.split(' ').collect::<Vec<_>>());
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(
            told.contains("is named both as an output and as another file"),
            "{told}"
        );
    }
    assert_eq!(names(folder.path()), ["i", "l", "t.csv", "t.schema.json"]);
}

/// Images and classes can be written to two pipes that are read one after the other. They can also be written to
/// standard output, where nothing else is printed then.
#[cfg(unix)]
#[test]
fn mixes_are_written_to_pipes_and_standard_output() {
    let folder = folder("", CLASSED);
    fs::write(folder.path().join("i"), idx(&[40, 1, 1], &[9; 40])).unwrap();
    fs::write(folder.path().join("l"), idx(&[40], &[1; 40])).unwrap();
    let files = "--images i --labels l --mix 4 --epsilon 10 --yes --quiet";
    // The command must not wait for both pipes at the same time, or it would hang.
    let script = format!(
        "mkfifo one two; (cat one > images; cat two > labels) & \
         timeout 20 \"$0\" mix {files} --out one --out-labels two && wait"
    );
    let run = fhaim_kit::command::run("sh", folder.path(), &["-c", &script, PROGRAM]);
    assert!(run.status.success(), "{}", stderr(&run));
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let (images, labels) = (read("images"), read("labels"));
    assert_eq!(
        (&images[..4], &labels[..4]),
        (&[0, 0, 8, 3][..], &[0, 0, 8, 1][..])
    );

    let line = format!("mix {files} --out /dev/stdout --out-labels labels");
    let run = lab(folder.path(), &line.split(' ').collect::<Vec<_>>());
    assert!(run.status.success(), "{}", stderr(&run));
    // A header of four numbers, then only one image per class.
    assert_eq!(run.stdout.len(), 16 + read("labels").len() - 8);
    assert!(stderr(&run).contains("labels") || stderr(&run).contains("/dev/stdout"));
}

/// DP-CDA is accounted for a replaced record. The epsilons and deltas of two runs are added.
#[test]
fn dp_cda_runs_add_up_for_a_replaced_record() {
    let folder = folder(classed(400), CLASSED);
    let cda = "--mix 4 --epsilon 20 --delta 1e-5 --method dp-cda --yes --quiet --json";
    let cda: Vec<&str> = cda.split_whitespace().collect();
    let run = || {
        let run = lab(folder.path(), &mix(&cda));
        assert!(run.status.success(), "{}", stderr(&run));
        let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        (summary["epsilon_spent"].as_f64().unwrap(), stderr(&run))
    };
    let (spent, told) = run();
    assert_eq!(told, "");
    // The noise is rounded up to an integer scale, so a run costs slightly less than its budget.
    assert!((18.0..=20.0).contains(&spent), "{spent}");
    let (_, told) = run();
    let memory = fs::read(folder.path().join(CONFIG).join("memory.json")).unwrap();
    let memory: serde_json::Value = serde_json::from_slice(&memory).unwrap();
    assert_eq!(memory["uses"].as_array().unwrap().len(), 2);
    let kept = &memory["uses"][0];
    assert_eq!(
        (&kept["program"], &kept["unit"]),
        (&"fhaim-lab mix".into(), &"replaced".into())
    );
    let up = |epsilon: f64| (1000.0 * epsilon).ceil() / 1000.0;
    let both = format!(
        "for a record replaced: epsilon {:.3} at delta 1e-5 so far, epsilon {:.3} at delta 2e-5 with this use",
        up(spent),
        up(2.0 * spent)
    );
    assert!(told.contains(&both), "{both} is not in: {told}");
}

/// The usage history identifies a table by the content that came through the pipe.
#[cfg(unix)]
#[test]
fn records_from_a_pipe_are_recognised() {
    let folder = folder(classed(400), CLASSED);
    let piped = |records: usize| {
        fs::write(folder.path().join("t.csv"), classed(records)).unwrap();
        let script = "cat t.csv | \"$0\" mix --data /dev/stdin --schema t.schema.json --out s.csv --mix 20 --epsilon 50 \
                      --yes --quiet";
        let output = Command::new("sh")
            .args(["-c", script, PROGRAM])
            .env_remove("FHAIM_MEMORY_DIR")
            .env("FHAIM_CONFIG_DIR", folder.path().join(CONFIG))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert_eq!(piped(400), "");
    // Two more records leave most of them as they were.
    let told = piped(402);
    assert!(told.contains("of these records were used before"), "{told}");
    let again = lab(
        folder.path(),
        &mix(&["--mix", "20", "--epsilon", "50", "--yes", "--quiet"]),
    );
    assert!(stderr(&again).contains("these records were used before"));
}
