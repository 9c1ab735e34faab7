//! Formats of dates and times.

pub(crate) mod candidates;
pub(crate) mod names;

use fhaim_domain::{TimeFormat, form::KindForm};

/// Common formats of dates, the likelier first.
const DATES: [&str; 10] = [
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%-d.%-m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%-d/%-m/%Y",
    "%-m/%-d/%Y",
    "%d-%b-%Y",
    "%d-%^b-%Y",
    "%d %b %Y",
];

/// Dates that a time of day may follow.
const WITH_CLOCK: usize = 7;

/// Times of day that may follow a date. The coarser come first, because finer formats read their texts too.
const CLOCKS: [&str; 5] = ["%H:00:00", "%H:%M:00", "%H:%M:%S", "%H:00", "%H:%M"];

/// Returns common formats, the likelier first: as written in a schema, with kind and parser. The list does not depend on
/// any table.
pub fn time_formats() -> impl Iterator<Item = (String, KindForm, TimeFormat)> {
    let dates = DATES
        .iter()
        .map(|date| ((*date).to_owned(), KindForm::Date));
    let separated = DATES.iter().take(WITH_CLOCK);
    let separated = separated.flat_map(|date| [' ', 'T'].map(|letter| format!("{date}{letter}")));
    let moments = separated.flat_map(|date| CLOCKS.map(|clock| format!("{date}{clock}")));
    let moments = moments.map(|text| (text, KindForm::Datetime));
    let parsed = |(text, kind): (String, KindForm)| {
        let format = TimeFormat::parse(&text, kind).ok()?;
        Some((text, kind, format))
    };
    dates.chain(moments).filter_map(parsed)
}
