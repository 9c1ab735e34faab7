//! Reads the records of parties and saved networks, and prints results.

use std::fmt::Display;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use fhaim_domain::{ReadOptions, Schema, Table, read_csv};
use fhaim_federated::partition::{Rule, partition};
use fhaim_files::data::{Data, text};
use fhaim_files::{Error, note, read_options, refuse_left_out, remarks};
use fhaim_gan::{Examples, Model, Shape};
use fhaim_mix::idx;
use rand::RngCore;

use crate::gan::args::ReadingArguments;
use crate::gan::failure::Failure;

/// Number of classes of images.
pub const CLASSES: usize = 10;

/// Reads the bytes of a file.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    });
    Ok(read?)
}

/// Returns an error for invalid content of a file.
pub fn content(path: &Path, problem: &dyn Display) -> Failure {
    let (path, problem) = (path.to_owned(), problem.to_string());
    Error::Content { path, problem }.into()
}

/// Reads a schema.
pub fn schema(path: &Path) -> Result<Schema, Failure> {
    Ok(Schema::from_json(&path.to_string_lossy(), &read(path)?)?)
}

/// Reads a table of a schema in its own dialect, and reports changed or skipped values on standard error.
pub fn table(data: &Data, schema: Schema, reading: &ReadingArguments) -> Result<Table, Failure> {
    let (text, dialect) = text(data, &reading.format)?;
    refuse_left_out(data, &schema)?;
    let options = ReadOptions {
        dialect,
        ..read_options(data.name(), &reading.format, &reading.strictness)
    };
    let found = read_csv(schema, text, &options)?;
    for remark in remarks(found.table.schema(), &found.left_out, &found.adjusted) {
        note(format_args!("{}: {remark}", data.name()));
    }
    Ok(found.table)
}

/// Reads images.
pub fn images(data: &Data) -> Result<Examples, Failure> {
    let name = PathBuf::from(data.name());
    let mut bytes = Vec::new();
    let read = data.open()?.read_to_end(&mut bytes);
    read.map_err(|source| data.fault(source))?;
    let images = idx::read_images(&bytes).map_err(|error| content(&name, &error))?;
    Ok(Examples::from_images(&images)?)
}

/// Reads the classes of images.
pub fn labels(path: &Path) -> Result<Vec<u8>, Failure> {
    let labels = idx::read_labels(&read(path)?).map_err(|error| content(path, &error))?;
    match labels.iter().find(|&&label| usize::from(label) >= CLASSES) {
        Some(label) => Err(content(
            path,
            &format!("class {label} is out of range: classes are 0 to 9"),
        )),
        None => Ok(labels),
    }
}

/// Splits records among parties by their classes.
pub fn deal(
    examples: &Examples,
    labels: &[u8],
    (parties, rule): (usize, &Rule),
    rng: &mut dyn RngCore,
) -> Result<Vec<Examples>, Failure> {
    if *rule == Rule::Cluster {
        return Err(Failure::Usage(
            "images cannot be split with this rule: use ns, dli, qs or qli".to_owned(),
        ));
    }
    if labels.len() != examples.len() {
        let problem = format!(
            "there are {} classes for {} images",
            labels.len(),
            examples.len()
        );
        return Err(Failure::Usage(problem));
    }
    let categories: Vec<String> = (0..CLASSES).map(|class| format!("\"{class}\"")).collect();
    let json = format!(
        r#"{{"name":"classes","target":"class","columns":[{{"name":"class","kind":"categorical","categories":[{}]}}]}}"#,
        categories.join(",")
    );
    let schema = Schema::from_json("classes", json.as_bytes())?;
    let codes = labels.iter().map(|&label| u32::from(label)).collect();
    let table = Table::new(schema, vec![codes]).map_err(fhaim_domain::Error::from)?;
    let dealt = partition(&table, parties, rule, rng)?;
    let party = |rows: &Vec<usize>| Ok(examples.select(rows)?);
    dealt.iter().map(party).collect()
}

/// Rejects more records than may be in memory, with the name of their flag.
pub fn check_drawn(flag: &str, records: usize, shape: &Shape) -> Result<(), Failure> {
    match shape.most_records() {
        most if records > most => Err(Failure::Usage(format!(
            "{flag}: at most {most} records of {} values each are possible",
            shape.width()
        ))),
        _ => Ok(()),
    }
}

/// Reads saved networks.
pub fn model(path: &Path) -> Result<Model, Failure> {
    Model::from_bytes(&read(path)?).map_err(|error| content(path, &error))
}

/// Prints a line. Ignores errors, for example if nobody reads the output any more.
pub fn print(line: &str) {
    let _ = fhaim_files::print(&format!("{line}\n"));
}
