//! Ages that follow from dates or years.
//!
//! A column of whole numbers may be the age at the time that a column of dates gives, or in one year for all records.
//! It may also be the difference of the years, which is the age at the end of the year. Every combination of columns is
//! a candidate. The first record that fits neither drops it.

use fhaim_domain::{
    Age, AgeAt, Constraint, TimeFormat, YearOf, date_from_days, form::ColumnForm, is_missing,
};

use super::exact::{Cell, NumberColumn, ONE, number_steps};
use super::{MIN_RECORDS, varied_first};
use crate::draft::{ProposedRule, RuleChange};
use crate::kinds::has_day;
use crate::options::InferOptions;
use crate::profile::Profile;
use crate::relations::Drafted;
use crate::relations::order::reads_alike;

/// Ages in years.
const AGES: std::ops::RangeInclusive<i64> = 0..=130;

/// Years of birth.
const YEARS: std::ops::RangeInclusive<i64> = 1850..=2150;

/// Maximum number of columns of ages, of years and of dates.
const MAX_COLUMNS: usize = 16;

/// Maximum number of candidates that the first records leave.
const MAX_CANDIDATES: usize = 64;

/// The ages that no record so far breaks.
#[derive(Debug)]
pub(super) struct Ages {
    numbers: Vec<NumberColumn>,
    dates: Vec<DateColumn>,
    /// Texts that stand for a missing value in every column.
    missing: Vec<String>,
    /// Number of further first records.
    awaited: u64,
    candidates: Vec<Candidate>,
    /// The current record.
    record: Record,
}

/// A column of dates in one format.
#[derive(Debug)]
struct DateColumn {
    /// Index among the drafted columns.
    column: usize,
    format: TimeFormat,
    has_day: bool,
}

/// The numbers and dates of a record.
#[derive(Debug, Default)]
struct Record {
    /// By place in the columns of numbers.
    numbers: Vec<Cell>,
    /// Year, month and day, by place in the columns of dates. The day is `None` in a column of months.
    dates: Vec<Option<CalendarDate>>,
}

type CalendarDate = (i64, i64, Option<i64>);

/// The time of a birth, by place in the columns of dates or numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Born {
    Date(usize),
    Year(usize),
}

/// The time of an age: by place in the columns of dates, or the same year in all records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Date(usize),
    OneYear,
}

#[derive(Clone, Debug)]
struct Candidate {
    /// Place in the columns of numbers.
    age: usize,
    born: Born,
    at: At,
    /// Records in which all columns have a value.
    records: u64,
    /// For one year: the least and the largest sum of the age and the year of birth.
    sums: Option<(i64, i64)>,
    /// The number may be the age in all records.
    is_age: bool,
    /// The number is the difference of the years in all records.
    is_difference: bool,
}

/// What a record says about a candidate.
enum Fit {
    /// The record lacks a value.
    Open,
    AtDate {
        is_age: bool,
        is_difference: bool,
    },
    /// The sum of the age and the year of birth.
    Sum(i64),
}

impl Record {
    /// Returns the whole number at a place; `Err` if the number is not whole.
    fn whole(&self, place: usize) -> Result<Option<i64>, ()> {
        match self.numbers.get(place) {
            Some(&Cell::Number(number)) if number % ONE == 0 => {
                i64::try_from(number / ONE).map(Some).map_err(|_| ())
            }
            Some(Cell::Number(_) | Cell::Inexact) => Err(()),
            Some(Cell::Empty) | None => Ok(None),
        }
    }

    fn date(&self, place: usize) -> Option<CalendarDate> {
        self.dates.get(place).copied().flatten()
    }

    fn fit(&self, candidate: &Candidate) -> Result<Fit, ()> {
        let age = self.whole(candidate.age)?;
        let born_year = match candidate.born {
            Born::Date(place) => self.date(place).map(|(year, ..)| year),
            Born::Year(place) => self.whole(place)?,
        };
        let (Some(age), Some(born_year)) = (age, born_year) else {
            return Ok(Fit::Open);
        };
        let At::Date(at) = candidate.at else {
            return Ok(Fit::Sum(age + born_year));
        };
        let Some((year, month, day)) = self.date(at) else {
            return Ok(Fit::Open);
        };
        let birthday = match candidate.born {
            Born::Date(place) => self.date(place).map(|(_, month, day)| (month, day)),
            Born::Year(_) => None,
        };
        let years = year - born_year;
        let is_difference = age == years;
        let is_age = match birthday {
            Some((birth_month, birth_day)) => match (day, birth_day) {
                // In the month of the birthday, both ages are possible.
                (None, _) | (_, None) if month == birth_month => is_difference || age == years - 1,
                _ => age == years - i64::from((month, day) < (birth_month, birth_day)),
            },
            None => is_difference || age == years - 1,
        };
        Ok(Fit::AtDate {
            is_age,
            is_difference,
        })
    }
}

impl Candidate {
    fn see(&mut self, record: &Record) {
        match record.fit(self) {
            Ok(Fit::Open) => return,
            Ok(Fit::AtDate {
                is_age,
                is_difference,
            }) => {
                self.is_age &= is_age;
                self.is_difference &= is_difference;
            }
            Err(()) => (self.is_age, self.is_difference) = (false, false),
            Ok(Fit::Sum(sum)) => {
                let (least, most) = self.sums.unwrap_or((sum, sum));
                let (least, most) = (least.min(sum), most.max(sum));
                self.sums = Some((least, most));
                self.is_difference = most == least;
                self.is_age &= most - least <= 1;
            }
        }
        self.records += 1;
    }

    fn is_broken(&self) -> bool {
        !self.is_age && !self.is_difference
    }

    /// Whether the rule is the difference of the years, instead of an age that the birthday changes. Two dates whose
    /// whole years are the age say more.
    fn is_year_end(&self) -> bool {
        let has_days = matches!((self.born, self.at), (Born::Date(_), At::Date(_)));
        self.is_difference && !(has_days && self.is_age)
    }

    /// Whether the other columns leave two ages.
    fn is_loose(&self) -> bool {
        let has_year = matches!(self.born, Born::Year(_)) || self.at == At::OneYear;
        has_year && !self.is_difference
    }
}

impl Ages {
    /// Prepares for a table, of which `profiles` have the first records. These records are seen again.
    pub(super) fn new(profiles: &[Profile], options: &InferOptions) -> Self {
        let varied = varied_first(profiles, options).into_iter();
        let varied = varied.filter_map(|column| Some((column, profiles.get(column)?)));
        let mut numbers = Vec::new();
        let (mut ages, mut years) = (Vec::new(), Vec::new());
        for (column, profile) in varied {
            let range = NumberColumn::of(column, profile).whole_range(profile);
            let Some((least, most)) = range else {
                continue;
            };
            let within = |range: &std::ops::RangeInclusive<i64>| {
                range.contains(&least) && range.contains(&most)
            };
            let places = match (within(&AGES), within(&YEARS)) {
                (true, _) => &mut ages,
                (_, true) => &mut years,
                _ => continue,
            };
            if places.len() < MAX_COLUMNS {
                places.push(numbers.len());
                numbers.push(NumberColumn::of(column, profile));
            }
        }
        let dates = match ages.is_empty() {
            true => Vec::new(),
            false => date_columns(profiles),
        };
        Self {
            candidates: candidates(&ages, &years, &dates),
            record: Record::default(),
            missing: options.missing.clone(),
            awaited: profiles.first().map_or(0, |profile| profile.records),
            numbers,
            dates,
        }
    }

    /// Looks at the texts of a record.
    pub(super) fn see(&mut self, texts: &[&str]) {
        if self.candidates.is_empty() {
            return;
        }
        let text = |column: usize| texts.get(column).copied().unwrap_or("");
        self.record.numbers.clear();
        for column in &mut self.numbers {
            let text = text(column.column);
            self.record
                .numbers
                .push(match is_missing(text, &self.missing) {
                    true => Cell::Empty,
                    false => column.read(text),
                });
        }
        let date = |dates: &DateColumn| {
            let moment = dates.format.read(text(dates.column))?;
            let (year, month, day) = date_from_days(dates.format.day(moment))?;
            Some((year, month, dates.has_day.then_some(day)))
        };
        self.record.dates.clear();
        self.record.dates.extend(self.dates.iter().map(date));
        for candidate in &mut self.candidates {
            candidate.see(&self.record);
        }
        self.candidates.retain(|candidate| !candidate.is_broken());
        self.awaited = match self.awaited {
            1 => {
                self.forget();
                0
            }
            awaited => awaited.saturating_sub(1),
        };
    }

    /// Forgets candidates that the first records do not show.
    fn forget(&mut self) {
        self.candidates.retain(|candidate| candidate.records > 0);
        self.candidates.truncate(MAX_CANDIDATES);
    }

    /// Returns the rules of the drafted columns, at most one for each age.
    ///
    /// `is_free` says whether a column may be in a rule.
    pub(super) fn rules(
        &self,
        drafted: &Drafted<'_>,
        is_free: impl Fn(usize) -> bool,
    ) -> Vec<ProposedRule> {
        let mut candidates: Vec<(&Candidate, [usize; 3])> = Vec::new();
        for candidate in &self.candidates {
            let columns = self.columns(candidate);
            let is_rule = candidate.records >= MIN_RECORDS && self.fits(candidate, drafted);
            if let Some(columns) =
                columns.filter(|columns| is_rule && columns.iter().all(|&c| is_free(c)))
            {
                candidates.push((candidate, columns));
            }
        }
        // One age says more than two, and two dates say more than years. Of several dates, the one of the most records.
        candidates.sort_by_key(|(candidate, columns)| {
            let years = u8::from(matches!(candidate.born, Born::Year(_)))
                + u8::from(candidate.at == At::OneYear);
            (
                columns[0],
                candidate.is_loose(),
                years,
                std::cmp::Reverse(candidate.records),
                columns[2],
            )
        });
        candidates.dedup_by_key(|(_, columns)| columns[0]);
        let rule = |(candidate, columns): (&Candidate, [usize; 3])| {
            rule(candidate, columns, drafted.forms)
        };
        candidates.into_iter().filter_map(rule).collect()
    }

    /// Returns the columns of numbers of each candidate that enough records support.
    pub(super) fn supported(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let supported = self
            .candidates
            .iter()
            .filter(|candidate| candidate.records >= MIN_RECORDS);
        supported.map(|candidate| {
            let born = match candidate.born {
                Born::Year(place) => Some(place),
                Born::Date(_) => None,
            };
            let places = std::iter::once(candidate.age).chain(born);
            let columns = places.filter_map(|place| self.numbers.get(place));
            columns.map(|column| column.column).collect()
        })
    }

    /// Returns the drafted columns of the age, the birth and the time; the age again for one year.
    fn columns(&self, candidate: &Candidate) -> Option<[usize; 3]> {
        let number = |place: usize| self.numbers.get(place).map(|column| column.column);
        let date = |place: usize| self.dates.get(place).map(|column| column.column);
        let age = number(candidate.age)?;
        let born = match candidate.born {
            Born::Date(place) => date(place)?,
            Born::Year(place) => number(place)?,
        };
        let at = match candidate.at {
            At::Date(place) => date(place)?,
            At::OneYear => age,
        };
        Some([age, born, at])
    }

    /// Whether the columns are drafted as whole numbers and as dates in the formats that were looked at.
    fn fits(&self, candidate: &Candidate, drafted: &Drafted<'_>) -> bool {
        let whole = |place: usize| {
            let column = self.numbers.get(place);
            let form = column.and_then(|column| drafted.forms.get(column.column));
            form.and_then(number_steps) == Some((0, 1))
        };
        let dated = |place: usize| {
            let Some(dates) = self.dates.get(place) else {
                return false;
            };
            let drafted = (
                drafted.forms.get(dates.column),
                drafted.profiles.get(dates.column),
            );
            matches!(drafted, (Some(form), Some(profile)) if reads_alike(&dates.format, form, profile))
        };
        let born = match candidate.born {
            Born::Date(place) => dated(place),
            Born::Year(place) => whole(place),
        };
        let at = match candidate.at {
            At::Date(place) => dated(place),
            At::OneYear => true,
        };
        whole(candidate.age) && born && at
    }
}

/// Returns the columns of dates, once for each format that they may have.
fn date_columns(profiles: &[Profile]) -> Vec<DateColumn> {
    let columns = profiles.iter().enumerate();
    let formats = columns.flat_map(|(column, profile)| {
        let formats = profile.likely_dates().into_iter();
        formats.map(move |dates| DateColumn {
            column,
            has_day: has_day(&dates.text),
            format: dates.format,
        })
    });
    formats.take(MAX_COLUMNS).collect()
}

/// Returns all combinations of columns, by their places.
fn candidates(ages: &[usize], years: &[usize], dates: &[DateColumn]) -> Vec<Candidate> {
    let column = |place: usize| dates.get(place).map(|dates| dates.column);
    let births = (0..dates.len())
        .map(Born::Date)
        .chain(years.iter().copied().map(Born::Year));
    let births: Vec<Born> = births.collect();
    let times: Vec<At> = (0..dates.len())
        .map(At::Date)
        .chain([At::OneYear])
        .collect();
    let mut candidates = Vec::new();
    for &age in ages {
        for &born in &births {
            for &at in &times {
                if let (Born::Date(born), At::Date(at)) = (born, at)
                    && column(born) == column(at)
                {
                    continue;
                }
                candidates.push(Candidate {
                    age,
                    born,
                    at,
                    records: 0,
                    sums: None,
                    is_age: true,
                    is_difference: true,
                });
            }
        }
    }
    candidates
}

fn rule(candidate: &Candidate, columns: [usize; 3], forms: &[ColumnForm]) -> Option<ProposedRule> {
    let name = |column: usize| forms.get(column).map(|form| form.name.clone());
    let [age, born, at] = columns;
    let (age, born, at) = (name(age)?, name(born)?, name(at)?);
    let since = match candidate.born {
        Born::Date(_) => format!("the year of {born:?}"),
        Born::Year(_) => format!("{born:?}"),
    };
    let is_year_end = candidate.is_year_end();
    let (rule, at) = match (candidate.at, candidate.sums) {
        (At::OneYear, None) => return None,
        (At::OneYear, Some((_, year))) if is_year_end => {
            let end_of = YearOf::Year(year);
            (
                format!("{age:?} is {year} minus {since}"),
                AgeAt::EndOf { end_of },
            )
        }
        (At::OneYear, Some((_, year))) => (
            format!("{age:?} is {year} minus {since}, or one less"),
            AgeAt::Year(year),
        ),
        (At::Date(_), _) if is_year_end => (
            format!("{age:?} is the year of {at:?} minus {since}"),
            AgeAt::EndOf {
                end_of: YearOf::Column(at),
            },
        ),
        (At::Date(_), _) if matches!(candidate.born, Born::Date(_)) => (
            format!("{age:?} is the number of whole years from {born:?} to {at:?}"),
            AgeAt::Column(at),
        ),
        (At::Date(_), _) => (
            format!("{age:?} is the year of {at:?} minus {since}, or one less"),
            AgeAt::Column(at),
        ),
    };
    let mut columns = vec![age.clone(), born.clone()];
    columns.extend(at.column().map(str::to_owned));
    Some(ProposedRule {
        columns,
        rule,
        records: candidate.records,
        change: RuleChange::Constraint(Constraint::Age(Age { age, born, at })),
    })
}
