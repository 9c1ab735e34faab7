//! The tables of `fhaim-lab bench federated`, and how a run divides their records among parties.

use std::fs;
use std::path::PathBuf;

use fhaim_domain::{ReadOptions, Table, read_csv};
use fhaim_federated::partition::{Rule, partition, synthfs};
use fhaim_federated::random_triples;
use fhaim_release::Workload;
use rand::{Rng, rngs::StdRng};

use super::super::FOLDER;
use super::FederatedArguments;
use crate::{error::Error, input};

/// Share of the records that are split among parties.
const SEEN: f64 = 0.9;

/// Number of triples in the workload.
const TRIPLES: usize = 64;

/// Number of records of each party of SynthFS, before some are held out.
const SYNTHFS_RECORDS: usize = 500;

/// Begins the name of a SynthFS table.
const SYNTHFS: &str = "synthfs:";

/// A table of the bench.
pub enum Source {
    /// A table that was read from a file.
    Table(Table),
    /// SynthFS with this exponent of its Zipf distribution, made for each run.
    SynthFs(f64),
}

/// The records of one run, with its workload.
pub struct Divided {
    /// All records that are split among parties.
    pub seen: Table,
    /// Held-out records.
    pub unseen: Table,
    /// The records of each party.
    pub parties: Vec<Table>,
    /// The workload: triples.
    pub workload: Workload,
}

impl Source {
    /// Reads a table from FHAIM_DATA_DIR, or parses the name of a SynthFS table.
    pub fn read(name: &str) -> Result<Self, Error> {
        if let Some(skew) = name.strip_prefix(SYNTHFS) {
            let skew = skew.parse().ok().filter(|skew: &f64| skew.is_finite());
            return skew.map(Self::SynthFs).ok_or_else(|| {
                Error::Usage(format!("{name:?}: a number must follow \"{SYNTHFS}\""))
            });
        }
        let folder = std::env::var_os(FOLDER)
            .map(PathBuf::from)
            .ok_or(Error::Environment(FOLDER, "of the tables"))?;
        let schema = input::schema(&folder.join(format!("{name}.schema.json")))?;
        let path = folder.join(format!("{name}.csv"));
        let options = ReadOptions::new(path.to_string_lossy());
        Ok(Self::Table(
            read_csv(schema, input::open(&path)?, &options)?.table,
        ))
    }

    /// Returns the name of the rule that divides the records.
    pub fn rule(&self, rule: &Rule) -> String {
        match self {
            Self::Table(_) => rule.to_string(),
            Self::SynthFs(_) => "synthfs".to_owned(),
        }
    }

    /// Holds out a tenth of the records, draws the workload, and divides the other records among the parties.
    pub fn divide(
        &self,
        arguments: &FederatedArguments,
        rng: &mut StdRng,
    ) -> Result<Divided, Error> {
        match self {
            Self::Table(table) => {
                let seen_records = (table.records() as f64 * SEEN).round() as usize;
                let split = table.split(seen_records, rng);
                let (seen, unseen) = split.map_err(fhaim_domain::Error::from)?;
                let workload = workload(table, arguments, rng)?;
                let rows = partition(&seen, arguments.parties, &arguments.rule, rng)?;
                Divided::new(seen, unseen, &rows, workload)
            }
            Self::SynthFs(skew) => {
                let (table, rows) = synthfs(arguments.parties, SYNTHFS_RECORDS, *skew, rng)?;
                let held_out: Vec<bool> = (0..table.records())
                    .map(|_| rng.random::<f64>() >= SEEN)
                    .collect();
                let unseen: Vec<usize> = (0..held_out.len()).filter(|&row| held_out[row]).collect();
                let kept = |rows: &Vec<usize>| -> Vec<usize> {
                    let rows = rows.iter().copied();
                    rows.filter(|&row| !held_out[row]).collect()
                };
                let rows: Vec<Vec<usize>> = rows.iter().map(kept).collect();
                let workload = workload(&table, arguments, rng)?;
                let select = |rows: &[usize]| table.select(rows).map_err(fhaim_domain::Error::from);
                let (seen, unseen) = (select(&rows.concat())?, select(&unseen)?);
                let mut end = 0;
                let places = rows.iter().map(|rows| {
                    let start = end;
                    end += rows.len();
                    (start..end).collect()
                });
                let places: Vec<Vec<usize>> = places.collect();
                Divided::new(seen, unseen, &places, workload)
            }
        }
    }
}

/// Returns the workload of a file, or draws random triples.
fn workload(
    table: &Table,
    arguments: &FederatedArguments,
    rng: &mut StdRng,
) -> Result<Workload, Error> {
    let Some(path) = &arguments.workload else {
        return Ok(random_triples(table.domain(), TRIPLES, rng)?);
    };
    let content = |problem: String| Error::Content {
        path: path.clone(),
        problem,
    };
    let text = fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.clone(),
        source,
    })?;
    let names: Vec<[String; 3]> =
        serde_json::from_str(&text).map_err(|error| content(error.to_string()))?;
    let attribute = |name: &String| {
        let place = table.schema().position(name);
        place.ok_or_else(|| content(format!("the table has no column {name:?}")))
    };
    let triples = names.iter().map(|[a, b, c]| -> Result<[usize; 3], Error> {
        Ok([attribute(a)?, attribute(b)?, attribute(c)?])
    });
    let triples = triples.collect::<Result<Vec<_>, _>>()?;
    Workload::of_triples(table.domain(), triples).map_err(|error| content(error.to_string()))
}

impl Divided {
    fn new(
        seen: Table,
        unseen: Table,
        rows: &[Vec<usize>],
        workload: Workload,
    ) -> Result<Self, Error> {
        let parties = rows.iter().map(|rows| seen.select(rows));
        let parties = parties
            .collect::<Result<_, _>>()
            .map_err(fhaim_domain::Error::from)?;
        Ok(Self {
            seen,
            unseen,
            parties,
            workload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use rand::SeedableRng;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: FederatedArguments,
    }

    #[test]
    fn workload_of_a_file_is_that_of_all_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("workload.json");
        let table = synthfs(2, 10, 1.0, &mut StdRng::seed_from_u64(1))
            .unwrap()
            .0;
        let columns = table.schema().columns();
        let names = [4, 2, 7].map(|place: usize| columns[place].name());
        fs::write(&path, serde_json::to_string(&[names]).unwrap()).unwrap();
        let flag = path.to_str().unwrap();
        let words = ["bench", "synthfs:1", "--parties", "2", "--workload", flag];
        let command = Command::try_parse_from(words).unwrap();
        let divide = |seed| {
            let mut rng = StdRng::seed_from_u64(seed);
            let source = Source::read("synthfs:1").unwrap();
            source.divide(&command.arguments, &mut rng)
        };
        for seed in 0..2 {
            let workload = divide(seed).unwrap().workload;
            let sets: Vec<Vec<usize>> = workload.sets().map(|(set, _)| set.to_vec()).collect();
            assert_eq!(sets, [[2, 4, 7]]);
        }
        fs::write(&path, r#"[["x", "y", "z"]]"#).unwrap();
        assert!(matches!(divide(0), Err(Error::Content { .. })));
    }

    #[test]
    fn synthfs_is_divided_into_its_own_parties() {
        let command = Command::try_parse_from(["bench", "synthfs:1", "--parties", "5"]).unwrap();
        let source = Source::read("synthfs:1").unwrap();
        assert_eq!(source.rule(&command.arguments.rule), "synthfs");
        let mut rng = StdRng::seed_from_u64(1);
        let divided = source.divide(&command.arguments, &mut rng).unwrap();
        assert_eq!(divided.parties.len(), 5);
        let records: usize = divided.parties.iter().map(Table::records).sum();
        assert_eq!(records, divided.seen.records());
        assert_eq!(records + divided.unseen.records(), 2500);
        assert!((2150..2350).contains(&records), "{records}");
        assert!(matches!(Source::read("synthfs:x"), Err(Error::Usage(_))));
    }
}
