//! Limits of bars, and the ticks of axes.

use fhaim_domain::{DAY, date_from_days, days_from_date};

use super::ChartAxis;

/// Maximum number of bars of a histogram of numbers, apart from the ends.
const BARS: f64 = 40.0;
/// Maximum number of bars of a histogram of times.
const MAX_BARS: f64 = 60.0;
/// Maximum number of ticks of an axis.
const MAX_TICKS: f64 = 5.0;

const HOUR: i64 = 3_600;
/// Mean number of seconds of a month.
const MONTH: f64 = 2_629_746.0;

/// The smallest and the largest value of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A place on an axis with its label.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// Distance of neighbouring bars or ticks on an axis of times.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Seconds(i64),
    Months(i64),
}

impl Step {
    /// Steps on a calendar, ascending.
    const CALENDAR: [Self; 21] = [
        Self::Seconds(HOUR),
        Self::Seconds(2 * HOUR),
        Self::Seconds(3 * HOUR),
        Self::Seconds(6 * HOUR),
        Self::Seconds(12 * HOUR),
        Self::Seconds(DAY),
        Self::Seconds(2 * DAY),
        Self::Seconds(7 * DAY),
        Self::Months(1),
        Self::Months(3),
        Self::Months(6),
        Self::Months(12),
        Self::Months(24),
        Self::Months(60),
        Self::Months(120),
        Self::Months(240),
        Self::Months(600),
        Self::Months(1_200),
        Self::Months(2_400),
        Self::Months(6_000),
        Self::Months(12_000),
    ];

    fn seconds(self) -> f64 {
        match self {
            Self::Seconds(seconds) => seconds as f64,
            Self::Months(months) => months as f64 * MONTH,
        }
    }

    /// Returns the multiple of this step with a number.
    fn multiple(self, number: i64) -> f64 {
        match self {
            // 1970-01-05 is the first Monday.
            Self::Seconds(seconds) if seconds == 7 * DAY => {
                (number.saturating_mul(seconds) + 4 * DAY) as f64
            }
            Self::Seconds(seconds) => number.saturating_mul(seconds) as f64,
            Self::Months(months) => {
                let month = number.saturating_mul(months);
                let days = days_from_date(month.div_euclid(12), month.rem_euclid(12) + 1, 1);
                days.map_or(f64::NAN, |days| (days * DAY) as f64)
            }
        }
    }

    /// Returns the number of the last multiple up to a moment.
    fn number(self, moment: f64) -> i64 {
        let moment = moment.floor() as i64;
        match self {
            Self::Seconds(seconds) if seconds == 7 * DAY => {
                moment.saturating_sub(4 * DAY).div_euclid(seconds)
            }
            Self::Seconds(seconds) => moment.div_euclid(seconds),
            Self::Months(months) => {
                let date = date_from_days(moment.div_euclid(DAY));
                let month = date.map_or(0, |(year, month, _)| year * 12 + month - 1);
                month.div_euclid(months)
            }
        }
    }

    /// Returns the multiples from the last one up to `low` to the first one above `high`.
    fn around(self, Span { low, high }: Span) -> Vec<f64> {
        let numbers = self.number(low)..=self.number(high).saturating_add(1);
        ascending(
            numbers
                .take(10 * MAX_BARS as usize)
                .map(|number| self.multiple(number)),
        )
    }

    fn label(self, moment: f64) -> String {
        let seconds = moment as i64;
        let Some((year, month, day)) = date_from_days(seconds.div_euclid(DAY)) else {
            return String::new();
        };
        match self {
            Self::Months(months) if months % 12 == 0 => format!("{year}"),
            Self::Months(_) => format!("{year}-{month:02}"),
            Self::Seconds(step) if step < DAY && seconds.rem_euclid(DAY) != 0 => {
                let minutes = seconds.rem_euclid(DAY) / 60;
                format!("{:02}:{:02}", minutes / 60, minutes % 60)
            }
            Self::Seconds(_) => format!("{year}-{month:02}-{day:02}"),
        }
    }
}

fn calendar_step(span: Span, most: f64) -> Step {
    let fits = |step: &&Step| (span.high - span.low) / step.seconds() <= most;
    let step = Step::CALENDAR.iter().find(fits);
    step.copied().unwrap_or(Step::Months(24_000))
}

/// Returns the number of seconds between multiples on an axis of times of day or durations.
fn clock_step(span: Span, most: f64) -> i64 {
    const STEPS: [i64; 17] = [
        1,
        2,
        5,
        10,
        15,
        30,
        60,
        120,
        300,
        600,
        900,
        1_800,
        HOUR,
        2 * HOUR,
        3 * HOUR,
        6 * HOUR,
        12 * HOUR,
    ];
    let fits = |step: &i64| (span.high - span.low) / *step as f64 <= most;
    let days = || (nice((span.high - span.low) / most / DAY as f64).max(1.0)) as i64 * DAY;
    STEPS.into_iter().find(fits).unwrap_or_else(days)
}

/// Returns limits of bars of whole hours, days, weeks, months or years around moments, or of equal width if the calendar
/// has no such dates.
pub(crate) fn calendar_edges(span: Span) -> Vec<f64> {
    let edges = calendar_step(span, MAX_BARS).around(span);
    let is_around = edges.first().is_some_and(|&first| first <= span.low)
        && edges.last().is_some_and(|&last| last > span.high);
    match is_around {
        true => edges,
        false => even_edges(span, true),
    }
}

/// Returns limits of bars around times of day or durations, in seconds.
pub(crate) fn clock_edges(span: Span) -> Vec<f64> {
    Step::Seconds(clock_step(span, MAX_BARS)).around(span)
}

/// Returns limits of bars of equal width around numbers. The widths are 1, 2 or 5 times a power of ten.
pub(crate) fn even_edges(Span { low, high }: Span, are_integers: bool) -> Vec<f64> {
    let range = high - low;
    let step = match range > 0.0 {
        true => nice(range / BARS),
        false => (low.abs() / 100.0).max(1e-6),
    };
    let step = if are_integers { step.max(1.0) } else { step };
    // A value that equals a limit belongs above it, in spite of rounding errors.
    let shift = if are_integers { 0.5 } else { step * 1e-6 };
    let (first, last) = ((low / step + 1e-9).floor(), (high / step + 1e-9).floor());
    let bars = (last - first + 1.0).clamp(1.0, 4.0 * BARS) as usize;
    ascending((0..=bars).map(|bar| (first + bar as f64) * step - shift))
}

/// Returns limits of bars of equal width on a logarithmic axis around positive numbers.
pub(crate) fn log_edges(Span { low, high }: Span, are_integers: bool) -> Vec<f64> {
    let ratio = (high / low).powf(1.0 / BARS).max(1.0 + 1e-9);
    let edges = (0..=BARS as usize).map(|bar| match bar == BARS as usize {
        true => high * (1.0 + 1e-9),
        false => low * ratio.powi(bar as i32) * (1.0 - 1e-9),
    });
    match are_integers {
        true => ascending(edges.enumerate().map(|(bar, edge)| match bar {
            0 => low - 0.5,
            _ => edge.floor() + 0.5,
        })),
        false => ascending(edges),
    }
}

/// Leaves out values that are not above their predecessors.
fn ascending(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut kept: Vec<f64> = Vec::new();
    for value in values.filter(|value| value.is_finite()) {
        if kept.last().is_none_or(|&last| value > last) {
            kept.push(value);
        }
    }
    kept
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is at least `least`.
fn nice(least: f64) -> f64 {
    round_up(least, &[1.0, 2.0, 5.0])
}

/// Returns the smallest of some multiples of a power of ten that is at least `least`.
fn round_up(least: f64, factors: &[f64]) -> f64 {
    if !least.is_finite() || least <= f64::MIN_POSITIVE {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let fits = factors
        .iter()
        .find(|&factor| factor * power >= least * (1.0 - 1e-9));
    fits.unwrap_or(&10.0) * power
}

/// Returns a round share that is at least `largest`, for the end of an axis.
pub(crate) fn nice_share(largest: f64) -> f64 {
    round_up(
        largest.max(0.001),
        &[1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
    )
    .min(1.0)
}

/// Returns the ticks of an axis in a span.
pub(super) fn ticks(axis: &ChartAxis, span: Span) -> Vec<Tick> {
    match axis {
        ChartAxis::Linear => linear_ticks(span),
        ChartAxis::Log => log_ticks(span),
        ChartAxis::Date => {
            let step = calendar_step(span, MAX_TICKS);
            let label = |at: f64| step.label(at);
            inside(step.around(span), span, label)
        }
        ChartAxis::Clock => {
            let step = clock_step(span, MAX_TICKS);
            inside(Step::Seconds(step).around(span), span, |at| {
                clock_text(at, step)
            })
        }
        ChartAxis::Ranges(labels) => {
            let every = labels.len().div_ceil(3).max(1);
            let tick = |(at, label): (usize, &String)| Tick {
                at: at as f64 + 0.5,
                label: super::shorten(label, 16),
            };
            labels.iter().enumerate().step_by(every).map(tick).collect()
        }
    }
}

fn inside(places: Vec<f64>, span: Span, label: impl Fn(f64) -> String) -> Vec<Tick> {
    let places = places
        .into_iter()
        .filter(|at| (span.low..=span.high).contains(at));
    places
        .map(|at| Tick {
            at,
            label: label(at),
        })
        .collect()
}

fn clock_text(seconds: f64, step: i64) -> String {
    let (sign, whole) = (if seconds < 0.0 { "-" } else { "" }, seconds.abs() as i64);
    let (hours, minutes) = (whole / HOUR, whole / 60 % 60);
    match step {
        DAY.. => format!("{sign}{} d", whole / DAY),
        60.. => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours}:{minutes:02}:{:02}", whole % 60),
    }
}

fn linear_ticks(span: Span) -> Vec<Tick> {
    let step = nice((span.high - span.low) / MAX_TICKS);
    let (first, last) = ((span.low / step).ceil(), (span.high / step).floor());
    let ticks = (last - first + 1.0).clamp(0.0, 2.0 * MAX_TICKS) as usize;
    let tick = |index: usize| {
        let at = (first + index as f64) * step;
        Tick {
            at,
            label: number_text(at, step),
        }
    };
    (0..ticks).map(tick).collect()
}

fn log_ticks(span: Span) -> Vec<Tick> {
    let (first, last) = (
        span.low.log10().floor() as i32,
        span.high.log10().ceil() as i32,
    );
    let of = |factors: &[f64], every: i32| -> Vec<Tick> {
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        let places =
            powers.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
        inside(places.collect(), span, |at| number_text(at, at))
    };
    let every = ((span.high / span.low).log10() / MAX_TICKS).ceil().max(1.0) as i32;
    let choices = [
        of(&[1.0], every),
        of(&[1.0, 3.0], 1),
        of(&[1.0, 2.0, 5.0], 1),
    ];
    let enough = choices.iter().find(|ticks| ticks.len() >= 3).cloned();
    enough.unwrap_or_else(|| linear_ticks(span))
}

/// Formats a number with the decimals that a difference of `step` needs, and large numbers in millions or billions.
pub(crate) fn number_text(number: f64, step: f64) -> String {
    for (unit, name) in [(1e9, "B"), (1e6, "M")] {
        if number.abs() >= unit && number.abs() < unit * 1e3 {
            return format!("{}{name}", with_decimals(number / unit, step / unit));
        }
    }
    match number.abs() {
        1e12.. => format!("{number:.1e}"),
        size if size > 0.0 && size < 1e-4 => format!("{number:.0e}"),
        _ => with_decimals(number, step),
    }
}

fn with_decimals(number: f64, step: f64) -> String {
    let decimals = (-(step * (1.0 + 1e-9)).log10().floor()).clamp(0.0, 6.0) as usize;
    // Adding zero turns -0 into 0.
    let text = format!("{:.decimals$}", number + 0.0);
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |text| ("-", text));
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match rest {
        "" => format!("{sign}{grouped}"),
        _ => format!("{sign}{grouped}.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &ChartAxis, low: f64, high: f64) -> Vec<String> {
        ticks(axis, Span { low, high })
            .into_iter()
            .map(|tick| tick.label)
            .collect()
    }

    fn moment(year: i64, month: i64, day: i64) -> f64 {
        (days_from_date(year, month, day).unwrap() * DAY) as f64
    }

    #[test]
    fn ticks_of_numbers_are_round() {
        assert_eq!(
            labels(&ChartAxis::Linear, 17.0, 90.0),
            ["20", "40", "60", "80"]
        );
        assert_eq!(
            labels(&ChartAxis::Linear, 0.0, 0.31),
            ["0.0", "0.1", "0.2", "0.3"]
        );
        assert_eq!(
            labels(&ChartAxis::Linear, -1.0, 1.0),
            ["-1.0", "-0.5", "0.0", "0.5", "1.0"]
        );
        assert_eq!(
            labels(&ChartAxis::Linear, 0.0, 1_500_000.0),
            ["0", "500,000", "1.0M", "1.5M"]
        );
    }

    #[test]
    fn ticks_of_a_log_axis_are_powers_of_ten_or_their_multiples() {
        assert_eq!(
            labels(&ChartAxis::Log, 0.5, 20_000.0),
            ["1", "10", "100", "1,000", "10,000"]
        );
        assert_eq!(
            labels(&ChartAxis::Log, 100.0, 4_000.0),
            ["100", "300", "1,000", "3,000"]
        );
        assert!(labels(&ChartAxis::Log, 1e-9, 1e9).len() <= 6);
    }

    #[test]
    fn ticks_of_dates_are_years_months_days_or_hours() {
        assert_eq!(
            labels(&ChartAxis::Date, moment(2019, 3, 4), moment(2022, 8, 1)),
            ["2020", "2021", "2022"]
        );
        assert_eq!(
            labels(&ChartAxis::Date, moment(2023, 12, 20), moment(2024, 3, 2)),
            ["2024-01", "2024-02", "2024-03"]
        );
        assert_eq!(
            labels(&ChartAxis::Date, moment(2024, 3, 1), moment(2024, 3, 4)),
            ["2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04"]
        );
        assert!(labels(&ChartAxis::Date, moment(1, 1, 1), moment(9_999, 1, 1)).len() <= 6);
        assert_eq!(
            labels(&ChartAxis::Clock, 0.0, 86_400.0),
            ["00:00", "06:00", "12:00", "18:00", "24:00"]
        );
        assert_eq!(
            labels(&ChartAxis::Clock, -20.0, 20.0),
            ["-0:00:20", "-0:00:10", "0:00:00", "0:00:10", "0:00:20"]
        );
    }

    #[test]
    fn edges_enclose_all_values() {
        let spans = [
            (0.0, 0.0),
            (3.0, 3.0),
            (-5.5, 7.25),
            (1.0, 1e12),
            (0.1, 0.3),
            (1e300, 1.1e300),
        ];
        for (low, high) in spans {
            let span = Span { low, high };
            let mut all = vec![even_edges(span, false)];
            if low > 0.0 {
                all.push(log_edges(span, false));
            }
            if low.fract() == 0.0 && high.fract() == 0.0 && high < 1e15 {
                all.push(even_edges(span, true));
                all.push(calendar_edges(span));
                all.push(clock_edges(span));
            }
            for edges in all {
                assert!(edges.len() >= 2 && edges.len() <= 410, "{span:?} {edges:?}");
                assert!(
                    edges[0] <= low && *edges.last().unwrap() > high,
                    "{span:?} {edges:?}"
                );
            }
        }
    }

    #[test]
    fn integers_have_whole_numbers_in_each_bar() {
        assert_eq!(
            even_edges(
                Span {
                    low: 1.0,
                    high: 3.0
                },
                true
            ),
            [0.5, 1.5, 2.5, 3.5]
        );
        let edges = log_edges(
            Span {
                low: 1.0,
                high: 1_000.0,
            },
            true,
        );
        assert!(edges.iter().all(|edge| edge.fract() == 0.5), "{edges:?}");
    }
}
