//! Why nothing more is released of a dataset.

use serde::{Deserialize, Serialize};

/// Why a dataset was frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Freeze {
    /// A page could not be decrypted within the noise of a sealed one. Sealed pages always can:
    /// a deviating service or holder made this one, and further ones must not be answered.
    Noise,
    /// Someone showed a receipt that this chain does not contain: the store was set back.
    Restored,
    /// The second computation service computed another request for a batch: one of the two deviates,
    /// or has lost or damaged what it computes from.
    Witness,
    /// Someone showed a receipt that the dataset's receipt key did not sign: the store may have been set
    /// back to before the dataset's keys were made, and other keys made since.
    UnknownReceipt,
}

impl Freeze {
    /// Whether an operator can thaw a dataset of this number of holders after this.
    pub fn can_be_thawed(self, holders: u32) -> bool {
        match self {
            Self::Witness => true,
            // A holder can cause such a page. Each further one would answer another question about the key.
            Self::Noise => holders < 2,
            Self::Restored | Self::UnknownReceipt => false,
        }
    }

    /// The message for an operator that cannot thaw the dataset.
    pub fn way_forward(self) -> &'static str {
        match self {
            Self::Noise => {
                "a dataset of several holders that is frozen over a page cannot be thawed: one of its holders \
                 may have caused the page, and another such page would tell more about the key. To go on, make \
                 a new dataset with the same holders (`fhaim dataset create --holder`). What this dataset has \
                 spent stays counted: over the same records the new one adds its cost"
            }
            Self::Restored | Self::Witness | Self::UnknownReceipt => self.detail(),
        }
    }

    /// The message for anyone who asks.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Noise => {
                "the dataset is frozen: a page came that no service which follows the protocol \
                 makes. It is paid for. An operator of the key service has to look into it; a dataset of \
                 several holders stays frozen, and its holders can make a new one"
            }
            Self::Witness => {
                "the dataset is frozen: the two computation services do not agree on a batch, and \
                 nothing of it was decrypted. One of them does other than it was asked, or what it has \
                 stored is damaged: an operator of the key service has to look into it"
            }
            Self::UnknownReceipt => {
                "the dataset is frozen permanently: the key service was shown a receipt for it that it \
                 did not sign. Either the key service was set back to before the dataset's keys were \
                 made, and does not know what was released with them, or a holder invented the \
                 receipt. Finished tables stay. To continue, make a new dataset (`fhaim dataset \
                 create`): over the same records it adds its cost to what was spent on this one"
            }
            Self::Restored => {
                "the dataset is frozen for good: the key service was set back to an older copy of \
                 its ledger, and cannot know what it released since. Finished tables stay. To go on, \
                 make a new dataset (`fhaim dataset create`): over the same records it adds its cost \
                 to what was spent on this one"
            }
        }
    }
}
