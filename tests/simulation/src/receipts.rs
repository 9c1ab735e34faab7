//! Receipts as they are kept: those that no later one is known to contain.
//!
//! A receipt that comes with the answer to a call contains every receipt that the call showed, since
//! the crypto service looked; of any other nothing is known. One that is higher may be of another
//! history: whoever kept it alone would forget what it could refute.

use crate::Mutant;
use crate::world::W;
use fhaim_api::keys::Receipt;
use std::rc::Rc;

/// Stored receipts.
pub(crate) type Text = Option<Rc<str>>;

/// Reads what is stored.
pub(crate) fn read(stored: &Text) -> Vec<Receipt> {
    let list = stored.as_deref().map(serde_json::from_str);
    list.and_then(Result::ok).unwrap_or_default()
}

/// What is stored after an answer that came with `receipt`, to a call that showed `shown`.
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

/// Receipts of several sources, each once.
pub(crate) fn distinct(receipts: impl Iterator<Item = Receipt>) -> Vec<Receipt> {
    receipts.fold(Vec::new(), |mut list, receipt| {
        if !list.contains(&receipt) {
            list.push(receipt);
        }
        list
    })
}
