//! Records as integer vectors of a bounded norm, each with its class.

use fhaim_domain::{Domain, Table};
use rand::{Rng, seq::SliceRandom};

use crate::Error;
use crate::idx::Images;

/// What a norm of 1 is counted in where features are no counts: 2^12.
pub const UNIT: i64 = 1 << 12;

/// What a value of a table's record is counted in: 2^8. Noise has a variance of at least 4, and of a multiple of that, in
/// these: with units of 1 a budget above an eighth of the attributes could not be spent, and one below in steps alone.
pub const TABLE_UNIT: i64 = 1 << 8;

/// Classes that there may be of images: a label is a byte.
pub const MAX_CLASSES: usize = 1 << 8;

/// A record has at most so many features: an image of 1024 by 1024 pixels, and one.
pub const MAX_WIDTH: usize = (1 << 20) + 1;

/// Public constants of pixels from 0 to 1, with which they are standardised. They must not be read off the records:
/// that would be a release of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standard {
    /// What is taken off.
    pub mean: f64,
    /// What the rest is divided by.
    pub deviation: f64,
}

impl Standard {
    /// The constants that MNIST is usually standardised with.
    pub const MNIST: Self = Self {
        mean: 0.1307,
        deviation: 0.3081,
    };
}

/// Records as integer vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    width: usize,
    classes: usize,
    /// A record after the other.
    values: Vec<i32>,
    labels: Vec<u32>,
    /// The largest squared L2 norm of a record.
    added_squared: u128,
    /// The largest squared L2 distance of two records.
    replaced_squared: u128,
    /// Features that are a record's own, from the first.
    features: usize,
    /// Columns whose sum over a record is always `size_unit`: how many records a sum is of.
    size_columns: std::ops::Range<usize>,
    size_unit: i64,
    /// What a feature of 1 is as an integer.
    unit: i64,
}

impl Points {
    /// One-hot records of a table, in units of 1/[`TABLE_UNIT`]: all attributes but the target, which is the class. A
    /// record's squared norm is the number of attributes, and that of two records' difference at most twice that.
    ///
    /// # Errors
    /// [`Error::NoTarget`]; [`Error::TargetAlone`]; [`Error::Shape`] for more than [`MAX_WIDTH`] values.
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
                "{width} values beside the target: there may be {MAX_WIDTH}"
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

    /// Images, standardised and scaled down to a norm of at most 1, in units of 1/[`UNIT`]. With `sized` every image
    /// has one feature more, a quarter: sums of unknown numbers of images then tell how many they are of.
    ///
    /// # Errors
    /// [`Error::Setting`] for more than [`MAX_CLASSES`] classes; [`Error::Shape`] for labels of another number or beyond
    /// `classes`, no images, or images that are too large.
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
                problem: format!("{classes} of them: there must be from 1 to {MAX_CLASSES}"),
            });
        }
        let pixels = images.rows * images.columns;
        let width = pixels + usize::from(sized);
        if images.is_empty() || images.len() != labels.len() || width > MAX_WIDTH {
            return Err(Error::Shape(format!(
                "{} images of {pixels} pixels and {} labels: there must be an image, of at most {} pixels, and a label \
                 for each",
                images.len(),
                labels.len(),
                MAX_WIDTH - 1
            )));
        }
        let labelled = || labels.iter().enumerate();
        if let Some((image, label)) = labelled().find(|&(_, &l)| usize::from(l) >= classes) {
            return Err(Error::Shape(format!(
                "image {image} is of class {label}, and there are {classes} classes, from 0: raise their number"
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
        // All that is of a record beside its pixels is the same for every record.
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

    /// Features of a record.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Classes that there may be.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// A record's features; none for a number that no record has.
    pub fn record(&self, number: usize) -> &[i32] {
        let start = number.saturating_mul(self.width);
        self.values.get(start..start + self.width).unwrap_or(&[])
    }

    /// The classes, by record.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The numbers of each class's records.
    pub fn by_class(&self) -> Vec<Vec<usize>> {
        let mut records = vec![Vec::new(); self.classes];
        for (number, &label) in self.labels.iter().enumerate() {
            // Labels are below the number of classes.
            records[label as usize].push(number);
        }
        records
    }

    /// By how much a record that is added or removed moves a sum: the squared L2 norm, at most.
    pub fn added_squared(&self) -> u128 {
        self.added_squared
    }

    /// By how much a record that is replaced moves a sum: the squared L2 norm, at most.
    pub fn replaced_squared(&self) -> u128 {
        self.replaced_squared
    }

    /// What a feature of 1 is as an integer.
    pub fn unit(&self) -> f64 {
        self.unit as f64
    }

    /// Features that are a record's own, and do not count records.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The largest value of a feature, in absolute value.
    pub fn largest(&self) -> u64 {
        self.unit.unsigned_abs()
    }

    /// How many records a noisy sum seems to be of: nothing where sums do not tell.
    pub fn estimated_size(&self, sum: &[i64]) -> Option<f64> {
        let columns = sum.get(self.size_columns.clone())?;
        if columns.is_empty() {
            return None;
        }
        Some(columns.iter().sum::<i64>() as f64 / self.size_unit as f64)
    }

    /// The records at some places, in that order; places that there are not are passed over.
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

    /// The records dealt among parties, each class evenly.
    ///
    /// # Errors
    /// [`Error::Setting`] for no parties, and for more than there are records.
    pub fn deal<R: Rng + ?Sized>(&self, parties: usize, rng: &mut R) -> Result<Vec<Self>, Error> {
        if parties == 0 || parties > self.len() {
            let records = self.len();
            return Err(Error::Setting {
                what: "parties",
                problem: format!(
                    "{parties} of {records} records: there may be from 1 to {records}"
                ),
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

/// The attributes but the target, each with the number of its first feature.
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

/// An image as integers of a norm of at most [`UNIT`]: rounding is towards zero, and what rounding of doubles could
/// still leave too long is scaled down once more.
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
    fn tables_are_one_hot_and_tell_their_sizes() {
        let points = Points::from_table(&table()).unwrap();
        assert_eq!((points.width(), points.classes(), points.len()), (5, 2, 3));
        assert_eq!(points.record(1), [0, 0, 256, 256, 0]);
        assert_eq!(points.record(3), [0i32; 0]);
        assert_eq!(points.by_class(), [vec![0], vec![1, 2]]);
        assert_eq!(points.estimated_size(&[1, 1, 1, 256, 512]), Some(3.0));
        assert_eq!(points.select(&[2, 0]).labels(), [1, 0]);
    }

    /// The sensitivities by trying every record that there could be, and every two.
    #[test]
    fn sensitivities_of_tables_are_the_largest_moves() {
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
    fn images_keep_within_the_norm_and_wrong_labels_are_refused() {
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
            // And no shorter than rounding makes it.
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
    fn parties_get_every_record_once_and_classes_evenly() {
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
