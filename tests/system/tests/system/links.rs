//! Links that give another account access to a result.

use std::fs;

use fhaim_kit::{Backing, Services};

use super::PROGRAM;

/// Another account can use the link until it is revoked. The link's secret is shown once, and is in no log.
#[test]
fn result_link_works_until_it_is_revoked() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    services.sign_up("ben");
    let dataset = services.dataset("ana", &[]);
    let job = services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let job = job.lines().next().unwrap();
    let link = services.run("ana", &["link", "make", job, "--name", "Ben, statistics"]);
    let file = services.folder.path().join("link.txt");
    fs::write(&file, &link).unwrap();
    let (address, secret) = link.trim().split_once('#').unwrap();
    let id = address.rsplit_once("/shared/").unwrap().1;

    let card = services.run("ben", &["link", "show", "--link-file", "link.txt"]);
    for words in [
        job,
        "epsilon 1 at delta 1e-9",
        "- c: ",
        "ask for the report's verdict",
    ] {
        assert!(card.contains(words), "{card}");
    }
    let draw = ["--out", "bens.csv", "--rows", "40", "--seed", "3"];
    services.run(
        "ben",
        &[&["download", "--link-file", "link.txt"], &draw[..]].concat(),
    );
    let draw = ["--out", "anas.csv", "--rows", "40", "--seed", "3"];
    services.run("ana", &[&["download", job], &draw[..]].concat());
    let read = |name: &str| fs::read(services.folder.path().join(name)).unwrap();
    assert_eq!(read("bens.csv"), read("anas.csv"));
    services.run(
        "ben",
        &[
            "download",
            "--link-file",
            "link.txt",
            "--card",
            "bens.card.html",
        ],
    );
    let page = String::from_utf8(read("bens.card.html")).unwrap();
    assert!(page.contains("ask the holder for its card"), "{page}");
    for closed in [
        &["job", "show", job][..],
        &["job", "releases", job],
        &["dataset", "show", &dataset],
        &["download", job, "--out", "more.csv"],
        &["link", "list", job],
        &["link", "revoke", job, id],
    ] {
        assert!(
            !services.command("ben", closed).status.success(),
            "{closed:?}"
        );
    }

    let listed = services.run("ana", &["link", "list", job]);
    assert!(
        listed.contains(id) && listed.contains("last opened") && listed.contains("expires 2"),
        "{listed}"
    );
    assert!(!listed.contains(secret), "{listed}");
    let endless = &["link", "make", job, "--name", "all", "--expires", "never"];
    let endless = services.run("ana", endless);
    let endless = endless.split(['/', '#']).nth_back(1).unwrap();
    let listed = services.run("ana", &["link", "list", job]);
    assert!(listed.contains("never expires"), "{listed}");
    services.run("ana", &["link", "revoke", job, endless]);
    services.run("ana", &["link", "revoke", job, id]);
    let late = services.command("ben", &["link", "show", "--link-file", "link.txt"]);
    assert!(!late.status.success());
    let told = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(!told.contains(secret), "{told}");
    assert_eq!(services.run("ana", &["link", "list", job]), "");
    for service in 0..3 {
        assert!(!services.log(service).contains(secret));
    }
}

/// The command does not send a link of another server to this one.
#[test]
fn link_of_another_server_is_refused() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ben");
    let link = "https://fhaim.example/shared/0198c0de-0000-7000-8000-000000000001#abc";
    for (text, words) in [(link, "sign in there"), ("abc", "not a link")] {
        fs::write(services.folder.path().join("link.txt"), text).unwrap();
        let refused = services.command("ben", &["link", "show", "--link-file", "link.txt"]);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(told.contains(words), "{told}");
    }
}
