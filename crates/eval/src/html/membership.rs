//! The page's section on membership attacks.

use std::fmt::{self, Formatter};

use super::{Escaped, card, grouped};
use crate::{Attack, membership::Membership};

/// Writes the section on membership attacks.
pub(super) fn membership_section(out: &mut Formatter<'_>, membership: &Membership) -> fmt::Result {
    out.write_str("<section>\n<h2>Membership</h2>\n")?;
    write!(
        out,
        "<p class=\"lead\">Attacks that try to distinguish {} records that the table was made from (members) \
         from {} other records of the same population. {}</p>\n<div class=\"cards\">\n",
        grouped(membership.members as u64),
        grouped(membership.others as u64),
        Escaped(&membership.sentence())
    )?;
    let mut one = |name: &str, attack: Attack, what: &str| {
        let beside = format!("{what}; guessing gives {:.3}", attack.chance);
        card(out, name, &format!("{:.3}", attack.found), &beside)
    };
    if let Some(scores) = &membership.scores {
        one(
            "Likelihood",
            scores.likelihood,
            "probability that a member has a higher likelihood under the model than another record (Yeom et al. 2018)",
        )?;
        one(
            "White box",
            scores.white_box,
            "share of members among the records with the highest likelihood (Hayes et al. 2019)",
        )?;
        one(
            "Total variation",
            scores.total_variation,
            "distance between the likelihoods of members and of other records",
        )?;
    }
    one(
        "Nearest record",
        membership.nearby,
        "share of pairs of a member and another record in which the member is nearer to a synthetic record",
    )?;
    one(
        "Monte Carlo",
        membership.monte_carlo,
        "share of tries in which more synthetic records are near members (Hilprecht et al. 2019)",
    )?;
    out.write_str("</div>\n</section>\n")
}
