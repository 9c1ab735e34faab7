//! `fhaim-gan train`.

use std::path::{Path, PathBuf};

use fhaim_files::{Staged, check_distinct};
use fhaim_gan::Examples;

use crate::args::TrainArguments;
use crate::data;
use crate::failure::Failure;
use crate::method::{Unit, train_by};

/// Reads the parties' records, trains, writes the networks.
pub fn run(arguments: &TrainArguments) -> Result<(), Failure> {
    arguments.network.check(&[arguments.method])?;
    let mut rng = fhaim_dp::generator().map_err(|_| Failure::NoRandomness)?;
    let origin = Origin::of(arguments)?;
    check_distinct(&origin.inputs(), &[&arguments.out])?;
    let mut file = Staged::create(&arguments.out)?;
    let parties = origin.parties(arguments, &mut rng)?;
    let budget = arguments.epsilon.map(|epsilon| (epsilon, arguments.delta));
    let trained = train_by(
        arguments.method,
        &parties,
        &arguments.network,
        budget,
        &mut rng,
    )?;
    file.write_bytes(&trained.model.to_bytes())?;
    file.commit()?;
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
    if arguments.method.unit().is_some() {
        eprintln!(
            "note: nothing remembers that these records were used: what further runs over them cost adds up, and is \
             yours to count"
        );
    }
    data::print(&format!(
        "{networks} of networks in {}; {kept}",
        arguments.out.display()
    ));
    Ok(())
}

/// The files that records are in.
enum Origin<'a> {
    /// A table of each party.
    Tables {
        parts: Vec<PathBuf>,
        schema: &'a Path,
    },
    /// Images and their classes.
    Images { images: &'a Path, labels: &'a Path },
}

impl<'a> Origin<'a> {
    fn of(arguments: &'a TrainArguments) -> Result<Self, Failure> {
        match arguments {
            TrainArguments {
                parts: Some(folder),
                schema: Some(schema),
                ..
            } => Ok(Self::Tables {
                parts: data::parts(folder)?,
                schema,
            }),
            TrainArguments {
                images: Some(images),
                labels: Some(labels),
                ..
            } => {
                arguments.reading.check_unused(false)?;
                Ok(Self::Images { images, labels })
            }
            _ => Err(Failure::Usage(
                "name --parts and --schema, or --images and --labels".to_owned(),
            )),
        }
    }

    fn inputs(&self) -> Vec<&Path> {
        match self {
            Self::Tables { parts, schema } => {
                let parts = parts.iter().map(PathBuf::as_path);
                parts.chain([*schema]).collect()
            }
            Self::Images { images, labels } => vec![images, labels],
        }
    }

    /// The records of each party.
    fn parties(
        &self,
        arguments: &TrainArguments,
        rng: &mut dyn rand::RngCore,
    ) -> Result<Vec<Examples>, Failure> {
        match self {
            Self::Tables { parts, schema } => {
                let schema = data::schema(schema)?;
                let part = |path: &PathBuf| {
                    let table = data::table(path, schema.clone(), &arguments.reading)?;
                    Ok(Examples::from_table(&table)?)
                };
                parts.iter().map(part).collect()
            }
            Self::Images { images, labels } => {
                let (images, labels) = (data::images(images)?, data::labels(labels)?);
                data::deal(&images, &labels, (arguments.parties, &arguments.rule), rng)
            }
        }
    }
}
