//! The table of columns, which becomes a list of boxes on a phone.

use std::fmt::{self, Display, Formatter};

use crate::{CardColumn, numbers::plus_minus};
use fhaim_page::escaped;

/// Number of listed values of a column that the page shows. The data dictionary has all of them.
const SHOWN_VALUES: usize = 8;

const HEAD: [&str; 6] = [
    "Column",
    "Content",
    "Values",
    "Precision",
    "Missing",
    "Noise of counts",
];

/// Classes of the cells below [`HEAD`].
const CLASSES: [&str; 6] = ["name", "content", "values", "precision", "missing", "noise"];

pub(super) struct ColumnTable<'a>(pub(super) &'a [CardColumn]);

impl Display for ColumnTable<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        // Roles keep the table a table for screen readers when the style sheet shows its rows as boxes.
        out.write_str("<table role=\"table\">\n<thead role=\"rowgroup\"><tr role=\"row\">")?;
        for name in HEAD {
            write!(out, "<th role=\"columnheader\" scope=\"col\">{name}</th>")?;
        }
        out.write_str("</tr></thead>\n<tbody role=\"rowgroup\">\n")?;
        for column in self.0.iter().filter(|column| column.is_written()) {
            write!(
                out,
                "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">{}</th>",
                escaped(&column.name)
            )?;
            for ((name, class), text) in HEAD.iter().zip(CLASSES).skip(1).zip(cells(column)) {
                let empty = if text.is_empty() { " empty" } else { "" };
                write!(
                    out,
                    "<td role=\"cell\" class=\"{class}{empty}\" data-label=\"{name}\">{}</td>",
                    escaped(&text)
                )?;
            }
            out.write_str("</tr>\n")?;
        }
        out.write_str("</tbody>\n</table>\n")
    }
}

/// Returns the cells of a column after its name.
fn cells(column: &CardColumn) -> [String; 5] {
    let unit = column
        .unit
        .as_ref()
        .map_or_else(String::new, |unit| format!(", in {unit}"));
    let missing = match &column.missing {
        None => String::new(),
        Some(text) if text.is_empty() => "possible".to_owned(),
        Some(text) => format!("possible, as {text}"),
    };
    [
        format!("{}{unit}", column.form),
        column.values_text(SHOWN_VALUES),
        column.precision.clone(),
        missing,
        column.noise.map(plus_minus).unwrap_or_default(),
    ]
}
