//! What delivery is told by the configuration, and what it keeps between transactions.

use std::sync::Arc;

use highwater_connector::{Generation, Position, SourceRecord, TableDescription};

use super::envelope::Envelope;
use super::image::{Images, LargeObjects};
use super::shape::Shape;
use super::shapes::{Compiling, Shapes};
use super::split::SplitLimits;
use super::topic_names::{OwnTopics, TopicNames};
use crate::schema::Layouts;
use crate::statement::Quoting;
use crate::{OracleError, TableName};

/// What becomes of a row that cannot be decoded (`cdc.on.decode.error`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnDecodeError {
    /// The task stops before its transaction.
    #[default]
    Fail,
    /// It goes to the topic of dead letters, and the task goes on.
    DeadLetter,
}

/// What becomes of a large object above `cdc.lob.max.bytes` (`cdc.lob.oversize.action`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OversizedLob {
    /// The task stops.
    #[default]
    Fail,
    /// The placeholder stands for it.
    Placeholder,
}

/// How records are made.
#[derive(Clone, Debug)]
pub struct Output {
    /// `cdc.topic.prefix`.
    pub server: String,
    /// Name of the database, for tables outside of pluggable ones.
    pub database: String,
    /// Generation of this run (rule P4).
    pub generation: Generation,
    /// Where records go.
    pub topics: TopicNames,
    /// Whether a tombstone follows a DELETE on the topic of a table (`cdc.tombstones.on.delete`).
    pub has_tombstones: bool,
    /// How large objects are shown.
    pub large: LargeObjects,
    /// See [`OversizedLob`].
    pub oversized: OversizedLob,
    /// How LogMiner of this release quotes.
    pub quoting: Quoting,
    /// See [`OnDecodeError`].
    pub on_decode_error: OnDecodeError,
    /// When a transaction is split.
    pub split: SplitLimits,
}

/// Makes the records of one connector.
#[derive(Debug)]
pub struct Delivery {
    pub(super) output: Output,
    pub(super) envelope: Envelope,
    pub(super) shapes: Shapes,
    pub(super) images: Images,
}

impl Delivery {
    /// A delivery beside the descriptions that earlier runs `stored`.
    pub fn new(output: Output, stored: &[TableDescription]) -> Self {
        let envelope = Envelope::new(&output.server, output.large.clone(), output.oversized);
        let shapes = Shapes::new(stored);
        Self { output, envelope, shapes, images: Images::default() }
    }

    /// Topics of the engine's own records.
    pub const fn own_topics(&self) -> &OwnTopics {
        self.output.topics.own()
    }

    /// `cdc.topic.prefix`.
    pub fn server(&self) -> &str {
        &self.output.server
    }

    /// The shape of a version of a table, which is described first if that is not stored: in `out`, under
    /// `position`.
    ///
    /// # Errors
    /// When the version is not known, or the table has no topic or no key.
    pub(super) fn shape(
        &mut self,
        (table, version): (&Arc<TableName>, u32),
        layouts: &Layouts,
        at: (&str, u64),
        position: impl FnOnce() -> Arc<dyn Position>,
        out: &mut Vec<SourceRecord>,
    ) -> Result<Arc<Shape>, OracleError> {
        let Output { database, topics, .. } = &mut self.output;
        let compiling = Compiling { layouts, topics, database, at };
        let (shape, fresh) = self.shapes.shape(table, version, compiling)?;
        out.extend(fresh.map(|fresh| self.description(&fresh, position())));
        Ok(shape)
    }

    /// Forgets a table that is captured no more; its topic is free.
    pub fn forget(&mut self, table: &TableName) {
        self.output.topics.release(table);
        self.shapes.forget(table);
    }
}
