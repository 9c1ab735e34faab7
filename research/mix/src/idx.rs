//! IDX files, the format of MNIST: two zero bytes, the type 8 (bytes), the number of dimensions, the big-endian size of
//! each dimension, and the bytes (LeCun, Cortes and Burges).

use crate::Error;

/// The largest number of values that can be read: 2^30, a gigabyte.
pub const MAX_VALUES: usize = 1 << 30;

/// Images of one size, with one byte per pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Number of rows of an image.
    pub rows: usize,
    /// Number of pixels of a row.
    pub columns: usize,
    /// The pixels of all images, image by image and row by row.
    pub pixels: Vec<u8>,
}

impl Images {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.pixels.len() / (self.rows * self.columns).max(1)
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }
}

/// Reads images from an IDX file of three dimensions.
///
/// # Errors
/// [`Error::Idx`] for any other header, for images without pixels, and if the number of bytes is wrong.
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

/// Reads labels from an IDX file of one dimension.
///
/// # Errors
/// Those of [`read_images`].
pub fn read_labels(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(read(bytes, 1, "labels")?.1.to_vec())
}

/// Returns images as an IDX file. Pixels that do not fill a whole image are not counted in the header.
pub fn write_images(images: &Images) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 3];
    for size in [images.len(), images.rows, images.columns] {
        // The cast is exact for images that were read: they have at most 2^30 values.
        bytes.extend((size as u32).to_be_bytes());
    }
    bytes.extend(&images.pixels);
    bytes
}

/// Returns labels as an IDX file.
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
        return Err(refuse(kind, "it is shorter than its header".to_owned()));
    };
    if head != [0, 0, 8, dimensions] {
        return Err(refuse(
            kind,
            format!("it begins with {head:?} instead of [0, 0, 8, {dimensions}]"),
        ));
    }
    let Some((sizes, values)) = rest.split_at_checked(4 * usize::from(dimensions)) else {
        return Err(refuse(kind, "it is shorter than its header".to_owned()));
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
            format!(
                "its header gives the sizes {sizes:?}, but {} bytes follow",
                values.len()
            ),
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
    fn idx_files_round_trip_and_malformed_ones_are_rejected() {
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
