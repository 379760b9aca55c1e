//! Fencing producers: what they left open is aborted, and they are heard no more.

use std::sync::Arc;
use std::time::Duration;

use crate::transaction_coordinator::TransactionCoordinator;
use crate::{Admin, KafkaError};

/// No transaction is opened under the epoch that is taken here, so any time-out does.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Admin {
    /// Fences whoever has these transactional ids. On return their open transactions are aborted,
    /// and those that were being committed are.
    ///
    /// # Errors
    /// When the cluster refuses or cannot be reached; some may be fenced then.
    pub async fn fence_producers(&self, ids: &[String]) -> Result<(), KafkaError> {
        for id in ids {
            let cluster = Arc::clone(self.shared_cluster());
            let coordinator = TransactionCoordinator::new(cluster, id, TIMEOUT);
            coordinator.persist(|| coordinator.introduce()).await?;
        }
        Ok(())
    }
}
