//! Histograms of numbers and times.

use super::{
    scale::{Span, nice_share, ticks},
    svg::{At, CHARACTER_WIDTH, Svg, WIDTH, percent},
};

/// Space for the labels of the vertical axis.
const LEFT: f64 = 36.0;
const RIGHT: f64 = 6.0;
const TOP: f64 = 8.0;
/// Height of the bars.
const PLOT: f64 = 120.0;
/// Space for the labels of the horizontal axis.
const BOTTOM: f64 = 20.0;

/// Horizontal axis of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub enum ChartAxis {
    /// Numbers.
    Linear,
    /// Positive numbers, with equal distances between equal ratios.
    Log,
    /// Seconds since 1970-01-01 00:00, with dates as labels.
    Date,
    /// Seconds since midnight, or of a duration.
    Clock,
    /// Ranges with names, one for each bar. The limits are 0, 1, 2 and so on.
    Ranges(Vec<String>),
}

/// Shares of the records in consecutive ranges: filled bars for real records, a line for synthetic ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Name of the chart.
    pub title: String,
    /// Horizontal axis.
    pub axis: ChartAxis,
    /// Limits of the ranges, ascending: one more than ranges. They are positive on a logarithmic axis.
    pub edges: Vec<f64>,
    /// Share of the real records in each range, from 0 to 1.
    pub real: Vec<f64>,
    /// Share of the synthetic records in each range, from 0 to 1.
    pub synthetic: Vec<f64>,
}

impl Histogram {
    /// Returns the chart as an SVG element.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let height = TOP + PLOT + BOTTOM;
        let (Some(&low), Some(&high)) = (self.edges.first(), self.edges.last()) else {
            return svg.close(0.0, &self.title, "No values.");
        };
        let shares = self.real.iter().chain(&self.synthetic).copied();
        let largest = nice_share(shares.fold(0.0, f64::max));
        for share in [0.0, largest / 2.0, largest] {
            let y = TOP + PLOT * (1.0 - share / largest);
            svg.line("axis", (LEFT, y), (WIDTH - RIGHT, y));
            svg.text("quiet end", LEFT - 5.0, y + 3.5, &percent(share));
        }
        let places: Vec<f64> = self.edges.iter().map(|&edge| self.place(edge)).collect();
        let top = |share: f64| TOP + PLOT * (1.0 - share / largest);
        let bars: Vec<[f64; 4]> = self
            .real
            .iter()
            .zip(places.windows(2))
            .map(|(&share, limits)| {
                let (left, width) = (limits[0], limits[1] - limits[0]);
                let gap = if width > 4.0 { 0.8 } else { 0.0 };
                [
                    left + gap / 2.0,
                    top(share),
                    width - gap,
                    PLOT * share / largest,
                ]
            })
            .collect();
        svg.rectangles("real faint", &bars);
        self.steps(&mut svg, &places, top);
        self.labels(&mut svg, Span { low, high });
        svg.close(height, &self.title, &self.description())
    }

    /// Draws the shares of synthetic records as a line.
    fn steps(&self, svg: &mut Svg, places: &[f64], top: impl Fn(f64) -> f64) {
        let bottom = top(0.0);
        let start = places.first().copied().unwrap_or(LEFT);
        let mut path = format!("M{} {}", At(start), At(bottom));
        for (&share, limits) in self.synthetic.iter().zip(places.windows(2)) {
            path += &format!("V{}H{}", At(top(share)), At(limits[1]));
        }
        path += &format!("V{}", At(bottom));
        svg.add(format_args!("<path class=\"steps\" d=\"{path}\"/>"));
    }

    /// Draws the ticks of the horizontal axis, without labels that would overlap.
    fn labels(&self, svg: &mut Svg, span: Span) {
        let y = TOP + PLOT;
        let mut free = LEFT - 30.0;
        for tick in ticks(&self.axis, span) {
            let x = self.place(tick.at);
            let half = tick.label.chars().count() as f64 * CHARACTER_WIDTH * 0.9 / 2.0;
            let middle = x.min(WIDTH - half);
            if middle - half < free {
                continue;
            }
            free = middle + half + 6.0;
            svg.line("axis", (x, y), (x, y + 4.0));
            svg.text("quiet middle", middle, y + 15.0, &tick.label);
        }
    }

    /// Returns the horizontal place of a value.
    fn place(&self, value: f64) -> f64 {
        let scaled = |value: f64| match self.axis {
            ChartAxis::Log => value.max(f64::MIN_POSITIVE).ln(),
            _ => value,
        };
        let low = scaled(self.edges.first().copied().unwrap_or(0.0));
        let high = scaled(self.edges.last().copied().unwrap_or(1.0));
        LEFT + (scaled(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    }

    fn description(&self) -> String {
        let axis = match self.axis {
            ChartAxis::Linear => "numbers",
            ChartAxis::Log => "numbers on a logarithmic axis",
            ChartAxis::Date => "dates",
            ChartAxis::Clock => "times",
            ChartAxis::Ranges(_) => "ranges",
        };
        let differences = self.real.iter().zip(&self.synthetic);
        let moved: f64 = differences
            .map(|(real, synthetic)| (real - synthetic).abs())
            .sum();
        format!(
            "Shares of the records in {} ranges of {axis}. {} of the records would have to move to another range to make \
             both tables equal.",
            self.real.len(),
            percent(moved / 2.0)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(axis: ChartAxis, edges: &[f64], real: &[f64], synthetic: &[f64]) -> Histogram {
        Histogram {
            title: "x".to_owned(),
            axis,
            edges: edges.to_vec(),
            real: real.to_vec(),
            synthetic: synthetic.to_vec(),
        }
    }

    #[test]
    fn equal_ratios_have_equal_widths_on_a_log_axis() {
        let chart = histogram(
            ChartAxis::Log,
            &[1.0, 10.0, 100.0],
            &[0.5, 0.5],
            &[0.5, 0.5],
        );
        let [low, middle, high] = [1.0, 10.0, 100.0].map(|value| chart.place(value));
        assert!((middle - low - (high - middle)).abs() < 1e-9);
    }

    #[test]
    fn description_states_the_difference() {
        let chart = histogram(
            ChartAxis::Linear,
            &[0.0, 1.0, 2.0],
            &[1.0, 0.0],
            &[0.75, 0.25],
        );
        assert!(
            chart
                .svg()
                .contains("25% of the records would have to move")
        );
    }

    #[test]
    fn chart_without_values_is_empty() {
        let svg = histogram(ChartAxis::Linear, &[], &[], &[]).svg();
        assert!(svg.contains("No values.") && !svg.contains("NaN"));
        let svg = histogram(ChartAxis::Linear, &[0.0, 1.0], &[0.0], &[0.0]).svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn labels_do_not_overlap() {
        let names: Vec<String> = (0..30)
            .map(|i| format!("a long name of range {i}"))
            .collect();
        let edges: Vec<f64> = (0..=30).map(f64::from).collect();
        let shares = vec![1.0 / 30.0; 30];
        let svg = histogram(ChartAxis::Ranges(names), &edges, &shares, &shares).svg();
        assert!(
            (1..=3).contains(&svg.matches("quiet middle").count()),
            "{svg}"
        );
    }
}
