//! Completions for shells, and manual pages.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use clap_complete::Shell;

use crate::{error::Error, flags::VERSION, output};

/// What to print or write.
#[derive(Debug, Subcommand)]
pub enum ShellCommand {
    /// Print completions of all commands for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArguments),
    /// Write manual pages of all commands to a folder
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArguments),
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  fhaim shell completions bash > ~/.local/share/bash-completion/completions/fhaim
  fhaim shell completions zsh > ~/.zfunc/_fhaim
  fhaim shell completions fish > ~/.config/fish/completions/fhaim.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  fhaim shell man ~/.local/share/man/man1
  fhaim shell man man && man -l man/fhaim-dataset-create.1

Each command has a page: fhaim.1, fhaim-dataset.1, fhaim-dataset-create.1 and so on.";

/// Flags of `shell man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// The folder. It is created if it does not exist
    pub folder: PathBuf,
}

/// Flags of `shell completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    pub shell: Shell,
}

/// Runs `fhaim shell` for the command line of `program`.
///
/// # Errors
/// Standard output or the folder cannot be written to.
pub fn run(command: &ShellCommand, program: clap::Command) -> Result<(), Error> {
    match command {
        ShellCommand::Completions(arguments) => completions(arguments, program),
        ShellCommand::Man(arguments) => man(arguments, program),
    }
}

/// Prints a shell's completions of commands and flags.
fn completions(arguments: &CompletionsArguments, mut program: clap::Command) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "fhaim", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Writes a manual page for every command.
fn man(arguments: &ManArguments, program: clap::Command) -> Result<(), Error> {
    let folder = &arguments.folder;
    let mut command = program.disable_help_subcommand(true);
    command.build();
    let written = fs::create_dir_all(folder).and_then(|()| pages(&command, folder));
    written.map_err(|source| Error::Write {
        path: folder.clone(),
        source,
    })
}

/// The pages of a command and of those below it.
fn pages(command: &clap::Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands() {
        pages(below, folder)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let page = page.source(format!("fhaim {VERSION}"));
    page.manual("fhaim").generate_to(folder).map(drop)
}
