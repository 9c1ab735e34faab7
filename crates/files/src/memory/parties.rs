//! A short report about earlier uses of many parties' records.
//!
//! With thousands of parties, nobody reads an account of each party or answers a question about it.

use std::{fmt, fmt::Write as _, path::Path, path::PathBuf};

use super::{
    account::{Account, Told, left_out, units},
    cost::Unit,
};
use crate::{home, shown, shown_path};

/// File in the history's folder with the account of each party. The latest run over many parties overwrites it.
const EACH: &str = "memory.parties.txt";

/// A party whose records were used before.
pub(super) struct Used<'a> {
    /// Name of its table.
    pub name: String,
    pub account: Account<'a>,
}

/// The report about all parties.
pub(super) struct Summary<'a> {
    pub used: &'a [Used<'a>],
    /// Number of all parties, whether their records were used before or not.
    pub parties: usize,
    /// The file with the account of each party, if it could be written.
    pub each: Option<PathBuf>,
    /// Whether to print one line.
    pub short: bool,
}

/// Writes the account of each party to a file that, like the whole history, only its owner can read.
///
/// Returns `None` if that fails: the history works without this file.
pub(super) fn each(used: &[Used<'_>], folder: &Path) -> Option<PathBuf> {
    let mut text = String::new();
    for Used { name, account } in used {
        writeln!(text, "{}: {account}\n", shown(name)).ok()?;
    }
    let path = folder.join(EACH);
    home::replace(&path, text.as_bytes()).ok()?;
    Some(path)
}

/// The name of a party's table, and the cost of its records.
type Named<'a> = (&'a str, Told);

impl Summary<'_> {
    /// Returns the parties with the lowest and the highest cost, including this run.
    fn ends(&self, unit: Unit) -> Option<[Named<'_>; 2]> {
        let told = self.used.iter();
        let told = told.map(|Used { name, account }| (name.as_str(), account.told(unit)));
        let told: Vec<Named<'_>> = told.collect();
        let by_epsilon = |a: &&Named<'_>, b: &&Named<'_>| {
            a.1.with_this.epsilon.total_cmp(&b.1.with_this.epsilon)
        };
        let least = told.iter().min_by(by_epsilon)?;
        let most = told.iter().max_by(by_epsilon)?;
        Some([*least, *most])
    }

    fn write_unit(&self, f: &mut fmt::Formatter<'_>, unit: Unit) -> fmt::Result {
        let Some([least, most]) = self.ends(unit) else {
            return Ok(());
        };
        let totals = [&least, &most].map(|(_, told)| told.with_this);
        let uncounted = left_out(
            totals
                .iter()
                .map(|total| total.uncounted)
                .max()
                .unwrap_or(0),
        );
        if self.short {
            return write!(
                f,
                " for {unit}: at most {} with this use{uncounted};",
                totals[1]
            );
        }
        write!(f, "\nfor {unit}{uncounted}:")?;
        for (end, (name, Told { before, with_this })) in [("lowest", least), ("highest", most)] {
            let name = shown(name);
            write!(
                f,
                "\n  {end} {name}: {before} so far, {with_this} with this use"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the records of {} of {} parties were used before, and the privacy costs add up:",
            self.used.len(),
            self.parties,
        )?;
        let costs = self.used.iter().flat_map(|used| used.account.costs());
        for unit in units(&costs.collect::<Vec<_>>()) {
            self.write_unit(f, unit)?;
        }
        let gap = if self.short { " " } else { "\n" };
        match &self.each {
            Some(path) => write!(
                f,
                "{gap}the costs of each party are in {}",
                shown_path(path)
            ),
            None => write!(
                f,
                "{gap}to see the cost of one party, run the command with its table only"
            ),
        }
    }
}
