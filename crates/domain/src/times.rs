//! Dates, datetimes, times of day and durations: their formats, and what their columns mean.
//!
//! Moments are seconds since 1970-01-01 in the proleptic Gregorian calendar, without time zones or
//! leap seconds: a column's times are those of one clock. The library `jiff` provides the calendar and
//! the English names of months and weekdays. Texts are read by [`read`] and not by `jiff`, which accepts
//! several texts for one moment.

mod date;
mod dated;
mod format;
mod iso;
mod iso_text;
mod letters;
mod names;
mod options;
mod problem;
mod read;
mod show;
mod special;
mod steps;
mod universal;

pub(crate) use self::{
    date::Grid,
    dated::{Cell, Count, Dated, Lapse, NO_TIME, Time, special_day},
    read::Reading,
    special::{Days, Special, can_write},
    steps::Steps,
    universal::TimeScale,
};
pub use self::{
    date::{DAY, date_from_days, days_from_date},
    format::TimeFormat,
    names::TimeNames,
    options::TimeOptions,
    problem::FormatProblem,
    show::Moment,
};
