//! What a sink has accepted and what it has made durable, and so up to where offsets may move. Knows
//! no sink and no log.

use std::collections::{BTreeMap, BTreeSet};

use highwater_connector::{SinkOffsets, TopicPartition};

/// Where a task stands in a partition.
#[derive(Debug)]
struct Account {
    /// The next offset that is not accepted. All below is the sink's, or has no record for it.
    accepted: i64,
    /// One past the last record that the sink accepted; what lies from there to `accepted` holds
    /// nothing for it.
    given: i64,
    /// Up to where the sink called it durable.
    durable: i64,
    /// Bad records that are not acknowledged elsewhere yet.
    dying: BTreeSet<i64>,
    /// What the group has stored.
    committed: Option<i64>,
}

impl Account {
    fn at(offset: i64) -> Self {
        let dying = BTreeSet::new();
        Self { accepted: offset, given: offset, durable: offset, dying, committed: None }
    }

    /// Up to where the offset may move: what is durable, and behind it what holds nothing for the
    /// sink, but never past a bad record whose fate is open.
    fn safe(&self) -> i64 {
        let durable = if self.durable >= self.given { self.accepted } else { self.durable };
        self.dying.first().map_or(durable, |dying| durable.min(*dying))
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct SinkLedger {
    accounts: BTreeMap<TopicPartition, Account>,
}

impl SinkLedger {
    /// These partitions are read from these offsets on.
    pub(crate) fn open(&mut self, offsets: &SinkOffsets) {
        let account = |(at, offset): (&TopicPartition, &i64)| (at.clone(), Account::at(*offset));
        self.accounts.extend(offsets.iter().map(account));
    }

    /// These partitions are others' from now on.
    pub(crate) fn close(&mut self, partitions: &[TopicPartition]) {
        self.accounts.retain(|partition, _| !partitions.contains(partition));
    }

    /// The partition is read on from another offset. What was accepted below it and is not durable
    /// stays so, and what went wrong below it still has to be safe elsewhere; all behind comes again.
    pub(crate) fn rewind(&mut self, partition: &TopicPartition, offset: i64) {
        if let Some(account) = self.accounts.get_mut(partition) {
            account.accepted = offset;
            account.given = account.given.min(offset);
            account.durable = account.durable.min(offset);
            account.dying.split_off(&offset);
        }
    }

    /// The sink accepted the record at `offset`.
    pub(crate) fn accept(&mut self, partition: &TopicPartition, offset: i64) {
        if let Some(account) = self.accounts.get_mut(partition) {
            account.given = account.given.max(offset + 1);
            account.accepted = account.accepted.max(offset + 1);
        }
    }

    /// All below `offset` that the sink has not accepted holds nothing for it.
    pub(crate) fn pass(&mut self, partition: &TopicPartition, offset: i64) {
        if let Some(account) = self.accounts.get_mut(partition) {
            account.accepted = account.accepted.max(offset);
        }
    }

    /// The record at `offset` is bad, and is being put elsewhere.
    pub(crate) fn bury(&mut self, partition: &TopicPartition, offset: i64) {
        if let Some(account) = self.accounts.get_mut(partition) {
            account.dying.insert(offset);
        }
    }

    /// The bad record at `offset` is safe elsewhere.
    pub(crate) fn buried(&mut self, partition: &TopicPartition, offset: i64) {
        if let Some(account) = self.accounts.get_mut(partition) {
            account.dying.remove(&offset);
        }
    }

    /// What the sink is asked about: where each partition would be read on if all that it accepted
    /// were durable.
    pub(crate) fn accepted(&self) -> SinkOffsets {
        self.accounts.iter().map(|(at, account)| (at.clone(), account.accepted)).collect()
    }

    /// Takes in what the sink calls durable, and gives back what it cannot know: partitions that are
    /// not open, and more than it accepted.
    pub(crate) fn settle(&mut self, durable: SinkOffsets) -> SinkOffsets {
        let mut refused = SinkOffsets::new();
        for (partition, offset) in durable {
            match self.accounts.get_mut(&partition) {
                Some(account) if offset <= account.accepted => {
                    account.durable = account.durable.max(offset);
                }
                _ => drop(refused.insert(partition, offset)),
            }
        }
        refused
    }

    /// What is to be stored now.
    pub(crate) fn due(&self) -> SinkOffsets {
        let due = self.accounts.iter().filter_map(|(partition, account)| {
            let safe = account.safe();
            (account.committed != Some(safe)).then(|| (partition.clone(), safe))
        });
        due.collect()
    }

    /// These are stored.
    pub(crate) fn committed(&mut self, offsets: &SinkOffsets) {
        for (partition, offset) in offsets {
            if let Some(account) = self.accounts.get_mut(partition) {
                account.committed = Some(*offset);
            }
        }
    }

    /// Whether no partition is read.
    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Whether everything accepted is durable and stored.
    pub(crate) fn is_settled(&self) -> bool {
        self.accounts.values().all(|account| account.committed == Some(account.accepted))
    }
}

#[cfg(test)]
#[path = "sink_ledger_tests.rs"]
mod tests;
