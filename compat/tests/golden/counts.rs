//! What a holder of counts uploads, in both forms, and the dense form of a noise ladder.

use crate::encryption::{public, secret};
use crate::files::{
    COUNTS_FORM, LADDER, WITNESS, golden, json, refuses_damage, refuses_unknown_fields,
};
use crate::parties::of_counts;
use crate::terms::{schema, terms};
use fhaim_domain::Domain;
use fhaim_dp::{LadderForm, LadderPlan, Span};
use fhaim_he::{P1, Parameters};
use fhaim_protocol::counts::CountsForm;
use fhaim_protocol::counts::tally::Tally;
use fhaim_protocol::counts::upload::{CountsHolder, CountsPlan};
use fhaim_protocol::encryption::Encryption;
use fhaim_protocol::holder::Noise;
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::roster::Contribution;
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::Object;
use fhaim_protocol::window::Window;
use fhaim_release::{Axis, ReleaseRequest, Statistic};
use fhaim_synth::Mechanisms;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

const COUNTS: Object = Object::Counts { number: 0 };

/// The counts of 300 records, made by rule.
fn counted() -> (CountsPlan, Tally) {
    let domain = schema().domain().clone();
    let ladder = LadderPlan::dense(100, 1 << 10).unwrap();
    let plan = CountsPlan::new(&domain, CountsForm::Loose, ladder).unwrap();
    let column = |(a, &size): (usize, &usize)| {
        let code = |record: usize| ((record * record + 3 * a * record + a) % size) as u32;
        (0..300).map(code).collect()
    };
    let columns: Vec<Vec<u32>> = domain.sizes().iter().enumerate().map(column).collect();
    let mut tally = Tally::new(plan.tables.clone(), 300);
    tally.add(&columns).unwrap();
    (plan, tally)
}

/// All pairs, in their order.
fn pairs(attributes: usize) -> Vec<[usize; 2]> {
    let of = |a| (a + 1..attributes).map(move |b| [a, b]);
    (0..attributes).flat_map(of).collect()
}

/// Ciphertexts, the integers of a ciphertext, where each pair's table begins, and the objects' names.
type Shape = (usize, usize, Vec<Option<usize>>, Vec<String>);

/// Where the count of each cell lies, and what the objects are called.
#[test]
fn counts_lie_where_they_lay() {
    let (plan, _) = counted();
    let layout = plan.tables.layout();
    let firsts = (0..pairs(plan.tables.domain().len()).len()).map(|number| layout.first(number));
    let names = plan.objects().map(|object| object.name());
    let shape: Shape = (
        layout.ciphertexts(),
        layout.stride(),
        firsts.collect(),
        names.collect(),
    );
    json(LADDER, "counts.shape.json", &shape);
}

#[test]
fn a_contribution_of_counts_is_read_as_it_was_written() {
    let params = Parameters::new(P1).unwrap();
    let (plan, tally) = counted();
    let bytes = golden(LADDER, "object.counts.p1", || {
        let (public, mut rng) = (public(&params), ChaCha20Rng::seed_from_u64(9));
        let holder = CountsHolder::new(&tally, Noise::Fresh, &public, &plan).unwrap();
        holder.encode(COUNTS, &mut rng).unwrap()
    });
    let payload = plan.decode(&params, COUNTS, &bytes).unwrap();
    let ciphertexts = payload.ciphertexts().unwrap();
    let (values, _) = secret(&params).decrypt(&ciphertexts).unwrap();
    // Tables follow each other, over as many ciphertexts as they take.
    let layout = plan.tables.layout();
    let mut expected = vec![0; values.len()];
    for (number, [a, b]) in pairs(tally.tables().domain().len()).into_iter().enumerate() {
        let table = tally.table(a, b).unwrap();
        assert_eq!(table.iter().sum::<i64>(), 300);
        let places = layout.first(number).unwrap()..layout.stride();
        for (place, &count) in places.zip(table) {
            expected[place] = i128::from(count);
        }
    }
    assert!(layout.ciphertexts() > 1);
    assert_eq!(*values, expected);
    refuses_damage(&bytes, 24, |bytes| {
        assert!(plan.decode(&params, COUNTS, bytes).is_err());
    });
    let beyond = Object::Counts {
        number: layout.ciphertexts(),
    };
    assert!(plan.decode(&params, beyond, &bytes).is_err());
}

/// The same terms, which name a dense ladder.
pub fn dense(terms: Terms) -> Terms {
    let terms = Terms {
        ladder: LadderForm::Dense,
        need: None,
        version: 1,
        ..terms
    };
    terms.complete(&Mechanisms).unwrap()
}

/// The same terms in either form mean the same releases; only the noise lies elsewhere.
#[test]
fn terms_that_name_a_dense_ladder_are_of_the_fifth_version() {
    let watched = Terms {
        witness: true,
        need: None,
        version: 1,
        ..dense(terms("staged"))
    };
    let watched = watched.complete(&Mechanisms).unwrap();
    assert_eq!(watched.version, 6);
    json(WITNESS, "terms.witness.json", &watched);
    refuses_unknown_fields::<Terms>(WITNESS, "terms.witness.json");
    let text = String::from_utf8(golden(WITNESS, "terms.witness.json", Vec::new)).unwrap();
    for (from, to) in [
        (r#""version":6"#, r#""version":5"#),
        (r#","witness":true"#, ""),
        (r#","witness":true"#, r#","witness":false"#),
    ] {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text);
        let other: Terms = serde_json::from_str(&other).unwrap();
        assert!(other.plan().is_err(), "{to}");
    }
    for (name, terms) in [
        ("terms.dense.json", dense(terms("staged"))),
        ("terms.dense.counts.json", dense(of_counts())),
    ] {
        assert_eq!(terms.version, 5);
        json(LADDER, name, &terms);
        refuses_unknown_fields::<Terms>(LADDER, name);
        let text = String::from_utf8(golden(LADDER, name, Vec::new)).unwrap();
        for (from, to) in [
            (r#""version":5"#, r#""version":4"#),
            (r#""version":5"#, r#""version":6"#),
            (r#","ladder":"dense""#, ""),
            (r#","ladder":"dense""#, r#","ladder":"loose""#),
        ] {
            let other = text.replacen(from, to, 1);
            assert_ne!(other, text);
            let other: Terms = serde_json::from_str(&other).unwrap();
            assert!(other.plan().is_err(), "{name}: {to}");
        }
        let unknown = text.replacen(r#""dense""#, r#""denser""#, 1);
        assert!(serde_json::from_str::<Terms>(&unknown).is_err());
        let plan = terms.plan().unwrap();
        let plans = (plan.run_ladder, plan.ladder().unwrap());
        json::<(LadderPlan, LadderPlan)>(LADDER, &name.replacen("terms", "plan", 1), &plans);
    }
}

/// Where the counts of a table lie that is wide enough for several tables of a ciphertext more than it takes.
#[test]
fn counts_of_a_dense_form_lie_where_they_lay() {
    let domain = Domain::new(vec![8; 48]);
    let ladder = LadderPlan::dense(100, 1 << 10).unwrap();
    let plan = CountsPlan::new(&domain, CountsForm::Dense, ladder).unwrap();
    let layout = plan.tables.layout();
    let firsts = (0..pairs(48).len()).map(|number| layout.first(number));
    let shape: (usize, usize, Vec<Option<usize>>) =
        (layout.ciphertexts(), layout.stride(), firsts.collect());
    json(COUNTS_FORM, "counts.dense-shape.json", &shape);
}

#[test]
fn terms_that_name_a_dense_form_of_counts_are_of_the_ninth_version() {
    let terms = Terms {
        ladder: LadderForm::Dense,
        contribution: Contribution::Counts,
        counts: CountsForm::Dense,
        encryption: Encryption::HolderKey,
        parameter_set: Some(P1.id),
        ..terms("staged")
    };
    let (terms, name) = (
        terms.complete(&Mechanisms).unwrap(),
        "terms.dense-counts.json",
    );
    assert_eq!(terms.version, 9);
    json(COUNTS_FORM, name, &terms);
    refuses_unknown_fields::<Terms>(COUNTS_FORM, name);
    let text = String::from_utf8(golden(COUNTS_FORM, name, Vec::new)).unwrap();
    for (from, to) in [
        (r#""version":9"#, r#""version":8"#),
        (r#""version":9"#, r#""version":10"#),
        (r#","counts":"dense""#, ""),
        (r#","counts":"dense""#, r#","counts":"loose""#),
        (r#","contribution":"counts""#, ""),
    ] {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text, "{to}");
        let other: Terms = serde_json::from_str(&other).unwrap();
        assert!(other.plan().is_err(), "{to}");
    }
    let unknown = text.replacen(r#""counts":"dense""#, r#""counts":"denser""#, 1);
    assert!(serde_json::from_str::<Terms>(&unknown).is_err());
    let plan = terms.plan().unwrap();
    let plans = (plan.set.id, plan.run_ladder, plan.ladder().unwrap());
    json::<(u8, LadderPlan, LadderPlan)>(COUNTS_FORM, "plan.dense-counts.json", &plans);
}

/// The positions of a dense ladder's releases are part of their statements.
#[test]
fn a_window_of_a_dense_ladder() {
    let plan = LadderPlan::dense(20_000, 1 << 33).unwrap();
    let request = |(number, cells): (u32, usize)| ReleaseRequest {
        number,
        statistic: Statistic::OneWay(Axis {
            attribute: 0,
            functions: vec![vec![1]; cells],
        }),
        variance_units: 77,
    };
    let releases: Vec<ReleaseRequest> = (0..).zip([8000, 500, 9000]).map(request).collect();
    let mut window = Window::new(DatasetId([7; 16]), JobId([1; 16]), 2, plan);
    let placement = window.place(&releases).unwrap();
    let span = |page, start, len| Span { page, start, len };
    assert_eq!(
        placement.spans,
        [
            vec![span(6, 0, 8000)],
            vec![span(6, 8000, 192), span(7, 0, 308)],
            vec![span(7, 308, 7884), span(8, 0, 1116)],
        ]
    );
    window.take(&placement);
    json(LADDER, "window.dense.json", &window);
    let text = golden(LADDER, "window.dense.json", Vec::new);
    let stored: Window = serde_json::from_slice(&text).unwrap();
    assert!(stored.place(&releases).unwrap().repeated);
}
