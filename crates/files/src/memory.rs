//! What this machine remembers of the records that its programs have used.
//!
//! Two datasets over the same records, or two runs, add up, and no service can know that they are
//! the same: only their holder can. A file is known again by its HMAC-SHA256 (RFC 2104) under a
//! random key that never leaves this folder, so that what is kept tells nobody who lacks the key
//! whether a guessed table was used. Nothing of this is ever sent.

mod parties;

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use fhaim_api::Digest;
use fhaim_domain::counted;
use fhaim_dp::{
    Rho, accounting,
    rdp::{self, Curve, Mixing, SampledGaussian},
};
use hmac::{Hmac, Mac};
use rand::{TryRngCore, rngs::OsRng};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::{
    Error,
    ask::{ask, can_ask},
    data::Data,
    home,
    memory::parties::{Summary, Used, each},
    note, shown,
};

const KEY_BYTES: usize = 32;

/// What records were used for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Use {
    /// A dataset at a service.
    Dataset {
        /// Its identifier.
        id: Uuid,
        /// Its generation service.
        server: String,
    },
    /// A schema drafted privately.
    Draft {
        /// The schema.
        out: String,
    },
    /// A run in one process.
    Run {
        /// The synthetic table.
        out: String,
    },
}

/// What a use costs.
#[derive(Clone, Debug, PartialEq)]
pub enum Cost {
    /// Of a record that is added or removed: the whole budget of a dataset; what a run spent.
    Rho(Rho),
    /// Of a record that is replaced by another of its class, which is all that DP-CDA hides. No rho bounds it.
    Mixing(Mixing),
    /// Of what is added or removed: networks that were trained with noise in each step.
    Gan(Noised),
}

/// Training with noise in each step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noised {
    /// Whose budget it kept.
    pub keeps: Unit,
    /// What it cost, by how much each party has: where records were dealt among parties, nobody knows whose a record was.
    pub one_of: Vec<SampledGaussian>,
}

/// Whom a budget protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A record that is there or not.
    Record,
    /// A party, with all of its records.
    Party,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Record => "record",
            Self::Party => "party",
        })
    }
}

impl From<Rho> for Cost {
    fn from(rho: Rho) -> Self {
        Self::Rho(rho)
    }
}

/// One use of some records.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "EntryForm", into = "EntryForm")]
struct Entry {
    records: Digest,
    used_for: Use,
    cost: Cost,
}

/// An entry as it is kept, with one of its three costs: releases that knew no other kept a rho, for DP-CDA too.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryForm {
    records: Digest,
    used_for: Use,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rho: Option<Rho>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mixing: Option<Mixing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gan: Option<Noised>,
}

impl TryFrom<EntryForm> for Entry {
    type Error = &'static str;

    fn try_from(form: EntryForm) -> Result<Self, Self::Error> {
        let cost = match (form.rho, form.mixing, form.gan) {
            (Some(rho), None, None) => Cost::Rho(rho),
            (None, Some(mixing), None) => Cost::Mixing(mixing),
            (None, None, Some(noised)) => Cost::Gan(noised),
            _ => return Err("a use has one of a rho, a mixing and a gan"),
        };
        Ok(Self {
            records: form.records,
            used_for: form.used_for,
            cost,
        })
    }
}

impl From<Entry> for EntryForm {
    fn from(entry: Entry) -> Self {
        let (mut rho, mut mixing, mut gan) = (None, None, None);
        match entry.cost {
            Cost::Rho(cost) => rho = Some(cost),
            Cost::Mixing(cost) => mixing = Some(cost),
            Cost::Gan(cost) => gan = Some(cost),
        }
        Self {
            records: entry.records,
            used_for: entry.used_for,
            rho,
            mixing,
            gan,
        }
    }
}

/// The memory's folder, its key and what is in it, which no other program changes meanwhile.
struct Memory {
    folder: PathBuf,
    key: Zeroizing<Vec<u8>>,
    entries: Vec<Entry>,
    lock: File,
}

/// Records that were looked up: a table's, or those of each party's table.
pub struct Records {
    digests: Vec<Digest>,
}

/// Tables that were looked up.
struct Found {
    folder: PathBuf,
    digests: Vec<Digest>,
    /// What each was used for.
    before: Vec<Vec<Entry>>,
}

/// What some records have cost, and what they will.
struct Account<'a> {
    before: &'a [Entry],
    next: Cost,
    delta: f64,
}

/// Looks a file up before its records are used, at a cost of `next`: says what it was used for
/// before, what that and `next` cost together, and asks whoever is there, unless `yes`. The use
/// for dataset `same` does not count: it is the one that goes on.
///
/// # Errors
/// [`Error::Declined`].
pub fn look_up(
    data: impl Into<Data>,
    next: impl Into<Cost>,
    delta: f64,
    same: Option<Uuid>,
    yes: bool,
) -> Result<Option<Records>, Error> {
    let Some(found) = Found::of([&data.into()], same) else {
        return Ok(None);
    };
    let used = found.before.first().filter(|before| !before.is_empty());
    if let Some(before) = used {
        note(Account {
            before,
            next: next.into(),
            delta,
        });
        agree(yes)?;
    }
    Ok(Some(found.records()))
}

/// As [`look_up`], of the tables of several parties, each at a cost of its own: one remark on all of them, in a line if
/// it is to be `short`, and one question.
///
/// # Errors
/// [`Error::Declined`].
pub fn look_up_parties(
    parties: &[(Data, Cost)],
    delta: f64,
    (yes, short): (bool, bool),
) -> Result<Option<Records>, Error> {
    if let [(alone, next)] = parties {
        return look_up(alone, next.clone(), delta, None, yes);
    }
    let Some(found) = Found::of(parties.iter().map(|(data, _)| data), None) else {
        return Ok(None);
    };
    let used = (parties.iter().zip(&found.before)).filter(|(_, before)| !before.is_empty());
    let used = used.map(|((data, next), before)| Used {
        name: data.name(),
        account: Account {
            before,
            next: next.clone(),
            delta,
        },
    });
    let used: Vec<Used<'_>> = used.collect();
    if !used.is_empty() {
        note(Summary {
            each: each(&used, &found.folder),
            used: &used,
            parties: parties.len(),
            short,
        });
        agree(yes)?;
    }
    Ok(Some(found.records()))
}

/// Asks whoever is there, unless they said yes.
fn agree(yes: bool) -> Result<(), Error> {
    if !yes && can_ask() && !ask("Use them again?")? {
        return Err(Error::Declined);
    }
    Ok(())
}

/// Says which of some datasets, each with its rho, this machine does not remember, because another
/// machine made them: it cannot tell over which records.
pub fn tell_of_unknown(datasets: impl Iterator<Item = (Uuid, f64)>) {
    let Ok(memory) = Memory::open() else {
        return; // the caller was told
    };
    let unknown = datasets.filter(|&(dataset, _)| !memory.knows(dataset));
    let unknown: Vec<String> = unknown
        .map(|(dataset, rho)| format!("  dataset {dataset}: rho {rho:.6} in all its runs"))
        .collect();
    if unknown.is_empty() {
        return;
    }
    note(format_args!(
        "of {} with this schema it is not remembered here over which records; over these, what \
         they cost adds up:\n{}",
        counted(unknown.len(), "other dataset"),
        unknown.join("\n")
    ));
}

impl Found {
    /// Looks tables up; nothing, with a remark, where that cannot be done: the memory is a help, and without it everything
    /// else works.
    fn of<'a>(tables: impl IntoIterator<Item = &'a Data>, same: Option<Uuid>) -> Option<Self> {
        let found = Self::read(tables, same).map_err(|error| {
            note(format_args!(
                "whether these records were used before is not known, and this use will not be remembered: {error}. Put the \
                 file back from a copy, or move it away to begin anew"
            ));
        });
        found.ok()
    }

    fn read<'a>(
        tables: impl IntoIterator<Item = &'a Data>,
        same: Option<Uuid>,
    ) -> Result<Self, Error> {
        let Memory {
            folder,
            key,
            entries,
            lock,
        } = Memory::open()?;
        // Other programs need not wait until all tables are read.
        drop(lock);
        let digests = tables.into_iter().map(|table| digest(&key, table));
        let digests = digests.collect::<Result<Vec<_>, _>>()?;
        let mut uses: HashMap<Digest, Vec<Entry>> = HashMap::new();
        for entry in entries {
            if !entry.is_of(same) {
                uses.entry(entry.records).or_default().push(entry);
            }
        }
        // Two parties may have the same records.
        let before = digests.iter().map(|digest| uses.get(digest).cloned());
        Ok(Self {
            folder,
            before: before.map(Option::unwrap_or_default).collect(),
            digests,
        })
    }

    fn records(self) -> Records {
        Records {
            digests: self.digests,
        }
    }
}

impl Records {
    /// Remembers what the records are used for, and what that costs.
    pub fn remember(&self, used_for: &Use, cost: impl Into<Cost>) {
        self.remember_each(used_for, [Some(cost.into())]);
    }

    /// As [`Records::remember`], of parties' tables, in their order, each at its own cost, if it has one: all of them at
    /// once, so that a program which is killed meanwhile remembers all or none.
    pub fn remember_each(&self, used_for: &Use, costs: impl IntoIterator<Item = Option<Cost>>) {
        let uses = self.digests.iter().zip(costs);
        let entries = uses.filter_map(|(&records, cost)| {
            Some(Entry {
                records,
                used_for: used_for.clone(),
                cost: cost?,
            })
        });
        let remembered = Memory::open().and_then(|memory| memory.add(entries.collect()));
        if let Err(error) = remembered {
            note(format_args!(
                "that these records were used is not remembered: {error}"
            ));
        }
    }
}

impl Entry {
    /// Whether it is that of a dataset.
    fn is_of(&self, dataset: Option<Uuid>) -> bool {
        matches!(self.used_for, Use::Dataset { id, .. } if Some(id) == dataset)
    }
}

impl Memory {
    fn open() -> Result<Self, Error> {
        let folder = home::made(home::memory()?)?;
        let lock = home::lock(&folder.join("memory.lock"))?;
        let path = folder.join("memory.json");
        let entries: Vec<Entry> = match home::read(&path)? {
            Some(text) => serde_json::from_slice(&text).map_err(|error| Error::Content {
                path,
                problem: error.to_string(),
            })?,
            None => Vec::new(),
        };
        let key = key(&folder.join("memory.key"), entries.is_empty())?;
        Ok(Self {
            folder,
            key,
            entries,
            lock,
        })
    }

    fn knows(&self, dataset: Uuid) -> bool {
        self.entries.iter().any(|entry| entry.is_of(Some(dataset)))
    }

    fn add(mut self, new: Vec<Entry>) -> Result<(), Error> {
        for entry in new {
            let is_dataset = matches!(entry.used_for, Use::Dataset { .. });
            let is_known = |e: &Entry| e.records == entry.records && e.used_for == entry.used_for;
            // A dataset is paid for once, however often its upload is gone on with.
            if !(is_dataset && self.entries.iter().any(is_known)) {
                self.entries.push(entry);
            }
        }
        let path = self.folder.join("memory.json");
        let mut text = serde_json::to_vec_pretty(&self.entries).map_err(|error| Error::Write {
            path: path.clone(),
            source: error.into(),
        })?;
        text.push(b'\n');
        home::replace(&path, &text)
    }
}

/// A table's digest under this machine's key.
fn digest(key: &[u8], data: &Data) -> Result<Digest, Error> {
    // Keys of any length are taken: this cannot fail.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| Error::NoRandomness)?;
    let mut text = data.open()?;
    let mut piece = Zeroizing::new(vec![0; 1 << 16]);
    loop {
        match text.read(&mut piece).map_err(|source| data.fault(source))? {
            0 => return Ok(Digest(mac.finalize().into_bytes().into())),
            bytes => mac.update(&piece[..bytes]),
        }
    }
}

/// The key, made where there is none yet and nothing is remembered under one.
fn key(path: &Path, is_new: bool) -> Result<Zeroizing<Vec<u8>>, Error> {
    match home::read(path)?.map(Zeroizing::new) {
        Some(key) if key.len() == KEY_BYTES => return Ok(key),
        None if is_new => {}
        other => {
            let what = match other {
                Some(_) => "it is not the key that it was",
                None => "it is not there any more",
            };
            let problem = format!(
                "{what}, and without it no record is known again; put it back, or remove it and memory.json \
                 to begin anew and know nothing of before"
            );
            return Err(Error::Content {
                path: path.to_owned(),
                problem,
            });
        }
    }
    let mut key = Zeroizing::new(vec![0; KEY_BYTES]);
    OsRng
        .try_fill_bytes(&mut key)
        .map_err(|_| Error::NoRandomness)?;
    home::replace(path, &key)?;
    Ok(key)
}

impl fmt::Display for Account<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "these records were used before, and what they cost adds up:"
        )?;
        for entry in self.before {
            self.write_entry(f, entry)?;
        }
        let before: Vec<&Cost> = self.before.iter().map(|entry| &entry.cost).collect();
        let with_this: Vec<&Cost> = before.iter().copied().chain([&self.next]).collect();
        if with_this.iter().all(|cost| matches!(cost, Cost::Rho(_))) {
            return match (sum(&before), sum(&with_this)) {
                (Some(so_far), Some(with_this)) => self.write_rhos(f, so_far, with_this),
                _ => f.write_str("together more than any budget"),
            };
        }
        let keeps = |unit| with_this.iter().any(|cost| cost.keeps() == unit);
        if keeps(Unit::Record) {
            self.write_record(f, &before, &with_this)?;
        }
        if keeps(Unit::Party) {
            if keeps(Unit::Record) {
                writeln!(f)?;
            }
            self.write_party(f, &before, &with_this)?;
        }
        Ok(())
    }
}

impl Account<'_> {
    fn write_entry(&self, f: &mut fmt::Formatter<'_>, entry: &Entry) -> fmt::Result {
        let (delta, one) = (self.delta, &[&entry.cost]);
        let cost = match &entry.cost {
            Cost::Rho(rho) => format!("rho {:.6}", rho.to_f64()),
            Cost::Mixing(_) => {
                let epsilon = record_epsilon(one, Neighbours::Replaced, delta);
                format!("DP-CDA, epsilon {epsilon:.3} at delta {delta:e}")
            }
            Cost::Gan(Noised { keeps, .. }) => {
                let epsilon = match keeps {
                    Unit::Record => record_epsilon(one, Neighbours::Added, delta),
                    Unit::Party => party_epsilon(one, delta),
                };
                format!("a GAN, epsilon {epsilon:.3} of a {keeps} at delta {delta:e}")
            }
        };
        match &entry.used_for {
            Use::Dataset { id, server } => {
                let server = shown(server);
                writeln!(f, "  dataset {id} at {server}: {cost} in all its runs")
            }
            Use::Draft { out } => {
                let out = shown(out);
                writeln!(f, "  a schema drafted privately, {out}: {cost}")
            }
            Use::Run { out } => writeln!(f, "  a run here, into {}: {cost}", shown(out)),
        }
    }

    fn write_rhos(&self, f: &mut fmt::Formatter<'_>, so_far: Rho, with_this: Rho) -> fmt::Result {
        write!(
            f,
            "together rho {:.6}, epsilon {:.3} at delta {:e}; with this rho {:.6}, epsilon {:.3}",
            so_far.to_f64(),
            epsilon(so_far, self.delta),
            self.delta,
            with_this.to_f64(),
            epsilon(with_this, self.delta),
        )
    }

    /// What all of it costs a record, and of which neighbours that is.
    fn write_record(
        &self,
        f: &mut fmt::Formatter<'_>,
        before: &[&Cost],
        with_this: &[&Cost],
    ) -> fmt::Result {
        let neighbours = Neighbours::of(with_this);
        let [so_far, total] =
            [before, with_this].map(|costs| record_epsilon(costs, neighbours, self.delta));
        write!(
            f,
            "together epsilon {so_far:.3} at delta {:e}; with this epsilon {total:.3}: {}",
            self.delta,
            of_a_record(with_this)
        )
    }

    /// What costs a party something, which is not all of it.
    fn write_party(
        &self,
        f: &mut fmt::Formatter<'_>,
        before: &[&Cost],
        with_this: &[&Cost],
    ) -> fmt::Result {
        let [so_far, total] = [before, with_this].map(|costs| party_epsilon(costs, self.delta));
        write!(
            f,
            "together epsilon {so_far:.3} at delta {:e}; with this epsilon {total:.3}: {}",
            self.delta,
            of_a_party(with_this)
        )
    }
}

/// Of which record costs are told, in words.
fn of_a_record(costs: &[&Cost]) -> String {
    let some = |kind: fn(&Cost) -> bool| costs.iter().any(|cost| kind(cost));
    let neighbours = Neighbours::of(costs);
    let mut words = match neighbours {
        Neighbours::Added => "of a record that is added or removed".to_owned(),
        Neighbours::Replaced => format!(
            "of a record that is replaced by another of its class, which is what DP-CDA hides, and for which a rho \
             counts {REPLACED} times"
        ),
    };
    if neighbours == Neighbours::Replaced
        && some(|cost| cost.keeps() == Unit::Record && matches!(cost, Cost::Gan(_)))
    {
        words.push_str(", and a GAN as one record that goes and one that comes");
    }
    if some(|cost| cost.keeps() == Unit::Party) {
        words.push_str(", and what keeps a party as one party that goes and one that comes");
    }
    words
}

/// What of costs is told of a party, in words.
fn of_a_party(costs: &[&Cost]) -> &'static str {
    match costs.iter().any(|cost| cost.keeps() == Unit::Record) {
        true => "of a party, in what keeps one: what keeps a record promises a party nothing",
        false => "of a party",
    }
}

impl Cost {
    fn keeps(&self) -> Unit {
        match self {
            Self::Rho(_) | Self::Mixing(_) => Unit::Record,
            Self::Gan(noised) => noised.keeps,
        }
    }
}

/// In what two tables differ, of which nobody is to tell which one was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbours {
    /// A record is added or removed.
    Added,
    /// A record is replaced by another of its class.
    Replaced,
}

impl Neighbours {
    /// Of which costs can be told: of one that only comes or goes nothing is known where DP-CDA is among them.
    fn of(costs: &[&Cost]) -> Self {
        match costs.iter().any(|cost| matches!(cost, Cost::Mixing(_))) {
            true => Self::Replaced,
            false => Self::Added,
        }
    }
}

/// By what a rho is multiplied for a record that is replaced: it goes, and another comes, and k records together cost
/// k^2 rho (Bun and Steinke 2016, Proposition 27).
const REPLACED: u64 = 4;

/// The sum of costs that are all a rho; nothing where some are not, or the sum is more than any budget.
fn sum(costs: &[&Cost]) -> Option<Rho> {
    let rhos = costs.iter().map(|cost| match cost {
        Cost::Rho(rho) => Some(*rho),
        Cost::Mixing(_) | Cost::Gan(_) => None,
    });
    Rho::checked_sum(rhos.collect::<Option<Vec<Rho>>>()?)
}

/// What all costs come to for a record.
fn record_epsilon(costs: &[&Cost], neighbours: Neighbours, delta: f64) -> f64 {
    let times = match neighbours {
        Neighbours::Added => 1,
        Neighbours::Replaced => REPLACED,
    };
    if let Some(rho) = sum(costs) {
        let rho = rho.checked_mul(times);
        return rho.map_or(f64::INFINITY, |rho| epsilon(rho, delta));
    }
    let curves = costs.iter().map(|cost| match (cost, neighbours) {
        (Cost::Rho(rho), _) => Some(Curve::Zcdp(rho.checked_mul(times)?)),
        (Cost::Mixing(mixing), Neighbours::Replaced) => Some(Curve::Mixing(mixing)),
        // Nothing is known of one that only comes or goes.
        (Cost::Mixing(_), Neighbours::Added) => None,
        (Cost::Gan(noised), _) => Some(match (noised.keeps, neighbours) {
            (Unit::Record, Neighbours::Added) => Curve::Sampled(&noised.one_of),
            // A record's party is another one without it.
            (Unit::Record, Neighbours::Replaced) | (Unit::Party, _) => {
                Curve::SampledTwice(&noised.one_of)
            }
        }),
    });
    composed(curves.collect(), delta)
}

/// What those that keep a party come to for one.
fn party_epsilon(costs: &[&Cost], delta: f64) -> f64 {
    let curves = costs.iter().filter_map(|cost| match cost {
        Cost::Gan(noised) if noised.keeps == Unit::Party => Some(Curve::Sampled(&noised.one_of)),
        Cost::Rho(_) | Cost::Mixing(_) | Cost::Gan(_) => None,
    });
    composed(Some(curves.collect()), delta)
}

/// What is kept of a run that cannot have been costs more than anything; nothing costs nothing.
fn composed(curves: Option<Vec<Curve<'_>>>, delta: f64) -> f64 {
    match curves {
        Some(curves) if curves.is_empty() => 0.0,
        Some(curves) => {
            rdp::composed_epsilon(&curves, delta).map_or(f64::INFINITY, |(epsilon, _)| epsilon)
        }
        None => f64::INFINITY,
    }
}

fn epsilon(rho: Rho, delta: f64) -> f64 {
    accounting::epsilon(rho, delta).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_in_rho_and_are_told_as_epsilon() {
        let rho = accounting::rho(1.0, 1e-9).unwrap();
        let entry = |out: &str| Entry {
            records: Digest::of(b"table"),
            used_for: Use::Run {
                out: out.to_owned(),
            },
            cost: rho.into(),
        };
        let told = Account {
            before: &[entry("a.csv"), entry("b.csv")],
            next: rho.into(),
            delta: 1e-9,
        };
        let told = told.to_string();
        let thrice = Rho::checked_sum([rho; 3]).unwrap();
        let epsilon = accounting::epsilon(thrice, 1e-9).unwrap();
        // Less than three times 1, more than its root.
        assert!((1.73..3.0).contains(&epsilon));
        assert!(told.contains("a.csv") && told.contains("b.csv"), "{told}");
        let with_this = format!("with this rho {:.6}, epsilon {epsilon:.3}", thrice.to_f64());
        assert!(told.ends_with(&with_this), "{told}");
    }

    fn mixing() -> Mixing {
        let mixing = Mixing {
            records: 4,
            clip: 1.0,
            deviation: 1.0,
            noised_labels: false,
            rate: 0.01,
            samples: 400,
        };
        let deviation = mixing.least_deviation(20.0, 1e-5).unwrap();
        Mixing {
            deviation,
            ..mixing
        }
    }

    /// Runs of DP-CDA compose as their own accountant has it, and a rho beside them counts four times.
    #[test]
    fn mixes_and_other_runs_are_told_for_a_record_that_is_replaced() {
        let mixing = mixing();
        let entry = |cost| Entry {
            records: Digest::of(b"table"),
            used_for: Use::Run {
                out: "a.csv".to_owned(),
            },
            cost,
        };
        let rho = Rho::from_f64_down(0.5).unwrap();
        let before = [entry(Cost::Mixing(mixing)), entry(rho.into())];
        let told = Account {
            before: &before,
            next: Cost::Mixing(mixing),
            delta: 1e-5,
        };
        let told = told.to_string();
        let four = rho.checked_mul(4).unwrap();
        let of = |mixings: &[Mixing]| {
            let curves = mixings.iter().map(Curve::Mixing);
            let curves: Vec<Curve<'_>> = curves.chain([Curve::Zcdp(four)]).collect();
            rdp::composed_epsilon(&curves, 1e-5).unwrap().0
        };
        let expected = format!(
            "together epsilon {:.3} at delta 1e-5; with this epsilon {:.3}:",
            of(&[mixing]),
            of(&[mixing; 2])
        );
        assert!(told.contains(&expected), "{expected} is not in: {told}");
        assert!(told.contains("into a.csv: DP-CDA, epsilon 20.000 at delta 1e-5\n"));
        assert!(told.contains("into a.csv: rho 0.500000\n"), "{told}");
        let impossible = Cost::Mixing(Mixing {
            rate: -1.0,
            ..mixing
        });
        let found = record_epsilon(&[&impossible], Neighbours::Replaced, 1e-5);
        assert_eq!(found, f64::INFINITY);
    }

    const STEP: SampledGaussian = SampledGaussian {
        rate: 0.1,
        multiplier: 2.0,
        steps: 100,
    };

    fn gan(keeps: Unit, one_of: &[SampledGaussian]) -> Cost {
        Cost::Gan(Noised {
            keeps,
            one_of: one_of.to_vec(),
        })
    }

    fn told(before: &[Cost], next: Cost) -> String {
        let entry = |cost: &Cost| Entry {
            records: Digest::of(b"table"),
            used_for: Use::Run {
                out: "g.bin".to_owned(),
            },
            cost: cost.clone(),
        };
        let before: Vec<Entry> = before.iter().map(entry).collect();
        let account = Account {
            before: &before,
            next,
            delta: 1e-5,
        };
        account.to_string()
    }

    /// Runs of networks that keep a record add up at every order, with a rho beside them.
    #[test]
    fn training_with_noise_adds_up_at_every_order() {
        let rho = Rho::from_f64_down(0.5).unwrap();
        let more = SampledGaussian {
            multiplier: 1.5,
            ..STEP
        };
        let one = gan(Unit::Record, &[STEP]);
        // Whose a record was is not known: with more noise or less.
        let either = gan(Unit::Record, &[STEP, more]);
        let found = told(&[one.clone(), rho.into()], either);
        let of = |curves: &[Curve<'_>]| rdp::composed_epsilon(curves, 1e-5).unwrap().0;
        let (one, two, rho) = ([STEP], [STEP, more], Curve::Zcdp(rho));
        let before = [Curve::Sampled(&one), rho];
        let all = [Curve::Sampled(&one), Curve::Sampled(&two), rho];
        let expected = format!(
            "together epsilon {:.3} at delta 1e-5; with this epsilon {:.3}: of a record that is added or removed",
            of(&before),
            of(&all)
        );
        assert!(
            found.ends_with(&expected),
            "{expected} does not end {found}"
        );
        let alone = format!("a GAN, epsilon {:.3} of a record at", of(&before[..1]));
        assert!(found.contains(&alone), "{found}");
        // Beside DP-CDA each of them is a record that goes and one that comes.
        let found = told(&[gan(Unit::Record, &one)], Cost::Mixing(mixing()));
        let both = of(&[Curve::Mixing(&mixing()), Curve::SampledTwice(&one)]);
        assert!(found.contains(&format!(
            "with this epsilon {both:.3}: of a record that is replaced"
        )));
        assert!(found.ends_with("and a GAN as one record that goes and one that comes"));
    }

    /// What keeps a party and what keeps a record are not the same: each has a sum of its own.
    #[test]
    fn parties_and_records_are_told_apart() {
        let (party, record) = (gan(Unit::Party, &[STEP]), gan(Unit::Record, &[STEP]));
        let of = |curves: &[Curve<'_>]| rdp::composed_epsilon(curves, 1e-5).unwrap().0;
        let (one, one_twice) = (Curve::Sampled(&[STEP]), Curve::SampledTwice(&[STEP]));
        let found = told(std::slice::from_ref(&party), party.clone());
        let expected = format!(
            "together epsilon {:.3} at delta 1e-5; with this epsilon {:.3}: of a party",
            of(&[one]),
            of(&[one; 2])
        );
        assert!(found.ends_with(&expected), "{found}");
        assert!(!found.contains("of a record"), "{found}");

        let found = told(&[party], record);
        let (record, party) = found.rsplit_once('\n').unwrap();
        let expected = format!(
            "together epsilon {:.3} at delta 1e-5; with this epsilon {:.3}: of a record that is added or removed, and",
            of(&[one_twice]),
            of(&[one_twice, one])
        );
        assert!(record.contains(&expected), "{expected} is not in {record}");
        let alone = of(&[one]);
        let expected = format!(
            "together epsilon {alone:.3} at delta 1e-5; with this epsilon {alone:.3}: of a party, in what keeps one: \
             what keeps a record promises a party nothing"
        );
        assert_eq!(party, expected);
    }

    /// Entries as they were kept before there was a second kind of cost, and as they are.
    #[test]
    fn entries_of_earlier_releases_are_read_and_written_as_they_were() {
        let digest = Digest::of(b"table");
        let old = format!(
            r#"{{"records":"{digest}","used_for":{{"run":{{"out":"a.csv"}}}},"rho":"604462909807314587353088"}}"#
        );
        let entry: Entry = serde_json::from_str(&old).unwrap();
        assert_eq!(entry.cost, Cost::Rho(Rho::ratio_up(1, 2).unwrap()));
        assert_eq!(serde_json::to_string(&entry).unwrap(), old);
        let mixed = Entry {
            cost: Cost::Mixing(mixing()),
            ..entry.clone()
        };
        let text = serde_json::to_string(&mixed).unwrap();
        let read: Entry = serde_json::from_str(&text).unwrap();
        let Cost::Mixing(read) = read.cost else {
            panic!("{text}")
        };
        // A double may be read one unit in its last place off, for which the accountant has room.
        assert!((read.deviation / mixing().deviation - 1.0).abs() < 1e-15);
        let trained = Entry {
            cost: gan(Unit::Party, &[STEP]),
            ..entry
        };
        let text = serde_json::to_string(&trained).unwrap();
        let kept =
            r#""gan":{"keeps":"party","one_of":[{"rate":0.1,"multiplier":2.0,"steps":100}]}"#;
        assert!(text.contains(kept), "{text}");
        let read: Entry = serde_json::from_str(&text).unwrap();
        assert_eq!(read.cost, trained.cost);
        let both = text.replace(kept, &format!(r#"{kept},"rho":"1""#));
        assert!(serde_json::from_str::<Entry>(&both).is_err());
        let neither = old.replace(r#","rho":"604462909807314587353088""#, "");
        assert!(serde_json::from_str::<Entry>(&neither).is_err());
        let unknown = old.replace("rho", "price");
        assert!(serde_json::from_str::<Entry>(&unknown).is_err());
    }
}
