//! The table of `fhaim demo`: the red wines of the Wine Quality data set (Cortez, Cerdeira, Almeida, Matos and Reis
//! 2009, <https://doi.org/10.24432/C56S3T>), 1,599 records under CC BY 4.0. `data/README.md` says where it is from.

/// The schema.
pub const SCHEMA: &str = include_str!("../data/wine-quality.schema.json");

/// The table as CSV.
pub const CSV: &str = include_str!("../data/wine-quality.csv");

#[cfg(test)]
mod tests {
    use fhaim_domain::{Clique, ReadOptions, Schema, read_csv};

    use super::*;

    #[test]
    fn the_table_fits_its_schema() {
        let options = ReadOptions::new("wine-quality.csv");
        let schema = Schema::from_json("wine-quality", SCHEMA.as_bytes()).unwrap();
        let reading = read_csv(schema, CSV.as_bytes(), &options).unwrap();
        assert_eq!(reading.table.records(), 1599);
        assert!(reading.left_out.is_empty());
        // Grades 3 to 8 as published: 10, 53, 681, 638, 199, 18 wines.
        let grades = reading.table.counts(&Clique::new([11])).unwrap();
        assert_eq!(grades, [0, 0, 0, 10, 53, 681, 638, 199, 18, 0, 0]);
    }
}
