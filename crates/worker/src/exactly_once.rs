//! Exactly-once sources (KIP-618): who gets them, and under which names. Pure.

use std::time::Duration;

use highwater_connector::{Config, ExactlyOnce, Problem, SourceConnector};
use highwater_kafka::TransactionSettings;

use crate::boundary::Boundary;
use crate::keys;
use crate::settings::ExactlyOnceSupport;

/// How a task's records and offsets get into the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Delivery {
    /// Records first, then the offset behind them: a crash repeats what no offset covers.
    AtLeastOnce,
    /// Both in one transaction.
    ExactlyOnce(Transactions),
}

/// The transactions of an exactly-once task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Transactions {
    pub(crate) boundary: Boundary,
    /// How long one may be open.
    pub(crate) timeout: Duration,
}

impl Transactions {
    /// What the writer of a task is told. The transactional id is that of Kafka Connect.
    pub(crate) fn of_task(&self, group: &str, connector: &str, task: u32) -> TransactionSettings {
        TransactionSettings { id: transactional_id(group, connector, task), timeout: self.timeout }
    }
}

/// The id under which a task's producer is known, and fenced.
pub(crate) fn transactional_id(group: &str, connector: &str, task: u32) -> String {
    format!("{group}-{connector}-{task}")
}

/// What a connector asks for: Kafka Connect's `exactly.once.support`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// Where the worker gives it.
    Requested,
    /// Or not at all.
    Required,
}

/// What does not fit between a connector that is configured so and this worker.
pub(crate) fn problems(
    support: ExactlyOnceSupport,
    asked: Asked,
    delivery: &Delivery,
    connector: &dyn SourceConnector,
    config: &Config,
) -> Vec<Problem> {
    let is_required = asked == Asked::Required || support == ExactlyOnceSupport::Required;
    let mut problems = Vec::new();
    if is_required && !support.is_enabled() {
        problems.push(Problem {
            key: keys::EXACTLY_ONCE.to_owned(),
            message: format!(
                "is required, and the server's worker.exactly_once_source_support is {}: set it to \
                 enabled, or exactly.once.support=requested",
                support.name()
            ),
        });
    }
    if is_required && connector.exactly_once(config) == ExactlyOnce::Unsupported {
        let whose = if asked == Asked::Required { "" } else { " by this worker" };
        problems.push(Problem {
            key: keys::EXACTLY_ONCE.to_owned(),
            message: format!(
                "is required{whose}, and a connector of class {} with this configuration cannot \
                 go on exactly where it stopped",
                connector.classes().first().unwrap_or(&"(none)")
            ),
        });
    }
    let by_connector = matches!(
        delivery,
        Delivery::ExactlyOnce(Transactions { boundary: Boundary::Connector, .. })
    );
    if by_connector && !connector.can_define_boundaries(config) {
        problems.push(Problem {
            key: keys::TRANSACTION_BOUNDARY.to_owned(),
            message: "is connector, and this connector does not say where its transactions end: \
                      set poll or interval"
                .to_owned(),
        });
    }
    problems
}
