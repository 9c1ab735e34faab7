//! The state of a dataset's chain, and the acts that may be appended to it next. Pure functions,
//! without a store.
//!
//! The owner of a chain keeps it as rows of a database or as values in memory. It reads a
//! [`ChainState`] back from the acts and a job's [`JobLedger`](crate::crypto::job_ledger::JobLedger) from the releases, and decides here on
//! the next step. It appends the resulting [`ChainLink`] by compare and set, and answers only then.

use crate::Error;
use crate::crypto::chain::{Act, Freeze, Tip};
use crate::crypto::judge::Rules;
use crate::request::{DatasetId, JobId};
use crate::roster::{Agreement, MemberSignature};
use std::collections::BTreeSet;

/// The state of a dataset's chain, without the released integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainState {
    dataset: DatasetId,
    tip: Tip,
    /// Jobs, by their runs.
    jobs: Vec<JobId>,
    /// Digest of the upload that the runs use; absent before the first run.
    upload: Option<[u8; 32]>,
    /// Reasons of all freezes since the last thaw.
    frozen: Vec<Freeze>,
    /// The agreement that the roster's holders sign; absent before the keys are made.
    agreement: Option<Agreement>,
    /// Numbers in the roster of the holders that have signed, and of those that have withdrawn.
    signed: BTreeSet<u32>,
    withdrawn: BTreeSet<u32>,
}

/// An act to append: its stored form, and the chain's end after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// The act.
    pub act: Act,
    /// The stored text of the act, which the chain's hash covers.
    pub text: String,
    /// End of the chain after the act. Its height is the number of the act.
    pub tip: Tip,
}

/// The run of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The run's number.
    pub run: u32,
    /// The act to append first if the job had no run before. Its ledger is then empty.
    pub link: Option<ChainLink>,
}

impl ChainState {
    /// Creates the state of a dataset without a chain.
    pub fn new(dataset: DatasetId) -> Self {
        Self {
            dataset,
            tip: Tip::default(),
            jobs: Vec::new(),
            upload: None,
            frozen: Vec::new(),
            agreement: None,
            signed: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
        }
    }

    /// Reads the state from a stored chain: its end, and its acts in order. Acts of debits and
    /// releases may be left out. Without a roster, only the acts of runs, freezes and thaws are
    /// needed.
    ///
    /// # Errors
    /// [`Error::Stored`] for runs that are not numbered in order.
    pub fn read(
        dataset: DatasetId,
        tip: Tip,
        acts: impl IntoIterator<Item = Act>,
    ) -> Result<Self, Error> {
        let mut chain_state = Self::new(dataset);
        for act in acts {
            chain_state.follow(&act)?;
        }
        Ok(Self { tip, ..chain_state })
    }

    /// Returns the end of the chain.
    pub fn tip(&self) -> Tip {
        self.tip
    }

    /// Returns the jobs, by their runs.
    pub fn jobs(&self) -> &[JobId] {
        &self.jobs
    }

    /// Returns the reason for which nothing is released, if the dataset is frozen. Of several
    /// reasons it returns the one that is hardest to lift.
    pub fn frozen(&self) -> Option<Freeze> {
        let reasons = self.frozen.iter().copied();
        reasons.min_by_key(|reason| (reason.can_be_thawed(1), reason.can_be_thawed(2)))
    }

    /// Returns the run of a job.
    pub fn run(&self, job: JobId) -> Option<u32> {
        let index = self.jobs.iter().position(|&known| known == job)?;
        u32::try_from(index).ok()
    }

    /// Checks that the dataset is not frozen.
    ///
    /// # Errors
    /// [`Error::Frozen`].
    pub fn check_open(&self) -> Result<(), Error> {
        self.frozen().map_or(Ok(()), |why| Err(Error::Frozen(why)))
    }

    /// Returns the agreement that the roster's holders sign, once the keys are made.
    pub fn agreement(&self) -> Option<&Agreement> {
        self.agreement.as_ref()
    }

    /// Returns the numbers in the roster of the holders that have not signed.
    pub fn unsigned<'a>(&'a self, rules: &'a Rules) -> impl Iterator<Item = u32> + 'a {
        let members = (0..).zip(&rules.plan.members).map(|(number, _)| number);
        members.filter(|number| !self.signed.contains(number))
    }

    /// Returns the numbers in the roster of the holders that have withdrawn.
    pub fn withdrawn(&self) -> impl Iterator<Item = u32> + '_ {
        self.withdrawn.iter().copied()
    }

    /// Accepts a holder's signature. Nothing is appended for a holder that has already signed.
    ///
    /// # Errors
    /// [`Error::Signature`] for a signature that is not by this holder of this dataset's terms and
    /// keys; [`Error::Withdrawn`] for a holder that has withdrawn; [`Error::Request`] for a holder
    /// that is not in the roster, and before the keys are made.
    pub fn sign(
        &mut self,
        rules: &Rules,
        member: u32,
        signature: MemberSignature,
    ) -> Result<Option<ChainLink>, Error> {
        self.verify(rules, member, &signature)?;
        if self.withdrawn.contains(&member) {
            let account = rules.plan.members.get(member as usize);
            let account = account.map(|member| member.account.clone());
            return Err(Error::Withdrawn(account.into_iter().collect()));
        }
        if self.signed.contains(&member) {
            return Ok(None);
        }
        self.append(Act::Signed { member, signature }).map(Some)
    }

    fn verify(&self, rules: &Rules, member: u32, signature: &MemberSignature) -> Result<(), Error> {
        let known = rules.plan.members.get(member as usize);
        let known = known.ok_or(Error::Request("the roster has no such holder"))?;
        let agreement = self.agreement.as_ref();
        let agreement = agreement.ok_or(Error::Request("the keys have not been made yet"))?;
        agreement.verify(known, signature)
    }

    /// Withdraws a holder of the roster, so that no further run can begin. Nothing is appended for
    /// a holder that has already withdrawn. Runs that have begun continue.
    ///
    /// # Errors
    /// [`Error::Request`] for a holder that is not in the roster.
    pub fn withdraw(&mut self, rules: &Rules, member: u32) -> Result<Option<ChainLink>, Error> {
        if rules.plan.members.get(member as usize).is_none() {
            return Err(Error::Request("the roster has no such holder"));
        }
        if self.withdrawn.contains(&member) {
            return Ok(None);
        }
        self.append(Act::Withdrawn { member }).map(Some)
    }

    /// Checks that every holder of the roster agrees to another run.
    fn check_consent(&self, rules: &Rules) -> Result<(), Error> {
        let accounts = |numbers: &mut dyn Iterator<Item = u32>| -> Vec<String> {
            let members = numbers.filter_map(|number| rules.plan.members.get(number as usize));
            members.map(|member| member.account.clone()).collect()
        };
        let missing = accounts(&mut self.unsigned(rules));
        if !missing.is_empty() {
            return Err(Error::Unsigned(missing));
        }
        let withdrawn = accounts(&mut self.withdrawn.iter().copied());
        if !withdrawn.is_empty() {
            return Err(Error::Withdrawn(withdrawn));
        }
        Ok(())
    }

    /// Returns the digest of the upload that the runs use, once one has begun.
    pub fn upload(&self) -> Option<[u8; 32]> {
        self.upload
    }

    /// Returns the run of a job. A job without a run is given the next one.
    ///
    /// # Errors
    /// [`Error::Unsigned`] and [`Error::Withdrawn`] if a new run would begin and not every holder
    /// agrees; [`Error::Frozen`]; [`Error::OtherUpload`] for another upload than that of the first
    /// run; [`Error::NoRunLeft`].
    pub fn begin(&mut self, rules: &Rules, job: JobId, upload: [u8; 32]) -> Result<Begun, Error> {
        self.check_open()?;
        if self.upload.is_some_and(|known| known != upload) {
            return Err(Error::OtherUpload);
        }
        if let Some(run) = self.run(job) {
            return Ok(Begun { run, link: None });
        }
        self.check_consent(rules)?;
        let run = rules.next_run(self.jobs.len())?;
        let link = Some(self.append(Act::RunBegun { job, run, upload })?);
        Ok(Begun { run, link })
    }

    /// Freezes the dataset. Nothing is appended if it is already frozen for this reason.
    ///
    /// # Errors
    /// Those of [`ChainState::append`].
    pub fn freeze(&mut self, reason: Freeze) -> Result<Option<ChainLink>, Error> {
        if self.frozen.contains(&reason) {
            return Ok(None);
        }
        self.append(Act::Frozen { reason }).map(Some)
    }

    /// Thaws a frozen dataset after an operator has investigated. All reasons of its freezes must
    /// allow that.
    ///
    /// # Errors
    /// [`Error::FrozenForGood`]; [`Error::NotFrozen`].
    pub fn thaw(&mut self, rules: &Rules) -> Result<ChainLink, Error> {
        let holders = rules.plan.holders.count();
        let reason = self.frozen().ok_or(Error::NotFrozen)?;
        match self
            .frozen
            .iter()
            .all(|reason| reason.can_be_thawed(holders))
        {
            true => self.append(Act::Thawed),
            false => Err(Error::FrozenForGood(reason)),
        }
    }

    /// Applies another act to the state, and returns the link to store.
    ///
    /// # Errors
    /// [`Error::Stored`] for a run that is not the next one.
    pub fn append(&mut self, act: Act) -> Result<ChainLink, Error> {
        let text = serde_json::to_string(&act).map_err(|error| Error::stored(&error))?;
        self.follow(&act)?;
        self.tip = self.tip.append(self.dataset, &text);
        Ok(ChainLink {
            act,
            text,
            tip: self.tip,
        })
    }

    fn follow(&mut self, act: &Act) -> Result<(), Error> {
        match act {
            Act::RunBegun { job, run, upload } => {
                if *run as usize != self.jobs.len() {
                    return Err(Error::stored(&"a run that is not the next of its dataset"));
                }
                self.jobs.push(*job);
                self.upload = Some(*upload);
            }
            Act::Frozen { reason } => self.frozen.push(*reason),
            Act::Thawed => self.frozen.retain(|reason| !reason.can_be_thawed(1)),
            Act::KeysMade {
                terms,
                public_key,
                evaluation_keys,
            } => {
                self.agreement = Some(Agreement {
                    dataset: self.dataset,
                    terms: *terms,
                    public_key: *public_key,
                    evaluation_keys: *evaluation_keys,
                });
            }
            Act::Signed { member, .. } => {
                self.signed.insert(*member);
            }
            Act::Withdrawn { member } => {
                self.withdrawn.insert(*member);
            }
            Act::Debited { .. } | Act::Released { .. } | Act::KeysDestroyed => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::job_ledger::JobLedger;
    use crate::crypto::ruling::{Released, Ruling};
    use crate::encryption::Encryption;
    use crate::roster::{HolderSigningKey, Member};
    use crate::terms::PlanCore;
    use fhaim_domain::Domain;
    use fhaim_dp::{LadderPlan, Rho};
    use fhaim_he::STANDARD;
    use fhaim_release::Holders;

    const DATASET: DatasetId = DatasetId([1; 16]);
    const UPLOAD: [u8; 32] = [3; 32];
    const JOBS: [JobId; 3] = [JobId([4; 16]), JobId([5; 16]), JobId([6; 16])];

    fn rules() -> Rules {
        Rules {
            dataset: DATASET,
            plan: PlanCore {
                set: STANDARD,
                budget: Rho::ratio_up(2, 1).unwrap(),
                run_budget: Rho::ratio_up(1, 1).unwrap(),
                runs: 2,
                run_ladder: LadderPlan::new(1000, 1 << 20).unwrap(),
                domain: Domain::new(vec![2, 3]),
                record_bound: 100,
                holders: Holders::one(),
                members: Vec::new(),
                witness: false,
                key_services: Vec::new(),
                encryption: Encryption::OwnKey,
            },
        }
    }

    /// Reads the state back from the chain of these links.
    fn read(links: &[ChainLink]) -> ChainState {
        let tip = links.last().map_or_else(Tip::default, |link| link.tip);
        let acts = links.iter().map(|link| link.act.clone());
        ChainState::read(DATASET, tip, acts).unwrap()
    }

    #[test]
    fn chain_state_read_back_equals_the_state_after_each_act() {
        let (rules, mut chain_state) = (rules(), ChainState::new(DATASET));
        let mut links = Vec::new();
        let begun = chain_state.begin(&rules, JOBS[0], UPLOAD).unwrap();
        links.extend(begun.link);
        assert_eq!(read(&links), chain_state);
        let again = chain_state.begin(&rules, JOBS[0], UPLOAD).unwrap();
        assert_eq!(again, Begun { run: 0, link: None });
        let other = chain_state.begin(&rules, JOBS[1], [8; 32]);
        assert!(matches!(other, Err(Error::OtherUpload)));
        links.extend(chain_state.begin(&rules, JOBS[1], UPLOAD).unwrap().link);
        let third = chain_state.begin(&rules, JOBS[2], UPLOAD);
        assert!(matches!(third, Err(Error::NoRunLeft(2))));
        links.extend(chain_state.freeze(Freeze::Noise).unwrap());
        assert_eq!(chain_state.freeze(Freeze::Noise).unwrap(), None);
        assert_eq!(read(&links), chain_state);
        let frozen = chain_state.begin(&rules, JOBS[0], UPLOAD);
        assert!(matches!(frozen, Err(Error::Frozen(Freeze::Noise))));
        links.push(chain_state.thaw(&rules).unwrap());
        assert_eq!(read(&links), chain_state);
        assert!(matches!(chain_state.thaw(&rules), Err(Error::NotFrozen)));
        links.extend(chain_state.freeze(Freeze::Restored).unwrap());
        let refused = chain_state.thaw(&rules);
        assert!(matches!(refused, Err(Error::FrozenForGood(_))));
        assert_eq!(links.len() as u64, chain_state.tip().height);
    }

    #[test]
    fn chain_frozen_for_an_unknown_receipt_stays_frozen() {
        let mut chain_state = ChainState::new(DATASET);
        let frozen = chain_state.freeze(Freeze::UnknownReceipt).unwrap().unwrap();
        assert_eq!(
            frozen.text,
            r#"{"act":"frozen","reason":"unknown-receipt"}"#
        );
        let thawed = chain_state.thaw(&rules());
        assert!(matches!(
            thawed,
            Err(Error::FrozenForGood(Freeze::UnknownReceipt))
        ));
        assert!(matches!(chain_state.check_open(), Err(Error::Frozen(..))));
    }

    #[test]
    fn permanent_freeze_followed_by_another_reason_stays_permanent() {
        let rules = rules();
        for later in [Freeze::Noise, Freeze::Witness] {
            let mut chain_state = ChainState::new(DATASET);
            let mut links = Vec::new();
            for reason in [Freeze::Restored, later] {
                links.extend(chain_state.freeze(reason).unwrap());
            }
            assert_eq!(chain_state.frozen(), Some(Freeze::Restored));
            let refused = chain_state.thaw(&rules);
            assert!(matches!(
                refused,
                Err(Error::FrozenForGood(Freeze::Restored))
            ));
            assert_eq!(read(&links), chain_state);
            // A thaw that is already in the chain lifts the reasons that it can.
            chain_state.append(Act::Thawed).unwrap();
            assert_eq!(chain_state.frozen(), Some(Freeze::Restored));
        }
    }

    #[test]
    fn freeze_over_noise_is_permanent_for_two_holders() {
        let (two, _) = of_two();
        let mut chain_state = ChainState::new(DATASET);
        chain_state.freeze(Freeze::Noise).unwrap();
        chain_state.freeze(Freeze::Witness).unwrap();
        assert_eq!(chain_state.frozen(), Some(Freeze::Noise));
        let refused = chain_state.thaw(&two).unwrap_err();
        assert!(matches!(refused, Error::FrozenForGood(Freeze::Noise)));
        let told = refused.to_string();
        assert!(
            told.contains("make a new dataset with the same holders"),
            "{told}"
        );
        assert!(told.contains("stays counted"), "{told}");
        chain_state.thaw(&rules()).unwrap();
        assert_eq!(chain_state.frozen(), None);
        chain_state.freeze(Freeze::Witness).unwrap();
        chain_state.thaw(&two).unwrap();
    }

    fn of_two() -> (Rules, [HolderSigningKey; 2]) {
        let keys = [[1; 32], [2; 32]].map(|secret| HolderSigningKey::from_bytes(&secret));
        let member = |key: &HolderSigningKey| Member {
            account: format!("{:02x}", key.public()[0]),
            columns: Vec::new(),
            record_bound: 50,
            key: key.public(),
        };
        let mut rules = rules();
        rules.plan.holders = Holders::of_records(2, 1).unwrap();
        rules.plan.members = keys.iter().map(member).collect();
        (rules, keys)
    }

    /// No run begins until all holders have signed exactly these terms and keys. A holder that
    /// withdraws stops all further runs, but not those that have begun.
    #[test]
    fn run_cannot_begin_before_every_holder_has_signed() {
        let (rules, keys) = of_two();
        let mut chain_state = ChainState::new(DATASET);
        let early = chain_state.sign(&rules, 0, MemberSignature([0; 64]));
        assert!(matches!(early, Err(Error::Request(_))));
        let made = Act::KeysMade {
            terms: [1; 32],
            public_key: [2; 32],
            evaluation_keys: [3; 32],
        };
        let mut links = vec![chain_state.append(made).unwrap()];
        let agreement = *chain_state.agreement().unwrap();
        let signatures = keys.each_ref().map(|key| key.sign(&agreement));
        let begin = |chain_state: &mut ChainState, job| chain_state.begin(&rules, job, UPLOAD);
        let refused = begin(&mut chain_state, JOBS[0]);
        assert!(matches!(refused, Err(Error::Unsigned(missing)) if missing.len() == 2));
        for (member, signature) in [(0, signatures[1]), (1, signatures[0]), (2, signatures[0])] {
            assert!(matches!(
                chain_state.sign(&rules, member, signature),
                Err(Error::Request(..) | Error::Signature(..))
            ));
        }
        links.extend(chain_state.sign(&rules, 1, signatures[1]).unwrap());
        assert_eq!(chain_state.sign(&rules, 1, signatures[1]).unwrap(), None);
        assert_eq!(chain_state.unsigned(&rules).collect::<Vec<_>>(), [0]);
        assert!(matches!(
            begin(&mut chain_state, JOBS[0]),
            Err(Error::Unsigned(..))
        ));
        links.extend(chain_state.sign(&rules, 0, signatures[0]).unwrap());
        assert_eq!(read(&links), chain_state);
        links.extend(begin(&mut chain_state, JOBS[0]).unwrap().link);
        links.extend(chain_state.withdraw(&rules, 1).unwrap());
        assert_eq!(chain_state.withdraw(&rules, 1).unwrap(), None);
        assert!(matches!(
            chain_state.withdraw(&rules, 2),
            Err(Error::Request(..))
        ));
        assert_eq!(read(&links), chain_state);
        assert_eq!(begin(&mut chain_state, JOBS[0]).unwrap().run, 0);
        let refused = begin(&mut chain_state, JOBS[1]);
        assert!(matches!(refused, Err(Error::Withdrawn(who)) if who.len() == 1));
    }

    #[test]
    fn chain_with_runs_out_of_order_is_rejected() {
        let (job, upload) = (JOBS[0], UPLOAD);
        let second = Act::RunBegun {
            job,
            run: 1,
            upload,
        };
        let read = ChainState::read(DATASET, Tip::default(), [second.clone()]);
        assert!(matches!(read, Err(Error::Stored(_))));
        let mut chain_state = ChainState::new(DATASET);
        assert!(matches!(chain_state.append(second), Err(Error::Stored(..))));
        assert_eq!(chain_state, ChainState::new(DATASET));
    }

    /// A release that was judged by an older ledger must be judged again. A freeze is appended in any
    /// case.
    #[test]
    fn ruling_by_an_outdated_book_is_not_released_but_may_freeze() {
        let rules = rules();
        let before = JobLedger::new(&rules, JOBS[0], 0);
        let other = JobLedger::new(&rules, JOBS[0], 1);
        let answers = vec![vec![1, 2]];
        let job_ledger = other.clone();
        let released = Ruling::release(
            before.clone(),
            Vec::new(),
            Released {
                answers,
                job_ledger,
            },
        );
        let mut chain_state = ChainState::new(DATASET);
        let late = released.append_to(&mut chain_state, &other);
        assert!(matches!(late, Err(Error::Overtaken)));
        assert_eq!(chain_state.tip(), Tip::default());
        let link = released.append_to(&mut chain_state, &before).unwrap();
        assert_eq!((link.tip, &link.act), (chain_state.tip(), released.act()));
        let frozen = Ruling::freeze(before, Freeze::Noise);
        frozen.append_to(&mut chain_state, &other).unwrap();
        assert_eq!(chain_state.frozen(), Some(Freeze::Noise));
        assert!(frozen.answers().is_none());
        assert!(matches!(frozen.into_released(), Err(Error::Refused)));
    }
}
