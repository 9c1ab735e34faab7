//! Columns that are proposed as derived from another: equal columns, and columns that follow from categories or codes.

use std::collections::BTreeMap;

use fhaim_domain::{
    counted,
    form::{ColumnForm, KindForm},
};

use super::{
    Chance, MIN_EXPECTED,
    equal::Equal,
    follows::Follows,
    states::{State, States},
};
use crate::draft::{ProposedRule, RuleChange};
use crate::options::InferOptions;
use crate::profile::Cell;

/// What the columns are derived from.
pub(super) struct Derive<'a> {
    pub(super) columns: &'a [States<'a>],
    pub(super) equal: &'a Equal,
    pub(super) follows: &'a Follows,
    pub(super) options: &'a InferOptions,
    pub(super) chance: Chance,
}

/// The texts of a column by the values of another.
type Values = BTreeMap<String, String>;

impl Derive<'_> {
    /// Proposes derived columns, and marks them in `taken`.
    pub(super) fn propose(&self, taken: &mut [bool]) -> Vec<ProposedRule> {
        let equal = self.equal_columns(taken);
        let mut sources = self.sources(&equal);
        // A column that equals a derived one is derived from the same source.
        for (column, &original) in &equal {
            let source = match sources.get(&original) {
                Some((source, values)) => (*source, values.clone()),
                None => (original, None),
            };
            sources.insert(*column, source);
        }
        let mut rules = Vec::new();
        for (column, (source, values)) in sources {
            if let (Some(of), Some(from)) = (self.columns.get(column), self.columns.get(source)) {
                rules.push(rule(of, from, values));
                if let Some(taken) = taken.get_mut(column) {
                    *taken = true;
                }
            }
        }
        rules.sort_by_key(is_mapped);
        rules
    }

    /// Returns the columns that equal another one, with that column.
    fn equal_columns(&self, taken: &[bool]) -> BTreeMap<usize, usize> {
        let mut equal = BTreeMap::new();
        for group in self.equal.groups() {
            let usable = |column: &&usize| {
                let is_free = !taken.get(**column).copied().unwrap_or(true);
                self.columns.get(**column).is_some_and(|states| {
                    is_free && states.form.kind != KindForm::LeftOut && self.varies(states)
                })
            };
            let group: Vec<usize> = group.iter().filter(usable).copied().collect();
            let fixed = group.iter().find(|&&column| self.is_fixed(column));
            let Some(&original) = fixed.or(group.first()) else {
                continue;
            };
            let others = group.into_iter().filter(|&column| column != original);
            equal.extend(
                others
                    .filter(|&column| !self.is_fixed(column))
                    .map(|column| (column, original)),
            );
        }
        equal
    }

    /// Whether enough records differ from the usual value.
    fn varies(&self, states: &States<'_>) -> bool {
        let others = states.records.saturating_sub(states.usual);
        others >= self.options.shared_by && others as f64 >= MIN_EXPECTED
    }

    /// Whether a column cannot be derived: the target, and one that other columns are relative to.
    fn is_fixed(&self, column: usize) -> bool {
        let Some(name) = self.columns.get(column).map(States::name) else {
            return true;
        };
        let is_base = |states: &States<'_>| states.form.relative_to.as_deref() == Some(name);
        self.options.target.as_deref() == Some(name) || self.columns.iter().any(is_base)
    }

    /// Returns the source of each column that follows from another one, with its texts. No source is itself derived.
    fn sources(&self, equal: &BTreeMap<usize, usize>) -> BTreeMap<usize, (usize, Option<Values>)> {
        let columns = (0..self.columns.len()).filter(|column| !equal.contains_key(column));
        let columns: Vec<usize> = columns.collect();
        let mut follows: BTreeMap<usize, BTreeMap<usize, Values>> = BTreeMap::new();
        for &column in &columns {
            let from = columns.iter().filter(|&&source| source != column);
            let from = from.filter_map(|&source| Some((source, self.values(source, column)?)));
            let from: BTreeMap<usize, Values> = from.collect();
            if !from.is_empty() {
                follows.insert(column, from);
            }
        }
        let follow = |column: usize, source: usize| {
            follows
                .get(&column)
                .is_some_and(|from| from.contains_key(&source))
        };
        // Of two columns that follow from each other, one is the source.
        let precedes = |source: usize, column: usize| {
            follow(column, source)
                && (!follow(source, column) || self.rank(source) < self.rank(column))
        };
        let is_root = |column: usize| {
            self.is_fixed(column) || !columns.iter().any(|&source| precedes(source, column))
        };
        let mut sources = BTreeMap::new();
        for (&column, from) in follows.iter().filter(|(column, _)| !is_root(**column)) {
            let roots = from.iter().filter(|(source, _)| is_root(**source));
            let fewest = roots.min_by_key(|(source, values)| (values.len(), **source));
            if let Some((&source, values)) = fewest {
                sources.insert(column, (source, Some(values.clone())));
            }
        }
        sources
    }

    /// Orders columns that follow from each other, the source first: a column that cannot be derived, then the one with
    /// shorter values, as codes have.
    fn rank(&self, column: usize) -> (bool, usize, usize) {
        let states = self.columns.get(column);
        let values = states.into_iter().flat_map(|states| &states.states);
        let letters = values.map(|state| state.value.chars().count()).sum();
        (!self.is_fixed(column), letters, column)
    }

    /// Returns the texts of a column by the values of a source from which it follows, if a schema can say so and it does
    /// not follow by chance.
    fn values(&self, source: usize, column: usize) -> Option<Values> {
        let cells = self.follows.cells(source, column)?;
        let (from, to) = (self.columns.get(source)?, self.columns.get(column)?);
        if !from.is_listed() || !self.may_follow(to) || !self.varies(to) {
            return None;
        }
        let mut values = Values::new();
        for state in &from.states {
            let text = self.text(from, state, cells, to)?;
            values.insert(state.value.clone(), text.to_owned());
        }
        if from.form.nullable {
            values.entry(String::new()).or_default();
        }
        let listed = from.form.categories.as_ref().or(from.form.codes.as_ref())?;
        let is_whole = listed.iter().all(|value| values.contains_key(value));
        let repeated = from.records.saturating_sub(from.states.len() as u64) as f64;
        let differing = repeated * (1.0 - to.usual as f64 / to.records.max(1) as f64);
        (is_whole && self.chance.is_unlikely(differing)).then_some(values)
    }

    /// Returns the text of a column for a value of the source, with the cells that go with the source's cells.
    fn text<'t>(
        &self,
        from: &States<'_>,
        state: &State,
        cells: &[Option<Cell>],
        to: &'t States<'_>,
    ) -> Option<&'t str> {
        let cell = |cell: &Cell| cells.get(cell.place()?).copied().flatten();
        let is_missing = state.value.is_empty();
        // A value that the schema reads as missing, because it is not listed, may have any text.
        let mut read = (state.cells.iter())
            .filter(|cell| !is_missing || from.is_marker(**cell))
            .map(cell);
        let Some(first) = read.next() else {
            return Some("");
        };
        let all = read.all(|other| other == first);
        // A missing value with the text of another column belongs to a skipped question, and the question decides.
        let may_name = match is_missing {
            true => first.is_some_and(|cell| to.is_marker(cell)),
            false => state.records >= self.options.shared_by,
        };
        if all && may_name {
            return to.text(first?);
        }
        // Values that are too rare to be listed go with values that are too rare.
        let is_other = from.form.other.as_deref() == Some(&state.value);
        to.form.other.as_deref().filter(|_| is_other)
    }

    /// Whether a column may follow from another: its values are not listed, or the draft can list them in a rule.
    fn may_follow(&self, states: &States<'_>) -> bool {
        match states.form.kind {
            KindForm::Identifier | KindForm::Derived => false,
            // A column that its holder left out stays out.
            KindForm::LeftOut => !self.options.kinds.contains_key(states.name()),
            _ => true,
        }
    }
}

fn is_mapped(rule: &ProposedRule) -> bool {
    matches!(&rule.change, RuleChange::Column(form) if form.values.is_some())
}

/// Proposes that a column is derived.
fn rule(of: &States<'_>, from: &States<'_>, values: Option<Values>) -> ProposedRule {
    let (name, source) = (of.name().to_owned(), from.name().to_owned());
    let rule = match &values {
        Some(values) => {
            let named = values.keys().filter(|value| !value.is_empty());
            let number = counted(named.count(), "value");
            format!("{name:?} follows from {source:?} ({number})")
        }
        None => format!("{name:?} has the same value as {source:?}"),
    };
    let columns = vec![name.clone(), source.clone()];
    let may_miss = match &values {
        Some(values) => values.values().any(String::is_empty),
        None => from.form.nullable,
    };
    let form = ColumnForm {
        from: Some(source),
        values,
        ..ColumnForm::empty(name, KindForm::Derived, may_miss)
    };
    ProposedRule {
        columns,
        rule,
        records: from.records,
        change: RuleChange::Column(Box::new(form)),
    }
}
