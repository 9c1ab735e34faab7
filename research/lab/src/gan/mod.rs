//! `fhaim-lab gan`: private and federated GANs, as baselines for fhaim.

pub mod args;
mod attack;
mod bench;
mod data;
mod failure;
mod method;
mod sample;
mod train;

use fhaim_files::progress::Progress;

use self::args::GanCommand;
pub use self::failure::Failure;

/// Runs a command of `gan`.
pub fn run(command: &GanCommand, progress: &Progress) -> Result<(), Failure> {
    match command {
        GanCommand::Train(arguments) => train::run(arguments, progress),
        GanCommand::Sample(arguments) => sample::run(arguments),
        GanCommand::Attack(arguments) => attack::run(arguments),
        GanCommand::Bench(arguments) => bench::run(arguments, progress),
    }
}
