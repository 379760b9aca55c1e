//! One test a cell of rule P3's matrix.

use super::*;
use crate::offset::Partial;

const NAME: &str = "hw";

fn server() -> Server {
    Server {
        system_id: "7000".to_owned(),
        timeline: 3,
        wal_end: Lsn(1_000),
        database: "shop".to_owned(),
        history: vec![Switch { timeline: 1, at: Lsn(300) }, Switch { timeline: 2, at: Lsn(600) }],
    }
}

fn slot() -> Slot {
    Slot {
        plugin: Some("pgoutput".to_owned()),
        database: Some("shop".to_owned()),
        wal_status: Some("reserved".to_owned()),
        restart_lsn: Some(Lsn(700)),
        confirmed_flush: Some(Lsn(800)),
        active_pid: None,
    }
}

fn stored(state: State, lsn: u64) -> StoredOffset {
    StoredOffset {
        state,
        slot: Some(NAME.to_owned()),
        system_id: Some("7000".to_owned()),
        timeline: Some(3),
        database: Some("shop".to_owned()),
        publication: None,
        lsn: Lsn(lsn),
        partial: None,
        snapshot: Vec::new(),
        rest: serde_json::Map::new(),
    }
}

fn with(
    stored: Option<&StoredOffset>,
    slot: Option<&Slot>,
    adopt: Adopt,
) -> Result<Action, &'static str> {
    let server = server();
    decide(&Situation { slot_name: NAME, stored, slot, server: &server, adopt })
        .map_err(|refusal| refusal.code)
}

fn resumed(stored: &StoredOffset) -> Result<Action, &'static str> {
    with(Some(stored), Some(&slot()), Adopt::No)
}

#[test]
fn nothing_at_all_is_a_first_start() {
    assert_eq!(with(None, None, Adopt::No), Ok(Action::Begin));
}

#[test]
fn an_intent_without_a_slot_begins_again() {
    assert_eq!(with(Some(&stored(State::Intent, 0)), None, Adopt::No), Ok(Action::Begin));
}

#[test]
fn an_intent_with_a_slot_drops_it() {
    let intent = stored(State::Intent, 0);
    assert_eq!(with(Some(&intent), Some(&slot()), Adopt::No), Ok(Action::DropAndBegin));
}

#[test]
fn an_intent_for_another_server_owns_no_slot_here() {
    let intent = StoredOffset { system_id: Some("1".to_owned()), ..stored(State::Intent, 0) };
    assert_eq!(with(Some(&intent), Some(&slot()), Adopt::No), Err(code::SLOT_FOREIGN));
    assert_eq!(with(Some(&intent), None, Adopt::No), Ok(Action::Begin));
}

#[test]
fn an_intent_for_another_slot_owns_no_slot_here() {
    let intent = StoredOffset { slot: Some("other".to_owned()), ..stored(State::Intent, 0) };
    assert_eq!(with(Some(&intent), Some(&slot()), Adopt::No), Err(code::SLOT_FOREIGN));
}

#[test]
fn a_position_without_a_slot_is_refused() {
    for state in [State::Streaming, State::Snapshot] {
        for adopt in [Adopt::No, Adopt::Stream, Adopt::Resnapshot] {
            assert_eq!(with(Some(&stored(state, 900)), None, adopt), Err(code::SLOT_MISSING));
        }
    }
}

#[test]
fn a_position_with_a_lost_slot_is_refused() {
    let lost = Slot { wal_status: Some("lost".to_owned()), ..slot() };
    let position = stored(State::Streaming, 900);
    assert_eq!(with(Some(&position), Some(&lost), Adopt::No), Err(code::SLOT_LOST));
    let gone = Slot { restart_lsn: None, ..slot() };
    assert_eq!(with(Some(&position), Some(&gone), Adopt::No), Err(code::SLOT_LOST));
}

#[test]
fn a_position_with_a_slot_of_another_plugin_is_refused() {
    let position = stored(State::Streaming, 900);
    for plugin in [Some("test_decoding".to_owned()), None] {
        let other = Slot { plugin, ..slot() };
        assert_eq!(with(Some(&position), Some(&other), Adopt::No), Err(code::SLOT_PLUGIN));
    }
}

#[test]
fn a_position_with_a_slot_of_another_database_is_refused() {
    let other = Slot { database: Some("else".to_owned()), ..slot() };
    let position = stored(State::Streaming, 900);
    assert_eq!(with(Some(&position), Some(&other), Adopt::No), Err(code::SLOT_DATABASE));
}

#[test]
fn a_slot_without_an_offset_is_refused() {
    assert_eq!(with(None, Some(&slot()), Adopt::No), Err(code::SLOT_FOREIGN));
}

#[test]
fn a_slot_without_an_offset_is_taken_over_when_told() {
    assert_eq!(with(None, Some(&slot()), Adopt::Stream), Ok(Action::Adopt(Lsn(800))));
    assert_eq!(with(None, Some(&slot()), Adopt::Resnapshot), Ok(Action::DropAndBegin));
}

#[test]
fn a_lost_slot_is_not_taken_over() {
    let lost = Slot { wal_status: Some("lost".to_owned()), ..slot() };
    assert_eq!(with(None, Some(&lost), Adopt::Stream), Err(code::SLOT_LOST));
}

#[test]
fn a_position_ahead_of_the_log_is_refused() {
    assert_eq!(resumed(&stored(State::Streaming, 1_001)), Err(code::AHEAD));
    let mut inside = stored(State::Streaming, 900);
    inside.partial = Some(Partial { commit_lsn: Lsn(1_001), event_index: 1 });
    assert_eq!(resumed(&inside), Err(code::AHEAD));
    assert!(resumed(&stored(State::Streaming, 1_000)).is_ok());
}

#[test]
fn another_system_identity_is_refused() {
    let other = StoredOffset { system_id: Some("1".to_owned()), ..stored(State::Streaming, 900) };
    assert_eq!(resumed(&other), Err(code::OTHER_SERVER));
}

#[test]
fn a_timeline_that_forks_before_the_position_is_refused() {
    let on = |timeline, lsn| {
        let low = Slot { confirmed_flush: Some(Lsn(1)), ..slot() };
        let position = StoredOffset { timeline: Some(timeline), ..stored(State::Streaming, lsn) };
        with(Some(&position), Some(&low), Adopt::No).map(|_| ())
    };
    assert_eq!(on(2, 601), Err(code::TIMELINE));
    assert_eq!(on(2, 600), Ok(()));
    assert_eq!(on(1, 301), Err(code::TIMELINE));
    assert_eq!(on(4, 100), Err(code::TIMELINE));
    assert_eq!(on(3, 900), Ok(()));
}

#[test]
fn a_position_below_confirmed_flush_is_refused_with_both_numbers() {
    assert_eq!(resumed(&stored(State::Streaming, 799)), Err(code::BEHIND));
    let server = server();
    let position = stored(State::Streaming, 799);
    let situation = Situation {
        slot_name: NAME,
        stored: Some(&position),
        slot: Some(&slot()),
        server: &server,
        adopt: Adopt::No,
    };
    let refusal = decide(&situation).unwrap_err();
    assert!(refusal.what.contains("0/31F") && refusal.what.contains("0/320"), "{refusal}");
}

#[test]
fn a_position_at_confirmed_flush_goes_on() {
    let position = stored(State::Streaming, 800);
    assert_eq!(resumed(&position), Ok(Action::Resume(Box::new(position))));
}

#[test]
fn an_offset_without_identity_is_given_the_servers() {
    let bare = StoredOffset {
        slot: None,
        system_id: None,
        timeline: None,
        database: None,
        ..stored(State::Streaming, 900)
    };
    let expected = stored(State::Streaming, 900);
    assert_eq!(resumed(&bare), Ok(Action::Resume(Box::new(expected))));
}
