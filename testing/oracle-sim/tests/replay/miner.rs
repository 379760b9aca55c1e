//! Everything that is in the logs, read at once.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use highwater_oracle::{
    Dictionary, LogQuery, MiningStart, ObjectId, RedoLog, RedoRow, RowMark, RowQuery, Scn, Session,
};
use highwater_oracle_sim::{CAPTURED_OWNER, SimSession, Simulation};

/// The numbers of the captured tables.
pub(crate) fn objects(session: &mut SimSession) -> Vec<ObjectId> {
    let all = session.table_objects().unwrap();
    all.into_iter().filter(|it| it.table.owner == CAPTURED_OWNER).map(|it| it.id).collect()
}

/// Every log there is, one copy of each.
pub(crate) fn logs(session: &mut SimSession) -> Vec<RedoLog> {
    let query =
        LogQuery { from: Scn(0), to: Scn::MAX.previous(), destination: 1, with_online: true };
    let mut seen = BTreeSet::new();
    let mut logs = session.logs(&query).unwrap();
    logs.retain(|log| seen.insert((log.thread, log.sequence)));
    logs
}

/// Starts over every log there is.
pub(crate) fn start(session: &mut SimSession) {
    let logs = logs(session);
    let first = logs.iter().map(|log| log.first).min().unwrap();
    let end = Scn::MAX.previous();
    session
        .start_mining(&MiningStart { logs, start: first, end, dictionary: Dictionary::Online })
        .unwrap();
}

/// The rows of a query that begins at the marks and ends before an SCN.
pub(crate) fn rows(
    session: &mut SimSession,
    marks: Vec<RowMark>,
    from: Scn,
    until: Scn,
) -> Vec<RedoRow> {
    let objects = objects(session);
    let excluded_users = vec!["BATCH".to_owned()];
    let mut rows = Vec::new();
    start(session);
    let query = RowQuery { marks, from, until, objects, excluded_users };
    let mut take = |row| {
        rows.push(row);
        ControlFlow::Continue(())
    };
    session.rows(&query, &mut take).unwrap();
    rows
}

/// Every row there is.
pub(crate) fn all_rows(simulation: &Simulation) -> Vec<RedoRow> {
    rows(&mut simulation.session(), Vec::new(), Scn(0), Scn::MAX)
}
