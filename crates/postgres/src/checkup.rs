//! What an operator should know of a connector's database, for `highwater doctor`. Nothing is changed
//! there, and no WAL sender is taken.

use highwater_connector::{CONNECTOR_NAME, ConnectorError, Finding, Severity, SourceOffset};

use crate::catalog::Catalog;
use crate::error::code;
use crate::preflight::{self, Found, Plan};
use crate::settings::Settings;
use crate::start_decision::Slot;

/// Held WAL that is worth a warning, in bytes.
const MUCH_WAL: i64 = 1 << 30;

/// What the server keeps for its slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// `max_wal_senders`.
    pub(crate) senders: i64,
    /// Those in use.
    pub(crate) senders_used: i64,
    /// `max_slot_wal_keep_size` in MB; -1 without bound.
    pub(crate) keep_mb: i64,
    /// Bytes of WAL that the slot holds back; none without a slot.
    pub(crate) held: Option<i64>,
}

/// Looks at the database of a connector with these settings.
///
/// # Errors
/// When it cannot be asked, or a start would be refused.
pub(crate) async fn examine(
    settings: &Settings,
    offset: Option<&SourceOffset>,
) -> Result<Vec<Finding>, ConnectorError> {
    let catalog = Catalog::connect(&settings.login).await?;
    let slot = catalog.slot(&settings.slot).await?;
    let room = catalog.room(&settings.slot).await?;
    let (capacity, tables) = (catalog.capacity().await?, catalog.tables().await?);
    let publication = catalog.publication(&settings.publication).await?;
    let found = Found {
        capacity: &capacity,
        tables: &tables,
        publication: publication.as_ref(),
        new_slots: i64::from(slot.is_none()),
        first: offset.is_none(),
    };
    let plan = preflight::check(settings, &found)?;
    let mut findings = Vec::from_iter(of_slot(&settings.slot, offset.is_some(), slot.as_ref()));
    findings.extend(of_room(&settings.slot, &room, slot.as_ref()));
    findings.extend(of_plan(settings, &plan, offset.is_some()));
    Ok(findings)
}

fn of_slot(name: &str, stored: bool, slot: Option<&Slot>) -> Option<Finding> {
    let status = slot.and_then(|slot| slot.wal_status.as_deref());
    match (slot, status) {
        (None, _) if stored => Some(Finding::new(
            Severity::Error,
            code::SLOT_MISSING,
            format!("the replication slot {name} is gone, and a position is stored"),
            "changes since the stored position can no longer be read from it",
            crate::error::begin_again(None),
        )),
        (Some(_), Some("lost")) => Some(Finding::new(
            Severity::Error,
            code::SLOT_LOST,
            format!("the server removed WAL that the replication slot {name} needs"),
            "changes since the stored position can no longer be read from it",
            crate::error::begin_again(Some(name)),
        )),
        (Some(_), Some("unreserved")) => Some(Finding::new(
            Severity::Warning,
            code::SLOT_AT_RISK,
            format!(
                "the server may remove WAL that the replication slot {name} needs, at its next checkpoint"
            ),
            "the slot is behind by more than max_slot_wal_keep_size; once it is lost, only a new snapshot helps",
            "ALTER SYSTEM SET max_slot_wal_keep_size = '-1'; SELECT pg_reload_conf(); and see that the connector runs",
        )),
        _ => None,
    }
}

fn of_room(name: &str, room: &Room, slot: Option<&Slot>) -> Vec<Finding> {
    let read = slot.is_some_and(|slot| slot.active_pid.is_some());
    let mut findings = Vec::new();
    if !read && room.senders_used >= room.senders {
        findings.push(Finding::new(
            Severity::Warning,
            code::SENDERS_FULL,
            format!("{} of {} WAL senders are taken", room.senders_used, room.senders),
            "the connector cannot read changes without one",
            "ALTER SYSTEM SET max_wal_senders = 20; then restart the server",
        ));
    }
    let held = room.held.unwrap_or(0);
    if held >= MUCH_WAL {
        let gib = held / (1 << 30);
        findings.push(Finding::new(
            Severity::Warning,
            code::WAL_HELD,
            format!("the replication slot {name} holds back {gib} GiB of WAL"),
            "the server's disk fills as long as nobody reads the slot",
            format!("highwater connector show {CONNECTOR_NAME} says whether it moves; highwater connector resume {CONNECTOR_NAME} starts it"),
        ));
    }
    if room.keep_mb < 0 {
        findings.push(Finding::new(
            Severity::Note,
            code::WAL_UNLIMITED,
            "max_slot_wal_keep_size is -1: a slot that nobody reads holds back WAL without bound",
            "a connector that is stopped for long can fill the server's disk; with a bound the slot is lost instead, and a new snapshot is needed",
            "decide which of the two you want; a bound: ALTER SYSTEM SET max_slot_wal_keep_size = '50GB'; SELECT pg_reload_conf()",
        ));
    }
    findings
}

/// At a first start the publication is made, which is nobody's concern.
fn of_plan(settings: &Settings, plan: &Plan, stored: bool) -> Option<Finding> {
    let statement = plan.statement(settings).filter(|_| stored)?;
    Some(Finding::new(
        Severity::Warning,
        code::PUBLICATION_DRIFT,
        format!("the publication {} lacks captured tables: {statement}", settings.publication),
        "their changes are not captured until the connector's next start, which runs this statement",
        format!("highwater connector restart {CONNECTOR_NAME}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(wal_status: &str) -> Slot {
        Slot { wal_status: Some(wal_status.to_owned()), ..Slot::default() }
    }

    fn codes(findings: impl IntoIterator<Item = Finding>) -> Vec<&'static str> {
        findings.into_iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn a_slot_that_is_gone_or_going_is_found() {
        assert_eq!(codes(of_slot("s", true, None)), [code::SLOT_MISSING]);
        assert_eq!(codes(of_slot("s", false, None)), [""; 0]);
        assert_eq!(codes(of_slot("s", true, Some(&slot("lost")))), [code::SLOT_LOST]);
        assert_eq!(codes(of_slot("s", true, Some(&slot("unreserved")))), [code::SLOT_AT_RISK]);
        assert_eq!(codes(of_slot("s", true, Some(&slot("reserved")))), [""; 0]);
    }

    #[test]
    fn room_is_short_before_it_is_gone() {
        let room = Room { senders: 10, senders_used: 3, keep_mb: 1024, held: Some(MUCH_WAL - 1) };
        assert_eq!(codes(of_room("s", &room, None)), [""; 0]);
        let full = Room { senders_used: 10, keep_mb: -1, held: Some(5 << 30), ..room };
        let all = [code::SENDERS_FULL, code::WAL_HELD, code::WAL_UNLIMITED];
        assert_eq!(codes(of_room("s", &full, None)), all);
        let read = Slot { active_pid: Some(1), ..slot("reserved") };
        assert_eq!(codes(of_room("s", &full, Some(&read))), all[1..]);
    }
}
