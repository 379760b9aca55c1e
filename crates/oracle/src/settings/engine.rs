//! What a configuration means for the engine of one database.

use highwater_connector::{Generation, Routing};

use super::Settings;
use crate::delivery::{LargeObjects, Output, TableTopics, Template, TopicNames};
use crate::engine::EngineSettings;
use crate::transaction::lob_assembler::LobMode;
use crate::{Code, Database, OracleError};

impl Settings {
    /// The settings of an engine that mines this database, in a run of this generation.
    ///
    /// # Errors
    /// CDC-6004 when the template of topic names cannot be read.
    pub fn engine(
        &self,
        database: &Database,
        generation: Generation,
    ) -> Result<EngineSettings, OracleError> {
        Ok(EngineSettings {
            mining: self.mining.clone(),
            buffer: self.buffer.clone(),
            lobs: self.lobs,
            keys: self.keys.clone(),
            tables: self.tables.tables.clone(),
            columns: self.tables.columns.clone(),
            age: self.age,
            orphans: self.orphans,
            output: self.output(database, generation)?,
            heartbeat_interval: self.heartbeat,
        })
    }

    fn output(&self, database: &Database, generation: Generation) -> Result<Output, OracleError> {
        let records = &self.records;
        let placeholder = records.placeholder.clone();
        Ok(Output {
            server: records.prefix.clone(),
            database: database.name.clone(),
            generation,
            topics: TopicNames::new(self.table_topics(database)?, self.topics.clone()),
            has_tombstones: records.has_tombstones,
            large: match self.lobs.mode {
                LobMode::Skip => LargeObjects::LeftOut,
                LobMode::Inline | LobMode::Reselect => LargeObjects::Shown { placeholder },
            },
            oversized: records.oversized,
            quoting: self.quoting,
            on_decode_error: records.on_decode_error,
            split: records.split,
        })
    }

    fn table_topics(&self, database: &Database) -> Result<TableTopics, OracleError> {
        let prefix = match &self.records.routing {
            Routing::Tables(prefix) => prefix,
            Routing::Trail(trail) | Routing::Topic(trail) => {
                return Ok(TableTopics::Trail(trail.as_str().into()));
            }
        };
        let has_containers = database.is_cdb_root || database.is_in_pdb;
        let template = self.records.template.as_deref();
        Template::new(template, prefix, &database.name, has_containers)
            .map(TableTopics::PerTable)
            .map_err(|what| {
                OracleError::new(Code::NameCollision, what, "correct cdc.topic.template")
            })
    }
}
