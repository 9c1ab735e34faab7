//! Compares plans with those of a plain loop, which computes everything again for each move.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;

/// A move, its fall and the least growth of the model.
type PlainMove = (usize, CandidateStatus, f64, f64);

fn best_of(
    state: &State,
    options: &PlanOptions,
    (index, candidate): (usize, &Candidate),
    room: Room,
) -> Option<PlainMove> {
    let from = candidate.standing;
    if candidate.distance <= 0.0 {
        return None;
    }
    let before = state.noise(options.beta) + candidate.own_term(from, options.beta);
    let first = match from {
        CandidateStatus::Measured(at) => at + 1,
        CandidateStatus::Outside | CandidateStatus::ProbeOnly => 0,
    };
    let probe_only = (from == CandidateStatus::Outside).then_some(CandidateStatus::ProbeOnly);
    let measured = (first..candidate.resolutions.len()).map(CandidateStatus::Measured);
    let mut best: Option<PlainMove> = None;
    for to in probe_only.into_iter().chain(measured) {
        let moved = state.moved(candidate, from, to);
        if moved.block_cells > options.block_cells || !room.has(to) {
            continue;
        }
        let after = moved.noise(options.beta) + candidate.own_term(to, options.beta);
        let fall = before - after;
        if fall > best.map_or(0.0, |m| m.2) {
            let [ka, kb] = candidate.groups(to);
            best = Some((index, to, fall, ka as f64 * kb as f64));
        }
    }
    best
}

/// Returns the move with the highest rank among moves in the order of their bounds, by eliminating
/// the whole graph for each.
fn plain_choice(
    moves: &[PlainMove],
    graph: &ModelGraph,
    options: &PlanOptions,
    candidates: &[Candidate],
    rooms: &mut [Room],
) -> Option<PlainMove> {
    let now = graph.cells().unwrap();
    let mut best: Option<(f64, PlainMove)> = None;
    for &m in moves {
        let (index, to, fall, least) = m;
        if best.is_some_and(|(rank, _)| fall / least.powf(options.gamma) <= rank) {
            break;
        }
        let mut with = graph.clone();
        candidates[index].join(to, &mut with);
        match with.cells() {
            Some(cells) if cells <= options.model_cells => {
                let growth = (cells.saturating_sub(now) as f64).max(least);
                let rank = fall / growth.powf(options.gamma);
                if best.is_none_or(|(most, _)| rank > most) {
                    best = Some((rank, m));
                }
            }
            _ => rooms[index] = Room::without(to),
        }
    }
    best.map(|(_, m)| m)
}

pub(super) fn plain_plan(
    domain: &Domain,
    fixed: &Fixed,
    options: &PlanOptions,
    candidates: &mut [Candidate],
) -> bool {
    let mut graph = ModelGraph::unrefined(domain.len());
    for digit in domain.digits() {
        graph.refine(digit.coarse(), domain.size(digit.coarse()));
        graph.refine(digit.fine(), domain.size(digit.fine()));
        graph.add(&digit.clique());
    }
    (candidates.iter()).for_each(|candidate| candidate.join(candidate.standing, &mut graph));
    let mut state = State::new(fixed, candidates);
    let mut rooms = vec![Room::Any; candidates.len()];
    let mut added = 0;
    while added < options.additions {
        let open = candidates.iter().enumerate().filter(|(_, c)| !c.beside);
        let moves = open.filter_map(|of| best_of(&state, options, of, rooms[of.0]));
        let mut moves: Vec<PlainMove> = moves.collect();
        if moves.is_empty() {
            return false;
        }
        let bound = |m: &PlainMove| m.2 / m.3.powf(options.gamma);
        moves.sort_by(|x, y| bound(y).total_cmp(&bound(x)));
        let chosen = plain_choice(&moves, &graph, options, candidates, &mut rooms);
        if let Some((index, to, ..)) = chosen {
            let candidate = &mut candidates[index];
            added += usize::from(candidate.standing == CandidateStatus::Outside);
            state = state.moved(candidate, candidate.standing, to);
            candidate.standing = to;
            candidate.join(to, &mut graph);
        }
    }
    true
}

/// Returns pairs of some attributes, each with its resolutions. Some are already in the model, or
/// extra pairs.
fn drawn(rng: &mut StdRng, domain: &Domain) -> Vec<Candidate> {
    let pairs = (0..domain.len()).flat_map(|a| (a + 1..domain.len()).map(move |b| [a, b]));
    let pairs: Vec<[usize; 2]> = pairs.filter(|_| rng.random_range(0..4) > 0).collect();
    let draw = |attributes: [usize; 2]| {
        let near = 0.8f64.powi((attributes[1] - attributes[0]) as i32);
        let mut candidate = candidate(attributes, 600.0 * near * rng.random::<f64>());
        for (resolution, share) in candidate.resolutions.iter_mut().zip([1, 2, 4]) {
            resolution.groups = attributes.map(|a| (domain.size(a) * share / 4).max(2));
        }
        candidate.weight = [1.0, 1.0, 2.0][rng.random_range(0..3)];
        candidate.standing = match rng.random_range(0..20) {
            0 => CandidateStatus::ProbeOnly,
            1 => CandidateStatus::Measured(rng.random_range(0..2)),
            _ => CandidateStatus::Outside,
        };
        candidate.beside =
            candidate.standing != CandidateStatus::Outside && rng.random_range(0..2) > 0;
        candidate
    };
    pairs.into_iter().map(draw).collect()
}

#[test]
fn plans_equal_those_of_a_plain_loop() {
    let mut rng = StdRng::seed_from_u64(9);
    let mut members = 0;
    for round in 0..60 {
        let attributes = 3 + round / 4;
        let sizes = (0..attributes).map(|_| rng.random_range(2..9));
        let domain = Domain::new(sizes.collect());
        let candidates = drawn(&mut rng, &domain);
        let options = PlanOptions {
            gamma: [0.0, 0.1, 0.25, 0.5, 0.75, 2.0][round % 6],
            block_cells: [usize::MAX, 150][round % 2],
            additions: [usize::MAX, 3][round / 2 % 2],
            ..options([200, 2_000, 1 << 16][round % 3])
        };
        let (mut quick, mut plain) = (candidates.clone(), candidates);
        let unfinished = plan(&domain, &FIXED, &options, &mut quick);
        assert_eq!(
            unfinished,
            plain_plan(&domain, &FIXED, &options, &mut plain)
        );
        assert_eq!(quick, plain, "{round}");
        members += quick
            .iter()
            .filter(|c| c.standing != CandidateStatus::Outside)
            .count();
    }
    assert!(members > 500, "{members}");
}
