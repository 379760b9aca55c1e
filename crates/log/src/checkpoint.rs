//! The small files beside the segments: leader epochs, log start, topic id, producers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::LogError;
use crate::durable_file;
use crate::epochs::Epochs;
use crate::file_name::{self, FileKind};
use crate::fs::FileSystem;
use crate::producer_snapshot;
use crate::producers::Producers;

const EPOCHS: &str = "leader-epoch-checkpoint";
const LOG_START: &str = "log-start-offset-checkpoint";
const METADATA: &str = "partition.metadata";

/// Where a partition lives.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) topic: String,
    pub(crate) index: i32,
    pub(crate) topic_id: Uuid,
}

impl Place {
    /// Topic and number, as the folder is named.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.topic, self.index)
    }

    pub(crate) fn sync_dir(&self) -> Result<(), LogError> {
        site!("place.folder", self.fs.sync_dir(&self.dir)).map_err(LogError::io("sync", &self.dir))
    }

    /// The leader epochs. They are safe once the folder was synced.
    pub(crate) fn put_epochs(&self, epochs: &Epochs) -> Result<(), LogError> {
        self.put(EPOCHS, &epochs.to_text())
    }

    pub(crate) fn read_epochs(&self) -> Result<Epochs, LogError> {
        let (path, text) = self.read(EPOCHS)?;
        let text = text.ok_or_else(|| damaged(&path, "it is missing"))?;
        Epochs::parse(&text).map_err(|reason| damaged(&path, reason))
    }

    /// Kafka's offset checkpoint, with this partition alone. It is safe once the folder was synced.
    pub(crate) fn put_log_start(&self, offset: i64) -> Result<(), LogError> {
        self.put_offset(LOG_START, offset)
    }

    /// The log start; 0 as long as nothing was removed.
    pub(crate) fn read_log_start(&self) -> Result<i64, LogError> {
        Ok(self.read_offset(LOG_START)?.unwrap_or(0))
    }

    pub(crate) fn put_offset(&self, name: &str, offset: i64) -> Result<(), LogError> {
        self.put(name, &format!("0\n1\n{} {} {offset}\n", self.topic, self.index))
    }

    /// What an offset checkpoint says of this partition, if it is there.
    pub(crate) fn read_offset(&self, name: &str) -> Result<Option<i64>, LogError> {
        let (path, text) = self.read(name)?;
        let Some(text) = text else { return Ok(None) };
        text.strip_prefix(&format!("0\n1\n{} {} ", self.topic, self.index))
            .and_then(|offset| offset.trim_end().parse().ok())
            .map(Some)
            .ok_or_else(|| damaged(&path, "it is no offset checkpoint of this partition"))
    }

    /// The snapshot of the producers at an offset. It is safe once the folder was synced.
    pub(crate) fn put_snapshot(&self, producers: &Producers, offset: i64) -> Result<(), LogError> {
        let path = file_name::path(&self.dir, offset, FileKind::Snapshot);
        durable_file::put(self.fs.as_ref(), &path, &producer_snapshot::encode(producers))
    }

    /// The topic id. It is safe once the folder was synced.
    pub(crate) fn put_metadata(&self) -> Result<(), LogError> {
        self.put(METADATA, &self.metadata())
    }

    /// Refuses a folder that belongs to another topic of the same name.
    pub(crate) fn check_metadata(&self) -> Result<(), LogError> {
        let (path, text) = self.read(METADATA)?;
        if text.as_deref() == Some(self.metadata().as_str()) {
            return Ok(());
        }
        Err(damaged(&path, format!("it does not name topic id {}", kafka_uuid(self.topic_id))))
    }

    fn metadata(&self) -> String {
        format!("version: 0\ntopic_id: {}\n", kafka_uuid(self.topic_id))
    }

    fn put(&self, name: &str, text: &str) -> Result<(), LogError> {
        durable_file::put(self.fs.as_ref(), &self.dir.join(name), text.as_bytes())
    }

    fn read(&self, name: &str) -> Result<(PathBuf, Option<String>), LogError> {
        let path = self.dir.join(name);
        let text = durable_file::read_text(self.fs.as_ref(), &path)?;
        Ok((path, text))
    }
}

/// Kafka writes ids as 22 characters of URL-safe base64.
pub(crate) fn kafka_uuid(id: Uuid) -> String {
    URL_SAFE_NO_PAD.encode(id.as_bytes())
}

fn damaged(path: &Path, reason: impl Into<String>) -> LogError {
    LogError::Damaged { path: path.to_owned(), position: 0, reason: reason.into() }
}
