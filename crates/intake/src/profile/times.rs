//! Which formats of dates and times the texts of a column have.

use std::collections::HashMap;

use fhaim_domain::{DAY, TimeFormat, form::KindForm};

use super::quantiles::Quantiles;
use crate::shape::Shape;
use crate::times::candidates::{candidate_formats, reading_options};

/// Maximum number of shapes and formats of a column. Columns of dates have few.
const MAX_SHAPES: usize = 64;
const MAX_FORMATS: usize = 64;

/// How often the formats of a shape are looked for. A text shows only the formats that read it, and 31/08/2024 does not
/// show that 08/31/2024 is possible.
const MAX_LOOKS: u32 = 8;

/// A format, and the texts that it reads.
#[derive(Debug)]
pub(crate) struct FormatUse {
    /// The format as in a schema.
    pub(crate) text: String,
    pub(crate) kind: KindForm,
    pub(crate) format: TimeFormat,
    /// Records that it reads.
    pub(crate) count: u64,
    /// Smallest and largest value, in seconds.
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// Values of texts that are not remembered: days for dates and datetimes, seconds for others.
    pub(crate) values: Quantiles,
    /// UTC offsets and names of zones, if the format has them.
    pub(crate) offsets: Vec<String>,
}

/// Maximum number of different offsets.
const MAX_OFFSETS: usize = 32;

/// A shape, and the formats that its texts may have.
#[derive(Debug, Default)]
struct ShapeUse {
    formats: Vec<usize>,
    looks: u32,
}

/// The formats of a column.
#[derive(Debug, Default)]
pub(crate) struct Times {
    shapes: HashMap<String, ShapeUse>,
    pub(crate) formats: Vec<FormatUse>,
    /// Buffer for a shape.
    shape: String,
}

impl FormatUse {
    fn add(&mut self, text: &str, value: i64, weight: u64, is_remembered: bool) {
        self.count += weight;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if !is_remembered {
            let is_dated = matches!(self.kind, KindForm::Date | KindForm::Datetime);
            let number = if is_dated {
                value.div_euclid(DAY)
            } else {
                value
            };
            self.values.add(number as f64);
        }
        if self.format.has_offsets()
            && let Some(offset) = self.format.offset(text)
            && self.offsets.len() <= MAX_OFFSETS
            && !self.offsets.iter().any(|known| known == offset)
        {
            self.offsets.push(offset.to_owned());
        }
    }
}

impl Times {
    /// Adds a text that occurs `weight` times.
    pub(crate) fn add(&mut self, text: &str, weight: u64, is_remembered: bool) {
        if !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return;
        }
        Shape::write(text, &mut self.shape);
        if !self.shapes.contains_key(&self.shape) {
            if self.shapes.len() >= MAX_SHAPES {
                return;
            }
            self.shapes.insert(self.shape.clone(), ShapeUse::default());
        }
        let Some(shape) = self.shapes.get_mut(&self.shape) else {
            return;
        };
        let mut is_read = false;
        for &index in &shape.formats {
            if let Some(format) = self.formats.get_mut(index)
                && let Some(value) = format.format.read(text)
            {
                format.add(text, value, weight, is_remembered);
                is_read = true;
            }
        }
        if !is_read && shape.looks < MAX_LOOKS {
            shape.looks += 1;
            for (format, kind) in candidate_formats(text) {
                let Some(index) = known(&mut self.formats, &format, kind) else {
                    continue;
                };
                if shape.formats.contains(&index) {
                    continue;
                }
                shape.formats.push(index);
                let found = &mut self.formats[index];
                if let Some(value) = found.format.read(text) {
                    found.add(text, value, weight, is_remembered);
                }
            }
        }
    }
}

/// Returns the index of a format among those of the column, and adds it if there is room.
fn known(formats: &mut Vec<FormatUse>, text: &str, kind: KindForm) -> Option<usize> {
    let same = |format: &FormatUse| format.text == text && format.kind == kind;
    if let Some(index) = formats.iter().position(same) {
        return Some(index);
    }
    if formats.len() >= MAX_FORMATS {
        return None;
    }
    let format = TimeFormat::with_options(text, kind, reading_options()).ok()?;
    formats.push(FormatUse {
        text: text.to_owned(),
        kind,
        format,
        count: 0,
        min: i64::MAX,
        max: i64::MIN,
        values: Quantiles::default(),
        offsets: Vec::new(),
    });
    Some(formats.len() - 1)
}
