//! Charts that compare a real table with a synthetic one, as SVG.
//!
//! Each chart is a value with its data and a method `svg`, which returns one `<svg>` element. [`STYLE`] has the colours
//! of all charts: real records are filled, synthetic ones are outlined, so that colour is not needed to tell them apart.
//! Charts need no script and no identifiers, so a page can contain any number of them. All texts are escaped.
//!
//! # Examples
//!
//! ```
//! use fhaim_eval::charts::{Bar, PairedBars};
//!
//! let chart = PairedBars {
//!     title: "smokes".to_owned(),
//!     bars: vec![
//!         Bar { label: "yes".to_owned(), real: 0.25, synthetic: 0.3 },
//!         Bar { label: "no".to_owned(), real: 0.75, synthetic: 0.7 },
//!     ],
//!     full: 0.0,
//! };
//! assert!(chart.svg().starts_with("<svg"));
//! ```

mod bars;
mod column;
mod gauge;
mod histogram;
mod map;
mod rates;
mod report;
mod scale;
mod svg;

pub use bars::{Bar, PairedBars};
pub use column::{ColumnChart, ColumnDrawing};
pub use gauge::Gauge;
pub use histogram::{ChartAxis, Histogram};
pub use map::{AssociationMap, Compared};
pub use rates::{RateChart, RatePanel};
pub use report::ReportCharts;
pub(crate) use scale::{Span, calendar_edges, clock_edges, even_edges, log_edges, nice_share};
pub(crate) use svg::{percent, shorten};

/// Style sheet of all charts. A page includes it once.
pub const STYLE: &str = include_str!("charts.css");

/// Returns the key of all charts: a filled box for real records, and an outlined one for synthetic records.
pub fn legend() -> &'static str {
    include_str!("legend.svg")
}
