//! The ways to read digits with separators: `1,200` is 1200, or 1.2 with three decimals.

use fhaim_domain::{NumberStyle, form::Negative};

/// A way to read digits with separators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reading {
    /// The decimal mark, a comma or a point, if the digits have one.
    pub mark: Option<char>,
    /// The character between groups of three digits, if the digits have one.
    pub thousands: Option<char>,
    /// Number of decimals.
    pub decimals: u32,
}

impl Reading {
    /// Returns the style of numbers that are read this way, without signs and texts around them.
    pub fn style(&self) -> NumberStyle {
        NumberStyle {
            decimals: self.decimals.min(fhaim_domain::MAX_DECIMALS),
            trailing_zeros: self.decimals > 0,
            comma: self.mark == Some(',') || self.thousands == Some('.'),
            thousands: self.thousands,
            negative: Negative::Minus,
            ..NumberStyle::default()
        }
    }
}

/// All ways to read digits with separators. There is at least one. There are two if the digits have
/// one separator, a comma or a point, with three digits behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readings {
    /// The separators are between groups, except for a different last one.
    grouped: Option<Reading>,
    /// The only separator is the decimal mark, or there are no separators.
    decimal: Option<Reading>,
}

impl Readings {
    /// Iterates over the readings. Of two readings, the first has a decimal mark.
    pub fn iter(&self) -> impl Iterator<Item = Reading> + use<> {
        self.decimal.into_iter().chain(self.grouped)
    }

    /// Returns the reading, if there is only one.
    pub fn only(&self) -> Option<Reading> {
        match (self.decimal, self.grouped) {
            (Some(reading), None) | (None, Some(reading)) => Some(reading),
            _ => None,
        }
    }
}

/// Collects the groups of digits of a number from left to right.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Groups {
    /// Number of digits of the first group and of the current one.
    first: u32,
    current: u32,
    starts_with_zero: bool,
    separators: u32,
    /// The first separator, and a later one that differs from it.
    separator: Option<char>,
    mark: Option<char>,
    /// Whether a group between two separators has other than three digits.
    has_odd_group: bool,
    /// Whether a separator follows the decimal mark.
    is_broken: bool,
}

impl Groups {
    /// Adds the digits of the group that the last separator began.
    pub(super) fn digits(&mut self, digits: &str) {
        self.current = u32::try_from(digits.len()).unwrap_or(u32::MAX);
        if self.separators == 0 {
            self.first = self.current;
            self.starts_with_zero = digits.starts_with('0');
        }
    }

    /// Adds a separator.
    pub(super) fn separator(&mut self, separator: char) {
        self.has_odd_group |= self.separators > 0 && self.current != 3;
        self.is_broken |= self.mark.is_some();
        match self.separator {
            None => self.separator = Some(separator),
            Some(first) if first != separator => self.mark = Some(separator),
            Some(_) => {}
        }
        self.current = 0;
        self.separators = self.separators.saturating_add(1);
    }

    /// Whether the number begins with a zero and a further digit.
    pub(super) fn is_padded(&self) -> bool {
        self.starts_with_zero && self.first > 1
    }

    /// Returns all ways to read the digits, or `None` if there is no way.
    pub(super) fn readings(&self) -> Option<Readings> {
        let readings = Readings {
            grouped: self.grouped(),
            decimal: self.decimal(),
        };
        readings.iter().next().map(|_| readings)
    }

    fn decimal(&self) -> Option<Reading> {
        let has_digits = self.first > 0 || self.current > 0;
        let decimals = match (self.separators, self.separator) {
            (0, _) => 0,
            (1, Some(',' | '.')) => self.current,
            _ => return None,
        };
        has_digits.then_some(Reading {
            mark: self.separator,
            thousands: None,
            decimals,
        })
    }

    fn grouped(&self) -> Option<Reading> {
        let has_first = (1..=3).contains(&self.first) && !self.starts_with_zero;
        let has_groups = has_first && !self.has_odd_group && !self.is_broken;
        let is_complete = match self.mark {
            None => self.separators > 0 && self.current == 3,
            Some(mark) => matches!(mark, ',' | '.'),
        };
        (has_groups && is_complete).then_some(Reading {
            mark: self.mark,
            thousands: self.separator,
            decimals: self.mark.map_or(0, |_| self.current),
        })
    }
}
