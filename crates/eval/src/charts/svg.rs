//! Text of an SVG element.

use std::fmt::{self, Arguments, Display, Formatter, Write as _};

use fhaim_page::escaped;

/// Width of most charts, in SVG units of about a pixel.
pub(super) const WIDTH: f64 = 360.0;

/// Approximate width of a character of a label.
pub(super) const CHARACTER_WIDTH: f64 = 7.0;

/// Shortens a label to at most `longest` characters.
pub(crate) fn shorten(label: &str, longest: usize) -> String {
    if label.chars().count() <= longest {
        return label.to_owned();
    }
    let kept: String = label.chars().take(longest.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Formats a share as a percentage with its significant digits.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.1 {
        "<0.1%".to_owned()
    } else if percent < 9.95 && percent > 0.0 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

/// A coordinate, with at most one decimal.
#[derive(Clone, Copy)]
pub(super) struct At(pub(super) f64);

impl Display for At {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 10.0).round() / 10.0;
        // Adding zero turns -0 into 0.
        write!(
            out,
            "{}",
            if rounded.is_finite() {
                rounded + 0.0
            } else {
                0.0
            }
        )
    }
}

/// An SVG element under construction.
pub(super) struct Svg {
    body: String,
    width: f64,
}

impl Svg {
    pub(super) fn new(width: f64) -> Self {
        Self {
            body: String::new(),
            width,
        }
    }

    /// Adds markup. Its texts must be escaped.
    pub(super) fn add(&mut self, markup: Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(markup);
    }

    /// Adds a text with its classes.
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>",
            At(x),
            At(y),
            escaped(text)
        ));
    }

    /// Adds a label of at most `longest` characters, with the full text as its title.
    pub(super) fn label(&mut self, class: &str, x: f64, y: f64, text: &str, longest: usize) {
        let short = shorten(text, longest);
        if short == text {
            return self.text(class, x, y, text);
        }
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\"><title>{}</title>{}</text>",
            At(x),
            At(y),
            escaped(text),
            escaped(&short)
        ));
    }

    /// Adds rectangles of one class as a single path. Each is x, y, width and height.
    pub(super) fn rectangles(&mut self, class: &str, rectangles: &[[f64; 4]]) {
        let mut path = String::new();
        for [x, y, width, height] in rectangles
            .iter()
            .filter(|[_, _, w, h]| *w > 0.0 && *h > 0.0)
        {
            let (x, y, width, height) = (At(*x), At(*y), At(*width), At(*height));
            let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
        }
        if !path.is_empty() {
            self.add(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
        }
    }

    /// Adds a line of the class `axis`.
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.add(format_args!(
            "<path class=\"{class}\" d=\"M{} {}L{} {}\"/>",
            At(from.0),
            At(from.1),
            At(to.0),
            At(to.1)
        ));
    }

    /// Returns the element, with its name and description for readers who do not see it.
    pub(super) fn close(self, height: f64, title: &str, description: &str) -> String {
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\"><title>{}</title><desc>{}</desc>{}</svg>\n",
            At(self.width),
            At(height),
            escaped(title),
            escaped(description),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened() {
        assert_eq!(shorten("héllo", 5), "héllo");
        assert_eq!(shorten("héllo wörld", 7), "héllo…");
    }

    #[test]
    fn percentages_show_significant_digits() {
        assert_eq!(percent(0.0), "0%");
        assert_eq!(percent(0.000_4), "<0.1%");
        assert_eq!(percent(0.012_34), "1.2%");
        assert_eq!(percent(0.995), "100%");
        assert_eq!(percent(0.5), "50%");
    }

    #[test]
    fn coordinates_are_finite_and_short() {
        assert_eq!(At(-0.01).to_string(), "0");
        assert_eq!(At(f64::NAN).to_string(), "0");
        assert_eq!(At(12.34).to_string(), "12.3");
    }
}
