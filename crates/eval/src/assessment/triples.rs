//! Checks of sets of three columns.

use super::{
    Check,
    coarse::{Coarse, cells},
    evidence::{Examined, Findings, Score},
    interaction::interaction,
    pairs::Columns,
    statistics::Cells,
};
use crate::association::cramers_v;

/// Maximum number of examined sets.
const MAX_TRIPLES: usize = 4_000;
/// Maximum number of records that are counted for all sets together.
const MAX_COUNTED: usize = 1_000_000_000;

/// Smallest distance of the joint distributions that matters, apart from differences of the three pairs: one record in
/// twenty is in another cell.
const MIN_DISTANCE: f64 = 0.05;

impl Columns {
    /// Checks sets of three columns: all, or up to a bound those with the target and with the strongest pairs.
    pub(crate) fn triples(&self) -> Findings {
        let columns = &self.triples;
        let mut findings = Findings {
            all: columns.len() * columns.len().saturating_sub(1) * columns.len().saturating_sub(2)
                / 6,
            ..Findings::default()
        };
        for [a, b, c] in self.chosen_triples(findings.all) {
            findings.subjects += 1;
            let three = [&columns[a], &columns[b], &columns[c]];
            let [real, synthetic] = cells(&three);
            let both = Cells { real, synthetic };
            let compared = both.compare();
            findings
                .scores
                .push(Score::of_distance(compared.distance, compared.expected));
            findings.examined.extend(triple(three, both));
        }
        findings
    }

    fn chosen_triples(&self, all: usize) -> Vec<[usize; 3]> {
        let columns = self.triples.len();
        let records: usize = self
            .triples
            .first()
            .map_or(0, |c| c.codes.iter().map(Vec::len).sum());
        let most = MAX_TRIPLES.min(MAX_COUNTED / records.max(1)).max(1);
        let every = (0..columns).flat_map(|a| {
            (a + 1..columns).flat_map(move |b| (b + 1..columns).map(move |c| [a, b, c]))
        });
        if all <= most {
            return every.collect();
        }
        let strength = self.strengths();
        let of_pairs = |[a, b, c]: [usize; 3]| strength[b][a] + strength[c][a] + strength[c][b];
        let has_target = |set: &[usize; 3]| self.target.is_some_and(|target| set.contains(&target));
        let mut sets: Vec<(bool, f64, [usize; 3])> = every
            .map(|set| (has_target(&set), of_pairs(set), set))
            .collect();
        sets.sort_by(|x, y| y.0.cmp(&x.0).then(y.1.total_cmp(&x.1)));
        sets.into_iter().take(most).map(|(_, _, set)| set).collect()
    }

    /// Returns Cramér's V of the real records for all pairs, the later column first.
    fn strengths(&self) -> Vec<Vec<f64>> {
        let strength = |one: &Coarse, two: &Coarse| {
            let [real, _] = cells(&[one, two]);
            let counts: Vec<u64> = real.into_iter().map(|count| count as u64).collect();
            cramers_v(&counts, two.len())
        };
        let of = |(b, two): (usize, &Coarse)| {
            self.triples[..b]
                .iter()
                .map(|one| strength(one, two))
                .collect()
        };
        self.triples.iter().enumerate().map(of).collect()
    }
}

fn triple(three: [&Coarse; 3], cells: Cells) -> Option<Examined> {
    let shape = three.map(Coarse::len);
    let found = interaction(&[cells.real, cells.synthetic], &shape)?;
    let [a, b, c] = three.map(|column| column.name.as_str());
    Some(Examined {
        check: Check::Triple,
        columns: vec![a.to_owned(), b.to_owned(), c.to_owned()],
        purpose: None,
        distance: found.distance,
        expected: found.expected,
        spread: found.spread,
        p: found.p,
        size: (found.distance - found.expected) / MIN_DISTANCE,
        tests: 1,
        text: format!(
            "{a}, {b} and {c} depend on each other in another way, which the three pairs do not show"
        ),
    })
}
