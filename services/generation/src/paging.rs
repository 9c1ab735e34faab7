//! Lists, newest first, a page at a time.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fhaim_api::{Page, Paging};
use fhaim_platform::clock::Millis;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::problem::Refusal;

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 100;

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

    /// Rows to fetch: one more than the page, to know whether another follows.
    pub fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// A page of the items fetched; `place` is when an item was made and its identifier.
    pub fn page<T>(
        &self,
        mut items: Vec<T>,
        place: impl Fn(&T) -> (OffsetDateTime, Uuid),
    ) -> Page<T> {
        let shown = self.limit as usize;
        let more = items.len() > shown;
        items.truncate(shown);
        let last = items.last().filter(|_| more);
        Page {
            next: last.map(|item| encode(place(item))),
            items,
        }
    }
}

fn encode((at, id): (OffsetDateTime, Uuid)) -> String {
    let at = at.unix_timestamp_nanos() / 1_000_000;
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
