//! The list of topics with their settings: one file of ours in the data directory, replaced as a whole.
//!
//! A topic stands in it as unfinished while its folders are being made or removed, so that a start after
//! a crash knows what to clear away.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::durable_file;
use crate::fs::FileSystem;
use crate::{LogError, Overrides, TopicConfig, TopicInfo};

pub(crate) const FILE: &str = "topics.json";
const FORMAT: u32 = 1;

/// Whether a topic is whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    Ready,
    /// Its folders are being made or removed.
    Unfinished,
}

/// A topic as it is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) id: Uuid,
    pub(crate) partitions: i32,
    pub(crate) stage: Stage,
    pub(crate) config: Overrides,
    /// How many partitions it is to have, while the folders of new ones are being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) growing_to: Option<i32>,
}

impl Stored {
    pub(crate) fn info(&self, name: &str) -> Result<TopicInfo, LogError> {
        Ok(TopicInfo {
            name: name.to_owned(),
            id: self.id,
            partitions: self.partitions,
            config: Arc::new(TopicConfig::parse(self.config.clone())?),
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    format: u32,
    topics: BTreeMap<String, Stored>,
}

/// The catalog. A change that fails before the file is replaced was not made; one that fails after it
/// was made, but a power loss may take it back.
#[derive(Debug)]
pub(crate) struct Catalog {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    topics: BTreeMap<String, Stored>,
}

impl Catalog {
    /// Reads the list.
    ///
    /// # Errors
    /// [`LogError::Damaged`] also when the list is missing where partitions stand: they would be taken for
    /// leftovers. Or of the disk.
    pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, LogError> {
        let path = dir.join(FILE);
        let topics = match durable_file::read(fs.as_ref(), &path)? {
            None => none_of(fs.as_ref(), dir, &path)?,
            Some(bytes) => parse(&path, &bytes)?,
        };
        Ok(Self { fs, path, topics })
    }

    pub(crate) fn topics(&self) -> &BTreeMap<String, Stored> {
        &self.topics
    }

    /// Puts a topic in, or in place of the one of that name.
    pub(crate) fn put(&mut self, name: &str, topic: Stored) -> Result<(), LogError> {
        let mut topics = self.topics.clone();
        topics.insert(name.to_owned(), topic);
        self.store(topics)
    }

    /// Puts topics in, all or none.
    pub(crate) fn put_all(&mut self, added: Vec<(String, Stored)>) -> Result<(), LogError> {
        let mut topics = self.topics.clone();
        topics.extend(added);
        self.store(topics)
    }

    /// Takes a topic for unfinished from here on, also if that cannot be stored now.
    pub(crate) fn abandon(&mut self, name: &str) -> Result<(), LogError> {
        if let Some(topic) = self.topics.get_mut(name) {
            topic.stage = Stage::Unfinished;
        }
        self.store(self.topics.clone())
    }

    pub(crate) fn remove(&mut self, name: &str) -> Result<(), LogError> {
        let mut topics = self.topics.clone();
        topics.remove(name);
        self.store(topics)
    }

    fn store(&mut self, topics: BTreeMap<String, Stored>) -> Result<(), LogError> {
        let content = Content { format: FORMAT, topics };
        let bytes = serde_json::to_vec_pretty(&content)
            .map_err(|error| damaged(&self.path, &error.to_string()))?;
        durable_file::put(self.fs.as_ref(), &self.path, &bytes)?;
        // A start after a kill finds this, also if the folder cannot be synced now.
        self.topics = content.topics;
        site!("catalog.folder", durable_file::sync_parent(self.fs.as_ref(), &self.path))
    }
}

/// No topics, in a data directory that holds no partition either.
fn none_of(
    fs: &dyn FileSystem,
    dir: &Path,
    path: &Path,
) -> Result<BTreeMap<String, Stored>, LogError> {
    let entries = fs.list(dir).map_err(LogError::io("list", dir))?;
    match entries.into_iter().find(|entry| entry.is_dir && is_partition(&entry.name)) {
        None => Ok(BTreeMap::new()),
        Some(found) => Err(damaged(path, &format!("it is missing, while {} stands", found.name))),
    }
}

/// `TOPIC-NUMBER`.
fn is_partition(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, number)| number.parse::<u32>().is_ok())
}

pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<BTreeMap<String, Stored>, LogError> {
    let content: Content =
        serde_json::from_slice(bytes).map_err(|error| damaged(path, &error.to_string()))?;
    if content.format != FORMAT {
        return Err(LogError::OtherVersion {
            path: path.to_owned(),
            found: content.format.to_string(),
            known: FORMAT,
        });
    }
    Ok(content.topics)
}

fn damaged(path: &Path, reason: &str) -> LogError {
    LogError::Damaged { path: path.to_owned(), position: 0, reason: reason.to_owned() }
}
