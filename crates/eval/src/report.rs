//! The data of a report about a synthetic table.

use std::collections::BTreeMap;

use fhaim_domain::{Clique, Column, Kind, RawColumn, Schema, SchemaRule, Table, counted};
use fhaim_intake::TextCounts;
use rand::Rng;
use serde::Serialize;

use crate::{
    Error,
    assessment::{
        Assessment, Columns, Copies, Evidence, Family, assess, code_checks, constraint_checks,
        copy_check, count_copies, determined_checks, form_checks, membership_check, order_checks,
        prediction_check, sum_checks, value_checks,
    },
    association::association_matrix,
    charts::{ChartAxis, ReportCharts},
    closeness::{Closeness, closeness},
    column_charts::ColumnCharts,
    membership::Membership,
    prediction::{Prediction, Target, predict, target_of},
    rate_charts::add_rate_charts,
    values::{Shares, ValueReport, compare_values},
    workload::marginal_l1,
};

/// Maximum number of sets of three columns that are evaluated. If there are more, they are chosen at even distances.
pub const MAX_TRIPLES: usize = 1_000;

/// Share of the real records on which predictions are tested if there are no held-out records.
const TEST_SHARE: f64 = 0.2;

/// Reason for missing predictions in a program without the optimiser.
const ELSEWHERE: &str = "This program makes no predictions; use `fhaim evaluate` for them.";

/// Statement about privacy that every report contains.
pub const REPORT_STATEMENT: &str = "This report contains exact statistics of the real records. It \
is not differentially private: only the holder of the records may see it.";

/// Comparison of a synthetic table with the real one.
///
/// It is meant only for the holder of the real table; see [`REPORT_STATEMENT`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`REPORT_STATEMENT`].
    pub statement: &'static str,
    /// Name of the table.
    pub name: String,
    /// Hexadecimal SHA-256 of the parts of the schema that give codes their meaning.
    pub schema_digest: String,
    /// Version of the program that made the report.
    pub version: &'static str,
    /// What the synthetic table can be used for, and which checks it fails.
    pub assessment: Assessment,
    /// Number of real records.
    pub real_records: usize,
    /// Number of synthetic records.
    pub synthetic_records: usize,
    /// Number of records of the real population that the synthetic table was not made from, if given.
    pub held_out_records: Option<usize>,
    /// Comparison of each column of codes, without digits.
    pub columns: Vec<ColumnReport>,
    /// Comparison of each column value by value; empty until [`Report::add_values`].
    pub values: Vec<ValueReport>,
    /// Copies of records, compared value by value; absent until [`Report::add_values`].
    pub copies: Option<Copies>,
    /// Workload errors over all sets of one, two and three columns.
    pub workloads: Vec<WorkloadReport>,
    /// Total variation distance of every pair of columns, as a symmetric matrix. The diagonal has the distances of
    /// single columns.
    pub pair_total_variation: Vec<Vec<f64>>,
    /// Dependence between columns.
    pub association: Association,
    /// Prediction of the target.
    pub prediction: Option<Prediction>,
    /// Reason for a missing prediction, as a sentence.
    pub no_prediction: Option<String>,
    /// Closeness to the real records, if held-out records were given.
    pub closeness: Option<Closeness>,
    /// The schema's constraints and its rules for derived columns; empty until [`Report::add_constraints`].
    pub constraints: Vec<ConstraintReport>,
    /// Results of membership attacks; absent until [`Report::add_membership`].
    pub membership: Option<Membership>,
    /// Charts of columns, pairs and sets of three columns. The charts of columns show codes until
    /// [`Report::add_values`].
    #[serde(skip)]
    pub charts: ReportCharts,
    /// What the checks have measured so far.
    #[serde(skip)]
    evidence: Evidence,
    /// Axes of the columns of times.
    #[serde(skip)]
    axes: BTreeMap<String, ChartAxis>,
}

/// How often records break one constraint of the schema, or the rule for one derived column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstraintReport {
    /// Text of the rule.
    pub text: String,
    /// The columns that it is about.
    pub columns: Vec<String>,
    /// Shares of the records that break it.
    pub broken: Shares,
}

/// Comparison of one column in both tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnReport {
    /// Name of the column.
    pub name: String,
    /// Whether the column is numeric, with bins as values.
    pub numeric: bool,
    /// Description of the values below: categories, or a number of bins.
    pub binning: String,
    /// Half the L1 distance of the two distributions, from 0 to 1.
    pub total_variation: f64,
    /// Names of the values.
    pub labels: Vec<String>,
    /// Share of the real records with each value.
    pub real: Vec<f64>,
    /// Share of the synthetic records with each value.
    pub synthetic: Vec<f64>,
}

/// The error over all sets of a given number of columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadReport {
    /// Number of columns in a set.
    pub order: usize,
    /// Number of evaluated sets.
    pub sets: usize,
    /// Number of all sets.
    pub of: u64,
    /// Mean L1 distance of the two tables' marginals, each divided by its number of records, from 0 to 2.
    pub mean_l1: f64,
    /// The set with the largest distance.
    pub worst: Option<SetError>,
}

/// The error on one set of columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetError {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// L1 distance of the two tables' marginals, each divided by its number of records, from 0 to 2.
    pub l1: f64,
}

/// Cramér's V of every pair of columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Association {
    /// Symmetric matrix of the real table.
    pub real: Vec<Vec<f64>>,
    /// Symmetric matrix of the synthetic table.
    pub synthetic: Vec<Vec<f64>>,
    /// Mean absolute difference over all pairs.
    pub mean_absolute_difference: f64,
}

/// Compares `synthetic` with `real`, the table that it was made from.
///
/// `held_out` are further real records that it was not made from; predictions are tested on them. Without them,
/// predictions are tested on a random fifth of `real`, which is not used to train the model for real records. `rng`
/// draws that fifth.
///
/// The running time grows with the number of records times the number of pairs of columns.
///
/// # Errors
/// [`Error::Schema`] for tables of different schemas; [`Error::Codes`] for a pair of columns with too many cells to
/// count; [`Error::Optimiser`] if a logistic regression cannot be fitted.
pub fn evaluate(
    real: &Table,
    synthetic: &Table,
    held_out: Option<&Table>,
    rng: &mut (impl Rng + ?Sized),
) -> Result<Report, Error> {
    check_schemas(real, synthetic, held_out)?;
    let (pairs, pair_total_variation) = pair_errors(real, synthetic)?;
    let singles: Vec<Clique> = real.domain().subsets(1).collect();
    let prediction = prediction(real, synthetic, held_out, rng)?;
    let triples = spaced_subsets(real, 3, MAX_TRIPLES);
    let mut report = Report {
        statement: REPORT_STATEMENT,
        name: real.schema().name().to_owned(),
        schema_digest: real
            .schema()
            .digest()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        version: env!("CARGO_PKG_VERSION"),
        assessment: Assessment::default(),
        values: Vec::new(),
        copies: None,
        real_records: real.records(),
        synthetic_records: synthetic.records(),
        held_out_records: held_out.map(Table::records),
        columns: column_reports(real, synthetic)?,
        workloads: vec![
            workload_report(real, 1, &set_errors(real, synthetic, singles)?),
            workload_report(real, 2, &pairs),
            workload_report(real, 3, &set_errors(real, synthetic, triples)?),
        ],
        pair_total_variation,
        association: association(real, synthetic)?,
        no_prediction: prediction.as_ref().err().cloned(),
        prediction: prediction.ok(),
        closeness: held_out.map(|held_out| closeness(real, held_out, synthetic, rng)),
        constraints: Vec::new(),
        membership: None,
        charts: ReportCharts::default(),
        evidence: Evidence::new(real.schema()),
        axes: time_axes(real.schema()),
    };
    report.examine(real, synthetic);
    report.add_charts(real, synthetic);
    Ok(report)
}

impl Report {
    /// Runs the checks that need only codes.
    fn examine(&mut self, real: &Table, synthetic: &Table) {
        let columns = Columns::new(real, synthetic);
        let of_codes = code_checks(&self.evidence, real, synthetic);
        self.evidence.put(Family::Columns, of_codes);
        self.evidence
            .put(Family::Associations, columns.associations());
        self.evidence.put(Family::Rates, columns.rates());
        self.evidence.put(Family::Triples, columns.triples());
        self.evidence.put(Family::Rules, columns.never_checks());
        if let Some(prediction) = &self.prediction {
            self.evidence
                .put(Family::Prediction, prediction_check(prediction));
        }
        self.assessment = assess(&self.evidence);
    }

    /// Adds the charts that need only codes.
    fn add_charts(&mut self, real: &Table, synthetic: &Table) {
        let charts = ColumnCharts {
            axes: &self.axes,
            columns: &self.columns,
            shown: &|column, number| self.evidence.shown(column, number),
        };
        self.charts.columns = charts.of_codes();
        let findings = &self.assessment.findings;
        add_rate_charts(
            &mut self.charts,
            [real, synthetic],
            &self.evidence,
            findings,
        );
    }

    /// Adds a comparison value by value, and updates the assessment. The values are those that
    /// [`fhaim_domain::ReadOptions::keep_values`] keeps.
    pub fn add_values(&mut self, real: &[RawColumn], synthetic: &[RawColumn]) {
        let shown = |column: &str, number| self.evidence.shown(column, number);
        self.values = compare_values(real, synthetic, &shown);
        let charts = ColumnCharts {
            axes: &self.axes,
            columns: &self.columns,
            shown: &shown,
        };
        self.charts.columns = charts.of_values(real, synthetic);
        self.copies = count_copies(real, synthetic);
        let of_values = value_checks(&self.evidence, real, synthetic);
        let of_order = order_checks(&self.evidence, real, synthetic);
        self.evidence.put(Family::Columns, of_values);
        let of_sums = sum_checks(&self.evidence, real, synthetic);
        self.evidence.add(Family::Rules, of_order);
        self.evidence.add(Family::Rules, of_sums);
        self.evidence
            .add(Family::Rules, determined_checks(real, synthetic));
        if let Some(copies) = self.copies {
            self.evidence
                .put(Family::Copies, copy_check(copies, real, synthetic));
        }
        self.assessment = assess(&self.evidence);
    }

    /// Adds a comparison of the texts of both tables before the schema reads them, and updates the assessment. It shows
    /// what a schema hides that reads both tables wrongly.
    pub fn add_texts(&mut self, real: &[TextCounts], synthetic: &[TextCounts]) {
        self.evidence
            .put(Family::Forms, form_checks(real, synthetic));
        self.assessment = assess(&self.evidence);
    }

    /// Adds the number of records of each table that break each rule of [`fhaim_domain::Schema::rules`], as counted in
    /// [`fhaim_domain::TableReading::broken`], and updates the assessment.
    pub fn add_constraints(&mut self, rules: Vec<SchemaRule>, real: &[u64], synthetic: &[u64]) {
        let share = |broken: u64, of: usize| broken as f64 / of.max(1) as f64;
        let counts = real.iter().zip(synthetic);
        self.constraints = rules
            .into_iter()
            .zip(counts)
            .map(|(rule, (&real, &synthetic))| ConstraintReport {
                text: rule.text,
                columns: rule.columns,
                broken: Shares {
                    real: share(real, self.real_records),
                    synthetic: share(synthetic, self.synthetic_records),
                },
            })
            .collect();
        let sizes = [self.real_records, self.synthetic_records];
        let checked = constraint_checks(&self.constraints, sizes);
        self.evidence.put(Family::Constraints, checked);
        self.assessment = assess(&self.evidence);
    }

    /// Adds the results of membership attacks, and updates the assessment.
    pub fn add_membership(&mut self, membership: Membership) {
        self.evidence
            .put(Family::Membership, membership_check(&membership));
        self.membership = Some(membership);
        self.assessment = assess(&self.evidence);
    }
}

/// Returns the axes of columns of times.
fn time_axes(schema: &Schema) -> BTreeMap<String, ChartAxis> {
    let fields = schema.fields().iter();
    let axes = fields.filter_map(|field| {
        let axis = match field.time_format()?.has_days() {
            true => ChartAxis::Date,
            false => ChartAxis::Clock,
        };
        Some((field.name().to_owned(), axis))
    });
    axes.collect()
}

/// Describes a column's codes.
fn binning(table: &Table, attribute: usize, column: &Column) -> String {
    let values = column.size() - usize::from(column.nullable());
    let digit = table
        .domain()
        .digits()
        .iter()
        .find(|digit| digit.coarse() == attribute);
    let most = digit.and_then(|digit| digit.parts().iter().copied().max());
    match (column.kind(), most) {
        (Kind::Categorical { .. }, _) => format!("{values} categories"),
        (Kind::Numeric(_), _) => {
            format!("{}, sampled uniformly within", counted(values, "even bin"))
        }
        (Kind::Part { .. }, Some(parts)) => {
            format!(
                "{} of up to {}",
                counted(values, "group"),
                counted(parts, "part")
            )
        }
        (Kind::Part { .. }, None) => counted(values, "group"),
    }
}

fn check_schemas(real: &Table, synthetic: &Table, held_out: Option<&Table>) -> Result<(), Error> {
    let digest = real.schema().digest();
    if synthetic.schema().digest() != digest {
        return Err(Error::Schema("synthetic"));
    }
    if held_out.is_some_and(|table| table.schema().digest() != digest) {
        return Err(Error::Schema("held-out"));
    }
    Ok(())
}

fn column_reports(real: &Table, synthetic: &Table) -> Result<Vec<ColumnReport>, Error> {
    let mut reports = Vec::with_capacity(real.domain().len());
    for attribute in real.domain().coarse_attributes() {
        let column = &real.schema().columns()[attribute];
        let clique = Clique::new([attribute]);
        let shares = |table: &Table| -> Result<Vec<f64>, Error> {
            let counts = table.counts(&clique)?;
            Ok(counts
                .into_iter()
                .map(|count| count as f64 / table.records() as f64)
                .collect())
        };
        reports.push(ColumnReport {
            name: column.name().to_owned(),
            numeric: column.ordered(),
            binning: binning(real, attribute, column),
            total_variation: marginal_l1(real, synthetic, &clique)? / 2.0,
            labels: (0..column.size())
                .map(|code| column.label(code as u32))
                .collect(),
            real: shares(real)?,
            synthetic: shares(synthetic)?,
        });
    }
    Ok(reports)
}

type SetErrors = Vec<(Clique, f64)>;

fn set_errors(real: &Table, synthetic: &Table, sets: Vec<Clique>) -> Result<SetErrors, Error> {
    sets.into_iter()
        .map(|clique| marginal_l1(real, synthetic, &clique).map(|l1| (clique, l1)))
        .collect()
}

/// Returns the L1 distances of all pairs, and the matrix of total variation distances.
fn pair_errors(real: &Table, synthetic: &Table) -> Result<(SetErrors, Vec<Vec<f64>>), Error> {
    let pairs = set_errors(real, synthetic, real.domain().pairs())?;
    let singles = set_errors(real, synthetic, real.domain().subsets(1).collect())?;
    let attributes = real.domain().coarse_attributes();
    let place = |attribute: usize| attributes.partition_point(|&other| other < attribute);
    let mut matrix = vec![vec![0.0; attributes.len()]; attributes.len()];
    for (clique, l1) in singles.iter().chain(&pairs) {
        if let [a, .., b] | [a @ b] = *clique.attributes() {
            let (a, b) = (place(a), place(b));
            matrix[a][b] = l1 / 2.0;
            matrix[b][a] = l1 / 2.0;
        }
    }
    Ok((pairs, matrix))
}

/// Returns all sets of `size` columns. If there are more than `most`, returns at most `most` of them, evenly spaced in
/// lexicographic order.
fn spaced_subsets(table: &Table, size: usize, most: usize) -> Vec<Clique> {
    let step = binomial(table.domain().coarse_attributes().len(), size)
        .div_ceil(most as u64)
        .max(1);
    table
        .domain()
        .subsets(size)
        .step_by(step as usize)
        .collect()
}

/// Returns the number of sets of `size` columns among `of` columns (at most 3 among 1,000).
fn binomial(of: usize, size: usize) -> u64 {
    (0..size as u64).fold(1, |sets, i| sets * (of as u64).saturating_sub(i) / (i + 1))
}

fn workload_report(real: &Table, order: usize, errors: &[(Clique, f64)]) -> WorkloadReport {
    let sum: f64 = errors.iter().map(|(_, l1)| l1).sum();
    let worst = errors
        .iter()
        .max_by(|(_, one), (_, two)| one.total_cmp(two));
    let names = |clique: &Clique| {
        let columns = real.schema().columns();
        clique
            .attributes()
            .iter()
            .map(|&a| columns[a].name().to_owned())
            .collect()
    };
    WorkloadReport {
        order,
        sets: errors.len(),
        of: binomial(real.domain().coarse_attributes().len(), order),
        mean_l1: if errors.is_empty() {
            0.0
        } else {
            sum / errors.len() as f64
        },
        worst: worst.map(|(clique, l1)| SetError {
            columns: names(clique),
            l1: *l1,
        }),
    }
}

fn association(real: &Table, synthetic: &Table) -> Result<Association, Error> {
    let (real, synthetic) = (association_matrix(real)?, association_matrix(synthetic)?);
    let attributes = real.len();
    let mut sum = 0.0;
    for (real, synthetic) in real.iter().zip(&synthetic) {
        sum += real
            .iter()
            .zip(synthetic)
            .map(|(one, two)| (one - two).abs())
            .sum::<f64>();
    }
    // The diagonal adds nothing, and the sum contains every pair twice.
    let twice_pairs = attributes * attributes.saturating_sub(1);
    let mean = if twice_pairs == 0 {
        0.0
    } else {
        sum / twice_pairs as f64
    };
    Ok(Association {
        real,
        synthetic,
        mean_absolute_difference: mean,
    })
}

/// Returns the prediction, or the reason why it is missing.
fn prediction(
    real: &Table,
    synthetic: &Table,
    held_out: Option<&Table>,
    rng: &mut (impl Rng + ?Sized),
) -> Result<Result<Prediction, String>, Error> {
    let (attribute, classes) = match target_of(real) {
        Target::Column { attribute, classes } => (attribute, classes),
        Target::None(reason) => return Ok(Err(reason)),
    };
    if !cfg!(feature = "prediction") {
        return Ok(Err(ELSEWHERE.to_owned()));
    }
    let target = (attribute, classes);
    let found = match held_out {
        Some(held_out) => predict([real, synthetic, held_out], target, false)?,
        None => {
            let test = (real.records() as f64 * TEST_SHARE).ceil() as usize;
            let Ok((test, train)) = real.split(test, rng) else {
                return Ok(Err("There are too few real records to test on.".to_owned()));
            };
            predict([&train, synthetic, &test], target, true)?
        }
    };
    Ok(found.ok_or_else(|| "One of the tables has no record with a target.".to_owned()))
}
