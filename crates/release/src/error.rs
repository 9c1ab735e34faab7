//! Reasons for which a release is refused.

use fhaim_domain::Clique;
use fhaim_dp::Rho;

/// An error in a statistic, a request or a job.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An attribute index is outside the domain.
    #[error("attribute {0} is not in the domain")]
    UnknownAttribute(usize),
    /// Functions are missing, or their length differs from the attribute's size.
    #[error("an axis of attribute {attribute} needs at least one function of {size} values")]
    AxisShape {
        /// Index of the attribute.
        attribute: usize,
        /// Its number of categories.
        size: usize,
    },
    /// The axes of a product are not in ascending order of distinct attributes.
    #[error("the axes of a product must be those of two attributes in ascending order")]
    AxisOrder,
    /// A squared term is not over a pair, or its target has the wrong number of cells.
    #[error("a squared term over {0:?} must be a pair with one target for each cell")]
    TermShape(Clique),
    /// A target is outside 0..=N.
    #[error("a target of the squared term over {0:?} is not between 0 and the record bound")]
    TargetOutOfRange(Clique),
    /// The variance is zero.
    #[error("a release needs noise: its variance is zero")]
    NoNoise,
    /// The noise has another number of cells than the release.
    #[error("the release has {cells} cells, but its noise has {noise}")]
    NoiseLength {
        /// Number of cells of the release.
        cells: usize,
        /// Number of cells of the noise.
        noise: usize,
    },
    /// An integer exceeds 128 bits.
    #[error("the statistic's integers do not fit 128 bits")]
    Overflow,
    /// The domain has no attributes, or an attribute has no values.
    #[error("the domain has no attributes, or attribute {0:?} has no values")]
    EmptyDomain(Option<usize>),
    /// A workload pair does not have two different attributes of the domain.
    #[error("({0}, {1}) is not a pair of attributes of the domain")]
    WorkloadPair(usize, usize),
    /// A workload triple does not have three different attributes of the domain, or is repeated.
    #[error("{0:?} is not a triple of attributes of the domain, or is repeated in the workload")]
    WorkloadTriple([usize; 3]),
    /// The workload has a triple, but the mechanism supports only pairs.
    #[error(
        "the workload has the triple {0:?}, but this mechanism supports only pairs of attributes"
    )]
    PairsOnly([usize; 3]),
    /// A digit does not belong to an attribute of the domain, or does not fit its values.
    #[error("attribute {0} is not a digit of another attribute of the domain")]
    WrongDigit(usize),
    /// The workload has no pair of positive weight.
    #[error("the workload has no pair of positive weight")]
    EmptyWorkload,
    /// A pair is repeated in the workload.
    #[error("the pair ({0}, {1}) is repeated in the workload")]
    RepeatedPair(usize, usize),
    /// The budget is zero, or too small to pay for a single release.
    #[error("the privacy budget rho = {0} is too small for one release of every column")]
    BudgetTooSmall(Rho),
    /// The model exceeds its cap even without a single pair.
    #[error("the one-way tables need {cells} cells, which exceed the model cap of {cap} bytes")]
    ModelCap {
        /// Number of cells needed.
        cells: usize,
        /// The cap in bytes.
        cap: usize,
    },
    /// The numbers of holders are invalid.
    #[error(
        "{honest} of {count} holders are relied upon: there must be 1 to 128 holders, of which at least one \
         and at most all are relied upon"
    )]
    Holders {
        /// Number of holders.
        count: u32,
        /// Number of holders that are relied upon.
        honest: u32,
    },
    /// The attributes are not divided among the holders.
    #[error(
        "each of the {0} holders of columns must have at least one attribute, and each attribute one holder"
    )]
    Owners(u32),
    /// Squared scores of a dataset with several holders are not released.
    #[error(
        "squared scores of {0} holders are not released: a holder that uploads forged counts could read \
         the counts of the others"
    )]
    SquaresOfSeveral(usize),
    /// The privacy arithmetic refused.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
}
