//! The end of a transaction by an operator's hand: one that no coordinator knows any more and that still
//! holds readers of a partition back.

use std::sync::Arc;

use highwater_log::{EndMarker, now_ms};
use highwater_protocol::ErrorCode;

use crate::CoordinatorError;
use crate::blocking::blocking;
use crate::groups::CONSUMER_OFFSETS;
use crate::transactions::Transactions;

impl Transactions {
    /// WriteTxnMarkers: writes a marker to one partition, and answers once it is on disk. Whether the
    /// coordinator knows the transaction is not asked: that is why it is called.
    ///
    /// # Errors
    /// Of the partition: unknown, offline, or aware of a newer producer or coordinator epoch.
    pub async fn write_marker(
        &self,
        topic: &str,
        index: i32,
        marker: EndMarker,
    ) -> Result<(), ErrorCode> {
        let partition = self.shared.log.partition(topic, index);
        let partition = partition.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        if topic == CONSUMER_OFFSETS {
            return self.shared.groups.end_transaction(marker).await.map_err(|error| code(&error));
        }
        let written = Arc::clone(&partition);
        let appended = blocking(move || written.append_marker(marker, now_ms())).await;
        let appended = appended.map_err(|error| error.kafka_code())?;
        partition.durable(&appended).await.map_err(|error| error.kafka_code())
    }
}

/// As of any other partition.
fn code(error: &CoordinatorError) -> ErrorCode {
    match error {
        CoordinatorError::Log(error) => error.kafka_code(),
        other => other.kafka_code(),
    }
}
