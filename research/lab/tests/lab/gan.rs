//! Tests of `fhaim-lab gan`: training, sampling, attacks, and refusals.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::{CONFIG, PROGRAM};
use fhaim_mix::idx::{Images, read_images, write_images, write_labels};

const SCHEMA: &str = r#"{"name":"t","target":"ill","columns":[
    {"name":"smokes","kind":"categorical","categories":["no","yes"]},
    {"name":"age","kind":"categorical","categories":["young","middle","old"]},
    {"name":"ill","kind":"categorical","categories":["no","yes"]}]}"#;

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .arg("gan")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("FHAIM_DATA_DIR")
        .env_remove("FHAIM_MEMORY_DIR")
        .env_remove("FHAIM_MEMORY_DIR")
        .env("FHAIM_CONFIG_DIR", folder.join(CONFIG));
    command
}

fn call(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().unwrap()
}

/// Runs a command that succeeds, and returns its standard error.
fn told(folder: &Path, arguments: &str) -> String {
    let output = call(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments}: {said}");
    said
}

/// Runs a command that succeeds, also over records that were used before, and returns its standard output.
fn done(folder: &Path, arguments: &str) -> String {
    let yes = if arguments.starts_with("train") {
        " --yes"
    } else {
        ""
    };
    let output = call(folder, &format!("{arguments}{yes}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &str, says: &str) {
    let output = call(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
    assert!(error.contains(says), "{arguments}: {error}");
}

/// Writes the parties' tables: old people smoke and are ill, others neither.
fn tables(folder: &Path) {
    fs::write(folder.join("s.json"), SCHEMA).unwrap();
    fs::create_dir(folder.join("parts")).unwrap();
    for party in 0..3 {
        let mut csv = String::from("smokes,age,ill\n");
        for record in 0..40 {
            let kind = ["no,young,no", "no,middle,no", "yes,old,yes"][(record + party) % 3];
            writeln!(csv, "{kind}").unwrap();
        }
        fs::write(folder.join(format!("parts/part-{party:03}.csv")), csv).unwrap();
    }
}

/// Images of four by four pixels with convolutions: networks of each kind of training are read, sampled and attacked.
#[test]
fn convolutions_learn_images() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let images = Images {
        rows: 4,
        columns: 4,
        pixels: (0..16 * 60)
            .map(|n| if n / 8 % 2 == 0 { 250 } else { 5 })
            .collect(),
    };
    let labels: Vec<u8> = (0..60).map(|n| n % 2).collect();
    fs::write(folder.join("i.idx3"), write_images(&images)).unwrap();
    fs::write(folder.join("l.idx1"), write_labels(&labels)).unwrap();
    let train = "train --images i.idx3 --labels l.idx1 --parties 2 --out g.bin --batch 10 --filters 4,8 --rate 2e-3";
    for method in ["dpgan --epsilon 10", "dp-fedprox --epsilon 64", "privgan"] {
        done(folder, &format!("{train} --steps 3 --method {method}"));
    }
    done(folder, &format!("{train} --steps 600 --method central"));
    done(folder, "sample g.bin --rows 40 --out drawn.idx3");
    let drawn = read_images(&fs::read(folder.join("drawn.idx3")).unwrap()).unwrap();
    // All images have two halves: bright above, dark below.
    let right = drawn.pixels.iter().enumerate();
    let right = right.filter(|&(n, &pixel)| (n / 8 % 2 == 0) == (pixel > 127));
    let share = right.count() as f64 / drawn.pixels.len() as f64;
    assert!(share > 0.9, "{share}");
    done(
        folder,
        "attack g.bin --members i.idx3 --others i.idx3 --drawn 50",
    );
}

#[test]
fn table_networks_are_trained_sampled_and_attacked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let train = "train --parts parts --schema s.json --out g.bin --batch 20 --hidden 32,32 --noise 8 --rate 2e-3";
    let said = done(folder, &format!("{train} --method central --steps 1500"));
    assert!(
        said.contains("1 pair of networks") && said.contains("no privacy"),
        "{said}"
    );
    done(
        folder,
        "sample g.bin --schema s.json --rows 600 --out drawn.csv",
    );
    let drawn = fs::read_to_string(folder.join("drawn.csv")).unwrap();
    let lines: Vec<&str> = drawn.lines().skip(1).collect();
    assert_eq!(lines.len(), 600);
    let share = |kind: &str| lines.iter().filter(|line| **line == kind).count() as f64 / 600.0;
    let shares = ["no,young,no", "no,middle,no", "yes,old,yes"].map(share);
    assert!(shares.iter().sum::<f64>() > 0.7, "{shares:?}");
    // Some networks draw a kind rarely.
    assert!(shares.iter().all(|&share| share > 0.01), "{shares:?}");
    let attacked = done(
        folder,
        "attack g.bin --schema s.json --members parts/part-000.csv --others parts/part-001.csv --drawn 500 --json",
    );
    let attacked: serde_json::Value = serde_json::from_str(&attacked).unwrap();
    assert_eq!(attacked["members"], 40);
    assert!(attacked["monte_carlo"]["found"].is_number());

    for (method, whose) in [
        ("dpgan", "for a record added or removed"),
        ("dp-fedavg", "for a party"),
        ("dp-fedprox", "for a party"),
    ] {
        let said = done(
            folder,
            &format!("{train} --method {method} --steps 5 --epsilon 8"),
        );
        assert!(
            said.contains(whose) && said.contains("at delta 0.00001"),
            "{said}"
        );
        let epsilon = said
            .split("epsilon ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        let epsilon: f64 = epsilon.parse().unwrap();
        assert!(epsilon <= 8.0 && epsilon > 7.9, "{said}");
    }
    for method in ["local", "privgan", "federated"] {
        let said = done(folder, &format!("{train} --method {method} --steps 5"));
        assert!(said.contains("no privacy"), "{said}");
    }
}

#[test]
fn image_networks_are_trained_sampled_and_attacked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let images = Images {
        rows: 3,
        columns: 4,
        pixels: (0..12 * 60)
            .map(|n| if n / 12 % 2 == 0 { 250 } else { 5 })
            .collect(),
    };
    let labels: Vec<u8> = (0..60).map(|n| n % 2).collect();
    fs::write(folder.join("i.idx3"), write_images(&images)).unwrap();
    fs::write(folder.join("l.idx1"), write_labels(&labels)).unwrap();
    let train =
        "train --images i.idx3 --labels l.idx1 --parties 4 --out g.bin --steps 20 --hidden 16";
    done(folder, &format!("{train} --rule qli --method local"));
    done(folder, "sample g.bin --rows 9 --out drawn.idx3");
    let drawn = read_images(&fs::read(folder.join("drawn.idx3")).unwrap()).unwrap();
    assert_eq!((drawn.rows, drawn.columns, drawn.len()), (3, 4, 9));
    done(
        folder,
        "attack g.bin --members i.idx3 --others i.idx3 --drawn 50",
    );
    let convolutions = "train --images i.idx3 --labels l.idx1 --out c.bin --steps 3 --parties 2";
    refused(
        folder,
        &format!("{convolutions} --method local --filters 4"),
        "cannot be halved",
    );
    refused(
        folder,
        &format!("{convolutions} --method local --filters 4 --hidden 4"),
        "cannot be used with",
    );
    refused(
        folder,
        &format!("{train} --rule cluster --method local"),
        "ns, dli, qs or qli",
    );
}

#[test]
fn invalid_requests_are_rejected_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let train = "train --parts parts --schema s.json --out g.bin --steps 3";
    refused(
        folder,
        &format!("{train} --method dpgan"),
        "dpgan needs --epsilon",
    );
    refused(
        folder,
        &format!("{train} --method local --epsilon 1"),
        "leave out --epsilon",
    );
    refused(
        folder,
        &format!("{train} --method dpgan --epsilon -1"),
        "epsilon",
    );
    refused(
        folder,
        &format!("{train} --method central --batch 0"),
        "batch",
    );
    refused(
        folder,
        "train --parts parts --method central --out g.bin",
        "--schema",
    );
    refused(
        folder,
        "sample s.json --out x.csv",
        "not a model of fhaim-gan",
    );
    refused(folder, "bench", "FHAIM_DATA_DIR");
    for missing in [
        "train --parts absent --schema s.json --method central --out g.bin",
        "train --parts parts --schema absent.json --method central --out g.bin",
        "sample absent.bin --out x.csv",
        "attack absent.bin --members x.csv --others x.csv",
    ] {
        refused(folder, missing, "No such file or directory");
    }
    refused(
        folder,
        &train.replace("--out g.bin", "--out parts --method central"),
        "parts is a folder: name a file in it",
    );
    // A full disk is a failure, not an invalid request.
    #[cfg(target_os = "linux")]
    {
        let full = train.replace("--out g.bin", "--out /dev/full --method central --hidden 4");
        assert_eq!(call(folder, &full).status.code(), Some(1));
    }
    fs::create_dir(folder.join("none")).unwrap();
    refused(
        folder,
        "train --parts none --schema s.json --method central --out g.bin",
        "fhaim-lab federate split",
    );
    done(folder, &format!("{train} --method central --hidden 4"));
    refused(folder, "sample g.bin --out x.csv", "--schema");
}

/// An output does not replace an input, even if the input has another name.
#[test]
fn no_output_replaces_an_input() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let kept = |name: &str| fs::read(folder.join(name)).unwrap();
    let (part, schema) = (kept("parts/part-000.csv"), kept("s.json"));
    let train = "train --parts parts --schema s.json --method central --steps 3 --hidden 4 --out";
    for input in ["parts/part-000.csv", "./parts/../s.json"] {
        refused(folder, &format!("{train} {input}"), "as another file");
    }
    done(folder, &format!("{train} g.bin"));
    let model = kept("g.bin");
    for input in ["g.bin", "s.json"] {
        let sample = format!("sample g.bin --schema s.json --out {input}");
        refused(folder, &sample, "as another file");
    }
    assert_eq!(kept("parts/part-000.csv"), part);
    assert_eq!((kept("s.json"), kept("g.bin")), (schema, model));
}

/// Output is written through links, and a target that is not a file is not replaced.
#[cfg(unix)]
#[test]
fn outputs_are_written_through_links() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    fs::create_dir(folder.join("kept")).unwrap();
    std::os::unix::fs::symlink("kept/g.bin", folder.join("g.bin")).unwrap();
    std::os::unix::fs::symlink("/dev/stdout", folder.join("out")).unwrap();
    done(
        folder,
        "train --parts parts --schema s.json --method central --steps 3 --hidden 4 --out g.bin",
    );
    assert!(
        fs::symlink_metadata(folder.join("g.bin"))
            .unwrap()
            .is_symlink()
    );
    assert!(folder.join("kept/g.bin").is_file());
    let said = done(folder, "sample g.bin --schema s.json --rows 7 --out out");
    // The header and the records only: their number is printed to standard error.
    assert_eq!(said.lines().count(), 8, "{said}");
    assert!(
        fs::symlink_metadata(folder.join("out"))
            .unwrap()
            .is_symlink()
    );
}

/// Invalid budgets, and budgets that no noise keeps, are refused before training, for every method with a budget.
#[test]
fn invalid_and_unreachable_budgets_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    for method in ["dpgan", "dp-fedavg", "dp-fedprox"] {
        let train =
            format!("train --parts parts --schema s.json --steps 3 --out g.bin --method {method}");
        for epsilon in ["-1", "0", "nan", "inf", "1e-300", "1e300"] {
            let says = "epsilon must be a positive number";
            refused(folder, &format!("{train} --epsilon {epsilon}"), says);
        }
        refused(
            folder,
            &format!("{train} --epsilon 0.01"),
            "no noise keeps epsilon 0.01",
        );
        // This budget needs more noise than can be drawn.
        refused(
            folder,
            &format!("{train} --epsilon 0.0452"),
            "noise multiplier: it must be",
        );
        for delta in ["-1", "0", "1", "nan"] {
            let says = "delta must lie strictly between 0 and 1";
            refused(
                folder,
                &format!("{train} --epsilon 1 --delta {delta}"),
                says,
            );
        }
        for clip in ["0", "-1", "nan", "inf", "1e-300"] {
            let says = "clip: it must be a number from";
            refused(folder, &format!("{train} --epsilon 1 --clip {clip}"), says);
        }
        done(folder, &format!("{train} --epsilon 8 --hidden 4"));
        fs::remove_file(folder.join("g.bin")).unwrap();
    }
}

fn remembered(folder: &Path) -> Vec<serde_json::Value> {
    let memory = fs::read(folder.join(CONFIG).join("memory.json")).unwrap();
    let memory: serde_json::Value = serde_json::from_slice(&memory).unwrap();
    memory["uses"].as_array().unwrap().clone()
}

/// Returns the epsilon of an entry in the usage history.
fn epsilon(entry: &serde_json::Value) -> f64 {
    entry["epsilon"].as_str().unwrap().parse().unwrap()
}

/// Rounds an epsilon up to three decimals.
fn up(epsilon: f64) -> String {
    format!("{:.3}", (1000.0 * epsilon).ceil() / 1000.0)
}

/// A second run over the same records reports the total cost of both, even if the files have other names. Runs without
/// a budget are not recorded.
#[test]
fn runs_over_the_same_records_report_their_total_cost() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let train =
        "--quiet train --parts parts --schema s.json --hidden 4 --batch 10 --yes --out g.bin";
    let private = format!("{train} --method dpgan --epsilon 8");
    assert_eq!(
        told(folder, &format!("{train} --method central --steps 3")),
        ""
    );
    assert!(!folder.join(CONFIG).exists());
    assert_eq!(told(folder, &format!("{private} --steps 30")), "");
    let kept = remembered(folder);
    // Each party has a file. A record takes part in a step with a probability of 10 in 40.
    assert_eq!(kept.len(), 3);
    assert_eq!(
        (&kept[0]["program"], &kept[0]["unit"]),
        (&"fhaim-lab gan".into(), &"added-or-removed".into())
    );
    let first = epsilon(&kept[0]);
    assert!(first <= 8.0 && first > 7.99, "{first}");
    fs::rename(folder.join("parts"), folder.join("moved")).unwrap();
    let again = private.replace("--parts parts", "--parts moved");
    let told = told(folder, &format!("{again} --steps 50"));
    let told_each = fs::read_to_string(folder.join(CONFIG).join("memory.parties.txt")).unwrap();
    let kept = remembered(folder);
    assert_eq!(kept.len(), 6);
    let both = up(first + epsilon(&kept[3]));
    let first = up(first);
    let expected = format!(
        "for a record added or removed: epsilon {first} at delta 1e-5 so far, epsilon {both} at delta 2e-5 with this use"
    );
    let each = told_each.matches(&expected);
    assert_eq!(each.count(), 3, "{expected} in {told_each}");
    let entry = format!(
        "a run of fhaim-lab gan, into g.bin: epsilon {first} at delta 1e-5 for a record added or removed"
    );
    assert!(told_each.contains(&entry), "{told_each}");
    let all = format!(
        "the records of 3 of 3 parties were used before, and the privacy costs add up: for a record added or removed: \
         at most epsilon {both} at delta 2e-5 with this use;"
    );
    assert!(told.contains(&all), "{all} is not in {told}");
    // Outputs are not allowed in the folder of the parties' tables.
    let among = again.replace("--out g.bin", "--out moved/g.csv");
    refused(folder, &among, "name a file in another folder");
}

/// Budgets that protect a party and budgets that protect a record are counted separately. Images behave the same,
/// although every run splits them differently.
#[test]
fn budgets_of_parties_and_records_are_counted_separately() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let images = Images {
        rows: 2,
        columns: 2,
        pixels: (0..4 * 41)
            .map(|n| if n % 2 == 0 { 250 } else { 5 })
            .collect(),
    };
    fs::write(folder.join("i.idx3"), write_images(&images)).unwrap();
    fs::write(folder.join("l.idx1"), write_labels(&[0; 41])).unwrap();
    let train = "--quiet train --images i.idx3 --labels l.idx1 --parties 4 --hidden 4 --batch 5 --steps 20 --yes --out g.bin";
    assert_eq!(
        told(folder, &format!("{train} --method dp-fedavg --epsilon 4")),
        ""
    );
    let said = told(folder, &format!("{train} --method dpgan --epsilon 8"));
    let kept = remembered(folder);
    assert_eq!(
        (&kept[0]["unit"], &kept[1]["unit"]),
        (&"party".into(), &"added-or-removed".into())
    );
    let (party, record) = (epsilon(&kept[0]), epsilon(&kept[1]));
    // Adding a record to a party is removing one party and adding another.
    let of_records = format!(
        "for a record added or removed: epsilon {} at delta ",
        up(2.0 * party)
    );
    assert!(said.contains(&of_records), "{of_records} is not in {said}");
    let with_this = format!(", epsilon {} at delta ", up(2.0 * party + record));
    assert!(said.contains(&with_this), "{with_this} is not in {said}");
    let party = up(party);
    let of_parties = format!(
        "for a party: epsilon {party} at delta 1e-5 so far, epsilon {party} at delta 1e-5 with this use; not including \
         1 use with another privacy unit"
    );
    assert!(said.contains(&of_parties), "{of_parties} is not in {said}");
}

/// Long training prints progress messages unless `--quiet` is set. Interrupted training leaves no files.
#[test]
fn training_reports_progress() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let train = "train --parts parts --schema s.json --hidden 4 --out g.bin --method";
    let said = told(folder, &format!("{train} local --steps 7"));
    assert!(said.starts_with("train local: 21 steps in "), "{said}");
    let said = told(folder, &format!("{train} federated --steps 7"));
    assert!(said.starts_with("train federated: 7 rounds in "), "{said}");
    assert_eq!(
        told(folder, &format!("{train} privgan --steps 7 --quiet")),
        ""
    );
    fs::remove_file(folder.join("g.bin")).unwrap();

    let names = || {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let mut training = command(folder, &format!("{train} central --steps 1000000"));
    let mut training = training
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(training.try_wait().unwrap().is_none());
    let interrupt = Command::new("kill")
        .args(["-INT", &training.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    assert!(!training.wait().unwrap().success());
    assert_eq!(names(), before);
}

/// Parties' tables can be Parquet files, as in `fhaim`.
#[test]
fn parquet_tables_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/files/tests/parquet");
    fs::create_dir(folder.join("parts")).unwrap();
    for name in ["pyarrow-zstd", "polars"] {
        let name = format!("{name}.parquet");
        fs::copy(kept.join(&name), folder.join("parts").join(&name)).unwrap();
    }
    let schema = r#"{"name":"t","columns":[
        {"name":"age","kind":"numeric","min":0,"max":90,"bins":4,"nullable":true},
        {"name":"ward","kind":"categorical","categories":["Süd, alt","Nord"]}]}"#;
    fs::write(folder.join("s.json"), schema).unwrap();
    let train =
        "train --parts parts --schema s.json --ignore-columns --hidden 4 --steps 3 --out g.bin";
    let said = done(folder, &format!("{train} --method local"));
    assert!(said.starts_with("2 pairs"), "{said}");
    let attack = "attack g.bin --schema s.json --ignore-columns --members parts/polars.parquet";
    done(
        folder,
        &format!("{attack} --others parts/pyarrow-zstd.parquet --drawn 50"),
    );
    fs::copy(
        kept.join("pyarrow-brotli.parquet"),
        folder.join("parts/b.parquet"),
    )
    .unwrap();
    refused(
        folder,
        &format!("{train} --method local"),
        "Snappy or Zstandard",
    );
}

/// The step at which networks diverged depends on the noisy steps, so reporting it spends their cost.
#[test]
fn diverged_run_is_added_to_the_usage_history() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let train = "train --parts parts --schema s.json --method dpgan --epsilon 5 --hidden 8 --rate 1e30 --steps 3 \
                 --out g.model --yes --quiet";
    refused(folder.path(), train, "training diverged");
    assert!(!remembered(folder.path()).is_empty());
}

/// Numbers that would need too much memory or time, or give invalid networks, are rejected with the name of their flag.
#[test]
fn invalid_numbers_are_reported_with_their_flag() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let train = "train --parts parts --schema s.json --out g.bin";
    for (flag, values) in [
        ("--steps", &["0", "-1", "4000000000"][..]),
        ("--batch", &["0", "18446744073709551615"]),
        ("--noise", &["0", "70000"]),
        ("--hidden", &["0", "4,70000", "x"]),
        ("--filters", &["0", "70000"]),
        ("--rate", &["0", "-1", "nan", "inf", "1e60"]),
        ("--participation", &["0", "-0.1", "1.1", "nan", "1e-300"]),
        ("--local-steps", &["0", "4000000000"]),
    ] {
        for value in values {
            let arguments = format!("{train} --method federated {flag}={value}");
            refused(folder, &arguments, &format!("for '{flag}"));
        }
    }
    for (method, flag) in [("dp-fedprox", "--mu"), ("privgan", "--lambda")] {
        for value in ["-1", "nan", "inf", "1e300", "2e9"] {
            let train = format!("{train} --method {method} {flag}={value}");
            refused(folder, &train, "a number from 0 to 1e9");
        }
    }
    let central = format!("{train} --method central");
    let many = vec!["4"; 63].join(",");
    for (more, says) in [
        ("--batch 90000000".to_owned(), "batch: it must be at most"),
        (
            "--hidden 65536,65536".to_owned(),
            "at most 67108864 parameters",
        ),
        (format!("--hidden {many}"), "--hidden: at most 62 layers"),
        ("--rate 1e30".to_owned(), "training diverged"),
    ] {
        refused(folder, &format!("{central} {more}"), says);
    }
    // 16 parties of two pairs, each of 20 million parameters.
    fs::create_dir(folder.join("many")).unwrap();
    for party in 0..16 {
        let name = format!("many/{party}.csv");
        fs::copy(folder.join("parts/part-000.csv"), folder.join(name)).unwrap();
    }
    refused(
        folder,
        "train --parts many --schema s.json --out g.bin --method privgan --hidden 3000,3000",
        "32 pairs of networks",
    );
    assert!(!folder.join("g.bin").exists());
    done(folder, &format!("{central} --hidden 4 --steps 3"));
    let sample = "sample g.bin --schema s.json --out s.csv --rows";
    refused(folder, &format!("{sample} 0"), "for '--rows");
    refused(folder, &format!("{sample} 90000000"), "--rows: at most");
    let attack = "attack g.bin --schema s.json --members parts/part-000.csv --others parts/part-001.csv --drawn";
    refused(folder, &format!("{attack} 0"), "for '--drawn");
    refused(folder, &format!("{attack} 90000000"), "--drawn: at most");
    refused(folder, "bench --seeds 0", "for '--seeds");
    refused(folder, "bench --rule nonsense", "for '--rule");
}

/// Flags without any effect are rejected.
#[test]
fn flags_without_effect_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let train = "train --parts parts --schema s.json --steps 3 --hidden 4 --out g.bin";
    for more in [
        "--method central --clip 1",
        "--method local --participation 0.5",
        "--method dpgan --epsilon 8 --local-steps 2",
        "--method dp-fedavg --epsilon 8 --mu 1",
        "--method federated --lambda 1",
    ] {
        refused(folder, &format!("{train} {more}"), "has no effect with");
    }
    for (more, says) in [
        ("--delta 1e-6", "--epsilon"),
        ("--parties 3", "cannot be used with"),
        ("--rule qli", "cannot be used with"),
        ("--labels l.idx1", "cannot be used with"),
    ] {
        refused(folder, &format!("{train} --method central {more}"), says);
    }
    let images = Images {
        rows: 2,
        columns: 2,
        pixels: (0..40).collect(),
    };
    fs::write(folder.join("i.idx3"), write_images(&images)).unwrap();
    fs::write(folder.join("l.idx1"), write_labels(&[0; 10])).unwrap();
    let train =
        "train --images i.idx3 --labels l.idx1 --method central --steps 3 --hidden 4 --out i.bin";
    refused(
        folder,
        &format!("{train} --schema s.json"),
        "cannot be used with",
    );
    for more in ["--delimiter ;", "--clamp", "--missing NA"] {
        refused(
            folder,
            &format!("{train} {more}"),
            "all flags for reading tables",
        );
    }
    done(folder, train);
    let attack = "attack i.bin --members i.idx3 --others i.idx3 --schema s.json";
    refused(folder, attack, "all flags for reading tables");
    let sample = "sample i.bin --out s.idx3 --schema s.json";
    refused(folder, sample, "leave out --schema");
    refused(
        folder,
        "bench --method central --party-epsilon 1",
        "has no effect with",
    );
    refused(folder, "bench --table t --drawn 5", "--table");
}

/// Parts from `fhaim-lab federate split` are read with any delimiter, and with the flags that `fhaim` has for values.
#[test]
fn tables_are_read_in_their_own_dialect() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let at = |name: &str| folder.join(name);
    for part in fs::read_dir(at("parts")).unwrap() {
        let part = part.unwrap().path();
        let text = fs::read_to_string(&part).unwrap().replace(',', ";");
        fs::write(&part, text).unwrap();
    }
    let train =
        "train --parts parts --schema s.json --method central --steps 3 --hidden 4 --out g.bin";
    done(folder, train);
    done(folder, &format!("{train} --delimiter ;"));
    refused(folder, &format!("{train} --delimiter ,"), "column");
    let sample = "sample g.bin --schema s.json --rows 20 --delimiter ; --out drawn.csv";
    done(folder, sample);
    let drawn = fs::read_to_string(at("drawn.csv")).unwrap();
    assert!(drawn.starts_with("smokes;age;ill\n"), "{drawn}");
    done(
        folder,
        "attack g.bin --schema s.json --members parts/part-000.csv --others drawn.csv --drawn 50",
    );
    // A column that is not in the schema.
    fs::create_dir(at("wide")).unwrap();
    fs::write(
        at("wide/a.csv"),
        "id;smokes;age;ill\n7;no;old;no\n8;yes;old;yes\n",
    )
    .unwrap();
    let wide = train.replace("--parts parts", "--parts wide");
    refused(folder, &wide, "id");
    let output = call(folder, &format!("{wide} --ignore-columns"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("was ignored"), "{said}");
}

#[test]
fn every_gan_command_shows_examples() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["train", "sample", "attack", "bench"] {
        let help = done(folder.path(), &format!("{command} --help"));
        let examples = help.split("Examples:\n").nth(1).unwrap();
        assert!(
            examples.contains(&format!("fhaim-lab gan {command} ")),
            "{help}"
        );
    }
}
