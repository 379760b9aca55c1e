//! How transactions stand, for those who ask: ListTransactions and DescribeTransactions.

use std::collections::{BTreeSet, HashSet};

use highwater_log::now_ms;
use highwater_protocol::ErrorCode;

use crate::transaction::{TransactionMetadata, TransactionState};
use crate::transactions::Transactions;

/// Which transactional ids are wanted; an empty list wants them all.
#[derive(Clone, Debug)]
pub struct TransactionFilter {
    /// In one of these states, by Kafka's names.
    pub states: BTreeSet<String>,
    /// Of one of these producers.
    pub producer_ids: HashSet<i64>,
    /// With a transaction that began longer ago than this, in milliseconds; negative: any.
    pub running_longer_ms: i64,
}

impl TransactionFilter {
    /// States that were asked for and do not exist.
    pub fn unknown_states(&self) -> Vec<String> {
        let unknown = |name: &&String| !TransactionState::is_known(name);
        self.states.iter().filter(unknown).cloned().collect()
    }

    /// One whose transaction never began has the time -1, and counts as running long: so does Apache Kafka.
    fn wants(&self, stands: &TransactionMetadata, now_ms: i64) -> bool {
        let state = self.states.is_empty() || self.states.contains(stands.state.name());
        let producer =
            self.producer_ids.is_empty() || self.producer_ids.contains(&stands.producer.id);
        let long = self.running_longer_ms < 0
            || now_ms.saturating_sub(stands.start_ms) > self.running_longer_ms;
        state && producer && long
    }
}

impl Transactions {
    /// The transactional ids that the filter wants, by name, each with its producer's id and its state.
    ///
    /// # Errors
    /// `COORDINATOR_LOAD_IN_PROGRESS` until they are read back.
    pub fn list(
        &self,
        filter: &TransactionFilter,
    ) -> Result<Vec<(String, i64, TransactionState)>, ErrorCode> {
        let now_ms = now_ms();
        let ids = self.shared.ids.lock();
        let ids = ids.as_ref().ok_or(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)?;
        let mut listed: Vec<_> = ids
            .iter()
            .filter_map(|(id, entry)| {
                let slot = entry.slot.lock();
                let stands = slot.stands().filter(|stands| filter.wants(stands, now_ms))?;
                Some((id.clone(), stands.producer.id, stands.state))
            })
            .collect();
        listed.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
        Ok(listed)
    }

    /// How a transactional id stands.
    ///
    /// # Errors
    /// `TRANSACTIONAL_ID_NOT_FOUND`, `INVALID_REQUEST` if it is empty, or `COORDINATOR_LOAD_IN_PROGRESS`.
    pub fn describe(&self, transactional_id: &str) -> Result<TransactionMetadata, ErrorCode> {
        let entry = self.shared.find(transactional_id).map_err(|error| match error {
            ErrorCode::INVALID_PRODUCER_ID_MAPPING => ErrorCode::TRANSACTIONAL_ID_NOT_FOUND,
            other => other,
        })?;
        let slot = entry.slot.lock();
        slot.stands().cloned().ok_or(ErrorCode::TRANSACTIONAL_ID_NOT_FOUND)
    }
}
