//! What a holder of counts uploads, and the dense form of a noise ladder.

use crate::encryption::{public, secret};
use crate::files::{golden, json, refuses_damage, refuses_unknown_fields, stored};
use crate::terms::{schema, terms};
use crate::upload_key::upload_key;
use fhaim_domain::Domain;
use fhaim_dp::{LadderPlan, Span};
use fhaim_he::{Parameters, STANDARD};
use fhaim_protocol::counts::pair_counts::PairCounts;
use fhaim_protocol::counts::upload::{CountsHolder, CountsPlan};
use fhaim_protocol::encryption::Encryptor;
use fhaim_protocol::holder::HolderNoise;
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::roster::ContributionKind;
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::Object;
use fhaim_protocol::window::Window;
use fhaim_release::{Axis, ReleaseRequest, Statistic};
use fhaim_synth::Mechanisms;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

const COUNTS: Object = Object::Counts { number: 0 };

/// The counts of 300 records, made by rule.
fn counted() -> (CountsPlan, PairCounts) {
    let domain = schema().domain().clone();
    let ladder = LadderPlan::new(100, 1 << 10).unwrap();
    let plan = CountsPlan::new(&domain, ladder).unwrap();
    let column = |(a, &size): (usize, &usize)| {
        let code = |record: usize| ((record * record + 3 * a * record + a) % size) as u32;
        (0..300).map(code).collect()
    };
    let columns: Vec<Vec<u32>> = domain.sizes().iter().enumerate().map(column).collect();
    let mut pair_counts = PairCounts::new(plan.tables.clone(), 300);
    pair_counts.add(&columns).unwrap();
    (plan, pair_counts)
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
fn count_layout_is_unchanged() {
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
    json("counts.shape.json", &shape);
}

#[test]
fn a_contribution_of_counts_is_read_as_it_was_written() {
    let params = Parameters::new(STANDARD).unwrap();
    let (plan, pair_counts) = counted();
    let (public, key) = (public(&params), upload_key(&params));
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let encryptor = Encryptor::sole(&public, &key);
    let holder = CountsHolder::new(&pair_counts, HolderNoise::Fresh, encryptor, &plan).unwrap();
    let bytes = golden("object.counts.standard", || {
        holder.encode(COUNTS, &mut rng).unwrap()
    });
    let payload = plan.decode(&params, COUNTS, &bytes).unwrap();
    let keys = key.switch_keys(&public, None, &mut rng).unwrap();
    let ciphertexts = payload.expanded(&params).unwrap();
    let ciphertexts: Vec<_> = ciphertexts
        .iter()
        .map(|c| keys.switch(c).unwrap())
        .collect();
    let (values, _) = secret(&params).decrypt(&ciphertexts).unwrap();
    // Tables follow each other, over as many ciphertexts as they take.
    let layout = plan.tables.layout();
    let mut expected = vec![0; values.len()];
    for (number, [a, b]) in pairs(pair_counts.tables().domain().len())
        .into_iter()
        .enumerate()
    {
        let table = pair_counts.table(a, b).unwrap();
        assert_eq!(table.iter().sum::<i64>(), 300);
        let places = layout.first(number).unwrap()..layout.stride();
        for (place, &count) in places.zip(table) {
            expected[place] = i128::from(count);
        }
    }
    assert!(layout.ciphertexts() > 1);
    assert_eq!(*values, expected);
    refuses_damage(&bytes, 24, |bytes| {
        assert!(matches!(
            plan.decode(&params, COUNTS, bytes),
            Err(fhaim_protocol::Error::Encryption(..) | fhaim_protocol::Error::Object(..))
        ));
    });
    let beyond = Object::Counts {
        number: layout.ciphertexts(),
    };
    assert!(matches!(
        plan.decode(&params, beyond, &bytes),
        Err(fhaim_protocol::Error::Object(..))
    ));
}

#[test]
fn terms_with_a_witness_are_written_as_they_were_read() {
    let watched = Terms {
        witness: true,
        ..terms("staged")
    };
    let watched = watched.complete(&Mechanisms).unwrap();
    let name = "terms.witness.json";
    json(name, &watched);
    refuses_unknown_fields::<Terms>(name);
    let text = String::from_utf8(stored(name)).unwrap();
    for other in [r#","witness":false"#, ""] {
        let alone: Terms =
            serde_json::from_str(&text.replacen(r#","witness":true"#, other, 1)).unwrap();
        assert!(!alone.witness);
    }
}

#[test]
fn terms_of_counts_are_written_as_they_were_read() {
    let name = "terms.counts.sole.json";
    let terms = Terms {
        contribution: ContributionKind::Counts,
        ..terms("staged")
    };
    let terms = terms.complete(&Mechanisms).unwrap();
    json(name, &terms);
    refuses_unknown_fields::<Terms>(name);
    let plan = terms.plan().unwrap();
    let plans = (
        plan.core.set.id,
        plan.core.run_ladder,
        plan.ladder().unwrap(),
    );
    json::<(u8, LadderPlan, LadderPlan)>("plan.counts.sole.json", &plans);
}

/// A table that is wide enough for several times the ciphertexts that the smallest stride takes.
#[test]
#[ignore = "slow"]
fn count_layout_of_a_wide_table_is_unchanged() {
    let domain = Domain::new(vec![8; 48]);
    let ladder = LadderPlan::new(100, 1 << 10).unwrap();
    let plan = CountsPlan::new(&domain, ladder).unwrap();
    let layout = plan.tables.layout();
    let firsts = (0..pairs(48).len()).map(|number| layout.first(number));
    let shape: (usize, usize, Vec<Option<usize>>) =
        (layout.ciphertexts(), layout.stride(), firsts.collect());
    json("counts.wide-shape.json", &shape);
}

/// The positions of releases are part of their statements.
#[test]
fn window_of_releases_across_pages_is_written_as_it_was_read() {
    let plan = LadderPlan::new(20_000, 1 << 33).unwrap();
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
    json("window.pages.json", &window);
    let text = stored("window.pages.json");
    let stored: Window = serde_json::from_slice(&text).unwrap();
    assert!(stored.place(&releases).unwrap().repeated);
}
