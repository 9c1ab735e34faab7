//! `fhaim-gan train`.

use fhaim_gan::Examples;

use crate::args::TrainArguments;
use crate::data;
use crate::failure::Failure;
use crate::method::{Unit, train_by};

/// Reads the parties' records, trains, writes the networks.
pub fn run(arguments: &TrainArguments) -> Result<(), Failure> {
    let mut rng = fhaim_dp::generator().map_err(|_| Failure::NoRandomness)?;
    let parties = parties(arguments, &mut rng)?;
    let budget = arguments.epsilon.map(|epsilon| (epsilon, arguments.delta));
    let trained = train_by(
        arguments.method,
        &parties,
        &arguments.network,
        budget,
        &mut rng,
    )?;
    data::write(&arguments.out, &trained.model.to_bytes())?;
    let kept = match (arguments.method.unit(), trained.epsilon, trained.multiplier) {
        (Some(unit), Some(epsilon), Some(multiplier)) => {
            let whose = match unit {
                Unit::Record => "a record's",
                Unit::Party => "a party's",
            };
            format!(
                "{whose} epsilon {epsilon:.4} at delta {} (noise multiplier {multiplier:.4})",
                arguments.delta
            )
        }
        _ => "no privacy: the networks and what they draw tell of the records".to_owned(),
    };
    let count = trained.model.gans().len();
    let networks = if count == 1 {
        "1 pair".to_owned()
    } else {
        format!("{count} pairs")
    };
    data::print(&format!(
        "{networks} of networks in {}; {kept}",
        arguments.out.display()
    ));
    Ok(())
}

fn parties(
    arguments: &TrainArguments,
    rng: &mut dyn rand::RngCore,
) -> Result<Vec<Examples>, Failure> {
    match (
        &arguments.parts,
        &arguments.schema,
        &arguments.images,
        &arguments.labels,
    ) {
        (Some(folder), Some(schema), ..) => data::parts(folder, &data::schema(schema)?),
        (_, _, Some(images), Some(labels)) => {
            let (images, labels) = (data::images(images)?, data::labels(labels)?);
            data::deal(&images, &labels, (arguments.parties, &arguments.rule), rng)
        }
        _ => Err(Failure::Usage(
            "name --parts and --schema, or --images and --labels".to_owned(),
        )),
    }
}
