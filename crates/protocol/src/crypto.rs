//! The crypto-service entity: makes keys, keeps the ledger, decrypts releases it has debited.

use crate::Error;
use crate::computation::DecryptRequest;
use fhaim_domain::Domain;
use fhaim_dp::{Debit, Ledger, Rho};
use fhaim_he::{EvaluationKeys, LEAK_BITS, Parameters, PublicKey, SecretKey, coefficient};
use rand::{CryptoRng, RngCore};
use sha2::{Digest, Sha256};

/// Sealed ciphertexts that one release may take part in, plaintext moduli counted apart.
const LEAKS: u64 = 4;

/// What every release is charged for the residual noise of its ciphertexts: 2^-28.
///
/// # Errors
/// Never: the ratio is a constant within range.
pub fn leak() -> Result<Rho, Error> {
    Ok(Rho::ratio_up(u128::from(LEAKS), 1 << LEAK_BITS)?)
}

/// The service's state for one dataset.
#[derive(Debug)]
pub struct CryptoService {
    dataset: [u8; 16],
    secret: SecretKey,
    domain: Domain,
    record_bound: u64,
    ledger: Ledger,
}

impl CryptoService {
    /// Makes a dataset's key set and fixes its domain, record bound and budget.
    ///
    /// # Errors
    /// What key generation refuses.
    pub fn new<R: RngCore + CryptoRng>(
        dataset: [u8; 16],
        params: &Parameters,
        domain: Domain,
        record_bound: u64,
        budget: Rho,
        rng: &mut R,
    ) -> Result<Self, Error> {
        let secret = SecretKey::random(params, rng)?;
        Ok(Self {
            dataset,
            secret,
            domain,
            record_bound,
            ledger: Ledger::new(budget),
        })
    }

    /// The key to encrypt under.
    ///
    /// # Errors
    /// What key generation refuses.
    pub fn public_key<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<PublicKey, Error> {
        Ok(self.secret.public_key(rng)?)
    }

    /// The keys to evaluate with.
    ///
    /// # Errors
    /// What key generation refuses.
    pub fn evaluation_keys<R: RngCore + CryptoRng>(
        &self,
        rng: &mut R,
    ) -> Result<EvaluationKeys, Error> {
        Ok(self.secret.evaluation_keys(rng)?)
    }

    /// The releases debited so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Debits and decrypts a batch: the cells of each of its releases, in order.
    ///
    /// Decryption comes first, in memory, so that a ciphertext that cannot be decrypted leaves
    /// the ledger unchanged; nothing leaves this function unless every debit has been taken. A
    /// repeated request is answered again without a debit.
    ///
    /// # Errors
    /// [`Error::Refused`], whatever the reason; the ledger is then unchanged.
    pub fn decrypt(&mut self, request: &DecryptRequest) -> Result<Vec<Vec<i64>>, Error> {
        let mut ledger = self.ledger.clone();
        let answer = self
            .checked(request, &mut ledger)
            .map_err(|_| Error::Refused)?;
        self.ledger = ledger;
        Ok(answer)
    }

    fn checked(
        &self,
        request: &DecryptRequest,
        ledger: &mut Ledger,
    ) -> Result<Vec<Vec<i64>>, Error> {
        if request.dataset != self.dataset {
            return Err(Error::Refused);
        }
        let mut pages = Vec::with_capacity(request.pages.len());
        for page in &request.pages {
            let (values, _) = self.secret.decrypt(&page.ciphertexts)?;
            pages.push((page, values));
        }
        let mut answer = Vec::with_capacity(request.releases.len());
        for release in &request.releases {
            let number = release.number;
            let statistic = &release.statistic;
            statistic.check(&self.domain).map_err(|_| Error::Refused)?;
            let delta2_squared = statistic
                .squared_sensitivity(self.record_bound)
                .map_err(|_| Error::Refused)?;
            let mut digest = Sha256::new();
            digest.update(self.dataset);
            digest.update(serde_json::to_vec(release).map_err(|_| Error::Refused)?);
            let mut cells = vec![0i64; statistic.cells()];
            let mut filled = 0;
            let mut sealed = 0;
            for (page, values) in &pages {
                for part in page.parts.iter().filter(|part| part.number == number) {
                    sealed += page.ciphertexts.len() as u64;
                    if page.variance_units != release.variance_units {
                        return Err(Error::Refused);
                    }
                    digest.update(page.digest());
                    for position in part.span.range() {
                        let cell = cells.get_mut(filled).ok_or(Error::Refused)?;
                        let value = values.get(coefficient(position)).ok_or(Error::Refused)?;
                        *cell = i64::try_from(*value).map_err(|_| Error::Refused)?;
                        filled += 1;
                    }
                }
            }
            if filled != cells.len() || sealed > LEAKS {
                return Err(Error::Refused);
            }
            ledger.debit(Debit {
                number,
                description: format!("{:?}", statistic.clique().attributes()),
                digest: digest.finalize().into(),
                delta2_squared,
                variance_units: release.variance_units,
                cells: cells.len() as u64,
                leak: leak()?,
            })?;
            answer.push(cells);
        }
        Ok(answer)
    }
}
