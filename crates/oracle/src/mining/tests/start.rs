//! Which databases are taken, and where a first start begins.

use super::filter;
use crate::mining::fake::{Fake, Fault, error, transaction};
use crate::mining::first_start::FirstStart;
use crate::mining::topology::Topology;
use crate::mining::{CaptureMode, Miner, MiningError, MiningFrom, MiningSettings, Step};
use crate::row::Operation;
use crate::session::{
    ArchiveDestination, ErrorClass, Identity, LogPlace, OpenMode, OpenTransaction, Role,
};
use crate::{Code, Cursor, Marks, RedoAddress, Scn};

fn probe(fake: &mut Fake, settings: &MiningSettings) -> Result<Topology, Code> {
    Topology::probe(fake, settings, None).map_err(code)
}

fn code(error: MiningError) -> Code {
    match error {
        MiningError::Stop(error) => error.code,
        MiningError::Session(error) => panic!("{error}"),
    }
}

fn archive_only() -> MiningSettings {
    MiningSettings { capture: CaptureMode::ArchiveOnly, ..MiningSettings::default() }
}

#[test]
fn which_role_is_taken_depends_on_the_capture_mode() {
    let other = || Role::Other("LOGICAL STANDBY".to_owned());
    let mounted = || OpenMode::Other("MOUNTED".to_owned());
    for (role, mode, online, archive) in [
        (Role::Primary, OpenMode::ReadWrite, true, true),
        (Role::Primary, OpenMode::ReadOnly, false, false),
        (Role::PhysicalStandby, OpenMode::ReadOnly, false, true),
        (Role::PhysicalStandby, mounted(), false, false),
        (other(), OpenMode::ReadWrite, false, false),
        (other(), OpenMode::ReadOnly, false, false),
    ] {
        let mut fake = Fake::new(1);
        (fake.about.role, fake.about.open_mode) = (role.clone(), mode.clone());
        let is_taken = |fake: &mut Fake, settings| probe(fake, &settings).is_ok();
        assert_eq!(is_taken(&mut fake, MiningSettings::default()), online, "{role:?} {mode:?}");
        assert_eq!(is_taken(&mut fake, archive_only()), archive, "{role:?} {mode:?}");
    }
}

#[test]
fn another_database_or_incarnation_is_refused() {
    let mut fake = Fake::new(1);
    let settings = MiningSettings::default();
    let same = fake.about.identity;
    assert!(Topology::probe(&mut fake, &settings, Some(same)).is_ok());
    for stored in [Identity { dbid: 1, ..same }, Identity { resetlogs: Scn(7), ..same }] {
        let refused = Topology::probe(&mut fake, &settings, Some(stored)).map_err(code);
        assert_eq!(refused.unwrap_err(), Code::Topology);
    }
}

#[test]
fn redo_has_to_be_archived_and_supplemented() {
    let mut fake = Fake::new(1);
    fake.about.is_archiving = false;
    assert_eq!(probe(&mut fake, &MiningSettings::default()), Err(Code::Topology));
    let mut fake = Fake::new(1);
    fake.about.has_supplemental_logging = false;
    assert_eq!(probe(&mut fake, &MiningSettings::default()), Err(Code::Topology));
}

#[test]
fn a_destination_is_the_named_one_or_the_first_usable() {
    let mut fake = Fake::new(1);
    let destination = |id: u32, is_usable| ArchiveDestination {
        id,
        name: format!("LOG_ARCHIVE_DEST_{id}"),
        is_usable,
    };
    fake.destinations = vec![destination(3, true), destination(2, true), destination(1, false)];
    let named = |name: &str| MiningSettings {
        archive_destination: Some(name.to_owned()),
        ..MiningSettings::default()
    };
    assert_eq!(probe(&mut fake, &MiningSettings::default()).unwrap().destination, 2);
    assert_eq!(probe(&mut fake, &named("log_archive_dest_3")).unwrap().destination, 3);
    assert_eq!(probe(&mut fake, &named("LOG_ARCHIVE_DEST_1")), Err(Code::Topology));
    fake.destinations.clear();
    assert_eq!(probe(&mut fake, &MiningSettings::default()), Err(Code::Topology));
}

// rac-single-thread
#[test]
fn several_enabled_threads_need_to_be_asked_for() {
    let mut fake = Fake::new(2);
    assert_eq!(probe(&mut fake, &MiningSettings::default()), Err(Code::Topology));
    fake.state(2).is_open = false;
    assert_eq!(probe(&mut fake, &MiningSettings::default()), Err(Code::Topology));
    let settings = MiningSettings { is_rac_enabled: true, ..MiningSettings::default() };
    assert_eq!(probe(&mut fake, &settings).unwrap().enabled.len(), 2);
    fake.state(2).is_enabled = false;
    assert!(probe(&mut fake, &MiningSettings::default()).is_ok());
    fake.state(1).is_enabled = false;
    assert_eq!(probe(&mut fake, &settings), Err(Code::Topology));
}

// P8
#[test]
fn a_position_that_names_no_thread_is_refused_where_several_are_enabled() {
    let mut fake = Fake::new(2);
    let settings = MiningSettings { is_rac_enabled: true, ..MiningSettings::default() };
    let marks = Marks::AnyThread(RedoAddress::start_of_log(1));
    let from = MiningFrom { cursor: Cursor { scn: Scn(100), marks }, scope: None, identity: None };
    let refused = Miner::new(&mut fake, settings, filter(), from).map(drop).map_err(code);
    assert_eq!(refused, Err(Code::Topology));
}

fn first_start(fake: &mut Fake, settings: &MiningSettings) -> Result<FirstStart, MiningError> {
    let topology = Topology::probe(fake, settings, None)?;
    FirstStart::take(fake, settings, &topology)
}

#[test]
fn without_open_transactions_mining_begins_now() {
    let mut fake = Fake::new(1);
    let start = first_start(&mut fake, &MiningSettings::default()).unwrap();
    assert_eq!((start.cursor.scn, start.cursor.marks), (Scn(100), Marks::None));
    assert_eq!(start.scope, None);
}

// L14, and dbz-2713's other half.
#[test]
fn mining_begins_with_the_oldest_open_transaction_and_keeps_of_others_their_commits() {
    let mut fake = Fake::new(1);
    let (open, other) = (transaction(1), transaction(2));
    fake.write(1, Operation::Insert, other);
    let start = fake.write(1, Operation::Start, open).at.scn;
    fake.write(1, Operation::Insert, open);
    fake.write(1, Operation::Commit, other);
    fake.tick();
    fake.open.push(OpenTransaction { key: open, start });
    let first = first_start(&mut fake, &MiningSettings::default()).unwrap();
    assert_eq!(first.cursor.scn, start);
    let scope = first.scope.clone().unwrap();
    assert_eq!((scope.floor, scope.listed), (Scn(fake.scn), Scn(fake.scn)));
    fake.write(1, Operation::Commit, open);
    fake.tick();
    let from = MiningFrom { cursor: first.cursor, scope: first.scope, identity: None };
    let mut miner = super::miner(&mut fake, from);
    let rows = super::apply(&mut miner, &mut fake);
    // Row 1/4 commits what began before: it ends nothing here.
    assert_eq!(super::texts(&rows), ["row 1/2", "row 1/3", "row 1/4", "row 1/5"]);
}

#[test]
fn what_a_start_keeps_is_not_forgotten_by_a_step_that_fails() {
    let mut fake = Fake::new(1);
    let key = transaction(1);
    fake.write(1, Operation::Start, key);
    fake.scn = 200;
    let settings = MiningSettings { start_scn: Some(Scn(101)), ..MiningSettings::default() };
    let mut first = first_start(&mut fake, &settings).unwrap();
    first.cursor.scn = Scn(100);
    first.scope =
        Some(crate::mining::StartScope { floor: Scn(150), listed: Scn(100), open: [].into() });
    fake.scn = 120;
    let mut miner = super::miner(
        &mut fake,
        MiningFrom { cursor: first.cursor, scope: first.scope, identity: None },
    );
    assert_eq!(super::apply(&mut miner, &mut fake).len(), 1);
    fake.write(1, Operation::Insert, key);
    fake.write(1, Operation::Commit, key);
    fake.tick();
    fake.faults.push_back(Fault::AfterRows(2, error(310, ErrorClass::StepRetry)));
    assert!(matches!(super::step(&mut miner, &mut fake), Ok(Step::Retry(_))));
    assert_eq!(super::apply(&mut miner, &mut fake).len(), 2);
}

#[test]
fn a_start_scn_is_the_floor_and_may_not_be_ahead() {
    let mut fake = Fake::new(1);
    fake.scn = 200;
    let at = |scn| MiningSettings { start_scn: Some(Scn(scn)), ..MiningSettings::default() };
    let start = first_start(&mut fake, &at(150)).unwrap();
    assert_eq!((start.cursor.scn, start.scope), (Scn(150), None));
    let key = transaction(1);
    fake.open.push(OpenTransaction { key, start: Scn(120) });
    fake.open.push(OpenTransaction { key: transaction(2), start: Scn(160) });
    let start = first_start(&mut fake, &at(150)).unwrap();
    let scope = start.scope.unwrap();
    assert_eq!((start.cursor.scn, scope.floor, scope.listed), (Scn(120), Scn(150), Scn(150)));
    assert_eq!(scope.open, [key].into());
    assert_eq!(first_start(&mut fake, &at(201)).map_err(code), Err(Code::Topology));
}

// dbz-2713: missing redo of an open transaction is never answered by a later start.
#[test]
fn redo_of_an_open_transaction_that_is_gone_stops() {
    let begun = |gone: bool| {
        let mut fake = Fake::new(1);
        fake.switch(1);
        fake.switch(1);
        fake.open.push(OpenTransaction { key: transaction(1), start: Scn(100) });
        fake.log(1, 1).place = LogPlace::Archived { is_purged: true };
        if gone {
            fake.logs.retain(|log| log.sequence != 1);
        }
        first_start(&mut fake, &MiningSettings::default())
    };
    for gone in [false, true] {
        let Err(MiningError::Stop(error)) = begun(gone) else { panic!() };
        assert_eq!(error.code, Code::LogPurged);
        assert!(error.what.contains("transaction 0:1.1.1 is open since SCN 100"), "{error}");
    }
}
