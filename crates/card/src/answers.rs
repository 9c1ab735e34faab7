//! The card's answers to the questions of a data protection officer.

use fhaim_domain::{counted, form::KindForm};
use fhaim_dp::accounting;
use fhaim_protocol::roster::Partition;

use crate::{
    Card, CardSetting, SpendingSource,
    numbers::{
        chance, grouped, odds_factor, plus_minus, right_answers, rounded_up, small, total_epsilon,
    },
};

impl Card {
    /// Describes the unit of privacy.
    pub fn protected(&self) -> Vec<String> {
        let terms = &self.facts.terms;
        let mut texts = vec![
            "Every record of the real table is protected: the guarantee compares tables that differ by one record, added or removed.".to_owned(),
        ];
        let has_columns =
            |partition| partition == Partition::Columns && self.facts.terms.holders.is_some();
        if terms
            .holders
            .is_some_and(|holders| has_columns(holders.partition))
        {
            texts.push(
                "The same guarantee holds for one holder's part of one record replaced by other values.".to_owned(),
            );
        }
        let twice = self
            .epsilon_of_two_records()
            .map_or_else(String::new, |epsilon| {
                format!(
                    " With two records, epsilon is {} at the same delta.",
                    rounded_up(epsilon, 3)
                )
            });
        texts.push(format!(
            "A person with one record has the whole guarantee. A person with several records has a weaker one.{twice}"
        ));
        texts
    }

    /// Returns the epsilon, at the same delta, for two records added or removed: four times the budget in rho (Bun and
    /// Steinke 2016, Proposition 27).
    fn epsilon_of_two_records(&self) -> Option<f64> {
        let terms = &self.facts.terms;
        let rho = accounting::rho(terms.epsilon, terms.delta).ok()?;
        accounting::epsilon(rho.checked_mul(4)?, terms.delta).ok()
    }

    /// States the guarantee in two sentences, without technical terms except epsilon and delta.
    pub fn guarantee(&self) -> [String; 2] {
        let terms = &self.facts.terms;
        let (epsilon, delta) = (terms.epsilon, terms.delta);
        let first = match odds_factor(epsilon) {
            Some(factor) => format!(
                "Whether one given record was used or not changes the probability of any result by a factor of at most \
                 {factor} (e to the power of epsilon = {epsilon}), apart from at most {delta:e} (delta, {})",
                chance(delta)
            ),
            None => format!(
                "Epsilon is {epsilon}, and delta is {delta:e} ({}): an epsilon of this size limits hardly anything",
                chance(delta)
            ),
        };
        let second = format!(
            "So a person who knows all other records, and has to say from the results whether a given record was used, is \
             right in at most {} of 100 cases; a coin is right in 50",
            right_answers(epsilon, delta)
        );
        [format!("{first}."), format!("{second}.")]
    }

    /// Describes the runs that share the budget.
    pub fn runs(&self) -> String {
        let draft = match self.facts.terms.schema.claim() {
            Some(_) => ", except for the private draft of the schema",
            None => "",
        };
        match self.facts.terms.runs {
            1 => format!(
                "Epsilon and delta are those of everything that was released for this table{draft}."
            ),
            runs => format!(
                "Epsilon and delta are those of {runs} runs over the same records together{draft}. This table is made from one of the \
                 runs."
            ),
        }
    }

    /// Describes the total spending over the records.
    pub fn spending(&self) -> Vec<String> {
        let terms = &self.facts.terms;
        let this = format!(
            "Budget of this table: epsilon {} at delta {:e}.",
            terms.epsilon, terms.delta
        );
        let draft = terms.schema.claim().map(|claim| {
            format!(
                "Private draft of the schema, in addition: epsilon {} at delta {:e}, according to the holder.",
                claim.epsilon, claim.delta
            )
        });
        let total = match &self.facts.spending {
            None => "Earlier uses of the same records are not known here. Their costs add to this budget.".to_owned(),
            Some(spending) => {
                let (who, one, several) = match spending.source {
                    SpendingSource::Holder => {
                        ("According to the holder", "use of these records", "uses of these records")
                    }
                    SpendingSource::Ledger => {
                        ("According to the dataset's ledger", "run over this dataset", "runs over this dataset")
                    }
                };
                let times = match spending.uses {
                    1 => format!("this is the first {one}. It costs"),
                    uses => format!("there are {uses} {several} so far. Together they cost"),
                };
                let uncounted = match spending.uncounted {
                    0 => String::new(),
                    uses => format!(
                        " This does not include {} with another unit of privacy.",
                        counted(uses as u64, "use")
                    ),
                };
                format!(
                    "{who}, {times} epsilon {} at delta {}.{uncounted}",
                    total_epsilon(spending.epsilon),
                    small(spending.delta)
                )
            }
        };
        let later = "Every further use of the same records adds to this. Drawing more records from the same model costs \
                     nothing.";
        [Some(this), draft, Some(total), Some(later.to_owned())]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Describes the origin of the schema.
    pub fn schema_origin(&self) -> Vec<String> {
        let schema = &self.facts.terms.schema;
        let origin = match schema.claim() {
            Some(claim) => format!(
                "The schema was drafted from the records by differentially private releases, at epsilon {} and delta {:e} \
                 according to the holder. The names of the columns were not paid for: they are public.",
                claim.epsilon, claim.delta
            ),
            None => "The holder states the schema as public knowledge: it has no private draft. Nobody else can check that \
                     its names, limits, categories and rules do not depend on the records."
                .to_owned(),
        };
        let source = schema
            .source()
            .map(|source| format!("Source named by the schema: {source}."));
        [Some(origin), source].into_iter().flatten().collect()
    }

    /// Describes the noise of the released counts.
    pub fn exactness(&self) -> Vec<String> {
        let Some(noise) = &self.facts.noise else {
            return vec![
                "The noise of each column is not stated here. The holder's list of releases has it.".to_owned(),
            ];
        };
        let mut texts = vec![
            "In the table of columns, \u{b1} is two standard deviations of the noise in the released count of each value \
             or bin: about 95 of 100 released counts are within it of the real count."
                .to_owned(),
        ];
        let known: Vec<f64> = self
            .columns
            .iter()
            .filter_map(|column| column.noise)
            .collect();
        let least = known.iter().copied().reduce(f64::min);
        let most = known.iter().copied().reduce(f64::max);
        if let Some((least, most)) = least.zip(most) {
            texts.push(format!(
                "Counts of single columns: {} to {}.",
                plus_minus(least),
                plus_minus(most)
            ));
        }
        texts.extend(
            noise
                .total
                .map(|total| format!("Number of real records: {}.", plus_minus(total))),
        );
        texts.push(
            "Rows of the synthetic table are drawn at random from a model of these counts. A value in n rows varies by \
             about \u{b1} 2\u{221a}n more."
                .to_owned(),
        );
        texts
    }

    /// Lists the conclusions that the table does not support.
    pub fn conclusions(&self) -> Vec<String> {
        let mut texts = vec![
            "Do not conclude anything about a single person: no row describes a real one, and equal rows are coincidence.",
            "Do not interpret counts, or differences between counts, that are smaller than the noise of their column.",
            "Do not conclude that two columns are independent: the model has only the relations that were measured above \
             the noise. Relations between three or more columns may be missing.",
            "Do not compute standard errors or p-values as if the rows were real: they leave out the noise.",
            "Do not take the number of rows for the number of real records, or the smallest and largest values for those of \
             the records: limits come from the schema.",
        ];
        let has = |kind| self.columns.iter().any(|column| column.kind == kind);
        if has(KindForm::Identifier) {
            texts.push("Do not link identifiers to other tables: they are new, and unrelated to the real ones.");
        }
        texts.into_iter().map(str::to_owned).collect()
    }

    /// Lists what the guarantee does not cover.
    pub fn limits(&self) -> Vec<String> {
        let terms = &self.facts.terms;
        let schema = match terms.schema.claim() {
            Some(_) => "Names of columns and the other public parts of the schema",
            None => {
                "The schema: names of columns, limits, categories, rules and the choice of columns"
            }
        };
        let mut texts = vec![
            format!("{schema}. The guarantee assumes that they do not depend on the records."),
            match terms.record_bound {
                Some(bound) => format!(
                    "The bound on the number of records: at most {} records. It is public.",
                    grouped(bound)
                ),
                None => "The bound on the number of records that the run assumed, which follows from the size of the table. \
                         It is not stated here."
                    .to_owned(),
            },
            "Facts about groups. Results may reveal a relation that holds in the population, and such a relation can be \
             applied to a person whose records were not used."
                .to_owned(),
            "Other releases from the same records, by this or another program, unless the total spending includes them."
                .to_owned(),
            "A report that compares the table with the real records. It is exact, and only for the holder.".to_owned(),
        ];
        texts.push(match self.facts.setting {
            CardSetting::Services | CardSetting::UnstatedServices => {
                "Services that break the conditions under \"How was it made, and who must be trusted?\".".to_owned()
            }
            _ => "Access to the holder's machine, which has the real records.".to_owned(),
        });
        texts
    }
}
