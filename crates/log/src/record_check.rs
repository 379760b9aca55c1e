//! Records that a topic does not take: without a key where it is compacted, or with a time too far from
//! now (KIP-937). An answer names each of them (KIP-467).

use highwater_protocol::records::{Batch, DECOMPRESSED_MAX, TimestampType, Validated};

use crate::append::classify;
use crate::{LogError, TopicConfig};

/// So many records are named at most.
const MOST_NAMED: usize = 100;

/// What is wrong with a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Keyless,
    Time(i64),
    /// The batch says that its times are the log's.
    Claimed,
}

/// What a topic takes now.
#[derive(Clone, Copy)]
struct Terms {
    keyless: bool,
    /// The batch says that its times are the log's.
    claims: bool,
    /// They are to be.
    stamps: bool,
    least: i64,
    most: i64,
}

impl Terms {
    fn of(config: &TopicConfig, batch: &Batch, now_ms: i64) -> Self {
        let bound = config.timestamp_bound;
        Self {
            keyless: !config.cleanup.compact,
            claims: batch.header.timestamp_type() == TimestampType::LogAppendTime,
            stamps: config.timestamp_type == TimestampType::LogAppendTime,
            least: now_ms.saturating_sub(bound.before_ms),
            most: now_ms.saturating_add(bound.after_ms),
        }
    }

    /// As Kafka's `LogValidator`: where a record's own time does not count, its batch must not claim the log's.
    fn time_fault(&self, timestamp: i64) -> Option<Fault> {
        if self.stamps || timestamp == -1 {
            return self.claims.then_some(Fault::Claimed);
        }
        let fits = (self.least..=self.most).contains(&timestamp);
        (!fits).then_some(Fault::Time(timestamp))
    }

    fn fault(&self, has_key: bool, timestamp: i64) -> Option<Fault> {
        match has_key || self.keyless {
            false => Some(Fault::Keyless),
            true => self.time_fault(timestamp),
        }
    }

    /// Kafka's error is that of the first one.
    fn refusal(&self, first: Fault, records: Vec<i32>) -> LogError {
        match first {
            Fault::Keyless => {
                let reason = "a compacted topic takes no record without a key".to_owned();
                LogError::InvalidRecord { reason, records }
            }
            Fault::Claimed => LogError::ClaimedTimestamp { records },
            Fault::Time(timestamp) => LogError::InvalidTimestamp {
                timestamp,
                least: self.least,
                most: self.most,
                which: if timestamp < self.least { "before" } else { "after" },
                records,
            },
        }
    }
}

/// Refuses a batch that holds such a record. Of most batches nothing is opened: what `valid` says is enough.
pub(crate) fn check_records(
    batch: &Batch,
    valid: &Validated,
    config: &TopicConfig,
    now_ms: i64,
) -> Result<(), LogError> {
    let terms = Terms::of(config, batch, now_ms);
    let times = [valid.min_timestamp, valid.max_timestamp];
    if terms.keyless && times.iter().all(|time| terms.time_fault(*time).is_none()) {
        return Ok(());
    }
    let (mut index, mut first, mut named) = (0, None, Vec::new());
    let walked = batch.each_record(DECOMPRESSED_MAX, |record| {
        if let Some(fault) = terms.fault(record.key.is_some(), record.timestamp) {
            first.get_or_insert(fault);
            if named.len() < MOST_NAMED {
                named.push(index);
            }
        }
        index += 1;
    });
    walked.map_err(classify)?;
    first.map_or(Ok(()), |first| Err(terms.refusal(first, named)))
}
