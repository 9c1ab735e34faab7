//! The output files of `fhaim run` and `fhaim local`.

use std::path::{Path, PathBuf};

use fhaim_files::{OutputFormat, is_regular_output, remove_output};

use super::{args::GenerateArguments, releases_file::Beginning};
use crate::{
    card::CardForm,
    error::Error,
    output::{self, StagedFile},
};

/// Name of the other files if the table goes to a pipe, a device or standard output.
const UNNAMED: &str = "fhaim";

/// The paths of a run's output files.
#[derive(Debug)]
pub struct OutputPaths {
    /// The synthetic table.
    pub table: PathBuf,
    /// The releases.
    pub releases: PathBuf,
    /// The model.
    pub model: PathBuf,
    /// The data card as a page and as Croissant metadata.
    pub cards: [(CardForm, PathBuf); 2],
    /// The report, if it is wanted.
    pub report: Option<PathBuf>,
}

/// The output files that a run has to write after its releases. A file that an earlier part of the run wrote is `None`.
#[derive(Debug)]
pub struct Outputs {
    /// The synthetic table.
    pub table: Option<StagedFile>,
    /// The model.
    pub model: Option<StagedFile>,
    /// The data cards.
    pub cards: Vec<(CardForm, StagedFile)>,
    /// The report.
    pub report: Option<StagedFile>,
}

impl OutputPaths {
    /// Derives the paths from the arguments of a run.
    pub fn of(arguments: &GenerateArguments) -> Self {
        let table = arguments.out.clone();
        let named = match is_regular_output(&table) {
            true => table.clone(),
            false => PathBuf::from(UNNAMED),
        };
        Self {
            releases: named.with_extension("releases.json"),
            model: named.with_extension("model"),
            cards: [
                (CardForm::Html, named.with_extension("card.html")),
                (CardForm::Json, named.with_extension("card.json")),
            ],
            table,
            report: arguments.report.clone(),
        }
    }

    /// Returns the files that are made from the releases, in the order in which they are written.
    fn results(&self) -> impl Iterator<Item = &Path> {
        let cards = self.cards.iter().map(|(_, path)| path);
        let always = [&self.model, &self.table].into_iter().chain(cards);
        always.chain(&self.report).map(PathBuf::as_path)
    }

    /// Rejects outputs that would overwrite an input or each other, and a table in a format that is not written.
    ///
    /// # Errors
    /// Those of [`output::check_distinct`] and [`OutputFormat::of`].
    pub fn check(&self, arguments: &GenerateArguments) -> Result<(), Error> {
        let schema = Some(arguments.schema.as_path());
        let inputs: Vec<&Path> = arguments.data.file().into_iter().chain(schema).collect();
        let outputs: Vec<&Path> = self.results().chain([self.releases.as_path()]).collect();
        output::check_distinct(&inputs, &outputs)?;
        OutputFormat::of(&self.table)?;
        Ok(())
    }

    /// Removes the results of another run, so that nobody takes them for results of the run that begins.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn remove_results(&self) -> Result<(), Error> {
        Ok(self.results().try_for_each(remove_output)?)
    }
}

impl Outputs {
    /// Starts the files that are to be written.
    ///
    /// # Errors
    /// [`fhaim_files::Error::Exists`] for a file that this run did not write, or if all files of the run exist; the
    /// other errors of [`StagedFile::create`].
    pub fn create(paths: &OutputPaths, beginning: &Beginning) -> Result<Self, Error> {
        let (existing, is_finished) = (beginning.existing(), beginning.is_finished());
        let is_written = |path: &Path| is_finished && is_regular_output(path) && path.exists();
        if paths.results().all(is_written) {
            return Err(fhaim_files::Error::Exists(paths.table.clone()).into());
        }
        let start = |path: &Path| match is_written(path) {
            true => Ok(None),
            false => StagedFile::create(path, existing).map(Some),
        };
        let (table, model) = (start(&paths.table)?, start(&paths.model)?);
        let mut cards = Vec::new();
        for (form, path) in &paths.cards {
            cards.extend(start(path)?.map(|file| (*form, file)));
        }
        Ok(Self {
            table,
            model,
            cards,
            report: match &paths.report {
                Some(path) => start(path)?,
                None => None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_table() {
        for (out, releases, model) in [
            ("a/s.csv", "a/s.releases.json", "a/s.model"),
            ("s", "s.releases.json", "s.model"),
            ("s.2026.csv", "s.2026.releases.json", "s.2026.model"),
            ("/dev/null", "fhaim.releases.json", "fhaim.model"),
            #[cfg(unix)]
            ("-", "fhaim.releases.json", "fhaim.model"),
        ] {
            let paths = OutputPaths::of(&crate::generate::args::tests::arguments(out));
            assert_eq!(paths.releases, Path::new(releases));
            assert_eq!(paths.model, Path::new(model));
            assert_eq!(
                paths.cards[0].1,
                Path::new(model).with_extension("card.html")
            );
            assert_eq!(
                paths.cards[1].1,
                Path::new(model).with_extension("card.json")
            );
        }
    }
}
