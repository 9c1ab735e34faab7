//! Records as rows of numbers: images as pixels from -1 to 1, tables as one-hot codes. Converts in both directions.

use fhaim_domain::{CodesProblem, Domain, Schema, Table};
use fhaim_mix::idx::Images;
use rand::Rng;

use crate::Error;
use crate::matrix::Matrix;
use crate::network::MAX_VALUES;

/// Temperature of the softmax that makes a generator's outputs nearly one-hot (Jang, Gu and Poole 2017).
const TEMPERATURE: f32 = 0.2;

/// The shape of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An image with one byte per pixel.
    Image {
        /// Number of rows.
        rows: usize,
        /// Number of pixels of a row.
        columns: usize,
    },
    /// A code of each attribute, given by the number of values of each attribute.
    Codes(Vec<usize>),
}

impl Shape {
    /// Number of values of a record.
    pub fn width(&self) -> usize {
        match self {
            Self::Image { rows, columns } => rows.saturating_mul(*columns),
            Self::Codes(sizes) => sizes.iter().copied().fold(0, usize::saturating_add),
        }
    }

    /// Returns the largest number of records that may be in memory: [`MAX_VALUES`] values in total.
    pub fn most_records(&self) -> usize {
        MAX_VALUES / self.width().max(1)
    }

    /// Rejects more records than may be in memory.
    pub(crate) fn check_records(&self, records: usize) -> Result<(), Error> {
        match self.most_records() {
            most if records > most => Err(Error::setting(
                "records",
                format!(
                    "at most {most} records of {} values can be drawn at once",
                    self.width()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Number of values of a condition, which is the value of one attribute; 0 for images.
    pub(crate) fn conditions(&self) -> usize {
        match self {
            Self::Image { .. } => 0,
            Self::Codes(_) => self.width(),
        }
    }

    /// Converts a generator's outputs to records: pixels with tanh, codes with a softmax and Gumbel noise.
    pub(crate) fn shape<R: Rng + ?Sized>(&self, mut outputs: Matrix, rng: &mut R) -> Matrix {
        match self {
            Self::Image { .. } => outputs.values_mut().iter_mut().for_each(|x| *x = x.tanh()),
            Self::Codes(sizes) => {
                for row in 0..outputs.rows() {
                    for block in blocks(outputs.row_mut(row), sizes) {
                        block
                            .iter_mut()
                            .for_each(|x| *x = (*x + gumbel(rng)) / TEMPERATURE);
                        softmax(block);
                    }
                }
            }
        }
        outputs
    }

    /// Returns the derivatives by a generator's outputs, given those by the records that [`Shape::shape`] made from
    /// them.
    pub(crate) fn back(&self, records: &Matrix, mut delta: Matrix) -> Matrix {
        match self {
            Self::Image { .. } => {
                let both = delta.values_mut().iter_mut().zip(records.values());
                both.for_each(|(d, y)| *d *= 1.0 - y * y);
            }
            Self::Codes(sizes) => {
                for row in 0..delta.rows() {
                    let mut made = records.row(row);
                    for block in blocks(delta.row_mut(row), sizes) {
                        // A record has as many values as derivatives.
                        let (shares, rest) = made.split_at(block.len());
                        made = rest;
                        let mean: f32 = block.iter().zip(shares).map(|(d, y)| d * y).sum();
                        let both = block.iter_mut().zip(shares);
                        both.for_each(|(d, y)| *d = y * (*d - mean) / TEMPERATURE);
                    }
                }
            }
        }
        delta
    }
}

/// Splits a row's values by attribute.
pub(crate) fn blocks<'a>(
    row: &'a mut [f32],
    sizes: &'a [usize],
) -> impl Iterator<Item = &'a mut [f32]> {
    let mut rest = row;
    sizes.iter().map_while(move |&size| {
        let (block, others) = std::mem::take(&mut rest).split_at_mut_checked(size)?;
        rest = others;
        Some(block)
    })
}

fn gumbel<R: Rng + ?Sized>(rng: &mut R) -> f32 {
    let uniform: f64 = rng.random();
    -(-uniform.max(f64::MIN_POSITIVE).ln())
        .max(f64::MIN_POSITIVE)
        .ln() as f32
}

pub(crate) fn softmax(values: &mut [f32]) {
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter_mut().for_each(|x| *x = (*x - largest).exp());
    let sum: f32 = values.iter().sum();
    values.iter_mut().for_each(|x| *x /= sum);
}

/// Returns the position of the largest value; the first one in case of a tie.
pub(crate) fn largest(values: &[f32]) -> usize {
    let best = values
        .iter()
        .enumerate()
        .fold((0, f32::NEG_INFINITY), |best, (k, &x)| {
            if x > best.1 { (k, x) } else { best }
        });
    best.0
}

/// Records of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Examples {
    shape: Shape,
    values: Matrix,
}

impl Examples {
    /// Converts images to pixels from -1 to 1.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are no images, or pixels do not fill whole images.
    pub fn from_images(images: &Images) -> Result<Self, Error> {
        let shape = Shape::Image {
            rows: images.rows,
            columns: images.columns,
        };
        let pixels = images
            .pixels
            .iter()
            .map(|&pixel| f32::from(pixel) / 127.5 - 1.0);
        let values = Matrix::new(images.len(), shape.width(), pixels.collect())?;
        Self::checked(shape, values)
    }

    /// Encodes the records of a table one-hot.
    ///
    /// # Errors
    /// [`Error::Shape`]; never for a valid table, which has records, and codes below their attributes' sizes.
    pub fn from_table(table: &Table) -> Result<Self, Error> {
        Self::from_codes(table.domain(), table.columns())
    }

    fn from_codes(domain: &Domain, columns: &[Vec<u32>]) -> Result<Self, Error> {
        let shape = Shape::Codes(domain.sizes().to_vec());
        let records = columns.first().map_or(0, Vec::len);
        let mut values = Matrix::zeros(records, shape.width());
        for record in 0..records {
            let mut offset = 0;
            for (column, size) in columns.iter().zip(domain.sizes()) {
                // A code is below its attribute's size.
                values.row_mut(record)[offset + column[record] as usize] = 1.0;
                offset += size;
            }
        }
        Self::checked(shape, values)
    }

    pub(crate) fn checked(shape: Shape, values: Matrix) -> Result<Self, Error> {
        if values.rows() == 0 || values.columns() == 0 || values.columns() != shape.width() {
            return Err(Error::Shape(format!(
                "cannot use {} records of {} values: at least one record is needed, and each must have {} values",
                values.rows(),
                values.columns(),
                shape.width()
            )));
        }
        Ok(Self { shape, values })
    }

    /// Returns the shape of a record.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the values, one row per record.
    pub fn values(&self) -> &Matrix {
        &self.values
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.values.rows()
    }

    /// Whether there are no records; never true.
    pub fn is_empty(&self) -> bool {
        self.values.rows() == 0
    }

    /// Returns the records with these numbers, in this order.
    ///
    /// # Errors
    /// [`Error::Shape`] if no record has one of the numbers.
    pub fn select(&self, numbers: &[usize]) -> Result<Self, Error> {
        Self::checked(self.shape.clone(), self.values.select(numbers))
    }

    /// Appends records of the same shape.
    ///
    /// # Errors
    /// [`Error::Shape`] if the records have another shape.
    pub fn join(self, other: &Self) -> Result<Self, Error> {
        if self.shape != other.shape {
            return Err(Error::Shape(
                "cannot join records of different shapes".to_owned(),
            ));
        }
        Ok(Self {
            values: self.values.above(&other.values),
            ..self
        })
    }

    /// Converts to images; `None` if the records are codes.
    pub fn images(&self) -> Option<Images> {
        let Shape::Image { rows, columns } = self.shape else {
            return None;
        };
        let pixel = |&x: &f32| ((x + 1.0) * 127.5).round().clamp(0.0, 255.0) as u8;
        Some(Images {
            rows,
            columns,
            pixels: self.values.values().iter().map(pixel).collect(),
        })
    }

    /// Converts to a table of a schema, taking the largest value of each attribute; `None` if the records are images.
    ///
    /// # Errors
    /// [`CodesProblem`] if the schema has other attributes.
    pub fn table(&self, schema: Schema) -> Result<Option<Table>, CodesProblem> {
        let Shape::Codes(sizes) = &self.shape else {
            return Ok(None);
        };
        let mut columns = vec![Vec::with_capacity(self.len()); sizes.len()];
        for record in 0..self.len() {
            let mut rest = self.values.row(record);
            for (column, &size) in columns.iter_mut().zip(sizes) {
                let (block, others) = rest.split_at(size.min(rest.len()));
                rest = others;
                column.push(largest(block) as u32);
            }
        }
        Table::new(schema, columns).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::rows;
    use rand::{SeedableRng, rngs::StdRng};

    #[test]
    fn images_and_tables_round_trip() {
        let images = Images {
            rows: 2,
            columns: 3,
            pixels: (0..=255).chain(0..2).collect(),
        };
        let examples = Examples::from_images(&images).unwrap();
        assert_eq!(examples.images().unwrap(), images);
        let json = r#"{"name":"t","columns":[
            {"name":"a","kind":"categorical","categories":["x","y","z"]},
            {"name":"b","kind":"categorical","categories":["p","q"]}]}"#;
        let schema = Schema::from_json("t", json.as_bytes()).unwrap();
        let table = Table::new(schema.clone(), vec![vec![0, 2, 1], vec![1, 0, 1]]).unwrap();
        let examples = Examples::from_table(&table).unwrap();
        assert_eq!(examples.values().row(1), [0.0, 0.0, 1.0, 1.0, 0.0]);
        assert_eq!(examples.table(schema).unwrap(), Some(table));
        assert!(matches!(examples.select(&[7]), Err(Error::Shape(_))));
        assert!(examples.images().is_none());
    }

    /// Compares derivatives through the conversion to records with differences, with the same noise.
    #[test]
    fn derivatives_through_shapes_equal_differences() {
        let codes = Shape::Codes(vec![3, 4]);
        let image = Shape::Image {
            rows: 1,
            columns: 7,
        };
        for shape in [codes, image] {
            let (outputs, weights) = (rows(2, 7, 4), rows(2, 7, 5));
            let loss = |outputs: Matrix| {
                let made = shape.shape(outputs, &mut StdRng::seed_from_u64(9));
                crate::matrix::dot(made.values(), weights.values())
            };
            let made = shape.shape(outputs.clone(), &mut StdRng::seed_from_u64(9));
            let back = shape.back(&made, weights.clone());
            for number in 0..outputs.values().len() {
                let moved = |by: f32| {
                    let mut moved = outputs.clone();
                    moved.values_mut()[number] += by;
                    loss(moved)
                };
                let expected = (moved(1e-3) - moved(-1e-3)) / 2e-3;
                let found = f64::from(back.values()[number]);
                assert!(
                    (found - expected).abs() < 2e-2,
                    "{shape:?} {number}: {found} {expected}"
                );
            }
        }
    }

    /// The largest of the outputs with Gumbel noise is distributed as their softmax.
    #[test]
    fn codes_are_drawn_with_softmax_probabilities() {
        let shape = Shape::Codes(vec![3]);
        let outputs = Matrix::new(20_000, 3, [0.0, 1.0, -1.0].repeat(20_000)).unwrap();
        let made = shape.shape(outputs, &mut StdRng::seed_from_u64(2));
        let mut counts = [0.0; 3];
        (0..20_000).for_each(|row| counts[largest(made.row(row))] += 1.0 / 20_000.0);
        let mut expected = [0.0f32, 1.0, -1.0];
        softmax(&mut expected);
        for (found, expected) in counts.iter().zip(expected) {
            assert!((found - f64::from(expected)).abs() < 0.02, "{counts:?}");
        }
    }
}
