//! The public description of a table: its columns and the values each may take.

use std::collections::HashSet;

use rand::Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    Claim, Column, ColumnProblem, Domain, Error, Field, Kind, SchemaProblem, Value,
    build::Built,
    constraint::{
        self, Constraint, Group, Numbers, Readings, Rule, RuleSet, WrittenCodes, hold, hold_times,
    },
    derived::{self, Derivation},
    field::{Decoder, Meaning},
    form::{Bound, ColumnForm, KindForm},
    limits::{MAX_COLUMNS, MAX_ONE_HOT, MAX_SCHEMA_BYTES},
    names::{cut, is_name},
    schema_form::SchemaForm,
};

/// The format of schemas. A schema need not name it.
const FORMAT_VERSION: u64 = 1;

/// The columns of a table, the attributes that they become and, if there is one, the target. A schema is always valid
/// once built.
///
/// A schema is public. It must not depend on the records, unless that was paid for with a privacy budget (see
/// [`Claim`]).
///
/// *Fields* are the columns of the table. *Columns* are columns of codes, one for each attribute of the domain. A
/// categorical or numeric field is one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SchemaForm", into = "SchemaForm")]
pub struct Schema {
    name: String,
    source: Option<String>,
    target: Option<usize>,
    pub(crate) fields: Vec<Field>,
    pub(crate) columns: Vec<Column>,
    domain: Domain,
    claim: Option<Claim>,
    pub(crate) constraints: Vec<Constraint>,
    /// The constraints, resolved to indices.
    pub(crate) rules: Vec<Rule>,
    /// The rules of dates, grouped.
    groups: Vec<Group>,
    /// The derived fields, in order.
    pub(crate) derivations: Vec<Derivation>,
}

impl Schema {
    /// Reads a schema from JSON; `file` is named in errors.
    ///
    /// # Errors
    /// [`Error::Schema`] with the [`SchemaProblem`].
    pub fn from_json(file: &str, json: &[u8]) -> Result<Self, Error> {
        Self::parse(json).map_err(|problem| Error::Schema {
            file: file.to_owned(),
            problem,
        })
    }

    fn parse(json: &[u8]) -> Result<Self, SchemaProblem> {
        if json.len() > MAX_SCHEMA_BYTES {
            return Err(SchemaProblem::Bytes(json.len()));
        }
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        let form: SchemaForm = serde_json::from_slice(json).map_err(SchemaProblem::Json)?;
        Self::try_from(form)
    }

    /// Returns the schema as indented JSON, with a newline at the end. [`Schema::from_json`] reads it back as an equal
    /// schema.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self)
            // Fails only for maps with keys that are not strings, or a failing Serialize: neither occurs.
            .unwrap_or_default();
        json.push('\n');
        json
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the table comes from, in words.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// The attribute of the target column. For a column with digits, it is the coarse one.
    pub fn target(&self) -> Option<usize> {
        self.target
    }

    /// The columns as they stand in a table.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The columns of codes, in the order of the attributes.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the field that an attribute belongs to.
    pub fn field_of(&self, attribute: usize) -> Option<&Field> {
        let has = |field: &&Field| field.attributes().contains(&attribute);
        self.fields.iter().find(has)
    }

    /// Returns what the numbers in the label of a code count, such as `hours after admission`, if they count the time
    /// from another column.
    pub fn unit(&self, attribute: usize, code: u32) -> Option<String> {
        let column = self.columns.get(attribute)?;
        let field = self.field_of(attribute)?;
        let Meaning::Lapse(lapse) = &field.meaning else {
            return None;
        };
        if attribute != field.attributes.start || column.null_code() == Some(code) {
            return None;
        }
        let base = self.fields.get(lapse.base)?;
        Some(format!("{} after {}", lapse.unit(code)?, base.name))
    }

    /// Decodes record `number` (counted from 0), whose attributes have the codes that `code` gives. Fills `values` with
    /// one value for each written field, in order. Values that the codes leave open are drawn from `rng`.
    pub fn values<'a>(
        &'a self,
        code: &dyn Fn(usize) -> u32,
        number: u64,
        rng: &mut (impl Rng + ?Sized),
        values: &mut Vec<Value<'a>>,
    ) {
        let decoder = Decoder {
            fields: &self.fields,
            columns: &self.columns,
        };
        decoder.values(code, number, rng, values);
        if !self.rules.is_empty() {
            hold(self.rule_set(), code, rng, values);
        }
        if !self.groups.is_empty() {
            hold_times(self.rule_set(), code, rng, values);
        }
        self.derive(values);
    }

    /// The cost of drafting the schema privately from the records, if it was drafted that way.
    pub fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// Number of values of each attribute.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Returns the schema of some of the fields, in the order given, for a holder who has these columns of all records.
    /// The target is kept if it is among them.
    ///
    /// # Errors
    /// [`SchemaProblem`] if the fields do not form a table: none of them becomes an attribute, or one is relative to a
    /// field, or derived from one, that is not among them.
    pub fn part(&self, fields: &[usize]) -> Result<Self, SchemaProblem> {
        let whole = SchemaForm::from(self.clone());
        let forms = fields.iter().filter_map(|&field| whole.columns.get(field));
        let columns: Vec<ColumnForm> = forms.cloned().collect();
        let kept = |name: &str| columns.iter().any(|column| column.name == name);
        // No holder can check a constraint between columns of several holders.
        let all_kept = |constraint: &Constraint| constraint.columns().into_iter().all(kept);
        let constraints = whole.constraints.iter().filter(|c| all_kept(c));
        Self::try_from(SchemaForm {
            constraints: constraints.cloned().collect(),
            target: whole.target.filter(|target| kept(target)),
            columns,
            ..whole
        })
    }

    /// Checks whether some of the fields, in the order given, form a table, as [`Schema::part`] does but without
    /// building it. The time does not depend on the fields' values.
    ///
    /// # Errors
    /// The same as [`Schema::part`].
    pub fn check_part(&self, fields: &[usize]) -> Result<(), SchemaProblem> {
        if fields.is_empty() {
            return Err(SchemaProblem::Columns(0));
        }
        let mut before = HashSet::new();
        let mut kept = 0;
        for &number in fields {
            let Some(field) = self.fields.get(number) else {
                continue;
            };
            if let Meaning::Lapse(lapse) = &field.meaning
                && !before.contains(&lapse.base)
            {
                let base = self.fields.get(lapse.base).map_or("", Field::name);
                return Err(SchemaProblem::Column {
                    column: field.name.clone(),
                    problem: ColumnProblem::Base(cut(base)),
                });
            }
            before.insert(number);
            kept += field.attributes().len();
        }
        let is_lost = |number: usize| {
            let mut derivations = self.derivations.iter();
            derivations.any(|one| one.field == number && !before.contains(&one.from))
        };
        let lost = fields.iter().find(|&&number| is_lost(number));
        if let Some(field) = lost.and_then(|&lost| self.fields.get(lost)) {
            return Err(SchemaProblem::Column {
                column: field.name.clone(),
                problem: ColumnProblem::From(cut(field.derived_from().unwrap_or_default())),
            });
        }
        match kept {
            0 => Err(SchemaProblem::Nothing),
            _ => Ok(()),
        }
    }

    /// The constraints between columns that hold in every record.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Returns whether a record with the codes that `code` gives can have values that satisfy all constraints.
    pub fn allows(&self, code: &dyn Fn(usize) -> u32) -> bool {
        let codes = WrittenCodes {
            fields: &self.fields,
            columns: &self.columns,
            digits: self.domain.digits(),
            code,
        };
        self.rule_set().allows(&|attribute| codes.of(attribute))
    }

    /// Returns the constraints that a record of a table breaks, given its codes, its numbers and its dates.
    pub(crate) fn broken(
        &self,
        code: &dyn Fn(usize) -> u32,
        numbers: &Numbers,
        readings: &Readings,
    ) -> Vec<usize> {
        self.rule_set().broken(code, numbers, readings)
    }

    /// Rejects texts for missing values that are values of their column.
    fn check_missing_texts(&self) -> Result<(), SchemaProblem> {
        for field in &self.fields {
            let value = field
                .missing
                .iter()
                .find(|text| self.has_value(field, text));
            if let Some(text) = value {
                return Err(SchemaProblem::Column {
                    column: field.name.clone(),
                    problem: ColumnProblem::MissingIsValue(cut(text)),
                });
            }
        }
        Ok(())
    }

    fn rule_set(&self) -> RuleSet<'_> {
        RuleSet {
            fields: &self.fields,
            columns: &self.columns,
            rules: &self.rules,
            groups: &self.groups,
        }
    }

    /// Returns the index of the column of codes named `name`.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Returns the SHA-256 of everything that gives codes their meaning: the columns in order, their values, the target
    /// and the constraints. It leaves out the table's name and source and the cost of a draft. The digest binds
    /// ciphertexts to a schema.
    pub fn digest(&self) -> [u8; 32] {
        let meaning = SchemaForm {
            name: String::new(),
            source: None,
            claim: None,
            ..SchemaForm::from(self.clone())
        };
        // Fails only for maps with keys that are not strings, and these maps have string keys.
        let json = serde_json::to_vec(&meaning).unwrap_or_default();
        Sha256::new()
            .chain_update(b"fhaim schema 1\0")
            .chain_update(json)
            .finalize()
            .into()
    }
}

impl TryFrom<SchemaForm> for Schema {
    type Error = SchemaProblem;

    fn try_from(form: SchemaForm) -> Result<Self, SchemaProblem> {
        match (form.version, form.format.unwrap_or(FORMAT_VERSION)) {
            (Some(_), _) => return Err(SchemaProblem::Version),
            (None, FORMAT_VERSION) => {}
            (None, other) => return Err(SchemaProblem::Format(other)),
        }
        form.claim.map_or(Ok(()), check_claim)?;
        check_name("the schema's name", &form.name)?;
        if !(1..=MAX_COLUMNS).contains(&form.columns.len()) {
            return Err(SchemaProblem::Columns(form.columns.len()));
        }
        let Built {
            fields,
            columns,
            digits,
        } = build(form.columns)?;
        let derivations = derived::resolve(&fields, &columns)?;
        if columns.is_empty() {
            return Err(SchemaProblem::Nothing);
        }
        let attribute = |name: &String| {
            let field = fields.iter().find(|field| field.name == *name)?;
            field.attributes().next()
        };
        let target = match &form.target {
            None => None,
            Some(target) => {
                let problem = || no_target(target, &fields);
                Some(attribute(target).ok_or_else(problem)?)
            }
        };
        let domain = Domain::with_digits(columns.iter().map(Column::size).collect(), digits);
        check_one_hot_width(&columns, &domain)?;
        let mut schema = Self {
            name: form.name,
            source: form.source,
            target,
            fields,
            columns,
            domain,
            claim: form.claim,
            constraints: Vec::new(),
            rules: Vec::new(),
            groups: Vec::new(),
            derivations,
        };
        schema.check_missing_texts()?;
        derived::copy_missing_texts(&mut schema.fields, &schema.derivations);
        let own_codes_of = |field: &Field, value: &str| schema.own_codes_of(field, value);
        let rules = constraint::resolve(&form.constraints, &schema.fields, &own_codes_of)?;
        schema.groups = constraint::groups(&rules, &schema.fields);
        schema.rules = rules;
        schema.constraints = form.constraints;
        Ok(schema)
    }
}

/// Returns the problem with a target that has no attribute.
fn no_target(target: &str, fields: &[Field]) -> SchemaProblem {
    let field = fields.iter().find(|field| field.name == target);
    match field.and_then(Field::derived_from) {
        Some(from) => SchemaProblem::DerivedTarget {
            target: cut(target),
            from: cut(from),
        },
        None => SchemaProblem::Target(cut(target)),
    }
}

fn check_claim(claim: Claim) -> Result<(), SchemaProblem> {
    let (epsilon, delta) = (claim.epsilon, claim.delta);
    match epsilon > 0.0 && epsilon.is_finite() && delta > 0.0 && delta < 1.0 {
        true => Ok(()),
        false => Err(SchemaProblem::Claim),
    }
}

fn build(forms: Vec<ColumnForm>) -> Result<Built, SchemaProblem> {
    let mut names = HashSet::new();
    let mut built = Built::default();
    for form in forms {
        check_name("a column's name", &form.name)?;
        let column = form.name.clone();
        if !names.insert(column.clone()) {
            return Err(SchemaProblem::RepeatedColumn(column));
        }
        let problem = built.add(form).err();
        if let Some(problem) = problem {
            return Err(SchemaProblem::Column { column, problem });
        }
    }
    // An attribute of one field may have the name of another field, but callers find columns by name.
    let mut columns = HashSet::new();
    let repeated = built
        .columns
        .iter()
        .find(|column| !columns.insert(column.name.as_str()));
    match repeated {
        Some(column) => Err(SchemaProblem::RepeatedColumn(column.name.clone())),
        None => Ok(built),
    }
}

fn check_one_hot_width(columns: &[Column], domain: &Domain) -> Result<(), SchemaProblem> {
    let total = domain.columns();
    if total <= MAX_ONE_HOT {
        return Ok(());
    }
    let widest = columns.iter().max_by_key(|column| column.size());
    Err(SchemaProblem::OneHot {
        total,
        widest: widest.map_or_else(String::new, |column| column.name.clone()),
    })
}

fn check_name(what: &'static str, name: &str) -> Result<(), SchemaProblem> {
    if is_name(name) {
        Ok(())
    } else {
        Err(SchemaProblem::Name {
            what,
            name: cut(name),
        })
    }
}

impl From<Schema> for SchemaForm {
    fn from(schema: Schema) -> Self {
        let target = schema
            .target
            .and_then(|attribute| schema.field_of(attribute));
        let target = target.map(|field| field.name.clone());
        let columns = schema.fields.iter().filter_map(|field| match &field.form {
            Some(form) => Some(form.as_ref().clone()),
            None => {
                let column = schema.columns.get(field.attributes.start)?;
                Some(ColumnForm {
                    missing: (!field.missing.is_empty()).then(|| field.missing.clone()),
                    invalid: field.invalid,
                    ..column_form(column)
                })
            }
        });
        Self {
            format: None,
            version: None,
            claim: schema.claim,
            constraints: schema.constraints,
            target,
            columns: columns.collect(),
            name: schema.name,
            source: schema.source,
        }
    }
}

/// Returns the form of a categorical or numeric column.
fn column_form(column: &Column) -> ColumnForm {
    let form = |kind| ColumnForm::empty(column.name.clone(), kind, column.nullable);
    match &column.kind {
        Kind::Categorical { categories, other } => ColumnForm {
            other: other.and_then(|code| categories.get(code as usize).cloned()),
            categories: Some(categories.clone()),
            ..form(KindForm::Categorical)
        },
        Kind::Numeric(binning) => ColumnForm {
            min: Some(Bound::Number(binning.min())),
            max: Some(Bound::Number(binning.max())),
            bins: Some(u64::from(binning.bins())),
            integer: binning.integer().then_some(true),
            ..form(KindForm::Numeric)
        },
        // The field of a part keeps its own form, so this one is not used.
        Kind::Part { .. } => form(KindForm::LeftOut),
    }
}
