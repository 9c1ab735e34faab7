//! Draws one column of both tables, value by value.

use std::fmt::{self, Display, Formatter};

use super::{Escaped, percent, shorten};
use crate::report::ColumnReport;

/// Maximum number of values that are drawn on separate lines.
const MAX_LINES: usize = 13;

/// Width of a drawing in SVG units, which are about pixels.
const WIDTH: f64 = 360.0;

/// Width of the percentage at the end of a bar.
const VALUE_WIDTH: f64 = 38.0;

/// Maximum number of characters of a label at the start of a line.
const MAX_LABEL: usize = 17;
/// Approximate width of a label's character.
const CHARACTER_WIDTH: f64 = 6.3;

/// Drawing of a column.
///
/// Few values are drawn as bars on separate lines. More values are drawn as bars side by side for the real table, with
/// the synthetic table as a step line over them.
pub(super) struct Bars<'a>(pub(super) &'a ColumnReport);

impl Display for Bars<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.0.labels.len() <= MAX_LINES {
            self.lines(out)
        } else {
            self.steps(out)
        }
    }
}

impl Bars<'_> {
    /// Returns the largest share of either table, which has a bar of full length.
    fn largest(&self) -> f64 {
        let shares = self.0.real.iter().chain(&self.0.synthetic);
        shares.copied().fold(f64::MIN_POSITIVE, f64::max)
    }

    /// Returns the width of the labels at the start of the lines.
    fn label_width(&self) -> f64 {
        let longest = self
            .0
            .labels
            .iter()
            .map(|label| label.chars().count())
            .max();
        longest.unwrap_or(0).min(MAX_LABEL) as f64 * CHARACTER_WIDTH + 14.0
    }

    fn open(&self, out: &mut Formatter<'_>, height: f64) -> fmt::Result {
        writeln!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Shares of the values \
             of {}, real and synthetic\">",
            Escaped(&self.0.name)
        )
    }

    /// Returns the tooltip of a value.
    fn title(&self, value: usize) -> String {
        let ColumnReport {
            labels,
            real,
            synthetic,
            ..
        } = self.0;
        let (real, synthetic) = (percent(real[value]), percent(synthetic[value]));
        format!("{}: real {real}, synthetic {synthetic}", labels[value])
    }

    fn lines(&self, out: &mut Formatter<'_>) -> fmt::Result {
        const LINE: f64 = 27.0;
        let ColumnReport {
            labels,
            real,
            synthetic,
            ..
        } = self.0;
        let largest = self.largest();
        let left = self.label_width();
        let full = WIDTH - left - VALUE_WIDTH;
        self.open(out, LINE * labels.len() as f64 + 2.0)?;
        for (value, label) in labels.iter().enumerate() {
            let top = LINE * value as f64 + 3.0;
            write!(
                out,
                "<g><title>{}</title><text class=\"label\" x=\"{}\" y=\"{:.1}\">{}</text>",
                Escaped(&self.title(value)),
                left - 8.0,
                top + 14.5,
                Escaped(&shorten(label, MAX_LABEL))
            )?;
            for (class, share, y) in [
                ("real", real[value], top),
                ("synthetic", synthetic[value], top + 11.0),
            ] {
                let length = share / largest * full;
                write!(
                    out,
                    "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" \
                     height=\"10\" rx=\"1.5\"/><text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}\
                     </text>",
                    left + length + 4.0,
                    y + 8.6,
                    Escaped(&percent(share))
                )?;
            }
            out.write_str("</g>\n")?;
        }
        out.write_str("</svg>\n")
    }

    fn steps(&self, out: &mut Formatter<'_>) -> fmt::Result {
        const HEIGHT: f64 = 150.0;
        const TOP: f64 = 14.0;
        let ColumnReport {
            labels,
            real,
            synthetic,
            ..
        } = self.0;
        let largest = self.largest();
        let width = WIDTH / labels.len() as f64;
        let height = |share: f64| share / largest * HEIGHT;
        let bottom = TOP + HEIGHT;
        self.open(out, bottom + 20.0)?;
        writeln!(
            out,
            "<text class=\"value\" x=\"0\" y=\"9\">{}</text>\
             <line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{bottom}\" y2=\"{bottom}\"/>",
            Escaped(&percent(largest))
        )?;
        let mut path = format!("M0 {bottom}");
        for (value, (&real, &synthetic)) in real.iter().zip(synthetic).enumerate() {
            let left = width * value as f64;
            writeln!(
                out,
                "<g><title>{}</title><rect class=\"hover\" x=\"{left:.2}\" y=\"{TOP}\" \
                 width=\"{width:.2}\" height=\"{HEIGHT}\"/><rect class=\"real\" x=\"{left:.2}\" \
                 y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\"/></g>",
                Escaped(&self.title(value)),
                bottom - height(real),
                (width * 0.88).max(width - 2.0),
                height(real)
            )?;
            path += &format!("V{:.2}H{:.2}", bottom - height(synthetic), left + width);
        }
        writeln!(out, "<path class=\"steps\" d=\"{path}V{bottom}\"/>")?;
        self.ends(out, bottom + 14.0)?;
        out.write_str("</svg>\n")
    }

    /// Writes the labels of the first and the last value.
    fn ends(&self, out: &mut Formatter<'_>, y: f64) -> fmt::Result {
        let labels = &self.0.labels;
        let (Some(first), Some(last)) = (labels.first(), labels.last()) else {
            return Ok(());
        };
        writeln!(
            out,
            "<text class=\"value\" x=\"0\" y=\"{y}\">{}</text><text class=\"value end\" \
             x=\"{WIDTH}\" y=\"{y}\">{}</text>",
            Escaped(&shorten(first, 24)),
            Escaped(&shorten(last, 24))
        )
    }
}
