//! The figures of docs/MECHANISM.md: `figures DATASET EPSILON SEEDS [CONTENDER PREFIX]`, reading
//! tables from FHAIM_DATA_DIR.

use std::path::Path;
use std::process::ExitCode;

use fhaim_domain::{ReadOptions, Schema, Table, read_csv};
use fhaim_synth::bench::{Contender, Setting, mean_and_error, trial};

fn load(dir: &str, name: &str) -> Result<Table, Box<dyn std::error::Error>> {
    let schema_file = Path::new(dir).join(format!("{name}.schema.json"));
    let file = match name {
        "adult-32" => "adult",
        other => other,
    };
    let schema = Schema::from_json(name, &std::fs::read(schema_file)?)?;
    let csv = Path::new(dir).join(format!("{file}.csv"));
    let mut options = ReadOptions::new(csv.to_string_lossy());
    options.missing.push("?".to_owned());
    Ok(read_csv(schema, std::fs::File::open(&csv)?, &options)?.table)
}

fn figures() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dataset, epsilon, seeds, rest @ ..] = arguments.as_slice() else {
        return Err("usage: figures DATASET EPSILON SEEDS [CONTENDER]".into());
    };
    let table = load(&std::env::var("FHAIM_DATA_DIR")?, dataset)?;
    let setting = Setting {
        epsilon: epsilon.parse()?,
        delta: 1e-9,
        model_bytes: if dataset == "adult-32" {
            1 << 20
        } else {
            1 << 19
        },
    };
    for (name, contender) in Contender::table_rows() {
        if rest
            .first()
            .is_some_and(|prefix| !name.starts_with(prefix.as_str()))
        {
            continue;
        }
        let trials = (0..seeds.parse()?)
            .map(|seed| trial(&table, &contender, &setting, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let mean = |value: fn(&fhaim_synth::bench::Trial) -> f64| {
            mean_and_error(&trials.iter().map(value).collect::<Vec<_>>())
        };
        let (error, spread) = mean(|t| t.error);
        println!(
            "{dataset} e{epsilon} {name}: {error:.4} +- {spread:.4} (unseen {:.4}), {:.2} s, {:.0} releases, {:.0} cells, {:.2} MB, rho {:.5}",
            mean(|t| t.error_unseen).0,
            mean(|t| t.seconds).0,
            mean(|t| t.releases as f64).0,
            mean(|t| t.cells as f64).0,
            mean(|t| t.model_bytes as f64).0 / 1e6,
            mean(|t| t.rho).0,
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    match figures() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("figures: {error}");
            ExitCode::FAILURE
        }
    }
}
