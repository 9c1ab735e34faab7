//! The exact variant: public groups.
//!
//! Each class has a block of places, as many as its public capacity. A holder puts its records on places at random
//! and leaves zeros on the others. Groups of places are public; each place is in a fixed number of them, m. A
//! release is the sum of every group's records: one record more or less moves it by at most m times its squared
//! norm, exactly, and what is paid is that over twice the noise's variance (zCDP), without any amplification to
//! rely on.

use fhaim_dp::{
    Debit, Ladder, LadderPlan, Leak, Ledger, NoiseShares, Price, Rho, least_variance_units,
};
use rand::{CryptoRng, RngCore, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

use crate::{Error, Mixes, Points};

/// The most places of all classes together, each counted once for every group that it is in.
pub const MAX_PLACES: usize = 1 << 24;

/// Public groups of places, by class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    mix: usize,
    memberships: u32,
    /// First place of each class's block, and the end of the last.
    blocks: Vec<usize>,
    groups: Vec<Group>,
}

/// Places whose records are summed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    class: u32,
    places: Vec<usize>,
}

/// Records on their places: a secret.
#[derive(Clone)]
pub struct Placed {
    width: usize,
    /// A place after the other, zeros where there is no record.
    values: Zeroizing<Vec<i32>>,
}

impl std::fmt::Debug for Placed {
    /// No value is ever written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Placed({} features)", self.width)
    }
}

/// A release and its price: public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priced {
    /// What the ledger is asked for.
    pub debit: Debit,
    /// Number of cells.
    pub cells: usize,
}

impl Groups {
    /// Groups of `mix` places of one class, each place in `memberships` of them; `seed` is public. A class's last
    /// group has the places that are left over.
    ///
    /// # Errors
    /// [`Error::Setting`] for zeros, and for more places than there may be.
    pub fn new(
        mix: usize,
        memberships: u32,
        capacities: &[usize],
        seed: u64,
    ) -> Result<Self, Error> {
        let places = capacities
            .iter()
            .fold(0usize, |sum, &c| sum.saturating_add(c));
        // All that is made below is of this length.
        let listed = places.saturating_mul(memberships as usize);
        if mix == 0 || listed == 0 || listed > MAX_PLACES {
            return Err(Error::Setting {
                what: "groups",
                problem: format!(
                    "{places} places in groups of {mix}, each in {memberships}: none of these may be 0, and places \
                     times memberships may be {MAX_PLACES}; lower memberships or capacity"
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

    /// Whether there is none: never.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.blocks.last().copied().unwrap_or(0)
    }

    /// The most records of a group.
    pub fn mix(&self) -> usize {
        self.mix
    }

    /// The places of each group.
    pub(crate) fn members(&self) -> impl Iterator<Item = &[usize]> {
        self.groups.iter().map(|group| group.places.as_slice())
    }

    /// Puts records on places of their classes, at random.
    ///
    /// # Errors
    /// [`Error::NoPlace`] for more records of a class than it has places; [`Error::Shape`] for another number of
    /// classes.
    pub fn place<R: CryptoRng + ?Sized>(
        &self,
        points: &Points,
        rng: &mut R,
    ) -> Result<Placed, Error> {
        let by_class = points.by_class();
        if by_class.len() + 1 != self.blocks.len() {
            return Err(Error::Shape(format!(
                "records of {} classes, and places for {}",
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

    /// By how much one record more or less moves all sums: m times its squared norm.
    pub fn delta2_squared(&self, points: &Points) -> u128 {
        u128::from(self.memberships) * points.added_squared()
    }

    /// The release of all groups at the least noise whose whole price is at most `budget`.
    ///
    /// # Errors
    /// [`Error::Privacy`] where no noise is enough; [`Error::Setting`] for too many cells.
    pub fn price(&self, points: &Points, budget: Rho, leak: &Leak) -> Result<Priced, Error> {
        let cells = self.len().saturating_mul(points.width());
        if cells > fhaim_dp::MAX_POSITIONS {
            return Err(Error::Setting {
                what: "groups",
                problem: format!(
                    "{cells} sums are more than are released at once: mix more records"
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
        // The gap is a small part of the price, if it is not nothing: a few tries leave room for it.
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
            // There is one release a ledger: its number alone tells it from others.
            digest: [0; 32],
            delta2_squared,
            variance_units,
            honest: 1,
            cells: cells as u64,
            leak,
        };
        Priced { debit, cells }
    }

    /// The groups' sums without noise: a secret.
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

    /// Releases the groups' sums, with noise drawn as it is needed. The ledger is debited first.
    ///
    /// # Errors
    /// [`Error::Privacy`] for what the ledger refuses.
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

    /// Releases the groups' sums with noise from a ladder, cell by cell from its first position: what the encrypted
    /// release gives for the same ladder.
    ///
    /// # Errors
    /// [`Error::Privacy`] for what the ledger refuses, and a ladder that is too short.
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

    /// Released sums as mixes.
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
    /// Features of a record.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// A feature of the record on a place.
    pub(crate) fn value(&self, place: usize, feature: usize) -> Option<i32> {
        self.values.get(place * self.width + feature).copied()
    }
}

impl Priced {
    /// The ladder that a holder draws for the release.
    ///
    /// # Errors
    /// [`Error::Privacy`] for more noise than a ladder has.
    pub fn ladder(&self) -> Result<LadderPlan, Error> {
        Ok(LadderPlan::new(self.cells, self.debit.variance_units)?)
    }
}

/// Tries to leave room for the gap.
const MAX_TRIES: usize = 64;
