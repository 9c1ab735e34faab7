//! Everything that is said about a synthetic table, as data.

use fhaim_domain::{Clique, Column, Constraint, Kind, RawColumn, Table, counted};
use rand::Rng;
use serde::Serialize;

use crate::{
    Error,
    association::association_matrix,
    closeness::{Closeness, closeness},
    membership::Membership,
    prediction::{Prediction, Target, predict, target_of},
    values::{Shares, ValueReport, compare_values},
    verdict::{Copies, Verdict, count_copies, verdict},
    workload::marginal_l1,
};

/// So many sets of three columns are evaluated; of more, evenly spaced ones.
pub const MAX_TRIPLES: usize = 1_000;

/// This share of the real records is set aside to test predictions on, where no others are given.
const TEST_SHARE: f64 = 0.2;

/// Why a program without the optimiser has no predictions.
const ELSEWHERE: &str = "No predictions are made here: `fhaim evaluate` makes them.";

/// What the holder must know about a report.
pub const REPORT_STATEMENT: &str = "This report holds statistics of the real records, exactly. It \
is not differentially private: keep it with the holder of the records.";

/// How close a synthetic table is to the real one. For the holder of the real table alone: see
/// [`REPORT_STATEMENT`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`REPORT_STATEMENT`].
    pub statement: &'static str,
    /// Name of the table.
    pub name: String,
    /// SHA-256 of what gives the schema's codes their meaning, in hexadecimal.
    pub schema_digest: String,
    /// The version of the program that made the report.
    pub version: &'static str,
    /// What may be relied on, in words, the worst first.
    pub verdict: Verdict,
    /// Real records compared with.
    pub real_records: usize,
    /// Synthetic records.
    pub synthetic_records: usize,
    /// Records of the real population that the synthetic table was not made from, if given.
    pub held_out_records: Option<usize>,
    /// By column of codes that is no digit.
    pub columns: Vec<ColumnReport>,
    /// By column, value by value; empty until [`Report::add_values`].
    pub values: Vec<ValueReport>,
    /// Records copied, value by value; absent until [`Report::add_values`].
    pub copies: Option<Copies>,
    /// Workload errors over all sets of one, two and three columns.
    pub workloads: Vec<WorkloadReport>,
    /// Total variation distance of every pair of columns, a symmetric matrix; its diagonal has
    /// the columns' own.
    pub pair_total_variation: Vec<Vec<f64>>,
    /// Dependence between columns.
    pub association: Association,
    /// Prediction of the target.
    pub prediction: Option<Prediction>,
    /// Why there is no prediction, in a sentence, where there is none.
    pub no_prediction: Option<String>,
    /// Closeness to the real records, where held-out records were given.
    pub closeness: Option<Closeness>,
    /// The schema's constraints; empty until [`Report::add_constraints`].
    pub constraints: Vec<ConstraintReport>,
    /// What membership attacks find; absent until [`Report::add_membership`].
    pub membership: Option<Membership>,
}

/// One constraint of the schema.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstraintReport {
    /// What it says.
    pub text: String,
    /// Shares of the records that break it.
    pub broken: Shares,
}

/// One column of both tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnReport {
    /// Its name.
    pub name: String,
    /// Whether it is numeric, its values being bins.
    pub numeric: bool,
    /// What its values below are: categories, or so many bins.
    pub binning: String,
    /// Half the L1 distance of the two distributions: from 0 to 1.
    pub total_variation: f64,
    /// Its values, in words.
    pub labels: Vec<String>,
    /// Share of the real records, by value.
    pub real: Vec<f64>,
    /// Share of the synthetic records, by value.
    pub synthetic: Vec<f64>,
}

/// The error over all sets of so many columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadReport {
    /// Columns in a set.
    pub order: usize,
    /// Sets evaluated.
    pub sets: usize,
    /// Sets that there are.
    pub of: u64,
    /// Mean L1 distance of the two tables' marginals, each divided by its records: from 0 to 2.
    pub mean_l1: f64,
    /// The largest, and its columns.
    pub worst: Option<SetError>,
}

/// The error on one set of columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetError {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// L1 distance of the two tables' marginals, each divided by its records: from 0 to 2.
    pub l1: f64,
}

/// Cramér's V of every pair of columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Association {
    /// In the real table, a symmetric matrix.
    pub real: Vec<Vec<f64>>,
    /// In the synthetic table.
    pub synthetic: Vec<Vec<f64>>,
    /// The mean, over pairs, of the absolute difference.
    pub mean_absolute_difference: f64,
}

/// Compares `synthetic` with `real`, which it was made from. `held_out` are further real records
/// that it was not made from: predictions are tested on them; without them, on a random fifth of
/// `real` that the model trained on real records is not shown. `rng` draws that fifth.
///
/// Time grows with records times pairs of columns.
///
/// # Errors
/// Tables of different schemas, a pair of columns with too many cells to count, a logistic
/// regression that cannot be fitted.
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
        verdict: Verdict::default(),
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
    };
    report.verdict = verdict(&report);
    Ok(report)
}

impl Report {
    /// Compares the tables value by value as well, as they were read with
    /// [`fhaim_domain::ReadOptions::keep_values`], and gives the verdict anew.
    pub fn add_values(&mut self, real: &[RawColumn], synthetic: &[RawColumn]) {
        self.values = compare_values(real, synthetic);
        self.copies = count_copies(real, synthetic);
        self.verdict = verdict(self);
    }

    /// Adds how many records of each table break each constraint, as
    /// [`fhaim_domain::TableReading::broken`] counts them, and gives the verdict anew.
    pub fn add_constraints(&mut self, constraints: &[Constraint], real: &[u64], synthetic: &[u64]) {
        let share = |broken: u64, of: usize| broken as f64 / of.max(1) as f64;
        let counts = real.iter().zip(synthetic);
        self.constraints = constraints
            .iter()
            .zip(counts)
            .map(|(constraint, (&real, &synthetic))| ConstraintReport {
                text: constraint.to_string(),
                broken: Shares {
                    real: share(real, self.real_records),
                    synthetic: share(synthetic, self.synthetic_records),
                },
            })
            .collect();
        self.verdict = verdict(self);
    }

    /// Adds what membership attacks found, and gives the verdict anew.
    pub fn add_membership(&mut self, membership: Membership) {
        self.membership = Some(membership);
        self.verdict = verdict(self);
    }
}

/// What a column's codes are, in words.
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
        (Kind::Numeric(_), _) => format!("{}, drawn evenly within", counted(values, "even bin")),
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

/// L1 distances of all pairs, and total variation distances as a matrix.
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

/// All sets of `size` columns, or if there are more than `most`, about as many, evenly spaced in
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

/// Number of sets of `size` out of `of` columns (at most 1,000 of them, and 3 in a set).
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
    // The diagonal adds nothing, every pair is there twice.
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

/// The prediction, or why there is none.
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
    Ok(found.ok_or_else(|| "A table has no record with a target.".to_owned()))
}
