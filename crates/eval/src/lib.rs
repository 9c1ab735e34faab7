#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! [`evaluate`] compares two tables of the same schema and returns a [`Report`]. It serialises to JSON, and
//! [`html_page`] renders it as one self-contained page. A report contains exact statistics of the real records, so only
//! their holder may see it.

mod assessment;
mod association;
mod attacks;
mod boosting;
pub mod charts;
mod closeness;
mod column_charts;
mod error;
mod html;
mod membership;
mod prediction;
mod rate_charts;
mod regression;
mod report;
mod values;
mod workload;

pub use assessment::{
    AnalysisPurpose, Area, AreaName, Assessment, Check, ColumnUse, Copies, Finding, Severity,
    Suitability, count_copies,
};
pub use association::{association_matrix, cramers_v};
pub use attacks::{
    Attack, MonteCarlo, ScoreAttacks, TVD_BINS, Vectors, monte_carlo, monte_carlo_vectors, nearby,
    score_attacks,
};
pub use boosting::{Boosted, BoostingOptions};
pub use closeness::Closeness;
pub use error::Error;
pub use html::{Fact, html_page};
pub use membership::{Membership, membership};
pub use prediction::{MAX_CLASSES, Prediction, Scores, auc, predict_held_out};
pub use report::{
    Association, ColumnReport, ConstraintReport, MAX_TRIPLES, REPORT_STATEMENT, Report, SetError,
    WorkloadReport, evaluate,
};
pub use values::{Shares, ValueReport, ValueShares, compare_values};
pub use workload::{marginal_l1, model_workload_error, workload_error};
