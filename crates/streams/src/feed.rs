//! What a connection sends for each record of the trail: the pure heart of a session.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_connector::{TableDescription, TableKey};
use highwater_kafka::{ReadRecord, TopicDescription, partition_of};
use uuid::Uuid;

use crate::batch::{Batch, Sent};
use crate::change::{Change, Operation, Undecodable};
use crate::contract::ContractHash;
use crate::encoding::Encoding;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::key_change::{Held, Part};
use crate::marks::{Marks, Verdict};
use crate::metadata::{self, Beginning};
use crate::position::{Place, Sealer};
use crate::qos::QualityOfService;
use crate::schema;
use crate::trail::TopicPartition;

/// What became of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It was written into the batch.
    Sent,
    /// It is a duplicate and was left out.
    Suppressed,
    /// It has nothing of its own to say: a tombstone, or a part of an event that is shown with its
    /// last part.
    Passed,
    /// The description of its table is needed first. Nothing changed; offer the record again
    /// after [`Feed::describe`].
    NeedsTable(Needed),
}

/// A table description that a record needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Needed {
    pub(crate) key: TableKey,
    /// Name of the server in whose schema topic it stands.
    pub(crate) server: String,
}

/// Everything about a stream that shapes records and positions.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) stream: String,
    pub(crate) source: TopicPartition,
    pub(crate) topic_id: Uuid,
    /// Partitions of the topic.
    pub(crate) partitions: i32,
    pub(crate) encoding: Arc<Encoding>,
    pub(crate) contract: ContractHash,
    pub(crate) sealer: Sealer,
}

impl View {
    /// The view of `partition` of a topic.
    pub(crate) fn new(
        stream: &str,
        topic: &TopicDescription,
        partition: i32,
        encoding: Encoding,
    ) -> Self {
        let source = TopicPartition { topic: topic.name.clone(), partition };
        Self {
            stream: stream.to_owned(),
            sealer: Sealer::new(stream, &source, topic.id),
            source,
            topic_id: topic.id,
            partitions: topic.partitions,
            contract: ContractHash::of(&encoding),
            encoding: Arc::new(encoding),
        }
    }

    /// The position of a record, given the marks that hold with it.
    pub(crate) fn pos(&self, record: &ReadRecord, change: &Change<'_>, marks: &Marks) -> String {
        let place = Place {
            offset: record.offset,
            leader_epoch: record.leader_epoch,
            contract: self.contract,
            fingerprint: Fingerprint::of(record, &change.hw.record_id()),
        };
        self.sealer.seal(&place, marks)
    }
}

/// One connection's way through the trail.
#[derive(Debug)]
pub(crate) struct Feed {
    view: View,
    qos: QualityOfService,
    marks: Marks,
    described: HashMap<String, u32>,
    held: Option<Held>,
}

impl Feed {
    pub(crate) fn new(view: View, qos: QualityOfService, marks: Marks) -> Self {
        Self { view, qos, marks, described: HashMap::new(), held: None }
    }

    pub(crate) fn encoding(&self) -> &Encoding {
        &self.view.encoding
    }

    /// What a connection sends before any data.
    pub(crate) fn preamble(&self, begin: &Beginning, out: &mut Batch) {
        let View { stream, encoding, .. } = &self.view;
        if encoding.include_json_schema_record {
            schema::preamble(stream, encoding).iter().for_each(|record| out.add(record));
        }
        if encoding.include_stream_metadata_record {
            out.add(&metadata::stream(&self.view, begin));
        }
    }

    /// Offers the next record of the trail.
    ///
    /// # Errors
    /// When it is none of a trail of ours.
    pub(crate) fn take(
        &mut self,
        record: &ReadRecord,
        out: &mut Batch,
    ) -> Result<Outcome, Undecodable> {
        let change = Change::decode(record)?;
        let Some(held) = self.held.take() else { return Ok(self.show(record, &change, out)) };
        match held.part(&change) {
            Part::Again => {
                self.hold(record, &change);
                Ok(Outcome::Passed)
            }
            Part::Tombstone => {
                self.marks.advance(&change.hw);
                self.held = Some(held);
                Ok(Outcome::Passed)
            }
            Part::Create => self.join(held, record, change, out),
            // Delivery began again further back, so the delete that is held will come again too.
            Part::Other if self.marks.verdict(&change.hw) == Verdict::Duplicate => {
                let outcome = self.show(record, &change, out);
                self.held.get_or_insert(held);
                Ok(outcome)
            }
            Part::Other => match self.release(held, out)? {
                Some(needed) => Ok(Outcome::NeedsTable(needed)),
                None => Ok(self.show(record, &change, out)),
            },
        }
    }

    /// Shows what is held, since its create is not to come; what is needed first, if anything.
    ///
    /// # Errors
    /// None in fact: what is held was decoded before.
    pub(crate) fn let_go(&mut self, out: &mut Batch) -> Result<Option<Needed>, Undecodable> {
        match self.held.take() {
            Some(held) => self.release(held, out),
            None => Ok(None),
        }
    }

    /// Shows a record that stands alone.
    fn show(&mut self, record: &ReadRecord, change: &Change<'_>, out: &mut Batch) -> Outcome {
        let duplicate = self.marks.verdict(&change.hw) == Verdict::Duplicate;
        if change.operation == Operation::Tombstone {
            // Unless compaction took the delete before it, that one has said everything.
            if duplicate || self.marks.continues(&change.hw) {
                self.marks.advance(&change.hw);
                return Outcome::Passed;
            }
        } else if duplicate && self.qos.suppresses() {
            return Outcome::Suppressed;
        }
        if let Some(needed) = self.needed(change) {
            return Outcome::NeedsTable(needed);
        }
        if self.awaits_create(change) {
            self.hold(record, change);
            return Outcome::Passed;
        }
        let sent = self.pass(record, change);
        self.write(change, sent, out);
        Outcome::Sent
    }

    fn hold(&mut self, record: &ReadRecord, change: &Change<'_>) {
        let sent = self.pass(record, change);
        self.held = Some(Held { record: record.clone(), hw: change.hw.clone(), sent });
    }

    /// Whether the record is the delete of a key change whose create will stand in this partition.
    fn awaits_create(&self, change: &Change<'_>) -> bool {
        let View { partitions, source, .. } = &self.view;
        let new_key = change.other_key.filter(|_| change.operation == Operation::Delete);
        new_key.is_some_and(|key| partition_of(key, *partitions) == source.partition)
    }

    /// Shows the delete that is held and its create as one update.
    fn join(
        &mut self,
        held: Held,
        record: &ReadRecord,
        create: Change<'_>,
        out: &mut Batch,
    ) -> Result<Outcome, Undecodable> {
        if let Some(needed) = self.needed(&create) {
            self.held = Some(held);
            return Ok(Outcome::NeedsTable(needed));
        }
        let delete = Change::decode(&held.record)?;
        let mut update = Change { operation: Operation::Update, other_key: None, ..create };
        update.envelope.before = delete.envelope.before;
        let sent = self.pass(record, &update);
        self.write(&update, sent, out);
        Ok(Outcome::Sent)
    }

    /// Shows the delete that was held by itself, marked as one half of a key change.
    fn release(&mut self, held: Held, out: &mut Batch) -> Result<Option<Needed>, Undecodable> {
        let delete = Change::decode(&held.record)?;
        if let Some(needed) = self.needed(&delete) {
            self.held = Some(held);
            return Ok(Some(needed));
        }
        self.write(&delete, held.sent, out);
        Ok(None)
    }

    /// Takes note of a record, and gives its position: marks depend on nothing but what stands
    /// before it in the log, whether it was shown or not (rule S1).
    fn pass(&mut self, record: &ReadRecord, change: &Change<'_>) -> Sent {
        self.marks.advance(&change.hw);
        Sent { offset: record.offset, pos: self.view.pos(record, change, &self.marks) }
    }

    fn write(&self, change: &Change<'_>, sent: Sent, out: &mut Batch) {
        format::write(out.slot(), &self.view.encoding, change, &sent.pos);
        out.positioned(sent);
    }

    /// The description that must be sent before the record.
    fn needed(&self, change: &Change<'_>) -> Option<Needed> {
        let key = change.table_key().filter(|key| self.must_describe(key))?;
        let server = change.server().unwrap_or(&self.view.source.topic).to_owned();
        Some(Needed { key, server })
    }

    fn must_describe(&self, key: &TableKey) -> bool {
        let encoding = &self.view.encoding;
        (encoding.include_json_schema_record || encoding.include_object_metadata_records)
            && self.described.get(&key.table) != Some(&key.version)
    }

    /// Sends the description of a table, before the first row that it shapes.
    pub(crate) fn describe(&mut self, table: &TableDescription, out: &mut Batch) {
        let View { stream, encoding, .. } = &self.view;
        if encoding.include_json_schema_record {
            out.add(&schema::table(stream, encoding, table));
        }
        if encoding.include_object_metadata_records {
            out.add(&metadata::object(encoding, table));
        }
        self.described.insert(table.table.clone(), table.version);
    }
}
