//! Parties and server in one process.

use std::sync::Arc;

use fhaim_domain::Table;
use rand::{CryptoRng, RngCore};
use rand_chacha::ChaCha20Rng;

use crate::masks::PairKeys;
use crate::message::{Reply, Request};
use crate::{Client, Error, FederatedSetting, Outcome, PartyLedger, Server};

/// Bytes of a masked cell: 48 bits.
const CELL_BYTES: u64 = 6;

/// A run that is over.
#[derive(Debug)]
pub struct Run {
    /// What the server has.
    pub outcome: Outcome,
    /// What each party paid.
    pub ledgers: Vec<PartyLedger>,
    /// Bytes of masked cells that each party sent.
    pub sent: Vec<u64>,
}

/// Runs a setting among parties with these tables. `rng` keys the parties' generators and what they share;
/// `server_rng` draws who takes part. `begun` is told
/// of every round whose sums are asked for, 0 being the first sums.
///
/// # Errors
/// Those of clients and server.
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

/// As [`play`], with the keys that the parties share and a generator of each.
///
/// # Errors
/// As [`play`].
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
    if setting.method == crate::Method::AugOracle {
        server = server.with_oracle(tables)?;
    }
    let mut sent = vec![0; tables.len()];
    let mut reply = None;
    loop {
        let request = server.step(reply, server_rng)?;
        if let Request::Sums(groups) = &request {
            begun(groups.first().map_or(0, |group| group.round));
        }
        reply = Some(match request {
            Request::Done(outcome) => {
                let ledgers = clients.iter().map(|client| client.ledger().clone());
                return Ok(Run {
                    outcome: *outcome,
                    ledgers: ledgers.collect(),
                    sent,
                });
            }
            request => answer(&mut clients, request, &mut sent)?,
        });
    }
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
        Request::Done(_) => Err(Error::OutOfTurn("a request after the last")),
    }
}
