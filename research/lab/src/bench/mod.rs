//! `fhaim-lab bench`: measures speed, accuracy and load, and shows them next to published figures.

pub mod abuse_load;
pub mod args;
pub mod attack;
pub mod compute;
pub mod encrypted_l1;
pub mod endings;
mod exact;
mod external_baseline;
pub mod families;
pub mod federated;
mod fits;
mod fleet;
pub mod forecast;
pub mod load;
mod made;
pub mod mechanisms;
pub mod mixing;
pub mod paper;
pub mod pgm;
mod polynomial;
mod rows;
pub mod scale;
pub mod second_draws;
mod trial;

use std::path::{Path, PathBuf};

use fhaim_domain::{ReadOptions, Table, read_csv};

use crate::{error::Error, input};

/// Environment variable with the folder of the published tables: FILE.csv with NAME.schema.json.
const FOLDER: &str = "FHAIM_DATA_DIR";

/// Names of the published tables, each with its CSV file.
const TABLES: [(&str, &str); 4] = [
    ("breast-cancer", "breast-cancer.csv"),
    ("compas", "compas.csv"),
    ("diabetes", "diabetes.csv"),
    ("adult-32", "adult.csv"),
];

/// A table with its name.
pub struct Dataset {
    /// Name of the table.
    pub name: String,
    /// The table.
    pub table: Table,
}

/// Reads the named published tables, or all of them if none is named.
fn datasets(wanted: &[String]) -> Result<Vec<Dataset>, Error> {
    let folder = std::env::var_os(FOLDER)
        .map(PathBuf::from)
        .ok_or(Error::Environment(FOLDER, "of the published tables"))?;
    if let Some(unknown) = wanted
        .iter()
        .find(|name| !TABLES.iter().any(|(known, _)| known == name))
    {
        let known = TABLES.map(|(name, _)| name).join(", ");
        return Err(Error::Usage(format!(
            "there is no table {unknown:?}: choose from {known}"
        )));
    }
    TABLES
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name))
        .map(|(name, file)| read(&folder, name, file))
        .collect()
}

/// Reads the named published tables and the user's own tables. Without either, reads all published tables.
fn tables(named: &[String], own: &args::OwnTables) -> Result<Vec<Dataset>, Error> {
    let own = own_tables(own)?;
    let mut all = match named {
        [] if !own.is_empty() => Vec::new(),
        named => datasets(named)?,
    };
    all.extend(own);
    Ok(all)
}

/// Reads the user's own tables by their schemas.
fn own_tables(own: &args::OwnTables) -> Result<Vec<Dataset>, Error> {
    if own.data.len() != own.schema.len() {
        return Err(Error::Usage(format!(
            "--data is given {} and --schema {} times: every table needs its schema, in the same order",
            own.data.len(),
            own.schema.len()
        )));
    }
    let pairs = own.data.iter().zip(&own.schema);
    pairs.map(|(data, schema)| read_own(data, schema)).collect()
}

/// Reads one of the user's own tables, and names it after its file.
fn read_own(data: &Path, schema: &Path) -> Result<Dataset, Error> {
    let schema = input::schema(schema)?;
    let options = ReadOptions::new(data.to_string_lossy());
    let table = read_csv(schema, input::open(data)?, &options)?.table;
    let name = data.file_stem().unwrap_or(data.as_os_str());
    Ok(Dataset {
        name: name.to_string_lossy().into_owned(),
        table,
    })
}

fn read(folder: &Path, name: &str, file: &str) -> Result<Dataset, Error> {
    let schema = input::schema(&folder.join(format!("{name}.schema.json")))?;
    let path = folder.join(file);
    let options = ReadOptions::new(path.to_string_lossy());
    let table = read_csv(schema, input::open(&path)?, &options)?.table;
    Ok(Dataset {
        name: name.to_owned(),
        table,
    })
}
