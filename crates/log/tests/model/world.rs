//! One history: a log on the model file system, everything that may happen to it, and what is known.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use highwater_log::{
    AppendOptions, Appended, EndMarker, Flush, Isolation, Log, LogConfig, LogError, MarkerKind,
    OffsetSpec, Partition, PartitionState, TimestampType, TopicConfig,
};

use crate::client::{Client, Sent};
use crate::dice::Dice;
use crate::entry::{self, Stored};
use crate::fs::ModelFs;
use crate::naive;
use crate::partition::{End, PartitionModel};

const DIR: &str = "/data";

/// A key of [`World::partitions`].
type At = (String, i32);

pub struct World {
    pub fs: ModelFs,
    pub dice: Dice,
    pub log: Log,
    pub partitions: BTreeMap<At, PartitionModel>,
    /// A topic whose making or removal the crash interrupted.
    pub maybe_topic: Option<String>,
    /// Topics whose removal failed half way: a power loss may bring them back.
    pub maybe_back: Vec<String>,
    /// True while the disk may refuse things.
    pub faults: bool,
    pub now_ms: i64,
    pub tags: u64,
    pub producer_ids: Vec<i64>,
    /// In some histories things are interrupted all the time.
    pub crashy: bool,
    /// Tell the history, for a person who reads it.
    pub loud: bool,
}

pub fn config() -> LogConfig {
    LogConfig { flush_threads: 0, housekeeping: None, ..LogConfig::default() }
}

pub fn topic_config(settings: &[(&str, &str)]) -> TopicConfig {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    TopicConfig::parse(settings.iter().map(text).collect()).unwrap()
}

pub fn open(fs: &ModelFs) -> Result<Log, LogError> {
    Log::open(Arc::new(fs.clone()), Path::new(DIR), config())
}

impl World {
    pub fn new(seed: u64) -> Self {
        let fs = ModelFs::new(seed ^ 0xF5);
        let log = open(&fs).unwrap();
        let mut world = Self {
            fs,
            dice: Dice::new(seed),
            log,
            partitions: BTreeMap::new(),
            maybe_topic: None,
            maybe_back: Vec::new(),
            faults: false,
            // The log looks at the clock when it opens, so the history lives now.
            now_ms: UNIX_EPOCH.elapsed().unwrap().as_millis() as i64,
            tags: 0,
            producer_ids: Vec::new(),
            crashy: seed.is_multiple_of(3),
            loud: std::env::var_os("HW_SEED").is_some(),
        };
        world.create_topic();
        world
    }

    pub fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
        }
        self.heal();
        let end = *self.dice.pick(&[End::Closed, End::Killed, End::PowerLost]);
        self.restart(end);
        for model in self.partitions.values() {
            model.check_unique();
        }
    }

    fn step(&mut self) {
        self.now_ms += self.dice.below(50) as i64;
        let kind = self.dice.below(100);
        self.say(format_args!("step {kind}, faults {}", self.faults));
        if self.crashy && self.dice.one_in(4) {
            self.fs.stop_after(Some(self.dice.below(30) as u32));
        }
        match kind {
            0..38 => self.append(),
            38..44 => self.end_transaction(),
            44..45 => self.misbehave(),
            45..60 => self.flush(),
            60..68 => self.query(),
            68..72 => self.roll(),
            72..75 => self.truncate(),
            75..78 => self.delete_records(),
            78..80 => self.retain(),
            80..82 => self.create_topic(),
            82..83 => self.delete_topic(),
            83..87 => self.begin_faults(),
            87..90 => self.heal(),
            90..92 => self.take_producer_id(),
            92..94 => self.fs.stop_after(Some(self.dice.below(25) as u32)),
            94..96 => self.restart(End::Closed),
            96..98 => self.restart(End::Killed),
            _ => self.restart(End::PowerLost),
        }
        if self.fs.is_stopped() {
            let end = *self.dice.pick(&[End::Killed, End::PowerLost, End::PowerLost]);
            self.restart(end);
        }
    }

    pub fn say(&self, what: std::fmt::Arguments<'_>) {
        if self.loud {
            println!("{what}");
        }
    }

    fn any(&mut self) -> Option<(At, Arc<Partition>)> {
        let keys: Vec<At> = self.partitions.keys().cloned().collect();
        if keys.is_empty() {
            return None;
        }
        let at = self.dice.pick(&keys).clone();
        let partition = self.log.partition(&at.0, at.1).unwrap();
        Some((at, partition))
    }

    pub fn model(&mut self, at: &At) -> &mut PartitionModel {
        self.partitions.get_mut(at).unwrap()
    }

    /// An error must have a reason.
    fn excuse(&self, at: &At, error: &LogError) {
        let excused = self.faults || self.fs.is_stopped() || self.partitions[at].poisoned;
        assert!(excused, "without reason: {error}");
    }

    pub fn observe(&mut self, at: &At, partition: &Partition) {
        self.say(format_args!("{at:?} {:?}", partition.watermarks_now()));
        if !self.fs.is_stopped() {
            self.model(at).observe(partition);
        }
    }

    fn append(&mut self) {
        let Some((at, partition)) = self.any() else { return };
        match self.dice.below(3) {
            0 => self.append_plain(&at, &partition),
            _ => self.append_numbered(&at, &partition),
        }
        self.observe(&at, &partition);
    }

    fn times(&mut self) -> Vec<i64> {
        let count = self.dice.between(1, 4);
        (0..count).map(|_| self.dice.below(40) as i64 * 10).collect()
    }

    fn build(
        &mut self,
        producer: Option<(i64, i16, i32)>,
        transactional: bool,
        config: &TopicConfig,
    ) -> Sent {
        let times = self.times();
        self.tags += 1;
        let bytes = entry::build_part(&mut self.dice, self.tags, producer, &times, transactional);
        let Stored { mut records, kind, .. } = entry::parse(bytes.clone()).remove(0);
        if config.timestamp_type == TimestampType::LogAppendTime {
            records.iter_mut().for_each(|record| record.0 = self.now_ms);
        }
        Sent { bytes, records, kind, answered: false, next: None }
    }

    fn append_plain(&mut self, at: &At, partition: &Partition) {
        let sent = self.build(None, false, &partition.config());
        match partition.append(sent.bytes.clone(), AppendOptions::client(self.now_ms)) {
            Ok(appended) => self.store(at, &sent, &appended),
            Err(error) => self.not_stored(at, &sent, &error),
        }
    }

    fn append_numbered(&mut self, at: &At, partition: &Partition) {
        let number = self.dice.below(self.partitions[at].clients.len() as u64) as usize;
        let client = self.partitions[at].clients[number].clone();
        if client.marker.is_some() {
            // Its transaction is about to end.
            return;
        }
        // What was not answered goes first, in order.
        let again = client.unacknowledged.iter().position(|sent| !sent.answered);
        let index = match again {
            Some(index) => index,
            None if client.unacknowledged.len() == 5 => return,
            None => {
                let producer = Some((client.id, client.epoch, client.sequence));
                let sent = self.build(producer, client.transactional, &partition.config());
                let client = &mut self.model(at).clients[number];
                client.sequence += sent.records.len() as i32;
                client.unacknowledged.push_back(sent);
                client.unacknowledged.len() - 1
            }
        };
        let mut sent = self.model(at).clients[number].unacknowledged[index].clone();
        if partition.config().timestamp_type == TimestampType::LogAppendTime && sent.next.is_none()
        {
            sent.records.iter_mut().for_each(|record| record.0 = self.now_ms);
        }
        let options = AppendOptions::client(self.now_ms);
        let answer = partition.append(sent.bytes.clone(), options);
        self.say(format_args!(
            "{at:?} client {number} sends {index} again {again:?} {:?} -> {answer:?}",
            sent.next
        ));
        match answer {
            Ok(appended) => {
                match sent.next {
                    None => self.store(at, &sent, &appended),
                    Some(next) => assert_duplicate(&appended, &sent, next),
                }
                let sent = &mut self.model(at).clients[number].unacknowledged[index];
                sent.next.get_or_insert(appended.last_offset + 1);
                sent.answered = true;
            }
            Err(error) => {
                let known = sent.next.is_some();
                self.model(at).clients[number].disconnect();
                if known {
                    self.excuse(at, &error);
                } else {
                    self.not_stored(at, &sent, &error);
                }
            }
        }
    }

    fn store(&mut self, at: &At, sent: &Sent, appended: &Appended) {
        let model = self.model(at);
        assert_eq!(appended.base_offset, model.end(), "offset of a new batch in {at:?}");
        assert_eq!(appended.leader_epoch, model.epoch);
        let stored = Stored {
            base: appended.base_offset,
            epoch: model.epoch,
            size: sent.bytes.len(),
            kind: sent.kind,
            records: sent.records.clone(),
        };
        assert_eq!(appended.last_offset + 1, stored.next());
        model.stored.push(stored);
    }

    fn not_stored(&mut self, at: &At, sent: &Sent, error: &LogError) {
        let model = &self.partitions[at];
        let (base, epoch, size) = (model.end(), model.epoch, sent.bytes.len());
        let stored = Stored { base, epoch, size, kind: sent.kind, records: sent.records.clone() };
        self.perhaps_stored(at, stored, error);
    }

    fn perhaps_stored(&mut self, at: &At, stored: Stored, error: &LogError) {
        self.excuse(at, error);
        if self.fs.is_stopped() || matches!(error, LogError::Io { .. }) {
            self.model(at).maybe_stored.push(stored);
        }
    }

    /// A coordinator ends the transaction of a client: a commit only where all of it was acknowledged, an
    /// abort at any time, under the next epoch where something is on its way.
    fn end_transaction(&mut self) {
        let Some((at, partition)) = self.any() else { return };
        let model = &self.partitions[&at];
        let clients = 0..model.clients.len();
        let ending: Vec<_> = clients.filter(|one| model.clients[*one].transactional).collect();
        let number = *self.dice.pick(&ending);
        let coordinator_epoch = model.coordinator_epoch;
        let commit = self.dice.one_in(2);
        let bump = self.dice.one_in(3);
        let client = &mut self.model(&at).clients[number];
        let marker = client.marker.unwrap_or_else(|| {
            let commit = commit && client.unacknowledged.is_empty();
            if !commit && (bump || !client.unacknowledged.is_empty()) {
                client.begin_again();
            }
            EndMarker {
                producer_id: client.id,
                producer_epoch: client.epoch,
                kind: if commit { MarkerKind::Commit } else { MarkerKind::Abort },
                coordinator_epoch,
            }
        });
        client.marker = Some(marker);
        self.send_marker(&at, &partition, number, marker);
        self.observe(&at, &partition);
    }

    fn send_marker(&mut self, at: &At, partition: &Partition, number: usize, marker: EndMarker) {
        let answer = partition.append_marker(marker, self.now_ms);
        self.say(format_args!("{at:?} client {number} {marker:?} -> {answer:?}"));
        let (now_ms, model) = (self.now_ms, &self.partitions[at]);
        let stored = Stored::marker(marker, model.end(), model.epoch, now_ms);
        match answer {
            Ok(appended) => {
                assert_eq!(
                    (appended.base_offset, appended.last_offset),
                    (stored.base, stored.base)
                );
                let model = self.model(at);
                model.stored.push(stored);
                // One that is lost again leaves the transaction open: another will come.
                model.clients[number].marker = None;
            }
            Err(error) => self.perhaps_stored(at, stored, &error),
        }
    }

    /// What a producer or coordinator that was replaced sends is refused.
    fn misbehave(&mut self) {
        let Some((at, partition)) = self.any() else { return };
        let model = &self.partitions[&at];
        if model.poisoned || self.faults || self.fs.is_stopped() {
            return;
        }
        let replay = model.replay();
        let client = self.dice.pick(&model.clients).clone();
        let known = replay.epoch(client.id);
        let coordinator_epoch = replay.coordinator_epoch(client.id);
        let (is_open, epoch) = (replay.is_open(client.id), known.max(0));
        let times = self.times();
        let mut send = |epoch: i16, transactional: bool| {
            let producer = Some((client.id, epoch, client.sequence));
            let batch = entry::build_part(&mut self.dice, 0, producer, &times, transactional);
            partition.append(batch, AppendOptions::client(self.now_ms))
        };
        if known > 0 {
            let zombie = send(known - 1, client.transactional);
            assert!(matches!(zombie, Err(LogError::InvalidProducerEpoch { .. })), "{zombie:?}");
        }
        if is_open && client.epoch == known && client.unacknowledged.is_empty() {
            let outside = send(known, false);
            assert!(
                matches!(
                    outside,
                    Err(LogError::InvalidTxnState { .. } | LogError::OutOfOrderSequence { .. })
                ),
                "{outside:?}"
            );
        }
        let kind = MarkerKind::Commit;
        let marker = EndMarker {
            producer_id: client.id,
            producer_epoch: epoch,
            kind,
            coordinator_epoch: coordinator_epoch - 1,
        };
        if coordinator_epoch >= 0 {
            let fenced = partition.append_marker(marker, self.now_ms);
            assert!(matches!(fenced, Err(LogError::CoordinatorFenced { .. })), "{fenced:?}");
        }
        self.observe(&at, &partition);
    }

    fn flush(&mut self) {
        let Some((at, partition)) = self.any() else { return };
        match partition.flush() {
            Ok(()) if !self.fs.is_stopped() => {
                assert_eq!(partition.watermarks_now().high_watermark, self.model(&at).end());
            }
            Ok(()) => {}
            Err(error) => self.excuse(&at, &error),
        }
        self.observe(&at, &partition);
        // It brings back what is poisoned, which is for `heal`.
        if !self.faults && !self.fs.is_stopped() && self.dice.one_in(2) {
            self.now_ms += 1000;
            self.log.housekeep(self.now_ms);
        }
    }

    fn roll(&mut self) {
        let Some((at, partition)) = self.any() else { return };
        if let Err(error) = partition.roll() {
            self.excuse(&at, &error);
        }
        self.observe(&at, &partition);
    }

    fn truncate(&mut self) {
        let Some((at, partition)) = self.any() else { return };
        let model = &self.partitions[&at];
        if model.poisoned {
            return;
        }
        let (start, end) = (model.log_start, model.end());
        let to = self.dice.between(start as u64, end as u64) as i64;
        let boundary = model.stored.iter().map(|stored| stored.base).rfind(|base| *base <= to);
        let asked = to;
        let to = if to == end { end } else { boundary.unwrap_or(to) };
        let result = partition.truncate(asked);
        if to < start {
            assert!(matches!(result, Err(LogError::OffsetOutOfRange { .. })));
            return;
        }
        if self.fs.is_stopped() {
            self.model(&at).maybe_cut = Some(to);
            return;
        }
        self.say(format_args!("truncated {at:?} to {to}: {result:?}"));
        let model = self.model(&at);
        match result {
            Ok(()) => {
                model.cut(to);
                let now = partition.watermarks_now();
                assert!(now.leader_epoch > model.epoch);
                model.epoch = now.leader_epoch;
            }
            Err(error) => {
                if partition.watermarks_now().state == PartitionState::Poisoned {
                    self.model(&at).maybe_cut = Some(to);
                }
                self.excuse(&at, &error);
            }
        }
        self.observe(&at, &partition);
    }

    fn delete_records(&mut self) {
        let Some((at, partition)) = self.any() else { return };
        let model = &self.partitions[&at];
        let to = self.dice.between(0, model.shown as u64) as i64;
        if model.poisoned {
            return;
        }
        let before = model.log_start;
        let deleted = partition.delete_records(to);
        self.say(format_args!("deleted records of {at:?} below {to}, from {before}: {deleted:?}"));
        match deleted {
            Ok(start) => {
                assert_eq!(start, to.max(before));
                if to > before {
                    let model = self.model(&at);
                    (model.maybe_start, model.maybe_back) = (None, None);
                }
            }
            Err(error) => {
                self.excuse(&at, &error);
                self.model(&at).maybe_start = Some(to);
            }
        }
        self.observe(&at, &partition);
    }

    fn retain(&mut self) {
        self.now_ms += 1000;
        let removed = self.log.run_retention(self.now_ms);
        self.say(format_args!("retention took {removed}"));
        for at in self.partitions.keys().cloned().collect::<Vec<_>>() {
            let partition = self.log.partition(&at.0, at.1).unwrap();
            if self.fs.is_stopped() || self.faults {
                let model = self.model(&at);
                model.maybe_start = Some(model.shown);
            }
            self.observe(&at, &partition);
        }
    }

    fn create_topic(&mut self) {
        let name = format!("t{}", self.dice.below(3));
        if self.partitions.keys().any(|(topic, _)| *topic == name) {
            return;
        }
        let flush = *self.dice.pick(&["durable", "durable", "durable", "os", "interval"]);
        let time = *self.dice.pick(&["CreateTime", "CreateTime", "LogAppendTime"]);
        let interval = *self.dice.pick(&["0", "150", "400"]);
        let settings = [
            ("highwater.flush", flush),
            ("message.timestamp.type", time),
            ("index.interval.bytes", interval),
            ("segment.bytes", *self.dice.pick(&["1024", "2048", "5000"])),
            ("retention.bytes", *self.dice.pick(&["-1", "3000"])),
            ("retention.ms", *self.dice.pick(&["-1", "1500"])),
        ];
        let count = self.dice.between(1, 2) as i32;
        let made = self.log.create_topic(&name, count, topic_config(&settings));
        self.say(format_args!("created {name} {settings:?}: {:?}", made.as_ref().err()));
        match made {
            Ok(info) => self.know_topic(&name, count, info.config.flush, interval.parse().unwrap()),
            Err(error) => {
                assert!(self.faults || self.fs.is_stopped(), "without reason: {error}");
                assert!(self.log.topic(&name).is_none());
                if self.fs.is_stopped() {
                    self.know_topic(
                        &name,
                        count,
                        topic_config(&settings).flush,
                        interval.parse().unwrap(),
                    );
                    self.maybe_topic = Some(name);
                }
            }
        }
    }

    fn know_topic(&mut self, name: &str, count: i32, flush: Flush, interval: usize) {
        for index in 0..count {
            let clients = (1..=4).map(|id| Client::new(id, id > 2)).collect();
            let dir = Path::new(DIR).join(format!("{name}-{index}"));
            let model = PartitionModel::new(dir, flush, interval, clients);
            self.partitions.insert((name.to_owned(), index), model);
        }
    }

    fn delete_topic(&mut self) {
        let Some((at, partition)) = self.any() else { return };
        let result = self.log.delete_topic(&at.0);
        self.say(format_args!("deleted {}: {result:?}", at.0));
        if let Err(error) = &result {
            assert!(self.faults || self.fs.is_stopped(), "without reason: {error}");
        }
        if self.fs.is_stopped() {
            self.maybe_topic = Some(at.0);
        } else if self.log.topic(&at.0).is_none() {
            assert!(partition.append(Bytes::new(), AppendOptions::client(0)).is_err());
            self.partitions.retain(|(topic, _), _| *topic != at.0);
            if result.is_err() {
                self.maybe_back.push(at.0);
            }
        } else {
            assert!(result.is_err());
        }
    }

    fn take_producer_id(&mut self) {
        match self.log.next_producer_id() {
            Ok(id) => {
                assert!(!self.producer_ids.contains(&id), "producer id {id} was given twice");
                self.producer_ids.push(id);
            }
            Err(error) => assert!(self.faults || self.fs.is_stopped(), "without reason: {error}"),
        }
    }

    fn query(&mut self) {
        let Some((at, partition)) = self.any() else { return };
        if self.fs.is_stopped() || self.partitions[&at].poisoned {
            return;
        }
        let model = &self.partitions[&at];
        model.check_content(&partition);
        let segments = entry::segments(&self.fs, &model.dir);
        let targets = [self.dice.below(410) as i64, self.now_ms - self.dice.below(200) as i64];
        let ends =
            [(Isolation::ReadCommitted, model.stable), (Isolation::ReadUncommitted, model.shown)];
        for (isolation, end) in ends {
            let ask = |spec| partition.list_offset(spec, isolation).unwrap();
            assert_eq!(ask(OffsetSpec::MaxTimestamp), naive::max_timestamp(&segments, end));
            for target in targets {
                let due = naive::time(&segments, target, model.log_start, end);
                assert_eq!(ask(OffsetSpec::Timestamp(target)), due, "{at:?} at {target}");
            }
            assert_eq!(ask(OffsetSpec::Latest).unwrap().offset, end);
            assert_eq!(ask(OffsetSpec::Earliest).unwrap().offset, model.log_start);
        }
        model.check_transactions(&partition, 100 + self.dice.below(2000) as usize);
    }
}

fn assert_duplicate(appended: &Appended, sent: &Sent, next: i64) {
    let base = next - sent.records.len() as i64;
    assert!(appended.base_offset == -1 || appended.base_offset == base, "{appended:?} for {base}");
}
