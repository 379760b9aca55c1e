//! Settings of archive and backups.

use std::path::{Path, PathBuf};

use highwater_connector::{Config, ConfigKey, Importance, KeyType, Problem};
use highwater_log::ArchiveConfig;

const ARCHIVE_DIR: &str = "Folder into which closed segments of topics with highwater.archive=true are copied before retention or DeleteRecords remove them; made when missing, and best on another volume. A removal waits for its copy; at log.total_max_bytes, or on a full disk, it waits no longer for an archive that does not work. Empty: nothing is archived.";
const ARCHIVE_BY_DEFAULT: &str =
    "Whether topics that do not set highwater.archive are archived. Compacted topics never are.";
const BACKUP_DIR: &str = "Folder below which the server writes backups that are asked for over HTTP, from this machine alone, and restores topics from; apart from the data folder. Empty: none; a stopped data folder can be backed up all the same.";

/// Their keys.
pub(crate) fn keys() -> Vec<ConfigKey> {
    use Importance::{Low, Medium};
    let key = ConfigKey::new;
    vec![
        key("archive.dir", KeyType::String, Some(""), Medium, ARCHIVE_DIR),
        key("archive.by_default", KeyType::Boolean, Some("false"), Low, ARCHIVE_BY_DEFAULT),
        key("backup.dir", KeyType::String, Some(""), Medium, BACKUP_DIR),
    ]
}

/// An archive inside the data folder would go with it, and a data folder inside the archive is no topic.
pub(crate) fn archive(config: &Config) -> Result<Option<ArchiveConfig>, Problem> {
    let text = config.text("archive.dir").trim();
    if text.is_empty() {
        return Ok(None);
    }
    apart("archive.dir", text, config)?;
    Ok(Some(ArchiveConfig { dir: absolute(text), by_default: config.flag("archive.by_default") }))
}

/// A folder of the data folder would be taken for a backup's, and a backup's for a partition.
pub(crate) fn backups(config: &Config) -> Result<Option<PathBuf>, Problem> {
    let text = config.text("backup.dir").trim();
    if text.is_empty() {
        return Ok(None);
    }
    apart("backup.dir", text, config)?;
    Ok(Some(absolute(text)))
}

/// Refuses a folder that lies in the data folder, or the other way round.
pub(crate) fn apart(key: &str, text: &str, config: &Config) -> Result<(), Problem> {
    apart_from(key, text, config.text("data_dir"), "the data folder")
}

/// Refuses a folder that lies in another, or the other way round.
pub(crate) fn apart_from(key: &str, text: &str, other: &str, name: &str) -> Result<(), Problem> {
    let (dir, other) = (absolute(text), absolute(other));
    if !dir.starts_with(&other) && !other.starts_with(&dir) {
        return Ok(());
    }
    let message = format!("is {text:?}; it must lie apart from {name}");
    Err(Problem { key: key.to_owned(), message })
}

fn absolute(text: &str) -> PathBuf {
    std::path::absolute(text).unwrap_or_else(|_| Path::new(text).to_owned())
}
