//! `fhaim dataset join|sign|withdraw`: datasets of several holders.

use std::path::Path;

use fhaim_api::{dataset::Dataset, keys::KeySet, upload::UploadState};
use fhaim_domain::Schema;
use fhaim_files::{ask, can_ask};
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

/// `fhaim dataset join`.
pub async fn join(arguments: &JoinArguments) -> Result<(), Error> {
    let account = login::client()?.account().await?;
    let card = Member {
        account: account.id.to_string(),
        columns: arguments.columns.clone(),
        record_bound: arguments.record_bound,
        key: login::signing_key(&login::folder()?)?.public(),
    };
    eprintln!(
        "note: the fingerprint of this key is {}",
        card.fingerprint()
    );
    output::print_json(&card)
}

/// The roster that the cards make, and the most records of their holders together; nothing without
/// a card.
pub fn roster(arguments: &RosterArguments) -> Result<Option<(Roster, u64)>, Error> {
    if arguments.holders.is_empty() {
        if arguments.honest != 1 {
            let error = "--honest says on how many holders' noise to rely: name them by --holder";
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
        problem: format!("not a card of `fhaim dataset join`: {error}"),
    })
}

/// What a holder that deviates from the protocol can read, for terms in which holders share columns.
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

/// What holders of at most so many records each upload.
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

/// `fhaim dataset sign`.
pub async fn sign(arguments: &ConsentArguments) -> Result<(), Error> {
    let client = login::client()?;
    let dataset = client.dataset(arguments.dataset).await?;
    eprint!("{}", agreement(&dataset));
    confirmed(arguments, "Sign these terms, and the keys made under them?")?;
    let set = client
        .sign(&dataset, &login::signing_key(&login::folder()?)?)
        .await?;
    stand(arguments, &client, &dataset, Some(&set)).await
}

/// `fhaim dataset withdraw`.
pub async fn withdraw(arguments: &ConsentArguments) -> Result<(), Error> {
    let client = login::client()?;
    let dataset = client.dataset(arguments.dataset).await?;
    confirmed(
        arguments,
        "Let no further run of this dataset begin, for good?",
    )?;
    let Withdrawal { set, part } = client.withdraw(&dataset).await?;
    if set.is_none() {
        eprintln!(
            "note: the dataset has no keys, so nothing was signed and no run can begin; nothing is \
             recorded either: withdraw again once its first holder has had keys made"
        );
    }
    match part {
        WithdrawnPart::Deleted => eprintln!("note: what this account had uploaded is deleted"),
        WithdrawnPart::Absent => {}
        WithdrawnPart::Kept => eprintln!(
            "note: a run over what this account uploaded has begun: it stays with the dataset until its \
             first holder deletes that; no further run begins"
        ),
    }
    stand(arguments, &client, &dataset, set.as_ref()).await
}

fn confirmed(arguments: &ConsentArguments, question: &str) -> Result<(), Error> {
    if arguments.yes {
        return Ok(());
    }
    if !can_ask() {
        let reason = "there is no terminal to ask: say --yes to go on";
        return Err(Error::Usage(reason.to_owned()));
    }
    if ask(question)? {
        return Ok(());
    }
    Err(Error::Usage("nothing was changed".to_owned()))
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
    output::print(&standings(client, dataset, set).await)
}

/// What a holder agrees to, in words.
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
        let email = dataset.holders.get(number).map_or("", String::as_str);
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

/// Whether one computation service and one key service must be believed, in words.
pub fn watched(terms: &Terms) -> String {
    let second = match terms.witness {
        true => {
            "a second computation service computes everything too: nothing is decrypted that the two do not agree on\n"
        }
        false => "",
    };
    format!("{second}{}", sharing(&terms.key_services))
}

/// Which services share the key, in words; nothing where one has it.
pub fn sharing(services: &[KeyService]) -> String {
    let mut text = String::new();
    for (number, service) in (1..).zip(services) {
        let (name, key) = (&service.name, service.fingerprint());
        text.push_str(&format!("key service {number}: {name}, key {key}\n"));
    }
    text
}

/// On whose noise the price relies, in words.
fn trust(terms: &Terms) -> String {
    let Some(roster) = &terms.roster else {
        return String::new();
    };
    let (k, h) = (roster.holders.len(), roster.honest);
    match h {
        1 => "every holder adds noise enough for all: nobody need trust another's\n".to_owned(),
        _ if h as usize == k => format!(
            "all {k} holders' noise is relied upon: this protects against services and readers, and \
             not against other holders, who can subtract their own\n"
        ),
        _ => format!("the noise of {h} of {k} holders is relied upon, whichever they are\n"),
    }
}

/// Refuses a run that the key service would not begin: it would fail, and be counted.
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
        "no run begins before all holders have signed, and none after one withdrew:\n{}",
        standings(client, &dataset, Some(&set)).await.trim_end()
    )))
}

/// Where every holder of a dataset stands, a line each; nothing where there is one.
pub async fn standings(client: &Client, dataset: &Dataset, set: Option<&KeySet>) -> String {
    let Some(roster) = &dataset.terms.0.roster else {
        return String::new();
    };
    let upload = client.upload_state(dataset.id).await.ok();
    let mut text = String::new();
    for (number, member) in roster.holders.iter().enumerate() {
        let email = dataset.holders.get(number).map_or("", String::as_str);
        let consent = match set.and_then(|set| set.holders.get(number)) {
            Some(holder) if holder.withdrawn => "withdrew",
            Some(holder) if holder.signed => "signed",
            _ => "not signed",
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
