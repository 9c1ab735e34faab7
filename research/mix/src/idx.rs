//! IDX files, as MNIST has them: big-endian, two zero bytes, 8 for bytes, the number of dimensions, their sizes,
//! the bytes (LeCun, Cortes and Burges).

use crate::Error;

/// The largest number of values that are read: a gigabyte.
pub const MAX_VALUES: usize = 1 << 30;

/// Images of one size, a byte a pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Rows of an image.
    pub rows: usize,
    /// Pixels of a row.
    pub columns: usize,
    /// All pixels, an image after the other, a row after the other.
    pub pixels: Vec<u8>,
}

impl Images {
    /// How many images there are.
    pub fn len(&self) -> usize {
        self.pixels.len() / (self.rows * self.columns).max(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }
}

/// Reads images: three dimensions.
///
/// # Errors
/// [`Error::Idx`] for anything else, for images without pixels, and for bytes too few or too many.
pub fn read_images(bytes: &[u8]) -> Result<Images, Error> {
    let (sizes, pixels) = read(bytes, 3, "images")?;
    match sizes[..] {
        [_, rows, columns] if rows > 0 && columns > 0 => Ok(Images {
            rows,
            columns,
            pixels: pixels.to_vec(),
        }),
        _ => Err(refuse("images", "the images have no pixels".to_owned())),
    }
}

/// Reads labels: one dimension.
///
/// # Errors
/// As [`read_images`].
pub fn read_labels(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(read(bytes, 1, "labels")?.1.to_vec())
}

/// Images as a file; as many as their pixels make whole.
pub fn write_images(images: &Images) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 3];
    for size in [images.len(), images.rows, images.columns] {
        // Sizes that do not fit were never read: what is read has at most 2^30 values.
        bytes.extend((size as u32).to_be_bytes());
    }
    bytes.extend(&images.pixels);
    bytes
}

/// Labels as a file.
pub fn write_labels(labels: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 1];
    bytes.extend((labels.len() as u32).to_be_bytes());
    bytes.extend(labels);
    bytes
}

fn read<'a>(
    bytes: &'a [u8],
    dimensions: u8,
    kind: &'static str,
) -> Result<(Vec<usize>, &'a [u8]), Error> {
    let Some((head, rest)) = bytes.split_at_checked(4) else {
        return Err(refuse(kind, "it is shorter than its head".to_owned()));
    };
    if head != [0, 0, 8, dimensions] {
        return Err(refuse(
            kind,
            format!("it begins with {head:?} instead of [0, 0, 8, {dimensions}]"),
        ));
    }
    let Some((sizes, values)) = rest.split_at_checked(4 * usize::from(dimensions)) else {
        return Err(refuse(kind, "it is shorter than its head".to_owned()));
    };
    let sizes: Vec<usize> = sizes
        .chunks_exact(4)
        .map(|b| {
            b.iter()
                .fold(0, |size, &byte| size << 8 | usize::from(byte))
        })
        .collect();
    let expected = sizes
        .iter()
        .try_fold(1usize, |n, &size| n.checked_mul(size));
    match expected.filter(|&expected| expected <= MAX_VALUES) {
        Some(expected) if expected == values.len() => Ok((sizes, values)),
        _ => Err(refuse(
            kind,
            format!("its head says {sizes:?}, and {} bytes follow", values.len()),
        )),
    }
}

fn refuse(kind: &'static str, problem: String) -> Error {
    Error::Idx { kind, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_back_and_broken_ones_are_refused() {
        let images = Images {
            rows: 2,
            columns: 3,
            pixels: (0..12).collect(),
        };
        let bytes = write_images(&images);
        assert_eq!(read_images(&bytes).unwrap(), images);
        assert_eq!(images.len(), 2);
        assert_eq!(read_labels(&write_labels(&[7, 0, 9])).unwrap(), [7, 0, 9]);
        for end in 0..bytes.len() {
            assert!(
                matches!(read_images(&bytes[..end]), Err(Error::Idx { .. })),
                "{end} bytes"
            );
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(matches!(read_images(&longer), Err(Error::Idx { .. })));
        assert!(matches!(read_labels(&bytes), Err(Error::Idx { .. })));
        let huge = [[0, 0, 8, 3].as_slice(), &[255; 12]].concat();
        assert!(matches!(read_images(&huge), Err(Error::Idx { .. })));
        assert!(matches!(
            read_images(&write_images(&Images {
                rows: 0,
                columns: 1,
                pixels: vec![]
            })),
            Err(Error::Idx { .. })
        ));
    }
}
