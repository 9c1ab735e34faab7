//! The computation entity: computes sealed pages from requests, on ciphertexts only.
//!
//! [`Computation`] is a service's in-memory state of a dataset. A service can rebuild it from
//! stored bytes at any time. The data that must survive a crash is small: the dataset's
//! [`SealingKey`] and each job's [`Window`], which [`Computation::answer`] returns and does not
//! keep. Even the windows can be recovered from the crypto service, which keeps the ledger
//! ([`Window::catch_up`]).

use crate::Error;
use crate::cells::{Combinations, by_page, in_parts, pair_cells, statistic_cells};
use crate::counts::CountTables;
use crate::counts::upload::CountsUpload;
use crate::joint::JoinedUpload;
use crate::noise::{EncryptedLadder, PageNoise, PageVectors};
use crate::request::{DatasetId, DecryptRequest, SealedPage};
use crate::sealing::{Context, SealingKey};
use crate::squares::{Key, Parts, Squares};
use crate::window::{Placement, Window};
use fhaim_domain::{Clique, Domain};
use fhaim_dp::Span;
use fhaim_he::map;
use fhaim_he::{
    Backend, Columns, Combination, EncryptedCounts, EvaluationKeys, EvaluationWork, Evaluator,
    Factors, Layout, PAGE, PackedPage, PublicKey, SquaredScore, Threads, UploadSwitchKeys, seal,
};
use fhaim_release::{ReleaseRequest, Statistic};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// A sealed batch and the run's window after it. Both must be durable before the request is sent:
/// stored in one transaction, and only if the window is still the one that was read.
#[derive(Clone, Debug)]
pub struct SealedBatch {
    /// The request for the crypto service.
    pub request: DecryptRequest,
    /// Window at the start of the run's next batch.
    pub window: Window,
}

/// The service's view of one dataset. Batches are computed in parallel and do not block each other.
#[derive(Debug)]
pub struct Computation {
    dataset: DatasetId,
    domain: Domain,
    public: PublicKey,
    keys: EvaluationKeys,
    contents: Contents,
    ladder: EncryptedLadder,
    /// Runs the batches' computations on columns.
    backend: Arc<dyn Backend>,
    squares: Squares,
    work: Mutex<EvaluationWork>,
}

/// The uploaded data, without the noise.
#[derive(Debug)]
enum Contents {
    /// One-hot columns, and a sole holder's switching keys.
    Records(Arc<dyn Columns>, Option<Arc<UploadSwitchKeys>>),
    /// Tables of all pairs' counts, and the layout for packing them.
    Counts {
        tables: CountTables,
        counts: EncryptedCounts,
        layout: Layout,
    },
}

impl Computation {
    /// Creates the view from an upload.
    pub fn new(
        dataset: DatasetId,
        domain: Domain,
        public: PublicKey,
        keys: EvaluationKeys,
        upload: JoinedUpload,
    ) -> Self {
        let contents = Contents::Records(upload.table, upload.own);
        Self::over(dataset, domain, public, keys, contents, upload.ladder)
    }

    /// Creates the view from contributions of counts.
    ///
    /// # Errors
    /// Never: a layout of counts always has a packing.
    pub fn of_counts(
        dataset: DatasetId,
        public: PublicKey,
        keys: EvaluationKeys,
        upload: CountsUpload,
    ) -> Result<Self, Error> {
        let domain = upload.tables.domain().clone();
        let contents = Contents::Counts {
            layout: upload.tables.layout().packing()?,
            tables: upload.tables,
            counts: upload.counts,
        };
        Ok(Self::over(
            dataset,
            domain,
            public,
            keys,
            contents,
            upload.ladder,
        ))
    }

    fn over(
        dataset: DatasetId,
        domain: Domain,
        public: PublicKey,
        keys: EvaluationKeys,
        contents: Contents,
        ladder: EncryptedLadder,
    ) -> Self {
        Self {
            dataset,
            domain,
            public,
            keys,
            contents,
            ladder,
            backend: Arc::new(Threads::default()),
            squares: Squares::default(),
            work: Mutex::default(),
        }
    }

    /// Returns the same view with another backend for the batches' computations on columns.
    pub fn with_backend(self, backend: Arc<dyn Backend>) -> Self {
        Self { backend, ..self }
    }

    fn evaluator(&self) -> Result<Evaluator<'_>, Error> {
        let (layout, own) = match &self.contents {
            Contents::Records(table, own) => (table.layout(), own.as_ref()),
            Contents::Counts { layout, .. } => (*layout, None),
        };
        let evaluator = Evaluator::new(&self.keys, layout).with_backend(self.backend.clone());
        Ok(match own {
            None => evaluator,
            Some(own) => evaluator.with_switch_keys(own)?,
        })
    }

    /// Returns the work done so far.
    pub fn work(&self) -> EvaluationWork {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, work: EvaluationWork) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) += work;
    }

    /// Computes a batch of a run and seals it. A repeated batch gives the same bytes.
    ///
    /// # Errors
    /// [`Error::Statistic`] for statistics outside the domain; errors of [`Window::place`];
    /// [`Error::Encryption`] if noise would not be hidden, or a window is outside the ladder;
    /// errors of [`NoiseObjects::read`](crate::noise::NoiseObjects::read).
    pub fn answer(
        &self,
        window: &Window,
        requests: &[ReleaseRequest],
        key: &SealingKey,
    ) -> Result<SealedBatch, Error> {
        self.check_window(window)?;
        for request in requests {
            self.check(request)?;
        }
        let placement = window.place(requests)?;
        let pages = self.pages(requests, &placement.spans)?;
        let request = DecryptRequest {
            dataset: self.dataset,
            job: window.job(),
            releases: requests.to_vec(),
            pages: self.seal(window, requests, &placement, &pages, key)?,
        };
        let mut window = window.clone();
        window.take(&placement);
        Ok(SealedBatch { request, window })
    }

    /// Rejects a run whose positions are not all within the ladder.
    fn check_window(&self, window: &Window) -> Result<(), Error> {
        if window.dataset() != self.dataset {
            return Err(Error::Request("it belongs to another dataset"));
        }
        let (plan, ladder) = (window.plan(), self.ladder.plan());
        let first = plan.pages().saturating_mul(window.run() as usize);
        let end = first.saturating_mul(PAGE).saturating_add(plan.positions());
        let fits = end <= ladder.positions() && plan.levels() <= ladder.levels();
        if !fits {
            return Err(fhaim_he::Error::OutOfRange("noise beyond the ladder").into());
        }
        Ok(())
    }

    fn check(&self, request: &ReleaseRequest) -> Result<(), Error> {
        let refuse = |error: fhaim_release::Error| Error::Statistic {
            number: request.number,
            reason: error.to_string(),
        };
        let holders = self.ladder.holders();
        request.statistic.check_holders(holders).map_err(refuse)?;
        request.statistic.check(&self.domain).map_err(refuse)
    }

    /// Computes the packed page of each ladder page in the batch, under each plaintext modulus.
    fn pages(
        &self,
        requests: &[ReleaseRequest],
        spans: &[Vec<Span>],
    ) -> Result<BTreeMap<usize, Vec<PackedPage>>, Error> {
        let scores = requests
            .iter()
            .any(|r| matches!(r.statistic, Statistic::SquaredScores(_)));
        if scores {
            return self.score_pages(requests, spans);
        }
        let evaluator = self.evaluator()?;
        let mut work = EvaluationWork::default();
        let mut pages: BTreeMap<usize, Vec<PackedPage>> = BTreeMap::new();
        let mut add = |numbers: &[usize], packed: Vec<Option<PackedPage>>| {
            for (page, packed) in numbers.iter().zip(packed) {
                pages.entry(*page).or_default().extend(packed);
            }
        };
        let residues = 0..self.public.params().residues();
        match &self.contents {
            Contents::Records(table, _) => {
                let offsets = self.domain.one_hot_offsets();
                let mut combinations = Combinations::default();
                let (numbers, cells) = by_page(requests, spans, |statistic| {
                    let combinations = &mut combinations;
                    Ok(statistic_cells(
                        statistic,
                        &self.domain,
                        &offsets,
                        combinations,
                    ))
                })?;
                let factors = Factors {
                    left: &combinations.left,
                    right: &combinations.right,
                };
                for residue in residues {
                    let packed = evaluator.pages(&**table, residue, factors, &cells, &mut work)?;
                    add(&numbers, packed);
                }
            }
            Contents::Counts { tables, counts, .. } => {
                let (numbers, cells) = by_page(requests, spans, |s| tables.cells(s))?;
                for residue in residues {
                    let packed = evaluator.count_pages(counts, residue, &cells, &mut work)?;
                    add(&numbers, packed);
                }
            }
        }
        self.count(work);
        Ok(pages)
    }

    /// Computes a batch of squared scores: one request, at the start of a page.
    fn score_pages(
        &self,
        requests: &[ReleaseRequest],
        spans: &[Vec<Span>],
    ) -> Result<BTreeMap<usize, Vec<PackedPage>>, Error> {
        let ([request], [spans]) = (requests, spans) else {
            return Err(Error::Statistic {
                number: requests.first().map_or(0, |r| r.number),
                reason: "squared scores must be the only release of their batch".to_owned(),
            });
        };
        let Statistic::SquaredScores(terms) = &request.statistic else {
            return Ok(BTreeMap::new());
        };
        let cliques: Vec<Clique> = terms.iter().map(|term| term.clique.clone()).collect();
        let squares = self.squares_of(&cliques)?;
        let evaluator = self.evaluator()?;
        let mut work = EvaluationWork::default();
        let mut pages: BTreeMap<usize, Vec<PackedPage>> = BTreeMap::new();
        for residue in 0..self.public.params().residues() {
            let mut rest = terms.as_slice();
            for span in spans {
                let (now, later) = rest.split_at(span.len.min(rest.len()));
                rest = later;
                let parts: Vec<_> = now
                    .iter()
                    .map(|term| {
                        let squares = squares.get(&(term.clique.clone(), residue));
                        let squares = squares.ok_or_else(|| Error::Statistic {
                            number: request.number,
                            reason: "the squares of its pair were not computed".to_owned(),
                        })?;
                        Ok((
                            term.weight,
                            squares.iter().zip(term.target.chunks(PAGE)).collect(),
                        ))
                    })
                    .collect::<Result<_, Error>>()?;
                let page = evaluator.score_at(span.start, &parts, &mut work)?;
                pages.entry(span.page).or_default().extend(page);
            }
        }
        self.count(work);
        Ok(pages)
    }

    /// Computes the marginals of pairs and their squares: the Compute phase of the FHAIM paper.
    /// Scores of these pairs then take only plaintext products. Scores of other pairs compute them
    /// at their first request.
    ///
    /// # Errors
    /// [`Error::Statistic`] for cliques other than pairs of the domain; [`Error::Encryption`] under
    /// parameters without room for squares.
    pub fn compute_squares(&self, pairs: &[Clique]) -> Result<(), Error> {
        self.squares_of(pairs).map(|_| ())
    }

    /// Returns the squares of pairs under every plaintext modulus, computing each only once.
    fn squares_of(&self, pairs: &[Clique]) -> Result<HashMap<Key, Parts>, Error> {
        let residues = 0..self.public.params().residues();
        let keys = residues.flat_map(|residue| pairs.iter().map(move |p| (p.clone(), residue)));
        let keys: Vec<Key> = keys.collect();
        self.squares.get(&keys, |missing| {
            let mut work = EvaluationWork::default();
            let squares = self.square(missing, &mut work);
            self.count(work);
            squares
        })
    }

    /// Computes the squares of pairs, as one batch for each plaintext modulus, so that a column of
    /// many pairs is prepared as a factor only once.
    fn square(&self, keys: &[Key], work: &mut EvaluationWork) -> Result<Vec<Parts>, Error> {
        let evaluator = self.evaluator()?;
        let mut squares = Vec::with_capacity(keys.len());
        for keys in keys.chunk_by(|(_, one), (_, next)| one == next) {
            let residue = keys.first().map_or(0, |&(_, residue)| residue);
            let (parts, pages) = self.marginals(&evaluator, keys, residue, work)?;
            let squared = map(pages.iter().collect(), |page| {
                let mut work = EvaluationWork::default();
                let square = page.as_ref().map(|page| {
                    let square = SquaredScore::new(&evaluator, page.clone(), &mut work);
                    Ok::<_, Error>((square?, work))
                });
                square.transpose()
            });
            let mut squared = squared.into_iter();
            for pages in parts {
                let mut parts = Vec::with_capacity(pages);
                for square in squared.by_ref().take(pages) {
                    if let Some((square, done)) = square? {
                        *work += done;
                        parts.push(square);
                    }
                }
                squares.push(parts.into());
            }
        }
        Ok(squares)
    }

    /// Computes the cells of pairs, page by page, and returns the number of pages of each pair.
    fn marginals(
        &self,
        evaluator: &Evaluator<'_>,
        keys: &[Key],
        residue: usize,
        work: &mut EvaluationWork,
    ) -> Result<(Vec<usize>, Vec<Option<PackedPage>>), Error> {
        match &self.contents {
            Contents::Records(table, _) => {
                let columns = (0..self.domain.columns()).map(Combination::column);
                let columns: Vec<_> = columns.collect();
                let factors = Factors {
                    left: &columns,
                    right: &columns,
                };
                let cells = keys.iter().map(|(pair, _)| pair_cells(&self.domain, pair));
                let (parts, placed) = in_parts(cells)?;
                let pages = evaluator.pages(&**table, residue, factors, &placed, work)?;
                Ok((parts, pages))
            }
            Contents::Counts { tables, counts, .. } => {
                let cells = keys.iter().map(|(pair, _)| tables.marginal(pair));
                let (parts, placed) = in_parts(cells)?;
                Ok((
                    parts,
                    evaluator.count_pages(counts, residue, &placed, work)?,
                ))
            }
        }
    }

    /// Seals each page once for every noise variance on it.
    fn seal(
        &self,
        window: &Window,
        requests: &[ReleaseRequest],
        placement: &Placement,
        pages: &BTreeMap<usize, Vec<PackedPage>>,
        key: &SealingKey,
    ) -> Result<Vec<SealedPage>, Error> {
        let statements: Vec<_> = placement.placed.iter().map(|p| p.statement).collect();
        let mut noise: Option<PageVectors<'_>> = None;
        let sheets = placement.sheets(requests);
        let mut sealed = Vec::with_capacity(sheets.len());
        for (number, (page, sheet)) in sheets.iter().enumerate() {
            // Sheets of the same page are consecutive, so its vectors are read once and dropped
            // before those of the next page.
            let vectors = match noise.take().filter(|vectors| vectors.page() == *page) {
                Some(vectors) => vectors,
                None => {
                    let rest = sheets.iter().skip(number);
                    let of_page = rest.take_while(|(other, _)| other == page);
                    let variances = of_page.map(|(_, sheet)| sheet.variance_units);
                    self.ladder.page(self.public.params(), *page, variances)?
                }
            };
            let vectors = noise.insert(vectors);
            let spans: Vec<Span> = sheet.parts.iter().map(|part| part.span).collect();
            let mut ciphertexts = Vec::new();
            for (residue, packed) in pages.get(page).into_iter().flatten().enumerate() {
                let noise = vectors.noise(sheet.variance_units, residue)?;
                let context = Context {
                    dataset: self.dataset,
                    job: window.job(),
                    run: window.run(),
                    first: requests.first().map_or(0, |request| request.number),
                    statements: &statements,
                    spans: &spans,
                    variance_units: sheet.variance_units,
                    residue,
                    ciphertexts: digest(packed, &noise),
                };
                let noise = [&noise.ciphertext];
                let released = spans.iter().flat_map(Span::range);
                let mut rng = key.generator(&context);
                ciphertexts.push(seal(&self.public, packed, noise, released, &mut rng)?);
            }
            sealed.push(SealedPage {
                ciphertexts,
                variance_units: sheet.variance_units,
                parts: sheet.parts.clone(),
            });
        }
        Ok(sealed)
    }
}

/// Returns the SHA-256 of a page and of the noise added to it.
fn digest(page: &PackedPage, noise: &PageNoise) -> [u8; 32] {
    let mut hash = Sha256::new();
    page.ciphertext().digest_into(|bytes| hash.update(bytes));
    for digest in &noise.digests {
        hash.update(digest);
    }
    hash.finalize().into()
}
