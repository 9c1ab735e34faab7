//! The strict binary form of a [`DecryptRequest`].
//!
//! Little-endian: the magic `FHAIMR`, a format version, the parameter set, dataset and job, the
//! releases, the pages (ciphertexts in fhaim-he's own encoding), and the SHA-256 of all that,
//! which catches accidents (authenticity is the transport's). Lists are preceded by their length,
//! which is held against the bytes that are left before anything is allocated. Every request has
//! one encoding: no byte may be left over, and what decodes encodes to the same bytes.

use crate::Error;
use crate::request::{DatasetId, DecryptRequest, JobId, Part, SealedPage};
use fhaim_domain::Clique;
use fhaim_dp::Span;
use fhaim_he::{Ciphertext, Parameters};
use fhaim_synth::{Axis, ReleaseRequest, SquaredTerm, Statistic};
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 6] = b"FHAIMR";
const VERSION: u8 = 1;
const DIGEST: usize = 32;

/// The first byte of an encoded statistic.
#[derive(Clone, Copy)]
enum Tag {
    Total = 0,
    OneWay = 1,
    Product = 2,
    SquaredScores = 3,
}

impl DecryptRequest {
    /// Encodes the request.
    pub fn to_bytes(&self, params: &Parameters) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.0.extend_from_slice(MAGIC);
        out.0.extend_from_slice(&[VERSION, params.set().id]);
        out.0.extend_from_slice(&self.dataset.0);
        out.0.extend_from_slice(&self.job.0);
        out.list(&self.releases, Writer::release);
        out.list(&self.pages, |out, page| out.page(params, page));
        let digest = Sha256::digest(&out.0);
        out.0.extend_from_slice(&digest);
        out.0
    }

    /// Decodes a request under the given parameter set.
    ///
    /// # Errors
    /// [`Error::Request`] or [`Error::Encryption`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self, Error> {
        let (body, digest) = bytes
            .split_last_chunk::<DIGEST>()
            .ok_or(Error::Request("truncated"))?;
        let mut input = Reader(body);
        if input.take::<6>()? != *MAGIC || input.take::<1>()? != [VERSION] {
            return Err(Error::Request("not a request of this format version"));
        }
        if Sha256::digest(body)[..] != digest[..] {
            return Err(Error::Request("its checksum does not match"));
        }
        if input.take::<1>()? != [params.set().id] {
            return Err(Error::Request("another parameter set"));
        }
        let request = Self {
            dataset: DatasetId(input.take()?),
            job: JobId(input.take()?),
            releases: input.list(RELEASE_BYTES, Reader::release)?,
            pages: input.list(page_bytes(params), |input| input.page(params))?,
        };
        input.end()?;
        Ok(request)
    }
}

/// The encoding of one release, for digests.
pub(crate) fn encode_release(release: &ReleaseRequest) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.release(release);
    out.0
}

/// Fewest bytes of a release, part and page: what a list's length is held against.
const RELEASE_BYTES: usize = 4 + 8 + 1;
const PART_BYTES: usize = 4 + 3 * 8;

fn page_bytes(params: &Parameters) -> usize {
    8 + 8 + params.residues() * params.set().ciphertext_bytes()
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, n: usize) {
        self.0.extend_from_slice(&(n as u64).to_le_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.number(items.len());
        for one in items {
            item(self, one);
        }
    }

    fn integer(&mut self, value: &i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn release(&mut self, release: &ReleaseRequest) {
        self.0.extend_from_slice(&release.number.to_le_bytes());
        self.0
            .extend_from_slice(&release.variance_units.to_le_bytes());
        match &release.statistic {
            Statistic::Total => self.0.push(Tag::Total as u8),
            Statistic::OneWay(axis) => {
                self.0.push(Tag::OneWay as u8);
                self.axis(axis);
            }
            Statistic::Product(a, b) => {
                self.0.push(Tag::Product as u8);
                self.axis(a);
                self.axis(b);
            }
            Statistic::SquaredScores(terms) => {
                self.0.push(Tag::SquaredScores as u8);
                self.list(terms, Self::term);
            }
        }
    }

    fn axis(&mut self, axis: &Axis) {
        self.number(axis.attribute);
        self.list(&axis.functions, |out, function| {
            out.list(function, Self::integer);
        });
    }

    fn term(&mut self, term: &SquaredTerm) {
        self.list(term.clique.attributes(), |out, &a| out.number(a));
        self.integer(&term.weight);
        self.list(&term.target, Self::integer);
    }

    fn page(&mut self, params: &Parameters, page: &SealedPage) {
        self.0.extend_from_slice(&page.variance_units.to_le_bytes());
        self.list(&page.parts, |out, part| {
            out.0.extend_from_slice(&part.number.to_le_bytes());
            let Span { page, start, len } = part.span;
            out.number(page);
            out.number(start);
            out.number(len);
        });
        for ciphertext in &page.ciphertexts {
            self.0.extend_from_slice(&ciphertext.to_bytes(params));
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes(&mut self, length: usize) -> Result<&[u8], Error> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(Error::Request("truncated"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(Error::Request("truncated"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn end(&self) -> Result<(), Error> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Error::Request("too long"))
        }
    }

    fn number(&mut self) -> Result<usize, Error> {
        let n = u64::from_le_bytes(self.take()?);
        usize::try_from(n).map_err(|_| Error::Request("a number is too large"))
    }

    /// A list whose items take at least `least` bytes each.
    fn list<T>(
        &mut self,
        least: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let length = self.number()?;
        if length > self.0.len() / least {
            return Err(Error::Request("a list is longer than its bytes"));
        }
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn integer(&mut self) -> Result<i64, Error> {
        Ok(i64::from_le_bytes(self.take()?))
    }

    fn release(&mut self) -> Result<ReleaseRequest, Error> {
        let number = u32::from_le_bytes(self.take()?);
        let variance_units = u64::from_le_bytes(self.take()?);
        let [tag] = self.take()?;
        let statistic = match tag {
            tag if tag == Tag::Total as u8 => Statistic::Total,
            tag if tag == Tag::OneWay as u8 => Statistic::OneWay(self.axis()?),
            tag if tag == Tag::Product as u8 => Statistic::Product(self.axis()?, self.axis()?),
            tag if tag == Tag::SquaredScores as u8 => {
                // A clique's and a target's length, and the weight.
                Statistic::SquaredScores(self.list(3 * 8, Self::term)?)
            }
            _ => return Err(Error::Request("unknown statistic")),
        };
        Ok(ReleaseRequest {
            number,
            statistic,
            variance_units,
        })
    }

    fn axis(&mut self) -> Result<Axis, Error> {
        Ok(Axis {
            attribute: self.number()?,
            functions: self.list(8, |input| input.list(8, Self::integer))?,
        })
    }

    fn term(&mut self) -> Result<SquaredTerm, Error> {
        let attributes = self.list(8, Self::number)?;
        if attributes.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Error::Request("a clique's attributes do not ascend"));
        }
        Ok(SquaredTerm {
            clique: Clique::new(attributes),
            weight: self.integer()?,
            target: self.list(8, Self::integer)?,
        })
    }

    fn page(&mut self, params: &Parameters) -> Result<SealedPage, Error> {
        let variance_units = u64::from_le_bytes(self.take()?);
        let parts = self.list(PART_BYTES, |input| {
            Ok(Part {
                number: u32::from_le_bytes(input.take()?),
                span: Span {
                    page: input.number()?,
                    start: input.number()?,
                    len: input.number()?,
                },
            })
        })?;
        let ciphertexts = (0..params.residues())
            .map(|_| {
                let bytes = self.bytes(params.set().ciphertext_bytes())?;
                Ok(Ciphertext::from_bytes(params, bytes)?)
            })
            .collect::<Result<_, Error>>()?;
        Ok(SealedPage {
            ciphertexts,
            variance_units,
            parts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_he::{P1, P2, SecretKey};
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
        let part = |number, start, len| Part {
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
        for set in [P1, P2] {
            let params = Parameters::new(set).unwrap();
            let request = request(&params, &mut rng);
            let bytes = request.to_bytes(&params);
            let decoded = DecryptRequest::from_bytes(&params, &bytes).unwrap();
            assert_eq!(decoded, request);
            assert_eq!(decoded.to_bytes(&params), bytes);
        }
    }

    #[test]
    fn damage_is_refused() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let params = Parameters::new(P1).unwrap();
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
        let other = Parameters::new(P2).unwrap();
        assert!(DecryptRequest::from_bytes(&other, &bytes).is_err());
    }

    /// Bytes damaged and sealed again: what an attacker who knows the format can send.
    #[test]
    fn forged_lengths_and_tags_neither_panic_nor_allocate() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let params = Parameters::new(P1).unwrap();
        let bytes = request(&params, &mut rng).to_bytes(&params);
        let body = &bytes[..bytes.len() - DIGEST];
        let sealed = |body: &[u8]| [body, &Sha256::digest(body)].concat();
        let header = 6 + 2 + 2 * 16;
        // The releases lie in the first kilobyte: their lengths are eight bytes each.
        for at in header..header + 900 {
            let mut forged = body.to_vec();
            forged[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            if let Ok(request) = DecryptRequest::from_bytes(&params, &sealed(&forged)) {
                assert_eq!(request.to_bytes(&params), sealed(&forged), "at {at}");
            }
        }
        for length in (0..1500).chain([body.len() - 1]) {
            assert!(DecryptRequest::from_bytes(&params, &sealed(&body[..length])).is_err());
        }
        let longer = [body, &[0]].concat();
        assert!(DecryptRequest::from_bytes(&params, &sealed(&longer)).is_err());
    }
}
