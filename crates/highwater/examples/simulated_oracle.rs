//! Highwater with an Oracle connector whose databases are simulated, for the demo: `cdc.database.url` is
//! `simulated:FOLDER`. No Oracle takes part.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use highwater_connector::AllowedPaths;
use highwater_oracle::settings::{DatabaseSettings, StatementSettings, Target};
use highwater_oracle::{ErrorClass, OracleConnector, Session, SessionError, Sessions};
use highwater_oracle_sim::RunningDatabase;
use highwater_worker::Plugin;
use parking_lot::Mutex;

/// The databases that are asked, by folder.
#[derive(Default)]
struct Simulated(Mutex<BTreeMap<PathBuf, RunningDatabase>>);

impl Simulated {
    fn database(&self, folder: &Path) -> std::io::Result<RunningDatabase> {
        let mut running = self.0.lock();
        if let Some(database) = running.get(folder) {
            return Ok(database.clone());
        }
        let database = RunningDatabase::open(folder)?;
        running.insert(folder.to_owned(), database.clone());
        Ok(database)
    }
}

impl Sessions for Simulated {
    fn open(
        &self,
        database: &DatabaseSettings,
        _: &StatementSettings,
    ) -> Result<Box<dyn Session>, SessionError> {
        let folder = match &database.target {
            Target::ConnectString(text) => text.strip_prefix("simulated:"),
            Target::Service { .. } | Target::Sid { .. } => None,
        };
        let told = |message| SessionError { ora: None, class: ErrorClass::Unknown, message };
        let folder =
            folder.ok_or_else(|| told("cdc.database.url is not simulated:FOLDER".into()))?;
        let opened = self.database(Path::new(folder));
        Ok(opened.map_err(|error| told(format!("{folder}: {error}")))?.session())
    }
}

fn plugins(allowed: AllowedPaths) -> Vec<Plugin> {
    let oracle = OracleConnector::new(Arc::new(Simulated::default()));
    let mut plugins = highwater::plugins(allowed);
    plugins.push(Plugin::Source(Arc::new(oracle)));
    plugins
}

fn main() -> ExitCode {
    highwater::main(plugins)
}
