//! What is done after every step, and while nothing is to be read.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Engine, Stopped};
use crate::delivery::{Heartbeat, HeartbeatReason};
use crate::outlet::Outlet;

/// How often a position is offered to be stored while nothing is delivered (rule P1).
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

impl<O: Outlet> Engine<O> {
    pub(super) fn keep_house(&mut self) -> Result<(), Stopped> {
        if !self.records.is_empty() {
            self.said = Instant::now();
            return Ok(());
        }
        let quiet = self.said.elapsed();
        match self.settings.heartbeat_interval {
            Some(interval) if quiet >= interval => self.say_heartbeat(HeartbeatReason::Quiet),
            None if quiet >= IDLE_INTERVAL => {
                let open = self.open_work();
                let position = self.progress.safe(&open, self.miner.cursor());
                self.said = Instant::now();
                self.outlet.idle(position)?;
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn say_heartbeat(&mut self, reason: HeartbeatReason) {
        let open = self.open_work();
        let position = self.progress.safe(&open, self.miner.cursor());
        let heartbeat = Heartbeat {
            reason,
            resume: self.progress.resume_scn(),
            mined_to: Some(self.miner.cursor().scn),
        };
        self.records.push(self.delivery.heartbeat(&heartbeat, position, now_ms()));
        self.said = Instant::now();
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
