//! `fhaim job ...` and `fhaim download`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use fhaim_api::dataset::Dataset;
use fhaim_api::job::{Draw, Happening, Job, JobEvent, JobState, ReleasedStatistic, TableFormat};
use fhaim_domain::counted;
use fhaim_dp::accounting;
use fhaim_files::{
    EarlierUse, OutputFormat, can_ask,
    progress::{PhaseProgress, Progress},
};
use fhaim_sdk::Client;
use fhaim_synth::forecast::RecordCount;
use uuid::Uuid;

use super::{
    args::{JobArguments, JobCommand, JobRunArguments, identifier},
    card::{self, CardFile},
    forecast::Forecast,
    holders, link, login, verify,
};
use crate::{
    error::Error,
    forecast::RunBudget,
    output::{self, OverwriteArguments, StagedFile},
};

/// Number of consecutive broken event streams after which watching a job fails.
const BREAKS: u32 = 10;

pub async fn run(command: &JobCommand, progress: &Progress) -> Result<(), Error> {
    let client = login::client()?;
    match command {
        JobCommand::Run(arguments) => start(&client, arguments, progress).await,
        JobCommand::Watch(arguments) => {
            let (job, json) = (arguments.job, arguments.json);
            let watched = async {
                let dataset = client.job(job).await?.dataset;
                let forecast = forecast(&client, dataset, progress).await;
                follow(&client, job, forecast, json, progress).await
            };
            until_interrupted(job, watched).await
        }
        JobCommand::List(arguments) => {
            let jobs = client.jobs(arguments.dataset).await?;
            for job in &jobs.damaged {
                fhaim_files::tell_line(format_args!(
                    "warning: job {job} is left out: its data at the generation service is damaged. Ask the \
                     service's operator to restore it from a backup"
                ));
            }
            if arguments.json {
                return output::print_json(&jobs.items);
            }
            output::print(&jobs.items.iter().map(line).collect::<String>())
        }
        JobCommand::Show(arguments) => show(&client.job(arguments.job).await?, arguments.json),
        JobCommand::Releases(arguments) => releases(&client, arguments).await,
        JobCommand::Note(arguments) => {
            let noted = client.annotate(arguments.job, &arguments.note).await?;
            show(&noted, arguments.json)
        }
        JobCommand::Cancel(arguments) => show(&client.cancel(arguments.job).await?, arguments.json),
        JobCommand::Retry(arguments) => show(&client.retry(arguments.job).await?, arguments.json),
    }
}

/// Runs `fhaim job run`.
async fn start(
    client: &Client,
    arguments: &JobRunArguments,
    progress: &Progress,
) -> Result<(), Error> {
    let (dataset, json) = (arguments.dataset, arguments.json);
    holders::must_agree(client, dataset).await?;
    let forecast = forecast(client, dataset, progress).await;
    if let Some(forecast) = &forecast {
        progress.say(&forecast.before());
    }
    agree(client, arguments, progress).await?;
    let id = arguments.job.unwrap_or_else(Uuid::now_v7);
    // The identifier is printed first, so that the job can be found even if the answer is lost.
    if json {
        fhaim_files::tell_line(format_args!("job {id}"));
    } else {
        output::print(&format!("{id}\n"))?;
    }
    let job = client.run(dataset, id).await.inspect_err(|error| {
        // A job that a service rejects was not started.
        if error.kind().is_none() {
            fhaim_files::tell_line(format_args!(
                "note: the job may have started. To repeat the request without a second run, use \
                 `fhaim job run {dataset} --job {id}`"
            ));
        }
    })?;
    if arguments.watch {
        let watched = follow(client, job.id, forecast, json, progress);
        return until_interrupted(job.id, watched).await;
    }
    if json {
        return output::print_json(&job);
    }
    Ok(())
}

/// Prints what the run can be expected to measure of the most records that the terms allow, and asks at the terminal
/// before a run starts. Without a terminal, stops a run after the first one, unless it may be the continuation of a run
/// with a known identifier.
async fn agree(
    client: &Client,
    arguments: &JobRunArguments,
    progress: &Progress,
) -> Result<(), Error> {
    let shown = client.dataset(arguments.dataset).await?;
    if shown.runs_left == 0 {
        // Only a run that was started before can continue, and it was confirmed then.
        return Ok(());
    }
    let records = RecordCount::AtMost(shown.terms.0.record_bound);
    let precision = crate::forecast::of_terms(&shown.terms.0, records)?;
    let run = RunBudget {
        epsilon: shown.terms.0.epsilon,
        records,
    };
    let mut consent = crate::forecast::consent(precision.as_ref(), run, arguments.yes, progress);
    if !consent.yes && can_ask() {
        consent.question = Some(question(client, &shown).await?);
    }
    let is_later = arguments.job.is_none() && shown.runs_left < shown.terms.0.runs;
    let earlier = match is_later {
        true => EarlierUse::Known,
        false => EarlierUse::None,
    };
    Ok(consent.ask(earlier)?)
}

/// Returns the forecast of a run over a dataset, or `None` if nobody would see it or it fails. No run depends on it.
async fn forecast(client: &Client, dataset: Uuid, progress: &Progress) -> Option<Forecast> {
    match progress.is_quiet() {
        false => Forecast::of(client, dataset).await.ok(),
        true => None,
    }
}

/// Returns the question before a run, with its cost and the remaining budget.
async fn question(client: &Client, shown: &Dataset) -> Result<String, Error> {
    let ledger = client.ledger(shown.id).await?;
    let terms = &shown.terms.0;
    let run = accounting::rho(terms.epsilon, terms.delta)?.share(terms.runs);
    Ok(format!(
        "A run over {} spends at most rho {:.6}. It uses one of {} left of {}. Spent so far: rho {:.6} of \
         {:.6} (epsilon {} at delta {:e}). Spent budget cannot be recovered. Start the run?",
        shown.name,
        run.to_f64(),
        counted(shown.runs_left, "run"),
        terms.runs,
        ledger.spent.rho,
        ledger.budget.rho,
        terms.epsilon,
        terms.delta,
    ))
}

async fn releases(client: &Client, arguments: &JobArguments) -> Result<(), Error> {
    let releases = client.releases(arguments.job).await?;
    if arguments.json {
        return output::print_json(&releases);
    }
    let line = |release: &ReleasedStatistic| {
        let ReleasedStatistic { number, phase, .. } = release;
        let attributes = release.attributes.join(" x ");
        format!(
            "{number:6}  {phase:50} {:8} cells  sigma {:10.2}  rho {:.3e}  {attributes}\n",
            release.values.len(),
            release.sigma,
            release.cost.rho
        )
    };
    output::print(&releases.iter().map(line).collect::<String>())
}

fn show(job: &Job, json: bool) -> Result<(), Error> {
    if json {
        output::print_json(job)
    } else {
        output::print(&line(job))
    }
}

fn state(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "queued",
        JobState::Running => "running",
        JobState::Done => "done",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}

fn line(job: &Job) -> String {
    let progress = job.progress.as_ref().map(|p| {
        let (phase, round, rounds) = (&p.phase, p.round, p.rounds);
        format!("  {phase} ({round}/{rounds})")
    });
    let error = job.error.as_ref().map(|error| format!("  {error}"));
    let note = (!job.note.is_empty()).then(|| format!("  ({})", job.note));
    format!(
        "{}  {:9}  {}, rho {:.6}{}{}{}\n",
        job.id,
        state(job.state),
        counted(job.releases, "release"),
        job.spent.rho,
        progress.unwrap_or_default(),
        error.unwrap_or_default(),
        note.unwrap_or_default()
    )
}

/// Watches a job until it ends or the user presses Ctrl-C, which does not stop the job.
async fn until_interrupted(
    id: Uuid,
    watched: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    tokio::select! {
        ended = watched => ended,
        Ok(()) = tokio::signal::ctrl_c() => Err(Error::Watching { job: id.to_string() }),
    }
}

/// Follows a job until it ends, and reconnects after a broken connection.
async fn follow(
    client: &Client,
    id: Uuid,
    mut forecast: Option<Forecast>,
    json: bool,
    progress: &Progress,
) -> Result<(), Error> {
    let mut after = 0;
    let mut breaks = 0;
    let mut phase: Option<PhaseProgress> = None;
    loop {
        let broken = match client.events(id, after).await {
            Ok(mut events) => loop {
                match events.next().await {
                    Ok(Some(event)) => {
                        (after, breaks) = (event.number, 0);
                        tell(&event, json, progress, &mut phase, &mut forecast)?;
                    }
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            },
            Err(error @ fhaim_sdk::Error::Unreachable { .. }) => Some(error),
            Err(error) => return Err(error.into()),
        };
        let job = client.job(id).await;
        match (job, broken) {
            (Ok(job), _) if job.state.is_final() => {
                if let Some(phase) = phase.take() {
                    phase.finish();
                }
                verify::record(client, &job).await;
                return ended(&job, json);
            }
            (Ok(_), None) => {}
            (_, Some(error)) if breaks >= BREAKS => return Err(error.into()),
            (Err(error), None) if breaks >= BREAKS => return Err(error.into()),
            _ => breaks += 1,
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn tell(
    event: &JobEvent,
    json: bool,
    progress: &Progress,
    phase: &mut Option<PhaseProgress>,
    forecast: &mut Option<Forecast>,
) -> Result<(), Error> {
    if json {
        return output::print_json_line(event);
    }
    if let Happening::Phase { progress: at, .. } = &event.what {
        if let Some(phase) = phase.take() {
            phase.finish();
        }
        if let Some(left) = forecast.as_mut().and_then(|f| f.asked(event.at)) {
            progress.say(&left);
        }
        let name = format!("{} ({}/{})", at.phase, at.round, at.rounds);
        *phase = Some(progress.uncounted(name));
    }
    if let Happening::State {
        state: JobState::Queued | JobState::Running,
        error: Some(reason),
    } = &event.what
    {
        progress.say(reason);
    }
    Ok(())
}

fn ended(job: &Job, json: bool) -> Result<(), Error> {
    if !json {
        output::print(&line(job))?;
    }
    match (job.state, &job.error) {
        (JobState::Done, _) => Ok(()),
        (_, Some(error)) => Err(Error::Job(format!("the job failed: {error}"))),
        (other, None) => Err(Error::Job(format!("the job is {}", state(other)))),
    }
}

pub const DOWNLOAD_EXAMPLES: &str = "\
Examples:
  fhaim download 0198c0de-0000-7000-8000-000000000001 --out synthetic.csv
  fhaim download --link-file link.txt --out synthetic.csv
  fhaim download 0198c0de-0000-7000-8000-000000000001 --out big.parquet \\
      --rows 1000000 --where race=Asian --seed 7
  fhaim download 0198c0de-0000-7000-8000-000000000001 --model-out patients.model
  fhaim download 0198c0de-0000-7000-8000-000000000001 --out synthetic.csv \\
      --card synthetic.card.html --card synthetic.card.json

A card has public facts only: columns, guarantee, spending, noise, and whom to trust. With --out, it also
names the downloaded file and its digest. The card of a link has no noise, spending or parties.

The model is made only from the releases, so it is as private as the synthetic tables. `fhaim sample`
draws more records from it. A link does not give access to the model.";

/// Flags of `download`.
#[derive(Debug, Args)]
pub struct DownloadArguments {
    /// Identifier of the job
    #[arg(value_parser = identifier, required_unless_present = "link_file")]
    pub job: Option<Uuid>,
    /// File with a link to another account's result, instead of a job
    #[arg(long, value_name = "FILE", conflicts_with = "job")]
    pub link_file: Option<PathBuf>,
    /// Output file for the synthetic table: CSV or, with the extension .parquet, Parquet
    #[arg(long, value_name = "TABLE", required_unless_present_any = ["model_out", "card"])]
    pub out: Option<PathBuf>,
    /// Output file for the model
    #[arg(long, value_name = "FILE", conflicts_with = "link_file")]
    pub model_out: Option<PathBuf>,
    /// Output file for the data card, which may be published: .html or .json (may be repeated)
    #[arg(long, value_name = "FILE", value_parser = CardFile::parse)]
    pub card: Vec<CardFile>,
    #[command(flatten)]
    pub overwriting: OverwriteArguments,
    /// Number of synthetic records [default: the model's estimate of the number of real records]
    #[arg(long, value_name = "N", requires = "out")]
    pub rows: Option<u64>,
    /// Seed of the records: the same seed draws the same table [default: a random seed]
    #[arg(long, value_name = "N", requires = "out")]
    pub seed: Option<u64>,
    /// Condition that every record must meet (may be repeated)
    #[arg(long = "where", value_name = "COLUMN=VALUE", requires = "out")]
    pub conditions: Vec<String>,
}

/// Runs `fhaim download`.
pub async fn download(arguments: &DownloadArguments, progress: &Progress) -> Result<(), Error> {
    let cards = arguments.card.iter().map(|card| &card.path);
    let outputs = arguments
        .out
        .iter()
        .chain(&arguments.model_out)
        .chain(cards);
    let outputs: Vec<&Path> = outputs.map(PathBuf::as_path).collect();
    output::check_distinct(&[], &outputs)?;
    let format = arguments.out.as_deref().map(OutputFormat::of).transpose()?;
    let existing = arguments.overwriting.existing();
    let create = |path: &Option<PathBuf>| {
        let path = path.as_deref();
        path.map(|path| StagedFile::create(path, existing))
            .transpose()
    };
    let (table, model) = (create(&arguments.out)?, create(&arguments.model_out)?);
    let cards = arguments
        .card
        .iter()
        .map(|card| StagedFile::create(&card.path, existing));
    let cards = cards.collect::<Result<Vec<StagedFile>, _>>()?;
    let client = login::client()?;
    if let (Some(path), Some(mut staged)) = (&arguments.out, table) {
        let phase = progress.uncounted("download");
        let mut file = tokio::fs::File::from_std(staged.handle()?);
        let bytes = download_table(&client, arguments, format, &mut file).await?;
        phase.finish();
        end(staged, path, bytes)?;
    }
    if let (Some(path), Some(mut staged), Some(job)) = (&arguments.model_out, model, arguments.job)
    {
        let phase = progress.uncounted("download the model");
        let mut file = tokio::fs::File::from_std(staged.handle()?);
        let bytes = client.download_model(job, &mut file).await?;
        phase.finish();
        end(staged, path, bytes)?;
    }
    let is_csv = format == Some(OutputFormat::Csv);
    write_cards(&client, arguments, is_csv, cards).await
}

/// Writes the cards of the downloaded table, or of the result.
async fn write_cards(
    client: &Client,
    arguments: &DownloadArguments,
    is_csv: bool,
    files: Vec<StagedFile>,
) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let table = arguments.out.as_deref();
    let table = table.map(|path| card::downloaded(path, is_csv, arguments.rows));
    let table = table.transpose()?.flatten();
    let card = match (&arguments.link_file, arguments.job) {
        (Some(path), _) => card::of_link(client, &link::read(path)?, table).await?,
        (None, Some(job)) => card::of_job(client, job, table).await?,
        (None, None) => return Err(no_result()),
    };
    let mut files = arguments.card.iter().zip(files);
    files.try_for_each(|(named, file)| named.write(file, &card))
}

fn end(staged: StagedFile, path: &Path, bytes: u64) -> Result<(), Error> {
    staged.commit()?;
    output::print(&format!(
        "{}: {:.1} MB\n",
        path.display(),
        bytes as f64 / 1e6
    ))
}

async fn download_table(
    client: &Client,
    arguments: &DownloadArguments,
    format: Option<OutputFormat>,
    file: &mut tokio::fs::File,
) -> Result<u64, Error> {
    let draw = Draw {
        format: match format {
            Some(OutputFormat::Parquet) => TableFormat::Parquet,
            Some(OutputFormat::Csv) | None => TableFormat::Csv,
        },
        rows: arguments.rows,
        seed: arguments.seed,
        r#where: Some(arguments.conditions.join(",")).filter(|text| !text.is_empty()),
    };
    match (&arguments.link_file, arguments.job) {
        (Some(path), _) => {
            let link = link::read(path)?;
            Ok(client.download_linked(&link, &draw, file).await?)
        }
        (None, Some(job)) => Ok(client.download(job, &draw, file).await?),
        (None, None) => Err(no_result()),
    }
}

fn no_result() -> Error {
    Error::Usage("name a job or use --link-file".to_owned())
}
