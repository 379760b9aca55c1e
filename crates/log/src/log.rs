//! The log: a data directory with topics.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use crate::archive::{Archive, ArchiveConfig};
use crate::background::{Background, Stop};
use crate::catalog::{Catalog, Stage, Stored};
use crate::checkpoint::Place;
use crate::cleaner::CompactionConfig;
use crate::directory::Directory;
use crate::flush::FlushQueue;
use crate::opening::Opening;
use crate::partition::Partition;
use crate::recovery::Ended;
use crate::space::Space;
use crate::topic::{MAX_PARTITIONS, check_name};
use crate::wall_clock::now_ms;
use crate::{
    CopyError, FileSystem, LogError, Overrides, PartitionState, TopicConfig, TopicInfo, Volume,
};
use crate::{archiver, cleaner, hold, housekeeper};

/// Producer ids set aside on disk at a time; those not given are lost with a crash.
const PRODUCER_ID_BLOCK: i64 = 1000;

/// Ids from here on are a client's own invention.
const NEVER_GIVEN: i64 = i64::MAX / 2;

/// How a log works inside.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Threads that sync partitions. With 0 nothing is synced until [`Partition::flush`] is called.
    pub flush_threads: usize,
    /// How often partitions are looked at for reopening and time roll. None: only when
    /// [`Log::housekeep`] is called.
    pub housekeeping: Option<Duration>,
    /// How often topics with `highwater.flush=interval` are synced (within housekeeping).
    pub flush_interval: Duration,
    /// How often retention runs (within housekeeping).
    pub retention_interval: Duration,
    /// The most bytes that all partitions may hold together; an append above it is refused until
    /// something goes. None: as many as the disk takes.
    pub total_max_bytes: Option<u64>,
    /// Where closed segments are kept before retention removes them. None: nowhere.
    pub archive: Option<ArchiveConfig>,
    /// How compacted topics are compacted.
    pub compaction: CompactionConfig,
    /// A producer that was silent for so long is forgotten, unless its transaction is open (Kafka's
    /// `producer.id.expiration.ms`). Looked at when retention runs, and at start.
    pub producer_id_expiration: Duration,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            flush_threads: 4,
            housekeeping: Some(Duration::from_millis(100)),
            flush_interval: Duration::from_secs(1),
            retention_interval: Duration::from_secs(300),
            total_max_bytes: None,
            archive: None,
            compaction: CompactionConfig::default(),
            producer_id_expiration: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// The log of one data directory. Clones share it; the directory is free again when the last one is
/// gone.
#[derive(Clone, Debug)]
pub struct Log {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) directory: Directory,
    opening: Arc<Opening>,
    pub(crate) config: LogConfig,
    /// Taken for the whole of a change of topics, so that changes come one after the other.
    pub(crate) catalog: Mutex<Catalog>,
    pub(crate) topics: RwLock<BTreeMap<String, Topic>>,
    pub(crate) producer_ids: Mutex<ProducerIds>,
    /// Names of topics that are being restored.
    pub(crate) restoring: Mutex<BTreeSet<String>>,
    pub(crate) archive: Option<Arc<Archive>>,
    queue: Arc<FlushQueue>,
    pub(crate) space: Arc<Space>,
    background: Background,
    closed: Mutex<bool>,
}

#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) info: TopicInfo,
    pub(crate) partitions: Vec<Arc<Partition>>,
}

#[derive(Debug)]
pub(crate) struct ProducerIds {
    next: i64,
    /// The first id that is not set aside on disk.
    pub(crate) end: i64,
}

impl Log {
    /// Opens a data directory, making it if it is not there, and recovers what a crash left. The
    /// directory is ours until the log is dropped.
    ///
    /// # Errors
    /// [`LogError::Locked`], [`LogError::OtherVersion`], or of the disk. A partition that cannot be
    /// opened is no error here: it is offline and says why.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, config: LogConfig) -> Result<Self, LogError> {
        Self::open_observed(fs, dir, config, Arc::default())
    }

    /// As [`Log::open`], counting in `opening` how far it has come.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_observed(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        config: LogConfig,
        opening: Arc<Opening>,
    ) -> Result<Self, LogError> {
        let directory = Directory::open(fs, dir)?;
        let catalog = Catalog::open(Arc::clone(&directory.fs), dir)?;
        let unused = directory.read_producer_ids()?;
        let log_ends = directory.take_clean_mark()?;
        let space = Arc::new(Space::new(config.total_max_bytes));
        let archive = config.archive.clone().map(|archive| {
            let (fs, cluster_id) = (Arc::clone(&directory.fs), directory.cluster_id.clone());
            Arc::new(Archive::new(fs, archive, cluster_id, dir.to_owned()))
        });
        let inner = Inner {
            directory,
            opening,
            config,
            catalog: Mutex::new(catalog),
            topics: RwLock::default(),
            producer_ids: Mutex::new(ProducerIds { next: unused, end: unused }),
            restoring: Mutex::default(),
            archive,
            queue: Arc::default(),
            space,
            background: Background::default(),
            closed: Mutex::new(false),
        };
        let log = Self { inner: Arc::new(inner) };
        log.inner.queue.start(&log.inner.background, log.inner.config.flush_threads)?;
        log.open_topics(&log_ends)?;
        log.inner.pass_known_producers();
        log.inner.expire_producers(now_ms());
        log.inner.start_threads()?;
        Ok(log)
    }

    fn open_topics(&self, log_ends: &BTreeMap<String, i64>) -> Result<(), LogError> {
        let mut catalog = self.inner.catalog.lock();
        let topics = catalog.topics().clone();
        let ready = topics.values().filter(|stored| stored.stage == Stage::Ready);
        let partitions = ready.map(|stored| usize::try_from(stored.partitions).unwrap_or(0)).sum();
        self.inner.opening.begin(partitions);
        for (name, mut stored) in topics {
            match stored.stage {
                // What cannot be cleared away now stays unfinished, and is in nobody's way.
                Stage::Unfinished => {
                    if let Err(error) = self.inner.discard(&mut catalog, &name, &stored) {
                        tracing::warn!(topic = name, %error, "what is left of a topic cannot be removed");
                    }
                }
                Stage::Ready => {
                    if let Err(error) = self.inner.clear_growth(&mut catalog, &name, &mut stored) {
                        tracing::warn!(topic = name, %error, "what is left of new partitions cannot be removed");
                    }
                    let topic = self.inner.topic(stored.info(&name)?);
                    for partition in &topic.partitions {
                        let log_end = log_ends.get(&partition.place.name());
                        let ended =
                            log_end.map_or(Ended::Uncleanly, |&log_end| Ended::Cleanly { log_end });
                        let found = partition.open(ended, now_ms());
                        let name = partition.place.name();
                        self.inner.opening.one_more(name, log_end.is_some(), found);
                    }
                    self.inner.topics.write().insert(name, topic);
                }
            }
        }
        Ok(())
    }

    /// How the log was found when it was opened.
    pub fn opening(&self) -> &Opening {
        &self.inner.opening
    }

    /// The cluster id: 22 characters, made at first start.
    pub fn cluster_id(&self) -> &str {
        &self.inner.directory.cluster_id
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.inner.directory.dir
    }

    /// The volume on which it lies, where that can be told.
    pub fn volume(&self) -> Option<Volume> {
        self.inner.directory.fs.volume(self.dir())
    }

    /// Makes a topic; safe on disk when this returns.
    ///
    /// # Errors
    /// [`LogError::TopicExists`], [`LogError::InvalidTopic`], [`LogError::InvalidPartitions`], or of
    /// the disk.
    pub fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        config: TopicConfig,
    ) -> Result<TopicInfo, LogError> {
        check_name(name)?;
        let starts = vec![0; usize::try_from(partitions.clamp(0, MAX_PARTITIONS)).unwrap_or(0)];
        hold::check_new(&config, &TopicConfig::default(), &starts)?;
        self.inner.check_archive(&config)?;
        if !(1..=MAX_PARTITIONS).contains(&partitions) {
            return Err(LogError::InvalidPartitions { asked: partitions, most: MAX_PARTITIONS });
        }
        let mut catalog = self.inner.catalog.lock();
        self.inner.check_open()?;
        if self.inner.restoring.lock().contains(name) {
            return Err(LogError::TopicExists { name: name.to_owned() });
        }
        match catalog.topics().get(name).cloned() {
            Some(left) if left.stage == Stage::Unfinished => {
                catalog.abandon(name)?;
                self.inner.discard(&mut catalog, name, &left)?;
            }
            Some(_) => return Err(LogError::TopicExists { name: name.to_owned() }),
            None => {}
        }
        let info = TopicInfo {
            name: name.to_owned(),
            id: Uuid::new_v4(),
            partitions,
            config: config.into(),
        };
        let topic = self.inner.make_topic(&mut catalog, info)?;
        let info = topic.info.clone();
        self.inner.topics.write().insert(name.to_owned(), topic);
        Ok(info)
    }

    /// Deletes a topic with its records. After an error of the disk the topic is there as before, or it is
    /// gone for its users and what is left of its files goes at the next start; [`Log::topic`] tells.
    ///
    /// # Errors
    /// [`LogError::UnknownPartition`], [`LogError::Held`] while a hold lasts, or of the disk.
    pub fn delete_topic(&self, name: &str) -> Result<(), LogError> {
        let mut catalog = self.inner.catalog.lock();
        self.inner.check_open()?;
        let mut stored = self.inner.stored(&catalog, name)?;
        self.inner.check_not_held(name)?;
        stored.stage = Stage::Unfinished;
        let noted = catalog.put(name, stored.clone());
        if self.inner.stored(&catalog, name).is_ok() {
            return noted;
        }
        let removed = self.inner.topics.write().remove(name);
        for partition in removed.iter().flat_map(|topic| &topic.partitions) {
            partition.stop(PartitionState::Gone, unknown(&partition.place.name()));
            // Whoever is about to write a file into its folder has done so.
            drop(partition.writer.lock());
            drop(partition.cleaning.lock());
        }
        noted?;
        self.inner.discard(&mut catalog, name, &stored)
    }

    /// Replaces a topic's settings.
    ///
    /// # Errors
    /// [`LogError::UnknownPartition`], [`LogError::InvalidConfig`], or of the disk.
    pub fn set_config(&self, name: &str, overrides: Overrides) -> Result<TopicInfo, LogError> {
        let config = Arc::new(TopicConfig::parse(overrides)?);
        let mut catalog = self.inner.catalog.lock();
        self.inner.check_open()?;
        self.inner.check_holds(name, &config)?;
        self.inner.put_config(&mut catalog, name, &config)
    }

    /// Gives a topic the settings that `change` makes of those it has: no other change comes in between.
    ///
    /// # Errors
    /// Of `change`, and as [`Log::set_config`].
    pub fn change_config<E: From<LogError>>(
        &self,
        name: &str,
        change: impl FnOnce(&TopicConfig) -> Result<Overrides, E>,
    ) -> Result<TopicInfo, E> {
        let mut catalog = self.inner.catalog.lock();
        self.inner.check_open()?;
        let topic = self.topic(name).ok_or_else(|| unknown(name))?;
        let config = Arc::new(TopicConfig::parse(change(&topic.config)?)?);
        self.inner.check_holds(name, &config)?;
        Ok(self.inner.put_config(&mut catalog, name, &config)?)
    }

    /// What [`Log::set_config`] would refuse.
    ///
    /// # Errors
    /// As [`Log::set_config`].
    pub fn check_config(&self, name: &str, overrides: Overrides) -> Result<(), LogError> {
        self.inner.check_holds(name, &TopicConfig::parse(overrides)?)
    }

    /// All topics, by name.
    pub fn topics(&self) -> Vec<TopicInfo> {
        self.inner.topics.read().values().map(|topic| topic.info.clone()).collect()
    }

    /// One topic.
    pub fn topic(&self, name: &str) -> Option<TopicInfo> {
        self.inner.topics.read().get(name).map(|topic| topic.info.clone())
    }

    /// The topic of this id.
    pub fn topic_by_id(&self, id: Uuid) -> Option<TopicInfo> {
        self.find_topic(|topic| topic.id == id)
    }

    /// The first topic, by name, that is `wanted`.
    pub fn find_topic(&self, wanted: impl Fn(&TopicInfo) -> bool) -> Option<TopicInfo> {
        let topics = self.inner.topics.read();
        topics.values().map(|topic| &topic.info).find(|info| wanted(info)).cloned()
    }

    /// One partition, also if it is offline.
    pub fn partition(&self, topic: &str, index: i32) -> Option<Arc<Partition>> {
        let topics = self.inner.topics.read();
        topics.get(topic)?.partitions.get(usize::try_from(index).ok()?).cloned()
    }

    /// A producer id that was never given before, also across crashes.
    ///
    /// # Errors
    /// Of the disk.
    pub fn next_producer_id(&self) -> Result<i64, LogError> {
        let mut ids = self.inner.producer_ids.lock();
        self.inner.check_open()?;
        if ids.next == ids.end {
            let end = ids.end + PRODUCER_ID_BLOCK;
            self.inner.directory.write_producer_ids(end)?;
            ids.end = end;
        }
        ids.next += 1;
        Ok(ids.next - 1)
    }

    /// Brings back partitions that are due, and closes segments that are over their time.
    pub fn housekeep(&self, now_ms: i64) {
        self.inner.housekeep(now_ms);
    }

    /// Removes closed segments by time and size; returns how many.
    pub fn run_retention(&self, now_ms: i64) -> usize {
        self.inner.run_retention(now_ms)
    }

    /// Makes room as it is made where appends are refused: retention, and where it may take nothing more, the
    /// hold that keeps most is broken (rule L7). Returns how many segments went.
    pub fn make_room(&self, now_ms: i64) -> usize {
        self.inner.make_room(now_ms)
    }

    /// Copies every closed segment that is not in the archive yet, as the archiving thread does; returns how
    /// many.
    pub fn archive_closed(&self) -> usize {
        self.inner.archive_closed()
    }

    /// Why the archive does not work now.
    pub fn archive_fault(&self) -> Option<CopyError> {
        self.inner.archive.as_ref().and_then(|archive| archive.fault())
    }

    /// Names of archived topics of which records are missing between others in the archive.
    pub fn archive_gaps(&self) -> Vec<String> {
        self.inner.archive.as_ref().map_or_else(Vec::new, |archive| archive.gaps())
    }

    /// Compacts what is due; returns how many passes that took.
    pub fn run_compaction(&self, now_ms: i64) -> usize {
        self.inner.run_compaction(now_ms)
    }

    /// What it may hold at most, if there is a limit.
    pub fn limit_bytes(&self) -> Option<u64> {
        self.inner.space.most()
    }

    /// Sets what it may hold at most from now on, instead of [`LogConfig::total_max_bytes`].
    pub fn limit_to(&self, most: Option<u64>) {
        self.inner.space.set_most(most);
    }

    /// Bytes of all partitions together, as `total_max_bytes` counts them.
    pub fn held_bytes(&self) -> u64 {
        self.inner.space.held()
    }

    /// Syncs everything and marks the directory as closed cleanly. Later calls fail.
    ///
    /// # Errors
    /// Of the disk; the next start then recovers as after a kill.
    pub fn close(&self) -> Result<(), LogError> {
        let _catalog = self.inner.catalog.lock();
        let mut closed = self.inner.closed.lock();
        if *closed {
            return Ok(());
        }
        *closed = true;
        drop(closed);
        self.inner.stop_threads();
        let mut log_ends = BTreeMap::new();
        for partition in self.inner.partitions() {
            // One that does not work now is not closed cleanly: its next start reads it whole.
            if let Some(log_end) = partition.close() {
                log_ends.insert(partition.place.name(), log_end);
            }
        }
        self.inner.directory.mark_clean(&log_ends)
    }
}

impl Inner {
    pub(crate) fn check_open(&self) -> Result<(), LogError> {
        if *self.closed.lock() { Err(LogError::Closed) } else { Ok(()) }
    }

    pub(crate) fn partitions(&self) -> Vec<Arc<Partition>> {
        self.topics.read().values().flat_map(|topic| topic.partitions.clone()).collect()
    }

    pub(crate) fn stored(&self, catalog: &Catalog, name: &str) -> Result<Stored, LogError> {
        let stored = catalog.topics().get(name).filter(|stored| stored.stage == Stage::Ready);
        stored.cloned().ok_or_else(|| unknown(name))
    }

    fn check_archive(&self, config: &TopicConfig) -> Result<(), LogError> {
        if self.archive.is_some() || config.archive != Some(true) {
            return Ok(());
        }
        let (name, value) = ("highwater.archive".to_owned(), "true".to_owned());
        let reason = "the server has no archive: set archive.dir".to_owned();
        Err(LogError::InvalidConfig { name, value, reason })
    }

    fn check_holds(&self, name: &str, config: &TopicConfig) -> Result<(), LogError> {
        self.check_archive(config)?;
        let topics = self.topics.read();
        let topic = topics.get(name).ok_or_else(|| unknown(name))?;
        let start = |partition: &Arc<Partition>| partition.watermarks_now().log_start;
        let log_starts: Vec<i64> = topic.partitions.iter().map(start).collect();
        hold::check_new(config, &topic.info.config, &log_starts)
    }

    /// What is held goes with its topic no more than by itself (rule L7).
    fn check_not_held(&self, name: &str) -> Result<(), LogError> {
        let topics = self.topics.read();
        let partitions = topics.get(name).into_iter().flat_map(|topic| &topic.partitions);
        let mut held = partitions.map(|partition| partition.check_held(i64::MAX));
        held.find(Result::is_err).unwrap_or(Ok(()))
    }

    pub(crate) fn put_config(
        &self,
        catalog: &mut Catalog,
        name: &str,
        config: &Arc<TopicConfig>,
    ) -> Result<TopicInfo, LogError> {
        let mut stored = self.stored(catalog, name)?;
        stored.config = config.overrides().clone();
        catalog.put(name, stored)?;
        let mut topics = self.topics.write();
        let topic = topics.get_mut(name).ok_or_else(|| unknown(name))?;
        topic.info.config = Arc::clone(config);
        for partition in &topic.partitions {
            partition.set_config(Arc::clone(config));
        }
        Ok(topic.info.clone())
    }

    pub(crate) fn place(&self, topic: &str, topic_id: Uuid, index: i32) -> Place {
        Place {
            fs: Arc::clone(&self.directory.fs),
            dir: self.directory.dir.join(format!("{topic}-{index}")),
            topic: topic.to_owned(),
            index,
            topic_id,
        }
    }

    /// The topic with its partitions, still to be opened.
    pub(crate) fn topic(&self, info: TopicInfo) -> Topic {
        let partitions = (0..info.partitions).map(|index| self.partition(&info, index)).collect();
        Topic { info, partitions }
    }

    pub(crate) fn partition(&self, info: &TopicInfo, index: i32) -> Arc<Partition> {
        let place = self.place(&info.name, info.id, index);
        let (queue, space) = (Arc::clone(&self.queue), Arc::clone(&self.space));
        let siblings = usize::try_from(info.partitions).unwrap_or(0);
        let (config, archive) = (Arc::clone(&info.config), self.archive.clone());
        Partition::new(place, config, queue, space, archive, siblings)
    }

    fn make_topic(&self, catalog: &mut Catalog, info: TopicInfo) -> Result<Topic, LogError> {
        self.check_no_folders(&info, 0..info.partitions)?;
        let mut stored = Stored {
            id: info.id,
            partitions: info.partitions,
            stage: Stage::Unfinished,
            config: info.config.overrides().clone(),
            growing_to: None,
        };
        catalog.put(&info.name, stored.clone())?;
        let topic = self.topic(info);
        let made = self.make_folders(&topic).and_then(|()| {
            stored.stage = Stage::Ready;
            catalog.put(&topic.info.name, stored.clone())
        });
        if let Err(error) = made {
            // What cannot be cleared away now is cleared away at the next attempt or start.
            let _ = catalog
                .abandon(&topic.info.name)
                .and_then(|()| self.discard(catalog, &topic.info.name, &stored));
            return Err(error);
        }
        topic.partitions.iter().for_each(|partition| now_open(partition));
        Ok(topic)
    }

    /// A folder that stands already is of a topic that the list forgot: an attempt to make it again would
    /// end by clearing it away.
    pub(crate) fn check_no_folders(
        &self,
        info: &TopicInfo,
        partitions: Range<i32>,
    ) -> Result<(), LogError> {
        for index in partitions {
            let dir = self.place(&info.name, info.id, index).dir;
            if self.directory.fs.exists(&dir).map_err(LogError::io("open", &dir))? {
                let reason = "it stands, and the list of topics does not name it".to_owned();
                return Err(LogError::Damaged { path: dir, position: 0, reason });
            }
        }
        Ok(())
    }

    fn make_folders(&self, topic: &Topic) -> Result<(), LogError> {
        for partition in &topic.partitions {
            Partition::create(&partition.place)?;
        }
        site!("topic_made.folder", self.sync_dir())
    }

    /// Removes what is left of a topic that is unfinished, then its entry. That it is unfinished must be
    /// safe on disk: by the change of the catalogue, or at start by the sync that took the clean mark away.
    pub(crate) fn discard(
        &self,
        catalog: &mut Catalog,
        name: &str,
        stored: &Stored,
    ) -> Result<(), LogError> {
        for index in 0..stored.growing_to.unwrap_or(stored.partitions) {
            remove_folder(self.directory.fs.as_ref(), &self.place(name, stored.id, index).dir)?;
        }
        site!("topic_removed.folder", self.sync_dir())?;
        catalog.remove(name)
    }

    pub(crate) fn sync_dir(&self) -> Result<(), LogError> {
        let dir = &self.directory.dir;
        site!("directory.folder", self.directory.fs.sync_dir(dir))
            .map_err(LogError::io("sync", dir))
    }

    /// An id that stands in a partition must not be given again: its producer would be taken for the
    /// other, and what it sends for sent already. Only a folder that was copied badly has such ids.
    pub(crate) fn pass_known_producers(&self) {
        let partitions = self.partitions();
        let known = partitions.iter().filter_map(|partition| partition.greatest_producer());
        let mut ids = self.producer_ids.lock();
        if let Some(known) = known.filter(|id| (ids.next..NEVER_GIVEN).contains(id)).max() {
            tracing::warn!(
                known,
                next = ids.next,
                "the number of the next producer is behind: it is raised"
            );
            (ids.next, ids.end) = (known + 1, known + 1);
        }
    }

    /// What is done from time to time, if the log is to do something by itself.
    fn start_threads(self: &Arc<Self>) -> Result<(), LogError> {
        let Some(every) = self.config.housekeeping else { return Ok(()) };
        self.start_thread("log-housekeeper", move |log, stop| housekeeper::run(log, stop, every))?;
        if self.archive.is_some() {
            self.start_thread("log-archiver", archiver::run)?;
        }
        let config = self.config.compaction.clone();
        self.start_thread("log-cleaner", move |log, stop| cleaner::run(log, stop, &config))
    }

    fn start_thread(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce(&Weak<Self>, &Stop) + Send + 'static,
    ) -> Result<(), LogError> {
        let log = Arc::downgrade(self);
        self.background.start(name, move |stop| work(&log, stop))
    }

    fn stop_threads(&self) {
        self.queue.stop();
        if let Some(archive) = &self.archive {
            archive.stop();
        }
        self.background.end();
    }
}

impl Drop for Inner {
    /// As a kill would leave it: only [`Log::close`] marks the directory as clean.
    fn drop(&mut self) {
        self.stop_threads();
        for partition in self.partitions() {
            partition.stop(PartitionState::Gone, LogError::Closed);
        }
    }
}

/// Opens a partition that was just made.
pub(crate) fn now_open(partition: &Partition) {
    partition.open(Ended::Cleanly { log_end: 0 }, now_ms());
}

pub(crate) fn remove_folder(fs: &dyn FileSystem, dir: &Path) -> Result<(), LogError> {
    if !fs.exists(dir).map_err(LogError::io("open", dir))? {
        return Ok(());
    }
    for entry in fs.list(dir).map_err(LogError::io("list", dir))? {
        let path = dir.join(entry.name);
        fs.remove(&path).map_err(LogError::io("remove", &path))?;
    }
    fs.remove_dir(dir).map_err(LogError::io("remove", dir))
}

pub(crate) fn unknown(name: &str) -> LogError {
    LogError::UnknownPartition { name: name.to_owned() }
}
