//! Everything that is in the logs, read at once.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use highwater_oracle::{
    Dictionary, LogQuery, MiningStart, ObjectId, RedoLog, RedoRow, RowQuery, Scn, Session,
    SessionError,
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
pub(crate) fn start(session: &mut SimSession) -> Result<(), SessionError> {
    let logs = logs(session);
    let first = logs.iter().map(|log| log.first).min().unwrap();
    let dictionary = Dictionary::Online;
    session.start_mining(&MiningStart { logs, start: first, end: Scn::MAX, dictionary })
}

/// The rows of a query of every log, or why there are none.
pub(crate) fn try_rows(
    session: &mut SimSession,
    query: &RowQuery,
) -> Result<Vec<RedoRow>, SessionError> {
    let mut rows = Vec::new();
    start(session)?;
    let mut take = |row| {
        rows.push(row);
        ControlFlow::Continue(())
    };
    session.rows(query, &mut take)?;
    Ok(rows)
}

/// The rows of a query, however often it fails meanwhile.
pub(crate) fn rows_of(simulation: &Simulation, query: &RowQuery) -> Vec<RedoRow> {
    let mut session = simulation.session();
    for _ in 0..100 {
        match try_rows(&mut session, query) {
            Ok(rows) => return rows,
            // The database has to go on until it is opened again.
            Err(error) if error.ora == Some(16_331) => simulation.step(),
            Err(_) => session.reconnect().unwrap(),
        }
    }
    panic!("a hundred reads failed");
}

/// A query of everything on these objects.
pub(crate) fn everything(objects: Vec<ObjectId>) -> RowQuery {
    RowQuery {
        marks: Vec::new(),
        from: Scn(0),
        until: Scn::MAX,
        objects,
        unnamed_until: Scn(0),
        excluded_users: vec!["BATCH".to_owned()],
    }
}

/// Every row there is on the captured tables of now.
pub(crate) fn all_rows(simulation: &Simulation) -> Vec<RedoRow> {
    let objects = objects(&mut simulation.session());
    rows_of(simulation, &everything(objects))
}
