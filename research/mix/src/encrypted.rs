//! Public groups under encryption: the holder encrypts a column of places for each feature, a group's sum is the
//! product of a column with the group's public 0/1 polynomial (depth 0), the noise is from the holder's ladder, and
//! pages are sealed as all releases are. What is decrypted is what [`Groups::release_with`] gives for the same places
//! and the same ladder, integer for integer.
//!
//! Three parties: who holds records encrypts ([`encrypt`]); who computes has no secret key ([`compute`]); who has the
//! secret key debits, and then decrypts sealed pages alone ([`decrypt`]).

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

/// Deviations of noise that decrypted values have room for.
const ROOM: u128 = 64;

/// What everyone knows of an encrypted release.
#[derive(Clone, Debug)]
pub struct Setup {
    params: Parameters,
    layout: CountsLayout,
    ladder: LadderPlan,
    groups: Groups,
    priced: Priced,
    width: usize,
}

/// What a holder sends, all of it under an upload key that it then forgets.
#[derive(Debug)]
pub struct Upload {
    switch_keys: Arc<UploadSwitchKeys>,
    columns: EncryptedCounts,
    /// Of each page of the release the ladder's vectors that its variance takes, by plaintext modulus.
    noise: Vec<Vec<Vec<UploadCiphertext>>>,
}

impl Setup {
    /// The release of all groups at the least noise whose whole price, the ciphertexts' leak among it, is at most
    /// `budget`.
    ///
    /// # Errors
    /// What [`Groups::price`] refuses, and [`Error::Encryption`] for values that no parameters hold.
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
            // Nothing is multiplied.
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

    /// The parameters that keys are made for.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// The ladder that the holder draws.
    pub fn ladder(&self) -> LadderPlan {
        self.ladder
    }

    /// The groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// What is released, and its price.
    pub fn priced(&self) -> &Priced {
        &self.priced
    }

    /// Ciphertexts that the holder sends.
    pub fn ciphertexts(&self) -> usize {
        let vectors: usize = self.digits().count() * self.pages();
        (self.layout.ciphertexts() + vectors) * self.params.residues()
    }

    fn pages(&self) -> usize {
        self.priced.cells.div_ceil(PAGE)
    }

    /// Cells of a page.
    fn used(&self, page: usize) -> usize {
        (self.priced.cells - (page * PAGE).min(self.priced.cells)).min(PAGE)
    }

    /// Levels and numbers of the ladder's vectors that the variance takes.
    fn digits(&self) -> impl Iterator<Item = (usize, usize)> {
        let digits = Digits::of(self.priced.debit.variance_units).iter();
        digits.flat_map(|(level, digit)| vectors_of_digit(digit).map(move |index| (level, index)))
    }
}

/// The holder: encrypts its records, feature by feature, and its noise.
///
/// # Errors
/// [`Error::Encryption`]; [`Error::Shape`] for records or a ladder of another shape than the setup's.
pub fn encrypt<R: CryptoRng>(
    setup: &Setup,
    placed: &Placed,
    ladder: &Ladder,
    public: &PublicKey,
    rng: &mut R,
) -> Result<Upload, Error> {
    if placed.width() != setup.width || ladder.plan() != setup.ladder {
        return Err(Error::Shape(
            "records or noise of another shape than was agreed on".to_owned(),
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
                // A remainder is below its divisor, the column's length.
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
            let samples = samples.ok_or_else(|| Error::Shape("a ladder too short".to_owned()))?;
            let mut values = Zeroizing::new(vec![0i64; PAGE]);
            for (position, &sample) in samples.iter().enumerate() {
                // Coefficients of a page's positions are below its size, as positions are.
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

/// Who computes: the groups' sums, with noise, mask and flood. Each page is one ciphertext a plaintext modulus.
///
/// # Errors
/// [`Error::Encryption`], for an upload or keys of other parameters among others.
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
            let packed = packed.ok_or_else(|| Error::Shape("a page without cells".to_owned()))?;
            let noise = upload.noise.get(page).into_iter().flatten();
            let noise = noise.filter_map(|vector| vector.get(residue));
            let noise = UploadCiphertext::sum(&setup.params, noise)?;
            let noise = upload.switch_keys.switch(&noise)?;
            sealed.push(seal(public, &packed, [&noise], 0..setup.used(page), rng)?);
        }
    }
    Ok(sealed)
}

/// The cells of a page: each is a group's places in a feature's column, with weights of one.
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

/// Who has the secret key: debits the release, then decrypts it.
///
/// # Errors
/// [`Error::Privacy`] for what the ledger refuses; [`Error::Encryption`] for pages that are not the setup's.
pub fn decrypt(
    setup: &Setup,
    sealed: &[Vec<Ciphertext>],
    secret: &SecretKey,
    ledger: &mut Ledger,
) -> Result<Mixes, Error> {
    if sealed.len() != setup.pages() {
        return Err(Error::Shape("another number of pages".to_owned()));
    }
    ledger.debit(setup.priced.debit.clone())?;
    let mut sums = Vec::with_capacity(setup.priced.cells);
    for (page, ciphertexts) in sealed.iter().enumerate() {
        let (values, _) = secret.decrypt(ciphertexts)?;
        for position in 0..setup.used(page) {
            let value = values.get(coefficient(position)).copied();
            let value = value.and_then(|value| i64::try_from(value).ok());
            let value = value.ok_or_else(|| Error::Shape("a sum past 2^63".to_owned()))?;
            sums.push(value);
        }
    }
    Ok(setup.groups.mixes(sums, setup.width))
}
