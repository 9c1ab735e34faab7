//! What is compared.

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
