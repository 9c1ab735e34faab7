//! All four entities in one process: from a table to a source of releases.

use crate::computation::Computation;
use crate::crypto::CryptoService;
use crate::generation::EncryptedSource;
use crate::{Error, holder};
use fhaim_domain::Table;
use fhaim_dp::Ladder;
use fhaim_he::{ParameterSet, Parameters};
use fhaim_synth::{Job, LadderNeed, MechanismName};
use rand::{CryptoRng, RngCore};

/// Deviations that a noise value may reach without wrapping around the plaintext modulus.
const NOISE_TAIL: u128 = 14;

/// The parameter set for a job: by the record bound, and by the largest value a release may
/// take, noise included. Public: it depends on the job alone.
///
/// # Errors
/// [`fhaim_he::Error::NoParameters`] where no set is large enough.
pub fn parameter_set(
    job: &Job,
    mechanism: MechanismName,
    need: &LadderNeed,
) -> Result<ParameterSet, Error> {
    let records = u128::from(job.record_bound);
    let deviation = 2 * (u128::from(need.largest_variance_units).isqrt() + 1);
    let squares = mechanism == MechanismName::FhaimL2;
    let largest = if squares {
        // |weight (||M||^2 - 2 <M, T>)| for targets that sum to about the bound.
        let pairs = job.workload.pairs().iter();
        let weight = pairs
            .map(|p| job.workload.overlap(&p.clique()))
            .max()
            .unwrap_or(1);
        2 * u128::from(weight) * records * records
    } else {
        // Centred pairs of at most 8 groups reach 49 N; a centred 1-way of n categories (n - 1) N.
        let widest = job.domain.sizes().iter().copied().max().unwrap_or(1) as u128;
        records * widest.max(49)
    };
    Ok(ParameterSet::choose(
        job.record_bound,
        largest + NOISE_TAIL * deviation,
        squares,
    )?)
}

/// What the holder sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    /// Ciphertexts of columns and noise.
    pub ciphertexts: usize,
    /// Their size on the wire.
    pub bytes: u64,
}

/// Makes keys at the crypto service, encrypts `table` and `ladder` at the holder, and connects
/// the services. `progress` is told of every polynomial encrypted
/// (see [`holder::polynomials`]).
///
/// # Errors
/// What the entities refuse.
pub fn connect<R: RngCore + CryptoRng>(
    table: &Table,
    ladder: &Ladder,
    set: ParameterSet,
    job: &Job,
    rng: &mut R,
    progress: &(dyn Fn() + Sync),
) -> Result<(EncryptedSource, Sent), Error> {
    let params = Parameters::new(set)?;
    let mut dataset = [0; 16];
    rng.fill_bytes(&mut dataset);
    let domain = job.domain.clone();
    let crypto = CryptoService::new(
        dataset,
        &params,
        domain.clone(),
        job.record_bound,
        job.rho,
        rng,
    )?;
    let public = crypto.public_key(rng)?;
    let keys = crypto.evaluation_keys(rng)?;
    let upload = holder::encrypt(table, ladder, &public, rng, progress)?;
    let bytes = upload.ciphertexts as u64 * set.ciphertext_bytes() as u64;
    let sent = Sent {
        ciphertexts: upload.ciphertexts,
        bytes,
    };
    let computation = Computation::new(dataset, domain, public, keys, upload);
    Ok((EncryptedSource::new(computation, crypto), sent))
}
