//! Heartbeats: positions of a database in which nothing that is captured changes. Nothing is written to the
//! source for them.

use std::sync::Arc;

use highwater_connector::{Position, SourceRecord};

use super::output::Delivery;
use super::own_record::{Object, own_record, server_key};
use crate::Scn;

/// Why there is a heartbeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeartbeatReason {
    /// The task starts: its position is stored before any change.
    Start,
    /// Nothing was delivered for a while.
    Quiet,
}

/// A heartbeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// Why.
    pub reason: HeartbeatReason,
    /// From where redo is read again after a restart.
    pub resume: Scn,
    /// Up to where redo was read, if any was.
    pub mined_to: Option<Scn>,
}

impl Delivery {
    /// The record of a heartbeat.
    pub fn heartbeat(
        &self,
        heartbeat: &Heartbeat,
        position: Arc<dyn Position>,
        now_ms: i64,
    ) -> SourceRecord {
        let mined_to = heartbeat.mined_to.map(|scn| scn.to_string());
        let value = Object::default()
            .number("ts_ms", now_ms)
            .text("resume_scn", &heartbeat.resume.to_string())
            .optional("mined_to_scn", mined_to.as_deref())
            .text(
                "reason",
                match heartbeat.reason {
                    HeartbeatReason::Start => "start",
                    HeartbeatReason::Quiet => "quiet",
                },
            );
        let key = server_key(self.server());
        own_record(&self.own_topics().heartbeat, key, value.close(), position)
    }
}
