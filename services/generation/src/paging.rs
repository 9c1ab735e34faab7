//! Pages of lists, newest items first.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fhaim_api::Paging;
use fhaim_platform::clock::Millis;
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
    /// Maximum number of items.
    pub limit: u32,
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
}

/// Returns the cursor of the page after an item.
pub fn cursor(at: Millis, id: Uuid) -> String {
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
