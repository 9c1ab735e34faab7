//! Checks of raw texts, before the schema reads them.

use std::collections::BTreeMap;

use fhaim_intake::{Shape, TextCounts, scan_number};

use super::{
    Check,
    columns::share_check,
    evidence::{Examined, Findings, percent},
    statistics::{Sizes, cohens_h, two_counts},
};

/// Smallest share of texts with another form, or of unknown values, that matters.
const MIN_NEW: f64 = 0.02;

/// Maximum number of distinct texts of a column with a known list of values, and their maximum share of its records.
const MAX_KNOWN: usize = 1_000;
const MAX_KNOWN_SHARE: f64 = 0.05;

/// A column has numbers if at least this share of its texts are numbers.
const NUMBERS: f64 = 0.95;
/// Share of the real numbers that have at most the column's decimals.
const PRECISE: f64 = 0.99;
/// Maximum number of decimals of a step.
const MAX_DECIMALS: u32 = 9;
/// Steps are compared in columns with more distinct numbers than this.
const MAX_DISCRETE: usize = 30;

/// Steps that people use, in units of the last decimal.
const STEPS: [i64; 22] = [
    1, 2, 4, 5, 10, 12, 15, 20, 25, 30, 50, 60, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000,
    100_000, 1_000_000,
];

/// Smallest change of the share of multiples of a step that matters, as Cohen's h: from 50% to 65%.
const MIN_STEP_EFFECT: f64 = 0.3;

/// Checks columns by their texts.
pub(crate) fn form_checks(real: &[TextCounts], synthetic: &[TextCounts]) -> Findings {
    let mut findings = Findings::default();
    for one in real {
        let Some(two) = synthetic.iter().find(|other| other.name == one.name) else {
            continue;
        };
        let sizes = Sizes::of(texts(one), texts(two));
        if sizes.real < 1.0 || sizes.synthetic < 1.0 {
            continue;
        }
        findings.subjects += 1;
        findings.all += 1;
        findings.examined.extend(shape_check(one, two, sizes));
        findings.examined.extend(known_check(one, two, sizes));
        findings.examined.extend(step_check(one, two));
    }
    findings
}

fn texts(column: &TextCounts) -> usize {
    column.texts.values().sum::<u64>() as usize
}

/// Looks for forms of texts that the real column does not have, such as another decimal mark.
fn shape_check(real: &TextCounts, synthetic: &TextCounts, sizes: Sizes) -> Option<Examined> {
    let [one, two] = [real, synthetic].map(shapes);
    let mut examined = new_check(&real.name, &one, &two, sizes)?;
    let (shape, example) = newest(&one, &two, |shape| {
        synthetic
            .texts
            .keys()
            .find(|text| form(text) == shape)
            .cloned()
    })?;
    examined.text = format!(
        "{} of the synthetic texts of {} have a form that no real one has, such as {example:?} ({})",
        percent(examined.distance),
        real.name,
        Shape::from(shape.as_str())
    );
    Some(examined)
}

/// Looks for values that the real column does not have, if it has few.
fn known_check(real: &TextCounts, synthetic: &TextCounts, sizes: Sizes) -> Option<Examined> {
    let different = real.texts.len();
    if different > MAX_KNOWN || different as f64 > MAX_KNOWN_SHARE * sizes.real {
        return None;
    }
    let mut examined = new_check(&real.name, &real.texts, &synthetic.texts, sizes)?;
    let (_, example) = newest(&real.texts, &synthetic.texts, |text| Some(text.to_owned()))?;
    examined.text = format!(
        "{} of the synthetic values of {} do not occur among its {different} real ones, such as {example:?}",
        percent(examined.distance),
        real.name
    );
    Some(examined)
}

/// Compares the synthetic texts that the real column lacks with the share that a second sample would have: that of the
/// texts that occur once (Good 1953).
fn new_check(
    name: &str,
    real: &BTreeMap<String, u64>,
    synthetic: &BTreeMap<String, u64>,
    sizes: Sizes,
) -> Option<Examined> {
    let once = real.values().filter(|&&count| count == 1).count();
    let new: u64 = synthetic
        .iter()
        .filter(|(text, _)| !real.contains_key(*text))
        .map(|(_, count)| count)
        .sum();
    if new == 0 {
        return None;
    }
    let counts = Sizes::of(once, new as usize);
    let mut examined = share_check(Check::Form, None, vec![name.to_owned()], counts, sizes);
    examined.distance = counts.synthetic / sizes.synthetic;
    examined.expected = counts.real / sizes.real;
    examined.p = match examined.distance > examined.expected {
        true => two_counts(counts, sizes),
        false => 1.0,
    };
    examined.size = (examined.distance - examined.expected) / MIN_NEW;
    Some(examined)
}

/// Returns the most frequent new entry with an example.
fn newest(
    real: &BTreeMap<String, u64>,
    synthetic: &BTreeMap<String, u64>,
    example: impl Fn(&str) -> Option<String>,
) -> Option<(String, String)> {
    let new = synthetic
        .iter()
        .filter(|(text, _)| !real.contains_key(*text));
    let (most, _) = new.max_by_key(|(_, count)| **count)?;
    Some((most.clone(), example(most)?))
}

/// Returns the form of a text without blanks around it: its shape, with one character for each run of digits or letters.
fn form(text: &str) -> String {
    let mut form = String::new();
    for class in Shape::of(text.trim()).as_str().chars() {
        if !(class.is_ascii_alphanumeric() && form.ends_with(class)) {
            form.push(class);
        }
    }
    form
}

fn shapes(column: &TextCounts) -> BTreeMap<String, u64> {
    let mut shapes = BTreeMap::new();
    for (text, count) in &column.texts {
        *shapes.entry(form(text)).or_default() += count;
    }
    shapes
}

/// A number with its decimals and count.
struct Counted {
    value: f64,
    decimals: u32,
    count: f64,
}

/// Returns the numbers of a column, if it has hardly other texts.
fn numbers(column: &TextCounts) -> Option<Vec<Counted>> {
    let number = |(text, &count): (&String, &u64)| {
        let scanned = scan_number(text).filter(|scanned| scanned.limit.is_none())?;
        let reading = scanned.readings.iter().next()?;
        Some(Counted {
            value: scanned.value(reading)?,
            decimals: reading.decimals,
            count: count as f64,
        })
    };
    let numbers: Vec<Counted> = column.texts.iter().filter_map(number).collect();
    let are_numbers = total(&numbers) >= NUMBERS * texts(column) as f64;
    (are_numbers && !numbers.is_empty()).then_some(numbers)
}

fn total(numbers: &[Counted]) -> f64 {
    numbers.iter().map(|number| number.count).sum()
}

/// Compares the shares of multiples of common steps, and of numbers with no more decimals than the real ones.
fn step_check(real: &TextCounts, synthetic: &TextCounts) -> Option<Examined> {
    let (one, two) = (numbers(real)?, numbers(synthetic)?);
    let decimals = column_decimals(&one);
    let is_discrete = one.len() <= MAX_DISCRETE;
    let steps = STEPS
        .iter()
        .copied()
        .take(if is_discrete { 1 } else { STEPS.len() });
    let multiples = |numbers: &[Counted], step: i64| -> (f64, f64) {
        let of = numbers.iter().filter(|number| number.value != 0.0);
        let all: f64 = of.clone().map(|number| number.count).sum();
        let multiples = of.filter(|number| is_multiple(number.value, decimals, step));
        (multiples.map(|number| number.count).sum(), all)
    };
    let compared = steps.map(|step| {
        let ((found, all), (other, others)) = (multiples(&one, step), multiples(&two, step));
        let counts = Sizes {
            real: found,
            synthetic: other,
        };
        let sizes = Sizes {
            real: all,
            synthetic: others,
        };
        (
            step,
            counts,
            sizes,
            cohens_h(found / all.max(1.0), other / others.max(1.0)),
        )
    });
    let (step, counts, sizes, effect) = compared.max_by(|x, y| x.3.total_cmp(&y.3))?;
    let name = &real.name;
    let mut examined = share_check(Check::Form, None, vec![name.clone()], counts, sizes);
    examined.size = effect / MIN_STEP_EFFECT;
    examined.tests = if is_discrete { 1 } else { STEPS.len() };
    let what = match step {
        1 => format!(
            "have at most {}",
            fhaim_domain::counted(u64::from(decimals), "decimal")
        ),
        _ => format!(
            "are multiples of {}",
            step as f64 / 10f64.powi(decimals as i32)
        ),
    };
    examined.text = format!(
        "{} of the synthetic values of {name} {what}, and {} of the real ones",
        percent(counts.synthetic / sizes.synthetic.max(1.0)),
        percent(counts.real / sizes.real.max(1.0))
    );
    Some(examined)
}

/// Returns the number of decimals that almost all numbers have at most.
fn column_decimals(numbers: &[Counted]) -> u32 {
    let all = total(numbers);
    let within = |decimals: u32| {
        let of = numbers.iter().filter(|number| number.decimals <= decimals);
        of.map(|number| number.count).sum::<f64>() >= PRECISE * all
    };
    (0..MAX_DECIMALS)
        .find(|&decimals| within(decimals))
        .unwrap_or(MAX_DECIMALS)
}

fn is_multiple(value: f64, decimals: u32, step: i64) -> bool {
    let units = value * 10f64.powi(decimals as i32) / step as f64;
    (units - units.round()).abs() < 1e-6 * units.abs().clamp(1.0, 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_have_one_character_for_each_run() {
        assert_eq!(form("1,234.50"), "9,9.9");
        assert_eq!(form("2024-01-31"), "9-9-9");
        assert_eq!(form("Married"), "Aa");
    }

    #[test]
    fn multiples_are_recognised_in_decimals() {
        assert!(
            is_multiple(0.15, 2, 5) && is_multiple(12_500.0, 0, 500) && is_multiple(-3.0, 0, 1)
        );
        assert!(
            !is_multiple(0.16, 2, 5) && !is_multiple(12_501.0, 0, 500) && !is_multiple(2.5, 0, 1)
        );
    }
}
