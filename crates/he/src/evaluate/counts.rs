//! Encrypted tables of counts, and their contrasts as products with public polynomials.
//!
//! A holder that has all columns of a record can count records itself, and upload encrypted counts instead of
//! encrypted records. A contrast is then linear in the uploaded counts. Count i of a ciphertext is the
//! coefficient of X^i, and the weights w of a cell are the polynomial sum of w_i X^-i, so the constant
//! coefficient of their product is the cell. Counts occupy the coefficients below the *stride*, so that one
//! product carries a cell in every slot, and pages are packed like those of records. The stride is a trade-off:
//! a larger one makes the upload smaller, and adds key switches to each page ([`CountsLayout::new`]).
//!
//! **What a page's noise may reveal.** Fix the randomness of encryption and sealing. c1 of every ciphertext is
//! then the same for every message, and so are all key switches: their digits come from c1, and their rounding
//! from c0 modulo the special prime, which contains nothing of the message. In a fresh ciphertext, only the
//! rounding of c0 and m / t depend on the plaintext m in [0, t). The noises of two plaintexts differ by at most 2
//! in a coefficient, and not at all where the plaintexts are equal. A cell's noise is the weighted sum of these,
//! plus the integer by which the plaintexts' sum exceeds its residue. So if two tables differ in one count of a
//! cell with weight w, their pages differ by at most 2 |w| + 1 there, and by one more for each summand that may
//! wrap when the page is sealed. This holds for any plaintexts. The flood hides far more (docs/THREAT-MODEL.md).

use crate::error::{Error, Result};
use crate::evaluate::Evaluator;
use crate::evaluate::packing::merge_row;
use crate::evaluate::parallel::map;
use crate::evaluate::task::TILE_LEAVES;
use crate::evaluate::work::{Clock, EvaluationWork};
use crate::release::page::{PackedPage, PageNoise};
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::keyswitch::{Lifted, Scratch};
use crate::scheme::noise;
use crate::scheme::params::Parameters;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::Pair;
use crate::scheme::upload::{UploadCiphertext, UploadSwitchKeys};
use crate::table::layout::TILE_HEIGHT;
use crate::table::layout::{Layout, PAGE};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The places of tables of counts in ciphertexts, which are a public function of the tables' sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountsLayout {
    stride: usize,
    ciphertexts: usize,
    /// For each table, the place of its first count: ciphertext times stride plus coefficient. The places of a table
    /// are consecutive.
    first: Vec<usize>,
}

/// A layout doubles its stride until it has at most this many ciphertexts, which are about 54 MB under an upload key.
const MAX_CIPHERTEXTS: usize = 512;

impl CountsLayout {
    /// Computes the layout of tables of these sizes, each at least 1.
    ///
    /// The stride is the smallest one that the largest table fits into and at which all tables take at most 512
    /// ciphertexts, or 8192 if they always take more. Each doubling halves the ciphertexts of small tables and
    /// doubles the key switches of a page. A table that does not fit into the rest of a ciphertext begins a new one.
    /// Only tables of more than 8192 counts take several ciphertexts.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for no table, for an empty table, and for more counts than memory has addresses.
    pub fn new(sizes: &[usize]) -> Result<Self> {
        let mut stride = Self::least_stride(sizes)?;
        loop {
            let layout = Self::with_stride(sizes, stride)?;
            if stride == DEGREE || layout.ciphertexts <= MAX_CIPHERTEXTS {
                return Ok(layout);
            }
            stride *= 2;
        }
    }

    fn least_stride(sizes: &[usize]) -> Result<usize> {
        let empty = Error::OutOfRange("every table of counts needs at least one cell");
        let largest = sizes.iter().copied().max().filter(|_| !sizes.contains(&0));
        let largest = largest.ok_or(empty)?.min(DEGREE);
        Ok(largest.next_power_of_two().max(Layout::MIN_STRIDE))
    }

    fn with_stride(sizes: &[usize], stride: usize) -> Result<Self> {
        let mut first = Vec::with_capacity(sizes.len());
        let mut next = 0usize;
        for &size in sizes {
            let used = next % stride;
            if used > 0 && size > stride - used {
                next += stride - used;
            }
            first.push(next);
            let end = next.checked_add(size);
            let end = end.filter(|&end| end <= usize::MAX / 2);
            next = end.ok_or(Error::OutOfRange("too many counts"))?;
        }
        Ok(Self {
            stride,
            ciphertexts: next.div_ceil(stride),
            first,
        })
    }

    /// Returns the number of counts in a ciphertext.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the number of ciphertexts of all tables.
    pub fn ciphertexts(&self) -> usize {
        self.ciphertexts
    }

    /// Returns the place of the first count of a table. The others follow it.
    pub fn first(&self, table: usize) -> Option<usize> {
        self.first.get(table).copied()
    }

    /// Returns the layout that an evaluator packs the cells with.
    ///
    /// # Errors
    /// None: the stride is valid for a layout.
    pub fn packing(&self) -> Result<Layout> {
        Layout::of_many(1, self.stride)
    }
}

/// A cell: the weighted sum of some counts, as (place, weight). Each place occurs once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights(pub Vec<(usize, i64)>);

/// Encrypted tables of counts, summed over their holders.
#[derive(Clone, Debug)]
pub struct EncryptedCounts {
    params: Parameters,
    layout: CountsLayout,
    /// Variance of the noise of each ciphertext.
    variance: f64,
    /// `ciphertexts[number][residue]`
    ciphertexts: Vec<Vec<Ciphertext>>,
}

impl EncryptedCounts {
    /// Adds up the holders' tables. `uploaded` yields, for each ciphertext of the layout, what each holder uploaded
    /// in the order of `keys`, under each plaintext modulus. Each part is switched to the service's key and added, so
    /// the holders' tables are never all in memory.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the number of ciphertexts or holders is wrong, if a ciphertext lacks a residue, or if
    /// it is not under its holder's upload key. Errors of `uploaded` are passed on.
    pub fn of_holders<E: From<Error>>(
        keys: &[Arc<UploadSwitchKeys>],
        layout: CountsLayout,
        uploaded: impl IntoIterator<Item = std::result::Result<Vec<Vec<UploadCiphertext>>, E>>,
    ) -> std::result::Result<Self, E> {
        let lacking = || Error::Mismatch("tables of counts lack a holder or a residue");
        let params = keys.first().ok_or_else(lacking)?.params().clone();
        let mut sums = Vec::with_capacity(layout.ciphertexts);
        for of_each in uploaded {
            let of_each = of_each?;
            if of_each.len() != keys.len() {
                return Err(lacking().into());
            }
            let residue = |residue: usize| {
                let switched = keys
                    .iter()
                    .zip(&of_each)
                    .map(|(keys, of_one)| keys.switch(of_one.get(residue).ok_or_else(lacking)?));
                let switched = switched.collect::<Result<Vec<Ciphertext>>>()?;
                Ciphertext::sum(&params, &switched)
            };
            let residues = 0..of_each.iter().map(Vec::len).max().unwrap_or_default();
            sums.push(residues.map(residue).collect::<Result<_>>()?);
        }
        let fresh = noise::UPLOAD_FRESH.total;
        let variance = keys.iter();
        let variance = variance.map(|keys| noise::switched_variance(&params, keys.origin, fresh));
        Ok(Self::with_variance(&params, layout, variance.sum(), sums)?)
    }

    fn with_variance(
        params: &Parameters,
        layout: CountsLayout,
        variance: f64,
        ciphertexts: Vec<Vec<Ciphertext>>,
    ) -> Result<Self> {
        let residues = 0..params.residues();
        let whole = |all: &Vec<Ciphertext>| residues.clone().eq(all.iter().map(|c| c.residue));
        if ciphertexts.len() != layout.ciphertexts || !ciphertexts.iter().all(whole) {
            return Err(Error::Mismatch("tables of counts lack a ciphertext"));
        }
        Ok(Self {
            params: params.clone(),
            layout,
            variance,
            ciphertexts,
        })
    }

    /// Returns the places of the counts.
    pub fn layout(&self) -> &CountsLayout {
        &self.layout
    }

    /// Returns the parameters of the ciphertexts.
    pub fn params(&self) -> &Parameters {
        &self.params
    }
}

/// The public polynomials of a leaf of the packing tree: for each ciphertext, the coefficients that are not zero.
type LeafWeights = BTreeMap<usize, Vec<(usize, i64)>>;

impl Evaluator<'_> {
    /// Computes pages of cells of encrypted counts. Each page has its cells at their positions (distinct, below
    /// [`PAGE`]) and zero elsewhere, and is `None` if it has no cells. The evaluator's layout must be
    /// [`CountsLayout::packing`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for positions, places or a plaintext modulus outside their ranges. [`Error::Mismatch`]
    /// if counts and keys do not belong together.
    pub fn count_pages(
        &self,
        counts: &EncryptedCounts,
        residue: usize,
        pages: &[Vec<(usize, Weights)>],
        work: &mut EvaluationWork,
    ) -> Result<Vec<Option<PackedPage>>> {
        self.context()
            .check(&counts.params, counts.layout.packing()?)?;
        if residue >= counts.params.residues() {
            return Err(Error::OutOfRange("plaintext modulus"));
        }
        pages
            .iter()
            .map(|cells| self.count_page(counts, residue, cells, work))
            .collect()
    }

    fn count_page(
        &self,
        counts: &EncryptedCounts,
        residue: usize,
        cells: &[(usize, Weights)],
        work: &mut EvaluationWork,
    ) -> Result<Option<PackedPage>> {
        let leaves = lay_out(&counts.layout, self.context().layout(), cells)?;
        let Some(&last) = leaves.keys().next_back() else {
            return Ok(None);
        };
        let noisiest = leaves.values().map(energy).fold(0.0, f64::max);
        let merge = noise::linear_merge_variance(&counts.params);
        let packing = noise::packing_variance(&counts.params, counts.layout.stride, merge);
        let deviation = (counts.variance * noisiest + packing).sqrt();

        let tiles = (0..=last / TILE_LEAVES).collect();
        let started = Clock::start();
        let tiles = map(tiles, |tile| {
            let mut work = EvaluationWork::default();
            let root = self.count_tile(counts, residue, &leaves, tile, &mut work);
            (root, work)
        });
        let mut nodes = Vec::with_capacity(tiles.len());
        for (root, done) in tiles {
            *work += done;
            nodes.push(root?);
        }
        let context = self.context();
        let packed = context.with_scratch(work, |scratch| {
            for height in TILE_HEIGHT..context.packer.height() {
                let merge = |u, v| context.packer.merge(height, u, v, scratch);
                nodes = merge_row(std::mem::take(&mut nodes), merge);
            }
            let root = nodes.pop().flatten()?;
            Some(context.packer.finish(residue, root, scratch))
        });
        work.packing += started.seconds();
        Ok(packed.map(|ciphertext| PackedPage {
            ciphertext,
            noise: PageNoise {
                deviation,
                norm_squared: DEGREE as f64 * deviation.powi(2),
            },
        }))
    }

    /// Returns the root of a tile's leaves, or `None` if the tile has no leaves.
    fn count_tile(
        &self,
        counts: &EncryptedCounts,
        residue: usize,
        leaves: &BTreeMap<usize, LeafWeights>,
        tile: usize,
        work: &mut EvaluationWork,
    ) -> Result<Option<Lifted>> {
        let first = tile * TILE_LEAVES;
        let mut row = Vec::with_capacity(TILE_LEAVES);
        for leaf in first..first + TILE_LEAVES {
            let weights = leaves.get(&leaf);
            let product = weights.map(|weights| self.count_leaf(counts, residue, weights));
            row.push(product.transpose()?);
        }
        let context = self.context();
        let merge = |scratch: &mut Scratch| {
            let mut nodes = merge_row(row, |u, v| {
                let spread = context.packer.spread_leaves(u, v)?;
                Some(context.packer.merge_leaves(spread, scratch))
            });
            for height in 1..TILE_HEIGHT {
                nodes = merge_row(nodes, |u, v| context.packer.merge(height, u, v, scratch));
            }
            nodes.pop().flatten()
        };
        Ok(context.with_scratch(work, merge))
    }

    /// Returns stride^-1 times the sum of ciphertexts times their public polynomials.
    fn count_leaf(
        &self,
        counts: &EncryptedCounts,
        residue: usize,
        weights: &LeafWeights,
    ) -> Result<Pair> {
        let ring = counts.params.ring();
        let mut out = [ring.zero(), ring.zero()];
        for (&number, terms) in weights {
            let ciphertext = counts
                .ciphertexts
                .get(number)
                .and_then(|all| all.get(residue));
            let ciphertext = ciphertext.ok_or(Error::OutOfRange("place of a count"))?;
            let stride = counts.layout.stride as u64;
            let mut polynomial = ring.zero();
            for (j, limb) in ring.ciphertext_limbs().iter().enumerate() {
                let m = limb.modulus;
                // The weights include stride^-1, and the factor that a reduction divides by.
                let unit = m.mont(m.inv(stride));
                let weights = polynomial.limb_mut(j);
                for &(at, weight) in terms {
                    if let Some(coefficient) = weights.get_mut(at) {
                        *coefficient = m.mul(m.residue_of(i128::from(weight)), unit);
                    }
                }
                limb.forward(weights);
                for (out, half) in out.iter_mut().zip(&ciphertext.c) {
                    let factors = [&[half.limb(j)], &[polynomial.limb(j)]];
                    let [x, y] = factors;
                    m.add_inner_product(x, y, out.limb_mut(j));
                }
            }
        }
        Ok(out)
    }
}

/// Arranges the cells of a page as leaves, by number.
fn lay_out(
    counts: &CountsLayout,
    packing: Layout,
    cells: &[(usize, Weights)],
) -> Result<BTreeMap<usize, LeafWeights>> {
    let stride = counts.stride;
    let mut leaves: BTreeMap<usize, LeafWeights> = BTreeMap::new();
    let mut positions: Vec<usize> = cells.iter().map(|&(p, _)| p).collect();
    positions.sort_unstable();
    positions.dedup();
    if positions.len() != cells.len() || positions.last().is_some_and(|&p| p >= PAGE) {
        return Err(Error::OutOfRange("cell positions"));
    }
    for (position, Weights(weights)) in cells {
        let (leaf, slot) = packing.place(*position);
        let leaf = leaves.entry(leaf).or_default();
        for &(place, weight) in weights {
            let (number, offset) = (place / stride, place % stride);
            if number >= counts.ciphertexts {
                return Err(Error::OutOfRange("place of a count"));
            }
            // The count is the coefficient of X^offset, and its weight that of X^(slot stride - offset).
            // X^-k is -X^(n - k).
            let shift = slot * stride;
            let term = match shift.checked_sub(offset) {
                Some(at) => (at, weight),
                None => (DEGREE + shift - offset, -weight),
            };
            leaf.entry(number).or_default().push(term);
        }
    }
    Ok(leaves)
}

/// Returns the squared norm of all polynomials of a leaf.
fn energy(weights: &LeafWeights) -> f64 {
    let weights = weights.values().flatten();
    weights.map(|&(_, weight)| (weight as f64).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::seal::seal;
    use crate::scheme::evaluation_keys::EvaluationKeys;
    use crate::scheme::noise::tests::measured;
    use crate::scheme::params::{ParameterSet, STANDARD, WIDE};
    use crate::scheme::public_key::PublicKey;
    use crate::scheme::secret_key::SecretKey;
    use crate::scheme::upload::UploadKey;
    use crate::table::layout::coefficient;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    struct Fixture {
        secret: SecretKey,
        public: PublicKey,
        keys: EvaluationKeys,
        upload: UploadKey,
        own: Arc<UploadSwitchKeys>,
    }

    fn fixture(set: ParameterSet) -> Fixture {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let params = Parameters::new(set).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let upload = UploadKey::random(&params, &mut rng).unwrap();
        let own = upload.switch_keys(&public, None, &mut rng).unwrap();
        Fixture {
            public,
            keys: secret.evaluation_keys(&mut rng).unwrap(),
            secret,
            upload,
            own: Arc::new(own),
        }
    }

    impl Fixture {
        /// Encrypts counts at their places, with randomness from a seed.
        fn encrypt(&self, layout: &CountsLayout, places: &[i64], seed: u64) -> EncryptedCounts {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let chunks = places.chunks(layout.stride());
            let ciphertexts = chunks.map(|chunk| {
                let seeded = self.upload.encrypt(chunk, &mut rng).unwrap().into_iter();
                let params = self.public.params();
                Ok::<_, Error>(vec![seeded.map(|c| c.expand(params).unwrap()).collect()])
            });
            let keys = std::slice::from_ref(&self.own);
            EncryptedCounts::of_holders(keys, layout.clone(), ciphertexts).unwrap()
        }

        fn pages(&self, counts: &EncryptedCounts, cells: &[(usize, Weights)]) -> Vec<PackedPage> {
            let evaluator = Evaluator::new(&self.keys, counts.layout().packing().unwrap());
            let page = |residue| {
                let cells = [cells.to_vec()];
                let pages =
                    evaluator.count_pages(counts, residue, &cells, &mut EvaluationWork::default());
                pages.unwrap().remove(0).unwrap()
            };
            (0..counts.params().residues()).map(page).collect()
        }
    }

    fn places(layout: &CountsLayout, largest: i64, rng: &mut ChaCha20Rng) -> Vec<i64> {
        let places = layout.ciphertexts() * layout.stride();
        let mut count = |_| rng.random_range(0..largest);
        (0..places).map(&mut count).collect()
    }

    #[test]
    fn tables_that_fit_are_not_split_between_ciphertexts() {
        let layout = CountsLayout::new(&[30, 40, 20, 64, 5]).unwrap();
        assert_eq!((layout.stride(), layout.ciphertexts()), (64, 4));
        assert_eq!(layout.first, [0, 64, 104, 128, 192]);
        let layout = CountsLayout::new(&[10, 20_000, 5]).unwrap();
        assert_eq!((layout.stride(), layout.ciphertexts()), (8192, 4));
        assert_eq!(layout.first, [0, 8192, 28_192]);
        assert_eq!(layout.first(3), None);
        for sizes in [&[][..], &[3, 0], &[usize::MAX, usize::MAX]] {
            assert!(matches!(
                CountsLayout::new(sizes),
                Err(Error::OutOfRange(..))
            ));
        }
    }

    #[test]
    fn stride_grows_until_ciphertexts_are_few() {
        let shape = |tables, size| {
            let layout = CountsLayout::new(&vec![size; tables]).unwrap();
            (layout.stride(), layout.ciphertexts())
        };
        // A ciphertext of 64 counts holds four tables of 16 counts.
        assert_eq!(shape(2048, 16), (64, 512));
        assert_eq!(shape(2049, 16), (128, 257));
        // All pairs of 600 columns with four values: a ciphertext has one count for each coefficient.
        assert_eq!(shape(179_700, 16), (8192, 351));
        // More counts than 512 ciphertexts have coefficients.
        assert_eq!(shape(600, 9000), (8192, 1200));
    }

    #[test]
    fn contrasts_of_counts_are_exact_at_every_stride() {
        for set in [STANDARD, WIDE] {
            let fixture = fixture(set);
            let mut rng = ChaCha20Rng::seed_from_u64(4);
            let largest = if set == WIDE {
                WIDE.max_records as i64
            } else {
                1000
            };
            for sizes in [&[6, 20, 9][..], &[700, 3], &[9000, 10]] {
                let layout = CountsLayout::new(sizes).unwrap();
                let values = places(&layout, largest, &mut rng);
                let counts = fixture.encrypt(&layout, &values, 5);
                let mut cell = |p| {
                    let mut weight =
                        |_| (rng.random_range(0..values.len()), rng.random_range(-49..50));
                    let weights: BTreeMap<usize, i64> = (0..20).map(&mut weight).collect();
                    (p, Weights(weights.into_iter().collect()))
                };
                // Neighbouring positions, positions in one leaf, and positions far apart.
                let cells: Vec<_> = (0..40).chain([777, 8191]).map(&mut cell).collect();
                let pages = fixture.pages(&counts, &cells);
                let pages: Vec<_> = pages.iter().map(|page| page.ciphertext.clone()).collect();
                let (found, _) = fixture.secret.decrypt(&pages).unwrap();
                let mut expected = vec![0; PAGE];
                for (p, Weights(weights)) in &cells {
                    let terms = weights
                        .iter()
                        .map(|&(place, w)| i128::from(w * values[place]));
                    expected[*p] = terms.sum();
                }
                for (p, expected) in expected.into_iter().enumerate() {
                    assert_eq!(found[coefficient(p)], expected, "position {p}");
                }
            }
        }
    }

    /// Uses weights of both signs, which spread over all roots of the ring's polynomial. The expectation is a mean
    /// over keys, but the noise of weights of one sign depends on a few roots of one key.
    #[test]
    fn count_page_noise_has_the_expected_size() {
        let fixture = fixture(STANDARD);
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let layout = CountsLayout::new(&[64, 64]).unwrap();
        let counts = fixture.encrypt(&layout, &places(&layout, 1000, &mut rng), 7);
        let mut weight = |place| (place, if rng.random() { 43 } else { -43 });
        let mut weights = |p| (p, Weights((0..128).map(&mut weight).collect()));
        let cells: Vec<_> = (0..PAGE).map(&mut weights).collect();
        let page = fixture.pages(&counts, &cells).remove(0);
        let noise = measured(&fixture.secret, &page.ciphertext);
        let square: f64 = noise.iter().map(|e| e * e).sum::<f64>() / DEGREE as f64;
        let ratio = square.sqrt() / page.deviation();
        assert!(
            (0.8..1.2).contains(&ratio),
            "measured over expected {ratio}"
        );
    }

    /// With the same randomness, and tables that differ in one count by any amount, the noises of pages, sealed or
    /// not, differ by a small integer.
    #[test]
    fn page_noise_changes_little_with_a_count() {
        let fixture = fixture(STANDARD);
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let layout = CountsLayout::new(&[64, 64]).unwrap();
        let values = places(&layout, 1000, &mut rng);
        let weight = 49;
        let weights = |p: usize| Weights(vec![(p % 128, weight), ((p + 1) % 128, -3)]);
        let cells: Vec<_> = (0..300).map(|p| (p, weights(p))).collect();
        let noises = |values: &[i64]| {
            let counts = fixture.encrypt(&layout, values, 9);
            let page = fixture.pages(&counts, &cells).remove(0);
            let mut rng = ChaCha20Rng::seed_from_u64(10);
            let sealed = seal(&fixture.public, &page, [], 0..100, &mut rng).unwrap();
            [&page.ciphertext, &sealed].map(|c| measured(&fixture.secret, c))
        };
        let one = noises(&values);
        for change in [1, -1, 1 << 25, 12_345_678] {
            let mut changed = values.clone();
            changed[70] += change;
            let two = noises(&changed);
            for (kind, (one, two)) in one.iter().zip(&two).enumerate() {
                let differences = one.iter().zip(two).map(|(x, y)| (x - y).abs());
                let largest = differences.fold(0.0, f64::max);
                let bound = (2 * weight + 2) as f64;
                // A double has 53 bits, and the flood about 85.
                let exact = [0.0, 2f64.powi(40)];
                assert!(largest <= bound + exact[kind], "{kind}: {largest}");
            }
        }
    }

    #[test]
    fn cells_outside_the_tables_are_rejected() {
        let fixture = fixture(STANDARD);
        let layout = CountsLayout::new(&[64]).unwrap();
        let counts = fixture.encrypt(&layout, &[0; 64], 1);
        let evaluator = Evaluator::new(&fixture.keys, layout.packing().unwrap());
        let refused = |residue, cells: &[(usize, usize)]| {
            let cells = cells
                .iter()
                .map(|&(p, place)| (p, Weights(vec![(place, 1)])));
            let cells = [cells.collect::<Vec<_>>()];
            let pages =
                evaluator.count_pages(&counts, residue, &cells, &mut EvaluationWork::default());
            pages.is_err()
        };
        assert!(!refused(0, &[(0, 63)]));
        assert!(refused(1, &[(0, 0)]));
        assert!(refused(0, &[(0, 64)]));
        assert!(refused(0, &[(PAGE, 0)]));
        assert!(refused(0, &[(5, 0), (5, 1)]));
        let other = Evaluator::new(&fixture.keys, Layout::of_many(1, 128).unwrap());
        let none = other.count_pages(&counts, 0, &[vec![]], &mut EvaluationWork::default());
        assert!(matches!(none, Err(Error::Mismatch(_))));
        let keys = std::slice::from_ref(&fixture.own);
        let none = EncryptedCounts::of_holders::<Error>(keys, layout, vec![]);
        assert!(matches!(none, Err(Error::Mismatch(_))));
    }
}
