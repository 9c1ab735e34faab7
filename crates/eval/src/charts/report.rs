//! The charts of a report.

use super::{AssociationMap, ColumnChart, Compared, RateChart};
use crate::Association;

/// Maximum number of columns in a map. If there are more, it shows those whose association differs most.
const MAX_MAPPED: usize = 40;

/// The charts of a report, with their data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportCharts {
    /// A chart for each column, in the order of the table.
    pub columns: Vec<ColumnChart>,
    /// Pairs of columns: those of failed checks first, then those that differ most.
    pub pairs: Vec<RateChart>,
    /// Sets of three columns in the same order.
    pub triples: Vec<RateChart>,
}

impl AssociationMap {
    /// Returns maps of the real table, the synthetic table and the difference. `names` has a name for each row of the
    /// matrices. Of more than 40 columns, the maps show those whose association differs most.
    pub fn of_report(names: &[&str], association: &Association) -> [Self; 3] {
        let Association {
            real, synthetic, ..
        } = association;
        let differences: Vec<Vec<f64>> = real
            .iter()
            .zip(synthetic)
            .map(|(real, synthetic)| synthetic.iter().zip(real).map(|(s, r)| s - r).collect())
            .collect();
        let total = |column: &usize| {
            differences[*column]
                .iter()
                .map(|change| change.abs())
                .sum::<f64>()
        };
        let mut drawn: Vec<usize> = (0..names.len().min(differences.len())).collect();
        drawn.sort_by(|x, y| total(y).total_cmp(&total(x)));
        drawn.truncate(MAX_MAPPED);
        drawn.sort_unstable();
        let map = |title: &str, values: &[Vec<f64>], compared| Self {
            title: title.to_owned(),
            names: drawn
                .iter()
                .map(|&column| names[column].to_owned())
                .collect(),
            values: drawn
                .iter()
                .map(|&row| drawn.iter().map(|&column| values[row][column]).collect())
                .collect(),
            compared,
        };
        [
            map("Association in the real table", real, Compared::Real),
            map(
                "Association in the synthetic table",
                synthetic,
                Compared::Synthetic,
            ),
            map(
                "Difference: synthetic minus real",
                &differences,
                Compared::Difference,
            ),
        ]
    }
}
