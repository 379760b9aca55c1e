//! Doubles for the tests of this crate: a log in memory behind the writer's contract.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use highwater_kafka::{Acknowledgement, KafkaError, OutgoingRecord, Writer};

/// What the log in memory holds, and how it behaves.
#[derive(Default)]
pub(crate) struct Memory {
    /// Records in the order of their arrival.
    pub(crate) records: Vec<OutgoingRecord>,
    /// Number of `records` at each offset record, and the offset record.
    pub(crate) offsets: Vec<(usize, OutgoingRecord)>,
    /// Records that have arrived and may be acknowledged.
    acknowledgeable: usize,
    acknowledged: usize,
    /// Acknowledge by itself what arrives.
    pub(crate) held: bool,
    /// Offset records fail from now on.
    pub(crate) offsets_fail: bool,
    /// Number of `records` and of `offsets` at each commit.
    pub(crate) commits: Vec<(usize, usize)>,
    /// Nobody answers commits from now on.
    pub(crate) commits_fail: bool,
    /// Transactions that were given up.
    pub(crate) aborts: usize,
}

impl Memory {
    /// Lets the next `count` records be acknowledged.
    pub(crate) fn release(&mut self, count: usize) {
        self.acknowledgeable = (self.acknowledgeable + count).min(self.records.len());
    }

    fn acknowledge(&mut self) -> Vec<Acknowledgement> {
        if !self.held {
            self.acknowledgeable = self.records.len();
        }
        let acks = (self.acknowledged..self.acknowledgeable).map(|at| Acknowledgement {
            sequence: at as u64 + 1,
            topic: Arc::clone(&self.records[at].topic),
            partition: 0,
            offset: i64::try_from(at).unwrap(),
        });
        let acks = acks.collect();
        self.acknowledged = self.acknowledgeable;
        acks
    }
}

/// A writer into [`Memory`].
#[derive(Clone, Default)]
pub(crate) struct MemoryWriter(pub(crate) Arc<Mutex<Memory>>);

#[async_trait]
impl Writer for MemoryWriter {
    async fn begin(&mut self) -> Result<(), KafkaError> {
        Ok(())
    }

    async fn send(&mut self, record: OutgoingRecord) -> Result<u64, KafkaError> {
        let mut memory = self.0.lock().unwrap();
        memory.records.push(record);
        Ok(memory.records.len() as u64)
    }

    fn acknowledged(&mut self) -> Result<Vec<Acknowledgement>, KafkaError> {
        Ok(self.0.lock().unwrap().acknowledge())
    }

    async fn ready(&mut self) -> Result<(), KafkaError> {
        let held = self.0.lock().unwrap().held;
        if held { std::future::pending().await } else { Ok(()) }
    }

    async fn offsets(&mut self, records: Vec<OutgoingRecord>) -> Result<(), KafkaError> {
        let mut memory = self.0.lock().unwrap();
        if memory.offsets_fail {
            let detail = "the broker went away".to_owned();
            return Err(KafkaError::Write {
                topic: "offsets".to_owned(),
                code: None,
                detail,
                fatal: true,
            });
        }
        let at = memory.acknowledged;
        memory.offsets.extend(records.into_iter().map(|record| (at, record)));
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), KafkaError> {
        let mut memory = self.0.lock().unwrap();
        if memory.commits_fail {
            let (transactional_id, detail) = ("t".to_owned(), "nobody answers".to_owned());
            return Err(KafkaError::CommitUnknown { transactional_id, detail });
        }
        let commit = (memory.records.len(), memory.offsets.len());
        memory.commits.push(commit);
        Ok(())
    }

    async fn abort(&mut self) -> Result<(), KafkaError> {
        self.0.lock().unwrap().aborts += 1;
        Ok(())
    }
}
