//! Columns with the same text in every record.

use std::collections::BTreeMap;

/// Groups of columns that had the same text in every record so far.
#[derive(Debug)]
pub(crate) struct Equal {
    /// Groups of two columns or more, in order.
    groups: Vec<Vec<usize>>,
}

impl Equal {
    /// Starts with all columns in one group.
    pub(crate) fn new(columns: usize) -> Self {
        let all: Vec<usize> = (0..columns).collect();
        Self {
            groups: Vec::from_iter(Some(all).filter(|all| all.len() > 1)),
        }
    }

    /// Looks at the texts of a record.
    pub(crate) fn see(&mut self, texts: &[&str]) {
        let text = |column: &usize| texts.get(*column).copied().unwrap_or("");
        let is_even = |group: &Vec<usize>| {
            let first = group.first().map_or("", text);
            group.iter().all(|column| text(column) == first)
        };
        if self.groups.iter().all(is_even) {
            return;
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for group in &self.groups {
            let mut by_text: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for column in group {
                by_text.entry(text(column)).or_default().push(*column);
            }
            groups.extend(by_text.into_values().filter(|group| group.len() > 1));
        }
        groups.sort_unstable();
        self.groups = groups;
    }

    /// Returns the groups of two columns or more, each in the order of the columns.
    pub(crate) fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_equal_until_a_record_differs() {
        let mut equal = Equal::new(5);
        equal.see(&["a", "a", "b", "a", "b"]);
        assert_eq!(equal.groups(), [vec![0, 1, 3], vec![2, 4]]);
        equal.see(&["", "", "", "x", ""]);
        assert_eq!(equal.groups(), [vec![0, 1], vec![2, 4]]);
        equal.see(&["a", "b", "c", "d", "e"]);
        assert!(equal.groups().is_empty());
        assert!(Equal::new(1).groups().is_empty());
    }
}
