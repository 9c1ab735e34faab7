//! Pages of lists, newest items first.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fhaim_api::{Page, Paging};
use fhaim_platform::clock::Millis;
use fhaim_platform::rows;
use fhaim_platform::store::{Row, StoreError};
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
    pub before: Millis,
    /// or at the same time with a smaller identifier.
    pub id: String,
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

    /// Number of rows to fetch: one more than the page has, to detect whether another page follows.
    pub fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// Makes a page of the fetched entries.
    pub fn page<T>(&self, mut entries: Vec<Entry<T>>) -> Page<T> {
        let shown = self.limit as usize;
        let more = entries.len() > shown;
        entries.truncate(shown);
        let next = entries.last().filter(|_| more);
        let next = next.map(|entry| encode(entry.at, entry.id));
        let (mut items, mut damaged) = (Vec::with_capacity(entries.len()), Vec::new());
        for entry in entries {
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
    /// Reads an entry from a row with the columns `created_at` and `id`. Returns `None` if these are damaged.
    ///
    /// # Errors
    /// An error other than the damage of the row.
    pub fn from_row(
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

    /// Reads the entries of a list.
    ///
    /// # Errors
    /// An error other than the damage of a row.
    pub fn from_rows(
        rows: &[Row],
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Vec<Self>, StoreError> {
        let entries = rows.iter().map(|row| Self::from_row(row, &read));
        entries.filter_map(Result::transpose).collect()
    }

    /// Adds the entries among `places` that could not be read, and restores the order of the list.
    pub fn add_damaged(entries: &mut Vec<Self>, places: Vec<Entry<()>>) {
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
        assert_eq!((first.before, first.rows()), (Millis::MAX, 51));
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
