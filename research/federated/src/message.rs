//! Messages between the server and the parties.

use std::sync::Arc;

use fhaim_domain::Clique;
use fhaim_pgm::{Measurement, Model};

use crate::{Outcome, Plan};

/// The server's call for choices. It is public, and the same for all parties that take part in the round.
#[derive(Debug)]
pub struct Call {
    /// The round, counted from 1.
    pub round: u32,
    /// The noise of the round.
    pub plan: Plan,
    /// The current model. The marginals below follow from it.
    pub model: Arc<Model>,
    /// The measurements that the model was fitted to, from which clients fit their local models.
    pub measurements: Arc<Vec<Measurement>>,
    /// Numbers of the candidates for which the model has room.
    pub eligible: Vec<usize>,
    /// The model's marginals of the eligible candidates, scaled to the model's number of records. Empty for a method
    /// without scores.
    pub marginals: Vec<Vec<f64>>,
    /// The model's 1-ways, by attribute.
    pub one_ways: Vec<Vec<f64>>,
    /// The shares of these candidates' cells in the pooled table. Only for the oracle.
    pub pooled: Option<Vec<Vec<f64>>>,
}

/// A sum that the server requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The number of the sum, which is used once in a run.
    pub message: u64,
    /// The round; 0 for the first sums.
    pub round: u32,
    /// The attributes of the marginal.
    pub clique: Clique,
    /// The parties that add to the sum, ascending.
    pub parties: Vec<usize>,
    /// Variance of the noise of the parties that do not collude, in units of 4.
    pub variance_units: u64,
}

/// A request of the server.
#[derive(Debug)]
pub enum Request {
    /// The noisy number of records of each of these parties.
    Totals(Vec<usize>),
    /// The choices of each of these parties.
    Choices(Vec<usize>, Arc<Call>),
    /// Masked marginals for each of these sums.
    Sums(Vec<Group>),
    /// No further request: the run is over.
    Done(Box<Outcome>),
}

/// The reply of the parties to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Noisy numbers of records, in the order of the request.
    Totals(Vec<i64>),
    /// Numbers of candidates, in the order of the request.
    Choices(Vec<Vec<usize>>),
    /// Masked cells, by sum and by party of the sum.
    Sums(Vec<Vec<Vec<u64>>>),
}
