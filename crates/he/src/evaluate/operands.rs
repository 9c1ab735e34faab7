//! Combinations of columns in left and right form, over a band of record chunks.

use crate::error::{Error, Result};
use crate::evaluate::context::EvaluationContext;
use crate::evaluate::factoring::{Family, families};
use crate::evaluate::parallel::map;
use crate::evaluate::task::{Block, Tile, TileTask};
use crate::evaluate::work::{Clock, EvaluationWork};
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::keyswitch::Scratch;
use crate::scheme::ring::Poly;
use crate::scheme::upload::UploadKeyId;
use crate::table::{Chunks, Columns, Combination, OTHER_KEY, Operand, Section};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The factors of a task over its record chunks, section by section, ready to be multiplied.
#[derive(Debug)]
pub struct Operands {
    /// Number of record chunks.
    chunks: usize,
    /// The sections of the table.
    pub(crate) table: Vec<Section>,
    /// The factors, for each section that has some of the record chunks.
    pub(crate) sections: Vec<SectionOperands>,
}

/// The factors of a task over its record chunks in one section. Right factors are scaled for the tensor.
#[derive(Debug)]
pub(crate) struct SectionOperands {
    /// The number of the section in its table.
    pub(crate) section: usize,
    /// The record chunks.
    pub(crate) band: Range<usize>,
    /// Left factors. A factor that is only summed may consist of the sum of its record chunks.
    pub(crate) left: Vec<Operand>,
    pub(crate) right: Vec<Operand>,
}

impl Operands {
    /// Checks that there are as many factors as a task's tiles name, over as many record chunks.
    pub(crate) fn are_of(&self, task: &TileTask) -> bool {
        let named = (task.block.left.len(), task.block.right.len());
        let mut sections = self.sections.iter();
        self.chunks == task.band.len()
            && sections.all(|section| (section.left.len(), section.right.len()) == named)
    }

    /// Reads the columns that a task names, and computes its factors. A right factor takes one key switch for each
    /// record chunk, and under a joint key a left factor does too.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if task, table and keys do not belong together. [`Error::OutOfRange`] for a column that
    /// the table lacks. [`Error::Unavailable`] if a column cannot be read.
    pub fn read(
        context: &EvaluationContext<'_>,
        table: &dyn Columns,
        task: &TileTask,
        work: &mut EvaluationWork,
    ) -> Result<Self> {
        check(context, table, task)?;
        let all = table.sections();
        let mut sections = Vec::with_capacity(all.len());
        for (number, Section { chunks, .. }) in all.iter().enumerate() {
            let band = task.band.start.max(chunks.start)..task.band.end.min(chunks.end);
            if !band.is_empty() {
                sections.push(read_section(context, table, task, (number, band), work)?);
            }
        }
        Ok(Self {
            chunks: task.band.len(),
            table: all,
            sections,
        })
    }

    /// Checks that the left factors of a tile's products have all record chunks.
    pub(crate) fn multiply(&self, tile: &Tile) -> bool {
        let products = || tile.leaves.iter().flat_map(|leaf| &leaf.products);
        self.sections.iter().all(|section| {
            let mut lefts = products().flat_map(|product| &product.left);
            lefts.all(|&(_, left)| {
                let left = section.left.get(left);
                left.is_some_and(|chunks| chunks.len() == section.band.len())
            })
        })
    }
}

/// Computes the factors of a task over the record chunks `band` of one section.
fn read_section(
    context: &EvaluationContext<'_>,
    table: &dyn Columns,
    task: &TileTask,
    (section, band): (usize, Range<usize>),
    work: &mut EvaluationWork,
) -> Result<SectionOperands> {
    let source = Source {
        context,
        read: &read_columns(table, task, &band)?,
        residue: task.residue(),
        chunks: band.len(),
    };
    let started = Clock::start();
    let (left, right) = source.combine(&task.block)?;
    let block = &task.block;
    let left = factors(
        context,
        source.keys(&block.left, left)?,
        work,
        |c, key, scratch| context.left_factor(c, key, scratch),
    )?;
    let right = factors(
        context,
        source.keys(&block.right, right)?,
        work,
        |c, key, scratch| {
            let mut inverted = context.right_factor(&c, key, scratch)?;
            scale(context, &mut inverted);
            Ok(Arc::new(inverted))
        },
    )?;
    work.switching += started.seconds();
    Ok(SectionOperands {
        section,
        band,
        left,
        right,
    })
}

/// Makes factors from combinations, on all cores.
fn factors(
    context: &EvaluationContext<'_>,
    combinations: Vec<(Option<UploadKeyId>, Operand)>,
    work: &mut EvaluationWork,
    factor: impl Fn(Arc<Ciphertext>, Option<UploadKeyId>, &mut Scratch) -> Result<Arc<Ciphertext>>
    + Sync
    + Send,
) -> Result<Vec<Operand>> {
    let made = map(combinations, |(key, chunks)| {
        let mut done = EvaluationWork::default();
        let make = |scratch: &mut Scratch| {
            let chunks = chunks.into_iter().map(|c| factor(c, key, scratch));
            chunks.collect::<Result<Operand>>()
        };
        (context.with_scratch(&mut done, make), done)
    });
    let made = made.into_iter().map(|(operand, done)| {
        *work += done;
        operand
    });
    made.collect()
}

/// Rejects a task, a table and keys that do not belong together.
fn check(context: &EvaluationContext<'_>, table: &dyn Columns, task: &TileTask) -> Result<()> {
    context.check(table.params(), table.layout())?;
    context.check(table.params(), task.layout())?;
    context.check_sections(&table.sections())?;
    if task.residue() >= context.params().residues() {
        return Err(Error::OutOfRange("plaintext modulus"));
    }
    let named = task.block.columns();
    let columns = table.count();
    if named.last().is_some_and(|&column| column >= columns) {
        return Err(Error::OutOfRange(
            "a task names a column that the table lacks",
        ));
    }
    Ok(())
}

/// The record chunks of a column, with their upload key.
type Column = (Option<UploadKeyId>, Operand);

/// Reads the columns that a task names, over a band. Returns them by number.
fn read_columns(
    table: &dyn Columns,
    task: &TileTask,
    band: &Range<usize>,
) -> Result<BTreeMap<usize, Column>> {
    let named = task.block.columns();
    let read = table.read(task.residue(), &named, band.clone())?;
    if read.len() != named.len() || read.iter().any(|column| column.len() != band.len()) {
        return Err(Error::Mismatch(
            "the table returned the wrong number of columns or record chunks",
        ));
    }
    let columns = read.into_iter().map(Chunks::into_parts);
    Ok(named.into_iter().zip(columns).collect())
}

/// The columns that a task's combinations are computed from.
struct Source<'a> {
    context: &'a EvaluationContext<'a>,
    read: &'a BTreeMap<usize, Column>,
    residue: usize,
    chunks: usize,
}

impl Source<'_> {
    /// Computes the left combinations of a block, and the right ones before they are inverted.
    ///
    /// Combinations that are only summed are computed from columns whose record chunks have been added up: once
    /// instead of once for each chunk.
    fn combine(&self, block: &Block) -> Result<(Vec<Operand>, Vec<Operand>)> {
        let multiplied = block.multiplied();
        let mut made: Vec<Operand> = Vec::new();
        for combination in block.left.iter().chain(&block.right) {
            made.push(match combination.single() {
                Some(column) => self.column(column)?.clone(),
                None => Operand::new(),
            });
        }
        let of_several = |&(_, combination): &(usize, &Combination)| combination.single().is_none();
        let all = block.left.iter().chain(&block.right).enumerate();
        let (each, summed): (Vec<_>, Vec<_>) = all.filter(of_several).partition(|&(i, _)| {
            // Right combinations, which follow the left ones, are always factors.
            self.chunks == 1 || multiplied.get(i).copied().unwrap_or(true)
        });
        let each_chunk = (0..self.chunks).map(Some).collect::<Vec<_>>();
        for (combinations, chunks) in [(each, &each_chunk[..]), (summed, &[None][..])] {
            let (numbers, combinations): (Vec<usize>, Vec<&Combination>) =
                combinations.into_iter().unzip();
            let families = families(&combinations);
            let work = families
                .iter()
                .flat_map(|f| chunks.iter().map(move |&k| (f, k)));
            let done = map(work.collect(), |(family, chunk)| self.make(family, chunk));
            // The results are ordered by family, then by chunk.
            let mut done = done.into_iter();
            for family in &families {
                for ciphertexts in done.by_ref().take(chunks.len()) {
                    let numbers = family.members.iter().filter_map(|&i| numbers.get(i));
                    for (&number, ciphertext) in numbers.zip(ciphertexts?) {
                        if let Some(made) = made.get_mut(number) {
                            made.push(ciphertext);
                        }
                    }
                }
            }
        }
        let right = made.split_off(block.left.len());
        Ok((made, right))
    }

    fn column(&self, column: usize) -> Result<&Operand> {
        let column = self.read.get(&column);
        let (_, chunks) = column.ok_or(Error::Mismatch("a column was not read"))?;
        Ok(chunks)
    }

    /// Pairs combinations with the upload key of their columns.
    fn keys(
        &self,
        combinations: &[Combination],
        operands: Vec<Operand>,
    ) -> Result<Vec<(Option<UploadKeyId>, Operand)>> {
        let key = |Combination(terms): &Combination| {
            let columns = terms.iter().filter_map(|(column, _)| self.read.get(column));
            let mut keys = columns.map(|&(key, _)| key);
            let first = keys.next().flatten();
            if keys.all(|key| key == first) {
                Ok(first)
            } else {
                Err(OTHER_KEY)
            }
        };
        let keys = combinations.iter().map(key);
        keys.zip(operands)
            .map(|(key, operand)| Ok((key?, operand)))
            .collect()
    }

    /// Computes a family's combinations over one record chunk, or over the sum of all chunks.
    fn make(&self, family: &Family, chunk: Option<usize>) -> Result<Vec<Arc<Ciphertext>>> {
        let params = self.context.params();
        let input = |&column: &usize| {
            let column = self.column(column)?;
            let (first, count) = chunk.map_or((0, self.chunks), |k| (k, 1));
            let mut chunks = column.iter().skip(first).take(count);
            let missing = Error::Mismatch("a column lacks a record chunk");
            let mut sum = chunks.next().ok_or(missing)?.clone();
            for chunk in chunks {
                Arc::make_mut(&mut sum).add_assign(chunk, params);
            }
            Ok(sum)
        };
        let inputs = family.columns.iter().map(input);
        let inputs = inputs.collect::<Result<Vec<Arc<Ciphertext>>>>()?;
        let halves: [Vec<&Poly>; 2] = [
            inputs.iter().map(|input| &input.c[0]).collect(),
            inputs.iter().map(|input| &input.c[1]).collect(),
        ];
        let [first, second] = halves.map(|half| family.recipe.combine(params.ring(), &half));
        let pairs = first.into_iter().zip(second);
        let ciphertext = |(c0, c1)| {
            Arc::new(Ciphertext {
                residue: self.residue,
                c: [c0, c1],
            })
        };
        Ok(pairs.map(ciphertext).collect())
    }
}

/// Multiplies by t stride^-1, in Montgomery form. The tensor expects the factor t in its right operands, and packing
/// expects stride^-1 in its leaves.
fn scale(context: &EvaluationContext<'_>, c: &mut Ciphertext) {
    let params = context.params();
    let t = params.plaintext_modulus(c.residue);
    for (j, limb) in params.ring().ciphertext_limbs().iter().enumerate() {
        let m = limb.modulus;
        let unit = m.inv(context.layout().stride() as u64);
        let scale = m.mont(m.mont(m.mul(t % m.value(), unit)));
        c.c.iter_mut().for_each(|p| m.scale(p.limb_mut(j), scale));
    }
}
