//! Committed offsets: taken, given, deleted.

use std::sync::Arc;

use highwater_log::{EndMarker, MarkerKind};
use highwater_protocol::{
    ErrorCode, OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchResponseGroup,
    OffsetFetchResponsePartition, OffsetFetchResponseTopic,
};

use crate::group_record;
use crate::groups::{Groups, Slot, State};
use crate::journal::{NotWritten, Write};
use crate::offsets::CommittedOffset;
use crate::state_topic::{StateRecord, Transaction};
use crate::waiting::Waiting;
use crate::{CoordinatorError, Now, counters};

/// The first version that is told that a group does not exist.
const KNOWS_MISSING_GROUPS: i16 = 9;

/// Says whether the transaction is open still: when the commit comes, and right before the append.
pub type StillOpen = Box<dyn Fn() -> Result<(), ErrorCode> + Send>;

/// Offsets that a producer commits with its transaction.
#[derive(Clone, Debug)]
pub struct TransactionalCommit {
    /// The group.
    pub group_id: String,
    /// Its generation; -1 from who is no member.
    pub generation: i32,
    /// The member id, empty from who is no member.
    pub member_id: String,
    /// The name of a static member.
    pub group_instance_id: Option<String>,
    /// The producer.
    pub transaction: Transaction,
    /// The offsets.
    pub topics: Vec<OffsetCommitRequestTopic>,
}

/// Offsets to be committed, each with the answer it gets if all goes well.
struct Commit {
    offsets: Vec<(String, i32, CommittedOffset)>,
    answers: Vec<OffsetCommitResponseTopic>,
}

impl Groups {
    /// Commits offsets. Answered once they are safe.
    pub fn commit(
        self: &Arc<Self>,
        version: i16,
        request: OffsetCommitRequest,
    ) -> Waiting<OffsetCommitResponse> {
        if !self.has_any(&request.topics) {
            return Waiting::ready(response(self.refused(request.topics, ErrorCode::NONE)));
        }
        let mut state = self.state.lock();
        let topics = request.topics.clone();
        let checked = self.check_commit(&mut state, version, &request);
        let commit = checked.map(|()| {
            let now = self.clock.now();
            let retention = request.retention_time_ms;
            let expire_ms = (retention >= 0).then(|| now.wall_ms.saturating_add(retention));
            self.prepare(&state, &request.group_id, request.topics, expire_ms, now)
        });
        let commit = match commit {
            Ok(commit) => commit,
            Err(error) => return Waiting::ready(response(self.refused(topics, error))),
        };
        let (sender, waiting) = Waiting::channel();
        let answer = move |topics| drop(sender.send(response(topics)));
        self.submit(request.group_id, commit, None, answer);
        waiting
    }

    fn check_commit(
        &self,
        state: &mut State,
        version: i16,
        request: &OffsetCommitRequest,
    ) -> Result<(), ErrorCode> {
        state.check_ready()?;
        let generation = request.generation_id_or_member_epoch;
        match state.slots.get_mut(&request.group_id) {
            Some(slot) => {
                let instance_id = request.group_instance_id.as_deref();
                slot.group.check_commit(generation, &request.member_id, instance_id, false)?;
                slot.group.renew(&request.member_id, self.clock.now());
            }
            // Offsets without members make a group of their own.
            None if generation < 0 => self.check_new_group(state, &request.group_id)?,
            None if version >= KNOWS_MISSING_GROUPS => return Err(ErrorCode::GROUP_ID_NOT_FOUND),
            None => return Err(ErrorCode::ILLEGAL_GENERATION),
        }
        self.check_space(state)
    }

    fn check_space(&self, state: &State) -> Result<(), ErrorCode> {
        if state.total.bytes > self.settings.max_total_bytes {
            return Err(ErrorCode::POLICY_VIOLATION);
        }
        if self.journal.is_full() {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        Ok(())
    }

    /// Commits offsets with a producer's transaction: they count once it is committed. `still_open` is
    /// asked in the order of the topic, so that no marker comes between.
    pub fn commit_in_transaction(
        self: &Arc<Self>,
        commit: TransactionalCommit,
        still_open: StillOpen,
    ) -> Waiting<Vec<OffsetCommitResponseTopic>> {
        if !self.has_any(&commit.topics) {
            return Waiting::ready(self.refused(commit.topics, ErrorCode::NONE));
        }
        // Apache Kafka looks at the producer before it looks at the group.
        let open = if commit.group_id.is_empty() { Ok(()) } else { still_open() };
        let state = self.state.lock();
        let checked = state.check_ready().and(open);
        if let Err(error) = checked.and_then(|()| self.check_transactional(&state, &commit)) {
            return Waiting::ready(self.refused(commit.topics, error));
        }
        let TransactionalCommit { group_id, transaction, topics, .. } = commit;
        let commit = self.prepare(&state, &group_id, topics, None, self.clock.now());
        let (sender, waiting) = Waiting::channel();
        let answer = move |topics| drop(sender.send(topics));
        self.submit(group_id, commit, Some((transaction, still_open)), answer);
        waiting
    }

    fn check_transactional(
        &self,
        state: &State,
        commit: &TransactionalCommit,
    ) -> Result<(), ErrorCode> {
        if commit.group_id.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        match state.slots.get(&commit.group_id) {
            Some(slot) => {
                let instance_id = commit.group_instance_id.as_deref();
                let member_id = &commit.member_id;
                slot.group.check_commit(commit.generation, member_id, instance_id, true)?;
            }
            None if commit.generation < 0 => self.check_new_group(state, &commit.group_id)?,
            None => return Err(ErrorCode::ILLEGAL_GENERATION),
        }
        self.check_space(state)
    }

    /// Whether any of the partitions is there: else the group is not even asked.
    fn has_any(&self, topics: &[OffsetCommitRequestTopic]) -> bool {
        let exists = |topic: &OffsetCommitRequestTopic,
                      partition: &OffsetCommitRequestPartition| {
            self.log.partition(&topic.name, partition.partition_index).is_some()
        };
        topics.iter().any(|topic| topic.partitions.iter().any(|partition| exists(topic, partition)))
    }

    /// The same error for every partition that is there.
    fn refused(
        &self,
        topics: Vec<OffsetCommitRequestTopic>,
        error: ErrorCode,
    ) -> Vec<OffsetCommitResponseTopic> {
        let answer = |topic: &str, partition: OffsetCommitRequestPartition| {
            let partition_index = partition.partition_index;
            let exists = self.log.partition(topic, partition_index).is_some();
            let error_code = if exists { error } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
            OffsetCommitResponsePartition { partition_index, error_code }
        };
        let topic = |OffsetCommitRequestTopic { name, partitions }: OffsetCommitRequestTopic| {
            let partitions = partitions.into_iter().map(|partition| answer(&name, partition));
            OffsetCommitResponseTopic { partitions: partitions.collect(), name }
        };
        topics.into_iter().map(topic).collect()
    }

    /// What is to be written, and what is refused at once.
    fn prepare(
        &self,
        state: &State,
        group_id: &str,
        topics: Vec<OffsetCommitRequestTopic>,
        expire_ms: Option<i64>,
        now: Now,
    ) -> Commit {
        let slot = state.slots.get(group_id);
        let mut room =
            self.settings.max_offsets.saturating_sub(slot.map_or(0, |slot| slot.offsets.len()));
        let mut commit = Commit { offsets: Vec::new(), answers: Vec::with_capacity(topics.len()) };
        for OffsetCommitRequestTopic { name, partitions } in topics {
            let mut answers = Vec::with_capacity(partitions.len());
            for partition in partitions {
                let partition_index = partition.partition_index;
                let known =
                    slot.is_some_and(|slot| slot.offsets.get(&name, partition_index).is_some());
                let exists = self.log.partition(&name, partition_index).is_some();
                let error_code = self.check_offset(&partition, exists, known || room > 0);
                answers.push(OffsetCommitResponsePartition { partition_index, error_code });
                if error_code.is_ok() {
                    room -= usize::from(!known);
                    let offset = committed(partition, expire_ms, now);
                    commit.offsets.push((name.clone(), partition_index, offset));
                }
            }
            commit.answers.push(OffsetCommitResponseTopic { name, partitions: answers });
        }
        commit
    }

    fn check_offset(
        &self,
        offset: &OffsetCommitRequestPartition,
        exists: bool,
        has_room: bool,
    ) -> ErrorCode {
        let metadata = offset.committed_metadata.as_ref().map_or(0, String::len);
        if !exists {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        } else if metadata > self.settings.offset_metadata_max_bytes {
            ErrorCode::OFFSET_METADATA_TOO_LARGE
        } else if !has_room {
            ErrorCode::INVALID_COMMIT_OFFSET_SIZE
        } else {
            ErrorCode::NONE
        }
    }

    fn submit(
        self: &Arc<Self>,
        group_id: String,
        commit: Commit,
        transaction: Option<(Transaction, StillOpen)>,
        answer: impl FnOnce(Vec<OffsetCommitResponseTopic>) + Send + 'static,
    ) {
        let Commit { offsets, mut answers } = commit;
        if offsets.is_empty() {
            return answer(answers);
        }
        let record = |(topic, partition, offset): &(String, i32, CommittedOffset)| {
            group_record::of_offset(&group_id, topic, *partition, Some(offset))
        };
        let records: Vec<StateRecord> = offsets.iter().map(record).collect();
        let producer_id = transaction.as_ref().map(|(transaction, _)| transaction.producer_id);
        let write = match transaction {
            None => Write::Records(records),
            Some((transaction, still_open)) => {
                Write::InTransaction { transaction, records, still_open }
            }
        };
        let groups = Arc::clone(self);
        let done = move |written: Result<i64, NotWritten>| {
            match written {
                Ok(first) => groups.committed(&group_id, offsets, producer_id, first),
                Err(error) => fail(&mut answers, error.kafka_code()),
            }
            answer(answers);
        };
        self.journal.submit(write, Box::new(done));
    }

    /// The offsets are safe, the first of them at this place of the topic.
    fn committed(
        &self,
        group_id: &str,
        offsets: Vec<(String, i32, CommittedOffset)>,
        producer_id: Option<i64>,
        first: i64,
    ) {
        counters::commits(offsets.len());
        let mut state = self.state.lock();
        let slot = state.slot(group_id, self.clock.now());
        slot.is_stored = true;
        for (record_offset, (topic, partition, mut offset)) in (first..).zip(offsets) {
            offset.record_offset = record_offset;
            match producer_id {
                None => slot.offsets.put(&topic, partition, offset),
                Some(producer_id) => {
                    slot.offsets.put_pending(producer_id, &topic, partition, offset)
                }
            }
        }
        if let Some(producer_id) = producer_id {
            state.open.entry(producer_id).or_default().insert(group_id.to_owned());
        }
        self.settle(&mut state, group_id);
    }

    /// Ends a producer's transaction in the topic of the offsets: writes its marker, and once that is safe
    /// the offsets of the transaction count, or are gone. May be called again after an error, and also
    /// where the end is known already.
    ///
    /// # Errors
    /// Of the log, and while the state is being read back.
    pub async fn end_transaction(
        self: &Arc<Self>,
        marker: EndMarker,
    ) -> Result<(), CoordinatorError> {
        if self.state.lock().check_ready().is_err() {
            return Err(CoordinatorError::Loading { topic: self.topic.name() });
        }
        let (sender, waiting) = Waiting::channel();
        let groups = Arc::clone(self);
        let done = move |written: Result<i64, NotWritten>| {
            let ended = match written {
                Ok(_) => {
                    let committed = marker.kind == MarkerKind::Commit;
                    groups.transaction_ended(marker.producer_id, committed);
                    Ok(())
                }
                Err(NotWritten::Failed(error)) => Err(error),
                Err(NotWritten::Refused(_)) => Err(highwater_log::LogError::Closed.into()),
            };
            let _ = sender.send(ended);
        };
        self.journal.submit(Write::Marker(marker), Box::new(done));
        waiting.answer().await.unwrap_or(Err(highwater_log::LogError::Closed.into()))
    }

    fn transaction_ended(&self, producer_id: i64, committed: bool) {
        let mut state = self.state.lock();
        for group_id in state.open.remove(&producer_id).unwrap_or_default() {
            if let Some(slot) = state.slots.get_mut(&group_id) {
                slot.offsets.end_transaction(producer_id, committed);
            }
            self.settle(&mut state, &group_id);
        }
    }

    /// The committed offsets of a group. With `require_stable` one that an open transaction may change is
    /// withheld (KIP-447).
    pub fn fetch(
        &self,
        asked: OffsetFetchRequestGroup,
        require_stable: bool,
    ) -> OffsetFetchResponseGroup {
        let state = self.state.lock();
        let group_id = asked.group_id;
        if let Err(error_code) = state.check_ready() {
            return OffsetFetchResponseGroup { group_id, error_code, ..Default::default() };
        }
        let slot = state.slots.get(&group_id);
        let asked = asked.topics.unwrap_or_else(|| slot.map_or_else(Vec::new, all));
        let topics = asked.into_iter().map(|topic| found(slot, topic, require_stable)).collect();
        OffsetFetchResponseGroup { group_id, topics, ..Default::default() }
    }
}

/// Every partition with an offset.
fn all(slot: &Slot) -> Vec<OffsetFetchRequestTopic> {
    let topics = slot.offsets.topics();
    let topics = topics.map(|(topic, partitions)| OffsetFetchRequestTopic {
        name: topic.clone(),
        partition_indexes: partitions.keys().copied().collect(),
    });
    topics.collect()
}

fn found(
    slot: Option<&Slot>,
    asked: OffsetFetchRequestTopic,
    require_stable: bool,
) -> OffsetFetchResponseTopic {
    let partition = |partition_index: &i32| {
        let nothing = OffsetFetchResponsePartition {
            partition_index: *partition_index,
            committed_offset: -1,
            metadata: Some(String::new()),
            ..Default::default()
        };
        let Some(slot) = slot else { return nothing };
        if require_stable && slot.offsets.has_pending(&asked.name, *partition_index) {
            let error_code = ErrorCode::UNSTABLE_OFFSET_COMMIT;
            return OffsetFetchResponsePartition { error_code, ..nothing };
        }
        match slot.offsets.get(&asked.name, *partition_index) {
            None => nothing,
            Some(committed) => OffsetFetchResponsePartition {
                committed_offset: committed.offset,
                committed_leader_epoch: committed.leader_epoch,
                metadata: Some(committed.metadata.clone()),
                ..nothing
            },
        }
    };
    let partitions = asked.partition_indexes.iter().map(partition).collect();
    OffsetFetchResponseTopic { name: asked.name, partitions }
}

fn committed(
    partition: OffsetCommitRequestPartition,
    expire_ms: Option<i64>,
    now: Now,
) -> CommittedOffset {
    CommittedOffset {
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: partition.committed_metadata.unwrap_or_default(),
        commit_ms: now.wall_ms,
        expire_ms,
        record_offset: -1,
    }
}

fn response(topics: Vec<OffsetCommitResponseTopic>) -> OffsetCommitResponse {
    OffsetCommitResponse { topics, ..Default::default() }
}

/// What was to be written was not.
fn fail(answers: &mut [OffsetCommitResponseTopic], error: ErrorCode) {
    for partition in answers.iter_mut().flat_map(|topic| &mut topic.partitions) {
        if partition.error_code.is_ok() {
            partition.error_code = error;
        }
    }
}
