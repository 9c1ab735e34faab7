//! What can be wrong with a model's input.

use fhaim_domain::Clique;

/// Why a model could not be fitted or asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An attribute of the domain has no value at all.
    #[error("attribute {attribute} has no values")]
    EmptyAttribute {
        /// Index of the attribute.
        attribute: usize,
    },
    /// A clique names an attribute that the domain does not have.
    #[error("attribute {attribute} is not among the {attributes} attributes of the domain")]
    UnknownAttribute {
        /// Index asked for.
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
        /// Views given.
        found: usize,
    },
    /// A merge does not give one group for each category, or leaves a group without any.
    #[error("measurement {measurement}: the groups of attribute {attribute} {problem}")]
    Groups {
        /// Position in the list of measurements.
        measurement: usize,
        /// Index of the attribute.
        attribute: usize,
        /// What is wrong, as the end of a sentence.
        problem: &'static str,
    },
    /// A measurement does not have one value for each cell.
    #[error("measurement {measurement} has {found} values for {expected} cells")]
    ValueCount {
        /// Position in the list of measurements.
        measurement: usize,
        /// Cells of its merged table.
        expected: usize,
        /// Values given.
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
        /// The scale given.
        sigma: f64,
    },
    /// The total given is not a positive finite number.
    #[error("a total of {total} records is not a positive finite number")]
    Total {
        /// The total given.
        total: f64,
    },
    /// No total was given and no measurement sees it.
    #[error("no measurement sees the total number of records, and none was given")]
    UnknownTotal,
    /// The loss at the start is not a finite number: its squares overflow.
    #[error("values or the total are too large for their sigma: the loss overflows")]
    LossOverflow,
    /// A fit ended too far from its measurements, and so did the second one from nothing.
    #[error(
        "the model does not fit the measurements: its loss is {loss:.0}, and noise accounts for about {:.0} \
         ({values} measured values); it is furthest from attributes {attributes:?}",
        0.5 * *.values as f64
    )]
    Unexplained {
        /// The loss at the end.
        loss: f64,
        /// Number of measured values.
        values: usize,
        /// Attributes of the cliques that differ more from their measurements than noise accounts for, those that
        /// differ most first.
        attributes: Vec<usize>,
    },
    /// An option is out of range.
    #[error("option {option} is out of range")]
    Option {
        /// Name of the field.
        option: &'static str,
    },
    /// A value that the attribute does not have.
    #[error("attribute {attribute} has no value {value}")]
    UnknownValue {
        /// Index of the attribute.
        attribute: usize,
        /// The value asked for.
        value: usize,
    },
    /// Records that are not one column for each attribute, all of one length.
    #[error("records need one column for each of the {attributes} attributes, all of one length")]
    Columns {
        /// Attributes of the domain.
        attributes: usize,
    },
    /// A condition that next to no record meets.
    #[error("the model has no records whose attribute {attribute} is {value}, given the others")]
    Impossible {
        /// Index of the attribute.
        attribute: usize,
        /// The value asked for.
        value: usize,
    },
    /// A table beside the tree that is none of a pair of the domain.
    #[error("the table of attributes {:?} beside the model {problem}", .clique.attributes())]
    Beside {
        /// Its attributes.
        clique: Clique,
        /// What is wrong, as the end of a sentence.
        problem: &'static str,
    },
    /// Bytes that are not a saved model.
    #[error("not a saved model: {0}")]
    Saved(&'static str),
    /// A model would take more memory than allowed.
    #[error(
        "the model would take {} for a cap of {cap} bytes: its largest clique is attributes {:?} with {}",
        size_or_more(*.bytes, "bytes"),
        .largest.attributes(),
        size_or_more(*.cells, "cells")
    )]
    TooLarge {
        /// Bytes needed; `None` where the number does not fit a machine word.
        bytes: Option<usize>,
        /// Bytes allowed.
        cap: usize,
        /// The clique with the most cells.
        largest: Clique,
        /// Its cells; `None` where the number does not fit a machine word.
        cells: Option<usize>,
    },
}

fn size_or_more(size: Option<usize>, unit: &str) -> String {
    match size {
        Some(size) => format!("{size} {unit}"),
        None => format!("more than {} {unit}", usize::MAX),
    }
}
