//! Exactly-once sources (KIP-618): who gets them, and under which names. Pure.

use std::time::Duration;

use highwater_connector::{
    Config, ConnectorError, ExactlyOnce, Problem, Retry, SourceConnector, SourceOffset,
};
use highwater_kafka::TransactionSettings;

use crate::boundary::Boundary;
use crate::cluster::TRANSACTION_TIMED_OUT;
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

/// Where an exactly-once task stood when a transaction of the log was open for too long.
#[derive(Debug, Default)]
pub(crate) struct Overlong(Option<Option<SourceOffset>>);

impl Overlong {
    /// The error of a run that began behind `position`. A second transaction in a row that is too long at one place
    /// is one of the source that always will be, where the source alone says what is whole.
    pub(crate) fn judged(
        &mut self,
        error: ConnectorError,
        position: Option<&SourceOffset>,
        delivery: &Delivery,
    ) -> ConnectorError {
        if error.code != TRANSACTION_TIMED_OUT {
            return error;
        }
        let before = self.0.replace(position.cloned());
        let Delivery::ExactlyOnce(Transactions { boundary: Boundary::Connector, timeout }) =
            delivery
        else {
            return error;
        };
        if before.is_none_or(|before| before.as_ref() != position) {
            return error;
        }
        let what = format!(
            "{}; it was so at the same position before: a transaction of the source takes longer than \
             {} ms, and would be begun again for ever",
            error.what,
            timeout.as_millis()
        );
        let remedy = "set transaction.boundary=poll, or raise producer.override.transaction.timeout.ms of the \
                      connector, then restart it";
        ConnectorError { retry: Retry::Never, what, remedy: remedy.to_owned(), ..error }
    }
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

#[cfg(test)]
mod tests {
    use highwater_connector::ErrorKind;

    use super::*;

    fn at(lsn: u64) -> SourceOffset {
        let mut offset = SourceOffset::default();
        offset.set("lsn", lsn);
        offset
    }

    fn delivery(boundary: Boundary) -> Delivery {
        Delivery::ExactlyOnce(Transactions { boundary, timeout: Duration::from_secs(60) })
    }

    fn late() -> ConnectorError {
        ConnectorError::again(TRANSACTION_TIMED_OUT, ErrorKind::Log, "it was open for too long")
    }

    #[test]
    fn a_transaction_that_is_too_long_twice_at_one_place_is_not_begun_a_third_time() {
        let (mut overlong, by_source) = (Overlong::default(), delivery(Boundary::Connector));
        let mut judged = |error, lsn| overlong.judged(error, Some(&at(lsn)), &by_source);
        assert_eq!(judged(late(), 1).retry, Retry::Backoff);
        assert_eq!(judged(late(), 2).retry, Retry::Backoff, "it has moved");
        let other = ConnectorError::again("LOG_UNREACHABLE", ErrorKind::Log, "it is away");
        assert_eq!(judged(other, 2).code, "LOG_UNREACHABLE");
        let stopped = judged(late(), 2);
        assert_eq!(stopped.retry, Retry::Never);
        assert!(stopped.what.contains("takes longer than 60000 ms"), "{}", stopped.what);
    }

    #[test]
    fn where_the_log_may_end_it_half_way_it_is_begun_again_as_other_failures_are() {
        let mut overlong = Overlong::default();
        for _ in 0..3 {
            let judged = overlong.judged(late(), None, &delivery(Boundary::Poll));
            assert_eq!(judged.retry, Retry::Backoff);
        }
    }
}
