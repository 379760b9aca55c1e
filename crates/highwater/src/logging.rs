//! Log lines on standard error. Each line of a connector bears its name as a field, also in JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::LogFormat;
use crate::failure::{Exit, Failure};
use crate::settings::Settings;

/// Starts logging as the settings say.
pub(crate) fn start(settings: &Settings) -> Result<(), Failure> {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&settings.log_level))
        .with_writer(std::io::stderr);
    let started = match settings.log_format {
        LogFormat::Json => {
            lines.json().flatten_event(true).with_span_list(false).finish().try_init()
        }
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).finish().try_init(),
    };
    started.map_err(|error| Failure::new(Exit::Failed, "LOGGING", error.to_string()))
}
