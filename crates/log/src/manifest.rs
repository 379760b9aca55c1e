//! What a folder holds of a topic: the one format of archive and backup.
//!
//! `TOPIC-ID/PARTITION/COPY/` has the files of a segment under Kafka's names, so that Kafka's own tools read
//! them. `COPY` is named by what is in it, so that a segment that changed (the active one has grown, a closed
//! one was compacted) is another copy, and what an older manifest names is never written over. Files and
//! folders are found by numbers alone: nothing in a manifest is taken for a path.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::copy_error::CopyError;
use crate::durable_file;
use crate::epochs::Epochs;
use crate::file_name::{self, FileKind};
use crate::fs::FileSystem;
use crate::topic::MAX_PARTITIONS;
use crate::{LogError, Overrides, check_name};

/// The format that this program writes.
const FORMAT: u32 = 1;

/// A topic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TopicManifest {
    pub(crate) cluster_id: String,
    pub(crate) topic: String,
    pub(crate) topic_id: Uuid,
    pub(crate) config: Overrides,
    /// In order, from 0 on.
    pub(crate) partitions: Vec<PartitionManifest>,
}

/// A partition of it.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct PartitionManifest {
    pub(crate) log_start: i64,
    /// Behind the last record.
    pub(crate) next_offset: i64,
    /// Below it, holes between batches are no damage: compaction left them.
    pub(crate) compacted_to: i64,
    /// Leader epochs and where they began.
    pub(crate) epochs: Vec<(i32, i64)>,
    /// Rising.
    pub(crate) segments: Vec<SegmentManifest>,
}

/// A segment of it, or what there was of the active one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct SegmentManifest {
    pub(crate) base_offset: i64,
    pub(crate) next_offset: i64,
    /// Tells apart what differs in content alone: made of the last batch's header and the size.
    pub(crate) mark: u32,
    pub(crate) files: Vec<FileManifest>,
}

/// A file of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct FileManifest {
    /// How the name ends, such as `log`.
    pub(crate) ending: String,
    pub(crate) bytes: u64,
    /// In hexadecimal digits.
    pub(crate) sha256: String,
}

impl TopicManifest {
    /// The folder of the topic.
    pub(crate) fn folder(dir: &Path, topic_id: Uuid) -> PathBuf {
        dir.join(topic_id.to_string())
    }

    /// The folder of a partition.
    pub(crate) fn partition_folder(&self, dir: &Path, index: usize) -> PathBuf {
        Self::folder(dir, self.topic_id).join(index.to_string())
    }

    /// Bytes of all its files.
    pub(crate) fn bytes(&self) -> u64 {
        let segments = self.partitions.iter().flat_map(|partition| &partition.segments);
        segments.flat_map(|segment| &segment.files).map(|file| file.bytes).sum()
    }

    /// Refuses what no log has written.
    pub(crate) fn check(&self, path: &Path) -> Result<(), CopyError> {
        let refuse = |reason: String| Err(CopyError::damaged(path, reason));
        check_name(&self.topic)?;
        let most = usize::try_from(MAX_PARTITIONS).unwrap_or(0);
        if !(1..=most).contains(&self.partitions.len()) {
            return refuse(format!("topic {} has no fitting number of partitions", self.topic));
        }
        for (index, partition) in self.partitions.iter().enumerate() {
            if let Err(reason) = partition.check() {
                return refuse(format!("partition {}-{index}: {reason}", self.topic));
            }
        }
        Ok(())
    }
}

impl PartitionManifest {
    fn check(&self) -> Result<(), String> {
        Epochs::from_entries(self.epochs.clone())?;
        let mut due = 0;
        for segment in &self.segments {
            let SegmentManifest { base_offset, next_offset, files, .. } = segment;
            if *base_offset < due || next_offset <= base_offset {
                return Err(format!("segment {base_offset} to {next_offset} is out of order"));
            }
            due = *next_offset;
            let known = |file: &FileManifest| file_name::of_segment(&file.ending).is_some();
            if !files.iter().all(known) || !files.iter().any(|file| file.ending == "log") {
                return Err(format!("segment {base_offset} has not the files of one"));
            }
        }
        if due > self.next_offset || self.log_start < 0 || self.log_start > self.next_offset {
            return Err("its offsets contradict each other".to_owned());
        }
        Ok(())
    }

    /// Where the first gap ends, behind which the newest segments follow one another.
    pub(crate) fn newest_run(&self) -> &[SegmentManifest] {
        let joins = |pair: &[SegmentManifest]| match pair {
            [before, after] => before.next_offset == after.base_offset,
            _ => true,
        };
        let gap = self.segments.windows(2).rposition(|pair| !joins(pair));
        self.segments.get(gap.map_or(0, |gap| gap + 1)..).unwrap_or_default()
    }
}

impl SegmentManifest {
    /// The name of its folder in that of the partition.
    pub(crate) fn folder(&self) -> String {
        format!("{:020}-{:020}-{:08x}", self.base_offset, self.next_offset, self.mark)
    }

    /// Its files in `dir`, the folder of the copy or of a partition.
    pub(crate) fn paths<'a>(
        &'a self,
        dir: &'a Path,
    ) -> impl Iterator<Item = (&'a FileManifest, PathBuf)> {
        let path = |kind: FileKind| file_name::path(dir, self.base_offset, kind);
        let known = self.files.iter();
        known.filter_map(move |file| Some((file, path(file_name::of_segment(&file.ending)?))))
    }

    /// Bytes of its data.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().filter(|file| file.ending == "log").map(|file| file.bytes).sum()
    }
}

/// Content with its format and its own checksum, so that a flipped bit is told from another value.
#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    format: u32,
    /// Of `content` as JSON without blanks.
    sha256: String,
    content: T,
}

/// Writes content; it replaces what stood there as a whole.
pub(crate) fn write<T: Serialize>(
    fs: &dyn FileSystem,
    path: &Path,
    content: &T,
) -> Result<(), CopyError> {
    let failed = |error: serde_json::Error| CopyError::damaged(path, error.to_string());
    let sha256 = hex(&Sha256::digest(serde_json::to_vec(content).map_err(failed)?));
    let sealed = Sealed { format: FORMAT, sha256, content };
    let bytes = serde_json::to_vec_pretty(&sealed).map_err(failed)?;
    Ok(durable_file::replace(fs, path, &bytes)?)
}

/// Reads content; None if there is no such file.
pub(crate) fn read<T: Serialize + DeserializeOwned>(
    fs: &dyn FileSystem,
    path: &Path,
) -> Result<Option<T>, CopyError> {
    let Some(bytes) = durable_file::read(fs, path)? else { return Ok(None) };
    parse(path, &bytes).map(Some)
}

pub(crate) fn parse<T: Serialize + DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
) -> Result<T, CopyError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let failed = |error: serde_json::Error| CopyError::damaged(path, error.to_string());
    let Format { format } = serde_json::from_slice(bytes).map_err(failed)?;
    if format != FORMAT {
        let found = format.to_string();
        return Err(LogError::OtherVersion { path: path.to_owned(), found, known: FORMAT }.into());
    }
    let sealed: Sealed<T> = serde_json::from_slice(bytes).map_err(failed)?;
    let content = serde_json::to_vec(&sealed.content).map_err(failed)?;
    if hex(&Sha256::digest(content)) != sealed.sha256 {
        return Err(CopyError::damaged(path, "its checksum is wrong".to_owned()));
    }
    Ok(sealed.content)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(base_offset: i64, next_offset: i64) -> SegmentManifest {
        let file = FileManifest { ending: "log".to_owned(), bytes: 7, sha256: "00".to_owned() };
        SegmentManifest { base_offset, next_offset, mark: 9, files: vec![file] }
    }

    fn manifest(segments: Vec<SegmentManifest>) -> TopicManifest {
        let next_offset = segments.last().map_or(0, |segment| segment.next_offset);
        TopicManifest {
            cluster_id: "c".to_owned(),
            topic: "t".to_owned(),
            topic_id: Uuid::nil(),
            config: Overrides::new(),
            partitions: vec![PartitionManifest {
                next_offset,
                epochs: vec![(0, 0)],
                segments,
                ..Default::default()
            }],
        }
    }

    fn sealed(manifest: &TopicManifest) -> Vec<u8> {
        let sha256 = hex(&Sha256::digest(serde_json::to_vec(manifest).unwrap()));
        serde_json::to_vec(&Sealed { format: FORMAT, sha256, content: manifest }).unwrap()
    }

    #[test]
    fn no_flipped_bit_is_read_as_another_value() {
        let manifest = manifest(vec![segment(0, 5), segment(5, 9)]);
        let bytes = sealed(&manifest);
        assert_eq!(parse::<TopicManifest>(Path::new("m"), &bytes).unwrap(), manifest);
        for (at, bit) in (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            if let Ok(read) = parse::<TopicManifest>(Path::new("m"), &flipped) {
                assert_eq!(read, manifest, "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn what_no_log_writes_is_refused() {
        let check = |manifest: &TopicManifest| manifest.check(Path::new("m")).is_ok();
        assert!(check(&manifest(vec![segment(0, 5), segment(7, 9)])), "an archive may have gaps");
        for segments in
            [vec![segment(5, 5)], vec![segment(0, 5), segment(4, 9)], vec![segment(-1, 2)]]
        {
            assert!(!check(&manifest(segments)));
        }
        let mut other = manifest(vec![segment(0, 5)]);
        other.partitions[0].segments[0].files[0].ending = "../x".to_owned();
        assert!(!check(&other));
        let named = TopicManifest { topic: "../t".to_owned(), ..manifest(Vec::new()) };
        assert!(!check(&named));
        assert!(!check(&TopicManifest { partitions: Vec::new(), ..manifest(Vec::new()) }));
    }

    #[test]
    fn the_newest_run_begins_behind_the_last_gap() {
        let run = |segments: &[(i64, i64)]| {
            let segments = segments.iter().map(|&(base, next)| segment(base, next)).collect();
            let manifest = manifest(segments);
            let run = manifest.partitions[0].newest_run();
            run.iter().map(|segment| segment.base_offset).collect::<Vec<_>>()
        };
        assert!(run(&[]).is_empty());
        assert_eq!(run(&[(0, 5), (5, 9)]), [0, 5]);
        assert_eq!(run(&[(0, 5), (7, 9), (9, 12)]), [7, 9]);
    }
}
