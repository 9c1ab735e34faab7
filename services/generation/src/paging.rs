//! Lists, newest first, a page at a time.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fhaim_api::problem::ProblemKind;
use fhaim_api::{Page, Paging};
use fhaim_platform::Failure;
use fhaim_platform::clock::Millis;
use fhaim_platform::store::Row;
use sqlx::Row as _;
use uuid::Uuid;

const DEFAULT_LIMIT: u32 = 50;
const LARGEST_LIMIT: u32 = 100;

/// Where a page starts, and how long it is. Lists are ordered by time and then identifier, both
/// descending; a page has what comes after (`before`, `id`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Items made earlier,
    pub before: Millis,
    /// or at the same time with a lower identifier.
    pub id: String,
    limit: u32,
}

impl Cut {
    /// Reads what a caller asks for.
    ///
    /// # Errors
    /// A limit out of range, an `after` that no page gave.
    pub fn new(paging: &Paging) -> Result<Self, Failure> {
        let limit = paging.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=LARGEST_LIMIT).contains(&limit) {
            let detail = format!("limit must be 1 to {LARGEST_LIMIT}");
            return Err(Failure::new(ProblemKind::Invalid, detail));
        }
        let (before, id) = match &paging.after {
            None => (Millis::MAX, Uuid::max()),
            Some(after) => decode(after).ok_or_else(|| {
                Failure::new(ProblemKind::Invalid, "after must be `next` of another page")
            })?,
        };
        Ok(Self {
            before,
            id: id.to_string(),
            limit,
        })
    }

    /// Rows to fetch: one more than the page, to know whether another follows.
    pub fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// A page of the rows fetched, which have columns `created_at` and `id`.
    ///
    /// # Errors
    /// Those of `item`.
    pub fn page<T>(
        &self,
        rows: &[Row],
        item: impl Fn(&Row) -> Result<T, Failure>,
    ) -> Result<Page<T>, Failure> {
        let shown = rows.len().min(self.limit as usize);
        let last = (rows.len() > shown).then(|| &rows[shown - 1]);
        Ok(Page {
            items: rows[..shown].iter().map(item).collect::<Result<_, _>>()?,
            next: last.map(encode).transpose()?,
        })
    }
}

fn encode(row: &Row) -> Result<String, Failure> {
    let (at, id): (Millis, String) = (row.try_get("created_at")?, row.try_get("id")?);
    Ok(URL_SAFE_NO_PAD.encode(format!("{at} {id}")))
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
    fn a_first_page_has_everything_and_others_what_their_cursor_says() {
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
    fn other_limits_and_cursors_are_refused() {
        let refused = |after: Option<&str>, limit| {
            let after = after.map(str::to_owned);
            let failure = Cut::new(&Paging { after, limit }).unwrap_err();
            assert_eq!(failure.kind(), ProblemKind::Invalid);
        };
        refused(None, Some(0));
        refused(None, Some(101));
        for after in ["", "12", "!", "MTI", &URL_SAFE_NO_PAD.encode("12 x")] {
            refused(Some(after), None);
        }
    }
}
