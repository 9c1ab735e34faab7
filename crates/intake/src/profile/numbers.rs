//! How the numbers of a column are written, and their values.
//!
//! Whether a comma or a point is the decimal mark is decided over the whole column. Until then, values are kept for both.

use std::collections::HashMap;

use fhaim_domain::{MAX_DECIMALS, form::Negative};

use super::quantiles::Quantiles;
use crate::numbers::{Reading, ScannedNumber, Sign, scan_number};

/// Maximum number of different texts around numbers.
const MAX_AFFIXES: usize = 64;

/// Texts around a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Affixes {
    pub(crate) before: String,
    pub(crate) after: String,
}

/// What the separators in a column's numbers say about the decimal mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Numbers that can only be read with a decimal point, and only with a decimal comma.
    point: u64,
    comma: u64,
    /// Numbers with one point, or one comma, before three digits: a decimal mark or a separator.
    open_point: u64,
    open_comma: u64,
    /// Numbers of at least 1000 without separators.
    unseparated: u64,
    /// Numbers in which a point, or a comma, can only separate thousands.
    grouped_by_point: u64,
    grouped_by_comma: u64,
}

/// Which character is the decimal mark of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Whether the decimal mark is a comma.
    pub(crate) comma: bool,
    /// Whether a comma or point before three digits separates thousands.
    pub(crate) is_grouped: bool,
    /// Whether no number decides it.
    pub(crate) is_open: bool,
}

impl Marks {
    fn add(&mut self, scanned: &ScannedNumber<'_>, weight: u64) {
        // An exponent follows decimals, never groups of thousands.
        let decimal = scanned
            .readings
            .iter()
            .next()
            .filter(|_| scanned.has_exponent);
        let Some(reading) = scanned.readings.only().or(decimal) else {
            match scanned.separators().next() {
                Some((_, ',')) => self.open_comma += weight,
                _ => self.open_point += weight,
            }
            return;
        };
        self.grouped_by_point += u64::from(reading.thousands == Some('.')) * weight;
        self.grouped_by_comma += u64::from(reading.thousands == Some(',')) * weight;
        match (reading.mark, reading.thousands) {
            (Some(','), _) | (_, Some('.')) => self.comma += weight,
            (Some(_), _) | (_, Some(',')) => self.point += weight,
            _ => {}
        }
        let digits = scanned
            .number
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
        let is_bare = reading.thousands.is_none() && digits > 3;
        self.unseparated += u64::from(is_bare) * weight;
    }

    /// Decides the decimal mark.
    pub(crate) fn decide(&self) -> Mark {
        let open = self.open_comma + self.open_point;
        let is_decided = self.comma != self.point;
        let comma = match is_decided {
            true => self.comma > self.point,
            // Only numbers such as 1.200, or 1,200: separators, as nobody writes three decimals in every number and no
            // number above 999 without them.
            false => self.open_point > self.open_comma,
        };
        let separator_like = if comma {
            self.open_point
        } else {
            self.open_comma
        };
        let mark_like = if comma {
            self.open_comma
        } else {
            self.open_point
        };
        let mixed = self.unseparated > separator_like;
        if !is_decided && open > 0 && mixed {
            // 1.200 and 1500 in one column: decimals.
            return Mark {
                comma: !comma,
                is_grouped: false,
                is_open: open > 0,
            };
        }
        Mark {
            comma,
            is_grouped: separator_like
                + if comma {
                    self.grouped_by_point
                } else {
                    self.grouped_by_comma
                }
                > 0,
            is_open: !is_decided && open > 0 || (is_decided && mark_like > 0 && separator_like > 0),
        }
    }
}

/// Numbers of a column, read with one decimal mark.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) count: u64,
    /// Numbers by their decimals.
    decimals: [u64; MAX_DECIMALS as usize + 1],
    /// Separator between groups of three digits, if any number has one.
    pub(crate) thousands: Option<char>,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Greatest common divisor of all numbers, in units of the ninth decimal; 0 if all numbers are zero.
    pub(crate) divisor: u128,
    /// Values of texts that are not remembered.
    pub(crate) values: Quantiles,
}

impl Read {
    fn new() -> Self {
        Self {
            count: 0,
            decimals: [0; MAX_DECIMALS as usize + 1],
            thousands: None,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            divisor: 0,
            values: Quantiles::default(),
        }
    }

    fn add(
        &mut self,
        scanned: &ScannedNumber<'_>,
        reading: Reading,
        weight: u64,
        is_remembered: bool,
    ) {
        let Some(value) = scanned.value(reading) else {
            return;
        };
        self.count += weight;
        // A number with an exponent says nothing about decimals, apart from its value.
        let decimals = match scanned.has_exponent {
            true => shortest_decimals(value),
            false => reading.decimals.min(MAX_DECIMALS),
        };
        if let Some(count) = self.decimals.get_mut(decimals as usize) {
            *count += weight;
        }
        self.thousands = self.thousands.or(reading.thousands);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.divisor = gcd(self.divisor, ninths(value));
        if !is_remembered {
            self.values.add(value);
        }
    }

    /// Returns the decimals that suffice for at least `share` of the numbers, and the most of any number.
    pub(crate) fn usual_decimals(&self, share: f64) -> (u32, u32) {
        let mut seen = 0;
        let (mut usual, mut most) = (None, 0);
        for (&count, decimals) in self.decimals.iter().zip(0u32..) {
            seen += count;
            if count > 0 {
                most = decimals;
            }
            if usual.is_none() && seen as f64 >= share * self.count as f64 {
                usual = Some(decimals);
            }
        }
        (usual.unwrap_or(most), most)
    }

    /// Whether all numbers have the same decimals.
    pub(crate) fn is_even(&self) -> bool {
        self.decimals.iter().filter(|&&count| count > 0).count() <= 1
    }
}

/// Returns the magnitude of a number in units of the ninth decimal.
fn ninths(value: f64) -> u128 {
    // Values of tables are below 2^53, where this is exact but for the rounding that the double had.
    (value.abs() * 1e9).round() as u128
}

/// Returns the fewest decimals with which a number can be written.
fn shortest_decimals(value: f64) -> u32 {
    // Of a small number such as 1.04e-7, no digit may be lost.
    let fits = |&decimals: &u32| {
        let scaled = value * 10f64.powi(decimals as i32);
        (scaled - scaled.round()).abs() < 1e-9 * scaled.abs().clamp(f64::MIN_POSITIVE, 1e3)
    };
    (0..MAX_DECIMALS).find(fits).unwrap_or(MAX_DECIMALS)
}

/// Euclid's algorithm.
fn gcd(mut one: u128, mut other: u128) -> u128 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Numbers of a column.
#[derive(Debug)]
pub(crate) struct Numbers {
    pub(crate) marks: Marks,
    /// Read with a decimal point, and with a decimal comma.
    read: [Read; 2],
    affixes: HashMap<Affixes, u64>,
    /// Negative numbers by [`Negative`].
    pub(crate) negative: [u64; 4],
    /// Numbers with a plus, and numbers without any sign.
    pub(crate) plus: u64,
    pub(crate) unsigned: u64,
    /// Numbers with leading zeros, such as 01234.
    pub(crate) padded: u64,
    /// Numbers that letters touch, such as B20.
    pub(crate) glued: u64,
    /// Fewest and most characters of numbers.
    pub(crate) width: (usize, usize),
}

impl Numbers {
    pub(crate) fn new() -> Self {
        Self {
            marks: Marks::default(),
            read: [Read::new(), Read::new()],
            affixes: HashMap::new(),
            negative: [0; 4],
            plus: 0,
            unsigned: 0,
            padded: 0,
            glued: 0,
            width: (usize::MAX, 0),
        }
    }

    /// Adds a text that occurs `weight` times, if it is a number and no limit.
    pub(crate) fn add(&mut self, text: &str, weight: u64, is_remembered: bool) {
        let Some(scanned) = scan_number(text).filter(|scanned| scanned.limit.is_none()) else {
            return;
        };
        self.marks.add(&scanned, weight);
        self.add_form(text, &scanned, weight);
        for reading in scanned.readings.iter() {
            let comma = reading.style().comma;
            let either = reading.mark.is_none() && !matches!(reading.thousands, Some(',' | '.'));
            for (read, is_comma) in self.read.iter_mut().zip([false, true]) {
                if either || comma == is_comma {
                    read.add(&scanned, reading, weight, is_remembered);
                }
            }
        }
    }

    fn add_form(&mut self, text: &str, scanned: &ScannedNumber<'_>, weight: u64) {
        let affixes = Affixes {
            before: scanned.before.to_owned(),
            after: scanned.after.to_owned(),
        };
        if let Some(count) = self.affixes.get_mut(&affixes) {
            *count += weight;
        } else if self.affixes.len() < MAX_AFFIXES {
            self.affixes.insert(affixes, weight);
        }
        let negative = scanned.sign.negative().map(|negative| match negative {
            Negative::Minus if text.contains('\u{2212}') => Negative::MinusSign,
            other => other,
        });
        if let Some(negative) = negative
            && let Some(count) = self.negative.get_mut(negative as usize)
        {
            *count += weight;
        }
        self.plus += u64::from(scanned.sign == Sign::Plus) * weight;
        let is_zero = !scanned
            .number
            .contains(|digit| ('1'..='9').contains(&digit));
        self.unsigned += u64::from(scanned.sign == Sign::None && !is_zero) * weight;
        self.padded += u64::from(scanned.is_padded) * weight;
        self.glued += u64::from(scanned.has_glued_letters()) * weight;
        let width = scanned.number.len();
        self.width = (self.width.0.min(width), self.width.1.max(width));
    }

    /// Returns the numbers read with a decimal mark.
    pub(crate) fn read(&self, comma: bool) -> &Read {
        let [point, with_comma] = &self.read;
        if comma { with_comma } else { point }
    }

    /// Whether numbers that are not negative have a plus.
    pub(crate) fn has_plus(&self) -> bool {
        self.plus > 20 * self.unsigned
    }

    /// Returns the most frequent texts around the numbers.
    pub(crate) fn affixes(&self) -> Affixes {
        let most = self
            .affixes
            .iter()
            .max_by_key(|&(affixes, &count)| (count, affixes));
        most.map(|(affixes, _)| affixes.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(texts: &[&str]) -> Mark {
        let mut numbers = Numbers::new();
        texts.iter().for_each(|text| numbers.add(text, 1, true));
        numbers.marks.decide()
    }

    #[test]
    fn decimal_mark_is_decided_over_the_whole_column() {
        let is = |texts: &[&str]| {
            let mark = marks(texts);
            (mark.comma, mark.is_grouped, mark.is_open)
        };
        assert_eq!(is(&["1,200", "800"]), (false, true, true));
        assert_eq!(is(&["1.200", "800"]), (true, true, true));
        assert_eq!(is(&["1.200", "0.800"]), (false, false, false));
        assert_eq!(is(&["1.200", "1500", "1500"]), (false, false, true));
        assert_eq!(is(&["1,91", "2,42"]), (true, false, false));
        assert_eq!(is(&["74.447,08", "999,99", "1.234"]), (true, true, false));
        assert_eq!(is(&["1,200", "12,200.5"]), (false, true, false));
        assert_eq!(is(&["5", "17"]), (false, false, false));
    }

    #[test]
    fn divisor_shows_the_step() {
        let mut numbers = Numbers::new();
        ["57500", "50500", "41500"]
            .iter()
            .for_each(|text| numbers.add(text, 1, true));
        assert_eq!(numbers.read(false).divisor, 500_000_000_000);
        let mut ages = Numbers::new();
        ["58.0", "9.0"]
            .iter()
            .for_each(|text| ages.add(text, 1, true));
        assert_eq!(ages.read(false).divisor, 1_000_000_000);
        assert_eq!(ages.read(false).usual_decimals(0.95), (1, 1));
    }
}
