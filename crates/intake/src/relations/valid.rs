//! Rules that a schema can have.

use fhaim_domain::{Schema, SchemaForm};

use crate::draft::ProposedRule;

/// Returns the rules that a schema can have together.
pub(crate) fn valid(schema: &Schema, mut rules: Vec<ProposedRule>) -> Vec<ProposedRule> {
    let mut form = SchemaForm::from(schema.clone());
    let is_valid = |form: &SchemaForm| Schema::try_from(form.clone()).is_ok();
    let mut all = form.clone();
    rules.iter().for_each(|rule| rule.change.apply(&mut all));
    if is_valid(&all) {
        return rules;
    }
    rules.retain(|rule| {
        let mut changed = form.clone();
        rule.change.apply(&mut changed);
        let keep = is_valid(&changed);
        if keep {
            form = changed;
        }
        keep
    });
    rules
}
