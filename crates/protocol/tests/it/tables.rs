//! Tests every cell of every pair of the published tables, encrypted under a holder's own key.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{ReadOptions, Schema, Table, read_csv};
use fhaim_he::{COMPACT, STANDARD};
use fhaim_protocol::bench::compute;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::{env, fs, path::Path};

fn table(dir: &Path, name: &str) -> Table {
    let json = fs::read(dir.join(format!("{name}.schema.json"))).unwrap();
    let schema = Schema::from_json(name, &json).unwrap();
    let file = format!("{name}.csv");
    let input = fs::File::open(dir.join(&file)).unwrap();
    read_csv(schema, input, &ReadOptions::new(file))
        .unwrap()
        .table
}

/// [`compute`] decrypts every page and compares each cell with its count in the clear.
#[test]
#[ignore = "needs FHAIM_DATA_DIR"]
fn every_pair_of_the_published_tables_is_counted_exactly() {
    let dir = env::var_os("FHAIM_DATA_DIR")
        .expect("FHAIM_DATA_DIR names the folder of the published tables");
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for (name, cells) in [
        ("breast-cancer", 1_278),
        ("compas", 201),
        ("diabetes", 2_960),
    ] {
        let table = table(Path::new(&dir), name);
        for set in [COMPACT, STANDARD] {
            let done = compute(&table, set, &mut rng).unwrap();
            assert_eq!(done.cells, cells, "{name}");
            eprintln!(
                "{name}: {cells} cells, {:.0} bits of noise left under set {}",
                done.noise_bits_left, done.set
            );
        }
    }
}
