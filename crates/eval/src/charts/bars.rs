//! Paired bars of categories.

use super::svg::{CHARACTER_WIDTH, Svg, WIDTH, percent};

/// Height of a pair of bars with its distance to the next.
const ROW: f64 = 27.0;
/// Height of a bar.
const BAR: f64 = 9.0;
/// Maximum number of characters of a label.
const MAX_LABEL: usize = 20;
/// Width of the percentage after a bar.
const VALUE: f64 = 36.0;

/// A value with its shares of the real and of the synthetic records, from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Name of the value.
    pub label: String,
    /// Share of the real records.
    pub real: f64,
    /// Share of the synthetic records.
    pub synthetic: f64,
}

/// Two horizontal bars for each value: real above synthetic.
///
/// The bars may be other numbers from 0 to 1 than shares of records, such as scores; the title says which.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairedBars {
    /// Name of the chart.
    pub title: String,
    /// The values, from top to bottom.
    pub bars: Vec<Bar>,
    /// The share with a bar of full width, or 0 for the largest share.
    pub full: f64,
}

impl PairedBars {
    /// Returns the chart as an SVG element.
    pub fn svg(&self) -> String {
        let shares = self.bars.iter().flat_map(|bar| [bar.real, bar.synthetic]);
        let largest = shares.fold(self.full.max(f64::MIN_POSITIVE), f64::max);
        let longest = self.bars.iter().map(|bar| bar.label.chars().count()).max();
        let left = longest.unwrap_or(0).min(MAX_LABEL) as f64 * CHARACTER_WIDTH + 12.0;
        let scale = (WIDTH - left - VALUE) / largest;
        let mut svg = Svg::new(WIDTH);
        let (mut real, mut synthetic) = (Vec::new(), Vec::new());
        for (row, bar) in self.bars.iter().enumerate() {
            let top = row as f64 * ROW + 4.0;
            svg.label("end", left - 8.0, top + 13.0, &bar.label, MAX_LABEL);
            real.push([left, top, bar.real * scale, BAR]);
            let below = top + BAR + 1.5;
            synthetic.push([
                left + 0.7,
                below + 0.7,
                (bar.synthetic * scale - 1.4).max(0.0),
                BAR - 1.4,
            ]);
            let value = |share: f64| left + share * scale + 4.0;
            svg.text("quiet", value(bar.real), top + 8.5, &percent(bar.real));
            svg.text(
                "quiet",
                value(bar.synthetic),
                below + 8.5,
                &percent(bar.synthetic),
            );
        }
        svg.rectangles("real", &real);
        svg.rectangles("synthetic", &synthetic);
        let height = self.bars.len() as f64 * ROW + 4.0;
        svg.line("axis", (left, 0.0), (left, height));
        svg.close(height, &self.title, &self.description())
    }

    fn description(&self) -> String {
        let of = |bar: &Bar| {
            let Bar {
                label,
                real,
                synthetic,
            } = bar;
            format!(
                "{label}: real {}, synthetic {}",
                percent(*real),
                percent(*synthetic)
            )
        };
        let all: Vec<String> = self.bars.iter().map(of).collect();
        format!("{}.", all.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_shares_of_both_tables() {
        let bar = |label: &str, real, synthetic| Bar {
            label: label.to_owned(),
            real,
            synthetic,
        };
        let chart = PairedBars {
            title: "a<b".to_owned(),
            bars: vec![bar("x&y", 0.25, 0.5), bar("none", 0.0, 0.0)],
            full: 0.0,
        };
        let svg = chart.svg();
        assert!(
            svg.contains("<title>a&lt;b</title>")
                && svg.contains("x&amp;y: real 25%, synthetic 50%")
        );
        assert_eq!(svg.matches("<path class=\"real\"").count(), 1);
    }

    #[test]
    fn chart_without_values_has_no_bars() {
        let svg = PairedBars::default().svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("\"real\""));
    }
}
