//! What the log measures, through the `metrics` facade.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

const SYNC: &str = "highwater_log_sync_seconds";
const ARCHIVED: &str = "highwater_log_archived_bytes_total";
const ARCHIVE_FAILURES: &str = "highwater_log_archive_failures_total";
const UNARCHIVED: &str = "highwater_log_unarchived_segments_total";
const HOLDS_BROKEN: &str = "highwater_log_holds_broken_total";

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    describe_histogram!(SYNC, Unit::Seconds, "Time that a sync of a partition's data took");
    describe_counter!(HOLDS_BROKEN, "Retention holds that were broken because the log was full");
    describe_counter!(ARCHIVED, Unit::Bytes, "Bytes of segments that were copied into the archive");
    describe_counter!(ARCHIVE_FAILURES, "Attempts to archive a segment that failed");
    describe_counter!(
        UNARCHIVED,
        "Segments that were removed without being archived, because the log was full"
    );
    // There from the start, so that an alert on one can tell none from unknown.
    for counter in [HOLDS_BROKEN, ARCHIVE_FAILURES, UNARCHIVED] {
        counter!(counter).absolute(0);
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
