//! Columns whose values identify a person or a thing.

use fhaim_domain::{
    counted,
    form::{ColumnForm, KindForm},
};

use super::{Column, Decided, identifier, text};
use crate::draft::{Flag, RecordUse};

/// Words in the name of a column that identifies a person.
const PERSONS: &[&str] = &[
    "patient",
    "patients",
    "person",
    "subject",
    "member",
    "customer",
    "client",
    "user",
    "employee",
    "student",
    "pupil",
    "account",
    "insured",
    "insurant",
    "mrn",
    "nhs",
    "ssn",
    "pid",
    "participant",
    "respondent",
    "citizen",
    "beneficiary",
    "holder",
    "policyholder",
    "policy",
    "iban",
    "donor",
    "kunde",
    "kunden",
    "versicherte",
    "versicherter",
    "versicherten",
    "schueler",
    "matrikel",
    "matrikelnummer",
    "fallnummer",
    "acct",
    "taxpayer",
    "cardholder",
    "accountholder",
    "payer",
    "payee",
    "owner",
    "driver",
    "guest",
    "victim",
    "applicant",
    "claimant",
    "borrower",
    "passenger",
    "resident",
    "voter",
    "worker",
    "teacher",
    "doctor",
    "physician",
    "surname",
    "lastname",
    "firstname",
    "nachname",
    "pat",
    "konto",
    "mitglied",
    "mitarbeiter",
    "inhaber",
    "vorname",
    "familienname",
    "geburtsname",
    "arzt",
    "hausarzt",
    "prenom",
    "prénom",
    "médecin",
    "medecin",
    "adhérent",
    "salarié",
    "élève",
    "apellido",
    "apellidos",
    "paciente",
    "cliente",
    "alumno",
    "empleado",
    "asegurado",
    "cognome",
];

/// Beginnings of compound words that name an identifier of a person, in addition to [`PERSONS`].
const COMPOUND_PERSONS: [&str; 9] = [
    "patienten",
    "personal",
    "mitglieds",
    "schüler",
    "steuer",
    "sozialversicherungs",
    "rentenversicherungs",
    "versicherungs",
    "ausweis",
];

/// Ends of compound words that name an identifier, as in `Kontonummer`.
const COMPOUND_ENDS: [&str; 6] = ["nummer", "nr", "kennung", "number", "id", "no"];

/// Words in the name of a column of identifiers.
const IDENTIFIERS: [&str; 12] = [
    "id",
    "ids",
    "uid",
    "uuid",
    "guid",
    "identifier",
    "nr",
    "no",
    "num",
    "number",
    "nummer",
    "key",
];

/// Words in the name of a column of codes.
const CODES: [&str; 30] = [
    "code",
    "codes",
    "icd",
    "icd9",
    "icd10",
    "soc",
    "naics",
    "sic",
    "nace",
    "isco",
    "isced",
    "concept",
    "snomed",
    "loinc",
    "atc",
    "ndc",
    "drg",
    "cpt",
    "ops",
    "plz",
    "zip",
    "zipcode",
    "postcode",
    "postal",
    "fips",
    "lei",
    "status",
    "http",
    "nuts",
    "schluessel",
];

/// With fewer values, a column is not taken for persons.
const MIN_PERSONS: u64 = 5;

/// Identifiers have at least this many digits, and with fewer different ones they are public, as those of banks are.
const MIN_DIGITS: usize = 7;
const MIN_IDENTIFIERS: u64 = 30;

/// A person has at most this many records on average.
const MAX_RECORDS: u64 = 100;

/// Returns the words of a column's name, in lower case.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        let begins = letter.is_uppercase() && before.is_lowercase();
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a column's name says that it identifies a person.
pub(super) fn names_a_person(name: &str) -> bool {
    let is_person = |word: &str| PERSONS.contains(&word);
    let is_compound = |word: &str| {
        let mut starts = COMPOUND_ENDS
            .iter()
            .filter_map(|end| word.strip_suffix(end));
        starts.any(|start| is_person(start) || COMPOUND_PERSONS.contains(&start))
    };
    words(name)
        .iter()
        .any(|word| is_person(word) || is_compound(word))
}

/// Whether a column's name says that it has identifiers.
pub(super) fn names_identifiers(name: &str) -> bool {
    // English words end in "id" and "no", too.
    let is_compound = |word: &str| COMPOUND_ENDS[..3].iter().any(|end| word.ends_with(end));
    words(name)
        .iter()
        .any(|word| IDENTIFIERS.contains(&word.as_str()) || is_compound(word))
}

/// Whether a column's name says that it has codes.
pub(super) fn names_codes(name: &str) -> bool {
    words(name)
        .iter()
        .any(|word| CODES.contains(&word.as_str()))
}

/// Drafts a column of persons: its name says so, its values are regular, and many are different.
pub(super) fn decide(column: &Column<'_>) -> Option<Decided> {
    let (cells, distinct) = (column.values.cells, column.values.distinct);
    let several = distinct >= MIN_PERSONS && distinct.saturating_mul(MAX_RECORDS) >= cells;
    let is_person = names_a_person(column.name) && !is_age_or_date(column.name);
    if !several || !(is_person || is_long_identifier(column)) {
        return None;
    }
    let pattern = identifier::pattern(&column.values, column.profile.records);
    let Some(pattern) = pattern else {
        if !is_person {
            return None;
        }
        let reason = format!("its {distinct} different texts may identify persons");
        let mut decided = text::left_out(column, &reason, Flag::NearUnique);
        decided.questions.extend(unit_question(column));
        return Some(decided);
    };
    Some(person(column, &pattern))
}

/// Whether the column's name says that it has identifiers, and many long ones occur. They may identify persons, even if
/// enough records share each of them for a list.
fn is_long_identifier(column: &Column<'_>) -> bool {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    let named = names_identifiers(column.name) && !names_codes(column.name);
    let counts = column.profile.counting;
    named
        && !counts
        && column.values.distinct >= MIN_IDENTIFIERS
        && column
            .values
            .iter()
            .all(|(text, _)| digits(text) >= MIN_DIGITS)
}

/// Names such as `patient_age` and `customer birth date` are about a person, and do not identify one.
fn is_age_or_date(name: &str) -> bool {
    const OTHERS: [&str; 32] = [
        "age",
        "date",
        "birth",
        "year",
        "sex",
        "gender",
        "type",
        "group",
        "class",
        "status",
        "time",
        "count",
        "weight",
        "height",
        "alter",
        "datum",
        "geschlecht",
        "typ",
        "art",
        "gruppe",
        "klasse",
        "anzahl",
        "âge",
        "sexe",
        "groupe",
        "classe",
        "edad",
        "fecha",
        "sexo",
        "tipo",
        "grupo",
        "estado",
    ];
    words(name)
        .iter()
        .any(|word| OTHERS.contains(&word.as_str()))
}

/// Drafts identifiers of persons.
pub(super) fn person(column: &Column<'_>, pattern: &str) -> Decided {
    let (cells, distinct) = (column.values.cells, column.values.distinct);
    let form = ColumnForm {
        pattern: Some(pattern.to_owned()),
        ..ColumnForm::empty(column.name.to_owned(), KindForm::Identifier, false)
    };
    let evidence = format!(
        "{distinct} different values in {}: synthetic tables get a new value in each record",
        counted(cells, "record")
    );
    let mut decided = Decided::new(form, Flag::NearUnique, RecordUse::Nothing, evidence);
    decided.proposals.extend(filled(column));
    decided.questions.extend(unit_question(column));
    decided
}

/// Says that synthetic tables have identifiers where the table has none.
pub(super) fn filled(column: &Column<'_>) -> Option<String> {
    let lacking = column.profile.records.saturating_sub(column.values.cells);
    (lacking > 0).then(|| {
        let cells = counted(lacking, "cell");
        format!("{cells} without a value: synthetic tables have one in every record")
    })
}

/// Asks whether a value identifies a person, if values occur in several records.
pub(super) fn unit_question(column: &Column<'_>) -> Option<String> {
    let busiest = column
        .values
        .iter()
        .map(|(_, seen)| seen.count)
        .max()
        .filter(|&most| most > 1)?;
    Some(format!(
        "does it identify a person? fhaim protects single records, and the busiest value has {}: a person with several \
         records is protected less",
        counted(busiest, "record")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_name_are_found_in_any_style() {
        assert_eq!(words("patient_id"), ["patient", "id"]);
        assert_eq!(words("PatientID"), ["patient", "id"]);
        assert_eq!(words("nhs no."), ["nhs", "no"]);
        assert!(names_a_person("PATIENT_ID") && !names_a_person("condition_concept_id"));
        assert!(names_codes("dept_code") && !names_codes("coded"));
        assert!(names_identifiers("concept_id") && !names_identifiers("idle"));
    }

    #[test]
    fn compound_names_of_persons_are_recognised() {
        for name in [
            "Kontonummer",
            "PatNr",
            "Pat.-Nr.",
            "Schülernr",
            "customerno",
            "Personalnummer",
        ] {
            assert!(
                names_a_person(name) && names_identifiers(name) || name == "customerno",
                "{name}"
            );
        }
        for name in ["Steuer", "personal_income", "Kontostand", "paid", "Beruf"] {
            assert!(!names_a_person(name) && !names_identifiers(name), "{name}");
        }
        for name in ["Vorname", "prénom", "Nombre paciente", "Hausarzt"] {
            assert!(names_a_person(name) && !is_age_or_date(name), "{name}");
        }
        assert!(is_age_or_date("tipo de cliente") && is_age_or_date("Kunde (Alter)"));
        assert!(names_identifiers("Auftragsnr") && !names_a_person("Auftragsnr"));
    }
}
