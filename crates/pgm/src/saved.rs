//! Saves models to bytes, and loads them.
//!
//! A model's junction tree is a function of its cliques, and its marginals follow from its
//! potentials, so neither is saved. A saved model consists of its domain with the groups of its
//! tables, its total, and one table of potentials for each clique. Tables are row-major by
//! attribute and not by rank, so that they remain valid if the construction of trees changes.
//!
//! All numbers are little-endian, in this order:
//!
//! 1. the magic, the version (u32), total and loss (f64), steps and measured values (u64);
//! 2. the number of attributes and their sizes (u32 each);
//! 3. for each attribute, the number of its categories and the group of each (u32 each), or 0 if
//!    every category is a group;
//! 4. the number of cliques (u32), and for each clique, in ascending order, its number of
//!    attributes, the attributes (u32 each), and its potentials (f64): over categories for a single
//!    attribute, otherwise over groups;
//! 5. the number of extra pairs (u32), and for each pair, in ascending order, both attributes (u32
//!    each) and its counts (f64), over categories;
//! 6. the checksum: the first 8 bytes of the SHA-256 of all bytes before it. It detects damage, not forgery.
//!
//! The seconds of the fit are not saved, so that the same measurements give the same bytes.

use std::sync::OnceLock;

use fhaim_domain::{Clique, Domain};
use sha2::{Digest, Sha256};

use crate::estimate::{category_shares, check_size, junction_tree};
use crate::extra_pairs::ExtraPairs;
use crate::junction::JunctionTree;
use crate::measurement::check_groups;
use crate::model::Potentials;
use crate::observations::{ascending_cells, ranked};
use crate::propagation::Propagation;
use crate::resolution::{Folding, Resolution};
use crate::{Error, FitOptions, FitReport, Model};

/// The version of the format.
const VERSION: u32 = 1;

/// The data that a model is restored from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts {
    pub domain: Domain,
    pub resolution: Resolution,
    pub total: f64,
    pub report: FitReport,
    /// The cliques, ascending; none is empty.
    pub cliques: Vec<Clique>,
    /// Potentials of each clique, row-major by attribute.
    pub tables: Vec<Vec<f64>>,
    pub beside: ExtraPairs,
}

impl Model {
    /// The first bytes of a saved model.
    pub const MAGIC: &[u8; 8] = b"fhaimpgm";

    /// Serializes the model for [`Model::load`].
    pub fn save(&self) -> Vec<u8> {
        let parts = self.parts();
        let mut bytes = [Self::MAGIC.as_slice(), &VERSION.to_le_bytes()].concat();
        bytes.extend(parts.total.to_le_bytes());
        bytes.extend(parts.report.loss.to_le_bytes());
        bytes.extend((parts.report.steps as u64).to_le_bytes());
        bytes.extend((parts.report.values as u64).to_le_bytes());
        // Sizes and indices are below 2^32, because the number of a fitted model's cells is.
        let count = |n: usize| (n as u32).to_le_bytes();
        bytes.extend(count(parts.domain.len()));
        bytes.extend(parts.domain.sizes().iter().flat_map(|&size| count(size)));
        for split in parts.resolution.splits() {
            let groups = split.as_deref().unwrap_or_default();
            bytes.extend(count(groups.len()));
            bytes.extend(groups.iter().flat_map(|&group| group.to_le_bytes()));
        }
        bytes.extend(count(parts.cliques.len()));
        for (clique, table) in parts.cliques.iter().zip(&parts.tables) {
            bytes.extend(count(clique.len()));
            bytes.extend(clique.attributes().iter().flat_map(|&a| count(a)));
            bytes.extend(table.iter().flat_map(|x| x.to_le_bytes()));
        }
        bytes.extend(count(parts.beside.iter().len()));
        for (clique, counts) in parts.beside.iter() {
            bytes.extend(clique.attributes().iter().flat_map(|&a| count(a)));
            bytes.extend(counts.iter().flat_map(|x| x.to_le_bytes()));
        }
        bytes.extend(checksum(&bytes));
        bytes
    }

    /// Loads a model that [`Model::save`] wrote. Its marginals and samples are the same, bit for
    /// bit, and so is its report, except for seconds and work.
    ///
    /// Neither the model nor a query of it may take more than `max_bytes`.
    ///
    /// # Errors
    /// [`Error::Saved`] if the bytes are not exactly one saved model; [`Error::TooLarge`].
    pub fn load(bytes: &[u8], max_bytes: usize) -> Result<Self, Error> {
        Self::assemble(read(bytes)?, max_bytes)
    }

    pub(crate) fn parts(&self) -> Parts {
        let Potentials {
            cliques,
            ranges,
            tables,
        } = &self.potentials;
        let tables = (cliques.iter().zip(ranges))
            .map(|(clique, range)| self.by_attribute(clique, &tables[range.clone()]))
            .collect();
        Parts {
            domain: self.domain.clone(),
            resolution: self.resolution.clone(),
            total: self.total,
            report: self.report,
            cliques: cliques.clone(),
            tables,
            beside: self.extra_pairs.clone(),
        }
    }

    /// Builds a model from its parts, which must fit one another.
    pub(crate) fn assemble(parts: Parts, max_bytes: usize) -> Result<Self, Error> {
        let (resolution, cliques) = (parts.resolution, parts.cliques);
        let groups = resolution.domain();
        let tree = junction_tree(groups, &cliques);
        check_size(
            groups,
            &tree,
            &cliques,
            (max_bytes, FitOptions::default().memory),
        )?;
        let axes: Vec<_> = (cliques.iter())
            .map(|clique| ranked(clique, groups, &tree))
            .collect();
        let propagation = Propagation::new(&tree, groups.sizes(), &axes);
        let (mut tables, mut ranges) = (Vec::new(), Vec::new());
        for (clique, table) in cliques.iter().zip(&parts.tables) {
            let start = tables.len();
            tables.extend(by_rank(clique, table, groups, &tree));
            ranges.push(start..tables.len());
        }
        let mut beliefs = propagation.beliefs();
        let mut marginals = vec![0.0; tables.len()];
        let mut folding = Folding::new(&parts.domain, &resolution, &cliques);
        propagation.calibrate_folded(
            folding.as_mut(),
            &tables,
            parts.total,
            &mut beliefs,
            &mut marginals,
        );
        if !marginals.iter().all(|x| x.is_finite()) {
            return Err(Error::Saved("its potentials do not give a distribution"));
        }
        let potentials = Potentials {
            cliques,
            ranges,
            tables,
        };
        Ok(Self {
            shares: category_shares(&resolution, &potentials),
            domain: parts.domain,
            resolution,
            tree,
            propagation,
            beliefs,
            total: parts.total,
            potentials,
            report: parts.report,
            extra_pairs: parts.beside,
            measured: OnceLock::new(),
            max_bytes,
        })
    }
}

/// Reorders the axes of a clique's potentials from the order of attributes to that of rank.
fn by_rank(clique: &Clique, table: &[f64], groups: &Domain, tree: &JunctionTree) -> Vec<f64> {
    let attributes = clique.attributes();
    if attributes.len() == 1 {
        return table.to_vec();
    }
    let sizes: Vec<usize> = attributes.iter().map(|&a| groups.size(a)).collect();
    let places = ascending_cells(attributes, &sizes, tree);
    places.iter().map(|&place| table[place]).collect()
}

/// Returns the checksum of a saved model's bytes before it.
fn checksum(bytes: &[u8]) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    // A digest has 32 bytes, so the first 8 exist.
    digest.first_chunk().copied().unwrap_or_default()
}

/// Reads and checks a saved model's parts.
fn read(bytes: &[u8]) -> Result<Parts, Error> {
    let mut input = Input(bytes);
    if input.take()? != *Model::MAGIC {
        return Err(Error::Saved("it does not begin with the magic bytes"));
    }
    if input.u32()? != VERSION {
        return Err(Error::Saved("its version is unknown to this program"));
    }
    input.check_whole(bytes)?;
    let total = input.f64()?;
    if !(total.is_normal() && total > 0.0) {
        return Err(Error::Saved(
            "its total is not a positive number of records",
        ));
    }
    let report = FitReport {
        loss: input.f64()?,
        steps: u64::from_le_bytes(input.take()?) as usize,
        values: u64::from_le_bytes(input.take()?) as usize,
        ..FitReport::default()
    };
    let sizes = input.list()?;
    if sizes.contains(&0) {
        return Err(Error::Saved("an attribute has no values"));
    }
    let domain = Domain::new(sizes);
    let resolution = input.resolution(&domain)?;
    let mut cliques: Vec<Clique> = Vec::new();
    let mut tables = Vec::new();
    for _ in 0..input.u32()? {
        let attributes = input.list()?;
        let sound = !attributes.is_empty()
            && attributes.is_sorted_by(|a, b| a < b)
            && attributes.iter().all(|&a| a < domain.len());
        let clique = Clique::new(attributes);
        if !sound || cliques.last().is_some_and(|last| *last >= clique) {
            return Err(Error::Saved("its cliques are not in order"));
        }
        tables.push(input.table(resolution.potential_cells(&domain, &clique))?);
        cliques.push(clique);
    }
    let beside = input.beside(&domain, total)?;
    if !input.0.is_empty() {
        return Err(Error::Saved("it has bytes after its end"));
    }
    Ok(Parts {
        beside,
        domain,
        resolution,
        total,
        report,
        cliques,
        tables,
    })
}

/// The unread bytes.
struct Input<'a>(&'a [u8]);

const CUT_OFF: Error = Error::Saved("it is truncated");

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (first, rest) = self.0.split_first_chunk().ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Checks the checksum at the end of all bytes of the model, and removes it from the unread ones.
    fn check_whole(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (unread, _) = self.0.split_last_chunk::<8>().ok_or(CUT_OFF)?;
        let (before, found) = bytes.split_last_chunk::<8>().ok_or(CUT_OFF)?;
        if checksum(before) != *found {
            return Err(Error::Saved(
                "its bytes do not match its checksum, so the file is damaged or incomplete",
            ));
        }
        self.0 = unread;
        Ok(())
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn f64(&mut self) -> Result<f64, Error> {
        let number = f64::from_le_bytes(self.take()?);
        if number.is_finite() {
            Ok(number)
        } else {
            Err(Error::Saved("it has a number that is not finite"))
        }
    }

    /// Reads a number of integers, and the integers.
    fn list(&mut self) -> Result<Vec<usize>, Error> {
        let length = self.u32()? as usize;
        self.room_for(length, size_of::<u32>())?;
        (0..length).map(|_| Ok(self.u32()? as usize)).collect()
    }

    fn resolution(&mut self, domain: &Domain) -> Result<Resolution, Error> {
        let mut splits = Vec::with_capacity(domain.len());
        for &size in domain.sizes() {
            let groups: Vec<u32> = self.list()?.into_iter().map(|g| g as u32).collect();
            if groups.is_empty() {
                splits.push(None);
                continue;
            }
            check_groups(&groups, size)
                .map_err(|_| Error::Saved("its groups do not fit its attributes"))?;
            splits.push(Some(groups));
        }
        Ok(Resolution::with_splits(domain, splits))
    }

    fn table(&mut self, cells: Option<usize>) -> Result<Vec<f64>, Error> {
        let cells = cells.ok_or(CUT_OFF)?;
        self.room_for(cells, size_of::<f64>())?;
        (0..cells).map(|_| self.f64()).collect()
    }

    fn beside(&mut self, domain: &Domain, total: f64) -> Result<ExtraPairs, Error> {
        let number = self.u32()?;
        let mut tables: Vec<(Clique, Vec<f64>)> = Vec::new();
        for _ in 0..number {
            let attributes = [self.u32()? as usize, self.u32()? as usize];
            let sound = attributes[0] < attributes[1] && attributes[1] < domain.len();
            let clique = Clique::new(attributes);
            if !sound || tables.last().is_some_and(|(last, _)| *last >= clique) {
                return Err(Error::Saved("its extra pairs are not in order"));
            }
            let counts = self.table(domain.cells(&clique))?;
            tables.push((clique, counts));
        }
        ExtraPairs::new(domain, total, tables)
            .map_err(|_| Error::Saved("an extra table does not fit its pair"))
    }

    /// Checks that the input has room for a number of items, before memory is allocated for them.
    fn room_for(&self, items: usize, bytes: usize) -> Result<(), Error> {
        match items.checked_mul(bytes) {
            Some(needed) if needed <= self.0.len() => Ok(()),
            _ => Err(CUT_OFF),
        }
    }
}
