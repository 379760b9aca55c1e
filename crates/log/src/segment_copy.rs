//! Copying a segment out of the log and back into one, and seeing that a copy is whole.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use highwater_protocol::records::BatchHeader;
use sha2::{Digest, Sha256};

use crate::LogError;
use crate::copy_error::CopyError;
use crate::durable_file;
use crate::file_name::{self, FileKind};
use crate::fs::{File, FileSystem, OpenMode};
use crate::manifest::{FileManifest, SegmentManifest, hex};
use crate::segment::Segment;

/// Bytes copied at a time.
const PIECE: usize = 1 << 20;

/// How far a copy has come, for those who wait for it, and the word to stop.
#[derive(Debug, Default)]
pub struct CopyProgress {
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
}

impl CopyProgress {
    /// Bytes that were read so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Bytes that are to be read in all; 0 until that is known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Ends it soon, with [`CopyError::Stopped`].
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What needs no copying counts as done.
    pub(crate) fn pass(&self, bytes: u64) -> Result<(), CopyError> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) { Err(CopyError::Stopped) } else { Ok(()) }
    }
}

/// What is copied of a segment.
#[derive(Debug)]
pub(crate) struct Extract {
    segment: Arc<Segment>,
    /// Bytes of its data.
    pub(crate) bytes: u64,
    pub(crate) next_offset: i64,
    mark: u32,
    /// Closed segments are copied with their indexes; those of the active one are made again.
    is_closed: bool,
}

impl Extract {
    /// A closed segment, whole; None if it is empty.
    pub(crate) fn whole(segment: &Arc<Segment>) -> Result<Option<Self>, LogError> {
        let indexed = segment.offset_index.last()?.map_or(0, |(_, position)| position);
        Self::of(segment, indexed, segment.tip().size, true)
    }

    /// What lies below an offset, of the active segment; None if nothing does.
    pub(crate) fn below(segment: &Arc<Segment>, end: i64) -> Result<Option<Self>, LogError> {
        let tip = segment.tip();
        let bytes = match segment.find(end)? {
            Some((_, position)) => position.min(tip.size),
            None => tip.size,
        };
        let indexed = segment.offset_index.position_before(end - 1)?;
        Self::of(segment, indexed, bytes, false)
    }

    /// `from` is where a batch begins below `bytes`, best the last one.
    fn of(
        segment: &Arc<Segment>,
        from: u64,
        bytes: u64,
        is_closed: bool,
    ) -> Result<Option<Self>, LogError> {
        let Some(last) = last_below(segment, from, bytes)? else { return Ok(None) };
        let mut text = [0; 16];
        let parts = [last.crc.to_be_bytes(), last.partition_leader_epoch.to_be_bytes()];
        text[..8].copy_from_slice(&parts.concat());
        text[8..].copy_from_slice(&bytes.to_be_bytes());
        let (segment, next_offset) = (Arc::clone(segment), last.next_offset());
        Ok(Some(Self { segment, bytes, next_offset, mark: crc32c::crc32c(&text), is_closed }))
    }

    pub(crate) fn base_offset(&self) -> i64 {
        self.segment.base_offset
    }

    /// Whether a copy is of this content.
    pub(crate) fn is(&self, copy: &SegmentManifest) -> bool {
        let ours = (self.base_offset(), self.next_offset, self.mark, self.bytes);
        ours == (copy.base_offset, copy.next_offset, copy.mark, copy.bytes())
    }

    /// Copies it below `into`, the folder of its partition; safe on disk when this returns. `from` is the
    /// folder in the log.
    pub(crate) fn copy(
        &self,
        fs: &dyn FileSystem,
        from: &Path,
        into: &Path,
        progress: &CopyProgress,
    ) -> Result<SegmentManifest, CopyError> {
        let mut copy = SegmentManifest {
            base_offset: self.base_offset(),
            next_offset: self.next_offset,
            mark: self.mark,
            files: Vec::new(),
        };
        let folder = into.join(copy.folder());
        make_folder(fs, &folder)?;
        let to = |kind| file_name::path(&folder, copy.base_offset, kind);
        let log = self.segment.file().as_ref();
        let sha256 =
            copy_file(fs, self.segment.path(), log, self.bytes, &to(FileKind::Log), progress)?;
        let mut files = vec![(FileKind::Log, self.bytes, sha256)];
        for (kind, content) in self.small_files(fs, from)? {
            durable_file::put(fs, &to(kind), &content)?;
            files.push((kind, content.len() as u64, hex(&Sha256::digest(&content))));
        }
        copy.files = files
            .into_iter()
            .map(|(kind, bytes, sha256)| FileManifest {
                ending: file_name::ending(kind).to_owned(),
                bytes,
                sha256,
            })
            .collect();
        site!("copied.segment", fs.sync_dir(&folder)).map_err(LogError::io("sync", &folder))?;
        site!("copied.partition", fs.sync_dir(into)).map_err(LogError::io("sync", into))?;
        Ok(copy)
    }

    /// The files beside the data, as far as they are there. The indexes are read through the open segment:
    /// under its name a newer one may stand.
    fn small_files(
        &self,
        fs: &dyn FileSystem,
        from: &Path,
    ) -> Result<Vec<(FileKind, Vec<u8>)>, LogError> {
        let mut files = Vec::new();
        if self.is_closed {
            files.push((FileKind::OffsetIndex, self.segment.offset_index.file().content()?));
            files.push((FileKind::TimeIndex, self.segment.time_index.file().content()?));
        }
        for kind in file_name::BESIDE {
            let path = file_name::path(from, self.base_offset(), kind);
            let wanted = self.is_closed || kind == FileKind::Snapshot;
            if let Some(content) = durable_file::read(fs, &path)?.filter(|_| wanted) {
                files.push((kind, content));
            }
        }
        Ok(files)
    }
}

/// The header of the last batch that ends at or below a position.
fn last_below(
    segment: &Segment,
    mut position: u64,
    end: u64,
) -> Result<Option<BatchHeader>, LogError> {
    let mut last = None;
    while position < end {
        let header = segment.header_at(position)?;
        position += header.size() as u64;
        if position <= end {
            last = Some(header);
        }
    }
    Ok(last)
}

/// Sees that every file of a copy is there and is what was written.
pub(crate) fn verify(
    fs: &dyn FileSystem,
    copy: &SegmentManifest,
    partition: &Path,
    progress: &CopyProgress,
) -> Result<(), CopyError> {
    let folder = partition.join(copy.folder());
    for (file, path) in copy.paths(&folder) {
        let found = open(fs, &path, file)?;
        let mut sum = Sha256::new();
        each_piece(&path, found.as_ref(), file.bytes, progress, |piece, _| {
            sum.update(piece);
            Ok(())
        })?;
        check_sum(&path, file, &hex(&sum.finalize()))?;
    }
    Ok(())
}

/// Whether every file of a copy is there with its length; what is in it is not read.
pub(crate) fn is_there(
    fs: &dyn FileSystem,
    copy: &SegmentManifest,
    partition: &Path,
) -> Result<bool, CopyError> {
    let folder = partition.join(copy.folder());
    for (file, path) in copy.paths(&folder) {
        match open(fs, &path, file) {
            Ok(_) => {}
            Err(CopyError::Damaged { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Puts a copy back as a segment in `into`, the folder of a partition, and sees once more that it is whole.
/// The names are safe once the folder was synced.
pub(crate) fn put_back(
    fs: &dyn FileSystem,
    copy: &SegmentManifest,
    partition: &Path,
    into: &Path,
    progress: &CopyProgress,
) -> Result<(), CopyError> {
    let folder = partition.join(copy.folder());
    for ((file, path), (_, to)) in copy.paths(&folder).zip(copy.paths(into)) {
        let found = open(fs, &path, file)?;
        let sha256 = copy_file(fs, &path, found.as_ref(), file.bytes, &to, progress)?;
        check_sum(&path, file, &sha256)?;
    }
    Ok(())
}

fn open(fs: &dyn FileSystem, path: &Path, file: &FileManifest) -> Result<Arc<dyn File>, CopyError> {
    let found = match fs.open(path, OpenMode::Read) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CopyError::damaged(path, "it is missing".to_owned()));
        }
        other => other.map_err(LogError::io("open", path))?,
    };
    let bytes = found.len().map_err(LogError::io("read", path))?;
    if bytes == file.bytes {
        return Ok(found);
    }
    Err(CopyError::damaged(path, format!("it has {bytes} bytes and had {}", file.bytes)))
}

fn check_sum(path: &Path, file: &FileManifest, found: &str) -> Result<(), CopyError> {
    if found == file.sha256 {
        return Ok(());
    }
    Err(CopyError::damaged(path, "its checksum is wrong".to_owned()))
}

/// Copies `bytes` of a file and syncs them; answers their SHA-256.
fn copy_file(
    fs: &dyn FileSystem,
    path: &Path,
    from: &dyn File,
    bytes: u64,
    to: &Path,
    progress: &CopyProgress,
) -> Result<String, CopyError> {
    let copy = fs.open(to, OpenMode::Create).map_err(LogError::io("create", to))?;
    let mut sum = Sha256::new();
    each_piece(path, from, bytes, progress, |piece, position| {
        sum.update(piece);
        copy.write_at(piece, position).map_err(LogError::io("write", to))
    })?;
    site!("copied.data", copy.sync_data()).map_err(LogError::io("sync", to))?;
    Ok(hex(&sum.finalize()))
}

/// Shows the first `bytes` of a file, piece by piece.
fn each_piece(
    path: &Path,
    file: &dyn File,
    bytes: u64,
    progress: &CopyProgress,
    mut show: impl FnMut(&[u8], u64) -> Result<(), LogError>,
) -> Result<(), CopyError> {
    let mut piece = vec![0; PIECE];
    let mut position = 0;
    while position < bytes {
        let wanted = usize::try_from(bytes - position).unwrap_or(PIECE).min(PIECE);
        let piece = piece.get_mut(..wanted).unwrap_or_default();
        let read = file.read_at(piece, position).map_err(LogError::io("read", path))?;
        if read < wanted {
            return Err(CopyError::damaged(path, "it became shorter while it was read".to_owned()));
        }
        show(piece, position)?;
        position += read as u64;
        progress.pass(read as u64)?;
    }
    Ok(())
}

/// Makes a folder, unless it stands.
pub(crate) fn make_folder(fs: &dyn FileSystem, folder: &Path) -> Result<(), LogError> {
    if fs.exists(folder).map_err(LogError::io("open", folder))? {
        return Ok(());
    }
    fs.create_dir(folder).map_err(LogError::io("create", folder))
}
