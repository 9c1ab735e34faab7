//! The computation entity: turns requests into sealed pages, on ciphertexts alone.
//!
//! [`Computation`] is what a service holds of a dataset in memory and can build again from stored
//! bytes at any time. What must survive a crash is small: for each job its [`JobState`] and the
//! batches sealed so far, which [`Computation::answer`] returns and does not keep.

use crate::Error;
use crate::holder::map;
use crate::request::{DatasetId, DecryptRequest, JobId, Part, SealedPage};
use crate::upload::{EncryptedLadder, Upload};
use fhaim_domain::{Clique, Domain};
use fhaim_dp::{Allocator, Digits, LadderPlan, Span};
use fhaim_he::{
    Cell, Columns, Combination, EvaluationKeys, Evaluator, Factors, PAGE, Page, PublicKey,
    SquaredScore, WORKING_BYTES, Work, seal,
};
use fhaim_synth::{Axis, ReleaseRequest, Statistic};
use rand::{CryptoRng, RngCore};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Where a job is on its dataset's noise ladder: what the service keeps of a job beside the
/// batches it has sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobState {
    job: JobId,
    first_page: usize,
    allocator: Allocator,
}

impl JobState {
    /// A job that has released nothing, the dataset's run number `run`: every run needs `plan`,
    /// and takes the ladder's pages from `run * plan.pages()` on. No two jobs of a dataset may
    /// have the same number, or noise would be used twice.
    pub fn new(job: JobId, run: u32, plan: LadderPlan) -> Self {
        Self {
            job,
            first_page: plan.pages().saturating_mul(run as usize),
            allocator: Allocator::new(plan),
        }
    }

    /// The job.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// Positions of the dataset's ladder for a release.
    fn allocate(&mut self, request: &ReleaseRequest) -> Result<Vec<Span>, Error> {
        let cells = request.statistic.cells();
        let mut spans = self.allocator.allocate(request.number, cells)?;
        for span in &mut spans {
            span.page += self.first_page;
        }
        Ok(spans)
    }
}

/// A sealed batch and the job's state after it. Both must be durable, in one transaction, before
/// the request is sent: a batch sealed again would be other ciphertexts with the same noise.
#[derive(Clone, Debug)]
pub struct Answer {
    /// For the crypto service.
    pub request: DecryptRequest,
    /// What the job's next batch starts from.
    pub state: JobState,
}

/// The service's view of one dataset.
#[derive(Debug)]
pub struct Computation {
    dataset: DatasetId,
    domain: Domain,
    public: PublicKey,
    keys: EvaluationKeys,
    table: Arc<dyn Columns>,
    ladder: EncryptedLadder,
    /// Squares by clique and plaintext modulus, in parts of a page.
    squares: HashMap<(Clique, usize), Vec<SquaredScore>>,
    /// Bytes that a batch takes for what it computes from the columns.
    memory: usize,
    work: Work,
}

/// Column combinations of a batch, each held once.
#[derive(Default)]
struct Combinations {
    left: Vec<Combination>,
    right: Vec<Combination>,
    left_index: HashMap<Combination, usize>,
    right_index: HashMap<Combination, usize>,
}

impl Combinations {
    fn left(&mut self, combination: Combination) -> usize {
        intern(&mut self.left, &mut self.left_index, combination)
    }

    fn right(&mut self, combination: Combination) -> usize {
        intern(&mut self.right, &mut self.right_index, combination)
    }
}

fn intern(
    list: &mut Vec<Combination>,
    index: &mut HashMap<Combination, usize>,
    combination: Combination,
) -> usize {
    *index.entry(combination).or_insert_with_key(|combination| {
        list.push(combination.clone());
        list.len() - 1
    })
}

impl Computation {
    /// Takes an upload in.
    pub fn new(
        dataset: DatasetId,
        domain: Domain,
        public: PublicKey,
        keys: EvaluationKeys,
        upload: Upload,
    ) -> Self {
        Self {
            dataset,
            domain,
            public,
            keys,
            table: upload.table,
            ladder: upload.ladder,
            squares: HashMap::new(),
            memory: WORKING_BYTES,
            work: Work::default(),
        }
    }

    /// The same, taking at most about `bytes` for what a batch computes from the columns.
    pub fn with_memory(self, bytes: usize) -> Self {
        Self {
            memory: bytes,
            ..self
        }
    }

    fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(&self.keys, self.table.layout()).with_memory(self.memory)
    }

    /// Work done so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Computes a batch of a job and seals it. The caller answers a batch that was sealed before
    /// with the ciphertexts of then (see [`Answer`] and [`DecryptRequest::answers`]).
    ///
    /// # Errors
    /// [`Error::Statistic`] for what the domain does not have, [`Error::Privacy`] for release
    /// numbers used before and where the ladder does not suffice, [`Error::Encryption`] where
    /// noise would not be hidden.
    pub fn answer<R: RngCore + CryptoRng>(
        &mut self,
        state: &JobState,
        requests: &[ReleaseRequest],
        rng: &mut R,
    ) -> Result<Answer, Error> {
        self.check_state(state)?;
        let mut state = state.clone();
        let mut spans = Vec::with_capacity(requests.len());
        for request in requests {
            self.check(request)?;
            spans.push(state.allocate(request)?);
        }
        let pages = self.pages(requests, &spans)?;
        let request = DecryptRequest {
            dataset: self.dataset,
            job: state.job,
            releases: requests.to_vec(),
            pages: self.seal(requests, &spans, &pages, rng)?,
        };
        Ok(Answer { request, state })
    }

    /// Refuses a job whose positions are not all within the ladder.
    fn check_state(&self, state: &JobState) -> Result<(), Error> {
        let (plan, ladder) = (state.allocator.plan(), self.ladder.plan());
        let end = state
            .first_page
            .saturating_mul(PAGE)
            .saturating_add(plan.positions());
        if end > ladder.positions() || plan.levels() > ladder.levels() {
            return Err(fhaim_he::Error::OutOfRange("noise beyond the ladder").into());
        }
        Ok(())
    }

    fn check(&self, request: &ReleaseRequest) -> Result<(), Error> {
        let refuse = |reason: String| {
            Err(Error::Statistic {
                number: request.number,
                reason,
            })
        };
        if let Err(error) = request.statistic.check(&self.domain) {
            return refuse(error.to_string());
        }
        if request.variance_units == 0
            || Digits::of(request.variance_units).levels() > self.ladder.plan().levels()
        {
            return refuse("its noise variance is not one the ladder can make".to_owned());
        }
        Ok(())
    }

    /// The packed page of each ladder page the batch touches, under each plaintext modulus.
    fn pages(
        &mut self,
        requests: &[ReleaseRequest],
        spans: &[Vec<Span>],
    ) -> Result<BTreeMap<usize, Vec<Page>>, Error> {
        let scores = requests
            .iter()
            .any(|r| matches!(r.statistic, Statistic::SquaredScores(_)));
        if scores {
            return self.score_pages(requests, spans);
        }
        let offsets = self.domain.one_hot_offsets();
        let mut combinations = Combinations::default();
        let mut cells: BTreeMap<usize, Vec<(usize, Cell)>> = BTreeMap::new();
        for (request, spans) in requests.iter().zip(spans) {
            let positions = spans.iter().flat_map(|s| s.range().map(|p| (s.page, p)));
            let statistic = statistic_cells(
                &request.statistic,
                &self.domain,
                &offsets,
                &mut combinations,
            );
            for ((page, position), cell) in positions.zip(statistic) {
                cells.entry(page).or_default().push((position, cell));
            }
        }
        let evaluator = self.evaluator();
        let mut work = Work::default();
        let factors = Factors {
            left: &combinations.left,
            right: &combinations.right,
        };
        let (numbers, cells): (Vec<usize>, Vec<_>) = cells.into_iter().unzip();
        let mut pages: BTreeMap<usize, Vec<Page>> = BTreeMap::new();
        for residue in 0..self.public.params().residues() {
            let packed = evaluator.pages(&*self.table, residue, factors, &cells, &mut work)?;
            for (page, packed) in numbers.iter().zip(packed) {
                pages.entry(*page).or_default().extend(packed);
            }
        }
        self.work += work;
        Ok(pages)
    }

    /// A batch of squared scores: one request, at the start of a page.
    fn score_pages(
        &mut self,
        requests: &[ReleaseRequest],
        spans: &[Vec<Span>],
    ) -> Result<BTreeMap<usize, Vec<Page>>, Error> {
        let ([request], [spans]) = (requests, spans) else {
            return Err(Error::Statistic {
                number: requests.first().map_or(0, |r| r.number),
                reason: "squared scores must be a batch of their own".to_owned(),
            });
        };
        let Statistic::SquaredScores(terms) = &request.statistic else {
            return Ok(BTreeMap::new());
        };
        let cliques: Vec<Clique> = terms.iter().map(|term| term.clique.clone()).collect();
        self.compute_squares(&cliques)?;
        let evaluator = self.evaluator();
        let mut work = Work::default();
        let mut pages: BTreeMap<usize, Vec<Page>> = BTreeMap::new();
        for residue in 0..self.public.params().residues() {
            let mut rest = terms.as_slice();
            for span in spans {
                let (now, later) = rest.split_at(span.len.min(rest.len()));
                rest = later;
                let parts: Vec<_> = now
                    .iter()
                    .map(|term| {
                        let squares = &self.squares[&(term.clique.clone(), residue)];
                        (
                            term.weight,
                            squares.iter().zip(term.target.chunks(PAGE)).collect(),
                        )
                    })
                    .collect();
                let page = evaluator.score_at(span.start, &parts, &mut work)?;
                pages.entry(span.page).or_default().extend(page);
            }
        }
        self.work += work;
        Ok(pages)
    }

    /// The marginals of pairs and their squares: Compute in the FHAIM paper's sense. Scores of
    /// the same pairs then take plaintext products alone; scores of others compute them when they
    /// are first asked for.
    ///
    /// # Errors
    /// [`Error::Statistic`] for what is not a pair of the domain; [`Error::Encryption`] under
    /// parameters without room for squares.
    pub fn compute_squares(&mut self, pairs: &[Clique]) -> Result<(), Error> {
        let residues = 0..self.public.params().residues();
        let missing: Vec<(Clique, usize)> = residues
            .flat_map(|residue| pairs.iter().map(move |pair| (pair.clone(), residue)))
            .filter(|key| !self.squares.contains_key(key))
            .collect();
        // Pairs are computed side by side, and share what a batch may take.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let evaluator = self.evaluator().with_memory(self.memory / threads);
        let computed = map(&missing, |(pair, residue)| {
            let mut work = Work::default();
            let squares = self.square(&evaluator, pair, *residue, &mut work)?;
            Ok::<_, Error>((squares, work))
        });
        for (key, computed) in missing.into_iter().zip(computed) {
            let (squares, work) = computed?;
            self.squares.insert(key, squares);
            self.work += work;
        }
        Ok(())
    }

    fn square(
        &self,
        evaluator: &Evaluator<'_>,
        pair: &Clique,
        residue: usize,
        work: &mut Work,
    ) -> Result<Vec<SquaredScore>, Error> {
        let offsets = self.domain.one_hot_offsets();
        let (a, b) = match *pair.attributes() {
            [a, b] if b < self.domain.len() => (a, b),
            _ => {
                return Err(Error::Statistic {
                    number: 0,
                    reason: "a score needs a pair of the domain".to_owned(),
                });
            }
        };
        let column =
            |attribute: usize, category: usize| Combination::column(offsets[attribute] + category);
        let right: Vec<_> = (0..self.domain.size(a)).map(|u| column(a, u)).collect();
        let left: Vec<_> = (0..self.domain.size(b)).map(|v| column(b, v)).collect();
        let factors = Factors {
            left: &left,
            right: &right,
        };
        let cells: Vec<Cell> = (0..right.len())
            .flat_map(|u| (0..left.len()).map(move |v| Cell::Product { left: v, right: u }))
            .collect();
        let placed = cells.chunks(PAGE).map(|c| c.iter().copied().enumerate());
        let placed: Vec<Vec<(usize, Cell)>> = placed.map(Iterator::collect).collect();
        let pages = evaluator.pages(&*self.table, residue, factors, &placed, work)?;
        let squares = pages.into_iter().flatten();
        Ok(squares
            .map(|page| SquaredScore::new(evaluator, page, work))
            .collect::<Result<_, _>>()?)
    }

    /// Seals each page once for every noise variance on it.
    fn seal<R: RngCore + CryptoRng>(
        &self,
        requests: &[ReleaseRequest],
        spans: &[Vec<Span>],
        pages: &BTreeMap<usize, Vec<Page>>,
        rng: &mut R,
    ) -> Result<Vec<SealedPage>, Error> {
        let mut groups: BTreeMap<(usize, u64), Vec<Part>> = BTreeMap::new();
        for (request, spans) in requests.iter().zip(spans) {
            for &span in spans {
                let group = groups
                    .entry((span.page, request.variance_units))
                    .or_default();
                group.push(Part {
                    number: request.number,
                    span,
                });
            }
        }
        let mut sealed = Vec::with_capacity(groups.len());
        for ((page, variance_units), parts) in groups {
            let mut ciphertexts = Vec::new();
            for (residue, packed) in pages.get(&page).into_iter().flatten().enumerate() {
                let samples = Digits::of(variance_units)
                    .iter()
                    .flat_map(|(level, digit)| (0..digit).map(move |index| (level, index)));
                let noise = samples
                    .map(|(level, index)| self.ladder.vector(page, level, index, residue))
                    .collect::<Option<Vec<_>>>()
                    .ok_or(fhaim_he::Error::OutOfRange("noise beyond the ladder"))?;
                let released = parts.iter().flat_map(|part| part.span.range());
                ciphertexts.push(seal(&self.public, packed, noise, released, rng)?);
            }
            sealed.push(SealedPage {
                ciphertexts,
                variance_units,
                parts,
            });
        }
        Ok(sealed)
    }
}

/// The cells of a linear statistic, in order.
fn statistic_cells(
    statistic: &Statistic,
    domain: &Domain,
    offsets: &[usize],
    combinations: &mut Combinations,
) -> Vec<Cell> {
    let functions = |axis: &Axis| -> Vec<Combination> {
        axis.functions
            .iter()
            .map(|f| combination(offsets[axis.attribute], f))
            .collect()
    };
    match statistic {
        Statistic::Total => {
            let all = combination(0, &vec![1; domain.size(0)]);
            vec![Cell::Sum {
                left: combinations.left(all),
            }]
        }
        Statistic::OneWay(axis) => functions(axis)
            .into_iter()
            .map(|u| Cell::Sum {
                left: combinations.left(u),
            })
            .collect(),
        Statistic::Product(a, b) => {
            let right: Vec<_> = functions(a)
                .into_iter()
                .map(|u| combinations.right(u))
                .collect();
            let left: Vec<_> = functions(b)
                .into_iter()
                .map(|v| combinations.left(v))
                .collect();
            right
                .into_iter()
                .flat_map(|right| left.iter().map(move |&left| Cell::Product { left, right }))
                .collect()
        }
        Statistic::SquaredScores(_) => Vec::new(),
    }
}

fn combination(offset: usize, function: &[i64]) -> Combination {
    let terms = function.iter().enumerate().filter(|&(_, &c)| c != 0);
    Combination(terms.map(|(category, &c)| (offset + category, c)).collect())
}
