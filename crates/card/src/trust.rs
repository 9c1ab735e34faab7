//! Who must be trusted, by the terms: docs/THREAT-MODEL.md, "Requirements of a dataset".

use fhaim_domain::counted;
use fhaim_protocol::roster::{ContributionKind, Partition};

use crate::{Card, CardHolders, CardSetting};

impl Card {
    /// Describes where the records were processed and the conditions under which nobody else can read them.
    pub fn trust(&self) -> Vec<String> {
        let mut texts = match self.facts.setting {
            CardSetting::InTheClear => vec![
                "The records were processed in the clear, by one program on the holder's machine. No other party received \
                 records or ciphertexts."
                    .to_owned(),
            ],
            CardSetting::OneProgram => vec![
                "The records were processed under encryption, by one program on the holder's machine that had the roles of \
                 all services. No other party received records or ciphertexts."
                    .to_owned(),
            ],
            CardSetting::Services => self.services(),
            CardSetting::UnstatedServices => vec![
                "The records were processed under encryption, by services. The numbers of holders and services, and the \
                 conditions under which nobody else can read a record, are not stated here: ask the holder for its card."
                    .to_owned(),
            ],
        };
        texts.extend(
            self.facts
                .terms
                .holders
                .iter()
                .flat_map(|holders| self.holders(*holders)),
        );
        texts
    }

    fn services(&self) -> Vec<String> {
        let terms = &self.facts.terms;
        let keys = terms.key_services.len();
        let computing = match terms.witness {
            true => "two computation services, which must agree on every result",
            false => "one computation service",
        };
        let names = terms.key_services.join(", ");
        let key = match keys {
            0 => "One key service has the key".to_owned(),
            _ => format!(
                "{} share the key ({names})",
                counted(keys as u64, "key service")
            ),
        };
        let condition = match (terms.witness, keys) {
            (false, 0) => {
                "the computation service and the key service follow the protocol and do not combine their data and keys"
                    .to_owned()
            }
            (true, 0) => {
                "the key service and at least one computation service follow the protocol, and no computation service \
                 combines its data with the key"
                    .to_owned()
            }
            (false, _) => {
                "the computation service and at least one key service follow the protocol, and the computation service does \
                 not combine its data with the shares of all key services"
                    .to_owned()
            }
            (true, _) => {
                "at least one computation service and at least one key service follow the protocol, and no computation \
                 service combines its data with the shares of all key services"
                    .to_owned()
            }
        };
        vec![
            format!(
                "The holder encrypted the records on its own machine. Encrypted records went to {computing}. {key}, which \
                 decrypts only numbers with noise."
            ),
            format!("Nobody but the holder can read a record as long as {condition}."),
        ]
    }

    fn holders(&self, holders: CardHolders) -> Vec<String> {
        let CardHolders {
            count,
            honest,
            partition,
            contribution,
        } = holders;
        let part = match partition {
            Partition::Records => "some of the records, with all columns",
            Partition::Columns => "some of the columns, of all records",
        };
        let upload = match contribution {
            ContributionKind::Records => "its records",
            ContributionKind::Counts => "counts of its records",
        };
        let simulated = match self.facts.setting {
            CardSetting::Services => "",
            _ => " One program simulated the holders.",
        };
        let mut texts = vec![format!(
            "The table has {count} holders. Each has {part}, and contributed {upload} and noise.{simulated}"
        )];
        texts.push(match count.saturating_sub(honest) {
            0 => format!(
                "The guarantee relies on the noise of all {count} holders. It holds against services and readers. It does \
                 not hold against a holder, which can subtract its own noise."
            ),
            others => format!(
                "The guarantee relies on the noise of {honest} of the {count} holders. It holds against services, readers \
                 and up to {} together, if the other holders keep their noise secret.",
                counted(u64::from(others), "holder")
            ),
        });
        if partition == Partition::Columns {
            texts.push(
                "A holder that deviates from the protocol can read rows of the other holders: each must trust the others \
                 to follow it."
                    .to_owned(),
            );
        }
        texts
    }
}
