//! What many parties' records were used for before, told in a few lines: with thousands of parties nobody reads an
//! account of each, nor answers a question about it.

use std::{fmt, fmt::Write as _, path::Path, path::PathBuf};

use super::{
    Account, Cost, Neighbours, Unit, of_a_party, of_a_record, party_epsilon, record_epsilon,
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

/// A party's table, and what its records cost before this run and with it.
type Told<'a> = (&'a str, f64, f64);

impl Summary<'_> {
    /// The parties that pay least and most, this run included.
    fn ends(&self, epsilon: impl Fn(&[&Cost]) -> f64) -> Option<[Told<'_>; 2]> {
        let told = self.used.iter().map(|Used { name, account }| {
            let before: Vec<&Cost> = account.before.iter().map(|entry| &entry.cost).collect();
            let with_this: Vec<&Cost> = before.iter().copied().chain([&account.next]).collect();
            (name.as_str(), epsilon(&before), epsilon(&with_this))
        });
        let told: Vec<Told<'_>> = told.collect();
        let least = told.iter().min_by(|a, b| a.2.total_cmp(&b.2))?;
        let most = told.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
        Some([*least, *most])
    }

    fn write_ends(
        &self,
        f: &mut fmt::Formatter<'_>,
        of: &str,
        ends: Option<[Told<'_>; 2]>,
    ) -> fmt::Result {
        let Some(
            [
                (least, least_before, least_all),
                (most, most_before, most_all),
            ],
        ) = ends
        else {
            return Ok(());
        };
        if self.short {
            return write!(f, " with this epsilon {most_all:.3} at most {of};");
        }
        let (least, most) = (shown(least), shown(most));
        write!(
            f,
            "\n  least {least}: together epsilon {least_before:.3}, with this {least_all:.3}\
             \n  most {most}: together epsilon {most_before:.3}, with this {most_all:.3}\
             \n  {of}"
        )
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delta = self.used.first().map_or(0.0, |used| used.account.delta);
        write!(
            f,
            "the records of {} of {} parties were used before, and what they cost adds up at delta {delta:e}:",
            self.used.len(),
            self.parties,
        )?;
        let accounts = self.used.iter().map(|used| &used.account);
        let all = accounts.flat_map(|account| {
            let before = account.before.iter().map(|entry| &entry.cost);
            before.chain([&account.next])
        });
        let all: Vec<&Cost> = all.collect();
        let keeps = |unit| all.iter().any(|cost| cost.keeps() == unit);
        // Of one kind of record for all, so that they can be compared.
        let neighbours = Neighbours::of(&all);
        if keeps(Unit::Record) {
            let ends = self.ends(|costs| record_epsilon(costs, neighbours, delta));
            self.write_ends(f, &of_a_record(&all), ends)?;
        }
        if keeps(Unit::Party) {
            let ends = self.ends(|costs| party_epsilon(costs, delta));
            self.write_ends(f, of_a_party(&all), ends)?;
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
