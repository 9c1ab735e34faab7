//! A service that shares keys with the crypto service, as in `services/crypto/src/shares/member.rs`, with a simulated
//! store. Pages have clear values, so its share is only the confirmation that it has debited the request.

use crate::Mutant;
use crate::ghost;
use crate::setting::DATASET;
use crate::world::{Envelope, Failure, W};
use fhaim_api::keys::Witnessed;
use fhaim_api::problem::ProblemKind;
use fhaim_protocol::Error;
use fhaim_protocol::committee::member::{Assignment, Promised};
use fhaim_protocol::committee::state::{RunRecord, SharedDatasetState};
use fhaim_protocol::crypto::chain::{Act, Freeze, Tip};
use fhaim_protocol::crypto::history::{ChainLink, ChainState};
use fhaim_protocol::request::{self, DecryptRequest, JobId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Number of services that share the key: the crypto service and this one.
const SERVICES: usize = 2;

/// Stored state of the service.
#[derive(Clone, Default)]
pub(crate) struct Db {
    /// The number of the keys of which it has a share, and whether all services have confirmed them.
    keys: Option<(u64, bool)>,
    acts: Vec<Rc<Act>>,
    tip: Tip,
    promises: BTreeMap<JobId, [u8; 32]>,
    /// Digests of the second computation service's batches, by job and digest of the releases.
    witnessed: BTreeMap<(JobId, [u8; 32]), [u8; 32]>,
}

/// A call to the service.
#[derive(Serialize, Deserialize)]
pub(crate) enum Call {
    /// From the crypto service, which has promised the request in the body.
    Share {
        keys: u64,
        job: JobId,
        run: u32,
        upload: [u8; 32],
    },
    /// From the crypto service, which received a page that cannot be decrypted.
    Freeze,
    /// From the second computation service: the digest of a batch.
    Witnessed { job: JobId, new: Witnessed },
    /// From the crypto service, which makes the dataset's keys.
    Make { keys: u64 },
    /// From the operator of this service.
    Thaw,
}

/// Converts the protocol's error to the answer for the caller.
fn refused(error: Error) -> Failure {
    let kind = match &error {
        Error::Unwitnessed | Error::Overtaken => ProblemKind::Unavailable,
        Error::Frozen(_) => ProblemKind::Frozen,
        Error::NotFrozen => ProblemKind::Conflict,
        _ => ProblemKind::Refused,
    };
    Failure::new(kind, error)
}

impl Db {
    fn chain_state(&self) -> Result<ChainState, Failure> {
        let acts = self.acts.iter().map(|act| Act::clone(act));
        let acts = acts.filter(|act| !matches!(act, Act::Released { .. }));
        ChainState::read(DATASET, self.tip, acts.collect::<Vec<_>>()).map_err(refused)
    }

    fn record(&self, w: &W, job: JobId) -> Result<SharedDatasetState, Failure> {
        let (rules, chain_state) = (w.setting.rules.clone(), self.chain_state()?);
        chain_state.check_open().map_err(refused)?;
        let has_run = chain_state.run(job).is_some();
        let mut record = SharedDatasetState::read(rules, SERVICES, chain_state);
        if has_run {
            let acts = self.acts.iter().map(|act| Act::clone(act));
            let of = |act: &Act| matches!(act, Act::Released { job: of, .. } if *of == job);
            let released = acts.filter(|act| of(act));
            let promised = self.promises.get(&job).copied();
            let run_record = RunRecord::read(&record, job, released, promised).map_err(refused)?;
            record.restore(run_record);
        }
        Ok(record)
    }

    /// Makes the dataset's first keys.
    pub(crate) fn first_keys(&mut self) {
        self.keys = Some((0, false));
    }

    /// Confirms the keys of this number. The service makes no other keys from then on.
    fn confirm(&mut self, keys: u64) -> Result<(), Failure> {
        match self.keys {
            None => Err(no_keys()),
            Some((own, _)) if own == keys => {
                self.keys = Some((keys, true));
                Ok(())
            }
            Some(_) => {
                let detail = "this service has a share of other keys";
                Err(Failure::new(ProblemKind::Refused, detail))
            }
        }
    }

    /// Makes a share of keys. It replaces keys that were not confirmed.
    fn make(&mut self, keys: u64) -> Result<(), Failure> {
        if self
            .keys
            .is_some_and(|(own, confirmed)| confirmed && own != keys)
        {
            let detail = "the key services have already made the dataset's keys";
            return Err(Failure::new(ProblemKind::Conflict, detail));
        }
        self.keys.get_or_insert((keys, false)).0 = keys;
        Ok(())
    }

    fn append(&mut self, w: &W, link: Option<ChainLink>) {
        if let Some(link) = link {
            let frozen = ghost::frozen(self.acts.iter().map(|act| Act::clone(act)));
            let mut checks = w.ghost.borrow_mut();
            checks.appended(&link.act, &frozen, &w.roster);
            self.tip = link.tip;
            self.acts.push(Rc::new(link.act));
        }
    }
}

fn no_keys() -> Failure {
    Failure::new(ProblemKind::NotFound, "the dataset has no keys")
}

/// Answers a call.
pub(crate) async fn handle(w: &W, envelope: &Envelope) -> Result<Envelope, Failure> {
    let call = envelope.open()?;
    if w.keyshare.get().keys.is_none() && !matches!(call, Call::Make { .. }) {
        return Err(no_keys());
    }
    match call {
        Call::Share {
            keys,
            job,
            run,
            upload,
        } => {
            let assignment = Assignment { job, run, upload };
            let body = envelope.body.as_deref().unwrap_or_default();
            share(w, keys, &assignment, body).await
        }
        Call::Make { keys } => {
            w.tx(&w.keyshare, |db| db.make(keys)).await?;
            Ok(Envelope::new(&(), 0))
        }
        Call::Freeze => freeze(w, Freeze::Noise).await,
        Call::Witnessed { job, new } => witness(w, job, &new).await,
        Call::Thaw => {
            let thawed = w.tx(&w.keyshare, |db| {
                let link = db
                    .chain_state()?
                    .thaw(&w.roster.thaw_rules(w))
                    .map_err(refused)?;
                db.witnessed.clear();
                db.append(w, Some(link));
                Ok::<_, Failure>(())
            });
            thawed.await?;
            Ok(Envelope::new(&(), 0))
        }
    }
}

/// Judges, promises and debits a batch. With two services, all promises are there: the crypto service has promised the
/// batch already.
async fn share(
    w: &W,
    keys: u64,
    assignment: &Assignment,
    body: &[u8],
) -> Result<Envelope, Failure> {
    let request = w.setting.engine.bare(body).map_err(refused)?;
    let digest: [u8; 32] = Sha256::digest(body).into();
    let job = assignment.job;
    if request.job != job {
        let detail = "the request is for another job";
        return Err(Failure::new(ProblemKind::Refused, detail));
    }
    w.tx(&w.keyshare, |db| {
        db.confirm(keys)?;
        promise(w, db, assignment, (&request, digest))
    })
    .await?;
    let session = w.setting.engine.look(body).map_err(refused)?.under.session;
    w.tx(&w.keyshare, |db| debit(w, db, session, (&request, digest)))
        .await?;
    Ok(Envelope::new(&(), 0))
}

fn hear(record: &mut SharedDatasetState, job: JobId, request: [u8; 32]) -> Result<(), Failure> {
    for service in 0..SERVICES {
        let promised = Promised {
            service,
            job,
            request,
        };
        record.hear(&promised).map_err(refused)?;
    }
    Ok(())
}

fn promise(
    w: &W,
    db: &mut Db,
    assignment: &Assignment,
    (request, digest): (&DecryptRequest<()>, [u8; 32]),
) -> Result<(), Failure> {
    let job = assignment.job;
    let mut record = db.record(w, job)?;
    let mut followed = record.follow(assignment);
    if followed.is_err() && w.is(Mutant::KeyshareBelievesTheFirst) {
        *db = Db {
            keys: db.keys,
            ..Db::default()
        };
        record = db.record(w, job)?;
        followed = record.follow(assignment);
    }
    db.append(w, followed.map_err(refused)?.link);
    let asked = request::asked(&request.releases);
    let witness = db.witnessed.get(&(job, asked)).copied();
    let judged = record.judge(request, &digest, witness);
    if matches!(judged, Err(Error::Frozen(Freeze::Witness))) {
        w.ghost.borrow_mut().disagreement_at_share();
    }
    judged.map_err(refused)?;
    hear(&mut record, job, digest)?;
    if let Some(promised) = record.run_record(job).and_then(RunRecord::promised) {
        db.promises.insert(job, promised);
    }
    Ok(())
}

fn debit(
    w: &W,
    db: &mut Db,
    session: u64,
    (request, digest): (&DecryptRequest<()>, [u8; 32]),
) -> Result<(), Failure> {
    let mut record = db.record(w, request.job)?;
    hear(&mut record, request.job, digest)?;
    let link = record.debit(request, &digest).map_err(refused)?;
    if link.is_some() {
        db.promises.remove(&request.job);
        w.ghost.borrow_mut().debited(request, session, digest);
    }
    db.append(w, link);
    Ok(())
}

async fn freeze(w: &W, reason: Freeze) -> Result<Envelope, Failure> {
    let frozen = w.tx(&w.keyshare, |db| {
        let link = db.chain_state()?.freeze(reason).map_err(refused)?;
        db.append(w, link);
        Ok::<_, Failure>(())
    });
    frozen.await?;
    Ok(Envelope::new(&(), 0))
}

async fn witness(w: &W, job: JobId, new: &Witnessed) -> Result<Envelope, Failure> {
    let same = w.tx(&w.keyshare, |db| {
        db.chain_state()?.check_open().map_err(refused)?;
        let known = db.witnessed.insert((job, new.asked.0), new.request.0);
        Ok::<_, Failure>(known.is_none_or(|known| known == new.request.0))
    });
    if !same.await? {
        w.ghost.borrow_mut().disagreement_at_share();
        freeze(w, Freeze::Witness).await?;
        return Err(refused(Error::Frozen(Freeze::Witness)));
    }
    Ok(Envelope::new(&(), 0))
}
