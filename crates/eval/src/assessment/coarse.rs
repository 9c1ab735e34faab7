//! Columns of both tables with few values: neighbouring codes of numbers and rare categories are taken together.

use fhaim_domain::Table;

/// Name of a record without a value.
const MISSING: &str = "missing";

/// A column of both tables with few values.
pub(crate) struct Coarse {
    pub(crate) name: String,
    /// Values of the real records, and of the synthetic ones.
    pub(crate) codes: [Vec<u8>; 2],
    /// Names of the values.
    pub(crate) labels: Vec<String>,
    /// What the numbers in the names count; see [`fhaim_domain::Schema::unit`].
    units: Vec<Option<String>>,
    /// Whether the values are ranges of numbers, apart from a missing one.
    pub(crate) is_ordered: bool,
}

impl Coarse {
    /// Takes the values of an attribute together, so that at most `most` (up to 255) remain, each with at least `least`
    /// records of both tables together where that is possible.
    pub(crate) fn new(tables: [&Table; 2], attribute: usize, most: usize, least: usize) -> Self {
        let column = &tables[0].schema().columns()[attribute];
        let mut counts = vec![0usize; column.size()];
        for table in tables {
            table
                .column(attribute)
                .iter()
                .for_each(|&code| counts[code as usize] += 1);
        }
        let label = |code: usize| match column.null_code() {
            Some(null) if null as usize == code => MISSING.to_owned(),
            _ => column.label(code as u32),
        };
        let null = column.null_code().map(|null| null as usize);
        let groups = match column.ordered() {
            true => ranges(&counts, null, most, least),
            false => categories(&counts, most, least),
        };
        let mut group_of = vec![0u8; counts.len()];
        for (group, codes) in (0u8..).zip(&groups) {
            codes.iter().for_each(|&code| group_of[code] = group);
        }
        let named = |codes: &Vec<usize>| match codes[..] {
            [] => String::new(),
            [only] => label(only),
            [first, .., last] if column.ordered() => joined(&label(first), &label(last)),
            _ => "one of the rare values".to_owned(),
        };
        let unit = |code: usize| tables[0].schema().unit(attribute, code as u32);
        let unit_of = |codes: &Vec<usize>| unit(*codes.first()?).and(unit(*codes.last()?));
        let of = |table: &Table| {
            table
                .column(attribute)
                .iter()
                .map(|&code| group_of[code as usize])
                .collect()
        };
        Self {
            name: column.name().to_owned(),
            codes: tables.map(of),
            labels: groups.iter().map(named).collect(),
            units: groups.iter().map(unit_of).collect(),
            is_ordered: column.ordered(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns the name of a value with its unit, for a sentence.
    pub(crate) fn phrase(&self, code: usize) -> String {
        let unit = self.units.get(code).cloned().flatten();
        with_unit(self.labels[code].clone(), unit)
    }

    /// Returns the column's name with the unit of its values, for the heading of a chart.
    pub(crate) fn heading(&self) -> String {
        match self.units.iter().flatten().max_by_key(|unit| unit.len()) {
            Some(unit) => format!("{} ({unit})", self.name),
            None => self.name.clone(),
        }
    }

    /// Whether a value stands for a single value of the column.
    pub(crate) fn is_value(&self, code: usize) -> bool {
        !self.is_ordered || self.labels.get(code).is_some_and(|label| label == MISSING)
    }
}

/// Returns a number or a range with its unit, if it has one.
pub(crate) fn with_unit(label: String, unit: Option<String>) -> String {
    match unit {
        Some(unit) => format!("{label} {unit}"),
        None => label,
    }
}

/// Returns the name of a range of values that may be ranges themselves.
fn joined(first: &str, last: &str) -> String {
    let low = first.split_once(" to ").map_or(first, |(low, _)| low);
    let high = last.rsplit_once(" to ").map_or(last, |(_, high)| high);
    format!("{low} to {high}")
}

/// Returns ranges of codes with about the same number of records, and the code of missing values apart.
fn ranges(counts: &[usize], null: Option<usize>, most: usize, least: usize) -> Vec<Vec<usize>> {
    let missing = null.filter(|&null| counts[null] > 0);
    let most = (most - usize::from(missing.is_some())).max(1);
    let codes = (0..counts.len()).filter(|&code| Some(code) != null);
    let all: usize = codes.clone().map(|code| counts[code]).sum();
    let each = all.div_ceil(most).max(least).max(1);
    let mut groups: Vec<Vec<usize>> = vec![Vec::new()];
    let (mut held, mut before) = (0, 0);
    for code in codes {
        // A boundary is at the code whose records pass a multiple of the size.
        if held > 0 && (before + counts[code] / 2) / each > (before - held) / each && held >= least
        {
            groups.push(Vec::new());
            held = 0;
        }
        if let Some(group) = groups.last_mut() {
            group.push(code);
        }
        held += counts[code];
        before += counts[code];
    }
    if held < least && groups.len() > 1 {
        let rest = groups.pop().unwrap_or_default();
        if let Some(group) = groups.last_mut() {
            group.extend(rest);
        }
    }
    while groups.len() > most {
        let rest = groups.pop().unwrap_or_default();
        if let Some(group) = groups.last_mut() {
            group.extend(rest);
        }
    }
    groups.extend(missing.map(|null| vec![null]));
    groups
}

/// Returns the most frequent codes, each by itself, and all others together.
fn categories(counts: &[usize], most: usize, least: usize) -> Vec<Vec<usize>> {
    let mut codes: Vec<usize> = (0..counts.len()).filter(|&code| counts[code] > 0).collect();
    codes.sort_by_key(|&code| (std::cmp::Reverse(counts[code]), code));
    let frequent = codes
        .iter()
        .take_while(|&&code| counts[code] >= least)
        .count();
    let alone = match frequent == codes.len() && codes.len() <= most {
        true => codes.len(),
        false => frequent.min(most - 1),
    };
    let rest = codes.split_off(alone.max(usize::from(codes.len() == 1)));
    let mut groups: Vec<Vec<usize>> = codes.into_iter().map(|code| vec![code]).collect();
    if !rest.is_empty() {
        groups.push(rest);
    }
    groups
}

/// Counts the cells of columns in both tables, row-major.
pub(crate) fn cells(columns: &[&Coarse]) -> [Vec<f64>; 2] {
    let size = columns.iter().map(|column| column.len()).product();
    [0, 1].map(|table| {
        let mut counts = vec![0u32; size];
        let records = columns
            .first()
            .map_or(0, |column| column.codes[table].len());
        match columns {
            [a, b] => {
                let both = a.codes[table].iter().zip(&b.codes[table]);
                both.for_each(|(&x, &y)| counts[x as usize * b.len() + y as usize] += 1);
            }
            _ => (0..records).for_each(|row| {
                let cell = columns.iter().fold(0, |cell, column| {
                    cell * column.len() + column.codes[table][row] as usize
                });
                counts[cell] += 1;
            }),
        }
        counts.into_iter().map(f64::from).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_similar_sizes_and_missing_values_apart() {
        let groups = ranges(&[5, 5, 5, 5, 5, 5, 5, 5, 7], Some(8), 5, 2);
        assert_eq!(
            groups,
            [vec![0, 1], vec![2, 3], vec![4, 5], vec![6, 7], vec![8]]
        );
        let groups = ranges(&[90, 1, 1, 1, 5, 2], None, 4, 5);
        assert!(
            groups.len() <= 4 && groups.iter().map(Vec::len).sum::<usize>() == 6,
            "{groups:?}"
        );
    }

    #[test]
    fn neighbouring_ranges_have_one_name() {
        assert_eq!(joined("15 to 20", "35 to 40"), "15 to 40");
        assert_eq!(joined("15", "40"), "15 to 40");
    }

    #[test]
    fn rare_categories_are_taken_together() {
        assert_eq!(
            categories(&[9, 1, 0, 30, 2], 8, 5),
            [vec![3], vec![0], vec![4, 1]]
        );
        assert_eq!(
            categories(&[9, 8, 7, 6], 3, 5),
            [vec![0], vec![1], vec![2, 3]]
        );
        assert_eq!(categories(&[9], 3, 5), [vec![0]]);
    }
}
