//! FLAIM's measure of how much the parties' tables differ.

use fhaim_domain::{Clique, Table};

use crate::Error;

/// Returns the heterogeneity of a partition: 0 if all parties have the same shares, 1 if they have nothing in common.
///
/// It is the mean, over parties and over `cliques`, of half the L1 distance between a party's marginal and the whole
/// table's, both as shares. (FLAIM's program computes this mean over all sets of up to three attributes; the paper
/// prints a sum.)
///
/// `parties` has the rows of each party. The shares of a party and those of the table both sum to one, so half the
/// distance is the sum of the party's excesses over the table. Cells in which the party has no record can be skipped.
///
/// # Errors
/// [`Error::Table`] for a clique of more than 2^64 cells, or with an attribute that the table does not have.
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
            // Every cell of a party is also a cell of the table, so the search succeeds.
            let place = distinct.binary_search(&run[0]).unwrap_or(0);
            let excess = run.len() as f64 / own.len() as f64 - counts[place] / all;
            sum += excess.max(0.0);
        }
    }
    Ok(sum / parties.len().max(1) as f64)
}

/// Returns each record's cell number, row-major.
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
    fn heterogeneity_equals_its_definition() {
        let table = table();
        let cliques = [Clique::new([0]), Clique::new([0, 1])];
        let parties = [vec![0, 1], vec![2, 3]];
        // The distance of each party is one half over {a}, and also over {a, b}.
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
