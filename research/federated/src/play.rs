//! Runs the parties and their server in one process.

use std::sync::Arc;

use fhaim_domain::Table;
use rand::{CryptoRng, RngCore};
use rand_chacha::ChaCha20Rng;

use crate::masks::PairKeys;
use crate::message::{Reply, Request};
use crate::{Client, Error, FederatedSetting, Outcome, PartyLedger, Server};

/// Size of a masked cell in bytes: 48 bits.
const CELL_BYTES: u64 = 6;

/// Size of a cell of the model in bytes.
const MODEL_CELL_BYTES: u64 = 8;

/// A finished run.
#[derive(Debug)]
pub struct Run {
    /// The server's result.
    pub outcome: Outcome,
    /// The payments of each party.
    pub ledgers: Vec<PartyLedger>,
    /// Number of bytes of masked cells that each party sent.
    pub sent: Vec<u64>,
    /// Number of bytes of models that each party received. FLAIM's program counts these and the sent cells.
    pub received: Vec<u64>,
}

/// Runs a setting among parties with these tables. `rng` keys the parties' generators and pairwise keys; `server_rng`
/// draws the parties of each round. `begun` is called with the number of each round when its sums are requested; 0
/// stands for the first sums.
///
/// # Errors
/// Errors of the clients and the server.
pub fn play<R: CryptoRng + ?Sized>(
    setting: &Arc<FederatedSetting>,
    tables: &[Table],
    rng: &mut R,
    server_rng: &mut dyn RngCore,
    begun: &mut dyn FnMut(u32),
) -> Result<Run, Error> {
    let keys = PairKeys::agree(tables.len(), rng);
    let generators = (0..tables.len()).map(|_| fhaim_dp::fork(rng)).collect();
    play_with(setting, tables, keys, generators, server_rng, begun)
}

/// Like [`play`], with given pairwise keys and one generator per party.
///
/// # Errors
/// Those of [`play`].
pub fn play_with(
    setting: &Arc<FederatedSetting>,
    tables: &[Table],
    keys: Vec<PairKeys>,
    generators: Vec<ChaCha20Rng>,
    server_rng: &mut dyn RngCore,
    begun: &mut dyn FnMut(u32),
) -> Result<Run, Error> {
    let mut clients: Vec<Client> = tables
        .iter()
        .zip(keys.into_iter().zip(generators))
        .map(|(table, (keys, rng))| Client::new(Arc::clone(setting), table.clone(), keys, rng))
        .collect::<Result<_, _>>()?;
    let mut server = Server::new(Arc::clone(setting), tables.len())?;
    if !setting.method.is_private() {
        server = server.with_oracle(tables)?;
    }
    let mut sent = vec![0; tables.len()];
    let mut received = vec![0; tables.len()];
    let mut reply = None;
    loop {
        let request = server.step(reply, server_rng)?;
        if let Request::Sums(groups) = &request {
            begun(groups.first().map_or(0, |group| group.round));
        }
        if let Request::Choices(parties, call) = &request {
            for &party in parties {
                received[party] += model_bytes(&call.model);
            }
        }
        reply = Some(match request {
            Request::Done(outcome) => {
                let ledgers = clients.iter().map(|client| client.ledger().clone());
                return Ok(Run {
                    outcome: *outcome,
                    ledgers: ledgers.collect(),
                    sent,
                    received,
                });
            }
            request => answer(&mut clients, request, &mut sent)?,
        });
    }
}

/// Returns the size of the tables of a model's cliques, from which a client computes all marginals.
fn model_bytes(model: &fhaim_pgm::Model) -> u64 {
    let cells = model
        .cliques()
        .map(|clique| model.domain().cells(&clique).unwrap_or(0));
    cells.sum::<usize>() as u64 * MODEL_CELL_BYTES
}

fn answer(clients: &mut [Client], request: Request, sent: &mut [u64]) -> Result<Reply, Error> {
    match request {
        Request::Totals(parties) => {
            let totals = parties.iter().map(|&party| clients[party].total());
            Ok(Reply::Totals(totals.collect::<Result<_, _>>()?))
        }
        Request::Choices(parties, call) => {
            let choices = parties.iter().map(|&party| clients[party].choose(&call));
            Ok(Reply::Choices(choices.collect::<Result<_, _>>()?))
        }
        Request::Sums(groups) => {
            let mut sums = Vec::with_capacity(groups.len());
            for group in &groups {
                let mut parts = Vec::with_capacity(group.parties.len());
                for &party in &group.parties {
                    let part = clients[party].add(group)?;
                    sent[party] += part.len() as u64 * CELL_BYTES;
                    parts.push(part);
                }
                sums.push(parts);
            }
            Ok(Reply::Sums(sums))
        }
        Request::Done(_) => Err(Error::OutOfTurn("the run is already over")),
    }
}
