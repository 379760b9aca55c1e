//! A backup: all that can be seen of a log at one moment, in the format of the archive.
//!
//! The moment is one for all partitions, so a backup is what a power loss at that moment would have left:
//! an offset that was stored stands in it only together with the records that it is stored behind. Internal
//! topics are copied first. What an earlier backup into the same folder has is not copied again, and that one
//! stands until the new one is whole.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::archive::{self, check_empty};
use crate::copy_error::CopyError;
use crate::directory::make_private_dir;
use crate::durable_file;
use crate::fs::{FileSystem, OpenMode};
use crate::log::{Inner, Topic};
use crate::manifest::{self, PartitionManifest, SegmentManifest, TopicManifest};
use crate::partition::Partition;
use crate::segment::Segment;
use crate::segment_copy::{CopyProgress, Extract, is_there, make_folder};
use crate::wall_clock::now_ms;
use crate::{Log, LogError, TopicInfo, Watermarks};

/// Lists what a whole backup consists of.
pub(crate) const FILE: &str = "backup.json";

/// Stands in the folder until the first backup is whole.
pub(crate) const UNFINISHED: &str = "backup-unfinished";

const LOCK: &str = ".lock";

/// A whole backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct BackupManifest {
    pub(crate) cluster_id: String,
    /// The moment, in milliseconds since 1970.
    pub(crate) made_at_ms: i64,
    /// The first producer id that was never given.
    pub(crate) producer_ids: i64,
    pub(crate) topics: Vec<TopicManifest>,
}

/// What a backup has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupSummary {
    /// Topics in it.
    pub topics: usize,
    /// Partitions in it.
    pub partitions: usize,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Bytes that were copied; the rest was there.
    pub copied: u64,
    /// Its moment, in milliseconds since 1970.
    pub made_at_ms: i64,
}

/// A partition at the moment of the backup.
struct Instant {
    topic: TopicInfo,
    partitions: Vec<(Arc<Partition>, Watermarks)>,
}

/// What is to be copied of a partition.
struct Plan {
    extracts: Vec<Extract>,
    manifest: PartitionManifest,
}

impl Log {
    /// Copies all that can be seen into a folder, which is made when missing. Blocks on the disk, for long.
    ///
    /// # Errors
    /// See [`CopyError`]. An earlier backup in the folder stands as it was then.
    pub fn backup(&self, dir: &Path, progress: &CopyProgress) -> Result<BackupSummary, CopyError> {
        self.inner.check_open()?;
        let fs = Arc::clone(&self.inner.directory.fs);
        let target = Target::open(fs, dir, self.cluster_id())?;
        let made_at_ms = now_ms();
        let producer_ids = self.inner.producer_ids.lock().end;
        let plans = target.plan(self.inner.instant(), progress)?;
        let (mut topics, mut copied) = (Vec::with_capacity(plans.len()), 0);
        for (instant, plans) in plans {
            let cluster_id = self.cluster_id().to_owned();
            let topic = target.copy(cluster_id, &instant, plans, &mut copied, progress)?;
            topics.push(topic);
        }
        let summary = BackupSummary {
            topics: topics.len(),
            partitions: topics.iter().map(|topic| topic.partitions.len()).sum(),
            bytes: topics.iter().map(TopicManifest::bytes).sum(),
            copied,
            made_at_ms,
        };
        let cluster_id = self.cluster_id().to_owned();
        target.finish(&BackupManifest { cluster_id, made_at_ms, producer_ids, topics })?;
        Ok(summary)
    }
}

impl Inner {
    /// All topics at one moment, internal ones first.
    fn instant(&self) -> Vec<Instant> {
        let mut topics: Vec<Topic> = self.topics.read().values().cloned().collect();
        topics.sort_by_key(|topic| (!is_internal(&topic.info.name), topic.info.name.clone()));
        let partitions = || topics.iter().flat_map(|topic| &topic.partitions);
        // All marks are held together: nothing becomes visible in between.
        let held: Vec<_> = partitions().map(|partition| partition.hold_marks()).collect();
        let mut marks: Vec<Watermarks> = held.iter().map(|marks| marks.watermarks()).collect();
        drop(held);
        let at = |topic: Topic| {
            let rest = marks.split_off(topic.partitions.len());
            let now = std::mem::replace(&mut marks, rest);
            Instant {
                topic: topic.info,
                partitions: topic.partitions.into_iter().zip(now).collect(),
            }
        };
        topics.into_iter().map(at).collect()
    }
}

/// Positions stand in internal topics, and the records that they point to in the others.
pub(crate) fn is_internal(topic: &str) -> bool {
    topic.starts_with("highwater.") || topic.starts_with("__")
}

/// The folder of a backup, ours while this lives.
struct Target {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// What the backup before this one has.
    before: HashMap<(Uuid, usize), Vec<SegmentManifest>>,
    _lock: Box<dyn crate::fs::Lock>,
}

impl Target {
    fn open(fs: Arc<dyn FileSystem>, dir: &Path, cluster_id: &str) -> Result<Self, CopyError> {
        make_private_dir(fs.as_ref(), dir)?;
        let lock = fs.lock(&dir.join(LOCK)).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => CopyError::Busy { path: dir.to_owned() },
            _ => LogError::io("lock", dir)(error).into(),
        })?;
        let mut before = HashMap::new();
        match manifest::read::<BackupManifest>(fs.as_ref(), &dir.join(FILE))? {
            Some(backup) if backup.cluster_id != cluster_id => {
                let (found, ours) = (backup.cluster_id, cluster_id.to_owned());
                return Err(CopyError::OtherCluster { path: dir.to_owned(), found, ours });
            }
            Some(backup) => {
                for topic in backup.topics {
                    topic.check(&dir.join(FILE))?;
                    let partitions = topic.partitions.into_iter().enumerate();
                    before.extend(
                        partitions.map(|(index, kept)| ((topic.topic_id, index), kept.segments)),
                    );
                }
            }
            None => begin(fs.as_ref(), dir)?,
        }
        Ok(Self { fs, dir: dir.to_owned(), before, _lock: lock })
    }

    /// What is to be copied of each topic; its bytes are counted.
    fn plan(
        &self,
        instants: Vec<Instant>,
        progress: &CopyProgress,
    ) -> Result<Vec<(Instant, Vec<Plan>)>, CopyError> {
        let mut plans = Vec::with_capacity(instants.len());
        for instant in instants {
            let planned: Vec<Plan> = instant
                .partitions
                .iter()
                .map(|(partition, now)| Plan::of(partition, now))
                .collect::<Result<_, _>>()?;
            let extracts = planned.iter().flat_map(|plan| &plan.extracts);
            progress.expect(extracts.map(|extract| extract.bytes).sum());
            plans.push((instant, planned));
        }
        Ok(plans)
    }

    fn copy(
        &self,
        cluster_id: String,
        instant: &Instant,
        plans: Vec<Plan>,
        copied: &mut u64,
        progress: &CopyProgress,
    ) -> Result<TopicManifest, CopyError> {
        let TopicInfo { name, id, config, .. } = &instant.topic;
        let mut topic = TopicManifest {
            cluster_id,
            topic: name.clone(),
            topic_id: *id,
            config: config.overrides().clone(),
            partitions: Vec::with_capacity(plans.len()),
        };
        let folder = TopicManifest::folder(&self.dir, *id);
        make_folder(self.fs.as_ref(), &folder)?;
        for (index, plan) in plans.into_iter().enumerate() {
            let into = topic.partition_folder(&self.dir, index);
            make_folder(self.fs.as_ref(), &into)?;
            let mut partition = plan.manifest;
            let place = instant.partitions.get(index).map(|(partition, _)| &partition.place);
            let from = place.map_or_else(PathBuf::new, |place| place.dir.clone());
            for extract in plan.extracts {
                let segment = match self.known(*id, index, &extract, &into)? {
                    Some(known) => {
                        progress.pass(extract.bytes)?;
                        known
                    }
                    None => {
                        let made = extract.copy(self.fs.as_ref(), &from, &into, progress)?;
                        *copied += made.files.iter().map(|file| file.bytes).sum::<u64>();
                        made
                    }
                };
                partition.segments.push(segment);
            }
            topic.partitions.push(partition);
        }
        site!("backup.topic", self.fs.sync_dir(&folder)).map_err(LogError::io("sync", &folder))?;
        Ok(topic)
    }

    /// What the backup before has of a segment, if all of it is there.
    fn known(
        &self,
        id: Uuid,
        index: usize,
        extract: &Extract,
        folder: &Path,
    ) -> Result<Option<SegmentManifest>, CopyError> {
        let known = self.before.get(&(id, index)).into_iter().flatten();
        let Some(known) = known.into_iter().find(|known| extract.is(known)) else {
            return Ok(None);
        };
        let whole = is_there(self.fs.as_ref(), known, folder)?;
        Ok(whole.then(|| known.clone()))
    }

    /// From here on this is the backup; what it has not goes.
    fn finish(&self, backup: &BackupManifest) -> Result<(), CopyError> {
        let fs = self.fs.as_ref();
        site!("backup.folder", fs.sync_dir(&self.dir)).map_err(LogError::io("sync", &self.dir))?;
        manifest::write(fs, &self.dir.join(FILE), backup)?;
        durable_file::remove_if_there(fs, &self.dir.join(UNFINISHED))?;
        if let Err(error) = self.clear(backup) {
            tracing::warn!(dir = %self.dir.display(), %error, "what older backups left cannot be removed");
        }
        Ok(())
    }

    fn clear(&self, backup: &BackupManifest) -> Result<(), LogError> {
        let mut named = BTreeSet::new();
        for topic in &backup.topics {
            named.insert(TopicManifest::folder(&self.dir, topic.topic_id));
            for (index, partition) in topic.partitions.iter().enumerate() {
                let folder = topic.partition_folder(&self.dir, index);
                named.extend(partition.segments.iter().map(|copy| folder.join(copy.folder())));
                named.insert(folder);
            }
        }
        self.clear_below(&self.dir, 0, &named)
    }

    /// Topics, partitions and copies lie one below the other; only what looks like one is touched.
    fn clear_below(
        &self,
        dir: &Path,
        depth: usize,
        named: &BTreeSet<PathBuf>,
    ) -> Result<(), LogError> {
        let fs = self.fs.as_ref();
        for entry in fs.list(dir).map_err(LogError::io("list", dir))? {
            let path = dir.join(&entry.name);
            let ours = match depth {
                0 => entry.is_dir && Uuid::parse_str(&entry.name).is_ok(),
                1 | 2 => entry.is_dir,
                _ => !entry.is_dir,
            };
            let kept = named.contains(&path);
            if !ours || (depth == 2 && kept) {
                continue;
            }
            if entry.is_dir {
                self.clear_below(&path, depth + 1, named)?;
                if !kept {
                    fs.remove_dir(&path).map_err(LogError::io("remove", &path))?;
                }
            } else {
                durable_file::remove_if_there(fs, &path)?;
            }
        }
        Ok(())
    }
}

/// Takes a folder that has no backup yet.
fn begin(fs: &dyn FileSystem, dir: &Path) -> Result<(), CopyError> {
    let marker = dir.join(UNFINISHED);
    if fs.exists(&marker).map_err(LogError::io("open", &marker))? {
        return Ok(());
    }
    if fs.exists(&dir.join(archive::FILE)).map_err(LogError::io("open", dir))? {
        return Err(CopyError::Foreign { path: dir.to_owned(), wanted: "backup" });
    }
    check_empty(fs, dir, "backup")?;
    fs.open(&marker, OpenMode::Create).map_err(LogError::io("create", &marker))?;
    Ok(site!("backup.begun", fs.sync_dir(dir)).map_err(LogError::io("sync", dir))?)
}

impl Plan {
    fn of(partition: &Partition, now: &Watermarks) -> Result<Self, CopyError> {
        partition.check_readable()?;
        let segments = partition.segments.read().clone();
        let end = now.high_watermark;
        let mut extracts = Vec::new();
        for (number, segment) in segments.iter().enumerate() {
            let next = segments.get(number + 1).map(|next| next.base_offset);
            extracts.extend(extract(segment, next, end)?);
        }
        let first = extracts.first().map(Extract::base_offset);
        let log_start = first.map_or(end, |first| first.max(now.log_start));
        let next_offset = extracts.last().map_or(end, |last| last.next_offset);
        let manifest = PartitionManifest {
            log_start,
            next_offset,
            compacted_to: partition.place.read_compaction_point()?.min(next_offset),
            epochs: partition.epochs.read().up_to(next_offset),
            segments: Vec::new(),
        };
        Ok(Self { extracts, manifest })
    }
}

/// What lies below `end` of a segment, behind which the one from `next` on begins.
fn extract(
    segment: &Arc<Segment>,
    next: Option<i64>,
    end: i64,
) -> Result<Option<Extract>, LogError> {
    match next {
        _ if segment.base_offset >= end => Ok(None),
        Some(next) if next <= end => Extract::whole(segment),
        _ => Extract::below(segment, end),
    }
}
