//! Groups and offsets are read back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use highwater_protocol::stored::GroupMetadataValue;
use tokio::task::spawn_blocking;

use crate::group::Group;
use crate::group_record::{self, GroupRecord};
use crate::groups::{Groups, Phase, Slot};
use crate::offsets::Offsets;
use crate::state_topic::{StateEntry, StateTopic};
use crate::{CoordinatorError, counters};

/// How long to wait after the topic could not be read: its partition may come back.
const PATIENCE: Duration = Duration::from_secs(1);

/// What stands in the topic.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    groups: BTreeMap<String, GroupMetadataValue>,
    offsets: BTreeMap<String, Offsets>,
    /// Groups with offsets of a producer's open transaction.
    open: HashMap<i64, BTreeSet<String>>,
    /// The first record that could not be read.
    broken: Option<(i64, String)>,
}

impl Loaded {
    /// Reads the topic. Blocks on the disk.
    pub(crate) fn read(topic: &StateTopic) -> Result<Self, CoordinatorError> {
        let mut loaded = Self::default();
        topic.read_back(|entry| loaded.take(entry))?;
        match loaded.broken.take() {
            None => Ok(loaded),
            Some((offset, reason)) => {
                Err(CoordinatorError::Unreadable { topic: topic.name(), offset, reason })
            }
        }
    }

    fn take(&mut self, entry: StateEntry) {
        match entry {
            StateEntry::Record { offset, record, transaction } => {
                match group_record::read(record, offset) {
                    Ok(record) => self.take_record(record, transaction),
                    Err(error) => {
                        self.broken.get_or_insert_with(|| (offset, error.to_string()));
                    }
                }
            }
            StateEntry::Marker { producer_id, committed } => {
                for group_id in self.open.remove(&producer_id).unwrap_or_default() {
                    if let Some(offsets) = self.offsets.get_mut(&group_id) {
                        offsets.end_transaction(producer_id, committed);
                    }
                }
            }
        }
    }

    fn take_record(&mut self, record: GroupRecord, transaction: Option<i64>) {
        match record {
            GroupRecord::Group { group, value: Some(value) } => {
                self.groups.insert(group, value);
            }
            GroupRecord::Group { group, value: None } => {
                self.groups.remove(&group);
            }
            GroupRecord::Offset { group, topic, partition, committed: Some(committed) } => {
                let offsets = self.offsets.entry(group.clone()).or_default();
                match transaction {
                    None => offsets.put(&topic, partition, committed),
                    Some(producer_id) => {
                        offsets.put_pending(producer_id, &topic, partition, committed);
                        self.open.entry(producer_id).or_default().insert(group);
                    }
                }
            }
            GroupRecord::Offset { group, topic, partition, committed: None } => {
                if let Some(offsets) = self.offsets.get_mut(&group) {
                    offsets.remove(&topic, partition);
                }
            }
            GroupRecord::Foreign => {}
        }
    }
}

impl Groups {
    /// Reads everything back, again and again until that has worked.
    pub(crate) async fn load(self: &Arc<Self>) {
        loop {
            let topic = self.topic.clone();
            match spawn_blocking(move || Loaded::read(&topic)).await {
                Ok(Ok(loaded)) => return self.install(loaded),
                Ok(Err(error)) => {
                    tracing::error!(code = error.code(), %error, "groups cannot be read back; they are tried again");
                    self.state.lock().phase = Phase::Unreadable;
                }
                Err(error) => tracing::error!(%error, "reading groups back ended badly"),
            }
            tokio::time::sleep(PATIENCE).await;
        }
    }

    /// Takes over what was read; members have their whole session to be heard of.
    pub(crate) fn install(self: &Arc<Self>, loaded: Loaded) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        for (group_id, value) in loaded.groups {
            let mut slot = Slot::new(Group::restored(value, now));
            slot.is_stored = true;
            state.slots.insert(group_id, slot);
        }
        for (group_id, offsets) in loaded.offsets {
            if !offsets.is_empty() {
                let slot = state.slot(&group_id, now);
                (slot.offsets, slot.is_stored) = (offsets, true);
            }
        }
        state.open = loaded.open;
        let names: Vec<String> = state.slots.keys().cloned().collect();
        names.iter().for_each(|group_id| self.settle(&mut state, group_id));
        state.phase = Phase::Ready;
        counters::groups(&state);
        drop(state);
        self.alarm.notify_one();
        if !names.is_empty() {
            tracing::info!(groups = names.len(), "groups are read back");
        }
    }
}
