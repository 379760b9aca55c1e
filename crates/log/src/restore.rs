//! Restoring a backup, or one topic of a backup or archive: offsets, epochs and topic ids are kept, everything
//! is verified before anything is put in place, and the leader epoch is raised (rule S2), so that who stood
//! above the restored end is told that history has changed.

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::backup::is_internal;
use crate::catalog::{Catalog, Stage, Stored};
use crate::checkpoint::Place;
use crate::copies::{Copies, Kind};
use crate::copy_error::CopyError;
use crate::directory::{self, RESTORING, make_private_dir};
use crate::durable_file;
use crate::epochs::Epochs;
use crate::fs::{FileSystem, OpenMode};
use crate::log::Inner;
use crate::manifest::{PartitionManifest, TopicManifest};
use crate::partition::Partition;
use crate::recovery::Ended;
use crate::segment::Segment;
use crate::segment_copy::{CopyProgress, put_back};
use crate::topic::check_name;
use crate::wall_clock::now_ms;
use crate::{EndMarker, Log, LogError, MarkerKind, TopicConfig, TopicInfo};

/// What was restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Names of the topics.
    pub topics: Vec<String>,
    /// Bytes of their segments.
    pub bytes: u64,
    /// The new id of a topic whose own one is taken.
    pub new_id: Option<Uuid>,
}

/// Restores a whole backup into a data directory that is empty or not there. The cluster keeps its id.
///
/// # Errors
/// See [`CopyError`]. A directory that was left half restored is refused by [`Log::open`].
pub fn restore(
    fs: Arc<dyn FileSystem>,
    from: &Path,
    data_dir: &Path,
    progress: &CopyProgress,
) -> Result<Restored, CopyError> {
    let copies = Copies::open(Arc::clone(&fs), from)?;
    let Kind::Backup { cluster_id, producer_ids } = &copies.kind else {
        return Err(CopyError::Foreign { path: from.to_owned(), wanted: "backup" });
    };
    check_target(fs.as_ref(), data_dir)?;
    copies.verify(&copies.topics, progress)?;
    make_private_dir(fs.as_ref(), data_dir)?;
    let marker = data_dir.join(RESTORING);
    fs.open(&marker, OpenMode::Create).map_err(LogError::io("create", &marker))?;
    let mut catalog = Catalog::open(Arc::clone(&fs), data_dir)?;
    let mut stored = Vec::with_capacity(copies.topics.len());
    for topic in &copies.topics {
        let place = |index| Place {
            fs: Arc::clone(&fs),
            dir: data_dir.join(format!("{}-{index}", topic.topic)),
            topic: topic.topic.clone(),
            index,
            topic_id: topic.topic_id,
        };
        put_partitions(&copies, topic, place, progress)?;
        stored.push((topic.topic.clone(), ready(topic, topic.topic_id)));
    }
    catalog.put_all(stored)?;
    directory::make(fs.as_ref(), data_dir, cluster_id, *producer_ids)?;
    durable_file::remove_if_there(fs.as_ref(), &marker)?;
    site!("restore.done", durable_file::sync_parent(fs.as_ref(), &marker))?;
    Ok(restored(&copies.topics, None))
}

/// Nothing may stand where a data directory is to be.
fn check_target(fs: &dyn FileSystem, data_dir: &Path) -> Result<(), CopyError> {
    if !fs.exists(data_dir).map_err(LogError::io("open", data_dir))? {
        return Ok(());
    }
    let entries = fs.list(data_dir).map_err(LogError::io("list", data_dir))?;
    if entries.iter().all(|entry| entry.name == "lost+found") {
        return Ok(());
    }
    Err(CopyError::TargetNotEmpty { path: data_dir.to_owned() })
}

impl Log {
    /// Restores one topic of a backup or archive, by its name or id, under `name` or its own. It keeps its id
    /// unless a topic of this log has it. Blocks on the disk, for long; the log goes on meanwhile.
    ///
    /// # Errors
    /// [`LogError::TopicExists`], [`CopyError::TopicInternal`], or see [`CopyError`]; nothing is left of it then.
    pub fn restore_topic(
        &self,
        from: &Path,
        topic: &str,
        name: Option<&str>,
        progress: &CopyProgress,
    ) -> Result<Restored, CopyError> {
        let copies = Copies::open(Arc::clone(&self.inner.directory.fs), from)?;
        let mut topic = copies.topic(topic)?;
        let own_id = topic.topic_id;
        let name = name.unwrap_or(&topic.topic).to_owned();
        check_name(&name)?;
        if [&topic.topic, &name].into_iter().any(|it| is_internal(it)) {
            return Err(CopyError::TopicInternal { topic: topic.topic, name });
        }
        self.inner.reserve(&name)?;
        let restored = self.inner.restore(&copies, &mut topic, &name, progress);
        self.inner.restoring.lock().remove(&name);
        let topic_id = restored?;
        topic.topic = name;
        Ok(self::restored(&[topic], Some(topic_id).filter(|id| *id != own_id)))
    }
}

impl Inner {
    /// Keeps others from making a topic of that name meanwhile.
    fn reserve(&self, name: &str) -> Result<(), CopyError> {
        let catalog = self.catalog.lock();
        self.check_open()?;
        let exists = catalog.topics().contains_key(name);
        if exists || !self.restoring.lock().insert(name.to_owned()) {
            return Err(LogError::TopicExists { name: name.to_owned() }.into());
        }
        Ok(())
    }

    fn restore(
        &self,
        copies: &Copies,
        topic: &mut TopicManifest,
        name: &str,
        progress: &CopyProgress,
    ) -> Result<Uuid, CopyError> {
        let config = Arc::new(TopicConfig::parse(topic.config.clone())?);
        copies.verify(std::slice::from_ref(topic), progress)?;
        let partitions = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let id = self.free_id(topic.topic_id);
        let info = TopicInfo { name: name.to_owned(), id, partitions, config };
        let mut stored = ready(topic, id);
        stored.stage = Stage::Unfinished;
        {
            let mut catalog = self.catalog.lock();
            self.check_open()?;
            self.check_no_folders(&info, 0..info.partitions)?;
            catalog.put(name, stored.clone())?;
        }
        let put = put_partitions(copies, topic, |index| self.place(name, id, index), progress)
            .and_then(|()| Ok(site!("restored.topic", self.sync_dir())?));
        let mut catalog = self.catalog.lock();
        let installed = put.and_then(|()| {
            self.check_open()?;
            stored.stage = Stage::Ready;
            Ok(catalog.put(name, stored.clone())?)
        });
        if let Err(error) = installed {
            // What cannot be cleared away now is cleared away at the next start.
            let _ = catalog.abandon(name).and_then(|()| self.discard(&mut catalog, name, &stored));
            return Err(error);
        }
        let topic = self.topic(info);
        for partition in &topic.partitions {
            partition.open(Ended::Uncleanly, now_ms());
            partition.abort_open();
        }
        self.topics.write().insert(name.to_owned(), topic);
        drop(catalog);
        self.pass_known_producers();
        Ok(id)
    }

    /// Two topics with one id would be one to a client.
    fn free_id(&self, id: Uuid) -> Uuid {
        let taken = self.topics.read().values().any(|topic| topic.info.id == id);
        if taken { Uuid::new_v4() } else { id }
    }
}

impl Partition {
    /// Aborts the transactions that are open in a topic that was restored alone: the coordinator has forgotten
    /// them, and they would hold its readers back for ever.
    fn abort_open(&self) {
        for state in self.producer_states() {
            if state.transaction_start.is_none() {
                continue;
            }
            let marker = EndMarker {
                producer_id: state.producer_id,
                producer_epoch: state.producer_epoch,
                kind: MarkerKind::Abort,
                coordinator_epoch: state.coordinator_epoch.max(0),
            };
            let aborted = self.append_marker(marker, now_ms()).and_then(|_| self.flush());
            if let Err(error) = aborted {
                let (partition, producer) = (self.place.name(), state.producer_id);
                tracing::warn!(partition, producer, %error, "an open transaction of a restored topic could not be aborted");
            }
        }
    }
}

fn ready(topic: &TopicManifest, id: Uuid) -> Stored {
    Stored {
        id,
        partitions: i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX),
        stage: Stage::Ready,
        config: topic.config.clone(),
        growing_to: None,
    }
}

fn restored(topics: &[TopicManifest], new_id: Option<Uuid>) -> Restored {
    Restored {
        topics: topics.iter().map(|topic| topic.topic.clone()).collect(),
        bytes: topics.iter().map(TopicManifest::bytes).sum(),
        new_id,
    }
}

fn put_partitions(
    copies: &Copies,
    topic: &TopicManifest,
    place: impl Fn(i32) -> Place,
    progress: &CopyProgress,
) -> Result<(), CopyError> {
    for (index, partition) in topic.partitions.iter().enumerate() {
        let place = place(i32::try_from(index).unwrap_or(i32::MAX));
        let from = topic.partition_folder(&copies.dir, index);
        put_partition(partition, &from, &place, progress)?;
    }
    Ok(())
}

/// Makes the folder of a partition, under the next leader epoch.
fn put_partition(
    partition: &PartitionManifest,
    from: &Path,
    place: &Place,
    progress: &CopyProgress,
) -> Result<(), CopyError> {
    let fs = place.fs.as_ref();
    fs.create_dir(&place.dir).map_err(LogError::io("create", &place.dir))?;
    for copy in &partition.segments {
        put_back(fs, copy, from, &place.dir, progress)?;
    }
    if partition.segments.is_empty() {
        Segment::create(fs, &place.dir, partition.next_offset)?;
    }
    let mut epochs = Epochs::from_entries(partition.epochs.clone())
        .map_err(|reason| CopyError::damaged(from, reason))?;
    epochs.cut_start(partition.log_start);
    epochs.begin(partition.next_offset);
    place.put_epochs(&epochs)?;
    if partition.log_start > 0 {
        place.put_log_start(partition.log_start)?;
    }
    if partition.compacted_to > 0 {
        place.raise_compaction_point(partition.compacted_to)?;
    }
    // What was verified is not torn: a start that finds less is told, and cuts nothing.
    place.put_recovery_point(partition.next_offset)?;
    place.put_metadata()?;
    Ok(site!("restored.partition", place.sync_dir())?)
}
