//! Models at rest: bytes that a model is made from again.
//!
//! A model's junction tree is a function of its cliques, and its marginals follow from its
//! potentials, so neither is kept: a saved model is its domain, its total, and one table of
//! potentials for each clique. Tables are row-major by attribute rather than by rank, so that
//! they outlive a change of how trees are built.
//!
//! Numbers are little-endian: the magic, the version (u32), total and loss (f64), steps (u64), the
//! number of attributes and their sizes (u32 each), the number of cliques (u32); for each clique,
//! in ascending order, its number of attributes and the attributes (u32 each), then its potentials
//! (f64). The same measurements give the same bytes, so the seconds that a fit took are not kept.

use fhaim_domain::{Clique, Domain};

use crate::estimate::junction_tree;
use crate::observations::{ascending_cells, ranked};
use crate::propagation::{self, Propagation};
use crate::{Error, FitReport, Model};

const MAGIC: &[u8; 8] = b"fhaimpgm";

const VERSION: u32 = 1;

/// What a model is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts {
    pub domain: Domain,
    pub total: f64,
    pub report: FitReport,
    /// Ascending, none of them empty.
    pub cliques: Vec<Clique>,
    /// Potentials of each clique, row-major by attribute.
    pub tables: Vec<Vec<f64>>,
}

impl Model {
    /// The model as bytes, for [`Model::load`].
    pub fn save(&self) -> Vec<u8> {
        let parts = self.parts();
        let mut bytes = [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat();
        bytes.extend(parts.total.to_le_bytes());
        bytes.extend(parts.report.loss.to_le_bytes());
        bytes.extend((parts.report.steps as u64).to_le_bytes());
        // Sizes and indices stay below 2^32: a fitted model's cells do.
        let count = |n: usize| (n as u32).to_le_bytes();
        bytes.extend(count(parts.domain.len()));
        bytes.extend(parts.domain.sizes().iter().flat_map(|&size| count(size)));
        bytes.extend(count(parts.cliques.len()));
        for (clique, table) in parts.cliques.iter().zip(&parts.tables) {
            bytes.extend(count(clique.len()));
            bytes.extend(clique.attributes().iter().flat_map(|&a| count(a)));
            bytes.extend(table.iter().flat_map(|x| x.to_le_bytes()));
        }
        bytes
    }

    /// The model that [`Model::save`] wrote: its marginals and samples are the same, bit for bit,
    /// and its report but for the seconds.
    /// Neither the model nor a query of it may take more than `max_bytes`.
    ///
    /// # Errors
    /// Bytes that are not a whole saved model and nothing else; [`Error::TooLarge`].
    pub fn load(bytes: &[u8], max_bytes: usize) -> Result<Self, Error> {
        Self::assemble(read(bytes)?, max_bytes)
    }

    pub(crate) fn parts(&self) -> Parts {
        let tables = (self.cliques.iter().zip(self.propagation.potentials()))
            .map(|(clique, range)| self.ascending(clique, &self.potentials[range.clone()]))
            .collect();
        Parts {
            domain: self.domain.clone(),
            total: self.total,
            report: self.report,
            cliques: self.cliques.clone(),
            tables,
        }
    }

    /// A model from its parts, which fit one another.
    pub(crate) fn assemble(parts: Parts, max_bytes: usize) -> Result<Self, Error> {
        let (domain, cliques) = (parts.domain, parts.cliques);
        let tree = junction_tree(&domain, &cliques);
        check_size(&domain, &tree, &cliques, max_bytes)?;
        let axes: Vec<_> = (cliques.iter())
            .map(|clique| ranked(clique, &domain, &tree))
            .collect();
        let propagation = Propagation::new(&tree, domain.sizes(), &axes);
        let mut potentials = Vec::with_capacity(parts.tables.iter().map(Vec::len).sum());
        for (clique, table) in cliques.iter().zip(&parts.tables) {
            let attributes = clique.attributes();
            let sizes: Vec<usize> = attributes.iter().map(|&a| domain.size(a)).collect();
            let places = ascending_cells(attributes, &sizes, &tree);
            potentials.extend(places.iter().map(|&place| table[place]));
        }
        let mut beliefs = propagation.beliefs();
        let mut marginals = vec![0.0; potentials.len()];
        propagation.calibrate(&potentials, parts.total, &mut beliefs, &mut marginals);
        if !marginals.iter().all(|x| x.is_finite()) {
            return Err(Error::Saved("its potentials give no distribution"));
        }
        Ok(Self {
            domain,
            tree,
            propagation,
            beliefs,
            total: parts.total,
            cliques,
            potentials,
            report: parts.report,
            max_bytes,
        })
    }
}

fn check_size(
    domain: &Domain,
    tree: &crate::junction::JunctionTree,
    cliques: &[Clique],
    cap: usize,
) -> Result<(), Error> {
    let nodes: Vec<Clique> = tree.nodes.iter().map(|node| node.clique()).collect();
    let countable = nodes.iter().all(|node| domain.cells(node).is_some());
    let bytes = countable.then(|| {
        let axes: Vec<_> = cliques.iter().map(|c| ranked(c, domain, tree)).collect();
        propagation::bytes(tree, domain.sizes(), &axes)
    });
    let bytes = bytes.flatten();
    if bytes.is_some_and(|bytes| bytes <= cap) {
        return Ok(());
    }
    let cells = |node: &Clique| domain.cells(node).unwrap_or(usize::MAX);
    let largest = nodes.into_iter().max_by_key(cells);
    let largest = largest.unwrap_or_else(|| Clique::new([]));
    Err(Error::TooLarge {
        bytes,
        cap,
        cells: domain.cells(&largest),
        largest,
    })
}

/// Reads and checks a saved model's parts.
fn read(bytes: &[u8]) -> Result<Parts, Error> {
    let mut input = Input(bytes);
    if input.take()? != *MAGIC {
        return Err(Error::Saved("it does not begin as one"));
    }
    if input.u32()? != VERSION {
        return Err(Error::Saved("its version is not known here"));
    }
    let total = input.f64()?;
    if !(total.is_normal() && total > 0.0) {
        return Err(Error::Saved("its total is no number of records"));
    }
    let report = FitReport {
        loss: input.f64()?,
        steps: u64::from_le_bytes(input.take()?) as usize,
        seconds: 0.0,
    };
    let sizes = input.list()?;
    if sizes.contains(&0) {
        return Err(Error::Saved("an attribute has no values"));
    }
    let domain = Domain::new(sizes);
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
        tables.push(input.table(domain.cells(&clique))?);
        cliques.push(clique);
    }
    if !input.0.is_empty() {
        return Err(Error::Saved("there are bytes after its end"));
    }
    Ok(Parts {
        domain,
        total,
        report,
        cliques,
        tables,
    })
}

/// Bytes still to be read.
struct Input<'a>(&'a [u8]);

const CUT_OFF: Error = Error::Saved("it is cut off");

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (first, rest) = self.0.split_first_chunk().ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn f64(&mut self) -> Result<f64, Error> {
        let number = f64::from_le_bytes(self.take()?);
        if number.is_finite() {
            Ok(number)
        } else {
            Err(Error::Saved("it has numbers that are not finite"))
        }
    }

    /// A number of integers, and the integers.
    fn list(&mut self) -> Result<Vec<usize>, Error> {
        let length = self.u32()? as usize;
        self.room_for(length, size_of::<u32>())?;
        (0..length).map(|_| Ok(self.u32()? as usize)).collect()
    }

    fn table(&mut self, cells: Option<usize>) -> Result<Vec<f64>, Error> {
        let cells = cells.ok_or(CUT_OFF)?;
        self.room_for(cells, size_of::<f64>())?;
        (0..cells).map(|_| self.f64()).collect()
    }

    /// Whether so many items can be there: nothing is allocated for those that cannot.
    fn room_for(&self, items: usize, bytes: usize) -> Result<(), Error> {
        match items.checked_mul(bytes) {
            Some(needed) if needed <= self.0.len() => Ok(()),
            _ => Err(CUT_OFF),
        }
    }
}
