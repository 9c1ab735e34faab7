//! What a holder fixes when a dataset's key is made, and what follows from it for everyone.
//!
//! All of it is public. Holder, crypto service and computation service work a [`Plan`] out from
//! the same [`Terms`], so that none has to take another's word for the budget. What the mechanism
//! needs of noise and encryption is part of the terms: those who know mechanisms (the holder's
//! program, the generation service) work it out and hold it against what they are given; the others
//! take it as a number, since it cannot weaken what is promised of a record.
//!
//! Terms are kept as JSON, in one of three forms. Version 1 has what the holder chose, version 2 the
//! mechanism's need as well, and version 3, where options were chosen, all options of the mechanism.

use crate::Error;
use crate::crypto::ciphertext_leak;
use fhaim_domain::{Domain, Schema};
use fhaim_dp::{LadderPlan, Leak, PAGE, Rho, accounting};
use fhaim_he::{P1, P2, ParameterSet, Parameters};
use fhaim_release::{Catalogue, Choice, Job, Need, Options, UNIT_VARIANCE, Workload};
use serde::{Deserialize, Serialize};

/// A released value must have room for so many standard deviations of noise: beyond them lies less
/// than 2^-128.
const NOISE_REACH: f64 = 14.0;

/// Upper bound on the runs that a dataset can be planned for.
pub const MAX_RUNS: u32 = 64;

/// Upper bounds on the attributes and the one-hot columns of a schema.
const MAX_ATTRIBUTES: usize = 1000;
const MAX_COLUMNS: usize = 50_000;

/// The version of terms that name their mechanism's options.
const OPTIONS_VERSION: u8 = 3;

/// The version of terms that name what the mechanism needs; its options are the default.
const NEED_VERSION: u8 = 2;

/// The version of terms before that.
const FIRST_VERSION: u8 = 1;

/// The mechanism of terms that name none.
const DEFAULT_MECHANISM: &str = "staged";

/// What the holder decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The form they are written in: 1 without [`Terms::need`], 2 with it, 3 with
    /// [`Terms::options`] as well.
    #[serde(default = "first_version", skip_serializing_if = "is_first_version")]
    pub version: u8,
    /// The table's public description.
    pub schema: Schema,
    /// The whole privacy budget of the dataset.
    pub epsilon: f64,
    /// Its delta.
    pub delta: f64,
    /// How synthetic tables will be made.
    pub mechanism: String,
    /// N: the table has at most so many records.
    pub record_bound: u64,
    /// Runs the budget is shared by, equally.
    pub runs: u32,
    /// Most bytes a model's junction tree may take.
    pub model_bytes: usize,
    /// Weight of the workload's pairs with the schema's target attribute, if it has one.
    pub target_weight: u32,
    /// What a run of the mechanism needs; absent until [`Terms::complete`] has filled it in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub need: Option<Need>,
    /// The mechanism's options, if not all of them are to be the default. Those that are left out
    /// have their default, until [`Terms::resolve`] has filled them in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub options: Option<Options>,
}

fn first_version() -> u8 {
    FIRST_VERSION
}

fn is_first_version(version: &u8) -> bool {
    *version == FIRST_VERSION
}

/// What follows from [`Terms`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Encryption parameters.
    pub set: ParameterSet,
    /// The dataset's budget.
    pub budget: Rho,
    /// What every run is about; its `rho` is one run's share of the budget.
    pub job: Job,
    /// Runs the budget is shared by.
    pub runs: u32,
    /// Noise of one run.
    pub run_ladder: LadderPlan,
}

/// A plan without what only a mechanism asks for: all that a service holds a dataset's requests
/// against, and quickly worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Encryption parameters.
    pub set: ParameterSet,
    /// The dataset's budget.
    pub budget: Rho,
    /// One run's share of the budget.
    pub run_budget: Rho,
    /// Runs the budget is shared by.
    pub runs: u32,
    /// Noise of one run.
    pub run_ladder: LadderPlan,
    /// Sizes of the table's attributes.
    pub domain: Domain,
    /// N: the table has at most so many records.
    pub record_bound: u64,
}

impl Terms {
    /// Terms of one run of the default mechanism, with the default model cap and no weights, to be
    /// completed.
    pub fn new(schema: Schema, epsilon: f64, delta: f64, record_bound: u64) -> Self {
        Self {
            version: FIRST_VERSION,
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
        }
    }

    /// The mechanism that they name, with its options.
    pub fn choice(&self) -> Choice<'_> {
        Choice {
            mechanism: &self.mechanism,
            options: self.options.as_ref(),
        }
    }

    /// The terms with all options of their mechanism, if they have any: what is left out is filled
    /// in, so that the terms mean the same if a later release has other defaults.
    ///
    /// # Errors
    /// A mechanism or an option that the catalogue does not know, by its name; a value that the
    /// option cannot have.
    pub fn resolve(mut self, catalogue: &dyn Catalogue) -> Result<Self, Error> {
        let options = catalogue.options(self.choice()).map_err(Error::Mechanism)?;
        self.options = self.options.map(|_| options);
        Ok(self)
    }

    /// The terms with what their mechanism needs, and [resolved](Terms::resolve); where they have it, it is held against what
    /// `catalogue` says.
    ///
    /// # Errors
    /// A mechanism that the catalogue does not know or that refuses the job, another need than the
    /// mechanism has, and what [`Terms::plan`] refuses beside the need.
    pub fn complete(self, catalogue: &dyn Catalogue) -> Result<Self, Error> {
        let mut terms = self.resolve(catalogue)?;
        let squares = catalogue.squares(terms.choice());
        let job = terms.job(squares.map_err(Error::Mechanism)?)?;
        let need = catalogue.need(terms.choice(), &job);
        let need = need.map_err(Error::Mechanism)?;
        if terms.need.is_some_and(|named| named != need) {
            return Err(Error::Terms(format!(
                "need: {} needs other noise than these terms say: leave the field out to have it \
                 filled in",
                terms.mechanism
            )));
        }
        terms.need = Some(need);
        terms.version = match terms.options {
            Some(_) => OPTIONS_VERSION,
            None => NEED_VERSION,
        };
        Ok(terms)
    }

    /// The terms as their holder chose them, without what was filled in; but options stay
    /// [resolved](Terms::resolve).
    #[must_use]
    pub fn choices(&self) -> Self {
        Self {
            version: FIRST_VERSION,
            need: None,
            ..self.clone()
        }
    }

    /// The plan, the same wherever it is worked out.
    ///
    /// # Errors
    /// As [`Terms::job`]; terms that are not complete, or of a version that this program does not
    /// know; values too large for every parameter set.
    pub fn plan(&self) -> Result<Plan, Error> {
        let need = self.named_need()?;
        let job = self.job(need.squares)?;
        let (set, run_ladder) = encryption(self.record_bound, &need)?;
        Ok(Plan {
            set,
            budget: accounting::rho(self.epsilon, self.delta)?,
            run_ladder,
            job,
            runs: self.runs,
        })
    }

    /// The plan's outline. Terms that were planned before have one.
    ///
    /// # Errors
    /// A budget that is none, no runs or too many; terms that are not complete, or of a version
    /// that this program does not know; values too large for every parameter set.
    pub fn outline(&self) -> Result<Outline, Error> {
        self.check_numbers()?;
        let budget = accounting::rho(self.epsilon, self.delta)?;
        let (set, run_ladder) = encryption(self.record_bound, &self.named_need()?)?;
        Ok(Outline {
            set,
            run_budget: budget.share(self.runs),
            budget,
            runs: self.runs,
            run_ladder,
            domain: self.schema.domain().clone(),
            record_bound: self.record_bound,
        })
    }

    fn named_need(&self) -> Result<Need, Error> {
        match (self.version, self.need, &self.options) {
            (NEED_VERSION, Some(need), None) | (OPTIONS_VERSION, Some(need), Some(_)) => Ok(need),
            (FIRST_VERSION..=OPTIONS_VERSION, Some(_), _) => Err(Error::Terms(format!(
                "options: version {OPTIONS_VERSION} of terms has them, and no other; these are of \
                 version {}: leave out version and need to have them filled in",
                self.version
            ))),
            (FIRST_VERSION..=OPTIONS_VERSION, None, _) => Err(Error::Terms(
                "need: these terms do not say what noise their mechanism needs: they were \
                 written by an earlier release, or not completed"
                    .to_owned(),
            )),
            (version, _, _) => Err(Error::Terms(format!(
                "version: these terms are of version {version}, and this program knows \
                 {FIRST_VERSION} to {OPTIONS_VERSION}: use a newer one"
            ))),
        }
    }

    /// What every run is about, at one run's share of the budget, for a mechanism that releases
    /// squared scores or not.
    ///
    /// # Errors
    /// A budget that is none, no runs or too many, a record bound or weight of zero, a domain or
    /// model cap that no mechanism can do with.
    pub fn job(&self, squares: bool) -> Result<Job, Error> {
        self.check_numbers()?;
        self.check_size()?;
        let budget = accounting::rho(self.epsilon, self.delta)?;
        let domain = self.schema.domain().clone();
        let mut job = Job::new(domain.clone(), budget.share(self.runs), self.record_bound);
        job.leak = leak(squares)?;
        job.model_bytes = self.model_bytes;
        if let Some(target) = self.schema.target()
            && self.target_weight > 1
        {
            job.workload = Workload::all_pairs_with_target(&domain, target, self.target_weight);
        }
        job.check()?;
        Ok(job)
    }

    fn check_numbers(&self) -> Result<(), Error> {
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

    /// Refuses what would keep a service busy before it is known to be possible.
    fn check_size(&self) -> Result<(), Error> {
        let domain = self.schema.domain();
        if domain.len() > MAX_ATTRIBUTES || domain.columns() > MAX_COLUMNS {
            return Err(Error::Terms(format!(
                "the schema has {} attributes and {} categories in all: at most {MAX_ATTRIBUTES} \
                 and {MAX_COLUMNS} can be planned for; leave columns out or use fewer bins",
                domain.len(),
                domain.columns()
            )));
        }
        Ok(())
    }
}

impl Plan {
    /// The parameters, with their tables.
    ///
    /// # Errors
    /// What their validation refuses.
    pub fn parameters(&self) -> Result<Parameters, Error> {
        Ok(Parameters::shared(self.set)?)
    }

    /// Noise of all runs: run r uses the pages from `r * run_ladder.pages()` on.
    ///
    /// # Errors
    /// More positions than a ladder has.
    pub fn ladder(&self) -> Result<LadderPlan, Error> {
        ladder_of_all(self.runs, self.run_ladder)
    }
}

impl Outline {
    /// The parameters, with their tables.
    ///
    /// # Errors
    /// What their validation refuses.
    pub fn parameters(&self) -> Result<Parameters, Error> {
        Ok(Parameters::shared(self.set)?)
    }

    /// Noise of all runs.
    ///
    /// # Errors
    /// More positions than a ladder has.
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

/// What releases are charged for the residual noise of their ciphertexts.
///
/// # Errors
/// Never: see [`ciphertext_leak`].
fn leak(squares: bool) -> Result<Leak, Error> {
    // Only P2 has room for squared scores.
    let set = if squares { &P2 } else { &P1 };
    Ok(Leak {
        ciphertext: ciphertext_leak()?,
        residues: set.plaintext_moduli.len(),
    })
}

/// Parameters and noise for one run over so many records at most.
///
/// # Errors
/// Values too large for every parameter set; a ladder past its limits.
pub fn encryption(record_bound: u64, need: &Need) -> Result<(ParameterSet, LadderPlan), Error> {
    let variance = UNIT_VARIANCE as f64 * need.ladder.largest_variance_units as f64;
    let noise = (NOISE_REACH * variance.sqrt()).ceil() as u128;
    let largest = need.largest_cell.saturating_add(noise);
    let set = ParameterSet::choose(record_bound, largest, need.squares)?;
    Ok((set, need.ladder.plan()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_synth::Mechanisms;

    fn terms() -> Terms {
        let json = r#"{"name":"t","columns":[
            {"name":"a","kind":"categorical","categories":["x","y"]},
            {"name":"b","kind":"numeric","min":0,"max":10,"bins":5}]}"#;
        let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
        Terms::new(schema, 1.0, 1e-9, 512)
    }

    fn plan(terms: &Terms) -> Result<Plan, Error> {
        terms.clone().complete(&Mechanisms)?.plan()
    }

    #[test]
    fn runs_share_the_budget_and_have_pages_of_their_own() {
        let one = plan(&terms()).unwrap();
        assert_eq!(one.ladder().unwrap(), one.run_ladder);
        let three = Terms { runs: 3, ..terms() };
        let three = plan(&three).unwrap();
        let shares = Rho::checked_sum([three.job.rho; 3]).unwrap();
        assert!(shares <= three.budget && three.budget == one.budget);
        let ladder = three.ladder().unwrap();
        assert_eq!(ladder.pages(), 3 * three.run_ladder.pages());
        assert_eq!(ladder.levels(), three.run_ladder.levels());
    }

    #[test]
    fn an_outline_has_the_plans_numbers() {
        let terms = Terms { runs: 3, ..terms() };
        assert!(terms.outline().is_err());
        let terms = terms.complete(&Mechanisms).unwrap();
        let (plan, outline) = (terms.plan().unwrap(), terms.outline().unwrap());
        assert_eq!(outline.set, plan.set);
        assert_eq!(
            (outline.budget, outline.run_budget),
            (plan.budget, plan.job.rho)
        );
        assert_eq!((outline.runs, outline.run_ladder), (3, plan.run_ladder));
        assert_eq!(outline.ladder().unwrap(), plan.ladder().unwrap());
        assert_eq!(outline.domain, plan.job.domain);
        assert_eq!(outline.record_bound, plan.job.record_bound);
        assert!(Terms { runs: 0, ..terms }.outline().is_err());
    }

    #[test]
    fn the_plan_survives_json_and_impossible_terms_are_refused() {
        let text = serde_json::to_string(&terms()).unwrap();
        let read: Terms = serde_json::from_str(&text).unwrap();
        assert_eq!(plan(&read).unwrap(), plan(&terms()).unwrap());
        let unknown = text.replacen('{', r#"{"extra":1,"#, 1);
        assert!(serde_json::from_str::<Terms>(&unknown).is_err());
        for runs in [0, MAX_RUNS + 1] {
            assert!(plan(&Terms { runs, ..terms() }).is_err());
        }
        for epsilon in [0.0, -1.0, f64::NAN] {
            assert!(plan(&Terms { epsilon, ..terms() }).is_err());
        }
        let record_bound = u64::MAX;
        let endless = Terms {
            record_bound,
            ..terms()
        };
        assert!(plan(&endless).is_err());
    }

    #[test]
    fn options_are_resolved_kept_and_refused_by_name() {
        let chosen = |text: &str| Terms {
            options: Some(serde_json::from_str(text).unwrap()),
            ..terms()
        };
        let complete = chosen(r#"{"beta":0.7}"#).complete(&Mechanisms).unwrap();
        assert_eq!(complete.version, OPTIONS_VERSION);
        let options = complete.options.as_ref().unwrap();
        assert_eq!(options["beta"], 0.7);
        assert!(options.len() > 1 && options.contains_key("block_cells"));
        let text = serde_json::to_string(&complete).unwrap();
        assert_eq!(serde_json::from_str::<Terms>(&text).unwrap(), complete);
        assert!(complete.plan().is_ok());
        // The same call again finds the same terms.
        let again = chosen(r#"{"beta":0.7}"#).resolve(&Mechanisms).unwrap();
        assert_eq!(again.choices(), complete.choices());
        assert_ne!(complete.choices(), terms());
        for (text, named) in [
            (r#"{"betta":1}"#, "betta"),
            (r#"{"beta":-1}"#, "beta"),
            (r#"{"resolutions":"all"}"#, "staged"),
        ] {
            let refused = chosen(text).complete(&Mechanisms).unwrap_err();
            assert!(matches!(refused, Error::Mechanism(_)), "{refused}");
            assert!(refused.to_string().contains(named), "{refused}");
        }
        for (version, options) in [
            (NEED_VERSION, complete.options.clone()),
            (OPTIONS_VERSION, None),
        ] {
            let mixed = Terms {
                version,
                options,
                ..complete.clone()
            };
            assert!(matches!(mixed.plan(), Err(Error::Terms(text)) if text.starts_with("options")));
        }
    }

    #[test]
    fn terms_without_their_need_are_completed_and_a_wrong_need_is_refused() {
        let first = serde_json::to_value(terms()).unwrap();
        assert!(first.get("version").is_none() && first.get("need").is_none());
        assert!(matches!(terms().plan(), Err(Error::Terms(text)) if text.starts_with("need")));
        let complete = terms().complete(&Mechanisms).unwrap();
        assert_eq!(complete.clone().complete(&Mechanisms).unwrap(), complete);
        assert_eq!(complete.choices(), terms());
        let text = serde_json::to_string(&complete).unwrap();
        assert_eq!(serde_json::from_str::<Terms>(&text).unwrap(), complete);
        let mut less = complete.clone();
        if let Some(need) = &mut less.need {
            need.ladder.cells -= 1;
        }
        // A service that knows no mechanism can plan with it; whoever knows one refuses it.
        assert!(less.plan().is_ok());
        assert!(less.complete(&Mechanisms).is_err());
        let newer = Terms {
            version: OPTIONS_VERSION + 1,
            ..complete
        };
        assert!(matches!(newer.plan(), Err(Error::Terms(text)) if text.starts_with("version")));
        for mechanism in ["aim", "nothing"] {
            let mechanism = mechanism.to_owned();
            let refused = Terms {
                mechanism,
                ..terms()
            }
            .complete(&Mechanisms);
            assert!(matches!(refused, Err(Error::Mechanism(_))));
        }
    }
}
