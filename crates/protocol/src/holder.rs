//! The data entity: encrypts a table and a ladder of noise, then goes offline.

use crate::Error;
use fhaim_domain::Table;
use fhaim_dp::{DIGIT_SAMPLES, Ladder, LadderPlan};
use fhaim_he::{Ciphertext, EncryptedTable, Layout, PAGE, PublicKey, coefficient};
use rand::{CryptoRng, RngCore, SeedableRng, rngs::StdRng};
use rayon::prelude::*;

/// Noise under encryption: one ciphertext a ladder vector and plaintext modulus.
#[derive(Clone, Debug)]
pub struct EncryptedLadder {
    plan: LadderPlan,
    /// Vectors by (page, level, index), row-major; one ciphertext a plaintext modulus.
    vectors: Vec<Vec<Ciphertext>>,
}

impl EncryptedLadder {
    /// The ladder's public size.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// The vector at (page, level, index) under plaintext modulus `residue`.
    pub(crate) fn vector(
        &self,
        page: usize,
        level: usize,
        index: usize,
        residue: usize,
    ) -> Option<&Ciphertext> {
        if level >= self.plan.levels() || index >= DIGIT_SAMPLES {
            return None;
        }
        let vector = (page * self.plan.levels() + level) * DIGIT_SAMPLES + index;
        self.vectors.get(vector)?.get(residue)
    }
}

/// Everything a holder uploads.
#[derive(Clone, Debug)]
pub struct Upload {
    /// One-hot columns.
    pub table: EncryptedTable,
    /// Noise for every release to come.
    pub ladder: EncryptedLadder,
    /// Number of ciphertexts in both.
    pub ciphertexts: usize,
}

/// Encrypts the one-hot columns of `table` and the noise of `ladder` under the dataset's key.
/// `progress` is told of every polynomial encrypted, out of [`polynomials`].
///
/// # Errors
/// [`Error::Table`] for a table without records; what the encryption refuses.
pub fn encrypt<R: RngCore + CryptoRng>(
    table: &Table,
    ladder: &Ladder,
    public: &PublicKey,
    rng: &mut R,
    progress: &(dyn Fn() + Sync),
) -> Result<Upload, Error> {
    let layout = Layout::for_records(table.records())?;
    let domain = table.domain();
    let columns: Vec<(usize, u32)> = (0..domain.columns())
        .filter_map(|c| domain.one_hot_position(c))
        .collect();
    // Every polynomial has a generator of its own, so that threads do not share one.
    let seeds = |n: usize, rng: &mut R| -> Vec<[u8; 32]> {
        let mut seed = || {
            let mut seed = [0; 32];
            rng.fill_bytes(&mut seed);
            seed
        };
        (0..n).map(|_| seed()).collect()
    };
    let column_seeds = seeds(columns.len() * layout.chunks(), rng);
    let encrypt_chunk = |(column, chunk): (usize, usize)| -> Result<Vec<Ciphertext>, Error> {
        let (attribute, category) = columns[column];
        let start = chunk * PAGE;
        let end = table.records().min(start + PAGE);
        let bits: Vec<i64> = table.column(attribute)[start..end]
            .iter()
            .map(|&code| i64::from(code == category))
            .collect();
        let mut rng = StdRng::from_seed(column_seeds[column * layout.chunks() + chunk]);
        let encrypted = public.encrypt(&bits, &mut rng)?;
        progress();
        Ok(encrypted)
    };
    let encrypted = (0..columns.len())
        .into_par_iter()
        .map(|column| {
            (0..layout.chunks())
                .map(|chunk| encrypt_chunk((column, chunk)))
                .collect()
        })
        .collect::<Result<Vec<Vec<_>>, Error>>()?;
    let plan = ladder.plan();
    let ladder_seeds = seeds(plan.vectors(), rng);
    let encrypt_vector = |vector: usize| -> Result<Vec<Ciphertext>, Error> {
        let (page, rest) = (
            vector / (plan.levels() * DIGIT_SAMPLES),
            vector % (plan.levels() * DIGIT_SAMPLES),
        );
        let samples = ladder
            .vector(page, rest / DIGIT_SAMPLES, rest % DIGIT_SAMPLES)
            .ok_or_else(|| Error::Table("the ladder is smaller than its plan".to_owned()))?;
        let mut coefficients = vec![0; PAGE];
        for (position, &sample) in samples.iter().enumerate() {
            coefficients[coefficient(position)] = sample;
        }
        let mut rng = StdRng::from_seed(ladder_seeds[vector]);
        let encrypted = public.encrypt(&coefficients, &mut rng)?;
        progress();
        Ok(encrypted)
    };
    let vectors = (0..plan.vectors())
        .into_par_iter()
        .map(encrypt_vector)
        .collect::<Result<_, _>>()?;
    let ciphertexts = polynomials(table, plan)? * public.params().residues();
    let table = EncryptedTable::new(public.params(), layout, encrypted)?;
    Ok(Upload {
        table,
        ladder: EncryptedLadder { plan, vectors },
        ciphertexts,
    })
}

/// Number of polynomials an upload encrypts: columns times chunks, and ladder vectors.
///
/// # Errors
/// For a table without records.
pub fn polynomials(table: &Table, plan: LadderPlan) -> Result<usize, Error> {
    let layout = Layout::for_records(table.records())?;
    Ok(table.domain().columns() * layout.chunks() + plan.vectors())
}
