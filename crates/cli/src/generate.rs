//! `fhaim local` and `fhaim run`: a table in, releases, a model, a synthetic table out.

use std::{
    fmt,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Instant,
};

use fhaim_domain::{
    Claim, Domain, RawColumn, ReadOptions, Table, WriteOptions, counted, read_csv, write_csv,
};
use fhaim_dp::{Ladder, Rho, accounting};
use fhaim_eval::{Fact, evaluate, html_page};
use fhaim_he::Layout;
use fhaim_protocol::generation;
use fhaim_protocol::terms::{Terms, encryption};
use fhaim_release::{Job, Progress as Standing, Run};
use fhaim_synth::{Mechanisms, Outcome, PlaintextSource, Release, Timing};
use serde::Serialize;

use crate::{
    alone::{Alone, alone},
    args::GenerateArguments,
    encrypted::{self, Costs, Setup},
    error::Error,
    holders::{self, Party},
    input,
    memory::{self, Records, Use},
    output::{self, Staged, commit_all},
    progress::{Phase, Progress},
    randomness::{InsecureTestSeed, Purpose, generator, system},
    size,
};

/// The itemised ledger as a file: what was released and what it cost. The same for the same
/// releases, whoever computed them.
#[derive(Debug, Serialize)]
struct LedgerFile<'a> {
    schema: &'a str,
    /// What drafting the schema cost before, as its holder says. Not part of the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    draft: Option<Claim>,
    epsilon: f64,
    delta: f64,
    /// Budget and spending, as counts of 2^-80.
    budget: Rho,
    spent: Rho,
    releases: &'a [Release],
}

/// What a run did, for `--json`.
#[derive(Debug, Serialize)]
pub struct Summary {
    dataset: String,
    mechanism: String,
    epsilon: f64,
    delta: f64,
    rho: f64,
    rho_spent: f64,
    releases: usize,
    records: usize,
    model_bytes: usize,
    model_cliques: usize,
    seconds: f64,
    timings: Vec<Timing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encryption: Option<Costs>,
    /// What each of several holders would have got alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alone: Vec<Alone>,
    out: String,
}

/// A table, its budget, and where the results go: everything checked before the work starts.
pub struct Request<'a> {
    arguments: &'a GenerateArguments,
    seed: Option<InsecureTestSeed>,
    /// The table.
    pub table: Table,
    /// Its values as they are, for a report.
    values: Vec<RawColumn>,
    /// Byte between the fields of the table, and of the synthetic one.
    delimiter: u8,
    /// What its holders would fix for it: one run.
    terms: Terms,
    /// The holders, if there are several.
    party: Party,
    /// What the mechanism may know.
    pub job: Job,
    files: Files,
    start: Instant,
}

/// Result files under way.
struct Files {
    table: Staged,
    ledger: Option<Staged>,
    model: Option<Staged>,
    report: Option<Staged>,
}

impl<'a> Request<'a> {
    /// Reads and checks everything a run needs.
    pub fn read(
        arguments: &'a GenerateArguments,
        seed: Option<InsecureTestSeed>,
    ) -> Result<Self, Error> {
        let start = Instant::now();
        accounting::rho(arguments.epsilon, arguments.delta)?;
        check_paths(arguments)?;
        let schema = input::schema(&arguments.schema)?;
        let staged = |path: &Option<PathBuf>| path.as_deref().map(Staged::create).transpose();
        let files = Files {
            table: Staged::create(&arguments.out)?,
            ledger: staged(&arguments.ledger)?,
            model: staged(&arguments.model_out)?,
            report: staged(&arguments.report)?,
        };
        let GenerateArguments {
            data,
            format,
            strictness,
            ..
        } = arguments;
        let (table, values) = if arguments.report.is_some() {
            let reading = input::reading(data, schema, format, strictness)?;
            (reading.table, reading.values)
        } else {
            (input::table(data, schema, format, strictness)?, Vec::new())
        };
        let delimiter = input::delimiter(data, format)?;
        let terms = terms(arguments, &table)?;
        let (party, terms) = Party::join(arguments, &table, terms, &mut system()?)?;
        // A run in the clear is charged for ciphertexts too, so that both ways plan and release alike.
        let job = terms.job(arguments.mechanism.releases_squares())?;
        Ok(Self {
            arguments,
            seed,
            table,
            values,
            delimiter,
            terms,
            party,
            job,
            files,
            start,
        })
    }

    /// Refuses a run that needs more memory than there is, by the bytes that each domain needs.
    fn check_size(&self, bytes: impl Fn(&Domain) -> Result<u64, Error>) -> Result<u64, Error> {
        let limit = size::limit(self.arguments.memory_mb);
        size::check(self.table.schema(), limit, bytes)
    }

    /// Says what the records have cost before, and asks.
    fn look_up(&self) -> Result<Option<Records>, Error> {
        let GenerateArguments {
            data, delta, yes, ..
        } = self.arguments;
        memory::look_up(data, self.job.rho, *delta, None, *yes)
    }

    /// Draws the synthetic table from the model and writes all files.
    pub fn finish(
        mut self,
        outcome: &Outcome,
        costs: Option<Costs>,
        progress: &Progress,
    ) -> Result<Summary, Error> {
        let records = self
            .arguments
            .records
            .map_or_else(|| modelled_records(outcome), NonZeroUsize::get);
        let phase = progress.uncounted("sample");
        let mut rng = generator(self.seed, Purpose::Records)?;
        let columns = outcome.model.sample(records, &mut rng);
        let synthetic =
            Table::new(self.table.shared_schema(), columns).map_err(fhaim_domain::Error::from)?;
        let written = self.write_table(&synthetic, &mut rng)?;
        self.write_ledger(outcome)?;
        if let Some(file) = &mut self.files.model {
            file.write_bytes(&outcome.model.save())?;
        }
        phase.finish();
        let mut summary = summary(&self, outcome, records, costs);
        if self.files.report.is_some() && !self.job.holders.is_one() {
            let phase = progress.uncounted("each alone");
            let mechanism = self.arguments.mechanism;
            let (table, job) = (&self.table, &self.job);
            summary.alone = alone(mechanism, job, table, &synthetic, &mut rng)?;
            phase.finish();
        }
        self.write_report((&synthetic, &written), &summary, &mut rng, progress)?;
        let Files {
            table,
            ledger,
            model,
            report,
        } = self.files;
        commit_all([table].into_iter().chain(ledger).chain(model).chain(report))?;
        Ok(summary)
    }

    /// Writes the report on a synthetic table and its text.
    fn write_report(
        &mut self,
        (synthetic, written): (&Table, &[u8]),
        summary: &Summary,
        rng: &mut impl rand::Rng,
        progress: &Progress,
    ) -> Result<(), Error> {
        let Some(file) = &mut self.files.report else {
            return Ok(());
        };
        let phase = progress.uncounted("evaluate");
        let mut report = evaluate(&self.table, synthetic, None, rng)?;
        let options = ReadOptions {
            delimiter: self.delimiter,
            keep_values: true,
            ..ReadOptions::new(self.arguments.out.to_string_lossy())
        };
        let again = read_csv(self.table.shared_schema(), written, &options)?;
        report.add_values(&self.values, &again.values);
        file.write_bytes(html_page(&report, &summary.facts()).as_bytes())?;
        phase.finish();
        Ok(())
    }

    /// Writes the synthetic table, and gives its text where a report needs it.
    fn write_table(&mut self, table: &Table, rng: &mut impl rand::Rng) -> Result<Vec<u8>, Error> {
        let mut options = WriteOptions::new(self.arguments.out.to_string_lossy());
        options.delimiter = self.delimiter;
        let mut text = Vec::new();
        if self.files.report.is_some() {
            write_csv(table, &mut text, rng, &options)?;
            self.files.table.write_bytes(&text)?;
            return Ok(text);
        }
        self.files
            .table
            .write(|writer| Ok(write_csv(table, writer, rng, &options)?))?;
        Ok(text)
    }

    fn write_ledger(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let Some(file) = &mut self.files.ledger else {
            return Ok(());
        };
        let ledger = LedgerFile {
            schema: self.table.schema().name(),
            draft: self.table.schema().claim(),
            epsilon: self.arguments.epsilon,
            delta: self.arguments.delta,
            budget: self.job.rho,
            spent: outcome.spent,
            releases: &outcome.releases,
        };
        file.write_bytes(output::to_json(&ledger)?.as_bytes())
    }
}

/// Remembers what a run has spent, before anything of it is written.
fn remember(records: Option<&Records>, arguments: &GenerateArguments, spent: Rho) {
    if let Some(records) = records {
        let out = arguments.out.display().to_string();
        records.remember(Use::Run { out }, spent);
    }
}

/// As many records as the model estimates there are, and at least one.
fn modelled_records(outcome: &Outcome) -> usize {
    (outcome.model.total().round() as usize).max(1)
}

fn summary(
    request: &Request<'_>,
    outcome: &Outcome,
    records: usize,
    encryption: Option<Costs>,
) -> Summary {
    let arguments = request.arguments;
    Summary {
        dataset: request.table.schema().name().to_owned(),
        mechanism: arguments.mechanism.to_string(),
        epsilon: arguments.epsilon,
        delta: arguments.delta,
        rho: request.job.rho.to_f64(),
        rho_spent: outcome.spent.to_f64(),
        releases: outcome.releases.len(),
        records,
        model_bytes: outcome.model.bytes(),
        model_cliques: (outcome.model.marginals()).map_or(0, |m| m.cliques().len()),
        seconds: request.start.elapsed().as_secs_f64(),
        timings: outcome.timings.clone(),
        encryption,
        alone: Vec::new(),
        out: arguments.out.to_string_lossy().into_owned(),
    }
}

impl Summary {
    /// What a report says on how the table was made.
    fn facts(&self) -> Vec<Fact> {
        let fact = |name: &str, value: String| Fact {
            name: name.to_owned(),
            value,
        };
        let how = match self.encryption {
            Some(_) => "under encryption",
            None => "in the clear",
        };
        let facts = vec![
            fact("Mechanism", format!("{} ({how})", self.mechanism)),
            fact("Epsilon", self.epsilon.to_string()),
            fact("Delta", format!("{:e}", self.delta)),
            fact(
                "Rho spent",
                format!("{:.6} of {:.6}", self.rho_spent, self.rho),
            ),
            fact("Releases", self.releases.to_string()),
            fact("Seconds", format!("{:.1}", self.seconds)),
        ];
        let alone = self.alone.iter();
        let alone = alone.map(|alone| fact(&format!("Holder {}", alone.holder), alone.words()));
        facts.into_iter().chain(alone).collect()
    }
}

/// `fhaim local`: everything in the clear.
pub fn local(
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let request = Request::read(arguments, seed)?;
    let (records, model_bytes) = (request.table.records(), request.job.model_bytes);
    request.check_size(|domain| Ok(size::local_bytes(domain, records, model_bytes)))?;
    let known = request.look_up()?;
    let outcome = run_in_the_clear(&request, progress)?;
    remember(known.as_ref(), arguments, outcome.spent);
    let summary = request.finish(&outcome, None, progress)?;
    print_summary(arguments, &summary)
}

/// `fhaim run`: everything under encryption.
pub fn run(
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let summary = run_encrypted(arguments, seed, progress)?;
    print_summary(arguments, &summary)
}

/// A run under encryption, its files written.
pub fn run_encrypted(
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<Summary, Error> {
    let request = Request::read(arguments, seed)?;
    let Request { table, job, .. } = &request;
    let name = arguments.mechanism;
    let what = request.terms.contribution;
    let estimate = |domain: &Domain| encrypted::estimate(name, job, domain, table.records(), what);
    request.check_size(|domain| Ok(estimate(domain)?.memory_bytes))?;
    let estimate = estimate(table.domain())?;
    progress.say(&estimate.to_string());
    let known = request.look_up()?;
    let terms = request.terms.clone().complete(&Mechanisms)?;
    let (plan, job_run) = (
        terms.plan()?,
        generation::start(&Mechanisms, &terms, Vec::new())?,
    );
    let setup = Setup::new(&plan);
    let (mut source, mut costs) = {
        let what = (&request.party, &terms, &plan);
        setup.source(table, what, seed, estimate, progress)?
    };
    if name.releases_squares() {
        encrypted::compute(&mut source, job, &mut costs, progress)?;
    }
    let outcome = fhaim_synth::drive(job_run, &mut source, &mut follow(progress))?;
    let costs = costs.with(&source, &outcome.timings);
    remember(known.as_ref(), arguments, outcome.spent);
    request.finish(&outcome, Some(costs), progress)
}

fn run_in_the_clear(request: &Request<'_>, progress: &Progress) -> Result<Outcome, Error> {
    let Request { table, job, .. } = request;
    let seed = request.seed;
    let mut follow = follow(progress);
    let mechanism = request.arguments.mechanism;
    let mut rng = generator(seed, Purpose::Noise)?;
    // Noise drawn as it is needed is from the same distributions as a ladder's; only a run to be
    // compared with an encrypted one of the same seed draws the whole ladder.
    if seed.is_none() || mechanism.clear_only() {
        return Ok(mechanism.run_in_the_clear(table, job, &mut rng, &mut follow)?);
    }
    let run = Run::new(mechanism.start(job.clone())?, job.clone(), Vec::new());
    let need = fhaim_synth::need(&*mechanism, job)?;
    let (_, ladder) = encryption(job.record_bound, &need, &job.holders)?;
    let ladder = Ladder::sum(&holders::ladders(ladder, &job.holders, seed)?)?;
    let mut source = PlaintextSource::with_ladder(table, &ladder);
    let run = run.map_err(fhaim_synth::Error::from)?;
    Ok(fhaim_synth::drive(run, &mut source, &mut follow)?)
}

/// Prints what a run did.
pub fn print_summary(arguments: &GenerateArguments, summary: &Summary) -> Result<(), Error> {
    if arguments.json {
        return output::print_json(summary);
    }
    output::print(&summary.to_string())
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} in {}",
            self.dataset,
            counted(self.records, "synthetic record"),
            self.out
        )?;
        writeln!(
            f,
            "{} releases cost rho = {:.6} of {:.6} (epsilon {}, delta {:e}); {:.2} s",
            self.releases, self.rho_spent, self.rho, self.epsilon, self.delta, self.seconds
        )?;
        for alone in &self.alone {
            writeln!(f, "holder {}: {}", alone.holder, alone.words())?;
        }
        match self.encryption.as_ref().and_then(Costs::rounds) {
            Some(rounds) => rounds.fmt(f),
            None => Ok(()),
        }
    }
}

fn terms(arguments: &GenerateArguments, table: &Table) -> Result<Terms, Error> {
    let shown = Layout::for_records(table.records())?.max_records() as u64;
    let record_bound = arguments.record_bound.unwrap_or(shown);
    if table.records() as u64 > record_bound {
        return Err(Error::Usage(format!(
            "the table has more than the {} of --record-bound",
            counted(record_bound, "record")
        )));
    }
    let GenerateArguments { epsilon, delta, .. } = *arguments;
    Ok(Terms {
        mechanism: arguments.mechanism.to_string(),
        options: arguments.mechanism.options_to_name()?,
        model_bytes: arguments.model_mb.saturating_mul(1_000_000),
        target_weight: arguments.target_weight,
        ..Terms::new(table.schema().clone(), epsilon, delta, record_bound)
    })
}

/// Refuses results that would overwrite an input or each other.
fn check_paths(arguments: &GenerateArguments) -> Result<(), Error> {
    let inputs = [&arguments.data, &arguments.schema];
    let outputs: Vec<&Path> = std::iter::once(arguments.out.as_path())
        .chain(arguments.ledger.as_deref())
        .chain(arguments.model_out.as_deref())
        .chain(arguments.report.as_deref())
        .collect();
    for (i, output) in outputs.iter().enumerate() {
        let clashes = inputs.iter().any(|input| same_file(input, output))
            || outputs[..i].iter().any(|other| same_file(other, output));
        if clashes {
            let name = output.display();
            return Err(Error::Usage(format!("{name} is named for two purposes")));
        }
    }
    Ok(())
}

/// Whether two names are of one file, as far as one can tell before it exists.
fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Shows where a mechanism stands.
pub fn follow<'p>(progress: &'p Progress) -> impl FnMut(Standing) + use<'p> {
    let mut phase: Option<Phase> = None;
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
