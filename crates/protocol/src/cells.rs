//! The cells of a batch: the products of columns in each statistic, and the page of each cell.

use crate::Error;
use fhaim_domain::{Clique, Domain};
use fhaim_dp::Span;
use fhaim_he::{Cell, Combination, PAGE};
use fhaim_release::{Axis, ReleaseRequest, Statistic};
use std::collections::{BTreeMap, HashMap};

/// Column combinations of a batch, without repetitions.
#[derive(Default)]
pub(crate) struct Combinations {
    pub(crate) left: Vec<Combination>,
    pub(crate) right: Vec<Combination>,
    left_index: HashMap<Combination, usize>,
    right_index: HashMap<Combination, usize>,
}

impl Combinations {
    fn left(&mut self, combination: Combination) -> usize {
        intern(&mut self.left, &mut self.left_index, combination)
    }

    fn right(&mut self, combination: Combination) -> usize {
        intern(&mut self.right, &mut self.right_index, combination)
    }
}

fn intern(
    list: &mut Vec<Combination>,
    index: &mut HashMap<Combination, usize>,
    combination: Combination,
) -> usize {
    *index.entry(combination).or_insert_with_key(|combination| {
        list.push(combination.clone());
        list.len() - 1
    })
}

/// Pages of cells, each cell with its position.
pub(crate) type PlacedCells<C> = Vec<Vec<(usize, C)>>;

/// Groups the cells of a batch's statistics by their ladder page.
pub(crate) fn by_page<C>(
    requests: &[ReleaseRequest],
    spans: &[Vec<Span>],
    mut cells: impl FnMut(&Statistic) -> Result<Vec<C>, Error>,
) -> Result<(Vec<usize>, PlacedCells<C>), Error> {
    let mut pages: BTreeMap<usize, Vec<(usize, C)>> = BTreeMap::new();
    for (request, spans) in requests.iter().zip(spans) {
        let positions = spans.iter().flat_map(|s| s.range().map(|p| (s.page, p)));
        for ((page, position), cell) in positions.zip(cells(&request.statistic)?) {
            pages.entry(page).or_default().push((position, cell));
        }
    }
    Ok(pages.into_iter().unzip())
}

/// Places the cells of each pair from the start of a page, and returns the number of pages of each
/// pair.
pub(crate) fn in_parts<C: Clone>(
    pairs: impl Iterator<Item = Result<Vec<C>, Error>>,
) -> Result<(Vec<usize>, PlacedCells<C>), Error> {
    let (mut parts, mut placed) = (Vec::new(), Vec::new());
    for cells in pairs {
        let cells = cells?;
        parts.push(cells.chunks(PAGE).len());
        placed.extend(
            cells
                .chunks(PAGE)
                .map(|c| c.iter().cloned().enumerate().collect()),
        );
    }
    Ok((parts, placed))
}

/// Returns the cells of a pair of attributes, in row-major order.
#[expect(
    clippy::indexing_slicing,
    reason = "the pair's attributes are in the domain, which has an offset for each"
)]
pub(crate) fn pair_cells(domain: &Domain, pair: &Clique) -> Result<Vec<Cell>, Error> {
    let offsets = domain.one_hot_offsets();
    let (a, b) = match *pair.attributes() {
        [a, b] if b < domain.len() => (a, b),
        _ => {
            return Err(Error::Statistic {
                number: 0,
                reason: "a score needs a pair of the domain".to_owned(),
            });
        }
    };
    let columns =
        |attribute: usize| offsets[attribute]..offsets[attribute] + domain.size(attribute);
    let cells =
        columns(a).flat_map(|right| columns(b).map(move |left| Cell::Product { left, right }));
    Ok(cells.collect())
}

/// Returns the cells of a linear statistic, in order.
#[expect(
    clippy::indexing_slicing,
    reason = "a statistic is checked against the domain, which has an offset for each attribute"
)]
pub(crate) fn statistic_cells(
    statistic: &Statistic,
    domain: &Domain,
    offsets: &[usize],
    combinations: &mut Combinations,
) -> Vec<Cell> {
    let functions = |axis: &Axis| -> Vec<Combination> {
        axis.functions
            .iter()
            .map(|f| combination(offsets[axis.attribute], f))
            .collect()
    };
    match statistic {
        Statistic::Total => {
            let all = combination(0, &vec![1; domain.size(0)]);
            vec![Cell::Sum {
                left: combinations.left(all),
            }]
        }
        Statistic::OneWay(axis) => functions(axis)
            .into_iter()
            .map(|u| Cell::Sum {
                left: combinations.left(u),
            })
            .collect(),
        Statistic::Product(a, b) => {
            let right: Vec<_> = functions(a)
                .into_iter()
                .map(|u| combinations.right(u))
                .collect();
            let left: Vec<_> = functions(b)
                .into_iter()
                .map(|v| combinations.left(v))
                .collect();
            right
                .into_iter()
                .flat_map(|right| left.iter().map(move |&left| Cell::Product { left, right }))
                .collect()
        }
        Statistic::SquaredScores(_) => Vec::new(),
    }
}

fn combination(offset: usize, function: &[i64]) -> Combination {
    let terms = function.iter().enumerate().filter(|&(_, &c)| c != 0);
    Combination(terms.map(|(category, &c)| (offset + category, c)).collect())
}
