//! Windows that a convolution looks through, one at a place: from an image to a row of values for each, and back.
//!
//! An image is a row of values, pixel after pixel, each with its channels.

use crate::Error;
use crate::network::MAX_WIDTH;

/// Square windows over an image, beside and below each other at equal steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Rows of the image.
    pub rows: usize,
    /// Pixels of a row.
    pub columns: usize,
    /// Values of a pixel.
    pub channels: usize,
    /// Rows, and columns, of a window.
    pub side: usize,
    /// Pixels from a window to the next.
    pub stride: usize,
    /// Pixels of nought around the image.
    pub padding: usize,
}

impl Window {
    /// Windows of 4 by 4 at every second pixel, as many as there are pixels in an image of half the rows and columns
    /// (Radford, Metz and Chintala 2016).
    pub const fn halving(rows: usize, columns: usize, channels: usize) -> Self {
        Self {
            rows,
            columns,
            channels,
            side: 4,
            stride: 2,
            padding: 1,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let sizes = [
            self.rows,
            self.columns,
            self.channels,
            self.side,
            self.stride,
        ];
        let sound = sizes.iter().all(|size| (1..=MAX_WIDTH).contains(size))
            && self.padding < self.side
            && self.rows + 2 * self.padding >= self.side
            && self.columns + 2 * self.padding >= self.side;
        match sound && self.values() <= MAX_WIDTH && self.patch() <= MAX_WIDTH {
            true => Ok(()),
            false => Err(Error::Shape(format!("there are no windows {self:?}"))),
        }
    }

    /// Values of the image. Of windows that were not checked it may be any number.
    pub fn values(&self) -> usize {
        self.rows
            .saturating_mul(self.columns)
            .saturating_mul(self.channels)
    }

    /// Values that a window shows.
    pub fn patch(&self) -> usize {
        self.side
            .saturating_mul(self.side)
            .saturating_mul(self.channels)
    }

    /// How many windows there are.
    pub fn places(&self) -> usize {
        let along = |pixels: usize| (pixels + 2 * self.padding - self.side) / self.stride + 1;
        along(self.rows) * along(self.columns)
    }

    /// What each window shows: a row of `patches` for each place.
    pub(crate) fn unfold(&self, image: &[f32], patches: &mut [f32]) {
        patches.fill(0.0);
        self.each(|from, to| {
            let shown = &image[from..from + self.channels];
            patches[to..to + self.channels].copy_from_slice(shown);
        });
    }

    /// Adds what each window shows to the pixels that it shows it of: the transpose of [`Window::unfold`].
    pub(crate) fn fold(&self, patches: &[f32], image: &mut [f32]) {
        self.each(|to, from| {
            let pixel = image[to..to + self.channels].iter_mut();
            let shown = &patches[from..from + self.channels];
            pixel.zip(shown).for_each(|(sum, value)| *sum += value);
        });
    }

    /// Calls with the place in the image and in the patches of every pixel that a window shows, by window.
    fn each(&self, mut visit: impl FnMut(usize, usize)) {
        let across = (self.columns + 2 * self.padding - self.side) / self.stride + 1;
        for place in 0..self.places() {
            let corner = (place / across * self.stride, place % across * self.stride);
            for pixel in 0..self.side * self.side {
                let row = corner.0 + pixel / self.side;
                let column = corner.1 + pixel % self.side;
                let inside =
                    |at: usize, pixels: usize| (self.padding..self.padding + pixels).contains(&at);
                if inside(row, self.rows) && inside(column, self.columns) {
                    let shown = (row - self.padding) * self.columns + column - self.padding;
                    let to = place * self.side * self.side + pixel;
                    visit(shown * self.channels, to * self.channels);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::dot;
    use crate::network::tests::rows;

    #[test]
    fn windows_show_their_pixels() {
        let window = Window {
            rows: 2,
            columns: 3,
            channels: 2,
            side: 2,
            stride: 1,
            padding: 0,
        };
        window.check().unwrap();
        let image: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let mut patches = vec![f32::NAN; window.places() * window.patch()];
        window.unfold(&image, &mut patches);
        let first = [0.0, 1.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0];
        assert_eq!(patches[..8], first);
        assert_eq!(patches[8..], first.map(|v| v + 2.0));
        let halving = Window::halving(28, 28, 1);
        assert_eq!((halving.places(), halving.patch()), (14 * 14, 16));
    }

    /// <unfold(x), y> = <x, fold(y)> for all x and y.
    #[test]
    fn folding_is_the_transpose_of_unfolding() {
        for (side, stride, padding) in [(4, 2, 1), (3, 1, 1), (5, 3, 2), (2, 2, 0)] {
            let window = Window {
                rows: 6,
                columns: 8,
                channels: 3,
                side,
                stride,
                padding,
            };
            window.check().unwrap();
            let image = rows(1, window.values(), 1);
            let weights = rows(window.places(), window.patch(), 2);
            let mut patches = vec![0.0; weights.values().len()];
            window.unfold(image.values(), &mut patches);
            let mut folded = vec![0.0; window.values()];
            window.fold(weights.values(), &mut folded);
            let (one, two) = (
                dot(&patches, weights.values()),
                dot(image.values(), &folded),
            );
            assert!((one - two).abs() < 1e-3, "{window:?}: {one} {two}");
        }
    }

    #[test]
    fn windows_that_cannot_be_are_refused() {
        let sound = Window::halving(28, 28, 1);
        for wrong in [
            Window { rows: 0, ..sound },
            Window {
                channels: 0,
                ..sound
            },
            Window { stride: 0, ..sound },
            Window { side: 0, ..sound },
            Window {
                padding: 4,
                ..sound
            },
            Window { rows: 1, ..sound },
            Window {
                channels: MAX_WIDTH,
                ..sound
            },
            Window {
                rows: usize::MAX,
                ..sound
            },
        ] {
            assert!(matches!(wrong.check(), Err(Error::Shape(..))), "{wrong:?}");
        }
    }
}
