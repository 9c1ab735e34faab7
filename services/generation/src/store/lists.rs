//! Lists, of which a page is fetched at a time.

use fhaim_api::Page;
use fhaim_platform::clock::Millis;
use fhaim_platform::rows::{self, Readable};
use fhaim_platform::store::{Row, Store, StoreError};
use sqlx::AssertSqlSafe;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use uuid::Uuid;

use crate::paging::{Cut, cursor};

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

impl List<'_> {
    /// Fetches the entries of a page.
    ///
    /// # Errors
    /// A failure of the store, other than the damage of a row.
    pub async fn fetch<T>(
        self,
        store: &Store,
        cut: &Cut,
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Entries<T>, StoreError> {
        let found = self.rows(store, cut, self.columns).await?;
        let fetched = found.rows.len() + found.left_out;
        let mut entries = Entry::from_rows(&found.rows, read)?;
        if found.left_out > 0 {
            let places = self.rows(store, cut, "id, created_at").await?;
            Entry::add_damaged(&mut entries, Entry::from_rows(&places.rows, |_| Ok(()))?);
        }
        Ok(Entries {
            list: entries,
            more: fetched > cut.limit as usize,
        })
    }

    /// Fetches one more row than the page has, to detect whether another page follows.
    async fn rows(&self, store: &Store, cut: &Cut, columns: &str) -> Result<Readable, StoreError> {
        let Self {
            table,
            condition,
            bound,
            ..
        } = *self;
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
        let query = query.bind(cut.before).bind(&cut.id);
        let rows = query.bind(i64::from(cut.limit) + 1).fetch(store.pool());
        rows::readable(table, rows).await
    }
}

/// The fetched entries of a page, and possibly the first one of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries<T> {
    /// The entries in the order of the list.
    pub list: Vec<Entry<T>>,
    /// Whether another page follows.
    more: bool,
}

impl<T> Entries<T> {
    /// Makes the page.
    pub fn page(mut self, cut: &Cut) -> Page<T> {
        self.list.truncate(cut.limit as usize);
        let next = self.list.last().filter(|_| self.more);
        let next = next.map(|entry| cursor(entry.at, entry.id));
        let (mut items, mut damaged) = (Vec::with_capacity(self.list.len()), Vec::new());
        for entry in self.list {
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
