//! The exact variant of mixing: public groups.
//!
//! Each class has a block of places, as many as its public capacity. A holder puts its records on random places and
//! leaves zeros on the others. Groups of places are public, and each place is in a fixed number of them, m.
//!
//! A release is the sum of the records of every group. Adding or removing a record moves it by at most m times the
//! record's squared norm, exactly. The price in zCDP is that bound over twice the variance of the noise. It does not
//! rely on amplification.

use fhaim_dp::{
    Debit, Ladder, LadderPlan, Leak, Ledger, NoiseShares, Price, Rho, least_variance_units,
};
use rand::{CryptoRng, RngCore, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

use crate::{Error, Mixes, Points};

/// The largest number of places of all classes, where each place counts once for every group that it is in.
pub const MAX_PLACES: usize = 1 << 24;

/// Public groups of places, each of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    mix: usize,
    memberships: u32,
    /// First place of each class's block, followed by the end of the last block.
    blocks: Vec<usize>,
    groups: Vec<Group>,
}

/// Places whose records are summed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    class: u32,
    places: Vec<usize>,
}

/// Records on their places. Secret.
#[derive(Clone)]
pub struct Placed {
    width: usize,
    /// The values of all places, in order; zeros for a place without a record.
    values: Zeroizing<Vec<i32>>,
}

impl std::fmt::Debug for Placed {
    /// Writes the shape only, never a value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Placed({} features)", self.width)
    }
}

/// A release and its price. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priced {
    /// The debit that the ledger must grant.
    pub debit: Debit,
    /// Number of cells.
    pub cells: usize,
}

impl Groups {
    /// Makes random groups of `mix` places of one class, with each place in `memberships` groups. `seed` is public. The
    /// last group of a class can be smaller: it has the remaining places.
    ///
    /// # Errors
    /// [`Error::Setting`] if an argument is zero, or for more than [`MAX_PLACES`] places.
    pub fn new(
        mix: usize,
        memberships: u32,
        capacities: &[usize],
        seed: u64,
    ) -> Result<Self, Error> {
        let places = capacities
            .iter()
            .fold(0usize, |sum, &c| sum.saturating_add(c));
        // Everything below is of this length.
        let listed = places.saturating_mul(memberships as usize);
        if mix == 0 || listed == 0 || listed > MAX_PLACES {
            return Err(Error::Setting {
                what: "groups",
                problem: format!(
                    "{places} places in groups of {mix}, each place in {memberships} groups: no number may be 0, and \
                     places times memberships at most {MAX_PLACES}; lower the memberships or the capacity"
                ),
            });
        }
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut blocks = vec![0];
        let mut groups = Vec::new();
        for (class, &capacity) in (0..).zip(capacities) {
            let first = blocks.last().copied().unwrap_or(0);
            blocks.push(first + capacity);
            for _ in 0..memberships {
                let mut places: Vec<usize> = (first..first + capacity).collect();
                places.shuffle(&mut rng);
                groups.extend(places.chunks(mix).map(|places| Group {
                    class,
                    places: places.to_vec(),
                }));
            }
        }
        Ok(Self {
            mix,
            memberships,
            blocks,
            groups,
        })
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there are no groups; never true for groups from [`Groups::new`].
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.blocks.last().copied().unwrap_or(0)
    }

    /// The largest number of records in a group.
    pub fn mix(&self) -> usize {
        self.mix
    }

    /// The places of each group.
    pub(crate) fn members(&self) -> impl Iterator<Item = &[usize]> {
        self.groups.iter().map(|group| group.places.as_slice())
    }

    /// Puts each record on a random place of its class.
    ///
    /// # Errors
    /// [`Error::NoPlace`] if a class has more records than places; [`Error::Shape`] if the records have another number
    /// of classes than the groups.
    pub fn place<R: CryptoRng + ?Sized>(
        &self,
        points: &Points,
        rng: &mut R,
    ) -> Result<Placed, Error> {
        let by_class = points.by_class();
        if by_class.len() + 1 != self.blocks.len() {
            return Err(Error::Shape(format!(
                "the records have {} classes, but there are places for {}",
                by_class.len(),
                self.blocks.len() - 1
            )));
        }
        let width = points.width();
        let mut values = Zeroizing::new(vec![0; self.places() * width]);
        for (class, (records, ends)) in by_class.iter().zip(self.blocks.windows(2)).enumerate() {
            let &[first, end] = ends else { continue };
            let mut places: Vec<usize> = (first..end).collect();
            places.shuffle(rng);
            if records.len() > places.len() {
                return Err(Error::NoPlace {
                    class,
                    capacity: places.len(),
                });
            }
            for (&record, place) in records.iter().zip(places) {
                // A place is below the number of places, and a record has `width` features.
                values[place * width..][..width].copy_from_slice(points.record(record));
            }
        }
        Ok(Placed { width, values })
    }

    /// Returns the squared L2 sensitivity of all sums to one record, added or removed: m times its squared norm.
    pub fn delta2_squared(&self, points: &Points) -> u128 {
        u128::from(self.memberships) * points.added_squared()
    }

    /// Prices the release of all groups at the least noise whose total price is at most `budget`.
    ///
    /// # Errors
    /// [`Error::Privacy`] if no noise keeps the budget; [`Error::Setting`] for too many cells.
    pub fn price(&self, points: &Points, budget: Rho, leak: &Leak) -> Result<Priced, Error> {
        let cells = self.len().saturating_mul(points.width());
        if cells > fhaim_dp::MAX_POSITIONS {
            return Err(Error::Setting {
                what: "groups",
                problem: format!(
                    "{cells} sums are too many for one release: mix more records per group",
                ),
            });
        }
        let delta2_squared = self.delta2_squared(points);
        let leak = leak.of(cells)?;
        let too_little = || fhaim_dp::Error::OverBudget {
            number: 0,
            cost: leak,
            left: budget,
        };
        let mut left = budget.checked_sub(leak).ok_or_else(too_little)?;
        // The gap is a small part of the price, or zero, so a few tries are enough to leave room for it.
        for _ in 0..MAX_TRIES {
            let units = least_variance_units(delta2_squared, left, 1)?;
            let price = Price::of(delta2_squared, units, cells as u64, 1, leak)?;
            if price.total().is_some_and(|total| total <= budget) {
                NoiseShares::with_colluders(units, 1, 0)?.check()?;
                return Ok(self.priced(points, delta2_squared, units, cells, leak));
            }
            left = left.checked_sub(price.gap).ok_or_else(too_little)?;
        }
        Err(too_little().into())
    }

    fn priced(
        &self,
        points: &Points,
        delta2_squared: u128,
        variance_units: u64,
        cells: usize,
        leak: Rho,
    ) -> Priced {
        let debit = Debit {
            number: 0,
            description: format!(
                "sums of {} groups of at most {} records, {} features",
                self.len(),
                self.mix,
                points.width()
            ),
            // A ledger has a single release, which its number identifies.
            digest: [0; 32],
            delta2_squared,
            variance_units,
            honest: 1,
            cells: cells as u64,
            leak,
        };
        Priced { debit, cells }
    }

    /// Returns the groups' sums without noise. Secret.
    pub(crate) fn sums(&self, placed: &Placed) -> Zeroizing<Vec<i64>> {
        let width = placed.width;
        let mut sums = Zeroizing::new(vec![0i64; self.len() * width]);
        for (sum, group) in sums.chunks_exact_mut(width).zip(&self.groups) {
            for &place in &group.places {
                let record = placed.values.get(place * width..(place + 1) * width);
                for (sum, &value) in sum.iter_mut().zip(record.unwrap_or(&[])) {
                    *sum += i64::from(value);
                }
            }
        }
        sums
    }

    /// Releases the groups' sums, with noise from `rng`. The ledger is debited first.
    ///
    /// # Errors
    /// [`Error::Privacy`] if the ledger refuses the debit.
    pub fn release<R: RngCore + ?Sized>(
        &self,
        placed: &Placed,
        priced: &Priced,
        ledger: &mut Ledger,
        rng: &mut R,
    ) -> Result<Mixes, Error> {
        ledger.debit(priced.debit.clone())?;
        let noise = NoiseShares::with_colluders(priced.debit.variance_units, 1, 0)?;
        let noise = noise.draw(priced.cells, rng)?;
        Ok(self.noised(placed, &noise))
    }

    /// Releases the groups' sums with noise from a ladder, cell by cell from its first position. The encrypted release
    /// gives the same integers for the same ladder.
    ///
    /// # Errors
    /// [`Error::Privacy`] if the ledger refuses the debit, or the ladder is too short.
    pub fn release_with(
        &self,
        placed: &Placed,
        priced: &Priced,
        ledger: &mut Ledger,
        ladder: &Ladder,
    ) -> Result<Mixes, Error> {
        let spans = fhaim_dp::Allocator::new(ladder.plan()).allocate(0, priced.cells)?;
        ledger.debit(priced.debit.clone())?;
        let noise = ladder.release_noise(&spans, priced.debit.variance_units)?;
        Ok(self.noised(placed, &noise))
    }

    fn noised(&self, placed: &Placed, noise: &[i64]) -> Mixes {
        let sums = self.sums(placed);
        let sums = sums.iter().zip(noise).map(|(sum, noise)| sum + noise);
        self.mixes(sums.collect(), placed.width)
    }

    /// Returns mixes of released sums.
    pub(crate) fn mixes(&self, sums: Vec<i64>, width: usize) -> Mixes {
        Mixes {
            width,
            sums,
            labels: self.groups.iter().map(|group| group.class).collect(),
            most: self.mix,
            full: false,
        }
    }
}

impl Placed {
    /// Number of features of a record.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Returns a feature of the record on a place.
    pub(crate) fn value(&self, place: usize, feature: usize) -> Option<i32> {
        self.values.get(place * self.width + feature).copied()
    }
}

impl Priced {
    /// Returns the plan of the ladder that a holder draws for the release.
    ///
    /// # Errors
    /// [`Error::Privacy`] if the release needs more noise than a ladder has.
    pub fn ladder(&self) -> Result<LadderPlan, Error> {
        Ok(LadderPlan::new(self.cells, self.debit.variance_units)?)
    }
}

/// The most tries to leave room for the gap.
const MAX_TRIES: usize = 64;
