//! Tests of `fhaim-lab attack`, and of the attacks in the report of `fhaim evaluate`.

use std::fs;

use crate::{fhaim, folder, lab, stderr};

/// Records of five independent columns: a model can only fit them by overfitting.
fn lines(records: u64, seed: u64) -> String {
    let mut state = seed;
    let mut code = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) % 6
    };
    let mut line = || {
        (0..5)
            .map(|_| code().to_string())
            .collect::<Vec<_>>()
            .join(",")
            + "\n"
    };
    let lines: String = (0..records).map(|_| line()).collect();
    format!("a,b,c,d,e\n{lines}")
}

#[test]
fn attacks_recognise_members_of_a_model_without_privacy_only() {
    let column = |name| {
        format!(
            r#"{{"name":"{name}","kind":"categorical","categories":["0","1","2","3","4","5"]}}"#
        )
    };
    let columns = ["a", "b", "c", "d", "e"].map(column).join(",");
    let schema = format!(r#"{{"name":"t","columns":[{columns}]}}"#);
    let folder = folder(lines(60, 1), schema);
    fs::write(folder.path().join("others.csv"), lines(540, 2)).unwrap();
    // Returns the report's summary, the result of the likelihood attack, and its bound.
    let reported = || {
        let files = [
            "evaluate",
            "--real",
            "t.csv",
            "--synthetic",
            "s.csv",
            "--held-out",
            "others.csv",
        ];
        let more = [
            "--schema",
            "t.schema.json",
            "--model",
            "s.model",
            "--releases",
            "s.releases.json",
            "--json",
        ];
        let report = fhaim(
            folder.path(),
            &[&files[..], &more, &["--out", "r.html", "--force"]].concat(),
        );
        assert!(report.status.success(), "{}", stderr(&report));
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        let sentences = report["assessment"].to_string();
        let page = fs::read_to_string(folder.path().join("r.html")).unwrap();
        assert!(page.contains("<h3>Membership attacks</h3>"));
        let found = report["membership"]["likelihood"]["found"]
            .as_f64()
            .unwrap();
        let bound = report["membership"]["bound"].as_f64().unwrap();
        (sentences, found, bound)
    };
    let likelihood = |epsilon: &str| {
        let files = [
            "local",
            "--data",
            "t.csv",
            "--schema",
            "t.schema.json",
            "--out",
            "s.csv",
        ];
        let more = ["--force", "--yes", "--epsilon", epsilon];
        let run = fhaim(folder.path(), &[&files[..], &more].concat());
        assert!(run.status.success(), "{}", stderr(&run));
        let files = [
            "attack",
            "--model",
            "s.model",
            "--schema",
            "t.schema.json",
            "--members",
            "t.csv",
        ];
        let more = ["--others", "others.csv", "--drawn", "5000", "--json"];
        let attack = lab(folder.path(), &[&files[..], &more].concat());
        assert!(attack.status.success(), "{}", stderr(&attack));
        let found: serde_json::Value = serde_json::from_slice(&attack.stdout).unwrap();
        // Phases that can take long for many records print progress messages.
        for phase in ["densities: ", "draw: ", "nearest records: "] {
            assert!(stderr(&attack).contains(phase), "{}", stderr(&attack));
        }
        assert_eq!(found["white_box"]["chance"], 0.1);
        assert_eq!(
            (&found["members"], &found["others"]),
            (&60.into(), &540.into())
        );
        found["likelihood"]["found"].as_f64().unwrap()
    };
    // The positive control comes first. Without it, a failure to find anything would mean nothing.
    let open = likelihood("1000000");
    assert!(open > 0.8, "{open}");
    let (said, found, bound) = reported();
    assert!(
        said.contains("Membership attacks recognise records that the table was made from"),
        "{said}"
    );
    assert_eq!((found, bound), (open, 1.0));
    let private = likelihood("0.5");
    assert!((private - 0.5).abs() < 0.2, "{private}");
    let (said, found, bound) = reported();
    assert!(
        said.contains("Membership attacks do no better than guessing"),
        "{said}"
    );
    assert!(
        found == private && found < bound && bound < 0.75,
        "{found} {bound}"
    );

    let files = [
        "attack",
        "--schema",
        "t.schema.json",
        "--members",
        "t.csv",
        "--others",
        "others.csv",
    ];
    let none = lab(folder.path(), &[&files[..], &["--model", "t.csv"]].concat());
    assert_eq!(none.status.code(), Some(2), "{}", stderr(&none));
    assert!(
        stderr(&none).contains("not a saved model"),
        "{}",
        stderr(&none)
    );
    for (flag, value, says) in [
        ("--tries", "0", "0 is not in 1..=10000"),
        (
            "--tries",
            "1000000000000",
            "1000000000000 is not in 1..=10000",
        ),
        ("--records", "0", "a whole number from 1 to "),
        ("--records", "61", "a try can have from 1 to 60 of each"),
        (
            "--records",
            "99999999999999999999999",
            "a whole number from 1 to ",
        ),
        ("--drawn", "0", "a whole number from 1 to "),
        ("--drawn", "18446744073709551615", "(--drawn)"),
    ] {
        let wrong = lab(
            folder.path(),
            &[&files[..], &["--model", "s.model", flag, value]].concat(),
        );
        assert_eq!(wrong.status.code(), Some(2), "{flag}: {}", stderr(&wrong));
        assert!(stderr(&wrong).contains(says), "{says}: {}", stderr(&wrong));
    }
    for bench in ["mix", "attack", "mechanisms", "paper"] {
        let none = lab(folder.path(), &["bench", bench, "--seeds", "0"]);
        assert_eq!(none.status.code(), Some(2), "{bench}: {}", stderr(&none));
        assert!(
            stderr(&none).contains("0 is not in 1.."),
            "{}",
            stderr(&none)
        );
    }
}
