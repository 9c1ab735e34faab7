//! Which positions of a noise ladder each release takes.

use serde::{Deserialize, Serialize};

use crate::{Error, LadderPlan, PAGE};

/// Consecutive positions within one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The page.
    pub page: usize,
    /// The first position in the page.
    pub start: usize,
    /// Number of positions.
    pub len: usize,
}

impl Span {
    /// The positions within the page.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.len
    }
}

/// Gives each release its own positions.
///
/// Releases take consecutive positions in the order of their numbers, and leave none unused. A position
/// is never given twice: asking again for a number already served returns the same positions if the
/// size is the same, and an error otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawAllocator")]
pub struct Allocator {
    plan: LadderPlan,
    served: Vec<Served>,
}

/// A release served, by ascending number and position.
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

    /// Allocates everything again, so that stored state cannot hand a position out twice.
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
    /// All positions of `plan` free.
    pub fn new(plan: LadderPlan) -> Self {
        Self {
            plan,
            served: Vec::new(),
        }
    }

    /// The ladder's size.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// Positions for release `number` of `cells` cells, in order of the cells.
    ///
    /// # Errors
    /// [`Error::Conflict`] if `number` was served with another size, [`Error::Order`] if a higher
    /// number was served before, [`Error::LadderExhausted`] if too few positions are left. Then
    /// nothing is used up.
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

/// The `cells` positions from `first` on, cut at page edges.
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
