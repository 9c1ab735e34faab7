//! Splits texts that look like numbers into sign, texts around the number, and digits.

use fhaim_domain::{NumberStyle, form::Negative};

use super::reading::{Groups, Reading, Readings};

/// Maximum length of the text before a number, in characters: `US$`.
const MAX_BEFORE: usize = 4;

/// Maximum length of the text after a number, in characters: `mL/min/1.73 m2`.
const MAX_AFTER: usize = 16;

/// How a number shows its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sign {
    /// `9.5`
    None,
    /// `-9.5`, `-$9.5` or `$-9.5`
    Minus,
    /// `+9.5`
    Plus,
    /// `(9.5)`
    Parentheses,
    /// `9.5-`
    Trailing,
}

impl Sign {
    /// Whether the number is negative.
    pub fn is_negative(self) -> bool {
        matches!(self, Self::Minus | Self::Parentheses | Self::Trailing)
    }

    /// Returns the form of negative numbers, if the number is negative.
    pub fn negative(self) -> Option<Negative> {
        match self {
            Self::None | Self::Plus => None,
            Self::Minus => Some(Negative::Minus),
            Self::Parentheses => Some(Negative::Parentheses),
            Self::Trailing => Some(Negative::Trailing),
        }
    }
}

/// A limit that takes the place of a value, such as a detection limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limit {
    /// `<0.5`
    Below,
    /// `≤0.5` or `<=0.5`
    AtMost,
    /// `>1000`
    Above,
    /// `≥1000`, `>=1000` or `1000+`
    AtLeast,
}

/// A text that looks like a number, in its parts. All texts are slices of the scanned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScannedNumber<'t> {
    /// The limit that the text states instead of a value.
    pub limit: Option<Limit>,
    /// How the sign is written.
    pub sign: Sign,
    /// Text before the digits, with the blanks behind it: `$`, `EUR `.
    pub before: &'t str,
    /// The digits with separators, decimal mark and exponent.
    pub number: &'t str,
    /// Whether the number has an exponent: `1.5e-3`.
    pub has_exponent: bool,
    /// Text after the digits, with the blanks before it: `%`, ` mg`.
    pub after: &'t str,
    /// Whether the number begins with a zero and a further digit, as postal codes do.
    pub is_padded: bool,
    /// The ways to read the separators.
    pub readings: Readings,
}

/// Splits a text that looks like a number into its parts. Returns `None` for any other text.
///
/// The result may also be a code: `B20` has the text `B` before its digits
/// ([`ScannedNumber::has_glued_letters`]), and `12E5` an exponent. Only the other values of the
/// column tell.
///
/// ```
/// use fhaim_intake::{Limit, Sign, scan_number};
///
/// let price = scan_number("($1,200.50)").unwrap();
/// assert_eq!((price.sign, price.before), (Sign::Parentheses, "$"));
/// let reading = price.readings.only().unwrap();
/// assert_eq!((reading.thousands, reading.mark, reading.decimals), (Some(','), Some('.'), 2));
/// assert_eq!(price.value(reading), Some(-1200.5));
///
/// let dose = scan_number("< 0,05 mg").unwrap();
/// assert_eq!((dose.limit, dose.after), (Some(Limit::Below), " mg"));
///
/// // A column of such texts decides whether it has 1200 or 1.2.
/// assert_eq!(scan_number("1,200").unwrap().readings.iter().count(), 2);
/// assert_eq!(scan_number("2024-01-31"), None);
/// ```
pub fn scan_number(text: &str) -> Option<ScannedNumber<'_>> {
    // This excludes most texts without a number.
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut cursor = Cursor { rest: text.trim() };
    let mut limit = cursor.limit();
    cursor.blanks();
    let mut sign = Signs::default();
    sign.leading(&mut cursor);
    let before = cursor.text_before()?;
    // `A-12` is a code.
    if !before.ends_with(char::is_alphabetic) {
        sign.leading(&mut cursor);
    }
    let digits = cursor.digits();
    let readings = digits.groups.readings()?;
    sign.trailing(&mut cursor)?;
    if cursor.skip('+') && limit.replace(Limit::AtLeast).is_some() {
        return None;
    }
    let after = sign.without_parenthesis(cursor.rest);
    Some(ScannedNumber {
        limit,
        sign: sign.form()?,
        before,
        number: digits.text,
        has_exponent: digits.has_exponent,
        after: is_text_after(after).then_some(after)?,
        is_padded: digits.groups.is_padded(),
        readings,
    })
}

impl ScannedNumber<'_> {
    /// Returns the number under one of its readings. For a limit, this is the limit itself.
    pub fn value(&self, reading: Reading) -> Option<f64> {
        let value = reading.style().parse(self.number)?;
        let is_negative = self.sign.is_negative();
        Some(if is_negative { -value } else { value })
    }

    /// Returns the style that writes the text, if it is no limit and has no plus and no exponent.
    pub fn style(&self, reading: Reading) -> NumberStyle {
        NumberStyle {
            before: self.before.to_owned(),
            after: self.after.to_owned(),
            negative: self.sign.negative().unwrap_or_default(),
            ..reading.style()
        }
    }

    /// Iterates over the separators, with their positions in [`Self::number`] in bytes.
    pub fn separators(&self) -> impl Iterator<Item = (usize, char)> + '_ {
        let is_other = |c: &char| !c.is_ascii_digit();
        let end = self.number.find(['e', 'E']).unwrap_or(self.number.len());
        let digits = self.number.char_indices();
        digits
            .take_while(move |&(place, _)| place < end)
            .filter(move |(_, c)| is_other(c))
    }

    /// Whether a letter touches the digits, as in codes (`B20`, `12A`) and some units (`5mg`).
    pub fn has_glued_letters(&self) -> bool {
        self.before.ends_with(char::is_alphabetic) || self.after.starts_with(char::is_alphabetic)
    }
}

/// The signs of a number, as they are found.
#[derive(Clone, Copy, Debug, Default)]
struct Signs {
    sign: Option<Sign>,
    /// Whether there is a second sign.
    is_repeated: bool,
    /// Whether a parenthesis is open.
    is_open: bool,
}

impl Signs {
    fn set(&mut self, sign: Sign) {
        self.is_repeated |= self.sign.replace(sign).is_some();
    }

    /// Reads a sign or an opening parenthesis before the digits.
    fn leading(&mut self, cursor: &mut Cursor<'_>) {
        if cursor.skip('(') {
            self.set(Sign::Parentheses);
            self.is_open = true;
        } else if cursor.minus() {
            self.set(Sign::Minus);
        } else if cursor.skip('+') {
            self.set(Sign::Plus);
        } else {
            return;
        }
        cursor.blanks();
    }

    /// Reads a closing parenthesis or a minus after the digits. Returns `None` if the minus belongs
    /// to a word, as in `12-May`.
    fn trailing(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let mut behind_blanks = *cursor;
        behind_blanks.blanks();
        if self.is_open && behind_blanks.skip(')') {
            self.is_open = false;
            *cursor = behind_blanks;
        } else if behind_blanks.minus() {
            self.set(Sign::Trailing);
            *cursor = behind_blanks;
            if cursor.rest.starts_with(char::is_alphanumeric) {
                return None;
            }
        }
        Some(())
    }

    /// Removes a closing parenthesis after the text behind the digits.
    fn without_parenthesis<'t>(&mut self, after: &'t str) -> &'t str {
        match after.strip_suffix(')') {
            Some(inner) if self.is_open => {
                self.is_open = false;
                inner.trim_end()
            }
            _ => after,
        }
    }

    fn form(self) -> Option<Sign> {
        let is_complete = !self.is_repeated && !self.is_open;
        is_complete.then(|| self.sign.unwrap_or(Sign::None))
    }
}

/// The digits of a number, with separators and exponent.
struct ScannedDigits<'t> {
    text: &'t str,
    groups: Groups,
    has_exponent: bool,
}

/// The rest of a text that is being scanned.
#[derive(Clone, Copy, Debug)]
struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    fn next(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        rest.map(|rest| self.rest = rest).is_some()
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn minus(&mut self) -> bool {
        self.skip('-') || self.skip('\u{2212}')
    }

    fn limit(&mut self) -> Option<Limit> {
        match self.next()? {
            '<' => {
                self.skip('<');
                Some(if self.skip('=') {
                    Limit::AtMost
                } else {
                    Limit::Below
                })
            }
            '>' => {
                self.skip('>');
                Some(if self.skip('=') {
                    Limit::AtLeast
                } else {
                    Limit::Above
                })
            }
            '≤' => self.skip('≤').then_some(Limit::AtMost),
            '≥' => self.skip('≥').then_some(Limit::AtLeast),
            _ => None,
        }
    }

    /// Reads letters and currency signs, and the blanks behind them. Returns `None` if there are
    /// too many.
    fn text_before(&mut self) -> Option<&'t str> {
        let start = self.rest;
        let (mut length, mut last) = (0, ' ');
        while let Some(next) = self.next() {
            let is_sign = next.is_alphabetic() || is_currency(next) || next == '%';
            if !(is_sign || (next == '.' && last.is_alphabetic())) {
                break;
            }
            (length, last) = (length + 1, next);
            if length > MAX_BEFORE {
                return None;
            }
            self.skip(next);
        }
        self.blanks();
        Some(&start[..start.len() - self.rest.len()])
    }

    /// Reads digits with separators and an exponent.
    fn digits(&mut self) -> ScannedDigits<'t> {
        let start = self.rest;
        let mut groups = Groups::default();
        loop {
            let behind = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
            groups.digits(&self.rest[..self.rest.len() - behind.len()]);
            self.rest = behind;
            let Some(separator) = self.next().filter(|&next| is_separator(next)) else {
                break;
            };
            let behind = &behind[separator.len_utf8()..];
            let is_followed = behind.starts_with(|c: char| c.is_ascii_digit());
            if !is_followed && !is_last_mark(separator, behind) {
                break;
            }
            groups.separator(separator);
            self.rest = behind;
        }
        let has_exponent = self.exponent();
        ScannedDigits {
            text: &start[..start.len() - self.rest.len()],
            groups,
            has_exponent,
        }
    }

    /// Reads an exponent, if there is one.
    fn exponent(&mut self) -> bool {
        let Some(rest) = self.rest.strip_prefix(['e', 'E']) else {
            return false;
        };
        let digits = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let behind = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let has_digits = behind.len() < digits.len();
        if has_digits {
            self.rest = behind;
        }
        has_digits
    }
}

fn is_separator(c: char) -> bool {
    matches!(
        c,
        ',' | '.' | '\'' | '\u{2019}' | ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}'
    )
}

/// Whether a decimal mark without decimals ends the text: `5.`
fn is_last_mark(mark: char, behind: &str) -> bool {
    behind.is_empty() && matches!(mark, ',' | '.')
}

fn is_currency(c: char) -> bool {
    matches!(
        c,
        '$' | '¢' | '£' | '¤' | '¥' | '฿' | '៛' | '﷼' | '￥' | '￡' | '＄'
    ) || ('\u{20a0}'..='\u{20cf}').contains(&c)
}

/// Returns whether a text may stand after a number: a few letters and signs of a unit, or the dash of
/// a price without cents (`5,-`).
fn is_text_after(text: &str) -> bool {
    let visible = text.trim();
    if let Some(dashes) = visible.strip_prefix([',', '.']) {
        return matches!(dashes, "-" | "--" | "\u{2013}" | "\u{2014}");
    }
    let mut previous = None;
    for (next, place) in visible.chars().zip(0..) {
        // `120/80` has two numbers.
        let is_ratio = place == 1 && previous == Some('/') && next.is_ascii_digit();
        if place == MAX_AFTER || is_ratio || !may_follow(next, previous) {
            return false;
        }
        previous = Some(next);
    }
    true
}

/// Returns whether a character may follow another one in the text after a number. Only letters follow
/// blanks, so that dates and ranges are refused.
fn may_follow(next: char, previous: Option<char>) -> bool {
    let is_behind = |allowed: fn(char) -> bool| previous.is_some_and(allowed);
    match next {
        _ if next.is_alphabetic() => true,
        _ if is_behind(char::is_whitespace) => false,
        '%' | '‰' | '°' | '/' => true,
        '0'..='9' => is_behind(|c| c.is_alphanumeric() || matches!(c, '/' | '^' | '.')),
        '²' | '³' | '^' | '·' | '*' | '.' => is_behind(char::is_alphanumeric),
        ' ' | '\u{a0}' => previous.is_some(),
        _ => is_currency(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The readings of a text: decimal mark, thousands separator, decimals and value.
    fn readings(text: &str) -> Vec<(Option<char>, Option<char>, u32, f64)> {
        let scanned = scan_number(text).unwrap();
        let all = scanned.readings.iter();
        all.map(|r| (r.mark, r.thousands, r.decimals, scanned.value(r).unwrap()))
            .collect()
    }

    fn texts(text: &str) -> (&str, &str, &str) {
        let scanned = scan_number(text).unwrap();
        (scanned.before, scanned.number, scanned.after)
    }

    #[test]
    fn separators_have_one_or_two_readings() {
        let (comma, point) = (Some(','), Some('.'));
        assert_eq!(readings("1234"), [(None, None, 0, 1234.0)]);
        assert_eq!(
            readings("1,200"),
            [(comma, None, 3, 1.2), (None, comma, 0, 1200.0)]
        );
        assert_eq!(
            readings("1.200"),
            [(point, None, 3, 1.2), (None, point, 0, 1200.0)]
        );
        assert_eq!(readings("1,20"), [(comma, None, 2, 1.2)]);
        assert_eq!(readings("0.123"), [(point, None, 3, 0.123)]);
        assert_eq!(readings("1234,567"), [(comma, None, 3, 1234.567)]);
        assert_eq!(readings("1.234,56"), [(comma, point, 2, 1234.56)]);
        assert_eq!(readings("1,234,567"), [(None, comma, 0, 1_234_567.0)]);
        assert_eq!(readings("1'234.50"), [(point, Some('\''), 2, 1234.5)]);
        assert_eq!(readings("12 345"), [(None, Some(' '), 0, 12_345.0)]);
        assert_eq!(
            readings("1\u{a0}234,5"),
            [(comma, Some('\u{a0}'), 1, 1234.5)]
        );
        assert_eq!(readings(".5"), [(point, None, 1, 0.5)]);
        assert_eq!(readings("5."), [(point, None, 0, 5.0)]);
        assert_eq!(readings("1,200.5e-1"), [(point, comma, 1, 120.05)]);
    }

    #[test]
    fn separators_have_places() {
        let scanned = scan_number("$1.234,5e1 net").unwrap();
        let places: Vec<(usize, char)> = scanned.separators().collect();
        assert_eq!(places, [(1, '.'), (5, ',')]);
        assert!(scanned.has_exponent);
    }

    #[test]
    fn texts_around_the_digits_keep_their_blanks() {
        assert_eq!(texts("$5"), ("$", "5", ""));
        assert_eq!(texts(" US$ 1,200.50 "), ("US$ ", "1,200.50", ""));
        assert_eq!(texts("Fr. 5"), ("Fr. ", "5", ""));
        assert_eq!(texts("$.5"), ("$", ".5", ""));
        assert_eq!(texts("29.91%"), ("", "29.91", "%"));
        assert_eq!(texts("34 €"), ("", "34", " €"));
        assert_eq!(texts("40\u{a0}mg"), ("", "40", "\u{a0}mg"));
        assert_eq!(texts("80 mmHg"), ("", "80", " mmHg"));
        assert_eq!(texts("24.5 kg/m2"), ("", "24.5", " kg/m2"));
        assert_eq!(texts("90 mL/min/1.73 m2"), ("", "90", " mL/min/1.73 m2"));
        assert_eq!(texts("5 000 mg"), ("", "5 000", " mg"));
        assert_eq!(texts("CHF 5.-"), ("CHF ", "5", ".-"));
        assert_eq!(texts("5,-"), ("", "5", ",-"));
        assert_eq!(texts("7e"), ("", "7", "e"));
        assert_eq!(texts("2E+05"), ("", "2E+05", ""));
    }

    #[test]
    fn every_form_of_sign_is_found() {
        for (text, sign, before, after) in [
            ("5", Sign::None, "", ""),
            ("-5", Sign::Minus, "", ""),
            ("\u{2212}5", Sign::Minus, "", ""),
            ("+5", Sign::Plus, "", ""),
            ("-$5", Sign::Minus, "$", ""),
            ("$-5", Sign::Minus, "$", ""),
            ("- 5 %", Sign::Minus, "", " %"),
            ("(5.00)", Sign::Parentheses, "", ""),
            ("($5 net)", Sign::Parentheses, "$", " net"),
            ("$(5) net", Sign::Parentheses, "$", " net"),
            ("9.22-", Sign::Trailing, "", ""),
            ("9.22- €", Sign::Trailing, "", " €"),
        ] {
            let scanned = scan_number(text).unwrap();
            assert_eq!(
                (scanned.sign, scanned.before, scanned.after),
                (sign, before, after),
                "{text}"
            );
        }
        for text in [
            "-(5)", "(-5)", "-5-", "(5", "5)", "--5", "-$-5", "((5))", "+5-",
        ] {
            assert_eq!(scan_number(text), None, "{text}");
        }
    }

    #[test]
    fn limits_are_distinguished_from_values() {
        for (text, limit, value) in [
            ("<0.5", Limit::Below, 0.5),
            ("< 0,05", Limit::Below, 0.05),
            ("≤ 5", Limit::AtMost, 5.0),
            ("<=5 mg", Limit::AtMost, 5.0),
            (">1000", Limit::Above, 1000.0),
            (">=10", Limit::AtLeast, 10.0),
            ("≥-10", Limit::AtLeast, -10.0),
            ("90+", Limit::AtLeast, 90.0),
        ] {
            let scanned = scan_number(text).unwrap();
            assert_eq!(scanned.limit, Some(limit), "{text}");
            let reading = scanned.readings.only().unwrap();
            assert_eq!(scanned.value(reading), Some(value), "{text}");
        }
        for text in ["<90+", "<", "<<5", "<>5", "=5"] {
            assert_eq!(scan_number(text), None, "{text}");
        }
    }

    #[test]
    fn padded_numbers_and_glued_letters_are_marked() {
        let is_padded = |text| scan_number(text).unwrap().is_padded;
        assert!(is_padded("01234") && is_padded("00") && is_padded("07.5"));
        assert!(!is_padded("0") && !is_padded("0.05") && !is_padded("10"));
        let is_glued = |text| scan_number(text).unwrap().has_glued_letters();
        assert!(is_glued("B20") && is_glued("12A") && is_glued("5mg"));
        assert!(!is_glued("$5") && !is_glued("EUR 5") && !is_glued("5 mg") && !is_glued("Fr.5"));
    }

    #[test]
    fn texts_that_are_no_numbers_are_refused() {
        for text in [
            "",
            " ",
            "-",
            ".",
            "abc",
            "inf",
            "NaN",
            "2024-01-31",
            "31.12.2024",
            "12/31/2024",
            "12:30",
            "12-May",
            "5 May 2024",
            "192.168.1.1",
            "5-10",
            "5 - 10",
            "120/80",
            "1,20,300",
            "1.234.56",
            "1,,2",
            "1 23",
            "1'5",
            "'5",
            "5 10",
            "A-12",
            "Jan 5, 2024",
            "CHAPTER 5",
            "12 Main Street, Leuven",
            "+49 30 123",
            "5%%5",
            "1.5.",
            "#5",
            "5;6",
            "5_000",
            "٥",
            "0,123,456",
            "(5",
            "1 234.567 89",
        ] {
            assert_eq!(scan_number(text), None, "{text:?}");
        }
    }

    fn any_style() -> impl Strategy<Value = NumberStyle> {
        let before =
            proptest::sample::select(vec!["", "$", "US$ ", "Fr. ", "EUR ", "£", "¥\u{a0}"]);
        let after =
            proptest::sample::select(vec!["", "%", "‰", " €", " mg", " mmHg", " kg/m2", ",-"]);
        let negative = proptest::sample::select(vec![
            Negative::Minus,
            Negative::Parentheses,
            Negative::Trailing,
        ]);
        let separators = vec![
            None,
            Some('x'),
            Some(' '),
            Some('\''),
            Some('\u{a0}'),
            Some('\u{202f}'),
        ];
        let thousands = proptest::sample::select(separators);
        (
            0u32..=9,
            any::<bool>(),
            any::<bool>(),
            1i64..2_000,
            thousands,
            before,
            after,
            negative,
        )
            .prop_map(
                |(decimals, trailing_zeros, comma, step, thousands, before, after, negative)| {
                    let other = if comma { '.' } else { ',' };
                    NumberStyle {
                        decimals,
                        trailing_zeros,
                        comma,
                        step,
                        thousands: thousands.map(|c| if c == 'x' { other } else { c }),
                        before: before.to_owned(),
                        after: after.to_owned(),
                        negative,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn written_numbers_are_found(style in any_style(), step in -500_000_000i64..500_000_000) {
            let number = style.number(step);
            let text = number.to_string();
            let scanned = scan_number(&text).unwrap();
            prop_assert_eq!(scanned.limit, None);
            prop_assert_eq!(scanned.before, style.before.as_str());
            prop_assert_eq!(scanned.after, style.after.as_str());
            prop_assert_eq!(scanned.sign.negative(), (step < 0).then_some(style.negative));
            prop_assert!(!scanned.is_padded && !scanned.has_exponent);
            let is_right = |reading: &Reading| scanned.value(*reading) == Some(number.value());
            let reading = scanned.readings.iter().find(is_right);
            let found = scanned.style(reading.unwrap());
            prop_assert_eq!(found.check(), Ok(()));
            prop_assert_eq!(found.parse(&text), Some(number.value()));
            let found_step = found.multiple(number.value()).unwrap();
            prop_assert_eq!(found.number(found_step).to_string(), text);
        }

        #[test]
        fn any_text_is_scanned_without_panic(text in "\\PC{0,30}") {
            scan_number(&text);
        }

        #[test]
        fn parts_of_a_scanned_number_are_parsed_by_its_style(
            text in "[<>≤]?[-+( ]{0,2}[$A€.]{0,3}[-( ]?[0-9,.' \u{a0}]{1,14}(e[-+]?[0-9])?[-)+ ]{0,2}[%m/2€)., -]{0,5}"
        ) {
            if let Some(scanned) = scan_number(&text) {
                for reading in scanned.readings.iter() {
                    let value = scanned.value(reading);
                    prop_assert!(value.is_some(), "{}", text);
                    let style = scanned.style(reading);
                    if scanned.limit.is_none() && style.check().is_ok() {
                        prop_assert_eq!(style.parse(&text), value, "{:?} {:?}", text, style);
                    }
                }
            }
        }
    }
}
