//! The card as one HTML page without scripts or external resources, with every text escaped.

mod columns;
mod escape;

use std::fmt::{self, Write};

use crate::{
    Card, Error,
    numbers::{chance, grouped, hex},
};
use columns::ColumnTable;
use escape::percent_encoded;
use fhaim_page::{COLOURS, escaped};

const STYLE: &str = include_str!("style.css");

/// The questions of a data protection officer, in the order of the page, with the identifiers of their sections.
const QUESTIONS: [(&str, &str); 10] = [
    ("table", "What does this card describe?"),
    ("protected", "Who is protected?"),
    ("guarantee", "What do epsilon and delta guarantee?"),
    ("spending", "How much was spent on these records?"),
    ("schema", "Where do the columns and their limits come from?"),
    ("trust", "How was it made, and who must be trusted?"),
    ("columns", "Which columns does it have?"),
    ("exactness", "How exact is it?"),
    ("conclusions", "What must not be concluded?"),
    ("limits", "What does the guarantee not cover?"),
];

impl Card {
    /// Returns the card as a self-contained HTML page.
    ///
    /// # Errors
    /// [`Error::Csv`] if the data dictionary in it cannot be made.
    pub fn html(&self) -> Result<String, Error> {
        let page = Page {
            card: self,
            dictionary: self.dictionary()?,
        };
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = page.write(&mut out);
        Ok(out)
    }
}

struct Page<'a> {
    card: &'a Card,
    dictionary: String,
}

impl Page<'_> {
    fn write(&self, out: &mut String) -> fmt::Result {
        self.head(out)?;
        self.summary(out)?;
        out.write_str("<nav aria-label=\"Contents\">\n<ol>\n")?;
        for (id, question) in QUESTIONS {
            writeln!(out, "<li><a href=\"#{id}\">{question}</a></li>")?;
        }
        out.write_str("</ol>\n</nav>\n<div class=\"sections\">\n")?;
        for (number, (id, question)) in (1..).zip(QUESTIONS) {
            writeln!(
                out,
                "<section id=\"{id}\">\n<h2><span class=\"quiet\">{number}.</span> {question}</h2>"
            )?;
            self.answer(out, id)?;
            out.write_str("</section>\n")?;
        }
        out.write_str("</div>\n</main>\n</body>\n</html>\n")
    }

    fn head(&self, out: &mut String) -> fmt::Result {
        let name = escaped(self.card.facts.terms.schema.name());
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{name}: data card</title>\n<style>\n{COLOURS}{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<header>\n<h1>{name}</h1>\n\
             <p class=\"quiet\">Data card of a synthetic table with differential privacy. It contains public facts only, \
             and may be published.</p>\n</header>\n"
        )
    }

    fn summary(&self, out: &mut String) -> fmt::Result {
        let facts = &self.card.facts;
        let written = self
            .card
            .columns
            .iter()
            .filter(|column| column.is_written());
        let delta = facts.terms.delta;
        out.write_str("<dl class=\"summary\">\n")?;
        let mut fact = |name: &str, value: &str, note: &str| {
            writeln!(
                out,
                "<div><dt>{name}</dt><dd>{}</dd><dd class=\"quiet\">{}</dd></div>",
                escaped(value),
                escaped(note)
            )
        };
        fact(
            "Epsilon",
            &facts.terms.epsilon.to_string(),
            "smaller is more private",
        )?;
        fact("Delta", &format!("{delta:e}"), &chance(delta))?;
        fact("Protected", "each record", "added or removed")?;
        fact("Columns", &written.count().to_string(), "in the table")?;
        fact("Made on", &facts.date(), &facts.program)?;
        out.write_str("</dl>\n")
    }

    fn answer(&self, out: &mut String, id: &str) -> fmt::Result {
        let card = self.card;
        match id {
            "table" => self.table(out),
            "protected" => paragraphs(out, &card.protected()),
            "guarantee" => {
                paragraphs(out, &card.guarantee())?;
                paragraphs(out, &[card.runs()])
            }
            "spending" => paragraphs(out, &card.spending()),
            "schema" => paragraphs(out, &card.schema_origin()),
            "trust" => paragraphs(out, &card.trust()),
            "columns" => self.columns(out),
            "exactness" => paragraphs(out, &card.exactness()),
            "conclusions" => list(out, &card.conclusions()),
            _ => list(out, &card.limits()),
        }
    }

    fn table(&self, out: &mut String) -> fmt::Result {
        let facts = &self.card.facts;
        let schema = &facts.terms.schema;
        out.write_str("<dl class=\"facts\">\n")?;
        let mut fact = |name: &str, value: &str| {
            writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(value))
        };
        match &facts.table {
            Some(table) => {
                fact("File", &table.name)?;
                if let Some(records) = table.records {
                    fact("Synthetic records", &grouped(records))?;
                }
                match table.delimiter {
                    Some('\t') => fact("Format", "CSV with tabs between fields")?,
                    Some(delimiter) => {
                        fact("Format", &format!("CSV with {delimiter} between fields"))?;
                    }
                    None => fact("Format", "Parquet")?,
                }
                fact("Size", &format!("{} bytes", grouped(table.bytes)))?;
                fact("SHA-256 of the file", &hex(&table.sha256))?;
            }
            None => fact("Tables", "all tables that are drawn from one model")?,
        }
        if let Some(digest) = &facts.model_sha256 {
            fact("SHA-256 of the model", &hex(digest))?;
        }
        fact("Digest of the schema", &hex(&schema.digest()))?;
        fact("Mechanism", &facts.terms.mechanism)?;
        fact("Made on", &facts.date())?;
        fact("Program", &facts.program)?;
        out.write_str("</dl>\n")
    }

    fn columns(&self, out: &mut String) -> fmt::Result {
        let card = self.card;
        let href = percent_encoded(&self.dictionary);
        writeln!(
            out,
            "<p class=\"download\"><a download=\"{}.dictionary.csv\" href=\"data:text/csv;charset=utf-8,{href}\">Download \
             the data dictionary (CSV)</a></p>",
            escaped(&self.stem())
        )?;
        write!(out, "{}", ColumnTable(&card.columns))?;
        let left_out = card.columns.iter().filter(|column| !column.is_written());
        let left_out: Vec<String> = left_out
            .map(|column| format!("{}: {}", column.name, column.form))
            .collect();
        if !left_out.is_empty() {
            out.write_str("<h3>Columns that the schema leaves out</h3>\n")?;
            list(out, &left_out)?;
        }
        let rules: Vec<String> = card
            .facts
            .terms
            .schema
            .rules()
            .into_iter()
            .map(|rule| rule.text)
            .collect();
        if !rules.is_empty() {
            out.write_str("<h3>Rules that every row satisfies</h3>\n")?;
            list(out, &rules)?;
        }
        Ok(())
    }

    /// Returns the name of the table's file without its ending, or that of the schema.
    fn stem(&self) -> String {
        let facts = &self.card.facts;
        let name = facts
            .table
            .as_ref()
            .map_or(facts.terms.schema.name(), |table| &table.name);
        name.rsplit_once('.')
            .map_or(name, |(stem, _)| stem)
            .to_owned()
    }
}

fn paragraphs(out: &mut String, texts: &[String]) -> fmt::Result {
    texts
        .iter()
        .try_for_each(|text| writeln!(out, "<p>{}</p>", escaped(text)))
}

fn list(out: &mut String, texts: &[String]) -> fmt::Result {
    out.write_str("<ul>\n")?;
    for text in texts {
        writeln!(out, "<li>{}</li>", escaped(text))?;
    }
    out.write_str("</ul>\n")
}
