//! How long a transaction may be open.

use std::time::{Duration, Instant};

use super::entry::Entry;
use crate::{Code, OracleError, TransactionKey};

/// What is done with a transaction that is too old (`cdc.transaction.max.age.action`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgeAction {
    /// The task stops.
    Fail,
    /// It is dropped, and told where events are told; a COMMIT that comes all the same stops the task.
    Discard,
}

/// The age from which a transaction is too old, counted from when it was first seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgeLimit {
    /// `cdc.transaction.max.age.ms`; `None` for no limit.
    pub max: Option<Duration>,
    /// See [`AgeAction`].
    pub action: AgeAction,
}

impl AgeLimit {
    /// The transactions that are to be dropped, oldest first.
    ///
    /// # Errors
    /// CDC-4004 where the action is to stop and one is too old.
    pub fn check<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a Entry>,
        now: Instant,
    ) -> Result<Vec<TransactionKey>, OracleError> {
        let Some(max) = self.max else { return Ok(Vec::new()) };
        let too_old = entries.into_iter().filter(|entry| entry.age(now) > max);
        let mut too_old: Vec<&Entry> = too_old.collect();
        too_old.sort_by_key(|entry| (entry.opened(), entry.key()));
        match (self.action, too_old.first()) {
            (AgeAction::Fail, Some(oldest)) => Err(over(oldest, too_old.len(), max, now)),
            _ => Ok(too_old.into_iter().map(Entry::key).collect()),
        }
    }
}

fn over(oldest: &Entry, count: usize, max: Duration, now: Instant) -> OracleError {
    let (age, max) = (oldest.age(now).as_millis(), max.as_millis());
    OracleError::new(
        Code::TransactionTooOld,
        format!(
            "transaction {} is open for {age} ms, the oldest of {count} that are above \
             cdc.transaction.max.age.ms = {max}",
            oldest.summary()
        ),
        "end the transaction in the database, raise cdc.transaction.max.age.ms, or set \
         cdc.transaction.max.age.action to discard",
    )
}

#[cfg(test)]
mod tests {
    use super::super::buffer_model::{Held, buffer, change, key};
    use super::*;
    use crate::Verb;

    const SECOND: Duration = Duration::from_secs(1);

    /// Transactions 1, 2 and 3, a second after each other.
    fn three(begun: Instant) -> Held {
        let mut held = buffer(u64::MAX, 0);
        for number in [2u8, 1, 3] {
            let row = change(u64::from(number), Verb::Insert, "AAAR3qAAEAAAACXAA1");
            held.buffer.add(key(number), row, begun + u32::from(number) * SECOND).unwrap();
        }
        held
    }

    #[test]
    fn those_above_the_limit_are_discarded_oldest_first() {
        let begun = Instant::now();
        let held = three(begun);
        let limit = AgeLimit { max: Some(60 * SECOND), action: AgeAction::Discard };
        let check = |second: u32| limit.check(held.buffer.entries(), begun + second * SECOND);
        assert_eq!(check(61), Ok(vec![]));
        assert_eq!(check(62), Ok(vec![key(1)]));
        assert_eq!(check(64), Ok(vec![key(1), key(2), key(3)]));
        let unlimited = AgeLimit { max: None, ..limit };
        assert_eq!(unlimited.check(held.buffer.entries(), begun + 9_999 * SECOND), Ok(vec![]));
    }

    #[test]
    fn the_task_stops_at_the_oldest() {
        let begun = Instant::now();
        let held = three(begun);
        let limit = AgeLimit { max: Some(60 * SECOND), action: AgeAction::Fail };
        let check = |second: u32| limit.check(held.buffer.entries(), begun + second * SECOND);
        assert_eq!(check(61), Ok(vec![]));
        let error = check(63).unwrap_err();
        assert_eq!(error.code, Code::TransactionTooOld);
        assert!(error.what.starts_with("transaction 3:5.1.614 (user unknown, from SCN 1001, "));
        assert!(error.what.contains("is open for 62000 ms, the oldest of 2 "), "{error}");
    }
}
