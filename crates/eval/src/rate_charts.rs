//! Data of the charts of pairs and of sets of three columns.

use fhaim_domain::Table;

use crate::{
    Check, Finding,
    assessment::{Coarse, Evidence, Family, cells},
    charts::{RateChart, RatePanel, ReportCharts, nice_share},
};

/// Maximum number of charts of pairs, and of those without a failed check.
const MAX_PAIRS: [usize; 2] = [6, 3];
/// The same for charts of three columns.
const MAX_TRIPLES: [usize; 2] = [3, 2];

/// Maximum number of groups and of values that are counted, and of those that a chart of a pair shows.
const MAX_COUNTED: [usize; 2] = [64, 20];
const MAX_DRAWN: [usize; 2] = [8, 4];
/// The same for a chart of three columns.
const MAX_OF_THREE: [usize; 2] = [5, 4];
/// Maximum number of ranges that the numbers of a column are divided into.
const MAX_RANGES: usize = 8;
/// Maximum number of panels.
const MAX_PANELS: usize = 4;
/// Maximum number of characters of the name of a range.
const MAX_RANGE: usize = 13;
/// Smallest number of records of both tables in a group, as in the checks of rates.
const MIN_RECORDS: usize = 60;
/// In small tables, a group has at least this share of the records.
const MIN_SHARE: usize = 20;

/// Adds the charts of the pairs and sets of three columns that differ most.
pub(crate) fn add_rate_charts(
    charts: &mut ReportCharts,
    tables: [&Table; 2],
    evidence: &Evidence,
    findings: &[Finding],
) {
    let pairs = chosen(
        findings,
        &[Check::RateByGroup, Check::Association],
        evidence,
        Family::Associations,
        MAX_PAIRS,
    );
    charts.pairs = pairs
        .iter()
        .filter_map(|names| pair(tables, names))
        .collect();
    let triples = chosen(
        findings,
        &[Check::Triple],
        evidence,
        Family::Triples,
        MAX_TRIPLES,
    );
    charts.triples = triples
        .iter()
        .filter_map(|names| triple(tables, names))
        .collect();
}

/// Returns the columns of failed checks, and then those that differ most, each set once.
fn chosen<'a>(
    findings: &'a [Finding],
    checks: &[Check],
    evidence: &'a Evidence,
    family: Family,
    [most, most_others]: [usize; 2],
) -> Vec<&'a [String]> {
    let failed = findings
        .iter()
        .filter(|finding| checks.contains(&finding.check));
    let failed = failed.map(|finding| &finding.columns[..]);
    let others = evidence.largest(family).into_iter();
    let mut chosen: Vec<&[String]> = Vec::new();
    for (columns, most) in failed
        .map(|set| (set, most))
        .chain(others.map(|set| (set, most_others)))
    {
        let is_same = |other: &&[String]| columns.iter().all(|column| other.contains(column));
        if chosen.len() < most && !chosen.iter().any(is_same) {
            chosen.push(columns);
        }
    }
    chosen
}

fn attribute(table: &Table, name: &str) -> Option<usize> {
    let columns = table.schema().columns();
    let attributes = table.domain().coarse_attributes();
    attributes
        .into_iter()
        .find(|&attribute| columns[attribute].name() == name)
}

/// Groups a column's values.
fn coarse(tables: [&Table; 2], attribute: usize, most: usize) -> Coarse {
    let is_ordered = tables[0].schema().columns()[attribute].ordered();
    let most = if is_ordered {
        most.min(MAX_RANGES)
    } else {
        most
    };
    let records = tables.map(Table::records).iter().sum::<usize>();
    Coarse::new(
        tables,
        attribute,
        most,
        MIN_RECORDS.min(records / MIN_SHARE),
    )
}

fn pair(tables: [&Table; 2], names: &[String]) -> Option<RateChart> {
    let [groups, values] = names else {
        return None;
    };
    let [groups, values] = [attribute(tables[0], groups)?, attribute(tables[0], values)?];
    let target = tables[0].schema().target();
    let is_reverse = target == Some(groups);
    let [groups, values] = if is_reverse {
        [values, groups]
    } else {
        [groups, values]
    };
    let groups = coarse(tables, groups, MAX_COUNTED[0]);
    let values = coarse(tables, values, MAX_COUNTED[1]);
    let counts = cells(&[&groups, &values]);
    let rates = Rates {
        groups: &groups,
        values: &values,
        counts,
    };
    let kept = rates.kept(&MAX_DRAWN);
    let mut panels = vec![rates.panel(&kept, &groups.heading())];
    share_scales(&mut panels);
    Some(RateChart {
        columns: vec![groups.name.clone(), values.name.clone()],
        note: rates.note(&kept),
        panels,
    })
}

fn triple(tables: [&Table; 2], names: &[String]) -> Option<RateChart> {
    let attributes: Option<Vec<usize>> = names
        .iter()
        .map(|name| attribute(tables[0], name))
        .collect();
    let mut attributes = attributes?;
    // The target is last, or else the column with the fewest values.
    let target = tables[0].schema().target();
    let size = |attribute: usize| tables[0].domain().size(attribute);
    attributes.sort_by_key(|&attribute| {
        (
            target == Some(attribute),
            std::cmp::Reverse(size(attribute)),
        )
    });
    let [groups, panels, values] = attributes[..] else {
        return None;
    };
    let groups = coarse(tables, groups, MAX_OF_THREE[0]);
    let values = coarse(tables, values, MAX_OF_THREE[1]);
    let by = coarse(tables, panels, MAX_PANELS);
    let counts = cells(&[&by, &groups, &values]);
    let size = groups.len() * values.len();
    let rates = |panel: usize| Rates {
        groups: &groups,
        values: &values,
        counts: [0, 1].map(|table| {
            counts[table]
                .iter()
                .skip(panel * size)
                .take(size)
                .copied()
                .collect()
        }),
    };
    let kept = Kept {
        groups: (0..groups.len()).collect(),
        values: drawn_values(&values),
    };
    let panel = |(index, label): (usize, &String)| {
        rates(index).panel(&kept, &format!("{}: {label}", by.heading()))
    };
    let mut panels: Vec<RatePanel> = by.labels.iter().enumerate().map(panel).collect();
    share_scales(&mut panels);
    Some(RateChart {
        columns: vec![groups.name.clone(), values.name.clone(), by.name.clone()],
        note: String::new(),
        panels,
    })
}

/// Gives all panels the scales of the largest shares.
fn share_scales(panels: &mut [RatePanel]) {
    let rows = panels.first().map_or(0, |panel| panel.values.len());
    let largest = |row: usize| {
        let shares = panels
            .iter()
            .flat_map(|panel| [&panel.real, &panel.synthetic]);
        let shares = shares.filter_map(|rows| rows.get(row)).flatten().flatten();
        nice_share(shares.copied().fold(0.0, f64::max))
    };
    let scales: Vec<f64> = (0..rows).map(largest).collect();
    panels
        .iter_mut()
        .for_each(|panel| panel.scales.clone_from(&scales));
}

/// The groups and values that a chart shows, as indices.
struct Kept {
    groups: Vec<usize>,
    values: Vec<usize>,
}

/// Counts of both tables, row-major: a row for each group.
struct Rates<'a> {
    groups: &'a Coarse,
    values: &'a Coarse,
    counts: [Vec<f64>; 2],
}

/// Returns the values to draw. Of two values, the second says nothing else; the first is the most frequent one.
fn drawn_values(values: &Coarse) -> Vec<usize> {
    match values.len() {
        2 if !values.is_ordered => vec![1],
        all => (0..all).collect(),
    }
}

impl Rates<'_> {
    fn size(&self, table: usize, group: usize) -> f64 {
        let width = self.values.len();
        self.counts[table]
            .iter()
            .skip(group * width)
            .take(width)
            .sum()
    }

    fn rate(&self, table: usize, group: usize, value: usize) -> Option<f64> {
        let size = self.size(table, group);
        let count = self.counts[table].get(group * self.values.len() + value)?;
        (size > 0.0).then(|| count / size)
    }

    /// Returns the difference of a rate in standard errors.
    fn difference(&self, group: usize, value: usize) -> f64 {
        let [Some(real), Some(synthetic)] = [0, 1].map(|table| self.rate(table, group, value))
        else {
            return 0.0;
        };
        let sizes = [0, 1].map(|table| self.size(table, group));
        let mean = (real * sizes[0] + synthetic * sizes[1]) / (sizes[0] + sizes[1]);
        let error = (mean * (1.0 - mean) * (1.0 / sizes[0] + 1.0 / sizes[1])).sqrt();
        if error > 0.0 {
            (real - synthetic).abs() / error
        } else {
            0.0
        }
    }

    /// Chooses the groups and values with the largest differences, in their order.
    fn kept(&self, [most_groups, most_values]: &[usize; 2]) -> Kept {
        let values = drawn_values(self.values);
        let of_group = |group: usize| {
            values
                .iter()
                .map(|&v| self.difference(group, v))
                .fold(0.0, f64::max)
        };
        let groups = largest((0..self.groups.len()).collect(), *most_groups, of_group);
        let of_value = |value: usize| {
            groups
                .iter()
                .map(|&g| self.difference(g, value))
                .fold(0.0, f64::max)
        };
        let values = largest(values.clone(), *most_values, of_value);
        Kept { groups, values }
    }

    fn panel(&self, kept: &Kept, title: &str) -> RatePanel {
        let shares = |table: usize| -> Vec<Vec<Option<f64>>> {
            let of = |&value: &usize| {
                kept.groups
                    .iter()
                    .map(|&group| self.rate(table, group, value))
                    .collect()
            };
            kept.values.iter().map(of).collect()
        };
        let names = |of: &Coarse, kept: &[usize]| {
            let name = |&index: &usize| match of.is_ordered {
                true => short_range(&of.labels[index]),
                false => of.labels[index].clone(),
            };
            kept.iter().map(name).collect()
        };
        RatePanel {
            title: title.to_owned(),
            groups: names(self.groups, &kept.groups),
            values: names(self.values, &kept.values),
            real: shares(0),
            synthetic: shares(1),
            scales: Vec::new(),
        }
    }

    fn note(&self, kept: &Kept) -> String {
        let part = |kept: usize, all: usize, what: &str| {
            (kept < all).then(|| format!("{kept} of {all} {what}"))
        };
        let parts = [
            part(kept.groups.len(), self.groups.len(), "groups"),
            part(kept.values.len(), drawn_values(self.values).len(), "values"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => String::new(),
            false => format!(
                "The chart shows {}: those that differ most.",
                parts.join(" and ")
            ),
        }
    }
}

/// Names a range by its start if its full name would be cut.
fn short_range(range: &str) -> String {
    match range.split_once(" to ") {
        Some((start, _)) if range.chars().count() > MAX_RANGE => format!("from {start}"),
        _ => range.to_owned(),
    }
}

/// Keeps the indices with the largest numbers, in their order.
fn largest(mut indices: Vec<usize>, most: usize, number: impl Fn(usize) -> f64) -> Vec<usize> {
    indices.sort_by(|&x, &y| number(y).total_cmp(&number(x)));
    indices.truncate(most);
    indices.sort_unstable();
    indices
}
