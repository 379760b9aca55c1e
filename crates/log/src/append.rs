//! Appending: each batch is checked once (rule L3), stamped, and written as it came.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use highwater_protocol::records::{
    Batch, BatchError, BatchHeader, BatchMut, DECOMPRESSED_MAX, TimestampType, batches,
};

use crate::partition::{Partition, Writer};
use crate::producers::{Sequenced, Verdict};
use crate::segment::Stamped;
use crate::{Flush, LogError, TopicConfig};

/// How an append is to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppendOptions {
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
}

/// What an append was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// Offset of the first record; -1 if it was appended so long ago that nobody remembers.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The time the records bear, if the topic stamps them.
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
        let mut checked = check(batches, &config, options.now_ms)?;
        let mut writer = self.writer.lock();
        self.check_usable()?;
        if let Some(answer) = self.answer_duplicate(&writer, &checked, &config)? {
            return Ok(answer);
        }
        let bytes = checked.iter().map(|batch| batch.bytes.len() as u64).sum();
        self.share.check(bytes)?;
        self.roll_if_due(&mut writer, bytes, &config, options.now_ms)?;
        let appended = self.write(&mut writer, &mut checked, &config, options.now_ms)?;
        drop(writer);
        if config.flush == Flush::Durable {
            self.request_flush();
        }
        Ok(appended)
    }

    /// Says once that the partition cannot grow, and once that it grows again.
    fn tell_space(&self, appended: &Result<Appended, LogError>) {
        let full = match appended {
            Ok(_) => false,
            Err(LogError::NoSpace { .. } | LogError::TotalLimit { .. }) => true,
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
        config: &TopicConfig,
    ) -> Result<Option<Appended>, LogError> {
        let Some(batch) = checked.first().and_then(|batch| Sequenced::of(&batch.header)) else {
            return Ok(None);
        };
        match writer.producers.check(&batch)? {
            Verdict::New => Ok(None),
            Verdict::Duplicate { base_offset, last_offset, timestamp } => {
                let stamped = config.timestamp_type == TimestampType::LogAppendTime;
                Ok(Some(self.answer(base_offset, last_offset, stamped.then_some(timestamp))))
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

    fn write(
        &self,
        writer: &mut Writer,
        checked: &mut Vec<Checked>,
        config: &TopicConfig,
        now_ms: i64,
    ) -> Result<Appended, LogError> {
        let segment = self.active()?;
        let before = segment.tip();
        let mut stamped = Vec::with_capacity(checked.len());
        let mut next_offset = before.next_offset;
        for batch in checked.drain(..) {
            let batch = batch.stamp(next_offset, self.marks().leader_epoch)?;
            next_offset = batch.header.next_offset();
            stamped.push(batch);
        }
        self.write_stamped(&segment, &stamped, config)?;
        self.share.grow(segment.tip().size - before.size);
        writer.active_since_ms.get_or_insert(now_ms);
        for batch in stamped.iter().filter_map(|batch| Sequenced::of(&batch.header)) {
            writer.producers.record(batch, now_ms);
        }
        self.move_log_end();
        let time = (config.timestamp_type == TimestampType::LogAppendTime).then_some(now_ms);
        Ok(self.answer(before.next_offset, next_offset - 1, time))
    }

    fn write_stamped(
        &self,
        segment: &crate::segment::Segment,
        stamped: &[Stamped],
        config: &TopicConfig,
    ) -> Result<(), LogError> {
        let bytes = stamped.iter().map(|batch| batch.bytes.len() as u64).sum();
        segment.reserve(bytes, stamped.len() as u64)?;
        let (tip, counts) = (segment.tip(), segment.index_counts());
        segment.append(stamped, config.index_interval_bytes).inspect_err(|_| {
            if let Err(error) = segment.undo_to(tip, counts) {
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
fn check(sent: Bytes, config: &TopicConfig, now_ms: i64) -> Result<Vec<Checked>, LogError> {
    let mut walk = batches(sent);
    let mut checked = Vec::new();
    for batch in walk.by_ref() {
        checked.push(check_batch(&batch.map_err(classify)?, config, now_ms)?);
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

fn check_batch(batch: &Batch, config: &TopicConfig, now_ms: i64) -> Result<Checked, LogError> {
    check_header(batch, config)?;
    let valid = batch.validate(DECOMPRESSED_MAX).map_err(classify)?;
    if config.cleanup.compact && has_keyless(batch)? {
        return Err(refuse("a compacted topic takes no record without a key"));
    }
    let mut bytes = batch.bytes.to_vec();
    let (mut stamp, _) = BatchMut::parse(&mut bytes).map_err(classify)?;
    match config.timestamp_type {
        TimestampType::LogAppendTime => {
            stamp.set_max_timestamp(TimestampType::LogAppendTime, now_ms)
        }
        TimestampType::CreateTime if valid.max_timestamp != batch.header.max_timestamp => {
            stamp.set_max_timestamp(TimestampType::CreateTime, valid.max_timestamp);
        }
        TimestampType::CreateTime => {}
    }
    let header = *stamp.header();
    Ok(Checked { header, bytes })
}

fn check_header(batch: &Batch, config: &TopicConfig) -> Result<(), LogError> {
    let (header, size, most) = (&batch.header, batch.bytes.len(), config.max_message_bytes);
    if size > most {
        return Err(LogError::RecordTooLarge { size, most });
    }
    if header.is_control() {
        return Err(refuse("clients do not write control batches"));
    }
    if header.is_transactional() {
        return Err(LogError::TransactionsUnsupported);
    }
    if header.producer_id >= 0 && (header.base_sequence < 0 || header.producer_epoch < 0) {
        return Err(refuse("a producer id without a sequence number and an epoch"));
    }
    let stamped = header.timestamp_type() == TimestampType::LogAppendTime;
    if stamped && config.timestamp_type == TimestampType::CreateTime {
        return Err(refuse("it claims LogAppendTime, which only the log may set"));
    }
    Ok(())
}

fn has_keyless(batch: &Batch) -> Result<bool, LogError> {
    for record in batch.records(DECOMPRESSED_MAX).map_err(classify)? {
        if record.map_err(classify)?.key.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Damage on the way is told apart from a batch that its producer made wrongly: only the first is worth
/// sending again.
fn classify(error: BatchError) -> LogError {
    match error {
        BatchError::Cut { .. } | BatchError::Crc { .. } | BatchError::Length { .. } => {
            LogError::CorruptBatch { reason: error.to_string() }
        }
        error => refuse(&error.to_string()),
    }
}

fn refuse(reason: &str) -> LogError {
    LogError::InvalidRecord { reason: reason.to_owned() }
}
