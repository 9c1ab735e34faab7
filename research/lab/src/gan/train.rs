//! `fhaim-lab gan train`: trains networks on the records of parties.

use std::path::Path;

use fhaim_domain::counted;
use fhaim_files::data::Data;
use fhaim_files::memory::{self, RecordSource, Use, UseCost};
use fhaim_files::progress::Progress;
use fhaim_files::{Existing, StagedFile, check_apart, check_distinct, part_files, shown_path};
use fhaim_gan::{Examples, Model};

use crate::gan::args::TrainArguments;
use crate::gan::data;
use crate::gan::failure::Failure;
use crate::gan::method::{Kept, Protected, keep, train_by};

/// The name of this program in the usage history.
const PROGRAM: &str = "fhaim-lab gan";

/// Runs the command: reads the parties' records, reports their earlier costs, trains, and writes the networks.
pub fn run(arguments: &TrainArguments, progress: &Progress) -> Result<(), Failure> {
    arguments.network.check(&[arguments.method])?;
    let mut rng = fhaim_dp::generator().map_err(|_| Failure::NoRandomness)?;
    let origin = Origin::of(arguments)?;
    check_distinct(&origin.inputs(), &[&arguments.out])?;
    if let Some(parts) = &arguments.parts {
        check_apart(parts, &[&arguments.out])?;
    }
    let mut file = StagedFile::create(&arguments.out, Existing::Replace)?;
    let parties = origin.parties(arguments, &mut rng)?;
    let budget = arguments.epsilon.map(|epsilon| (epsilon, arguments.delta));
    let kept = keep(arguments.method, &parties, &arguments.network, budget)?;
    let costs = kept.as_ref().map(|kept| origin.costs(arguments, kept));
    let known = match &costs {
        Some(costs) => {
            let how = (arguments.yes, progress.is_quiet());
            memory::look_up_parties(costs, arguments.delta, how)?
        }
        None => None,
    };
    let drawing = (&mut rng, progress);
    let (method, network) = (arguments.method, &arguments.network);
    let trained = train_by(method, &parties, network, kept.as_ref(), drawing);
    // The error shows that networks diverged, and at which step. This comes from the noisy steps, so their cost is
    // spent.
    let has_told = matches!(
        &trained,
        Ok(_) | Err(Failure::Gan(fhaim_gan::Error::Diverged { .. }))
    );
    if let Some((records, costs)) = known.zip(costs).filter(|_| has_told) {
        let out = arguments.out.display().to_string();
        let costs = costs.into_iter().map(|(_, cost)| Some(cost));
        records.remember_each(&Use::Run { out, journal: None }, costs)?;
    }
    let model = trained?;
    file.write_bytes(&model.to_bytes())?;
    file.commit()?;
    tell(arguments, &model, kept.as_ref());
    Ok(())
}

/// Prints the number of networks, and their privacy cost.
fn tell(arguments: &TrainArguments, model: &Model, kept: Option<&Kept>) {
    let what = match (arguments.method.protected().map(Protected::unit), kept) {
        (
            Some(unit),
            Some(Kept {
                epsilon,
                multiplier,
                ..
            }),
        ) => format!(
            "epsilon {epsilon:.4} for {unit} at delta {} (noise multiplier {multiplier:.4})",
            arguments.delta
        ),
        _ => "no privacy: the networks and their samples reveal information about the records"
            .to_owned(),
    };
    let count = model.gans().len();
    data::print(&format!(
        "{} of networks in {}; {what}",
        counted(count, "pair"),
        shown_path(&arguments.out)
    ));
}

/// The files of the records.
enum Origin<'a> {
    /// One table per party.
    Tables { parts: Vec<Data>, schema: &'a Path },
    /// Images, and their classes.
    Images { images: Data, labels: &'a Path },
}

impl<'a> Origin<'a> {
    fn of(arguments: &'a TrainArguments) -> Result<Self, Failure> {
        match arguments {
            TrainArguments {
                parts: Some(folder),
                schema: Some(schema),
                ..
            } => Ok(Self::Tables {
                parts: part_files(folder)?.into_iter().map(Data::from).collect(),
                schema,
            }),
            TrainArguments {
                images: Some(images),
                labels: Some(labels),
                ..
            } => {
                arguments.reading.check_unused(false)?;
                let images = images.into();
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
                let parts = parts.iter().filter_map(Data::file);
                parts.chain([*schema]).collect()
            }
            Self::Images { images, labels } => images.file().into_iter().chain([*labels]).collect(),
        }
    }

    /// Returns the cost of training to the records of each file. Every run splits images among parties at random, so
    /// the party of an image is unknown. Its cost is therefore that of the party that pays most.
    fn costs<'s>(
        &'s self,
        arguments: &'s TrainArguments,
        kept: &Kept,
    ) -> Vec<(RecordSource<'s>, UseCost)> {
        let protected = arguments.method.protected().unwrap_or(Protected::Record);
        let unit = protected.unit();
        let cost = |epsilon| UseCost::approximate(PROGRAM, unit, epsilon, arguments.delta);
        match self {
            Self::Tables { parts, .. } => {
                let numbered = parts.iter().enumerate();
                let party = |(n, part): (usize, &'s Data)| {
                    let records = RecordSource::Table(part, &arguments.reading.format);
                    (records, cost(kept.party_epsilon(n)))
                };
                numbered.map(party).collect()
            }
            Self::Images { images, .. } => {
                vec![(RecordSource::Bytes(images), cost(kept.epsilon))]
            }
        }
    }

    /// Reads the records of each party.
    fn parties(
        &self,
        arguments: &TrainArguments,
        rng: &mut dyn rand::RngCore,
    ) -> Result<Vec<Examples>, Failure> {
        match self {
            Self::Tables { parts, schema } => {
                let schema = data::schema(schema)?;
                let part = |part: &Data| {
                    let table = data::table(part, schema.clone(), &arguments.reading)?;
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
