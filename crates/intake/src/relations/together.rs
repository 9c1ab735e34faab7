//! Which texts of two columns occur together in a record.
//!
//! Only whether they do is kept, in one bit, and not how often: the relations in question have no exception, and the
//! profiles have the number of records of each text.

use crate::profile::{Cell, Profile, Seen};

/// Maximum number of texts of a column that have their own state. All others share one.
const MAX_TEXTS: usize = 64;

/// Maximum number of states of all columns together: 8 MiB of bits.
const MAX_STATES: usize = 1 << 13;

/// State of a missing value.
const MISSING: usize = 0;

/// State of all texts without their own state.
const OTHERS: usize = 1;

/// The states of columns that occurred together.
#[derive(Debug)]
pub(crate) struct Together {
    /// By column: the states of its texts, by their numbers.
    states: Vec<Vec<u16>>,
    /// By column: number of texts with their own state.
    known: Vec<usize>,
    /// Number of states of each column.
    stride: usize,
    /// Number of words of a row.
    words: usize,
    /// A row for each state of each column: the bits of the states that occurred with it.
    bits: Vec<u64>,
    /// The states of a record, as bits and as rows.
    record: Vec<u64>,
    rows: Vec<usize>,
}

impl Together {
    /// Starts with the texts of the first records, which the profiles have. If they are too many, the most frequent have
    /// their own states.
    pub(crate) fn new(profiles: &[Profile]) -> Self {
        let stride = (MAX_STATES / profiles.len().max(1)).clamp(OTHERS + 1, MAX_TEXTS + 2);
        let room = stride - OTHERS - 1;
        let states: Vec<Vec<u16>> = profiles
            .iter()
            .map(|profile| first_states(profile, room))
            .collect();
        let known = states.iter().map(|states| {
            let apart = states.iter().filter(|&&state| usize::from(state) != OTHERS);
            apart.count()
        });
        let words = (profiles.len() * stride).div_ceil(64);
        Self {
            known: known.collect(),
            states,
            stride,
            words,
            bits: vec![0; profiles.len() * stride * words],
            record: vec![0; words],
            rows: Vec::with_capacity(profiles.len()),
        }
    }

    /// Looks at a record.
    pub(crate) fn see(&mut self, cells: &[Cell]) {
        self.record.fill(0);
        self.rows.clear();
        for (column, &cell) in cells.iter().enumerate() {
            let row = column * self.stride + self.add_state(column, cell);
            self.rows.push(row);
            if let Some(word) = self.record.get_mut(row / 64) {
                *word |= 1 << (row % 64);
            }
        }
        for row in &self.rows {
            let from = row * self.words;
            if let Some(bits) = self.bits.get_mut(from..from + self.words) {
                bits.iter_mut().zip(&self.record).for_each(|(b, r)| *b |= r);
            }
        }
    }

    /// Returns the state of a cell. A new text gets its own while there is room.
    fn add_state(&mut self, column: usize, cell: Cell) -> usize {
        let (Some(states), Some(known)) = (self.states.get_mut(column), self.known.get_mut(column))
        else {
            return OTHERS;
        };
        if let Cell::Text(number) = cell
            && number as usize == states.len()
            && *known < self.stride - OTHERS - 1
        {
            *known += 1;
            // Less than the stride.
            states.push((OTHERS + *known) as u16);
        }
        self.state(column, cell)
    }

    fn state(&self, column: usize, cell: Cell) -> usize {
        let state = |number: u32| self.states.get(column)?.get(number as usize).copied();
        match cell {
            Cell::Missing => MISSING,
            Cell::Text(number) => state(number).map_or(OTHERS, usize::from),
            Cell::Unknown => OTHERS,
        }
    }

    /// Whether a cell's text has its own state.
    pub(crate) fn knows(&self, column: usize, cell: Cell) -> bool {
        self.state(column, cell) != OTHERS
    }

    /// Whether two cells occurred in the same record. Both must be known.
    pub(crate) fn occurred(&self, one: (usize, Cell), other: (usize, Cell)) -> bool {
        let state = self.state(one.0, one.1);
        self.has(one.0, state, (other.0, self.state(other.0, other.1)))
    }

    /// Whether a cell, which must be known, occurred with a text of `other` without its own state.
    pub(crate) fn occurred_with_others(&self, one: (usize, Cell), other: usize) -> bool {
        self.has(one.0, self.state(one.0, one.1), (other, OTHERS))
    }

    fn has(&self, column: usize, state: usize, (other, its): (usize, usize)) -> bool {
        let row = column * self.stride + state;
        let bit = other * self.stride + its;
        let word = self.bits.get(row * self.words + bit / 64);
        word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Number of pairs of states: how many relations may hold by chance.
    pub(crate) fn pairs(&self) -> f64 {
        let states = (self.known.len() * self.stride) as f64;
        states * states
    }
}

/// Returns the states of the texts of a column's first records, by their numbers. The most frequent texts have their own.
fn first_states(profile: &Profile, room: usize) -> Vec<u16> {
    let mut seen: Vec<Seen> = profile
        .texts
        .in_order()
        .into_iter()
        .map(|(_, seen)| seen)
        .collect();
    seen.sort_by_key(|seen| (std::cmp::Reverse(seen.count), seen.number));
    let mut states = vec![OTHERS as u16; seen.len()];
    for (seen, state) in seen.into_iter().take(room).zip(OTHERS as u16 + 1..) {
        if let Some(own) = states.get_mut(seen.number as usize) {
            *own = state;
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(together: &mut Together, profiles: &mut [Profile], texts: &[&str]) {
        let cells = profiles.iter_mut().zip(texts);
        let cells: Vec<Cell> = cells.map(|(profile, text)| profile.see(text, 1)).collect();
        together.see(&cells);
    }

    #[test]
    fn states_that_occur_together_are_known() {
        let mut profiles = [0; 2].map(|_| Profile::new(&[String::new()]));
        let mut together = Together::new(&profiles);
        see(&mut together, &mut profiles, &["a", "x"]);
        see(&mut together, &mut profiles, &["b", ""]);
        let [a, b] = [0, 1].map(|number| (0, Cell::Text(number)));
        assert!(together.occurred(a, (1, Cell::Text(0))));
        assert!(!together.occurred(b, (1, Cell::Text(0))));
        assert!(together.occurred((1, Cell::Missing), b));
        assert!(!together.occurred((1, Cell::Missing), a));
    }

    #[test]
    fn texts_without_room_count_as_one() {
        let mut profiles = [0; 2].map(|_| Profile::new(&[]));
        for text in ["r", "f", "f"] {
            profiles[0].see(text, 1);
        }
        let mut together = Together::new(&profiles);
        for number in 0..100 {
            let text = format!("{number}");
            see(&mut together, &mut profiles, &[&text, "x"]);
        }
        let known = (0..102).filter(|&number| together.knows(0, Cell::Text(number)));
        assert_eq!(known.count(), MAX_TEXTS);
        assert!(together.occurred_with_others((1, Cell::Text(0)), 0));
        assert!(!together.occurred_with_others((0, Cell::Text(0)), 1));
    }
}
