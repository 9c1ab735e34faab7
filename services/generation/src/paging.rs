//! Pages of lists, newest items first.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fhaim_api::{Page, Paging};
use fhaim_platform::clock::Millis;
use fhaim_platform::rows::{self, Readable};
use fhaim_platform::store::{Row, Store, StoreError};
use sqlx::AssertSqlSafe;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use uuid::Uuid;

use crate::problem::Refusal;

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 100;

/// Start and length of a page. Lists are ordered by time and then by identifier, both descending; a
/// page has the items after (`before`, `id`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The page has items made earlier than this,
    before: Millis,
    /// or at the same time with a smaller identifier.
    id: String,
    limit: u32,
}

impl Cut {
    /// Checks a caller's paging parameters.
    ///
    /// # Errors
    /// A limit out of range, or an `after` that is not the cursor of a page.
    pub fn new(paging: &Paging) -> Result<Self, Refusal> {
        let limit = paging.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Refusal::PageLimit(MAX_LIMIT));
        }
        let (before, id) = match &paging.after {
            None => (Millis::MAX, Uuid::max()),
            Some(after) => decode(after).ok_or(Refusal::PageAfter)?,
        };
        Ok(Self {
            before,
            id: id.to_string(),
            limit,
        })
    }

    /// Fetches the entries of a page.
    ///
    /// # Errors
    /// A failure of the store, other than the damage of a row.
    pub async fn fetch<T>(
        &self,
        store: &Store,
        list: List<'_>,
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Entries<T>, StoreError> {
        let found = self.rows(store, &list, list.columns).await?;
        let fetched = found.rows.len() + found.left_out;
        let mut entries = Entry::from_rows(&found.rows, read)?;
        if found.left_out > 0 {
            let places = self.rows(store, &list, "id, created_at").await?;
            Entry::add_damaged(&mut entries, Entry::from_rows(&places.rows, |_| Ok(()))?);
        }
        Ok(Entries {
            list: entries,
            more: fetched > self.limit as usize,
        })
    }

    /// Fetches one more row than the page has, to detect whether another page follows.
    async fn rows(
        &self,
        store: &Store,
        list: &List<'_>,
        columns: &str,
    ) -> Result<Readable, StoreError> {
        let List {
            table,
            condition,
            bound,
            ..
        } = list;
        let (at, id, limit) = (bound.len() + 1, bound.len() + 2, bound.len() + 3);
        // Safe: all texts are constants of this crate.
        let sql = AssertSqlSafe(format!(
            "SELECT {columns} FROM {table} WHERE {condition} \
             AND (created_at < ${at} OR (created_at = ${at} AND id < ${id})) \
             ORDER BY created_at DESC, id DESC LIMIT ${limit}"
        ));
        let query = bound
            .iter()
            .fold(sqlx::query(sql), |query, &value| query.bind(value));
        let query = query.bind(self.before).bind(&self.id);
        let rows = query.bind(i64::from(self.limit) + 1).fetch(store.pool());
        rows::readable(table, rows).await
    }

    /// Makes a page of the fetched entries.
    pub fn page<T>(&self, entries: Entries<T>) -> Page<T> {
        let Entries { mut list, more } = entries;
        list.truncate(self.limit as usize);
        let next = list.last().filter(|_| more);
        let next = next.map(|entry| encode(entry.at, entry.id));
        let (mut items, mut damaged) = (Vec::with_capacity(list.len()), Vec::new());
        for entry in list {
            match entry.item {
                Some(item) => items.push(item),
                None => damaged.push(entry.id),
            }
        }
        Page {
            items,
            next,
            damaged,
        }
    }
}

/// A list: the rows of a table with the columns `created_at` and `id` for which a condition holds.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    /// The table.
    pub table: &'static str,
    /// The columns of an item, with `created_at` and `id`.
    pub columns: &'a str,
    /// The condition, with the parameters `$1` and so on.
    pub condition: &'a str,
    /// The values of these parameters.
    pub bound: &'a [&'a str],
}

/// The fetched entries of a page, and possibly the first one of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries<T> {
    /// The entries in the order of the list.
    pub list: Vec<Entry<T>>,
    /// Whether another page follows.
    more: bool,
}

/// An entry of a list, with its place in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    /// Time at which it was made.
    pub at: Millis,
    /// Its identifier.
    pub id: Uuid,
    /// The item; `None` if its stored data is damaged.
    pub item: Option<T>,
}

impl<T> Entry<T> {
    /// Reads an entry from a row. Returns `None` if its time or identifier is damaged: it has no place in the list.
    fn from_row(
        row: &Row,
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Option<Self>, StoreError> {
        let place = || Ok((rows::number(row, "created_at")?, rows::parsed(row, "id")?));
        let Some((at, id)) = rows::undamaged(place())? else {
            return Ok(None);
        };
        let item = rows::undamaged(read(row))?;
        Ok(Some(Self { at, id, item }))
    }

    fn from_rows(
        rows: &[Row],
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Vec<Self>, StoreError> {
        let entries = rows.iter().map(|row| Self::from_row(row, &read));
        entries.filter_map(Result::transpose).collect()
    }

    /// Adds the entries among `places` that could not be read, and restores the order of the list.
    fn add_damaged(entries: &mut Vec<Self>, places: Vec<Entry<()>>) {
        let known: BTreeSet<Uuid> = entries.iter().map(|entry| entry.id).collect();
        let damaged = places
            .into_iter()
            .filter(|place| !known.contains(&place.id));
        entries.extend(damaged.map(|Entry { at, id, .. }| Self { at, id, item: None }));
        entries.sort_by_key(|entry| Reverse((entry.at, entry.id.to_string())));
    }
}

fn encode(at: Millis, id: Uuid) -> String {
    URL_SAFE_NO_PAD.encode(format!("{at} {id}"))
}

fn decode(after: &str) -> Option<(Millis, Uuid)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(after).ok()?).ok()?;
    let (at, id) = text.split_once(' ')?;
    Some((at.parse().ok()?, Uuid::try_parse(id).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_page_starts_at_the_newest_and_later_pages_at_their_cursor() {
        let first = Cut::new(&Paging::default()).unwrap();
        assert_eq!((first.before, first.limit), (Millis::MAX, 50));
        let id = Uuid::from_u128(7);
        let paging = Paging {
            after: Some(URL_SAFE_NO_PAD.encode(format!("12 {id}"))),
            limit: Some(3),
        };
        let later = Cut::new(&paging).unwrap();
        assert_eq!((later.before, later.id), (12, id.to_string()));
    }

    #[test]
    fn invalid_limits_and_cursors_are_rejected() {
        let refused = |after: Option<&str>, limit| {
            let after = after.map(str::to_owned);
            assert!(matches!(
                Cut::new(&Paging { after, limit }),
                Err(Refusal::PageAfter | Refusal::PageLimit(..))
            ));
        };
        refused(None, Some(0));
        refused(None, Some(101));
        for after in ["", "12", "!", "MTI", &URL_SAFE_NO_PAD.encode("12 x")] {
            refused(Some(after), None);
        }
    }
}
