//! Both sides at once: the same request to each, and the answers compared.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Write as _};
use std::time::{Duration, Instant};

use highwater_log::Log;
use highwater_protocol::{
    CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, DescribeTransactionsRequest,
    ErrorCode, FindCoordinatorRequest, HeartbeatRequest, InitProducerIdRequest,
    ListOffsetsPartition, MetadataRequest, OffsetFetchRequest, Request,
};

use crate::client::Client;
use crate::clusters::{Clusters, Side};
use crate::names::Names;
use crate::normal::Normal;
use crate::transactions::AGAIN;

/// So many differences are enough to see what is wrong.
const ENOUGH: usize = 12;

pub(crate) struct Pair {
    theirs: Judged,
    ours: Judged,
    log: Log,
    pub(crate) tally: Tally,
    step: usize,
    /// What the next difference is to say beside the requests.
    pub(crate) note: String,
    differences: Vec<String>,
}

struct Judged {
    side: Side,
    /// The connection of somebody whose answer waits for what others do.
    other: Client,
    names: Names,
    /// Asks again when it is told to.
    is_patient: bool,
}

impl Pair {
    pub(crate) fn new(clusters: &Clusters) -> Self {
        Self {
            theirs: Judged::new(clusters.apache.side()),
            ours: Judged::new(clusters.ours.side()),
            log: clusters.ours.log().clone(),
            tally: Tally::default(),
            step: 0,
            note: String::new(),
            differences: Vec::new(),
        }
    }

    /// Sends a request to both, as it reads with the names of each, and gives Apache Kafka's answer.
    pub(crate) fn ask<R>(
        &mut self,
        operation: &'static str,
        version: i16,
        request: impl Fn(&Names) -> R,
    ) -> R::Response
    where
        R: Request + Debug,
        R::Response: Normal + Debug + PartialEq + Default,
    {
        let began = Instant::now();
        let asked = request(&self.theirs.names);
        let theirs = self.theirs.ask(version, &asked);
        let between = Instant::now();
        let ours = self.ours.ask(version, &request(&self.ours.names));
        self.tally.times[0] += between - began;
        self.tally.times[1] += between.elapsed();
        self.tally.count(operation, &theirs);
        self.compare(operation, version, &asked, &theirs, &ours);
        theirs.unwrap_or_default()
    }

    /// Sends a request to both over a connection of its own; [`Self::answer_beside`] has the answer.
    pub(crate) fn ask_beside<R: Request>(&mut self, version: i16, request: impl Fn(&Names) -> R) {
        for judged in [&mut self.theirs, &mut self.ours] {
            judged.other.send(version, &request(&judged.names));
        }
    }

    /// As [`Self::ask`], of what was asked beside.
    pub(crate) fn answer_beside<R>(&mut self, operation: &'static str, version: i16) -> R::Response
    where
        R: Request,
        R::Response: Normal + Debug + PartialEq + Default,
    {
        let [theirs, ours] = [&mut self.theirs, &mut self.ours].map(|judged| {
            let mut answer = judged.other.try_answer::<R>(version)?;
            answer.normalise(&mut judged.names);
            Some(answer)
        });
        self.tally.count(operation, &theirs);
        self.compare(operation, version, &"beside", &theirs, &ours);
        theirs.unwrap_or_default()
    }

    fn compare<A: Debug + PartialEq>(
        &mut self,
        operation: &'static str,
        version: i16,
        asked: &impl Debug,
        theirs: &A,
        ours: &A,
    ) {
        if ours != theirs {
            let texts = [format!("{asked:?}"), format!("{theirs:?}"), format!("{ours:?}")];
            let [asked, theirs, ours] = texts.map(|text| without_bytes(&text));
            self.differs(format!(
                "{operation} {version}: {asked}\n  Apache Kafka {theirs}\n  ours         {ours}"
            ));
        }
    }

    /// As [`Self::ask`]; where an answer says that the transaction before is still being ended, it is asked
    /// for again.
    pub(crate) fn ask_settled<R>(
        &mut self,
        operation: &'static str,
        version: i16,
        request: impl Fn(&Names) -> R,
    ) -> R::Response
    where
        R: Request + Debug,
        R::Response: Normal + Debug + PartialEq + Default,
    {
        for judged in [&mut self.theirs, &mut self.ours] {
            judged.is_patient = true;
        }
        let answer = self.ask(operation, version, request);
        for judged in [&mut self.theirs, &mut self.ours] {
            judged.is_patient = false;
        }
        answer
    }

    /// Waits until both have coordinators: they make their topics when they are first asked for.
    pub(crate) fn until_coordinated(&mut self) {
        let request = InitProducerIdRequest {
            transactional_id: Some("the-first".to_owned()),
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        for side in [&mut self.theirs.side, &mut self.ours.side] {
            side.until("there is a coordinator", |side| {
                let finding = FindCoordinatorRequest {
                    key: "the-first".to_owned(),
                    key_type: 1,
                    ..Default::default()
                };
                let of_groups = OffsetFetchRequest {
                    group_id: "the-first".to_owned(),
                    topics: None,
                    ..Default::default()
                };
                let group = FindCoordinatorRequest { key_type: 0, ..finding.clone() };
                side.client.call(1, &group).error_code.is_ok()
                    && side.client.call(5, &of_groups).error_code.is_ok()
                    && side.client.call(1, &finding).error_code.is_ok()
                    && side.client.call(1, &request).error_code.is_ok()
            });
        }
    }

    /// Waits until a transaction that is being ended has ended on both sides.
    pub(crate) fn until_ended(&mut self, id: &str) {
        self.until_not(id, &["PrepareCommit", "PrepareAbort", "PrepareEpochFence"]);
    }

    /// Waits until a transaction that was left alone is over on both sides.
    pub(crate) fn until_over(&mut self, id: &str) {
        self.until_not(id, &["Ongoing", "PrepareAbort", "PrepareEpochFence"]);
    }

    fn until_not(&mut self, id: &str, states: &[&str]) {
        let request = DescribeTransactionsRequest { transactional_ids: vec![id.to_owned()] };
        for side in [&mut self.theirs.side, &mut self.ours.side] {
            side.until("a transaction has ended", |side| {
                let state = side.client.call(0, &request).transaction_states.remove(0);
                !states.contains(&state.transaction_state.as_str())
            });
        }
    }

    /// Sends a request that nobody answers.
    pub(crate) fn tell<R: Request>(
        &mut self,
        operation: &'static str,
        version: i16,
        request: impl Fn(&Names) -> R,
    ) {
        for judged in [&mut self.theirs, &mut self.ours] {
            judged.side.client.send(version, &request(&judged.names));
        }
        self.tally.operations.entry(operation).or_default().steps += 1;
    }

    fn differs(&mut self, what: String) {
        self.differences.push(format!("step {}: {}{what}", self.step, self.note));
        assert!(self.differences.len() < ENOUGH, "{ENOUGH} differences are enough");
    }

    fn report(&self) -> String {
        format!("{} differences:\n{}", self.differences.len(), self.differences.join("\n"))
    }

    pub(crate) fn next_step(&mut self) {
        self.step += 1;
    }

    /// Fails if an answer differed.
    pub(crate) fn judge(&self) {
        assert!(self.differences.is_empty(), "{} differences", self.differences.len());
    }

    /// Waits until a member is told that its group is rebalanced.
    pub(crate) fn until_rebalanced(&mut self, request: impl Fn(&Names) -> HeartbeatRequest) {
        for Judged { side, names, .. } in [&mut self.theirs, &mut self.ours] {
            let request = request(names);
            side.until("a group is rebalanced", |side| {
                side.client.call(4, &request).error_code == ErrorCode::REBALANCE_IN_PROGRESS
            });
        }
    }

    /// Waits until what was appended is shown. Apache Kafka shows it at once; under `flush=durable` we do
    /// behind the fsync, which an answer with acks=1 does not wait for.
    pub(crate) fn until_shown(&mut self, topic: &str, partition: i32) {
        let Some(partition) = self.log.partition(topic, partition) else { return };
        self.ours.side.until("what was appended is shown", |_| {
            let now = partition.watermarks_now();
            now.high_watermark == now.log_end
        });
    }

    /// Where the oldest transaction that is open in a partition begins.
    pub(crate) fn first_open(&self, topic: &str, partition: i32) -> Option<i64> {
        let open = self.log.partition(topic, partition)?.oldest_open_transaction();
        open.map(|open| open.first_offset)
    }

    /// Makes a topic on both sides.
    pub(crate) fn make(&mut self, name: &str, partitions: i32) {
        for side in [&mut self.theirs.side, &mut self.ours.side] {
            let topic = CreatableTopic {
                name: name.to_owned(),
                num_partitions: partitions,
                replication_factor: 1,
                ..Default::default()
            };
            let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
            assert!(side.client.call(5, &request).topics[0].error_code.is_ok());
        }
        self.until_usable(name, partitions);
    }

    /// Waits until a topic of so many partitions can be used on both sides.
    pub(crate) fn until_usable(&mut self, topic: &str, partitions: i32) {
        for side in [&mut self.theirs.side, &mut self.ours.side] {
            side.until("a partition can be used", |side| usable(side, topic, partitions));
        }
    }

    /// Takes away the topics that an earlier run left.
    pub(crate) fn clear(&mut self) {
        for judged in [&mut self.theirs, &mut self.ours] {
            let all = judged.side.client.call(9, &MetadataRequest::default());
            let names = all.topics.into_iter().filter_map(|topic| topic.name);
            let topic_names: Vec<_> = names
                .filter(|name| {
                    name.starts_with("d-") || name.starts_with("d.") || name.starts_with("d_")
                })
                .collect();
            let request = DeleteTopicsRequest {
                topic_names: topic_names.clone(),
                timeout_ms: 30_000,
                ..Default::default()
            };
            judged.side.client.call(4, &request);
            for name in topic_names {
                judged.side.until("a topic is gone", |side| {
                    side.list(11, &name, -1).error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                });
            }
        }
    }

    /// Waits until a topic is gone on both sides.
    pub(crate) fn until_gone(&mut self, topic: &str) {
        for side in [&mut self.theirs.side, &mut self.ours.side] {
            side.until("a topic is gone", |side| {
                let code = side.list(11, topic, -1).error_code;
                code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            });
        }
    }

    /// Waits until Apache Kafka's broker has taken in what its controller has decided. It takes in one
    /// change behind the other: when a topic made later is there, all before it has been seen; when one
    /// made behind that is there, all before it has been acted on.
    pub(crate) fn until_taken_in(&mut self) {
        for name in ["barrier-1", "barrier-2"] {
            let topic = CreatableTopic {
                name: name.to_owned(),
                num_partitions: 1,
                replication_factor: 1,
                ..Default::default()
            };
            let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
            self.theirs.side.client.call(5, &request);
            self.theirs.side.until("a topic is there", |side| usable(side, name, 1));
        }
        let topic_names = vec!["barrier-1".to_owned(), "barrier-2".to_owned()];
        let request = DeleteTopicsRequest { topic_names, timeout_ms: 5000, ..Default::default() };
        self.theirs.side.client.call(4, &request);
        for name in ["barrier-1", "barrier-2"] {
            self.theirs.side.until("a topic is gone", |side| {
                side.list(11, name, -1).error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            });
        }
    }
}

/// Whatever ends a run, what differed until then is told.
impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.differences.is_empty() {
            crate::differential::tell(&format!("at step {}: {}", self.step, self.report()));
        }
    }
}

impl Judged {
    fn new(side: Side) -> Self {
        let other = Client::connect(side.client.address);
        Self { side, other, names: Names::default(), is_patient: false }
    }

    /// Nothing where the connection was closed instead.
    fn ask<R: Request>(&mut self, version: i16, request: &R) -> Option<R::Response>
    where
        R::Response: Normal + Debug,
    {
        let mut answer = self.side.client.try_call(version, request)?;
        while self.is_patient && codes(&answer).contains(&AGAIN.0) {
            std::thread::sleep(Duration::from_millis(2));
            answer = self.side.client.try_call(version, request)?;
        }
        answer.normalise(&mut self.names);
        Some(answer)
    }
}

/// A text for people: bytes of records are left out, and what says nothing.
fn without_bytes(text: &str) -> String {
    if std::env::var_os("HW_WHOLE").is_some() {
        return text.to_owned();
    }
    let mut pieces = text.split("b\"");
    let mut short = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find("\")").unwrap_or(piece.len());
        let _ = write!(short, "b\"{} bytes{}", end, &piece[end..]);
    }
    let nothing = [
        ", current_leader: LeaderIdAndEpoch { leader_id: -1, leader_epoch: -1 }",
        ", diverging_epoch: DivergingEpoch { epoch: -1, end_offset: -1 }",
        ", snapshot_id: SnapshotId { end_offset: -1, epoch: -1 }",
        ", preferred_read_replica: -1",
        ", error_message: None",
        "throttle_time_ms: 0, ",
    ];
    nothing.iter().fold(short, |text, nothing| text.replace(nothing, ""))
}

fn usable(side: &mut Side, topic: &str, partitions: i32) -> bool {
    (0..partitions).all(|partition_index| {
        let asked = ListOffsetsPartition { timestamp: -1, partition_index, ..Default::default() };
        side.list_as(11, topic, asked, 0).error_code.is_ok()
    })
}

/// The errors of an answer, by what its text shows of them.
fn codes(answer: &impl Debug) -> Vec<i16> {
    let text = format!("{answer:?}");
    let codes = text.split("error_code: ErrorCode(").skip(1);
    let codes = codes.filter_map(|rest| rest.split(')').next()?.parse::<i16>().ok());
    codes.filter(|code| *code != 0).collect()
}

/// What was asked and answered so far.
#[derive(Default)]
pub(crate) struct Tally {
    operations: BTreeMap<&'static str, Count>,
    errors: BTreeMap<i16, usize>,
    times: [Duration; 2],
}

#[derive(Default)]
struct Count {
    steps: usize,
    with_error: usize,
}

impl Tally {
    /// Counts an answer, and the errors in it.
    fn count(&mut self, operation: &'static str, answer: &impl Debug) {
        let errors = codes(answer);
        let count = self.operations.entry(operation).or_default();
        count.steps += 1;
        count.with_error += usize::from(!errors.is_empty());
        errors.into_iter().for_each(|code| *self.errors.entry(code).or_default() += 1);
    }

    /// Fails where an operation is too rare or errors are.
    pub(crate) fn check(&self) {
        let steps: usize = self.operations.values().map(|count| count.steps).sum();
        let with_error: usize = self.operations.values().map(|count| count.with_error).sum();
        for (operation, count) in &self.operations {
            assert!(count.steps * 100 >= steps, "{operation} is under 1 % of the steps\n{self}");
        }
        assert!(with_error * 10 >= steps, "errors are under 10 % of the answers\n{self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (operation, count) in &self.operations {
            writeln!(out, "{:>7} {:>6} with an error  {operation}", count.steps, count.with_error)?;
        }
        let mut line = String::new();
        for (code, count) in &self.errors {
            write!(line, " {} {count}", ErrorCode(*code))?;
        }
        writeln!(out, "errors:{line}")?;
        write!(out, "Apache Kafka answered in {:?}, we in {:?}", self.times[0], self.times[1])
    }
}
