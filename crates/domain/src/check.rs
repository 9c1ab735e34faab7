//! Cost of a schema, and columns to coarsen.

use serde::Serialize;

use crate::{Domain, Schema};

/// A column with more values than this is worth coarsening in any table.
const MANY_VALUES: usize = 64;

/// Suggested number of values for such a column.
const FEWER_VALUES: usize = 32;

/// The cost of a schema.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SchemaCost {
    /// The cost of each attribute.
    pub columns: Vec<ColumnCost>,
    /// One-hot columns: the sum of all sizes.
    pub one_hot_columns: usize,
    /// Number of pairs of columns.
    pub pairs: usize,
    /// Cells of all pairs' marginals together.
    pub pair_cells: u64,
    /// The largest pair.
    pub largest_pair: Option<PairCost>,
    /// Columns to coarsen, the widest first; empty if none needs it.
    pub suggestions: Vec<Coarsening>,
    /// Cells of all pairs' marginals together if all suggestions are applied.
    pub coarsened_pair_cells: u64,
}

/// The cost of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnCost {
    /// The column's name.
    pub name: String,
    /// Its number of values, including null.
    pub size: usize,
    /// Cells of all pairs that contain it.
    pub pair_cells: u64,
    /// `pair_cells` as a share of all pairs' cells, from 0 to 1.
    pub share: f64,
}

/// The cost of a pair of columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairCost {
    /// Names of the two columns.
    pub columns: (String, String),
    /// Cells of their marginal.
    pub cells: u64,
}

/// A suggestion to give a column fewer values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coarsening {
    /// Index of the column.
    pub attribute: usize,
    /// Its name.
    pub column: String,
    /// Its current number of values.
    pub from: usize,
    /// Suggested number of values.
    pub to: usize,
}

/// Returns the number of cells of all pairs' marginals together, including the marginal of each
/// digit with its coarse attribute.
pub fn pair_cells(domain: &Domain) -> u64 {
    // ((sum n)^2 - sum n^2) / 2, added up without the squares: sums stay below 2^64 for any
    // schema (at most 100,000 one-hot columns), and saturate for a wider domain.
    let mut before = 0u64;
    let mut cells = 0u64;
    for attribute in domain.coarse_attributes() {
        let size = domain.size(attribute);
        cells = cells.saturating_add(before.saturating_mul(size as u64));
        before = before.saturating_add(size as u64);
    }
    let digits = domain
        .digits()
        .iter()
        .filter_map(|digit| domain.cells(&digit.clique()));
    digits.fold(cells, |cells, digit| cells.saturating_add(digit as u64))
}

/// Computes the cost of `schema`. With a limit, suggestions reduce the cells of all pairs to at
/// most `limit`. Without a limit, they reduce columns of more than 64 values to 32.
pub fn check_schema(schema: &Schema, limit: Option<u64>) -> SchemaCost {
    let domain = schema.domain();
    let total = pair_cells(domain);
    let one_hot_columns = domain.columns();
    let coarse: usize = domain
        .coarse_attributes()
        .iter()
        .map(|&a| domain.size(a))
        .sum();
    let columns = schema
        .columns()
        .iter()
        .enumerate()
        .map(|(attribute, column)| {
            let size = column.size();
            let digit = domain
                .digits()
                .iter()
                .find(|digit| digit.fine() == attribute);
            let others = match digit {
                Some(digit) => domain.size(digit.coarse()),
                None => coarse - size,
            };
            let cells = size as u64 * others as u64;
            ColumnCost {
                name: column.name().to_owned(),
                size,
                pair_cells: cells,
                share: if total == 0 {
                    0.0
                } else {
                    cells as f64 / total as f64
                },
            }
        })
        .collect();
    let coarsened = coarsen(domain, limit);
    SchemaCost {
        columns,
        one_hot_columns,
        pairs: domain.pairs().len(),
        pair_cells: total,
        largest_pair: largest_pair(schema),
        suggestions: suggestions(schema, &coarsened),
        coarsened_pair_cells: pair_cells(&coarsened),
    }
}

fn largest_pair(schema: &Schema) -> Option<PairCost> {
    let mut order = schema.domain().coarse_attributes();
    order.sort_by_key(|&attribute| std::cmp::Reverse(schema.domain().size(attribute)));
    let [first, second] = *order.get(..2)? else {
        return None;
    };
    let name = |attribute: usize| schema.columns()[attribute].name().to_owned();
    let cells = schema.domain().size(first) as u64 * schema.domain().size(second) as u64;
    Some(PairCost {
        columns: (name(first), name(second)),
        cells,
    })
}

/// Returns the domain after giving the widest column fewer values, repeatedly: halving it removes
/// the most cells.
fn coarsen(domain: &Domain, limit: Option<u64>) -> Domain {
    let mut sizes = domain.sizes().to_vec();
    loop {
        let coarsened = Domain::with_digits(sizes.clone(), domain.digits().to_vec());
        let coarse = sizes
            .iter_mut()
            .enumerate()
            .filter(|(a, _)| !domain.is_digit(*a));
        let widest = coarse.map(|(_, size)| size).max_by_key(|size| **size);
        match (widest, limit) {
            (Some(size), Some(limit)) if *size > 2 && pair_cells(&coarsened) > limit => {
                *size = size.div_ceil(2);
            }
            (Some(size), None) if *size > MANY_VALUES => *size = FEWER_VALUES,
            _ => return coarsened,
        }
    }
}

fn suggestions(schema: &Schema, coarsened: &Domain) -> Vec<Coarsening> {
    let mut suggestions: Vec<Coarsening> = schema
        .columns()
        .iter()
        .zip(coarsened.sizes())
        .enumerate()
        .filter(|(_, (column, to))| **to < column.size())
        .map(|(attribute, (column, &to))| Coarsening {
            attribute,
            column: column.name().to_owned(),
            from: column.size(),
            to,
        })
        .collect();
    suggestions.sort_by_key(|suggestion| std::cmp::Reverse(suggestion.from));
    suggestions
}
