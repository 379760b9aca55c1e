//! ListOffsets, as Kafka 3.8 and later answer it.

use std::sync::Arc;

use highwater_protocol::records::{BatchHeader, DECOMPRESSED_MAX, RecordTime};

use crate::partition::Partition;
use crate::segment::Segment;
use crate::{FoundOffset, Isolation, LogError, OffsetSpec, Visible};

impl Partition {
    /// Answers ListOffsets as Kafka 3.8 and later do. None is "no answer". Blocks on the disk.
    ///
    /// # Errors
    /// Of the disk.
    pub fn list_offset(
        &self,
        spec: OffsetSpec,
        isolation: Isolation,
    ) -> Result<Option<FoundOffset>, LogError> {
        self.check_readable()?;
        // Held while reading, so that nothing is cut away under it.
        let segments = self.segments.read();
        let marks = self.marks();
        let end = marks.watermarks().end(visible(isolation));
        let found = match spec {
            OffsetSpec::Latest => return Ok(Some(edge(end, marks.leader_epoch))),
            OffsetSpec::Earliest | OffsetSpec::EarliestLocal => {
                let epoch = self.epochs.read().earliest(marks.log_start);
                return Ok(Some(edge(marks.log_start, epoch)));
            }
            OffsetSpec::LatestTiered | OffsetSpec::EarliestPendingUpload => None,
            OffsetSpec::MaxTimestamp => greatest(&segments)?,
            OffsetSpec::Timestamp(target) => first_at(&segments, target, marks.log_start)?,
        };
        // Kafka does not look for the next best where the record found is not visible yet.
        Ok(found.filter(|found| found.offset < end))
    }
}

fn visible(isolation: Isolation) -> Visible {
    match isolation {
        Isolation::ReadUncommitted => Visible::HighWatermark,
        Isolation::ReadCommitted => Visible::LastStable,
    }
}

fn edge(offset: i64, leader_epoch: i32) -> FoundOffset {
    FoundOffset { offset, timestamp: -1, leader_epoch }
}

fn found(record: RecordTime, header: &BatchHeader) -> FoundOffset {
    FoundOffset {
        offset: record.offset,
        timestamp: record.timestamp,
        leader_epoch: header.partition_leader_epoch,
    }
}

/// The first record with the greatest timestamp (KIP-734): one batch is read, however long the log.
fn greatest(segments: &[Arc<Segment>]) -> Result<Option<FoundOffset>, LogError> {
    let mut best: Option<(&Arc<Segment>, i64)> = None;
    for segment in segments {
        let tip = segment.tip();
        let timestamp = tip.greatest.timestamp;
        if tip.size > 0 && best.is_none_or(|(_, before)| timestamp > before) {
            best = Some((segment, timestamp));
        }
    }
    let Some((segment, timestamp)) = best else { return Ok(None) };
    let Some((header, position)) = segment.greatest()? else { return Ok(None) };
    let record = segment
        .batch_at(&header, position)?
        .first_with(timestamp, DECOMPRESSED_MAX)
        .map_err(|error| segment.damaged(position, error.to_string()))?;
    Ok(record.map(|record| found(record, &header)))
}

/// The first record at or after a time, in the first segment that has one. Kafka never goes on into a
/// later segment, also where the log start has passed the only record.
fn first_at(
    segments: &[Arc<Segment>],
    target: i64,
    log_start: i64,
) -> Result<Option<FoundOffset>, LogError> {
    let reaches = |segment: &&Arc<Segment>| segment.tip().greatest.timestamp >= target;
    let Some(segment) = segments.iter().find(reaches) else { return Ok(None) };
    let from = segment.base_offset.max(log_start);
    let entered = segment.time_index.offset_before(target)?.map_or(from, |offset| offset.max(from));
    let mut position = segment.offset_index.position_before(entered)?;
    let wanted =
        |header: &BatchHeader| header.max_timestamp >= target && header.last_offset() >= from;
    while let Some((header, at)) = segment.find_from(position, wanted)? {
        let record = segment
            .batch_at(&header, at)?
            .first_at_or_after(target, from, DECOMPRESSED_MAX)
            .map_err(|error| segment.damaged(at, error.to_string()))?;
        if let Some(record) = record {
            return Ok(Some(found(record, &header)));
        }
        position = at + header.size() as u64;
    }
    Ok(None)
}
