//! `highwater completions`: a script for a shell, on standard output.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    // Into memory first: the generator panics when its output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "highwater", &mut script);
    Ok(output::line(String::from_utf8_lossy(&script).trim_end())?)
}
