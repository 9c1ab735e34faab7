//! Tests of terms and of the plans that follow from them.

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
fn runs_share_the_budget_and_have_separate_noise_pages() {
    let one = plan(&terms()).unwrap();
    assert_eq!(one.ladder().unwrap(), one.core.run_ladder);
    let three = Terms { runs: 3, ..terms() };
    let three = plan(&three).unwrap();
    let shares = Rho::checked_sum([three.job.rho; 3]).unwrap();
    assert!(shares <= three.core.budget && three.core.budget == one.core.budget);
    let ladder = three.ladder().unwrap();
    assert_eq!(ladder.pages(), 3 * three.core.run_ladder.pages());
    assert_eq!(ladder.levels(), three.core.run_ladder.levels());
}

#[test]
fn plan_core_agrees_with_the_plan() {
    let terms = Terms { runs: 3, ..terms() };
    assert!(matches!(terms.plan_core(), Err(Error::Terms(..))));
    let terms = terms.complete(&Mechanisms).unwrap();
    let (plan, outline) = (terms.plan().unwrap(), terms.plan_core().unwrap());
    assert_eq!(outline.set, plan.core.set);
    assert_eq!(
        (outline.budget, outline.run_budget),
        (plan.core.budget, plan.job.rho)
    );
    assert_eq!(
        (outline.runs, outline.run_ladder),
        (3, plan.core.run_ladder)
    );
    assert_eq!(outline.ladder().unwrap(), plan.ladder().unwrap());
    assert_eq!(outline.domain, plan.job.domain);
    assert_eq!(outline.record_bound, plan.job.record_bound);
    assert!(matches!(
        Terms { runs: 0, ..terms }.plan_core(),
        Err(Error::Terms(..))
    ));
}

#[test]
fn json_terms_with_unknown_version_or_field_are_rejected() {
    let text = serde_json::to_string(&terms()).unwrap();
    let read: Terms = serde_json::from_str(&text).unwrap();
    assert_eq!(plan(&read).unwrap(), plan(&terms()).unwrap());
    assert!(text.starts_with(r#"{"version":1,"#));
    let parse = |text: &str| serde_json::from_str::<Terms>(text).map_err(|error| error.to_string());
    assert_eq!(parse(&text.replacen(r#""version":1,"#, "", 1)), Ok(terms()));
    for other in [0, 2, 255, 256] {
        let version = format!(r#""version":{other}"#);
        let refused = parse(&text.replacen(r#""version":1"#, &version, 1)).unwrap_err();
        assert!(
            refused.contains(&format!("version {other} is not known")),
            "{refused}"
        );
    }
    let refused = parse(&text.replacen('{', r#"{"extra":1,"#, 1)).unwrap_err();
    assert!(refused.contains("unknown field `extra`"), "{refused}");
}

#[test]
fn terms_with_impossible_numbers_are_rejected() {
    for runs in [0, MAX_RUNS + 1] {
        assert!(matches!(
            plan(&Terms { runs, ..terms() }),
            Err(Error::Terms(..))
        ));
    }
    for epsilon in [0.0, -1.0, f64::NAN] {
        assert!(matches!(
            plan(&Terms { epsilon, ..terms() }),
            Err(Error::Privacy(..))
        ));
    }
    let record_bound = u64::MAX;
    let endless = Terms {
        record_bound,
        ..terms()
    };
    assert!(matches!(plan(&endless), Err(Error::Encryption(..))));
}

#[test]
fn options_are_resolved_and_invalid_ones_are_rejected_by_name() {
    let chosen = |text: &str| Terms {
        options: Some(serde_json::from_str(text).unwrap()),
        ..terms()
    };
    let complete = chosen(r#"{"probe_share":0.15}"#)
        .complete(&Mechanisms)
        .unwrap();
    let options = complete.options.as_ref().unwrap();
    assert_eq!(options["probe_share"], 0.15);
    assert!(options.len() > 1 && options.contains_key("one_way_share"));
    let text = serde_json::to_string(&complete).unwrap();
    assert_eq!(serde_json::from_str::<Terms>(&text).unwrap(), complete);
    assert!(complete.plan().is_ok());
    // A second call with the same options returns the same terms.
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
}

#[test]
fn missing_need_is_completed_and_wrong_need_is_rejected() {
    let chosen = serde_json::to_value(terms()).unwrap();
    assert!(chosen.get("need").is_none() && chosen.get("parameter_set").is_none());
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
    // A service that knows no mechanisms can plan with the changed need. A party that knows them
    // rejects it.
    assert!(less.plan().is_ok());
    assert!(matches!(less.complete(&Mechanisms), Err(Error::Terms(..))));
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

fn roster(partition: Partition, columns: [&[&str]; 2]) -> Roster {
    let member = |(number, columns): (u8, &[&str])| Member {
        account: format!("holder {number}"),
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        record_bound: 256,
        key: crate::roster::HolderSigningKey::from_bytes(&[number; 32]).public(),
    };
    Roster {
        partition,
        honest: 1,
        holders: (1..).zip(columns).map(member).collect(),
    }
}

fn of_two_holders() -> Terms {
    Terms {
        roster: Some(roster(Partition::Records, [&[], &[]])),
        ..terms()
    }
}

fn service(number: u8) -> KeyService {
    KeyService {
        name: format!("service {number}"),
        key: crate::committee::ServiceSigningKey::from_bytes(&[number; 32]).public(),
    }
}

/// While keys are made, each service receives the messages of all services at once.
#[test]
fn rosters_with_too_many_switching_keys_are_rejected() {
    let of = |holders: u8, services: u8, contribution| {
        let mut roster = roster(Partition::Records, [&[], &[]]);
        let first = roster.holders[0].clone();
        let holder = |number| Member {
            account: format!("holder {number}"),
            key: crate::roster::HolderSigningKey::from_bytes(&[number; 32]).public(),
            ..first.clone()
        };
        roster.holders = (1..=holders).map(holder).collect();
        let terms = Terms {
            roster: Some(roster),
            record_bound: 256 * u64::from(holders),
            key_services: (1..=services).map(service).collect(),
            contribution,
            ..terms()
        };
        plan(&terms).map_err(|error| error.to_string())
    };
    for (services, most) in [(0, 44), (2, 7), (3, 4)] {
        assert_eq!(of(most, services, ContributionKind::Records).err(), None);
        let refused = of(most + 1, services, ContributionKind::Records).unwrap_err();
        let words = format!("at most {most} such holders");
        assert!(refused.contains(&words), "{refused}");
        assert!(of(most + 1, services, ContributionKind::Counts).is_ok());
    }
}

#[test]
fn complete_terms_name_the_chosen_parameter_set() {
    let complete = terms().complete(&Mechanisms).unwrap();
    let plan = complete.plan().unwrap();
    assert_eq!(plan.core.set, fhaim_he::COMPACT);
    assert_eq!(complete.parameter_set, Some(plan.core.set.id));
    assert_eq!(complete.plan_core().unwrap().set, plan.core.set);
    assert_eq!(complete.choices(), terms());
    let unnamed = Terms {
        parameter_set: None,
        ..complete
    };
    for refused in [unnamed.plan().err(), unnamed.plan_core().err()] {
        let refused = refused.unwrap().to_string();
        assert!(
            refused.contains("parameter_set: not named in these terms"),
            "{refused}"
        );
    }
}

#[test]
fn named_parameter_set_is_kept_if_it_fits() {
    for terms in [terms(), of_two_holders()] {
        let named = |id| {
            let terms = Terms {
                parameter_set: Some(id),
                ..terms.clone()
            };
            plan(&terms).map(|plan| plan.core.set)
        };
        for set in [fhaim_he::COMPACT, fhaim_he::STANDARD] {
            assert_eq!(named(set.id).unwrap(), set);
        }
        for (id, reason) in [
            (0, "no set has this number"),
            (255, "no set has this number"),
            (fhaim_he::WIDE.id, "does not fit"),
        ] {
            let refused = named(id).unwrap_err().to_string();
            assert!(
                refused.contains("parameter_set") && refused.contains(reason),
                "{refused}"
            );
        }
    }
}

/// A contrast of a wide column has the coefficient 49 on all its rare categories. Products of two
/// such contrasts are too noisy for the smallest set.
#[test]
fn wide_columns_get_a_larger_parameter_set() {
    let set = |categories: usize, record_bound| {
        let column = |name| {
            let names: Vec<String> = (0..categories).map(|c| format!("{name}{c}")).collect();
            serde_json::json!({"name": name, "kind": "categorical", "categories": names})
        };
        let json = serde_json::json!({"name": "t", "columns": [column("a"), column("b")]});
        let schema = Schema::from_json("t.json", json.to_string().as_bytes()).unwrap();
        let terms = Terms {
            options: Some(Options::new()),
            ..Terms::new(schema, 10.0, 1e-9, record_bound)
        };
        plan(&terms).unwrap().core.set
    };
    assert_eq!(set(100, 48_842), fhaim_he::COMPACT);
    assert_eq!(set(189, 48_842), fhaim_he::STANDARD);
}

/// A parameter set for secret keys of one service is not chosen for split keys, and rejected if the
/// terms name it.
#[test]
fn split_keys_have_a_parameter_set_for_shares() {
    for terms in [terms(), of_two_holders()] {
        let split = Terms {
            key_services: vec![service(1), service(2)],
            ..terms
        };
        let complete = split.clone().complete(&Mechanisms).unwrap();
        assert_eq!(complete.parameter_set, Some(fhaim_he::STANDARD.id));
        complete.plan().unwrap().parameters().unwrap();
        let named = Terms {
            parameter_set: Some(fhaim_he::COMPACT.id),
            ..split
        };
        let refused = plan(&named).unwrap_err().to_string();
        assert!(refused.contains("parameter_set"), "{refused}");
    }
}

/// A holder that made its upload key's switching keys could read the dataset's key.
#[test]
fn upload_keys_of_a_roster_are_made_by_the_key_services() {
    let one = terms().complete(&Mechanisms).unwrap();
    assert_eq!(one.plan().unwrap().core.encryption, Encryption::OwnKey);
    assert_eq!(
        (one.encryption(), one.roster_shape()),
        (Encryption::OwnKey, None)
    );
    let columns: [&[&str]; 2] = [&["a"], &["b"]];
    for (partition, columns, contribution, shape) in [
        (
            Partition::Records,
            [&[][..]; 2],
            ContributionKind::Records,
            RosterShape::Records(2),
        ),
        (
            Partition::Records,
            [&[][..]; 2],
            ContributionKind::Counts,
            RosterShape::Counts(2),
        ),
        (
            Partition::Columns,
            columns,
            ContributionKind::Records,
            RosterShape::Columns(2),
        ),
    ] {
        let several = Terms {
            roster: Some(roster(partition, columns)),
            contribution,
            ..terms()
        };
        let several = several.complete(&Mechanisms).unwrap();
        assert_eq!(several.encryption(), Encryption::RosterKey);
        assert_eq!(several.roster_shape(), Some(shape));
        for encryption in [
            several.plan().unwrap().core.encryption,
            several.plan_core().unwrap().encryption,
        ] {
            assert_eq!(encryption, Encryption::RosterKey);
        }
    }
}

/// The roster decides who makes the upload keys, so terms have no field for it.
#[test]
fn terms_with_an_encryption_field_are_rejected() {
    let text = serde_json::to_string(&of_two_holders()).unwrap();
    let named = text.replacen('{', r#"{"encryption":"own-key","#, 1);
    let refused = serde_json::from_str::<Terms>(&named)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("unknown field `encryption`"), "{refused}");
}

#[test]
fn squared_scores_of_two_holders_are_rejected() {
    let of = |mechanism: &str| Terms {
        mechanism: mechanism.to_owned(),
        ..of_two_holders()
    };
    let refused = plan(&of("fhaim-l2")).unwrap_err().to_string();
    assert!(
        refused.contains("mechanism: fhaim-l2") && refused.contains("such as staged"),
        "{refused}"
    );
    assert!(plan(&of("staged")).is_ok());
    let one = Terms {
        roster: None,
        ..of("fhaim-l2")
    };
    let one = one.complete(&Mechanisms).unwrap();
    assert!(one.plan().is_ok() && one.plan_core().is_ok());
    // Every service that plans with terms completed elsewhere rejects them.
    let two = Terms {
        roster: of_two_holders().roster,
        ..one
    };
    let refusals = [two.plan().unwrap_err(), two.plan_core().unwrap_err()];
    for refused in refusals.map(|error| error.to_string()) {
        let words = "mechanism: fhaim-l2 releases squared scores";
        assert!(refused.starts_with(words), "{refused}");
    }
}
