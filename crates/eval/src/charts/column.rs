//! The chart of a column.

use super::{Histogram, PairedBars};

/// The main chart of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnDrawing {
    /// Numbers and times.
    Histogram(Histogram),
    /// Categories and other texts.
    Bars(PairedBars),
    /// No record has a value.
    Empty,
}

/// A column of both tables.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnChart {
    /// Name of the column.
    pub name: String,
    /// The main chart.
    pub drawing: ColumnDrawing,
    /// Values outside the main chart, such as missing ones and a single value that most records have.
    pub apart: PairedBars,
    /// Sentences about the column, such as the medians of both tables.
    pub facts: Vec<String>,
    /// All values, if the main chart does not show all of them.
    pub list: PairedBars,
}

impl ColumnChart {
    /// Returns the charts of the column as one or two SVG elements.
    pub fn svg(&self) -> String {
        let main = match &self.drawing {
            ColumnDrawing::Histogram(histogram) => histogram.svg(),
            ColumnDrawing::Bars(bars) => bars.svg(),
            ColumnDrawing::Empty => String::new(),
        };
        match self.apart.bars.is_empty() {
            true => main,
            false => main + &self.apart.svg(),
        }
    }
}
