//! What happens to the database as a whole.

use highwater_oracle::SessionError;

use crate::archive::Archive;
use crate::database::Database;
use crate::fault::ora;
use crate::quirk::Quirk;
use crate::redo::RedoLogs;

impl Database {
    /// A pluggable database that nobody works in is closed for a while.
    pub(crate) fn close_a_pdb(&mut self) {
        if self.closed_until <= self.actions && self.is_time_for(Quirk::ClosedPdb, 150) {
            self.closed_until = self.actions + self.random.between(20, 60);
        }
    }

    /// LogMiner reads the dictionary of every container.
    pub(crate) fn check_pdbs(&self) -> Result<(), SessionError> {
        match self.actions < self.closed_until {
            true => Err(ora(16_331, "container \"PDB_IDLE\" is not open")),
            false => Ok(()),
        }
    }

    /// The database is opened with RESETLOGS: sequences begin again, the logs so far are of another
    /// incarnation, clients and their transactions are gone, sessions are broken.
    pub(crate) fn reset_logs(&mut self) {
        for _ in 0..self.clients.len() {
            self.kill_a_client();
        }
        self.generation += 1;
        self.identity.resetlogs = self.clock.advance();
        self.archive = Archive::default();
        self.builds.clear();
        let first = self.clock.advance();
        for redo in &mut self.threads {
            *redo = RedoLogs::new(redo.thread, 1, first);
        }
    }
}
