//! Runs the command in a test's own folder.

use std::{
    path::Path,
    process::{Command, Output},
};

/// Folder of the command's configuration, relative to the folder that it runs in.
pub const CONFIG: &str = ".config";

/// Runs a program in a folder, without the environment's variables for published tables and for the usage history.
pub fn run(program: &str, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_remove("FHAIM_DATA_DIR")
        .env_remove("FHAIM_REFERENCE_DIR")
        .env_remove("FHAIM_MEMORY_DIR")
        .env("FHAIM_CONFIG_DIR", folder.join(CONFIG))
        .output()
        .unwrap()
}

/// Returns a program's standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
