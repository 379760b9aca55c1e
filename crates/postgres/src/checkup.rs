//! What an operator should know of a connector's database, for `highwater doctor`. Nothing is changed
//! there, and no WAL sender is taken.

use highwater_connector::{CONNECTOR_NAME, ConnectorError, Finding, Hold, Severity, SourceOffset};

use crate::catalog::Catalog;
use crate::error::code;
use crate::holding::Holding;
use crate::preflight::{self, Found, Plan};
use crate::settings::Settings;
use crate::start_decision::Slot;

/// How many readers of slots the server has room for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// `max_wal_senders`.
    pub(crate) senders: i64,
    /// Those in use.
    pub(crate) senders_used: i64,
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
    let (room, holding) = (catalog.room().await?, catalog.holding(&settings.slot).await?);
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
    findings.extend(of_room(&room, slot.as_ref()));
    let hold = holding.as_ref().map(|held| held.hold(settings.place(), settings.wal_warn, None));
    // Of a slot that is lost or at risk it is said already.
    findings.extend(hold.filter(|hold| hold.pressing && !is_given_up(slot.as_ref())).map(of_hold));
    findings.extend(holding.as_ref().and_then(of_limit));
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

fn of_room(room: &Room, slot: Option<&Slot>) -> Option<Finding> {
    let read = slot.is_some_and(|slot| slot.active_pid.is_some());
    (!read && room.senders_used >= room.senders).then(|| {
        Finding::new(
            Severity::Warning,
            code::SENDERS_FULL,
            format!("{} of {} WAL senders are taken", room.senders_used, room.senders),
            "the connector cannot read changes without one",
            "ALTER SYSTEM SET max_wal_senders = 20; then restart the server",
        )
    })
}

fn is_given_up(slot: Option<&Slot>) -> bool {
    let status = slot.and_then(|slot| slot.wal_status.as_deref());
    matches!(status, Some("lost" | "unreserved"))
}

/// What `connector show` calls pressing.
fn of_hold(hold: Hold) -> Finding {
    let reason = "the server's disk fills, or the slot is lost, as long as nobody reads it";
    Finding::new(Severity::Warning, code::WAL_HELD, hold.says, reason, hold.remedy)
}

fn of_limit(holding: &Holding) -> Option<Finding> {
    holding.limit.is_none().then(|| {
        Finding::new(
            Severity::Note,
            code::WAL_UNLIMITED,
            "max_slot_wal_keep_size is -1: a slot that nobody reads holds back WAL without bound",
            "a connector that is stopped for long can fill the server's disk; with a bound the slot is lost instead, and a new snapshot is needed",
            "decide which of the two you want; a bound: ALTER SYSTEM SET max_slot_wal_keep_size = '50GB'; SELECT pg_reload_conf()",
        )
    })
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
    use std::borrow::Cow;

    use super::*;

    fn slot(wal_status: &str) -> Slot {
        Slot { wal_status: Some(wal_status.to_owned()), ..Slot::default() }
    }

    fn codes(findings: impl IntoIterator<Item = Finding>) -> Vec<Cow<'static, str>> {
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
        let room = Room { senders: 10, senders_used: 3 };
        assert_eq!(codes(of_room(&room, None)), [""; 0]);
        let full = Room { senders_used: 10, ..room };
        assert_eq!(codes(of_room(&full, None)), [code::SENDERS_FULL]);
        let read = Slot { active_pid: Some(1), ..slot("reserved") };
        assert_eq!(codes(of_room(&full, Some(&read))), [""; 0]);
        assert_eq!(codes(of_limit(&Holding::default())), [code::WAL_UNLIMITED]);
        let bounded = Holding { limit: Some(1), ..Holding::default() };
        assert_eq!(codes(of_limit(&bounded)), [""; 0]);
    }
}
