//! Tests of `fhaim align`, with a process for every holder and messages as files.

use std::{collections::BTreeSet, fs, path::Path, thread};

use tempfile::TempDir;

use crate::{fhaim, stderr};

/// Runs all parties at the same time, and returns the output of each.
fn align(folder: &Path, parties: usize, rows: &[String]) -> Vec<String> {
    let run = |me: usize| {
        fs::write(folder.join(format!("{me}.csv")), &rows[me - 1]).unwrap();
        let (me, of) = (me.to_string(), parties.to_string());
        let (data, out) = (format!("{me}.csv"), format!("{me}.out.csv"));
        let files = [
            "--data",
            &data,
            "--out",
            &out,
            "--messages",
            "shared",
            "--on",
            "id",
        ];
        let who = [
            "--holder",
            &me,
            "--holders",
            &of,
            "--session",
            "trial",
            "--yes",
            "--wait",
            "5",
        ];
        let output = fhaim(folder, &[&["align"], &files[..], &who].concat());
        assert!(output.status.success(), "{me}: {}", stderr(&output));
        let told = stderr(&output);
        assert!(told.contains("all parties learn"));
        assert_eq!(told.contains("only two parties"), of == "3");
        String::from_utf8(output.stdout).unwrap()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=parties)
            .map(|me| scope.spawn(move || run(me)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// Returns a table of these records, each with a value that only this party knows.
fn table(ids: impl Iterator<Item = u32>, party: &str) -> String {
    let rows: String = ids
        .map(|id| format!("Person {id},{party} {id}\n"))
        .collect();
    format!("id,known\n{rows}")
}

fn records(folder: &Path, me: usize) -> Vec<u32> {
    let text = fs::read_to_string(folder.join(format!("{me}.out.csv"))).unwrap();
    let id = |row: &str| {
        row.split(',').next().unwrap()["Person ".len()..]
            .parse()
            .unwrap()
    };
    text.lines().skip(1).map(id).collect()
}

#[test]
fn two_and_three_holders_get_their_common_rows_in_the_same_order() {
    for parties in [2, 3] {
        let folder = TempDir::new().unwrap();
        let lists = [0..60, 20..90, 30..50];
        let rows: Vec<String> = lists[..parties]
            .iter()
            .zip(["age", "sex", "pay"])
            .map(|(ids, party)| table(ids.clone().rev(), party))
            .collect();
        let told = align(folder.path(), parties, &rows);
        let common: BTreeSet<u32> = if parties == 2 { 20..60 } else { 30..50 }.collect();
        let order = records(folder.path(), 1);
        assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), common);
        for (party, told) in (1..).zip(&told) {
            assert_eq!(records(folder.path(), party), order);
            assert!(told.contains("party 2: 70 rows"), "{told}");
            // Parties 1 and 2 have 40 rows in common. With three parties, nobody learns it.
            assert_eq!(told.contains("40"), parties == 2, "{told}");
        }
        let own = fs::read_to_string(folder.path().join("2.out.csv")).unwrap();
        assert!(
            own.lines().skip(1).all(|row| row.contains(",sex ")),
            "{own}"
        );
        for message in fs::read_dir(folder.path().join("shared")).unwrap() {
            let bytes = fs::read(message.unwrap().path()).unwrap();
            assert!(!bytes.windows(6).any(|window| window == b"Person"));
        }
        // The secret exponents of these messages no longer exist.
        let again = "align --data 1.csv --on id --holder 1 --holders 2 --session trial --messages shared \
                     --out again.csv --yes";
        let again = fhaim(folder.path(), &again.split_whitespace().collect::<Vec<_>>());
        assert_eq!(again.status.code(), Some(2));
        assert!(
            stderr(&again).contains("another --session"),
            "{}",
            stderr(&again)
        );
    }
}

#[test]
fn tables_with_invalid_keys_or_numbers_are_rejected() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), "id,x\n1,a\n 1 ,b\n").unwrap();
    fs::write(folder.path().join("e.csv"), "id,x\n1,a\n,b\n").unwrap();
    for (more, says) in [
        (
            "--data t.csv --on id --holder 1 --holders 2",
            "t.csv: rows 1 and 2 have the same join key",
        ),
        (
            "--data e.csv --on id --holder 1 --holders 2",
            "e.csv: row 2 has no join key",
        ),
        (
            "--data t.csv --on name --holder 1 --holders 2",
            "no column \"name\"",
        ),
        (
            "--data t.csv --on id,x --holder 3 --holders 2",
            "2 or 3 parties",
        ),
        (
            "--data t.csv --on id,x --holder 0 --holders 2",
            "2 or 3 parties",
        ),
    ] {
        let rest = "--session s --messages shared --out out.csv --yes";
        let arguments = format!("align {more} {rest}");
        let output = fhaim(
            folder.path(),
            &arguments.split_whitespace().collect::<Vec<_>>(),
        );
        assert_eq!(output.status.code(), Some(2), "{more}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(says),
            "{more}: {}",
            stderr(&output)
        );
        assert!(!folder.path().join("out.csv").exists());
    }
}

/// The common rows must not replace the table. The command fails before it sends anything.
#[test]
fn output_that_would_replace_the_table_is_rejected() {
    let folder = TempDir::new().unwrap();
    let rows = table(0..3, "age");
    fs::write(folder.path().join("t.csv"), &rows).unwrap();
    for out in ["t.csv", "./t.csv"] {
        let line = format!(
            "align --data t.csv --on id --holder 1 --holders 2 --session s --messages shared --out {out} --yes --wait 1"
        );
        let output = fhaim(folder.path(), &line.split(' ').collect::<Vec<_>>());
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(
            told.contains("is named both as an output and as another file"),
            "{told}"
        );
        assert!(!folder.path().join("shared").exists());
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("t.csv")).unwrap(),
        rows
    );
}

/// A wait that overflows the clock must not end the command after it has sent its first message.
#[test]
fn invalid_waits_are_rejected_before_anything_is_sent() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), table(0..3, "age")).unwrap();
    for wait in ["18446744073709551615", "0"] {
        let files = ["--data", "t.csv", "--out", "o.csv", "--messages", "shared"];
        let who = [
            "--on",
            "id",
            "--holder",
            "1",
            "--holders",
            "2",
            "--session",
            "trial",
        ];
        let more = ["--yes", "--wait", wait];
        let output = fhaim(
            folder.path(),
            &[&["align"], &files[..], &who, &more].concat(),
        );
        assert!(!output.status.success());
        let told = stderr(&output);
        assert!(
            told.contains("--wait") && !told.contains("panicked"),
            "{told}"
        );
        assert!(!folder.path().join("shared").exists(), "something was sent");
    }
}
