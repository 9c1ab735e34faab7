//! Finds lists of values that hardly two records share. Such a list is copied from the records, and a schema is public.

use crate::{Field, Kind, Schema, Table, field::Meaning, limits::FEW_RECORDS};

/// With at least this number of listed values in a table, a list is near-unique if most of them are rare.
const MANY_VALUES: usize = 20;

/// With at least this number of listed values in a table, a list is near-unique if almost every record has its own.
const SEVERAL_VALUES: usize = 10;

/// A column whose listed values are almost all of single records. Private: the number is a statistic of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearUniqueList {
    /// Name of the column.
    pub column: String,
    /// Number of listed values that occur in the table.
    pub values: usize,
}

/// Finds the columns of a table whose list of categories or codes is near-unique. Almost every listed value occurs in
/// the table, and either most of them (at least 20) occur in fewer than five records each, or almost every record has
/// its own value (at least 10). A code book that has many codes which do not occur is not near-unique.
///
/// ```
/// use fhaim_domain::{ReadOptions, Schema, near_unique_lists, read_csv};
///
/// let names: Vec<String> = (0..40).map(|number| format!("name {number}")).collect();
/// let schema = serde_json::json!({"name": "t", "columns": [
///     {"name": "surname", "kind": "categorical", "categories": names}]});
/// let schema = Schema::from_json("t.json", schema.to_string().as_bytes())?;
/// let csv = format!("surname\n{}\n", names.join("\n"));
/// let reading = read_csv(schema, csv.as_bytes(), &ReadOptions::new("t.csv"))?;
/// assert_eq!(near_unique_lists(&reading.table)[0].column, "surname");
/// # Ok::<(), fhaim_domain::Error>(())
/// ```
pub fn near_unique_lists(table: &Table) -> Vec<NearUniqueList> {
    let schema = table.schema();
    let mut counts = ListCounts::of(schema);
    for row in 0..table.records() {
        counts.add(&|attribute| table.columns().get(attribute)?.get(row).copied());
    }
    counts.near_unique(schema)
}

/// Number of records with each listed value, by column with a list.
pub(crate) struct ListCounts {
    lists: Vec<ListCount>,
}

struct ListCount {
    /// Index of the field in the schema.
    field: usize,
    coarse: usize,
    fine: Option<usize>,
    /// Index in `counts` of the first value of each coarse code; empty if the coarse code is the index.
    offsets: Vec<usize>,
    counts: Vec<u64>,
    /// Index of the value for everything outside the list.
    other: Option<usize>,
}

impl ListCounts {
    /// Creates counts of zero for a schema.
    pub(crate) fn of(schema: &Schema) -> Self {
        let fields = schema.fields().iter().enumerate();
        let lists = fields.filter_map(|(index, field)| ListCount::of(schema, index, field));
        Self {
            lists: lists.collect(),
        }
    }

    /// Counts a record. `code` returns the code of an attribute, or `None` if the record has none.
    pub(crate) fn add(&mut self, code: &dyn Fn(usize) -> Option<u32>) {
        for list in &mut self.lists {
            let coarse = code(list.coarse);
            let fine = list.fine.map_or(Some(0), code);
            if let (Some(coarse), Some(fine)) = (coarse, fine)
                && let Some(place) = list.place(coarse, fine)
                && let Some(count) = list.counts.get_mut(place)
            {
                *count += 1;
            }
        }
    }

    /// Returns the lists that are near-unique in the counted records.
    pub(crate) fn near_unique(&self, schema: &Schema) -> Vec<NearUniqueList> {
        let named = |list: &ListCount| {
            Some(NearUniqueList {
                column: schema.fields().get(list.field)?.name().to_owned(),
                values: list.near_unique()?,
            })
        };
        self.lists.iter().filter_map(named).collect()
    }
}

impl ListCount {
    /// Returns `None` if the field has no list.
    fn of(schema: &Schema, index: usize, field: &Field) -> Option<Self> {
        let part = field.parts.first()?;
        let kind = schema.columns().get(part.coarse)?.kind();
        let (offsets, values, other) = match (&field.meaning, kind) {
            (Meaning::Plain, Kind::Categorical { categories, other }) => {
                let other = other.map(|code| code as usize);
                (Vec::new(), categories.len(), other)
            }
            (Meaning::Code(book), _) => {
                let mut offsets = Vec::with_capacity(book.chapters().len());
                let mut values = 0;
                for chapter in book.chapters() {
                    offsets.push(values);
                    values += chapter.codes.len();
                }
                let first = |chapter: u32| offsets.get(chapter as usize).copied();
                let other = book.other();
                let other = other.and_then(|(chapter, code)| Some(first(chapter)? + code as usize));
                (offsets, values, other)
            }
            _ => return None,
        };
        Some(Self {
            field: index,
            coarse: part.coarse,
            fine: part.fine,
            offsets,
            counts: vec![0; values],
            other,
        })
    }

    /// Returns the index of a value, or `None` for a missing one.
    fn place(&self, coarse: u32, fine: u32) -> Option<usize> {
        if self.offsets.is_empty() {
            return Some(coarse as usize);
        }
        Some(self.offsets.get(coarse as usize)? + fine as usize)
    }

    /// Returns the number of listed values that occur, if the list is near-unique.
    fn near_unique(&self) -> Option<usize> {
        let values = || {
            let all = self.counts.iter().enumerate();
            let listed = all.filter(|&(place, _)| Some(place) != self.other);
            listed.map(|(_, &count)| count)
        };
        let listed = values().count();
        let occurring = values().filter(|&count| count > 0).count();
        let records: u64 = values().sum();
        let rare = values().filter(|count| (1..FEW_RECORDS).contains(count));
        let mostly_rare = occurring >= MANY_VALUES && 2 * rare.count() > occurring;
        // Fewer than five records for four values.
        let mostly_distinct = occurring >= SEVERAL_VALUES && 4 * records < 5 * occurring as u64;
        // At least 95 of 100 listed values occur.
        let copied = 100 * occurring >= 95 * listed;
        (copied && (mostly_rare || mostly_distinct)).then_some(occurring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a list is near-unique, given the number of records of each value.
    fn flagged(counts: &[u64], other: Option<usize>) -> bool {
        let list = ListCount {
            field: 0,
            coarse: 0,
            fine: None,
            offsets: Vec::new(),
            counts: counts.to_vec(),
            other,
        };
        list.near_unique().is_some()
    }

    #[test]
    fn list_of_values_that_few_records_share_is_near_unique() {
        assert!(flagged(&[1; 400], None));
        assert!(flagged(&[4; 25], None));
        // A few common names and many rare ones.
        let mut names = vec![300; 10];
        names.extend([2; 200]);
        assert!(flagged(&names, None));
        // The value for all others is frequent, and not one of the listed.
        names.truncate(9);
        let mut folded = vec![1; 100];
        folded.push(5000);
        assert!(flagged(&folded, Some(100)));
    }

    #[test]
    fn list_of_values_that_several_records_share_is_not_near_unique() {
        assert!(!flagged(&[19; 5], None));
        assert!(!flagged(&[5; 100], None));
        assert!(!flagged(&[20; 400], None));
        let mut towns = vec![50; 30];
        towns.extend([1; 10]);
        assert!(!flagged(&towns, None));
    }

    #[test]
    fn small_table_is_near_unique_only_if_its_records_have_their_own_values() {
        assert!(!flagged(&[1; 2], None));
        assert!(!flagged(&[1; 9], None));
        assert!(flagged(&[1; 10], None));
        assert!(!flagged(&[2; 15], None));
        assert!(!flagged(&[], None));
    }

    #[test]
    fn code_book_with_codes_that_do_not_occur_is_not_near_unique() {
        let mut codes = vec![1; 300];
        codes.extend([0; 10]);
        assert!(flagged(&codes, None));
        codes.extend([0; 10]);
        assert!(!flagged(&codes, None));
    }
}
