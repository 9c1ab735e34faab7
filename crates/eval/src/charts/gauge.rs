//! A score next to its baseline.

use super::svg::Svg;

const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 16.0;

/// A score from 0 to 1, with a mark at the score of a second real sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// Name of the chart.
    pub title: String,
    /// The score of the synthetic table.
    pub score: f64,
    /// The score that a second real sample would have, if known.
    pub baseline: Option<f64>,
}

impl Gauge {
    /// Returns the chart as an SVG element.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let at = |score: f64| 2.0 + score.clamp(0.0, 1.0) * (WIDTH - 4.0);
        svg.rectangles("cell", &[[2.0, 4.0, WIDTH - 4.0, 8.0]]);
        svg.rectangles("synthetic", &[[2.0, 4.0, at(self.score) - 2.0, 8.0]]);
        let mut description = format!("{:.3} of 1", self.score);
        if let Some(baseline) = self.baseline {
            svg.line("mark", (at(baseline), 0.0), (at(baseline), HEIGHT));
            description += &format!("; a second real sample: {baseline:.3}");
        }
        svg.close(HEIGHT, &self.title, &description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauge_marks_the_baseline() {
        let gauge = |baseline| Gauge {
            title: "Columns".to_owned(),
            score: 0.5,
            baseline,
        };
        assert!(gauge(Some(1.0)).svg().contains("M198 0L198 16"));
        assert!(!gauge(None).svg().contains("mark"));
    }
}
