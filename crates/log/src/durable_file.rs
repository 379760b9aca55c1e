//! Small files that are replaced as a whole: after a crash either the old content or the new.

use std::io;
use std::path::{Path, PathBuf};

use crate::LogError;
use crate::fs::{FileSystem, OpenMode};

/// What a file is called until it is whole. Such a file is never read, and removed at start.
pub(crate) const UNFINISHED: &str = ".tmp";

/// Puts `content` under `path`; safe on disk when this returns.
pub(crate) fn replace(fs: &dyn FileSystem, path: &Path, content: &[u8]) -> Result<(), LogError> {
    put(fs, path, content)?;
    site!("file.folder", sync_parent(fs, path))
}

/// As [`replace`], but the name is safe only once the caller has synced the folder.
pub(crate) fn put(fs: &dyn FileSystem, path: &Path, content: &[u8]) -> Result<(), LogError> {
    let unfinished = with_ending(path, UNFINISHED);
    let written = write_new(fs, &unfinished, content)
        .and_then(|()| fs.rename(&unfinished, path).map_err(LogError::io("rename", &unfinished)));
    if written.is_err() {
        // What is left over does no harm: it is removed at start, or overwritten.
        let _ = fs.remove(&unfinished);
    }
    written
}

fn write_new(fs: &dyn FileSystem, path: &Path, content: &[u8]) -> Result<(), LogError> {
    let file = fs.open(path, OpenMode::Create).map_err(LogError::io("create", path))?;
    file.write_at(content, 0).map_err(LogError::io("write", path))?;
    site!("file.data", file.sync_data()).map_err(LogError::io("sync", path))
}

/// The path with something behind its name.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Syncs the folder in which `path` stands.
pub(crate) fn sync_parent(fs: &dyn FileSystem, path: &Path) -> Result<(), LogError> {
    let Some(dir) = path.parent() else { return Ok(()) };
    // A relative path of one name stands in the working folder.
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    site!("parent.folder", fs.sync_dir(dir)).map_err(LogError::io("sync", dir))
}

/// The whole content; None if there is no such file.
pub(crate) fn read(fs: &dyn FileSystem, path: &Path) -> Result<Option<Vec<u8>>, LogError> {
    let file = match fs.open(path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(LogError::io("open", path))?,
    };
    let len = file.len().map_err(LogError::io("read", path))?;
    let mut content = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let count = file.read_at(&mut content, 0).map_err(LogError::io("read", path))?;
    content.truncate(count);
    Ok(Some(content))
}

/// The whole content as text; None if there is no such file.
pub(crate) fn read_text(fs: &dyn FileSystem, path: &Path) -> Result<Option<String>, LogError> {
    let Some(content) = read(fs, path)? else { return Ok(None) };
    let text = String::from_utf8(content).map_err(|error| LogError::Damaged {
        path: path.to_owned(),
        position: error.utf8_error().valid_up_to() as u64,
        reason: "it is not text".to_owned(),
    })?;
    Ok(Some(text))
}

/// Removes a file if it is there.
pub(crate) fn remove_if_there(fs: &dyn FileSystem, path: &Path) -> Result<(), LogError> {
    match fs.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(LogError::io("remove", path)),
    }
}
