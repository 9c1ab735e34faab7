//! Assigns positions of a noise ladder to releases.

use serde::{Deserialize, Serialize};

use crate::{Error, LadderPlan, PAGE};

/// Consecutive positions within one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Number of the page.
    pub page: usize,
    /// First position within the page.
    pub start: usize,
    /// Number of positions.
    pub len: usize,
}

impl Span {
    /// Returns the positions within the page.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.len
    }
}

/// Gives each release its own positions.
///
/// Releases take consecutive positions in the order of their numbers, and leave none unused. No
/// position is given to two releases. A repeated number gets the same positions if its size is the
/// same, and an error otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawAllocator")]
pub struct Allocator {
    plan: LadderPlan,
    served: Vec<Served>,
}

/// An allocated release. The list ascends by number and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Served {
    number: u32,
    first: usize,
    cells: usize,
}

#[derive(Deserialize)]
struct RawAllocator {
    plan: LadderPlan,
    served: Vec<Served>,
}

impl TryFrom<RawAllocator> for Allocator {
    type Error = Error;

    /// Repeats all allocations, so that stored state cannot give a position to two releases.
    fn try_from(raw: RawAllocator) -> Result<Self, Error> {
        let mut allocator = Self::new(raw.plan);
        for served in &raw.served {
            allocator.allocate(served.number, served.cells)?;
        }
        if allocator.served == raw.served {
            Ok(allocator)
        } else {
            let last = raw.served.last().map_or(0, |served| served.number);
            Err(Error::Conflict(last))
        }
    }
}

impl Allocator {
    /// Creates an allocator with all positions of `plan` free.
    pub fn new(plan: LadderPlan) -> Self {
        Self {
            plan,
            served: Vec::new(),
        }
    }

    /// Returns the ladder's size.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// Returns the positions of release `number` with `cells` cells, in the order of the cells.
    ///
    /// # Errors
    /// [`Error::Conflict`] if `number` was allocated with another size, [`Error::Order`] if a
    /// higher number was allocated before, [`Error::LadderExhausted`] if too few positions are
    /// left. On an error nothing is allocated.
    pub fn allocate(&mut self, number: u32, cells: usize) -> Result<Vec<Span>, Error> {
        let known = self.served.binary_search_by_key(&number, |s| s.number);
        if let Some(served) = known.ok().and_then(|index| self.served.get(index)) {
            return if served.cells == cells {
                Ok(spans(served.first, cells))
            } else {
                Err(Error::Conflict(number))
            };
        }
        let first = match self.served.last() {
            Some(last) if last.number > number => {
                let last = last.number;
                return Err(Error::Order { number, last });
            }
            Some(last) => last.first + last.cells,
            None => 0,
        };
        let left = self.plan.positions() - first;
        if cells > left {
            return Err(Error::LadderExhausted {
                number,
                cells,
                left,
            });
        }
        self.served.push(Served {
            number,
            first,
            cells,
        });
        Ok(spans(first, cells))
    }
}

/// Returns `cells` positions from `first`, split at page boundaries.
fn spans(first: usize, cells: usize) -> Vec<Span> {
    let end = first + cells;
    let mut spans = Vec::new();
    let mut position = first;
    while position < end {
        let (page, start) = (position / PAGE, position % PAGE);
        let len = (PAGE - start).min(end - position);
        spans.push(Span { page, start, len });
        position += len;
    }
    spans
}
