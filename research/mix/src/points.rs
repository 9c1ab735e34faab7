//! Records as integer vectors of bounded norm, each with its class.

use fhaim_domain::{Domain, Table};
use rand::{Rng, seq::SliceRandom};

use crate::Error;
use crate::idx::Images;

/// Number of units in a norm of 1 for features that are not counts: 2^12.
pub const UNIT: i64 = 1 << 12;

/// Number of units in a value of 1 of a table's record: 2^8. Noise variances are multiples of 4, in squared units. If
/// values were counted in units of 1, a budget above an eighth of the number of attributes could not be spent, and a
/// smaller one only in coarse steps.
pub const TABLE_UNIT: i64 = 1 << 8;

/// The largest number of classes of images: a label is a byte.
pub const MAX_CLASSES: usize = 1 << 8;

/// The largest number of features of a record: an image of 1024 by 1024 pixels, and one more.
pub const MAX_WIDTH: usize = (1 << 20) + 1;

/// Public constants that standardise pixels, which are from 0 to 1. They must not be computed from the records: that
/// would be a separate release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standard {
    /// The constant that is subtracted from each pixel.
    pub mean: f64,
    /// The constant that the difference is divided by.
    pub deviation: f64,
}

impl Standard {
    /// The usual constants for MNIST.
    pub const MNIST: Self = Self {
        mean: 0.1307,
        deviation: 0.3081,
    };
}

/// Records as integer vectors, with their classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    width: usize,
    classes: usize,
    /// The values of all records, in order.
    values: Vec<i32>,
    labels: Vec<u32>,
    /// The largest squared L2 norm of a record.
    added_squared: u128,
    /// The largest squared L2 distance between two records.
    replaced_squared: u128,
    /// Number of leading features that describe a record, and do not only count it.
    features: usize,
    /// Columns whose sum over a record is always `size_unit`. They show how many records a sum has.
    size_columns: std::ops::Range<usize>,
    size_unit: i64,
    /// Integer value of a feature of 1.
    unit: i64,
}

impl Points {
    /// Encodes the records of a table one-hot, in units of 1/[`TABLE_UNIT`]. The features are all attributes except the
    /// target, which is the class. A record's squared norm is the number of attributes, and that of the difference of
    /// two records is at most twice that.
    ///
    /// # Errors
    /// [`Error::NoTarget`] and [`Error::TargetAlone`] for unsuitable schemas; [`Error::Shape`] for more than
    /// [`MAX_WIDTH`] values.
    pub fn from_table(table: &Table) -> Result<Self, Error> {
        let target = table.schema().target().ok_or(Error::NoTarget)?;
        let domain = table.domain();
        let offsets = offsets(domain, target);
        let width: usize = offsets.iter().map(|&(a, _)| domain.size(a)).sum();
        if offsets.is_empty() {
            return Err(Error::TargetAlone);
        }
        let smallest = offsets.iter().min_by_key(|&&(a, _)| (domain.size(a), a));
        let Some(&(smallest, first)) = smallest.filter(|_| width <= MAX_WIDTH) else {
            return Err(Error::Shape(format!(
                "the columns except the target have {width} values; the most is {MAX_WIDTH}"
            )));
        };
        let mut values = vec![0; table.records() * width];
        for &(attribute, offset) in &offsets {
            for (record, &code) in values.chunks_exact_mut(width).zip(table.column(attribute)) {
                // A code is below its attribute's size.
                record[offset + code as usize] = TABLE_UNIT as i32;
            }
        }
        let added = offsets.len() as u128 * u128::from(TABLE_UNIT.unsigned_abs()).pow(2);
        Ok(Self {
            width,
            classes: domain.size(target),
            values,
            labels: table.column(target).to_vec(),
            added_squared: added,
            replaced_squared: 2 * added,
            features: width,
            size_columns: first..first + domain.size(smallest),
            size_unit: TABLE_UNIT,
            unit: TABLE_UNIT,
        })
    }

    /// Standardises images and scales them down to a norm of at most 1, in units of 1/[`UNIT`]. If `sized` is set,
    /// every image gets an additional feature of one quarter, from which the number of images in a sum can be
    /// estimated.
    ///
    /// # Errors
    /// [`Error::Setting`] for more than [`MAX_CLASSES`] classes; [`Error::Shape`] if there are no images, if they are
    /// too large, if the labels differ from them in number, or if a label is not below `classes`.
    pub fn from_images(
        images: &Images,
        labels: &[u8],
        classes: usize,
        standard: Standard,
        sized: bool,
    ) -> Result<Self, Error> {
        if !(1..=MAX_CLASSES).contains(&classes) {
            return Err(Error::Setting {
                what: "classes",
                problem: format!("{classes} is not between 1 and {MAX_CLASSES}"),
            });
        }
        let pixels = images.rows * images.columns;
        let width = pixels + usize::from(sized);
        if images.is_empty() || images.len() != labels.len() || width > MAX_WIDTH {
            return Err(Error::Shape(format!(
                "{} images of {pixels} pixels and {} labels: at least one image is needed, of at most {} pixels, and \
                 one label per image",
                images.len(),
                labels.len(),
                MAX_WIDTH - 1
            )));
        }
        let labelled = || labels.iter().enumerate();
        if let Some((image, label)) = labelled().find(|&(_, &l)| usize::from(l) >= classes) {
            return Err(Error::Shape(format!(
                "image {image} has label {label}, and labels of {classes} classes start at 0: raise the class count"
            )));
        }
        let presence = UNIT / 4;
        let mut values = Vec::with_capacity(images.len() * width);
        for image in images.pixels.chunks_exact(pixels) {
            values.extend(scaled(image, standard));
            if sized {
                values.push(presence as i32);
            }
        }
        // Apart from the pixels, all records are the same.
        let norm = u128::from(UNIT.unsigned_abs().pow(2));
        let of_size = u128::from(sized) * u128::from(presence.unsigned_abs().pow(2));
        Ok(Self {
            width,
            classes,
            values,
            labels: labels.iter().map(|&label| u32::from(label)).collect(),
            added_squared: norm + of_size,
            replaced_squared: 4 * norm,
            features: pixels,
            size_columns: pixels..width,
            size_unit: presence,
            unit: UNIT,
        })
    }

    /// Number of features of a record.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of classes, including classes without records.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Returns a record's features, or an empty slice if there is no record of that number.
    pub fn record(&self, number: usize) -> &[i32] {
        let start = number.saturating_mul(self.width);
        self.values.get(start..start + self.width).unwrap_or(&[])
    }

    /// Returns the class of each record.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Returns the numbers of the records of each class.
    pub fn by_class(&self) -> Vec<Vec<usize>> {
        let mut records = vec![Vec::new(); self.classes];
        for (number, &label) in self.labels.iter().enumerate() {
            // Labels are below the number of classes.
            records[label as usize].push(number);
        }
        records
    }

    /// Returns the squared L2 sensitivity of a sum to adding or removing a record: a bound.
    pub fn added_squared(&self) -> u128 {
        self.added_squared
    }

    /// Returns the squared L2 sensitivity of a sum to replacing a record: a bound.
    pub fn replaced_squared(&self) -> u128 {
        self.replaced_squared
    }

    /// Returns the integer value of a feature of 1.
    pub fn unit(&self) -> f64 {
        self.unit as f64
    }

    /// Number of features that describe a record, and do not only count it.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Returns the largest absolute value of a feature.
    pub fn largest(&self) -> u64 {
        self.unit.unsigned_abs()
    }

    /// Estimates the number of records in a noisy sum; `None` if sums do not show it.
    pub fn estimated_size(&self, sum: &[i64]) -> Option<f64> {
        let columns = sum.get(self.size_columns.clone())?;
        if columns.is_empty() {
            return None;
        }
        Some(columns.iter().sum::<i64>() as f64 / self.size_unit as f64)
    }

    /// Returns the records with the given numbers, in that order. Skips numbers that no record has.
    pub fn select(&self, numbers: &[usize]) -> Self {
        let known = || numbers.iter().filter(|&&number| number < self.len());
        Self {
            values: known().flat_map(|&n| self.record(n)).copied().collect(),
            labels: known()
                .filter_map(|&n| self.labels.get(n))
                .copied()
                .collect(),
            size_columns: self.size_columns.clone(),
            ..*self
        }
    }

    /// Deals the records among parties at random, each class evenly.
    ///
    /// # Errors
    /// [`Error::Setting`] for no parties, and for more parties than records.
    pub fn deal<R: Rng + ?Sized>(&self, parties: usize, rng: &mut R) -> Result<Vec<Self>, Error> {
        if parties == 0 || parties > self.len() {
            let records = self.len();
            return Err(Error::Setting {
                what: "parties",
                problem: format!("{parties} is not between 1 and the number of records, {records}"),
            });
        }
        let mut numbers = vec![Vec::new(); parties];
        for mut records in self.by_class() {
            records.shuffle(rng);
            for (place, record) in records.into_iter().enumerate() {
                numbers[place % parties].push(record);
            }
        }
        Ok(numbers.iter().map(|numbers| self.select(numbers)).collect())
    }
}

/// Returns the attributes except the target, each with the number of its first feature.
fn offsets(domain: &Domain, target: usize) -> Vec<(usize, usize)> {
    let mut next = 0;
    let attributes = (0..domain.len()).filter(|&a| a != target);
    attributes
        .map(|attribute| {
            let offset = next;
            next += domain.size(attribute);
            (attribute, offset)
        })
        .collect()
}

/// Returns an image as integers of a norm of at most [`UNIT`]. Values are rounded towards zero; if the rounding of
/// doubles still makes the vector too long, it is scaled down again.
fn scaled(image: &[u8], standard: Standard) -> Vec<i32> {
    let standardised: Vec<f64> = image
        .iter()
        .map(|&pixel| (f64::from(pixel) / 255.0 - standard.mean) / standard.deviation)
        .collect();
    let norm = standardised.iter().map(|x| x * x).sum::<f64>().sqrt();
    if !norm.is_finite() || norm == 0.0 {
        return vec![0; image.len()];
    }
    let mut factor = UNIT as f64 / norm.max(1.0);
    loop {
        let values: Vec<i32> = standardised.iter().map(|x| (x * factor) as i32).collect();
        let squared: i64 = values.iter().map(|&v| i64::from(v).pow(2)).sum();
        if squared <= UNIT * UNIT {
            return values;
        }
        factor *= 1.0 - 1e-6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Schema;
    use rand::{SeedableRng, rngs::StdRng};

    fn table() -> Table {
        let json = r#"{"name":"t","target":"c","columns":[
            {"name":"a","kind":"categorical","categories":["x","y","z"]},
            {"name":"c","kind":"categorical","categories":["no","yes"]},
            {"name":"b","kind":"categorical","categories":["p","q"]}]}"#;
        let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
        Table::new(schema, vec![vec![0, 2, 1], vec![0, 1, 1], vec![1, 0, 1]]).unwrap()
    }

    #[test]
    fn table_records_are_one_hot_and_show_sizes_of_sums() {
        let points = Points::from_table(&table()).unwrap();
        assert_eq!((points.width(), points.classes(), points.len()), (5, 2, 3));
        assert_eq!(points.record(1), [0, 0, 256, 256, 0]);
        assert_eq!(points.record(3), [0i32; 0]);
        assert_eq!(points.by_class(), [vec![0], vec![1, 2]]);
        assert_eq!(points.estimated_size(&[1, 1, 1, 256, 512]), Some(3.0));
        assert_eq!(points.select(&[2, 0]).labels(), [1, 0]);
    }

    /// Compares the sensitivities with a search over all possible records, and all pairs of them.
    #[test]
    fn table_sensitivities_are_tight_bounds() {
        let points = Points::from_table(&table()).unwrap();
        let schema = table().shared_schema();
        let all = (0..12u32).map(|n| [n % 3, n / 3 % 2, n / 6]);
        let columns = all
            .clone()
            .fold(vec![Vec::new(); 3], |mut columns, record| {
                for (column, code) in columns.iter_mut().zip(record) {
                    column.push(code);
                }
                columns
            });
        let every = Points::from_table(&Table::new(schema, columns).unwrap()).unwrap();
        let square = |values: &mut dyn Iterator<Item = i32>| -> u128 {
            values.map(|v| u128::from(v.unsigned_abs()).pow(2)).sum()
        };
        let added = (0..12)
            .map(|n| square(&mut every.record(n).iter().copied()))
            .max();
        assert_eq!(added, Some(points.added_squared()));
        let pairs = (0..12).flat_map(|n| (0..12).map(move |m| (n, m)));
        let moved = pairs.map(|(n, m)| {
            let both = every.record(n).iter().zip(every.record(m));
            square(&mut both.map(|(x, y)| x - y))
        });
        assert_eq!(moved.max(), Some(points.replaced_squared()));
    }

    #[test]
    fn image_norms_are_bounded_and_invalid_labels_are_rejected() {
        let mut rng = StdRng::seed_from_u64(4);
        let images = Images {
            rows: 7,
            columns: 5,
            pixels: (0..7 * 5 * 40).map(|_| rng.random()).collect(),
        };
        let labels = [1u8; 40];
        let points = Points::from_images(&images, &labels, 3, Standard::MNIST, true).unwrap();
        assert_eq!((points.width(), points.features()), (36, 35));
        for n in 0..40 {
            let record = points.record(n);
            let squared: u128 = record
                .iter()
                .map(|&v| u128::from(v.unsigned_abs()).pow(2))
                .sum();
            assert!(squared <= points.added_squared());
            // The scaling loses no more than rounding requires.
            assert!(squared as f64 > 0.95 * points.added_squared() as f64);
            let wide: Vec<i64> = record.iter().map(|&v| i64::from(v)).collect();
            assert_eq!(points.estimated_size(&wide), Some(1.0));
        }
        let refused = |labels: &[u8], classes| {
            Points::from_images(&images, labels, classes, Standard::MNIST, false).is_err()
        };
        assert!(refused(&labels, 1) && refused(&labels[1..], 3));
        assert!(refused(&labels, 257) && refused(&labels, usize::MAX) && !refused(&labels, 256));
    }

    #[test]
    fn deal_gives_each_record_to_one_party_and_splits_classes_evenly() {
        let images = Images {
            rows: 1,
            columns: 1,
            pixels: (0..100).collect(),
        };
        let labels: Vec<u8> = (0..100).map(|n| n % 4).collect();
        let points = Points::from_images(&images, &labels, 4, Standard::MNIST, false).unwrap();
        let parties = points.deal(5, &mut StdRng::seed_from_u64(0)).unwrap();
        let mut all: Vec<i32> = parties.iter().flat_map(|p| p.values.clone()).collect();
        let mut expected = points.values.clone();
        all.sort_unstable();
        expected.sort_unstable();
        assert_eq!(all, expected);
        for party in &parties {
            assert!(party.by_class().iter().all(|records| records.len() == 5));
        }
        for parties in [0, 101, usize::MAX] {
            assert!(matches!(
                points.deal(parties, &mut StdRng::seed_from_u64(0)),
                Err(Error::Setting { .. })
            ));
        }
    }
}
