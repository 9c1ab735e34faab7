//! A run's window on its dataset's noise ladder, and the positions that its releases take.
//!
//! The service that keeps the ledger assigns runs and so windows. Within a window, releases are
//! numbered from 0 without a gap, and each takes the positions that [`fhaim_dp::Allocator`] gives
//! it. The computation service places the releases that it seals, and the crypto service those that
//! it is asked to decrypt. Both use the same code, and neither trusts the other's positions.

use crate::Error;
use crate::request::{DatasetId, JobId, PageSpan};
use fhaim_dp::{Allocator, Digits, LadderPlan, Span, hex_digest};
use fhaim_release::ReleaseRequest;
use fhaim_release::codec::release_bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A release that was placed: its size, which determines the positions of later releases, and its
/// statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// Number of its cells.
    pub cells: usize,
    /// Statement of the release: see [`Window::place`].
    #[serde(with = "hex_digest")]
    pub statement: [u8; 32],
}

/// One run of a dataset: its job, its window, and the releases placed in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    dataset: DatasetId,
    job: JobId,
    run: u32,
    plan: LadderPlan,
    placed: Vec<Placed>,
}

/// A batch with its positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The releases, placed.
    pub placed: Vec<Placed>,
    /// Positions of the dataset's ladder for each release, in order of its cells.
    pub spans: Vec<Vec<Span>>,
    /// Whether all of the batch was placed before. Otherwise none of it was.
    pub repeated: bool,
}

/// The releases that one sealed page answers: those with positions in a ladder page whose noise has
/// the same variance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// Noise variance of every part, in the ladder's units.
    pub variance_units: u64,
    /// The releases that the page answers, ascending.
    pub parts: Vec<PageSpan>,
}

impl Window {
    /// Creates the window of run number `run`, with no releases placed. Every run uses a ladder of
    /// size `plan`, and takes `plan.pages()` pages of the dataset's ladder from page `run *
    /// plan.pages()`.
    pub fn new(dataset: DatasetId, job: JobId, run: u32, plan: LadderPlan) -> Self {
        Self {
            dataset,
            job,
            run,
            plan,
            placed: Vec::new(),
        }
    }

    /// Returns the dataset.
    pub fn dataset(&self) -> DatasetId {
        self.dataset
    }

    /// Returns the job whose run it is.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// Returns the run's number.
    pub fn run(&self) -> u32 {
        self.run
    }

    /// Returns the noise ladder of one run.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// Returns the releases placed so far, by number.
    pub fn placed(&self) -> &[Placed] {
        &self.placed
    }

    /// Places a batch after the earlier releases, or exactly where it was placed before.
    ///
    /// A release's *statement* is the SHA-256 of dataset, job, run, release and positions. Two
    /// requests with the same statement ask for the same integers.
    ///
    /// # Errors
    /// [`Error::Request`] for a batch whose numbers have gaps, or of which only a part was placed
    /// before; [`Error::Privacy`] for a number that was placed with other content, a variance that
    /// the run's noise cannot make, and positions beyond the window.
    pub fn place(&self, requests: &[ReleaseRequest]) -> Result<Placement, Error> {
        let first = requests
            .first()
            .ok_or(Error::Request("it has no releases"))?
            .number as usize;
        let end = first + requests.len();
        if !(first..end).eq(requests.iter().map(|r| r.number as usize)) {
            return Err(Error::Request("release numbers are not consecutive"));
        }
        let repeated = end <= self.placed.len();
        if !repeated && first != self.placed.len() {
            return Err(Error::Request(
                "the first release is not the next of its run",
            ));
        }
        let mut allocator = Allocator::new(self.plan);
        for (number, placed) in (0..).zip(self.placed.iter().take(first)) {
            allocator.allocate(number, placed.cells)?;
        }
        let mut placement = Placement {
            placed: Vec::with_capacity(requests.len()),
            spans: Vec::with_capacity(requests.len()),
            repeated,
        };
        for request in requests {
            self.check_variance(request)?;
            let cells = request.statistic.cells();
            let spans = self.shift(allocator.allocate(request.number, cells)?);
            let statement = self.statement(request, &spans);
            let placed = Placed { cells, statement };
            if repeated && self.placed.get(request.number as usize) != Some(&placed) {
                return Err(fhaim_dp::Error::Conflict(request.number).into());
            }
            placement.placed.push(placed);
            placement.spans.push(spans);
        }
        Ok(placement)
    }

    fn check_variance(&self, request: &ReleaseRequest) -> Result<(), Error> {
        let (units, levels) = (request.variance_units, self.plan.levels());
        if units == 0 {
            return Err(fhaim_dp::Error::NoNoise(request.number).into());
        }
        if Digits::of(units).levels() > levels {
            return Err(fhaim_dp::Error::VarianceTooLarge { units, levels }.into());
        }
        Ok(())
    }

    /// Converts positions within the window to positions of the dataset's ladder.
    fn shift(&self, mut spans: Vec<Span>) -> Vec<Span> {
        let first_page = self.plan.pages().saturating_mul(self.run as usize);
        for span in &mut spans {
            span.page = span.page.saturating_add(first_page);
        }
        spans
    }

    fn statement(&self, request: &ReleaseRequest, spans: &[Span]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"fhaim release 2");
        hash.update(self.dataset.0);
        hash.update(self.job.0);
        hash.update(self.run.to_le_bytes());
        for span in spans {
            for number in [span.page, span.start, span.len] {
                hash.update((number as u64).to_le_bytes());
            }
        }
        hash.update(release_bytes(request));
        hash.finalize().into()
    }

    /// Records a placement. A repetition changes nothing.
    pub fn take(&mut self, placement: &Placement) {
        if !placement.repeated {
            self.placed.extend_from_slice(&placement.placed);
        }
    }

    /// Adds the run's releases that the keeper of the ledger knows and this window lacks. This
    /// window may be an older copy, or may be ahead by batches that were sealed but not yet
    /// released.
    ///
    /// # Errors
    /// [`Error::Privacy`] if the two differ in a release that both have. Then one of them is not
    /// from this run's past.
    pub fn catch_up(&mut self, released: &[Placed]) -> Result<(), Error> {
        for (number, (own, other)) in (0..).zip(self.placed.iter().zip(released)) {
            if own != other {
                return Err(fhaim_dp::Error::Conflict(number).into());
            }
        }
        if let Some(missing) = released.get(self.placed.len()..) {
            self.placed.extend_from_slice(missing);
        }
        Ok(())
    }
}

impl Placement {
    /// Returns the sealed pages of a batch, in order of ladder page and variance.
    pub fn sheets(&self, requests: &[ReleaseRequest]) -> Vec<(usize, Sheet)> {
        let mut sheets: BTreeMap<(usize, u64), Vec<PageSpan>> = BTreeMap::new();
        for (request, spans) in requests.iter().zip(&self.spans) {
            for &span in spans {
                let part = PageSpan {
                    number: request.number,
                    span,
                };
                let sheet = sheets.entry((span.page, request.variance_units));
                sheet.or_default().push(part);
            }
        }
        let sheet = |((page, variance_units), parts)| {
            let sheet = Sheet {
                variance_units,
                parts,
            };
            (page, sheet)
        };
        sheets.into_iter().map(sheet).collect()
    }
}
