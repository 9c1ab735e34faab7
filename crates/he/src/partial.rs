//! What becomes of a tile, as values: sums of its leaves over some record chunks, and the root of
//! its subtree once they are over all.
//!
//! Residues are canonical, so sums may be added in any order. They keep which chunks they are over,
//! so that none is lost or counted twice on the way.

use crate::context::EvaluationContext;
use crate::error::{Error, Result};
use crate::holder::HolderKeyId;
use crate::keyswitch::Lifted;
use crate::layout::{Layout, PAGE};
use crate::params::{DEGREE, Parameters};
use crate::ring::Poly;
use crate::task::{Block, TILE_LEAVES, TILE_PAIRS, Tile, TileId};
use crate::tensor::Spread;
use crate::wire::{Kind, Reader, frame, limb_bytes, put_limb, put_u32, unframe};
use fhaim_ntt::Store;
use std::ops::Range;

/// What a backend hands over of a tile.
#[derive(Clone, Debug)]
pub enum Partial {
    /// Sums of its leaves over some record chunks, to be added to those over the others.
    Sums(TileSums),
    /// The tile, packed.
    Root(TileRoot),
}

/// Sums of a tile's leaves over some record chunks, neither relinearised nor packed.
#[derive(Clone, Debug)]
pub struct TileSums {
    pub(crate) id: TileId,
    pub(crate) residue: usize,
    params: Parameters,
    /// The holder's key that they are under; nothing for the service's.
    holder: Option<HolderKeyId>,
    /// Record chunks of the table.
    chunks: usize,
    /// Those that are summed: in order, apart from each other.
    covered: Vec<Range<usize>>,
    /// The pairs of leaves that there are, in order.
    pub(crate) pairs: Vec<PairShape>,
    /// The sums of each; without limbs as long as no chunk is covered.
    pub(crate) spreads: Vec<Spread>,
}

/// What is known of a pair of leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairShape {
    /// Number of the pair in its tile.
    pub(crate) index: usize,
    /// Whether it has products, and so polynomials under s^2.
    pub(crate) squares: bool,
}

/// The root of a tile's subtree, over all record chunks.
#[derive(Clone, Debug)]
pub struct TileRoot {
    pub(crate) id: TileId,
    pub(crate) residue: usize,
    pub(crate) params: Parameters,
    /// Its second half as it is.
    pub(crate) root: Lifted,
}

impl TileSums {
    /// The sums of a block's tile over no record chunk: polynomials without limbs.
    pub(crate) fn empty(context: &EvaluationContext<'_>, block: &Block, tile: &Tile) -> Self {
        let params = context.params();
        let ring = params.ring();
        let pairs = tile.pairs();
        let room = || ring.room(ring.ciphertext_limbs().len());
        // The first polynomial of the sums is lifted to all primes where it is merged.
        let lifted = || ring.room(ring.limbs().len());
        let spread = |_: &_| [[lifted(), room(), room()], [room(), room(), room()]];
        let shape = |pair: &crate::task::LeafPair<'_>| PairShape {
            index: pair.index,
            squares: pair.products().iter().any(|products| !products.is_empty()),
        };
        Self {
            id: tile.id,
            residue: block.residue,
            params: params.clone(),
            holder: context.holder(),
            chunks: block.layout.chunks(),
            covered: Vec::new(),
            spreads: pairs.iter().map(spread).collect(),
            pairs: pairs.iter().map(shape).collect(),
        }
    }

    /// What becomes of the first sums, and of those that follow.
    pub(crate) fn follow(&self) -> Store {
        match self.covered[..] {
            [] => Store::Set,
            _ => Store::Add,
        }
    }

    /// Which tile's.
    pub fn tile(&self) -> TileId {
        self.id
    }

    /// Number of the plaintext modulus.
    pub fn residue(&self) -> usize {
        self.residue
    }

    /// The holder's key that they are under.
    pub(crate) fn holder(&self) -> Option<HolderKeyId> {
        self.holder
    }

    /// The parameters' tables.
    pub(crate) fn params(&self) -> &Parameters {
        &self.params
    }

    /// Whether every record chunk is in.
    pub fn is_whole(&self) -> bool {
        matches!(&self.covered[..], [all] if *all == (0..self.chunks))
    }

    /// Notes that the record chunks of a band are in.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where some are in already.
    pub(crate) fn cover(&mut self, band: Range<usize>) -> Result<()> {
        let overlaps = |other: &Range<usize>| other.start < band.end && band.start < other.end;
        if self.covered.iter().any(overlaps) {
            return Err(Error::Mismatch("record chunks would be summed twice"));
        }
        self.covered.push(band);
        self.covered.sort_unstable_by_key(|band| band.start);
        self.covered.dedup_by(|next, before| {
            let adjacent = before.end == next.start;
            if adjacent {
                before.end = next.end;
            }
            adjacent
        });
        Ok(())
    }

    /// Adds the sums of the same tile over other record chunks.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for sums of another tile or table, or where a record chunk is in both.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        self.params.check_same(&other.params)?;
        let of = |sums: &Self| (sums.id, sums.residue, sums.chunks, sums.holder);
        if of(self) != of(other) || self.pairs != other.pairs {
            return Err(Error::Mismatch("sums of another tile"));
        }
        for band in &other.covered {
            self.cover(band.clone())?;
        }
        let sums = self.spreads.iter_mut().flatten().flatten();
        for (sum, other) in sums.zip(other.spreads.iter().flatten().flatten()) {
            sum.add_assign(other, self.params.ring());
        }
        Ok(())
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        if let Some(HolderKeyId(id)) = &self.holder {
            out.extend_from_slice(id);
        }
        put_u32(out, self.chunks)?;
        put_u32(out, self.covered.len())?;
        for band in &self.covered {
            put_u32(out, band.start)?;
            put_u32(out, band.end)?;
        }
        put_u32(out, self.pairs.len())?;
        let moduli = self.params.set().ciphertext_moduli;
        for (pair, spread) in self.pairs.iter().zip(&self.spreads) {
            put_u32(out, pair.index)?;
            out.push(pair.squares.into());
            for [c0, c1, c2] in spread {
                put_poly(out, moduli, c0);
                put_poly(out, moduli, c1);
                if pair.squares {
                    put_poly(out, moduli, c2);
                }
            }
        }
        Ok(())
    }

    fn decode(
        params: &Parameters,
        id: TileId,
        residue: usize,
        under_holder: bool,
        body: &mut Reader<'_>,
    ) -> Result<Self> {
        let moduli = params.set().ciphertext_moduli;
        let holder = under_holder.then(|| body.bytes().map(HolderKeyId));
        let mut sums = Self {
            id,
            residue,
            params: params.clone(),
            holder: holder.transpose()?,
            chunks: body.below(usize::MAX)?,
            covered: take_bands(body)?,
            pairs: Vec::new(),
            spreads: Vec::new(),
        };
        if sums
            .covered
            .last()
            .is_some_and(|last| last.end > sums.chunks)
        {
            return Err(body.malformed("a record chunk is beyond the table"));
        }
        for _ in 0..body.count(pair_bytes(params, false))? {
            let index = body.below(TILE_PAIRS)?;
            if sums.pairs.last().is_some_and(|last| last.index >= index) {
                return Err(body.malformed("pairs repeat or are not in order"));
            }
            let squares = match body.bytes()? {
                [0] => false,
                [1] => true,
                _ => return Err(body.malformed("neither with nor without squares")),
            };
            let mut spread = || -> Result<[Poly; 3]> {
                let (c0, c1) = (take_poly(body, moduli)?, take_poly(body, moduli)?);
                let c2 = if squares {
                    take_poly(body, moduli)?
                } else {
                    params.ring().zero()
                };
                Ok([c0, c1, c2])
            };
            sums.spreads.push([spread()?, spread()?]);
            sums.pairs.push(PairShape { index, squares });
        }
        if sums.pairs.is_empty() {
            return Err(body.malformed("a tile needs a leaf"));
        }
        Ok(sums)
    }
}

impl TileRoot {
    /// Which tile's.
    pub fn tile(&self) -> TileId {
        self.id
    }
}

/// These tags say what follows in a body.
const SUMS: u8 = 0;
const ROOT: u8 = 1;
/// Sums under a holder's key, which the 16 bytes that follow name.
const HOLDERS_SUMS: u8 = 2;

impl Partial {
    /// Which tile's.
    pub fn tile(&self) -> TileId {
        match self {
            Self::Sums(sums) => sums.id,
            Self::Root(root) => root.id,
        }
    }

    /// Encodes the result.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a number past 32 bits.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let TileId { page, index } = self.tile();
        let (tag, params, residue) = match self {
            Self::Sums(sums) => {
                let tag = sums.holder.map_or(SUMS, |_| HOLDERS_SUMS);
                (tag, &sums.params, sums.residue)
            }
            Self::Root(root) => (ROOT, &root.params, root.residue),
        };
        let mut out = vec![tag];
        put_u32(&mut out, page)?;
        put_u32(&mut out, index)?;
        match self {
            Self::Sums(sums) => sums.encode(&mut out)?,
            Self::Root(TileRoot { root, .. }) => {
                put_poly(&mut out, &params.all_moduli(), &root.c0);
                put_poly(&mut out, params.set().ciphertext_moduli, &root.c1);
            }
        }
        Ok(frame(Kind::Partial, params, residue, &out))
    }

    /// Decodes a result under the given parameters.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the first rule the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let (residue, mut body) = unframe(Kind::Partial, params, bytes, 0..=max_bytes(params))?;
        let [tag] = body.bytes()?;
        let id = TileId {
            page: body.below(usize::MAX)?,
            index: body.below(PAGE / TILE_LEAVES)?,
        };
        let partial = match tag {
            SUMS | HOLDERS_SUMS => {
                let under_holder = tag == HOLDERS_SUMS;
                let sums = TileSums::decode(params, id, residue, under_holder, &mut body)?;
                Self::Sums(sums)
            }
            ROOT => Self::Root(TileRoot {
                id,
                residue,
                params: params.clone(),
                root: Lifted {
                    c0: take_poly(&mut body, &params.all_moduli())?,
                    c1: take_poly(&mut body, params.set().ciphertext_moduli)?,
                },
            }),
            _ => return Err(body.malformed("neither sums nor a root")),
        };
        body.end()?;
        Ok(partial)
    }
}

/// Bands in order, each of at least a chunk, apart from each other.
fn take_bands(body: &mut Reader<'_>) -> Result<Vec<Range<usize>>> {
    let mut bands: Vec<Range<usize>> = Vec::new();
    for _ in 0..body.count(8)? {
        let band = body.below(usize::MAX)?..body.below(usize::MAX)?;
        if band.is_empty() || bands.last().is_some_and(|last| last.end >= band.start) {
            return Err(body.malformed("bands are empty, overlap or are not in order"));
        }
        bands.push(band);
    }
    Ok(bands)
}

fn put_poly(out: &mut Vec<u8>, moduli: &[u64], poly: &Poly) {
    for (&q, limb) in moduli.iter().zip(poly.residues().chunks_exact(DEGREE)) {
        put_limb(out, q, limb);
    }
}

fn take_poly(body: &mut Reader<'_>, moduli: &[u64]) -> Result<Poly> {
    let residues = body.limbs(moduli)?;
    Ok(Poly::from_residues(DEGREE, residues))
}

/// Bytes of a pair's sums.
fn pair_bytes(params: &Parameters, squares: bool) -> usize {
    let polynomials = if squares { 6 } else { 4 };
    let moduli = params.set().ciphertext_moduli.iter();
    5 + polynomials * moduli.map(|&q| limb_bytes(q)).sum::<usize>()
}

/// Bytes of a result at most: of a whole tile's sums, in which every other chunk is missing of the
/// most that a table has.
fn max_bytes(params: &Parameters) -> usize {
    let records = params.set().max_records as usize;
    let chunks = Layout::for_records(records).map_or(1, |layout| layout.chunks());
    80 + 4 * chunks + TILE_PAIRS * pair_bytes(params, true)
}
