//! Maps of the association between columns.

use super::svg::{At, Svg};
use fhaim_page::escaped;

/// Side of a cell, at least and at most.
const CELL: (f64, f64) = (11.0, 26.0);
/// Width that the cells have if that keeps them in these limits.
const CELLS: f64 = 250.0;
/// Space for the names of rows.
const LEFT: f64 = 128.0;
const MAX_LABEL: usize = 18;
/// Smaller cells have smaller signs, and not each column has its number.
const SMALL: f64 = 16.0;
/// Changes from this one have a sign in their cell.
const SIGNED: f64 = 0.1;

/// The values that a map shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Association in the real table, from 0 to 1.
    Real,
    /// Association in the synthetic table, from 0 to 1.
    Synthetic,
    /// Synthetic minus real, from -1 to 1.
    Difference,
}

/// Association of each pair of columns, as a triangle of cells. A darker cell has a stronger association.
#[derive(Clone, Debug, PartialEq)]
pub struct AssociationMap {
    /// Name of the chart.
    pub title: String,
    /// Names of the columns.
    pub names: Vec<String>,
    /// Symmetric matrix with a row for each name. Its diagonal is not drawn.
    pub values: Vec<Vec<f64>>,
    /// The kind of the values.
    pub compared: Compared,
}

impl AssociationMap {
    /// Returns the chart as an SVG element. Rows have a number and a name, columns have the number.
    pub fn svg(&self) -> String {
        let columns = self.names.len();
        let cell = (CELLS / columns.saturating_sub(1).max(1) as f64).clamp(CELL.0, CELL.1);
        let width = LEFT + (cell * columns.saturating_sub(1) as f64).max(CELLS) + 4.0;
        let mut svg = Svg::new(width);
        for row in 0..columns {
            let y = row as f64 * cell;
            let label = format!("{} {}", row + 1, self.names[row]);
            svg.label(
                "quiet end",
                LEFT - 5.0,
                y + cell / 2.0 + 3.5,
                &label,
                MAX_LABEL,
            );
            for column in 0..row {
                self.cell(
                    &mut svg,
                    row,
                    column,
                    (LEFT + column as f64 * cell, y, cell),
                );
            }
        }
        let bottom = columns as f64 * cell;
        // Numbers of two digits need more width than a small cell has.
        let every = if cell < SMALL { 5 } else { 1 };
        let numbered = (0..columns.saturating_sub(1)).filter(|column| (column + 1) % every == 0);
        for column in numbered {
            let x = LEFT + (column as f64 + 0.5) * cell;
            svg.text(
                "quiet middle",
                x - 0.5,
                bottom + 10.0,
                &(column + 1).to_string(),
            );
        }
        self.legend(&mut svg, bottom + 18.0);
        svg.close(bottom + 42.0, &self.title, &self.description())
    }

    fn class(&self, value: f64) -> &'static str {
        match self.compared {
            Compared::Real => "less",
            Compared::Difference if value < 0.0 => "less",
            _ => "more",
        }
    }

    fn value(&self, row: usize, column: usize) -> f64 {
        let value = self.values.get(row).and_then(|values| values.get(column));
        value
            .copied()
            .filter(|value| value.is_finite())
            .unwrap_or(0.0)
    }

    /// Draws a cell with its value as a title.
    fn cell(&self, svg: &mut Svg, row: usize, column: usize, (x, y, size): (f64, f64, f64)) {
        let value = self.value(row, column);
        let side = size - 1.0;
        svg.rectangles("cell", &[[x, y, side, side]]);
        svg.add(format_args!(
            "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill-opacity=\"{:.2}\"><title>{} and {}: \
             {:.2}</title></rect>",
            self.class(value),
            At(x),
            At(y),
            At(side),
            At(side),
            self.depth(value),
            escaped(&self.names[column]),
            escaped(&self.names[row]),
            value + 0.0
        ));
        if self.compared == Compared::Difference && value.abs() >= SIGNED {
            let sign = if value < 0.0 { "\u{2212}" } else { "+" };
            let (class, down) = if size < SMALL {
                ("sign small", 3.2)
            } else {
                ("sign", 4.5)
            };
            svg.text(class, x + side / 2.0, y + side / 2.0 + down, sign);
        }
    }

    /// Returns the opacity of a value. Differences have their full colour at one half.
    fn depth(&self, value: f64) -> f64 {
        let full = if self.compared == Compared::Difference {
            0.5
        } else {
            1.0
        };
        (value.abs() / full).min(1.0)
    }

    fn legend(&self, svg: &mut Svg, y: f64) {
        let values: &[f64] = match self.compared {
            Compared::Difference => &[-0.5, -0.25, 0.0, 0.25, 0.5],
            _ => &[0.0, 0.25, 0.5, 0.75, 1.0],
        };
        for (index, &value) in values.iter().enumerate() {
            let x = LEFT + index as f64 * 44.0;
            svg.rectangles("cell", &[[x, y, 44.0, 8.0]]);
            svg.add(format_args!(
                "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"44\" height=\"8\" fill-opacity=\"{:.2}\"/>",
                self.class(value),
                At(x),
                At(y),
                self.depth(value)
            ));
            svg.text("quiet middle", x + 22.0, y + 20.0, &value.to_string());
        }
    }

    fn description(&self) -> String {
        let pairs = (0..self.names.len()).flat_map(|row| (0..row).map(move |column| (row, column)));
        let strongest = pairs
            .max_by(|&(a, b), &(c, d)| self.value(a, b).abs().total_cmp(&self.value(c, d).abs()));
        match strongest {
            Some((row, column)) => format!(
                "One cell for each pair of {} columns. The largest value is {:.2}, of {} and {}.",
                self.names.len(),
                self.value(row, column),
                self.names[column],
                self.names[row]
            ),
            None => "No pairs.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_differences_have_a_sign() {
        let map = AssociationMap {
            title: "difference".to_owned(),
            names: vec!["a".to_owned(), "b".to_owned(), "<c>".to_owned()],
            values: vec![
                vec![0.0, -0.4, 0.05],
                vec![-0.4, 0.0, 0.3],
                vec![0.05, 0.3, 0.0],
            ],
            compared: Compared::Difference,
        };
        let svg = map.svg();
        assert_eq!(svg.matches("class=\"sign\"").count(), 2);
        assert!(svg.contains("\u{2212}</text>") && svg.contains("+</text>"));
        assert!(svg.contains("a and &lt;c&gt;: 0.05"));
        assert!(svg.contains("The largest value is -0.40, of a and b."));
    }

    #[test]
    fn numbers_of_many_columns_do_not_overlap() {
        let map = AssociationMap {
            title: String::new(),
            names: vec!["a".to_owned(); 40],
            values: vec![vec![0.5; 40]; 40],
            compared: Compared::Difference,
        };
        let svg = map.svg();
        assert!(svg.contains(">35</text>") && !svg.contains(">34</text>"));
        assert!(svg.contains("class=\"sign small\""));
    }

    #[test]
    fn map_without_values_has_no_cells() {
        let map = AssociationMap {
            title: String::new(),
            names: vec!["a".to_owned()],
            values: Vec::new(),
            compared: Compared::Real,
        };
        assert!(map.svg().contains("No pairs."));
    }
}
