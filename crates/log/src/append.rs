//! Appending: each batch is checked once (rule L3), stamped, and written as it came.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use highwater_protocol::records::{
    Batch, BatchError, BatchHeader, BatchMut, DECOMPRESSED_MAX, TimestampType, Validated, batches,
};

use crate::end_marker::{EndMarker, MarkerKind};
use crate::marks::Mark;
use crate::partition::{Partition, Writer};
use crate::producer::{Sequenced, Verdict};
use crate::record_check::check_records;
use crate::segment::{Segment, Stamped};
use crate::topic_config::{Flush, StoredAs, TopicConfig};
use crate::transaction_index::Entry;
use crate::{LogError, OpenTransaction};

/// Who appends, which says what is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A client, whose batches of a producer are numbered.
    Client,
    /// A client whose transactional batch was found to belong to an open transaction when the log ended
    /// at `at`: it is refused if that transaction was ended since (KIP-890).
    Verified {
        /// The log end, taken before the transaction coordinator was asked.
        at: i64,
    },
    /// A coordinator of ours: its transactional batches bear no sequence numbers.
    Coordinator,
}

/// How an append is to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppendOptions {
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
    /// Who appends.
    pub origin: Origin,
}

impl AppendOptions {
    /// Those of a client's append.
    pub fn client(now_ms: i64) -> Self {
        Self { now_ms, origin: Origin::Client }
    }
}

/// What an append was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// Offset of the first record; -1 if it was appended so long ago that nobody remembers.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The time the records bear, if the topic stamps them; of a batch sent again its greatest time.
    pub log_append_time_ms: Option<i64>,
    /// The first offset kept.
    pub log_start_offset: i64,
    /// The leader epoch of the append; [`Partition::durable`] needs it.
    pub leader_epoch: i32,
}

impl Partition {
    /// Appends whole batches, as a client sends them: checks them, gives them offsets, writes them to
    /// the page cache. They are visible and safe later, see [`Partition::durable`]. A batch of an
    /// idempotent producer comes alone; sent again, it is answered with the offsets it was given first.
    /// May block on the disk when a segment ends.
    ///
    /// # Errors
    /// Nothing is written then; see [`LogError`] for the kinds.
    pub fn append(&self, batches: Bytes, options: AppendOptions) -> Result<Appended, LogError> {
        let appended = self.check_and_write(batches, options);
        self.tell_space(&appended);
        appended
    }

    fn check_and_write(
        &self,
        batches: Bytes,
        options: AppendOptions,
    ) -> Result<Appended, LogError> {
        let config = self.config();
        let checked = check(batches, &config, options)?;
        let mut writer = self.writer.lock();
        self.check_usable()?;
        if let Some(answer) = self.answer_duplicate(&writer, &checked, options.origin)? {
            return Ok(answer);
        }
        let bytes = checked.iter().map(|batch| batch.bytes.len() as u64).sum();
        self.share.check(bytes)?;
        self.roll_if_due(&mut writer, bytes, &config, options.now_ms)?;
        let appended = self.write(&mut writer, checked, None, &config, options.now_ms)?;
        drop(writer);
        self.request_flush_if_due(&config);
        Ok(appended)
    }

    /// Appends the marker that ends a producer's transaction here. Without an open transaction it is
    /// appended all the same: it may fence the producer. It is taken also where the log holds as much as
    /// it may, since it sets readers free. Visible and safe as any append, see [`Partition::durable`].
    ///
    /// # Errors
    /// [`LogError::InvalidProducerEpoch`] or [`LogError::CoordinatorFenced`], or of the disk; nothing is
    /// written then.
    pub fn append_marker(&self, marker: EndMarker, now_ms: i64) -> Result<Appended, LogError> {
        let appended = self.check_and_write_marker(marker, now_ms);
        self.tell_space(&appended);
        appended
    }

    fn check_and_write_marker(&self, marker: EndMarker, now_ms: i64) -> Result<Appended, LogError> {
        if marker.producer_id < 0 || marker.producer_epoch < 0 {
            return Err(refuse("a marker without a producer id and an epoch"));
        }
        let config = self.config();
        let batch = Batch::parse(&marker.to_batch(now_ms).map_err(classify)?).map_err(classify)?;
        let valid = batch.validate(DECOMPRESSED_MAX).map_err(classify)?;
        let checked = stamp_time(batch.header, batch.bytes.into(), &valid, &config, now_ms)?;
        let mut writer = self.writer.lock();
        self.check_usable()?;
        writer.producers.check_marker(&marker)?;
        self.roll_if_due(&mut writer, checked.bytes.len() as u64, &config, now_ms)?;
        let appended = self.write(&mut writer, vec![checked], Some(&marker), &config, now_ms)?;
        drop(writer);
        self.request_flush_if_due(&config);
        Ok(appended)
    }

    fn request_flush_if_due(&self, config: &TopicConfig) {
        if config.flush == Flush::Durable || self.unsynced() >= config.flush_bound.messages {
            self.request_flush();
        }
    }

    /// Says once that the partition cannot grow, and once that it grows again.
    fn tell_space(&self, appended: &Result<Appended, LogError>) {
        let full = match appended {
            Ok(_) => false,
            Err(LogError::NoSpace { .. } | LogError::TotalLimit { .. }) => {
                self.share.tell_refusal();
                true
            }
            Err(_) => return,
        };
        if self.is_full.swap(full, Ordering::Relaxed) == full {
            return;
        }
        let partition = self.place.name();
        match appended {
            Err(error) => {
                tracing::error!(partition, code = error.code(), %error, "a partition cannot grow: appends are refused, reads go on");
            }
            Ok(_) => tracing::info!(partition, "a partition grows again"),
        }
    }

    fn answer_duplicate(
        &self,
        writer: &Writer,
        checked: &[Checked],
        origin: Origin,
    ) -> Result<Option<Appended>, LogError> {
        let Some(batch) = checked.first().and_then(|batch| Sequenced::of(&batch.header)) else {
            return Ok(None);
        };
        match writer.producers.check(&batch, origin)? {
            Verdict::New => Ok(None),
            Verdict::Duplicate { base_offset, last_offset, timestamp } => {
                // Kafka tells the batch's time also where the topic does not stamp it.
                let time = Some(timestamp).filter(|time| *time >= 0);
                Ok(Some(self.answer(base_offset, last_offset, time)))
            }
        }
    }

    fn answer(&self, base_offset: i64, last_offset: i64, time: Option<i64>) -> Appended {
        let marks = self.marks();
        Appended {
            base_offset,
            last_offset,
            log_append_time_ms: time,
            log_start_offset: marks.log_start,
            leader_epoch: marks.leader_epoch,
        }
    }

    /// Writes what was found good; `marker` is what the one batch is, if it is one.
    fn write(
        &self,
        writer: &mut Writer,
        checked: Vec<Checked>,
        marker: Option<&EndMarker>,
        config: &TopicConfig,
        now_ms: i64,
    ) -> Result<Appended, LogError> {
        let segment = self.active()?;
        let before = segment.tip();
        let ended = marker.and_then(|one| writer.producers.ended_by(one, before.next_offset));
        let aborted = ended.filter(|ended| ended.kind == MarkerKind::Abort);
        let stamped = self.stamp(checked, before.next_offset)?;
        self.write_stamped(&segment, &stamped, aborted.map(|ended| ended.entry), config)?;
        self.share.grow(segment.tip().size - before.size);
        writer.active_since_ms.get_or_insert(now_ms);
        let mut at = Mark {
            offset: before.next_offset,
            segment: segment.base_offset,
            position: before.size,
        };
        for batch in &stamped {
            self.remember(writer, &batch.header, at, now_ms);
            at.offset = batch.header.next_offset();
            at.position += batch.bytes.len() as u64;
        }
        if let Some(marker) = marker {
            if let Some(ended) = ended {
                self.unsettled.lock().end(ended.entry.aborted.first_offset, before.next_offset);
            }
            let time = stamped.first().map_or(now_ms, |batch| batch.header.max_timestamp);
            writer.producers.end(marker, before.next_offset, time, now_ms);
        }
        // Only now: who sees the new end must know what is not settled below it.
        self.move_log_end();
        let time = (config.timestamp_type == TimestampType::LogAppendTime).then_some(now_ms);
        Ok(self.answer(before.next_offset, at.offset - 1, time))
    }

    fn stamp(&self, checked: Vec<Checked>, mut next: i64) -> Result<Vec<Stamped>, LogError> {
        let leader_epoch = self.marks().leader_epoch;
        let stamp = |batch: Checked| {
            let batch = batch.stamp(next, leader_epoch)?;
            next = batch.header.next_offset();
            Ok(batch)
        };
        checked.into_iter().map(stamp).collect()
    }

    /// Takes a batch that lies at `at` into the state of its producer.
    fn remember(&self, writer: &mut Writer, header: &BatchHeader, at: Mark, now_ms: i64) {
        let Some(batch) = Sequenced::of(header) else { return };
        if writer.producers.record(batch, now_ms) {
            let transaction = OpenTransaction {
                producer_id: batch.producer_id,
                producer_epoch: batch.epoch,
                first_offset: at.offset,
                since_ms: now_ms,
            };
            self.unsettled.lock().begin(transaction, at);
        }
    }

    fn write_stamped(
        &self,
        segment: &Segment,
        stamped: &[Stamped],
        aborted: Option<Entry>,
        config: &TopicConfig,
    ) -> Result<(), LogError> {
        let bytes = stamped.iter().map(|batch| batch.bytes.len() as u64).sum();
        segment.reserve(bytes, stamped.len() as u64)?;
        if aborted.is_some() {
            segment.transactions.reserve(self.place.fs.as_ref())?;
        }
        let before = segment.state();
        let written = match aborted {
            Some(entry) => segment.append_aborting(stamped, config.index_interval_bytes, entry),
            None => segment.append(stamped, config.index_interval_bytes),
        };
        written.inspect_err(|_| {
            if let Err(error) = segment.undo_to(before) {
                // What lies behind the tip can be neither used nor removed now.
                self.poison(&error);
            }
        })
    }

    fn move_log_end(&self) {
        let segments = self.segments.read();
        let end = crate::partition::end_of(&segments);
        self.change(|marks| marks.log_end = end);
    }
}

/// A batch that was found good, in memory of its own where it had to be changed.
#[derive(Debug)]
struct Checked {
    header: BatchHeader,
    bytes: Vec<u8>,
}

impl Checked {
    fn stamp(mut self, base_offset: i64, leader_epoch: i32) -> Result<Stamped, LogError> {
        let (mut batch, _) = BatchMut::parse(&mut self.bytes).map_err(classify)?;
        batch.set_base_offset(base_offset);
        batch.set_leader_epoch(leader_epoch);
        let header = *batch.header();
        Ok(Stamped { header, bytes: self.bytes.into() })
    }
}

/// Checks what a client sent and gives the batches their time.
fn check(
    sent: Bytes,
    config: &TopicConfig,
    options: AppendOptions,
) -> Result<Vec<Checked>, LogError> {
    let mut walk = batches(sent);
    let mut checked = Vec::new();
    for batch in walk.by_ref() {
        checked.push(check_batch(&batch.map_err(classify)?, config, options)?);
    }
    if !walk.rest().is_empty() {
        return Err(LogError::CorruptBatch { reason: "the last batch is cut".to_owned() });
    }
    let idempotent = checked.iter().any(|batch| batch.header.producer_id >= 0);
    match checked.len() {
        0 => Err(refuse("there is no batch")),
        1 => Ok(checked),
        _ if idempotent => Err(refuse("a batch of an idempotent producer comes alone")),
        _ => Ok(checked),
    }
}

fn check_batch(
    batch: &Batch,
    config: &TopicConfig,
    options: AppendOptions,
) -> Result<Checked, LogError> {
    check_header(batch, config, options.origin)?;
    let valid = batch.validate(DECOMPRESSED_MAX).map_err(classify)?;
    check_records(batch, &valid, config, options.now_ms)?;
    stamp_time(batch.header, as_stored(batch, config)?, &valid, config, options.now_ms)
}

/// Gives a batch that was found good its time.
fn stamp_time(
    came: BatchHeader,
    mut bytes: Vec<u8>,
    valid: &Validated,
    config: &TopicConfig,
    now_ms: i64,
) -> Result<Checked, LogError> {
    let (mut stamp, _) = BatchMut::parse(&mut bytes).map_err(classify)?;
    match config.timestamp_type {
        TimestampType::LogAppendTime => {
            stamp.set_max_timestamp(TimestampType::LogAppendTime, now_ms)
        }
        // A producer that calls its times the log's is not believed; Kafka sets the bit right, too.
        TimestampType::CreateTime
            if valid.max_timestamp != came.max_timestamp
                || came.timestamp_type() == TimestampType::LogAppendTime =>
        {
            stamp.set_max_timestamp(TimestampType::CreateTime, valid.max_timestamp);
        }
        TimestampType::CreateTime => {}
    }
    let header = *stamp.header();
    Ok(Checked { header, bytes })
}

fn check_header(batch: &Batch, config: &TopicConfig, origin: Origin) -> Result<(), LogError> {
    let header = &batch.header;
    check_size(batch.bytes.len(), config)?;
    if header.base_offset != 0 && origin != Origin::Coordinator {
        return Err(refuse("its first offset is not 0: only the log gives offsets"));
    }
    if header.is_control() {
        return Err(refuse("clients do not write control batches"));
    }
    if header.is_transactional() && header.producer_id < 0 {
        return Err(refuse("a transactional batch without a producer id"));
    }
    let unnumbered = header.base_sequence < 0 && origin != Origin::Coordinator;
    if header.producer_id >= 0 && (unnumbered || header.producer_epoch < 0) {
        return Err(refuse("a producer id without a sequence number and an epoch"));
    }
    Ok(())
}

/// The bytes as they came, or compressed anew where the topic has a codec of its own.
fn as_stored(batch: &Batch, config: &TopicConfig) -> Result<Vec<u8>, LogError> {
    let came = batch.header.compression().map_err(classify)?;
    let Some(StoredAs { codec, level }) = config.stored_as.filter(|stored| stored.codec != came)
    else {
        return Ok(batch.bytes.to_vec());
    };
    let bytes = batch.recompressed(codec, level, DECOMPRESSED_MAX).map_err(classify)?;
    check_size(bytes.len(), config)?;
    Ok(bytes.into())
}

fn check_size(size: usize, config: &TopicConfig) -> Result<(), LogError> {
    let most = config.max_message_bytes;
    if size > most { Err(LogError::RecordTooLarge { size, most }) } else { Ok(()) }
}

/// Damage on the way is told apart from a batch that its producer made wrongly: only the first is worth
/// sending again.
pub(crate) fn classify(error: BatchError) -> LogError {
    match error {
        BatchError::Cut { .. } | BatchError::Crc { .. } | BatchError::Length { .. } => {
            LogError::CorruptBatch { reason: error.to_string() }
        }
        error => refuse(&error.to_string()),
    }
}

fn refuse(reason: &str) -> LogError {
    LogError::InvalidRecord { reason: reason.to_owned(), records: Vec::new() }
}
