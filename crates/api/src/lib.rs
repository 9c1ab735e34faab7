#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! | module | routes of |
//! |---|---|
//! | [`account`] | generation: accounts, sessions, API keys |
//! | [`dataset`] | generation: datasets |
//! | [`job`] | generation: jobs, their events and results |
//! | [`link`] | generation: results for other accounts |
//! | [`upload`] | computation: objects of an upload |
//! | [`batch`] | computation: releases that a job requests |
//! | [`keys`] | crypto: key sets, the ledger, decryption, the audit log |
//! | [`usage`] | all: an account's usage and limits |
//! | [`problem`] | all: errors (RFC 9457) |
//!
//! Identifiers are UUIDs, times are RFC 3339 in UTC, and privacy costs are exact counts of 2^-80
//! together with a double for display. Every JSON body is parsed strictly: an unknown field is an
//! error.

pub mod account;
pub mod batch;
pub mod dataset;
mod digest;
pub mod job;
pub mod keys;
pub mod link;
pub mod problem;
pub mod token;
pub mod upload;
pub mod usage;

pub use digest::{Digest, DigestError};

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// A privacy cost, exact and as a number for display.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The cost times 2^80, in decimal.
    #[schema(example = "18101922084672512")]
    pub exact: String,
    /// The nearest double.
    pub rho: f64,
}

impl From<fhaim_dp::Rho> for Cost {
    fn from(rho: fhaim_dp::Rho) -> Self {
        Self {
            exact: rho.count().to_string(),
            rho: rho.to_f64(),
        }
    }
}

/// A page of a list: `items`, and the start of the next page if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// Value of `after` that continues the list. Absent at its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<String>,
    /// Identifiers of items that are left out because their stored data is damaged.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub damaged: Vec<Uuid>,
}

/// The part of a list to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Paging {
    /// `next` of the previous page. Absent for the first page.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<String>,
    /// Most items to show.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[param(minimum = 1, maximum = 100, default = 50)]
    pub limit: Option<u32>,
}
