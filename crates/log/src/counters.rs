//! What the log measures, through the `metrics` facade.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

const SYNC: &str = "highwater_log_sync_seconds";
const HOLDS_BROKEN: &str = "highwater_log_holds_broken_total";

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    describe_histogram!(SYNC, Unit::Seconds, "Time that a sync of a partition's data took");
    describe_counter!(HOLDS_BROKEN, "Retention holds that were broken because the log was full");
    // There from the start, so that an alert on it can tell none from unknown.
    counter!(HOLDS_BROKEN).absolute(0);
}

/// A hold was broken to make room.
pub(crate) fn hold_broken() {
    counter!(HOLDS_BROKEN).increment(1);
}

/// A sync went well.
pub(crate) fn synced(took: Duration) {
    histogram!(SYNC).record(took);
}
