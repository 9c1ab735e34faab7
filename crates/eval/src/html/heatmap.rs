//! Draws a square matrix over columns, with one coloured cell per pair.

use std::fmt::{self, Display, Formatter};

use super::{Escaped, shorten};

/// Width of the names on the left, in SVG units.
const LEFT: f64 = 116.0;
/// Height of the numbers above the cells.
const TOP: f64 = 18.0;

/// Minimum and maximum width of a cell.
const CELL_LIMITS: (f64, f64) = (12.0, 44.0);

/// Total width of the cells of a drawing across the page.
pub(super) const WIDE: f64 = 500.0;
/// Total width of the cells of a drawing that is one of three side by side.
pub(super) const NARROW: f64 = 236.0;

/// Minimum width of a cell with a number.
const CELL_WITH_NUMBER: f64 = 24.0;

/// Minimum intensity of a cell whose number has the contrasting colour.
const STRONG: f64 = 0.62;

/// Colour scale of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Errors from 0 to the largest in the matrix, or to 0.1 if that is larger.
    Error,
    /// Values from 0 to 1.
    Unit,
    /// Changes in both directions, up to the largest in the matrix, or to 0.1 if that is larger.
    Change,
}

/// Drawing of a matrix.
pub(super) struct Heatmap<'a> {
    /// Description for readers who cannot see the drawing.
    pub(super) title: String,
    /// Names of the columns to draw.
    pub(super) names: Vec<&'a str>,
    /// Indices of these columns in the matrix.
    pub(super) columns: &'a [usize],
    pub(super) matrix: &'a [Vec<f64>],
    pub(super) scale: Scale,
    /// Total width of the cells.
    pub(super) width: f64,
}

impl Heatmap<'_> {
    /// Returns the value that has full colour.
    fn full(&self) -> f64 {
        let all = || {
            self.columns
                .iter()
                .flat_map(|&a| self.columns.iter().map(move |&b| (a, b)))
        };
        match self.scale {
            Scale::Unit => 1.0,
            Scale::Error | Scale::Change => all()
                .map(|(a, b)| self.matrix[a][b].abs())
                .fold(0.1, f64::max),
        }
    }

    /// Returns the CSS class for a value.
    fn class(&self, value: f64) -> &'static str {
        match self.scale {
            Scale::Change if value < 0.0 => "cold",
            Scale::Change => "warm",
            Scale::Error | Scale::Unit => "heat",
        }
    }

    fn row(&self, out: &mut Formatter<'_>, row: usize, size: f64) -> fmt::Result {
        let y = TOP + size * row as f64;
        writeln!(
            out,
            "<text class=\"label\" x=\"{}\" y=\"{:.1}\">{} <tspan class=\"quiet\">{}</tspan></text>",
            LEFT - 8.0,
            y + size / 2.0 + 4.0,
            Escaped(&shorten(self.names[row], 14)),
            row + 1
        )?;
        for column in 0..self.columns.len() {
            self.cell(out, (row, column), (LEFT + size * column as f64, y), size)?;
        }
        Ok(())
    }

    fn cell(
        &self,
        out: &mut Formatter<'_>,
        (row, column): (usize, usize),
        (x, y): (f64, f64),
        size: f64,
    ) -> fmt::Result {
        let value = self.matrix[self.columns[row]][self.columns[column]];
        let intensity = (value.abs() / self.full()).min(1.0);
        write!(
            out,
            "<g><title>{} and {}: {value:.3}</title><rect class=\"cell\" x=\"{x:.1}\" \
             y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"/><rect class=\"{}\" \
             x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\" \
             fill-opacity=\"{intensity:.3}\"/>",
            Escaped(self.names[row]),
            Escaped(self.names[column]),
            size - 1.5,
            size - 1.5,
            self.class(value),
            size - 1.5,
            size - 1.5,
        )?;
        if size >= CELL_WITH_NUMBER {
            let class = if intensity > STRONG {
                "on strong"
            } else {
                "on"
            };
            write!(
                out,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + (size - 1.5) / 2.0,
                y + size / 2.0 + 3.0,
                hundredths(value)
            )?;
        }
        out.write_str("</g>\n")
    }

    fn legend(&self, out: &mut Formatter<'_>, y: f64) -> fmt::Result {
        let full = self.full();
        let marks: Vec<f64> = match self.scale {
            Scale::Change => vec![-1.0, -0.5, 0.0, 0.5, 1.0],
            Scale::Error | Scale::Unit => vec![0.0, 0.25, 0.5, 0.75, 1.0],
        };
        for (index, share) in marks.into_iter().enumerate() {
            let x = LEFT + 40.0 * index as f64;
            write!(
                out,
                "<rect class=\"cell\" x=\"{x}\" y=\"{y}\" width=\"40\" height=\"9\"/>\
                 <rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"40\" height=\"9\" \
                 fill-opacity=\"{}\"/><text class=\"tick\" x=\"{}\" y=\"{}\">{:.2}</text>",
                self.class(share),
                share.abs(),
                x + 20.0,
                y + 21.0,
                share * full
            )?;
        }
        out.write_str("\n")
    }
}

/// Formats a value with two decimals, without the zero before the point.
fn hundredths(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.as_str() {
        "0.00" | "-0.00" => "0".to_owned(),
        _ => text.replacen("0.", ".", 1),
    }
}

impl Display for Heatmap<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let count = self.columns.len();
        let size = (self.width / count as f64).clamp(CELL_LIMITS.0, CELL_LIMITS.1);
        let width = LEFT + (size * count as f64).max(200.0) + 4.0;
        let bottom = TOP + size * count as f64 + 10.0;
        writeln!(
            out,
            "<svg class=\"{}\" viewBox=\"0 0 {width:.0} {:.0}\" style=\"max-width:{:.0}px\" \
             role=\"img\" aria-label=\"{}\">",
            if self.width == WIDE {
                "map wide"
            } else {
                "map"
            },
            bottom + 26.0,
            width * 1.15,
            Escaped(&self.title)
        )?;
        for column in 0..count {
            writeln!(
                out,
                "<text class=\"tick quiet\" x=\"{:.1}\" y=\"{}\">{}</text>",
                LEFT + size * (column as f64 + 0.5) - 0.75,
                TOP - 6.0,
                column + 1
            )?;
        }
        for row in 0..count {
            self.row(out, row, size)?;
        }
        self.legend(out, bottom)?;
        out.write_str("</svg>\n")
    }
}
