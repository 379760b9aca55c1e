//! The end of a transaction: a marker in each of its partitions, on disk; then it is complete.
//!
//! What is begun here is tried until it succeeds. A partition that is poisoned or offline is tried again
//! until it is back; one whose topic was deleted has nothing to end. A marker may be written twice, after a
//! crash or an error: a reader finds no open transaction the second time and passes over it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use highwater_log::{Appended, EndMarker, LogError, MarkerKind, Partition, now_ms};
use highwater_protocol::TopicPartition;
use tokio::time::sleep;

use crate::CoordinatorError;
use crate::blocking::blocking;
use crate::groups::CONSUMER_OFFSETS;
use crate::transaction::{TransactionMetadata, TransactionResult};
use crate::transactional_id::TransactionalId;
use crate::transactions::{Entry, Shared};

/// The first pause before markers are tried again, and the longest.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Rounds after which it is said that a transaction cannot end.
const QUIET_ROUNDS: u32 = 5;

/// What became of a marker.
enum Marked {
    Written(Arc<Partition>, Appended),
    /// There is nothing to end.
    Needless,
    Failed(String),
}

impl From<TransactionResult> for MarkerKind {
    fn from(result: TransactionResult) -> Self {
        match result {
            TransactionResult::Commit => Self::Commit,
            TransactionResult::Abort => Self::Abort,
        }
    }
}

impl Shared {
    /// Ends the transaction, in a task of its own.
    pub(crate) fn complete_later(self: &Arc<Self>, entry: &Arc<Entry>) {
        let (shared, entry) = (Arc::clone(self), Arc::clone(entry));
        self.spawner.spawn(async move { shared.complete(&entry).await });
    }

    async fn complete(self: Arc<Self>, entry: &Arc<Entry>) {
        let mut pause = PAUSE;
        for round in 0_u32.. {
            let Some(stands) = entry.slot.lock().stands().cloned() else { return };
            let Some(result) = stands.state.ending() else { return };
            let mut failure = self.mark_all(entry, &stands, result.into()).await;
            if failure.is_none() {
                match self.note_complete(entry).await {
                    Ok(()) => return,
                    Err(error) => failure = Some(error),
                }
            }
            if let Some(reason) = failure.filter(|_| round == QUIET_ROUNDS) {
                let transactional_id = &entry.transactional_id;
                tracing::warn!(
                    transactional_id,
                    reason,
                    "a transaction cannot end yet: it is tried on"
                );
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Writes the markers that are missing; the reason why not all are there, if so.
    async fn mark_all(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        stands: &TransactionMetadata,
        kind: MarkerKind,
    ) -> Option<String> {
        let marker = EndMarker {
            producer_id: stands.producer.id,
            producer_epoch: stands.producer.epoch,
            kind,
            coordinator_epoch: self.epoch(),
        };
        let (offsets, partitions): (Vec<_>, Vec<_>) =
            stands.partitions.iter().cloned().partition(|one| &*one.topic == CONSUMER_OFFSETS);
        let shared = Arc::clone(self);
        let marked = blocking(move || {
            let mark = |one: TopicPartition| {
                let marked = shared.mark(&one, marker);
                (one, marked)
            };
            partitions.into_iter().map(mark).collect::<Vec<_>>()
        });
        let mut failure = None;
        for (partition, marked) in join_all(marked.await.into_iter().map(settled)).await {
            match marked {
                Ok(()) => entry.slot.lock().marked(&partition),
                Err(reason) => failure = Some(reason),
            }
        }
        for partition in offsets {
            match self.end_offsets(marker).await {
                Ok(()) => entry.slot.lock().marked(&partition),
                Err(error) => failure = Some(error.to_string()),
            }
        }
        failure
    }

    /// The coordinator's epoch: that of the partition it keeps its state in.
    pub(crate) fn epoch(&self) -> i32 {
        self.topic.existing().map_or(0, |partition| partition.watermarks_now().leader_epoch)
    }

    /// The offsets of groups have a writer of their own, which also makes them count.
    async fn end_offsets(&self, marker: EndMarker) -> Result<(), CoordinatorError> {
        match self.groups.end_transaction(marker).await {
            Err(CoordinatorError::Log(LogError::CoordinatorFenced { current, .. })) => {
                let marker = EndMarker { coordinator_epoch: current, ..marker };
                self.groups.end_transaction(marker).await
            }
            Err(CoordinatorError::Log(error)) if is_needless(&error) => Ok(()),
            other => other,
        }
    }

    /// Blocks on the disk.
    fn mark(&self, one: &TopicPartition, marker: EndMarker) -> Marked {
        let Some(partition) = self.log.partition(&one.topic, one.partition) else {
            return Marked::Needless;
        };
        match append(&partition, marker) {
            Ok(appended) => Marked::Written(partition, appended),
            Err(error) if is_needless(&error) => Marked::Needless,
            Err(error) => Marked::Failed(error.to_string()),
        }
    }

    /// Notes that the transaction is complete. It need not be on disk: found missing after a crash, the
    /// markers are written once more, and what the producer does next is written behind it.
    async fn note_complete(self: &Arc<Self>, entry: &Arc<Entry>) -> Result<(), String> {
        let (shared, noted) = (Arc::clone(self), Arc::clone(entry));
        let plan = |slot: &mut TransactionalId| Ok(slot.complete(now_ms()));
        let written = blocking(move || shared.plan_and_append(&noted, plan)).await;
        written.map_err(|error| error.to_string())?;
        let mut slot = entry.slot.lock();
        let was_open = slot.is_open();
        slot.written();
        crate::transaction_counters::moved(was_open, slot.is_open());
        drop(slot);
        entry.completed.notify_waiters();
        Ok(())
    }
}

/// Whether there is nothing to end: the topic is no more, or a marker of a newer epoch ended what this one
/// left, which only an operator's hand does.
fn is_needless(error: &LogError) -> bool {
    if let LogError::InvalidProducerEpoch { .. } = error {
        tracing::error!(%error, "a marker is left out");
        return true;
    }
    matches!(error, LogError::UnknownPartition { .. })
}

/// There is no other coordinator: an epoch above ours comes from an operator's hand, or our topic is younger
/// than the partition.
fn append(partition: &Partition, marker: EndMarker) -> Result<Appended, LogError> {
    match partition.append_marker(marker, now_ms()) {
        Err(LogError::CoordinatorFenced { current, .. }) => {
            let marker = EndMarker { coordinator_epoch: current, ..marker };
            partition.append_marker(marker, now_ms())
        }
        other => other,
    }
}

/// Waits until a marker is safe on disk.
async fn settled((one, marked): (TopicPartition, Marked)) -> (TopicPartition, Result<(), String>) {
    let outcome = match marked {
        Marked::Written(partition, appended) => match partition.durable(&appended).await {
            Ok(()) | Err(LogError::UnknownPartition { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        },
        Marked::Needless => Ok(()),
        Marked::Failed(reason) => Err(reason),
    };
    (one, outcome)
}
