//! A run's window on its dataset's noise ladder, and which positions its releases take.
//!
//! Whoever keeps the ledger assigns runs and so windows; within one, releases are numbered from 0
//! without a gap, and each takes the positions that [`fhaim_dp::Allocator`] gives it. The
//! computation entity places what it seals, the crypto service places what it is asked to decrypt,
//! by the same code, and neither takes the other's word for it.

use crate::Error;
use crate::request::{DatasetId, JobId, PageSpan};
use fhaim_dp::{Allocator, Digits, LadderPlan, Span, hex_digest};
use fhaim_release::ReleaseRequest;
use fhaim_release::codec::release_bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A release that was placed: what decides the positions of those behind it, and what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// Its cells.
    pub cells: usize,
    /// See [`Window::place`].
    #[serde(with = "hex_digest")]
    pub statement: [u8; 32],
}

/// One run of a dataset: whose it is, where its window is, and what has been placed in it.
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
    /// Each release, placed.
    pub placed: Vec<Placed>,
    /// Positions of the dataset's ladder for each release, in order of its cells.
    pub spans: Vec<Vec<Span>>,
    /// Whether all of it was placed before; else none of it was.
    pub repeated: bool,
}

/// The releases that one sealed page answers: those with positions in a ladder page whose noise
/// has the same variance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// Noise variance of every part, in the ladder's units.
    pub variance_units: u64,
    /// Which releases it answers, ascending.
    pub parts: Vec<PageSpan>,
}

impl Window {
    /// The window of a dataset's run number `run`, with nothing placed: every run needs `plan`,
    /// and takes the ladder's pages from `run * plan.pages()` on.
    pub fn new(dataset: DatasetId, job: JobId, run: u32, plan: LadderPlan) -> Self {
        Self {
            dataset,
            job,
            run,
            plan,
            placed: Vec::new(),
        }
    }

    /// The dataset.
    pub fn dataset(&self) -> DatasetId {
        self.dataset
    }

    /// The job whose run it is.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// The run's number.
    pub fn run(&self) -> u32 {
        self.run
    }

    /// Noise of one run.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// The releases placed so far, by number.
    pub fn placed(&self) -> &[Placed] {
        &self.placed
    }

    /// Where a batch goes: behind what was placed, or exactly where it was placed before.
    ///
    /// A release's *statement* is the SHA-256 of dataset, job, run, release and positions: two
    /// requests with one statement ask for the same integers.
    ///
    /// # Errors
    /// [`Error::Request`] for a batch whose numbers have gaps, or that is placed in part;
    /// [`Error::Privacy`] for a number that was placed with other content, a variance that the
    /// run's noise cannot make, and positions beyond the window.
    pub fn place(&self, requests: &[ReleaseRequest]) -> Result<Placement, Error> {
        let first = requests.first().ok_or(Error::Request("no release"))?.number as usize;
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

    /// Positions within the window as positions of the dataset's ladder.
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

    /// Takes a placement in; one that is a repetition changes nothing.
    pub fn take(&mut self, placement: &Placement) {
        if !placement.repeated {
            self.placed.extend_from_slice(&placement.placed);
        }
    }

    /// Catches up with what the keeper of the ledger has released of the run: this window may be
    /// an older copy, or be ahead by what was sealed and not yet released.
    ///
    /// # Errors
    /// [`Error::Privacy`] where the two differ in a release that both have: then one of them is
    /// not of this run's past.
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
    /// The sealed pages that a batch takes, in order of ladder page and variance.
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
