//! Columns of dates, times of day and durations.

use std::collections::BTreeMap;

use fhaim_domain::{
    DAY, TimeFormat, TimeNames, TimeOptions, counted, date_from_days, days_from_date,
    form::{Bound, ColumnForm, KindForm, TimeUnit},
};

use super::{Column, Dated, Decided, bins, person, text};
use crate::draft::{Exception, Flag, RecordUse};
use crate::profile::{FormatUse, Profile, Seen};
use crate::times::names::{self, Chosen};

/// Last year of two-digit years in a table without four-digit years: of dates of birth, which are not in the future, and
/// of other dates. The draft states the rule, and the holder can change it.
const LAST_BIRTH: i64 = 2030;
const LAST_DATE: i64 = 2050;

/// The first of the hundred years that two-digit years may stand for.
pub(crate) const FIRST_YEARS: [i64; 2] = [LAST_BIRTH - 99, LAST_DATE - 99];

/// Years that a table may end in.
const LAST_YEARS: std::ops::RangeInclusive<i64> = 1900..=2100;

/// A kind of date or time is chosen if at least this share of the cells have it. Texts in the form of a date are hardly
/// anything else.
const MAJORITY: f64 = 0.75;

/// A format without separators, such as 20240131, is chosen if it reads at least this share of the cells that may also be
/// numbers.
const COMPACT_MAJORITY: f64 = 0.99;

/// Years of dates in such a format, and of months.
const USUAL_YEARS: std::ops::RangeInclusive<i64> = 1850..=2150;

/// Dates that stand for no date, if they are far from all others.
const SENTINELS: [(i64, i64, i64); 10] = [
    (1, 1, 1),
    (1111, 11, 11),
    (1753, 1, 1),
    (1899, 12, 30),
    (1899, 12, 31),
    (1900, 1, 1),
    (2999, 12, 31),
    (3000, 1, 1),
    (9999, 1, 1),
    (9999, 12, 31),
];

/// A day of every year is special if it has at least this share of the records.
const HEAPED_SHARE: f64 = 0.04;

/// A range of more years is rounded to decades.
const MANY_YEARS: i64 = 30;

/// Maximum number of digits of a day within a bin.
const MAX_DAYS: i64 = 100;

/// A bin has at least this many months, so that not all of them are special values.
const MIN_MONTHS: i64 = 12;

/// Minutes are kept if a column has at most this many different ones.
const MAX_MINUTES: usize = 12;

/// Maximum number of different values that are counted one by one.
const MAX_STEPS: usize = 1 << 17;

/// The values of a column, read in one format.
struct Fit<'a> {
    kind: KindForm,
    /// The format of the profile.
    used: &'a FormatUse,
    /// The format of the draft.
    text: String,
    format: TimeFormat,
    options: TimeOptions,
    /// Records by day, or by second for times and durations.
    steps: BTreeMap<i64, u64>,
    cells: u64,
    /// Whether each value is a multiple of a minute, and of an hour.
    minutes: bool,
    hours: bool,
    /// Different minutes of the hour, at most one more than [`MAX_MINUTES`].
    of_hour: std::collections::BTreeSet<i64>,
    others: Vec<(&'a str, Seen)>,
    /// Sentences about the names of its months and weekdays.
    named: Vec<String>,
    /// What its two-digit years follow from, in words.
    years_from: &'static str,
}

/// Drafts a column whose cells are dates or times, but for a few.
pub(super) fn decide(column: &Column<'_>) -> Option<Decided> {
    let cells = column.values.cells as f64;
    let majority = MAJORITY;
    let numbers = column.profile.numbers.read(false).count as f64;
    let formats = column.profile.times.formats.iter();
    let enough = |format: &&FormatUse| {
        let count = format.count as f64;
        let is_clear = !is_compact(&format.text) || count >= COMPACT_MAJORITY * numbers;
        let is_coded = is_month(&format.text) && person::names_codes(column.name);
        count >= majority * cells && is_clear && is_plausible(format) && !is_coded
    };
    let enough: Vec<&FormatUse> = formats.filter(enough).collect();
    let best = best(&enough, column)?;
    let is_clock = matches!(best.kind, KindForm::Time | KindForm::Duration);
    if is_clock
        && !best.text.starts_with('P')
        && let Some(decided) = few_times(column)
    {
        return Some(decided);
    }
    let fit = Fit::of(column, best);
    (fit.cells as f64 >= majority * cells).then(|| fit.decided(column, &enough))
}

/// Drafts a few texts such as 8:00 and 12:00, or the ratios 1:20 and 1:80, as categories if all can be listed.
fn few_times(column: &Column<'_>) -> Option<Decided> {
    let few = column.options.max_number_categories as u64;
    let split = text::Split::of(column);
    (column.values.distinct <= few && split.rest == 0).then(|| text::categories(column, &split))
}

/// Drafts a column as a kind of its holder's choice.
pub(super) fn forced(kind: KindForm, column: &Column<'_>) -> Option<Decided> {
    let formats = column.profile.times.formats.iter();
    let of_kind: Vec<&FormatUse> = formats.filter(|format| format.kind == kind).collect();
    let best = best(&of_kind, column)?;
    let fit = Fit::of(column, best);
    (fit.cells > 0).then(|| fit.decided(column, &of_kind))
}

/// Whether a format has no characters between its parts.
fn is_compact(format: &str) -> bool {
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        if at > 0 {
            return false;
        }
        let letter = rest.find(|c: char| c.is_ascii_alphabetic());
        rest = letter.map_or("", |at| &rest[at + 1..]);
    }
    rest.is_empty()
}

/// Whether a format has a year and the number of a month, such as `%Y-%-m`. Codes such as 2823-3 look the same.
fn is_month(format: &str) -> bool {
    let parts = ["%d", "%-d", "%e", "%b", "%B", "%h"];
    !parts.iter().any(|part| format.contains(part))
}

/// Whether the values of a format can be meant: digits without separators and months are dates only in years that occur,
/// and times have a colon or a letter, since 12.30 is a number.
fn is_plausible(format: &FormatUse) -> bool {
    match format.kind {
        KindForm::Time | KindForm::Duration => {
            format.text.contains(':')
                || format.text.contains("%p")
                || format.text.starts_with("PT")
                || format.text.starts_with("P[")
                || (format.text.starts_with("P%") && format.text.contains("DT"))
        }
        _ => {
            let year =
                |seconds: i64| date_from_days(seconds.div_euclid(DAY)).map_or(0, |date| date.0);
            let years = [year(format.min), year(format.max)];
            let usual = years.iter().all(|year| USUAL_YEARS.contains(year));
            match is_compact(&format.text) {
                true => usual,
                false => !is_number_like(&format.text) && (usual || !is_month(&format.text)),
            }
        }
    }
}

/// Whether a format without a day and a name, such as `%m.%y`, reads texts that are rather numbers: 12.30.
fn is_number_like(format: &str) -> bool {
    let named = format.contains(['b', 'B', 'h']);
    !named && !has_day(format) && (format.contains(['.', ',']) || !format.contains("%Y"))
}

/// Whether a format of dates has a day, and not only a month.
pub(crate) fn has_day(format: &str) -> bool {
    ["%d", "%-d", "%e"].iter().any(|day| format.contains(day))
}

/// Returns the number of months from one day to another.
fn months(first: i64, last: i64) -> i64 {
    let month = |day: i64| date_from_days(day).map_or(0, |(year, month, _)| 12 * year + month);
    month(last) - month(first) + 1
}

/// Returns the format that reads the most cells. Of equals, the first is the likeliest.
fn best<'f>(formats: &[&'f FormatUse], column: &Column<'_>) -> Option<&'f FormatUse> {
    let most = formats.iter().map(|format| format.count).max()?;
    let best = || {
        let formats = formats.iter().copied();
        formats.filter(|format| format.count == most)
    };
    let first = best().next()?;
    if !matches!(first.kind, KindForm::Time | KindForm::Duration) {
        return Some(first);
    }
    let wanted = if is_duration(first, column.name) {
        KindForm::Duration
    } else {
        KindForm::Time
    };
    let all: Vec<&FormatUse> = best().filter(|format| format.kind == wanted).collect();
    match all.first() {
        Some(one) if one.text.starts_with('P') => usual(&all, column),
        one => one.copied().or(Some(first)),
    }
}

/// Returns the format that writes the most cells as they are. Of equals, it is the first.
fn usual<'f>(formats: &[&'f FormatUse], column: &Column<'_>) -> Option<&'f FormatUse> {
    let cells = |format: &FormatUse| -> u64 {
        let is_kept = |text: &str| {
            let value = format.format.read(text);
            value.is_some_and(|value| format.format.show(value).to_string() == text.trim())
        };
        let kept = column.values.iter().filter(|(text, _)| is_kept(text));
        kept.map(|(_, seen)| seen.count).sum()
    };
    // The last of several maxima is the first format.
    formats
        .iter()
        .rev()
        .copied()
        .max_by_key(|format| cells(format))
}

/// Whether texts such as 4:22:37 are durations and no times of day.
fn is_duration(format: &FormatUse, name: &str) -> bool {
    const DURATIONS: [&str; 12] = [
        "duration", "dauer", "elapsed", "wait", "waited", "waiting", "length", "los", "runtime",
        "laufzeit", "lap", "pace",
    ];
    let named = person::words(name)
        .iter()
        .any(|word| DURATIONS.contains(&word.as_str()));
    let short =
        format.max < 13 * 3_600 && format.text.contains("%-H") && format.text.contains("%S");
    named || short || format.text.starts_with('P') || format.max > DAY
}

/// Whether a column's name says that it has dates of birth.
fn is_birth(name: &str) -> bool {
    const BIRTHS: [&str; 7] = [
        "dob",
        "birth",
        "born",
        "birthday",
        "birthdate",
        "geburtsdatum",
        "geb",
    ];
    person::words(name)
        .iter()
        .any(|word| BIRTHS.contains(&word.as_str()))
}

impl<'a> Fit<'a> {
    fn of(column: &Column<'a>, used: &'a FormatUse) -> Self {
        let mut options = TimeOptions::default();
        if used.text.contains("%y") {
            options.first_year = Some(first_year(column, used));
        }
        let dated = matches!(used.kind, KindForm::Date | KindForm::Datetime);
        options.midnight = used.kind != KindForm::Date
            && used.kind != KindForm::Duration
            && column.values.iter().any(|(text, _)| is_late_midnight(text));
        let mut text = used.text.clone();
        if used.format.has_offsets() {
            match used.offsets.as_slice() {
                // One offset is a part of the text that never changes.
                [one] => text = without_offset(&text, one),
                offsets => options.offsets = offsets.to_vec(),
            }
        }
        let named = name_parts(column, used, &mut text, &mut options);
        let years_from = match options.first_year {
            Some(first) if !FIRST_YEARS.contains(&first) => {
                ", because the table's other dates end then"
            }
            _ => "",
        };
        let parsed = TimeFormat::with_options(&text, used.kind, options.clone());
        let mut fit = Self {
            kind: used.kind,
            used,
            text,
            format: parsed.unwrap_or_else(|_| used.format.clone()),
            options,
            steps: BTreeMap::new(),
            cells: 0,
            minutes: true,
            hours: true,
            of_hour: std::collections::BTreeSet::new(),
            others: Vec::new(),
            named,
            years_from,
        };
        for (text, seen) in column.values.iter() {
            match fit.format.read(text) {
                Some(value) => fit.see(value, seen.count, dated),
                None => fit.others.push((text, seen)),
            }
        }
        fit.add_forgotten(dated);
        fit
    }

    fn see(&mut self, value: i64, count: u64, dated: bool) {
        self.cells += count;
        self.minutes &= value.rem_euclid(60) == 0;
        self.hours &= value.rem_euclid(3_600) == 0;
        if self.of_hour.len() <= MAX_MINUTES {
            self.of_hour.insert(value.rem_euclid(3_600) / 60);
        }
        self.count(if dated { self.format.day(value) } else { value }, count);
    }

    fn count(&mut self, step: i64, count: u64) {
        if self.steps.len() < MAX_STEPS || self.steps.contains_key(&step) {
            *self.steps.entry(step).or_default() += count;
        }
    }

    /// Adds the values of texts that are not remembered, which only their summary knows.
    fn add_forgotten(&mut self, dated: bool) {
        let values = &self.used.values;
        if values.count() == 0 {
            return;
        }
        self.cells += values.count();
        let weighted: Vec<(f64, u64)> = values.weighted().collect();
        for (value, weight) in weighted {
            self.count(value as i64, weight);
        }
        for limit in [self.used.min, self.used.max] {
            let step = if dated { self.format.day(limit) } else { limit };
            self.steps.entry(step).or_insert(1);
        }
        // With that many different texts, nothing is known about their minutes.
        self.of_hour.extend(0..60);
        let varies =
            |unit: i64| self.used.min.rem_euclid(unit) != 0 || self.used.max.rem_euclid(unit) != 0;
        (self.minutes, self.hours) = (self.minutes && !varies(60), self.hours && !varies(3_600));
    }

    fn decided(mut self, column: &Column<'_>, alternatives: &[&FormatUse]) -> Decided {
        let mut form = column.form(self.kind);
        let proposals = self.fix_clock(column);
        form.format = Some(self.text.clone());
        form.first_year = self.options.first_year;
        form.midnight = self.options.midnight.then(|| "24:00".to_owned());
        form.offsets = Some(self.options.offsets.clone()).filter(|offsets| !offsets.is_empty());
        form.months = self.options.months.as_ref().map(TimeNames::list);
        form.weekdays = self.options.weekdays.as_ref().map(TimeNames::list);
        let taken = match self.kind {
            KindForm::Date | KindForm::Datetime => self.days(&mut form, column),
            KindForm::Time => time_of_day(&mut form, &self),
            _ => self.durations(&mut form, column),
        };
        let flag = if taken == RecordUse::Nothing {
            Flag::Safe
        } else {
            Flag::FromRecords
        };
        let evidence = self.evidence(column);
        let exceptions = self.exceptions(column, &mut form);
        let special = self.special_note(&form);
        let mut decided = Decided::new(form, flag, taken, evidence);
        decided.exceptions = exceptions;
        decided.proposals.extend(special);
        decided.proposals.extend(proposals);
        decided.questions = self.questions(alternatives);
        decided.dated = Some(Dated {
            format: self.used.text.clone(),
            first_year: self.options.first_year,
            span: self.span(),
            moments: match self.kind {
                KindForm::Datetime => self.moments(column),
                _ => BTreeMap::new(),
            },
        });
        decided
    }

    /// Returns the texts of special days with a time, by day, where enough records share each of them.
    fn moments(&self, column: &Column<'_>) -> BTreeMap<String, Vec<String>> {
        let special = self.special_days(column);
        let mut moments: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut rare = Vec::new();
        for (text, seen) in column.values.iter() {
            let day = self.format.read(text).map(|value| self.format.day(value));
            let Some(day) = day.filter(|day| special.contains(day)).map(day_text) else {
                continue;
            };
            match seen.count >= column.options.shared_by {
                true => moments.entry(day).or_default().push(text.trim().to_owned()),
                false => rare.push(day),
            }
        }
        moments.retain(|day, _| !rare.contains(day));
        moments
    }

    /// Names the special dates of a draft, and the way midnight is written.
    fn special_note(&self, form: &ColumnForm) -> Vec<String> {
        let mut notes = Vec::new();
        let dates = form
            .special
            .iter()
            .flatten()
            .filter_map(|bound| match bound {
                Bound::Text(text) if text.starts_with('*') => {
                    Some("1 January of any year".to_owned())
                }
                Bound::Text(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                    Some(text.clone())
                }
                _ => None,
            });
        let dates: Vec<String> = dates.collect();
        if !dates.is_empty() {
            notes.push(format!(
                "special values with separate bins: {}; each has many records, or stands for no date",
                dates.join(", ")
            ));
        }
        if !self.options.offsets.is_empty() {
            notes.push(format!(
                "its UTC offsets are {}",
                self.options.offsets.join(", ")
            ));
        }
        notes.extend(self.named.iter().cloned());
        if self.options.midnight {
            notes.push("midnight is written as 24:00 of the day before".to_owned());
        }
        notes
    }

    /// Days from the first to the last date that is no special value.
    fn span(&self) -> i64 {
        let ends = (self.steps.keys().next(), self.steps.keys().next_back());
        let (Some(first), Some(last)) = ends else {
            return 0;
        };
        last.saturating_sub(*first)
    }

    /// Writes zeros for parts of a clock that are always zero.
    fn fix_clock(&mut self, column: &Column<'_>) -> Option<String> {
        if self.kind == KindForm::Date {
            return None;
        }
        let mut fixed = Vec::new();
        let fractions = (1..=9).map(|digits| {
            (
                format!("%.{digits}f"),
                format!(".{:0digits$}", 0),
                "fractions",
                true,
            )
        });
        let seconds = ("%S".to_owned(), "00".to_owned(), "seconds", self.minutes);
        let minutes = ("%M".to_owned(), "00".to_owned(), "minutes", self.hours);
        for (letters, zeros, what, possible) in fractions.chain([seconds, minutes]) {
            if !possible || !self.text.contains(&letters) {
                continue;
            }
            let text = self.text.replacen(&letters, &zeros, 1);
            let format = TimeFormat::with_options(&text, self.kind, self.options.clone());
            let reads = |format: &TimeFormat| {
                let texts = || column.values.iter().map(|(text, _)| text);
                texts().all(|text| self.format.read(text).is_none() || format.read(text).is_some())
            };
            let Some(format) = format.ok().filter(reads) else {
                break;
            };
            (self.text, self.format) = (text, format);
            fixed.push(what);
        }
        (!fixed.is_empty()).then(|| {
            format!(
                "its {} are always zero, and are written so",
                fixed.join(" and ")
            )
        })
    }

    fn evidence(&self, column: &Column<'_>) -> String {
        let cells = column.values.cells;
        let what = match self.kind {
            KindForm::Date => "dates",
            KindForm::Datetime => "dates with a time",
            KindForm::Time => "times of day",
            _ => "durations",
        };
        match self.cells >= cells {
            true => format!("{} are {what} (`{}`)", counted(cells, "cell"), self.text),
            false => format!(
                "{} of {} are {what} (`{}`)",
                self.cells,
                counted(cells, "cell"),
                self.text
            ),
        }
    }

    fn questions(&self, alternatives: &[&FormatUse]) -> Vec<String> {
        let mut questions = Vec::new();
        let others = || {
            alternatives
                .iter()
                .filter(|other| other.text != self.used.text || other.kind != self.kind)
        };
        if let Some(other) = others()
            .find(|other| other.kind == self.kind && is_swapped(&self.used.text, &other.text))
        {
            questions.push(format!(
                "read with the {} first (`{}`); if the other comes first, set `format` to `{}`",
                if is_day_first(&self.used.text) {
                    "day"
                } else {
                    "month"
                },
                self.used.text,
                other.text
            ));
        }
        if let Some(other) =
            others().find(|other| other.kind != self.kind && other.count >= self.used.count)
        {
            questions.push(format!(
                "read as {}: if the values are of kind {}, use --kind",
                self.kind.word(),
                other.kind.word()
            ));
        }
        if let Some(first) = self.options.first_year {
            questions.push(format!(
                "two-digit years stand for {first} to {}{}: if that is wrong, change `first_year`",
                first + 99,
                self.years_from
            ));
        }
        questions
    }

    fn exceptions(&self, column: &Column<'_>, form: &mut ColumnForm) -> Vec<Exception> {
        let (shared, rare): (Vec<_>, Vec<_>) = (self.others.iter())
            .partition(|(text, seen)| seen.count >= column.options.shared_by && is_word(text));
        let mut exceptions = Vec::new();
        for (text, seen) in shared {
            let text = text.trim();
            let special = form.special.get_or_insert_default();
            special.push(Bound::Text(text.to_owned()));
            exceptions.push(super::special_word(text, seen));
        }
        exceptions.extend(super::rare_exceptions(column, &rare, form));
        exceptions
    }

    /// Fills in the days of dates and datetimes.
    fn days(&self, form: &mut ColumnForm, column: &Column<'_>) -> RecordUse {
        let special = self.special_days(column);
        let rest: Vec<i64> = self
            .steps
            .keys()
            .copied()
            .filter(|day| !special.contains(day))
            .collect();
        let heaped = self.is_heaped(&special);
        let mut texts: Vec<Bound> = special
            .iter()
            .map(|&day| Bound::Text(day_text(day)))
            .collect();
        texts.extend(heaped.then(|| Bound::Text("*-01-01".to_owned())));
        form.special = Some(texts).filter(|texts| !texts.is_empty());
        let (first, last) = match (rest.first(), rest.last()) {
            (Some(&first), Some(&last)) => (first, last),
            _ => (
                special.first().map_or(0, |day| day + 1),
                special.first().map_or(0, |day| day + 1),
            ),
        };
        let (first, last) = whole_years(first, last, self.options.first_year);
        let (span, least) = match has_day(&self.text) {
            true => (last - first + 1, 1),
            false => (months(first, last), MIN_MONTHS),
        };
        let bins = i64::from(column.options.bins.max(1))
            .min(span / least)
            .max(1);
        form.min = Some(Bound::Text(day_text(first)));
        form.max = Some(Bound::Text(day_text(last)));
        form.bins = Some(bins as u64);
        form.digits =
            Some(((span - 1) / bins + 1).min(MAX_DAYS) as u64).filter(|&digits| digits > 1);
        if self.kind == KindForm::Datetime {
            let few = self.of_hour.len() <= MAX_MINUTES && self.format.grain() <= 60;
            form.unit = Some(if few {
                TimeUnit::Minute
            } else {
                TimeUnit::Hour
            });
        }
        RecordUse::Range
    }

    /// Returns special days: frequent ones, and well-known ones far from all others.
    fn special_days(&self, column: &Column<'_>) -> Vec<i64> {
        let known = |day: &i64| {
            SENTINELS
                .iter()
                .any(|&(y, m, d)| days_from_date(y, m, d) == Some(*day))
        };
        let usual: Vec<i64> = self
            .steps
            .keys()
            .copied()
            .filter(|day| !known(day))
            .collect();
        let (first, last) = (
            usual.first().copied().unwrap_or(0),
            usual.last().copied().unwrap_or(0),
        );
        let far = |day: i64| day < first || day > last;
        let mut special = bins::frequent(&self.steps, column.options.shared_by);
        special.retain(|&day| !is_new_year(day) || known(&day) || !self.is_heaped(&[]));
        for &day in self.steps.keys().filter(|day| known(day) && far(**day)) {
            if !special.contains(&day) {
                special.push(day);
            }
        }
        special.sort_unstable();
        special
    }

    /// Whether unusually many dates are 1 January, as dates of birth that are not known exactly.
    fn is_heaped(&self, special: &[i64]) -> bool {
        let days = || self.steps.iter().filter(|(day, _)| !special.contains(day));
        let (mut heaped, mut all) = (0u64, 0u64);
        let mut years = std::collections::BTreeSet::new();
        for (&day, &count) in days() {
            all += count;
            if is_new_year(day) {
                heaped += count;
                years.insert(day);
            }
        }
        years.len() >= 5 && heaped as f64 >= HEAPED_SHARE * all as f64
    }

    /// Fills in the bins of durations.
    fn durations(&self, form: &mut ColumnForm, column: &Column<'_>) -> RecordUse {
        let unit = self.format.grain().max(1);
        let mut steps: BTreeMap<i64, u64> = BTreeMap::new();
        for (&seconds, &count) in &self.steps {
            *steps.entry(seconds.div_euclid(unit)).or_default() += count;
        }
        let bound = |step: i64| Bound::Text(duration_text(step * unit));
        let binning = bins::Binning {
            bins: column.options.bins,
            // In a column with fractions, no whole second is special.
            shared_by: match self.text.contains('f') {
                true => u64::MAX,
                false => column.options.shared_by,
            },
            bound: &bound,
        };
        bins::fill(form, &steps, &binning);
        RecordUse::Range
    }
}

/// Chooses the letters and lists for the names of months and weekdays that a column has. Returns sentences about them.
fn name_parts(
    column: &Column<'_>,
    used: &FormatUse,
    text: &mut String,
    options: &mut TimeOptions,
) -> Vec<String> {
    let count = |name: &dyn Fn(&'_ str) -> Option<String>| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (text, seen) in column.values.iter() {
            if let Some(name) = name(text) {
                *counts.entry(name).or_default() += seen.count;
            }
        }
        counts
    };
    let mut named = Vec::new();
    if text.contains("%b") {
        let counts = count(&|text| used.format.month_name(text).map(str::to_owned));
        let chosen = names::months().choose(&counts);
        options.months = written(text, "%b", "months", chosen, &mut named)
            .and_then(|names| TimeNames::months(names).ok());
    }
    if text.contains("%a") {
        let counts = count(&|text| used.format.weekday_name(text).map(str::to_owned));
        let chosen = names::weekdays().choose(&counts);
        options.weekdays = written(text, "%a", "weekdays", chosen, &mut named)
            .and_then(|names| TimeNames::weekdays(names).ok());
    }
    named
}

/// Writes the letters of chosen names into a format, and returns the names if the schema must list them.
fn written(
    text: &mut String,
    letters: &str,
    what: &str,
    chosen: Option<Chosen>,
    named: &mut Vec<String>,
) -> Option<Vec<String>> {
    let chosen = chosen?;
    *text = text.replace(letters, chosen.letters);
    if chosen.names.is_some() {
        named.push(format!(
            "its {what} have {} names (`{what}`)",
            chosen.language
        ));
    }
    chosen.names
}

/// Returns the first of the hundred years that two-digit years stand for.
///
/// It is a constant, unless a birth would then be after the last date of the table.
fn first_year(column: &Column<'_>, used: &FormatUse) -> i64 {
    let usual = match is_birth(column.name) {
        true => FIRST_YEARS[0],
        false => return FIRST_YEARS[1],
    };
    let Some(last) = column.last_year else {
        return usual;
    };
    let texts = column
        .values
        .iter()
        .filter_map(|(text, _)| used.format.read(text));
    let days = texts.map(|moment| moment.div_euclid(DAY));
    let mut days = days.chain(used.values.weighted().map(|(day, _)| day as i64));
    let is_later = |day: i64| {
        let year = date_from_days(day).map_or(usual, |date| date.0);
        usual + (year - usual).rem_euclid(100) > last
    };
    match days.any(is_later) {
        true => last - 99,
        false => usual,
    }
}

/// Returns the last four-digit year of a column of dates. Years of dates that stand for no date do not count.
pub(crate) fn last_year(profile: &Profile) -> Option<i64> {
    let is_dated = |format: &&FormatUse| {
        let enough = format.count as f64 >= MAJORITY * profile.present.max(1) as f64;
        enough && format.text.contains("%Y") && !is_compact(&format.text) && is_plausible(format)
    };
    let format = profile.times.formats.iter().find(is_dated)?;
    let texts = profile.texts.in_order().into_iter();
    let moments = texts.filter_map(|(text, _)| format.format.read(text));
    let summary = format.values.weighted().map(|(day, _)| day as i64 * DAY);
    let years = moments
        .chain(summary)
        .filter_map(|moment| date_from_days(moment.div_euclid(DAY)));
    years
        .map(|date| date.0)
        .filter(|year| LAST_YEARS.contains(year))
        .max()
}

/// Replaces the letters of an offset by the offset.
fn without_offset(format: &str, offset: &str) -> String {
    let text = format.replace("%:z", offset).replace("%z", offset);
    text.replace("%Z", offset)
}

/// Fills in all hours of the day: nothing is taken from the records.
fn time_of_day(form: &mut ColumnForm, fit: &Fit<'_>) -> RecordUse {
    let grain = fit.format.grain();
    // With midnight as 24:00, a day begins after it.
    let first = if fit.options.midnight { grain } else { 0 };
    let last = (first + DAY - grain.max(1)).max(0);
    form.min = Some(Bound::Text(match first {
        0 => "00:00".to_owned(),
        _ => clock_text(first, grain),
    }));
    form.max = Some(Bound::Text(clock_text(last, grain)));
    form.bins = Some(24);
    form.digits = (grain <= 60).then_some(60);
    RecordUse::Nothing
}

/// Whether a text has midnight as 24:00 of the day before. In `06:24:00`, these are minutes.
fn is_late_midnight(text: &str) -> bool {
    let is_clock = |letter: char| letter == ':' || letter.is_ascii_digit();
    let mut found = text.match_indices("24:00");
    found.any(|(at, _)| {
        !text
            .get(..at)
            .is_some_and(|before| before.ends_with(is_clock))
    })
}

fn clock_text(seconds: i64, grain: i64) -> String {
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match grain < 60 {
        true => format!("{hour:02}:{minute:02}:{second:02}"),
        false => format!("{hour:02}:{minute:02}"),
    }
}

fn duration_text(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let seconds = seconds.abs();
    format!(
        "{sign}{}:{:02}:{:02}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Whether a text without any digit can be a special value.
fn is_word(text: &str) -> bool {
    fhaim_domain::is_name(text) && !text.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_day_first(format: &str) -> bool {
    let place = |letter| format.find(letter).unwrap_or(0);
    place('d') < place('m')
}

/// Whether two formats read the same texts with day and month swapped.
fn is_swapped(one: &str, other: &str) -> bool {
    is_day_first(one) != is_day_first(other)
}

fn is_new_year(day: i64) -> bool {
    matches!(date_from_days(day), Some((_, 1, 1)))
}

/// Rounds a range outward to whole years or, if it is long, to decades.
fn whole_years(first: i64, last: i64, first_year: Option<i64>) -> (i64, i64) {
    let year = |day: i64| date_from_days(day).map_or(1970, |date| date.0);
    let (mut from, mut to) = (year(first), year(last));
    if to - from >= MANY_YEARS {
        (from, to) = (from.div_euclid(10) * 10, to.div_euclid(10) * 10 + 9);
    }
    // Two-digit years cannot leave their hundred years.
    let (least, most) = first_year.map_or((1, 9999), |first| (first, first + 99));
    let (from, to) = (from.max(least), to.min(most));
    let from = days_from_date(from.max(1), 1, 1).unwrap_or(first);
    let to = days_from_date(to.min(9999), 12, 31).unwrap_or(last);
    (from.min(first), to.max(last))
}

fn day_text(day: i64) -> String {
    let (year, month, day) = date_from_days(day).unwrap_or((1970, 1, 1));
    format!("{year:04}-{month:02}-{day:02}")
}
