//! Shares of the values of a column within the groups of another.

use super::svg::{At, CHARACTER_WIDTH, Svg, WIDTH, percent, shorten};
use fhaim_page::escaped;

/// Space for the names of values.
const LEFT: f64 = 102.0;
const RIGHT: f64 = 4.0;
/// Height of the bars of a value, if there are several and if there is only one.
const PLOT: f64 = 40.0;
const SINGLE_PLOT: f64 = 84.0;
/// Distance between the bars of two values.
const GAP: f64 = 14.0;
const TOP: f64 = 10.0;
/// Maximum width of a pair of bars.
const MAX_PAIR: f64 = 40.0;
/// Maximum number of characters of the name of a group, and of a value.
const MAX_GROUP: usize = 15;
const MAX_VALUE: usize = 13;

/// Two bars for each group and value: real left of synthetic. Each value has its own scale.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RatePanel {
    /// Name of the chart, such as the name of the groups' column.
    pub title: String,
    /// Names of the groups, from left to right.
    pub groups: Vec<String>,
    /// Names of the values, from top to bottom.
    pub values: Vec<String>,
    /// Share of each value among the real records of a group, for each value and group. Absent if the group has no real
    /// records.
    pub real: Vec<Vec<Option<f64>>>,
    /// The same for synthetic records.
    pub synthetic: Vec<Vec<Option<f64>>>,
    /// Share with a bar of full height, for each value.
    pub scales: Vec<f64>,
}

impl RatePanel {
    /// Returns the chart as an SVG element.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let pair = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        let plot = if self.values.len() == 1 {
            SINGLE_PLOT
        } else {
            PLOT
        };
        for (row, value) in self.values.iter().enumerate() {
            let top = TOP + row as f64 * (plot + GAP);
            let bottom = top + plot;
            let scale = self
                .scales
                .get(row)
                .copied()
                .unwrap_or(1.0)
                .max(f64::MIN_POSITIVE);
            svg.line("axis", (LEFT, top), (WIDTH - RIGHT, top));
            svg.line("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom));
            svg.label("end", LEFT - 6.0, top + plot / 2.0 + 4.0, value, MAX_VALUE);
            svg.text("quiet end", LEFT - 6.0, top + 4.0, &percent(scale));
            let width = pair.min(MAX_PAIR) / 2.0 - 2.5;
            let bars = |shares: &[Vec<Option<f64>>], is_right: bool| -> Vec<[f64; 4]> {
                let shares = shares.get(row).into_iter().flatten().enumerate();
                let bar = |(group, share): (usize, &Option<f64>)| {
                    let middle = LEFT + (group as f64 + 0.5) * pair;
                    let left = if is_right {
                        middle + 1.2
                    } else {
                        middle - width
                    };
                    let height = (*share)? / scale * plot;
                    Some([left, bottom - height, width, height])
                };
                shares.filter_map(bar).collect()
            };
            svg.rectangles("real", &bars(&self.real, false));
            svg.rectangles("synthetic", &bars(&self.synthetic, true));
        }
        let bottom = TOP + self.values.len() as f64 * (plot + GAP);
        let height = self.names(&mut svg, pair, bottom);
        svg.close(height, &self.title, &self.description())
    }

    /// Draws the names of the groups, slanted if they need it, and returns the height of the chart.
    fn names(&self, svg: &mut Svg, pair: f64, top: f64) -> f64 {
        let lengths = self
            .groups
            .iter()
            .map(|group| group.chars().count().min(MAX_GROUP));
        let longest = lengths.max().unwrap_or(0) as f64 * CHARACTER_WIDTH;
        let is_slanted = longest > pair - 4.0;
        for (group, name) in self.groups.iter().enumerate() {
            let x = LEFT + (group as f64 + 0.5) * pair;
            if is_slanted {
                svg.add(format_args!(
                    "<text class=\"quiet end\" transform=\"translate({} {}) rotate(-35)\"><title>{}</title>{}</text>",
                    At(x + 4.0),
                    At(top),
                    escaped(name),
                    escaped(&shorten(name, MAX_GROUP))
                ));
            } else {
                svg.label("quiet middle", x, top + 2.0, name, MAX_GROUP);
            }
        }
        match is_slanted {
            true => top + longest * 0.57 + 8.0,
            false => top + 8.0,
        }
    }

    /// Names the rate that differs most.
    fn description(&self) -> String {
        let rows = self.real.iter().zip(&self.synthetic).enumerate();
        let rates = rows.flat_map(|(value, (real, synthetic))| {
            let both = real.iter().zip(synthetic).enumerate();
            both.filter_map(move |(group, (real, synthetic))| {
                Some((value, group, (*real)?, (*synthetic)?))
            })
        });
        let worst = rates.max_by(|x, y| (x.2 - x.3).abs().total_cmp(&(y.2 - y.3).abs()));
        let name = |names: &[String], index: usize| names.get(index).cloned().unwrap_or_default();
        match worst {
            Some((value, group, real, synthetic)) => format!(
                "Share of the records of each group with a value. The largest difference: {} in the group {} is {} in the \
                 real table, and {} in the synthetic one.",
                name(&self.values, value),
                name(&self.groups, group),
                percent(real),
                percent(synthetic)
            ),
            None => "No group has records in both tables.".to_owned(),
        }
    }
}

/// The shares of a column's values in groups of one other column (one panel) or of two (a panel for each value of the
/// second).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateChart {
    /// The columns: groups, values, and the column of the panels if there is one.
    pub columns: Vec<String>,
    /// A sentence about groups and values that are not drawn, or empty.
    pub note: String,
    /// The panels.
    pub panels: Vec<RatePanel>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_rates_have_their_own_scale() {
        let panel = RatePanel {
            title: "ward".to_owned(),
            groups: vec!["obstetrics & gynaecology".to_owned(), "surgery".to_owned()],
            values: vec!["died".to_owned(), "lived".to_owned()],
            real: vec![vec![Some(0.002), Some(0.03)], vec![Some(0.998), Some(0.97)]],
            synthetic: vec![vec![Some(0.037), None], vec![Some(0.97), None]],
            scales: vec![0.05, 1.0],
        };
        let svg = panel.svg();
        assert!(svg.contains("5.0%") && svg.contains("100%"));
        assert!(
            svg.contains(
                "died in the group obstetrics &amp; gynaecology is 0.2% in the real table"
            )
        );
        // Five of eight bars are at least a pixel high; a group without records has none.
        assert_eq!(svg.matches("class=\"synthetic\"").count(), 2);
    }

    #[test]
    fn panel_without_groups_is_empty() {
        let svg = RatePanel::default().svg();
        assert!(svg.contains("No group has records") && !svg.contains("NaN"));
    }
}
