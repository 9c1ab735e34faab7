//! `fhaim demo`: runs the whole protocol on an included table, without preparation.

use std::{
    fmt,
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::Args;
use fhaim_domain::counted;
use fhaim_files::progress::Progress;
use fhaim_files::{FormatArguments, StrictnessArguments};
use fhaim_synth::MechanismName;
use serde::Serialize;

use crate::{
    adult,
    division::HoldersArguments,
    error::Error,
    flags::{DEFAULT_DELTA, DEFAULT_MODEL_MB},
    generate::{self, Command, args::GenerateArguments},
    output::{self, Existing, StagedFile},
    randomness::InsecureTestSeed,
    summary::Summary,
};

/// Examples in the command's help.
pub const DEMO_EXAMPLES: &str = "\
Examples:
  fhaim demo
  fhaim demo --out census --epsilon 10
  fhaim demo --holders 3                # three holders, each with some of the people
  fhaim demo --holders 3 --by columns   # three holders, each with some of the columns

The table is Adult: 48,842 people of the US census of 1994 with 15 columns. It is part of this program.";

/// Flags of `demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Output folder for the tables and the report
    #[arg(long, value_name = "DIR", default_value = "demo")]
    pub out: PathBuf,
    /// Privacy budget: epsilon of (epsilon, delta)-differential privacy; smaller is more private
    #[arg(
        long,
        value_name = "E",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    pub epsilon: f64,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub holders: HoldersArguments,
}

/// Files and summary of the demo.
#[derive(Debug, Serialize)]
struct Demo {
    real: PathBuf,
    schema: PathBuf,
    synthetic: PathBuf,
    releases: PathBuf,
    report: String,
    card: PathBuf,
    run: Summary,
}

/// Runs `fhaim demo`.
pub fn run(
    arguments: &DemoArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let folder = &arguments.out;
    std::fs::create_dir_all(folder).map_err(|source| Error::Write {
        path: folder.clone(),
        source,
    })?;
    let request = request(arguments);
    let real = folder.join(TABLE);
    write(&real, adult::csv())?;
    write(&request.schema, adult::SCHEMA.as_bytes())?;
    let run = generate::generate(Command::Run, &request, seed, progress)?;
    let report = folder.join(REPORT);
    let demo = Demo {
        report: address(&report),
        real,
        schema: request.schema,
        synthetic: request.out,
        releases: folder.join(RELEASES),
        card: folder.join(CARD),
        run,
    };
    if arguments.json {
        return output::print_json(&demo);
    }
    output::print(&demo.to_string())
}

/// The last lines of the demo, for a reader without statistics.
impl fmt::Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{} that resemble the people of the US census of 1994 are in {}.",
            counted(self.run.records, "synthetic record"),
            self.synthetic.display()
        )?;
        writeln!(
            f,
            "The services saw only encrypted records, and counts with noise."
        )?;
        writeln!(f, "{}", guarantee(self.run.epsilon, self.run.delta))?;
        writeln!(
            f,
            "How good the table is: {} (for the holder only). To publish with the table: {}",
            self.report,
            self.card.display()
        )?;
        writeln!(
            f,
            "Next, describe your own table: fhaim schema infer --data patients.csv --out patients.schema.json"
        )
    }
}

/// A larger factor says little more than that there is hardly any protection.
const MAX_FACTOR: f64 = 1_000.0;

/// Describes the guarantee for one person with one record.
fn guarantee(epsilon: f64, delta: f64) -> String {
    match epsilon.exp() {
        factor if factor <= MAX_FACTOR => format!(
            "One person changes the probability of any result by a factor of at most {factor:.2}, apart from a chance \
             of {delta:e} (epsilon {epsilon})."
        ),
        _ => format!("Epsilon {epsilon} guarantees almost nothing about a single person."),
    }
}

const TABLE: &str = "adult.csv";
const SYNTHETIC: &str = "synthetic.csv";
const RELEASES: &str = "synthetic.releases.json";
const REPORT: &str = "report.html";
const CARD: &str = "synthetic.card.html";

fn request(arguments: &DemoArguments) -> GenerateArguments {
    let folder = &arguments.out;
    GenerateArguments {
        data: folder.join(TABLE).into(),
        schema: folder.join("adult.schema.json"),
        epsilon: arguments.epsilon,
        delta: DEFAULT_DELTA,
        mechanism: MechanismName::default(),
        out: folder.join(SYNTHETIC),
        report: Some(folder.join(REPORT)),
        // The folder and all of its files are the demo's own.
        force: true,
        rows: None,
        record_bound: None,
        model_mb: DEFAULT_MODEL_MB,
        target_weight: 1,
        memory_mb: None,
        // The records are public, so earlier uses are reported without a question.
        yes: true,
        json: false,
        holders: arguments.holders,
        format: FormatArguments::default(),
        strictness: StrictnessArguments::default(),
    }
}

fn write(path: &Path, mut content: impl Read) -> Result<(), Error> {
    let mut file = StagedFile::create(path, Existing::Replace)?;
    io::copy(&mut content, &mut file).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })?;
    Ok(file.commit()?)
}

/// Returns the URL of a file for a browser.
fn address(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut address = String::from("file://");
    for byte in path.to_string_lossy().bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_epsilon_guarantees_almost_nothing() {
        assert!(guarantee(1.0, 1e-9).contains("at most 2.72, apart from a chance of 1e-9"));
        assert!(guarantee(10.0, 1e-9).contains("almost nothing"));
    }

    #[test]
    fn file_url_is_percent_encoded() {
        let path = Path::new("/no such folder/r\u{e9}port.html");
        assert_eq!(address(path), "file:///no%20such%20folder/r%C3%A9port.html");
    }
}
