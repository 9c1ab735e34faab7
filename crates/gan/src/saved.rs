//! Trained networks as bytes.
//!
//! `FHAIMGAN`, a version (1), then integers of 32 bits and numbers of single precision, both little-endian: the shape
//! (1, rows, columns for images; 2, how many attributes, their sizes for codes), how many pairs of networks there are,
//! and of each how many records it stands for, then its generator and its discriminator: how many widths, the widths,
//! the parameters. Nothing follows. A file is read back to the same bytes.

use rand::Rng;

use crate::Error;
use crate::examples::{Examples, Shape};
use crate::gan::Gan;
use crate::network::{MAX_PARAMETERS, MAX_WIDTH, Network};

const MAGIC: &[u8; 8] = b"FHAIMGAN";
const VERSION: u32 = 1;

/// The most pairs of networks in a file, layers of a network, and attributes of a table.
pub const MAX_PAIRS: usize = 10_000;
const MAX_LAYERS: usize = 64;
const MAX_ATTRIBUTES: usize = 10_000;

/// Pairs of networks, each with how many records it stands for: one after federated training, one for each party where
/// they trained alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    gans: Vec<Gan>,
    records: Vec<u32>,
}

impl Model {
    /// Networks of one shape, each with how many records it stands for; these numbers are public from here on.
    ///
    /// # Errors
    /// [`Error::Shape`] for none, more than [`MAX_PAIRS`], several shapes, or not a number above 0 for each.
    pub fn new(gans: Vec<Gan>, records: Vec<u32>) -> Result<Self, Error> {
        let alike = gans
            .first()
            .is_some_and(|first| gans.iter().all(|g| g.shape() == first.shape()));
        let numbered = gans.len() == records.len() && !records.contains(&0);
        if alike && numbered && gans.len() <= MAX_PAIRS {
            Ok(Self { gans, records })
        } else {
            let problem = format!(
                "a model has from 1 to {MAX_PAIRS} pairs of networks of one shape, each of some records"
            );
            Err(Error::Shape(problem))
        }
    }

    /// The pairs of networks.
    pub fn gans(&self) -> &[Gan] {
        &self.gans
    }

    /// What a record is.
    pub fn shape(&self) -> &Shape {
        // There is one.
        self.gans[0].shape()
    }

    /// Draws records, of each generator in proportion to what it stands for.
    ///
    /// # Errors
    /// [`Error::Shape`] for no records.
    pub fn sample<R: Rng + ?Sized>(&self, records: usize, rng: &mut R) -> Result<Examples, Error> {
        let all: u64 = self.records.iter().copied().map(u64::from).sum();
        let (mut stood, mut drawn) = (0u64, 0usize);
        let mut sample: Option<Examples> = None;
        for (gan, &of) in self.gans.iter().zip(&self.records) {
            stood += u64::from(of);
            // Numbers of records are below 2^64 together, and products fit 128 bits.
            let until = (records as u128 * u128::from(stood) / u128::from(all)) as usize;
            if until > drawn {
                let more = gan.generator().sample(until - drawn, rng)?;
                sample = Some(match sample {
                    Some(before) => before.join(&more)?,
                    None => more,
                });
                drawn = until;
            }
        }
        sample.ok_or_else(|| Error::Shape("no records were asked for".to_owned()))
    }

    /// The bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut number = |value: usize| bytes.extend((value as u32).to_le_bytes());
        number(VERSION as usize);
        match self.shape() {
            Shape::Image { rows, columns } => {
                [1, *rows, *columns].into_iter().for_each(&mut number);
            }
            Shape::Codes(sizes) => [2, sizes.len()]
                .iter()
                .chain(sizes)
                .copied()
                .for_each(&mut number),
        }
        number(self.gans.len());
        for (gan, &records) in self.gans.iter().zip(&self.records) {
            bytes.extend(records.to_le_bytes());
            for network in [&gan.generator().network, &gan.discriminator] {
                let widths = network.widths();
                bytes.extend((widths.len() as u32).to_le_bytes());
                bytes.extend(widths.iter().flat_map(|&w| (w as u32).to_le_bytes()));
                bytes.extend(network.parameters().iter().flat_map(|p| p.to_le_bytes()));
            }
        }
        bytes
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Saved`] or [`Error::Shape`] for anything that [`Model::to_bytes`] does not write.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err(Error::Saved("it begins otherwise"));
        };
        let mut reader = Reader(rest);
        if reader.number()? != VERSION as usize {
            return Err(Error::Saved(
                "it is of a version that this program does not know",
            ));
        }
        let shape = reader.shape()?;
        let pairs = reader.up_to(MAX_PAIRS)?;
        let (mut gans, mut records) = (Vec::new(), Vec::new());
        for _ in 0..pairs {
            records.push(reader.number()? as u32);
            let (generator, discriminator) = (reader.network()?, reader.network()?);
            gans.push(Gan::new(shape.clone(), generator, discriminator)?);
        }
        if !reader.0.is_empty() {
            return Err(Error::Saved("bytes follow its end"));
        }
        Self::new(gans, records)
    }
}

/// What is left to be read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Result<usize, Error> {
        let (first, rest) = self
            .0
            .split_first_chunk()
            .ok_or(Error::Saved("it ends too early"))?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*first) as usize)
    }

    fn up_to(&mut self, most: usize) -> Result<usize, Error> {
        match self.number()? {
            number if (1..=most).contains(&number) => Ok(number),
            _ => Err(Error::Saved("a number is out of its range")),
        }
    }

    fn shape(&mut self) -> Result<Shape, Error> {
        match self.number()? {
            1 => {
                let (rows, columns) = (self.up_to(MAX_WIDTH)?, self.up_to(MAX_WIDTH)?);
                Ok(Shape::Image { rows, columns })
            }
            2 => {
                let attributes = self.up_to(MAX_ATTRIBUTES)?;
                let sizes = (0..attributes).map(|_| self.up_to(MAX_WIDTH));
                Ok(Shape::Codes(sizes.collect::<Result<_, _>>()?))
            }
            _ => Err(Error::Saved("its records are of no known kind")),
        }
    }

    fn network(&mut self) -> Result<Network, Error> {
        let layers = self.up_to(MAX_LAYERS)?;
        let widths = (0..layers)
            .map(|_| self.up_to(MAX_WIDTH))
            .collect::<Result<Vec<_>, _>>()?;
        // Widths are at most 2^16, and there are at most 64.
        let count: usize = widths.windows(2).map(|w| (w[0] + 1) * w[1]).sum();
        if count > MAX_PARAMETERS {
            return Err(Error::Saved("a network is too large"));
        }
        let (values, rest) = self
            .0
            .split_at_checked(4 * count)
            .ok_or(Error::Saved("it ends too early"))?;
        self.0 = rest;
        let values = values
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        Network::new(widths, values.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Training;
    use rand::{SeedableRng, rngs::StdRng};

    fn model(shape: &Shape) -> Model {
        let training = Training {
            noise: 2,
            hidden: vec![3],
            ..Training::default()
        };
        let gan = |seed| Gan::random(shape, &training, &mut StdRng::seed_from_u64(seed)).unwrap();
        Model::new(vec![gan(1), gan(2)], vec![30, 10]).unwrap()
    }

    #[test]
    fn files_come_back_and_broken_ones_are_refused() {
        for shape in [
            Shape::Image {
                rows: 2,
                columns: 3,
            },
            Shape::Codes(vec![2, 3]),
        ] {
            let model = model(&shape);
            let bytes = model.to_bytes();
            let read = Model::from_bytes(&bytes).unwrap();
            assert!(read == model && read.to_bytes() == bytes);
            for end in 0..bytes.len() {
                assert!(Model::from_bytes(&bytes[..end]).is_err(), "{end} bytes");
            }
            assert!(Model::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
            // Whatever a byte is changed to is read to those bytes, or refused.
            for place in 0..bytes.len().min(200) {
                for flip in [1, 0x80, 0xff] {
                    let mut changed = bytes.clone();
                    changed[place] ^= flip;
                    if let Ok(read) = Model::from_bytes(&changed) {
                        assert_eq!(read.to_bytes(), changed, "byte {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn generators_draw_what_they_stand_for() {
        let model = model(&Shape::Image {
            rows: 2,
            columns: 3,
        });
        let drawn = model.sample(100, &mut StdRng::seed_from_u64(1)).unwrap();
        assert_eq!(drawn.len(), 100);
        let alone = model.gans()[0]
            .generator()
            .sample(75, &mut StdRng::seed_from_u64(1))
            .unwrap();
        assert_eq!(drawn.values().row(74), alone.values().row(74));
        assert!(model.sample(0, &mut StdRng::seed_from_u64(1)).is_err());
        assert!(Model::new(vec![], vec![]).is_err());
        assert!(Model::new(model.gans().to_vec(), vec![1, 0]).is_err());
    }
}
