//! The table of `fhaim demo`: Adult (Becker and Kohavi 1996, <https://doi.org/10.24432/C5XW20>), 48,842 people of the
//! US census of 1994, under CC BY 4.0. `data/README.md` describes its source and our changes.

use std::io::Read;

use flate2::read::GzDecoder;

/// The table's schema as JSON.
pub const SCHEMA: &str = include_str!("../data/adult.schema.json");

/// The table as compressed CSV.
const COMPRESSED: &[u8] = include_bytes!("../data/adult.csv.gz");

/// Returns the table as CSV.
pub fn csv() -> impl Read {
    GzDecoder::new(COMPRESSED)
}

#[cfg(test)]
mod tests {
    use fhaim_domain::{Clique, ReadOptions, Schema, read_csv};

    use super::*;

    #[test]
    fn demo_table_matches_its_schema() {
        let options = ReadOptions::new("adult.csv");
        let schema = Schema::from_json("adult", SCHEMA.as_bytes()).unwrap();
        let reading = read_csv(schema, csv(), &options).unwrap();
        assert_eq!(reading.table.records(), 48_842);
        assert!(reading.left_out.is_empty());
        // The published number of people who earn at most $50,000 is 37,155.
        let income = reading.table.domain().len() - 1;
        let incomes = reading.table.counts(&Clique::new([income])).unwrap();
        assert_eq!(incomes, [37_155, 11_687]);
    }
}
