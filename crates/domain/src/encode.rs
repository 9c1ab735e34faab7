//! Encodes a field of a record as the codes of its attributes.

mod times;

use std::collections::HashMap;

use crate::{
    Binning, CellProblem, Column, Field, Kind, OutOfRange, RawColumn, ReadOptions, Schema,
    codes::CodeBook,
    constraint::{Numbers, Readings},
    decimal::parse_number,
    field::{Derived, Meaning},
    names::cut,
    number::NumberField,
    options::{Adjusted, is_missing},
    ordered::Ordered,
    raw::RawKeeper,
    times::Lapse,
};

/// Values of the current record, by field, that later fields and constraints need.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    /// Moments, which later fields may be relative to.
    at: Readings,
    /// Numbers, if the schema has constraints.
    numbers: Option<Numbers>,
}

impl Moments {
    /// Creates the store for records of a schema.
    pub(crate) fn of(schema: &Schema) -> Self {
        Self {
            at: Readings::new(),
            numbers: (!schema.rules.is_empty()).then(Numbers::new),
        }
    }

    /// Starts another record.
    pub(crate) fn clear(&mut self) {
        self.at.clear();
        if let Some(numbers) = &mut self.numbers {
            numbers.clear();
        }
    }

    /// The record's numbers, if the schema has constraints.
    pub(crate) fn numbers(&self) -> Option<&Numbers> {
        self.numbers.as_ref()
    }

    /// The record's dates and datetimes.
    pub(crate) fn readings(&self) -> &Readings {
        &self.at
    }
}

/// Encodes the texts of one field.
pub(crate) struct Encoder<'a> {
    field: &'a Field,
    /// Index of the field in the schema.
    index: usize,
    /// The field's columns of codes.
    columns: &'a [Column],
    /// Index of the field in the file.
    pub(crate) place: usize,
    options: &'a ReadOptions,
    /// Codes of categories; empty for other kinds.
    codes: Codes<'a>,
    kept: Option<RawKeeper>,
}

/// Codes of categories by their bytes. Most columns have few and short categories, and comparing words finds those
/// faster than a hash.
struct Codes<'a> {
    short: Vec<u64>,
    all: HashMap<&'a [u8], u32>,
}

impl<'a> Codes<'a> {
    /// Up to this number, categories are compared one by one.
    const FEW: usize = 32;

    fn of(categories: &'a [String]) -> Self {
        let words = categories.iter().map(|category| word(category.as_bytes()));
        let short: Option<Vec<u64>> = words.collect();
        match short {
            Some(short) if short.len() <= Self::FEW => Self {
                short,
                all: HashMap::new(),
            },
            _ => Self {
                short: Vec::new(),
                all: categories.iter().map(String::as_bytes).zip(0..).collect(),
            },
        }
    }

    fn get(&self, bytes: &[u8]) -> Option<u32> {
        if self.all.is_empty() {
            let own = word(bytes)?;
            let place = self.short.iter().position(|&word| word == own)?;
            return u32::try_from(place).ok();
        }
        self.all.get(bytes).copied()
    }
}

/// Packs at most seven bytes into a word, together with their number.
fn word(bytes: &[u8]) -> Option<u64> {
    let append = |word: u64, &byte: &u8| word << 8 | u64::from(byte);
    (bytes.len() < 8).then(|| bytes.iter().fold(bytes.len() as u64, append))
}

/// The reading of a text: its codes, as a coarse and a fine one, and its number if it has one. Every cell of a table is
/// read this way, so nothing here is on the heap.
struct Read {
    place: (u32, u32),
    /// Codes of the time of day and the UTC offset, next to those of the day.
    more: [Option<(u32, u32)>; 2],
    number: Option<f64>,
}

impl Read {
    fn code(code: u32, number: Option<f64>) -> Self {
        Self::place((code, 0), number)
    }

    fn place(place: (u32, u32), number: Option<f64>) -> Self {
        Self {
            place,
            more: [None; 2],
            number,
        }
    }
}

impl<'a> Encoder<'a> {
    /// Creates the encoder of a field. Returns `None` if the field has no attributes.
    pub(crate) fn new(
        schema: &'a Schema,
        field: &'a Field,
        place: usize,
        options: &'a ReadOptions,
    ) -> Option<Self> {
        let columns = schema.columns().get(field.attributes())?;
        let first = columns.first()?;
        let codes = match first.kind() {
            Kind::Categorical { categories, .. } => Codes::of(categories),
            Kind::Numeric(_) | Kind::Part { .. } => Codes::of(&[]),
        };
        let numbers = match &field.meaning {
            Meaning::Plain => matches!(first.kind(), Kind::Numeric(_)),
            Meaning::Number(_) | Meaning::Time(_) | Meaning::Lapse(_) | Meaning::Steps(_) => true,
            _ => false,
        };
        let index = schema
            .fields()
            .iter()
            .position(|other| std::ptr::eq(other, field))?;
        Some(Self {
            field,
            index,
            columns,
            place,
            options,
            codes,
            kept: options.keep_values.then(|| RawKeeper::new(numbers)),
        })
    }

    /// Returns the original values, if they were kept.
    pub(crate) fn into_values(self) -> Option<RawColumn> {
        let name = self.field.name().to_owned();
        self.kept.map(|kept| kept.finish(name))
    }

    /// Adds the codes of a text to `columns`, which hold all attributes.
    ///
    /// # Errors
    /// The field does not allow the text.
    pub(crate) fn encode(
        &mut self,
        bytes: &[u8],
        moments: &mut Moments,
        columns: &mut [Vec<u32>],
        adjusted: &mut [Adjusted],
    ) -> Result<(), CellProblem> {
        let attributes = self.field.attributes();
        // Adjustments of a field are kept with its first attribute, which always exists.
        let noted = adjusted
            .get_mut(attributes.start)
            .ok_or(CellProblem::Missing)?;
        let read = match self.codes.get(bytes) {
            Some(code) => Some(Read::code(code, None)),
            None => match self.read(bytes, moments, noted) {
                Err(problem) if self.field.invalid.is_some() && problem.is_invalid() => {
                    noted.invalid += 1;
                    None
                }
                read => read?,
            },
        };
        if let Some(kept) = &mut self.kept {
            // The bytes of every value are UTF-8.
            let text = read.as_ref().and_then(|_| std::str::from_utf8(bytes).ok());
            kept.push(text, read.as_ref().and_then(|r| r.number));
        }
        if let (Some(numbers), Some(number)) =
            (&mut moments.numbers, read.as_ref().and_then(|r| r.number))
        {
            numbers.insert(self.index, number);
        }
        let (place, more) = read.map(|read| (read.place, read.more)).unzip();
        let more = more.into_iter().flatten().flatten();
        let mut pairs = place.into_iter().chain(more);
        for part in &self.field.parts {
            let Some(column) = self.columns.get(part.coarse - attributes.start) else {
                continue;
            };
            // Every coarse column of a nullable field has a code for a missing value.
            let missing = (column.null_code().unwrap_or(0), 0);
            let (coarse, fine) = pairs.next().unwrap_or(missing);
            for (attribute, code) in [(Some(part.coarse), coarse), (part.fine, fine)] {
                if let Some(codes) = attribute.and_then(|attribute| columns.get_mut(attribute)) {
                    codes.push(code);
                }
            }
        }
        Ok(())
    }

    /// Reads a cell that is not a category. Returns `None` if it is missing.
    fn read(
        &self,
        bytes: &[u8],
        moments: &mut Moments,
        noted: &mut Adjusted,
    ) -> Result<Option<Read>, CellProblem> {
        let text = std::str::from_utf8(bytes).map_err(|_| CellProblem::NotUtf8)?;
        if let Meaning::Number(number) = &self.field.meaning
            && let Some(place) = number.values.encode_word(text.trim())
        {
            return Ok(Some(Read::place(place, None)));
        }
        let is_word = match &self.field.meaning {
            Meaning::Time(time) => time.dated.words.find(text).is_some(),
            Meaning::Lapse(lapse) => lapse.dated.words.find(text).is_some(),
            Meaning::Steps(steps) => steps.words.find(text).is_some(),
            _ => false,
        };
        let missing = [&self.options.missing, &self.field.missing];
        if !is_word && missing.into_iter().any(|texts| is_missing(text, texts)) {
            return self.missing(noted);
        }
        let read = match &self.field.meaning {
            Meaning::Plain => match self.columns.first().map(Column::kind) {
                Some(Kind::Numeric(binning)) => self.bin(binning, text, noted)?,
                Some(Kind::Categorical { other, .. }) => {
                    let other = other.map(|code| (code, 0));
                    Read::code(self.other(other, text, noted)?.0, None)
                }
                _ => return Err(CellProblem::Missing),
            },
            Meaning::Number(number) => self.number(number, text, noted)?,
            Meaning::Time(time) => self.time(time, text, moments, noted)?,
            Meaning::Lapse(lapse) => match self.lapse(lapse, text, moments, noted)? {
                Some(read) => read,
                // The moment that it is relative to is missing, or refused if this field is not nullable.
                None if self.field.nullable() => return self.missing(noted),
                None => return Ok(None),
            },
            Meaning::Steps(steps) => self.steps(steps, text, noted)?,
            Meaning::Code(book) => self.book(book, text, noted)?,
            Meaning::Identifier(_) | Meaning::Derived(_) | Meaning::LeftOut => return Ok(None),
        };
        Ok(Some(read))
    }

    fn missing(&self, noted: &mut Adjusted) -> Result<Option<Read>, CellProblem> {
        noted.missing += 1;
        if self.field.nullable() {
            Ok(None)
        } else {
            Err(CellProblem::Missing)
        }
    }

    fn bin(
        &self,
        binning: &Binning,
        text: &str,
        noted: &mut Adjusted,
    ) -> Result<Read, CellProblem> {
        let value = parse_number(text).ok_or_else(|| CellProblem::NotANumber(cut(text)))?;
        if binning.integer() && value.fract() != 0.0 {
            return Err(CellProblem::NotAnInteger(cut(text)));
        }
        noted.fractions += u64::from(value.fract() != 0.0);
        if let Some(bin) = binning.bin(value) {
            return Ok(Read::code(bin, Some(value)));
        }
        let nearest = binning.clamp(value).and_then(|value| binning.bin(value));
        match (self.options.out_of_range, nearest) {
            (OutOfRange::Clamp, Some(bin)) => {
                noted.clamped += 1;
                Ok(Read::code(bin, Some(value)))
            }
            _ => Err(CellProblem::OutOfRange {
                value: cut(text),
                min: binning.min(),
                max: binning.max(),
            }),
        }
    }

    fn number(
        &self,
        number: &NumberField,
        text: &str,
        noted: &mut Adjusted,
    ) -> Result<Read, CellProblem> {
        let (value, step) = number.read(text)?;
        noted.fractions += u64::from(value.fract() != 0.0);
        let mut place = number.values.encode(step);
        if place.is_none() && self.options.out_of_range == OutOfRange::Clamp {
            noted.clamped += 1;
            place = number.values.encode(number.values.clamp(step));
        }
        let place = place.ok_or_else(|| number.out_of_range(text))?;
        Ok(Read::place(place, Some(value)))
    }

    /// Returns the codes of a step, or of the nearest limit if the holder asks for that.
    fn place(&self, ordered: &Ordered, step: i64, noted: &mut Adjusted) -> Option<(u32, u32)> {
        if let Some(place) = ordered.encode(step) {
            return Some(place);
        }
        if self.options.out_of_range == OutOfRange::Refuse {
            return None;
        }
        noted.clamped += 1;
        ordered.encode(ordered.clamp(step))
    }

    fn book(&self, book: &CodeBook, text: &str, noted: &mut Adjusted) -> Result<Read, CellProblem> {
        let place = match book.place(text) {
            Some(place) => place,
            None => self.other(book.other(), text, noted)?,
        };
        Ok(Read::place(place, None))
    }

    fn other(
        &self,
        other: Option<(u32, u32)>,
        text: &str,
        noted: &mut Adjusted,
    ) -> Result<(u32, u32), CellProblem> {
        let code = other.ok_or_else(|| CellProblem::UnknownCategory(cut(text)))?;
        noted.other += 1;
        Ok(code)
    }
}

impl Schema {
    /// Returns the codes of a field's attributes for a value as a person would write it: a value of the table, a label
    /// of the field's first column, or an empty text for a missing value. Attributes that the value leaves open are not
    /// included. Returns `None` if the field does not have the value.
    pub fn codes_of(&self, field: &Field, text: &str) -> Option<Vec<(usize, u32)>> {
        let first = field.parts.first()?.coarse;
        let column = self.columns().get(first)?;
        let named = || (0..column.size() as u32).find(|&code| column.label(code) == text);
        let places = match &field.meaning {
            Meaning::Lapse(lapse) => lapse.places(text),
            _ => places(field, column, text),
        };
        let Some(places) = places else {
            let missing = || column.null_code().filter(|_| text.is_empty());
            return Some(vec![(first, named().or_else(missing)?)]);
        };
        let mut codes = Vec::new();
        for (part, (coarse, fine)) in field.parts.iter().zip(places) {
            codes.push((part.coarse, coarse));
            codes.extend(part.fine.map(|attribute| (attribute, fine)));
        }
        Some(codes)
    }

    /// Returns whether `text` may be a value of a field, so that it cannot stand for a missing one.
    pub(crate) fn has_value(&self, field: &Field, text: &str) -> bool {
        if let Meaning::Derived(Derived {
            values: Some(values),
            ..
        }) = &field.meaning
        {
            return !text.is_empty() && values.values().any(|value| value == text);
        }
        let field = self.value_field(field);
        let column = field.parts.first();
        let column = column.and_then(|part| self.columns().get(part.coarse));
        match (&field.meaning, column) {
            (Meaning::Lapse(lapse), _) => self.may_reach(lapse, text),
            (_, Some(column)) => places(field, column, text).is_some(),
            (_, None) => false,
        }
    }

    /// Returns whether `text` is a value at an allowed distance of some value of the field that it is relative to.
    fn may_reach(&self, lapse: &Lapse, text: &str) -> bool {
        let Some(cell) = lapse.dated.read(text) else {
            return false;
        };
        let base = self.fields().get(lapse.base).map(|field| &field.meaning);
        let (Some(Meaning::Time(base)), None, Some(moment)) =
            (base, lapse.special(cell), lapse.dated.moment(cell))
        else {
            return true;
        };
        let (first, last) = base.limits();
        let (min, max) = lapse.units.limits();
        lapse.between(last, moment) <= max && lapse.between(first, moment) >= min
    }
}

/// Returns the codes of each part of a value as it stands in a table, or `None` if the field does not have it.
fn places(field: &Field, column: &Column, text: &str) -> Option<Vec<(u32, u32)>> {
    match &field.meaning {
        Meaning::Plain => match column.kind() {
            Kind::Numeric(binning) => parse_number(text)
                .and_then(|number| binning.bin(number))
                .map(|bin| vec![(bin, 0)]),
            Kind::Categorical { categories, .. } => {
                let place = categories.iter().position(|category| category == text);
                place.map(|code| vec![(code as u32, 0)])
            }
            Kind::Part { .. } => None,
        },
        Meaning::Number(number) => number.place(text).map(|place| vec![place]),
        Meaning::Time(time) => time.places(text),
        Meaning::Steps(steps) => {
            let place = steps.step(text).and_then(|step| steps.steps.encode(step));
            place.map(|place| vec![place])
        }
        Meaning::Code(book) => book.place(text).map(|place| vec![place]),
        Meaning::Lapse(_) | Meaning::Identifier(_) | Meaning::Derived(_) | Meaning::LeftOut => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_words_and_by_hashes() {
        let few = ["", "a", "\0", "ab", "ba", "sevens!", "\u{1}a"];
        let long = ["a", "eight...", ""];
        let many: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        let owned = |texts: &[&str]| texts.iter().map(|&t| t.to_owned()).collect();
        for categories in [owned(&few), owned(&long), many, Vec::new()] {
            let codes = Codes::of(&categories);
            for (code, category) in categories.iter().enumerate() {
                assert_eq!(codes.get(category.as_bytes()), Some(code as u32));
            }
            for other in ["b", "aa", "\0\0", "100", "sevens?", "eight..!", "00"] {
                assert_eq!(codes.get(other.as_bytes()), None, "{other:?}");
            }
        }
    }
}
