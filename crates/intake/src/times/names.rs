//! Names of months and weekdays in several languages.
//!
//! The names are those of the Unicode Common Locale Data Repository (CLDR), in their long and short forms, and short
//! forms that other programs write: `Mrz` (Excel), three letters in French and Spanish, and forms without accents.

use std::{collections::BTreeMap, sync::OnceLock};

use fhaim_domain::TimeNames;

/// Names in a language. Each text has the twelve months from January, or the seven weekdays from Monday.
struct Language {
    name: &'static str,
    months: &'static [&'static str],
    short_months: &'static [&'static str],
    weekdays: &'static [&'static str],
    short_weekdays: &'static [&'static str],
}

/// The languages, the likelier first. No name stands for two months, or two weekdays.
const LANGUAGES: [Language; 7] = [
    Language {
        name: "English",
        months: &[
            "January February March April May June July August September October November December",
        ],
        short_months: &[
            "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
            "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec",
            "Jan Feb Mar Apr May June July Aug Sept Oct Nov Dec",
            "Jan Feb March April May June July Aug Sept Oct Nov Dec",
        ],
        weekdays: &["Monday Tuesday Wednesday Thursday Friday Saturday Sunday"],
        short_weekdays: &["Mon Tue Wed Thu Fri Sat Sun"],
    },
    Language {
        name: "German",
        months: &[
            "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
            "Jänner Februar März April Mai Juni Juli August September Oktober November Dezember",
            "Januar Februar Maerz April Mai Juni Juli August September Oktober November Dezember",
        ],
        short_months: &[
            "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
            "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
            "Jan Feb März Apr Mai Juni Juli Aug Sept Okt Nov Dez",
            "Jän Feb März Apr Mai Juni Juli Aug Sep Okt Nov Dez",
        ],
        weekdays: &[
            "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
            "Montag Dienstag Mittwoch Donnerstag Freitag Sonnabend Sonntag",
        ],
        short_weekdays: &["Mo Di Mi Do Fr Sa So"],
    },
    Language {
        name: "French",
        months: &[
            "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
            "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
        ],
        short_months: &[
            "janv févr mars avr mai juin juil août sept oct nov déc",
            "janv fév mars avr mai juin juil août sept oct nov déc",
            "janv fevr mars avr mai juin juil aout sept oct nov dec",
            "janv févr mars avr mai juin juill août sept oct nov déc",
            "jan fév mar avr mai jun jul aoû sep oct nov déc",
            "jan fev mar avr mai jun jul aou sep oct nov dec",
        ],
        weekdays: &["lundi mardi mercredi jeudi vendredi samedi dimanche"],
        short_weekdays: &["lun mar mer jeu ven sam dim"],
    },
    Language {
        name: "Spanish",
        months: &[
            "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
            "enero febrero marzo abril mayo junio julio agosto setiembre octubre noviembre diciembre",
        ],
        short_months: &[
            "ene feb mar abr may jun jul ago sept oct nov dic",
            "ene feb mar abr may jun jul ago sep oct nov dic",
        ],
        weekdays: &[
            "lunes martes miércoles jueves viernes sábado domingo",
            "lunes martes miercoles jueves viernes sabado domingo",
        ],
        short_weekdays: &["lun mar mié jue vie sáb dom", "lun mar mie jue vie sab dom"],
    },
    Language {
        name: "Italian",
        months: &[
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        ],
        short_months: &[
            "gen feb mar apr mag giu lug ago set ott nov dic",
            "gen feb mar apr mag giu lug ago sett ott nov dic",
        ],
        weekdays: &[
            "lunedì martedì mercoledì giovedì venerdì sabato domenica",
            "lunedi martedi mercoledi giovedi venerdi sabato domenica",
        ],
        short_weekdays: &["lun mar mer gio ven sab dom"],
    },
    Language {
        name: "Dutch",
        months: &[
            "januari februari maart april mei juni juli augustus september oktober november december",
        ],
        short_months: &[
            "jan feb mrt apr mei jun jul aug sep okt nov dec",
            "jan feb mrt apr mei jun jul aug sept okt nov dec",
        ],
        weekdays: &["maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"],
        short_weekdays: &["ma di wo do vr za zo"],
    },
    Language {
        name: "Portuguese",
        months: &[
            "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
            "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
        ],
        short_months: &["jan fev mar abr mai jun jul ago set out nov dez"],
        weekdays: &[
            "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
            "segunda terça quarta quinta sexta sábado domingo",
        ],
        short_weekdays: &["seg ter qua qui sex sáb dom"],
    },
];

/// Letters that read the names of `fhaim_domain`, which are English.
const ENGLISH_MONTHS: [[&str; 3]; 2] = [["%b", "%^b", "%#b"], ["%B", "%^B", "%#B"]];
const ENGLISH_WEEKDAYS: [[&str; 3]; 2] = [["%a", "%^a", "%#a"], ["%A", "%^A", "%#A"]];

/// A way to write the months or weekdays.
#[derive(Debug)]
struct Style {
    language: &'static str,
    /// The letters of the format.
    letters: &'static str,
    /// The letters next to a list of the names.
    plain: &'static str,
    /// Whether the letters stand for the names without a list.
    is_builtin: bool,
    /// The names, by value.
    names: Vec<String>,
}

/// Names that a column has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) language: &'static str,
    /// The letters of the format.
    pub(crate) letters: &'static str,
    /// All names, unless the letters stand for them without a list.
    pub(crate) names: Option<Vec<String>>,
}

/// All known names of the months, or of the weekdays.
pub(crate) struct Known {
    styles: Vec<Style>,
    /// Reads all names.
    pub(crate) names: Option<TimeNames>,
}

/// Returns the names of the months.
pub(crate) fn months() -> &'static Known {
    static MONTHS: OnceLock<Known> = OnceLock::new();
    MONTHS.get_or_init(|| {
        let styles = builtin(
            ENGLISH_MONTHS,
            [LANGUAGES[0].short_months, LANGUAGES[0].months],
        );
        let own = LANGUAGES.iter().flat_map(|language| {
            own_styles(
                language.name,
                ["%b", "%B"],
                language.months,
                language.short_months,
            )
        });
        Known::of(styles.into_iter().chain(own).collect(), TimeNames::months)
    })
}

/// Returns the names of the weekdays.
pub(crate) fn weekdays() -> &'static Known {
    static WEEKDAYS: OnceLock<Known> = OnceLock::new();
    WEEKDAYS.get_or_init(|| {
        let styles = builtin(
            ENGLISH_WEEKDAYS,
            [LANGUAGES[0].short_weekdays, LANGUAGES[0].weekdays],
        );
        let own = LANGUAGES.iter().flat_map(|language| {
            own_styles(
                language.name,
                ["%a", "%A"],
                language.weekdays,
                language.short_weekdays,
            )
        });
        Known::of(styles.into_iter().chain(own).collect(), TimeNames::weekdays)
    })
}

fn words(list: &str) -> Vec<String> {
    list.split(' ').map(str::to_owned).collect()
}

/// Returns the styles of English names: short and long, each as it is, in capitals and in small letters.
fn builtin(letters: [[&'static str; 3]; 2], lists: [&[&str]; 2]) -> Vec<Style> {
    let mut styles = Vec::new();
    for (letters, list) in letters.into_iter().zip(lists) {
        let list = list.first().copied().unwrap_or("");
        let cases = [list.to_owned(), list.to_uppercase(), list.to_lowercase()];
        styles.extend(letters.into_iter().zip(cases).map(|(letter, list)| Style {
            language: "English",
            letters: letter,
            plain: letters[0],
            is_builtin: true,
            names: words(&list),
        }));
    }
    styles
}

/// Returns the styles of a language: long names, short ones, and short ones with points, in all cases.
fn own_styles(
    language: &'static str,
    letters: [&'static str; 2],
    long: &[&str],
    short: &[&str],
) -> Vec<Style> {
    let long: Vec<Vec<String>> = long.iter().map(|list| words(list)).collect();
    let short: Vec<Vec<String>> = short.iter().map(|list| words(list)).collect();
    let is_long =
        |place: usize, name: &String| long.iter().any(|list| list.get(place) == Some(name));
    let with_points = |list: &Vec<String>, all: bool| -> Vec<String> {
        let names = list.iter().enumerate();
        let point = |place, name: &String| {
            if all || !is_long(place, name) {
                "."
            } else {
                ""
            }
        };
        names
            .map(|(place, name)| format!("{name}{}", point(place, name)))
            .collect()
    };
    let [short_letters, long_letters] = letters;
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for list in &short {
        let lists = [
            list.clone(),
            with_points(list, false),
            with_points(list, true),
        ];
        all.extend(lists.map(|list| (short_letters, list)));
    }
    all.extend(long.iter().map(|list| (long_letters, list.clone())));
    let mut styles: Vec<Style> = Vec::new();
    for (letters, list) in all {
        for change in [
            str::to_owned,
            str::to_lowercase,
            capitalised,
            str::to_uppercase,
        ] {
            let names: Vec<String> = list.iter().map(|name| change(name)).collect();
            if !styles.iter().any(|style| style.names == names) {
                styles.push(Style {
                    language,
                    letters,
                    plain: letters,
                    is_builtin: false,
                    names,
                });
            }
        }
    }
    styles
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

impl Known {
    fn of<E>(styles: Vec<Style>, names: impl Fn(Vec<String>) -> Result<TimeNames, E>) -> Self {
        let all = styles.iter().flat_map(|style| style.names.iter().cloned());
        let names = names(all.collect()).ok();
        Self { styles, names }
    }

    /// Returns the style that most of a column's names have, and other styles for names that it lacks. `counts` has
    /// the records with each name.
    pub(crate) fn choose(&self, counts: &BTreeMap<String, u64>) -> Option<Chosen> {
        let first = self.likeliest(counts)?;
        let mut names = first.names.clone();
        let mut rest = counts.clone();
        loop {
            rest.retain(|name, _| !names.iter().any(|known| known == name));
            match self.likeliest(&rest) {
                Some(style) => names.extend(style.names.iter().cloned()),
                None => break,
            }
        }
        let is_builtin = first.is_builtin && names.len() == first.names.len();
        Some(Chosen {
            language: first.language,
            letters: if is_builtin {
                first.letters
            } else {
                first.plain
            },
            names: Some(names).filter(|_| !is_builtin),
        })
    }

    /// Returns the style that the most records have, if any has one.
    fn likeliest(&self, counts: &BTreeMap<String, u64>) -> Option<&Style> {
        let records = |style: &Style| -> u64 {
            let known = counts
                .iter()
                .filter(|(name, _)| style.names.iter().any(|known| known == *name));
            known.map(|(_, count)| count).sum()
        };
        let mut best: Option<(u64, &Style)> = None;
        for style in &self.styles {
            let records = records(style);
            if records > best.map_or(0, |(most, _)| most) {
                best = Some((records, style));
            }
        }
        best.map(|(_, style)| style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(names: &str) -> Chosen {
        let counts = names.split(' ').map(|name| (name.to_owned(), 1)).collect();
        months().choose(&counts).unwrap()
    }

    #[test]
    fn no_name_stands_for_two_values() {
        assert!(months().names.is_some());
        assert!(weekdays().names.is_some());
        assert!(months().styles.iter().all(|style| style.names.len() == 12));
        assert!(weekdays().styles.iter().all(|style| style.names.len() == 7));
    }

    #[test]
    fn language_and_form_follow_from_the_names() {
        for (names, language, letters, march) in [
            ("Mär Dez", "German", "%b", "Mär"),
            ("Mrz Dez Okt", "German", "%b", "Mrz"),
            ("MRZ DEZ OKT", "German", "%b", "MRZ"),
            ("Sept. Mai Dez. Juli", "German", "%b", "März"),
            ("Juli Oktober", "German", "%B", "März"),
            ("févr. déc. mars", "French", "%b", "mars"),
            ("FÉVRIER", "French", "%B", "MARS"),
            ("sept ene", "Spanish", "%b", "mar"),
            ("Gennaio Maggio", "Italian", "%B", "Marzo"),
            ("mrt mei", "Dutch", "%b", "mrt"),
            ("fev. set. mai.", "Portuguese", "%b", "mar."),
            ("Aug. Sept. May", "English", "%b", "Mar."),
        ] {
            let chosen = choose(names);
            assert_eq!(
                (chosen.language, chosen.letters),
                (language, letters),
                "{names}"
            );
            assert_eq!(chosen.names.unwrap()[2], march, "{names}");
        }
    }

    #[test]
    fn english_names_need_no_list() {
        for (names, letters) in [
            ("Jan May", "%b"),
            ("MAY JUL", "%^b"),
            ("may jul", "%#b"),
            ("May July", "%B"),
            ("JULY", "%^B"),
        ] {
            let chosen = choose(names);
            assert_eq!((chosen.letters, chosen.names), (letters, None), "{names}");
        }
    }

    #[test]
    fn other_spellings_follow_the_usual_ones() {
        let counts = [("Sep", 9), ("Mai", 9), ("Sept", 2), ("DEZ", 1)];
        let counts = BTreeMap::from(counts.map(|(name, count)| (name.to_owned(), count)));
        let chosen = months().choose(&counts).unwrap();
        let names = chosen.names.unwrap();
        assert_eq!(names.len(), 36);
        assert_eq!(names[8], "Sep");
        assert!(names.contains(&"Sept".to_owned()) && names.contains(&"DEZ".to_owned()));
        assert!(TimeNames::months(names).is_ok());
    }
}
