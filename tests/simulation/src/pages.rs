//! Sealed pages: made by the computation service, read by the crypto service, and looked at by
//! whoever checks the two. Clear pages have values in place of ciphertexts; everything else about
//! them, from positions to bytes, is the protocol's own.

use crate::setting::{DATASET, public_part};
use fhaim_domain::Table;
use fhaim_dp::{Ladder, PAGE, Span};
use fhaim_he::{Parameters, RosterShape, SecretKey, UploadKey, coefficient};
use fhaim_protocol::Error;
use fhaim_protocol::computation::{Computation, SealedBatch};
use fhaim_protocol::crypto::judge::{Book, Rules};
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

/// How pages are made and read.
pub(crate) trait Engine {
    /// What the computation service does with a batch.
    fn seal(
        &self,
        window: &Window,
        requests: &[ReleaseRequest],
        upload: (&SealingKey, Under),
    ) -> Result<(Bytes, Window), Error>;

    /// What the crypto service makes of a request before it decrypts.
    fn judge(
        &self,
        rules: &Rules,
        book: &Book,
        body: &[u8],
        digests: Digests,
    ) -> Result<Judged, Error>;

    /// The integers of a request, if it can be decrypted under the dataset's keys of this number.
    fn open(&self, body: &[u8], keys: u64) -> Result<Option<Vec<Vec<i64>>>, Error>;

    /// A request without its pages' contents: what a service judges that reads none.
    fn bare(&self, body: &[u8]) -> Result<DecryptRequest<()>, Error>;

    /// What a request asks for, for whoever checks.
    fn look(&self, body: &[u8]) -> Result<Look, Error>;

    /// The integers at the places that the request itself names: what a service that takes the
    /// sender's word for positions would release.
    fn read(&self, body: &[u8]) -> Result<Vec<Vec<i64>>, Error>;

    /// A request that no service which follows the protocol sends.
    fn forge(&self, body: &[u8], forgery: Forgery) -> Option<Bytes>;
}

/// The table and noise that pages are computed from, and the dataset's keys that their ciphertexts are under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Under {
    /// The upload that the objects were encrypted in; 0 for the upload that is there from the beginning.
    pub session: u64,
    /// The number of the keys; 0 for the first.
    pub keys: u64,
}

/// What a request asks for.
pub(crate) struct Look {
    pub job: JobId,
    pub under: Under,
    pub releases: Vec<ReleaseRequest>,
    pub pages: Vec<LookedPage>,
}

/// A page of a request: its parts, and the digest of what carries its values.
pub(crate) struct LookedPage {
    pub parts: Vec<PageSpan>,
    pub digest: [u8; 32],
}

/// How a request is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgery {
    /// Its releases have a little more noise.
    Variance,
    /// Its releases have other numbers, at the same positions.
    Numbers(u32),
    /// It is another job's.
    Job(JobId),
    /// A page is missing.
    Fewer,
    /// A part's positions are others.
    Moved,
    /// A page cannot be decrypted.
    Spoilt,
}

/// Pages with clear values.
pub(crate) struct Clear {
    pub table: Arc<Table>,
    pub ladder: Arc<Ladder>,
}

/// What a clear page carries: values at released coefficients, and what all others follow from.
#[derive(Clone)]
pub(crate) struct ClearPage {
    under: Under,
    elsewhere: [u8; 32],
    values: Vec<(u16, i64)>,
}

/// What a spoilt page has elsewhere.
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

/// Stands where the secret key does: the number of the keys that it is of.
struct ClearKey(u64);

impl Decryptor<ClearPage> for ClearKey {
    fn coefficients(
        &self,
        page: &ClearPage,
        _place: PagePlace,
    ) -> Result<Zeroizing<Vec<i128>>, Error> {
        if page.elsewhere == SPOILT || page.under.keys != self.0 {
            return Err(Error::Request("a page that cannot be decrypted"));
        }
        let (seed, _) = page
            .elsewhere
            .split_first_chunk()
            .expect("32 bytes are more than 8");
        let mut state = u64::from_le_bytes(*seed);
        let mut uniform = || {
            // SplitMix64, for values that nobody may read.
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
    /// The cells of a release at its positions: what ciphertexts would hold.
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
        book: &Book,
        body: &[u8],
        digests: Digests,
    ) -> Result<Judged, Error> {
        let request = DecryptRequest::from_bytes(&ClearCodec, body)?;
        judge(rules, book, &request, digests)
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

/// Pages that are ciphertexts, under one key set for all schedules.
pub(crate) struct Encrypted {
    params: Parameters,
    secret: SecretKey,
    computation: Computation,
    /// Sealed batches by everything that they are a function of.
    sealed: RefCell<HashMap<[u8; 32], Sealed>>,
}

struct Sealed {
    bytes: Bytes,
    window: Window,
    /// How often it was asked for.
    asked: u32,
}

/// A batch that was sealed before is sealed again, and compared, every so many times.
const CHECK_EVERY: u32 = 40;

impl Encrypted {
    pub(crate) fn new(plan: &Plan, table: &Table, ladder: &Ladder, rng: &mut ChaCha20Rng) -> Self {
        let params = plan.parameters().expect("a plan's parameters are valid");
        let secret = SecretKey::random(&params, rng).expect("keys can be made");
        let public = secret.public_key(rng).expect("keys can be made");
        let domain = table.domain().clone();
        let upload = UploadPlan::for_table(&domain, table.records(), ladder.plan(), &plan.core.set);
        let upload = upload.expect("the plan is the table's");
        // Schedules of two runs, or with squared scores, have an upload key that the holder drew; others one of a roster.
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
        let upload = holder::encrypt(&holder.expect("the plan is the table's"), rng, &|| ());
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
                assert!(bytes == known.bytes, "one batch was sealed to two forms");
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
        book: &Book,
        body: &[u8],
        digests: Digests,
    ) -> Result<Judged, Error> {
        let request = DecryptRequest::from_bytes(&self.params, body)?;
        judge(rules, book, &request, digests)
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
            return None; // clear pages have this fault
        }
        forge(&self.params, body, forgery, |_| ())
    }
}

/// A request without its pages' contents.
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
        // Of the place nothing depends but a flood.
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
