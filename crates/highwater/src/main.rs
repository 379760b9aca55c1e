//! The command line of Highwater, with the connectors of this release.

use std::process::ExitCode;

fn main() -> ExitCode {
    highwater::main(highwater::plugins)
}
