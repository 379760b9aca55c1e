//! The two traits that a source system implements.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{
    Claim, Config, ConfigDef, ConnectorError, Fact, Finding, Generation, Hold, Position, Problem,
    SourceItem, SourceOffset, SourcePartition, TableDescription,
};

/// Which topics the records of a connector go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Routing {
    /// All into this trail: one partition, one owner, never compacted (rule R2). The worker makes
    /// it before the task starts.
    Trail(String),
    /// Those of a table into a topic of its own, whose name begins with this prefix and a dot. The
    /// worker makes each before its first record.
    Tables(String),
    /// All into this topic, which is nobody's own: others may write to it, too. The worker makes it
    /// before the first record where it is not there.
    Topic(String),
}

/// Topics that a connector owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topics {
    /// Where records go.
    pub routing: Routing,
    /// Table descriptions beside them (rule R4), compacted; made before the task starts. None for a
    /// source without tables.
    pub schema: Option<String>,
    /// Topics beside them; made before the task starts.
    pub side: Vec<SideTopic>,
}

/// A topic of one partition that a connector keeps beside its records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SideTopic {
    /// Its name.
    pub name: String,
    /// What it keeps.
    pub keeps: Keeps,
}

/// What a topic keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// The newest record of each key, for ever: it is compacted, and can be read back.
    Newest,
    /// Records that are younger than this.
    For(Duration),
}

/// What the worker knows when a task starts.
#[derive(Clone, Debug)]
pub struct Start {
    /// The stored offset; `None` at the first start.
    pub offset: Option<SourceOffset>,
    /// Generation that every record of this run bears.
    pub generation: Generation,
    /// All table descriptions that the schema topic holds.
    pub tables: Vec<TableDescription>,
}

/// A record that a task reads back from a topic of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnRecord {
    /// Key.
    pub key: Option<Bytes>,
    /// Value; none takes the key's earlier records back.
    pub value: Option<Bytes>,
}

/// What a task keeps in the log beside its records: its offset, and topics of its own.
#[async_trait]
pub trait TaskStore: Send + Sync {
    /// Stores an offset without records (an intent, a new slot's position) and returns once it is safe.
    ///
    /// Writes `offset` for the task's partition and waits for the log's acknowledgement.
    ///
    /// # Errors
    /// When the log did not acknowledge it; nothing may then be assumed stored.
    async fn store(&self, offset: &SourceOffset) -> Result<(), ConnectorError>;

    /// Gives all records of one of the task's side topics to `take`, in their order; of aborted
    /// transactions none.
    ///
    /// # Errors
    /// When the log cannot be read.
    async fn read_back(
        &self,
        topic: &str,
        take: &mut (dyn FnMut(OwnRecord) + Send),
    ) -> Result<(), ConnectorError>;
}

/// An edit of a stored offset that an operator asks for.
#[derive(Clone, Debug)]
pub struct OffsetChange {
    /// What is stored.
    pub current: Option<SourceOffset>,
    /// What shall be stored; `None` removes it.
    pub wanted: Option<SourceOffset>,
    /// Whether moving forward, over changes that are then never delivered, was asked for in so
    /// many words.
    pub allow_skip: bool,
}

/// What the source says of an [`OffsetChange`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OffsetVerdict {
    /// The offset can be stored as given here (a connector may complete it).
    Accepted(Option<SourceOffset>),
    /// Nothing may change; the texts say why and what to do.
    Refused {
        /// Why, with the numbers.
        what: String,
        /// What to do.
        remedy: String,
    },
}

/// Whether a source goes on exactly where its stored offset stands (KIP-618).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExactlyOnce {
    /// Records and offsets in one transaction of the log make it exactly-once.
    Supported,
    /// It may repeat or leave out records after a restart, whatever the log does.
    Unsupported,
}

/// In which form a source yields its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordForm {
    /// As bytes ([`SourceRecord`](crate::SourceRecord)): the connector's own form, which takes neither
    /// converters nor transforms.
    Encoded,
    /// As values ([`ValueRecord`](crate::ValueRecord)).
    Values,
}

/// A kind of source: one value a system, shared by all its connectors.
#[async_trait]
pub trait SourceConnector: Send + Sync {
    /// Names that `connector.class` may give, the canonical one first.
    fn classes(&self) -> &'static [&'static str];

    /// Version shown in plugin lists and statuses.
    fn version(&self) -> &'static str;

    /// The configuration it takes.
    fn config(&self) -> &ConfigDef;

    /// The configurations of its tasks, at most `max`, for a connector with these `properties`, which
    /// `config` is read from. Each is read as a configuration of its own, and each task stores its
    /// offsets under a partition of its own. Values come from `properties`, where a secret may be a
    /// reference to it, and not from `config`, where it is the secret: what is returned is stored.
    ///
    /// # Errors
    /// When the work cannot be divided.
    fn tasks(
        &self,
        properties: &BTreeMap<String, String>,
        _config: &Config,
        _max: u32,
    ) -> Result<Vec<BTreeMap<String, String>>, ConnectorError> {
        Ok(vec![properties.clone()])
    }

    /// The partition that offsets of a task with this configuration are stored under.
    fn partition(&self, config: &Config) -> SourcePartition;

    /// The topics of a connector with this configuration.
    fn topics(&self, config: &Config) -> Topics;

    /// The form of the records of all its tasks.
    fn form(&self) -> RecordForm {
        RecordForm::Encoded
    }

    /// Fingerprint of the captured set: changes whenever the event index of a transaction would
    /// be counted differently (rule P4).
    fn fingerprint(&self, config: &Config) -> String;

    /// If `offset` stands inside a transaction, the offset before that transaction.
    fn before_open_transaction(&self, offset: &SourceOffset) -> Option<SourceOffset>;

    /// Asks the source whether a stored offset may be changed (rule P8). Never changes the
    /// source.
    ///
    /// # Errors
    /// When the source cannot be asked.
    async fn check_offset_change(
        &self,
        config: &Config,
        change: &OffsetChange,
    ) -> Result<OffsetVerdict, ConnectorError>;

    /// What an operator should know of a connector with this configuration and of its source, beyond
    /// what its status says. Never changes the source.
    ///
    /// # Errors
    /// When the source cannot be asked, or would refuse a start.
    async fn examine(
        &self,
        config: &Config,
        offset: Option<&SourceOffset>,
    ) -> Result<Vec<Finding>, ConnectorError> {
        let _ = (config, offset);
        Ok(Vec::new())
    }

    /// What is wrong with values that each fit their key, by the key that is at fault. What is wrong
    /// with the whole alone, [`Self::task`] says.
    fn problems(&self, _config: &Config) -> Vec<Problem> {
        Vec::new()
    }

    /// What only one connector may use, such as a replication slot of a server. The worker refuses
    /// a second one that claims the same.
    fn claims(&self, _config: &Config) -> Vec<Claim> {
        Vec::new()
    }

    /// What the source keeps for a connector of this configuration that does not run now.
    ///
    /// # Errors
    /// When the source cannot be asked.
    async fn hold(&self, _config: &Config) -> Result<Option<Hold>, ConnectorError> {
        Ok(None)
    }

    /// Makes the source let go of what it keeps for a connector that does not run, and says what
    /// that was; `None` when there was nothing. `offset` is the stored one: what it does not prove
    /// to be the connector's own stays.
    ///
    /// # Errors
    /// When it is not the connector's own, somebody uses it, or the source cannot be asked.
    async fn release(
        &self,
        _config: &Config,
        _offset: Option<&SourceOffset>,
    ) -> Result<Option<String>, ConnectorError> {
        Ok(None)
    }

    /// Whether a connector of this configuration can be exactly-once.
    fn exactly_once(&self, _config: &Config) -> ExactlyOnce {
        ExactlyOnce::Unsupported
    }

    /// Whether the last record of each of the source's own transactions says so
    /// ([`SourceRecord::boundary`](crate::SourceRecord::boundary)), so that those of the log can end
    /// with it. None can be asked to end otherwise: what a source has yielded is committed with the position
    /// behind it. Kafka Connect's `TransactionContext` also aborts one, and skips what was in it; a source leaves
    /// out here what shall not be seen.
    fn can_define_boundaries(&self, _config: &Config) -> bool {
        false
    }

    /// A task for this configuration.
    ///
    /// # Errors
    /// When the configuration does not hold together.
    fn task(&self, config: &Config) -> Result<Box<dyn SourceTask>, ConnectorError>;
}

/// One running reader of a source. The worker calls it from one place, one call at a time.
#[async_trait]
pub trait SourceTask: Send {
    /// Opens the source at the stored offset, or begins from nothing.
    ///
    /// # Errors
    /// When it cannot be opened, or must not be (rule P3).
    async fn start(
        &mut self,
        start: Start,
        store: Arc<dyn TaskStore>,
    ) -> Result<(), ConnectorError>;

    /// The next items, in order. Returns within 200 ms, empty when nothing came, so that the
    /// worker never has to cancel it.
    ///
    /// # Errors
    /// When the source fails or something cannot be delivered (rule R5).
    async fn poll(&mut self) -> Result<Vec<SourceItem>, ConnectorError>;

    /// The offset of `position` is stored: the source may be told so (rule P1).
    ///
    /// # Errors
    /// When the source cannot be told; the position is stored all the same.
    async fn committed(&mut self, position: &dyn Position) -> Result<(), ConnectorError>;

    /// Closes the source. Nothing is told to it that was not told before.
    async fn stop(&mut self);

    /// One sentence that says what it is doing and whether it moves (rule U4).
    fn activity(&self) -> String;

    /// The numbers of that sentence, for programs.
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    /// What the source keeps for the task, as it was seen last.
    fn hold(&self) -> Option<Hold> {
        None
    }
}
