//! What is compared.

use std::str::FromStr;

use fhaim_federated::Method;

/// One of the methods, or what they are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// FLAIM in one of its ways.
    Flaim(Method),
    /// AIM over the parties that were drawn so far.
    DistAim,
    /// AIM over the whole table: one party, which takes part in every round.
    Aim,
    /// fhaim's own mechanism over all parties, of whom one may pool what it knows with the services
    /// (h = k - 1): what it would release under encryption.
    Staged,
    /// The same, where each party relies on its own noise alone (h = 1).
    StagedAlone,
}

impl Contender {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Flaim(Method::Naive),
        Self::Flaim(Method::AugOracle),
        Self::Flaim(Method::AugPrivate),
        Self::Flaim(Method::Random),
        Self::Flaim(Method::NaiveBayes),
        Self::DistAim,
        Self::Aim,
        Self::Staged,
        Self::StagedAlone,
    ];

    /// Its name.
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

    /// A whole name: one of them may be a part of another's.
    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|known| known.name() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("there is no method {name:?}: there are {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_found_by_its_whole_name_alone() {
        for contender in Contender::ALL {
            assert_eq!(contender.name().parse(), Ok(contender));
        }
        assert_eq!("aim".parse(), Ok(Contender::Aim));
        let refused = "aug".parse::<Contender>().unwrap_err();
        assert!(refused.contains("aug-private") && refused.contains("staged-h1"));
    }
}
