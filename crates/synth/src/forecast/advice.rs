//! What a forecast says, and the changes of a run that would reach more.

use std::fmt::Write as _;

use fhaim_domain::Domain;
use fhaim_dp::{Rho, accounting};
use fhaim_release::{Holders, MechanismJob, Workload};

use super::precision::Precision;
use super::{Forecast, Goal, NOISE_LIMIT, RecordCount, Remedy, RunChange};
use crate::Mechanism;

/// Largest epsilon that a remedy names.
const LARGEST_EPSILON: f64 = 100.0;

/// Smallest share of the columns, and smallest number of values of a column, that a remedy keeps.
const LEAST_COLUMNS: f64 = 0.2;
const LEAST_VALUES: usize = 4;

/// Returns the changes that reach the next goal of a forecast.
pub(super) fn remedies(
    mechanism: &dyn Mechanism,
    job: &MechanismJob,
    forecast: &Forecast,
) -> Vec<Remedy> {
    let run = Run {
        mechanism,
        job,
        records: forecast.records.most(),
    };
    let Some(goal) = next_goal(forecast, run.measures_pairs()) else {
        return Vec::new();
    };
    let changes = [
        run.epsilon(forecast, goal).map(RunChange::Epsilon),
        run.columns(goal).map(RunChange::Columns),
        run.values(goal).map(RunChange::Values),
    ];
    let remedy = |change| Remedy { goal, change };
    changes.into_iter().flatten().map(remedy).collect()
}

/// Returns the first goal that a forecast misses.
fn next_goal(forecast: &Forecast, measures_pairs: bool) -> Option<Goal> {
    let pairs = &forecast.pairs;
    if forecast.noisy_columns().next().is_some() {
        return Some(Goal::Columns);
    }
    if !measures_pairs {
        return None;
    }
    if pairs.above_noise < connecting(forecast.columns.len(), pairs.count) {
        return Some(Goal::StrongPairs);
    }
    (pairs.above_noise < pairs.count).then_some(Goal::AllPairs)
}

/// Returns the number of pairs that connect all columns, at most all pairs.
fn connecting(columns: usize, pairs: usize) -> usize {
    columns.saturating_sub(1).min(pairs)
}

/// A run whose inputs may be changed.
struct Run<'a> {
    mechanism: &'a dyn Mechanism,
    job: &'a MechanismJob,
    records: u64,
}

impl Run<'_> {
    fn measures_pairs(&self) -> bool {
        let plan = self.mechanism.budget_plan(self.job);
        plan.is_some_and(|plan| plan.measures_pairs())
    }

    /// Whether a run of a job reaches a goal.
    fn reaches(&self, job: &MechanismJob, goal: Goal) -> bool {
        let Some(plan) = self.mechanism.budget_plan(job) else {
            return false;
        };
        let precision = Precision::new(&plan, job, self.records);
        let attributes = job.domain.coarse_attributes();
        if goal == Goal::Columns {
            return (attributes.iter()).all(|&a| precision.column(a).error <= NOISE_LIMIT);
        }
        let pairs = precision.pairs();
        pairs.above_noise
            >= match goal {
                Goal::AllPairs => pairs.count,
                _ => connecting(attributes.len(), pairs.count),
            }
    }

    /// Returns the smallest larger epsilon of two digits that reaches a goal.
    fn epsilon(&self, forecast: &Forecast, goal: Goal) -> Option<f64> {
        let share = self.job.rho.to_f64() / rho(forecast.epsilon, forecast.delta)?;
        let larger: Vec<f64> = (-9..2)
            .flat_map(|power| (10..100).map(move |digits| (digits, power)))
            .map(|(digits, power)| rounded(digits, power))
            .filter(|&epsilon| epsilon > forecast.epsilon)
            .chain([LARGEST_EPSILON])
            .collect();
        let reached = |&epsilon: &f64| {
            let rho = rho(epsilon, forecast.delta).map(|rho| rho * share);
            let rho = rho.and_then(|rho| Rho::from_f64_down(rho).ok());
            rho.is_some_and(|rho| {
                let job = MechanismJob {
                    rho,
                    ..self.job.clone()
                };
                self.reaches(&job, goal)
            })
        };
        let first = larger.partition_point(|epsilon| !reached(epsilon));
        larger.get(first).copied()
    }

    /// Returns the largest smaller number of columns that reaches a goal. Their sizes are spread
    /// evenly over those of all columns.
    fn columns(&self, goal: Goal) -> Option<usize> {
        let mut sizes = self.sizes();
        sizes.sort_unstable();
        let least = ((LEAST_COLUMNS * sizes.len() as f64).ceil() as usize).max(2);
        let some = |count: usize| {
            let place = |i: usize| (2 * i + 1) * sizes.len() / (2 * count);
            (0..count)
                .filter_map(|i| sizes.get(place(i)).copied())
                .collect()
        };
        let counts: Vec<usize> = (least..sizes.len()).collect();
        let reached = counts.partition_point(|&count| self.reaches(&self.with(some(count)), goal));
        counts.get(reached.checked_sub(1)?).copied()
    }

    /// Returns the largest limit on the numbers of values that reaches a goal.
    fn values(&self, goal: Goal) -> Option<usize> {
        let sizes = self.sizes();
        let limits: Vec<usize> = (LEAST_VALUES..sizes.iter().copied().max()?).collect();
        let limited = |limit: usize| sizes.iter().map(|&size| size.min(limit)).collect();
        let reached =
            limits.partition_point(|&limit| self.reaches(&self.with(limited(limit)), goal));
        limits.get(reached.checked_sub(1)?).copied()
    }

    fn sizes(&self) -> Vec<usize> {
        let attributes = self.job.domain.coarse_attributes();
        attributes
            .iter()
            .map(|&a| self.job.domain.size(a))
            .collect()
    }

    /// Returns the job with columns of other sizes.
    fn with(&self, sizes: Vec<usize>) -> MechanismJob {
        let domain = Domain::new(sizes);
        MechanismJob {
            workload: Workload::all_pairs(&domain),
            holders: of_columns(&self.job.holders, domain.len()),
            domain,
            ..self.job.clone()
        }
    }
}

/// Returns the holders of another number of columns. If holders have columns, the holder of each
/// one does not matter for a forecast.
fn of_columns(holders: &Holders, columns: usize) -> Holders {
    let records = Holders::of_records(holders.count(), holders.honest());
    let (Ok(records), Some(_)) = (records, holders.owners()) else {
        return holders.clone();
    };
    let owners = (0..columns as u32).map(|column| column % holders.count());
    // Fewer columns than holders have no owners; a forecast of so few columns is only a comparison.
    let with_columns = records.clone().with_columns(owners.collect());
    with_columns.unwrap_or(records)
}

fn rho(epsilon: f64, delta: f64) -> Option<f64> {
    Some(accounting::rho(epsilon, delta).ok()?.to_f64())
}

/// Returns digits / 10 * 10^power, as exactly as a number can be.
fn rounded(digits: i32, power: i32) -> f64 {
    let shift = power - 1;
    match shift < 0 {
        true => f64::from(digits) / 10f64.powi(-shift),
        false => f64::from(digits) * 10f64.powi(shift),
    }
}

/// Returns the forecast in one sentence.
pub(super) fn sentence(forecast: &Forecast) -> String {
    let bound = match forecast.records {
        RecordCount::Exactly(_) => "",
        RecordCount::AtMost(_) => "at most ",
    };
    let mut text = format!(
        "{bound}{}, {}, epsilon {}: expect {}",
        number_of(forecast.records.most() as usize, "record"),
        number_of(forecast.columns.len(), "column"),
        forecast.epsilon,
        expected(forecast)
    );
    let changes: Vec<String> = forecast.remedies.iter().map(change).collect();
    if let (Some(remedy), false) = (forecast.remedies.first(), changes.is_empty()) {
        let goal = match remedy.goal {
            Goal::Columns => "would keep all single columns",
            Goal::StrongPairs => "would keep the strong pairs",
            Goal::AllPairs => "would keep all pairs",
        };
        let _ = write!(text, "; {} {goal}", any_of(&changes));
    }
    text
}

/// Returns what a run can be expected to measure.
fn expected(forecast: &Forecast) -> String {
    let noisy = forecast.noisy_columns().count();
    let (all, pairs) = (forecast.columns.len(), &forecast.pairs);
    if forecast.is_only_noise() {
        return "only noise".to_owned();
    }
    let columns = match noisy {
        0 if all == 1 => "the column".to_owned(),
        0 => "all single columns".to_owned(),
        noisy => format!("{} of {all} single columns", all - noisy),
    };
    match pairs.above_noise {
        _ if pairs.count == 0 => columns,
        0 if noisy == 0 => "single columns only".to_owned(),
        0 => format!("{columns} only"),
        most if most == pairs.count => format!("{columns} and all pairs"),
        most => format!(
            "{columns} and at most {} of {} pairs",
            grouped(most),
            grouped(pairs.count)
        ),
    }
}

fn change(remedy: &Remedy) -> String {
    match remedy.change {
        RunChange::Epsilon(epsilon) => format!("epsilon {epsilon}"),
        RunChange::Columns(columns) => number_of(columns, "column"),
        RunChange::Values(values) => format!("at most {} per column", number_of(values, "value")),
    }
}

/// Joins alternatives: "a, b or c".
fn any_of(texts: &[String]) -> String {
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => texts.concat(),
    }
}

pub(super) fn number_of(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

/// Writes a number with a comma between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
