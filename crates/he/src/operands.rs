//! Combinations of columns in left and right form, over a band of record chunks.

use crate::ciphertext::Ciphertext;
use crate::context::EvaluationContext;
use crate::error::{Error, Result};
use crate::factoring::{Family, families};
use crate::keyswitch::Scratch;
use crate::parallel::map;
use crate::ring::Poly;
use crate::table::{Columns, Combination, Operand};
use crate::task::{Block, Tile, TileTask};
use crate::work::{Clock, Work};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A task's factors over its record chunks, ready to be multiplied. Right ones are scaled as the
/// tensor asks for.
#[derive(Debug)]
pub struct Operands {
    /// Number of record chunks.
    pub(crate) chunks: usize,
    /// One that is only summed may have the sum of its record chunks alone.
    pub(crate) left: Vec<Operand>,
    pub(crate) right: Vec<Operand>,
}

impl Operands {
    /// Whether they can be what a task's tiles name: as many, over as many chunks.
    pub(crate) fn are_of(&self, task: &TileTask) -> bool {
        let numbers = (self.left.len(), self.right.len(), self.chunks);
        numbers
            == (
                task.block.left.len(),
                task.block.right.len(),
                task.band.len(),
            )
    }

    /// Reads the columns that a task names, and makes its factors of them. A right form takes a key
    /// switch a chunk.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where task, table and keys do not belong together;
    /// [`Error::OutOfRange`] for a column that the table lacks; [`Error::Unavailable`] where one
    /// cannot be read.
    pub fn read(
        context: &EvaluationContext<'_>,
        table: &dyn Columns,
        task: &TileTask,
        work: &mut Work,
    ) -> Result<Self> {
        let read = read_columns(context, table, task)?;
        let source = Source {
            context,
            read: &read,
            residue: task.residue(),
            chunks: task.band.len(),
        };
        let started = Clock::start();
        let (left, right) = source.combine(&task.block)?;
        let right = map(right, |chunks| {
            let mut done = Work::default();
            let invert = |scratch: &mut Scratch| {
                let chunks = chunks.into_iter().map(|c| {
                    let mut inverted = context.invert_column(&c, scratch);
                    scale(context, &mut inverted);
                    Arc::new(inverted)
                });
                chunks.collect::<Operand>()
            };
            (context.with_scratch(&mut done, invert), done)
        });
        let right = right.into_iter().map(|(operand, done)| {
            *work += done;
            operand
        });
        let operands = Self {
            chunks: source.chunks,
            right: right.collect(),
            left,
        };
        work.switching += started.seconds();
        Ok(operands)
    }

    /// Whether the products of a tile find the record chunks that they are over.
    pub(crate) fn multiply(&self, tile: &Tile) -> bool {
        let products = tile.leaves.iter().flat_map(|leaf| &leaf.products);
        let mut lefts = products.flat_map(|product| &product.left);
        lefts.all(|&(_, left)| {
            let left = self.left.get(left);
            left.is_some_and(|chunks| chunks.len() == self.chunks)
        })
    }
}

/// The columns that a task names, over its band, by their numbers.
fn read_columns(
    context: &EvaluationContext<'_>,
    table: &dyn Columns,
    task: &TileTask,
) -> Result<BTreeMap<usize, Operand>> {
    context.check(table.params(), table.layout())?;
    context.check(table.params(), task.layout())?;
    context.check_holder(table.holder())?;
    if task.residue() >= context.params().residues() {
        return Err(Error::OutOfRange("plaintext modulus"));
    }
    let named = task.block.columns();
    let columns = table.count();
    if named.last().is_some_and(|&column| column >= columns) {
        return Err(Error::OutOfRange("a task names a column the table lacks"));
    }
    let read = table.read(task.residue(), &named, task.band.clone())?;
    let chunks = task.band.len();
    if read.len() != named.len() || read.iter().any(|column| column.len() != chunks) {
        return Err(Error::Mismatch("a table gave other columns than asked for"));
    }
    let under = read
        .into_iter()
        .map(|chunks| chunks.under(context.holder()));
    let under = under.collect::<Result<Vec<Operand>>>()?;
    Ok(named.into_iter().zip(under).collect())
}

/// The columns of a task, and what they are combined for.
struct Source<'a> {
    context: &'a EvaluationContext<'a>,
    read: &'a BTreeMap<usize, Operand>,
    residue: usize,
    chunks: usize,
}

impl Source<'_> {
    /// The left combinations of a block, and the right ones before they are inverted.
    ///
    /// What is only summed is combined of columns whose record chunks have been added: once rather
    /// than for every chunk.
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
            // Right ones, which come behind the left, are factors.
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
            // One family after the other, each chunk after chunk.
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
        column.ok_or(Error::Mismatch("a column was not read"))
    }

    /// A family's combinations over one record chunk, or over the sum of all.
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
        let [first, second] = halves.map(|half| params.ring().combine(&half, &family.recipe));
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

/// Multiplies by t stride^-1, in Montgomery form: what the tensor leaves to its operands, and
/// what leaves enter packing with.
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
