//! Conditions on the records of a synthetic table: `race=Asian,"city=Leuven, Belgium"`.

use crate::{Field, Kind, Schema};

/// Number of values that an error lists, so that the user can correct a typing error.
const VALUES_NAMED: u32 = 12;

/// Why conditions are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// A quote that is not closed.
    #[error("where: a quote is not closed")]
    Quote,
    /// Not `column=value`.
    #[error("where: {0:?} is not of the form column=value")]
    Form(String),
    /// A column that the schema does not have.
    #[error("where: there is no column {0:?}")]
    Column(String),
    /// A value that the column does not have.
    #[error("where: column {column:?} has no value {value:?}; it has {known}")]
    Value {
        /// The column.
        column: String,
        /// The requested value.
        value: String,
        /// Values that the column has.
        known: String,
    },
    /// A condition on a derived column.
    #[error("where: column {column:?} is derived from {from:?}: state a condition on {from:?}")]
    Derived {
        /// The column.
        column: String,
        /// The column that it follows from.
        from: String,
    },
    /// Two values of one column.
    #[error("where: column {0:?} cannot have two values at once")]
    Twice(String),
}

/// Parses conditions into attributes and codes, in the order written. Commas separate conditions. A condition that
/// contains a comma is put in double quotes, with quotes in it doubled. A number stands for the bin that it falls into,
/// or for its digit. Nothing after the `=` stands for a missing value.
///
/// # Errors
/// See [`ConditionError`].
pub fn parse_conditions(text: &str, schema: &Schema) -> Result<Vec<(usize, u32)>, ConditionError> {
    let mut conditions: Vec<(usize, u32)> = Vec::new();
    for text in fields(text)? {
        let (field, value) = split(&text, schema)?;
        if let Some(from) = field.derived_from() {
            return Err(ConditionError::Derived {
                column: field.name().to_owned(),
                from: from.to_owned(),
            });
        }
        let codes = schema.codes_of(field, value);
        for (attribute, code) in codes.ok_or_else(|| unknown(schema, field, value))? {
            match conditions.iter().find(|(other, _)| *other == attribute) {
                None => conditions.push((attribute, code)),
                Some(&(_, other)) if other == code => {}
                Some(_) => return Err(ConditionError::Twice(field.name().to_owned())),
            }
        }
    }
    Ok(conditions)
}

/// Splits one line of comma-separated values (RFC 4180) into fields. An empty line has none.
fn fields(text: &str) -> Result<Vec<String>, ConditionError> {
    let mut fields = Vec::new();
    if text.is_empty() {
        return Ok(fields);
    }
    let (mut field, mut quoted) = (String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    if quoted {
        return Err(ConditionError::Quote);
    }
    fields.push(field);
    Ok(fields)
}

/// Splits a condition into field and value. Both may contain `=`.
fn split<'a, 's>(
    text: &'a str,
    schema: &'s Schema,
) -> Result<(&'s Field, &'a str), ConditionError> {
    let mut splits = text
        .match_indices('=')
        .map(|(i, _)| (&text[..i], &text[i + 1..]));
    let known = splits.find_map(|(name, value)| {
        let field = schema.fields().iter().find(|field| field.name() == name)?;
        Some((field, value))
    });
    known.ok_or_else(|| match text.split_once('=') {
        Some((name, _)) => ConditionError::Column(name.to_owned()),
        None => ConditionError::Form(text.to_owned()),
    })
}

/// Builds the error for a value that a column does not have, with the values that it has.
fn unknown(schema: &Schema, field: &Field, value: &str) -> ConditionError {
    let first = field.attributes().next();
    let column = first.and_then(|attribute| schema.columns().get(attribute));
    let known = column.map_or_else(
        || "no values to choose from".to_owned(),
        |column| {
            if let Kind::Numeric(binning) = column.kind() {
                return format!("numbers from {} to {}", binning.min(), binning.max());
            }
            let size = column.size() as u32;
            let labels = (0..size.min(VALUES_NAMED)).map(|code| column.label(code));
            let mut known = labels.collect::<Vec<_>>().join(", ");
            if size > VALUES_NAMED {
                known.push_str(&format!(" and {} more", size - VALUES_NAMED));
            }
            known
        },
    );
    ConditionError::Value {
        column: field.name().to_owned(),
        value: value.to_owned(),
        known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let json = br#"{"name":"t","columns":[
            {"name":"race","kind":"categorical","categories":["Asian","Black, other","a\"b"]},
            {"name":"age","kind":"numeric","min":0,"max":100,"bins":10,"nullable":true},
            {"name":"a=b","kind":"categorical","categories":["x=y","z"],"nullable":true}
        ]}"#;
        Schema::from_json("t.json", json).unwrap()
    }

    #[test]
    fn conditions_accept_categories_numbers_bins_and_missing_values() {
        let read = |text: &str| parse_conditions(text, &schema()).unwrap();
        assert_eq!(read(""), []);
        assert_eq!(read("race=Asian"), [(0, 0)]);
        assert_eq!(read("age=35,race=Asian"), [(1, 3), (0, 0)]);
        assert_eq!(read("age=30 to 40"), [(1, 3)]);
        assert_eq!(read("age=100"), [(1, 9)]);
        assert_eq!(read("age="), [(1, 10)]);
        assert_eq!(read("age=(missing),a=b="), [(1, 10), (2, 2)]);
        assert_eq!(read("a=b=x=y"), [(2, 0)]);
        assert_eq!(read("\"race=Black, other\",age=1"), [(0, 1), (1, 0)]);
        assert_eq!(read("\"race=a\"\"b\""), [(0, 2)]);
        assert_eq!(read("race=a\"b,race=a\"b"), [(0, 2)]);
    }

    #[test]
    fn condition_on_a_value_sets_its_group_and_digit() {
        let json = br#"{"name":"t","columns":[
            {"name":"age","kind":"number","integer":true,"min":0,"max":99,"bins":10,"digits":10},
            {"name":"day","kind":"date","format":"%d.%m.%Y","min":"2024-01-01","max":"2024-12-31",
             "bins":12,"digits":31},
            {"name":"icd","kind":"code","codes":["A00","A01","B20"],"prefix":1},
            {"name":"id","kind":"identifier","pattern":"uuid"}]}"#;
        let schema = Schema::from_json("t.json", json).unwrap();
        let read = |text: &str| parse_conditions(text, &schema);
        assert_eq!(read("age=47").unwrap(), [(0, 4), (1, 7)]);
        assert_eq!(read("age=40 to 49").unwrap(), [(0, 4)]);
        assert_eq!(read("age=40 to 49,age=47").unwrap(), [(0, 4), (1, 7)]);
        assert!(matches!(read("age=106"), Err(ConditionError::Value { .. })));
        assert_eq!(read("day=01.01.2024").unwrap(), [(2, 0), (3, 0)]);
        assert_eq!(read("icd=A01").unwrap(), [(4, 0), (5, 1)]);
        assert_eq!(read("icd=A").unwrap(), [(4, 0)]);
        assert!(matches!(read("id=7"), Err(ConditionError::Value { .. })));
    }

    #[test]
    fn invalid_conditions_are_rejected_with_the_cause() {
        let refused = |text: &str| parse_conditions(text, &schema()).unwrap_err();
        assert_eq!(refused("\"race=Asian"), ConditionError::Quote);
        assert_eq!(refused("race"), ConditionError::Form("race".into()));
        assert_eq!(refused("rice=Asian"), ConditionError::Column("rice".into()));
        assert_eq!(refused(","), ConditionError::Form(String::new()));
        assert_eq!(refused("age=1,age=99"), ConditionError::Twice("age".into()));
        assert_eq!(
            refused("race=Asain").to_string(),
            "where: column \"race\" has no value \"Asain\"; it has Asian, Black, other, a\"b"
        );
        for value in ["101", "-1", "nan", "x"] {
            let error = refused(&format!("age={value}")).to_string();
            assert!(error.ends_with("numbers from 0 to 100"), "{error}");
        }
        assert!(matches!(refused("race="), ConditionError::Value { .. }));
    }
}
