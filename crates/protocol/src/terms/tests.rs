//! Terms, their versions, and the plans that follow from them.

use super::*;
use crate::roster::Partition;
use fhaim_synth::Mechanisms;

fn terms() -> Terms {
    let json = r#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["x","y"]},
        {"name":"b","kind":"numeric","min":0,"max":10,"bins":5}]}"#;
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    Terms::new(schema, 1.0, 1e-9, 512)
}

fn plan(terms: &Terms) -> Result<Plan, Error> {
    terms.clone().complete(&Mechanisms)?.plan()
}

#[test]
fn runs_share_the_budget_and_have_pages_of_their_own() {
    let one = plan(&terms()).unwrap();
    assert_eq!(one.ladder().unwrap(), one.run_ladder);
    let three = Terms { runs: 3, ..terms() };
    let three = plan(&three).unwrap();
    let shares = Rho::checked_sum([three.job.rho; 3]).unwrap();
    assert!(shares <= three.budget && three.budget == one.budget);
    let ladder = three.ladder().unwrap();
    assert_eq!(ladder.pages(), 3 * three.run_ladder.pages());
    assert_eq!(ladder.levels(), three.run_ladder.levels());
}

#[test]
fn an_outline_has_the_plans_numbers() {
    let terms = Terms { runs: 3, ..terms() };
    assert!(terms.outline().is_err());
    let terms = terms.complete(&Mechanisms).unwrap();
    let (plan, outline) = (terms.plan().unwrap(), terms.outline().unwrap());
    assert_eq!(outline.set, plan.set);
    assert_eq!(
        (outline.budget, outline.run_budget),
        (plan.budget, plan.job.rho)
    );
    assert_eq!((outline.runs, outline.run_ladder), (3, plan.run_ladder));
    assert_eq!(outline.ladder().unwrap(), plan.ladder().unwrap());
    assert_eq!(outline.domain, plan.job.domain);
    assert_eq!(outline.record_bound, plan.job.record_bound);
    assert!(Terms { runs: 0, ..terms }.outline().is_err());
}

#[test]
fn the_plan_survives_json_and_impossible_terms_are_refused() {
    let text = serde_json::to_string(&terms()).unwrap();
    let read: Terms = serde_json::from_str(&text).unwrap();
    assert_eq!(plan(&read).unwrap(), plan(&terms()).unwrap());
    let unknown = text.replacen('{', r#"{"extra":1,"#, 1);
    assert!(serde_json::from_str::<Terms>(&unknown).is_err());
    for runs in [0, MAX_RUNS + 1] {
        assert!(plan(&Terms { runs, ..terms() }).is_err());
    }
    for epsilon in [0.0, -1.0, f64::NAN] {
        assert!(plan(&Terms { epsilon, ..terms() }).is_err());
    }
    let record_bound = u64::MAX;
    let endless = Terms {
        record_bound,
        ..terms()
    };
    assert!(plan(&endless).is_err());
}

/// The same noise in fewer objects, and terms that do not say so are as they were.
#[test]
fn a_dense_ladder_is_named_and_is_smaller() {
    let loose = terms().complete(&Mechanisms).unwrap();
    let dense = Terms {
        ladder: LadderForm::Dense,
        ..terms()
    };
    let three = Terms {
        runs: 3,
        ..dense.clone()
    };
    let dense = dense.complete(&Mechanisms).unwrap();
    assert_eq!(
        (loose.version, dense.version),
        (NEED_VERSION, LADDER_VERSION)
    );
    let text = |terms: &Terms| serde_json::to_string(terms).unwrap();
    assert!(!text(&loose).contains(r#""ladder":"loose""#));
    assert!(text(&dense).contains(r#""ladder":"dense""#));
    assert_eq!(serde_json::from_str::<Terms>(&text(&dense)).unwrap(), dense);
    assert_eq!(dense.choices().ladder, LadderForm::Dense);
    let (plan, before) = (dense.plan().unwrap(), loose.plan().unwrap());
    assert_eq!(plan.run_ladder.form(), LadderForm::Dense);
    assert_eq!(plan.job.leak.form, LadderForm::Dense);
    let three = three.complete(&Mechanisms).unwrap().plan().unwrap();
    assert_eq!(three.ladder().unwrap().form(), LadderForm::Dense);
    assert_eq!(dense.outline().unwrap().run_ladder, plan.run_ladder);
    assert_eq!(
        3 * plan.run_ladder.vectors(),
        2 * before.run_ladder.vectors()
    );
    for (version, ladder) in [
        (LADDER_VERSION, LadderForm::Loose),
        (NEED_VERSION, LadderForm::Dense),
    ] {
        let mixed = Terms {
            version,
            ladder,
            ..loose.clone()
        };
        assert!(matches!(mixed.plan(), Err(Error::Terms(text)) if text.starts_with("version")));
    }
}

/// Terms of counts that say nothing mean what they meant; a form without counts is refused.
#[test]
fn a_dense_form_of_counts_is_named() {
    let of = |contribution, counts| Terms {
        contribution,
        counts,
        ..terms()
    };
    let new = of(Contribution::Counts, Contribution::Counts.form_of_new());
    let own = Terms {
        encryption: Encryption::of_new(None),
        ..new.clone()
    };
    let loose = of(Contribution::Counts, CountsForm::Loose);
    let [new, own, loose] = [new, own, loose].map(|terms| terms.complete(&Mechanisms).unwrap());
    let versions = [new.version, own.version, loose.version];
    assert_eq!(versions, [COUNTS_VERSION, COUNTS_VERSION, PARTIES_VERSION]);
    assert_eq!(own.parameter_set.is_some(), new.parameter_set.is_none());
    let text = |terms: &Terms| serde_json::to_string(terms).unwrap();
    assert!(text(&new).contains(r#""counts":"dense""#));
    assert!(!text(&loose).contains(r#""counts":"#));
    assert_eq!(serde_json::from_str::<Terms>(&text(&own)).unwrap(), own);
    assert_eq!(own.plan().unwrap().counts, CountsForm::Dense);
    assert_eq!(own.choices().counts, CountsForm::Dense);
    for (version, counts) in [
        (COUNTS_VERSION, CountsForm::Loose),
        (PARTIES_VERSION, CountsForm::Dense),
    ] {
        let mixed = Terms {
            version,
            counts,
            ..loose.clone()
        };
        assert!(matches!(mixed.plan(), Err(Error::Terms(text)) if text.starts_with("version")));
    }
    let refused = of(Contribution::Records, CountsForm::Dense).complete(&Mechanisms);
    assert!(matches!(refused, Err(Error::Terms(text)) if text.starts_with("counts")));
}

#[test]
fn options_are_resolved_kept_and_refused_by_name() {
    let chosen = |text: &str| Terms {
        options: Some(serde_json::from_str(text).unwrap()),
        ..terms()
    };
    let complete = chosen(r#"{"probe_share":0.15}"#)
        .complete(&Mechanisms)
        .unwrap();
    assert_eq!(complete.version, OPTIONS_VERSION);
    let options = complete.options.as_ref().unwrap();
    assert_eq!(options["probe_share"], 0.15);
    assert!(options.len() > 1 && options.contains_key("one_way_share"));
    let text = serde_json::to_string(&complete).unwrap();
    assert_eq!(serde_json::from_str::<Terms>(&text).unwrap(), complete);
    assert!(complete.plan().is_ok());
    // The same call again finds the same terms.
    let again = chosen(r#"{"probe_share":0.15}"#)
        .resolve(&Mechanisms)
        .unwrap();
    assert_eq!(again.choices(), complete.choices());
    assert_ne!(complete.choices(), terms());
    for (text, named) in [
        (r#"{"prob_share":1}"#, "prob_share"),
        (r#"{"probe_share":-1}"#, "probe_share"),
        (r#"{"extra_pairs":"all"}"#, "staged"),
    ] {
        let refused = chosen(text).complete(&Mechanisms).unwrap_err();
        assert!(matches!(refused, Error::Mechanism(_)), "{refused}");
        assert!(refused.to_string().contains(named), "{refused}");
    }
    for (version, options) in [
        (NEED_VERSION, complete.options.clone()),
        (OPTIONS_VERSION, None),
    ] {
        let mixed = Terms {
            version,
            options,
            ..complete.clone()
        };
        assert!(matches!(mixed.plan(), Err(Error::Terms(text)) if text.starts_with("version")));
    }
}

#[test]
fn terms_without_their_need_are_completed_and_a_wrong_need_is_refused() {
    let first = serde_json::to_value(terms()).unwrap();
    assert!(first.get("version").is_none() && first.get("need").is_none());
    assert!(matches!(terms().plan(), Err(Error::Terms(text)) if text.starts_with("need")));
    let complete = terms().complete(&Mechanisms).unwrap();
    assert_eq!(complete.clone().complete(&Mechanisms).unwrap(), complete);
    assert_eq!(complete.choices(), terms());
    let text = serde_json::to_string(&complete).unwrap();
    assert_eq!(serde_json::from_str::<Terms>(&text).unwrap(), complete);
    let mut less = complete.clone();
    if let Some(need) = &mut less.need {
        need.ladder.cells -= 1;
    }
    // A service that knows no mechanism can plan with it; whoever knows one refuses it.
    assert!(less.plan().is_ok());
    assert!(less.complete(&Mechanisms).is_err());
    let newer = Terms {
        version: LADDER_VERSION + 1,
        ..complete
    };
    assert!(matches!(newer.plan(), Err(Error::Terms(text)) if text.starts_with("version")));
    for mechanism in ["aim", "nothing"] {
        let mechanism = mechanism.to_owned();
        let refused = Terms {
            mechanism,
            ..terms()
        }
        .complete(&Mechanisms);
        assert!(matches!(refused, Err(Error::Mechanism(_))));
    }
}

/// Terms with a key of the holder's own name their parameter set, and those without are as they were.
#[test]
fn a_key_of_the_holders_own_is_named_with_its_parameter_set() {
    let public = Terms {
        ladder: LadderForm::Dense,
        ..terms()
    };
    let own = Terms {
        encryption: Encryption::of_new(None),
        ..public.clone()
    };
    let text = |terms: &Terms| serde_json::to_string(terms).unwrap();
    let public = public.complete(&Mechanisms).unwrap();
    assert_eq!(public.version, LADDER_VERSION);
    assert!(!text(&public).contains("encryption") && !text(&public).contains("parameter_set"));
    let complete = own.clone().complete(&Mechanisms).unwrap();
    assert_eq!(complete.version, HOLDER_KEY_VERSION);
    let (plan, before) = (complete.plan().unwrap(), public.plan().unwrap());
    assert_eq!(complete.parameter_set, Some(plan.set.id));
    assert_eq!(
        (plan.encryption, before.encryption),
        (Encryption::HolderKey, Encryption::PublicKey)
    );
    assert_eq!(
        (&plan.job, plan.run_ladder),
        (&before.job, before.run_ladder)
    );
    assert_eq!(complete.outline().unwrap().set, plan.set);
    assert!(text(&complete).contains(r#""encryption":"holder-key","parameter_set":"#));
    assert_eq!(
        serde_json::from_str::<Terms>(&text(&complete)).unwrap(),
        complete
    );
    assert_eq!(complete.choices(), own);
    // A set that is named is kept, if it is for these terms, whatever a later release would choose.
    let named = |parameter_set| {
        let terms = Terms {
            parameter_set,
            ..own.clone()
        };
        terms.complete(&Mechanisms)?.plan()
    };
    assert_eq!(
        named(Some(fhaim_he::P1_LARGE.id)).unwrap().set,
        fhaim_he::P1_LARGE
    );
    assert_eq!(named(Some(fhaim_he::P5.id)).unwrap().set, fhaim_he::P5);
    assert_eq!(named(None).unwrap().set, fhaim_he::P6);
    for id in [0, fhaim_he::P2.id, fhaim_he::P3.id, 255] {
        let refused = named(Some(id)).unwrap_err().to_string();
        assert!(refused.contains("parameter_set"), "{refused}");
    }
    // Of one that a later release has, the way out is another.
    for (id, newer) in [(fhaim_he::P2.id, false), (255, true)] {
        let refused = named(Some(id)).unwrap_err().to_string();
        assert_eq!(refused.contains("newer release"), newer, "{refused}");
    }
    let unnamed = Terms {
        parameter_set: None,
        ..complete.clone()
    };
    let needless = Terms {
        parameter_set: complete.parameter_set,
        ..public
    };
    for terms in [unnamed, needless] {
        for refused in [terms.plan().err(), terms.outline().err()] {
            let refused = refused.unwrap().to_string();
            assert!(refused.contains("parameter_set"), "{refused}");
        }
    }
}

/// A contrast of a wide column has 49 on all its rare categories: products of two such are too noisy for the sets for
/// holders' own keys, of which a smaller one was chosen, and the job then failed.
#[test]
fn wide_columns_are_encrypted_with_room_for_their_contrasts() {
    let set = |categories: usize, record_bound| {
        let column = |name| {
            let names: Vec<String> = (0..categories).map(|c| format!("{name}{c}")).collect();
            serde_json::json!({"name": name, "kind": "categorical", "categories": names})
        };
        let json = serde_json::json!({"name": "t", "columns": [column("a"), column("b")]});
        let schema = Schema::from_json("t.json", json.to_string().as_bytes()).unwrap();
        let terms = Terms {
            encryption: Encryption::HolderKey,
            options: Some(Options::new()),
            ..Terms::new(schema, 10.0, 1e-9, record_bound)
        };
        plan(&terms).unwrap().set
    };
    assert_eq!(set(32, 48_842), fhaim_he::P6);
    assert_eq!(set(100, 48_842), fhaim_he::P5);
    assert_eq!(set(189, 48_842), fhaim_he::P1);
}

/// A set for secret keys of one service is neither chosen for split keys, nor taken where it is named.
#[test]
fn split_keys_have_a_set_of_their_own_choice() {
    let service = |number: u8| KeyService {
        name: format!("service {number}"),
        key: crate::panel::ServiceKey::from_bytes(&[number; 32]).public(),
    };
    let split = Terms {
        encryption: Encryption::HolderKey,
        key_services: vec![service(1), service(2)],
        ..terms()
    };
    let complete = split.clone().complete(&Mechanisms).unwrap();
    assert_eq!(complete.version, HOLDER_KEY_VERSION);
    assert_eq!(complete.parameter_set, Some(fhaim_he::P1.id));
    complete.plan().unwrap().parameters().unwrap();
    let named = Terms {
        parameter_set: Some(fhaim_he::P5.id),
        ..split
    };
    let refused = plan(&named).unwrap_err().to_string();
    assert!(refused.contains("parameter_set"), "{refused}");
}

/// Several holders' ciphertexts are added up: all are under the dataset's key.
#[test]
fn a_roster_has_no_key_of_a_holders_own() {
    let member = |number: u8| Member {
        account: format!("holder {number}"),
        columns: Vec::new(),
        record_bound: 256,
        key: [number; 32],
    };
    let roster = Roster {
        partition: Partition::Records,
        honest: 1,
        holders: (1..=2).map(member).collect(),
    };
    assert_eq!(Encryption::of_new(Some(&roster)), Encryption::PublicKey);
    let terms = Terms {
        roster: Some(roster),
        encryption: Encryption::HolderKey,
        ..terms()
    };
    let refused = plan(&terms).unwrap_err().to_string();
    assert!(refused.contains("encryption"), "{refused}");
}
