//! One partition: its parts, its watermarks, its state.
//!
//! Locks are taken in this order, and never the other way: cleaning, writer, sync, segments, epochs, marks,
//! unsettled, fault.

use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::watch;

use crate::append::Appended;
use crate::archive::Archive;
use crate::checkpoint::Place;
use crate::cleaner::Uncleanable;
use crate::epochs::Epochs;
use crate::flush::{FlushQueue, FlushTurn};
use crate::marks::{Mark, Marks};
use crate::opening::Found;
use crate::producers::Producers;
use crate::recovery::{Ended, Recovered, recover};
use crate::recovery_point::Written;
use crate::reopen::Reopening;
use crate::segment::Segment;
use crate::space::{Share, Space};
use crate::unsettled::Unsettled;
use crate::{Flush, LogError, PartitionState, TopicConfig, Watermarks};

/// One partition of a topic. All calls may be made from many threads at once; those that say so block
/// on the disk.
#[derive(Debug)]
pub struct Partition {
    pub(crate) place: Place,
    config: RwLock<Arc<TopicConfig>>,
    pub(crate) writer: Mutex<Writer>,
    /// Oldest first; the last one is active. Empty as long as the partition could not be opened.
    pub(crate) segments: RwLock<Vec<Arc<Segment>>>,
    /// Held while the partition is synced.
    pub(crate) sync: Mutex<()>,
    pub(crate) epochs: RwLock<Epochs>,
    marks: Mutex<Marks>,
    /// The transactions that hold readers at read_committed back.
    pub(crate) unsettled: Mutex<Unsettled>,
    fault: Mutex<Option<LogError>>,
    pub(crate) share: Share,
    /// Where closed segments are kept before they are removed.
    pub(crate) archive: Option<Arc<Archive>>,
    /// How many partitions its topic has.
    pub(crate) siblings: usize,
    /// True while appends are refused for want of space.
    pub(crate) is_full: AtomicBool,
    /// Held while the partition is compacted, and taken before the writer.
    pub(crate) cleaning: Mutex<()>,
    /// How far it was compacted; -1 where that is not known.
    pub(crate) cleaned_to: AtomicI64,
    /// Why it is not compacted for now.
    pub(crate) uncleanable: Mutex<Uncleanable>,
    /// When housekeeping last found everything synced.
    pub(crate) unsynced_since_ms: AtomicI64,
    watermarks: watch::Sender<Watermarks>,
    pub(crate) queue: Arc<FlushQueue>,
    pub(crate) turn: Mutex<FlushTurn>,
    pub(crate) me: Weak<Self>,
}

/// What only the appending thread needs.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(crate) producers: Producers,
    pub(crate) retry: Reopening,
    /// When the active segment took its first record, in milliseconds; None while it is empty.
    pub(crate) active_since_ms: Option<i64>,
    /// None until it is written for what stands now.
    pub(crate) recovery_point: Option<Written>,
}

impl Partition {
    /// A partition that is offline until [`Partition::open`] succeeds.
    pub(crate) fn new(
        place: Place,
        config: Arc<TopicConfig>,
        queue: Arc<FlushQueue>,
        space: Arc<Space>,
        archive: Option<Arc<Archive>>,
        siblings: usize,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            place,
            config: RwLock::new(config),
            writer: Mutex::default(),
            segments: RwLock::default(),
            sync: Mutex::default(),
            epochs: RwLock::new(Epochs::new()),
            marks: Mutex::new(Marks::offline()),
            unsettled: Mutex::default(),
            fault: Mutex::default(),
            share: Share::new(space),
            archive,
            siblings,
            is_full: AtomicBool::new(false),
            cleaning: Mutex::default(),
            cleaned_to: AtomicI64::new(-1),
            uncleanable: Mutex::default(),
            unsynced_since_ms: AtomicI64::new(i64::MAX),
            watermarks: watch::Sender::new(Marks::offline().watermarks()),
            queue,
            turn: Mutex::default(),
            me: me.clone(),
        })
    }

    /// Makes the files of a new partition in its folder.
    pub(crate) fn create(place: &Place) -> Result<(), LogError> {
        place.fs.create_dir(&place.dir).map_err(LogError::io("create", &place.dir))?;
        place.put_metadata()?;
        place.put_epochs(&Epochs::new())?;
        Segment::create(place.fs.as_ref(), &place.dir, 0)?;
        site!("partition_made.folder", place.sync_dir())
    }

    /// Opens the stored partition; an error leaves it offline, saying why.
    pub(crate) fn open(&self, ended: Ended, now_ms: i64) -> Found {
        let mut writer = self.writer.lock();
        let opened = self.recover(ended, now_ms).and_then(|mut found| {
            let batches_cut = found.batches_cut;
            // Records may have been shown and lost: their offsets come again under another epoch.
            if !found.clean && self.config().flush != Flush::Durable {
                found.epochs.begin(end_of(&found.segments).offset);
                self.place.put_epochs(&found.epochs)?;
                site!("unclean_epoch.folder", self.place.sync_dir())?;
            }
            self.install(&mut writer, &mut self.segments.write(), found, now_ms)?;
            Ok(if batches_cut { Found::Cut } else { Found::Whole })
        });
        opened.unwrap_or_else(|error| {
            tracing::error!(partition = self.place.name(), code = error.code(), %error, "a partition is offline");
            writer.retry.failed(now_ms);
            self.stop(PartitionState::Offline, error);
            Found::Offline
        })
    }

    pub(crate) fn recover(&self, ended: Ended, now_ms: i64) -> Result<Recovered, LogError> {
        recover(&self.place, self.config().index_interval_bytes, ended, now_ms)
    }

    /// Puts in place what recovery found, which is synced and therefore shown.
    pub(crate) fn install(
        &self,
        writer: &mut Writer,
        segments: &mut Vec<Arc<Segment>>,
        found: Recovered,
        now_ms: i64,
    ) -> Result<(), LogError> {
        writer.active_since_ms = first_time(found.segments.last(), now_ms)?;
        writer.producers = found.producers;
        writer.retry = Reopening::default();
        writer.recovery_point = None;
        self.set_cleaned_to(found.cleaned_to);
        let end = end_of(&found.segments);
        let epoch = found.epochs.current();
        *self.epochs.write() = found.epochs;
        *self.fault.lock() = None;
        self.change(|marks| {
            *self.unsettled.lock() = found.unsettled;
            *marks = Marks::all_at(end, found.log_start, epoch);
        });
        self.share.set(size_of(&found.segments));
        *segments = found.segments;
        Ok(())
    }

    /// What stopped it, while it is poisoned or offline.
    pub fn fault(&self) -> Option<LogError> {
        self.fault.lock().clone()
    }

    /// A view of the watermarks; woken when anything but the log end moves.
    pub fn watermarks(&self) -> watch::Receiver<Watermarks> {
        self.watermarks.subscribe()
    }

    /// The watermarks now.
    pub fn watermarks_now(&self) -> Watermarks {
        *self.watermarks.borrow()
    }

    /// The settings now.
    pub fn config(&self) -> Arc<TopicConfig> {
        Arc::clone(&self.config.read())
    }

    pub(crate) fn set_config(&self, config: Arc<TopicConfig>) {
        *self.config.write() = config;
        self.change(|_| {});
    }

    /// Waits until an append is visible: fsynced under `flush=durable`, at once otherwise.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the append was lost to a failed fsync: send it again.
    pub async fn durable(&self, appended: &Appended) -> Result<(), LogError> {
        let mut watermarks = self.watermarks();
        loop {
            let now = *watermarks.borrow_and_update();
            if self.is_shown(appended, &now)? {
                return Ok(());
            }
            // The sender lives as long as `self`.
            if watermarks.changed().await.is_err() {
                return Err(LogError::Closed);
            }
        }
    }

    fn is_shown(&self, appended: &Appended, now: &Watermarks) -> Result<bool, LogError> {
        let shown = now.high_watermark > appended.last_offset;
        if now.leader_epoch != appended.leader_epoch {
            // Cut since then: the records are there if their epoch ended behind them.
            let kept = self.epoch_end(appended.leader_epoch).1 > appended.last_offset;
            return if shown && kept { Ok(true) } else { Err(self.poisoned("it was cut")) };
        }
        if shown {
            return Ok(true);
        }
        self.check_usable().map(|()| false)
    }

    /// Compares a client's leader epoch with the current one; -1 asks for no check.
    ///
    /// # Errors
    /// [`LogError::FencedLeaderEpoch`] or [`LogError::UnknownLeaderEpoch`].
    pub fn check_leader_epoch(&self, asked: i32) -> Result<(), LogError> {
        let current = self.watermarks_now().leader_epoch;
        match asked {
            -1 => Ok(()),
            _ if asked < current => Err(LogError::FencedLeaderEpoch { asked, current }),
            _ if asked > current => Err(LogError::UnknownLeaderEpoch { asked, current }),
            _ => Ok(()),
        }
    }

    /// OffsetForLeaderEpoch: the greatest epoch at or below the one asked for and where it ended
    /// (exclusive); (-1, -1) if unknown.
    pub fn epoch_end(&self, epoch: i32) -> (i32, i64) {
        let epochs = self.epochs.read();
        let log_end = self.marks().log_end.offset;
        epochs.end(epoch, log_end)
    }

    /// Bytes of all segments.
    pub fn size(&self) -> u64 {
        size_of(&self.segments.read())
    }

    /// The greatest id of a producer that this partition remembers.
    pub(crate) fn greatest_producer(&self) -> Option<i64> {
        self.writer.lock().producers.greatest_id()
    }

    pub(crate) fn marks(&self) -> Marks {
        *self.marks.lock()
    }

    /// The marks, which do not move as long as they are held. They are held of many partitions at once by
    /// a backup alone, which takes nothing else meanwhile.
    pub(crate) fn hold_marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock()
    }

    /// Moves the marks and tells the watchers.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Marks)) {
        let flush = self.config().flush;
        let mut marks = self.marks.lock();
        change(&mut marks);
        marks.show(flush);
        let unsettled = self.unsettled.lock().settle(marks.shown.offset);
        marks.hold(unsettled);
        let now = marks.watermarks();
        self.watermarks.send_if_modified(|shown| {
            let quiet = Watermarks { log_end: now.log_end, ..*shown } == now;
            *shown = now;
            !quiet
        });
    }

    /// Stops the partition with an error, which every call gets from now on; answers the marks at which
    /// it stopped.
    pub(crate) fn stop(&self, state: PartitionState, error: LogError) -> Marks {
        let mut fault = self.fault.lock();
        let gone = matches!(*fault, Some(LogError::Closed | LogError::UnknownPartition { .. }));
        if !gone {
            *fault = Some(error);
        }
        drop(fault);
        if state == PartitionState::Gone {
            self.share.set(0);
        }
        let mut stopped = None;
        self.change(|marks| {
            if !gone {
                marks.state = state;
            }
            stopped = Some(*marks);
        });
        stopped.unwrap_or_else(|| self.marks())
    }

    /// Refuses appends to a partition that does not work.
    pub(crate) fn check_usable(&self) -> Result<(), LogError> {
        match &*self.fault.lock() {
            None => Ok(()),
            Some(
                error @ (LogError::Poisoned { .. }
                | LogError::Closed
                | LogError::UnknownPartition { .. }),
            ) => Err(error.clone()),
            Some(error) => Err(LogError::Offline {
                partition: self.place.name(),
                reason: format!("{}: {error}", error.code()),
            }),
        }
    }

    /// Refuses reads of a partition that has nothing to read; a poisoned one still shows what is safe.
    pub(crate) fn check_readable(&self) -> Result<(), LogError> {
        match self.check_usable() {
            Err(LogError::Poisoned { .. }) => Ok(()),
            other => other,
        }
    }

    pub(crate) fn poisoned(&self, reason: &str) -> LogError {
        LogError::Poisoned { partition: self.place.name(), reason: reason.to_owned() }
    }

    pub(crate) fn active(&self) -> Result<Arc<Segment>, LogError> {
        self.segments.read().last().cloned().ok_or(LogError::Closed)
    }
}

fn size_of(segments: &[Arc<Segment>]) -> u64 {
    segments.iter().map(|segment| segment.tip().size).sum()
}

/// The mark behind the last record.
pub(crate) fn end_of(segments: &[Arc<Segment>]) -> Mark {
    segments.last().map_or(Mark::start(0), |segment| {
        let tip = segment.tip();
        Mark { offset: tip.next_offset, segment: segment.base_offset, position: tip.size }
    })
}

/// When a segment found at start took its first record, as far as its timestamps tell.
fn first_time(active: Option<&Arc<Segment>>, now_ms: i64) -> Result<Option<i64>, LogError> {
    match active.filter(|segment| segment.tip().size > 0) {
        None => Ok(None),
        Some(segment) => {
            let time = segment.header_at(0)?.max_timestamp;
            Ok(Some(if time < 0 { now_ms } else { time.min(now_ms) }))
        }
    }
}
