//! The program `fhaim-gan` as its users see it: training, drawing, attacking, and what it refuses.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use fhaim_mix::idx::{Images, read_images, write_images, write_labels};

const SCHEMA: &str = r#"{"name":"t","target":"ill","columns":[
    {"name":"smokes","kind":"categorical","categories":["no","yes"]},
    {"name":"age","kind":"categorical","categories":["young","middle","old"]},
    {"name":"ill","kind":"categorical","categories":["no","yes"]}]}"#;

fn call(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fhaim-gan"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("FHAIM_DATA_DIR")
        .output()
        .unwrap()
}

fn done(folder: &Path, arguments: &str) -> String {
    let output = call(folder, arguments);
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

/// Parties' tables: the old smoke and are ill, nobody else does or is.
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

/// Images of four by four pixels, by convolutions: whoever trains, what is saved is read back, drawn from and attacked.
#[test]
fn images_are_learnt_by_convolutions() {
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
    done(folder, "sample g.bin --records 40 --out drawn.idx3");
    let drawn = read_images(&fs::read(folder.join("drawn.idx3")).unwrap()).unwrap();
    // Both halves of all images are alike: bright above, dark below.
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
fn tables_are_learnt_drawn_and_attacked() {
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
        "sample g.bin --schema s.json --records 600 --out drawn.csv",
    );
    let drawn = fs::read_to_string(folder.join("drawn.csv")).unwrap();
    let lines: Vec<&str> = drawn.lines().skip(1).collect();
    assert_eq!(lines.len(), 600);
    let share = |kind: &str| lines.iter().filter(|line| **line == kind).count() as f64 / 600.0;
    let shares = ["no,young,no", "no,middle,no", "yes,old,yes"].map(share);
    assert!(shares.iter().sum::<f64>() > 0.7, "{shares:?}");
    assert!(shares.iter().all(|&share| share > 0.1), "{shares:?}");
    let attacked = done(
        folder,
        "attack g.bin --schema s.json --members parts/part-000.csv --others parts/part-001.csv --drawn 500 --json",
    );
    let attacked: serde_json::Value = serde_json::from_str(&attacked).unwrap();
    assert_eq!(attacked["members"], 40);
    assert!(attacked["monte_carlo"]["found"].is_number());

    for (method, whose) in [
        ("dpgan", "a record's"),
        ("dp-fedavg", "a party's"),
        ("dp-fedprox", "a party's"),
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
fn images_are_dealt_learnt_and_drawn() {
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
    done(folder, "sample g.bin --records 9 --out drawn.idx3");
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
fn what_cannot_be_is_refused_with_a_way_out() {
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
    fs::create_dir(folder.join("none")).unwrap();
    refused(
        folder,
        "train --parts none --schema s.json --method central --out g.bin",
        "fhaim federate split",
    );
    done(folder, &format!("{train} --method central --hidden 4"));
    refused(folder, "sample g.bin --out x.csv", "--schema");
}

/// No result takes the place of what it was made of, however that is named.
#[test]
fn no_output_replaces_an_input() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let kept = |name: &str| fs::read(folder.join(name)).unwrap();
    let (part, schema) = (kept("parts/part-000.csv"), kept("s.json"));
    let train = "train --parts parts --schema s.json --method central --steps 3 --hidden 4 --out";
    for input in ["parts/part-000.csv", "./parts/../s.json"] {
        refused(folder, &format!("{train} {input}"), "for two purposes");
    }
    done(folder, &format!("{train} g.bin"));
    let model = kept("g.bin");
    for input in ["g.bin", "s.json"] {
        let sample = format!("sample g.bin --schema s.json --out {input}");
        refused(folder, &sample, "for two purposes");
    }
    assert_eq!(kept("parts/part-000.csv"), part);
    assert_eq!((kept("s.json"), kept("g.bin")), (schema, model));
}

/// Links are written through, and what is no file is not replaced.
#[cfg(unix)]
#[test]
fn outputs_go_where_links_lead() {
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
    let said = done(folder, "sample g.bin --schema s.json --records 7 --out out");
    // The header, the records, and how many they are.
    assert_eq!(said.lines().count(), 9, "{said}");
    assert!(
        fs::symlink_metadata(folder.join("out"))
            .unwrap()
            .is_symlink()
    );
}
