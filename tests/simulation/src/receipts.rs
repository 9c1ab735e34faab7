//! Stored receipts. A receipt is kept until a later one is known to contain it.
//!
//! The receipt in an answer contains all receipts that the call showed, because the crypto service has checked them.
//! It need not contain any other: a higher receipt may belong to another history. An entity that kept only the highest
//! receipt would lose the evidence against that history.

use crate::Mutant;
use crate::world::W;
use fhaim_api::keys::Receipt;
use std::rc::Rc;

/// Stored receipts.
pub(crate) type Text = Option<Rc<str>>;

/// Reads stored receipts.
pub(crate) fn read(stored: &Text) -> Vec<Receipt> {
    let list = stored.as_deref().map(serde_json::from_str);
    list.and_then(Result::ok).unwrap_or_default()
}

/// Returns the receipts to store after an answer with `receipt`, to a call that showed `shown`.
pub(crate) fn keep(w: &W, stored: &Text, shown: &[Receipt], receipt: &Receipt) -> Text {
    let mut list = read(stored);
    if w.is(Mutant::HighestReceiptAlone) {
        if list.iter().all(|known| known.height < receipt.height) {
            list = vec![receipt.clone()];
        }
    } else {
        Receipt::keep(&mut list, shown, receipt);
    }
    serde_json::to_string(&list).ok().map(Into::into)
}

/// Removes repeated receipts.
pub(crate) fn distinct(receipts: impl Iterator<Item = Receipt>) -> Vec<Receipt> {
    receipts.fold(Vec::new(), |mut list, receipt| {
        if !list.contains(&receipt) {
            list.push(receipt);
        }
        list
    })
}
