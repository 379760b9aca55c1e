//! More partitions for a topic that stands.
//!
//! The catalog names the folders before they are made: a start after a crash in between clears them away.

use std::sync::Arc;

use crate::catalog::{Catalog, Stored};
use crate::log::{Inner, now_open, remove_folder, unknown};
use crate::partition::Partition;
use crate::topic::MAX_PARTITIONS;
use crate::{Log, LogError, TopicInfo};

impl Log {
    /// Raises the number of a topic's partitions to `count`; safe on disk when this returns.
    ///
    /// # Errors
    /// [`LogError::UnknownPartition`], [`LogError::InvalidPartitions`] if it would not grow or be too
    /// many, or of the disk: then it has the partitions it had.
    pub fn add_partitions(&self, name: &str, count: i32) -> Result<TopicInfo, LogError> {
        let mut catalog = self.inner.catalog.lock();
        self.inner.check_open()?;
        let mut stored = self.inner.stored(&catalog, name)?;
        if !(stored.partitions + 1..=MAX_PARTITIONS).contains(&count) {
            return Err(LogError::InvalidPartitions { asked: count, most: MAX_PARTITIONS });
        }
        self.inner.clear_growth(&mut catalog, name, &mut stored)?;
        let info = TopicInfo { partitions: count, ..stored.info(name)? };
        let added = self.inner.grow(&mut catalog, &info, &mut stored).inspect_err(|_| {
            // What cannot be cleared away now is cleared away at the next attempt or start.
            let _ = self.inner.clear_growth(&mut catalog, name, &mut stored.clone());
        })?;
        for partition in &added {
            now_open(partition);
        }
        let mut topics = self.inner.topics.write();
        let topic = topics.get_mut(name).ok_or_else(|| unknown(name))?;
        topic.info.partitions = count;
        topic.partitions.extend(added);
        Ok(topic.info.clone())
    }
}

impl Inner {
    /// Makes the folders that `info` has more than `stored`, and notes that they are there.
    fn grow(
        &self,
        catalog: &mut Catalog,
        info: &TopicInfo,
        stored: &mut Stored,
    ) -> Result<Vec<Arc<Partition>>, LogError> {
        let new = stored.partitions..info.partitions;
        self.check_no_folders(info, new.clone())?;
        stored.growing_to = Some(info.partitions);
        catalog.put(&info.name, stored.clone())?;
        let added: Vec<_> = new.map(|index| self.partition(info, index)).collect();
        for partition in &added {
            Partition::create(&partition.place)?;
        }
        site!("topic_grown.folder", self.sync_dir())?;
        let grown = Stored { partitions: info.partitions, growing_to: None, ..stored.clone() };
        catalog.put(&info.name, grown)?;
        Ok(added)
    }

    /// Clears away the folders of partitions that were to be added when the log ended.
    pub(crate) fn clear_growth(
        &self,
        catalog: &mut Catalog,
        name: &str,
        stored: &mut Stored,
    ) -> Result<(), LogError> {
        let Some(planned) = stored.growing_to else { return Ok(()) };
        for index in stored.partitions..planned {
            remove_folder(self.directory.fs.as_ref(), &self.place(name, stored.id, index).dir)?;
        }
        site!("growth_cleared.folder", self.sync_dir())?;
        stored.growing_to = None;
        catalog.put(name, stored.clone())
    }
}
