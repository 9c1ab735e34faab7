//! `fhaim-lab federate`: splits a table among simulated parties, and makes synthetic tables from their parts.

pub mod args;
mod run;
mod split;
mod synthfs;

use fhaim_files::progress::Progress;

use self::args::FederateCommand;
use crate::{error::Error, randomness::Randomness};

/// Runs a command of `federate`.
pub fn dispatch<R: Randomness>(
    command: &FederateCommand<R>,
    progress: &Progress,
) -> Result<(), Error> {
    match command {
        FederateCommand::Split(drawing) => split::run(&drawing.arguments, drawing.seed()),
        FederateCommand::Synthfs(drawing) => synthfs::run(&drawing.arguments, drawing.seed()),
        FederateCommand::Run(drawing) => run::run(&drawing.arguments, drawing.seed(), progress),
    }
}
