//! Both coordinators of a log, made once and handed to every broker in front of it.

use std::sync::Arc;

use highwater_log::Log;

use crate::group_coordinator::GroupCoordinator;
use crate::group_settings::GroupSettings;
use crate::groups::Groups;
use crate::transactions::{Transactions, TransactionsConfig};

/// Bounds of both coordinators.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CoordinatorConfig {
    /// Of groups.
    pub groups: GroupSettings,
    /// Of transactions.
    pub transactions: TransactionsConfig,
}

/// The coordinators of one log. Clones share them; what they do by themselves ends with the last one.
#[derive(Clone, Debug)]
pub struct Coordinator {
    groups: GroupCoordinator,
    transactions: Transactions,
}

impl Coordinator {
    /// Starts the coordinators of a log, within a tokio runtime. They read their state back in the
    /// background, and tell clients to come again until they have.
    pub fn start(log: &Log, config: CoordinatorConfig) -> Self {
        crate::describe_metrics();
        let groups = GroupCoordinator::start(log.clone(), config.groups);
        let offsets = Arc::clone(groups.groups());
        let transactions = Transactions::start(log.clone(), offsets, config.transactions);
        Self { groups, transactions }
    }

    /// Ends what they do by themselves, where it is; the next start goes on from there. Requests are told
    /// to come again.
    pub async fn shutdown(&self) {
        self.transactions.tasks.shutdown().await;
        self.groups.shutdown().await;
    }

    /// The coordinator of groups.
    pub fn groups(&self) -> &Arc<Groups> {
        self.groups.groups()
    }

    /// The coordinator of transactions.
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }
}
