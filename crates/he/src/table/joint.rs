//! A table that is composed of the tables of several holders.
//!
//! Each holder's table is a rectangle of some record chunks and some columns. Holders of records have separate
//! chunks over all columns. They never share a chunk, because the records after a holder's own are zeros, and
//! another holder's malformed column would multiply these rows. Holders of columns have all chunks of their
//! columns. One holder's table is a joint table of one rectangle.

use crate::error::{Error, Result};
use crate::scheme::params::Parameters;
use crate::scheme::upload::ProductKey;
use crate::table::layout::Layout;
use crate::table::{BlobPlace, Chunks, Columns, Section};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// One holder's table, and its place in the whole table.
#[derive(Clone, Debug)]
pub struct Rectangle {
    /// Number of the rectangle's first record chunk in the whole table.
    pub first_chunk: usize,
    /// For each of the rectangle's columns, in order, its number in the whole table.
    pub columns: Vec<usize>,
    /// The holder's table.
    pub table: Arc<dyn Columns>,
}

impl Rectangle {
    fn chunks(&self) -> Range<usize> {
        let end = self
            .first_chunk
            .saturating_add(self.table.layout().chunks());
        self.first_chunk..end
    }
}

/// Rectangles that cover each chunk of each column of a table exactly once.
#[derive(Debug)]
pub struct JointTable {
    params: Parameters,
    layout: Layout,
    count: usize,
    pieces: Vec<Piece>,
}

/// A rectangle, and the position in it of each column of the whole table.
#[derive(Debug)]
struct Piece {
    rectangle: Rectangle,
    local: BTreeMap<usize, usize>,
}

impl JointTable {
    /// Composes a table of `count` columns from rectangles. Its stride is the largest stride of the rectangles.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for rectangles under different parameters, for rectangles whose rows are not aligned, and
    /// for rectangles that do not cover every chunk of every column exactly once.
    pub fn new(count: usize, rectangles: Vec<Rectangle>) -> Result<Self> {
        let Some(first) = rectangles.first() else {
            return Err(Error::Mismatch("a table needs at least one holder"));
        };
        let params = first.table.params().clone();
        let mut pieces = Vec::with_capacity(rectangles.len());
        let (mut chunks, mut stride) = (0, Layout::MIN_STRIDE);
        for rectangle in rectangles {
            params.check_same(rectangle.table.params())?;
            chunks = chunks.max(rectangle.chunks().end);
            stride = stride.max(rectangle.table.layout().stride());
            pieces.push(Piece::new(rectangle, count)?);
        }
        pieces.sort_by_key(|piece| piece.rectangle.first_chunk);
        let joint = Self {
            params,
            layout: Layout::of_many(chunks, stride)?,
            count,
            pieces,
        };
        joint.check()?;
        Ok(joint)
    }

    /// Returns whether several holders have columns of the same records.
    fn is_joined(&self) -> bool {
        let pieces = self.pieces.windows(2);
        let same =
            |pair: &[Piece]| matches!(pair, [a, b] if a.rectangle.chunks() == b.rectangle.chunks());
        pieces.into_iter().any(same)
    }

    /// Checks that the chunks of every column follow each other from the first to the last, and that rectangles over
    /// the same chunks have the same records.
    fn check(&self) -> Result<()> {
        let uncovered = Error::Mismatch("the holders' parts leave a gap, or overlap");
        let mut covered = vec![0; self.count];
        for piece in &self.pieces {
            let chunks = piece.rectangle.chunks();
            for &column in &piece.rectangle.columns {
                match covered.get_mut(column) {
                    Some(end) if *end == chunks.start => *end = chunks.end,
                    _ => return Err(uncovered),
                }
            }
        }
        if covered.iter().any(|&end| end != self.layout.chunks()) {
            return Err(uncovered);
        }
        let stride = |piece: &Piece| piece.rectangle.table.layout().stride();
        let aligned = |[one, next]: [&Piece; 2]| {
            let apart = one.rectangle.chunks().end <= next.rectangle.first_chunk;
            apart
                || (one.rectangle.chunks() == next.rectangle.chunks()
                    && stride(one) == stride(next))
        };
        let neighbours = self.pieces.iter().zip(self.pieces.iter().skip(1));
        if neighbours
            .into_iter()
            .all(|(one, next)| aligned([one, next]))
        {
            Ok(())
        } else {
            Err(Error::Mismatch(
                "the holders of columns have different numbers of records",
            ))
        }
    }
}

impl Piece {
    fn new(rectangle: Rectangle, count: usize) -> Result<Self> {
        let columns = &rectangle.columns;
        let local: BTreeMap<usize, usize> = columns.iter().copied().zip(0..).collect();
        let whole = local.len() == columns.len() && columns.len() == rectangle.table.count();
        if !whole
            || local
                .last_key_value()
                .is_some_and(|(&last, _)| last >= count)
        {
            return Err(Error::Mismatch(
                "a holder's table does not have the columns that its rectangle names",
            ));
        }
        Ok(Self { rectangle, local })
    }

    /// Appends this rectangle's part of `columns` over `chunks` of the whole table to the chunks of each column.
    fn append(
        &self,
        residue: usize,
        columns: &[usize],
        chunks: &Range<usize>,
        out: &mut [Chunks],
    ) -> Result<()> {
        let own = self.rectangle.chunks();
        let band = own.start.max(chunks.start)..own.end.min(chunks.end);
        if band.is_empty() {
            return Ok(());
        }
        let wanted = columns.iter().zip(out);
        let wanted = wanted.filter_map(|(column, out)| Some((*self.local.get(column)?, out)));
        let (local, out): (Vec<usize>, Vec<&mut Chunks>) = wanted.unzip();
        if local.is_empty() {
            return Ok(());
        }
        let band = band.start - own.start..band.end - own.start;
        let read = self.rectangle.table.read(residue, &local, band)?;
        for (out, read) in out.into_iter().zip(read) {
            out.append(read)?;
        }
        Ok(())
    }
}

impl Columns for JointTable {
    fn params(&self) -> &Parameters {
        &self.params
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn count(&self) -> usize {
        self.count
    }

    fn read(&self, residue: usize, columns: &[usize], chunks: Range<usize>) -> Result<Vec<Chunks>> {
        let mut out = vec![Chunks::default(); columns.len()];
        for piece in &self.pieces {
            piece.append(residue, columns, &chunks, &mut out)?;
        }
        if out.iter().any(|read| read.len() != chunks.len()) {
            return Err(Error::OutOfRange("number of a column or record chunk"));
        }
        Ok(out)
    }

    fn sections(&self) -> Vec<Section> {
        if self.is_joined() {
            let chunks = 0..self.layout.chunks();
            let key = ProductKey::Joint;
            return vec![Section { chunks, key }];
        }
        let pieces = self.pieces.iter();
        let of_each = pieces.flat_map(|piece| {
            let first = piece.rectangle.first_chunk;
            let sections = piece.rectangle.table.sections().into_iter();
            sections.map(move |Section { chunks, key }| Section {
                chunks: first + chunks.start..first + chunks.end,
                key,
            })
        });
        let mut sections: Vec<Section> = of_each.collect();
        sections.dedup_by(|next, before| {
            let joins = next.key == before.key && before.chunks.end == next.chunks.start;
            if joins {
                before.chunks.end = next.chunks.end;
            }
            joins
        });
        sections
    }

    fn place(&self, column: usize, chunk: usize) -> Option<BlobPlace> {
        self.pieces.iter().find_map(|piece| {
            let rectangle = &piece.rectangle;
            let local = *piece.local.get(&column)?;
            let chunk = chunk.checked_sub(rectangle.first_chunk)?;
            let within = chunk < rectangle.table.layout().chunks();
            within.then(|| rectangle.table.place(local, chunk))?
        })
    }
}
