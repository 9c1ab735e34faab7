//! The methods that `fhaim-lab bench federated` compares.

use std::str::FromStr;

use fhaim_federated::Method;

/// A federated method, or one that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// FLAIM with one of its methods.
    Flaim(Method),
    /// AIM over the parties that were drawn so far. Its secret sharing is simulated in the clear.
    DistAim,
    /// AIM over the whole table: a single party, which takes part in every round.
    Aim,
    /// fhaim's own mechanism over all parties, as it would run under encryption. One party may pool its knowledge with
    /// the services (h = k - 1).
    Staged,
    /// As `Staged`, but each party relies only on its own noise (h = 1).
    StagedAlone,
}

impl Contender {
    /// All contenders.
    pub const ALL: [Self; 11] = [
        Self::Flaim(Method::Naive),
        Self::Flaim(Method::AugOracle),
        Self::Flaim(Method::AugOracleCombined),
        Self::Flaim(Method::AugProxy),
        Self::Flaim(Method::AugPrivate),
        Self::Flaim(Method::Random),
        Self::Flaim(Method::NaiveBayes),
        Self::DistAim,
        Self::Aim,
        Self::Staged,
        Self::StagedAlone,
    ];

    /// Returns the name on the command line and in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flaim(method) => method.as_str(),
            Self::DistAim => "dist-aim",
            Self::Aim => "aim",
            Self::Staged => "staged",
            Self::StagedAlone => "staged-h1",
        }
    }
}

impl FromStr for Contender {
    type Err = String;

    /// Parses a complete name. Prefixes are not accepted, because a name can be part of another one.
    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|known| known.name() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("unknown method {name:?}: choose from {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_names_of_methods_are_accepted() {
        for contender in Contender::ALL {
            assert_eq!(contender.name().parse(), Ok(contender));
        }
        assert_eq!("aim".parse(), Ok(Contender::Aim));
        let refused = "aug".parse::<Contender>().unwrap_err();
        assert!(refused.contains("aug-private") && refused.contains("staged-h1"));
    }
}
