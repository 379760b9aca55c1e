//! Letting go of a slot for good: only of our own, and never of one that somebody reads.

use highwater_connector::{ConnectorError, ErrorKind};

use crate::error::{code, drop_statement};
use crate::offset::StoredOffset;
use crate::start_decision::{Server, Slot};

/// Whether a slot is the one that `stored` speaks of and can be dropped.
///
/// # Errors
/// Why not.
pub(crate) fn check(
    name: &str,
    slot: &Slot,
    stored: Option<&StoredOffset>,
    server: &Server,
) -> Result<(), ConnectorError> {
    let whose = match stored {
        None => Some("no offset is stored, so it is not known whose it is".to_owned()),
        Some(stored) => other_slot(name, stored, server),
    };
    let why = whose.or_else(|| match slot {
        Slot { plugin, .. } if plugin.as_deref() != Some("pgoutput") => {
            Some(format!("its plugin is {}", plugin.as_deref().unwrap_or("none")))
        }
        Slot { database, .. } if database.as_deref() != Some(server.database.as_str()) => {
            Some(format!("it belongs to database {}", database.as_deref().unwrap_or("none")))
        }
        Slot { active_pid: Some(pid), .. } => Some(format!("process {pid} of the server reads it")),
        _ => None,
    });
    match why {
        None => Ok(()),
        Some(why) => Err(ConnectorError::stop(
            code::SLOT_NOT_DROPPED,
            ErrorKind::Source,
            format!("slot {name} is not dropped: {why}"),
            format!(
                "delete without --drop-slot; then, if nobody needs the slot, in the database {}",
                drop_statement(name)
            ),
        )),
    }
}

/// Why the stored offset does not speak of this slot.
fn other_slot(name: &str, stored: &StoredOffset, server: &Server) -> Option<String> {
    let other = stored.slot.as_deref().filter(|slot| *slot != name);
    let elsewhere = stored.system_id.as_deref().filter(|id| *id != server.system_id);
    match (other, elsewhere) {
        (Some(slot), _) => Some(format!("the stored offset is of slot {slot}")),
        (_, Some(id)) => {
            Some(format!("the stored offset is of server {id}, this is {}", server.system_id))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsn::Lsn;
    use crate::offset::State;

    fn server() -> Server {
        Server {
            system_id: "7".to_owned(),
            timeline: 1,
            wal_end: Lsn(9),
            database: "shop".to_owned(),
            history: Vec::new(),
        }
    }

    fn slot() -> Slot {
        Slot {
            plugin: Some("pgoutput".to_owned()),
            database: Some("shop".to_owned()),
            ..Slot::default()
        }
    }

    fn stored() -> StoredOffset {
        StoredOffset {
            state: State::Streaming,
            slot: Some("s".to_owned()),
            system_id: Some("7".to_owned()),
            timeline: Some(1),
            database: Some("shop".to_owned()),
            publication: None,
            lsn: Lsn(1),
            partial: None,
            snapshot: Vec::new(),
            rest: serde_json::Map::new(),
        }
    }

    fn refused(slot: &Slot, stored: Option<&StoredOffset>) -> String {
        let error = check("s", slot, stored, &server()).unwrap_err();
        assert_eq!(error.code, code::SLOT_NOT_DROPPED);
        error.what
    }

    #[test]
    fn only_an_own_slot_that_nobody_reads_is_dropped() {
        check("s", &slot(), Some(&stored()), &server()).unwrap();
        assert!(refused(&slot(), None).contains("not known whose"));
        let other = StoredOffset { slot: Some("t".to_owned()), ..stored() };
        assert!(refused(&slot(), Some(&other)).contains("of slot t"));
        let other = StoredOffset { system_id: Some("8".to_owned()), ..stored() };
        assert!(refused(&slot(), Some(&other)).contains("of server 8"));
        let stored = stored();
        let wrong = Slot { plugin: Some("wal2json".to_owned()), ..slot() };
        assert!(refused(&wrong, Some(&stored)).contains("wal2json"));
        let wrong = Slot { database: Some("crm".to_owned()), ..slot() };
        assert!(refused(&wrong, Some(&stored)).contains("crm"));
        let busy = Slot { active_pid: Some(42), ..slot() };
        assert!(refused(&busy, Some(&stored)).contains("process 42"));
    }
}
