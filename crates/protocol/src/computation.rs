//! The computation entity: turns requests into sealed pages, on ciphertexts alone.

use crate::Error;
use crate::upload::{EncryptedLadder, Upload};
use fhaim_domain::{Clique, Domain};
use fhaim_dp::{Allocator, Digits, Span};
use fhaim_he::{
    Cell, Ciphertext, Combination, EncryptedTable, EvaluationKeys, Evaluator, Operands, PAGE, Page,
    PublicKey, SquaredScore, Work, seal,
};
use fhaim_synth::{Axis, ReleaseRequest, SquaredTerm, Statistic};
use rand::{CryptoRng, RngCore};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};

/// Positions of a page that belong to one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The release.
    pub number: u32,
    /// Its positions, in the order of its cells.
    pub span: Span,
}

/// A sealed page: noise of one variance on the parts' positions, uniform values elsewhere.
#[derive(Clone, Debug)]
pub struct SealedPage {
    /// One ciphertext a plaintext modulus.
    pub ciphertexts: Vec<Ciphertext>,
    /// Noise variance of every part, in the ladder's units.
    pub variance_units: u64,
    /// Which releases the page answers, ascending.
    pub parts: Vec<Part>,
}

impl SealedPage {
    /// SHA-256 of the ciphertexts' encodings.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for ciphertext in &self.ciphertexts {
            ciphertext.digest_into(|bytes| hash.update(bytes));
        }
        hash.finalize().into()
    }
}

/// What the computation entity sends to the crypto service.
#[derive(Clone, Debug)]
pub struct DecryptRequest {
    /// The dataset whose key and ledger are meant.
    pub dataset: [u8; 16],
    /// The releases, in the order asked.
    pub releases: Vec<ReleaseRequest>,
    /// The pages that carry them.
    pub pages: Vec<SealedPage>,
}

/// The service's state for one dataset and job.
#[derive(Debug)]
pub struct Computation {
    dataset: [u8; 16],
    domain: Domain,
    public: PublicKey,
    keys: EvaluationKeys,
    table: EncryptedTable,
    ladder: EncryptedLadder,
    allocator: Allocator,
    /// Sealed batches by first release number: a retry is answered with the same ciphertexts.
    sealed: BTreeMap<u32, DecryptRequest>,
    /// Squares by clique and plaintext modulus, in parts of a page.
    squares: HashMap<(Clique, usize), Vec<SquaredScore>>,
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
        dataset: [u8; 16],
        domain: Domain,
        public: PublicKey,
        keys: EvaluationKeys,
        upload: Upload,
    ) -> Self {
        let allocator = Allocator::new(upload.ladder.plan());
        Self {
            dataset,
            domain,
            public,
            keys,
            table: upload.table,
            ladder: upload.ladder,
            allocator,
            sealed: BTreeMap::new(),
            squares: HashMap::new(),
            work: Work::default(),
        }
    }

    /// Work done so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Computes a batch and seals it. The same batch again is answered with the same
    /// ciphertexts: noise is used once.
    ///
    /// # Errors
    /// [`Error::Statistic`] for what the domain does not have, [`Error::Privacy`] where the
    /// ladder does not suffice, [`Error::Encryption`] where noise would not be hidden.
    pub fn answer<R: RngCore + CryptoRng>(
        &mut self,
        requests: &[ReleaseRequest],
        rng: &mut R,
    ) -> Result<DecryptRequest, Error> {
        let Some(first) = requests.first().map(|r| r.number) else {
            return Ok(DecryptRequest {
                dataset: self.dataset,
                releases: Vec::new(),
                pages: Vec::new(),
            });
        };
        if let Some(before) = self.sealed.get(&first) {
            let same = before.releases == requests;
            return if same {
                Ok(before.clone())
            } else {
                Err(fhaim_dp::Error::Conflict(first).into())
            };
        }
        for request in requests {
            self.check(request)?;
        }
        let mut allocator = self.allocator.clone();
        let mut spans = Vec::with_capacity(requests.len());
        for request in requests {
            spans.push(allocator.allocate(request.number, request.statistic.cells())?);
        }
        let pages = self.pages(requests, &spans)?;
        let pages = self.seal(requests, &spans, &pages, rng)?;
        let answer = DecryptRequest {
            dataset: self.dataset,
            releases: requests.to_vec(),
            pages,
        };
        self.allocator = allocator;
        self.sealed.insert(first, answer.clone());
        Ok(answer)
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
        let evaluator = Evaluator::new(&self.keys, self.table.layout());
        let mut work = Work::default();
        let mut pages: BTreeMap<usize, Vec<Page>> = BTreeMap::new();
        for residue in 0..self.public.params().residues() {
            let (left, right) = (&combinations.left, &combinations.right);
            let operands = evaluator.operands(&self.table, residue, left, right, &mut work)?;
            for (&page, cells) in &cells {
                let packed = evaluator.pack(&operands, cells, &mut work)?;
                pages.entry(page).or_default().extend(packed);
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
        let evaluator = Evaluator::new(&self.keys, self.table.layout());
        let mut work = Work::default();
        let mut pages: BTreeMap<usize, Vec<Page>> = BTreeMap::new();
        for residue in 0..self.public.params().residues() {
            for term in terms {
                let key = (term.clique.clone(), residue);
                if !self.squares.contains_key(&key) {
                    let squares = self.square(&evaluator, term, residue, &mut work)?;
                    self.squares.insert(key, squares);
                }
            }
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

    fn square(
        &self,
        evaluator: &Evaluator<'_>,
        term: &SquaredTerm,
        residue: usize,
        work: &mut Work,
    ) -> Result<Vec<SquaredScore>, Error> {
        let offsets = self.domain.one_hot_offsets();
        let [a, b] = term.clique.attributes() else {
            return Err(Error::Statistic {
                number: 0,
                reason: "a score needs a pair".to_owned(),
            });
        };
        let (a, b) = (*a, *b);
        let column =
            |attribute: usize, category: usize| Combination::column(offsets[attribute] + category);
        let right: Vec<_> = (0..self.domain.size(a)).map(|u| column(a, u)).collect();
        let left: Vec<_> = (0..self.domain.size(b)).map(|v| column(b, v)).collect();
        let operands: Operands = evaluator.operands(&self.table, residue, &left, &right, work)?;
        let cells: Vec<Cell> = (0..right.len())
            .flat_map(|u| (0..left.len()).map(move |v| Cell::Product { left: v, right: u }))
            .collect();
        let mut squares = Vec::new();
        for cells in cells.chunks(PAGE) {
            let placed: Vec<_> = cells.iter().copied().enumerate().collect();
            if let Some(page) = evaluator.pack(&operands, &placed, work)? {
                squares.push(SquaredScore::new(evaluator, page, work)?);
            }
        }
        Ok(squares)
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
