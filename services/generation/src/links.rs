//! Links: what a holder hands to other accounts of a finished job, its table and its data card, and
//! nothing else of the dataset.
//!
//! A link is opened by its identifier and its secret, by whoever is signed in. What it gives is drawn
//! from the model and public terms: it shows no more of the records than the job has released.

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
use crate::store::{api_keys, datasets as parents, jobs as rows};
use crate::{State, jobs, limits, synthetic};

const MAX_NAME: usize = 100;

/// What to know of every synthetic table before it is used.
const CAVEATS: [&str; 3] = [
    "No record is a person's. Counts of few records are mostly noise.",
    "Dependences that were not measured are not in it.",
    "How close it is to the original only its holder can say: ask for the verdict of the report.",
];

/// Makes a link to a job's result under the identifier that its holder chose. The same again, before
/// the link was ever opened, gives a new secret in the place of one that was lost on the way.
///
/// # Errors
/// There is no such job, or it is not done; a name or days that cannot be used, too many links; a
/// link of this identifier that is to another result, is named otherwise, is good for another time
/// or was opened.
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
    let secret = tokens::random()?;
    let mut tx = state.base.store.begin().await?;
    // Both rows are locked, so that no link is added to a job or by an account that is going.
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
            if !store::insert(&mut tx, ids, &name, &digest, term).await? {
                // Of another job, at the same moment: this one's row is locked.
                return Err(foreign(account, id));
            }
            Put::Made(entry(id, name, term, secret))
        }
    };
    tx.commit().await?;
    Ok(made)
}

/// The days that a link is asked to be good for; none: until it is revoked.
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

/// Gives a link that was never opened another secret; when it was made and until when it is good, as
/// it was first said, or nothing where there is none.
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

/// The links to a job's result, whichever of the dataset's holders made them, without their secrets.
///
/// # Errors
/// There is no such job, or no such page.
pub async fn list(
    state: &State,
    user: Uuid,
    job: Uuid,
    paging: &Paging,
) -> Result<Page<Link>, Failure> {
    let cut = Cut::new(paging)?;
    jobs::show(state, user, job).await?;
    let links = store::list(&state.base.store, job, &cut).await?;
    Ok(cut.page(links, |link| (link.created_at, link.id)))
}

/// Revokes a link: it opens nothing after.
///
/// # Errors
/// There is no such link to this job.
pub async fn revoke(state: &State, user: Uuid, job: Uuid, id: Uuid) -> Result<(), Failure> {
    jobs::show(state, user, job).await?;
    if store::delete(&state.base.store, job, id).await? {
        Ok(())
    } else {
        Err(Failure::not_found())
    }
}

/// What a link opens.
struct Opened {
    fitted: Fitted,
    /// The dataset's name.
    name: String,
}

/// Opens a link.
///
/// # Errors
/// There is none of this identifier and secret, or it is past its end: what is wrong is not told.
async fn open(state: &State, user: Uuid, id: Uuid, secret: &Secret) -> Result<Opened, Failure> {
    let job = store::opened(&state.base.store, id, &tokens::digest(secret)).await?;
    let job = job.ok_or_else(|| foreign(user, id))?;
    let mut tx = state.base.store.begin().await?;
    let (_, job) = (rows::find(&mut tx, job).await?).ok_or_else(Failure::not_found)?;
    drop(tx);
    let found = parents::find(&state.base.store, job.dataset).await?;
    let dataset = found.and_then(|found| found.dataset);
    let name = dataset.ok_or_else(Failure::not_found)?.name;
    let fitted = results::fitted(state, job).await?;
    Ok(Opened { fitted, name })
}

/// The data card of what a link opens.
///
/// # Errors
/// There is no such link.
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

/// A synthetic table of what a link opens.
///
/// # Errors
/// There is no such link; what [`synthetic::draw`] refuses.
pub async fn draw(
    state: &State,
    user: Uuid,
    (id, secret): (Uuid, &Secret),
    draw: Draw,
) -> Result<axum::response::Response, Failure> {
    let Opened { fitted, name } = open(state, user, id, secret).await?;
    synthetic::draw(state, fitted, &name, draw).await
}
