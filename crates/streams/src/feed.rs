//! What a connection sends for each record of the trail: the pure heart of a session.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_connector::{TableDescription, TableKey};
use highwater_kafka::ReadRecord;
use uuid::Uuid;

use crate::batch::{Batch, Sent};
use crate::change::{Change, Undecodable};
use crate::contract::ContractHash;
use crate::encoding::Encoding;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::marks::{Marks, Verdict};
use crate::metadata::{self, Beginning};
use crate::position::{Place, Sealer};
use crate::qos::QualityOfService;
use crate::schema;

/// What became of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It was written into the batch.
    Sent,
    /// It is a duplicate and was left out.
    Suppressed,
    /// The description of its table is needed first. Nothing changed; offer the record again
    /// after [`Feed::describe`].
    NeedsTable(TableKey),
}

/// Everything about a stream that shapes records and positions.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) stream: String,
    pub(crate) topic: String,
    pub(crate) topic_id: Uuid,
    pub(crate) encoding: Arc<Encoding>,
    pub(crate) contract: ContractHash,
    pub(crate) sealer: Sealer,
}

impl View {
    pub(crate) fn new(stream: &str, topic: &str, topic_id: Uuid, encoding: Encoding) -> Self {
        Self {
            stream: stream.to_owned(),
            topic: topic.to_owned(),
            topic_id,
            contract: ContractHash::of(&encoding),
            encoding: Arc::new(encoding),
            sealer: Sealer::new(stream, topic, topic_id),
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
}

impl Feed {
    pub(crate) fn new(view: View, qos: QualityOfService, marks: Marks) -> Self {
        Self { view, qos, marks, described: HashMap::new() }
    }

    pub(crate) fn encoding(&self) -> &Encoding {
        &self.view.encoding
    }

    /// What a connection sends before any data.
    pub(crate) fn preamble(&self, begin: &Beginning, out: &mut Batch) {
        let View { stream, topic, topic_id, encoding, .. } = &self.view;
        if encoding.include_json_schema_record {
            schema::preamble(stream, encoding).iter().for_each(|record| out.add(record));
        }
        if encoding.include_stream_metadata_record {
            out.add(&metadata::stream(encoding, topic, *topic_id, begin));
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
        let duplicate = self.marks.verdict(&change.hw) == Verdict::Duplicate;
        if duplicate && self.qos.suppresses() {
            return Ok(Outcome::Suppressed);
        }
        if let Some(key) = change.table_key().filter(|key| self.must_describe(key)) {
            return Ok(Outcome::NeedsTable(key));
        }
        self.marks.advance(&change.hw);
        let pos = self.view.pos(record, &change, &self.marks);
        format::write(out.slot(), &self.view.encoding, &change, &pos);
        out.positioned(Sent { offset: record.offset, pos });
        Ok(Outcome::Sent)
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
