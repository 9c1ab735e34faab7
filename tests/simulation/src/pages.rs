//! Sealed pages: the computation service makes them, the crypto service reads them, and the observer inspects them.
//! Clear pages have values in place of ciphertexts. Everything else, from positions to bytes, is the protocol's own.

use crate::setting::{DATASET, public_part};
use fhaim_domain::Table;
use fhaim_dp::{Ladder, PAGE, Span};
use fhaim_he::{Parameters, RosterShape, SecretKey, UploadKey, coefficient};
use fhaim_protocol::Error;
use fhaim_protocol::computation::{Computation, SealedBatch};
use fhaim_protocol::crypto::job_ledger::JobLedger;
use fhaim_protocol::crypto::judge::Rules;
use fhaim_protocol::crypto::{Decryptor, Digests, Judged, PagePlace, judge, open};
use fhaim_protocol::encryption::{Encryption, Encryptor};
use fhaim_protocol::holder::{self, Holder, HolderNoise};
use fhaim_protocol::joint::join_uploads;
use fhaim_protocol::request::{DecryptRequest, JobId, PageCodec, PageSpan, SealedPage};
use fhaim_protocol::sealing::{Context, SealingKey};
use fhaim_protocol::terms::Plan;
use fhaim_protocol::upload::UploadPlan;
use fhaim_protocol::window::Window;
use fhaim_release::{Holders, ReleaseRequest};
use fhaim_synth::exact;
use rand::RngCore;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of a sealed request, as they are stored and sent.
pub(crate) type Bytes = Rc<[u8]>;

/// Makes and reads pages.
pub(crate) trait Engine {
    /// Computes and seals a batch, as the computation service.
    fn seal(
        &self,
        window: &Window,
        requests: &[ReleaseRequest],
        upload: (&SealingKey, Under),
    ) -> Result<(Bytes, Window), Error>;

    /// Judges a request before decryption, as the crypto service.
    fn judge(
        &self,
        rules: &Rules,
        job_ledger: &JobLedger,
        body: &[u8],
        digests: Digests,
    ) -> Result<Judged, Error>;

    /// Decrypts the integers of a request. Returns `None` if it cannot be decrypted under the dataset's keys of this
    /// number.
    fn open(&self, body: &[u8], keys: u64) -> Result<Option<Vec<Vec<i64>>>, Error>;

    /// Returns a request without its pages' contents, for a service that judges without reading them.
    fn bare(&self, body: &[u8]) -> Result<DecryptRequest<()>, Error>;

    /// Inspects a request for the observer.
    fn look(&self, body: &[u8]) -> Result<Look, Error>;

    /// Decrypts the integers at the positions that the request names, as a service that trusts the sender's positions.
    fn read(&self, body: &[u8]) -> Result<Vec<Vec<i64>>, Error>;

    /// Makes a request that no service that follows the protocol sends.
    fn forge(&self, body: &[u8], forgery: Forgery) -> Option<Bytes>;
}

/// The origin of pages: the table and noise that they are computed from, and the keys of their ciphertexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Under {
    /// The session in which the objects were encrypted. 0 is the upload that is complete from the beginning.
    pub session: u64,
    /// The number of the dataset's keys. 0 is the first keys.
    pub keys: u64,
}

/// Contents of a request, for the observer.
pub(crate) struct Look {
    pub job: JobId,
    pub under: Under,
    pub releases: Vec<ReleaseRequest>,
    pub pages: Vec<LookedPage>,
}

/// A page of a request: its parts, and the digest of its contents.
pub(crate) struct LookedPage {
    pub parts: Vec<PageSpan>,
    pub digest: [u8; 32],
}

/// A change to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgery {
    /// Its releases have a slightly larger variance.
    Variance,
    /// Its releases have other numbers, at the same positions.
    Numbers(u32),
    /// It names another job.
    Job(JobId),
    /// A page is missing.
    Fewer,
    /// The parts have other positions.
    Moved,
    /// A page cannot be decrypted.
    Spoilt,
}

/// Pages with clear values.
pub(crate) struct Clear {
    pub table: Arc<Table>,
    pub ladder: Arc<Ladder>,
}

/// Contents of a clear page: values of the released coefficients, and a seed for all others.
#[derive(Clone)]
pub(crate) struct ClearPage {
    under: Under,
    elsewhere: [u8; 32],
    values: Vec<(u16, i64)>,
}

/// Marks a spoilt page, in place of its seed.
const SPOILT: [u8; 32] = [0xff; 32];

/// Reads and writes clear pages.
pub(crate) struct ClearCodec;

impl PageCodec for ClearCodec {
    type Page = ClearPage;

    fn set(&self) -> u8 {
        0
    }

    fn least_bytes(&self) -> usize {
        16 + 32 + 2
    }

    fn write(&self, page: &ClearPage, out: &mut Vec<u8>) {
        out.extend_from_slice(&page.under.session.to_le_bytes());
        out.extend_from_slice(&page.under.keys.to_le_bytes());
        out.extend_from_slice(&page.elsewhere);
        out.extend_from_slice(&(page.values.len() as u16).to_le_bytes());
        for (at, value) in &page.values {
            out.extend_from_slice(&at.to_le_bytes());
            out.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn read(&self, bytes: &mut &[u8]) -> Result<ClearPage, Error> {
        let under = Under {
            session: u64::from_le_bytes(take(bytes)?),
            keys: u64::from_le_bytes(take(bytes)?),
        };
        let elsewhere = take(bytes)?;
        let length = u16::from_le_bytes(take(bytes)?);
        let value = |_| {
            let at = u16::from_le_bytes(take(bytes)?);
            Ok((at, i64::from_le_bytes(take(bytes)?)))
        };
        let values = (0..length).map(value).collect::<Result<_, Error>>()?;
        Ok(ClearPage {
            under,
            elsewhere,
            values,
        })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Error> {
    let truncated = Error::Request("truncated");
    let (taken, rest) = bytes.split_first_chunk().ok_or(truncated)?;
    *bytes = rest;
    Ok(*taken)
}

/// Takes the place of the secret key. Has the number of the dataset's keys.
struct ClearKey(u64);

impl Decryptor<ClearPage> for ClearKey {
    fn coefficients(
        &self,
        page: &ClearPage,
        _place: PagePlace,
    ) -> Result<Zeroizing<Vec<i128>>, Error> {
        if page.elsewhere == SPOILT || page.under.keys != self.0 {
            return Err(Error::Request("a page cannot be decrypted"));
        }
        let (seed, _) = page
            .elsewhere
            .split_first_chunk()
            .expect("a seed of 8 bytes fits in 32 bytes");
        let mut state = u64::from_le_bytes(*seed);
        let mut uniform = || {
            // SplitMix64, because nobody may use these values.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            i128::from(mixed >> 20)
        };
        let mut values: Vec<i128> = (0..PAGE).map(|_| uniform()).collect();
        for &(at, value) in &page.values {
            values[usize::from(at) % PAGE] = i128::from(value);
        }
        Ok(Zeroizing::new(values))
    }
}

impl Clear {
    /// Returns the cells of a release at its positions, as ciphertexts would hold them.
    fn values(&self, request: &ReleaseRequest, spans: &[Span]) -> Result<Vec<i64>, Error> {
        let noise = self.ladder.release_noise(spans, request.variance_units)?;
        let exact = exact(&*self.table, &request.statistic).map_err(|error| Error::Statistic {
            number: request.number,
            reason: error.to_string(),
        })?;
        let public = public_part(&request.statistic, exact.len());
        let cells = exact.iter().zip(noise.iter()).zip(public);
        Ok(cells.map(|((e, n), p)| e + n - p).collect())
    }
}

impl Engine for Clear {
    fn seal(
        &self,
        window: &Window,
        requests: &[ReleaseRequest],
        (key, under): (&SealingKey, Under),
    ) -> Result<(Bytes, Window), Error> {
        let placement = window.place(requests)?;
        let mut cells: HashMap<(usize, usize), i64> = HashMap::new();
        for (request, spans) in requests.iter().zip(&placement.spans) {
            let places = spans.iter().flat_map(|s| s.range().map(|p| (s.page, p)));
            cells.extend(places.zip(self.values(request, spans)?));
        }
        let statements: Vec<_> = placement.placed.iter().map(|p| p.statement).collect();
        let page = |(number, sheet): (usize, fhaim_protocol::window::Sheet)| {
            let spans: Vec<Span> = sheet.parts.iter().map(|part| part.span).collect();
            let places = spans.iter().flat_map(Span::range);
            let values: Vec<(u16, i64)> = places
                .map(|p| (coefficient(p) as u16, cells[&(number, p)]))
                .collect();
            let mut digest = Sha256::new();
            for (at, value) in &values {
                digest.update(at.to_le_bytes());
                digest.update(value.to_le_bytes());
            }
            let mut elsewhere = [0; 32];
            key.generator(&Context {
                dataset: DATASET,
                job: window.job(),
                run: window.run(),
                first: requests.first().map_or(0, |request| request.number),
                statements: &statements,
                spans: &spans,
                variance_units: sheet.variance_units,
                residue: 0,
                ciphertexts: digest.finalize().into(),
            })
            .fill_bytes(&mut elsewhere);
            SealedPage {
                ciphertexts: ClearPage {
                    under,
                    elsewhere,
                    values,
                },
                variance_units: sheet.variance_units,
                parts: sheet.parts,
            }
        };
        let request = DecryptRequest {
            dataset: DATASET,
            job: window.job(),
            releases: requests.to_vec(),
            pages: placement.sheets(requests).into_iter().map(page).collect(),
        };
        let mut window = window.clone();
        window.take(&placement);
        Ok((request.to_bytes(&ClearCodec).into(), window))
    }

    fn judge(
        &self,
        rules: &Rules,
        job_ledger: &JobLedger,
        body: &[u8],
        digests: Digests,
    ) -> Result<Judged, Error> {
        let request = DecryptRequest::from_bytes(&ClearCodec, body)?;
        judge(rules, job_ledger, &request, digests)
    }

    fn open(&self, body: &[u8], keys: u64) -> Result<Option<Vec<Vec<i64>>>, Error> {
        let request = DecryptRequest::from_bytes(&ClearCodec, body)?;
        Ok(open(&ClearKey(keys), &request))
    }

    fn bare(&self, body: &[u8]) -> Result<DecryptRequest<()>, Error> {
        bare(&ClearCodec, body)
    }

    fn look(&self, body: &[u8]) -> Result<Look, Error> {
        let request = DecryptRequest::from_bytes(&ClearCodec, body)?;
        let under = request.pages.first().map(|page| page.ciphertexts.under);
        Ok(Look {
            under: under.unwrap_or_default(),
            ..look(&ClearCodec, body)?
        })
    }

    fn read(&self, body: &[u8]) -> Result<Vec<Vec<i64>>, Error> {
        read(&ClearCodec, &ClearKey(0), body)
    }

    fn forge(&self, body: &[u8], forgery: Forgery) -> Option<Bytes> {
        forge(&ClearCodec, body, forgery, |page| page.elsewhere = SPOILT)
    }
}

/// Pages of ciphertexts, with one set of keys for all schedules.
pub(crate) struct Encrypted {
    params: Parameters,
    secret: SecretKey,
    computation: Computation,
    /// Sealed batches by the digest of all their inputs.
    sealed: RefCell<HashMap<[u8; 32], Sealed>>,
}

struct Sealed {
    bytes: Bytes,
    window: Window,
    /// Number of requests for the batch after the first.
    asked: u32,
}

/// Interval between checks that sealing a known batch again gives the same bytes, in requests for the batch.
const CHECK_EVERY: u32 = 40;

impl Encrypted {
    pub(crate) fn new(plan: &Plan, table: &Table, ladder: &Ladder, rng: &mut ChaCha20Rng) -> Self {
        let params = plan.parameters().expect("a plan's parameters are valid");
        let secret = SecretKey::random(&params, rng).expect("keys can be made");
        let public = secret.public_key(rng).expect("keys can be made");
        let domain = table.domain().clone();
        let upload = UploadPlan::for_table(&domain, table.records(), ladder.plan(), &plan.core.set);
        let upload = upload.expect("the plan fits the table");
        // With two runs or squared scores, the holder draws the upload key. Otherwise the upload has a roster's key.
        let (upload, own, keys) = if plan.core.runs == 2 || plan.core.set.has_squares() {
            (
                upload,
                UploadKey::random(&params, rng),
                secret.evaluation_keys(rng),
            )
        } else {
            (
                upload.under(Encryption::RosterKey),
                UploadKey::from_seeds(&params, vec![secret.upload_seed(0)]),
                secret.roster_evaluation_keys(RosterShape::Records(1), rng),
            )
        };
        let (own, keys) = (
            own.expect("keys can be made"),
            keys.expect("keys can be made"),
        );
        let encryptor = match upload.encryption {
            Encryption::OwnKey => Encryptor::sole(&public, &own),
            Encryption::RosterKey => Encryptor::of_roster(&own),
        };
        let bound = u64::MAX;
        let holder = Holder::new(table, bound, HolderNoise::Drawn(ladder), encryptor, upload);
        let upload = holder::encrypt(&holder.expect("the plan fits the table"), rng, &|| ());
        let upload = upload.expect("records can be encrypted");
        let upload = join_uploads(&domain, &Holders::one(), &keys, &[upload]);
        let upload = upload.expect("the upload is the only one");
        Self {
            computation: Computation::new(DATASET, domain, public, keys, upload),
            params,
            secret,
            sealed: RefCell::default(),
        }
    }

    fn fresh(
        &self,
        window: &Window,
        requests: &[ReleaseRequest],
        key: &SealingKey,
    ) -> Result<(Bytes, Window), Error> {
        let answer = self.computation.answer(window, requests, key);
        let SealedBatch { request, window } = answer?;
        Ok((request.to_bytes(&self.params).into(), window))
    }
}

impl Engine for Encrypted {
    fn seal(
        &self,
        window: &Window,
        requests: &[ReleaseRequest],
        (key, _): (&SealingKey, Under),
    ) -> Result<(Bytes, Window), Error> {
        let all = serde_json::to_vec(&(window, requests, key.as_bytes()));
        let name: [u8; 32] = Sha256::digest(all.expect("windows are text")).into();
        let mut known = self.sealed.borrow_mut();
        if let Some(known) = known.get_mut(&name) {
            known.asked += 1;
            if known.asked % CHECK_EVERY == 1 {
                let (bytes, _) = self.fresh(window, requests, key)?;
                assert!(
                    bytes == known.bytes,
                    "sealing a batch again gave other bytes"
                );
            }
            return Ok((Rc::clone(&known.bytes), known.window.clone()));
        }
        let (bytes, after) = self.fresh(window, requests, key)?;
        let sealed = Sealed {
            bytes: Rc::clone(&bytes),
            window: after.clone(),
            asked: 0,
        };
        known.insert(name, sealed);
        Ok((bytes, after))
    }

    fn judge(
        &self,
        rules: &Rules,
        job_ledger: &JobLedger,
        body: &[u8],
        digests: Digests,
    ) -> Result<Judged, Error> {
        let request = DecryptRequest::from_bytes(&self.params, body)?;
        judge(rules, job_ledger, &request, digests)
    }

    fn open(&self, body: &[u8], _keys: u64) -> Result<Option<Vec<Vec<i64>>>, Error> {
        let request = DecryptRequest::from_bytes(&self.params, body)?;
        Ok(open(&self.secret, &request))
    }

    fn bare(&self, body: &[u8]) -> Result<DecryptRequest<()>, Error> {
        bare(&self.params, body)
    }

    fn look(&self, body: &[u8]) -> Result<Look, Error> {
        look(&self.params, body)
    }

    fn read(&self, body: &[u8]) -> Result<Vec<Vec<i64>>, Error> {
        read(&self.params, &self.secret, body)
    }

    fn forge(&self, body: &[u8], forgery: Forgery) -> Option<Bytes> {
        if forgery == Forgery::Spoilt {
            return None; // Only clear pages have this fault.
        }
        forge(&self.params, body, forgery, |_| ())
    }
}

/// Returns a request without its pages' contents.
fn bare<C: PageCodec>(codec: &C, body: &[u8]) -> Result<DecryptRequest<()>, Error> {
    let request = DecryptRequest::from_bytes(codec, body)?;
    let page = |page: SealedPage<C::Page>| SealedPage {
        ciphertexts: (),
        variance_units: page.variance_units,
        parts: page.parts,
    };
    Ok(DecryptRequest {
        dataset: request.dataset,
        job: request.job,
        releases: request.releases,
        pages: request.pages.into_iter().map(page).collect(),
    })
}

fn look<K: PageCodec>(codec: &K, body: &[u8]) -> Result<Look, Error> {
    let request = DecryptRequest::from_bytes(codec, body)?;
    let pages = request.pages.into_iter().map(|page| {
        let mut bytes = Vec::new();
        codec.write(&page.ciphertexts, &mut bytes);
        LookedPage {
            parts: page.parts,
            digest: Sha256::digest(&bytes).into(),
        }
    });
    Ok(Look {
        job: request.job,
        under: Under::default(),
        pages: pages.collect(),
        releases: request.releases,
    })
}

fn read<K: PageCodec>(
    codec: &K,
    key: &impl Decryptor<K::Page>,
    body: &[u8],
) -> Result<Vec<Vec<i64>>, Error> {
    let request = DecryptRequest::from_bytes(codec, body)?;
    let first = request.releases.first().map_or(0, |release| release.number);
    let mut answers = vec![Vec::new(); request.releases.len()];
    for (number, page) in (0..).zip(&request.pages) {
        // Only a flood depends on the place.
        let place = PagePlace {
            request: [0; 32],
            number,
        };
        let values = key.coefficients(&page.ciphertexts, place)?;
        for part in &page.parts {
            let number = part.number.wrapping_sub(first) as usize;
            let answer = answers.get_mut(number).ok_or(Error::Refused)?;
            let cells = part
                .span
                .range()
                .map(|p| values[coefficient(p % PAGE)] as i64);
            answer.extend(cells);
        }
    }
    Ok(answers)
}

fn forge<K: PageCodec>(
    codec: &K,
    body: &[u8],
    forgery: Forgery,
    spoil: impl Fn(&mut K::Page),
) -> Option<Bytes> {
    let mut request = DecryptRequest::from_bytes(codec, body).ok()?;
    let parts = |request: &mut DecryptRequest<K::Page>, change: &dyn Fn(&mut PageSpan)| {
        let pages = request.pages.iter_mut();
        pages.flat_map(|page| &mut page.parts).for_each(change);
    };
    match forgery {
        Forgery::Variance => {
            for release in &mut request.releases {
                release.variance_units += 1;
            }
            for page in &mut request.pages {
                page.variance_units += 1;
            }
        }
        Forgery::Numbers(by) => {
            for release in &mut request.releases {
                release.number += by;
            }
            parts(&mut request, &|part| part.number += by);
        }
        Forgery::Job(job) => request.job = job,
        Forgery::Fewer => drop(request.pages.pop()?),
        Forgery::Moved => parts(&mut request, &|part| part.span.start ^= 1),
        Forgery::Spoilt => spoil(&mut request.pages.first_mut()?.ciphertexts),
    }
    Some(request.to_bytes(codec).into())
}
