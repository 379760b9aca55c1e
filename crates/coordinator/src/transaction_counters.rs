//! What is counted of transactions, through the `metrics` facade.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use crate::transaction::TransactionResult;

/// Tells the recorder what the numbers mean.
pub(crate) fn describe() {
    describe_gauge!(
        "highwater_kafka_transactions_open",
        "Transactions that are open, or whose end is not in every partition yet"
    );
    describe_gauge!("highwater_kafka_transactional_ids", "Transactional ids that are known");
    describe_counter!(
        "highwater_kafka_transactions_ended_total",
        "Transactions that ended, by how: commit, abort, timeout (open for too long), or fenced (a new producer took the transactional id)"
    );
}

/// A transaction began or is complete.
pub(crate) fn moved(was_open: bool, is_open: bool) {
    match (was_open, is_open) {
        (false, true) => gauge!("highwater_kafka_transactions_open").increment(1.0),
        (true, false) => gauge!("highwater_kafka_transactions_open").decrement(1.0),
        _ => {}
    }
}

/// How many transactional ids there are.
pub(crate) fn ids(count: usize) {
    #[allow(clippy::cast_precision_loss, reason = "there are far fewer than 2^52")]
    gauge!("highwater_kafka_transactional_ids").set(count as f64);
}

/// A producer ended its transaction.
pub(crate) fn ended(result: TransactionResult) {
    count(match result {
        TransactionResult::Commit => "commit",
        TransactionResult::Abort => "abort",
    });
}

/// A transaction was open for too long.
pub(crate) fn timed_out() {
    count("timeout");
}

/// A new producer took the transactional id while a transaction was open.
pub(crate) fn fenced() {
    count("fenced");
}

fn count(how: &'static str) {
    counter!("highwater_kafka_transactions_ended_total", "how" => how).increment(1);
}
