//! Public groups under encryption.
//!
//! The holder encrypts one column of places for each feature. The sum of a group is the product of a column with the
//! group's public 0/1 polynomial (depth 0). The noise comes from the holder's ladder, and pages are sealed like those
//! of all releases. The decrypted sums are the integers that [`Groups::release_with`] gives for the same places and the
//! same ladder.
//!
//! Three parties take part:
//!
//! - The holder has the records and encrypts them ([`encrypt`]).
//! - The computing party has no secret key ([`compute`]).
//! - The key holder has the secret key. It debits the release and then decrypts sealed pages only ([`decrypt`]).

use fhaim_dp::{Digits, Ladder, LadderPlan, Leak, Ledger, Rho, vectors_of_digit};
use fhaim_he::{
    Ciphertext, CountsLayout, Demand, EncryptedCounts, EvaluationKeys, EvaluationWork, Evaluator,
    LEAK_BITS, Layout, PAGE, ParameterSet, Parameters, PublicKey, SecretKey, UploadCiphertext,
    UploadKey, UploadSwitchKeys, Weights, coefficient, seal,
};
use rand::CryptoRng;
use std::sync::Arc;
use zeroize::Zeroizing;

use crate::{Error, Groups, Mixes, Placed, Points, Priced};

/// Standard deviations of noise that a decrypted value must have room for.
const ROOM: u128 = 64;

/// Public setting of an encrypted release, known to all parties.
#[derive(Clone, Debug)]
pub struct Setup {
    params: Parameters,
    layout: CountsLayout,
    ladder: LadderPlan,
    groups: Groups,
    priced: Priced,
    width: usize,
}

/// The ciphertexts that a holder sends. All are under an upload key that the holder then deletes.
#[derive(Debug)]
pub struct Upload {
    switch_keys: Arc<UploadSwitchKeys>,
    columns: EncryptedCounts,
    /// For each page, the ladder vectors that the variance of the release needs, by plaintext modulus.
    noise: Vec<Vec<Vec<UploadCiphertext>>>,
}

impl Setup {
    /// Sets up the release of all groups at the least noise whose total price is at most `budget`. The price includes
    /// the leak of the ciphertexts.
    ///
    /// # Errors
    /// Those of [`Groups::price`], and [`Error::Encryption`] for values that exceed every parameter set.
    pub fn new(groups: Groups, points: &Points, budget: Rho) -> Result<Self, Error> {
        let records = groups.places() as u64;
        let leak = Leak {
            ciphertext: Rho::ratio_up(1, 1 << LEAK_BITS)?,
            residues: ParameterSet::residues(records, false),
        };
        let priced = groups.price(points, budget, &leak)?;
        let deviation = 2 * u128::from(priced.debit.variance_units).isqrt() + 1;
        let largest = groups.mix() as u128 * u128::from(points.largest()) + ROOM * deviation;
        let set = ParameterSet::choose(&Demand {
            records,
            largest,
            squares: false,
            layout: Layout::for_records(groups.places())?,
            // The circuit has no multiplication of ciphertexts.
            energy: 1,
            shares: 1,
            strip_bits: 0.0,
        })?;
        Ok(Self {
            params: Parameters::shared(set)?,
            layout: CountsLayout::new(&vec![groups.places(); points.width()])?,
            ladder: priced.ladder()?,
            width: points.width(),
            groups,
            priced,
        })
    }

    /// Returns the parameters that keys are generated for.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// Returns the plan of the ladder that the holder draws.
    pub fn ladder(&self) -> LadderPlan {
        self.ladder
    }

    /// Returns the groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Returns the release and its price.
    pub fn priced(&self) -> &Priced {
        &self.priced
    }

    /// Returns the number of ciphertexts that the holder sends.
    pub fn ciphertexts(&self) -> usize {
        let vectors: usize = self.digits().count() * self.pages();
        (self.layout.ciphertexts() + vectors) * self.params.residues()
    }

    fn pages(&self) -> usize {
        self.priced.cells.div_ceil(PAGE)
    }

    /// Number of cells on a page.
    fn used(&self, page: usize) -> usize {
        (self.priced.cells - (page * PAGE).min(self.priced.cells)).min(PAGE)
    }

    /// Level and index of each ladder vector that the variance needs.
    fn digits(&self) -> impl Iterator<Item = (usize, usize)> {
        let digits = Digits::of(self.priced.debit.variance_units).iter();
        digits.flat_map(|(level, digit)| vectors_of_digit(digit).map(move |index| (level, index)))
    }
}

/// Encrypts the holder's records, feature by feature, and its noise.
///
/// # Errors
/// [`Error::Encryption`]; [`Error::Shape`] if the records or the ladder do not match the setup.
pub fn encrypt<R: CryptoRng>(
    setup: &Setup,
    placed: &Placed,
    ladder: &Ladder,
    public: &PublicKey,
    rng: &mut R,
) -> Result<Upload, Error> {
    if placed.width() != setup.width || ladder.plan() != setup.ladder {
        return Err(Error::Shape(
            "the records or the ladder do not match the agreed setup".to_owned(),
        ));
    }
    let key = UploadKey::random(&setup.params, rng)?;
    let switch_keys = Arc::new(key.switch_keys(public, None, rng)?);
    let mut encrypt = |values: &[i64]| -> Result<Vec<UploadCiphertext>, Error> {
        let sent = key.encrypt(values, rng)?.into_iter();
        let expanded = sent.map(|one| one.expand(&setup.params));
        Ok(expanded.collect::<Result<_, _>>()?)
    };
    let stride = setup.layout.stride();
    let places = setup.groups.places();
    let mut coefficients = vec![Zeroizing::new(vec![0i64; stride]); setup.layout.ciphertexts()];
    for feature in 0..setup.width {
        let first = setup.layout.first(feature).unwrap_or(0);
        for place in 0..places {
            let at = first + place;
            let column = coefficients.get_mut(at / stride);
            if let (Some(column), Some(value)) = (column, placed.value(place, feature)) {
                // A remainder is below its divisor, which is the column's length.
                column[at % stride] = i64::from(value);
            }
        }
    }
    let columns = coefficients
        .iter()
        .map(|column| Ok::<_, Error>(vec![encrypt(column)?]));
    let keys = std::slice::from_ref(&switch_keys);
    let columns = EncryptedCounts::of_holders(keys, setup.layout.clone(), columns)?;
    let mut noise = Vec::new();
    for page in 0..setup.pages() {
        let mut vectors = Vec::new();
        for (level, index) in setup.digits() {
            let samples = ladder.vector(page, level, index);
            let samples =
                samples.ok_or_else(|| Error::Shape("the ladder is too short".to_owned()))?;
            let mut values = Zeroizing::new(vec![0i64; PAGE]);
            for (position, &sample) in samples.iter().enumerate() {
                // A position is below the page size, and `coefficient` maps positions to the same range.
                values[coefficient(position)] = sample;
            }
            vectors.push(encrypt(&values)?);
        }
        noise.push(vectors);
    }
    Ok(Upload {
        switch_keys,
        columns,
        noise,
    })
}

/// Computes the groups' sums and seals them with noise, mask and flood: one ciphertext per page and plaintext modulus.
///
/// # Errors
/// [`Error::Encryption`], for example if the upload or the keys have other parameters.
pub fn compute<R: CryptoRng>(
    setup: &Setup,
    upload: &Upload,
    keys: &EvaluationKeys,
    public: &PublicKey,
    rng: &mut R,
) -> Result<Vec<Vec<Ciphertext>>, Error> {
    let evaluator = Evaluator::new(keys, setup.layout.packing()?);
    let mut sealed = vec![Vec::new(); setup.pages()];
    for (page, sealed) in sealed.iter_mut().enumerate() {
        let cells = cells(setup, page);
        for residue in 0..setup.params.residues() {
            let mut work = EvaluationWork::default();
            let packed = evaluator.count_pages(
                &upload.columns,
                residue,
                std::slice::from_ref(&cells),
                &mut work,
            )?;
            let packed = packed.into_iter().flatten().next();
            let packed = packed.ok_or_else(|| Error::Shape("a page has no cells".to_owned()))?;
            let noise = upload.noise.get(page).into_iter().flatten();
            let noise = noise.filter_map(|vector| vector.get(residue));
            let noise = UploadCiphertext::sum(&setup.params, noise)?;
            let noise = upload.switch_keys.switch(&noise)?;
            sealed.push(seal(public, &packed, [&noise], 0..setup.used(page), rng)?);
        }
    }
    Ok(sealed)
}

/// Returns the cells of a page. Each one sums the group's places in a feature's column, with weights of one.
fn cells(setup: &Setup, page: usize) -> Vec<(usize, Weights)> {
    let groups: Vec<&[usize]> = setup.groups.members().collect();
    let cell = |position: usize| {
        let cell = page * PAGE + position;
        let first = setup.layout.first(cell % setup.width).unwrap_or(0);
        let places = groups.get(cell / setup.width).copied().unwrap_or(&[]);
        let weights = places.iter().map(|&place| (first + place, 1));
        (position, Weights(weights.collect()))
    };
    (0..setup.used(page)).map(cell).collect()
}

/// Debits the release and then decrypts it, with the secret key.
///
/// # Errors
/// [`Error::Privacy`] if the ledger refuses the debit; [`Error::Encryption`] and [`Error::Shape`] for pages that do not
/// match the setup.
pub fn decrypt(
    setup: &Setup,
    sealed: &[Vec<Ciphertext>],
    secret: &SecretKey,
    ledger: &mut Ledger,
) -> Result<Mixes, Error> {
    if sealed.len() != setup.pages() {
        return Err(Error::Shape(
            "the number of sealed pages does not match the setup".to_owned(),
        ));
    }
    ledger.debit(setup.priced.debit.clone())?;
    let mut sums = Vec::with_capacity(setup.priced.cells);
    for (page, ciphertexts) in sealed.iter().enumerate() {
        let (values, _) = secret.decrypt(ciphertexts)?;
        for position in 0..setup.used(page) {
            let value = values.get(coefficient(position)).copied();
            let value = value.and_then(|value| i64::try_from(value).ok());
            let value =
                value.ok_or_else(|| Error::Shape("a decrypted sum exceeds 2^63".to_owned()))?;
            sums.push(value);
        }
    }
    Ok(setup.groups.mixes(sums, setup.width))
}
