//! What the coordinators count, through the `metrics` facade.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use crate::groups::State;

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    crate::transaction_counters::describe();
    describe_gauge!("highwater_kafka_groups", "Groups with members or committed offsets");
    describe_gauge!("highwater_kafka_group_members", "Members of all groups");
    describe_gauge!("highwater_kafka_group_offsets", "Committed offsets of all groups");
    describe_gauge!(
        "highwater_kafka_group_bytes",
        "Memory that groups and their offsets take, roughly"
    );
    describe_counter!(
        "highwater_kafka_group_rebalances_total",
        "Generations of groups that began: each is a rebalance"
    );
    describe_counter!("highwater_kafka_offset_commits_total", "Offsets committed");
}

/// Generations of a group began.
pub(crate) fn rebalances(generations: u64) {
    if generations > 0 {
        counter!("highwater_kafka_group_rebalances_total").increment(generations);
    }
}

/// Offsets were committed.
pub(crate) fn commits(offsets: usize) {
    counter!("highwater_kafka_offset_commits_total").increment(offsets as u64);
}

/// What there is.
pub(crate) fn groups(state: &State) {
    gauge!("highwater_kafka_groups").set(as_f64(state.slots.len()));
    gauge!("highwater_kafka_group_members").set(as_f64(state.total.members));
    gauge!("highwater_kafka_group_offsets").set(as_f64(state.total.offsets));
    gauge!("highwater_kafka_group_bytes").set(as_f64(state.total.bytes));
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
