//! Total privacy cost of some records, for a statement to other people.

use super::{
    KnownRecords, Memory, Use,
    cost::{Total, Unit, UseCost},
    index::Index,
};

/// Total privacy cost of all known uses of some records, for a record added or removed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownSpending {
    /// Number of uses in the total.
    pub uses: usize,
    /// Epsilon of the uses together.
    pub epsilon: f64,
    /// Delta of the uses together.
    pub delta: f64,
    /// Number of further uses that bound nothing for a record added or removed.
    pub uncounted: usize,
}

impl KnownRecords {
    /// Returns the total cost of the uses of one table's records, or of many of them, with rhos converted at `delta`.
    /// Call it after the last use was remembered.
    ///
    /// `draft` is the cost of a private draft of the schema. It counts unless the history has a draft of these records
    /// at this cost.
    /// Returns `None` for the records of several tables, or if the history cannot be read.
    pub fn total(&self, delta: f64, draft: Option<UseCost>) -> Option<KnownSpending> {
        let [records] = self.identities.as_slice() else {
            return None;
        };
        let Memory { history, .. } = Memory::open().ok()?;
        let overlaps = Index::of(&history).overlaps(records);
        let uses = (history.uses.iter()).filter(|entry| overlaps.contains_key(&entry.table));
        let has = |draft: &UseCost| {
            uses.clone()
                .any(|entry| matches!(entry.used_for, Use::Draft { .. }) && entry.cost == *draft)
        };
        let draft = draft.filter(|draft| !has(draft));
        let costs: Vec<&UseCost> = uses.map(|entry| &entry.cost).chain(&draft).collect();
        let total = Total::of(&costs, Unit::AddedOrRemoved, delta);
        Some(KnownSpending {
            uses: costs.len().saturating_sub(total.uncounted),
            epsilon: total.epsilon,
            delta: total.delta,
            uncounted: total.uncounted,
        })
    }
}
