//! `fhaim-lab gan sample`: draws synthetic records from trained networks.

use std::path::{Path, PathBuf};

use fhaim_domain::{WriteOptions, counted, write_csv};
use fhaim_files::{Existing, StagedFile, check_distinct, shown_path};
use fhaim_gan::Shape;
use fhaim_mix::idx::write_images;

use crate::gan::args::SampleArguments;
use crate::gan::data;
use crate::gan::failure::Failure;

/// Runs the command: draws records, and writes a CSV file of a table or an IDX file of images.
pub fn run(arguments: &SampleArguments) -> Result<(), Failure> {
    let inputs = [Some(&arguments.model), arguments.schema.as_ref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().map(PathBuf::as_path).collect();
    check_distinct(&inputs, &[&arguments.out])?;
    let mut file = StagedFile::create(&arguments.out, Existing::Replace)?;
    let model = data::model(&arguments.model)?;
    data::check_drawn("--rows", arguments.rows, model.shape())?;
    let mut rng = fhaim_dp::generator().map_err(|_| Failure::NoRandomness)?;
    let schema = match (model.shape(), &arguments.schema) {
        (Shape::Codes(sizes), Some(path)) => {
            let schema = data::schema(path)?;
            if schema.domain().sizes() != sizes {
                let problem = "the columns of this schema are not those of the networks";
                return Err(data::content(path, &problem));
            }
            Some(schema)
        }
        (Shape::Codes(_), None) => {
            return Err(Failure::Usage(
                "the records are of a table: add its --schema".to_owned(),
            ));
        }
        (Shape::Image { .. }, Some(_)) => {
            return Err(Failure::Usage(
                "the records are images: leave out --schema".to_owned(),
            ));
        }
        (Shape::Image { .. }, None) => None,
    };
    let drawn = model.sample(arguments.rows, &mut rng)?;
    let bytes = match schema {
        None => drawn
            .images()
            .map(|images| write_images(&images))
            .unwrap_or_default(),
        Some(schema) => {
            let table = drawn.table(schema).map_err(fhaim_domain::Error::from)?;
            let mut bytes = Vec::new();
            if let Some(table) = table {
                let mut options = WriteOptions::new(arguments.out.to_string_lossy());
                options.delimiter = arguments.delimiter.unwrap_or(b',');
                write_csv(&table, &mut bytes, &mut rng, &options)?;
            }
            bytes
        }
    };
    file.write_bytes(&bytes)?;
    file.commit()?;
    data::print(&format!(
        "{} in {}",
        counted(drawn.len(), "synthetic record"),
        shown_path(&arguments.out)
    ));
    Ok(())
}
