//! Ordered values in groups, and groups in parts: the basis of digits.
//!
//! A number, a date or a duration is a whole number of *steps* (a decimal place, a day, an hour). Steps form groups,
//! which are the codes of a coarse attribute. The steps of a group form parts, which are the codes of a fine attribute
//! that depends on the coarse one. In this way c + f one-hot columns distinguish up to c * f values. A special value
//! has its own group.

use rand::Rng;

/// Maximum number of parts of a group: the size of a fine attribute.
pub const MAX_DIGITS: u32 = 1_024;

/// Maximum number of parts of a column.
pub const MAX_PARTS: usize = 100_000;

/// Why groups cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderedProblem {
    /// Edges that do not ascend by at least one step each.
    #[error("`edges` needs at least two values, and each must be larger than the one before")]
    Edges,
    /// Fewer than one bin, or more than there are steps.
    #[error("`bins` must be from 1 to {0}, the number of different values from `min` to `max`")]
    Bins(u64),
    /// No way, or more than one way, to define the bins.
    #[error("define the bins by either `edges`, or `min`, `max` and `bins`")]
    Limits,
    /// `digits` out of range.
    #[error("`digits` must be from 1 to {MAX_DIGITS}, not {0}")]
    Digits(u64),
    /// Too many parts.
    #[error("bins times digits must be at most {MAX_PARTS}: use fewer of either")]
    Parts,
    /// The same special value twice.
    #[error("a special value appears twice")]
    RepeatedSpecial,
    /// A bin that contains only special values.
    #[error("bin {0} contains only special values: leave it out")]
    OnlySpecial(usize),
    /// A number that is not a multiple of the step, or is too large.
    #[error("{0} is not a value of this column: it has too many decimals or is too large")]
    Step(f64),
    /// A number between two multiples of `step`.
    #[error("{value} is not a multiple of `step`, {step}: use {below} or {above}")]
    Multiple {
        /// The number.
        value: f64,
        /// The step.
        step: f64,
        /// The largest multiple below the number.
        below: f64,
        /// The smallest multiple above the number.
        above: f64,
    },
}

/// Steps from the first to the last, both included.
pub(crate) type Span = (i64, i64);

/// A coarse code: special steps, or a bin and its parts.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    /// The steps of a group of special values, ascending; empty for a bin.
    special: Vec<i64>,
    /// Ascending; at least one, each with a step that is not special. Only special steps lie between parts. A group of
    /// special values has one part, from the first to the last of them.
    parts: Vec<Span>,
}

impl Group {
    fn span(&self) -> Span {
        let first = self.parts.first().map_or(0, |part| part.0);
        let last = self.parts.last().map_or(first, |part| part.1);
        (first, last)
    }
}

/// Steps in groups and parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ordered {
    /// In ascending order of their first steps. A special value comes before the bin that contains it.
    groups: Vec<Group>,
    /// Special steps with their groups, ascending.
    special: Vec<(i64, u32)>,
    /// Bins with their groups, ascending.
    bins: Vec<(Span, u32)>,
}

impl Ordered {
    /// Builds groups from special values, each of which has its own group, and bins (ascending, without gaps). Each bin
    /// has at most `digits` parts with about equal numbers of steps.
    ///
    /// # Errors
    /// See [`OrderedProblem`].
    pub(crate) fn new(special: &[i64], bins: &[Span], digits: u32) -> Result<Self, OrderedProblem> {
        let sets: Vec<Vec<i64>> = special.iter().map(|&step| vec![step]).collect();
        Self::with_sets(&sets, bins, digits)
    }

    /// The same with sets of special values. Each set has its own group, of which all values are equally likely.
    ///
    /// # Errors
    /// See [`OrderedProblem`].
    pub(crate) fn with_sets(
        sets: &[Vec<i64>],
        bins: &[Span],
        digits: u32,
    ) -> Result<Self, OrderedProblem> {
        if !(1..=MAX_DIGITS).contains(&digits) {
            return Err(OrderedProblem::Digits(digits.into()));
        }
        if bins.len().saturating_mul(digits as usize) > MAX_PARTS {
            return Err(OrderedProblem::Parts);
        }
        let mut special: Vec<i64> = sets.iter().flatten().copied().collect();
        special.sort_unstable();
        if special.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(OrderedProblem::RepeatedSpecial);
        }
        let filled = sets.iter().filter(|set| !set.is_empty());
        let mut groups: Vec<Group> = filled.map(|set| group_of(set)).collect();
        for (index, &bin) in bins.iter().enumerate() {
            let parts = cut(bin, digits, &special);
            if parts.is_empty() {
                return Err(OrderedProblem::OnlySpecial(index + 1));
            }
            let special = Vec::new();
            groups.push(Group { special, parts });
        }
        groups.sort_by_key(|group| (group.span().0, group.special.is_empty()));
        let numbered = || groups.iter().zip(0u32..);
        let steps = numbered().flat_map(|(g, code)| g.special.iter().map(move |&s| (s, code)));
        let mut special: Vec<(i64, u32)> = steps.collect();
        special.sort_unstable();
        let codes = numbered().filter(|(group, _)| group.special.is_empty());
        Ok(Self {
            special,
            bins: bins
                .iter()
                .copied()
                .zip(codes.map(|(_, code)| code))
                .collect(),
            groups,
        })
    }

    /// Returns the number of parts of each group: the values that the fine attribute may have under each coarse value.
    pub(crate) fn parts(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().map(|group| group.parts.len() as u32)
    }

    /// The smallest and the largest step of a bin.
    pub(crate) fn limits(&self) -> Span {
        let first = self.bins.first().map_or(0, |(span, _)| span.0);
        let last = self.bins.last().map_or(first, |(span, _)| span.1);
        (first, last)
    }

    /// Returns the group and the part of a step, or `None` if it is outside all groups.
    pub(crate) fn encode(&self, step: i64) -> Option<(u32, u32)> {
        if let Ok(index) = self.special.binary_search_by_key(&step, |&(step, _)| step) {
            return Some((self.special[index].1, 0));
        }
        let after = self.bins.partition_point(|(span, _)| span.0 <= step);
        let &(span, code) = self.bins.get(after.checked_sub(1)?)?;
        let parts = &self.groups.get(code as usize)?.parts;
        // A step between two parts is special, and was found above.
        let part = parts
            .partition_point(|part| part.0 <= step)
            .saturating_sub(1);
        (step <= span.1).then_some((code, part as u32))
    }

    /// Returns the nearest step in a bin.
    pub(crate) fn clamp(&self, step: i64) -> i64 {
        let (first, last) = self.limits();
        step.clamp(first, last.max(first))
    }

    /// Draws a step uniformly from those of a part that are not special. A model may give a little mass to parts and
    /// groups that do not exist. Such a part stands for another part of its group, and such a group for the last one.
    pub(crate) fn sample(&self, group: u32, part: u32, rng: &mut (impl Rng + ?Sized)) -> i64 {
        let last = self.groups.len().saturating_sub(1);
        let Some(group) = self.groups.get((group as usize).min(last)) else {
            return 0;
        };
        let (first, last) = group.parts[part as usize % group.parts.len()];
        if first == last {
            return first;
        }
        if !group.special.is_empty() {
            return group.special[rng.random_range(0..group.special.len())];
        }
        let begin = self.special.partition_point(|&(step, _)| step < first);
        let end = self.special.partition_point(|&(step, _)| step <= last);
        // Every part of a bin has a step that is not special: the range is not empty.
        let mut step = rng.random_range(first..=last - (end - begin) as i64);
        for &(special, _) in &self.special[begin..end] {
            step += i64::from(special <= step);
        }
        step
    }

    /// Returns the first and last step of a group, or of one of its parts. Codes past the last are treated as in
    /// [`Self::sample`].
    pub(crate) fn span(&self, group: u32, part: Option<u32>) -> Span {
        let last = self.groups.len().saturating_sub(1);
        let Some(group) = self.groups.get((group as usize).min(last)) else {
            return (0, 0);
        };
        match part {
            Some(part) => group.parts[part as usize % group.parts.len()],
            None => group.span(),
        }
    }

    /// Returns the steps of a group, or of one of its parts, that [`Self::sample`] draws from.
    pub(crate) fn steps(&self, group: u32, part: Option<u32>) -> StepSet<'_> {
        let (first, last) = self.span(group, part);
        let found = self
            .groups
            .get((group as usize).min(self.groups.len().saturating_sub(1)));
        let only = found.map_or(&[][..], |group| &group.special);
        let begin = self.special.partition_point(|&(step, _)| step < first);
        let end = self.special.partition_point(|&(step, _)| step <= last);
        let without = self.special.get(begin..end).filter(|_| only.is_empty());
        StepSet {
            span: (first, last),
            only,
            without: without.unwrap_or_default(),
        }
    }

    /// Returns the label of each group: its first and last step, or its only step.
    pub(crate) fn labels(&self, show: impl Fn(i64) -> String) -> Vec<String> {
        self.labels_of_sets(show, |_| None)
    }

    /// The same, with other labels for groups of several special values.
    pub(crate) fn labels_of_sets(
        &self,
        show: impl Fn(i64) -> String,
        show_set: impl Fn(&[i64]) -> Option<String>,
    ) -> Vec<String> {
        let label = |group: &Group| match group.span() {
            (first, last) if first == last => show(first),
            (first, last) => format!("{} to {}", show(first), show(last)),
        };
        let set_label = |group: &Group| match group.special.len() {
            0 | 1 => None,
            _ => show_set(&group.special),
        };
        let groups = self.groups.iter();
        groups
            .map(|group| set_label(group).unwrap_or_else(|| label(group)))
            .collect()
    }
}

/// The steps that the codes of a value leave open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSet<'a> {
    span: Span,
    /// All steps of the set, ascending; empty if the set has all steps of the span but those below.
    only: &'a [i64],
    /// Steps of the span that are special, and so do not belong to the set, ascending.
    without: &'a [(i64, u32)],
}

impl StepSet<'_> {
    /// Returns the set of all steps from the first to the last of a span.
    pub(crate) fn all(span: Span) -> Self {
        Self {
            span,
            only: &[],
            without: &[],
        }
    }

    /// First and last step, of which either may be special in a bin.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Returns the least step of the set that is at least `step`.
    pub(crate) fn at_least(&self, step: i64) -> Option<i64> {
        if !self.only.is_empty() {
            let place = self.only.partition_point(|&own| own < step);
            return self.only.get(place).copied();
        }
        let mut step = step.max(self.span.0);
        let place = self.without.partition_point(|&(hole, _)| hole < step);
        for &(hole, _) in self.without.get(place..)? {
            if hole != step {
                break;
            }
            step = step.checked_add(1)?;
        }
        (step <= self.span.1).then_some(step)
    }

    /// Returns the largest step of the set that is at most `step`.
    pub(crate) fn at_most(&self, step: i64) -> Option<i64> {
        if !self.only.is_empty() {
            let place = self.only.partition_point(|&own| own <= step);
            return self.only.get(place.checked_sub(1)?).copied();
        }
        let mut step = step.min(self.span.1);
        let place = self.without.partition_point(|&(hole, _)| hole <= step);
        for &(hole, _) in self.without.get(..place)?.iter().rev() {
            if hole != step {
                break;
            }
            step = step.checked_sub(1)?;
        }
        (step >= self.span.0).then_some(step)
    }

    /// Draws a step of the set between two steps, or returns `None` if the set has no step there.
    pub(crate) fn draw(&self, (first, last): Span, rng: &mut (impl Rng + ?Sized)) -> Option<i64> {
        let (first, last) = (self.at_least(first)?, self.at_most(last)?);
        if first >= last {
            return (first == last).then_some(first);
        }
        if !self.only.is_empty() {
            let begin = self.only.partition_point(|&own| own < first);
            let end = self.only.partition_point(|&own| own <= last);
            return self.only.get(rng.random_range(begin..end)).copied();
        }
        let begin = self.without.partition_point(|&(hole, _)| hole < first);
        let end = self.without.partition_point(|&(hole, _)| hole < last);
        // The first and the last step belong to the set, so the range is not empty.
        let mut step = rng.random_range(first..=last - (end - begin) as i64);
        for &(hole, _) in self.without.get(begin..end)? {
            step += i64::from(hole <= step);
        }
        Some(step)
    }
}

fn group_of(steps: &[i64]) -> Group {
    let mut special = steps.to_vec();
    special.sort_unstable();
    let first = special.first().copied().unwrap_or(0);
    let last = special.last().copied().unwrap_or(first);
    Group {
        special,
        parts: vec![(first, last)],
    }
}

/// Cuts a bin into at most `digits` parts. Parts that contain only special values are left out.
fn cut((first, last): Span, digits: u32, special: &[i64]) -> Vec<Span> {
    let steps = i128::from(last) - i128::from(first) + 1;
    let count = steps.clamp(0, digits.into());
    let edge = |part: i128| (i128::from(first) + part * steps / count.max(1)) as i64;
    let mut parts: Vec<Span> = Vec::with_capacity(count as usize);
    for part in 0..count {
        let span = (edge(part), edge(part + 1) - 1);
        let begin = special.partition_point(|&step| step < span.0);
        let end = special.partition_point(|&step| step <= span.1);
        if ((end - begin) as i128) < i128::from(span.1) - i128::from(span.0) + 1 {
            parts.push(span);
        }
    }
    parts
}

/// Returns bins between edges. Each bin ends before the next edge; the last includes the last edge.
///
/// # Errors
/// [`OrderedProblem::Edges`].
pub(crate) fn bins_between(edges: &[i64]) -> Result<Vec<Span>, OrderedProblem> {
    if edges.len() < 2 || edges.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(OrderedProblem::Edges);
    }
    let mut bins: Vec<Span> = edges
        .windows(2)
        .map(|pair| (pair[0], pair[1] - 1))
        .collect();
    if let Some(last) = bins.last_mut() {
        last.1 += 1;
    }
    Ok(bins)
}

/// Returns `bins` bins with about equal numbers of steps from `min` to `max`, both included.
///
/// # Errors
/// [`OrderedProblem::Edges`], [`OrderedProblem::Bins`].
pub(crate) fn even_bins((min, max): Span, bins: u64) -> Result<Vec<Span>, OrderedProblem> {
    if min > max {
        return Err(OrderedProblem::Edges);
    }
    let steps = max.abs_diff(min).saturating_add(1);
    let most = steps.min(crate::MAX_BINS.into());
    if !(1..=most).contains(&bins) {
        return Err(OrderedProblem::Bins(most));
    }
    Ok(cut((min, max), bins as u32, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    #[test]
    fn special_values_have_their_own_group_and_are_not_drawn_from_bins() {
        let ordered = Ordered::new(&[0, 999], &[(0, 9), (10, 19)], 4).unwrap();
        assert_eq!(ordered.parts().collect::<Vec<_>>(), [1, 4, 4, 1]);
        assert_eq!(ordered.encode(0), Some((0, 0)));
        assert_eq!(ordered.encode(1), Some((1, 0)));
        assert_eq!(ordered.encode(19), Some((2, 3)));
        assert_eq!(ordered.encode(999), Some((3, 0)));
        assert_eq!(ordered.encode(20), None);
        assert_eq!(ordered.encode(-1), None);
        let labels = ordered.labels(|step| step.to_string());
        assert_eq!(labels, ["0", "0 to 9", "10 to 19", "999"]);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut seen = [0; 3];
        for _ in 0..3000 {
            let step = ordered.sample(1, 0, &mut rng);
            seen[step as usize] += 1;
        }
        // The first part of (0, 9) is 0 and 1, and 0 is special.
        assert_eq!(seen, [0, 3000, 0]);
    }

    #[test]
    fn set_of_special_values_shares_a_group() {
        let ordered = Ordered::with_sets(&[vec![2, 12], vec![5]], &[(0, 19)], 2).unwrap();
        let labels = ordered.labels(|step| step.to_string());
        assert_eq!(labels, ["0 to 19", "2 to 12", "5"]);
        assert_eq!(ordered.encode(2), Some((1, 0)));
        assert_eq!(ordered.encode(12), Some((1, 0)));
        assert_eq!(ordered.encode(11), Some((0, 1)));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..200 {
            assert!([2, 12].contains(&ordered.sample(1, 0, &mut rng)));
            assert!(![2, 5, 12].contains(&ordered.sample(0, 1, &mut rng)));
        }
    }

    #[test]
    fn parts_with_only_special_values_are_left_out() {
        let ordered = Ordered::new(&[3], &[(3, 5)], 3).unwrap();
        assert_eq!(ordered.parts().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(ordered.encode(4), Some((1, 0)));
        assert_eq!(
            Ordered::new(&[3], &[(3, 3), (4, 5)], 3),
            Err(OrderedProblem::OnlySpecial(1))
        );
    }

    #[test]
    fn invalid_edges_bins_and_digits_are_rejected() {
        assert_eq!(bins_between(&[1]), Err(OrderedProblem::Edges));
        assert_eq!(bins_between(&[1, 1]), Err(OrderedProblem::Edges));
        assert_eq!(bins_between(&[1, 3, 6]), Ok(vec![(1, 2), (3, 6)]));
        assert_eq!(even_bins((0, 4), 6), Err(OrderedProblem::Bins(5)));
        assert_eq!(even_bins((0, 4), 2), Ok(vec![(0, 1), (2, 4)]));
        assert_eq!(
            even_bins((i64::MIN, i64::MAX), 0),
            Err(OrderedProblem::Bins(10_000))
        );
        assert_eq!(
            Ordered::new(&[], &[(0, 9)], 0),
            Err(OrderedProblem::Digits(0))
        );
        assert_eq!(
            Ordered::new(&[1, 1], &[(0, 9)], 1),
            Err(OrderedProblem::RepeatedSpecial)
        );
        let wide = vec![(0, 9); 1000];
        assert_eq!(Ordered::new(&[], &wide, 1000), Err(OrderedProblem::Parts));
    }

    /// Compares the set of a part with the steps that are encoded as the part.
    fn check_set(
        ordered: &Ordered,
        group: u32,
        part: Option<u32>,
        rng: &mut ChaCha8Rng,
    ) -> Result<(), TestCaseError> {
        let set = ordered.steps(group, part);
        let is_own =
            |place: (u32, u32)| place.0 == group && part.is_none_or(|part| part == place.1);
        let own = |step: &i64| ordered.encode(*step).is_some_and(is_own);
        let members: Vec<i64> = (-230..310).filter(own).collect();
        for step in -230..310 {
            let least = members.iter().copied().find(|&own| own >= step);
            prop_assert_eq!(set.at_least(step), least);
            let largest = members.iter().copied().rfind(|&own| own <= step);
            prop_assert_eq!(set.at_most(step), largest);
            let drawn = set.draw((step, step + 9), rng);
            prop_assert_eq!(
                drawn.is_some(),
                least.is_some_and(|least| least <= step + 9)
            );
            prop_assert!(drawn.is_none_or(|drawn| members.contains(&drawn)));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn sampled_step_encodes_to_its_part(
            mut edges in proptest::collection::btree_set(-200i64..200, 2..9),
            special in proptest::collection::btree_set(-220i64..220, 0..6),
            digits in 1u32..20, seed: u64,
        ) {
            edges.insert(300);
            let edges: Vec<i64> = edges.into_iter().collect();
            let special: Vec<i64> = special.into_iter().collect();
            let bins = bins_between(&edges).unwrap();
            if let Ok(ordered) = Ordered::new(&special, &bins, digits) {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                for (group, parts) in (0u32..).zip(ordered.parts()) {
                    for part in 0..parts {
                        let step = ordered.sample(group, part, &mut rng);
                        prop_assert_eq!(ordered.encode(step), Some((group, part)));
                    }
                    for part in (0..parts).map(Some).chain([None]) {
                        check_set(&ordered, group, part, &mut rng)?;
                    }
                }
                for step in -230..310 {
                    let known = special.contains(&step) || (edges[0]..=300).contains(&step);
                    prop_assert_eq!(ordered.encode(step).is_some(), known);
                }
            }
        }
    }
}
