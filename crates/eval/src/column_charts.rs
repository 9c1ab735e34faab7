//! Data of the charts of single columns.

use std::collections::{BTreeMap, HashMap};

use fhaim_domain::{RawColumn, RawValues, counted};

use crate::{
    ColumnReport,
    charts::{
        Bar, ChartAxis, ColumnChart, ColumnDrawing, Histogram, PairedBars, Span, calendar_edges,
        clock_edges, even_edges, log_edges, percent,
    },
};

/// Maximum number of categories in a chart.
const MAX_BARS: usize = 12;
/// Of more categories, the chart shows this number of the most frequent ones.
const FREQUENT: usize = 8;
/// It also shows this number of those that differ most.
const DIFFERENT: usize = 2;
/// Maximum number of categories in a list.
const MAX_LISTED: usize = 200;

/// The fact about a column without values.
const NO_VALUE: &str = "No record has a value.";

/// A single number that this share of the records have is drawn apart from the histogram.
const SPIKE: f64 = 0.35;
/// A number is drawn apart only if there are at least this many others.
const MIN_OTHERS: usize = 20;

/// Share of the numbers at each end that a histogram may leave out.
const TRIMMED: f64 = 0.002;
/// A histogram leaves out the ends if they make the axis longer by this factor.
const MIN_LENGTHENING: f64 = 2.0;

/// Numbers have a logarithmic axis if their median is below this share of a linear axis.
const LOW_MEDIAN: f64 = 0.08;
/// The largest number on a logarithmic axis is at least this multiple of the smallest.
const MIN_RATIO: f64 = 50.0;

/// Makes the charts of a report's columns.
pub(crate) struct ColumnCharts<'a> {
    /// Axes of the columns of times.
    pub(crate) axes: &'a BTreeMap<String, ChartAxis>,
    /// The columns of codes, whose labels are in the order of the schema.
    pub(crate) columns: &'a [ColumnReport],
    /// Writes a number of a column as the table does.
    pub(crate) shown: &'a dyn Fn(&str, f64) -> String,
}

impl ColumnCharts<'_> {
    /// Returns the charts of the columns that both tables have.
    pub(crate) fn of_values(
        &self,
        real: &[RawColumn],
        synthetic: &[RawColumn],
    ) -> Vec<ColumnChart> {
        let other = |name: &str| synthetic.iter().find(|column| column.name == name);
        let chart = |column: &RawColumn| match (&column.values, &other(&column.name)?.values) {
            (RawValues::Numbers(real), RawValues::Numbers(synthetic)) => {
                Some(self.numbers(&column.name, [real, synthetic]))
            }
            (real, synthetic) => Some(self.texts(&column.name, [real, synthetic])),
        };
        real.iter().filter_map(chart).collect()
    }

    /// Returns the charts of columns of codes.
    pub(crate) fn of_codes(&self) -> Vec<ColumnChart> {
        self.columns
            .iter()
            .map(|column| self.codes(column))
            .collect()
    }

    fn codes(&self, column: &ColumnReport) -> ColumnChart {
        let shares = column.real.iter().zip(&column.synthetic);
        let bars = column
            .labels
            .iter()
            .zip(shares)
            .map(|(label, (&real, &synthetic))| Bar {
                label: label.clone(),
                real,
                synthetic,
            });
        let bars: Vec<Bar> = bars.collect();
        if !column.numeric || bars.len() <= MAX_BARS {
            return self.categories(&column.name, bars, Bar::none());
        }
        ColumnChart {
            name: column.name.clone(),
            drawing: ColumnDrawing::Histogram(Histogram {
                title: column.name.clone(),
                axis: ChartAxis::Ranges(column.labels.clone()),
                edges: (0..=bars.len()).map(|edge| edge as f64).collect(),
                real: column.real.clone(),
                synthetic: column.synthetic.clone(),
            }),
            apart: PairedBars::default(),
            facts: Vec::new(),
            list: PairedBars::default(),
        }
    }

    fn texts(&self, name: &str, tables: [&RawValues; 2]) -> ColumnChart {
        let [real, synthetic] =
            tables.map(|values| shares(values, &|number| (self.shown)(name, number)));
        let mut values: Vec<&String> = real.keys().chain(synthetic.keys()).flatten().collect();
        values.sort_unstable();
        values.dedup();
        let share = |shares: &HashMap<Option<String>, f64>, value: Option<&String>| {
            shares.get(&value.cloned()).copied().unwrap_or(0.0)
        };
        let bar = |label: String, value: Option<&String>| Bar {
            label,
            real: share(&real, value),
            synthetic: share(&synthetic, value),
        };
        let bars = values
            .into_iter()
            .map(|value| bar(value.clone(), Some(value)));
        self.categories(name, bars.collect(), bar("missing".to_owned(), None))
    }

    /// Returns the chart of a column of categories.
    fn categories(&self, name: &str, mut bars: Vec<Bar>, missing: Bar) -> ColumnChart {
        bars.retain(|bar| bar.largest() > 0.0);
        self.sort(name, &mut bars);
        let titled = |bars: Vec<Bar>| PairedBars {
            title: format!("Shares of the values of {name}"),
            bars,
            full: 0.0,
        };
        let mut chart = ColumnChart {
            name: name.to_owned(),
            drawing: ColumnDrawing::Empty,
            apart: PairedBars::default(),
            facts: Vec::new(),
            list: titled(Vec::new()),
        };
        if bars.is_empty() {
            chart.facts.push(NO_VALUE.to_owned());
            return chart;
        }
        if bars.len() > MAX_BARS {
            chart.list = titled(with_rest(bars.clone(), MAX_LISTED));
            let rest = selected(&mut bars);
            chart.facts.push(format!(
                "The chart shows the most frequent values, and those that differ most. The other {} values have {} of the \
                 real records, and {} of the synthetic ones.",
                rest.len(),
                percent(rest.iter().map(|bar| bar.real).sum()),
                percent(rest.iter().map(|bar| bar.synthetic).sum())
            ));
        }
        bars.extend(Bar::some(missing));
        chart.drawing = ColumnDrawing::Bars(titled(bars));
        chart
    }

    /// Sorts values in the order of the schema if it lists all of them, and the most frequent first otherwise.
    fn sort(&self, name: &str, bars: &mut [Bar]) {
        let column = self.columns.iter().find(|column| column.name == name);
        let labels: HashMap<&str, usize> = column
            .into_iter()
            .flat_map(|column| column.labels.iter().enumerate())
            .map(|(place, label)| (label.as_str(), place))
            .collect();
        if bars.len() <= MAX_BARS
            && bars
                .iter()
                .all(|bar| labels.contains_key(bar.label.as_str()))
        {
            bars.sort_by_key(|bar| labels.get(bar.label.as_str()).copied());
        } else {
            bars.sort_by(|x, y| {
                y.largest()
                    .total_cmp(&x.largest())
                    .then(x.label.cmp(&y.label))
            });
        }
    }

    fn numbers(&self, name: &str, tables: [&[Option<f64>]; 2]) -> ColumnChart {
        let records = tables.map(|values| values.len().max(1) as f64);
        let mut numbers = tables.map(ascending);
        let missing = [0, 1].map(|table| tables[table].len() - numbers[table].len());
        let facts = self.quartiles(name, &numbers);
        let axis = self.axes.get(name).cloned();
        let mut apart = Vec::new();
        let mut set_apart = |numbers: &mut [Vec<f64>; 2],
                             label: &str,
                             limit: f64,
                             is_apart: fn(f64, f64) -> bool| {
            let counts = numbers
                .each_mut()
                .map(|numbers| take(numbers, |number| is_apart(number, limit)));
            let label = format!("{label} {}", (self.shown)(name, limit));
            apart.extend(Bar::of(label, counts, records));
        };
        if let Some(spike) = spike(&numbers) {
            set_apart(&mut numbers, "exactly", spike, |number, spike| {
                number == spike
            });
        }
        let axis = axis.unwrap_or_else(|| axis_of(&numbers));
        if let Some(Span { low, high }) = trimmed(&axis, &numbers) {
            set_apart(&mut numbers, "below", low, |number, low| number < low);
            set_apart(&mut numbers, "above", high, |number, high| number > high);
        }
        apart.extend(Bar::of("missing".to_owned(), missing, records));
        ColumnChart {
            name: name.to_owned(),
            drawing: histogram(name, axis, &numbers, records),
            apart: PairedBars {
                title: format!("Shares of other values of {name}"),
                bars: apart,
                full: 1.0,
            },
            facts,
            list: PairedBars::default(),
        }
    }

    /// Compares medians and quartiles.
    fn quartiles(&self, name: &str, numbers: &[Vec<f64>; 2]) -> Vec<String> {
        let at = |table: usize, share: f64| {
            let numbers = &numbers[table];
            let place = (share * numbers.len() as f64) as usize;
            let number = numbers.get(place.min(numbers.len().saturating_sub(1)));
            number.map_or_else(|| "none".to_owned(), |&number| (self.shown)(name, number))
        };
        if numbers.iter().all(Vec::is_empty) {
            return vec![NO_VALUE.to_owned()];
        }
        let range = |table: usize| format!("{} to {}", at(table, 0.25), at(table, 0.75));
        vec![
            format!("Median: {} (real), {} (synthetic).", at(0, 0.5), at(1, 0.5)),
            format!(
                "Middle half: {} (real), {} (synthetic).",
                range(0),
                range(1)
            ),
        ]
    }
}

impl Bar {
    fn largest(&self) -> f64 {
        self.real.max(self.synthetic)
    }

    fn none() -> Self {
        Self {
            label: String::new(),
            real: 0.0,
            synthetic: 0.0,
        }
    }

    /// Returns a bar if a record of either table has the value.
    fn some(bar: Self) -> Vec<Self> {
        Some(bar)
            .filter(|bar| bar.largest() > 0.0)
            .into_iter()
            .collect()
    }

    fn of(label: String, counts: [usize; 2], records: [f64; 2]) -> Vec<Self> {
        let [real, synthetic] = [0, 1].map(|table| counts[table] as f64 / records[table]);
        Self::some(Self {
            label,
            real,
            synthetic,
        })
    }
}

/// Returns the share of each value. `None` stands for a missing value.
fn shares(values: &RawValues, shown: &dyn Fn(f64) -> String) -> HashMap<Option<String>, f64> {
    let mut counts: HashMap<Option<String>, f64> = HashMap::new();
    let records = match values {
        RawValues::Numbers(values) => {
            values
                .iter()
                .for_each(|value| *counts.entry(value.map(shown)).or_default() += 1.0);
            values.len()
        }
        RawValues::Texts { values, names } => {
            let mut by_index = vec![0.0; names.len()];
            for value in values {
                match value.and_then(|value| by_index.get_mut(value as usize)) {
                    Some(count) => *count += 1.0,
                    None => *counts.entry(None).or_default() += 1.0,
                }
            }
            let named = names.iter().cloned().map(Some).zip(by_index);
            named.for_each(|(name, count)| *counts.entry(name).or_default() += count);
            values.len()
        }
    };
    counts
        .values_mut()
        .for_each(|count| *count /= records.max(1) as f64);
    counts
}

/// Keeps the first `most` bars, and adds up the others.
fn with_rest(mut bars: Vec<Bar>, most: usize) -> Vec<Bar> {
    let rest = bars.split_off(most.min(bars.len()));
    if !rest.is_empty() {
        bars.push(Bar {
            label: counted(rest.len() as u64, "other value"),
            real: rest.iter().map(|bar| bar.real).sum(),
            synthetic: rest.iter().map(|bar| bar.synthetic).sum(),
        });
    }
    bars
}

/// Keeps the most frequent values of a descending list and those that differ most, and returns the others.
fn selected(bars: &mut Vec<Bar>) -> Vec<Bar> {
    let difference = |bar: &Bar| (bar.real - bar.synthetic).abs();
    let mut rest = bars.split_off(FREQUENT.min(bars.len()));
    rest.sort_by(|x, y| difference(y).total_cmp(&difference(x)));
    let others = rest.split_off(DIFFERENT.min(rest.len()));
    bars.append(&mut rest);
    others
}

fn ascending(values: &[Option<f64>]) -> Vec<f64> {
    let numbers = values.iter().flatten().copied();
    let mut numbers: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// Removes the numbers that fulfil a condition, and returns how many they are.
fn take(numbers: &mut Vec<f64>, condition: impl Fn(f64) -> bool) -> usize {
    let before = numbers.len();
    numbers.retain(|&number| !condition(number));
    before - numbers.len()
}

/// Returns a number that a large share of the records of either table have, if there are many others.
fn spike(numbers: &[Vec<f64>; 2]) -> Option<f64> {
    let runs = |numbers: &Vec<f64>| -> Vec<(usize, f64)> {
        let runs = numbers.chunk_by(|x, y| x == y);
        runs.filter_map(|run| Some((run.len(), *run.first()?)))
            .collect()
    };
    let runs: Vec<Vec<(usize, f64)>> = numbers.iter().map(runs).collect();
    let has_others = runs.iter().any(|runs| runs.len() > MIN_OTHERS);
    let tables = runs.iter().zip(numbers);
    let longest = tables.filter_map(|(runs, numbers)| {
        let &(count, number) = runs.iter().max_by_key(|(count, _)| *count)?;
        Some((count as f64 / numbers.len() as f64, number))
    });
    let (share, number) = longest.max_by(|x, y| x.0.total_cmp(&y.0))?;
    (has_others && share >= SPIKE).then_some(number)
}

/// Returns the number that a share of the numbers of both tables are below.
fn quantile(numbers: &[f64], share: f64) -> f64 {
    let place = (share * numbers.len() as f64) as usize;
    numbers
        .get(place.min(numbers.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0.0)
}

fn pooled(numbers: &[Vec<f64>; 2]) -> Vec<f64> {
    let mut all: Vec<f64> = numbers.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Chooses the axis of numbers: logarithmic if a linear one would show most of them in its first bars.
fn axis_of(numbers: &[Vec<f64>; 2]) -> ChartAxis {
    let all = pooled(numbers);
    let (low, high) = (quantile(&all, TRIMMED), quantile(&all, 1.0 - TRIMMED));
    let is_skewed = quantile(&all, 0.5) - low < LOW_MEDIAN * (high - low);
    let is_positive = all.first().is_some_and(|&first| first > 0.0);
    match is_positive && is_skewed && high >= MIN_RATIO * low {
        true => ChartAxis::Log,
        false => ChartAxis::Linear,
    }
}

/// Returns the part of the axis that has almost all numbers, if the others would make the axis much longer.
fn trimmed(axis: &ChartAxis, numbers: &[Vec<f64>; 2]) -> Option<Span> {
    let all = pooled(numbers);
    let span = Span {
        low: quantile(&all, TRIMMED),
        high: quantile(&all, 1.0 - TRIMMED),
    };
    let (first, last) = (all.first()?, all.last()?);
    let is_longer = last - first > MIN_LENGTHENING * (span.high - span.low);
    (*axis != ChartAxis::Log && span.high > span.low && is_longer).then_some(span)
}

fn histogram(
    name: &str,
    axis: ChartAxis,
    numbers: &[Vec<f64>; 2],
    records: [f64; 2],
) -> ColumnDrawing {
    let all = pooled(numbers);
    let (Some(&low), Some(&high)) = (all.first(), all.last()) else {
        return ColumnDrawing::Empty;
    };
    let span = Span { low, high };
    let are_integers = all.iter().all(|number| number.fract() == 0.0);
    let edges = match axis {
        ChartAxis::Log => log_edges(span, are_integers),
        ChartAxis::Date => calendar_edges(span),
        ChartAxis::Clock => clock_edges(span),
        _ => even_edges(span, are_integers),
    };
    let shares = |table: usize| -> Vec<f64> {
        let below = |edge: &f64| numbers[table].partition_point(|number| number < edge);
        let below: Vec<usize> = edges.iter().map(below).collect();
        let bars = below.windows(2);
        bars.map(|bar| (bar[1] - bar[0]) as f64 / records[table])
            .collect()
    };
    let (real, synthetic) = (shares(0), shares(1));
    ColumnDrawing::Histogram(Histogram {
        title: format!("Distribution of {name}"),
        axis,
        edges,
        real,
        synthetic,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(
        real: &[Option<f64>],
        synthetic: &[Option<f64>],
        axis: Option<ChartAxis>,
    ) -> ColumnChart {
        let axes = axis
            .into_iter()
            .map(|axis| ("x".to_owned(), axis))
            .collect();
        let charts = ColumnCharts {
            axes: &axes,
            columns: &[],
            shown: &|_, number| number.to_string(),
        };
        let column = |values: &[Option<f64>]| RawColumn {
            name: "x".to_owned(),
            values: RawValues::Numbers(values.to_vec()),
            words: BTreeMap::new(),
        };
        let mut made = charts.of_values(&[column(real)], &[column(synthetic)]);
        assert_eq!(made.len(), 1);
        made.remove(0)
    }

    fn histogram_of(chart: &ColumnChart) -> &Histogram {
        match &chart.drawing {
            ColumnDrawing::Histogram(histogram) => histogram,
            other => panic!("{other:?}"),
        }
    }

    fn some(numbers: impl Iterator<Item = f64>) -> Vec<Option<f64>> {
        numbers.map(Some).collect()
    }

    #[test]
    fn skewed_positive_numbers_have_a_log_axis() {
        let skewed = some((0..1_000).map(|i| 10f64.powf(f64::from(i) / 250.0)));
        let chart = chart(&skewed, &skewed, None);
        let Histogram { axis, real, .. } = histogram_of(&chart);
        assert_eq!(*axis, ChartAxis::Log);
        assert!((real.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{real:?}");
        assert!(real.iter().all(|&share| share < 0.06), "{real:?}");
    }

    #[test]
    fn even_numbers_and_numbers_below_zero_have_a_linear_axis() {
        let even = some((0..1_000).map(f64::from));
        assert_eq!(
            histogram_of(&chart(&even, &even, None)).axis,
            ChartAxis::Linear
        );
        let signed = some((0..1_000).map(|i| 10f64.powf(f64::from(i) / 250.0) - 2.0));
        assert_eq!(
            histogram_of(&chart(&signed, &signed, None)).axis,
            ChartAxis::Linear
        );
    }

    #[test]
    fn frequent_number_is_drawn_apart() {
        let with_zeros = some((0..1_000).map(|i| if i % 10 == 0 { f64::from(i) } else { 0.0 }));
        let chart = chart(&with_zeros, &with_zeros, None);
        assert_eq!(chart.apart.bars[0].label, "exactly 0");
        assert!((chart.apart.bars[0].real - 0.901).abs() < 1e-9);
        let histogram = histogram_of(&chart);
        assert!((histogram.real.iter().sum::<f64>() - 0.099).abs() < 1e-9);
    }

    #[test]
    fn extreme_numbers_are_drawn_apart() {
        let mut numbers = some((0..1_000).map(f64::from));
        numbers.push(Some(1e9));
        let chart = chart(&numbers, &numbers, None);
        assert!(
            chart
                .apart
                .bars
                .iter()
                .any(|bar| bar.label.starts_with("above "))
        );
        assert!(histogram_of(&chart).edges.last().unwrap() < &1_100.0);
    }

    #[test]
    fn columns_without_values_or_with_one_record_have_a_chart() {
        let empty = chart(&[None, None], &[None], None);
        assert_eq!(empty.drawing, ColumnDrawing::Empty);
        assert_eq!(empty.apart.bars[0].label, "missing");
        assert_eq!(empty.facts, ["No record has a value."]);
        assert_eq!(chart(&[], &[], None).drawing, ColumnDrawing::Empty);
        let one = chart(&[Some(7.0)], &[None], None);
        let histogram = histogram_of(&one);
        assert_eq!(histogram.real, [1.0]);
        assert_eq!(histogram.synthetic, [0.0]);
        assert!(!one.svg().contains("NaN"));
    }

    #[test]
    fn dates_have_bars_of_calendar_units() {
        let days = some((0..1_461).map(|day| f64::from(day) * 86_400.0));
        let chart = chart(&days, &days, Some(ChartAxis::Date));
        // Months from 1970-01 to 1974-01.
        let histogram = histogram_of(&chart);
        assert_eq!(histogram.edges.len(), 49);
        let svg = chart.svg();
        assert!(
            svg.contains(">1971</text>") && !svg.contains("31536000"),
            "{svg}"
        );
    }

    #[test]
    fn many_categories_are_shortened_and_listed() {
        let names: Vec<String> = (0..250).map(|i| format!("value {i}")).collect();
        let column = || RawColumn {
            name: "x".to_owned(),
            values: RawValues::Texts {
                values: (0..1_000).map(|row| Some(row % 250)).collect(),
                names: names.clone(),
            },
            words: BTreeMap::new(),
        };
        let charts = ColumnCharts {
            axes: &BTreeMap::new(),
            columns: &[],
            shown: &|_, number| number.to_string(),
        };
        let chart = charts.of_values(&[column()], &[column()]).remove(0);
        let ColumnDrawing::Bars(bars) = &chart.drawing else {
            panic!("{chart:?}");
        };
        assert_eq!(bars.bars.len(), 10);
        assert!(chart.facts[0].contains("The other 240 values have 96% of the real records"));
        assert_eq!(chart.list.bars.len(), 201);
        assert_eq!(chart.list.bars[200].label, "50 other values");
        let sum: f64 = chart.list.bars.iter().map(|bar| bar.real).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}
