//! Errors of archive, backup and restore; with stable codes.

use std::path::{Path, PathBuf};

use thiserror::Error;
use uuid::Uuid;

use crate::LogError;

/// What went wrong with copies of a log. [`CopyError::code`] is stable; the text is for people.
#[derive(Clone, Debug, Error)]
pub enum CopyError {
    /// Of the log or of the disk.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file of a backup or archive is not what was written.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The folder has a backup that was never finished.
    #[error("{} has a backup that was not finished", path.display())]
    Unfinished {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has neither a backup nor an archive.
    #[error("{} has neither a backup nor an archive", path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("{} is not empty, and what is in it is no {wanted}", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What it would have to be.
        wanted: &'static str,
    },
    /// The folder holds copies of another cluster.
    #[error("{} belongs to cluster {found}, this is cluster {ours}", path.display())]
    OtherCluster {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Who we are.
        ours: String,
    },
    /// The archive was there and is not any more.
    #[error("the archive at {} is gone: {} is missing, which was there before; is the volume mounted?", path.display(), file.display())]
    ArchiveGone {
        /// Its folder.
        path: PathBuf,
        /// What was looked for.
        file: PathBuf,
    },
    /// Another process writes there.
    #[error("{} is in use by another backup", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The folder to restore into holds something.
    #[error("{} is not empty", path.display())]
    TargetNotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The copies have no such topic.
    #[error("{} has no topic {topic}", path.display())]
    TopicMissing {
        /// The folder.
        path: PathBuf,
        /// Name or id asked for.
        topic: String,
    },
    /// Several topics of one name, made one after the other, were archived.
    #[error("{} has several topics {topic}: {}", path.display(), listed(ids))]
    TopicAmbiguous {
        /// The folder.
        path: PathBuf,
        /// The name asked for.
        topic: String,
        /// Their ids.
        ids: Vec<Uuid>,
    },
    /// One of the server's own topics: under another name anybody could read what is in it, and under its own
    /// a server that runs would not look at it.
    #[error(
        "topic {topic} cannot come back as {name}: the server's own topics come with a whole restore alone"
    )]
    TopicInternal {
        /// Its name.
        topic: String,
        /// What it was to be.
        name: String,
    },
    /// It was told to stop.
    #[error("it was stopped before it was done")]
    Stopped,
}

impl CopyError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Log(error) => error.code(),
            Self::Damaged { .. } => "BACKUP_DAMAGED",
            Self::Unfinished { .. } => "BACKUP_UNFINISHED",
            Self::Missing { .. } => "BACKUP_NOT_FOUND",
            Self::Foreign { .. } => "BACKUP_FOLDER_FOREIGN",
            Self::OtherCluster { .. } => "BACKUP_OTHER_CLUSTER",
            Self::ArchiveGone { .. } => "ARCHIVE_GONE",
            Self::Busy { .. } => "BACKUP_BUSY",
            Self::TargetNotEmpty { .. } => "RESTORE_TARGET_NOT_EMPTY",
            Self::TopicMissing { .. } => "BACKUP_TOPIC_NOT_FOUND",
            Self::TopicAmbiguous { .. } => "BACKUP_TOPIC_AMBIGUOUS",
            Self::TopicInternal { .. } => "BACKUP_TOPIC_INTERNAL",
            Self::Stopped => "BACKUP_STOPPED",
        }
    }

    pub(crate) fn damaged(path: &Path, reason: String) -> Self {
        Self::Damaged { path: path.to_owned(), reason }
    }
}

fn listed(ids: &[Uuid]) -> String {
    ids.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ")
}
