//! The errors of fits and models.

use fhaim_domain::Clique;

/// The reason why a model could not be fitted or queried.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An attribute of the domain has no values.
    #[error("attribute {attribute} has no values")]
    EmptyAttribute {
        /// Index of the attribute.
        attribute: usize,
    },
    /// A clique names an attribute that the domain does not have.
    #[error("attribute {attribute} is not among the {attributes} attributes of the domain")]
    UnknownAttribute {
        /// Requested index.
        attribute: usize,
        /// Attributes in the domain.
        attributes: usize,
    },
    /// A measurement does not have one view for each attribute of its clique.
    #[error("measurement {measurement} has {found} axis views for {expected} attributes")]
    AxisCount {
        /// Position in the list of measurements.
        measurement: usize,
        /// Attributes of its clique.
        expected: usize,
        /// Given views.
        found: usize,
    },
    /// A merge does not have one group for each category, or a group has no category.
    #[error("measurement {measurement}: the groups of attribute {attribute} {problem}")]
    Groups {
        /// Position in the list of measurements.
        measurement: usize,
        /// Index of the attribute.
        attribute: usize,
        /// The problem, as the end of a sentence.
        problem: &'static str,
    },
    /// A measurement does not have one value for each cell.
    #[error("measurement {measurement} has {found} values for {expected} cells")]
    ValueCount {
        /// Position in the list of measurements.
        measurement: usize,
        /// Cells of its merged table.
        expected: usize,
        /// Given values.
        found: usize,
    },
    /// A value is NaN or infinite.
    #[error("measurement {measurement}, cell {cell}: the value is not a finite number")]
    NotFinite {
        /// Position in the list of measurements.
        measurement: usize,
        /// Row-major cell.
        cell: usize,
    },
    /// A noise scale is zero, negative, NaN, infinite, or so small that 1 / sigma^2 overflows.
    #[error("measurement {measurement}: sigma {sigma} is not a usable positive number")]
    Sigma {
        /// Position in the list of measurements.
        measurement: usize,
        /// The given scale.
        sigma: f64,
    },
    /// The given total is not a positive finite number.
    #[error("a total of {total} records is not a positive finite number")]
    Total {
        /// The given total.
        total: f64,
    },
    /// No total was given, and no measurement shows it.
    #[error("the total number of records is unknown: no measurement shows it, and none was given")]
    UnknownTotal,
    /// The squares of the loss at the start overflow.
    #[error("values or the total are too large for their sigma: the loss overflows")]
    LossOverflow,
    /// A fit ended too far from its measurements, and so did its repetitions, which started from
    /// nothing.
    #[error(
        "the model does not fit the measurements: its loss is {loss:.0}, but noise accounts for about {:.0} \
         ({values} measured values); attributes {attributes:?} differ most",
        0.5 * *.values as f64
    )]
    Unexplained {
        /// The final loss.
        loss: f64,
        /// Number of measured values.
        values: usize,
        /// Attributes of the cliques that differ more from their measurements than noise accounts
        /// for, largest difference first.
        attributes: Vec<usize>,
    },
    /// An option is out of range.
    #[error("option {option} is out of range")]
    Option {
        /// Name of the field.
        option: &'static str,
    },
    /// The attribute does not have this value.
    #[error("attribute {attribute} has no value {value}")]
    UnknownValue {
        /// Index of the attribute.
        attribute: usize,
        /// The requested value.
        value: usize,
    },
    /// The records do not have one column for each attribute, or the columns have different
    /// lengths.
    #[error(
        "records need one column for each of the {attributes} attributes, all of the same length"
    )]
    Columns {
        /// Attributes of the domain.
        attributes: usize,
    },
    /// Almost no record meets the condition.
    #[error(
        "no record of the model has value {value} in attribute {attribute} and meets the preceding conditions"
    )]
    Impossible {
        /// Index of the attribute.
        attribute: usize,
        /// The requested value.
        value: usize,
    },
    /// The table of an extra pair does not fit the model.
    #[error("the extra table of attributes {:?} {problem}", .clique.attributes())]
    Beside {
        /// The attributes of the table.
        clique: Clique,
        /// The problem, as the end of a sentence.
        problem: &'static str,
    },
    /// The bytes are not a saved model.
    #[error("not a saved model: {0}")]
    Saved(&'static str),
    /// The model needs more memory than allowed.
    #[error(
        "the model needs {}, but the cap is {cap} bytes; its largest clique has attributes {:?} and {}",
        size_or_more(*.bytes, "bytes"),
        .largest.attributes(),
        size_or_more(*.cells, "cells")
    )]
    TooLarge {
        /// Bytes needed; `None` if the number does not fit `usize`.
        bytes: Option<usize>,
        /// Bytes allowed.
        cap: usize,
        /// The clique with the most cells.
        largest: Clique,
        /// Its cells; `None` if the number does not fit `usize`.
        cells: Option<usize>,
    },
}

fn size_or_more(size: Option<usize>, unit: &str) -> String {
    match size {
        Some(size) => format!("{size} {unit}"),
        None => format!("more than {} {unit}", usize::MAX),
    }
}
