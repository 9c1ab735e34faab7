//! The public setting of a federated run.

use std::fmt;
use std::str::FromStr;

use fhaim_domain::Domain;
use fhaim_dp::NoiseShares;
use fhaim_release::{MechanismJob, Workload};
use fhaim_synth::{Candidate, candidates};
use rand::{Rng, RngCore, seq::SliceRandom};
use serde::Serialize;

use crate::Error;

/// The lowest allowed probability to take part in a round. With a lower one, every draw would be empty.
const MIN_PARTICIPATION: f64 = 1e-6;

/// How clients choose what to measure (FLAIM, Algorithm 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// By the distance of the client's marginal from the model's marginal.
    Naive,
    /// As `Naive`, minus the client's distance from the pooled table. It reads that table and is **not private**.
    AugOracle,
    /// As `AugOracle`, and all clients release their 1-ways in every round except the last. **Not private.**
    AugOracleCombined,
    /// As `Naive`, minus the mean distance of the client's 1-ways from the model's.
    AugProxy,
    /// As `AugProxy`, and all clients release their 1-ways in every round except the last.
    AugPrivate,
    /// Each client draws a candidate uniformly, so no budget goes to selections.
    Random,
    /// As `Naive`, but only among the 1-ways: attributes stay independent.
    NaiveBayes,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 7] = [
        Self::Naive,
        Self::AugOracle,
        Self::AugOracleCombined,
        Self::AugProxy,
        Self::AugPrivate,
        Self::Random,
        Self::NaiveBayes,
    ];

    /// Returns the name of the method on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::AugOracle => "aug-oracle",
            Self::AugOracleCombined => "aug-oracle-combined",
            Self::AugProxy => "aug-proxy",
            Self::AugPrivate => "aug-private",
            Self::Random => "random",
            Self::NaiveBayes => "naive-bayes",
        }
    }

    /// Whether clients choose by their records, with the exponential mechanism. Otherwise they draw uniformly.
    pub fn selects(self) -> bool {
        self != Self::Random
    }

    /// Whether the method is private. The others read the pooled table.
    pub fn is_private(self) -> bool {
        self.penalty() != Penalty::Pooled
    }

    /// Whether all clients release their 1-ways in every round except the last ("filter and combine"). The 1-ways are
    /// then not candidates.
    pub fn combines_one_ways(self) -> bool {
        matches!(self, Self::AugOracleCombined | Self::AugPrivate)
    }

    /// Whether measurements are weighted by the number of records behind them.
    pub fn weighs_records(self) -> bool {
        self.penalty() != Penalty::None
    }

    pub(crate) fn penalty(self) -> Penalty {
        match self {
            Self::Naive | Self::Random | Self::NaiveBayes => Penalty::None,
            Self::AugOracle | Self::AugOracleCombined => Penalty::Pooled,
            Self::AugProxy | Self::AugPrivate => Penalty::OneWays,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("unknown method {name:?}: choose from {known}")
        })
    }
}

/// What a client subtracts from its scores because its records differ from those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Penalty {
    /// Nothing.
    None,
    /// The distance of the marginal from the pooled table's: FLAIM's tau.
    Pooled,
    /// The mean distance of the 1-ways from the model's: FLAIM's proxy of tau.
    OneWays,
}

/// Whether a run keeps its budget, or repeats the figures of the FLAIM paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// Every release is charged.
    #[default]
    Corrected,
    /// As in the paper and its public program, for comparison only: **records cost more than the budget**. Numbers of
    /// records are exact and free, local measurements are free, and the server adds the noise. A sum is scaled by the
    /// number of records that its own noisy cells add up to.
    Printed,
}

impl FromStr for Accounting {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "corrected" => Ok(Self::Corrected),
            "printed" => Ok(Self::Printed),
            _ => Err(format!(
                "unknown accounting {name:?}: choose corrected or printed"
            )),
        }
    }
}

impl fmt::Display for Accounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Corrected => "corrected",
            Self::Printed => "printed",
        })
    }
}

/// The setting of a run. It is public and the same for all parties.
#[derive(Clone, Debug, PartialEq)]
pub struct FederatedSetting {
    /// Domain, workload, budget per record and model cap. The record bound of the job is ignored.
    pub job: MechanismJob,
    /// How clients choose what to measure.
    pub method: Method,
    /// T: number of rounds.
    pub rounds: u32,
    /// s: number of choices that a client makes in a round.
    pub local_steps: u32,
    /// p: probability that a party takes part in a round.
    pub participation: f64,
    /// R: the most rounds that one party takes part in, not counting the first sums.
    pub most_rounds: u32,
    /// r: share of the budget for measurements; the rest is for selections.
    pub measure_share: f64,
    /// Whether the noise is halved after a round that hardly changed the model (AIM's annealing). Every party is then
    /// charged for all rounds, so `most_rounds` must equal `rounds`. The same holds under [`Accounting::Printed`].
    pub anneal: bool,
    /// Whether the run keeps its budget, or repeats printed figures.
    pub accounting: Accounting,
    /// Number of steps of the fits between rounds, and of the last fit.
    pub fit_steps: [usize; 2],
}

/// A fit ends when a step lowers the loss by less than this share: between rounds, and in the last fit.
pub(crate) const TOLERANCES: [f64; 2] = [1e-3, 1e-4];

impl FederatedSetting {
    /// Returns FLAIM's defaults for a job: T = 10, s = 1, p = 0.1, R = 3, r = 0.9.
    pub fn new(job: MechanismJob, method: Method) -> Self {
        Self {
            job,
            method,
            rounds: 10,
            local_steps: 1,
            participation: 0.1,
            most_rounds: 3,
            measure_share: 0.9,
            anneal: false,
            accounting: Accounting::Corrected,
            fit_steps: [100, 1000],
        }
    }

    /// Checks the range of every field.
    ///
    /// # Errors
    /// [`Error::Setting`] with the name of the field; [`Error::Digits`]; [`Error::OneColumn`]; errors of
    /// [`MechanismJob::check`].
    pub fn check(&self) -> Result<(), Error> {
        self.job.check()?;
        // Without support for digits, they would be measured and modelled as independent of the digits they refine.
        if !self.job.domain.digits().is_empty() {
            return Err(Error::Digits);
        }
        if self.job.domain.len() < 2 {
            return Err(Error::OneColumn);
        }
        let refuse = |name, range, value| Err(Error::Setting { name, range, value });
        if !(1..=10_000).contains(&self.rounds) {
            return refuse("rounds", "from 1 to 10000", f64::from(self.rounds));
        }
        if !(1..=100).contains(&self.local_steps) {
            return refuse("local steps", "from 1 to 100", f64::from(self.local_steps));
        }
        if !(MIN_PARTICIPATION..=1.0).contains(&self.participation) {
            return refuse("participation", "from 1e-6 to 1", self.participation);
        }
        if !(1..=self.rounds).contains(&self.most_rounds) {
            let range = "from 1 to the number of rounds";
            return refuse("rounds of a party", range, f64::from(self.most_rounds));
        }
        let charges_all = self.anneal || self.accounting == Accounting::Printed;
        if charges_all && self.most_rounds != self.rounds {
            let range = "all rounds where every round is charged";
            return refuse("rounds of a party", range, f64::from(self.most_rounds));
        }
        if !(self.measure_share > 0.0 && self.measure_share < 1.0) {
            return refuse("measure share", "between 0 and 1", self.measure_share);
        }
        let steps = self.fit_steps[0].min(self.fit_steps[1]);
        if steps == 0 || self.fit_steps[0].max(self.fit_steps[1]) > 100_000 {
            return refuse("fit steps", "from 1 to 100000", steps as f64);
        }
        Ok(())
    }

    /// Checks that this number of parties can fill the rounds. Every round then has a party
    /// ([`crate::Participation::draw`]).
    ///
    /// # Errors
    /// [`Error::TooFewParties`]; [`Error::NobodyLeft`] for zero parties.
    pub fn check_parties(&self, parties: usize) -> Result<(), Error> {
        if parties == 0 {
            return Err(Error::NobodyLeft(0));
        }
        let possible = u64::from(self.most_rounds).saturating_mul(parties as u64);
        if possible < u64::from(self.rounds) {
            return Err(Error::TooFewParties {
                parties,
                most_rounds: self.most_rounds,
                rounds: self.rounds,
                needed: least_rounds(self.rounds, parties),
                possible,
            });
        }
        Ok(())
    }

    /// Returns the candidates for measurement: the subsets of the workload's sets. Methods that combine the 1-ways
    /// exclude them, because they are released anyway; `NaiveBayes` has the 1-ways only.
    pub fn candidates(&self) -> Vec<Candidate> {
        let mut all = candidates(&self.job, true);
        if self.method.combines_one_ways() {
            all.retain(|candidate| candidate.clique.len() > 1);
        } else if self.method == Method::NaiveBayes {
            all.retain(|candidate| candidate.clique.len() == 1);
        }
        all
    }

    /// Returns in how many of a party's rounds the 1-ways are summed too. The last round of the run has no such sums.
    pub(crate) fn combined_rounds(&self, rounds: u32) -> u32 {
        match self.method.combines_one_ways() {
            true => rounds.min(self.rounds - 1),
            false => 0,
        }
    }

    /// Returns how many measurements a party pays for in a round, without the 1-ways: its choices, and those that it
    /// measures locally before its last choice.
    pub(crate) fn measurements_per_round(&self) -> u64 {
        let choices = u64::from(self.local_steps);
        match self.accounting {
            Accounting::Corrected if self.method.selects() => 2 * choices - 1,
            _ => choices,
        }
    }

    /// Divides the noise of a sum among its parties. If the server adds the noise, nobody's share is known to others.
    pub(crate) fn shares(&self, variance_units: u64, parties: u32) -> Result<NoiseShares, Error> {
        Ok(match self.accounting {
            Accounting::Corrected => NoiseShares::new(variance_units, parties)?,
            Accounting::Printed => NoiseShares::with_colluders(variance_units, parties, 0)?,
        })
    }
}

/// Returns the least number of rounds per party with which this number of parties can fill all rounds of a run.
pub fn least_rounds(rounds: u32, parties: usize) -> u32 {
    rounds.div_ceil(u32::try_from(parties.max(1)).unwrap_or(u32::MAX))
}

/// Returns a workload of `count` different triples of the domain, or of all triples if there are fewer: FLAIM's Q. A
/// domain of fewer than three attributes gives all pairs.
///
/// # Errors
/// None: the triples are always part of the domain.
pub fn random_triples(
    domain: &Domain,
    count: usize,
    rng: &mut dyn RngCore,
) -> Result<Workload, Error> {
    let attributes = domain.len();
    if attributes < 3 {
        return Ok(Workload::all_pairs(domain));
    }
    let all = attributes * (attributes - 1) * (attributes - 2) / 6;
    let mut chosen: Vec<[usize; 3]> = Vec::new();
    if count >= all / 2 {
        let triples = domain.subsets(3).filter_map(|clique| {
            let attributes = clique.attributes();
            attributes.try_into().ok()
        });
        chosen = triples.collect();
        chosen.shuffle(rng);
        chosen.truncate(count.max(1));
    } else {
        while chosen.len() < count.max(1) {
            let mut triple = [0; 3].map(|_: usize| rng.random_range(0..attributes));
            triple.sort_unstable();
            let [a, b, c] = triple;
            if a < b && b < c && !chosen.contains(&triple) {
                chosen.push(triple);
            }
        }
    }
    Ok(Workload::of_triples(domain, chosen)?)
}
