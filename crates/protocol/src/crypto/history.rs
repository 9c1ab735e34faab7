//! What a dataset's chain says, and what may be appended to it next: pure, without a store.
//!
//! The owner of a chain (rows of a database, values in memory) reads a [`ChainState`] back from its
//! acts and a job's [`Book`] from its releases, asks here what is to be done, appends the [`ChainLink`]
//! that comes of it by compare and set, and only then answers.

use crate::Error;
use crate::crypto::chain::{Act, Freeze, Tip, answers_digest};
use crate::crypto::judge::{Book, Grant, Rules};
use crate::request::{DatasetId, JobId};
use crate::roster::{Agreement, MemberSignature};
use fhaim_dp::Entry;
use std::collections::BTreeSet;

/// Where a dataset's chain is, without what was released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainState {
    dataset: DatasetId,
    tip: Tip,
    /// Jobs by run.
    jobs: Vec<JobId>,
    /// Digest of the upload that the runs are over, once one has begun.
    upload: Option<[u8; 32]>,
    /// Why it was frozen, since it was thawed last.
    frozen: Vec<Freeze>,
    /// What the roster's holders sign, once the keys are made.
    agreement: Option<Agreement>,
    /// Holders that have signed, by their numbers in the roster, and those that withdrew.
    signed: BTreeSet<u32>,
    withdrawn: BTreeSet<u32>,
}

/// An act that is to be appended: as it is stored, and the chain's end with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// The act.
    pub act: Act,
    /// The text of it that is stored, which the chain's hash is over.
    pub text: String,
    /// The end of the chain once it is appended; its height is the act's.
    pub tip: Tip,
}

/// A job's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The run's number.
    pub run: u32,
    /// What is to be appended first, where the job had no run before: its book is then empty.
    pub link: Option<ChainLink>,
}

impl ChainState {
    /// Of a dataset without a chain.
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

    /// Of a stored chain: its end, and its acts in order. Acts of releases may be left out; where
    /// there is no roster, all that are neither of runs nor of freezing.
    ///
    /// # Errors
    /// [`Error::Stored`] for runs that are not numbered in order.
    pub fn read(
        dataset: DatasetId,
        tip: Tip,
        acts: impl IntoIterator<Item = Act>,
    ) -> Result<Self, Error> {
        let mut standing = Self::new(dataset);
        for act in acts {
            standing.follow(&act)?;
        }
        Ok(Self { tip, ..standing })
    }

    /// The chain's end.
    pub fn tip(&self) -> Tip {
        self.tip
    }

    /// Jobs by run.
    pub fn jobs(&self) -> &[JobId] {
        &self.jobs
    }

    /// Why nothing is released, if so. Of several reasons, the one that is hardest to lift.
    pub fn frozen(&self) -> Option<Freeze> {
        let reasons = self.frozen.iter().copied();
        reasons.min_by_key(|reason| (reason.can_be_thawed(1), reason.can_be_thawed(2)))
    }

    /// The run of a job.
    pub fn run(&self, job: JobId) -> Option<u32> {
        let index = self.jobs.iter().position(|&known| known == job)?;
        u32::try_from(index).ok()
    }

    /// Refuses where nothing is released.
    ///
    /// # Errors
    /// [`Error::Frozen`].
    pub fn check_open(&self) -> Result<(), Error> {
        self.frozen().map_or(Ok(()), |why| Err(Error::Frozen(why)))
    }

    /// What the roster's holders sign, once the keys are made.
    pub fn agreement(&self) -> Option<&Agreement> {
        self.agreement.as_ref()
    }

    /// The holders whose signatures are missing, by their numbers in the roster.
    pub fn unsigned<'a>(&'a self, rules: &'a Rules) -> impl Iterator<Item = u32> + 'a {
        let members = (0..).zip(&rules.plan.members).map(|(number, _)| number);
        members.filter(|number| !self.signed.contains(number))
    }

    /// The holders that withdrew, by their numbers in the roster.
    pub fn withdrawn(&self) -> impl Iterator<Item = u32> + '_ {
        self.withdrawn.iter().copied()
    }

    /// Takes a holder's signature in. Nothing is appended for a holder that has signed before.
    ///
    /// # Errors
    /// [`Error::Signature`] for one that is not of this dataset's terms and keys by that holder;
    /// [`Error::Withdrawn`] for a holder that has withdrawn; [`Error::Request`] for a holder that the roster does not
    /// have, and before keys are made.
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
        let agreement = agreement.ok_or(Error::Request("no keys were made yet"))?;
        agreement.verify(known, signature)
    }

    /// Lets no further run begin, as a holder of the roster wants it; nothing is to be appended where
    /// it wanted so before. Runs that have begun go on.
    ///
    /// # Errors
    /// [`Error::Request`] for a holder that the roster does not have.
    pub fn withdraw(&mut self, rules: &Rules, member: u32) -> Result<Option<ChainLink>, Error> {
        if rules.plan.members.get(member as usize).is_none() {
            return Err(Error::Request("the roster has no such holder"));
        }
        if self.withdrawn.contains(&member) {
            return Ok(None);
        }
        self.append(Act::Withdrawn { member }).map(Some)
    }

    /// Refuses to begin a run unless every holder of the roster agrees.
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

    /// Digest of the upload that the runs are over, once one has begun.
    pub fn upload(&self) -> Option<[u8; 32]> {
        self.upload
    }

    /// The run of a job; a job that has none is given the next one.
    ///
    /// # Errors
    /// [`Error::Unsigned`] and [`Error::Withdrawn`] where not every holder agrees, before a run
    /// begins; [`Error::Frozen`]; [`Error::OtherUpload`] for another upload than the first run was begun
    /// with; [`Error::NoRunLeft`].
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

    /// Freezes the dataset; nothing is to be appended where it is frozen for this reason already.
    ///
    /// # Errors
    /// As [`ChainState::append`].
    pub fn freeze(&mut self, reason: Freeze) -> Result<Option<ChainLink>, Error> {
        if self.frozen.contains(&reason) {
            return Ok(None);
        }
        self.append(Act::Frozen { reason }).map(Some)
    }

    /// Thaws a frozen dataset, once an operator has looked into it. Each reason for which it was frozen has to
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

    /// The standing with another act, and what is to be stored of it.
    ///
    /// # Errors
    /// [`Error::Stored`] for a run that is not the next.
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

impl Book {
    /// The book of a job's run as it is stored: each release's act with its integers, in order, and the act of the
    /// job's last debit, where there is one.
    ///
    /// # Errors
    /// [`Error::Stored`] for acts of something else, integers that are not those of their act, and
    /// debits that the rules refuse.
    pub fn read(
        rules: &Rules,
        job: JobId,
        run: u32,
        releases: impl IntoIterator<Item = (Act, Vec<Vec<i64>>)>,
        debited: Option<Act>,
    ) -> Result<Self, Error> {
        let mut book = Self::new(rules, job, run);
        for (act, answers) in releases {
            let Act::Released {
                entries,
                answers: digest,
                ..
            } = act
            else {
                return Err(Error::stored(&"an act that is none of a release"));
            };
            if answers_digest(&answers) != digest {
                let what = "released integers that are not those of their act";
                return Err(Error::stored(&what));
            }
            let restored = book.restore(entries, answers);
            restored.map_err(|error| Error::stored(&error))?;
        }
        match debited {
            Some(Act::Debited {
                entries, request, ..
            }) => {
                let restored = book.restore_debited(entries, request);
                restored.map_err(|error| Error::stored(&error))?;
            }
            Some(_) => return Err(Error::stored(&"an act that is not a debit")),
            None => {}
        }
        Ok(book)
    }

    /// Debits a granted batch: to be appended before anything of it is decrypted. Nothing is to be appended where this
    /// request was debited before.
    ///
    /// # Errors
    /// As [`ChainState::append`].
    pub fn debit(
        &mut self,
        standing: &mut ChainState,
        grant: &Grant,
        request: [u8; 32],
    ) -> Result<Option<ChainLink>, Error> {
        if self.is_debited() {
            return Ok(None);
        }
        let link = standing.append(Act::Debited {
            job: self.window().job(),
            entries: grant.entries().to_vec(),
            request,
        })?;
        self.take_debit(grant, request);
        Ok(Some(link))
    }
}

/// A batch that was judged and decrypted: what is to be appended before anyone is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The job's book that it was judged by.
    before: Book,
    act: Act,
    released: Option<Released>,
}

/// What a ruling releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// The cells of each release, in the order of the request.
    pub answers: Vec<Vec<i64>>,
    /// The run's book with the batch in it.
    pub book: Book,
}

impl Ruling {
    /// The batch is released, for these debits; `released` has the book with it.
    pub fn release(before: Book, entries: Vec<Entry>, released: Released) -> Self {
        let act = Act::Released {
            job: before.window().job(),
            entries,
            answers: answers_digest(&released.answers),
        };
        Self {
            before,
            act,
            released: Some(released),
        }
    }

    /// Nothing of the batch is released, and the dataset is frozen.
    pub fn freeze(before: Book, reason: Freeze) -> Self {
        Self {
            before,
            act: Act::Frozen { reason },
            released: None,
        }
    }

    /// What is appended: a release, or that the dataset is frozen.
    pub fn act(&self) -> &Act {
        &self.act
    }

    /// The integers that the act releases; none where it freezes the dataset.
    pub fn answers(&self) -> Option<&[Vec<i64>]> {
        self.released.as_ref().map(|r| r.answers.as_slice())
    }

    /// What is to be appended, behind a standing and a book that were read after the decryption.
    ///
    /// # Errors
    /// [`Error::Overtaken`] where something else of the job was released meanwhile. A page that
    /// cannot be decrypted freezes the dataset all the same.
    pub fn append_to(&self, standing: &mut ChainState, now: &Book) -> Result<ChainLink, Error> {
        if self.released.is_some() && *now != self.before {
            return Err(Error::Overtaken);
        }
        standing.append(self.act.clone())
    }

    /// What may leave once the act is appended.
    ///
    /// # Errors
    /// [`Error::Refused`] where the dataset was frozen.
    pub fn into_released(self) -> Result<Released, Error> {
        self.released.ok_or(Error::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// The chain that links make, and the standing that is read back from it.
    fn read(links: &[ChainLink]) -> ChainState {
        let tip = links.last().map_or_else(Tip::default, |link| link.tip);
        let acts = links.iter().map(|link| link.act.clone());
        ChainState::read(DATASET, tip, acts).unwrap()
    }

    #[test]
    fn a_standing_is_what_its_chain_says_after_every_act() {
        let (rules, mut standing) = (rules(), ChainState::new(DATASET));
        let mut links = Vec::new();
        let begun = standing.begin(&rules, JOBS[0], UPLOAD).unwrap();
        links.extend(begun.link);
        assert_eq!(read(&links), standing);
        let again = standing.begin(&rules, JOBS[0], UPLOAD).unwrap();
        assert_eq!(again, Begun { run: 0, link: None });
        let other = standing.begin(&rules, JOBS[1], [8; 32]);
        assert!(matches!(other, Err(Error::OtherUpload)));
        links.extend(standing.begin(&rules, JOBS[1], UPLOAD).unwrap().link);
        let third = standing.begin(&rules, JOBS[2], UPLOAD);
        assert!(matches!(third, Err(Error::NoRunLeft(2))));
        links.extend(standing.freeze(Freeze::Noise).unwrap());
        assert_eq!(standing.freeze(Freeze::Noise).unwrap(), None);
        assert_eq!(read(&links), standing);
        let frozen = standing.begin(&rules, JOBS[0], UPLOAD);
        assert!(matches!(frozen, Err(Error::Frozen(Freeze::Noise))));
        links.push(standing.thaw(&rules).unwrap());
        assert_eq!(read(&links), standing);
        assert!(matches!(standing.thaw(&rules), Err(Error::NotFrozen)));
        links.extend(standing.freeze(Freeze::Restored).unwrap());
        let refused = standing.thaw(&rules);
        assert!(matches!(refused, Err(Error::FrozenForGood(_))));
        assert_eq!(links.len() as u64, standing.tip().height);
    }

    #[test]
    fn standing_frozen_for_an_unknown_receipt_stays_frozen() {
        let mut standing = ChainState::new(DATASET);
        let frozen = standing.freeze(Freeze::UnknownReceipt).unwrap().unwrap();
        assert_eq!(
            frozen.text,
            r#"{"act":"frozen","reason":"unknown-receipt"}"#
        );
        let thawed = standing.thaw(&rules());
        assert!(matches!(
            thawed,
            Err(Error::FrozenForGood(Freeze::UnknownReceipt))
        ));
        assert!(matches!(standing.check_open(), Err(Error::Frozen(..))));
    }

    #[test]
    fn permanent_freeze_followed_by_another_reason_stays_permanent() {
        let rules = rules();
        for later in [Freeze::Noise, Freeze::Witness] {
            let mut standing = ChainState::new(DATASET);
            let mut links = Vec::new();
            for reason in [Freeze::Restored, later] {
                links.extend(standing.freeze(reason).unwrap());
            }
            assert_eq!(standing.frozen(), Some(Freeze::Restored));
            let refused = standing.thaw(&rules);
            assert!(matches!(
                refused,
                Err(Error::FrozenForGood(Freeze::Restored))
            ));
            assert_eq!(read(&links), standing);
            // A thaw that is in the chain anyway lifts the reasons that it can.
            standing.append(Act::Thawed).unwrap();
            assert_eq!(standing.frozen(), Some(Freeze::Restored));
        }
    }

    #[test]
    fn freeze_over_noise_is_permanent_for_two_holders() {
        let (two, _) = of_two();
        let mut standing = ChainState::new(DATASET);
        standing.freeze(Freeze::Noise).unwrap();
        standing.freeze(Freeze::Witness).unwrap();
        assert_eq!(standing.frozen(), Some(Freeze::Noise));
        let refused = standing.thaw(&two).unwrap_err();
        assert!(matches!(refused, Error::FrozenForGood(Freeze::Noise)));
        let told = refused.to_string();
        assert!(
            told.contains("make a new dataset with the same holders"),
            "{told}"
        );
        assert!(told.contains("stays counted"), "{told}");
        standing.thaw(&rules()).unwrap();
        assert_eq!(standing.frozen(), None);
        standing.freeze(Freeze::Witness).unwrap();
        standing.thaw(&two).unwrap();
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

    /// No run begins until all have signed just these terms and keys; one that withdraws stops all
    /// further runs, and none that has begun.
    #[test]
    fn nothing_begins_before_every_holder_agrees() {
        let (rules, keys) = of_two();
        let mut standing = ChainState::new(DATASET);
        let early = standing.sign(&rules, 0, MemberSignature([0; 64]));
        assert!(matches!(early, Err(Error::Request(_))));
        let made = Act::KeysMade {
            terms: [1; 32],
            public_key: [2; 32],
            evaluation_keys: [3; 32],
        };
        let mut links = vec![standing.append(made).unwrap()];
        let agreement = *standing.agreement().unwrap();
        let signatures = keys.each_ref().map(|key| key.sign(&agreement));
        let begin = |standing: &mut ChainState, job| standing.begin(&rules, job, UPLOAD);
        let refused = begin(&mut standing, JOBS[0]);
        assert!(matches!(refused, Err(Error::Unsigned(missing)) if missing.len() == 2));
        for (member, signature) in [(0, signatures[1]), (1, signatures[0]), (2, signatures[0])] {
            assert!(matches!(
                standing.sign(&rules, member, signature),
                Err(Error::Request(..) | Error::Signature(..))
            ));
        }
        links.extend(standing.sign(&rules, 1, signatures[1]).unwrap());
        assert_eq!(standing.sign(&rules, 1, signatures[1]).unwrap(), None);
        assert_eq!(standing.unsigned(&rules).collect::<Vec<_>>(), [0]);
        assert!(matches!(
            begin(&mut standing, JOBS[0]),
            Err(Error::Unsigned(..))
        ));
        links.extend(standing.sign(&rules, 0, signatures[0]).unwrap());
        assert_eq!(read(&links), standing);
        links.extend(begin(&mut standing, JOBS[0]).unwrap().link);
        links.extend(standing.withdraw(&rules, 1).unwrap());
        assert_eq!(standing.withdraw(&rules, 1).unwrap(), None);
        assert!(matches!(
            standing.withdraw(&rules, 2),
            Err(Error::Request(..))
        ));
        assert_eq!(read(&links), standing);
        assert_eq!(begin(&mut standing, JOBS[0]).unwrap().run, 0);
        let refused = begin(&mut standing, JOBS[1]);
        assert!(matches!(refused, Err(Error::Withdrawn(who)) if who.len() == 1));
    }

    #[test]
    fn a_chain_whose_runs_are_out_of_order_is_none() {
        let (job, upload) = (JOBS[0], UPLOAD);
        let second = Act::RunBegun {
            job,
            run: 1,
            upload,
        };
        let read = ChainState::read(DATASET, Tip::default(), [second.clone()]);
        assert!(matches!(read, Err(Error::Stored(_))));
        let mut standing = ChainState::new(DATASET);
        assert!(matches!(standing.append(second), Err(Error::Stored(..))));
        assert_eq!(standing, ChainState::new(DATASET));
    }

    /// What was judged by an older book is judged again; a page that cannot be decrypted is not
    /// forgotten over it.
    #[test]
    fn a_ruling_holds_for_the_book_that_it_was_made_by() {
        let rules = rules();
        let before = Book::new(&rules, JOBS[0], 0);
        let other = Book::new(&rules, JOBS[0], 1);
        let answers = vec![vec![1, 2]];
        let book = other.clone();
        let released = Ruling::release(before.clone(), Vec::new(), Released { answers, book });
        let mut standing = ChainState::new(DATASET);
        let late = released.append_to(&mut standing, &other);
        assert!(matches!(late, Err(Error::Overtaken)));
        assert_eq!(standing.tip(), Tip::default());
        let link = released.append_to(&mut standing, &before).unwrap();
        assert_eq!((link.tip, &link.act), (standing.tip(), released.act()));
        let frozen = Ruling::freeze(before, Freeze::Noise);
        frozen.append_to(&mut standing, &other).unwrap();
        assert_eq!(standing.frozen(), Some(Freeze::Noise));
        assert!(frozen.answers().is_none());
        assert!(matches!(frozen.into_released(), Err(Error::Refused)));
    }
}
