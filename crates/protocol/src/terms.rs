//! The terms that a holder fixes when a dataset's key is made, and the plan that follows from them.
//!
//! All of it is public. Holder, crypto service and computation service each compute the [`Plan`]
//! from the same [`Terms`], so that none has to trust another's statement of the budget. The terms
//! also include the noise and encryption that the mechanism needs. The holder's program and the
//! generation service know mechanisms: they compute this need and compare it with the one that they
//! receive. The other services accept it as a number, since it cannot weaken the protection of a
//! record.
//!
//! Terms are *complete* when they name their mechanism's need and the parameter set
//! ([`Terms::complete`]). Only complete terms have a plan. They name the set because a later
//! version of [`ParameterSet::choose`] may choose another one.

mod parties;

use crate::Error;
use crate::committee::{KeyService, check_services};
use crate::encryption::Encryption;
use crate::leak::ciphertext_leak;
use crate::roster::{ContributionKind, Member, Partition, Roster};
use fhaim_domain::{Domain, Schema, Version};
use fhaim_dp::{LadderPlan, Leak, PAGE, Rho, accounting};
use fhaim_he::key_sharing::FirstRound;
use fhaim_he::{Demand, EvaluationKeys, Layout, ParameterSet, Parameters, RosterShape};
use fhaim_release::{
    Catalogue, Choice, Holders, MAX_CENTRED, MechanismJob, Need, Options, Workload,
};
use serde::{Deserialize, Serialize};

/// Standard deviations of noise for which a released value must have room. The tail beyond them has
/// probability below 2^-128.
const NOISE_REACH: f64 = 14.0;

/// The masks of all sealed ciphertexts together may be stripped with probability at most delta
/// divided by this number (docs/THREAT-MODEL.md).
const STRIP_SHARE: f64 = 8.0;

/// Largest number of runs of a dataset.
pub const MAX_RUNS: u32 = 64;

/// Largest numbers of attributes and of one-hot columns of a schema.
const MAX_ATTRIBUTES: usize = 1000;
const MAX_COLUMNS: usize = 50_000;

/// Version of the terms' JSON.
pub const TERMS_VERSION: u8 = 1;

/// Most bytes that one of several key services receives at once while they make a key: the messages
/// of all services.
pub const MAX_GENERATION_BYTES: usize = 255 << 20;

/// Most bytes of a dataset's evaluation keys. In memory they take 2.5 times as much.
pub const MAX_KEY_BYTES: usize = 512 << 20;

/// Mechanism of terms that do not name one.
const DEFAULT_MECHANISM: &str = "staged";

/// The holder's decisions about a dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Version of the JSON. Terms without this field have version 1.
    #[serde(default)]
    pub version: Version<TERMS_VERSION>,
    /// Public description of the table.
    pub schema: Schema,
    /// Epsilon of the dataset's whole privacy budget.
    pub epsilon: f64,
    /// Delta of the dataset's whole privacy budget.
    pub delta: f64,
    /// Name of the mechanism that makes the synthetic tables.
    pub mechanism: String,
    /// N: the most records that the table may have.
    pub record_bound: u64,
    /// Number of runs that share the budget equally.
    pub runs: u32,
    /// Most bytes that a model's junction tree may take.
    pub model_bytes: usize,
    /// Weight of the workload's pairs with the schema's target attribute, if it has one.
    pub target_weight: u32,
    /// The noise and encryption that a run of the mechanism needs. Absent until [`Terms::complete`]
    /// fills it in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub need: Option<Need>,
    /// Options of the mechanism; absent if all have their defaults. Options that are left out have
    /// their default until [`Terms::resolve`] fills them in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub options: Option<Options>,
    /// The holders, if there are several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub roster: Option<Roster>,
    /// Data that each holder uploads in addition to its noise.
    #[serde(skip_serializing_if = "ContributionKind::is_records", default)]
    pub contribution: ContributionKind,
    /// Whether a second computation service computes every batch too. Only batches on which the two
    /// agree are decrypted. The operators of the services decide which service it is.
    #[serde(skip_serializing_if = "is_alone", default)]
    pub witness: bool,
    /// The services that share the secret key. Each must debit a batch before it is decrypted.
    /// Empty if one service has the whole key. The first one assigns runs and adds up the shares.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub key_services: Vec<KeyService>,
    /// Number of the parameter set. Absent until [`Terms::complete`] fills it in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parameter_set: Option<u8>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_alone(witness: &bool) -> bool {
    !witness
}

/// The consequences of [`Terms`] for all parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The part that every service checks requests against.
    pub core: PlanCore,
    /// The mechanism's input for a run. Its `rho` is one run's share of the budget.
    pub job: MechanismJob,
}

/// The part of a plan that services check a dataset's requests against. Computing it needs no
/// mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanCore {
    /// Encryption parameters.
    pub set: ParameterSet,
    /// Budget of the dataset.
    pub budget: Rho,
    /// Budget of one run.
    pub run_budget: Rho,
    /// Number of runs that share the budget.
    pub runs: u32,
    /// Noise ladder of one run.
    pub run_ladder: LadderPlan,
    /// Sizes of the table's attributes.
    pub domain: Domain,
    /// N: the most records that the table may have.
    pub record_bound: u64,
    /// The holders, and on how many holders' noise prices rely.
    pub holders: Holders,
    /// The roster's holders, all of whom must sign.
    pub members: Vec<Member>,
    /// Whether a second computation service must compute a batch before it is decrypted.
    pub witness: bool,
    /// The services that share the secret key; empty if one service has the whole key.
    pub key_services: Vec<KeyService>,
    /// The party that makes the holders' upload keys.
    pub encryption: Encryption,
}

impl Terms {
    /// Creates terms for one run of the default mechanism, with the default model cap and no
    /// weights. JSON that leaves out every optional field has the same meaning.
    pub fn new(schema: Schema, epsilon: f64, delta: f64, record_bound: u64) -> Self {
        Self {
            version: Version,
            schema,
            epsilon,
            delta,
            mechanism: DEFAULT_MECHANISM.to_owned(),
            record_bound,
            runs: 1,
            model_bytes: fhaim_release::DEFAULT_MODEL_BYTES,
            target_weight: 1,
            need: None,
            options: None,
            roster: None,
            contribution: ContributionKind::Records,
            witness: false,
            key_services: Vec::new(),
            parameter_set: None,
        }
    }

    /// Returns the name of the mechanism, with its options.
    pub fn choice(&self) -> Choice<'_> {
        Choice {
            mechanism: &self.mechanism,
            options: self.options.as_ref(),
        }
    }

    /// Fills in the defaults of all options that the terms leave out, if the terms have options.
    /// The terms then keep their meaning if a later release has other defaults.
    ///
    /// # Errors
    /// A mechanism or an option that the catalogue does not know, by name; an invalid value of an
    /// option.
    pub fn resolve(mut self, catalogue: &dyn Catalogue) -> Result<Self, Error> {
        let options = catalogue.options(self.choice()).map_err(Error::Mechanism)?;
        self.options = self.options.map(|_| options);
        Ok(self)
    }

    /// [Resolves](Terms::resolve) the terms and fills in the need of their mechanism and the
    /// parameter set. If the terms name a need, it must be the one that `catalogue` computes.
    ///
    /// # Errors
    /// A mechanism that the catalogue does not know or that refuses the job; a need that is not the
    /// mechanism's; the errors of [`Terms::plan`], except those about the need.
    pub fn complete(self, catalogue: &dyn Catalogue) -> Result<Self, Error> {
        let mut terms = self.resolve(catalogue)?;
        let squares = catalogue.squares(terms.choice());
        let job = terms.job(squares.map_err(Error::Mechanism)?)?;
        let need = catalogue.need(terms.choice(), &job);
        let need = need.map_err(Error::Mechanism)?;
        if terms.need.is_some_and(|named| named != need) {
            return Err(Error::Terms(format!(
                "need: {} does not need the noise that these terms name: leave the field out to have \
                 it filled in",
                terms.mechanism
            )));
        }
        terms.need = Some(need);
        if terms.parameter_set.is_none() {
            let demand = terms.demand(&need, &job.holders)?;
            terms.parameter_set = Some(ParameterSet::choose(&demand)?.id);
        }
        Ok(terms)
    }

    /// Returns the terms as their holder chose them, without the fields that were filled in.
    /// Options stay [resolved](Terms::resolve).
    #[must_use]
    pub fn choices(&self) -> Self {
        Self {
            need: None,
            parameter_set: None,
            ..self.clone()
        }
    }

    /// Computes the plan. The result is the same on every machine.
    ///
    /// # Errors
    /// Those of [`Terms::job`]; terms that are not complete; a parameter set that does not exist or
    /// is too small.
    pub fn plan(&self) -> Result<Plan, Error> {
        let need = self.named_need()?;
        let job = self.job(need.squares)?;
        Ok(Plan {
            core: self.plan_core()?,
            job,
        })
    }

    /// Computes the part of the plan that needs no mechanism. It exists for all terms that have had
    /// a plan.
    ///
    /// # Errors
    /// A budget that is not positive; no runs or too many; terms that are not complete; squared
    /// scores of two or more holders; a parameter set that does not exist or is too small.
    pub fn plan_core(&self) -> Result<PlanCore, Error> {
        self.check_numbers()?;
        let budget = accounting::rho(self.epsilon, self.delta)?;
        let holders = self.holders()?;
        let need = self.named_need()?;
        self.check_squares(need.squares)?;
        let (set, run_ladder) = self.set(&need, &holders)?;
        Ok(PlanCore {
            set,
            run_budget: budget.share(self.runs),
            budget,
            runs: self.runs,
            run_ladder,
            domain: self.schema.domain().clone(),
            record_bound: self.record_bound,
            holders,
            members: self.members(),
            witness: self.witness,
            key_services: self.key_services.clone(),
            encryption: self.encryption(),
        })
    }

    /// Returns the parameter set that the terms name, and the noise ladder of one run.
    fn set(&self, need: &Need, holders: &Holders) -> Result<(ParameterSet, LadderPlan), Error> {
        let refuse = |reason: &str| Error::Terms(format!("parameter_set: {reason}"));
        let id = self.parameter_set.ok_or_else(|| {
            refuse(
                "not named in these terms: leave the field `need` out too to have both filled in",
            )
        })?;
        let set = ParameterSet::by_id(id).ok_or_else(|| {
            refuse("no set has this number: leave the field out to have one chosen")
        })?;
        if !set.meets(&self.demand(need, holders)?) {
            return Err(refuse(
                "this set does not fit these terms: leave the field out to have one chosen",
            ));
        }
        self.check_key_bytes(set)?;
        Ok((set, need.ladder.plan()?))
    }

    /// Rejects rosters with more switching keys than the services can hold in memory at once. The
    /// computation service holds all keys. Several key services each hold the messages of all of
    /// them while they make the keys.
    fn check_key_bytes(&self, set: ParameterSet) -> Result<(), Error> {
        let services = self.shares();
        let Some(shape) = self.roster_shape() else {
            return Ok(());
        };
        let params = Parameters::shared(set)?;
        let shared = params.with_shares(services)?;
        let fits = |&holders: &usize| {
            let shape = shape.with_holders(holders);
            EvaluationKeys::encoded_bytes(&shared, Some(shape)) <= MAX_KEY_BYTES
                && (services == 1
                    || services * FirstRound::length(&params, Some(shape)) <= MAX_GENERATION_BYTES)
        };
        if fits(&shape.holders()) {
            return Ok(());
        }
        let most = (1..shape.holders()).rev().find(fits).unwrap_or(0);
        let (made_by, or_services) = match services {
            1 => ("one key service".to_owned(), ""),
            _ => (format!("{services} key services"), " or fewer key services"),
        };
        Err(Error::Terms(format!(
            "roster: {made_by} can make the keys of at most {most} such holders, and the roster has {}: \
             use fewer holders{or_services}, or let the holders upload counts",
            shape.holders()
        )))
    }

    /// Returns the demand of the terms on their parameter set.
    fn demand(&self, need: &Need, holders: &Holders) -> Result<Demand, Error> {
        let ladder = ladder_of_all(self.runs, need.ladder.plan()?)?;
        let residues = ParameterSet::residues(self.record_bound, need.squares);
        // Every sealed ciphertext has its own position.
        let ciphertexts = (ladder.positions().max(1) * residues) as f64;
        Ok(Demand {
            records: self.record_bound,
            largest: largest_value(need, holders),
            squares: need.squares,
            layout: self.layout()?,
            energy: largest_energy(self.schema.domain()),
            shares: self.shares(),
            strip_bits: (STRIP_SHARE * ciphertexts / self.delta).log2(),
        })
    }

    /// Returns the party that makes the holders' upload keys.
    pub fn encryption(&self) -> Encryption {
        match self.roster {
            None => Encryption::OwnKey,
            Some(_) => Encryption::RosterKey,
        }
    }

    /// Returns the layout of all record chunks if every holder has as many records as it may have.
    fn layout(&self) -> Result<Layout, Error> {
        let of = |records: u64| {
            let records = usize::try_from(records.max(1)).unwrap_or(usize::MAX);
            Layout::for_records(records)
        };
        let whole = of(self.record_bound)?;
        let roster = self.roster.as_ref();
        let Some(roster) = roster.filter(|roster| roster.partition == Partition::Records) else {
            return Ok(whole);
        };
        let parts = roster.holders.iter().map(|member| of(member.record_bound));
        let parts = parts.collect::<Result<Vec<Layout>, _>>()?;
        let chunks = parts.iter().map(Layout::chunks).sum();
        let stride = parts.iter().map(Layout::stride).max();
        Ok(Layout::of_many(chunks, stride.unwrap_or(whole.stride()))?)
    }

    /// Returns the shape of the roster for which the key services make upload keys, if there is a
    /// roster.
    pub fn roster_shape(&self) -> Option<RosterShape> {
        let roster = self.roster.as_ref()?;
        let holders = roster.holders.len();
        Some(match (self.contribution, roster.partition) {
            (ContributionKind::Counts, _) => RosterShape::Counts(holders),
            (ContributionKind::Records, Partition::Records) => RosterShape::Records(holders),
            (ContributionKind::Records, Partition::Columns) => RosterShape::Columns(holders),
        })
    }

    /// Returns the number of services that have a share of the secret key.
    fn shares(&self) -> usize {
        self.key_services.len().max(1)
    }

    fn named_need(&self) -> Result<Need, Error> {
        self.need.ok_or_else(|| {
            Error::Terms(
                "need: these terms do not name the noise that their mechanism needs: complete them first"
                    .to_owned(),
            )
        })
    }

    /// Returns the mechanism's job of every run, with one run's share of the budget. `squares` is
    /// whether the mechanism releases squared scores.
    ///
    /// # Errors
    /// Squared scores of two or more holders; a budget that is not positive; no runs or too many; a
    /// record bound or weight of zero; a domain or model cap that suits no mechanism; a roster or a
    /// contribution that does not fit the schema.
    pub fn job(&self, squares: bool) -> Result<MechanismJob, Error> {
        self.check_numbers()?;
        self.check_squares(squares)?;
        self.check_size()?;
        let budget = accounting::rho(self.epsilon, self.delta)?;
        let domain = self.schema.domain().clone();
        let mut job = MechanismJob::new(domain.clone(), budget.share(self.runs), self.record_bound);
        job.leak = leak(self.record_bound, squares)?;
        job.model_bytes = self.model_bytes;
        job.holders = self.holders()?;
        self.count_tables()?;
        if let Some(target) = self.schema.target()
            && self.target_weight > 1
        {
            job.workload = Workload::all_pairs_with_target(&domain, target, self.target_weight);
        }
        job.check()?;
        Ok(job)
    }

    fn check_numbers(&self) -> Result<(), Error> {
        self.check_key_services()?;
        if !(1..=MAX_RUNS).contains(&self.runs) {
            return Err(Error::Terms(format!(
                "{} runs: there must be 1 to {MAX_RUNS}",
                self.runs
            )));
        }
        let weight = u64::from(self.target_weight);
        for (field, value) in [
            ("record_bound", self.record_bound),
            ("target_weight", weight),
        ] {
            if value == 0 {
                return Err(Error::Terms(format!("{field}: it must be at least 1")));
            }
        }
        Ok(())
    }

    /// Rejects services that cannot share a key, and mechanisms that do not work with a shared key.
    fn check_key_services(&self) -> Result<(), Error> {
        if self.key_services.is_empty() {
            return Ok(());
        }
        check_services(&self.key_services)?;
        match self.need {
            Some(need) if need.squares => Err(Error::Terms(format!(
                "key_services: {} releases squared scores, whose noise under a shared key is too large: use \
                 another mechanism, or one key service",
                self.mechanism
            ))),
            _ => Ok(()),
        }
    }

    /// Rejects a mechanism that releases squared scores if the roster has two or more holders: see
    /// [`Statistic::check_holders`](fhaim_release::Statistic::check_holders).
    fn check_squares(&self, squares: bool) -> Result<(), Error> {
        let roster = self.roster.as_ref();
        if !squares || roster.is_none_or(|roster| roster.holders.len() < 2) {
            return Ok(());
        }
        Err(Error::Terms(format!(
            "mechanism: {} releases squared scores, from which one holder of a roster could read the counts of \
             the others: choose another mechanism, such as {DEFAULT_MECHANISM}",
            self.mechanism
        )))
    }

    /// Rejects schemas that would keep a service busy before it knows whether they are possible.
    fn check_size(&self) -> Result<(), Error> {
        let domain = self.schema.domain();
        if domain.len() > MAX_ATTRIBUTES || domain.columns() > MAX_COLUMNS {
            return Err(Error::Terms(format!(
                "the schema has {} attributes and {} categories in total, and a dataset can have at most \
                 {MAX_ATTRIBUTES} and {MAX_COLUMNS}: leave columns out or use fewer bins",
                domain.len(),
                domain.columns()
            )));
        }
        Ok(())
    }
}

impl Plan {
    /// Returns the encryption parameters, with their tables.
    ///
    /// # Errors
    /// Parameters that do not pass validation.
    pub fn parameters(&self) -> Result<Parameters, Error> {
        parameters(self.core.set, &self.core.key_services)
    }

    /// Returns the noise ladder of all runs. Run r uses `run_ladder.pages()` pages from page `r *
    /// run_ladder.pages()`.
    ///
    /// # Errors
    /// More positions than a ladder can have.
    pub fn ladder(&self) -> Result<LadderPlan, Error> {
        ladder_of_all(self.core.runs, self.core.run_ladder)
    }
}

impl PlanCore {
    /// Returns the encryption parameters, with their tables.
    ///
    /// # Errors
    /// Parameters that do not pass validation.
    pub fn parameters(&self) -> Result<Parameters, Error> {
        parameters(self.set, &self.key_services)
    }

    /// Returns the noise ladder of all runs.
    ///
    /// # Errors
    /// More positions than a ladder can have.
    pub fn ladder(&self) -> Result<LadderPlan, Error> {
        ladder_of_all(self.runs, self.run_ladder)
    }
}

fn ladder_of_all(runs: u32, of_one: LadderPlan) -> Result<LadderPlan, Error> {
    if runs == 1 {
        return Ok(of_one);
    }
    let positions = of_one.pages() * PAGE * runs as usize;
    Ok(LadderPlan::with_levels(positions, of_one.levels())?)
}

/// Returns the charge on releases for the residual noise of their ciphertexts.
///
/// # Errors
/// Never: see [`ciphertext_leak`].
fn leak(record_bound: u64, squares: bool) -> Result<Leak, Error> {
    Ok(Leak {
        ciphertext: ciphertext_leak()?,
        residues: ParameterSet::residues(record_bound, squares),
    })
}

/// Upper bound on the absolute values that a run releases, including the noise of all holders.
fn largest_value(need: &Need, holders: &Holders) -> u128 {
    let variance = holders.fit_variance(need.ladder.largest_variance_units);
    let noise = (NOISE_REACH * (variance as f64).sqrt()).ceil() as u128;
    need.largest_cell.saturating_add(noise)
}

/// Returns parameters and noise ladder for one run over at most `record_bound` records of a domain,
/// decrypted by one service.
///
/// # Errors
/// Values too large for every parameter set; a ladder beyond its limits.
pub fn encryption(
    domain: &Domain,
    record_bound: u64,
    need: &Need,
    holders: &Holders,
) -> Result<(ParameterSet, LadderPlan), Error> {
    let records = usize::try_from(record_bound.max(1)).unwrap_or(usize::MAX);
    let demand = Demand {
        records: record_bound,
        largest: largest_value(need, holders),
        squares: need.squares,
        layout: Layout::for_records(records)?,
        energy: largest_energy(domain),
        shares: 1,
        strip_bits: 0.0,
    };
    Ok((ParameterSet::choose(&demand)?, need.ladder.plan()?))
}

/// Largest squared norm of a combination of columns in released products. It is that of a contrast
/// with as many groups as contrasts may have, all but one of which have one category. The columns
/// of those groups have the number of groups less one as coefficient, all others have -1.
fn largest_energy(domain: &Domain) -> u64 {
    let widest = domain.sizes().iter().copied().max().unwrap_or(1).max(1) as u64;
    let others = widest.min(MAX_CENTRED as u64) - 1;
    let contrast = (widest - others) * others.pow(2) + others;
    contrast.max(widest)
}

/// Returns the parameters of a set, with their tables, for a key that these services share.
fn parameters(set: ParameterSet, key_services: &[KeyService]) -> Result<Parameters, Error> {
    let params = Parameters::shared(set)?;
    match key_services.len() {
        0 => Ok(params),
        shares => Ok(params.with_shares(shares)?),
    }
}

#[cfg(test)]
mod tests;
