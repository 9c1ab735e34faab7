//! The strict binary form of a [`DecryptRequest`].
//!
//! Little-endian: the magic `FHAIMR`, a format version, the parameter set, dataset and job, the
//! releases, the pages (ciphertexts in fhaim-he's own encoding), and the SHA-256 of all that. The
//! hash detects accidents; authenticity is up to the transport. Lists are preceded by their length,
//! which is checked against the remaining bytes before anything is allocated. Every request has one
//! encoding: no byte may be left over, and a decoded request encodes to the same bytes.

use crate::Error;
use crate::request::{DatasetId, DecryptRequest, JobId, PageSpan, SealedPage};
use fhaim_dp::Span;
use fhaim_he::{Ciphertext, Parameters};
use fhaim_release::codec::{ByteReader, Malformed, RELEASE_BYTES, Writer};
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 6] = b"FHAIMR";
const VERSION: u8 = 1;
const DIGEST: usize = 32;

/// Encodes and decodes the values of sealed pages: ciphertexts under their [`Parameters`], or clear
/// values in simulations.
pub trait PageCodec {
    /// Type of a page's values.
    type Page;

    /// Number of the parameter set. Requests under another set are rejected.
    fn set(&self) -> u8;

    /// Smallest number of bytes of a page's values.
    fn least_bytes(&self) -> usize;

    /// Appends a page's values to `out`.
    fn write(&self, page: &Self::Page, out: &mut Vec<u8>);

    /// Reads a page's values from the front of `bytes`.
    ///
    /// # Errors
    /// Invalid bytes.
    fn read(&self, bytes: &mut &[u8]) -> Result<Self::Page, Error>;
}

impl PageCodec for Parameters {
    type Page = Vec<Ciphertext>;

    fn set(&self) -> u8 {
        self.set().id
    }

    fn least_bytes(&self) -> usize {
        self.residues() * self.set().ciphertext_bytes()
    }

    fn write(&self, page: &Vec<Ciphertext>, out: &mut Vec<u8>) {
        for ciphertext in page {
            out.extend_from_slice(&ciphertext.to_bytes(self));
        }
    }

    fn read(&self, bytes: &mut &[u8]) -> Result<Vec<Ciphertext>, Error> {
        let ciphertext = |_| {
            let (one, rest) = bytes
                .split_at_checked(self.set().ciphertext_bytes())
                .ok_or(Error::Request("truncated"))?;
            *bytes = rest;
            Ok(Ciphertext::from_bytes(self, one)?)
        };
        (0..self.residues()).map(ciphertext).collect()
    }
}

/// Returns the SHA-256 of a batch's releases, which distinguishes the batches of a job.
pub fn asked(releases: &[fhaim_release::ReleaseRequest]) -> [u8; 32] {
    let mut out = Writer::default();
    out.list(releases, Writer::release);
    Sha256::new()
        .chain_update(b"fhaim batch 1")
        .chain_update(&out.0)
        .finalize()
        .into()
}

impl<C> DecryptRequest<C> {
    /// Encodes the request.
    pub fn to_bytes<P: PageCodec<Page = C>>(&self, codec: &P) -> Vec<u8> {
        let mut out = Writer::default();
        out.0.extend_from_slice(MAGIC);
        out.0.extend_from_slice(&[VERSION, codec.set()]);
        out.0.extend_from_slice(&self.dataset.0);
        out.0.extend_from_slice(&self.job.0);
        out.list(&self.releases, Writer::release);
        out.list(&self.pages, |out, page| write_page(out, codec, page));
        let digest = Sha256::digest(&out.0);
        out.0.extend_from_slice(&digest);
        out.0
    }

    /// Decodes a request under the given parameter set.
    ///
    /// # Errors
    /// [`Error::Request`] or [`Error::Encryption`] with the first rule that the bytes break.
    pub fn from_bytes<P: PageCodec<Page = C>>(codec: &P, bytes: &[u8]) -> Result<Self, Error> {
        let (body, digest) = bytes
            .split_last_chunk::<DIGEST>()
            .ok_or(Error::Request("truncated"))?;
        let mut input = ByteReader(body);
        if input.take::<6>()? != *MAGIC || input.take::<1>()? != [VERSION] {
            return Err(Error::Request("not a request of this format version"));
        }
        if Sha256::digest(body).as_slice() != digest {
            return Err(Error::Request("its checksum does not match"));
        }
        if input.take::<1>()? != [codec.set()] {
            return Err(Error::Request("it is for another parameter set"));
        }
        let request = Self {
            dataset: DatasetId(input.take()?),
            job: JobId(input.take()?),
            releases: input.list(RELEASE_BYTES, ByteReader::release)?,
            pages: input.list(PAGE_BYTES + codec.least_bytes(), |input| {
                read_page(input, codec)
            })?,
        };
        input.end()?;
        Ok(request)
    }
}

/// Lower bounds on the bytes of a part, and of a page without its values. The lengths of lists are
/// checked against them.
const PART_BYTES: usize = 4 + 3 * 8;
const PAGE_BYTES: usize = 8 + 8;

fn write_page<P: PageCodec>(out: &mut Writer, codec: &P, page: &SealedPage<P::Page>) {
    out.0.extend_from_slice(&page.variance_units.to_le_bytes());
    out.list(&page.parts, |out, part| {
        out.0.extend_from_slice(&part.number.to_le_bytes());
        let Span { page, start, len } = part.span;
        out.number(page);
        out.number(start);
        out.number(len);
    });
    codec.write(&page.ciphertexts, &mut out.0);
}

fn read_part(input: &mut ByteReader<'_>) -> Result<PageSpan, Malformed> {
    Ok(PageSpan {
        number: u32::from_le_bytes(input.take()?),
        span: Span {
            page: input.number()?,
            start: input.number()?,
            len: input.number()?,
        },
    })
}

fn read_page<P: PageCodec>(
    input: &mut ByteReader<'_>,
    codec: &P,
) -> Result<SealedPage<P::Page>, Error> {
    let variance_units = u64::from_le_bytes(input.take()?);
    let parts = input.list(PART_BYTES, read_part)?;
    Ok(SealedPage {
        ciphertexts: codec.read(&mut input.0)?,
        variance_units,
        parts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Clique;
    use fhaim_he::{COMPACT, SecretKey, WIDE};
    use fhaim_release::{Axis, ReleaseRequest, SquaredTerm, Statistic};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    fn request(params: &Parameters, rng: &mut ChaCha20Rng) -> DecryptRequest {
        let public = SecretKey::random(params, rng)
            .unwrap()
            .public_key(rng)
            .unwrap();
        let release = |number, statistic| ReleaseRequest {
            number,
            statistic,
            variance_units: 77,
        };
        let term = SquaredTerm {
            clique: Clique::new([1, 4]),
            weight: 3,
            target: vec![0, 5, i64::MAX],
        };
        let part = |number, start, len| PageSpan {
            number,
            span: Span {
                page: 2,
                start,
                len,
            },
        };
        DecryptRequest {
            dataset: DatasetId([3; 16]),
            job: JobId([9; 16]),
            releases: vec![
                release(0, Statistic::Total),
                release(1, Statistic::OneWay(Axis::identity(2, 3))),
                release(
                    5,
                    Statistic::Product(Axis::identity(0, 2), Axis::identity(3, 4)),
                ),
                release(6, Statistic::SquaredScores(vec![term.clone(), term])),
            ],
            pages: vec![
                SealedPage {
                    ciphertexts: public.encrypt(&[1, 2], rng).unwrap(),
                    variance_units: 77,
                    parts: vec![part(0, 0, 1), part(1, 1, 3), part(5, 4, 8)],
                },
                SealedPage {
                    ciphertexts: public.encrypt(&[3], rng).unwrap(),
                    variance_units: 77,
                    parts: vec![part(6, 12, 2)],
                },
            ],
        }
    }

    #[test]
    fn requests_survive_a_round_trip() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for set in [COMPACT, WIDE] {
            let params = Parameters::new(set).unwrap();
            let request = request(&params, &mut rng);
            let bytes = request.to_bytes(&params);
            let decoded = DecryptRequest::from_bytes(&params, &bytes).unwrap();
            assert_eq!(decoded, request);
            assert_eq!(decoded.to_bytes(&params), bytes);
        }
    }

    #[test]
    fn damaged_requests_are_rejected() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let params = Parameters::new(COMPACT).unwrap();
        let bytes = request(&params, &mut rng).to_bytes(&params);
        let refused = |bytes: &[u8]| match DecryptRequest::from_bytes(&params, bytes) {
            Err(Error::Request(_) | Error::Encryption(_)) => {}
            other => panic!("{:?}", other.map(|r| r.job)),
        };
        for length in (0..600).chain([bytes.len() / 2, bytes.len() - 1]) {
            refused(&bytes[..length]);
        }
        refused(&[bytes.as_slice(), &[0]].concat());
        for bit in (0..400).chain((0..40).map(|_| rng.random_range(0..8 * bytes.len()))) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            refused(&flipped);
        }
        let other = Parameters::new(WIDE).unwrap();
        assert!(matches!(
            DecryptRequest::from_bytes(&other, &bytes),
            Err(Error::Request(..))
        ));
    }

    /// An attacker who knows the format can change bytes and recompute the checksum.
    #[test]
    fn forged_lengths_and_tags_neither_panic_nor_allocate() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let params = Parameters::new(COMPACT).unwrap();
        let bytes = request(&params, &mut rng).to_bytes(&params);
        let body = &bytes[..bytes.len() - DIGEST];
        let sealed = |body: &[u8]| [body, &Sha256::digest(body)].concat();
        let header = 6 + 2 + 2 * 16;
        // The releases are in the first kilobyte. Their lengths have eight bytes each.
        for at in header..header + 900 {
            let mut forged = body.to_vec();
            forged[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            if let Ok(request) = DecryptRequest::from_bytes(&params, &sealed(&forged)) {
                assert_eq!(request.to_bytes(&params), sealed(&forged), "at {at}");
            }
        }
        for length in (0..1500).chain([body.len() - 1]) {
            assert!(matches!(
                DecryptRequest::from_bytes(&params, &sealed(&body[..length])),
                Err(Error::Request(..))
            ));
        }
        let longer = [body, &[0]].concat();
        assert!(matches!(
            DecryptRequest::from_bytes(&params, &sealed(&longer)),
            Err(Error::Request(..))
        ));
    }
}
