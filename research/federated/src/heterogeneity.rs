//! How unlike the parties' tables are: FLAIM's measure of a partition.

use fhaim_domain::{Clique, Table};

use crate::Error;

/// The mean over parties and over `cliques` of half the L1 distance of a party's marginal from the whole
/// table's, both as shares: 0 where all are alike, 1 where nothing is shared. (Public in FLAIM's program; the
/// paper prints a sum. There, all sets of up to three attributes.)
///
/// `parties` has the rows of each. Shares of a party sum to one as the table's do, so half the distance is the sum of
/// what a party's shares exceed the table's by: cells where the party has no record need not be visited.
///
/// # Errors
/// A clique of more than 2^64 cells, or with an attribute that the table does not have.
pub fn heterogeneity(
    table: &Table,
    parties: &[Vec<usize>],
    cliques: &[Clique],
) -> Result<f64, Error> {
    let mut sum = 0.0;
    for clique in cliques {
        sum += clique_heterogeneity(table, parties, clique)?;
    }
    Ok(sum / cliques.len().max(1) as f64)
}

fn clique_heterogeneity(
    table: &Table,
    parties: &[Vec<usize>],
    clique: &Clique,
) -> Result<f64, Error> {
    let cells = cells_of(table, clique)?;
    let mut sorted = cells.clone();
    sorted.sort_unstable();
    let mut distinct: Vec<u64> = Vec::new();
    let mut counts: Vec<f64> = Vec::new();
    for run in sorted.chunk_by(|one, two| one == two) {
        distinct.push(run[0]);
        counts.push(run.len() as f64);
    }
    let all = table.records() as f64;
    let mut sum = 0.0;
    for rows in parties {
        let mut own: Vec<u64> = rows.iter().map(|&row| cells[row]).collect();
        own.sort_unstable();
        for run in own.chunk_by(|one, two| one == two) {
            // Every cell of a party is one of the table's.
            let place = distinct.binary_search(&run[0]).unwrap_or(0);
            let excess = run.len() as f64 / own.len() as f64 - counts[place] / all;
            sum += excess.max(0.0);
        }
    }
    Ok(sum / parties.len().max(1) as f64)
}

/// Each record's cell, row-major.
fn cells_of(table: &Table, clique: &Clique) -> Result<Vec<u64>, Error> {
    let mut cells = vec![0u64; table.records()];
    let attributes = table.domain().len();
    let mut size = 1u64;
    for &attribute in clique.attributes() {
        if attribute >= attributes {
            return Err(fhaim_domain::CodesProblem::Attribute {
                attribute,
                attributes,
            }
            .into());
        }
        let own = table.domain().size(attribute) as u64;
        let cells_wanted = size.checked_mul(own);
        size = cells_wanted
            .ok_or_else(|| fhaim_domain::CodesProblem::Cells(clique.attributes().to_vec()))?;
        for (cell, &code) in cells.iter_mut().zip(table.column(attribute)) {
            *cell = *cell * own + u64::from(code);
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Schema;

    fn table() -> Table {
        let column = |name| {
            format!(r#"{{"name": "{name}", "kind": "categorical", "categories": ["x", "y"]}}"#)
        };
        let json = format!(
            r#"{{"name": "t", "columns": [{}, {}]}}"#,
            column("a"),
            column("b")
        );
        let schema = Schema::from_json("t", json.as_bytes()).unwrap();
        Table::new(schema, vec![vec![0, 0, 1, 1], vec![0, 1, 0, 1]]).unwrap()
    }

    #[test]
    fn it_is_half_the_distance_from_the_whole_by_definition() {
        let table = table();
        let cliques = [Clique::new([0]), Clique::new([0, 1])];
        let parties = [vec![0, 1], vec![2, 3]];
        // Over {a} each party is half away; over {a, b} as well.
        assert_eq!(heterogeneity(&table, &parties, &cliques).unwrap(), 0.5);
        let parties = [vec![0, 1, 2], vec![3]];
        let mut expected = 0.0;
        for clique in &cliques {
            let whole = table.counts(clique).unwrap();
            for rows in &parties {
                let own = table.select(rows).unwrap();
                let own = own.counts(clique).unwrap();
                let distance: f64 = own
                    .iter()
                    .zip(&whole)
                    .map(|(&m, &all)| (m as f64 / rows.len() as f64 - all as f64 / 4.0).abs())
                    .sum();
                expected += distance / 2.0 / 4.0;
            }
        }
        let found = heterogeneity(&table, &parties, &cliques).unwrap();
        assert!((found - expected).abs() < 1e-12);
        assert_eq!(
            heterogeneity(&table, &[vec![0, 1, 2, 3]], &cliques).unwrap(),
            0.0
        );
        assert!(matches!(
            heterogeneity(&table, &parties, &[Clique::new([2])]),
            Err(Error::Table(fhaim_domain::CodesProblem::Attribute {
                attribute: 2,
                attributes: 2
            }))
        ));
    }
}
