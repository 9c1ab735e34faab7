//! `fhaim local` and `fhaim run`: read a table, make releases, fit a model, and write a synthetic table.

pub mod args;
mod journal;
mod outputs;
mod releases_file;

use std::{cell::Cell, num::NonZeroUsize, sync::Arc, time::Instant};

use fhaim_card::CardSetting;
use fhaim_domain::{
    Dialect, Domain, RawColumn, ReadOptions, Schema, WriteOptions, counted, read_csv,
};
use fhaim_dp::{Ladder, Rho, accounting};
use fhaim_eval::{evaluate, html_page};
use fhaim_files::{
    FormatArguments, OutputFormat,
    data::Data,
    memory::{self, KnownRecords, RecordSource},
    progress::{PhaseProgress, Progress},
};
use fhaim_he::Layout;
use fhaim_intake::count_texts;
use fhaim_protocol::generation;
use fhaim_protocol::terms::Terms;
use fhaim_release::{MechanismJob, MechanismRun, Phase, RunProgress as Standing};
use fhaim_synth::{
    FittedModel, Mechanisms, PlaintextSource, RunOutcome, Timing,
    forecast::{Forecast, RecordCount},
};

use self::{
    args::GenerateArguments,
    journal::JournalledSource,
    outputs::{OutputPaths, Outputs},
    releases_file::{Beginning, RequestForm, digest},
};
pub use self::{
    journal::Journal,
    releases_file::{Command, StoredRelease},
};
use crate::{
    alone::alone,
    card::{self, CardForm, CardOfRun},
    drawing,
    encrypted::{self, Costs, Dataset, Setup},
    error::Error,
    estimate::{self, Estimate, Load},
    forecast::{self, RunBudget},
    held::Held,
    holders::{self, Party},
    input, kept_releases,
    made_table::MadeTable,
    output::StagedFile,
    randomness::{InsecureTestSeed, Purpose, generator, system},
    size,
    spending::spending,
    summary::{Fit, Summary, print_summary},
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
    /// The model.
    pub model: Arc<dyn FittedModel>,
    /// The releases that the model was fitted to.
    pub releases: Vec<StoredRelease>,
    /// Total cost of the releases.
    pub spent: Rho,
    /// Seconds of each batch that this command made.
    pub timings: Vec<Timing>,
    /// Costs of encryption, if this command encrypted the records.
    pub costs: Option<Costs>,
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
        let delimiter = match OutputFormat::of(&arguments.out)? {
            OutputFormat::Csv => input::delimiter(&arguments.data, &arguments.format)?,
            // A Parquet table is converted to text with commas.
            OutputFormat::Parquet => b',',
        };
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
        self.check_start(Command::Local)?;
        Ok(bytes)
    }

    /// Rejects a run whose mechanism cannot start.
    fn check_start(&self, command: Command) -> Result<(), Error> {
        let mechanism = self.arguments.mechanism;
        match command {
            Command::Run => {
                let terms = self.terms.clone().complete(&Mechanisms)?;
                terms.plan()?;
                Ok(generation::start(&Mechanisms, &terms, Vec::new()).map(drop)?)
            }
            Command::Local => Ok(fhaim_synth::check_start(&*mechanism, &self.job)?),
        }
    }

    /// Rejects an encrypted run for every reason that is known before its first release. Returns its memory in bytes.
    pub fn check_encrypted(&self) -> Result<u64, Error> {
        let load = self.check_encrypted_size()?;
        self.check_start(Command::Run)?;
        Ok(load.memory_bytes)
    }

    /// Returns what the run can be expected to measure. `None` if the mechanism has no forecast.
    pub fn forecast(&self) -> Option<Forecast> {
        let GenerateArguments { epsilon, delta, .. } = *self.arguments;
        let (mechanism, schema) = (self.arguments.mechanism, self.held.schema());
        let records = RecordCount::Exactly(self.held.records() as u64);
        fhaim_synth::forecast(&*mechanism, &self.job, schema, (epsilon, delta), records)
    }

    /// Prints the forecast, reports earlier uses of the records, and asks for confirmation. A run that continues
    /// was confirmed before.
    fn look_up(
        &self,
        journal: &Journal,
        progress: &Progress,
    ) -> Result<Option<KnownRecords>, Error> {
        let GenerateArguments {
            data,
            format,
            epsilon,
            delta,
            yes,
            ..
        } = self.arguments;
        let run = RunBudget {
            epsilon: *epsilon,
            records: RecordCount::Exactly(self.held.records() as u64),
        };
        let consent = forecast::consent(
            self.forecast().as_ref(),
            run,
            *yes || !journal.releases().is_empty(),
            progress,
        );
        Ok(memory::look_up(
            RecordSource::Table(data, format),
            spending(self.job.rho),
            *delta,
            Some(journal.run()),
            consent,
        )?)
    }

    /// Returns the request as the releases file has it.
    pub fn form(&self, command: Command) -> RequestForm {
        let (arguments, schema) = (self.arguments, self.held.schema());
        RequestForm {
            command,
            schema: schema.name().to_owned(),
            schema_sha256: digest(schema.to_json().as_bytes()),
            draft: schema.claim(),
            mechanism: arguments.mechanism.to_string(),
            epsilon: arguments.epsilon,
            delta: arguments.delta,
            record_bound: arguments.record_bound,
            model_mb: arguments.model_mb,
            target_weight: arguments.target_weight,
            holders: arguments.holders,
        }
    }

    /// Makes the releases that the journal does not have yet, fits a model to all of them, and writes it to `model`.
    pub fn make(
        &self,
        command: Command,
        journal: &mut Journal,
        model: Option<StagedFile>,
        progress: &Progress,
    ) -> Result<GeneratedTable, Error> {
        let load = match command {
            Command::Run => Some(self.check_encrypted_size()?),
            Command::Local => self.check_clear_size().map(|_| None)?,
        };
        let load = load.filter(|_| !journal.is_finished());
        let estimate = load.map(|load| load.estimate(self.start)).transpose()?;
        if let Some(estimate) = &estimate {
            progress.say(&estimate.to_string());
        }
        self.check_start(command)?;
        journal.start(self.look_up(journal, progress)?)?;
        if let Some(path) = journal.saved_model()? {
            let model = input::model(path, self.arguments.model_mb, self.held.schema())?;
            return Ok(GeneratedTable {
                model,
                releases: journal.releases().to_vec(),
                spent: journal.spent(),
                timings: Vec::new(),
                costs: None,
            });
        }
        self.check_can_continue(journal)?;
        let made = match command {
            Command::Run => self.make_encrypted(journal, estimate, progress),
            Command::Local => (self.make_in_the_clear(journal, progress)).map(|made| (made, None)),
        };
        let (outcome, costs) = made.map_err(|error| self.failed(error, journal))?;
        let model = model.map(|file| (file, outcome.model.save()));
        journal.finish(&outcome.releases, outcome.spent, model)?;
        Ok(GeneratedTable {
            model: outcome.model,
            releases: journal.releases().to_vec(),
            spent: outcome.spent,
            timings: outcome.timings,
            costs,
        })
    }

    /// Rejects a run that cannot continue after the releases of the journal.
    fn check_can_continue(&self, journal: &Journal) -> Result<(), Error> {
        let mechanism = self.arguments.mechanism;
        if journal.is_finished() && mechanism.clear_only() {
            return Err(Error::Usage(format!(
                "the model of this run is missing, and {mechanism} cannot make it again from the releases: restore the \
                 model, choose another --out, or start a new run with --force"
            )));
        }
        let is_partial = !journal.is_finished() && !journal.releases().is_empty();
        if is_partial && self.seed.is_some() {
            return Err(Error::Usage(
                "a run with --seed cannot continue, because the noise of its first releases would be used again: start \
                 a new run with --force"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Makes the releases under encryption, and fits a model to them.
    fn make_encrypted(
        &self,
        journal: &mut Journal,
        estimate: Option<Estimate>,
        progress: &Progress,
    ) -> Result<(RunOutcome, Option<Costs>), Error> {
        let (held, job) = (&self.held, &self.job);
        let terms = self.terms.clone().complete(&Mechanisms)?;
        let plan = terms.plan()?;
        let run = generation::start(&Mechanisms, &terms, Vec::new())?;
        let dataset = Dataset {
            held,
            party: &self.party,
            terms: &terms,
            plan: &plan,
        };
        // A finished run asks for nothing.
        let made = estimate.map(|estimate| -> Result<_, Error> {
            let setup = Setup::new(&plan);
            let (mut source, mut costs) = setup.source(dataset, self.seed, estimate, progress)?;
            if self.arguments.mechanism.releases_squares() {
                encrypted::compute(&mut source, job, &mut costs, progress)?;
            }
            Ok((source, costs))
        });
        let (source, costs) = made.transpose()?.unzip();
        let phase = Cell::new(Phase::FIT);
        let mut source = JournalledSource::new(journal, job, &phase, source);
        let outcome = fhaim_synth::drive(run, &mut source, &mut follow(progress, &phase));
        let outcome = outcome.map_err(|error| source.failed(error))?;
        let costs = source.into_source().zip(costs);
        let costs = costs.map(|(source, costs)| costs.with(&source, &outcome));
        Ok((outcome, costs))
    }

    /// Makes the same releases in the clear, and fits a model to them.
    fn make_in_the_clear(
        &self,
        journal: &mut Journal,
        progress: &Progress,
    ) -> Result<RunOutcome, Error> {
        let Self {
            held, job, seed, ..
        } = self;
        let phase = Cell::new(Phase::FIT);
        let mut follow = follow(progress, &phase);
        let mechanism = self.arguments.mechanism;
        let mut rng = generator(*seed, Purpose::Noise)?;
        if let Held::Table(table) = held
            && mechanism.clear_only()
        {
            return Ok(mechanism.run_in_the_clear(table, job, &mut rng, &mut follow)?);
        }
        let run = MechanismRun::new(mechanism.start(job.clone())?, job.clone(), Vec::new());
        let run = run.map_err(fhaim_synth::Error::from)?;
        // Noise that is drawn on demand has the same distributions as a noise ladder. Only a run that is compared with
        // an encrypted run of the same seed needs the whole ladder.
        let ladder = match seed {
            None => None,
            Some(_) => Some(self.ladder()?),
        };
        let source = match &ladder {
            None => PlaintextSource::with_rng(held, &mut rng).of_holders(job.holders.count()),
            Some(ladder) => PlaintextSource::with_ladder(held, ladder),
        };
        let mut source = JournalledSource::new(journal, job, &phase, Some(source));
        let outcome = fhaim_synth::drive(run, &mut source, &mut follow);
        outcome.map_err(|error| source.failed(error))
    }

    /// Draws the noise of all holders.
    fn ladder(&self) -> Result<Ladder, Error> {
        let need = fhaim_synth::need(&*self.arguments.mechanism, &self.job)?;
        let plan = need.ladder.plan();
        let plan = plan.map_err(fhaim_protocol::Error::from)?;
        let ladders = holders::ladders(plan, &self.job.holders, self.seed)?;
        Ok(Ladder::sum(&ladders)?)
    }

    /// Handles the error of a run. If no model fits the releases, they are kept.
    fn failed(&self, error: Error, journal: &mut Journal) -> Error {
        let Error::Mechanism(fhaim_synth::Error::Unfitted(unfitted)) = error else {
            return error;
        };
        let kept = journal.finish(&unfitted.releases, unfitted.spent, None);
        let releases = kept.and_then(|()| match journal.path() {
            Some(path) => Ok(path.to_owned()),
            None => kept_releases::write(&self.arguments.out, &journal.text()?),
        });
        match releases {
            Ok(releases) => Error::Unfitted {
                problem: unfitted.describe(self.held.schema()),
                releases,
            },
            Err(error) => error,
        }
    }

    /// Draws the synthetic table from the model, and writes it, its cards and the report.
    fn finish(
        &self,
        mut outputs: Outputs,
        made: &GeneratedTable,
        command: Command,
        known: Option<&KnownRecords>,
        progress: &Progress,
    ) -> Result<Summary, Error> {
        let records = self.arguments.rows;
        let records = records.map_or_else(|| modelled_records(&*made.model), NonZeroUsize::get);
        let mut rng = generator(self.seed, Purpose::Records)?;
        // A table that an earlier part of the run wrote may have another number of records.
        let records = match &outputs.table {
            Some(_) => records,
            None => self.written_records()?,
        };
        let mut summary = self.summary(command, made, records);
        // The report needs the written table, which a pipe does not give back.
        let mut text = match (&outputs.table, &outputs.report) {
            (Some(_), Some(_)) => Some(Vec::new()),
            _ => None,
        };
        if let Some(file) = outputs.table.take() {
            self.write_table(
                file,
                &made.model,
                records,
                text.as_mut(),
                &mut rng,
                progress,
            )?;
        }
        self.write_cards(outputs.cards, command, made, known, records)?;
        if let Some(file) = outputs.report {
            let synthetic = match text {
                Some(text) => self.drawn_table(&text)?,
                None => self.written_table()?,
            };
            self.report(file, synthetic, &mut summary, &mut rng, progress)?;
        }
        Ok(summary)
    }

    /// Writes the data cards of a written table of `records` records.
    fn write_cards(
        &self,
        files: Vec<(CardForm, StagedFile)>,
        command: Command,
        made: &GeneratedTable,
        known: Option<&KnownRecords>,
        records: usize,
    ) -> Result<(), Error> {
        if files.is_empty() {
            return Ok(());
        }
        let releases = made.releases.iter();
        let releases =
            releases.map(|release| (&release.request.statistic, release.request.variance_units));
        let card = CardOfRun {
            terms: &self.terms,
            is_bound_public: self.arguments.record_bound.is_some(),
            setting: match command {
                Command::Run => CardSetting::OneProgram,
                Command::Local => CardSetting::InTheClear,
            },
            releases: releases.collect(),
            records: known,
            table: &self.arguments.out,
            delimiter: self.delimiter,
            synthetic_records: records as u64,
            model: &OutputPaths::of(self.arguments).model,
        };
        let card = card.card()?;
        let mut files = files.into_iter();
        files.try_for_each(|(form, file)| card::write(file, &card, form))
    }

    /// Draws the synthetic table and writes it to `file`, and also to `text`, if given.
    fn write_table(
        &self,
        mut file: StagedFile,
        model: &Arc<dyn FittedModel>,
        records: usize,
        text: Option<&mut Vec<u8>>,
        rng: &mut impl rand::Rng,
        progress: &Progress,
    ) -> Result<(), Error> {
        let phase = progress.counted("sample", records as u64, "records");
        let blocks = drawing::blocks(&self.held.shared_schema(), model, records, rng);
        let mut options = WriteOptions::new(self.arguments.out.to_string_lossy());
        options.delimiter = self.delimiter;
        drawing::write(&blocks, &options, &mut file, text, &phase)?;
        file.commit()?;
        phase.finish();
        Ok(())
    }

    /// Reads the synthetic table from its text.
    fn drawn_table(&self, text: &[u8]) -> Result<MadeTable, Error> {
        let options = ReadOptions {
            dialect: Dialect::of_delimiter(self.delimiter),
            keep_values: true,
            ..ReadOptions::new(self.arguments.out.to_string_lossy())
        };
        let reading = read_csv(self.held.shared_schema(), text, &options)?;
        let (name, dialect) = (&options.file, &options.dialect);
        let texts = count_texts(text, name, dialect, &options.missing, &[])?;
        Ok(MadeTable { reading, texts })
    }

    /// Reads the synthetic table that an earlier part of the run wrote.
    fn written_table(&self) -> Result<MadeTable, Error> {
        let (data, format) = self.written()?;
        let strictness = &self.arguments.strictness;
        MadeTable::read(&data, self.held.schema(), &format, strictness)
    }

    /// Returns the number of records of the synthetic table that an earlier part of the run wrote.
    fn written_records(&self) -> Result<usize, Error> {
        let (data, format) = self.written()?;
        input::count_records(&data, &format)
    }

    /// The file of the synthetic table, and its form.
    fn written(&self) -> Result<(Data, FormatArguments), Error> {
        let GenerateArguments { out, format, .. } = self.arguments;
        let format = FormatArguments {
            delimiter: match OutputFormat::of(out)? {
                OutputFormat::Csv => Some(self.delimiter),
                OutputFormat::Parquet => None,
            },
            ..format.of_output()
        };
        Ok((Data::from(out.as_path()), format))
    }

    /// Writes the report on a synthetic table.
    fn report(
        &self,
        mut file: StagedFile,
        synthetic: MadeTable,
        summary: &mut Summary,
        rng: &mut rand_chacha::ChaCha20Rng,
        progress: &Progress,
    ) -> Result<(), Error> {
        // With a report, the records are always a table and not counts.
        let Held::Table(table) = &self.held else {
            return Ok(());
        };
        let MadeTable {
            reading: synthetic,
            texts,
        } = synthetic;
        if !self.job.holders.is_one() {
            let phase = progress.uncounted("each holder by itself");
            let (mechanism, job) = (self.arguments.mechanism, &self.job);
            summary.alone = alone(mechanism, job, table, &synthetic.table, rng)?;
            phase.finish();
        }
        let phase = progress.uncounted("evaluate");
        let mut report = evaluate(table, &synthetic.table, None, rng)?;
        report.add_values(&self.values, &synthetic.values);
        let GenerateArguments {
            data,
            format,
            strictness,
            ..
        } = self.arguments;
        let real = input::texts(data, format, strictness)?;
        report.add_texts(&real, &texts);
        file.write_bytes(html_page(&report, &summary.facts()).as_bytes())?;
        file.commit()?;
        phase.finish();
        Ok(())
    }

    /// Returns the summary of a run that drew `records` from the model.
    pub fn summary(&self, command: Command, made: &GeneratedTable, records: usize) -> Summary {
        let arguments = self.arguments;
        Summary {
            dataset: self.held.schema().name().to_owned(),
            mechanism: arguments.mechanism.to_string(),
            is_encrypted: command == Command::Run,
            epsilon: arguments.epsilon,
            delta: arguments.delta,
            rho: self.job.rho.to_f64(),
            rho_spent: made.spent.to_f64(),
            releases: made.releases.len(),
            records,
            model_bytes: made.model.bytes(),
            fit: made.model.fit().map(Fit::from),
            model_cliques: (made.model.marginals()).map_or(0, |m| m.cliques().len()),
            seconds: self.start.elapsed().as_secs_f64(),
            timings: made.timings.clone(),
            encryption: made.costs,
            alone: Vec::new(),
            out: arguments.out.to_string_lossy().into_owned(),
        }
    }
}

/// Returns the model's estimate of the number of records, at least one.
pub fn modelled_records(model: &dyn FittedModel) -> usize {
    (model.total().round() as usize).max(1)
}

/// Runs `fhaim local`.
pub fn local(
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let summary = generate(Command::Local, arguments, seed, progress)?;
    print_summary(arguments, &summary)
}

/// Runs `fhaim run`.
pub fn run(
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let summary = generate(Command::Run, arguments, seed, progress)?;
    print_summary(arguments, &summary)
}

/// Makes the releases, and then writes the model, the table and the report, one after the other.
///
/// A command that failed or was killed left some of these files. The same command then continues with the rest.
pub fn generate(
    command: Command,
    arguments: &GenerateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<Summary, Error> {
    accounting::rho(arguments.epsilon, arguments.delta)?;
    let paths = OutputPaths::of(arguments);
    paths.check(arguments)?;
    let schema = input::schema(&arguments.schema)?;
    let beginning = Beginning::find(&paths.releases, arguments.force)?;
    let mut outputs = Outputs::create(&paths, &beginning)?;
    let request = Request::read(arguments, schema, seed)?;
    let mut journal = Journal::with_file(request.form(command), request.job.rho, paths, beginning)?;
    let made = request.make(command, &mut journal, outputs.model.take(), progress);
    let summary =
        made.and_then(|made| request.finish(outputs, &made, command, journal.known(), progress));
    if let Err(error) = &summary
        && error.may_pass()
    {
        journal.say_how_to_continue();
    }
    summary
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

/// Returns a callback that shows a mechanism's progress, and sets the current phase.
pub fn follow<'p>(
    progress: &'p Progress,
    current: &'p Cell<Phase>,
) -> impl FnMut(Standing) + use<'p> {
    let mut phase: Option<PhaseProgress> = None;
    move |standing| {
        current.set(standing.phase);
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
