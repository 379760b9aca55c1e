//! How lives end and begin, and what the disk does meanwhile.

use std::path::{Path, PathBuf};

use highwater_log::{FileSystem, LogError};
use highwater_protocol::records::batches;

use crate::dice::Dice;
use crate::fs::ModelFs;
use crate::node::Loss;
use crate::partition::End;
use crate::world::{World, open};

impl World {
    pub fn begin_faults(&mut self) {
        if std::mem::replace(&mut self.faults, true) {
            return;
        }
        match self.dice.below(5) {
            4 => self.fs.fail_write_after(Some(self.dice.below(6) as u32)),
            0 => self.fs.leave_space(Some(self.dice.below(30_000) as usize)),
            1 => self.fs.fail_dir_syncs(self.dice.between(1, 3) as u32),
            _ => self.fs.fail_syncs(self.dice.between(1, 3) as u32),
        }
    }

    /// The disk is well again; what was poisoned must come back by itself, and take records.
    pub fn heal(&mut self) {
        if self.fs.is_stopped() {
            return;
        }
        self.faults = false;
        self.fs.leave_space(None);
        self.fs.fail_syncs(0);
        self.fs.fail_dir_syncs(0);
        self.fs.fail_write_after(None);
        self.now_ms += 20_000;
        self.log.housekeep(self.now_ms);
        for at in self.partitions.keys().cloned().collect::<Vec<_>>() {
            let partition = self.log.partition(&at.0, at.1).unwrap();
            if self.fs.is_stopped() {
                return;
            }
            if self.partitions[&at].poisoned {
                self.say(format_args!("revived {at:?} {:?}", partition.watermarks_now()));
                self.model(&at).revived(&partition);
            }
            self.observe(&at, &partition);
        }
    }

    pub fn restart(&mut self, end: End) {
        self.say(format_args!("restart {end:?}, stopped {}", self.fs.is_stopped()));
        if end == End::Closed
            && !self.fs.is_stopped()
            && let Err(error) = self.log.close()
        {
            assert!(self.faults || self.fs.is_stopped(), "without reason: {error}");
        }
        let closed = end == End::Closed;
        let end = match end {
            // A kill in the moment between a failed sync and the note of it is not provided for: nobody
            // could tell. The power may go then.
            _ if self.faults && self.fs.is_stopped() => End::PowerLost,
            End::Closed if self.faults || self.fs.is_stopped() => End::HalfClosed,
            end => end,
        };
        let end = self.end_life(end);
        if matches!(end, End::Killed | End::PowerLost) && self.dice.one_in(3) {
            self.flip_what_is_synced();
        }
        self.damage_what_can_be_made_again();
        let end = self.begin_life(end);
        self.faults = false;
        if let Some(topic) = self.maybe_topic.take() {
            if self.maybe_back.contains(&topic) && self.log.topic(&topic).is_some() {
                // The new one or the old: nobody was told.
                self.log.delete_topic(&topic).unwrap();
            }
            if self.log.topic(&topic).is_none() {
                self.partitions.retain(|(name, _), _| *name != topic);
            }
        }
        for topic in std::mem::take(&mut self.maybe_back) {
            let forgotten = !self.partitions.keys().any(|(name, _)| *name == topic);
            if forgotten && self.log.topic(&topic).is_some() {
                self.log.delete_topic(&topic).unwrap();
            }
        }
        let known: Vec<&String> = self.partitions.keys().map(|(name, _)| name).collect();
        for topic in self.log.topics() {
            assert!(known.contains(&&topic.name), "{} was deleted", topic.name);
        }
        let new_coordinator = self.dice.one_in(2);
        for (at, model) in &mut self.partitions {
            model.coordinator_epoch += i32::from(new_coordinator);
            let partition =
                self.log.partition(&at.0, at.1).unwrap_or_else(|| panic!("{at:?} is gone"));
            model.reopened(&self.fs, &partition, end, closed);
        }
    }

    /// A disk that breaks what was synced: nothing is cut for it, and once it is mended all is as before.
    fn flip_what_is_synced(&mut self) {
        for (at, model) in &self.partitions {
            let Some((path, position)) = below_the_point(&self.fs, &model.dir, &mut self.dice)
            else {
                continue;
            };
            self.fs.flip(&path, position);
            let before = self.fs.content(&path);
            let log = open(&self.fs).unwrap();
            let partition = log.partition(&at.0, at.1);
            if let Some(partition) = &partition {
                let fault = partition.fault();
                assert!(matches!(fault, Some(LogError::Damaged { .. })), "{at:?}: {fault:?}");
                assert_eq!(self.fs.content(&path), before, "byte {position} was flipped");
            }
            drop(log);
            self.fs.kill();
            // What is left of an unfinished topic has gone with the start.
            if partition.is_some() {
                self.fs.flip(&path, position);
            }
        }
    }

    /// Files that say nothing which the data and an older snapshot do not say.
    fn damage_what_can_be_made_again(&mut self) {
        for model in self.partitions.values() {
            if !self.dice.one_in(4) {
                continue;
            }
            let names = self.fs.list(&model.dir).unwrap_or_default();
            let mut names: Vec<String> = names.into_iter().map(|entry| entry.name).collect();
            names.sort();
            // What was before the first segment that stays is only in its snapshot.
            let log_start = model.maybe_start.unwrap_or(0).max(model.log_start);
            let stays = |name: &&String| {
                name.ends_with(".log")
                    && name[..20].parse().is_ok_and(|base: i64| base <= log_start)
            };
            let first = names.iter().rfind(stays).map(|name| name[..20].to_owned());
            names.retain(|name| {
                let again = first.as_ref().is_some_and(|first| name.get(..20) > Some(first));
                (name.ends_with(".snapshot") && again) || name.ends_with(".txnindex")
            });
            if names.is_empty() {
                continue;
            }
            let name = self.dice.pick(&names);
            let path = model.dir.join(name);
            let content = self.fs.content(&path).unwrap_or_default();
            let damaged = match self.dice.below(3) {
                0 if !content.is_empty() => Some(vec![0; content.len()]),
                1 if !content.is_empty() => Some(content[..content.len() - 1].to_vec()),
                _ => None,
            };
            self.say(format_args!(
                "{} becomes {:?}",
                path.display(),
                damaged.as_ref().map(Vec::len)
            ));
            self.fs.damage(&path, damaged);
        }
    }

    fn end_life(&mut self, end: End) -> End {
        if end == End::PowerLost {
            let loss = *self.dice.pick(&[Loss::All, Loss::Some, Loss::Some, Loss::None]);
            self.fs.lose_power(loss);
        } else {
            self.fs.kill();
        }
        end
    }

    /// Opens the log; sometimes that is interrupted too. The answer is the worst that happened.
    fn begin_life(&mut self, mut end: End) -> End {
        loop {
            if self.dice.one_in(5) {
                self.fs.stop_after(Some(self.dice.below(40) as u32));
            }
            for (at, model) in &self.partitions {
                let names = self.fs.list(&model.dir).unwrap_or_default();
                let names: Vec<String> = names.into_iter().map(|entry| entry.name).collect();
                self.say(format_args!("{at:?} {}", names.join(" ")));
            }
            let refused = self.dice.one_in(8);
            if refused {
                self.fs.fail_syncs(self.dice.between(1, 3) as u32);
            }
            let opened = open(&self.fs);
            self.fs.fail_syncs(0);
            if !self.fs.is_stopped() {
                self.fs.stop_after(None);
                self.log = opened.unwrap();
                // What was refused comes back by itself.
                self.now_ms += 20_000;
                self.log.housekeep(self.now_ms);
                return end;
            }
            // As above: not in the moment after a failed sync.
            let again = *self.dice.pick(&[End::Killed, End::PowerLost]);
            let again = if refused { End::PowerLost } else { again };
            self.say(format_args!("interrupted by {again:?}"));
            end = match (end, self.end_life(again)) {
                (_, End::PowerLost) | (End::PowerLost, _) => End::PowerLost,
                (End::Killed, _) => End::Killed,
                _ => End::HalfClosed,
            };
        }
    }
}

/// A byte of a batch in the newest segment that the recovery point covers, and that its checks cover too.
fn below_the_point(fs: &ModelFs, dir: &Path, dice: &mut Dice) -> Option<(PathBuf, usize)> {
    let names: Vec<String> = fs.list(dir).ok()?.into_iter().map(|entry| entry.name).collect();
    // After a clean stop nothing is read; a cut that is due comes first.
    let closed = fs.exists(&dir.with_file_name("clean-shutdown.json")).unwrap_or(true);
    if closed || names.iter().any(|name| name.starts_with("cut-at")) {
        return None;
    }
    let newest = names.iter().filter(|name| name.ends_with(".log")).max()?;
    let mut due: i64 = newest.get(..20)?.parse().ok()?;
    let newest = dir.join(newest);
    let point = String::from_utf8(fs.content(&dir.join("recovery-point"))?).ok()?;
    let (digits, sum) = (point.get(..20)?, point.get(21..29)?);
    if sum != format!("{:08x}", crc32c::crc32c(digits.as_bytes())) {
        return None;
    }
    let point: i64 = digits.parse().ok()?;
    let mut places = Vec::new();
    let mut position = 0;
    for batch in batches(fs.content(&newest)?.into()).map_while(Result::ok) {
        // What a lost sector left may begin like any batch.
        if batch.header.base_offset != due || due >= point {
            break;
        }
        due = batch.header.next_offset();
        let end = position + batch.bytes.len();
        // No checksum covers the leader epoch.
        places.extend((position..end).filter(|at| !(12..16).contains(&(at - position))));
        position = end;
    }
    (!places.is_empty()).then(|| (newest, *dice.pick(&places)))
}
