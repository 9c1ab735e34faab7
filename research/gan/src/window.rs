//! Windows of a convolution: conversion of an image to one row of values per window, and back.
//!
//! An image is a row of values, pixel by pixel, each with its channels.

use crate::Error;
use crate::network::MAX_WIDTH;

/// Square windows over an image, in a grid of equal steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Number of rows of the image.
    pub rows: usize,
    /// Number of pixels of a row.
    pub columns: usize,
    /// Number of values of a pixel.
    pub channels: usize,
    /// Number of rows, and of columns, of a window.
    pub side: usize,
    /// Number of pixels between neighbouring windows.
    pub stride: usize,
    /// Width of the border of zeros around the image, in pixels.
    pub padding: usize,
}

impl Window {
    /// Windows of 4 by 4 pixels at every second pixel. There are as many windows as pixels in an image with half the
    /// rows and columns (Radford, Metz and Chintala 2016).
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
            false => Err(Error::Shape(format!("invalid windows: {self:?}"))),
        }
    }

    /// Number of values of the image. It saturates for windows that were not checked.
    pub fn values(&self) -> usize {
        self.rows
            .saturating_mul(self.columns)
            .saturating_mul(self.channels)
    }

    /// Number of values in a window.
    pub fn patch(&self) -> usize {
        self.side
            .saturating_mul(self.side)
            .saturating_mul(self.channels)
    }

    /// Number of windows.
    pub fn places(&self) -> usize {
        let along = |pixels: usize| (pixels + 2 * self.padding - self.side) / self.stride + 1;
        along(self.rows) * along(self.columns)
    }

    /// Copies the values of each window to `patches`, one row per window.
    pub(crate) fn unfold(&self, image: &[f32], patches: &mut [f32]) {
        patches.fill(0.0);
        self.each(|from, to| {
            let shown = &image[from..from + self.channels];
            patches[to..to + self.channels].copy_from_slice(shown);
        });
    }

    /// Adds the values of each window to the pixels of the image: the transpose of [`Window::unfold`].
    pub(crate) fn fold(&self, patches: &[f32], image: &mut [f32]) {
        self.each(|to, from| {
            let pixel = image[to..to + self.channels].iter_mut();
            let shown = &patches[from..from + self.channels];
            pixel.zip(shown).for_each(|(sum, value)| *sum += value);
        });
    }

    /// Calls `visit` with the offset in the image and the offset in the patches, for every pixel of every window.
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
    fn unfold_copies_the_pixels_of_each_window() {
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
    fn fold_is_the_transpose_of_unfold() {
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
    fn invalid_windows_are_rejected() {
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
