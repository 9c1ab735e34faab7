//! Consent of the holders of a roster: signatures and withdrawals, which are acts of the dataset's chain.

use fhaim_api::keys::{HolderStanding, KeySet};
use fhaim_platform::Failure;
use fhaim_platform::token::Caller;
use fhaim_protocol::crypto::history::ChainState;
use fhaim_protocol::crypto::judge::Rules;
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::roster::MemberSignature;
use fhaim_protocol::terms::PlanCore;
use uuid::Uuid;

use crate::State;
use crate::audit::Asked;
use crate::keys::{self, StoredKeySet};
use crate::ledger;

/// A holder's act.
#[derive(Clone, Copy, Debug)]
pub enum Consent {
    /// The holder agrees to the terms and keys.
    Signed(MemberSignature),
    /// The holder lets no further run begin.
    Withdrawn,
}

impl Consent {
    fn action(self) -> &'static str {
        match self {
            Self::Signed(_) => "sign the terms and keys",
            Self::Withdrawn => "withdraw: no further run begins",
        }
    }
}

/// Returns the standing of each holder of the roster.
pub fn standings(
    stored: &StoredKeySet,
    plan: &PlanCore,
    chain_state: &ChainState,
) -> Vec<HolderStanding> {
    let rules = rules(stored.dataset, plan);
    let unsigned: Vec<u32> = chain_state.unsigned(&rules).collect();
    let withdrawn: Vec<u32> = chain_state.withdrawn().collect();
    let of = |(number, member): (u32, &fhaim_protocol::roster::Member)| HolderStanding {
        account: member.account.clone(),
        signed: !unsigned.contains(&number),
        withdrawn: withdrawn.contains(&number),
    };
    (0..).zip(&plan.members).map(of).collect()
}

fn rules(dataset: Uuid, plan: &PlanCore) -> Rules {
    Rules::new(DatasetId(dataset.into_bytes()), plan)
}

/// Appends a holder's act to the dataset's chain. Repeating the call changes nothing.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) for an account that is not in the roster, and
/// if the keys are destroyed; [`ProblemKind::Invalid`](fhaim_api::problem::ProblemKind::Invalid) for a signature that
/// is not the holder's, or not for these terms and keys.
pub async fn act(
    state: &State,
    dataset: Uuid,
    holder: Uuid,
    consent: Consent,
) -> Result<KeySet, Failure> {
    let foreign = || keys::foreign(state, holder, dataset);
    // Terms never change, so their plan is computed before anything is locked.
    let stored = keys::find(state, dataset).await?;
    let member = stored.terms.part_of(&holder.to_string());
    let member = member.ok_or_else(foreign)?;
    let plan = keys::plan_core(&stored.terms)?;
    let rules = rules(dataset, &plan);
    let mut tx = state.base.store.begin().await?;
    if keys::lock(state, &mut tx, dataset).await?.is_destroyed() {
        return Err(Failure::not_found());
    }
    let mut chain_state = ledger::chain_state(&mut tx, dataset).await?;
    let link = match consent {
        Consent::Signed(signature) => chain_state.sign(&rules, member, signature),
        Consent::Withdrawn => chain_state.withdraw(&rules, member),
    };
    if let Some(link) = link.map_err(ledger::failure)? {
        ledger::append(&mut tx, dataset, &link, None).await?;
        let asked = Asked {
            dataset,
            actor: Caller::User(holder),
            action: consent.action(),
        };
        asked.write(&mut tx, true).await?;
        tx.commit().await?;
    } else {
        drop(tx);
    }
    keys::show(state, dataset, Caller::User(holder), &[]).await
}
