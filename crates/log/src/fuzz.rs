//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use highwater_protocol::records::Batch;

use crate::epochs::Epochs;
use crate::fs::{Entry, File, FileSystem, Lock, OpenMode};
use crate::offset_index::OffsetIndex;
use crate::scan::{Depth, Scan, Step};
use crate::time_index::TimeIndex;
use crate::transaction_index::TransactionIndex;
use crate::{
    EndMarker, Overrides, TopicConfig, catalog, file_name, producer_snapshot, recovery_point,
};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("epoch-checkpoint", epochs),
    ("producer-snapshot", producers),
    ("recovery-point", point),
    ("topic-catalog", topics),
    ("topic-config", config),
    ("offset-index", offsets),
    ("time-index", times),
    ("transaction-index", transactions),
    ("end-marker", marker),
    ("segment-scan", segment),
    ("file-name", name),
];

/// The one file of a file system that can only be read.
#[derive(Clone, Debug)]
struct Only(Arc<[u8]>);

fn epochs(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(mut epochs) = Epochs::parse(text) else { return };
    assert_eq!(Epochs::parse(&epochs.to_text()).as_ref(), Ok(&epochs));
    let _ = (epochs.end(3, 50), epochs.earliest(10), epochs.passes(20));
    epochs.cut_start(30);
    epochs.begin(40);
    assert_eq!(Epochs::parse(&epochs.to_text()).as_ref(), Ok(&epochs), "after a change");
}

/// The snapshot as it is, and with the checksum that it should have.
fn producers(input: &[u8]) {
    let mut mended = input.to_vec();
    if let Some((head, body)) = mended.split_at_mut_checked(6) {
        head[2..].copy_from_slice(&crc32c::crc32c(body).to_be_bytes());
    }
    for bytes in [input, &mended] {
        let Some(producers) = producer_snapshot::decode(bytes) else { continue };
        let again = producer_snapshot::decode(&producer_snapshot::encode(&producers));
        assert_eq!(again.map(|again| again.kept().len()), Some(producers.kept().len()));
    }
}

/// What is read is what was written: no other content says the same.
fn point(input: &[u8]) {
    let Some(offset) = recovery_point::parse(input) else { return };
    assert_eq!(recovery_point::to_text(offset).as_bytes(), input);
}

fn topics(input: &[u8]) {
    let Ok(topics) = catalog::parse(Path::new("topics.json"), input) else { return };
    for (name, topic) in topics {
        let _ = topic.info(&name);
    }
}

fn config(input: &[u8]) {
    let Ok(overrides) = serde_json::from_slice::<Overrides>(input) else { return };
    if let Ok(config) = TopicConfig::parse(overrides) {
        let again = TopicConfig::parse(config.overrides().clone());
        assert!(matches!(again, Ok(again) if again.entries() == config.entries()));
    }
}

fn offsets(input: &[u8]) {
    let Ok(Some(index)) = OffsetIndex::open(&Only(input.into()), Path::new("i"), 7) else { return };
    let _ = index.last();
    for offset in [i64::MIN, 0, 7, 1_000, i64::MAX] {
        let _ = index.position_before(offset);
    }
}

fn times(input: &[u8]) {
    let Ok(Some(index)) = TimeIndex::open(&Only(input.into()), Path::new("t"), 7) else { return };
    let _ = index.last();
    for time in [i64::MIN, 0, 1_700_000_000_000, i64::MAX] {
        let _ = index.offset_before(time);
    }
}

fn transactions(input: &[u8]) {
    let fs = Only(input.into());
    let Ok(index) = TransactionIndex::open(&fs, Path::new("a")) else { return };
    let _ = index.is_whole(0, 1_000);
    for (from, to) in [(i64::MIN, i64::MAX), (0, 1), (5, 500)] {
        let mut found = Vec::new();
        let _ = index.collect(from, to, &mut found);
        assert!(found.len() as u64 <= index.count());
    }
}

/// What is read says the same when it is written.
fn marker(input: &[u8]) {
    let Ok(batch) = Batch::parse(&Bytes::copy_from_slice(input)) else { return };
    let Some(marker) = EndMarker::parse(&batch) else { return };
    let again = marker.to_batch(0).ok().and_then(|bytes| Batch::parse(&bytes).ok());
    assert_eq!(again.and_then(|batch| EndMarker::parse(&batch)), Some(marker));
}

/// Every walk ends, and goes forward.
fn segment(input: &[u8]) {
    let file = Only(input.into());
    for depth in [Depth::Headers, Depth::Checksums] {
        let mut scan = Scan::new(Path::new("s"), &file, depth, 0, input.len() as u64);
        let mut least = 0;
        while let Ok(Step::Batch { position, header }) = scan.step() {
            assert!(position >= least, "the walk went back");
            least = position + header.size() as u64;
        }
        assert!(least <= input.len() as u64);
        let _ = scan.holds_batch(least, 0);
    }
}

fn name(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some((offset, kind)) = file_name::parse(text) else { return };
    let path = file_name::path(Path::new(""), offset, kind);
    assert_eq!(path.to_str(), Some(text));
}

impl File for Only {
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn read_at(&self, into: &mut [u8], position: u64) -> io::Result<usize> {
        let from = usize::try_from(position).unwrap_or(usize::MAX).min(self.0.len());
        let rest = self.0.get(from..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

impl FileSystem for Only {
    fn open(&self, _: &Path, _: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(self.clone()))
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn exists(&self, _: &Path) -> io::Result<bool> {
        Ok(true)
    }

    fn is_locked(&self, _: &Path) -> io::Result<bool> {
        Ok(false)
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Lock>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}
