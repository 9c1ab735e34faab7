//! The command in a folder of its own.

use std::{
    path::Path,
    process::{Command, Output},
};

/// Where the command keeps what it remembers, below the folder that it runs in.
pub const CONFIG: &str = ".config";

/// Runs a program in a folder, without what the environment says of published tables.
pub fn run(program: &str, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_remove("FHAIM_DATA_DIR")
        .env_remove("FHAIM_REFERENCE_DIR")
        .env("FHAIM_CONFIG_DIR", folder.join(CONFIG))
        .output()
        .unwrap()
}

/// What a program said on its standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
