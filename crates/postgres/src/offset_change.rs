//! Whether an operator may move a stored offset (rule P8).

use highwater_connector::{OffsetChange, OffsetVerdict, SourceOffset};

use crate::debezium_offset::{self, is_debeziums};
use crate::error::begin_again;
use crate::lsn::Lsn;
use crate::offset::{self, State, StoredOffset};
use crate::start_decision::{Server, Slot, same_history, usable};

/// A refusal: what, and the remedy.
type Refusal = (String, String);

/// Judges an edit by what the server has. Nothing is changed at the server: a position further
/// on is asked for at the next start, and the slot follows once the first offset behind it is
/// stored.
pub(crate) fn judge(
    change: &OffsetChange,
    slot_name: &str,
    slot: Option<&Slot>,
    server: &Server,
) -> OffsetVerdict {
    match checked(change, slot_name, slot, server) {
        Ok(offset) => OffsetVerdict::Accepted(offset.map(|offset| offset.write())),
        Err((what, remedy)) => OffsetVerdict::Refused { what, remedy },
    }
}

fn checked(
    change: &OffsetChange,
    slot_name: &str,
    slot: Option<&Slot>,
    server: &Server,
) -> Result<Option<StoredOffset>, Refusal> {
    let Some(wanted) = &change.wanted else { return Ok(None) };
    known_fields(wanted, change.current.as_ref())?;
    let wanted = StoredOffset::read(wanted)
        .map_err(|error| (error.to_string(), "give lsn=X/X, such as lsn=0/1A2B3C8".to_owned()))?;
    // What is stored and cannot be read is no reason against a better one.
    let current = change.current.as_ref().and_then(|offset| StoredOffset::read(offset).ok());
    let slot = slot.ok_or_else(|| {
        (
            format!("slot {slot_name} does not stand, so no position can be gone on from"),
            begin_again(None),
        )
    })?;
    usable(slot_name, slot, server).map_err(|error| (error.what, error.remedy))?;
    same_history(&wanted, server).map_err(|error| (error.what, error.remedy))?;
    let wanted = settled(wanted, current.as_ref())?;
    within(wanted.lsn, slot_name, slot, server)?;
    forward(wanted.lsn, current.as_ref(), slot, change.allow_skip)?;
    Ok(Some(StoredOffset {
        slot: Some(slot_name.to_owned()),
        system_id: Some(server.system_id.clone()),
        timeline: Some(server.timeline),
        database: Some(server.database.clone()),
        ..wanted
    }))
}

/// A field that nobody reads is a slip of the pen: the edit would be answered as done, and move nothing.
fn known_fields(wanted: &SourceOffset, current: Option<&SourceOffset>) -> Result<(), Refusal> {
    let known = if is_debeziums(wanted) {
        debezium_offset::fields(wanted)
    } else {
        offset::FIELDS.to_vec()
    };
    match wanted.stray_field(&known, current) {
        None => Ok(()),
        Some(stray) => Err((stray, "give lsn=X/X, such as lsn=0/1A2B3C8".to_owned())),
    }
}

/// Only `lsn` can be moved: everything else must be as it is stored, or is taken from there.
fn settled(
    mut wanted: StoredOffset,
    current: Option<&StoredOffset>,
) -> Result<StoredOffset, Refusal> {
    let only = |what: &str| (what.to_owned(), "give lsn=X/X alone".to_owned());
    let unfinished = current.is_some_and(|current| current.state == State::Snapshot);
    if unfinished {
        return Err((
            "the snapshot is not finished, so there is no position to move".to_owned(),
            "let it finish".to_owned(),
        ));
    }
    if wanted.state != State::Streaming {
        return Err(only("state can only be streaming"));
    }
    let same_place = current.is_some_and(|current| current.lsn == wanted.lsn);
    if wanted.partial.is_some()
        && !(same_place && current.is_some_and(|current| current.partial == wanted.partial))
    {
        return Err(only("commit_lsn and event_index cannot be set"));
    }
    let known = current.map(|current| current.snapshot.as_slice()).unwrap_or_default();
    if !wanted.snapshot.is_empty() && wanted.snapshot != known {
        return Err(only("snapshot cannot be set"));
    }
    let published = current.and_then(|current| current.publication.as_ref());
    if wanted.publication.is_some() && wanted.publication.as_ref() != published {
        return Err(only("publication can be removed and not set"));
    }
    // The points still say which changes the snapshot holds already.
    wanted.snapshot = known.to_vec();
    Ok(wanted)
}

fn within(lsn: Lsn, slot_name: &str, slot: &Slot, server: &Server) -> Result<(), Refusal> {
    if lsn > server.wal_end {
        return Err((
            format!("{lsn} lies beyond the server's log, which ends at {}", server.wal_end),
            format!("give an lsn up to {}", server.wal_end),
        ));
    }
    match slot.confirmed_flush.filter(|confirmed| lsn < *confirmed) {
        None => Ok(()),
        Some(confirmed) => Err((
            format!(
                "{lsn} lies below {confirmed}, which slot {slot_name} has confirmed: PostgreSQL \
                 sends nothing from below, although it keeps its log from {}",
                slot.restart_lsn.unwrap_or_default()
            ),
            format!("give an lsn from {confirmed}, or {}", begin_again(Some(slot_name))),
        )),
    }
}

fn forward(
    lsn: Lsn,
    current: Option<&StoredOffset>,
    slot: &Slot,
    allow_skip: bool,
) -> Result<(), Refusal> {
    let from = current.map(|current| current.lsn).or(slot.confirmed_flush).unwrap_or_default();
    if lsn <= from || allow_skip {
        return Ok(());
    }
    Err((
        format!(
            "{lsn} lies {} bytes of log beyond {from}; transactions committed in between would \
             never be delivered",
            lsn.0 - from.0
        ),
        "give --allow-skip, over REST ?allowSkip=true, if that is meant; the slot follows once the \
         connector has started and stored its first offset"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server {
            system_id: "7".to_owned(),
            timeline: 1,
            wal_end: Lsn(0x1000),
            database: "d".to_owned(),
            history: Vec::new(),
        }
    }

    fn slot() -> Slot {
        Slot {
            plugin: Some("pgoutput".to_owned()),
            database: Some("d".to_owned()),
            wal_status: None,
            restart_lsn: Some(Lsn(0x100)),
            confirmed_flush: Some(Lsn(0x500)),
            active_pid: None,
        }
    }

    const CURRENT: &str = r#"{"v":1,"state":"streaming","lsn":"0/600","commit_lsn":"0/700",
        "event_index":2,"snapshot":"{\"public.a\":{\"done\":true,\"point\":\"0/900\"}}","x":1}"#;

    fn edit(wanted: &str, allow_skip: bool) -> Result<SourceOffset, String> {
        edit_from(CURRENT, wanted, allow_skip)
    }

    fn edit_from(current: &str, wanted: &str, allow_skip: bool) -> Result<SourceOffset, String> {
        let change = OffsetChange {
            current: Some(serde_json::from_str(current).unwrap()),
            wanted: Some(serde_json::from_str(wanted).unwrap()),
            allow_skip,
        };
        match judge(&change, "s", Some(&slot()), &server()) {
            OffsetVerdict::Accepted(offset) => Ok(offset.unwrap()),
            OffsetVerdict::Refused { what, .. } => Err(what),
        }
    }

    #[test]
    fn a_position_the_slot_can_go_to_is_accepted_and_completed() {
        let offset = edit(r#"{"lsn":"0/580","x":2}"#, false).unwrap();
        assert_eq!(offset.text("lsn"), Some("0/580"));
        assert_eq!((offset.text("system_id"), offset.number("timeline")), (Some("7"), Some(1)));
        assert_eq!((offset.text("commit_lsn"), offset.number("x")), (None, Some(2)));
        assert!(offset.text("snapshot").unwrap().contains("0/900"));
    }

    #[test]
    fn what_is_stored_may_be_stored_again() {
        assert_eq!(edit(CURRENT, false).unwrap().number("event_index"), Some(2));
    }

    #[test]
    fn below_the_confirmed_position_is_refused() {
        assert!(edit(r#"{"lsn":"0/4FF"}"#, true).unwrap_err().contains("0/500"));
    }

    #[test]
    fn beyond_the_log_is_refused() {
        assert!(edit(r#"{"lsn":"0/1001"}"#, true).unwrap_err().contains("0/1000"));
    }

    #[test]
    fn forward_needs_to_be_said_in_so_many_words() {
        assert!(edit(r#"{"lsn":"0/800"}"#, false).unwrap_err().contains("never be delivered"));
        assert!(edit(r#"{"lsn":"0/800"}"#, true).is_ok());
    }

    #[test]
    fn nothing_but_lsn_can_be_set() {
        for wanted in [
            r#"{"lsn":"0/600","commit_lsn":"0/700","event_index":1}"#,
            r#"{"lsn":"0/580","commit_lsn":"0/700","event_index":2}"#,
            r#"{"lsn":"0/600","state":"snapshot"}"#,
            r#"{"lsn":"0/600","snapshot":"{}","state":"intent"}"#,
            r#"{"lsn":"0/600","snapshot":"{\"public.b\":{\"done\":true}}"}"#,
            r#"{"lsn":"0/600","system_id":"8"}"#,
            r#"{"lsn":"0/600","publication":"{\"\":\"9:1\"}"}"#,
            r#"{"lsn":1}"#,
        ] {
            assert!(edit(wanted, true).is_err(), "{wanted}");
        }
    }

    #[test]
    fn a_field_that_nobody_reads_is_refused() {
        assert!(edit(r#"{"lsn":"0/600","lns":"0/580"}"#, true).unwrap_err().starts_with("lns"));
        let debeziums = r#"{"lsn":1536,"lsn_proc":1536,"txId":7,"ts_usec":1}"#;
        assert!(edit_from(debeziums, debeziums, true).is_ok());
        let stray = r#"{"lsn":1536,"lsn_comit":1400}"#;
        assert!(edit_from(debeziums, stray, true).unwrap_err().contains("mean lsn_commit?"));
    }

    #[test]
    fn an_unfinished_snapshot_has_no_position_to_move() {
        let current = r#"{"state":"snapshot","lsn":"0/600"}"#;
        assert!(edit_from(current, r#"{"lsn":"0/600"}"#, true).is_err());
    }

    #[test]
    fn removing_is_always_accepted() {
        let change = OffsetChange { current: None, wanted: None, allow_skip: false };
        assert_eq!(judge(&change, "s", None, &server()), OffsetVerdict::Accepted(None));
    }

    #[test]
    fn without_a_slot_nothing_can_be_set() {
        let wanted = Some(serde_json::from_str(r#"{"lsn":"0/600"}"#).unwrap());
        let change = OffsetChange { current: None, wanted, allow_skip: true };
        let verdict = judge(&change, "s", None, &server());
        assert!(matches!(verdict, OffsetVerdict::Refused { .. }));
    }
}
