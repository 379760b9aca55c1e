//! What to do at a start (rule P3): stored offset × slot × server → an action or a refusal.

use highwater_connector::{CONNECTOR_NAME, ConnectorError, ErrorKind};

use crate::error::{begin_again, code};
use crate::lsn::Lsn;
use crate::name::literal;
use crate::offset::{State, StoredOffset};
use crate::settings::Adopt;
use crate::timeline::{Descent, Switch, descent};

/// Who the server is and how far its log reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    /// `system_identifier`.
    pub(crate) system_id: String,
    /// Its timeline.
    pub(crate) timeline: u32,
    /// End of its flushed log.
    pub(crate) wal_end: Lsn,
    /// The database that we are connected to.
    pub(crate) database: String,
    /// How it came to its timeline.
    pub(crate) history: Vec<Switch>,
}

/// A replication slot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Slot {
    /// Its plugin; none for a physical slot.
    pub(crate) plugin: Option<String>,
    /// Its database; none for a physical slot.
    pub(crate) database: Option<String>,
    /// `wal_status`: `reserved`, `extended`, `unreserved` or `lost`.
    pub(crate) wal_status: Option<String>,
    /// The server keeps its log from here.
    pub(crate) restart_lsn: Option<Lsn>,
    /// The server sends nothing from below.
    pub(crate) confirmed_flush: Option<Lsn>,
    /// The process that reads it.
    pub(crate) active_pid: Option<i32>,
}

/// Everything that the decision depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    /// Name of the configured slot.
    pub(crate) slot_name: &'a str,
    /// What is stored.
    pub(crate) stored: Option<&'a StoredOffset>,
    /// The slot, if it stands.
    pub(crate) slot: Option<&'a Slot>,
    /// The server.
    pub(crate) server: &'a Server,
    /// What to do with a slot without an offset.
    pub(crate) adopt: Adopt,
}

/// What to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Make the slot and begin.
    Begin,
    /// Drop the slot, which nothing depends on, make it again and begin.
    DropAndBegin,
    /// Take over a slot and go on where it stands.
    Adopt(Lsn),
    /// Go on at this offset, which names the server's identity.
    Resume(Box<StoredOffset>),
}

/// Decides.
///
/// # Errors
/// The refusal, with the numbers and the remedy.
pub(crate) fn decide(situation: &Situation<'_>) -> Result<Action, ConnectorError> {
    match (situation.stored, situation.slot) {
        (None, None) => Ok(Action::Begin),
        (None, Some(slot)) => adopt(situation, slot),
        (Some(stored), slot) if stored.state == State::Intent => intent(situation, stored, slot),
        (Some(stored), None) => Err(missing(situation, stored)),
        (Some(stored), Some(slot)) => {
            usable(situation.slot_name, slot, situation.server)?;
            resume(stored, slot, situation)
        }
    }
}

/// The slot was made, or not, after the intent was stored; nothing was read from it.
fn intent(
    situation: &Situation<'_>,
    stored: &StoredOffset,
    slot: Option<&Slot>,
) -> Result<Action, ConnectorError> {
    let ours = stored.system_id.as_deref().is_none_or(|id| id == situation.server.system_id)
        && stored.slot.as_deref().is_none_or(|name| name == situation.slot_name);
    match slot {
        None => Ok(Action::Begin),
        Some(_) if ours => Ok(Action::DropAndBegin),
        // The intent was for another server or another name: this slot is somebody's.
        Some(slot) => adopt(situation, slot),
    }
}

fn adopt(situation: &Situation<'_>, slot: &Slot) -> Result<Action, ConnectorError> {
    let name = situation.slot_name;
    match situation.adopt {
        Adopt::Resnapshot => Ok(Action::DropAndBegin),
        Adopt::Stream => {
            usable(name, slot, situation.server)?;
            slot.confirmed_flush.map(Action::Adopt).ok_or_else(|| {
                refusal(
                    code::SLOT_LOST,
                    format!("slot {name} has no confirmed position"),
                    resnapshot(name),
                )
            })
        }
        Adopt::No => Err(refusal(
            code::SLOT_FOREIGN,
            format!(
                "slot {name} stands at {} and no offset is stored, so it is not known whose it is",
                shown(slot.confirmed_flush)
            ),
            format!(
                "choose another slot.name; or set slot.adopt=stream to go on at that position, or \
                 slot.adopt=resnapshot to drop the slot and begin again; or, if nobody reads it: \
                 SELECT pg_drop_replication_slot({})",
                literal(name)
            ),
        )),
    }
}

/// Whether a slot can be read from here at all.
pub(crate) fn usable(name: &str, slot: &Slot, server: &Server) -> Result<(), ConnectorError> {
    if slot.plugin.as_deref() != Some("pgoutput") {
        let plugin = slot.plugin.as_deref().unwrap_or("none, it is a physical slot");
        return Err(refusal(
            code::SLOT_PLUGIN,
            format!("the plugin of slot {name} is {plugin}; pgoutput is needed"),
            "choose another slot.name",
        ));
    }
    if slot.database.as_deref() != Some(server.database.as_str()) {
        let other = slot.database.as_deref().unwrap_or("none");
        return Err(refusal(
            code::SLOT_DATABASE,
            format!("slot {name} belongs to database {other}, not to {}", server.database),
            "choose another slot.name, or set database.dbname to the slot's database",
        ));
    }
    if slot.wal_status.as_deref() == Some("lost") || slot.restart_lsn.is_none() {
        return Err(refusal(
            code::SLOT_LOST,
            format!(
                "the server removed the log that slot {name} needs (confirmed {}, wal_status {})",
                shown(slot.confirmed_flush),
                slot.wal_status.as_deref().unwrap_or("not known")
            ),
            format!(
                "{}; to keep more log: ALTER SYSTEM SET max_slot_wal_keep_size",
                resnapshot(name)
            ),
        ));
    }
    Ok(())
}

fn missing(situation: &Situation<'_>, stored: &StoredOffset) -> ConnectorError {
    let (name, server) = (situation.slot_name, situation.server);
    let elsewhere = stored.system_id.as_ref().is_some_and(|id| *id != server.system_id);
    let promoted = match stored.timeline {
        _ if elsewhere => format!(", on server {} that the position is not of", server.system_id),
        Some(timeline) if timeline != server.timeline => format!(
            ", on a standby that became the primary (timeline {timeline} went over to {}): a standby \
             has no logical slots of its primary, unless they are kept in step (PostgreSQL 17: \
             failover slots)",
            server.timeline
        ),
        _ => String::new(),
    };
    refusal(
        code::SLOT_MISSING,
        format!(
            "slot {name} is gone{promoted}, and position {} is stored: a new slot would leave out \
             what was committed in between (the server's log ends at {})",
            stored.lsn, server.wal_end
        ),
        begin_again(None),
    )
}

fn resume(
    stored: &StoredOffset,
    slot: &Slot,
    situation: &Situation<'_>,
) -> Result<Action, ConnectorError> {
    let server = situation.server;
    same_history(stored, server)?;
    let furthest = stored.partial.map_or(stored.lsn, |partial| partial.commit_lsn.max(stored.lsn));
    if furthest > server.wal_end {
        return Err(refusal(
            code::AHEAD,
            format!(
                "the stored position {furthest} lies beyond the server's log, which ends at {}: \
                 the server lost transactions that were delivered",
                server.wal_end
            ),
            resnapshot(situation.slot_name),
        ));
    }
    if let Some(confirmed) = slot.confirmed_flush.filter(|confirmed| stored.lsn < *confirmed) {
        return Err(behind(situation.slot_name, stored.lsn, confirmed));
    }
    let identity = StoredOffset {
        slot: Some(situation.slot_name.to_owned()),
        system_id: Some(server.system_id.clone()),
        timeline: Some(server.timeline),
        database: Some(server.database.clone()),
        ..stored.clone()
    };
    Ok(Action::Resume(Box::new(identity)))
}

/// PostgreSQL begins at the confirmed position whatever is asked, without a word (case P39).
fn behind(name: &str, lsn: Lsn, confirmed: Lsn) -> ConnectorError {
    refusal(
        code::BEHIND,
        format!(
            "the stored position {lsn} lies below {confirmed}, which slot {name} was moved to: \
             the server would leave out what was committed in between"
        ),
        format!(
            "{}; or leave it out on purpose: highwater connector stop {CONNECTOR_NAME}; highwater \
             offsets set {CONNECTOR_NAME} lsn={confirmed} --allow-skip --reason 'left out'; \
             highwater connector resume {CONNECTOR_NAME}",
            resnapshot(name)
        ),
    )
}

/// Whether a stored offset belongs to the server's history.
pub(crate) fn same_history(stored: &StoredOffset, server: &Server) -> Result<(), ConnectorError> {
    if let Some(id) = stored.system_id.as_deref().filter(|id| *id != server.system_id) {
        return Err(refusal(
            code::OTHER_SERVER,
            format!("the position belongs to server {id}, and this one is {}", server.system_id),
            format!(
                "set database.hostname to the server of the position, or {}",
                begin_again(None)
            ),
        ));
    }
    let Some(timeline) = stored.timeline else { return Ok(()) };
    let furthest = stored.partial.map_or(stored.lsn, |partial| partial.commit_lsn.max(stored.lsn));
    let why = match descent(timeline, furthest, server.timeline, &server.history) {
        Descent::Same => return Ok(()),
        Descent::ForkedAt(at) => format!("left timeline {timeline} at {at}"),
        Descent::Stranger => format!("never was on timeline {timeline}"),
    };
    Err(refusal(
        code::TIMELINE,
        format!(
            "the position {furthest} lies on timeline {timeline}, and the server, on timeline {}, \
             {why}: what was delivered is not its history",
            server.timeline
        ),
        begin_again(None),
    ))
}

fn resnapshot(slot: &str) -> String {
    begin_again(Some(slot))
}

fn shown(lsn: Option<Lsn>) -> String {
    lsn.map_or_else(|| "no position".to_owned(), |lsn| lsn.to_string())
}

fn refusal(code: &'static str, what: String, remedy: impl Into<String>) -> ConnectorError {
    ConnectorError::stop(code, ErrorKind::Position, what, remedy)
}

#[cfg(test)]
mod tests;
