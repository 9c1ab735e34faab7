//! Drafts a schema of a CSV file and prints what the draft says: `cargo run -p fhaim-intake --example draft -- FILE`.

use std::{env, error::Error, fs::File};

use fhaim_intake::{InferOptions, infer_schema};

fn main() -> Result<(), Box<dyn Error>> {
    for path in env::args().skip(1) {
        println!("== {path}");
        match infer_schema(File::open(&path)?, &InferOptions::new(&path, "table")) {
            Ok(draft) => {
                draft.notes().iter().for_each(|note| println!("{note}"));
                if env::var_os("SCHEMA").is_some() {
                    println!("{}", draft.schema.to_json());
                }
            }
            Err(error) => println!("refused: {error}"),
        }
    }
    Ok(())
}
