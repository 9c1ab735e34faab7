//! Compares plans with brute force and with the definition of J.

use super::*;

mod plain;
mod wide;

/// Computes J by its definition.
fn defined(fixed: &Fixed, beta: f64, candidates: &[Candidate]) -> f64 {
    let mut terms = fixed.noise_terms;
    let mut budget = fixed.left + fixed.spent;
    let mut own = 0.0;
    for c in candidates {
        own += c.own_term(c.standing, beta);
        if let CandidateStatus::Measured(i) = c.standing {
            terms += c.noise_term(&c.resolutions[i]);
            budget += c.resolutions[i].spent;
        }
    }
    beta * MEAN_ABS * terms.powf(1.5) / (2.0 * budget).sqrt() + own
}

fn candidate(attributes: [usize; 2], distance: f64) -> Candidate {
    let resolution = |k: usize, resolved: f64| Resolution {
        groups: [k, k],
        resolved,
        spent: if k == 2 { 0.001 } else { 0.0 },
    };
    Candidate {
        attributes,
        weight: 1.0,
        resolutions: vec![resolution(2, 0.6), resolution(4, 0.9), resolution(6, 1.0)],
        probe: [2, 2],
        probe_rho: 0.001,
        probe_resolved: 0.6,
        distance,
        standing: CandidateStatus::Outside,
        beside: false,
    }
}

fn all_candidates() -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for a in 0..5 {
        for b in a + 1..5 {
            candidates.push(candidate([a, b], 10.0 * (1 + a * b % 7) as f64));
        }
    }
    candidates
}

const FIXED: Fixed = Fixed {
    noise_terms: 60.0,
    spent: 0.02,
    left: 0.07,
};

fn options(model_cells: usize) -> PlanOptions {
    PlanOptions {
        beta: 0.85,
        gamma: 0.25,
        model_cells,
        beside_cells: model_cells,
        block_cells: usize::MAX,
        additions: usize::MAX,
    }
}

#[test]
fn plan_ends_where_no_single_move_lowers_the_objective() {
    let domain = Domain::new(vec![6; 5]);
    let mut candidates = all_candidates();
    let before = defined(&FIXED, 0.85, &candidates);
    plan(&domain, &FIXED, &options(1 << 20), &mut candidates);
    let after = defined(&FIXED, 0.85, &candidates);
    assert!(after < before);
    for i in 0..candidates.len() {
        let first = match candidates[i].standing {
            CandidateStatus::Measured(at) => at + 1,
            _ => 0,
        };
        for to in first..3 {
            let mut other = candidates.clone();
            other[i].standing = CandidateStatus::Measured(to);
            assert!(defined(&FIXED, 0.85, &other) >= after - 1e-9);
        }
    }
}

#[test]
fn first_move_is_the_best_by_brute_force() {
    let domain = Domain::new(vec![6, 5, 4, 3, 6]);
    let candidates = all_candidates();
    let options = options(1 << 20);
    let start = defined(&FIXED, options.beta, &candidates);
    let graph = ModelGraph::unrefined(domain.len());
    let now = graph.cells().unwrap();
    let mut best = (0.0, 0, CandidateStatus::Outside);
    for i in 0..candidates.len() {
        // A pair's rank is that of its best standing.
        let standings = [CandidateStatus::ProbeOnly]
            .into_iter()
            .chain((0..3).map(CandidateStatus::Measured));
        for to in standings {
            let mut other = candidates.clone();
            other[i].standing = to;
            let fall = start - defined(&FIXED, options.beta, &other);
            let mut with = graph.clone();
            candidates[i].join(to, &mut with);
            let [ka, kb] = candidates[i].groups(to);
            let growth = (with.cells().unwrap() - now) as f64;
            let growth = growth.max((ka * kb) as f64);
            let rank = fall / growth.powf(options.gamma);
            if rank > best.0 {
                best = (rank, i, to);
            }
        }
    }
    let mut copy = candidates.clone();
    let mut moves = Moves::new(&FIXED, &options, &mut copy);
    let ranked = (0..candidates.len()).filter_map(|i| moves.best(i, Room::Any));
    let ranked: BinaryHeap<Move> = ranked.collect();
    let mut rooms = vec![Room::Any; candidates.len()];
    let model = (&GrowingModel::new(graph), now);
    let chosen = choose(ranked, model, &options, &candidates, &mut rooms).unwrap();
    assert_eq!((chosen.candidate, chosen.to), (best.1, best.2));
}

#[test]
fn objective_equals_its_definition() {
    let mut candidates = all_candidates();
    candidates[1].standing = CandidateStatus::ProbeOnly;
    candidates[2].standing = CandidateStatus::Measured(0);
    candidates[4].standing = CandidateStatus::Measured(2);
    let (own, definition) = (
        objective(&FIXED, 0.85, &candidates),
        defined(&FIXED, 0.85, &candidates),
    );
    assert!((own / definition - 1.0).abs() < 1e-12);
}

/// Returns the pairs of seven attributes of 3 to 15 groups, all far from independent. Most caps
/// have no room for all.
fn candidates_of_all_sizes() -> Vec<Candidate> {
    let groups = |attribute: usize, share: usize| 2 + (1 + 2 * attribute) * share / 4;
    let pairs = (0..7).flat_map(|a| (a + 1..7).map(move |b| [a, b]));
    pairs
        .map(|[a, b]| {
            let distance = 100.0 * (1 + (5 * a + 3 * b) % 11) as f64;
            let mut candidate = candidate([a, b], distance);
            for (resolution, share) in candidate.resolutions.iter_mut().zip([0, 2, 4]) {
                resolution.groups = [groups(a, share), groups(b, share)];
            }
            candidate
        })
        .collect()
}

#[test]
fn best_gamma_has_the_lowest_objective_of_all_penalties() {
    let domain = Domain::new((0..7).map(|a| 3 + 2 * a).collect());
    let penalties = [0.0, 0.25, 0.5, 1.0, 2.0];
    let candidates = candidates_of_all_sizes();
    let mut lower = 0;
    for cells in [100, 200, 300, 500, 700, 1_000, 1_500, 2_000, 4_000, 8_000] {
        let reached = |gamma| {
            let mut planned = candidates.clone();
            let options = PlanOptions {
                gamma,
                ..options(cells)
            };
            plan(&domain, &FIXED, &options, &mut planned);
            defined(&FIXED, 0.85, &planned)
        };
        // The number of pairs between two scorings must not matter, because plans are compared at
        // their end.
        let few = PlanOptions {
            additions: 1,
            ..options(cells)
        };
        let best = best_gamma(&domain, &FIXED, &few, &penalties, &candidates);
        for other in penalties {
            let (best, other) = (reached(best), reached(other));
            assert!(best <= other, "{cells} cells: {best}, not {other}");
            lower += usize::from(best < other);
        }
    }
    assert!(lower > 0, "penalties make no difference at any cap");
    assert_eq!(
        best_gamma(&domain, &FIXED, &options(80), &[], &candidates),
        0.25
    );
}

#[test]
fn plan_respects_the_caps_and_keeps_members() {
    let domain = Domain::new(vec![6; 5]);
    for (cells, block_cells) in [(100, usize::MAX), (300, 20), (1 << 20, 1)] {
        let mut candidates = all_candidates();
        candidates[3].standing = CandidateStatus::ProbeOnly;
        let mut options = options(cells);
        options.block_cells = block_cells;
        plan(&domain, &FIXED, &options, &mut candidates);
        assert_ne!(candidates[3].standing, CandidateStatus::Outside);
        let mut graph = ModelGraph::unrefined(domain.len());
        let mut released = 0;
        for c in candidates
            .iter()
            .filter(|c| c.standing != CandidateStatus::Outside)
        {
            c.join(c.standing, &mut graph);
            if let CandidateStatus::Measured(i) = c.standing {
                released += super::block_cells(&c.resolutions[i]);
            }
        }
        assert!(graph.cells().unwrap() <= cells);
        assert!(released <= block_cells);
    }
}

#[test]
fn pairs_without_distance_stay_outside() {
    let domain = Domain::new(vec![6; 5]);
    let mut candidates = all_candidates();
    candidates.iter_mut().for_each(|c| c.distance = 0.0);
    plan(&domain, &FIXED, &options(1 << 20), &mut candidates);
    assert!(
        candidates
            .iter()
            .all(|c| c.standing == CandidateStatus::Outside)
    );
}

/// Extra pairs lower the objective, and leave the model as it would be without them.
#[test]
fn pairs_that_exceed_the_cap_are_planned_as_extra_pairs() {
    let domain = Domain::new(vec![6; 5]);
    let fixed = Fixed { left: 2.0, ..FIXED };
    let options = options(120);
    let mut inside = all_candidates();
    assert!(!plan(&domain, &fixed, &options, &mut inside));
    let left: Vec<usize> = (0..inside.len())
        .filter(|&i| inside[i].standing == CandidateStatus::Outside)
        .collect();
    assert!(!left.is_empty() && left.len() < inside.len());
    let mut both = inside.clone();
    plan_beside(&domain, &fixed, &options, &mut both);
    let extra = both.iter().filter(|candidate| candidate.beside).count();
    // As many tables of 36 cells as the limit allows.
    assert!((1..=3).contains(&extra), "{extra}");
    for (i, (candidate, before)) in both.iter().zip(&inside).enumerate() {
        if candidate.beside {
            assert!(left.contains(&i) && candidate.standing != CandidateStatus::Outside);
        } else {
            assert_eq!(candidate, before);
        }
    }
    let (with, without) = [&both, &inside]
        .map(|candidates| objective(&fixed, options.beta, candidates))
        .into();
    assert!(with < without, "{with} {without}");
    // Extra pairs remain, and a second plan keeps all resolutions.
    let again = both.clone();
    assert!(!plan(&domain, &fixed, &options, &mut both));
    plan_beside(&domain, &fixed, &options, &mut both);
    assert_eq!(both, again);
}
