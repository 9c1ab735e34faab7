//! `fhaim dataset ...`.

use fhaim_files::{EarlierUse, FormatArguments, StrictnessArguments};
use std::{io::Read as _, path::Path, sync::Arc, time::Duration};

use fhaim_api::{
    Digest,
    dataset::{Dataset, DatasetState},
    problem::ProblemKind,
    upload::Upload,
};
use fhaim_domain::{NearUnique, Schema, counted};
use fhaim_dp::Ladder;
use fhaim_files::{
    ask, can_ask,
    memory::{self, RecordSource, Use},
    progress::Progress,
};
use fhaim_he::Layout;
use fhaim_protocol::{
    committee::KeyService, holder::check_records, roster::ContributionKind, terms::Terms,
};
use fhaim_sdk::{Client, Journal, List, NoiseSource, Records, UploadSource};
use fhaim_synth::{Mechanisms, forecast::RecordCount};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{
    args::{
        CreateArguments, DatasetCommand, DeleteArguments, ListArguments, RenameArguments,
        ShowArguments, UploadArguments,
    },
    holders, ledger, login,
};
use crate::{
    counting,
    error::Error,
    estimate,
    forecast::{self, RunBudget},
    input::{self, Data},
    output,
    randomness::{InsecureTestSeed, Purpose, Randomness, generator},
    spending::spending,
};

pub async fn run<R: Randomness>(
    command: &DatasetCommand<R>,
    progress: &Progress,
) -> Result<(), Error> {
    match command {
        DatasetCommand::Create(arguments) => create(arguments, progress).await,
        DatasetCommand::Upload(drawing) => {
            upload(&drawing.arguments, drawing.seed(), progress).await
        }
        DatasetCommand::Join(arguments) => holders::join(arguments).await,
        DatasetCommand::Sign(arguments) => holders::sign(arguments).await,
        DatasetCommand::Withdraw(arguments) => holders::withdraw(arguments).await,
        DatasetCommand::List(arguments) => list(arguments).await,
        DatasetCommand::Show(arguments) => show(arguments).await,
        DatasetCommand::Rename(arguments) => rename(arguments).await,
        DatasetCommand::Delete(arguments) => delete(arguments).await,
    }
}

async fn rename(arguments: &RenameArguments) -> Result<(), Error> {
    let client = login::client()?;
    let renamed = client.rename_dataset(arguments.dataset, &arguments.name);
    let renamed = renamed.await?;
    if arguments.json {
        return output::print_json(&renamed);
    }
    output::print(&format!("{}  {}\n", renamed.id, renamed.name))
}

async fn create(arguments: &CreateArguments, progress: &Progress) -> Result<(), Error> {
    let schema = input::schema(&arguments.schema)?;
    let data: Option<Data> = arguments.data.as_ref().map(Data::from);
    let counted = match &data {
        Some(data) => {
            let source = input::Source {
                data,
                schema: &schema,
                format: &arguments.format,
                strictness: &arguments.strictness,
                near_unique: NearUnique::Refuse,
            };
            // Only the number of records is needed.
            let records = input::stream(source, |_| Ok(()))?.records;
            Some(records)
        }
        None => None,
    };
    let layout = |records| Layout::for_records(usize::try_from(records).unwrap_or(usize::MAX));
    let layout = counted.map(layout).transpose()?;
    let shown = layout.map(|layout| layout.max_records() as u64);
    let (roster, held) = holders::roster(&arguments.roster)?.unzip();
    let record_bound = arguments.record_bound.or(held).or(shown).unwrap_or(0);
    let of = roster.as_ref();
    let contribution = holders::contribution(&arguments.roster, &schema, of, record_bound)?;
    let name = arguments.name.clone();
    let name = name.unwrap_or_else(|| schema.name().to_owned());
    let terms = Terms {
        mechanism: arguments.mechanism.to_string(),
        runs: arguments.runs,
        model_bytes: arguments.model_mb.saturating_mul(1_000_000),
        target_weight: arguments.target_weight,
        roster,
        contribution,
        witness: arguments.witness,
        key_services: key_services(arguments.keys).await?,
        ..Terms::new(schema, arguments.epsilon, arguments.delta, record_bound)
    };
    let terms = terms.complete(&Mechanisms)?;
    // Invalid terms fail here with a reason, before anything is sent.
    let budget = terms.plan()?.core.budget;
    fhaim_files::tell_part(format_args!("{}", holders::risk(&terms)));
    let records = counted.map_or(RecordCount::AtMost(record_bound), RecordCount::Exactly);
    let forecast = forecast::of_terms(&terms, records)?;
    let run = RunBudget {
        epsilon: terms.epsilon,
        records,
    };
    let consent = forecast::consent(forecast.as_ref(), run, arguments.yes, progress);
    if let Some(data) = &data {
        let records = RecordSource::Table(data, &arguments.format);
        memory::look_up(records, spending(budget), terms.delta, None, consent)?;
    } else {
        consent.ask(EarlierUse::None)?;
    }
    let client = login::client()?;
    if data.is_some() {
        let others = client.datasets().await?;
        let alike = others.items.iter().filter(|other| {
            other.state == DatasetState::Ready && other.terms.0.schema == terms.schema
        });
        memory::tell_of_unknown(alike.map(|other| (other.id, other.budget.rho)));
    }
    let dataset = client.create_dataset(Uuid::now_v7(), &name, terms).await?;
    if dataset.terms.0.roster.is_some() {
        // The other holders also sign the keys, but cannot have them created.
        client.prepare_keys(&dataset).await?;
    }
    if arguments.json {
        return output::print_json(&dataset);
    }
    output::print(&format!("{}\n", dataset.id))
}

/// Returns the services that will share the key, if there are several, and prints their keys for comparison.
async fn key_services(keys: u8) -> Result<Vec<KeyService>, Error> {
    if keys < 2 {
        return Ok(Vec::new());
    }
    let services = login::client()?.key_services(keys.into()).await?;
    fhaim_files::tell_part(format_args!("{}", holders::sharing(&services)));
    Ok(services)
}

async fn upload(
    arguments: &UploadArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let sent = send(
        &login::client()?,
        arguments,
        &login::folder()?,
        seed,
        progress,
    )
    .await?;
    if arguments.json {
        return output::print_json(&sent.upload);
    }
    let parts = sent.upload.contributions.iter();
    let own = parts.filter(|part| part.number == sent.number);
    let bytes: u64 = own.map(|part| part.bytes_present).sum();
    output::print(&format!(
        "{}: {} encrypted and uploaded, {:.1} MB in {:.1} s ({} bytes per record)\n",
        arguments.dataset,
        counted(sent.records, "record"),
        bytes as f64 / 1e6,
        sent.seconds,
        bytes / sent.records.max(1) as u64
    ))
}

/// Result of an upload.
pub struct Sent {
    upload: Upload,
    /// Number of the account's part.
    number: u32,
    records: usize,
    seconds: f64,
}

/// Encrypts the account's part of a dataset and sends the missing objects.
///
/// `folder` contains the journal, the key of the noise and a holder's signing key.
pub async fn send(
    client: &Client,
    arguments: &UploadArguments,
    folder: &Path,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<Sent, Error> {
    let dataset = client.dataset(arguments.dataset).await?;
    let reason = match dataset.state {
        DatasetState::Uploading => None,
        // A computation service may have been restored to a time before the upload. Then it needs the upload again.
        DatasetState::Ready if client.lacks_part(&dataset).await? => None,
        DatasetState::Ready => Some("has been uploaded already"),
        DatasetState::Deleting => Some("is being deleted"),
    };
    if let Some(reason) = reason {
        return Err(Error::Usage(format!("dataset {} {reason}", dataset.id)));
    }
    let terms = &dataset.terms.0;
    let number = client.part_number(&dataset).await?;
    holders::must_not_have_withdrawn(client, &dataset, number).await?;
    let (schema, bound) = terms.part_schema(number)?;
    let (format, strictness) = (&arguments.format, &arguments.strictness);
    let records = read(
        &arguments.data,
        format,
        strictness,
        schema,
        terms.contribution,
        NearUnique::Refuse,
    )?;
    let count = records.count();
    check_records(count, bound)?;
    let part = terms.part_plan(number, records.layout()?)?;
    let plan = terms.clone().complete(&Mechanisms)?.plan()?;
    let noise = match seed {
        Some(_) => {
            let mut rng = generator(seed, Purpose::Noise)?;
            NoiseSource::Drawn(Arc::new(Ladder::draw(plan.ladder()?, &mut rng)))
        }
        None => NoiseSource::Kept(login::ladder(folder, dataset.id)),
    };
    let signer = match &dataset.terms.0.roster {
        None => None,
        Some(_) => Some(Arc::new(login::signing_key(folder)?)),
    };
    let source = UploadSource {
        records,
        noise,
        signer,
    };
    let (data, id) = (&arguments.data, dataset.id);
    let known = memory::look_up(
        RecordSource::Table(data, format),
        spending(plan.core.budget),
        terms.delta,
        Some(id),
        arguments.yes,
    )?;
    if let Some(records) = known {
        let server = client.endpoints().generation.clone();
        records.remember(&Use::Dataset { id, server }, spending(plan.core.budget))?;
    }
    let digest = table_digest(data)?;
    let journal = Journal::open(&login::journal(folder, dataset.id), dataset.id, digest)?;
    progress.say(&estimate::UploadEstimate::estimate(plan.core.set, &part)?.to_string());
    let total = part.object_count() as u64;
    let phase = progress.counted("encrypt and upload", total, "objects");
    let tell = |state: fhaim_sdk::UploadProgress| phase.reach(state.done as u64);
    let upload = client.upload(&dataset, &source, journal, &tell).await?;
    Ok(Sent {
        upload,
        number,
        records: count,
        seconds: phase.finish(),
    })
}

/// Reads a holder's file for its upload: the records, or their counts from one pass over the file.
pub fn read(
    data: &Data,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
    schema: Schema,
    contribution: ContributionKind,
    near_unique: NearUnique,
) -> Result<Records, Error> {
    if contribution == ContributionKind::Records {
        let table = input::table_with(data, schema, format, strictness, near_unique)?;
        return Ok(Records::Table(Arc::new(table)));
    }
    let source = input::Source {
        data,
        schema: &schema,
        format,
        strictness,
        near_unique,
    };
    let pair_counts = counting::count_pairs(source, &[counting::WHOLE])?.pop();
    let pair_counts =
        pair_counts.ok_or(fhaim_protocol::Error::Object("a share without pair counts"))?;
    Ok(Records::Counts(Arc::new(pair_counts)))
}

/// Returns the SHA-256 of a table's text, with only a piece of the text in memory at a time.
fn table_digest(data: &Data) -> Result<Digest, Error> {
    let mut text = data.open()?;
    let mut hash = Sha256::new();
    let mut piece = Zeroizing::new(vec![0; 1 << 16]);
    loop {
        match text.read(&mut piece).map_err(|source| data.fault(source))? {
            0 => return Ok(Digest(hash.finalize().into())),
            bytes => hash.update(&piece[..bytes]),
        }
    }
}

fn line(dataset: &Dataset) -> String {
    let state = match dataset.state {
        DatasetState::Uploading => "uploading",
        DatasetState::Ready => "ready",
        DatasetState::Deleting => "deleting",
    };
    let terms = &dataset.terms.0;
    format!(
        "{}  {state:9}  epsilon {:<6}  runs left {} of {}  {}\n",
        dataset.id, terms.epsilon, dataset.runs_left, terms.runs, dataset.name
    )
}

async fn list(arguments: &ListArguments) -> Result<(), Error> {
    let List { items, damaged } = login::client()?.datasets().await?;
    for dataset in &damaged {
        fhaim_files::tell_line(format_args!(
            "warning: dataset {dataset} is left out: its data at the generation service is damaged. Ask the service's \
             operator to restore it from a backup, or delete it (`fhaim dataset delete {dataset}`)"
        ));
    }
    if arguments.json {
        return output::print_json(&items);
    }
    if items.is_empty() && damaged.is_empty() {
        fhaim_files::tell_line(format_args!(
            "note: there are no datasets yet: create one with `fhaim dataset create`"
        ));
    }
    output::print(&items.iter().map(line).collect::<String>())
}

async fn show(arguments: &ShowArguments) -> Result<(), Error> {
    let client = login::client()?;
    let dataset = client.dataset(arguments.dataset).await?;
    if arguments.json {
        return output::print_json(&dataset);
    }
    let mut text = line(&dataset);
    text.push_str(&holders::watched(&dataset.terms.0));
    let set = client.key_set(dataset.id).await;
    let set = set.as_ref().map(Some).map_err(|error| error.kind());
    text.push_str(&holders::standings(&client, &dataset, set).await);
    if dataset.terms.0.roster.is_none()
        && let Ok(upload) = client.upload_state(dataset.id).await
    {
        for c in &upload.contributions {
            text.push_str(&format!(
                "upload: {} of {} objects, {:.1} MB\n",
                c.objects_present,
                c.objects,
                c.bytes_present as f64 / 1e6
            ));
        }
    }
    match client.ledger(dataset.id).await {
        Ok(ledger) => text.push_str(&ledger::budget(&ledger)),
        // Before the upload, there are no keys and no ledger.
        Err(error) if error.kind() == Some(ProblemKind::NotFound) => {}
        Err(error) => text.push_str(&format!("budget: unknown: {error}\n")),
    }
    output::print(&text)
}

/// Time for which a deletion waits for the ledger.
const LEDGER_WAIT: Duration = Duration::from_secs(5);

async fn delete(arguments: &DeleteArguments) -> Result<(), Error> {
    let client = login::client()?;
    if !arguments.yes && !confirmed(arguments.dataset)? {
        return Err(Error::Usage("cancelled: nothing was deleted".to_owned()));
    }
    // The ledger is deleted with the dataset. If this account starts a run in between, its cost is not in the history.
    // A key service that does not answer must not delay the deletion at the others.
    let ledger = tokio::time::timeout(LEDGER_WAIT, client.ledger(arguments.dataset)).await;
    client.delete_dataset(arguments.dataset).await?;
    forget_ladder(arguments.dataset)?;
    if let Ok(Ok(ledger)) = ledger
        && ledger.runs.is_empty()
    {
        memory::forget_dataset(arguments.dataset);
    }
    output::print(&format!("{}: deleted\n", arguments.dataset))
}

/// Deletes the key of a dataset's noise, the record of its shares, and the lock of its uploads, which are of no use
/// without the dataset.
fn forget_ladder(dataset: Uuid) -> Result<(), Error> {
    let folder = login::folder()?;
    let key = login::ladder(&folder, dataset);
    let lock = login::journal(&folder, dataset).with_extension("upload.lock");
    for path in [key.with_extension("shared"), lock, key] {
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::Write { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

fn confirmed(dataset: Uuid) -> Result<bool, Error> {
    if !can_ask() {
        let reason =
            "cannot ask for confirmation without a terminal: use --yes to delete the dataset";
        return Err(Error::Usage(reason.to_owned()));
    }
    Ok(ask(&format!(
        "Delete {dataset}, its keys and all its results? This cannot be undone."
    ))?)
}
