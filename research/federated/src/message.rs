//! What passes between the server and the parties.

use std::sync::Arc;

use fhaim_domain::Clique;
use fhaim_pgm::{Measurement, Model};

use crate::{Outcome, Plan};

/// What clients need to choose: public, the same for all who take part in the round.
#[derive(Debug)]
pub struct Call {
    /// The round, counted from 1.
    pub round: u32,
    /// Its noise.
    pub plan: Plan,
    /// The model so far. A client could work out the marginals below from it.
    pub model: Arc<Model>,
    /// What the model was fitted to: for fits of a client's own.
    pub measurements: Arc<Vec<Measurement>>,
    /// Numbers of the candidates that the model has room for.
    pub eligible: Vec<usize>,
    /// The model's marginals of these, in records of the model.
    pub marginals: Vec<Vec<f64>>,
    /// The model's 1-ways, by attribute.
    pub one_ways: Vec<Vec<f64>>,
    /// The pooled table's true shares of these candidates' cells, for the oracle alone.
    pub pooled: Option<Vec<Vec<f64>>>,
}

/// A sum that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The sum's number: used once in a run.
    pub message: u64,
    /// The round, 0 for the first sums.
    pub round: u32,
    /// Whose marginal it is.
    pub clique: Clique,
    /// Who adds to it, ascending.
    pub parties: Vec<usize>,
    /// Variance of the sum's noise that those who do not collude make, in units of 4.
    pub variance_units: u64,
}

/// What the server wants next.
#[derive(Debug)]
pub enum Request {
    /// The number of records, with noise, of each of these parties.
    Totals(Vec<usize>),
    /// The choices of each of these parties.
    Choices(Vec<usize>, Arc<Call>),
    /// Masked marginals.
    Sums(Vec<Group>),
    /// Nothing: the run is over.
    Done(Box<Outcome>),
}

/// What the parties answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// By party asked.
    Totals(Vec<i64>),
    /// Numbers of candidates, by party asked.
    Choices(Vec<Vec<usize>>),
    /// By group, by party of the group: masked cells.
    Sums(Vec<Vec<Vec<u64>>>),
}
