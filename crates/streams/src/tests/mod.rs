//! Tests over a log that lies in memory. Those over the real broker stand in the folder `tests`.

mod client;
mod golden;
mod history;
mod key_changes;
mod lingering;
mod memory;
mod resources;
mod resuming;
mod sessions;
mod tokens;
pub(crate) mod trails;
