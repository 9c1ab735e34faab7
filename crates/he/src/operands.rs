//! Combinations of columns in left and right form, over a band of record chunks.

use crate::ciphertext::Ciphertext;
use crate::context::EvaluationContext;
use crate::error::{Error, Result};
use crate::keyswitch::Scratch;
use crate::parallel::map;
use crate::table::{Chunks, Columns, Combination};
use crate::task::TileTask;
use crate::work::{Clock, Work};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A task's factors over its record chunks, ready to be multiplied. Right ones are scaled as the
/// tensor asks for.
#[derive(Debug)]
pub struct Operands {
    /// Number of record chunks.
    pub(crate) chunks: usize,
    pub(crate) left: Vec<Chunks>,
    pub(crate) right: Vec<Chunks>,
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
        let (residue, chunks) = (task.residue(), task.band.len());
        let combined = |c: &Combination| combine(context, &read, residue, chunks, c);
        let started = Clock::start();
        let left = map(task.block.left.iter().collect(), combined);
        // Each is inverted as soon as it is combined: a wide table's combinations take as much
        // memory as its columns.
        let right = map(task.block.right.iter().collect(), |c| {
            let combined = combined(c)?;
            let mut done = Work::default();
            let invert = |scratch: &mut Scratch| {
                let chunks = combined.into_iter().map(|c| {
                    let mut inverted = context.invert(&c, scratch);
                    scale(context, &mut inverted);
                    Arc::new(inverted)
                });
                chunks.collect::<Chunks>()
            };
            Ok::<_, Error>((context.with_scratch(&mut done, invert), done))
        });
        let right = right.into_iter().map(|operand| {
            let (operand, done) = operand?;
            *work += done;
            Ok(operand)
        });
        let operands = Self {
            chunks,
            right: right.collect::<Result<_>>()?,
            left: left.into_iter().collect::<Result<_>>()?,
        };
        work.switching += started.seconds();
        Ok(operands)
    }
}

/// The columns that a task names, over its band, by their numbers.
fn read_columns(
    context: &EvaluationContext<'_>,
    table: &dyn Columns,
    task: &TileTask,
) -> Result<BTreeMap<usize, Chunks>> {
    context.check(table.params(), table.layout())?;
    context.check(table.params(), task.layout())?;
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
    Ok(named.into_iter().zip(read).collect())
}

fn combine(
    context: &EvaluationContext<'_>,
    read: &BTreeMap<usize, Chunks>,
    residue: usize,
    chunks: usize,
    combination: &Combination,
) -> Result<Chunks> {
    let column = |column: usize| {
        let column = read.get(&column);
        column.ok_or(Error::Mismatch("a column was not read"))
    };
    if let Some(single) = combination.single() {
        return Ok(column(single)?.clone());
    }
    let terms = combination.0.iter();
    let terms = terms.map(|&(number, c)| Ok((c, column(number)?)));
    let terms = terms.collect::<Result<Vec<(i64, &Chunks)>>>()?;
    let ring = context.params().ring();
    let chunk = |k: usize| {
        let of_chunk = || {
            terms
                .iter()
                .filter_map(|&(c, column)| Some((c, column.get(k)?)))
        };
        let first: Vec<_> = of_chunk().map(|(c, chunk)| (c, &chunk.c[0])).collect();
        let second: Vec<_> = of_chunk().map(|(c, chunk)| (c, &chunk.c[1])).collect();
        Arc::new(Ciphertext {
            residue,
            c: [ring.combine(&first), ring.combine(&second)],
        })
    };
    Ok((0..chunks).map(chunk).collect())
}

/// Multiplies by t stride^-1, in Montgomery form: what the tensor leaves to its operands, and
/// what leaves enter packing with.
fn scale(context: &EvaluationContext<'_>, c: &mut Ciphertext) {
    let params = context.params();
    let t = params.plaintext_modulus(c.residue);
    for (j, limb) in params.ring().ciphertext_limbs().iter().enumerate() {
        let m = limb.modulus;
        let unit = m.inv(context.layout().stride() as u64);
        let scale = u128::from(m.mont(m.mont(m.mul(t % m.value(), unit))));
        for x in c.c.iter_mut().flat_map(|p| p.limb_mut(j)) {
            *x = m.redc(u128::from(*x) * scale);
        }
    }
}
