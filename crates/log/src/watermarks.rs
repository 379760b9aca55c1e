//! How far a partition has come, as its watchers see it.

/// Whether a partition works.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum PartitionState {
    /// Reads and appends go on.
    #[default]
    Online,
    /// An fsync failed; reads of what is visible go on, appends wait until it has reopened itself.
    Poisoned,
    /// It could not be opened; everything fails with the reason.
    Offline,
    /// The topic was deleted, or the log closed.
    Gone,
}

/// Offsets of a partition. All are exclusive ends save `log_start`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Watermarks {
    /// The first offset kept.
    pub log_start: i64,
    /// One past the last visible record: the last fsynced offset under `flush=durable`, else the log
    /// end (rule L1).
    pub high_watermark: i64,
    /// One past the last record that a reader at read_committed sees: the high watermark, or the first
    /// offset of a transaction that is open or whose marker is not visible yet.
    pub last_stable_offset: i64,
    /// The next offset to be given. Watchers are not woken when only this one moves.
    pub log_end: i64,
    /// The current leader epoch.
    pub leader_epoch: i32,
    /// See [`PartitionState`].
    pub state: PartitionState,
}

/// How far a read may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visible {
    /// To the high watermark: a client at read_uncommitted.
    HighWatermark,
    /// To the last stable offset: a client at read_committed.
    LastStable,
    /// To the log end: the log's own tools.
    LogEnd,
}

impl Watermarks {
    /// The exclusive end of what a reader of this kind sees.
    pub fn end(&self, visible: Visible) -> i64 {
        match visible {
            Visible::HighWatermark => self.high_watermark,
            Visible::LastStable => self.last_stable_offset,
            Visible::LogEnd => self.log_end,
        }
    }
}
