//! Bringing data that was found in the page cache to stable storage.

use std::path::Path;

use crate::LogError;
use crate::durable_file::{self, UNFINISHED, with_ending};
use crate::fs::{File, FileSystem, OpenMode};

/// What is appended to the name of a file to say that a sync of it failed. Like the file itself the note
/// matters only as long as the page cache lives.
const NOTE: &str = "-unsynced";

/// Bytes copied at a time.
const PIECE: u64 = 1 << 20;

/// Returns once the content is on stable storage. Where the system refuses, the content may count as
/// clean and never be written, whatever the next fsync says; so it is copied into a new file then, also
/// when somebody tries again later.
pub(crate) fn settle(fs: &dyn FileSystem, path: &Path, file: &dyn File) -> Result<(), LogError> {
    let note = with_ending(path, NOTE);
    if !fs.exists(&note).map_err(LogError::io("open", &note))? {
        if site!("settle.data", file.sync_data()).is_ok() {
            return Ok(());
        }
        fs.open(&note, OpenMode::Create).map_err(LogError::io("create", &note))?;
    }
    tracing::warn!(path = %path.display(), "a sync failed: the file is copied");
    copy_from(fs, path, file, 0, path)?;
    durable_file::remove_if_there(fs, &note)
}

/// Copies what stands at `position` and behind it into the file `to`, or over the file itself; its name
/// is safe once the folder was synced.
pub(crate) fn copy_from(
    fs: &dyn FileSystem,
    path: &Path,
    file: &dyn File,
    position: u64,
    to: &Path,
) -> Result<(), LogError> {
    let unfinished = with_ending(to, UNFINISHED);
    let copy =
        fs.open(&unfinished, OpenMode::Create).map_err(LogError::io("create", &unfinished))?;
    let mut piece = vec![0; usize::try_from(PIECE).unwrap_or(0)];
    let mut copied = 0;
    loop {
        let read =
            file.read_at(&mut piece, position + copied).map_err(LogError::io("read", path))?;
        if read == 0 {
            break;
        }
        let bytes = piece.get(..read).unwrap_or_default();
        copy.write_at(bytes, copied).map_err(LogError::io("write", &unfinished))?;
        copied += read as u64;
    }
    site!("settle.copy", copy.sync_data()).map_err(LogError::io("sync", &unfinished))?;
    fs.rename(&unfinished, to).map_err(LogError::io("rename", &unfinished))
}
