//! `fhaim local` and `fhaim run`: a table in, releases, a model, a synthetic table out.

use std::{path::Path, time::Instant};

use fhaim_domain::{Table, WriteOptions, write_csv};
use fhaim_dp::{Ladder, Rho, accounting};
use fhaim_synth::{
    AimOptions, Job, MechanismName, Outcome, PlaintextSource, Progress as Standing, Release,
    Timing, Workload, run_aim,
};
use serde::Serialize;

use crate::{
    args::GenerateArguments,
    error::Error,
    input,
    output::{self, Staged, commit_all},
    progress::{Phase, Progress},
    randomness::{Purpose, generator},
    size,
};

/// The itemised ledger as a file: what was released and what it cost. The same for the same
/// releases, whoever computed them.
#[derive(Debug, Serialize)]
struct LedgerFile<'a> {
    schema: &'a str,
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
    out: String,
}

/// A table, its budget, and where the results go: everything checked before the work starts.
pub struct Request<'a> {
    arguments: &'a GenerateArguments,
    /// The table.
    pub table: Table,
    /// What the mechanism may know.
    pub job: Job,
    files: Files,
    start: Instant,
}

/// Result files under way.
struct Files {
    table: Staged,
    ledger: Option<Staged>,
}

impl<'a> Request<'a> {
    /// Reads and checks everything a run needs.
    pub fn read(arguments: &'a GenerateArguments) -> Result<Self, Error> {
        let start = Instant::now();
        let rho = accounting::rho(arguments.epsilon, arguments.delta)?;
        check_paths(arguments)?;
        let schema = input::schema(&arguments.schema)?;
        let files = Files {
            table: Staged::create(&arguments.out)?,
            ledger: arguments
                .ledger
                .as_deref()
                .map(Staged::create)
                .transpose()?,
        };
        let table = input::table(
            &arguments.data,
            schema,
            &arguments.format,
            &arguments.strictness,
        )?;
        if table.records() as u64 > arguments.record_bound {
            return Err(Error::Usage(format!(
                "the table has more than the {} records of --record-bound",
                arguments.record_bound
            )));
        }
        let job = job(arguments, &table, rho);
        Ok(Self {
            arguments,
            table,
            job,
            files,
            start,
        })
    }

    /// Refuses a run that needs more memory than there is.
    pub fn check_size(&self, need: &size::Need) -> Result<(), Error> {
        need.check(self.table.schema(), size::limit(self.arguments.memory_mb))
    }

    /// Draws the synthetic table from the model and writes all files.
    pub fn finish(mut self, outcome: Outcome, progress: &Progress) -> Result<Summary, Error> {
        let records = self
            .arguments
            .records
            .unwrap_or_else(|| (outcome.model.total().round() as usize).max(1));
        let phase = progress.uncounted("sample");
        let mut rng = generator(self.arguments.randomness.seed(), Purpose::Records)?;
        let columns = outcome.model.sample(records, &mut rng);
        let synthetic =
            Table::new(self.table.shared_schema(), columns).map_err(fhaim_domain::Error::from)?;
        self.write_table(&synthetic, &mut rng)?;
        self.write_ledger(&outcome)?;
        commit_all([self.files.table].into_iter().chain(self.files.ledger))?;
        phase.finish();
        Ok(summary(
            self.arguments,
            &self.table,
            &self.job,
            &outcome,
            records,
            self.start,
        ))
    }

    fn write_table(&mut self, table: &Table, rng: &mut impl rand::Rng) -> Result<(), Error> {
        let mut options = WriteOptions::new(self.arguments.out.to_string_lossy());
        options.delimiter = self.arguments.format.delimiter;
        self.files
            .table
            .write(|writer| Ok(write_csv(table, writer, rng, &options)?))
    }

    fn write_ledger(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let Some(file) = &mut self.files.ledger else {
            return Ok(());
        };
        let ledger = LedgerFile {
            schema: self.table.schema().name(),
            epsilon: self.arguments.epsilon,
            delta: self.arguments.delta,
            budget: self.job.rho,
            spent: outcome.spent,
            releases: &outcome.releases,
        };
        file.write_bytes(output::to_json(&ledger)?.as_bytes())
    }
}

fn summary(
    arguments: &GenerateArguments,
    table: &Table,
    job: &Job,
    outcome: &Outcome,
    records: usize,
    start: Instant,
) -> Summary {
    Summary {
        dataset: table.schema().name().to_owned(),
        mechanism: arguments.mechanism.to_string(),
        epsilon: arguments.epsilon,
        delta: arguments.delta,
        rho: job.rho.to_f64(),
        rho_spent: outcome.spent.to_f64(),
        releases: outcome.releases.len(),
        records,
        model_bytes: outcome.model.bytes(),
        model_cliques: outcome.model.cliques().count(),
        seconds: start.elapsed().as_secs_f64(),
        timings: outcome.timings.clone(),
        out: arguments.out.to_string_lossy().into_owned(),
    }
}

/// `fhaim local`: everything in the clear.
pub fn local(arguments: &GenerateArguments, progress: &Progress) -> Result<(), Error> {
    let request = Request::read(arguments)?;
    request.check_size(&size::Need::local(
        request.table.schema(),
        request.table.records(),
        request.job.model_bytes,
    ))?;
    let outcome = run_in_the_clear(&request, progress)?;
    let summary = request.finish(outcome, progress)?;
    print_summary(arguments, &summary)
}

fn run_in_the_clear(request: &Request<'_>, progress: &Progress) -> Result<Outcome, Error> {
    let Request { table, job, .. } = request;
    let seed = request.arguments.randomness.seed();
    let mut follow = follow(progress);
    let mechanism = request.arguments.mechanism;
    if mechanism == MechanismName::Aim {
        let mut rng = generator(seed, Purpose::Noise)?;
        return Ok(run_aim(
            table,
            job,
            &AimOptions::default(),
            &mut rng,
            &mut follow,
        )?);
    }
    let mut rng = generator(seed, Purpose::Noise)?;
    let mut running = mechanism.start(job.clone())?;
    // Noise drawn as it is needed is from the same distributions as a ladder's; only a run to be
    // compared with an encrypted one of the same seed draws the whole ladder.
    let ladder = match seed {
        Some(_) => Some(Ladder::draw(mechanism.ladder_need(job)?.plan()?, &mut rng)),
        None => None,
    };
    let mut source = match &ladder {
        Some(ladder) => PlaintextSource::with_ladder(table, ladder),
        None => PlaintextSource::with_rng(table, &mut rng),
    };
    Ok(fhaim_synth::run(
        running.as_mut(),
        &mut source,
        &mut follow,
    )?)
}

/// Prints what a run did.
pub fn print_summary(arguments: &GenerateArguments, summary: &Summary) -> Result<(), Error> {
    if arguments.json {
        return output::print_json(summary);
    }
    output::print(&format!(
        "{}: {} synthetic records in {}\n{} releases cost rho = {:.6} of {:.6} (epsilon {}, delta {:e}); {:.2} s\n",
        summary.dataset,
        summary.records,
        summary.out,
        summary.releases,
        summary.rho_spent,
        summary.rho,
        summary.epsilon,
        summary.delta,
        summary.seconds,
    ))
}

fn job(arguments: &GenerateArguments, table: &Table, rho: Rho) -> Job {
    let domain = table.domain().clone();
    let mut job = Job::new(domain.clone(), rho, arguments.record_bound);
    job.model_bytes = arguments.model_mb.saturating_mul(1_000_000);
    if let Some(target) = table.schema().target()
        && arguments.target_weight > 1
    {
        job.workload = Workload::all_pairs_with_target(&domain, target, arguments.target_weight);
    }
    job
}

/// Refuses results that would overwrite an input or each other.
fn check_paths(arguments: &GenerateArguments) -> Result<(), Error> {
    let inputs = [&arguments.data, &arguments.schema];
    let outputs: Vec<&Path> = std::iter::once(arguments.out.as_path())
        .chain(arguments.ledger.as_deref())
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
