//! Records as rows of numbers: images as pixels from -1 to 1, tables as one-hot codes; and back.

use fhaim_domain::{CodesProblem, Domain, Schema, Table};
use fhaim_mix::idx::Images;
use rand::Rng;

use crate::Error;
use crate::matrix::Matrix;
use crate::network::MAX_VALUES;

/// Temperature of the softmax by which a generator's outputs become nearly one-hot (Jang, Gu and Poole 2017).
const TEMPERATURE: f32 = 0.2;

/// What a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An image, a byte a pixel.
    Image {
        /// Its rows.
        rows: usize,
        /// Pixels of a row.
        columns: usize,
    },
    /// A code of each attribute: how many values each has.
    Codes(Vec<usize>),
}

impl Shape {
    /// Numbers of a record.
    pub fn width(&self) -> usize {
        match self {
            Self::Image { rows, columns } => rows.saturating_mul(*columns),
            Self::Codes(sizes) => sizes.iter().copied().fold(0, usize::saturating_add),
        }
    }

    /// As many records as may be in memory: of [`MAX_VALUES`] numbers together.
    pub fn most_records(&self) -> usize {
        MAX_VALUES / self.width().max(1)
    }

    /// Refuses more records than may be in memory.
    pub(crate) fn check_records(&self, records: usize) -> Result<(), Error> {
        match self.most_records() {
            most if records > most => Err(Error::setting(
                "records",
                format!("at most {most} of {} numbers each are drawn", self.width()),
            )),
            _ => Ok(()),
        }
    }

    /// Numbers of a condition, which is a value of one attribute; none for images.
    pub(crate) fn conditions(&self) -> usize {
        match self {
            Self::Image { .. } => 0,
            Self::Codes(_) => self.width(),
        }
    }

    /// From a generator's outputs to records: pixels by the hyperbolic tangent, values by softmaxes with Gumbel noise.
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

    /// Derivatives by a generator's outputs, given those by the records that [`Shape::shape`] made of them.
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
                        // A record is as long as its derivatives.
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

/// A row's numbers, by attribute.
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

/// The largest value's place; the first of several.
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
    /// Images, pixels from -1 to 1.
    ///
    /// # Errors
    /// [`Error::Shape`] for no image, or pixels that are no whole images.
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

    /// One-hot codes of a table.
    ///
    /// # Errors
    /// [`Error::Shape`] never for a table that there is: it has records, and codes below their attributes' sizes.
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
                "{} records of {} numbers: there must be a record, of {}",
                values.rows(),
                values.columns(),
                shape.width()
            )));
        }
        Ok(Self { shape, values })
    }

    /// What a record is.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// A row of numbers for each record.
    pub fn values(&self) -> &Matrix {
        &self.values
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.values.rows()
    }

    /// Whether there is none: never.
    pub fn is_empty(&self) -> bool {
        self.values.rows() == 0
    }

    /// The records at some places, in that order.
    ///
    /// # Errors
    /// [`Error::Shape`] where none of them is there.
    pub fn select(&self, numbers: &[usize]) -> Result<Self, Error> {
        Self::checked(self.shape.clone(), self.values.select(numbers))
    }

    /// Records of the same shape, one list after the other.
    ///
    /// # Errors
    /// [`Error::Shape`] for records of another shape.
    pub fn join(self, other: &Self) -> Result<Self, Error> {
        if self.shape != other.shape {
            return Err(Error::Shape(
                "records of two shapes cannot be joined".to_owned(),
            ));
        }
        Ok(Self {
            values: self.values.above(&other.values),
            ..self
        })
    }

    /// As images, if they are.
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

    /// As codes of a schema's table, if they are: of each attribute the value that is nearest to one.
    ///
    /// # Errors
    /// A schema of other attributes.
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
    fn images_and_tables_come_back() {
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

    /// Derivatives through what makes records of outputs, against differences, with the same noise.
    #[test]
    fn shapes_pass_derivatives_back() {
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

    /// The largest of outputs with Gumbel noise follows their softmax.
    #[test]
    fn values_are_drawn_by_their_shares() {
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
