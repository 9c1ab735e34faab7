//! Random columns of numbers.

use rand::Rng;
use serde_json::Value as Json;

use super::{Generated, Generator};
use fhaim_domain::form::KindForm;

/// How numbers are written.
#[derive(Clone, Copy, Debug)]
struct Style {
    decimals: u32,
    mark: char,
    thousands: Option<char>,
    before: &'static str,
    after: &'static str,
    /// How negative numbers are written: `-1`, `(1)`, `1-` or `−1`.
    negative: char,
    /// Distance of numbers, in units of the last decimal.
    step: i64,
}

impl Style {
    fn write(&self, units: i64) -> String {
        let scale = 10i64.pow(self.decimals);
        let whole = (units.abs() / scale).to_string();
        let mut digits = String::new();
        for (place, digit) in whole.chars().enumerate() {
            let left = whole.len() - place;
            if let Some(mark) = self
                .thousands
                .filter(|_| place > 0 && left.is_multiple_of(3))
            {
                digits.push(mark);
            }
            digits.push(digit);
        }
        if self.decimals > 0 {
            let width = self.decimals as usize;
            digits.push_str(&format!("{}{:0width$}", self.mark, units.abs() % scale));
        }
        let text = format!("{}{digits}{}", self.before, self.after);
        match (units < 0, self.negative) {
            (false, _) => text,
            (true, '(') => format!("({text})"),
            (true, '>') => format!("{text}-"),
            (true, sign) => format!("{sign}{text}"),
        }
    }

    /// Returns the number of a text that the style writes.
    fn read(&self, text: &str) -> Option<f64> {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        let units: i64 = digits.parse().ok()?;
        let found = [units, -units]
            .into_iter()
            .find(|&units| self.write(units) == text)?;
        (found % self.step == 0).then_some(found as f64 / 10f64.powi(self.decimals as i32))
    }
}

impl Generator {
    fn style(&mut self) -> Style {
        let decimals = self.pick(&[0, 0, 1, 2, 2]);
        let mark = self.pick(&['.', ',']);
        let thousands = match mark {
            '.' => self.pick(&[None, None, Some(','), Some(' '), Some('\'')]),
            _ => self.pick(&[None, None, Some('.'), Some('\u{a0}'), Some(' ')]),
        };
        let (before, after) = self.pick(&[
            ("", ""),
            ("", ""),
            ("", "%"),
            ("", " %"),
            ("$", ""),
            ("", " EUR"),
            ("€ ", ""),
            ("", " mg"),
        ]);
        let negative = match after.is_empty() {
            true => self.pick(&['-', '-', '(', '>', '\u{2212}']),
            false => '-',
        };
        let step = match decimals {
            0 => self.pick(&[1, 1, 5, 500]),
            2 => self.pick(&[1, 1, 25]),
            _ => 1,
        };
        Style {
            decimals,
            mark,
            thousands,
            before,
            after,
            negative,
            step,
        }
    }

    pub(super) fn numbers(&mut self, kind: KindForm) -> Generated {
        let style = self.style();
        let largest = self.pick(&[400, 20_000, 3_000_000]);
        let least = if self.rng.random_bool(0.3) {
            -largest / 2
        } else {
            0
        };
        let mut cells: Vec<String> = (0..self.records)
            .map(|_| style.write(self.rng.random_range(least..=largest) * style.step))
            .collect();
        self.words(&mut cells);
        self.frequent(&mut cells, style);
        self.disturb(&mut cells);
        Generated {
            kind,
            chosen: (kind == KindForm::Numeric).then_some(kind),
            cells,
            value: Box::new(move |text| style.read(text)),
            limit: Json::as_f64,
        }
    }

    /// Replaces some cells by a word that many records share.
    fn words(&mut self, cells: &mut [String]) {
        let Some(word) = self.pick(&[None, None, Some("<0.5"), Some("neg"), Some("trace")]) else {
            return;
        };
        for cell in cells.iter_mut().step_by(8) {
            word.clone_into(cell);
        }
    }

    /// Replaces some numbers by one that many records share: zeros, or 9999 for no number.
    fn frequent(&mut self, cells: &mut [String], style: Style) {
        let Some(number) = self.pick(&[None, None, Some(0), Some(9_999)]) else {
            return;
        };
        for cell in cells.iter_mut().skip(1).step_by(7) {
            *cell = style.write(number * 10i64.pow(style.decimals) * style.step);
        }
    }
}
