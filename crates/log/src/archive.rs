//! The archive: closed segments are copied away before retention or DeleteRecords remove them.
//!
//! A folder a topic id, with a manifest that is replaced as a whole behind each copy. A segment is copied soon
//! after it was closed; what is to be removed and is not copied yet waits.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::copy_error::CopyError;
use crate::counters;
use crate::directory::make_private_dir;
use crate::durable_file;
use crate::fs::FileSystem;
use crate::manifest::{self, PartitionManifest, TopicManifest};
use crate::partition::Partition;
use crate::segment::Segment;
use crate::segment_copy::{CopyProgress, Extract, make_folder};
use crate::{LogError, TopicConfig};

/// Says whose archive a folder is.
pub(crate) const FILE: &str = "archive.json";

/// The manifest of a topic, in its folder.
pub(crate) const MANIFEST: &str = "manifest.json";

/// In the data directory: the archive that was begun, so that one that is gone is not begun again.
const BEGUN: &str = "archive-begun";

/// Where segments are kept, and of which topics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArchiveConfig {
    /// The folder; made when missing.
    pub dir: PathBuf,
    /// Whether topics that say nothing themselves are archived.
    pub by_default: bool,
}

/// Whose archive it is.
#[derive(Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) cluster_id: String,
}

/// The archive of a log.
#[derive(Debug)]
pub(crate) struct Archive {
    fs: Arc<dyn FileSystem>,
    config: ArchiveConfig,
    cluster_id: String,
    data_dir: PathBuf,
    /// Held while a segment is copied, so that one is copied at a time and once.
    copying: Mutex<()>,
    pub(crate) progress: CopyProgress,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// True once the folder was seen to be ours.
    opened: bool,
    topics: HashMap<Uuid, TopicManifest>,
    fault: Option<CopyError>,
}

impl Archive {
    pub(crate) fn new(
        fs: Arc<dyn FileSystem>,
        config: ArchiveConfig,
        cluster_id: String,
        data_dir: PathBuf,
    ) -> Self {
        let (copying, progress, state) =
            (Mutex::default(), CopyProgress::default(), Mutex::default());
        Self { fs, config, cluster_id, data_dir, copying, progress, state }
    }

    /// Whether a topic is to be archived. What compaction takes is not.
    pub(crate) fn keeps(&self, config: &TopicConfig) -> bool {
        !config.cleanup.compact && config.archive.unwrap_or(self.config.by_default)
    }

    /// Why it does not work now.
    pub(crate) fn fault(&self) -> Option<CopyError> {
        self.state.lock().fault.clone()
    }

    /// Behind the last offset of a partition that is in the archive; None if nothing is, or if that is not
    /// known.
    pub(crate) fn archived_to(&self, topic_id: Uuid, index: i32) -> Option<i64> {
        let state = self.state.lock();
        let partitions = &state.topics.get(&topic_id)?.partitions;
        let partition = partitions.get(usize::try_from(index).ok()?)?;
        partition.segments.last().map(|segment| segment.next_offset)
    }

    /// Names of archived topics in which records are missing between others.
    pub(crate) fn gaps(&self) -> Vec<String> {
        let state = self.state.lock();
        let gap =
            |partition: &PartitionManifest| partition.newest_run().len() < partition.segments.len();
        let with_gap = state.topics.values().filter(|topic| topic.partitions.iter().any(gap));
        with_gap.map(|topic| topic.topic.clone()).collect()
    }

    /// Copies the closed segments of a partition that end at or below `end` and are not there yet; answers
    /// how many. Blocks on the disk.
    ///
    /// # Errors
    /// Of the disk, or where the folder is not ours; [`Archive::fault`] says it until it works again.
    pub(crate) fn take(&self, partition: &Partition, end: i64) -> Result<usize, CopyError> {
        let taken = self.open(partition.place.topic_id).and_then(|()| {
            let mut taken = 0;
            while self.take_next(partition, end)? {
                taken += 1;
            }
            Ok(taken)
        });
        let fault = taken.as_ref().err().cloned();
        if let Some(error) = &fault {
            self.tell(error);
        }
        self.state.lock().fault = fault;
        taken
    }

    /// Says once that it does not work.
    fn tell(&self, error: &CopyError) {
        counters::archive_failed();
        let before = self.state.lock().fault.as_ref().map(ToString::to_string);
        if before != Some(error.to_string()) {
            let dir = self.config.dir.display();
            tracing::error!(code = error.code(), %error, %dir, "the archive does not work: what retention would remove waits for it");
        }
    }

    /// Copies the first segment that is due; false if none is.
    fn take_next(&self, partition: &Partition, end: i64) -> Result<bool, CopyError> {
        let _copying = self.copying.lock();
        let place = &partition.place;
        let to = self.archived_to(place.topic_id, place.index).unwrap_or(0);
        let Some(segment) = first_due(partition, to, end) else { return Ok(false) };
        let Some(extract) = Extract::whole(&segment)? else { return Ok(false) };
        let topic = TopicManifest::folder(&self.config.dir, place.topic_id);
        let folder = topic.join(place.index.to_string());
        for dir in [&topic, &folder] {
            make_folder(self.fs.as_ref(), dir)?;
            site!("archive.folder", durable_file::sync_parent(self.fs.as_ref(), dir))?;
        }
        let copy = extract.copy(self.fs.as_ref(), &place.dir, &folder, &self.progress)?;
        let bytes = copy.bytes();
        let mut manifest = self.manifest_of(partition);
        let index = usize::try_from(place.index).unwrap_or(0);
        if let Some(kept) = manifest.partitions.get_mut(index) {
            kept.next_offset = copy.next_offset;
            let epochs = partition.epochs.read().below(copy.next_offset);
            kept.epochs = merged(&kept.epochs, &epochs);
            kept.segments.push(copy);
        }
        manifest::write(self.fs.as_ref(), &topic.join(MANIFEST), &manifest)?;
        self.state.lock().topics.insert(place.topic_id, manifest);
        counters::archived(bytes);
        Ok(true)
    }

    fn manifest_of(&self, partition: &Partition) -> TopicManifest {
        let place = &partition.place;
        let known = self.state.lock().topics.get(&place.topic_id).cloned();
        let mut manifest = known.unwrap_or_else(|| TopicManifest {
            cluster_id: self.cluster_id.clone(),
            topic: place.topic.clone(),
            topic_id: place.topic_id,
            config: partition.config().overrides().clone(),
            partitions: Vec::new(),
        });
        manifest.config = partition.config().overrides().clone();
        let empty = PartitionManifest { epochs: vec![(0, 0)], ..Default::default() };
        manifest.partitions.resize(partition.siblings.max(manifest.partitions.len()), empty);
        manifest
    }

    /// Sees that the folder is ours, and reads what it has of a topic.
    fn open(&self, topic_id: Uuid) -> Result<(), CopyError> {
        let opened = self.state.lock().opened;
        if !opened {
            self.claim()?;
            self.state.lock().opened = true;
        }
        if self.state.lock().topics.contains_key(&topic_id) {
            return Ok(());
        }
        let path = TopicManifest::folder(&self.config.dir, topic_id).join(MANIFEST);
        if let Some(manifest) = manifest::read::<TopicManifest>(self.fs.as_ref(), &path)? {
            manifest.check(&path)?;
            self.state.lock().topics.insert(topic_id, manifest);
        }
        Ok(())
    }

    fn claim(&self) -> Result<(), CopyError> {
        let (fs, dir) = (self.fs.as_ref(), &self.config.dir);
        let (path, begun) = (dir.join(FILE), self.data_dir.join(BEGUN));
        let ours = &self.cluster_id;
        if let Some(Owner { cluster_id }) = manifest::read(fs, &path)? {
            if cluster_id == *ours {
                return Ok(());
            }
            let (found, ours) = (cluster_id, ours.clone());
            return Err(CopyError::OtherCluster { path: dir.clone(), found, ours });
        }
        let name = dir.to_string_lossy().into_owned();
        if durable_file::read_text(fs, &begun)?.is_some_and(|text| text.trim_end() == name) {
            return Err(CopyError::ArchiveGone { path: dir.clone(), file: path });
        }
        make_private_dir(fs, dir)?;
        check_empty(fs, dir, "archive")?;
        manifest::write(fs, &path, &Owner { cluster_id: ours.clone() })?;
        Ok(durable_file::replace(fs, &begun, format!("{name}\n").as_bytes())?)
    }
}

/// Refuses a folder that holds something else.
pub(crate) fn check_empty(
    fs: &dyn FileSystem,
    dir: &Path,
    wanted: &'static str,
) -> Result<(), CopyError> {
    let entries = fs.list(dir).map_err(LogError::io("list", dir))?;
    // What a volume has at its root, and what we leave half written.
    let ours = |name: &str| name == "lost+found" || name == ".lock" || name.ends_with(".tmp");
    if entries.iter().all(|entry| ours(&entry.name)) {
        return Ok(());
    }
    Err(CopyError::Foreign { path: dir.to_owned(), wanted })
}

/// The first closed segment that begins at or above `from` and ends at or below `end`.
fn first_due(partition: &Partition, from: i64, end: i64) -> Option<Arc<Segment>> {
    let segments = partition.segments.read();
    let closed = segments.split_last()?.1;
    let due =
        |segment: &&Arc<Segment>| segment.base_offset >= from && segment.tip().next_offset <= end;
    closed.iter().find(due).cloned()
}

/// The epochs that were known and those that are: the log forgets where old ones began.
fn merged(kept: &[(i32, i64)], now: &[(i32, i64)]) -> Vec<(i32, i64)> {
    let mut epochs: BTreeMap<i32, i64> = now.iter().copied().collect();
    for (epoch, start) in kept {
        epochs.entry(*epoch).and_modify(|now| *now = (*now).min(*start)).or_insert(*start);
    }
    let mut rising: Vec<(i32, i64)> = Vec::new();
    for (epoch, start) in epochs {
        // One that ended before it had a record gives way to the next.
        while rising.last().is_some_and(|(_, before)| *before >= start) {
            rising.pop();
        }
        rising.push((epoch, start));
    }
    rising
}

impl Partition {
    /// Where the archive holds removal back: nothing at or above that offset goes. None if it does not.
    pub(crate) fn archive_bound(&self, config: &TopicConfig) -> Option<i64> {
        let Some(archive) = &self.archive else {
            // The topic is to be archived, and there is no archive.
            let wanted = config.archive == Some(true) && !config.cleanup.compact;
            return wanted.then_some(0);
        };
        let to = || archive.archived_to(self.place.topic_id, self.place.index).unwrap_or(0);
        archive.keeps(config).then(to)
    }

    /// Copies what a removal below `offset` would take, before it is taken.
    pub(crate) fn archive_below(&self, offset: i64) -> Result<(), LogError> {
        let config = self.config();
        let Some(bound) = self.archive_bound(&config) else { return Ok(()) };
        let ends = |segment: &Arc<Segment>| {
            let next = segment.tip().next_offset;
            next <= offset && next > bound
        };
        let closed = |segments: &[Arc<Segment>]| {
            segments.split_last().is_some_and(|(_, closed)| closed.iter().any(ends))
        };
        if !closed(&self.segments.read()) {
            return Ok(());
        }
        let waits =
            |reason: String| LogError::ArchiveWaits { partition: self.place.name(), reason };
        let Some(archive) = &self.archive else {
            return Err(waits("no archive.dir is set".to_owned()));
        };
        archive.take(self, offset).map(|_| ()).map_err(|error| waits(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_that_the_log_forgot_are_kept() {
        assert_eq!(merged(&[(0, 0)], &[(0, 0), (1, 9)]), [(0, 0), (1, 9)]);
        assert_eq!(merged(&[(0, 0), (1, 9)], &[(1, 20), (2, 30)]), [(0, 0), (1, 9), (2, 30)]);
        assert_eq!(merged(&[(0, 0)], &[(3, 0)]), [(3, 0)]);
    }
}
