//! What the log measures, through the `metrics` facade.

use std::time::Duration;

use metrics::{Unit, describe_histogram, histogram};

const SYNC: &str = "highwater_log_sync_seconds";

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    describe_histogram!(SYNC, Unit::Seconds, "Time that a sync of a partition's data took");
}

/// A sync went well.
pub(crate) fn synced(took: Duration) {
    histogram!(SYNC).record(took);
}
