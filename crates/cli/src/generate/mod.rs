//! `fhaim local` and `fhaim run`: read a table, make releases, fit a model, and write a synthetic table.

pub mod args;

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Instant,
};

use fhaim_domain::{
    Dialect, Domain, RawColumn, ReadOptions, Schema, Table, WriteOptions, counted, read_csv,
};
use fhaim_dp::{Ladder, Rho, accounting};
use fhaim_eval::{evaluate, html_page};
use fhaim_files::{
    memory::{self, KnownRecords, RecordSource, Use},
    progress::{PhaseProgress, Progress},
};
use fhaim_he::Layout;
use fhaim_intake::count_texts;
use fhaim_protocol::generation;
use fhaim_protocol::terms::Terms;
use fhaim_release::{MechanismJob, MechanismRun, RunProgress as Standing};
use fhaim_synth::{Mechanisms, PlaintextSource, Release, RunOutcome, Unfitted};

use self::args::GenerateArguments;
use crate::{
    alone::alone,
    drawing::{self, Kept},
    encrypted::{self, Costs, Dataset, Setup},
    error::Error,
    estimate::{self, Load},
    held::Held,
    holders::{self, Party},
    input, kept_releases,
    output::{self, StagedFile, commit_all},
    randomness::{InsecureTestSeed, Purpose, generator, system},
    size,
    spending::spending,
    summary::{Fit, LedgerFile, Summary, print_summary},
};

/// A checked request: a table, its budget, and all other inputs of a run.
pub struct Request<'a> {
    arguments: &'a GenerateArguments,
    seed: Option<InsecureTestSeed>,
    /// The records.
    pub held: Held,
    /// The values of the table without binning, for a report.
    values: Vec<RawColumn>,
    /// Field delimiter of the table, and of the synthetic table.
    delimiter: u8,
    /// Terms that the table's holders would fix, with one run.
    terms: Terms,
    /// The holders, if there are several.
    party: Party,
    /// The public inputs of the mechanism.
    pub job: MechanismJob,
    start: Instant,
}

/// Result of a run.
pub struct GeneratedTable {
    /// The model, and the releases that it was fitted to.
    pub outcome: RunOutcome,
    /// Costs of encryption, for an encrypted run.
    pub costs: Option<Costs>,
}

/// Unfinished result files.
struct Files {
    table: StagedFile,
    ledger: Option<StagedFile>,
    model: Option<StagedFile>,
    report: Option<StagedFile>,
}

impl Files {
    fn create(arguments: &GenerateArguments) -> Result<Self, Error> {
        let staged = |path: &Option<PathBuf>| path.as_deref().map(StagedFile::create).transpose();
        Ok(Self {
            table: StagedFile::create(&arguments.out)?,
            ledger: staged(&arguments.ledger)?,
            model: staged(&arguments.model_out)?,
            report: staged(&arguments.report)?,
        })
    }
}

/// Checks a command's arguments, and creates the files for its results.
fn request(
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
) -> Result<(Request<'_>, Files), Error> {
    accounting::rho(arguments.epsilon, arguments.delta)?;
    check_paths(arguments)?;
    let schema = input::schema(&arguments.schema)?;
    let files = Files::create(arguments)?;
    Ok((Request::read(arguments, schema, seed)?, files))
}

impl<'a> Request<'a> {
    /// Reads and checks everything a run needs.
    pub fn read(
        arguments: &'a GenerateArguments,
        schema: Schema,
        seed: Option<InsecureTestSeed>,
    ) -> Result<Self, Error> {
        let start = Instant::now();
        accounting::rho(arguments.epsilon, arguments.delta)?;
        let (held, values) = Held::read(arguments, schema)?;
        let request = Self::of(arguments, held, seed)?;
        Ok(Self {
            values,
            start,
            ..request
        })
    }

    /// Checks everything that a run needs in addition to its records.
    pub fn of(
        arguments: &'a GenerateArguments,
        held: Held,
        seed: Option<InsecureTestSeed>,
    ) -> Result<Self, Error> {
        let start = Instant::now();
        let delimiter = input::delimiter(&arguments.data, &arguments.format)?;
        let terms = terms(arguments, &held)?;
        let (party, terms) = Party::join(arguments, &held, terms, &mut system()?)?;
        // A run in the clear also pays the cost of ciphertexts, so that both commands plan and release the same.
        let job = terms.job(arguments.mechanism.releases_squares())?;
        Ok(Self {
            arguments,
            seed,
            held,
            values: Vec::new(),
            delimiter,
            terms,
            party,
            job,
            start,
        })
    }

    /// Rejects a run that needs more memory than the limit. `bytes` returns the memory for a domain.
    fn check_size(&self, bytes: impl Fn(&Domain) -> Result<u64, Error>) -> Result<u64, Error> {
        let limit = size::limit(self.arguments.memory_mb);
        size::check(self.held.schema(), limit, bytes)
    }

    /// Rejects a run in the clear that needs more memory than the limit. Returns its memory in bytes.
    fn check_clear_size(&self) -> Result<u64, Error> {
        let (records, model_bytes) = (self.held.records(), self.job.model_bytes);
        self.check_size(|domain| Ok(size::local_bytes(domain, records, model_bytes)))
    }

    /// Rejects an encrypted run that needs more memory than the limit. Returns its load.
    fn check_encrypted_size(&self) -> Result<Load, Error> {
        let (name, what) = (self.arguments.mechanism, self.terms.contribution);
        let records = self.held.records();
        let load = |domain: &Domain| estimate::load(name, &self.job, domain, records, what);
        self.check_size(|domain| Ok(load(domain)?.memory_bytes))?;
        load(self.held.schema().domain())
    }

    /// Rejects a run in the clear for every reason that is known before its first release. Returns its memory in bytes.
    pub fn check_in_the_clear(&self) -> Result<u64, Error> {
        let bytes = self.check_clear_size()?;
        self.arguments.mechanism.start(self.job.clone()).map(drop)?;
        Ok(bytes)
    }

    /// Rejects an encrypted run for every reason that is known before its first release. Returns its memory in bytes.
    pub fn check_encrypted(&self) -> Result<u64, Error> {
        let load = self.check_encrypted_size()?;
        let terms = self.terms.clone().complete(&Mechanisms)?;
        terms.plan()?;
        generation::start(&Mechanisms, &terms, Vec::new()).map(drop)?;
        Ok(load.memory_bytes)
    }

    /// Reports earlier uses of the records, and asks for confirmation.
    fn look_up(&self) -> Result<Option<KnownRecords>, Error> {
        let GenerateArguments {
            data,
            format,
            delta,
            yes,
            ..
        } = self.arguments;
        Ok(memory::look_up(
            RecordSource::Table(data, format),
            spending(self.job.rho),
            *delta,
            None,
            *yes,
        )?)
    }

    /// Draws the synthetic table from the model and writes all files.
    fn finish(
        self,
        mut files: Files,
        made: &GeneratedTable,
        progress: &Progress,
    ) -> Result<Summary, Error> {
        let outcome = &made.outcome;
        let records = self
            .arguments
            .records
            .map_or_else(|| modelled_records(outcome), NonZeroUsize::get);
        let phase = progress.counted("sample", records as u64, "records");
        let mut rng = generator(self.seed, Purpose::Records)?;
        let schema = self.held.shared_schema();
        let blocks = drawing::blocks(&schema, &outcome.model, records, &mut rng);
        // The report needs the drawn table.
        let mut kept = files.report.is_some().then(Kept::default);
        let mut options = WriteOptions::new(self.arguments.out.to_string_lossy());
        options.delimiter = self.delimiter;
        drawing::write(&blocks, &options, &mut files.table, kept.as_mut(), &phase)?;
        files.table.end()?;
        if let Some(file) = &mut files.ledger {
            file.write_bytes(self.ledger(outcome)?.as_bytes())?;
            file.end()?;
        }
        if let Some(file) = &mut files.model {
            file.write_bytes(&outcome.model.save())?;
            file.end()?;
        }
        phase.finish();
        let mut summary = self.summary(made, records);
        // With a report, the records are always a table and not counts.
        if let (Held::Table(table), Some(file), Some(mut kept)) =
            (&self.held, &mut files.report, kept)
        {
            let synthetic = kept.table(&schema)?;
            if !self.job.holders.is_one() {
                let phase = progress.uncounted("each holder by itself");
                let (mechanism, job) = (self.arguments.mechanism, &self.job);
                summary.alone = alone(mechanism, job, table, &synthetic, &mut rng)?;
                phase.finish();
            }
            let phase = progress.uncounted("evaluate");
            let made = (&synthetic, kept.text.as_slice());
            self.write_report(file, table, made, &summary, &mut rng)?;
            phase.finish();
        }
        let Files {
            table,
            ledger,
            model,
            report,
        } = files;
        commit_all([table].into_iter().chain(ledger).chain(model).chain(report))?;
        Ok(summary)
    }

    /// Writes the report that compares a table with a synthetic table, given as codes and as text.
    fn write_report(
        &self,
        file: &mut StagedFile,
        table: &Table,
        (synthetic, written): (&Table, &[u8]),
        summary: &Summary,
        rng: &mut impl rand::Rng,
    ) -> Result<(), Error> {
        let mut report = evaluate(table, synthetic, None, rng)?;
        let options = ReadOptions {
            dialect: Dialect::of_delimiter(self.delimiter),
            keep_values: true,
            ..ReadOptions::new(self.arguments.out.to_string_lossy())
        };
        let again = read_csv(table.shared_schema(), written, &options)?;
        report.add_values(&self.values, &again.values);
        let GenerateArguments {
            data,
            format,
            strictness,
            ..
        } = self.arguments;
        let real = input::texts(data, format, strictness)?;
        let name = &options.file;
        let texts = count_texts(written, name, &options.dialect, &options.missing, &[])?;
        report.add_texts(&real, &texts);
        Ok(file.write_bytes(html_page(&report, &summary.facts()).as_bytes())?)
    }

    /// Returns the releases and their costs as JSON.
    pub fn ledger(&self, outcome: &RunOutcome) -> Result<String, Error> {
        self.ledger_of(&outcome.releases, outcome.spent)
    }

    fn ledger_of(&self, releases: &[Release], spent: Rho) -> Result<String, Error> {
        output::to_json(&LedgerFile {
            schema: self.held.schema().name(),
            draft: self.held.schema().claim(),
            epsilon: self.arguments.epsilon,
            delta: self.arguments.delta,
            budget: self.job.rho,
            spent,
            releases,
        })
    }

    /// Returns the summary of a run that drew `records` from the model.
    pub fn summary(
        &self,
        GeneratedTable { outcome, costs }: &GeneratedTable,
        records: usize,
    ) -> Summary {
        let arguments = self.arguments;
        Summary {
            dataset: self.held.schema().name().to_owned(),
            mechanism: arguments.mechanism.to_string(),
            epsilon: arguments.epsilon,
            delta: arguments.delta,
            rho: self.job.rho.to_f64(),
            rho_spent: outcome.spent.to_f64(),
            releases: outcome.releases.len(),
            records,
            model_bytes: outcome.model.bytes(),
            fit: outcome.model.fit().map(Fit::from),
            model_cliques: (outcome.model.marginals()).map_or(0, |m| m.cliques().len()),
            seconds: self.start.elapsed().as_secs_f64(),
            timings: outcome.timings.clone(),
            encryption: *costs,
            alone: Vec::new(),
            out: arguments.out.to_string_lossy().into_owned(),
        }
    }

    /// Makes the releases under encryption, fits a model to them, and adds their cost to the usage history.
    pub fn make_encrypted(&self, progress: &Progress) -> Result<GeneratedTable, Error> {
        let Self { held, job, .. } = self;
        let (arguments, seed) = (self.arguments, self.seed);
        let name = arguments.mechanism;
        let estimate = self.check_encrypted_size()?.estimate(self.start)?;
        progress.say(&estimate.to_string());
        let known = self.look_up()?;
        let terms = self.terms.clone().complete(&Mechanisms)?;
        let (plan, job_run) = (
            terms.plan()?,
            generation::start(&Mechanisms, &terms, Vec::new())?,
        );
        let setup = Setup::new(&plan);
        let (mut source, mut costs) = {
            let dataset = Dataset {
                held,
                party: &self.party,
                terms: &terms,
                plan: &plan,
            };
            setup.source(dataset, seed, estimate, progress)?
        };
        if name.releases_squares() {
            encrypted::compute(&mut source, job, &mut costs, progress)?;
        }
        let outcome = fhaim_synth::drive(job_run, &mut source, &mut follow(progress));
        let outcome = outcome.map_err(|error| self.failed(error.into(), known.as_ref()))?;
        let costs = Some(costs.with(&source, &outcome));
        remember(known.as_ref(), arguments, outcome.spent);
        Ok(GeneratedTable { outcome, costs })
    }

    /// Makes the same releases in the clear, and adds their cost to the usage history.
    pub fn make_in_the_clear(&self, progress: &Progress) -> Result<GeneratedTable, Error> {
        self.check_clear_size()?;
        let known = self.look_up()?;
        let outcome = run_in_the_clear(self, progress);
        let outcome = outcome.map_err(|error| self.failed(error, known.as_ref()))?;
        remember(known.as_ref(), self.arguments, outcome.spent);
        let costs = None;
        Ok(GeneratedTable { outcome, costs })
    }
}

impl Request<'_> {
    /// Handles the error of a run. If no model fits the releases, adds their cost to the usage history, and saves them
    /// in a file next to the output.
    fn failed(&self, error: Error, known: Option<&KnownRecords>) -> Error {
        match error {
            Error::Mechanism(fhaim_synth::Error::Unfitted(unfitted)) => {
                remember(known, self.arguments, unfitted.spent);
                match self.keep_releases(&unfitted) {
                    Ok(releases) => Error::Unfitted {
                        problem: unfitted.describe(self.held.schema()),
                        releases,
                    },
                    Err(error) => error,
                }
            }
            other => other,
        }
    }

    fn keep_releases(&self, unfitted: &Unfitted) -> Result<PathBuf, Error> {
        let ledger = self.ledger_of(&unfitted.releases, unfitted.spent)?;
        kept_releases::write(&self.arguments.out, &ledger)
    }
}

/// Adds the cost of a run to the usage history. Call it before writing any result.
fn remember(records: Option<&KnownRecords>, arguments: &GenerateArguments, spent: Rho) {
    if let Some(records) = records {
        let out = arguments.out.display().to_string();
        records.remember(&Use::Run { out }, spending(spent));
    }
}

/// Returns the model's estimate of the number of records, at least one.
pub fn modelled_records(outcome: &RunOutcome) -> usize {
    (outcome.model.total().round() as usize).max(1)
}

/// Runs `fhaim local`.
pub fn local(
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let (request, files) = request(arguments, seed)?;
    let made = request.make_in_the_clear(progress)?;
    let summary = request.finish(files, &made, progress)?;
    print_summary(arguments, &summary)
}

/// Runs `fhaim run`.
pub fn run(
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let summary = run_encrypted(arguments, seed, progress)?;
    print_summary(arguments, &summary)
}

/// Runs under encryption and writes the result files.
pub fn run_encrypted(
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<Summary, Error> {
    let (request, files) = request(arguments, seed)?;
    let made = request.make_encrypted(progress)?;
    request.finish(files, &made, progress)
}

fn run_in_the_clear(request: &Request<'_>, progress: &Progress) -> Result<RunOutcome, Error> {
    let Request { held, job, .. } = request;
    let seed = request.seed;
    let mut follow = follow(progress);
    let mechanism = request.arguments.mechanism;
    let mut rng = generator(seed, Purpose::Noise)?;
    if let Held::Table(table) = held
        && mechanism.clear_only()
    {
        return Ok(mechanism.run_in_the_clear(table, job, &mut rng, &mut follow)?);
    }
    let run = MechanismRun::new(mechanism.start(job.clone())?, job.clone(), Vec::new());
    let run = run.map_err(fhaim_synth::Error::from)?;
    // Noise that is drawn on demand has the same distributions as a noise ladder. Only a run that is compared with an
    // encrypted run of the same seed needs the whole ladder.
    if seed.is_none() {
        let source = PlaintextSource::with_rng(held, &mut rng);
        let mut source = source.of_holders(job.holders.count());
        return Ok(fhaim_synth::drive(run, &mut source, &mut follow)?);
    }
    let need = fhaim_synth::need(&*mechanism, job)?;
    let ladder = need.ladder.plan();
    let ladder = ladder.map_err(fhaim_protocol::Error::from)?;
    let ladder = Ladder::sum(&holders::ladders(ladder, &job.holders, seed)?)?;
    let mut source = PlaintextSource::with_ladder(held, &ladder);
    Ok(fhaim_synth::drive(run, &mut source, &mut follow)?)
}

fn terms(arguments: &GenerateArguments, held: &Held) -> Result<Terms, Error> {
    let shown = Layout::for_records(held.records())?.max_records() as u64;
    let record_bound = arguments.record_bound.unwrap_or(shown);
    if held.records() as u64 > record_bound {
        return Err(Error::Usage(format!(
            "the table has more than the {} that --record-bound allows",
            counted(record_bound, "record")
        )));
    }
    let GenerateArguments { epsilon, delta, .. } = *arguments;
    Ok(Terms {
        mechanism: arguments.mechanism.to_string(),
        model_bytes: arguments.model_mb.saturating_mul(1_000_000),
        target_weight: arguments.target_weight,
        ..Terms::new(held.schema().clone(), epsilon, delta, record_bound)
    })
}

/// Rejects results that would overwrite an input or each other.
fn check_paths(arguments: &GenerateArguments) -> Result<(), Error> {
    let outputs = std::iter::once(arguments.out.as_path())
        .chain(arguments.ledger.as_deref())
        .chain(arguments.model_out.as_deref())
        .chain(arguments.report.as_deref());
    let schema = Some(arguments.schema.as_path());
    let inputs: Vec<&Path> = arguments.data.file().into_iter().chain(schema).collect();
    Ok(output::check_distinct(
        &inputs,
        &outputs.collect::<Vec<_>>(),
    )?)
}

/// Returns a callback that shows a mechanism's progress.
pub fn follow<'p>(progress: &'p Progress) -> impl FnMut(Standing) + use<'p> {
    let mut phase: Option<PhaseProgress> = None;
    move |standing| {
        if let Some(phase) = phase.take() {
            phase.finish();
        }
        let name = format!(
            "{} ({}/{})",
            standing.phase, standing.round, standing.rounds
        );
        phase = Some(progress.uncounted(name));
    }
}
