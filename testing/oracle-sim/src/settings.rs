//! What is simulated.

use crate::quirk::{Quirk, Quirks};

/// What is simulated. Two simulations of the same settings and number of actions have the same redo.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimulationSettings {
    /// Everything random comes from it.
    pub seed: u64,
    /// Redo threads, 1 to 3; each has an instance of its own.
    pub threads: u32,
    /// Clients of each thread.
    pub clients: u32,
    /// Pluggable databases; 0 is a database without containers.
    pub pdbs: u32,
    /// Whether the capture session is in a pluggable database: it cannot name logs (ORA-65040) nor use
    /// a dictionary in the redo (ORA-01371).
    pub is_in_pdb: bool,
    /// Which quirks are on.
    pub quirks: Quirks,
    /// Bytes of an online log; a log may grow past it by what is flushed at its end.
    pub log_bytes: u64,
    /// Online logs of a thread.
    pub online_logs: u64,
    /// Redo records that a private strand holds.
    pub strand_records: usize,
    /// Actions until a log that was switched is archived at destination 1; up to twice as many at
    /// destination 2.
    pub archive_delay: u64,
    /// Archived logs of a thread that are kept; older ones are deleted, and the catalog says so. `None`
    /// keeps all.
    pub kept_logs: Option<u64>,
    /// Changes of a large transaction, at most.
    pub large_transaction: u64,
    /// Rows that a table has at most, about.
    pub rows_per_table: usize,
    /// Rows that each table has before the first redo.
    pub first_rows: u64,
    /// The user whose transactions are left out of the truth; its rows are touched by nobody else.
    pub excluded_user: String,
}

impl Default for SimulationSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            threads: 1,
            clients: 6,
            pdbs: 0,
            is_in_pdb: false,
            quirks: Quirks::from([Quirk::LateStrands]),
            log_bytes: 24_000,
            online_logs: 3,
            strand_records: 6,
            archive_delay: 12,
            kept_logs: None,
            large_transaction: 200,
            rows_per_table: 60,
            first_rows: 5,
            excluded_user: "BATCH".to_owned(),
        }
    }
}

impl SimulationSettings {
    /// The default ones with another seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The same with one more quirk.
    #[must_use]
    pub fn with(mut self, quirk: Quirk) -> Self {
        self.quirks.insert(quirk);
        self
    }

    /// Pluggable databases, at least as many as the quirks need.
    pub(crate) fn pdb_count(&self) -> u32 {
        let twins = if self.has(Quirk::SamePdbXids) { 2 } else { 0 };
        let closed = u32::from(self.has(Quirk::ClosedPdb));
        self.pdbs.max(twins).max(closed)
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }
}
