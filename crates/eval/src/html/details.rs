//! The page's further figures, for readers with statistics.

use std::fmt::{self, Display, Formatter};

use super::{TextTable, grouped, scroll_box};
use crate::{Report, ValueReport, WorkloadReport, charts::percent};

pub(super) struct DetailsBody<'a>(pub(super) &'a Report);

impl Display for DetailsBody<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        out.write_str(
            "<details>\n<summary>Errors of all sets of one, two and three columns</summary>\n",
        )?;
        scroll_box(
            out,
            "Errors of sets of columns",
            &workloads(&report.workloads),
        )?;
        writeln!(
            out,
            "<p class=\"quiet\">Mean absolute change of Cram&eacute;r's V per pair: {:.4}. Digest of the schema: \
             <code>{}</code>.</p>\n</details>",
            report.association.mean_absolute_difference, report.schema_digest
        )?;
        if report.values.is_empty() {
            return Ok(());
        }
        out.write_str("<details>\n<summary>Columns compared value by value</summary>\n")?;
        scroll_box(
            out,
            "Columns compared value by value",
            &values(&report.values),
        )?;
        out.write_str(
            "<p class=\"quiet\">TV: total variation distance of single values. KS: Kolmogorov-Smirnov distance. Both are \
             from 0 (equal) to 1 (nothing in common). Moved: the distance that a value has to move on average, as a share \
             of the range (Wasserstein).</p>\n</details>\n",
        )
    }
}

fn workloads(workloads: &[WorkloadReport]) -> TextTable {
    let row = |workload: &WorkloadReport| {
        let worst = workload.worst.as_ref();
        vec![
            format!("{}-way error", workload.order),
            format!(
                "{} of {}",
                grouped(workload.sets as u64),
                grouped(workload.of)
            ),
            format!("{:.4}", workload.mean_l1),
            worst.map_or_else(String::new, |worst| {
                format!("{:.3}: {}", worst.l1, worst.columns.join(", "))
            }),
        ]
    };
    let head = ["Error", "Sets", "Mean L1 distance", "Largest"];
    TextTable {
        head: head.map(str::to_owned).to_vec(),
        rows: workloads
            .iter()
            .filter(|workload| workload.sets > 0)
            .map(row)
            .collect(),
    }
}

fn values(values: &[ValueReport]) -> TextTable {
    let number =
        |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:.3}"));
    let row = |value: &ValueReport| {
        vec![
            value.name.clone(),
            grouped(value.different as u64),
            number(value.total_variation),
            number(value.kolmogorov_smirnov),
            number(value.wasserstein),
            percent(value.missing.real),
            percent(value.missing.synthetic),
        ]
    };
    let head = [
        "Column",
        "Values",
        "TV",
        "KS",
        "Moved",
        "Missing, real",
        "Missing, synthetic",
    ];
    TextTable {
        head: head.map(str::to_owned).to_vec(),
        rows: values.iter().map(row).collect(),
    }
}
