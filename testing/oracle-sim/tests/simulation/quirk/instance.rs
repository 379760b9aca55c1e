//! Quirks of the instance, its logs and its sessions.

use highwater_oracle::{ErrorClass, LogQuery, Scn, Session};
use highwater_oracle_sim::{Quirk, Simulation};

use super::simulated::alone;
use crate::miner::{self, everything, try_rows};

/// Errors of reads between which the database goes on.
fn errors(quirk: Option<Quirk>, reads: u32) -> Vec<u32> {
    let simulation = Simulation::new(alone(quirk));
    let mut errors = Vec::new();
    for _ in 0..reads {
        simulation.run(10);
        let mut session = simulation.session();
        let query = everything(miner::objects(&mut session));
        errors.extend(try_rows(&mut session, &query).err().map(|error| error.ora.unwrap()));
    }
    errors
}

#[test]
fn without_quirks_no_read_fails() {
    assert!(errors(None, 60).is_empty());
}

#[test]
fn a_closed_database_fails_for_a_while() {
    let errors = errors(Some(Quirk::ClosedPdb), 100);
    assert!(errors.len() > 3 && errors.len() < 90, "{}", errors.len());
    assert!(errors.iter().all(|error| *error == 16_331));
}

#[test]
fn reads_time_out_now_and_then() {
    let errors = errors(Some(Quirk::TimedOut), 100);
    assert!(errors.len() > 10 && errors.len() < 50, "{}", errors.len());
    assert!(errors.iter().all(|error| *error == 1013));
    assert_eq!(highwater_oracle_sim::ora(1013, "").class, ErrorClass::Timeout);
}

#[test]
fn an_online_log_is_overwritten_while_it_is_read() {
    let errors = errors(Some(Quirk::LogSwitchInRead), 60);
    assert!(errors.len() > 3 && errors.len() < 40, "{}", errors.len());
    assert!(errors.iter().all(|error| *error == 310));
}

/// Whether logs are listed of which none is being written to.
fn lags(quirk: Option<Quirk>) -> bool {
    let simulation = Simulation::new(alone(quirk));
    let mut session = simulation.session();
    (0..500).any(|_| {
        simulation.step();
        let (from, to) = (Scn(0), simulation.scn());
        let query = LogQuery { from, to, destination: 1, with_online: true };
        session.logs(&query).unwrap().iter().all(|log| log.next <= to)
    })
}

#[test]
fn the_newest_log_is_not_listed_at_once() {
    assert!(lags(Some(Quirk::LaggingLog)));
    assert!(!lags(None));
}

#[test]
fn a_new_incarnation_breaks_sessions_and_begins_its_sequences_again() {
    let simulation = Simulation::at(alone(Some(Quirk::NewIncarnation)), 300);
    let mut session = simulation.session();
    let before = session.database().unwrap().identity;
    simulation.run(600);
    assert_eq!(session.current_scn().unwrap_err().ora, Some(3113));
    assert_eq!(session.database().unwrap_err().class, ErrorClass::Transient);
    session.reconnect().unwrap();
    let after = session.database().unwrap().identity;
    assert_eq!(before.dbid, after.dbid);
    assert!(after.resetlogs > before.resetlogs);
    let logs = miner::logs(&mut session);
    assert!(logs.iter().any(|log| log.sequence == 1));
    assert!(logs.iter().all(|log| log.first > after.resetlogs));
}
