//! Ordered values together with words, such as `<0.5` among numbers, as groups of one attribute.

use std::collections::HashMap;

use rand::Rng;

use crate::ordered::{Ordered, Span, StepSet};

/// Steps in groups and parts, and words of which each has its own group. Words that stand for small values come before
/// all steps, and other words after them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OrderedWithWords {
    steps: Ordered,
    /// The words before and after the steps, in the order of their codes.
    below: Vec<String>,
    above: Vec<String>,
    /// The code of each word.
    codes: HashMap<String, u32>,
}

/// A value that was drawn from a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drawn<'a> {
    Step(i64),
    Word(&'a str),
}

impl OrderedWithWords {
    /// Adds words to steps. The words are different. Those that begin with `<` or `≤` come before all steps, then follow
    /// those that begin with `>` or `≥`, then all others. Words of a class keep their order.
    pub(crate) fn new(steps: Ordered, words: &[String]) -> Self {
        let class = |word: &&String| match word.chars().next() {
            Some('<' | '≤') => 0,
            Some('>' | '≥') => 1,
            _ => 2,
        };
        let of_class = |wanted: u8| {
            words
                .iter()
                .filter(move |word| class(word) == wanted)
                .cloned()
        };
        let below: Vec<String> = of_class(0).collect();
        let above: Vec<String> = of_class(1).chain(of_class(2)).collect();
        let first_above = below.len() as u32 + steps.parts().count() as u32;
        let codes = below.iter().zip(0..).chain(above.iter().zip(first_above..));
        Self {
            codes: codes.map(|(word, code)| (word.clone(), code)).collect(),
            steps,
            below,
            above,
        }
    }

    /// Whether there are words.
    pub(crate) fn has_words(&self) -> bool {
        !self.codes.is_empty()
    }

    /// Returns the number of parts of each group.
    pub(crate) fn parts(&self) -> impl Iterator<Item = u32> + '_ {
        let words = |words: &[String]| std::iter::repeat_n(1, words.len());
        words(&self.below)
            .chain(self.steps.parts())
            .chain(words(&self.above))
    }

    /// Returns the label of each group: its first and last step, its only step, or its word.
    pub(crate) fn labels(&self, show: impl Fn(i64) -> String) -> Vec<String> {
        let words = |words: &[String]| words.to_vec();
        [
            words(&self.below),
            self.steps.labels(show),
            words(&self.above),
        ]
        .concat()
    }

    /// The smallest and the largest step of a bin.
    pub(crate) fn limits(&self) -> Span {
        self.steps.limits()
    }

    /// Returns the nearest step in a bin.
    pub(crate) fn clamp(&self, step: i64) -> i64 {
        self.steps.clamp(step)
    }

    /// Returns the group and the part of a step, or `None` if it is outside all groups.
    pub(crate) fn encode(&self, step: i64) -> Option<(u32, u32)> {
        let (group, part) = self.steps.encode(step)?;
        Some((group + self.below.len() as u32, part))
    }

    /// Returns the group and the part of a word, or `None` for any other text.
    pub(crate) fn encode_word(&self, word: &str) -> Option<(u32, u32)> {
        Some((*self.codes.get(word)?, 0))
    }

    /// Draws a value from a part of a group, as [`Ordered::sample`] does. Codes past the last stand for the last group
    /// of steps.
    pub(crate) fn sample(&self, group: u32, part: u32, rng: &mut (impl Rng + ?Sized)) -> Drawn<'_> {
        match self.resolve(group) {
            Place::Word(word) => Drawn::Word(word),
            Place::Steps(group) => Drawn::Step(self.steps.sample(group, part, rng)),
        }
    }

    /// Returns the first and last step of a group, or of one of its parts. Returns `None` for a word.
    pub(crate) fn span(&self, group: u32, part: Option<u32>) -> Option<Span> {
        match self.resolve(group) {
            Place::Word(_) => None,
            Place::Steps(group) => Some(self.steps.span(group, part)),
        }
    }

    /// Returns the steps of a group, or of one of its parts. Returns `None` for a word.
    pub(crate) fn steps(&self, group: u32, part: Option<u32>) -> Option<StepSet<'_>> {
        match self.resolve(group) {
            Place::Word(_) => None,
            Place::Steps(group) => Some(self.steps.steps(group, part)),
        }
    }

    fn resolve(&self, group: u32) -> Place<'_> {
        if let Some(word) = self.below.get(group as usize) {
            return Place::Word(word);
        }
        let group = group - self.below.len() as u32;
        let above = (group as usize).checked_sub(self.steps.parts().count());
        match above.and_then(|index| self.above.get(index)) {
            Some(word) => Place::Word(word),
            None => Place::Steps(group),
        }
    }
}

/// The meaning of a group's code.
enum Place<'a> {
    Word(&'a str),
    /// A group of [`Ordered`].
    Steps(u32),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    fn with_words(words: &[&str]) -> OrderedWithWords {
        let steps = Ordered::new(&[0], &[(1, 10), (11, 20)], 5).unwrap();
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        OrderedWithWords::new(steps, &words)
    }

    #[test]
    fn words_stand_below_and_above_all_steps() {
        let all = with_words(&["neg", ">20", "<1", "≥ 50", "≤0.5", "trace"]);
        let labels = all.labels(|step| step.to_string());
        assert_eq!(
            labels,
            [
                "<1", "≤0.5", "0", "1 to 10", "11 to 20", ">20", "≥ 50", "neg", "trace"
            ]
        );
        let parts: Vec<u32> = all.parts().collect();
        assert_eq!(parts, [1, 1, 1, 5, 5, 1, 1, 1, 1]);
        for (label, code) in labels.iter().zip(0..) {
            let is_word = !label.starts_with(|c: char| c.is_ascii_digit());
            assert_eq!(all.encode_word(label), is_word.then_some((code, 0)));
            assert_eq!(all.span(code, None).is_none(), is_word);
        }
        assert_eq!(all.encode(0), Some((2, 0)));
        assert_eq!(all.encode(20), Some((4, 4)));
        assert_eq!(all.encode(21), None);
    }

    #[test]
    fn codes_past_the_last_stand_for_steps() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let all = with_words(&["<1", "neg"]);
        for group in [5, 6, u32::MAX] {
            let drawn = all.sample(group, 0, &mut rng);
            assert!(matches!(drawn, Drawn::Step(11..=12)), "{drawn:?}");
            assert_eq!(all.span(group, None), Some((11, 20)));
        }
    }

    proptest! {
        #[test]
        fn drawn_value_encodes_to_its_part(
            words in proptest::collection::btree_set("[<>≤≥a-z][0-9]{0,2}", 0..6), seed: u64,
        ) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let all = with_words(&words);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            for (parts, group) in all.parts().zip(0..) {
                for part in 0..parts {
                    let place = match all.sample(group, part, &mut rng) {
                        Drawn::Step(step) => all.encode(step),
                        Drawn::Word(word) => all.encode_word(word),
                    };
                    prop_assert_eq!(place, Some((group, part)));
                }
            }
        }
    }
}
