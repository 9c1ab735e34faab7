//! Upload keys of a roster, which the holders of the dataset's secret key make instead of the table's holders.
//!
//! A holder that made its own switching keys to s could put s into a released integer. So the key service draws a
//! seed w for each holder and makes the switching keys itself. The holder fetches w and expands it to its upload key
//! h. docs/THREAT-MODEL.md explains the consequences.
//!
//! | shape | keys of a holder | joint keys |
//! |---|---|---|
//! | counts | h -> s | |
//! | records | h -> s; h(X^-1) -> h; h^2 -> s; sigma(h) -> s and sigma(h^2) -> s at levels 1 to 8 | |
//! | columns | h -> s; h -> g; h(X^-1) -> g | g -> s; g^2 -> s; sigma(g) -> s and sigma(g^2) -> s at levels 1 to 8 |
//!
//! Products of columns can involve two holders, so the columns are brought to one joint key g that no holder knows.
//! sigma is the automorphism X -> X^(2^level + 1) of a packing level.

use super::switch_keys::{FactorKeys, ImageKeys, Origin, ProductKeys, UploadSwitchKeys};
use super::{UploadKey, UploadKeyId, commitment};
use crate::error::{Error, Result};
use crate::scheme::params::Parameters;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::Ring;
use crate::scheme::root::Root;
use crate::scheme::switch_key::{KeySwitchKey, permuted, squared};
use crate::table::MAX_SECTIONS;
use crate::table::layout::{FIRST_LEVELS, LEVELS};
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The kind of data that the holders of a roster upload, and the number of holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RosterShape {
    /// Each holder uploads counts of its records.
    Counts(usize),
    /// Each holder uploads all columns of its records.
    Records(usize),
    /// Each holder uploads some columns of all records.
    Columns(usize),
}

impl RosterShape {
    /// Returns the number of holders.
    pub fn holders(self) -> usize {
        let (Self::Counts(holders) | Self::Records(holders) | Self::Columns(holders)) = self;
        holders
    }

    /// Returns the same kind of uploads by another number of holders.
    #[must_use]
    pub fn with_holders(self, holders: usize) -> Self {
        match self {
            Self::Counts(_) => Self::Counts(holders),
            Self::Records(_) => Self::Records(holders),
            Self::Columns(_) => Self::Columns(holders),
        }
    }

    /// Rejects numbers of holders that no roster can have.
    pub(crate) fn check(self) -> Result<()> {
        if (1..=MAX_SECTIONS).contains(&self.holders()) {
            Ok(())
        } else {
            Err(Error::OutOfRange("number of holders"))
        }
    }

    /// Returns the switching keys of each holder's upload key.
    pub(crate) fn of_holder(self) -> KeyKinds {
        let (left, right, products) = match self {
            Self::Counts(_) => (false, false, false),
            Self::Records(_) => (false, true, true),
            Self::Columns(_) => (true, true, false),
        };
        KeyKinds {
            left,
            right,
            products,
        }
    }

    /// Returns the switching keys of the joint key, if there is one.
    pub(crate) fn joint(self) -> Option<KeyKinds> {
        matches!(self, Self::Columns(_)).then_some(KeyKinds {
            left: false,
            right: false,
            products: true,
        })
    }
}

/// The switching keys that a key x has in addition to x -> s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyKinds {
    /// x -> the joint key.
    left: bool,
    /// x(X^-1) -> the key of products.
    right: bool,
    /// x^2 -> s, and the keys from images.
    products: bool,
}

/// A switching key of a key x, by its source and its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SwitchKind {
    /// The exponent of x in the source is 2 instead of 1.
    pub(crate) squared: bool,
    /// The source is an image under X -> X^automorphism.
    pub(crate) automorphism: usize,
    /// Whether the target is the key of products instead of s.
    pub(crate) to_products: bool,
}

impl SwitchKind {
    const fn linear(automorphism: usize, to_products: bool) -> Self {
        Self {
            squared: false,
            automorphism,
            to_products,
        }
    }

    const fn square(automorphism: usize) -> Self {
        Self {
            squared: true,
            automorphism,
            to_products: false,
        }
    }

    /// Returns the source of a key with this transform over all primes.
    pub(crate) fn source(self, ring: &Ring, key: &[u64]) -> Zeroizing<Vec<u64>> {
        let automorphism = ring.automorphism(self.automorphism);
        match self.squared {
            false => permuted(key, &automorphism),
            true => permuted(&squared(ring, key), &automorphism),
        }
    }
}

/// Returns the exponent of sigma at a packing level.
fn sigma(level: usize) -> usize {
    (1 << level) + 1
}

impl KeyKinds {
    /// Returns the switching keys, in the order in which they are made, sent and stored.
    pub(crate) fn switches(self) -> impl Iterator<Item = SwitchKind> {
        let left = self.left.then_some(SwitchKind::linear(1, true));
        let right = self
            .right
            .then_some(SwitchKind::linear(2 * DEGREE - 1, true));
        let square = self.products.then_some(SwitchKind::square(1));
        let levels = (1..=FIRST_LEVELS).filter(move |_| self.products);
        let images = levels.flat_map(|level| {
            let sigma = sigma(level);
            [SwitchKind::linear(sigma, false), SwitchKind::square(sigma)]
        });
        let linear = [SwitchKind::linear(1, false)].into_iter();
        linear.chain(left).chain(right).chain(square).chain(images)
    }
}

impl UploadSwitchKeys {
    /// Assembles switching keys that come in the order of [`KeyKinds::switches`].
    pub(crate) fn assemble(
        params: &Parameters,
        id: UploadKeyId,
        kinds: KeyKinds,
        mut next: impl FnMut(SwitchKind) -> Result<KeySwitchKey>,
    ) -> Result<Self> {
        let mut switches = kinds.switches();
        let mut key = || {
            let kind = switches.next();
            next(kind.ok_or(Error::Mismatch(
                "there are fewer switching keys than the roster's shape needs",
            ))?)
        };
        let linear = key()?;
        let left = kinds.left.then(&mut key).transpose()?;
        let right = kinds.right.then(&mut key).transpose()?;
        let square = kinds.products.then(&mut key).transpose()?;
        let mut images = BTreeMap::new();
        for level in (1..=FIRST_LEVELS).filter(|_| kinds.products) {
            let (linear, square) = (key()?, key()?);
            images.insert(level, ImageKeys { linear, square });
        }
        Ok(Self {
            params: params.clone(),
            id,
            origin: Origin::KeyServices,
            linear,
            factors: right.map(|right| FactorKeys { left, right }),
            products: square.map(|square| ProductKeys { square, images }),
        })
    }

    /// Returns the switching keys, in the order of [`KeyKinds::switches`].
    pub(crate) fn switch_keys(&self) -> impl Iterator<Item = &KeySwitchKey> {
        let factors = self.factors.iter();
        let factors = factors.flat_map(|keys| keys.left.iter().chain([&keys.right]));
        let square = self.products.iter().map(|keys| &keys.square);
        let images = self.products.iter().flat_map(|keys| keys.images.values());
        let images = images.flat_map(|keys| [&keys.linear, &keys.square]);
        let linear = [&self.linear].into_iter();
        linear.chain(factors).chain(square).chain(images)
    }
}

/// The switching keys of all upload keys of a roster.
#[derive(Clone, Debug)]
pub struct RosterKeys {
    pub(crate) shape: RosterShape,
    /// By the number of the holder.
    pub(crate) uploads: Vec<Arc<UploadSwitchKeys>>,
    /// Switching keys of the joint key of holders of columns.
    pub(crate) joint: Option<UploadSwitchKeys>,
}

impl RosterKeys {
    /// Assembles switching keys that come in the order of their kinds, holder after holder, those of the joint key
    /// last.
    pub(crate) fn assemble(
        params: &Parameters,
        shape: RosterShape,
        mut id: impl FnMut() -> Result<UploadKeyId>,
        mut next: impl FnMut(SwitchKind) -> Result<KeySwitchKey>,
    ) -> Result<Self> {
        let mut keys = |kinds| UploadSwitchKeys::assemble(params, id()?, kinds, &mut next);
        let uploads = (0..shape.holders()).map(|_| keys(shape.of_holder()).map(Arc::new));
        Ok(Self {
            shape,
            uploads: uploads.collect::<Result<_>>()?,
            joint: shape.joint().map(&mut keys).transpose()?,
        })
    }

    /// Returns the kind of data that the holders upload, and the number of holders.
    pub fn shape(&self) -> RosterShape {
        self.shape
    }

    /// Returns the switching keys of a holder's upload key, by the holder's number.
    pub fn upload(&self, holder: usize) -> Option<&Arc<UploadSwitchKeys>> {
        self.uploads.get(holder)
    }

    /// Returns the switching keys of each upload key, and those of the joint key last.
    pub(crate) fn each(&self) -> impl Iterator<Item = &UploadSwitchKeys> {
        self.uploads.iter().map(Arc::as_ref).chain(&self.joint)
    }
}

/// Returns the switching keys for packing, at levels 1 to 13. Their sources are images of s.
pub(crate) fn packing_switches() -> impl Iterator<Item = SwitchKind> {
    (1..=LEVELS).map(|level| SwitchKind::linear(sigma(level), false))
}

/// Returns a key service's seed of a holder's upload key, by the holder's number.
pub(crate) fn upload_seed(root: &Root, holder: usize) -> Zeroizing<[u8; 32]> {
    let number = (holder as u64).to_le_bytes();
    root.bytes_for(b"upload key", &[&number])
}

/// One key service's part of the upload keys of a roster: the keys themselves, or its summands of shared keys.
#[derive(Default)]
pub(crate) struct RosterSecrets {
    pub(crate) uploads: Vec<UploadKey>,
    pub(crate) joint: Option<UploadKey>,
}

impl RosterSecrets {
    pub(crate) fn of(params: &Parameters, root: &Root, shape: RosterShape) -> Result<Self> {
        shape.check()?;
        let key = |seed| UploadKey::from_seeds(params, vec![seed]);
        let uploads = (0..shape.holders()).map(|holder| key(upload_seed(root, holder)));
        let joint = shape.joint();
        let joint = joint.map(|_| key(root.bytes_for(b"joint key", &[])));
        Ok(Self {
            uploads: uploads.collect::<Result<_>>()?,
            joint: joint.transpose()?,
        })
    }

    /// Returns commitments to the seeds of all keys, the joint one last.
    pub(crate) fn commitments(&self) -> Vec<[u8; 32]> {
        let keys = self.uploads.iter().chain(&self.joint);
        keys.flat_map(|key| key.seeds.iter().map(|seed| commitment(seed)))
            .collect()
    }

    /// Returns the identifiers of all keys, the joint one last.
    pub(crate) fn ids(&self) -> impl Iterator<Item = UploadKeyId> {
        self.uploads.iter().chain(&self.joint).map(|key| key.id)
    }

    /// Calls `visit` with source and target of every switching key, as transforms, in the order of
    /// [`RosterKeys::assemble`]. `s` is the transform of the dataset's key.
    pub(crate) fn for_each_switch(
        &self,
        shape: RosterShape,
        s: &[u64],
        mut visit: impl FnMut(&[u64], &[u64]) -> Result<()>,
    ) -> Result<()> {
        let uploads = self.uploads.iter().map(|key| (key, shape.of_holder()));
        let joint = self.joint.as_ref().zip(shape.joint());
        for (key, kinds) in uploads.chain(joint) {
            let products = self.joint.as_ref().unwrap_or(key);
            for kind in kinds.switches() {
                let target = if kind.to_products {
                    &products.transform
                } else {
                    s
                };
                visit(&kind.source(key.params.ring(), &key.transform), target)?;
            }
        }
        Ok(())
    }
}
