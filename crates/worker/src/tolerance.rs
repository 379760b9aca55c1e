//! What is done about a record that cannot be handled (KIP-298, KIP-610): decisions alone.

use std::time::Duration;

use highwater_connector::{ConnectorError, Retry};

use crate::backoff::Backoff;
use crate::record_keys::ErrorSettings;
use crate::task_settings::TaskSettings;

/// What was being done with a record, under Kafka Connect's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    TaskPut,
    Transformation,
    KeyConverter,
    ValueConverter,
    HeaderConverter,
}

impl Stage {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TaskPut => "TASK_PUT",
            Self::Transformation => "TRANSFORMATION",
            Self::KeyConverter => "KEY_CONVERTER",
            Self::ValueConverter => "VALUE_CONVERTER",
            Self::HeaderConverter => "HEADER_CONVERTER",
        }
    }

    /// Whether an error here concerns its record alone, so that the next one may do better.
    const fn is_of_the_record(self) -> bool {
        !matches!(self, Self::TaskPut)
    }
}

/// What to do about a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The same again, after this long.
    Again(Duration),
    /// On without the record, which is put elsewhere and logged as the configuration says.
    Skip,
    /// The task fails.
    Stop,
}

/// The `errors.` settings of a connector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tolerance {
    /// `errors.tolerance` is `all`.
    pub(crate) skips: bool,
    /// `errors.retry.timeout` and `errors.retry.delay.max.ms`.
    pub(crate) backoff: Backoff,
    /// `errors.log.enable`.
    pub(crate) logs: bool,
    /// `errors.log.include.messages`: where the record lay stands in the line, too.
    pub(crate) logs_records: bool,
}

/// The `errors.deadletterqueue.` settings of a sink.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeadLetterSettings {
    /// `topic.name`.
    pub(crate) topic: String,
    /// `topic.replication.factor`.
    pub(crate) replication: i16,
    /// `context.headers.enable`.
    pub(crate) headers: bool,
}

impl Tolerance {
    /// What a task's settings say.
    pub(crate) const fn of(settings: &TaskSettings) -> Self {
        let ErrorSettings { skips, logs, logs_records } = settings.errors;
        Self { skips, backoff: settings.backoff, logs, logs_records }
    }

    /// What to do when an operation fails at attempt number `attempt` (from 1), `failing_for` after it
    /// failed first. `chance` is a random number in 0..1.
    pub(crate) fn judge(
        &self,
        stage: Stage,
        error: &ConnectorError,
        attempt: u32,
        failing_for: Duration,
        chance: f64,
    ) -> Verdict {
        let passing = error.retry == Retry::Backoff;
        if passing && let Some(delay) = self.backoff.delay(attempt, failing_for, chance) {
            return Verdict::Again(delay);
        }
        if self.skips && stage.is_of_the_record() { Verdict::Skip } else { Verdict::Stop }
    }

    /// What to do about a record that a sink reports.
    pub(crate) const fn judge_report(&self) -> Verdict {
        if self.skips { Verdict::Skip } else { Verdict::Stop }
    }
}

/// An error that stops a task at a record, where such records are not tolerated: that they can be is
/// said here alone, so that no dead letter says it.
pub(crate) fn or_tolerated(mut error: ConnectorError) -> ConnectorError {
    if error.retry == Retry::Never {
        error.remedy.push_str("; or set errors.tolerance=all, which goes on without such records");
    }
    error
}

#[cfg(test)]
mod tests {
    use highwater_connector::ErrorKind;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn tolerance(skips: bool, give_up_after: Option<Duration>) -> Tolerance {
        let backoff = Backoff { cap: SECOND, give_up_after };
        Tolerance { skips, backoff, logs: false, logs_records: false }
    }

    fn passing() -> ConnectorError {
        ConnectorError::again("X", ErrorKind::Sink, "it is away")
    }

    fn lasting() -> ConnectorError {
        ConnectorError::stop("X", ErrorKind::Data, "it is odd", "mend it")
    }

    #[test]
    fn each_kind_of_failure_has_its_verdict() {
        let (none, all) = (tolerance(false, Some(SECOND)), tolerance(true, Some(SECOND)));
        let again = Verdict::Again(Duration::from_millis(300));
        for (stage, error, failing_for, with_none, with_all) in [
            (Stage::ValueConverter, lasting(), Duration::ZERO, Verdict::Stop, Verdict::Skip),
            (Stage::Transformation, lasting(), Duration::ZERO, Verdict::Stop, Verdict::Skip),
            (Stage::KeyConverter, lasting(), Duration::ZERO, Verdict::Stop, Verdict::Skip),
            (Stage::HeaderConverter, lasting(), Duration::ZERO, Verdict::Stop, Verdict::Skip),
            (Stage::TaskPut, lasting(), Duration::ZERO, Verdict::Stop, Verdict::Stop),
            (Stage::ValueConverter, passing(), Duration::ZERO, again, again),
            (Stage::TaskPut, passing(), Duration::ZERO, again, again),
            (Stage::ValueConverter, passing(), SECOND, Verdict::Stop, Verdict::Skip),
            (Stage::TaskPut, passing(), SECOND, Verdict::Stop, Verdict::Stop),
        ] {
            let judge = |tolerance: &Tolerance| tolerance.judge(stage, &error, 1, failing_for, 1.0);
            assert_eq!(judge(&none), with_none, "none: {stage:?} {error} {failing_for:?}");
            assert_eq!(judge(&all), with_all, "all: {stage:?} {error} {failing_for:?}");
        }
        assert_eq!((none.judge_report(), all.judge_report()), (Verdict::Stop, Verdict::Skip));
    }

    #[test]
    fn without_a_time_out_a_passing_error_is_tried_for_ever() {
        let verdict =
            tolerance(true, None).judge(Stage::TaskPut, &passing(), 99, 9999 * SECOND, 0.5);
        assert!(matches!(verdict, Verdict::Again(_)));
    }
}
