//! The connector: one value for all PostgreSQL sources.

use async_trait::async_trait;
use highwater_connector::{
    Claim, Config, ConfigDef, ConnectorError, ExactlyOnce, Finding, Hold, OffsetChange,
    OffsetVerdict, SourceConnector, SourceOffset, SourcePartition, SourceTask, Topics,
    schema_topic,
};
use serde_json::{Map, Value};

use crate::catalog::Catalog;
use crate::checkup;
use crate::debezium_offset::is_debeziums;
use crate::offset_change;
use crate::opening::{self, Connections, forms_unstated};
use crate::release;
use crate::settings::{Settings, definition, fingerprint, routing};
use crate::task::PostgresTask;

/// Names that `connector.class` may give.
const CLASSES: &[&str] = &[
    "io.highwater.postgres.PostgresConnector",
    "postgres",
    "PostgresConnector",
    "io.debezium.connector.postgresql.PostgresConnector",
];

/// Captures the changes of PostgreSQL databases; see the crate.
#[derive(Clone, Debug)]
pub struct PostgresConnector {
    definition: ConfigDef,
}

impl PostgresConnector {
    /// The connector.
    pub fn new() -> Self {
        Self { definition: definition() }
    }
}

impl Default for PostgresConnector {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl SourceConnector for PostgresConnector {
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
        partition.insert("server".to_owned(), Value::from(config.text("topic.prefix")));
        SourcePartition(partition)
    }

    fn topics(&self, config: &Config) -> Topics {
        let schema = Some(schema_topic(config.text("topic.prefix")));
        Topics { routing: routing(config), schema, side: Vec::new() }
    }

    fn fingerprint(&self, config: &Config) -> String {
        fingerprint(config)
    }

    fn before_open_transaction(&self, offset: &SourceOffset) -> Option<SourceOffset> {
        let mut before = offset.clone();
        before.0.shift_remove("event_index");
        before.0.shift_remove("commit_lsn").map(|_| before)
    }

    async fn check_offset_change(
        &self,
        config: &Config,
        change: &OffsetChange,
    ) -> Result<OffsetVerdict, ConnectorError> {
        if change.wanted.is_none() {
            return Ok(OffsetVerdict::Accepted(None));
        }
        let settings = Settings::new(config)?;
        let mut change = change.clone();
        if let Some(wanted) = change.wanted.as_ref().filter(|wanted| is_debeziums(wanted)) {
            if settings.forms.is_none() {
                let ConnectorError { what, remedy, .. } = forms_unstated(wanted);
                return Ok(OffsetVerdict::Refused { what, remedy });
            }
            // What lies between the slot and Debezium's position was delivered, by Debezium.
            change.allow_skip |= change.current.is_none();
        }
        let Connections { catalog, server, .. } = Connections::open(&settings).await?;
        let slot = catalog.slot(&settings.slot).await?;
        Ok(offset_change::judge(&change, &settings.slot, slot.as_ref(), &server))
    }

    async fn examine(
        &self,
        config: &Config,
        offset: Option<&SourceOffset>,
    ) -> Result<Vec<Finding>, ConnectorError> {
        checkup::examine(&Settings::new(config)?, offset).await
    }

    fn claims(&self, config: &Config) -> Vec<Claim> {
        let host = config.text("database.hostname").to_lowercase();
        let (slot, port) = (config.text("slot.name"), config.text("database.port"));
        let what = format!("replication slot {slot} of PostgreSQL at {host}:{port}");
        vec![Claim { key: "slot.name", what }]
    }

    async fn hold(&self, config: &Config) -> Result<Option<Hold>, ConnectorError> {
        let settings = Settings::new(config)?;
        let catalog = Catalog::connect(&settings.login).await?;
        let holding = catalog.holding(&settings.slot).await?;
        Ok(holding.map(|holding| holding.hold(settings.place(), settings.wal_warn, None)))
    }

    async fn release(
        &self,
        config: &Config,
        offset: Option<&SourceOffset>,
    ) -> Result<Option<String>, ConnectorError> {
        let settings = Settings::new(config)?;
        let stored = offset.map(|offset| opening::read(offset, &settings)).transpose()?;
        let Connections { catalog, server, .. } = Connections::open(&settings).await?;
        let Some(slot) = opening::released(&catalog, &settings.slot).await? else {
            return Ok(None);
        };
        release::check(&settings.slot, &slot, stored.as_ref(), &server)?;
        opening::drop_slot(&catalog, &settings.slot).await?;
        let (place, publication) = (settings.place(), &settings.publication);
        Ok(Some(format!("{place} is dropped; publication {publication} stays")))
    }

    /// A stored offset names the last event that is delivered, inside a transaction too, and the slot
    /// decodes what is not confirmed again, event by event the same.
    fn exactly_once(&self, _config: &Config) -> ExactlyOnce {
        ExactlyOnce::Supported
    }

    fn can_define_boundaries(&self, _config: &Config) -> bool {
        true
    }

    fn task(&self, config: &Config) -> Result<Box<dyn SourceTask>, ConnectorError> {
        Ok(Box::new(PostgresTask::new(Settings::new(config)?)))
    }
}
