//! The user's consent before records are used.

use crate::{
    Error,
    ask::{ask, can_ask},
    remarks,
};

/// Knowledge of earlier uses of some records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierUse {
    /// They were not used before.
    None,
    /// They were used before.
    Known,
    /// The history cannot be read.
    Unknown,
}

/// What a user must agree to before records are used. `From<bool>` makes one that asks only about records that were used
/// before, and not even about those if it is `true`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UseConsent {
    /// Whether the user agreed on the command line, with `--yes`.
    pub yes: bool,
    /// Question at a terminal about every use. Without it, only a use of records that were used before, or may have been,
    /// is questioned.
    pub question: Option<String>,
    /// Why the use is expected to be worthless, and what to change.
    pub objection: Option<String>,
}

impl From<bool> for UseConsent {
    fn from(yes: bool) -> Self {
        Self {
            yes,
            ..Self::default()
        }
    }
}

impl UseConsent {
    /// Asks a user at a terminal at most one question. Without a terminal, a first use that is not worthless continues.
    ///
    /// # Errors
    /// [`Error::Declined`] if the user answers no. Without a terminal, [`Error::UsedBefore`] and [`Error::UnknownUses`] as
    /// `earlier` says, and [`Error::Worthless`] if there is an objection.
    pub fn ask(&self, earlier: EarlierUse) -> Result<(), Error> {
        if self.yes {
            return Ok(());
        }
        // A user who has not seen the remarks cannot answer.
        if !can_ask() || remarks::are_kept() {
            return match (earlier, &self.objection) {
                (EarlierUse::Known, _) => Err(Error::UsedBefore),
                (EarlierUse::Unknown, _) => Err(Error::UnknownUses),
                (EarlierUse::None, Some(objection)) => Err(Error::Worthless(objection.clone())),
                (EarlierUse::None, None) => Ok(()),
            };
        }
        let question = match &self.question {
            Some(question) => question,
            None => match earlier {
                EarlierUse::Known => "Use them again?",
                EarlierUse::Unknown => "Use them without the history?",
                EarlierUse::None => return Ok(()),
            },
        };
        match ask(question)? {
            true => Ok(()),
            false => Err(Error::Declined),
        }
    }
}
