//! Log lines on standard error. Each line of a connector bears its name as a field, also in JSON.

use std::io::IsTerminal as _;
use std::sync::Arc;

use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, reload};

use crate::cli::LogFormat;
use crate::failure::{Exit, Failure};
use crate::log_levels::LogLevels;
use crate::settings::Settings;

/// Starts logging as the settings say; what is given back changes it.
pub(crate) fn start(settings: &Settings) -> Result<Arc<LogLevels>, Failure> {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&settings.log_level))
        .with_writer(std::io::stderr);
    let (started, apply) = match settings.log_format {
        LogFormat::Json => {
            let lines =
                lines.json().flatten_event(true).with_span_list(false).with_filter_reloading();
            let apply = applied(lines.reload_handle());
            (lines.finish().try_init(), apply)
        }
        LogFormat::Text => {
            let lines = lines.with_ansi(std::io::stderr().is_terminal()).with_filter_reloading();
            let apply = applied(lines.reload_handle());
            (lines.finish().try_init(), apply)
        }
    };
    started.map_err(|error| Failure::new(Exit::Failed, "LOGGING", error.to_string()))?;
    Ok(LogLevels::new(&settings.log_level, apply))
}

fn applied<S: 'static>(
    handle: reload::Handle<EnvFilter, S>,
) -> Box<dyn Fn(EnvFilter) + Send + Sync> {
    Box::new(move |filter| {
        // The subscriber lives as long as the program.
        if let Err(error) = handle.reload(filter) {
            tracing::error!(%error, "the levels of log lines stay as they were");
        }
    })
}
