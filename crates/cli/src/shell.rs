//! `fhaim shell`: prints shell completions, and writes manual pages.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use clap_complete::Shell;

use crate::{error::Error, flags::VERSION, output};

/// Subcommands of `shell`.
#[derive(Debug, Subcommand)]
pub enum ShellCommand {
    /// Print the completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArguments),
    /// Write a manual page for every command to a folder
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
    /// Output folder. It is created if it does not exist
    pub folder: PathBuf,
}

/// Flags of `shell completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// Name of the shell
    pub shell: Shell,
}

/// Runs `fhaim shell` for the command line of `program`.
///
/// # Errors
/// If standard output or the folder cannot be written to.
pub fn run(command: &ShellCommand, program: clap::Command) -> Result<(), Error> {
    match command {
        ShellCommand::Completions(arguments) => completions(arguments, program),
        ShellCommand::Man(arguments) => man(arguments, program),
    }
}

/// Prints the completion script of a shell.
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

/// Writes the pages of a command and its subcommands.
fn pages(command: &clap::Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands() {
        pages(below, folder)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let page = page.source(format!("fhaim {VERSION}"));
    page.manual("fhaim").generate_to(folder).map(drop)
}
