//! `fhaim-lab federate run`: runs a federation of parties whose tables are in a folder.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use fhaim_domain::{Schema, Table, WriteOptions, counted, write_csv};
use fhaim_dp::{Rho, accounting, number};
use fhaim_federated::{
    FederatedSetting, Method, Outcome, PartyLedger, Plan, PooledRun, least_rounds, play,
    random_triples,
};
use fhaim_files::{
    check_apart,
    data::Data,
    memory::{self, KnownRecords, RecordSource, Use, UseCost},
    part_files,
    progress::Progress,
    shown,
};
use fhaim_release::MechanismJob;
use fhaim_synth::sample_allowed;
use serde::Serialize;

use super::args::{FederateArguments, Federation};
use crate::{
    budget::{least, too_small},
    error::Error,
    input,
    output::{self, Existing, StagedFile, commit_all},
    randomness::{InsecureTestSeed, Purpose, generator},
    size,
};

/// The name of this program in the usage history.
const PROGRAM: &str = "fhaim-lab federate";

/// Default number of rounds per party.
const MOST_ROUNDS: u32 = 3;

/// Default share of the budget for measurements.
const MEASURE_SHARE: f64 = 0.9;

/// Default number of rounds of a run.
const ROUNDS: u32 = 10;

/// Default number of rounds per column with annealing (FLAIM, appendix B.4).
const ANNEALED_ROUNDS: u32 = 8;

/// A party in the ledger file.
#[derive(Debug, Serialize)]
struct PartyFile {
    file: String,
    spent: Rho,
    #[serde(flatten)]
    ledger: PartyLedger,
}

/// The content of the ledger file: the payments of every party.
#[derive(Debug, Serialize)]
struct LedgerFile<'a> {
    schema: &'a str,
    method: String,
    epsilon: f64,
    delta: f64,
    parties: Vec<PartyFile>,
}

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    dataset: String,
    method: String,
    epsilon: f64,
    delta: f64,
    rho: f64,
    /// The payments of the record that paid most.
    largest_rho_spent: f64,
    parties: usize,
    rounds: u32,
    measurements: usize,
    dropped: usize,
    records: usize,
    seconds: f64,
    out: String,
}

/// The result of a finished run, of any method.
struct Finished {
    outcome: Outcome,
    ledgers: Vec<PartyLedger>,
}

/// Runs the command: reads the parties' tables, runs the federation, and writes all files.
pub fn run(
    arguments: &FederateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let start = Instant::now();
    check(arguments)?;
    let rho = accounting::rho(arguments.epsilon, arguments.delta)?;
    let schema = input::schema(&arguments.schema)?;
    if let Some(rows) = arguments.rows {
        size::check_drawn(rows.get(), schema.columns().len(), "--rows")?;
    }
    let files = part_files(&arguments.parts)?;
    let inputs = files.iter().map(PathBuf::as_path);
    let inputs: Vec<&Path> = inputs.chain([arguments.schema.as_path()]).collect();
    let outputs = [arguments.out.as_path()].into_iter();
    let outputs: Vec<&Path> = outputs.chain(arguments.ledger.as_deref()).collect();
    output::check_distinct(&inputs, &outputs)?;
    check_apart(&arguments.parts, &outputs)?;
    let mut out = StagedFile::create(&arguments.out, Existing::Replace)?;
    let mut ledger = arguments
        .ledger
        .as_deref()
        .map(|path| StagedFile::create(path, Existing::Replace))
        .transpose()?;
    let tables = files
        .iter()
        .map(|path| {
            input::table(
                path,
                schema.clone(),
                &arguments.format,
                &arguments.strictness,
            )
        })
        .collect::<Result<Vec<Table>, _>>()?;
    let setting = setting(arguments, &schema, (rho, tables.len()), seed)?;
    setting.check()?;
    if arguments.method != Federation::DistAim {
        setting.check_parties(tables.len())?;
    }
    check_budget(arguments, &setting)?;
    let known = look_up(arguments, &files, rho, progress)?;
    let finished = federate(arguments.method, setting, &tables, seed, progress)?;
    remember(known.as_ref(), arguments, &finished.ledgers)?;

    let modelled = (finished.outcome.records.round() as usize).max(1);
    // Noise can make the number of records larger than memory permits.
    let modelled = modelled.min(size::most_records(schema.columns().len()));
    let records = arguments.rows.map_or(modelled, NonZeroUsize::get);
    let mut rng = generator(seed, Purpose::Records)?;
    let sampled = sample_allowed(&finished.outcome.model, &schema, records, &mut rng)?;
    input::remark_on_constraints(&schema, sampled.allowed);
    let synthetic = Table::new(schema, sampled.columns).map_err(fhaim_domain::Error::from)?;
    let mut options = WriteOptions::new(arguments.out.to_string_lossy());
    // The synthetic table gets the delimiter of the parties' tables, which all have the same.
    if let Some(first) = files.first() {
        options.delimiter = input::delimiter(first, &arguments.format)?;
    }
    write_csv(&synthetic, &mut out, &mut rng, &options)?;
    out.end()?;
    if let Some(file) = &mut ledger {
        let name = synthetic.schema().name();
        let text = output::to_json(&ledger_file(arguments, name, &files, &finished.ledgers))?;
        file.write_bytes(text.as_bytes())?;
    }
    commit_all([out].into_iter().chain(ledger))?;
    let summary = summary(arguments, &synthetic, &finished, rho);
    report(
        arguments,
        &Summary {
            seconds: start.elapsed().as_secs_f64(),
            ..summary
        },
    )
}

fn summary(
    arguments: &FederateArguments,
    synthetic: &Table,
    finished: &Finished,
    rho: Rho,
) -> Summary {
    let Finished { outcome, ledgers } = finished;
    let largest = ledgers.iter().map(PartyLedger::spent).max();
    Summary {
        dataset: synthetic.schema().name().to_owned(),
        method: arguments.method.to_string(),
        epsilon: arguments.epsilon,
        delta: arguments.delta,
        rho: rho.to_f64(),
        largest_rho_spent: largest.map_or(0.0, Rho::to_f64),
        parties: ledgers.len(),
        rounds: outcome.rounds,
        measurements: outcome.measurements,
        dropped: outcome.dropped,
        records: synthetic.records(),
        seconds: 0.0,
        out: arguments.out.to_string_lossy().into_owned(),
    }
}

/// Rejects flags that the method does not use.
fn check(arguments: &FederateArguments) -> Result<(), Error> {
    let steps = ("--local-steps", arguments.local_steps.is_some());
    let unused = match arguments.method {
        Federation::DistAim => [("--most-rounds", arguments.most_rounds.is_some()), steps],
        Federation::Flaim(Method::Random) => [
            ("--measure-share", arguments.measure_share.is_some()),
            steps,
        ],
        Federation::Flaim(_) => return Ok(()),
    };
    match unused.into_iter().find(|&(_, given)| given) {
        Some((flag, _)) => Err(Error::Usage(format!(
            "{flag} has no effect with --method {}: leave it out",
            arguments.method
        ))),
        None => Ok(()),
    }
}

/// Rejects a budget that no noise keeps, with the smallest change that would be enough.
fn check_budget(arguments: &FederateArguments, setting: &FederatedSetting) -> Result<(), Error> {
    let plan = |setting: &FederatedSetting| match arguments.method {
        Federation::DistAim => PooledRun::plan(setting),
        Federation::Flaim(_) => Plan::new(setting),
    };
    let Err(why) = plan(setting) else {
        return Ok(());
    };
    let given = arguments
        .measure_share
        .filter(|share| *share < MEASURE_SHARE);
    let enough = given.and_then(|share| {
        let keeps = |measure_share| {
            let setting = setting.clone();
            plan(&FederatedSetting {
                measure_share,
                ..setting
            })
            .is_ok()
        };
        Some((share, least(share, MEASURE_SHARE, keeps)?))
    });
    if let Some((share, least)) = enough {
        return Err(Error::Usage(format!(
            "no noise keeps this budget at --measure-share {}: use a share from {} to {MEASURE_SHARE}",
            number(share),
            number(least)
        )));
    }
    let budget = (arguments.epsilon, arguments.delta);
    Err(too_small(budget, why, |rho| {
        let mut setting = setting.clone();
        setting.job.rho = rho;
        plan(&setting).is_ok()
    }))
}

fn setting(
    arguments: &FederateArguments,
    schema: &Schema,
    (rho, parties): (Rho, usize),
    seed: Option<InsecureTestSeed>,
) -> Result<FederatedSetting, Error> {
    let domain = schema.domain();
    let mut job = MechanismJob::new(domain.clone(), rho, u64::from(u32::MAX));
    let mut rng = generator(seed, Purpose::Records)?;
    job.workload = random_triples(domain, arguments.triples as usize, &mut rng)?;
    job.model_bytes = arguments.model_mb.saturating_mul(1_000_000);
    let annealed = ANNEALED_ROUNDS.saturating_mul(u32::try_from(domain.len()).unwrap_or(u32::MAX));
    let usual = if arguments.anneal { annealed } else { ROUNDS };
    let rounds = arguments.rounds.unwrap_or(usual);
    let most = if arguments.anneal {
        rounds
    } else {
        MOST_ROUNDS.max(least_rounds(rounds, parties)).min(rounds)
    };
    let method = match arguments.method {
        Federation::Flaim(method) => method,
        Federation::DistAim => Method::Naive,
    };
    Ok(FederatedSetting {
        rounds,
        local_steps: arguments.local_steps.unwrap_or(1),
        participation: arguments.participation,
        most_rounds: arguments.most_rounds.unwrap_or(most),
        measure_share: arguments.measure_share.unwrap_or(MEASURE_SHARE),
        anneal: arguments.anneal,
        ..FederatedSetting::new(job, method)
    })
}

fn federate(
    federation: Federation,
    setting: FederatedSetting,
    tables: &[Table],
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<Finished, Error> {
    let mut rng = generator(seed, Purpose::Noise)?;
    let phase = progress.counted("rounds", u64::from(setting.rounds), "rounds");
    let mut begun = |round: u32| phase.reach(u64::from(round));
    let finished = match federation {
        Federation::DistAim => {
            let run = PooledRun::new(&setting, tables, &mut rng)?;
            let (outcome, ledgers) = run.run(&mut begun)?;
            Finished { outcome, ledgers }
        }
        Federation::Flaim(_) => {
            // The choice of parties is not secret, but nobody should be able to predict it.
            let mut server = fhaim_dp::fork(&mut rng);
            let run = play(
                &Arc::new(setting),
                tables,
                &mut rng,
                &mut server,
                &mut begun,
            )?;
            Finished {
                outcome: run.outcome,
                ledgers: run.ledgers,
            }
        }
    };
    phase.finish();
    Ok(finished)
}

/// Reports what the parties' records have cost before, and asks for confirmation.
fn look_up(
    arguments: &FederateArguments,
    files: &[PathBuf],
    rho: Rho,
    progress: &Progress,
) -> Result<Option<KnownRecords>, Error> {
    let tables: Vec<Data> = files.iter().map(Data::from).collect();
    let party = |data| {
        let records = RecordSource::Table(data, &arguments.format);
        (records, UseCost::zcdp(PROGRAM, rho))
    };
    let parties: Vec<(RecordSource<'_>, UseCost)> = tables.iter().map(party).collect();
    let how = (arguments.yes, progress.is_quiet());
    Ok(memory::look_up_parties(&parties, arguments.delta, how)?)
}

fn remember(
    known: Option<&KnownRecords>,
    arguments: &FederateArguments,
    ledgers: &[PartyLedger],
) -> Result<(), Error> {
    let Some(records) = known else {
        return Ok(());
    };
    let out = arguments.out.display().to_string();
    let spent = ledgers.iter().map(PartyLedger::spent);
    let costs = spent.map(|spent| (spent > Rho::ZERO).then(|| UseCost::zcdp(PROGRAM, spent)));
    Ok(records.remember_each(&Use::Run { out, journal: None }, costs)?)
}

fn ledger_file<'a>(
    arguments: &FederateArguments,
    schema: &'a str,
    files: &[PathBuf],
    ledgers: &[PartyLedger],
) -> LedgerFile<'a> {
    let party = |(path, ledger): (&PathBuf, &PartyLedger)| PartyFile {
        file: path.to_string_lossy().into_owned(),
        spent: ledger.spent(),
        ledger: ledger.clone(),
    };
    LedgerFile {
        schema,
        method: arguments.method.to_string(),
        epsilon: arguments.epsilon,
        delta: arguments.delta,
        parties: files.iter().zip(ledgers).map(party).collect(),
    }
}

fn report(arguments: &FederateArguments, summary: &Summary) -> Result<(), Error> {
    if arguments.json {
        return output::print_json(summary);
    }
    let mut text = format!(
        "{}: {} in {}\n{}, {} of {}; {} measured; the record that paid most spent rho = {:.6} of {:.6} \
         (epsilon {}, delta {:e}); {:.2} s\n",
        summary.dataset,
        counted(summary.records, "synthetic record"),
        shown(&summary.out),
        counted(summary.parties, "party"),
        counted(summary.rounds as usize, "round"),
        summary.method,
        counted(summary.measurements, "marginal"),
        summary.largest_rho_spent,
        summary.rho,
        summary.epsilon,
        summary.delta,
        summary.seconds
    );
    if summary.dropped > 0 {
        text.push_str(&format!(
            "note: {} were not measured because the model has no room for them: raise --model-mb\n",
            counted(summary.dropped, "choice")
        ));
    }
    output::print(&text)
}
