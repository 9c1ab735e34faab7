//! Decisions of a key service before it decrypts: pure checks and debits, without a key.
//!
//! The service that keeps the ledger also keeps the positions of the noise. It assigns a run before
//! anything is sealed. A release must be the next of its run. Its positions are computed here and
//! not read from the request. A repeated release is answered from the store. So each position
//! serves one release, even if other entities deviate, forget or repeat.

use super::freeze::Freeze;
use crate::Error;
use crate::leak::ciphertext_leak;
use crate::request::{DatasetId, DecryptRequest, JobId, SealedPage};
use crate::terms::PlanCore;
use crate::window::{Placed, Placement, Window};
use fhaim_domain::counted;
use fhaim_dp::{Debit, Entry, Leak, Ledger};
use fhaim_release::{ReleaseRequest, Statistic, Tariff};

/// The rules of one dataset, fixed when its keys were made.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The dataset.
    pub dataset: DatasetId,
    /// The plan that its terms fix.
    pub plan: PlanCore,
}

impl Rules {
    /// Creates the rules of a dataset with this plan.
    pub fn new(dataset: DatasetId, plan: &PlanCore) -> Self {
        Self {
            dataset,
            plan: plan.clone(),
        }
    }

    /// Returns the run for the next job, given the number of runs that have begun.
    ///
    /// # Errors
    /// [`Error::NoRunLeft`].
    pub(super) fn next_run(&self, begun: usize) -> Result<u32, Error> {
        let run = u32::try_from(begun)
            .ok()
            .filter(|&run| run < self.plan.runs);
        run.ok_or(Error::NoRunLeft(self.plan.runs))
    }

    /// Returns the tariff that prices releases.
    fn tariff(&self) -> Result<Tariff, Error> {
        Ok(Tariff {
            record_bound: self.plan.record_bound,
            leak: Leak {
                ciphertext: ciphertext_leak()?,
                residues: self.plan.set.plaintext_moduli.len(),
            },
            holders: self.plan.holders.clone(),
        })
    }

    fn debit(&self, release: &ReleaseRequest, placed: &Placed) -> Result<Debit, Error> {
        let refuse = |error: &dyn std::fmt::Display| Error::Statistic {
            number: release.number,
            reason: error.to_string(),
        };
        let statistic = &release.statistic;
        let holders = self.plan.holders.count() as usize;
        statistic.check_holders(holders).map_err(|e| refuse(&e))?;
        statistic.check(&self.plan.domain).map_err(|e| refuse(&e))?;
        let tariff = self.tariff()?;
        Ok(Debit {
            number: release.number,
            description: description(statistic),
            digest: placed.statement,
            delta2_squared: statistic
                .squared_sensitivity_under(&tariff)
                .map_err(|e| refuse(&e))?,
            variance_units: release.variance_units,
            honest: tariff.holders.honest(),
            cells: placed.cells as u64,
            leak: tariff.leak.of(placed.cells)?,
        })
    }
}

/// Describes a release for people. Attributes are counted from 0.
fn description(statistic: &Statistic) -> String {
    match statistic {
        Statistic::Total => "number of records".to_owned(),
        Statistic::OneWay(axis) => format!("attribute {}", axis.attribute),
        Statistic::Product(a, b) => format!("attributes {} and {}", a.attribute, b.attribute),
        Statistic::SquaredScores(terms) => format!("scores of {}", counted(terms.len(), "pair")),
    }
}

/// The decision on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The batch was released before, with these integers. Nothing is debited or decrypted.
    Repeated(Vec<Vec<i64>>),
    /// The batch may be decrypted.
    Granted(Grant),
}

/// A batch that may be decrypted once it is debited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    placement: Placement,
    ledger: Ledger,
    debited: usize,
    /// Whether both computation services computed the request.
    agreed: bool,
}

/// A run computed from its requests, for a party that checks the data of a key service. It computes
/// the position and the price of each release, and does not read them.
#[derive(Clone, Debug)]
pub struct Replay {
    window: Window,
    ledger: Ledger,
}

impl Replay {
    /// Creates the replay of a run that has released nothing.
    pub fn new(rules: &Rules, job: JobId, run: u32) -> Self {
        Self {
            window: Window::new(rules.dataset, job, run, rules.plan.run_ladder),
            ledger: Ledger::new(rules.plan.run_budget),
        }
    }

    /// Returns the run's number.
    pub fn run(&self) -> u32 {
        self.window.run()
    }

    /// Returns the run's window and its ledger.
    pub(crate) fn into_parts(self) -> (Window, Ledger) {
        (self.window, self.ledger)
    }

    /// Places and prices the next batch. Returns its placement and debits.
    ///
    /// # Errors
    /// Those of [`JobLedger::judge`](crate::crypto::job_ledger::JobLedger::judge). The run is then unchanged.
    pub fn batch(
        &mut self,
        rules: &Rules,
        requests: &[ReleaseRequest],
    ) -> Result<(Placement, Vec<Entry>), Error> {
        let placement = self.window.place(requests)?;
        if placement.repeated {
            return Err(Error::Request("the batch is not the next of its run"));
        }
        let grant = price(&self.ledger, rules, requests, placement.clone())?;
        let entries = grant.entries().to_vec();
        grant.take(&mut self.window, &mut self.ledger);
        Ok((placement, entries))
    }

    /// Adds the next batch from its claimed debits, if its requests are not known.
    ///
    /// # Errors
    /// Debits that are not the next of the run, or do not fit it.
    pub fn claimed(&mut self, entries: &[Entry]) -> Result<(), Error> {
        let mut placed = self.window.placed().to_vec();
        for Entry { debit, .. } in entries {
            let cells = usize::try_from(debit.cells);
            placed.push(Placed {
                cells: cells.map_err(|_| Error::Request("too many cells"))?,
                statement: debit.digest,
            });
            self.ledger.debit(debit.clone())?;
        }
        self.window.catch_up(&placed)
    }
}

/// Assesses a request against a run with this window and ledger. Returns `None` if all of it was
/// placed before.
///
/// # Errors
/// The reason of a refusal.
pub(crate) fn assess<C>(
    window: &Window,
    ledger: &Ledger,
    rules: &Rules,
    request: &DecryptRequest<C>,
) -> Result<Option<Grant>, Error> {
    if request.dataset != rules.dataset || request.job != window.job() {
        return Err(Error::Request("it belongs to another dataset or job"));
    }
    let placement = window.place(&request.releases)?;
    check_pages(&placement, request)?;
    if placement.repeated {
        return Ok(None);
    }
    price(ledger, rules, &request.releases, placement).map(Some)
}

/// Prices releases that were placed.
fn price(
    ledger: &Ledger,
    rules: &Rules,
    releases: &[ReleaseRequest],
    placement: Placement,
) -> Result<Grant, Error> {
    let mut ledger = ledger.clone();
    for (release, placed) in releases.iter().zip(&placement.placed) {
        ledger.debit(rules.debit(release, placed)?)?;
    }
    Ok(Grant {
        placement,
        ledger,
        debited: releases.len(),
        agreed: rules.plan.witness,
    })
}

impl Grant {
    /// Applies the batch's positions and its debits.
    /// Returns the ledger that includes the batch.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the reason of the freeze if a page of the batch cannot be decrypted.
    pub(super) fn undecryptable(&self) -> Freeze {
        match self.agreed {
            true => Freeze::Upload,
            false => Freeze::Noise,
        }
    }

    pub(crate) fn take(self, window: &mut Window, ledger: &mut Ledger) {
        window.take(&self.placement);
        *ledger = self.ledger;
    }

    /// Returns the batch's debits, in the order of their numbers.
    pub fn entries(&self) -> &[Entry] {
        let entries = self.ledger.entries();
        let before = entries.len().saturating_sub(self.debited);
        entries.get(before..).unwrap_or_default()
    }
}

/// Checks that the pages are exactly those that follow from the releases' positions.
fn check_pages<C>(placement: &Placement, request: &DecryptRequest<C>) -> Result<(), Error> {
    let sheets = placement.sheets(&request.releases);
    let same = |((_, sheet), page): (&(usize, _), &SealedPage<C>)| {
        let sheet: &crate::window::Sheet = sheet;
        sheet.variance_units == page.variance_units && sheet.parts == page.parts
    };
    if sheets.len() == request.pages.len() && sheets.iter().zip(&request.pages).all(same) {
        Ok(())
    } else {
        Err(Error::Request("its pages do not follow from its releases"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::job_ledger::JobLedger;
    use crate::crypto::ruling::{Released, Ruling};
    use crate::encryption::Encryption;
    use fhaim_domain::{Clique, Domain};
    use fhaim_dp::{LadderPlan, Rho};
    use fhaim_he::WIDE;
    use fhaim_release::{Axis, Holders};

    const JOB: JobId = JobId([2; 16]);
    const DIGEST: [u8; 32] = [3; 32];

    fn rules(sizes: Vec<usize>) -> Rules {
        Rules {
            dataset: DatasetId([1; 16]),
            plan: PlanCore {
                set: WIDE,
                budget: Rho::ratio_up(1, 1).unwrap(),
                run_budget: Rho::ratio_up(1, 1).unwrap(),
                runs: 1,
                run_ladder: LadderPlan::new(100_000, 1 << 30).unwrap(),
                domain: Domain::new(sizes),
                record_bound: 1000,
                holders: Holders::one(),
                members: Vec::new(),
                witness: false,
                key_services: Vec::new(),
                encryption: Encryption::OwnKey,
            },
        }
    }

    /// Makes the request of a computation service that follows the protocol.
    fn request(window: &Window, releases: Vec<ReleaseRequest>) -> DecryptRequest<()> {
        let placement = window.place(&releases).unwrap();
        let page = |(_, sheet): (_, crate::window::Sheet)| SealedPage {
            ciphertexts: (),
            variance_units: sheet.variance_units,
            parts: sheet.parts,
        };
        let sheets = placement.sheets(&releases);
        DecryptRequest {
            dataset: window.dataset(),
            job: window.job(),
            pages: sheets.into_iter().map(page).collect(),
            releases,
        }
    }

    fn release(number: u32, statistic: Statistic, variance_units: u64) -> ReleaseRequest {
        ReleaseRequest {
            number,
            statistic,
            variance_units,
        }
    }

    /// Two columns with 150 categories may take part in four pages of two ciphertexts each.
    #[test]
    fn release_over_many_pages_is_granted_and_debited_for_each() {
        let rules = rules(vec![150, 150]);
        let job_ledger = JobLedger::new(&rules, JOB, 0);
        let cells = Statistic::Product(Axis::identity(0, 150), Axis::identity(1, 150));
        let request = request(job_ledger.window(), vec![release(0, cells, 1 << 20)]);
        assert_eq!(request.pages.len(), 3);
        let Ok(Decision::Granted(grant)) = job_ledger.judge(&rules, &request, &DIGEST) else {
            panic!("refused");
        };
        let paid = grant.entries()[0].debit.leak;
        assert_eq!(Some(paid), ciphertext_leak().unwrap().checked_mul(8));
    }

    fn granted(job_ledger: &JobLedger, rules: &Rules, request: &DecryptRequest<()>) -> Grant {
        match job_ledger.judge(rules, request, &DIGEST).unwrap() {
            Decision::Granted(grant) => grant,
            verdict => panic!("{verdict:?}"),
        }
    }

    fn total(number: u32) -> Vec<ReleaseRequest> {
        vec![release(number, Statistic::Total, 1 << 20)]
    }

    /// A service that was stopped between a debit and its answer reads its ledger back.
    #[test]
    fn request_debited_before_is_granted_again_without_another_debit() {
        let rules = rules(vec![3, 4]);
        let (mut job_ledger, mut chain_state) = (
            JobLedger::new(&rules, JOB, 0),
            crate::crypto::history::ChainState::new(rules.dataset),
        );
        let request = request(job_ledger.window(), total(0));
        let grant = granted(&job_ledger, &rules, &request);
        let link = job_ledger
            .debit(&mut chain_state, &grant, DIGEST)
            .unwrap()
            .unwrap();
        let read = JobLedger::read(&rules, JOB, 0, Vec::new(), Some(link.act.clone())).unwrap();
        assert_eq!(read, job_ledger);
        assert!(
            job_ledger.window().placed().is_empty() && job_ledger.ledger().entries().len() == 1
        );
        let again = granted(&job_ledger, &rules, &request);
        assert_eq!(
            job_ledger.debit(&mut chain_state, &again, DIGEST).unwrap(),
            None
        );
        let answers = vec![vec![5]];
        let after = job_ledger.clone().with(again, answers.clone());
        assert_eq!(after.ledger(), job_ledger.ledger());
        let entries = after.ledger().entries().to_vec();
        let released = Released {
            answers: answers.clone(),
            job_ledger: after.clone(),
        };
        let ruling = Ruling::release(job_ledger, entries, released);
        // The stored debit belongs to the release after it.
        let releases = vec![(ruling.act().clone(), answers)];
        let read = JobLedger::read(&rules, JOB, 0, releases, Some(link.act)).unwrap();
        assert_eq!(read, after);
    }

    #[test]
    fn another_request_of_debited_releases_is_refused() {
        let rules = rules(vec![3, 4]);
        let mut job_ledger = JobLedger::new(&rules, JOB, 0);
        let mut chain_state = crate::crypto::history::ChainState::new(rules.dataset);
        let first = request(job_ledger.window(), total(0));
        let grant = granted(&job_ledger, &rules, &first);
        job_ledger.debit(&mut chain_state, &grant, DIGEST).unwrap();
        assert!(matches!(
            job_ledger.judge(&rules, &first, &[4; 32]),
            Err(Error::Request(..))
        ));
        let other = vec![release(0, Statistic::Total, 1 << 21)];
        let other = request(job_ledger.window(), other);
        for digest in [DIGEST, [4; 32]] {
            assert!(matches!(
                job_ledger.judge(&rules, &other, &digest),
                Err(Error::Privacy(..))
            ));
        }
    }

    #[test]
    fn stored_debit_of_a_later_release_is_refused() {
        let rules = rules(vec![3, 4]);
        let mut job_ledger = JobLedger::new(&rules, JOB, 0);
        let first = granted(&job_ledger, &rules, &request(job_ledger.window(), total(0)));
        job_ledger = job_ledger.with(first, vec![vec![1]]);
        let next = request(job_ledger.window(), total(1));
        let mut chain_state = crate::crypto::history::ChainState::new(rules.dataset);
        let grant = granted(&job_ledger, &rules, &next);
        let link = job_ledger
            .debit(&mut chain_state, &grant, DIGEST)
            .unwrap()
            .unwrap();
        let read = JobLedger::read(&rules, JOB, 0, Vec::new(), Some(link.act));
        assert!(matches!(read, Err(Error::Stored(_))));
    }

    #[test]
    fn variance_or_release_beyond_the_window_is_rejected() {
        let mut rules = rules(vec![3, 4]);
        rules.plan.run_ladder = LadderPlan::new(100, 1 << 30).unwrap();
        let job_ledger = JobLedger::new(&rules, JOB, 0);
        let total = |units| vec![release(0, Statistic::Total, units)];
        assert!(matches!(
            job_ledger.window().place(&total(1 << 32)),
            Err(Error::Privacy(..))
        ));
        let mut forged = request(job_ledger.window(), total(1 << 30));
        forged.releases = total(1 << 32);
        forged.pages[0].variance_units = 1 << 32;
        assert!(matches!(
            job_ledger.judge(&rules, &forged, &DIGEST),
            Err(Error::Privacy(..))
        ));
        let long = Statistic::OneWay(Axis::identity(0, 101));
        assert!(matches!(
            job_ledger.window().place(&[release(0, long, 1)]),
            Err(Error::Privacy(..))
        ));
        assert!(matches!(
            job_ledger.window().place(&total(0)),
            Err(Error::Privacy(..))
        ));
    }

    /// A stored ledger is debited again and must belong to the run, release by release.
    #[test]
    fn stored_book_with_missing_or_short_answers_is_rejected() {
        let rules = rules(vec![3, 4]);
        let job_ledger = JobLedger::new(&rules, JOB, 0);
        let pair = Clique::new([0, 1]);
        assert_eq!(rules.plan.domain.cells(&pair), Some(12));
        let batch = vec![
            release(0, Statistic::Total, 1 << 20),
            release(1, Statistic::OneWay(Axis::identity(1, 4)), 1 << 20),
        ];
        let request = request(job_ledger.window(), batch);
        let Ok(Decision::Granted(grant)) = job_ledger.judge(&rules, &request, &DIGEST) else {
            panic!("refused");
        };
        let entries = grant.entries().to_vec();
        let answers = vec![vec![1], vec![1, 2, 3, 4]];
        let after = job_ledger.clone().with(grant, answers.clone());
        let mut read = JobLedger::new(&rules, JOB, 0);
        read.restore(entries.clone(), answers.clone()).unwrap();
        assert_eq!(read, after);
        assert_eq!(
            read.judge(&rules, &request, &DIGEST).unwrap(),
            Decision::Repeated(answers.clone())
        );
        let fresh = || JobLedger::new(&rules, JOB, 0);
        assert!(matches!(
            fresh().restore(entries[1..].to_vec(), answers[1..].to_vec()),
            Err(Error::Request(..))
        ));
        assert!(matches!(
            fresh().restore(entries.clone(), answers[..1].to_vec()),
            Err(Error::Request(..))
        ));
        let mut short = answers;
        short[1].pop();
        assert!(matches!(
            fresh().restore(entries, short),
            Err(Error::Request(..))
        ));
    }

    #[test]
    fn page_that_both_services_computed_blames_the_upload() {
        let mut rules = rules(vec![3, 4]);
        let job_ledger = JobLedger::new(&rules, JOB, 0);
        let request = request(job_ledger.window(), total(0));
        for (witness, reason) in [(false, Freeze::Noise), (true, Freeze::Upload)] {
            rules.plan.witness = witness;
            let grant = granted(&job_ledger, &rules, &request);
            assert_eq!(grant.undecryptable(), reason);
            let told = reason.detail();
            assert!(told.contains("uploaded object"), "{told}");
            assert_eq!(told.contains("a service"), !witness, "{told}");
        }
    }
}
