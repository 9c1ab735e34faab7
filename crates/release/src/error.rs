//! Why something cannot be released.

use fhaim_domain::Clique;
use fhaim_dp::Rho;

/// What is wrong with a statistic, a request or a job.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An attribute index outside the domain.
    #[error("attribute {0} is not in the domain")]
    UnknownAttribute(usize),
    /// Functions missing or of another length than the attribute's size.
    #[error("an axis of attribute {attribute} needs at least one function of {size} values")]
    AxisShape {
        /// The attribute.
        attribute: usize,
        /// Its number of categories.
        size: usize,
    },
    /// Axes of a product not in ascending order of distinct attributes.
    #[error("the axes of a product must be those of two attributes in ascending order")]
    AxisOrder,
    /// A squared term that is not a pair, or whose target has another number of cells.
    #[error("a squared term over {0:?} must be a pair with one target for each cell")]
    TermShape(Clique),
    /// A target outside 0..=N.
    #[error("a target of the squared term over {0:?} lies outside 0 to the record bound")]
    TargetOutOfRange(Clique),
    /// A variance of zero.
    #[error("a release needs noise: its variance is zero")]
    NoNoise,
    /// Noise for another number of cells.
    #[error("the release has {cells} cells, and its noise {noise}")]
    NoiseLength {
        /// Cells of the release.
        cells: usize,
        /// Cells of the noise.
        noise: usize,
    },
    /// Integers past 128 bits.
    #[error("the statistic's integers do not fit 128 bits")]
    Overflow,
    /// The domain has no attribute, or an attribute without values.
    #[error("the domain has no attributes, or attribute {0:?} has no values")]
    EmptyDomain(Option<usize>),
    /// A workload pair that is not two different attributes of the domain.
    #[error("({0}, {1}) is not a pair of attributes of the domain")]
    WorkloadPair(usize, usize),
    /// A workload triple that is not three different attributes of the domain, or is there twice.
    #[error("{0:?} is not a triple of attributes of the domain, or is in the workload twice")]
    WorkloadTriple([usize; 3]),
    /// A workload with a triple, for a mechanism that takes pairs.
    #[error("the workload has the triple {0:?}, and this mechanism takes pairs of attributes only")]
    PairsOnly([usize; 3]),
    /// A digit that does not hang on an attribute of the domain, or has other values than it.
    #[error("attribute {0} is not a digit of another attribute of the domain")]
    WrongDigit(usize),
    /// A workload without pairs of positive weight.
    #[error("the workload has no pair of positive weight")]
    EmptyWorkload,
    /// A pair that is in the workload twice.
    #[error("the pair ({0}, {1}) is in the workload twice")]
    RepeatedPair(usize, usize),
    /// No budget, or one too small to pay for a single release.
    #[error("the privacy budget rho = {0} is too small for one release of every column")]
    BudgetTooSmall(Rho),
    /// The model does not fit its cap even without a single pair.
    #[error("{cells} cells of one-way tables alone do not fit the model cap of {cap} bytes")]
    ModelCap {
        /// Cells needed.
        cells: usize,
        /// The cap in bytes.
        cap: usize,
    },
    /// Holders that there cannot be.
    #[error(
        "{honest} of {count} holders relied upon: there are 1 to 128 holders, and 1 to all of them \
         are relied upon"
    )]
    Holders {
        /// How many there are.
        count: u32,
        /// How many are relied upon.
        honest: u32,
    },
    /// Attributes that are not divided among the holders.
    #[error(
        "each of {0} holders of columns needs an attribute of its own, and each attribute one of them"
    )]
    Owners(u32),
    /// Squared scores of a dataset of several holders.
    #[error(
        "squared scores of {0} holders are not released: a holder that uploads counts of its own making \
         could read the counts of the others"
    )]
    SquaresOfSeveral(usize),
    /// The arithmetic of privacy refused.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
}
