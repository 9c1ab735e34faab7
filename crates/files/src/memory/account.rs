//! Shows a holder the privacy cost of some records.

use std::fmt;

use fhaim_domain::counted;

use super::{
    Earlier, Entry, Use,
    cost::{Total, Unit, UseCost, decimals_up, digits_up},
};
use crate::shown;

/// The costs of earlier uses of some records, and of the next one.
pub(super) struct Account<'a> {
    pub before: &'a [Earlier],
    pub next: UseCost,
    pub delta: f64,
}

/// Total cost before a use and with it, for one unit.
#[derive(Clone, Copy)]
pub(super) struct Told {
    pub before: Total,
    pub with_this: Total,
}

impl Account<'_> {
    /// Returns the costs of all uses, the next one last.
    pub fn costs(&self) -> impl Iterator<Item = &UseCost> {
        let before = self.before.iter().map(|earlier| &earlier.entry.cost);
        before.chain([&self.next])
    }

    /// Returns the total cost of all uses, for one unit.
    pub fn told(&self, unit: Unit) -> Told {
        let costs: Vec<&UseCost> = self.costs().collect();
        let before = &costs[..self.before.len()];
        Told {
            before: Total::of(before, unit, self.delta),
            with_this: Total::of(&costs, unit, self.delta),
        }
    }
}

/// Returns the units of some costs, in the order of [`Unit::ALL`].
pub(super) fn units(costs: &[&UseCost]) -> Vec<Unit> {
    let is_used = |unit: &Unit| costs.iter().any(|cost| cost.unit == *unit);
    Unit::ALL.into_iter().filter(is_used).collect()
}

/// Describes the uses that a total leaves out.
pub(super) fn left_out(uncounted: usize) -> String {
    match uncounted {
        0 => String::new(),
        _ => format!(
            "; not including {} with another privacy unit",
            counted(uncounted, "use")
        ),
    }
}

/// From this share on, records that were used count as all records: some may have been added or corrected since.
const ALL: f64 = 0.9;

/// Describes a share of the records, which is an estimate.
fn records(share: f64) -> String {
    match (100.0 * share).round() as u32 {
        _ if share >= ALL => "these records".to_owned(),
        45..=55 => "about half of these records".to_owned(),
        percent => format!("about {}% of these records", percent.max(1)),
    }
}

impl fmt::Display for Account<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.before.iter().map(|earlier| earlier.share);
        write!(
            f,
            "{} were used before, and the privacy costs add up:",
            records(most.fold(0.0, f64::max))
        )?;
        for Earlier { entry, share } in self.before {
            write!(f, "\n  {entry}")?;
            if *share < ALL {
                write!(f, ", of {}", records(*share))?;
            }
        }
        let costs: Vec<&UseCost> = self.costs().collect();
        for unit in units(&costs) {
            let Told { before, with_this } = self.told(unit);
            let left_out = left_out(with_this.uncounted);
            write!(
                f,
                "\nfor {unit}: {before} so far, {with_this} with this use{left_out}"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = shown(&self.cost.program);
        match &self.used_for {
            Use::Dataset { id, server } => write!(
                f,
                "dataset {id} at {}: {} for all its runs",
                shown(server),
                self.cost
            ),
            Use::Draft { out } => write!(
                f,
                "a schema drafted privately by {program}, {}: {}",
                shown(out),
                self.cost
            ),
            Use::Run { out, .. } => {
                write!(f, "a run of {program}, into {}: {}", shown(out), self.cost)
            }
        }
    }
}

impl fmt::Display for UseCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rho) = self.rho {
            write!(f, "rho {}", decimals_up(rho.to_f64(), 6))?;
            return match self.delta > 0.0 {
                true => write!(f, " and delta {}", digits_up(self.delta)),
                false => Ok(()),
            };
        }
        let total = Total::of(&[self], self.unit, self.delta);
        write!(f, "{total} for {}", self.unit)
    }
}
