//! What many parties' records were used for before, told in a few lines: with thousands of parties nobody reads an
//! account of each, nor answers a question about it.

use std::{fmt, fmt::Write as _, path::Path, path::PathBuf};

use super::{
    account::{Account, Told, left_out, units},
    cost::Unit,
};
use crate::{home, shown, shown_path};

/// Where the account of each party is, in the memory's folder: the one of the last run over many that was begun.
const EACH: &str = "memory.parties.txt";

/// A party whose records were used before.
pub(super) struct Used<'a> {
    /// Its table.
    pub name: String,
    pub account: Account<'a>,
}

/// What all parties were told of.
pub(super) struct Summary<'a> {
    pub used: &'a [Used<'a>],
    /// All parties, used before or not.
    pub parties: usize,
    /// The file with the account of each, if it could be written.
    pub each: Option<PathBuf>,
    pub short: bool,
}

/// Writes the account of each party to a file, its owner's alone like all that is remembered; nothing where that fails,
/// which takes nothing from what the memory is for.
pub(super) fn each(used: &[Used<'_>], folder: &Path) -> Option<PathBuf> {
    let mut text = String::new();
    for Used { name, account } in used {
        writeln!(text, "{}: {account}\n", shown(name)).ok()?;
    }
    let path = folder.join(EACH);
    home::replace(&path, text.as_bytes()).ok()?;
    Some(path)
}

/// The name of a party's table, and what its records cost.
type Named<'a> = (&'a str, Told);

impl Summary<'_> {
    /// The parties that pay least and most, this run included.
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
                " for {unit}: {} at most with this{uncounted};",
                totals[1]
            );
        }
        write!(f, "\nfor {unit}{uncounted}:")?;
        for (end, (name, Told { before, with_this })) in [("least", least), ("most", most)] {
            let name = shown(name);
            write!(
                f,
                "\n  {end} {name}: {before} so far, {with_this} with this"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the records of {} of {} parties were used before, and what they cost adds up:",
            self.used.len(),
            self.parties,
        )?;
        let costs = self.used.iter().flat_map(|used| used.account.costs());
        for unit in units(&costs.collect::<Vec<_>>()) {
            self.write_unit(f, unit)?;
        }
        let gap = if self.short { " " } else { "\n" };
        match &self.each {
            Some(path) => write!(f, "{gap}each party's account is in {}", shown_path(path)),
            None => write!(
                f,
                "{gap}a run over one party's table alone says what that one has cost"
            ),
        }
    }
}
