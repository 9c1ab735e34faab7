//! Select, measure, generate: one engine over plaintext and encrypted sources.

pub mod source;

pub use source::{
    Axis, ReleaseRequest, Source, SourceError, SquaredTerm, Statistic, StatisticError,
    UNIT_VARIANCE,
};
