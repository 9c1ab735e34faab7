//! File format of trained networks.
//!
//! A file starts with `FHAIMGAN` and a version. Integers have 32 bits and parameters are in single precision, both
//! little-endian. Then follow:
//!
//! 1. The shape: 1, rows, columns for images; 2, the number of attributes, and their sizes for codes.
//! 2. The number of pairs of networks.
//! 3. For each pair, the number of records that it represents, its generator and its discriminator.
//!
//! A network consists of its number of layers, the layers, and the parameters. A layer starts with its kind: 1 for a
//! dense layer (inputs, outputs), 2 for a convolution and 3 for a transposed convolution (rows, columns, channels,
//! side, stride, padding, filters). Reading and writing a file gives the same bytes.

use rand::Rng;

use crate::Error;
use crate::examples::{Examples, Shape};
use crate::gan::Gan;
use crate::layer::Layer;
use crate::network::{MAX_WIDTH, Network, parameter_count};
use crate::window::Window;

const MAGIC: &[u8; 8] = b"FHAIMGAN";
/// Version of the file format.
const VERSION: usize = 1;

/// The largest number of pairs of networks in a file.
pub const MAX_PAIRS: usize = 10_000;
/// The largest number of layers of a network.
pub const MAX_LAYERS: usize = 64;
/// The largest number of attributes of a table.
const MAX_ATTRIBUTES: usize = 10_000;

/// Pairs of networks, each with the number of records that it represents. Federated training gives one pair; separate
/// training gives one pair per party.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    gans: Vec<Gan>,
    records: Vec<u32>,
}

impl Model {
    /// Combines networks of one shape, with the number of records that each pair represents. These numbers become
    /// public.
    ///
    /// # Errors
    /// [`Error::Shape`] for no pairs, more than [`MAX_PAIRS`], different shapes, or a missing or zero number of
    /// records.
    pub fn new(gans: Vec<Gan>, records: Vec<u32>) -> Result<Self, Error> {
        let alike = gans
            .first()
            .is_some_and(|first| gans.iter().all(|g| g.shape() == first.shape()));
        let numbered = gans.len() == records.len() && !records.contains(&0);
        if alike && numbered && gans.len() <= MAX_PAIRS {
            Ok(Self { gans, records })
        } else {
            let problem = format!(
                "a model needs from 1 to {MAX_PAIRS} pairs of networks of one shape, each with a number of records"
            );
            Err(Error::Shape(problem))
        }
    }

    /// Returns the pairs of networks.
    pub fn gans(&self) -> &[Gan] {
        &self.gans
    }

    /// Returns the shape of a record.
    pub fn shape(&self) -> &Shape {
        // `new` has checked that there is at least one pair.
        self.gans[0].shape()
    }

    /// Generates records, from each generator in proportion to the records that it represents.
    ///
    /// # Errors
    /// [`Error::Shape`] for zero records, and if large weights make values that are not finite;
    /// [`Error::Setting`] for more than [`Shape::most_records`].
    pub fn sample<R: Rng + ?Sized>(&self, records: usize, rng: &mut R) -> Result<Examples, Error> {
        self.shape().check_records(records)?;
        let all: u64 = self.records.iter().copied().map(u64::from).sum();
        let (mut stood, mut drawn) = (0u64, 0usize);
        let mut sample: Option<Examples> = None;
        for (gan, &of) in self.gans.iter().zip(&self.records) {
            stood += u64::from(of);
            // The sum of the numbers of records is below 2^64, so products fit 128 bits.
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
        sample.ok_or_else(|| Error::Shape("the number of records must be at least 1".to_owned()))
    }

    /// Returns the model as the bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut number = |value: usize| bytes.extend((value as u32).to_le_bytes());
        number(VERSION);
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
                let layout = layout(network);
                bytes.extend(layout.iter().flat_map(|&n| (n as u32).to_le_bytes()));
                bytes.extend(network.parameters().iter().flat_map(|p| p.to_le_bytes()));
            }
        }
        bytes
    }

    /// Reads a model from the bytes of a file.
    ///
    /// # Errors
    /// [`Error::Saved`] or [`Error::Shape`] for bytes that [`Model::to_bytes`] does not write.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err(Error::Saved("it does not begin with FHAIMGAN"));
        };
        let mut reader = Reader(rest);
        if reader.number()? != VERSION {
            return Err(Error::Saved("its version is not supported by this program"));
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
            return Err(Error::Saved("there are bytes after its end"));
        }
        Self::new(gans, records)
    }
}

/// Returns the integers that describe a network's layers in a file.
fn layout(network: &Network) -> Vec<usize> {
    let layers = network.layers();
    let numbers = |layer: &Layer| match *layer {
        Layer::Dense { inputs, outputs } => vec![1, inputs, outputs],
        Layer::Convolution { window, filters } => windowed(2, window, filters),
        Layer::Transposed { window, filters } => windowed(3, window, filters),
    };
    [
        vec![layers.len()],
        layers.iter().flat_map(numbers).collect(),
    ]
    .concat()
}

fn windowed(kind: usize, window: Window, filters: usize) -> Vec<usize> {
    let Window {
        rows,
        columns,
        channels,
        side,
        stride,
        padding,
    } = window;
    vec![
        kind, rows, columns, channels, side, stride, padding, filters,
    ]
}

/// The bytes that are still to be read.
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
            _ => Err(Error::Saved("a number is out of range")),
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
            _ => Err(Error::Saved("its kind of records is unknown")),
        }
    }

    fn network(&mut self) -> Result<Network, Error> {
        let count = self.up_to(MAX_LAYERS)?;
        let layers = (0..count).map(|_| self.layer());
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        // There are at most 2^26 parameters, so this cannot overflow.
        let count = parameter_count(&layers)?;
        let (values, rest) = self
            .0
            .split_at_checked(4 * count)
            .ok_or(Error::Saved("it ends too early"))?;
        self.0 = rest;
        let values = values
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        Network::new(layers, values.collect())
    }

    fn layer(&mut self) -> Result<Layer, Error> {
        let kind = self.number()?;
        if kind == 1 {
            return Ok(Layer::Dense {
                inputs: self.up_to(MAX_WIDTH)?,
                outputs: self.up_to(MAX_WIDTH)?,
            });
        }
        let window = Window {
            rows: self.up_to(MAX_WIDTH)?,
            columns: self.up_to(MAX_WIDTH)?,
            channels: self.up_to(MAX_WIDTH)?,
            side: self.up_to(MAX_WIDTH)?,
            stride: self.up_to(MAX_WIDTH)?,
            padding: self.number()?,
        };
        let filters = self.up_to(MAX_WIDTH)?;
        match kind {
            2 => Ok(Layer::Convolution { window, filters }),
            3 => Ok(Layer::Transposed { window, filters }),
            _ => Err(Error::Saved("the kind of a layer is unknown")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hidden, Training};
    use rand::{SeedableRng, rngs::StdRng};

    fn model(shape: &Shape, hidden: Hidden) -> Model {
        let training = Training {
            noise: 2,
            hidden,
            ..Training::default()
        };
        let gan = |seed| Gan::random(shape, &training, &mut StdRng::seed_from_u64(seed)).unwrap();
        Model::new(vec![gan(1), gan(2)], vec![30, 10]).unwrap()
    }

    #[test]
    fn model_files_round_trip_and_malformed_ones_are_rejected() {
        let image = |rows, columns| Shape::Image { rows, columns };
        let dense = || Hidden::Dense(vec![3]);
        for (shape, hidden) in [
            (image(2, 3), dense()),
            (Shape::Codes(vec![2, 3]), dense()),
            (image(4, 2), Hidden::Convolutions(vec![3])),
        ] {
            let model = model(&shape, hidden);
            let bytes = model.to_bytes();
            for version in [0, 2, 255] {
                let mut other = bytes.clone();
                other[8] = version;
                let refused = Model::from_bytes(&other);
                assert!(matches!(refused, Err(Error::Saved(reason)) if reason.contains("version")));
            }
            let read = Model::from_bytes(&bytes).unwrap();
            assert!(read == model && read.to_bytes() == bytes);
            for end in 0..bytes.len() {
                assert!(
                    matches!(Model::from_bytes(&bytes[..end]), Err(Error::Saved(..))),
                    "{end} bytes"
                );
            }
            assert!(matches!(
                Model::from_bytes(&[&bytes[..], &[0]].concat()),
                Err(Error::Saved(..))
            ));
            // After changing a byte, the file is rejected or read as a model that is written with that change.
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

    /// Checks the bytes of a file number by number.
    #[test]
    fn file_format_of_dense_networks_is_unchanged() {
        let numbers =
            |numbers: &[u32]| -> Vec<u8> { numbers.iter().flat_map(|n| n.to_le_bytes()).collect() };
        let parameters = |parameters: &[f32]| -> Vec<u8> {
            parameters.iter().flat_map(|p| p.to_le_bytes()).collect()
        };
        let bytes = [
            MAGIC.to_vec(),
            // Version 1; images of one pixel; one pair, of seven records.
            numbers(&[1, 1, 1, 1, 1, 7]),
            // A generator with two inputs and one output, and a discriminator with one of each.
            numbers(&[1, 1, 2, 1]),
            parameters(&[0.5, -1.0, 0.25]),
            numbers(&[1, 1, 1, 1]),
            parameters(&[2.0, 1.0]),
        ];
        let model = Model::from_bytes(&bytes.concat()).unwrap();
        assert_eq!(model.to_bytes(), bytes.concat());
        assert_eq!(model.records, [7]);
        let gan = &model.gans()[0];
        let layers = Layer::dense(&[2, 1]);
        assert_eq!(gan.generator().network.layers(), layers);
        let parameters = gan.generator().network.parameters();
        assert_eq!(parameters, [0.5, -1.0, 0.25]);
        assert_eq!(gan.discriminator.parameters(), [2.0, 1.0]);
    }

    #[test]
    fn generators_draw_in_proportion_to_their_records() {
        let shape = Shape::Image {
            rows: 2,
            columns: 3,
        };
        let model = model(&shape, Hidden::Dense(vec![3]));
        let drawn = model.sample(100, &mut StdRng::seed_from_u64(1)).unwrap();
        assert_eq!(drawn.len(), 100);
        let alone = model.gans()[0]
            .generator()
            .sample(75, &mut StdRng::seed_from_u64(1))
            .unwrap();
        assert_eq!(drawn.values().row(74), alone.values().row(74));
        assert!(matches!(
            model.sample(0, &mut StdRng::seed_from_u64(1)),
            Err(Error::Shape(..))
        ));
        assert!(matches!(Model::new(vec![], vec![]), Err(Error::Shape(..))));
        assert!(matches!(
            Model::new(model.gans().to_vec(), vec![1, 0]),
            Err(Error::Shape(..))
        ));
    }
}
