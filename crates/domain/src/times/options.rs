//! Settings of columns of dates and times.

use super::names::TimeNames;

/// The settings of a column that its format's letters depend on. A setting that the format does not
/// need has no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeOptions {
    /// The first of the hundred years that two-digit years stand for.
    pub first_year: Option<i64>,
    /// Whether midnight is written as 24:00 of the day before.
    pub midnight: bool,
    /// The UTC offsets or names of zones that `%z`, `%:z` and `%Z` stand for. An empty list stands for
    /// any offset or name, which is read and left out.
    pub offsets: Vec<String>,
    /// Names of the months (`%b`, `%B`) in place of the English ones.
    pub months: Option<TimeNames>,
    /// Names of the weekdays (`%a`, `%A`) in place of the English ones.
    pub weekdays: Option<TimeNames>,
}
