//! What shells and readers of manuals want to know of the commands: completions, manual pages.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{
    args::{Arguments, VERSION},
    error::Error,
    output,
    randomness::Randomness,
};

pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  fhaim completions bash > ~/.local/share/bash-completion/completions/fhaim
  fhaim completions zsh > ~/.zfunc/_fhaim
  fhaim completions fish > ~/.config/fish/completions/fhaim.fish";

pub const MAN_EXAMPLES: &str = "\
Examples:
  fhaim man ~/.local/share/man/man1
  fhaim man man && man -l man/fhaim-dataset-create.1

A page a command: fhaim.1, fhaim-dataset.1, fhaim-dataset-create.1 and so on.";

/// Flags of `man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// The folder; it is made where there is none
    pub folder: PathBuf,
}

/// Flags of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    pub shell: Shell,
}

/// Prints what a shell needs to complete commands and flags.
pub fn completions<R: Randomness>(arguments: &CompletionsArguments) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::<R>::command(),
        "fhaim",
        &mut script,
    );
    output::print(&String::from_utf8_lossy(&script))
}

/// Writes a manual page for every command.
pub fn man<R: Randomness>(arguments: &ManArguments) -> Result<(), Error> {
    let folder = &arguments.folder;
    let mut command = Arguments::<R>::command().disable_help_subcommand(true);
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
