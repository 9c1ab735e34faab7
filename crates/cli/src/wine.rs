//! The table of `fhaim demo`: the red wines of the Wine Quality data set (Cortez, Cerdeira,
//! Almeida, Matos and Reis 2009), 1,599 records that come with the crate `linfa-datasets`.

use std::fmt::Write;

/// The schema, part of this repository.
pub const SCHEMA: &str = include_str!("../data/wine-quality.schema.json");

/// Name of the target column, which the crate keeps apart from the others.
const TARGET: &str = "quality";

/// The table as CSV.
pub fn csv() -> String {
    let wines = linfa_datasets::winequality();
    let mut text = wines.feature_names().join(",");
    text.push_str(&format!(",{TARGET}\n"));
    for (features, quality) in wines.records.outer_iter().zip(&wines.targets) {
        for value in features {
            // Writing to a string cannot fail.
            let _ = write!(text, "{value},");
        }
        let _ = writeln!(text, "{quality}");
    }
    text
}

#[cfg(test)]
mod tests {
    use fhaim_domain::{Clique, ReadOptions, Schema, read_csv};

    use super::*;

    #[test]
    fn the_table_fits_its_schema() {
        let options = ReadOptions::new("wine-quality.csv");
        let schema = Schema::from_json("wine-quality", SCHEMA.as_bytes()).unwrap();
        let reading = read_csv(schema, csv().as_bytes(), &options).unwrap();
        assert_eq!(reading.table.records(), 1599);
        assert!(reading.left_out.is_empty());
        // Grades 3 to 8 as published: 10, 53, 681, 638, 199, 18 wines.
        let grades = reading.table.counts(&Clique::new([11])).unwrap();
        assert_eq!(grades, [0, 0, 0, 10, 53, 681, 638, 199, 18, 0, 0]);
    }
}
