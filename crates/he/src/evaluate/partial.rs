//! Results of a tile as values: sums of its leaves over some record chunks, and the root of its subtree when
//! they cover all.
//!
//! Residues are canonical, so sums may be added in any order. Sums record which chunks they cover, so that no
//! chunk is lost or counted twice on the way.

use crate::error::{Error, Result};
use crate::evaluate::context::EvaluationContext;
use crate::evaluate::task::{Block, TILE_LEAVES, TILE_PAIRS, Tile, TileId};
use crate::evaluate::tensor::Spread;
use crate::scheme::keyswitch::Lifted;
use crate::scheme::params::Parameters;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::{Poly, Ring};
use crate::scheme::upload::ProductKey;
use crate::scheme::upload::UploadKeyId;
use crate::table::layout::{Layout, PAGE};
use crate::table::{MAX_SECTIONS, Section};
use crate::wire::{Kind, Reader, frame, limb_bytes, put_limb, put_u32, unframe};
use fhaim_ntt::ResultMode;
use std::ops::Range;

/// A backend's result for a tile.
#[derive(Clone, Debug)]
pub enum Partial {
    /// Sums of the tile's leaves over some record chunks, to be added to those over the others.
    Sums(TileSums),
    /// The packed tile.
    Root(TileRoot),
}

/// Sums of a tile's leaves over some record chunks, before packing.
#[derive(Clone, Debug)]
pub struct TileSums {
    pub(crate) id: TileId,
    pub(crate) residue: usize,
    params: Parameters,
    /// The pairs that have at least one leaf, in order.
    pub(crate) pairs: Vec<PairShape>,
    /// The table's sections, in order.
    pub(crate) sections: Vec<SectionSums>,
    /// For each pair, the merged leaves of all merged sections, under s. Empty if no section has been merged.
    pub(crate) merged: Vec<Lifted>,
}

/// The sums of a tile's leaves over record chunks of one section.
#[derive(Clone, Debug)]
pub(crate) struct SectionSums {
    /// The record chunks of the section, and the key of the sums.
    section: Section,
    /// The summed chunks: ranges in order, with gaps between them.
    covered: Vec<Range<usize>>,
    /// The sums of each pair. Empty before the first chunk is covered, and after the section has been merged.
    spreads: Vec<Spread>,
    merged: bool,
}

/// The public shape of a pair of leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairShape {
    /// Number of the pair in its tile.
    pub(crate) index: usize,
    /// Whether the pair has products, and therefore polynomials under s^2.
    pub(crate) squares: bool,
}

/// The root of a tile's subtree, over all record chunks.
#[derive(Clone, Debug)]
pub struct TileRoot {
    pub(crate) id: TileId,
    pub(crate) residue: usize,
    pub(crate) params: Parameters,
    /// The root. Its second half is already divided by the special primes.
    pub(crate) root: Lifted,
}

impl SectionSums {
    fn empty(section: Section) -> Self {
        Self {
            section,
            covered: Vec::new(),
            spreads: Vec::new(),
            merged: false,
        }
    }

    /// Returns whether the sums cover every record chunk of the section.
    fn is_whole(&self) -> bool {
        matches!(&self.covered[..], [all] if *all == self.section.chunks)
    }

    /// Returns the key of the sums.
    pub(crate) fn key(&self) -> ProductKey {
        self.section.key
    }

    /// Marks the record chunks of a band as covered. Returns the buffers of the sums, and whether the caller must set
    /// them or add to them.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if some of the chunks are covered already, or belong to another section.
    pub(crate) fn cover(
        &mut self,
        ring: &Ring,
        pairs: usize,
        band: Range<usize>,
    ) -> Result<(ResultMode, &mut [Spread])> {
        let chunks = &self.section.chunks;
        if band.start < chunks.start || band.end > chunks.end {
            return Err(Error::Mismatch(
                "the record chunks belong to another section",
            ));
        }
        let overlaps = |other: &Range<usize>| other.start < band.end && band.start < other.end;
        if self.merged || self.covered.iter().any(overlaps) {
            return Err(Error::Mismatch("the record chunks would be summed twice"));
        }
        let into = match self.covered[..] {
            [] => ResultMode::Set,
            _ => ResultMode::Add,
        };
        self.covered.push(band);
        self.covered.sort_unstable_by_key(|band| band.start);
        self.covered.dedup_by(|next, before| {
            let adjacent = before.end == next.start;
            if adjacent {
                before.end = next.end;
            }
            adjacent
        });
        if self.spreads.is_empty() {
            let room = || ring.room(ring.ciphertext_limbs().len());
            // The first polynomial of the sums is lifted to all primes when it is merged.
            let lifted = || ring.room(ring.limbs().len());
            let spread = |_| [[lifted(), room(), room()], [room(), room(), room()]];
            self.spreads = (0..pairs).map(spread).collect();
        }
        Ok((into, &mut self.spreads))
    }

    /// Returns the sums if they cover the whole section and have not been merged, and marks the section as merged.
    pub(crate) fn take_whole(&mut self) -> Option<Vec<Spread>> {
        let whole = self.is_whole() && !self.merged;
        self.merged |= whole;
        whole.then(|| std::mem::take(&mut self.spreads))
    }

    /// Adds the sums of the same section over other record chunks.
    fn add(&mut self, ring: &Ring, other: &Self) -> Result<()> {
        if self.section != other.section {
            return Err(Error::Mismatch("the sums belong to another tile"));
        }
        if self.covered.is_empty() {
            *self = other.clone();
            return Ok(());
        }
        if other.merged {
            return Err(Error::Mismatch("the record chunks would be summed twice"));
        }
        for band in &other.covered {
            self.cover(ring, other.spreads.len(), band.clone())?;
        }
        let sums = self.spreads.iter_mut().flatten().flatten();
        for (sum, other) in sums.zip(other.spreads.iter().flatten().flatten()) {
            sum.add_assign(other, ring);
        }
        Ok(())
    }
}

impl TileSums {
    /// Makes the sums of a block's tile over no record chunk, for a table with these sections.
    pub(crate) fn empty(
        context: &EvaluationContext<'_>,
        sections: &[Section],
        block: &Block,
        tile: &Tile,
    ) -> Self {
        let shape = |pair: &crate::evaluate::task::LeafPair<'_>| PairShape {
            index: pair.index,
            squares: pair.products().iter().any(|products| !products.is_empty()),
        };
        Self {
            id: tile.id,
            residue: block.residue,
            params: context.params().clone(),
            pairs: tile.pairs().iter().map(shape).collect(),
            sections: sections.iter().cloned().map(SectionSums::empty).collect(),
            merged: Vec::new(),
        }
    }

    /// Returns the tile.
    pub fn tile(&self) -> TileId {
        self.id
    }

    /// Returns the number of the plaintext modulus.
    pub fn residue(&self) -> usize {
        self.residue
    }

    /// Returns the parameters' tables.
    pub(crate) fn params(&self) -> &Parameters {
        &self.params
    }

    /// Returns the table's sections.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().map(|sums| &sums.section)
    }

    /// Returns whether the sums cover every record chunk.
    pub fn is_whole(&self) -> bool {
        self.sections.iter().all(SectionSums::is_whole)
    }

    /// Adds the merged leaves of one section, one for each pair.
    pub(crate) fn add_merged(&mut self, merged: Vec<Lifted>) {
        let ring = self.params.ring();
        if self.merged.is_empty() {
            self.merged = merged;
            return;
        }
        for (sum, merged) in self.merged.iter_mut().zip(&merged) {
            sum.c0.add_assign(&merged.c0, ring);
            sum.c1.add_assign(&merged.c1, ring);
        }
    }

    /// Adds the sums of the same tile over other record chunks.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for sums of another tile or table, and if a record chunk is in both.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        self.params.check_same(&other.params)?;
        let of = |sums: &Self| (sums.id, sums.residue, sums.sections.len());
        if of(self) != of(other) || self.pairs != other.pairs {
            return Err(Error::Mismatch("the sums belong to another tile"));
        }
        for (sums, other) in self.sections.iter_mut().zip(&other.sections) {
            sums.add(self.params.ring(), other)?;
        }
        self.add_merged(other.merged.clone());
        Ok(())
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        put_u32(out, self.pairs.len())?;
        for pair in &self.pairs {
            put_u32(out, pair.index)?;
            out.push(pair.squares.into());
        }
        put_u32(out, self.sections.len())?;
        for sums in &self.sections {
            put_section(out, &sums.section)?;
            put_u32(out, sums.covered.len())?;
            for band in &sums.covered {
                put_u32(out, band.start)?;
                put_u32(out, band.end)?;
            }
            out.push(sums.merged.into());
            let moduli = self.params.set().ciphertext_moduli;
            for (pair, spread) in self.pairs.iter().zip(&sums.spreads) {
                for [c0, c1, c2] in spread {
                    put_poly(out, moduli, c0);
                    put_poly(out, moduli, c1);
                    if pair.squares {
                        put_poly(out, moduli, c2);
                    }
                }
            }
        }
        let moduli = self.params.all_moduli();
        for Lifted { c0, c1 } in &self.merged {
            put_poly(out, &moduli, c0);
            put_poly(out, &moduli, c1);
        }
        Ok(())
    }

    fn decode(
        params: &Parameters,
        id: TileId,
        residue: usize,
        body: &mut Reader<'_>,
    ) -> Result<Self> {
        let mut sums = Self {
            id,
            residue,
            params: params.clone(),
            pairs: take_pairs(body)?,
            sections: Vec::new(),
            merged: Vec::new(),
        };
        for _ in 0..body.count(SECTION_BYTES)? {
            let start = sums
                .sections
                .last()
                .map_or(0, |last| last.section.chunks.end);
            let section = take_section_sums(params, &sums.pairs, start, body)?;
            sums.sections.push(section);
        }
        if sums.sections.is_empty() {
            return Err(body.malformed("a table needs at least one section"));
        }
        if sums.sections.iter().any(|section| section.merged) {
            let moduli = params.all_moduli();
            for _ in &sums.pairs {
                sums.merged.push(Lifted {
                    c0: take_poly(body, &moduli)?,
                    c1: take_poly(body, &moduli)?,
                });
            }
        }
        Ok(sums)
    }
}

/// Tags of the kinds of keys of a section.
const UNDER_UPLOAD: u8 = 1;
const UNDER_JOINT: u8 = 2;

/// Lower bound on the bytes of a section: tag, chunks, number of bands, merged flag.
const SECTION_BYTES: usize = 1 + 2 * 4 + 4 + 1;

fn put_section(out: &mut Vec<u8>, Section { chunks, key }: &Section) -> Result<()> {
    match key {
        ProductKey::Upload(UploadKeyId(id)) => {
            out.push(UNDER_UPLOAD);
            out.extend_from_slice(id);
        }
        ProductKey::Joint => out.push(UNDER_JOINT),
    }
    put_u32(out, chunks.start)?;
    put_u32(out, chunks.end)
}

/// Reads a section whose first record chunk must be `start`.
fn take_section(body: &mut Reader<'_>, start: usize) -> Result<Section> {
    let key = match body.bytes()? {
        [UNDER_UPLOAD] => ProductKey::Upload(UploadKeyId(body.bytes()?)),
        [UNDER_JOINT] => ProductKey::Joint,
        _ => return Err(body.malformed("a section has an unknown kind of key")),
    };
    let chunks = body.below(usize::MAX)?..body.below(usize::MAX)?;
    if chunks.start != start || chunks.is_empty() {
        return Err(body.malformed("sections are empty or do not follow each other"));
    }
    Ok(Section { chunks, key })
}

fn take_flag(body: &mut Reader<'_>) -> Result<bool> {
    match body.bytes()? {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(body.malformed("a flag is neither 0 nor 1")),
    }
}

fn take_pairs(body: &mut Reader<'_>) -> Result<Vec<PairShape>> {
    let mut pairs: Vec<PairShape> = Vec::new();
    for _ in 0..body.count(PAIR_BYTES)? {
        let index = body.below(TILE_PAIRS)?;
        if pairs.last().is_some_and(|last| last.index >= index) {
            return Err(body.malformed("pairs are repeated or not in order"));
        }
        let squares = take_flag(body)?;
        pairs.push(PairShape { index, squares });
    }
    if pairs.is_empty() {
        return Err(body.malformed("a tile needs at least one leaf"));
    }
    Ok(pairs)
}

fn take_section_sums(
    params: &Parameters,
    pairs: &[PairShape],
    start: usize,
    body: &mut Reader<'_>,
) -> Result<SectionSums> {
    let mut sums = SectionSums::empty(take_section(body, start)?);
    sums.covered = take_bands(body)?;
    let within = |band: &Range<usize>| {
        sums.section.chunks.start <= band.start && band.end <= sums.section.chunks.end
    };
    if !sums.covered.iter().all(within) {
        return Err(body.malformed("a record chunk is beyond its section"));
    }
    sums.merged = take_flag(body)?;
    if sums.merged && !sums.is_whole() {
        return Err(body.malformed("a merged section lacks record chunks"));
    }
    if sums.merged || sums.covered.is_empty() {
        return Ok(sums);
    }
    let moduli = params.set().ciphertext_moduli;
    for pair in pairs {
        let mut spread = || -> Result<[Poly; 3]> {
            let (c0, c1) = (take_poly(body, moduli)?, take_poly(body, moduli)?);
            let c2 = if pair.squares {
                take_poly(body, moduli)?
            } else {
                params.ring().zero()
            };
            Ok([c0, c1, c2])
        };
        sums.spreads.push([spread()?, spread()?]);
    }
    Ok(sums)
}

impl TileRoot {
    /// Returns the tile.
    pub fn tile(&self) -> TileId {
        self.id
    }
}

/// Tags of the kinds of results.
const SUMS: u8 = 0;
const ROOT: u8 = 1;

impl Partial {
    /// Returns the tile.
    pub fn tile(&self) -> TileId {
        match self {
            Self::Sums(sums) => sums.id,
            Self::Root(root) => root.id,
        }
    }

    /// Encodes the result.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a number that does not fit in 32 bits.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let TileId { page, index } = self.tile();
        let (tag, params, residue) = match self {
            Self::Sums(sums) => (SUMS, &sums.params, sums.residue),
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
    /// [`Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let (residue, mut body) = unframe(Kind::Partial, params, bytes, 0..=max_bytes(params))?;
        let [tag] = body.bytes()?;
        let id = TileId {
            page: body.below(usize::MAX)?,
            index: body.below(PAGE / TILE_LEAVES)?,
        };
        let partial = match tag {
            SUMS => Self::Sums(TileSums::decode(params, id, residue, &mut body)?),
            ROOT => Self::Root(TileRoot {
                id,
                residue,
                params: params.clone(),
                root: Lifted {
                    c0: take_poly(&mut body, &params.all_moduli())?,
                    c1: take_poly(&mut body, params.set().ciphertext_moduli)?,
                },
            }),
            _ => return Err(body.malformed("it is neither sums nor a root")),
        };
        body.end()?;
        Ok(partial)
    }
}

/// Reads bands. They must be in order, not empty, and have gaps between them.
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

/// Bytes of the shape of a pair.
const PAIR_BYTES: usize = 4 + 1;

/// Returns an upper bound on the bytes of a result: a whole tile's sums in the largest number of sections, where
/// every other chunk of the largest table is missing.
fn max_bytes(params: &Parameters) -> usize {
    let records = params.set().max_records as usize;
    let chunks = Layout::for_records(records).map_or(1, |layout| layout.chunks());
    let limbs = |moduli: &[u64]| moduli.iter().map(|&q| limb_bytes(q)).sum::<usize>();
    let spreads = TILE_PAIRS * 6 * limbs(params.set().ciphertext_moduli);
    let merged = TILE_PAIRS * 2 * limbs(&params.all_moduli());
    80 + 4 * chunks + MAX_SECTIONS * (SECTION_BYTES + 16 + spreads) + merged
}
