//! Writes the page of a report: `cargo run -p fhaim-eval --example page -- SCHEMA REAL SYNTHETIC PAGE [HELD_OUT]`.
//!
//! It shows how the charts look, without the command `fhaim`.

use std::{error::Error, fs, sync::Arc};

use fhaim_domain::{Dialect, ReadOptions, Schema, read_csv};
use fhaim_eval::{Fact, evaluate, html_page, membership};
use fhaim_intake::count_texts;
use rand::SeedableRng;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [schema, real, synthetic, page, held_out @ ..] = &arguments[..] else {
        return Err("arguments: SCHEMA REAL SYNTHETIC PAGE [HELD_OUT]".into());
    };
    let schema = Arc::new(Schema::from_json(schema, &fs::read(schema)?)?);
    let read = |file: &str| -> Result<_, Box<dyn Error>> {
        let options = ReadOptions {
            keep_values: true,
            ..ReadOptions::new(file)
        };
        let bytes = fs::read(file)?;
        let texts = count_texts(&bytes[..], file, &Dialect::default(), &options.missing, &[])?;
        Ok((read_csv(schema.clone(), &bytes[..], &options)?, texts))
    };
    let (real, synthetic) = (read(real)?, read(synthetic)?);
    let held_out = held_out.first().map(|file| read(file)).transpose()?;
    let held_out = held_out.as_ref().map(|(reading, _)| &reading.table);
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let mut report = evaluate(&real.0.table, &synthetic.0.table, held_out, &mut rng)?;
    report.add_values(&real.0.values, &synthetic.0.values);
    report.add_texts(&real.1, &synthetic.1);
    report.add_constraints(schema.rules(), &real.0.broken, &synthetic.0.broken);
    if let Some(held_out) = held_out {
        let tables = [&real.0.table, held_out, &synthetic.0.table];
        report.add_membership(membership(tables, None, None)?);
    }
    let facts = [
        ("Epsilon", "1"),
        ("Delta", "1e-9"),
        ("Mechanism", "staged (in the clear)"),
    ];
    let facts = facts.map(|(name, value)| Fact {
        name: name.to_owned(),
        value: value.to_owned(),
    });
    Ok(fs::write(page, html_page(&report, &facts))?)
}
