//! The connector: one value for all Oracle sources.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use highwater_connector::{
    Claim, Config, ConfigDef, ConnectorError, ErrorKind, ExactlyOnce, OffsetChange, OffsetVerdict,
    Problem, SourceConnector, SourceOffset, SourcePartition, SourceTask, Topics, schema_topic,
};
use serde_json::{Map, Value};

use crate::OracleError;
use crate::position::{Available, Position, judge};
use crate::sessions::{self, Sessions};
use crate::settings::{Settings, definition, fingerprint, own_topics, problems, routing};
use crate::task::OracleTask;

/// Names that `connector.class` may give.
const CLASSES: &[&str] = &["io.highwater.oracle.OracleConnector", "oracle", "OracleConnector"];

/// Code of a configuration that does not hold together.
const CONFIG: &str = "CONFIG_INVALID";

/// Captures the changes of Oracle databases; see the crate.
pub struct OracleConnector {
    definition: ConfigDef,
    sessions: Arc<dyn Sessions>,
}

impl fmt::Debug for OracleConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OracleConnector").finish_non_exhaustive()
    }
}

impl OracleConnector {
    /// A connector whose sessions come from there.
    pub fn new(sessions: Arc<dyn Sessions>) -> Self {
        Self { definition: definition(), sessions }
    }
}

#[async_trait]
impl SourceConnector for OracleConnector {
    fn classes(&self) -> &'static [&'static str] {
        CLASSES
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn config(&self) -> &ConfigDef {
        &self.definition
    }

    fn partition(&self, config: &Config) -> SourcePartition {
        let mut partition = Map::new();
        partition.insert("server".to_owned(), Value::from(config.text("cdc.topic.prefix")));
        SourcePartition(partition)
    }

    fn topics(&self, config: &Config) -> Topics {
        Topics {
            routing: routing(config),
            schema: Some(schema_topic(config.text("cdc.topic.prefix"))),
            side: own_topics(config).side(),
        }
    }

    fn fingerprint(&self, config: &Config) -> String {
        fingerprint(config)
    }

    fn before_open_transaction(&self, offset: &SourceOffset) -> Option<SourceOffset> {
        Position::read(offset).ok()?.before_open_transaction().map(|position| position.write())
    }

    async fn check_offset_change(
        &self,
        config: &Config,
        change: &OffsetChange,
    ) -> Result<OffsetVerdict, ConnectorError> {
        if change.wanted.is_none() {
            return Ok(OffsetVerdict::Accepted(None));
        }
        let settings = checked(config)?;
        let sessions = Arc::clone(&self.sessions);
        let asked = tokio::task::spawn_blocking(move || {
            let asked = sessions::ask(&*sessions, &settings, |session| {
                Available::ask(session, &settings.mining)
            });
            asked.map(|(_, available)| available)
        });
        match asked.await {
            Ok(available) => Ok(judge(change, &available?)),
            Err(error) => {
                Err(OracleError::again(format!("the database was not asked: {error}")).into())
            }
        }
    }

    fn problems(&self, config: &Config) -> Vec<Problem> {
        problems(config)
    }

    /// A folder of spilled changes is cleared at a start.
    fn claims(&self, config: &Config) -> Vec<Claim> {
        let Ok(settings) = Settings::new(config) else { return Vec::new() };
        let what = format!("the folder {} of spilled changes", settings.buffer.spill_dir.display());
        vec![Claim { key: "cdc.buffer.spill.dir", what }]
    }

    /// A stored offset says how many changes of which commit are safe, and redo gives the same ones again.
    fn exactly_once(&self, _config: &Config) -> ExactlyOnce {
        ExactlyOnce::Supported
    }

    fn can_define_boundaries(&self, _config: &Config) -> bool {
        true
    }

    fn task(&self, config: &Config) -> Result<Box<dyn SourceTask>, ConnectorError> {
        Ok(Box::new(OracleTask::new(checked(config)?, Arc::clone(&self.sessions))))
    }
}

fn checked(config: &Config) -> Result<Settings, ConnectorError> {
    Settings::new(config).map_err(|problems| {
        let what: Vec<_> =
            problems.iter().map(|problem| format!("{} {}", problem.key, problem.message)).collect();
        let remedy = "correct the configuration and start again";
        ConnectorError::stop(CONFIG, ErrorKind::Configuration, what.join("; "), remedy)
    })
}
