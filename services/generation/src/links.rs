//! Links, which give other accounts the synthetic table and data card of a finished job, and nothing
//! else of the dataset.
//!
//! Any signed-in account that has a link's identifier and secret can open it. The result is drawn
//! from the model and the public terms, so it reveals no more of the records than the job released.

use fhaim_api::account::Secret;
use fhaim_api::job::{Draw, Job, JobState};
use fhaim_api::link::{Link, LinkMade, LinkedAttribute, LinkedResult, MAX_DAYS, NewLink};
use fhaim_api::token::Service;
use fhaim_api::{Page, Paging};
use fhaim_platform::store::Tx;
use fhaim_platform::{Failure, clock};
use fhaim_protocol::terms::Terms;
use uuid::Uuid;

use crate::accounts::{checked_name, tokens};
use crate::paging::Cut;
use crate::problem::Refusal;
use crate::put::Put;
use crate::results::{self, Fitted};
use crate::store::links::{self as store, Term};
use crate::store::{api_keys, jobs as rows};
use crate::{State, datasets, jobs, limits, synthetic};

const MAX_NAME: usize = 100;

/// Warnings for the users of every synthetic table.
const CAVEATS: [&str; 3] = [
    "No record belongs to a real person. Counts of few records are mostly noise.",
    "Dependences between columns that were not measured are missing.",
    "Only the holder can say how close the table is to the original: ask for the report's verdict.",
];

/// Makes a link to a job's result under the identifier that its holder chose. Repeating the call
/// before the link is first opened replaces its secret, which may have been lost with the response.
///
/// # Errors
/// No such job, or it is not done; an invalid name or number of days; too many links; a link with
/// this identifier that has another result, name or lifetime, or that has been opened.
pub async fn make(
    state: &State,
    account: Uuid,
    (job, id): (Uuid, Uuid),
    new: NewLink,
) -> Result<Put<LinkMade>, Failure> {
    let name = checked_name("name", new.name, MAX_NAME)?;
    let days = checked_days(new.days)?;
    let shown = jobs::show(state, account, job).await?;
    if shown.state != JobState::Done {
        return Err(Refusal::NoModel(shown.state).into());
    }
    let dataset = datasets::show(state, account, shown.dataset).await?;
    let secret = tokens::random()?;
    let mut tx = state.base.store.begin().await?;
    // Both rows are locked, so that no link is added while its job or account is being deleted.
    let locked = rows::lock(&state.base.store, &mut tx, job).await?;
    locked.ok_or_else(Failure::not_found)?;
    if !api_keys::lock_account(&state.base.store, &mut tx, account).await? {
        return Err(Failure::not_found());
    }
    let digest = tokens::digest(&secret);
    let made = match renew(&mut tx, (account, job, id), (&name, days), &digest).await? {
        Some(term) => Put::Found(entry(id, name, term, secret)),
        None => {
            limits::check_link(state, &mut tx, account).await?;
            let term = Term::from_now(days);
            let ids = (account, job, id);
            let names = (name.as_str(), dataset.name.as_str());
            if !store::insert(&mut tx, ids, names, &digest, term).await? {
                // A link of another job was created at the same moment: only this job is locked.
                return Err(foreign(account, id));
            }
            Put::Made(entry(id, name, term, secret))
        }
    };
    tx.commit().await?;
    Ok(made)
}

/// Checks the requested lifetime in days. `None` means until the link is revoked.
fn checked_days(days: Option<u16>) -> Result<Option<u16>, Refusal> {
    match days {
        Some(days) if !(1..=MAX_DAYS).contains(&days) => Err(Refusal::LinkDays(MAX_DAYS)),
        days => Ok(days),
    }
}

fn entry(id: Uuid, name: String, term: Term, secret: Secret) -> LinkMade {
    let link = Link {
        id,
        name,
        created_at: clock::date(term.created_at),
        last_opened_at: None,
        expires_at: term.end(),
    };
    LinkMade { link, secret }
}

/// Replaces the secret of a link that was never opened and returns its original creation time and
/// lifetime, or `None` if the link does not exist.
async fn renew(
    tx: &mut Tx,
    (account, job, id): (Uuid, Uuid, Uuid),
    (name, days): (&str, Option<u16>),
    digest: &str,
) -> Result<Option<Term>, Failure> {
    let Some(found) = store::find(tx, id).await? else {
        return Ok(None);
    };
    if found.job != job {
        return Err(foreign(account, id));
    }
    if found.name != name || !found.term.is_of(days) {
        return Err(Refusal::OtherLink.into());
    }
    if !store::renew(tx, id, digest).await? {
        return Err(Refusal::OpenedLink.into());
    }
    Ok(Some(found.term))
}

fn foreign(account: Uuid, id: Uuid) -> Failure {
    Failure::foreign(Service::Generation, account, "link", id)
}

/// Lists the links to a job's result without their secrets. Any of the dataset's holders may have
/// made them.
///
/// # Errors
/// No such job; invalid paging parameters.
pub async fn list(
    state: &State,
    user: Uuid,
    job: Uuid,
    paging: &Paging,
) -> Result<Page<Link>, Failure> {
    let cut = Cut::new(paging)?;
    jobs::show(state, user, job).await?;
    let links = store::list(&state.base.store, job, &cut).await?;
    Ok(links.page(&cut))
}

/// Revokes a link, so that it can no longer be opened.
///
/// # Errors
/// No such link to this job.
pub async fn revoke(state: &State, user: Uuid, job: Uuid, id: Uuid) -> Result<(), Failure> {
    jobs::show(state, user, job).await?;
    if store::delete(&state.base.store, job, id).await? {
        Ok(())
    } else {
        Err(Failure::not_found())
    }
}

/// An opened link.
struct Opened {
    fitted: Fitted,
    /// The dataset's name when the link was made. Holders may write into a later name what the
    /// link's users must not know.
    name: String,
}

/// Opens a link.
///
/// # Errors
/// The link does not exist, its secret is wrong, or it has expired. The error does not say which.
async fn open(state: &State, user: Uuid, id: Uuid, secret: &Secret) -> Result<Opened, Failure> {
    let opened = store::opened(&state.base.store, id, &tokens::digest(secret)).await?;
    let (job, name) = opened.ok_or_else(|| foreign(user, id))?;
    let mut tx = state.base.store.begin().await?;
    let (_, job) = (rows::find(&mut tx, job).await?).ok_or_else(Failure::not_found)?;
    drop(tx);
    let fitted = results::fitted(state, job).await?;
    Ok(Opened { fitted, name })
}

/// Returns the data card of an opened link.
///
/// # Errors
/// No such link.
pub async fn show(
    state: &State,
    user: Uuid,
    id: Uuid,
    secret: &Secret,
) -> Result<LinkedResult, Failure> {
    let Opened { fitted, name } = open(state, user, id, secret).await?;
    let Fitted { job, terms, model } = fitted;
    Ok(card(job, terms, name, model.total()))
}

fn card(job: Job, terms: Terms, name: String, total: f64) -> LinkedResult {
    let attributes = terms.schema.columns().iter().map(|column| LinkedAttribute {
        name: column.name().to_owned(),
        // A schema's columns have at most 10,001 codes.
        labels: (0..column.size() as u32)
            .map(|code| column.label(code))
            .collect(),
    });
    LinkedResult {
        job: job.id,
        name,
        attributes: attributes.collect(),
        total,
        epsilon: terms.epsilon,
        delta: terms.delta,
        runs: terms.runs,
        mechanism: terms.mechanism.to_string(),
        spent: job.spent,
        made_at: job.updated_at,
        caveats: CAVEATS.map(str::to_owned).into(),
        schema: terms.schema,
    }
}

/// Draws a synthetic table from an opened link's model.
///
/// # Errors
/// No such link; the errors of [`synthetic::draw`].
pub async fn draw(
    state: &State,
    user: Uuid,
    (id, secret): (Uuid, &Secret),
    draw: Draw,
) -> Result<axum::response::Response, Failure> {
    let Opened { fitted, name } = open(state, user, id, secret).await?;
    synthetic::draw(state, user, fitted, &name, draw).await
}
