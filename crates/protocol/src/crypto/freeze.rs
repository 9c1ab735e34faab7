//! Reasons for which nothing more is released of a dataset.

use serde::{Deserialize, Serialize};

/// The reason for which a dataset was frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Freeze {
    /// A page could not be decrypted within the noise of a sealed page. Pages that are sealed
    /// correctly always can: a service or holder that deviates made this one, and further pages
    /// must not be answered.
    Noise,
    /// Like `Noise`, for a page that both computation services computed. While one of them follows
    /// the protocol, an uploaded object is the cause.
    Upload,
    /// A client showed a receipt that this chain does not contain: the store was restored from an
    /// older copy.
    Restored,
    /// The second computation service computed another request for a batch. One of the two
    /// deviates, or has lost or damaged the data that it computes from.
    Witness,
    /// A client showed a receipt that the dataset's receipt key did not sign. The store may have
    /// been restored from a copy that is older than the dataset's keys, and other keys may have
    /// been made since.
    UnknownReceipt,
}

impl Freeze {
    /// Whether an operator can thaw a dataset with this number of holders after this freeze.
    pub fn can_be_thawed(self, holders: u32) -> bool {
        match self {
            Self::Witness => true,
            // A holder can cause such a page. Each further page would answer another question about
            // the key.
            Self::Noise | Self::Upload => holders < 2,
            Self::Restored | Self::UnknownReceipt => false,
        }
    }

    /// Returns the message for an operator that cannot thaw the dataset.
    pub fn way_forward(self) -> &'static str {
        match self {
            Self::Noise | Self::Upload => {
                "a dataset of several holders that is frozen because of a page cannot be thawed: one of its \
                 holders may have caused the page, and another such page would reveal more about the key. To \
                 continue, make a new dataset with the same holders (`fhaim dataset create --holder`). The cost \
                 of this dataset stays counted: over the same records the new one adds to it"
            }
            Self::Restored | Self::Witness | Self::UnknownReceipt => self.detail(),
        }
    }

    /// Returns the message for clients.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Noise => {
                "the dataset is frozen: the key service received a page that it cannot decrypt. The page is \
                 paid for. Either an uploaded object is not an encryption as fhaim makes it, or a service \
                 deviated from the protocol: the key service cannot tell which. An operator of the key \
                 service has to investigate; a dataset of several holders stays frozen, and its holders can \
                 make a new one"
            }
            Self::Upload => {
                "the dataset is frozen: both computation services computed a page that the key service cannot \
                 decrypt, so an uploaded object is not an encryption as fhaim makes it. The page is paid for. \
                 Upload with an unchanged program of fhaim, to a new dataset (`fhaim dataset create`): over the \
                 same records it adds its cost to the cost of this one"
            }
            Self::Witness => {
                "the dataset is frozen: the two computation services do not agree on a batch, and \
                 nothing of it was decrypted. One of them deviates from the protocol, or its stored data is \
                 damaged: an operator of the key service has to investigate"
            }
            Self::UnknownReceipt => {
                "the dataset is frozen permanently: a client showed a receipt for it that the key service \
                 did not sign. Either the key service was set back to a state from before the dataset's keys \
                 were made, and does not know the releases made with them, or a holder invented the \
                 receipt. Finished tables stay available. To continue, make a new dataset (`fhaim dataset \
                 create`): over the same records it adds its cost to the cost of this one"
            }
            Self::Restored => {
                "the dataset is frozen permanently: the key service was set back to an older copy of \
                 its ledger, and cannot know its releases since then. Finished tables stay available. To \
                 continue, make a new dataset (`fhaim dataset create`): over the same records it adds its \
                 cost to the cost of this one"
            }
        }
    }
}
