//! Histories of a compacted partition: appends, passes, cuts, deletions, kills and power losses at any step.
//! What may go is what a newer record of its key has replaced, and a tombstone whose time is over; nothing
//! else is lost, nothing comes back, and no offset is given twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use highwater_log::*;
use highwater_protocol::records::{Batch, BatchBuilder, Compression, DECOMPRESSED_MAX, batches};

use crate::dice::Dice;
use crate::fs::ModelFs;
use crate::node::Loss;
use crate::world::{open, topic_config};

const DIR: &str = "/data/t-0";

/// How long a tombstone stays.
const RETENTION: i64 = 500;

/// Key, value and time of a record.
type Sent = (u8, Option<Bytes>, i64);

struct History {
    fs: ModelFs,
    dice: Dice,
    log: Log,
    /// What is in the log, by offset.
    content: BTreeMap<i64, Sent>,
    /// Sent when the machine stopped: all of it is in the log, or nothing.
    maybe: Vec<Sent>,
    /// A cut that the machine stopped in: it was made, or not.
    maybe_cut: Option<i64>,
    end: i64,
    now_ms: i64,
    sent: u32,
    loud: bool,
}

impl History {
    fn new(seed: u64) -> Self {
        let fs = ModelFs::new(seed ^ 0xC0);
        let mut dice = Dice::new(seed);
        let log = open(&fs).unwrap();
        let settings = [
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", *dice.pick(&["0", "0.3"])),
            ("index.interval.bytes", *dice.pick(&["0", "200"])),
            ("segment.bytes", *dice.pick(&["1024", "2000"])),
            ("delete.retention.ms", "500"),
            ("compression.type", *dice.pick(&["producer", "lz4"])),
        ];
        log.create_topic("t", 1, topic_config(&settings)).unwrap();
        let now_ms = 1_800_000_000_000;
        let loud = std::env::var_os("HW_SEED").is_some();
        let (content, maybe, maybe_cut) = (BTreeMap::new(), Vec::new(), None);
        Self { fs, dice, log, content, maybe, maybe_cut, end: 0, now_ms, sent: 0, loud }
    }

    fn run(&mut self, steps: u64) {
        for number in 0..steps {
            self.now_ms += self.dice.below(60) as i64;
            if self.dice.one_in(6) {
                self.fs.stop_after(Some(self.dice.below(90) as u32));
            }
            let kind = self.dice.below(100);
            if self.loud {
                println!("{number}: {kind}, the log ends at {}", self.end);
            }
            match kind {
                0..50 => self.put(),
                50..62 => drop(self.partition().map(|partition| partition.roll())),
                62..82 => self.compact(),
                82..87 => self.truncate(),
                87..90 => self.delete_records(),
                _ => self.restart(),
            }
            if self.fs.is_stopped() {
                self.restart();
            }
        }
        self.fs.stop_after(None);
        self.compact();
    }

    fn partition(&self) -> Option<std::sync::Arc<Partition>> {
        self.log.partition("t", 0)
    }

    fn put(&mut self) {
        let Some(partition) = self.partition() else { return };
        let mut builder = BatchBuilder::new(Compression::None);
        let mut records = Vec::new();
        for _ in 0..self.dice.between(1, 3) {
            self.sent += 1;
            let key = self.dice.below(6) as u8;
            let text = format!("{}/{}", self.sent, "x".repeat(self.dice.below(90) as usize));
            let value = (!self.dice.one_in(5)).then(|| Bytes::from(text));
            let time = self.now_ms - self.dice.below(1000) as i64;
            builder.push(time, Some(&[key]), value.as_deref(), &[]);
            records.push((key, value, time));
        }
        let options = AppendOptions::client(self.now_ms);
        let sent = partition.append(builder.build().unwrap(), options);
        match sent.and_then(|appended| partition.flush().map(|()| appended)) {
            Ok(appended) => {
                assert_eq!(appended.base_offset, self.end, "an offset was given twice");
                self.take(records);
            }
            Err(error) => {
                assert!(self.fs.is_stopped(), "{error}");
                self.maybe = records;
            }
        }
    }

    fn take(&mut self, records: Vec<Sent>) {
        for record in records {
            self.content.insert(self.end, record);
            self.end += 1;
        }
    }

    fn compact(&mut self) {
        self.log.run_compaction(self.now_ms);
        if self.fs.is_stopped() {
            return;
        }
        self.look();
        self.check_each_key_once();
    }

    fn check_each_key_once(&self) {
        let text = self.fs.content(&Path::new(DIR).join("cleaner-offset-checkpoint"));
        let Some(text) = text.and_then(|text| String::from_utf8(text).ok()) else { return };
        let point: i64 = text.split_whitespace().last().unwrap().parse().unwrap();
        let start = self.partition().unwrap().watermarks_now().log_start;
        let mut keys = BTreeSet::new();
        for (offset, (key, ..)) in self.content.range(start..point.max(start)) {
            assert!(
                keys.insert(*key),
                "key {key} stands twice in {start}..{point}, again at {offset}"
            );
        }
    }

    fn truncate(&mut self) {
        let Some(partition) = self.partition() else { return };
        let start = partition.watermarks_now().log_start;
        let to = self.dice.between(start as u64, self.end as u64) as i64;
        let cut = partition.truncate(to);
        if self.fs.is_stopped() {
            self.maybe_cut = Some(to);
        } else if cut.is_ok() {
            self.end = partition.watermarks_now().log_end;
            assert!(self.end <= to);
            self.content.split_off(&self.end);
        }
    }

    fn delete_records(&mut self) {
        let Some(partition) = self.partition() else { return };
        let _ = partition.delete_records(self.dice.below(self.end as u64 + 1) as i64);
    }

    /// The machine ends and begins again, perhaps not at the first attempt.
    fn restart(&mut self) {
        loop {
            match self.dice.below(3) {
                0 => self.fs.kill(),
                1 => self.fs.lose_power(Loss::All),
                _ => self.fs.lose_power(Loss::Some),
            }
            if self.dice.one_in(4) {
                self.fs.stop_after(Some(self.dice.below(50) as u32));
            }
            let opened = open(&self.fs);
            if !self.fs.is_stopped() {
                self.fs.stop_after(None);
                self.log = opened.unwrap();
                break;
            }
        }
        let partition = self.partition().unwrap();
        assert_eq!(partition.fault().map(|fault| fault.to_string()), None);
        let end = partition.watermarks_now().log_end;
        let (maybe, cut) = (std::mem::take(&mut self.maybe), self.maybe_cut.take());
        if end == self.end + maybe.len() as i64 {
            self.take(maybe);
        } else if end < self.end {
            // A cut goes segment by segment from the newest on.
            assert!(cut.is_some(), "the log ends at {end}, not at {}", self.end);
            self.end = end;
            self.content.split_off(&end);
        }
        assert_eq!(end, self.end);
        self.look();
        for name in self.fs.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name) {
            assert!(!name.ends_with(".cleaned") && !name.ends_with(".swap"), "{name} is left over");
        }
    }

    /// Compares what is there with what must be, and takes it for what must be from now on.
    fn look(&mut self) {
        let partition = self.partition().unwrap();
        let fault = partition.fault().map(|fault| fault.to_string());
        assert_eq!(fault, None);
        let found = self.found();
        self.check_reads();
        let start = partition.watermarks_now().log_start;
        for (offset, record) in &found {
            assert_eq!(self.content.get(offset), Some(record), "offset {offset} came from nowhere");
        }
        let newest: BTreeMap<u8, i64> =
            self.content.iter().map(|(offset, (key, ..))| (*key, *offset)).collect();
        for (offset, (key, value, time)) in self.content.range(start..) {
            let replaced = newest[key] > *offset;
            let over = value.is_none() && self.now_ms >= *time + RETENTION;
            assert!(found.contains_key(offset) || replaced || over, "offset {offset} is lost");
        }
        self.content = found;
        let due = self.naive_greatest().filter(|due| due.0 < self.end);
        let asked = partition.list_offset(OffsetSpec::MaxTimestamp, Isolation::ReadCommitted);
        let asked = asked.unwrap().map(|found| (found.offset, found.timestamp));
        assert_eq!(asked, due, "the greatest timestamp");
    }

    fn found(&self) -> BTreeMap<i64, Sent> {
        let partition = self.partition().unwrap();
        let (mut found, mut offset) = (BTreeMap::new(), partition.watermarks_now().log_start);
        while offset < self.end {
            let bytes = partition.read(offset, 1 << 20, true, Visible::HighWatermark).unwrap();
            assert!(!bytes.is_empty(), "nothing can be read at {offset} of {}", self.end);
            for batch in batches(bytes).map(Result::unwrap) {
                assert!(batch.header.last_offset() >= offset);
                for record in open_batch(&batch) {
                    found.insert(record.0, record.1);
                }
                offset = batch.header.next_offset();
            }
        }
        found
    }

    /// From any offset, also one in a hole, a read begins with the first batch that reaches it.
    fn check_reads(&self) {
        let partition = self.partition().unwrap();
        let start = partition.watermarks_now().log_start;
        let mut due = self.end;
        for offset in (start..self.end).rev() {
            let bytes = partition.read(offset, 1, true, Visible::HighWatermark).unwrap();
            let batch = batches(bytes).next().map(Result::unwrap);
            let header = batch.unwrap_or_else(|| panic!("nothing can be read at {offset}")).header;
            if header.last_offset() == offset {
                due = header.next_offset();
            }
            assert_eq!(header.next_offset(), due, "a read at {offset}");
        }
    }

    /// The first record with the greatest timestamp, by a walk over the files.
    fn naive_greatest(&self) -> Option<(i64, i64)> {
        let mut names: Vec<String> =
            self.fs.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name).collect();
        names.retain(|name| name.ends_with(".log"));
        names.sort();
        let mut best: Option<(i64, i64)> = None;
        for name in names {
            let content = self.fs.content(&Path::new(DIR).join(name)).unwrap();
            for batch in batches(content.into()).map(Result::unwrap) {
                for (offset, (_, _, time)) in open_batch(&batch) {
                    if best.is_none_or(|best| time > best.1) {
                        best = Some((offset, time));
                    }
                }
            }
        }
        best
    }
}

fn open_batch(batch: &Batch) -> Vec<(i64, Sent)> {
    batch.verify_crc().unwrap();
    let records = batch.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap);
    records
        .map(|record| (record.offset, (record.key.unwrap()[0], record.value, record.timestamp)))
        .collect()
}

#[test]
fn no_history_of_passes_loses_what_nothing_has_replaced() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    if let Some(seed) = number("HW_SEED") {
        return History::new(seed).run(30 + seed % 120);
    }
    for seed in 0..number("HW_CASES").unwrap_or(1000) / 4 {
        let run = std::panic::AssertUnwindSafe(|| History::new(seed).run(30 + seed % 120));
        assert!(std::panic::catch_unwind(run).is_ok(), "run it alone with HW_SEED={seed}");
    }
}
