//! The data directory itself: whose it is, in what format, and how it was left.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::LogError;
use crate::catalog;
use crate::checkpoint::kafka_uuid;
use crate::durable_file::{self, UNFINISHED};
use crate::fs::{FileSystem, Lock};

const LOCK: &str = ".lock";
const META: &str = "meta.properties";
const CLEAN: &str = "clean-shutdown.json";
const PRODUCER_IDS: &str = "producer-ids";

/// Stands in a directory into which a backup is restored, until it is whole.
pub(crate) const RESTORING: &str = "restore-unfinished";

/// The format of the data directory that this program writes.
const FORMAT: u32 = 1;

/// A data directory that is ours as long as this lives.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) cluster_id: String,
    _lock: Box<dyn Lock>,
}

impl Directory {
    /// Takes the directory, making it if it is not there.
    pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, LogError> {
        make_dirs(fs.as_ref(), dir)?;
        let lock = fs.lock(&dir.join(LOCK)).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => locked(fs.as_ref(), dir),
            _ => LogError::io("lock", dir)(error),
        })?;
        check_restored(fs.as_ref(), dir)?;
        let cluster_id = cluster_id(fs.as_ref(), &dir.join(META))?;
        remove_unfinished(fs.as_ref(), dir)?;
        Ok(Self { fs, dir: dir.to_owned(), cluster_id, _lock: lock })
    }

    /// Says that the log was closed, with the log end of each partition.
    pub(crate) fn mark_clean(&self, log_ends: &BTreeMap<String, i64>) -> Result<(), LogError> {
        let path = self.dir.join(CLEAN);
        let bytes = serde_json::to_vec(log_ends).unwrap_or_default();
        durable_file::replace(self.fs.as_ref(), &path, &bytes)
    }

    /// Takes the mark away, so that from here on a crash counts as one; answers what it said. Empty
    /// after a crash.
    pub(crate) fn take_clean_mark(&self) -> Result<BTreeMap<String, i64>, LogError> {
        let path = self.dir.join(CLEAN);
        let bytes = durable_file::read(self.fs.as_ref(), &path)?;
        durable_file::remove_if_there(self.fs.as_ref(), &path)?;
        site!("clean_mark.folder", durable_file::sync_parent(self.fs.as_ref(), &path))?;
        // A mark that cannot be read says nothing: recovery reads the data then.
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
    }

    /// The first producer id that was never given; 0 in a new directory.
    pub(crate) fn read_producer_ids(&self) -> Result<i64, LogError> {
        let path = self.dir.join(PRODUCER_IDS);
        let Some(text) = durable_file::read_text(self.fs.as_ref(), &path)? else { return Ok(0) };
        text.trim().parse().map_err(|_| damaged(&path, "it is no number".to_owned()))
    }

    pub(crate) fn write_producer_ids(&self, next: i64) -> Result<(), LogError> {
        let path = self.dir.join(PRODUCER_IDS);
        durable_file::replace(self.fs.as_ref(), &path, format!("{next}\n").as_bytes())
    }
}

/// What can be told of a data directory without taking it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occupancy {
    /// Nothing is there; a start makes it.
    Missing,
    /// It stands, in a format that this program reads, and nobody has it.
    Free,
    /// Another process has it.
    InUse,
}

/// Looks at a data directory and leaves it as it is.
///
/// # Errors
/// [`LogError::OtherVersion`], or of the disk.
pub fn look(fs: &dyn FileSystem, dir: &Path) -> Result<Occupancy, LogError> {
    let exists = |path: &Path| fs.exists(path).map_err(LogError::io("open", path));
    let (meta, lock) = (dir.join(META), dir.join(LOCK));
    check_restored(fs, dir)?;
    if !exists(&meta)? {
        return Ok(Occupancy::Missing);
    }
    if let Some(text) = durable_file::read_text(fs, &meta)? {
        parse_meta(&meta, &text)?;
    }
    if !exists(&lock)? {
        return Ok(Occupancy::Free);
    }
    let locked = fs.is_locked(&lock).map_err(LogError::io("open", &lock))?;
    Ok(if locked { Occupancy::InUse } else { Occupancy::Free })
}

/// Refuses what a restore has left half done.
fn check_restored(fs: &dyn FileSystem, dir: &Path) -> Result<(), LogError> {
    if fs.exists(&dir.join(RESTORING)).map_err(LogError::io("open", dir))? {
        return Err(LogError::RestoreUnfinished { path: dir.to_owned() });
    }
    Ok(())
}

/// Makes the directory of a cluster that is known; its topics stand in it already.
pub(crate) fn make(
    fs: &dyn FileSystem,
    dir: &Path,
    cluster_id: &str,
    producer_ids: i64,
) -> Result<(), LogError> {
    let ids = format!("{producer_ids}\n");
    durable_file::replace(fs, &dir.join(PRODUCER_IDS), ids.as_bytes())?;
    durable_file::replace(fs, &dir.join(META), meta(cluster_id).as_bytes())
}

fn meta(cluster_id: &str) -> String {
    format!("highwater.format={FORMAT}\ncluster.id={cluster_id}\n")
}

/// Who holds the directory is written in the lock's file.
fn locked(fs: &dyn FileSystem, dir: &Path) -> LogError {
    let holder = durable_file::read_text(fs, &dir.join(LOCK));
    let process = holder.ok().flatten().and_then(|text| text.trim().parse().ok());
    LogError::Locked { path: dir.to_owned(), process }
}

fn make_dirs(fs: &dyn FileSystem, dir: &Path) -> Result<(), LogError> {
    if dir.as_os_str().is_empty() || fs.exists(dir).map_err(LogError::io("open", dir))? {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        make_dirs(fs, parent)?;
    }
    fs.create_dir(dir).map_err(LogError::io("create", dir))?;
    site!("directory.parent", durable_file::sync_parent(fs, dir))
}

/// Makes a folder that its owner alone may look into, since connectors' passwords are in the log; its parents
/// are made as they come, and one that stands stays as it is.
pub(crate) fn make_private_dir(fs: &dyn FileSystem, dir: &Path) -> Result<(), LogError> {
    if fs.exists(dir).map_err(LogError::io("open", dir))? {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        make_dirs(fs, parent)?;
    }
    fs.create_private_dir(dir).map_err(LogError::io("create", dir))?;
    site!("private.parent", durable_file::sync_parent(fs, dir))
}

/// Reads whose directory it is, or makes it ours.
fn cluster_id(fs: &dyn FileSystem, path: &Path) -> Result<String, LogError> {
    if let Some(text) = durable_file::read_text(fs, path)? {
        return parse_meta(path, &text);
    }
    check_new(fs, path)?;
    let cluster_id = kafka_uuid(Uuid::new_v4());
    durable_file::replace(fs, path, meta(&cluster_id).as_bytes())?;
    // Somebody else may have made the folder a moment ago, and not have synced its name.
    if let Some(dir) = path.parent() {
        site!("new_directory.parent", durable_file::sync_parent(fs, dir))?;
    }
    Ok(cluster_id)
}

/// A directory without the file is new, unless something stands in it: then the file was lost, and another
/// cluster id would have every client take the log for another one.
fn check_new(fs: &dyn FileSystem, path: &Path) -> Result<(), LogError> {
    let dir = path.parent().unwrap_or(path);
    let entries = fs.list(dir).map_err(LogError::io("list", dir))?;
    let ours = |name: &str| name == catalog::FILE || name == PRODUCER_IDS || name == CLEAN;
    match entries.into_iter().find(|entry| ours(&entry.name)) {
        None => Ok(()),
        Some(found) => Err(damaged(path, format!("it is missing, while {} stands", found.name))),
    }
}

fn damaged(path: &Path, reason: String) -> LogError {
    LogError::Damaged { path: path.to_owned(), position: 0, reason }
}

fn parse_meta(path: &Path, text: &str) -> Result<String, LogError> {
    if text.trim().is_empty() {
        return Err(damaged(path, "it is empty".to_owned()));
    }
    let value = |name: &str| {
        text.lines().filter_map(|line| line.split_once('=')).find(|(known, _)| *known == name)
    };
    let format = value("highwater.format").map_or("of another program", |(_, format)| format);
    match value("cluster.id") {
        Some((_, cluster_id)) if format == FORMAT.to_string() => Ok(cluster_id.to_owned()),
        _ => Err(LogError::OtherVersion {
            path: path.to_owned(),
            found: format.to_owned(),
            known: FORMAT,
        }),
    }
}

fn remove_unfinished(fs: &dyn FileSystem, dir: &Path) -> Result<(), LogError> {
    for entry in fs.list(dir).map_err(LogError::io("list", dir))? {
        if !entry.is_dir && entry.name.ends_with(UNFINISHED) {
            durable_file::remove_if_there(fs, &dir.join(entry.name))?;
        }
    }
    Ok(())
}
