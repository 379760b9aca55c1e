//! Reading what a backup or an archive holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::LogError;
use crate::archive::{self, MANIFEST, Owner};
use crate::backup::{self, BackupManifest};
use crate::copy_error::CopyError;
use crate::fs::FileSystem;
use crate::manifest::{self, TopicManifest};
use crate::segment_copy::{CopyProgress, verify};

/// The copies in a folder: a whole backup, or an archive.
#[derive(Debug)]
pub(crate) struct Copies {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) topics: Vec<TopicManifest>,
}

/// What sort of copies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Of all topics at one moment.
    Backup { cluster_id: String, producer_ids: i64 },
    /// Of closed segments.
    Archive,
}

impl Copies {
    pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, CopyError> {
        let exists = |name: &str| {
            let path = dir.join(name);
            fs.exists(&path).map_err(LogError::io("open", &path))
        };
        let path = dir.join(backup::FILE);
        if let Some(backup) = manifest::read::<BackupManifest>(fs.as_ref(), &path)? {
            let BackupManifest { cluster_id, producer_ids, topics, .. } = backup;
            let kind = Kind::Backup { cluster_id, producer_ids };
            return Self { fs, dir: dir.to_owned(), kind, topics }.checked(&path);
        }
        if exists(backup::UNFINISHED)? {
            return Err(CopyError::Unfinished { path: dir.to_owned() });
        }
        let path = dir.join(archive::FILE);
        if manifest::read::<Owner>(fs.as_ref(), &path)?.is_none() {
            return Err(CopyError::Missing { path: dir.to_owned() });
        }
        let topics = archived(fs.as_ref(), dir)?;
        Self { fs, dir: dir.to_owned(), kind: Kind::Archive, topics }.checked(&path)
    }

    fn checked(self, path: &Path) -> Result<Self, CopyError> {
        for topic in &self.topics {
            topic.check(path)?;
        }
        Ok(self)
    }

    /// The topic of that name or id. Of an archive, in which records may be missing, what follows the last
    /// gap.
    pub(crate) fn topic(&self, asked: &str) -> Result<TopicManifest, CopyError> {
        let is =
            |topic: &&TopicManifest| topic.topic == asked || topic.topic_id.to_string() == asked;
        let found: Vec<&TopicManifest> = self.topics.iter().filter(is).collect();
        match found.as_slice() {
            [] => Err(CopyError::TopicMissing { path: self.dir.clone(), topic: asked.to_owned() }),
            [topic] if self.kind == Kind::Archive => Ok(newest(topic)),
            [topic] => Ok((*topic).clone()),
            several => {
                let ids: Vec<Uuid> = several.iter().map(|topic| topic.topic_id).collect();
                let (path, topic) = (self.dir.clone(), asked.to_owned());
                Err(CopyError::TopicAmbiguous { path, topic, ids })
            }
        }
    }

    /// Reads every file of topics and compares it with what was written.
    pub(crate) fn verify(
        &self,
        topics: &[TopicManifest],
        progress: &CopyProgress,
    ) -> Result<(), CopyError> {
        // Once now, and once more when they are put in place.
        progress.expect(topics.iter().map(TopicManifest::bytes).sum::<u64>() * 2);
        for topic in topics {
            for (index, partition) in topic.partitions.iter().enumerate() {
                let folder = topic.partition_folder(&self.dir, index);
                for copy in &partition.segments {
                    verify(self.fs.as_ref(), copy, &folder, progress)?;
                }
            }
        }
        Ok(())
    }
}

fn archived(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<TopicManifest>, CopyError> {
    let mut topics = Vec::new();
    for entry in fs.list(dir).map_err(LogError::io("list", dir))? {
        if let Ok(id) = Uuid::parse_str(&entry.name) {
            let path = TopicManifest::folder(dir, id).join(MANIFEST);
            topics.extend(manifest::read::<TopicManifest>(fs, &path)?);
        }
    }
    Ok(topics)
}

fn newest(topic: &TopicManifest) -> TopicManifest {
    let mut topic = topic.clone();
    for partition in &mut topic.partitions {
        let run = partition.newest_run().to_vec();
        let first = run.first().map_or(partition.next_offset, |first| first.base_offset);
        partition.log_start = partition.log_start.max(first);
        partition.segments = run;
    }
    topic
}
