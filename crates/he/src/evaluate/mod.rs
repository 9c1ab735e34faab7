//! The computation service's evaluator: statistics of an encrypted table, packed into pages.
//!
//! A plan divides cells into tasks, a backend runs them, and an assembly combines the results of their tiles.

pub(crate) mod assembly;
pub(crate) mod backend;
pub(crate) mod context;
pub(crate) mod counts;
pub(crate) mod division;
pub(crate) mod factoring;
pub(crate) mod operands;
pub(crate) mod packing;
pub(crate) mod parallel;
pub(crate) mod partial;
pub(crate) mod plan;
pub(crate) mod square;
pub(crate) mod task;
pub(crate) mod tensor;
pub(crate) mod tile;
pub(crate) mod work;

use crate::error::Result;
use crate::evaluate::assembly::Assembly;
use crate::evaluate::backend::{Backend, Threads};
use crate::evaluate::context::EvaluationContext;
use crate::evaluate::plan::{Cell, PagePlan};
use crate::evaluate::work::EvaluationWork;
use crate::release::page::PackedPage;
use crate::scheme::evaluation_keys::EvaluationKeys;
use crate::scheme::upload::UploadSwitchKeys;
use crate::table::layout::Layout;
use crate::table::{Columns, Factors};
use std::sync::Arc;

/// Evaluates statistics with a dataset's evaluation keys.
#[derive(Debug)]
pub struct Evaluator<'a> {
    context: EvaluationContext<'a>,
    backend: Arc<dyn Backend>,
}

impl<'a> Evaluator<'a> {
    /// Makes an evaluator for tables of one layout, which uses the threads of this process.
    pub fn new(keys: &'a EvaluationKeys, layout: Layout) -> Self {
        Self {
            context: EvaluationContext::new(keys, layout),
            backend: Arc::new(Threads::default()),
        }
    }

    /// Adds the switching keys that a sole holder made for its upload.
    ///
    /// # Errors
    /// The same as for [`EvaluationContext::with_switch_keys`].
    pub fn with_switch_keys(self, keys: &'a UploadSwitchKeys) -> Result<Self> {
        let context = self.context.with_switch_keys(keys)?;
        Ok(Self { context, ..self })
    }

    /// Makes another backend run the tasks.
    pub fn with_backend(self, backend: Arc<dyn Backend>) -> Self {
        Self { backend, ..self }
    }

    /// Returns the keys and tables that tasks run with.
    pub fn context(&self) -> &EvaluationContext<'a> {
        &self.context
    }

    /// Computes pages. Each page has its cells at their positions (distinct, below [`crate::PAGE`]) and zero
    /// elsewhere, and is `None` if it has no cells.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] for positions, factors or columns outside their ranges.
    /// [`crate::Error::Mismatch`] if table and keys do not belong together.
    /// [`crate::Error::Unavailable`] if a column cannot be read.
    pub fn pages(
        &self,
        table: &dyn Columns,
        residue: usize,
        factors: Factors<'_>,
        pages: &[Vec<(usize, Cell)>],
        work: &mut EvaluationWork,
    ) -> Result<Vec<Option<PackedPage>>> {
        self.context.check(table.params(), table.layout())?;
        let plan = PagePlan::new(&self.context, table, residue, factors, pages)?;
        let assembly = Assembly::new(&self.context, &plan)?;
        let tasks = plan.tasks(self.backend.task_memory());
        let take = |partial| assembly.take(partial);
        *work += self.backend.run(&self.context, table, &tasks, &take)?;
        let (pages, packing) = assembly.pages()?;
        *work += packing;
        Ok(pages)
    }
}
