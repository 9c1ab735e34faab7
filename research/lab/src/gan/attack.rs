//! `fhaim-lab gan attack`: tests whether networks reveal the records that they were trained on.

use std::path::Path;

use fhaim_eval::{Attack, MonteCarlo};
use fhaim_gan::{Attacks, Examples, Model, Shape, attack};
use rand::{SeedableRng, rngs::StdRng};

use crate::gan::args::AttackArguments;
use crate::gan::data;
use crate::gan::failure::Failure;

/// Runs the command: attacks saved networks with members and others. The randomness is not secret.
pub fn run(arguments: &AttackArguments) -> Result<(), Failure> {
    let model = data::model(&arguments.model)?;
    data::check_drawn("--drawn", arguments.drawn, model.shape())?;
    let members = records(&model, arguments, &arguments.members)?;
    let others = records(&model, arguments, &arguments.others)?;
    let options = MonteCarlo {
        records: members.len().min(others.len()).min(100),
        ..MonteCarlo::default()
    };
    let drawn = model.sample(arguments.drawn, &mut StdRng::seed_from_u64(options.seed))?;
    // The others determine the axes, so that the members have no influence on how they are compared.
    let found = attack(model.gans(), &drawn, (&members, &others, &others), &options)?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&found).unwrap_or_default();
        data::print(&json);
    } else {
        data::print(&text(&found));
    }
    Ok(())
}

fn records(model: &Model, arguments: &AttackArguments, path: &Path) -> Result<Examples, Failure> {
    match (model.shape(), &arguments.schema) {
        (Shape::Image { .. }, schema) => {
            arguments.reading.check_unused(schema.is_some())?;
            data::images(&path.into())
        }
        (Shape::Codes(_), Some(schema)) => {
            let table = data::table(&path.into(), data::schema(schema)?, &arguments.reading)?;
            Ok(Examples::from_table(&table)?)
        }
        (Shape::Codes(_), None) => Err(Failure::Usage(
            "the records are of a table: add its --schema".to_owned(),
        )),
    }
}

fn text(attacks: &Attacks) -> String {
    let mut text = String::from("attack           found  by guessing");
    let mut line = |name: &str, attack: Attack| {
        text.push_str(&format!(
            "\n{name:15} {:>6.3} {:>12.3}",
            attack.found, attack.chance
        ));
    };
    line("white box", attacks.scores.white_box);
    line("total variation", attacks.scores.total_variation);
    line("likelihood", attacks.scores.likelihood);
    line("monte carlo", attacks.monte_carlo);
    text
}
