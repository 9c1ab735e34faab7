//! `fhaim dataset join|sign|withdraw`: datasets with several holders.

use std::path::Path;

use fhaim_api::{dataset::Dataset, keys::KeySet, problem::ProblemKind, upload::UploadState};
use fhaim_domain::Schema;
use fhaim_files::{ask, can_ask, memory};
use fhaim_protocol::{
    committee::KeyService,
    roster::{ContributionKind, Member, Partition, Roster},
    terms::Terms,
};
use fhaim_sdk::{Client, Withdrawal, WithdrawnPart};
use uuid::Uuid;

use super::{
    args::{ConsentArguments, JoinArguments, RosterArguments},
    login,
};
use crate::{division::HolderUpload, error::Error, output};

/// Runs `fhaim dataset join`.
pub async fn join(arguments: &JoinArguments) -> Result<(), Error> {
    let account = login::client()?.account().await?;
    let card = Member {
        account: account.id.to_string(),
        columns: arguments.columns.clone(),
        record_bound: arguments.record_bound,
        key: login::signing_key(&login::folder()?)?.public(),
    };
    fhaim_files::tell_line(format_args!(
        "note: fingerprint of this account's key: {}",
        card.fingerprint()
    ));
    output::print_json(&card)
}

/// Returns the roster of the cards' holders, and the bound on their number of records together, or `None` without a
/// card.
pub fn roster(arguments: &RosterArguments) -> Result<Option<(Roster, u64)>, Error> {
    if arguments.holders.is_empty() {
        if arguments.honest != 1 {
            let error = "--honest needs holders: name their cards with --holder";
            return Err(Error::Usage(error.to_owned()));
        }
        return Ok(None);
    }
    let cards = arguments.holders.iter().map(|path| card(path));
    let holders = cards.collect::<Result<Vec<Member>, Error>>()?;
    let bounds = holders.iter().map(|member| member.record_bound);
    let (partition, bound) = if holders.iter().all(|member| member.columns.is_empty()) {
        (Partition::Records, bounds.fold(0, u64::saturating_add))
    } else {
        (Partition::Columns, bounds.max().unwrap_or(0))
    };
    let roster = Roster {
        partition,
        honest: arguments.honest,
        holders,
    };
    Ok(Some((roster, bound)))
}

fn card(path: &Path) -> Result<Member, Error> {
    let text = std::fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|error| Error::Content {
        path: path.to_owned(),
        problem: format!("not a card from `fhaim dataset join`: {error}"),
    })
}

/// Returns a warning for terms in which holders have different columns: a holder that deviates from the protocol can
/// read the rows of the others.
pub fn risk(terms: &Terms) -> String {
    match &terms.roster {
        Some(roster) if roster.partition == Partition::Columns && roster.holders.len() > 1 => {
            "warning: a holder that deviates from the protocol can read the rows of the other holders. Only share \
             columns with holders that you trust to follow it\n"
                .to_owned()
        }
        _ => String::new(),
    }
}

/// Returns the content of the holders' uploads.
pub fn contribution(
    arguments: &RosterArguments,
    schema: &Schema,
    roster: Option<&Roster>,
    record_bound: u64,
) -> Result<ContributionKind, Error> {
    let by_columns = roster.is_some_and(|roster| roster.partition == Partition::Columns);
    match arguments.contribution {
        HolderUpload::Records => Ok(ContributionKind::Records),
        HolderUpload::Counts => Ok(ContributionKind::Counts),
        HolderUpload::Auto if by_columns => Ok(ContributionKind::Records),
        HolderUpload::Auto => {
            let bounds = roster.into_iter().flat_map(|roster| &roster.holders);
            let most = bounds.map(|member| member.record_bound).max();
            let most = usize::try_from(most.unwrap_or(record_bound)).unwrap_or(usize::MAX);
            Ok(ContributionKind::smaller(schema.domain(), most.max(1))?)
        }
    }
}

/// Runs `fhaim dataset sign`.
pub async fn sign(arguments: &ConsentArguments) -> Result<(), Error> {
    let client = login::client()?;
    let dataset = client.dataset(arguments.dataset).await?;
    fhaim_files::tell_part(format_args!("{}", agreement(&dataset)));
    confirmed(arguments, "Sign these terms and the keys created for them?")?;
    let set = client
        .sign(&dataset, &login::signing_key(&login::folder()?)?)
        .await?;
    stand(arguments, &client, &dataset, Some(&set)).await
}

/// Runs `fhaim dataset withdraw`.
pub async fn withdraw(arguments: &ConsentArguments) -> Result<(), Error> {
    let client = login::client()?;
    let dataset = client.dataset(arguments.dataset).await?;
    confirmed(
        arguments,
        "Withdraw, so that no further run of this dataset can start? This cannot be undone.",
    )?;
    let Withdrawal { set, part } = client.withdraw(&dataset).await?;
    if set.is_none() {
        fhaim_files::tell_line(format_args!(
            "note: the withdrawal was not recorded, because the dataset has no keys yet. No run can start \
             now. Withdraw again after its first holder has created the keys"
        ));
    }
    match part {
        WithdrawnPart::Deleted => {
            fhaim_files::tell_line(format_args!("note: this account's upload was deleted"));
            // No run over it has started, and none can.
            memory::forget_dataset(dataset.id);
        }
        WithdrawnPart::Absent => {}
        WithdrawnPart::Kept => fhaim_files::tell_line(format_args!(
            "note: this account's upload was not deleted, because a run over it has started. It remains \
             until the first holder deletes the dataset. No further run can start"
        )),
    }
    stand(arguments, &client, &dataset, set.as_ref()).await
}

fn confirmed(arguments: &ConsentArguments, question: &str) -> Result<(), Error> {
    if arguments.yes {
        return Ok(());
    }
    if !can_ask() {
        let reason = "cannot ask for confirmation without a terminal: use --yes to continue";
        return Err(Error::Usage(reason.to_owned()));
    }
    if ask(question)? {
        return Ok(());
    }
    Err(Error::Usage("cancelled: nothing was changed".to_owned()))
}

async fn stand(
    arguments: &ConsentArguments,
    client: &Client,
    dataset: &Dataset,
    set: Option<&KeySet>,
) -> Result<(), Error> {
    if arguments.json {
        return output::print_json(&set.map_or(&[][..], |set| &set.holders));
    }
    output::print(&standings(client, dataset, Ok(set)).await)
}

/// Describes the terms, holders and keys that a holder agrees to.
fn agreement(dataset: &Dataset) -> String {
    let terms = &dataset.terms.0;
    let mut text = format!(
        "{}: schema {:?}, epsilon {} and delta {:e} for {} of {}, at most {} records in all\n",
        dataset.name,
        terms.schema.name(),
        terms.epsilon,
        terms.delta,
        fhaim_domain::counted(terms.runs as usize, "run"),
        terms.mechanism,
        terms.record_bound
    );
    text.push_str(&trust(terms));
    text.push_str(&risk(terms));
    text.push_str(&watched(terms));
    for (number, member) in terms.roster.iter().flat_map(|r| &r.holders).enumerate() {
        let email = holder_name(dataset, number);
        let columns = match member.columns.is_empty() {
            true => "all columns".to_owned(),
            false => member.columns.join(", "),
        };
        text.push_str(&format!(
            "holder {}: {email}, {columns}, at most {} records, key {}\n",
            number + 1,
            member.record_bound,
            member.fingerprint()
        ));
    }
    text
}

/// Describes the second computation service and the key services of a dataset, if it has them.
pub fn watched(terms: &Terms) -> String {
    let second = match terms.witness {
        true => {
            "a second computation service computes everything as well: only results on which both agree are decrypted\n"
        }
        false => "",
    };
    format!("{second}{}", sharing(&terms.key_services))
}

/// Describes the services that share the key. The text is empty if one service has it.
pub fn sharing(services: &[KeyService]) -> String {
    let mut text = String::new();
    for (number, service) in (1..).zip(services) {
        let (name, key) = (&service.name, service.fingerprint());
        text.push_str(&format!("key service {number}: {name}, key {key}\n"));
    }
    text
}

/// Describes how many holders' noise the privacy guarantee relies on.
fn trust(terms: &Terms) -> String {
    let Some(roster) = &terms.roster else {
        return String::new();
    };
    let (k, h) = (roster.holders.len(), roster.honest);
    match h {
        1 => {
            "every holder adds enough noise for all: no holder needs to trust another\n".to_owned()
        }
        _ if h as usize == k => format!(
            "privacy relies on the noise of all {k} holders: it protects against services and readers, but \
             not against other holders, who can subtract their own noise\n"
        ),
        _ => format!("privacy relies on the noise of any {h} of the {k} holders\n"),
    }
}

/// Rejects a run that the key service would not start. Such a run would fail, but count as one of the dataset's runs.
pub async fn must_agree(client: &Client, dataset: Uuid) -> Result<(), Error> {
    let dataset = client.dataset(dataset).await?;
    if dataset.terms.0.roster.is_none() {
        return Ok(());
    }
    let set = client.key_set(dataset.id).await?;
    if set.missing().next().is_none() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "a run needs the signatures of all holders, and no holder may have withdrawn:\n{}",
        standings(client, &dataset, Ok(Some(&set))).await.trim_end()
    )))
}

/// Returns the address of a holder of a dataset's roster.
fn holder_name(dataset: &Dataset, number: usize) -> &str {
    match dataset.holders.get(number).map(String::as_str) {
        Some(email) if !email.is_empty() => email,
        _ => "(deleted account)",
    }
}

/// Checks that the holder with a number has not withdrawn from the dataset.
pub async fn must_not_have_withdrawn(
    client: &Client,
    dataset: &Dataset,
    number: u32,
) -> Result<(), Error> {
    if dataset.terms.0.roster.is_none() {
        return Ok(());
    }
    let set = match client.key_set(dataset.id).await {
        Err(error) if error.kind() == Some(ProblemKind::NotFound) => return Ok(()),
        set => set?,
    };
    let own = set.holders.get(number as usize);
    if own.is_some_and(|holder| holder.withdrawn) {
        return Err(Error::Usage(format!(
            "this account has withdrawn from dataset {}: no run can begin, so nothing is uploaded. The other holders \
             can create a new dataset",
            dataset.id
        )));
    }
    Ok(())
}

/// Describes the state of every holder of a dataset, one line each. The text is empty for a sole holder.
pub async fn standings(
    client: &Client,
    dataset: &Dataset,
    set: Result<Option<&KeySet>, Option<ProblemKind>>,
) -> String {
    let Some(roster) = &dataset.terms.0.roster else {
        return String::new();
    };
    let upload = client.upload_state(dataset.id).await.ok();
    let unsigned = match &set {
        // Without keys, no holder can have signed.
        Err(kind) if *kind != Some(ProblemKind::NotFound) => "signature unknown",
        _ => "not signed",
    };
    let set = set.ok().flatten();
    let mut text = String::new();
    for (number, member) in roster.holders.iter().enumerate() {
        let email = holder_name(dataset, number);
        let consent = match set.and_then(|set| set.holders.get(number)) {
            Some(holder) if holder.withdrawn => "withdrew",
            Some(holder) if holder.signed => "signed",
            _ => unsigned,
        };
        let parts = upload.iter().flat_map(|upload| &upload.contributions);
        let mut own = parts.filter(|part| part.number as usize == number);
        let uploaded = match own.next() {
            Some(part) if part.state == UploadState::Complete => "uploaded".to_owned(),
            Some(part) => format!("{} of {} objects", part.objects_present, part.objects),
            None => "not uploaded".to_owned(),
        };
        text.push_str(&format!(
            "holder {}: {email}, key {}: {consent}, {uploaded}\n",
            number + 1,
            member.fingerprint()
        ));
    }
    text
}
