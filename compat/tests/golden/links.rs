//! Links to results, and the names and notes of jobs.

use crate::files::{golden, refuses_unknown_fields, text};
use crate::terms::terms;
use fhaim_api::account::Secret;
use fhaim_api::dataset::NewName;
use fhaim_api::job::{Job, JobState, NewNote};
use fhaim_api::link::{Link, LinkMade, LinkedAttribute, LinkedResult, NewLink};
use fhaim_dp::Rho;
use fhaim_sdk::{Endpoints, LinkAddress};
use time::OffsetDateTime;
use uuid::Uuid;

const ID: Uuid = Uuid::from_bytes([0x11; 16]);

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_795_000_000 + seconds).unwrap()
}

fn link(opened: bool) -> Link {
    Link {
        id: ID,
        name: "Ben, statistics".to_owned(),
        created_at: at(0),
        last_opened_at: opened.then(|| at(60)),
        expires_at: None,
    }
}

fn made() -> LinkMade {
    LinkMade {
        link: link(false),
        secret: Secret("aB-_9".to_owned()),
    }
}

#[test]
fn link_messages_are_unchanged() {
    let name = "Ben, statistics".to_owned();
    text("new-link.json", &NewLink { name, days: None });
    refuses_unknown_fields::<NewLink>("new-link.json");
    text("link.json", &link(true));
    text("link-made.json", &made());
    let terms = terms("staged");
    let labels = ["a", "b"].map(str::to_owned).into();
    let result = LinkedResult {
        job: ID,
        name: "people".to_owned(),
        attributes: vec![LinkedAttribute {
            name: "x".to_owned(),
            labels,
        }],
        total: 1999.5,
        epsilon: terms.epsilon,
        delta: terms.delta,
        runs: terms.runs,
        mechanism: terms.mechanism,
        spent: Rho::ratio_up(1, 3).unwrap().into(),
        made_at: at(60),
        caveats: vec!["No record is a person's.".to_owned()],
        schema: terms.schema,
    };
    text("linked-result.json", &result);
}

/// The text that people send each other.
#[test]
fn link_address_is_unchanged() {
    let endpoints = Endpoints::behind("https://fhaim.example/");
    let written = LinkAddress::new(&endpoints, &made());
    let kept = golden("link", || written.text().0.clone().into_bytes());
    let read = LinkAddress::parse(std::str::from_utf8(&kept).unwrap()).unwrap();
    assert_eq!(read, written);
    assert_eq!(read.text().0.as_bytes(), kept);
}

#[test]
fn names_and_notes_are_unchanged() {
    let name = "Admissions 2026".to_owned();
    text("new-name.json", &NewName { name });
    refuses_unknown_fields::<NewName>("new-name.json");
    let note = "fewer columns".to_owned();
    text("new-note.json", &NewNote { note: note.clone() });
    refuses_unknown_fields::<NewNote>("new-note.json");
    let job = Job {
        id: ID,
        dataset: ID,
        note,
        state: JobState::Done,
        progress: None,
        releases: 17,
        spent: Rho::ZERO.into(),
        attempts: 1,
        error: None,
        created_at: at(0),
        updated_at: at(9),
    };
    text("job.noted.json", &job);
}
