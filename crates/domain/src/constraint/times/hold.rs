//! Draws dates that satisfy rules, within the values that a record's codes leave open.
//!
//! If the drawn values break a rule, all values of the group are drawn again, up to [`TRIES`] times: this keeps their
//! distribution among those that satisfy the rules. If that fails, each is drawn between the bounds that the rules and
//! the values before it leave, and then again between those that all other values leave. Ages follow from the dates.

use rand::Rng;

use super::{
    group::Group,
    open::Open,
    rule::TimeRule,
    span::{Domain, Instant, Side, Values},
};
use crate::{Field, Value, attributes::Codes, constraint::rule::RuleSet, field::Meaning};

/// Number of draws of all fields of a group.
const TRIES: usize = 64;

/// Number of draws of a single field between its bounds, before its least value is taken.
const SINGLE_TRIES: usize = 8;

/// Number of times that each field is drawn again after that.
const SWEEPS: usize = 32;

/// Number of bounds to compute at most for these draws.
const MAX_BOUNDS: usize = 1 << 16;

/// Makes the dates and ages among a record's drawn values satisfy the rules, if its codes allow it
/// ([`crate::Schema::allows`]). `values` are those of the written fields, in order.
pub(crate) fn hold<'a>(
    set: RuleSet<'a>,
    code: &dyn Fn(usize) -> u32,
    rng: &mut (impl Rng + ?Sized),
    values: &mut [Value<'a>],
) {
    for group in set.groups {
        // Digits of ages are kept where the dates allow it, and give way to the dates otherwise.
        let fine = Open::of(set, group, code, true);
        let drawn = drawn(&fine, values);
        if let Some(drawn) = &drawn
            && fine.holds(drawn)
        {
            write_ages(&fine, drawn, rng, values);
            continue;
        }
        let found = draw_allowed(&fine, rng).map(|found| (fine, found));
        let found = found.or_else(|| {
            let coarse = Open::of(set, group, code, false);
            if let Some(drawn) = drawn.filter(|drawn| coarse.holds(drawn)) {
                return Some((coarse, drawn));
            }
            let found = draw_allowed(&coarse, rng)?;
            Some((coarse, found))
        });
        if let Some((open, found)) = found {
            write(&open, &found, values);
            draw_followers(set, group, code, rng, values);
            write_ages(&open, &found, rng, values);
        }
    }
}

/// Returns the drawn values of a group, or `None` if one is not among those that the codes leave open.
fn drawn(open: &Open<'_>, values: &[Value<'_>]) -> Option<Vec<Instant>> {
    let places = open.group.places.iter();
    let drawn = places.zip(&open.domains).map(|(&place, domain)| {
        let Some(domain) = domain else {
            return Some(Instant::default());
        };
        match (domain.values, values.get(place)?) {
            (Values::Word(_, reading), _) => Some(Instant::of(reading)),
            (Values::Number(..), Value::Decimal(number)) => Some(Instant::at(number.step())),
            (Values::Dates(dates), Value::Moment(moment)) => {
                let reading = moment.reading();
                (reading.offset == dates.offset).then(|| Instant::of(reading))
            }
            _ => None,
        }
    });
    drawn.collect()
}

/// Draws values that satisfy the rules, or returns `None` if the codes do not allow any.
fn draw_allowed(open: &Open<'_>, rng: &mut (impl Rng + ?Sized)) -> Option<Vec<Instant>> {
    let least = open.least()?;
    for _ in 0..TRIES {
        if let Some(values) = draw(open, rng)
            && open.holds(&values)
        {
            return Some(values);
        }
    }
    let mut values = draw_in_turn(open, least, rng);
    spread(open, &mut values, rng);
    Some(values)
}

/// Draws each value again from those that satisfy the rules together with the others, several times (Gibbs sampling).
/// The values before depend on the order of the fields.
fn spread(open: &Open<'_>, values: &mut [Instant], rng: &mut (impl Rng + ?Sized)) {
    let fields = open.domains.len();
    let bounds = fields * (fields + open.ages.len());
    for _ in 0..SWEEPS.min(MAX_BOUNDS / bounds.max(1)) {
        for (index, domain) in open.domains.iter().enumerate() {
            let Some(domain) = domain else {
                continue;
            };
            let low = domain.nearest(open.bound(index, values, Side::Least), Side::Least);
            let high = domain.nearest(open.bound(index, values, Side::Most), Side::Most);
            if let (Some(low), Some(high), Some(value)) = (low, high, values.get_mut(index))
                && low <= high
            {
                *value = domain.draw(low, high, rng);
            }
        }
    }
}

/// Draws the values of a group, without regard to the rules.
fn draw(open: &Open<'_>, rng: &mut (impl Rng + ?Sized)) -> Option<Vec<Instant>> {
    let mut values: Vec<Instant> = Vec::with_capacity(open.domains.len());
    for domain in &open.domains {
        values.push(match domain {
            None => Instant::default(),
            Some(domain) => draw_one(domain, &values, rng)?,
        });
    }
    Some(values)
}

/// Draws a value. `before` are the values of the fields before it.
fn draw_one(
    domain: &Domain<'_>,
    before: &[Instant],
    rng: &mut (impl Rng + ?Sized),
) -> Option<Instant> {
    let (low, high) = match (domain.link, domain.format()) {
        (Some(link), Some(format)) => {
            let (base, link) = (*before.get(link.base)?, link.draw(rng));
            let end = |side| link.later(format, base, side);
            (end(Side::Least), end(Side::Most))
        }
        _ => (Instant::FIRST, Instant::LAST),
    };
    let low = domain.nearest(low, Side::Least)?;
    let high = domain.nearest(high, Side::Most)?;
    (low <= high).then(|| domain.draw(low, high, rng))
}

/// Draws one value after the other between its bounds, which `least` are the lower ones of.
fn draw_in_turn(
    open: &Open<'_>,
    mut least: Vec<Instant>,
    rng: &mut (impl Rng + ?Sized),
) -> Vec<Instant> {
    let Some(mut most) = open.most() else {
        return least;
    };
    for (index, domain) in open.domains.iter().enumerate() {
        let Some(domain) = domain else {
            continue;
        };
        for attempt in 0..=SINGLE_TRIES {
            let (Some(&low), Some(&high)) = (least.get(index), most.get(index)) else {
                break;
            };
            let value = match attempt {
                SINGLE_TRIES => low,
                _ => domain.draw(low, high, rng),
            };
            let fixed = |ends: &[Instant], side| fix(open, ends, index, value, side);
            if let (Some(lower), Some(upper)) =
                (fixed(&least, Side::Least), fixed(&most, Side::Most))
            {
                (least, most) = (lower, upper);
                break;
            }
        }
    }
    least
}

/// Returns the ends of ranges with one field's value fixed, or `None` if it does not satisfy the rules.
fn fix(
    open: &Open<'_>,
    ends: &[Instant],
    index: usize,
    value: Instant,
    side: Side,
) -> Option<Vec<Instant>> {
    let mut ends = ends.to_vec();
    *ends.get_mut(index)? = value;
    let is_fixed = open.tighten(&mut ends, side) && ends.get(index) == Some(&value);
    is_fixed.then_some(ends)
}

/// Writes the values of a group.
fn write<'a>(open: &Open<'a>, found: &[Instant], values: &mut [Value<'a>]) {
    for ((domain, &place), &at) in open.domains.iter().zip(&open.group.places).zip(found) {
        let value = domain.and_then(|domain| domain.value(at));
        if let (Some(value), Some(to)) = (value, values.get_mut(place)) {
            *to = value;
        }
    }
}

/// Writes the ages. An age that fits to the dates is kept.
fn write_ages<'a>(
    open: &Open<'a>,
    found: &[Instant],
    rng: &mut (impl Rng + ?Sized),
    values: &mut [Value<'a>],
) {
    for (rule, ages) in open.group.rules.iter().zip(&open.ages) {
        let (TimeRule::Age { age, born, at }, Some(ages)) = (*rule, ages) else {
            continue;
        };
        let number = open.set.fields.get(age).and_then(Field::number);
        let (Some(number), Some((least, most))) = (number, open.between(born, at, found)) else {
            continue;
        };
        let value = place(open.set, age).and_then(|place| values.get_mut(place));
        let Some(value) = value else {
            continue;
        };
        let fits = |step: i64| (least..=most).contains(&step);
        let is_kept = matches!(value, Value::Decimal(number) if fits(number.step()));
        if !is_kept {
            let years = ages.draw((least, most), rng).unwrap_or(least);
            *value = Value::Decimal(number.style.number(years));
        }
    }
}

/// Draws the values again that are relative to those of a group.
fn draw_followers<'a>(
    set: RuleSet<'a>,
    group: &Group,
    code: &dyn Fn(usize) -> u32,
    rng: &mut (impl Rng + ?Sized),
    values: &mut [Value<'a>],
) {
    for &index in &group.followers {
        let (Some(field), Some(own)) = (set.fields.get(index), place(set, index)) else {
            continue;
        };
        let Meaning::Lapse(lapse) = &field.meaning else {
            continue;
        };
        let mut codes = Codes {
            columns: set.columns,
            code,
            parts: field.parts.iter(),
        };
        let drawn = lapse.draw(moment(set, lapse.base, values), &mut codes, rng);
        if let Some(value) = values.get_mut(own) {
            *value = drawn.value.unwrap_or(Value::Null);
        }
    }
}

/// Returns the moment of a written value.
fn moment(set: RuleSet<'_>, field: usize, values: &[Value<'_>]) -> Option<i64> {
    match values.get(place(set, field)?)? {
        Value::Moment(moment) => Some(moment.seconds()),
        Value::Category(word) => {
            let dated = set.fields.get(field).and_then(Field::dated)?;
            let reading = dated.words.reading(dated.words.find(word)?)?;
            Some(reading.seconds)
        }
        _ => None,
    }
}

/// Returns the index of a field's value among those of the written fields.
fn place(set: RuleSet<'_>, field: usize) -> Option<usize> {
    let before = set.fields.get(..field)?;
    Some(before.iter().filter(|field| field.is_written()).count())
}
