//! How many logs a step reads.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::session::RedoLog;
use crate::{Code, OracleError, Scn};

/// After so many time-outs in a row at one log the task stops.
const TIME_OUTS: u32 = 3;

/// How many logs a step reads: more after a quick step, fewer after one that was not done in time. The
/// unit is a log and not a number of SCNs, whose redo may be anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    logs: u32,
    max: u32,
    target: Duration,
    time_outs: u32,
}

impl Window {
    /// Of one log, with these bounds.
    pub fn new(max_logs: u32, target: Duration) -> Self {
        Self { logs: 1, max: max_logs.max(1), target, time_outs: 0 }
    }

    /// Logs of the next step.
    pub const fn logs(&self) -> u32 {
        self.logs
    }

    /// Where the next step ends: behind so many logs, or at the safe end. Ends of logs strictly between
    /// the cursor and the safe end are counted, each once, whichever threads they are of.
    pub fn end<'a>(
        &self,
        from: Scn,
        safe_end: Scn,
        logs: impl Iterator<Item = &'a RedoLog>,
    ) -> Scn {
        let is_between = |end: &Scn| from < *end && *end < safe_end;
        let ends: BTreeSet<Scn> = logs.map(|log| log.next).filter(is_between).collect();
        ends.into_iter().nth(self.logs.saturating_sub(1) as usize).unwrap_or(safe_end)
    }

    /// A step was read to its end.
    pub fn completed(&mut self, took: Duration) {
        self.time_outs = 0;
        if took < self.target {
            self.logs = self.logs.saturating_mul(2).min(self.max);
        }
    }

    /// A step was not done in time, or the server's memory did not hold it.
    ///
    /// # Errors
    /// CDC-4003 after three such steps of one log.
    pub fn timed_out(&mut self, reason: &str) -> Result<(), OracleError> {
        if self.logs > 1 {
            self.logs /= 2;
            return Ok(());
        }
        self.time_outs += 1;
        if self.time_outs < TIME_OUTS {
            return Ok(());
        }
        Err(OracleError::new(
            Code::MiningStalled,
            format!("a step of one log failed {TIME_OUTS} times in a row: {reason}"),
            "look for other LogMiner sessions and for the amount of redo in the log; raise \
             cdc.mining.query.timeout.ms, or the PGA of the instance",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedoThread;
    use crate::session::LogPlace;
    use proptest::prelude::*;

    fn log(thread: u32, first: u64, next: u64) -> RedoLog {
        RedoLog {
            thread: RedoThread(thread),
            sequence: first,
            first: Scn(first),
            next: Scn(next),
            name: String::new(),
            place: LogPlace::Online,
            begins_dictionary: false,
            ends_dictionary: false,
        }
    }

    fn window(logs: u32) -> Window {
        Window { logs, ..Window::new(8, Duration::from_secs(2)) }
    }

    #[test]
    fn it_doubles_after_a_quick_step_up_to_its_bound() {
        let mut window = window(1);
        let sizes = [2, 4, 8, 8].map(|_| {
            window.completed(Duration::from_millis(1999));
            window.logs()
        });
        assert_eq!(sizes, [2, 4, 8, 8]);
        window.completed(Duration::from_secs(2));
        assert_eq!(window.logs(), 8);
    }

    #[test]
    fn it_halves_at_a_time_out_and_stops_at_the_third_of_one_log() {
        let mut window = window(2);
        assert!(window.timed_out("ORA-01013").is_ok());
        assert_eq!(window.logs(), 1);
        assert!(window.timed_out("ORA-01013").is_ok());
        assert!(window.timed_out("ORA-01013").is_ok());
        assert_eq!(window.timed_out("ORA-01013").unwrap_err().code, Code::MiningStalled);
    }

    #[test]
    fn a_step_in_between_forgives_time_outs() {
        let mut window = window(1);
        for _ in 0..4 {
            assert!(window.timed_out("slow").is_ok());
            window.completed(Duration::from_secs(60));
        }
    }

    #[test]
    fn a_step_ends_behind_its_logs() {
        let logs = [log(1, 10, 20), log(1, 20, 30), log(2, 5, 20), log(2, 20, 25), log(2, 25, 90)];
        let end = |size, from, safe| window(size).end(Scn(from), Scn(safe), logs.iter());
        assert_eq!(end(1, 10, 80), Scn(20));
        assert_eq!(end(2, 10, 80), Scn(25));
        assert_eq!(end(3, 10, 80), Scn(30));
        assert_eq!(end(4, 10, 80), Scn(80));
        assert_eq!(end(1, 20, 80), Scn(25));
        assert_eq!(end(1, 30, 80), Scn(80));
        assert_eq!(end(1, 10, 20), Scn(20));
    }

    proptest! {
        #[test]
        fn a_step_moves_forward_and_never_beyond_the_safe_end(
            ends in prop::collection::vec(0_u64..60, 0..9),
            size in 1_u32..9, from in 0_u64..50, ahead in 1_u64..20,
        ) {
            let logs: Vec<_> = ends.iter().map(|end| log(1, 0, *end)).collect();
            let safe = from + ahead;
            let end = window(size).end(Scn(from), Scn(safe), logs.iter());
            prop_assert!(Scn(from) < end && end <= Scn(safe));
            let passed = ends.iter().filter(|it| from < **it && **it < end.0);
            let passed: BTreeSet<_> = passed.collect();
            prop_assert!(passed.len() < size as usize, "no more logs than the window has");
        }
    }
}
