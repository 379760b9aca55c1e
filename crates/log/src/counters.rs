//! What the log measures, through the `metrics` facade.

use std::time::Duration;

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::cleaning::Cleaned;

const SYNC: &str = "highwater_log_sync_seconds";
const ARCHIVED: &str = "highwater_log_archived_bytes_total";
const ARCHIVE_FAILURES: &str = "highwater_log_archive_failures_total";
const UNARCHIVED: &str = "highwater_log_unarchived_segments_total";
const HOLDS_BROKEN: &str = "highwater_log_holds_broken_total";
const COMPACTION: &str = "highwater_log_compaction_seconds";
const COMPACTION_READ: &str = "highwater_log_compaction_read_bytes_total";
const COMPACTION_WRITTEN: &str = "highwater_log_compaction_written_bytes_total";
const COMPACTION_REMOVED: &str = "highwater_log_compaction_removed_records_total";
const COMPACTION_FAILURES: &str = "highwater_log_compaction_failures_total";
const DIRTIEST: &str = "highwater_log_max_dirty_ratio";
const UNCLEANABLE: &str = "highwater_log_uncleanable_partitions";

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    describe_histogram!(SYNC, Unit::Seconds, "Time that a sync of a partition's data took");
    describe_histogram!(
        COMPACTION,
        Unit::Seconds,
        "Time that a compaction pass over a partition took"
    );
    describe_counter!(
        COMPACTION_READ,
        Unit::Bytes,
        "Bytes of batches that compaction went through"
    );
    describe_counter!(COMPACTION_WRITTEN, Unit::Bytes, "Bytes of batches that compaction kept");
    describe_counter!(COMPACTION_REMOVED, Unit::Count, "Records that compaction removed");
    describe_counter!(COMPACTION_FAILURES, Unit::Count, "Compaction passes that failed");
    describe_gauge!(
        DIRTIEST,
        "Greatest share of bytes not compacted yet among the compacted partitions, 0 to 1"
    );
    describe_gauge!(
        UNCLEANABLE,
        "Compacted partitions that are passed over for a while since a pass over them failed"
    );
    describe_counter!(HOLDS_BROKEN, "Retention holds that were broken because the log was full");
    describe_counter!(ARCHIVED, Unit::Bytes, "Bytes of segments that were copied into the archive");
    describe_counter!(ARCHIVE_FAILURES, "Attempts to archive a segment that failed");
    describe_counter!(
        UNARCHIVED,
        "Segments that were removed without being archived, because the log was full"
    );
    // There from the start, so that an alert on one can tell none from unknown.
    let compaction = [COMPACTION_READ, COMPACTION_WRITTEN, COMPACTION_REMOVED, COMPACTION_FAILURES];
    for counter in
        [HOLDS_BROKEN, ARCHIVED, ARCHIVE_FAILURES, UNARCHIVED].into_iter().chain(compaction)
    {
        counter!(counter).absolute(0);
    }
    for gauge in [DIRTIEST, UNCLEANABLE] {
        gauge!(gauge).set(0.0);
    }
}

/// A hold was broken to make room.
pub(crate) fn hold_broken() {
    counter!(HOLDS_BROKEN).increment(1);
}

/// A segment is in the archive.
pub(crate) fn archived(bytes: u64) {
    counter!(ARCHIVED).increment(bytes);
}

/// A segment could not be archived.
pub(crate) fn archive_failed() {
    counter!(ARCHIVE_FAILURES).increment(1);
}

/// Segments went that are not in the archive.
pub(crate) fn unarchived(segments: usize) {
    counter!(UNARCHIVED).increment(segments as u64);
}

/// A sync went well.
pub(crate) fn synced(took: Duration) {
    histogram!(SYNC).record(took);
}

/// A compaction pass went well, or as far as it was to go.
pub(crate) fn cleaned(cleaned: &Cleaned, took: Duration) {
    histogram!(COMPACTION).record(took);
    counter!(COMPACTION_READ).increment(cleaned.bytes_read);
    counter!(COMPACTION_WRITTEN).increment(cleaned.bytes_written);
    counter!(COMPACTION_REMOVED).increment(cleaned.records_removed);
}

/// A compaction pass failed.
pub(crate) fn clean_failed() {
    counter!(COMPACTION_FAILURES).increment(1);
}

/// The partitions were looked at for what to compact.
pub(crate) fn looked_for_dirt(greatest_ratio: f64, uncleanable: u32) {
    gauge!(DIRTIEST).set(greatest_ratio);
    gauge!(UNCLEANABLE).set(f64::from(uncleanable));
}
