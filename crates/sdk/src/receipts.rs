//! Receipts of ledgers, with which a holder notices a crypto service that was set back.
//!
//! The ledger is a hash chain, and every answer about it carries a signed receipt of its end. A
//! crypto service that was set back to an older copy has forgotten releases, and would pay for new
//! ones with budget that is already spent. It cannot notice this by itself. Therefore every caller
//! sends its last receipt and compares the answer with it.

use fhaim_api::keys::{DatasetLedger, KeySet, RECEIPT_HEADER, Receipt};
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

use crate::client::Body;
use crate::{Client, Error};

/// Stores the last receipt of each dataset's ledger, also between programs.
pub trait ReceiptStore: Send + Sync {
    /// Returns the last receipt of a dataset.
    fn load(&self, dataset: Uuid) -> Option<Receipt>;

    /// Stores a receipt, unless the stored one is of a longer ledger.
    fn keep(&self, receipt: &Receipt);
}

/// Receipts in memory only.
#[derive(Debug, Default)]
pub(crate) struct InMemory(Mutex<HashMap<Uuid, Receipt>>);

impl ReceiptStore for InMemory {
    fn load(&self, dataset: Uuid) -> Option<Receipt> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&dataset).cloned()
    }

    fn keep(&self, receipt: &Receipt) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let higher = Receipt::higher(kept.remove(&receipt.dataset), Some(receipt.clone()));
        kept.extend(higher.map(|receipt| (receipt.dataset, receipt)));
    }
}

/// An answer that carries the receipt of a ledger.
pub(crate) trait HasReceipt {
    fn receipt(&self) -> &Receipt;
}

impl HasReceipt for Receipt {
    fn receipt(&self) -> &Receipt {
        self
    }
}

impl HasReceipt for KeySet {
    fn receipt(&self) -> &Receipt {
        &self.receipt
    }
}

impl HasReceipt for DatasetLedger {
    fn receipt(&self) -> &Receipt {
        &self.receipt
    }
}

impl Client {
    /// Makes a call to the crypto service about a dataset, and sends the stored receipt with it.
    /// Checks the receipt of the answer against the sent one, then stores it.
    pub(crate) async fn of_ledger<T: DeserializeOwned + HasReceipt>(
        &self,
        method: Method,
        dataset: Uuid,
        rest: &str,
        body: Body,
    ) -> Result<T, Error> {
        let crypto = &self.endpoints().crypto;
        let address = format!("{crypto}/v1/datasets/{dataset}{rest}");
        let shown = self.receipts().load(dataset);
        let headers = shown.as_ref().and_then(header).into_iter().collect();
        let answer: T = self.json_with(method, &address, body, &headers).await?;
        let told = answer.receipt();
        check(dataset, shown.as_ref(), told)?;
        self.receipts().keep(told);
        Ok(answer)
    }

    /// Returns the current receipt of a dataset's ledger.
    ///
    /// # Errors
    /// [`Error::Restored`] if the crypto service was set back. Also the errors of the service.
    pub async fn receipt(&self, dataset: Uuid) -> Result<Receipt, Error> {
        self.of_ledger(Method::GET, dataset, "/receipt", Body::Empty)
            .await
    }
}

/// Returns the header that carries a receipt.
fn header(receipt: &Receipt) -> Option<(HeaderName, HeaderValue)> {
    let value = HeaderValue::from_str(&receipt.to_header()).ok()?;
    Some((HeaderName::from_static(RECEIPT_HEADER), value))
}

/// Checks an answer's receipt against the one that was sent with the call.
fn check(dataset: Uuid, shown: Option<&Receipt>, told: &Receipt) -> Result<(), Error> {
    if told.dataset != dataset {
        return Err(Error::Disagreement(
            "the receipt belongs to another dataset",
        ));
    }
    match shown {
        Some(shown)
            if told.height < shown.height
                || (told.height == shown.height && told.head != shown.head) =>
        {
            Err(Error::Restored { dataset })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_api::Digest;

    fn receipt(height: u64, head: &str) -> Receipt {
        Receipt {
            dataset: Uuid::from_u128(1),
            height,
            head: Digest::of(head.as_bytes()),
            signature: String::new(),
        }
    }

    #[test]
    fn answer_behind_the_sent_receipt_is_rejected() {
        let id = Uuid::from_u128(1);
        let restored = |shown: Option<&Receipt>, told: &Receipt| matches!(check(id, shown, told), Err(Error::Restored { dataset }) if dataset == id);
        let shown = receipt(3, "a");
        assert!(!restored(None, &receipt(0, "")));
        assert!(!restored(Some(&shown), &shown) && !restored(Some(&shown), &receipt(4, "b")));
        assert!(restored(Some(&shown), &receipt(2, "a")));
        assert!(restored(Some(&shown), &receipt(3, "b")));
        assert!(matches!(
            check(Uuid::from_u128(2), None, &shown),
            Err(Error::Disagreement(..))
        ));
    }

    #[test]
    fn receipt_of_the_longest_ledger_is_kept() {
        let kept = InMemory::default();
        for height in [2, 5, 3] {
            kept.keep(&receipt(height, "a"));
        }
        assert_eq!(kept.load(Uuid::from_u128(1)), Some(receipt(5, "a")));
        assert_eq!(kept.load(Uuid::from_u128(2)), None);
    }
}
