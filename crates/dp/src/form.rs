//! How a noise ladder is laid out. Terms name it: a ladder is read as it was uploaded, for good.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{DIGIT_SAMPLES, PAGE};

/// The form of a noise ladder. Both hold the same samples for a release: digit d of its variance, to
/// the base 4, takes d samples of the digit's level. The noise and its price are the same, and the
/// dense form takes fewer vectors and fewer pages for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LadderForm {
    /// Three vectors a level, of a sample each; a release lies within one page, unless it is larger
    /// than a page and begins one. What terms mean that name no form.
    #[default]
    Loose,
    /// Two vectors a level: one sample, and the sum of two others. A release begins where the
    /// last one ended, and goes on into the next page.
    Dense,
}

impl LadderForm {
    /// Whether it is the form that is not written.
    pub fn is_loose(&self) -> bool {
        *self == Self::Loose
    }

    /// Vectors at each level.
    pub fn vectors(self) -> usize {
        match self {
            Self::Loose => DIGIT_SAMPLES,
            Self::Dense => 2,
        }
    }

    /// Of how many samples each integer of a level's vector `index` is the sum.
    pub fn samples(self, index: usize) -> usize {
        match self {
            Self::Loose => 1,
            Self::Dense => 1 + index,
        }
    }

    /// The vectors of a level, by index, that a digit of 1 to 3 takes: together as many samples as it says.
    pub fn of_digit(self, digit: usize) -> Range<usize> {
        match (self, digit) {
            (Self::Dense, 2) => 1..2,
            (Self::Dense, digit) => 0..digit.div_ceil(2),
            (Self::Loose, digit) => 0..digit,
        }
    }

    /// Where a release of `cells` cells begins when positions up to `next` are used.
    pub(crate) fn first_position(self, next: usize, cells: usize) -> usize {
        let offset = next % PAGE;
        if self == Self::Dense || offset == 0 || cells <= PAGE - offset {
            next
        } else {
            (next - offset).saturating_add(PAGE)
        }
    }

    /// The most pages that a release of `cells` cells has positions in.
    pub fn most_pages(self, cells: usize) -> usize {
        match (self, cells) {
            (Self::Dense, 1..) => cells.saturating_add(PAGE - 2) / PAGE + 1,
            _ => cells.div_ceil(PAGE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_takes_as_many_samples_as_it_says() {
        for form in [LadderForm::Loose, LadderForm::Dense] {
            for digit in 1..=DIGIT_SAMPLES {
                let vectors = form.of_digit(digit);
                assert!(vectors.end <= form.vectors());
                let samples: usize = vectors.map(|index| form.samples(index)).sum();
                assert_eq!(samples, digit, "{form:?}");
            }
            // No sample is in two vectors: the level has no more than the largest digit takes.
            let all: usize = (0..form.vectors()).map(|index| form.samples(index)).sum();
            assert_eq!(all, DIGIT_SAMPLES, "{form:?}");
        }
    }

    /// Against every place in a page where a release may begin.
    #[test]
    fn no_release_has_positions_in_more_pages_than_it_may() {
        for form in [LadderForm::Loose, LadderForm::Dense] {
            for cells in [1, 2, 3, PAGE - 1, PAGE, PAGE + 1, PAGE + 2, 3 * PAGE] {
                let pages = |next| {
                    let first = form.first_position(next, cells);
                    (first + cells - 1) / PAGE - first / PAGE + 1
                };
                let most = (0..PAGE).map(pages).max();
                assert_eq!(most, Some(form.most_pages(cells)), "{form:?} {cells}");
            }
            assert_eq!(form.most_pages(0), 0);
        }
    }
}
