//! `highwater server`: the parts, wired.

use crate::cli::ServerFlags;
use crate::failure::Failure;
use crate::settings;

pub(crate) async fn run(flags: &ServerFlags) -> Result<(), Failure> {
    let _ = settings::load(flags)?;
    Ok(())
}
