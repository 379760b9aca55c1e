//! What the worker reads of a connector's configuration: what its keys say, or the worker's own settings.

use std::collections::BTreeMap;
use std::time::Duration;

use highwater_connector::{Config, ConfigDef, Problem};

use crate::WorkerConfig;
use crate::backoff::Backoff;
use crate::boundary::Boundary;
use crate::cluster::Sending;
use crate::exactly_once::{Asked, Delivery, Transactions};
use crate::keys::{
    DELIVERY_TIMEOUT, DRAIN_TIMEOUT, EXACTLY_ONCE, FLUSH_INTERVAL, LINGER, MAX_RECORD,
    OFFSETS_TOPIC, RETENTION_BYTES, RETENTION_MS, RETRY_DELAY_MAX, RETRY_TIMEOUT, TASKS_MAX,
    TASKS_MAX_ENFORCE, TRANSACTION_BOUNDARY, TRANSACTION_INTERVAL, TRANSACTION_TIMEOUT,
    worker_keys,
};
use crate::record_keys::ErrorSettings;
use crate::topic_creation::TopicCreation;

/// See the module's text.
#[derive(Clone, Debug)]
pub(crate) struct TaskSettings {
    /// How many tasks a connector may have.
    pub(crate) tasks_max: u32,
    /// Whether more are refused.
    pub(crate) tasks_max_enforced: bool,
    pub(crate) flush_interval: Duration,
    pub(crate) drain_timeout: Duration,
    /// Where its offsets are stored, if not in the worker's own topic.
    pub(crate) offsets_topic: Option<String>,
    pub(crate) backoff: Backoff,
    /// What is done about records that cannot be handled.
    pub(crate) errors: ErrorSettings,
    /// How its writer sends.
    pub(crate) sending: Sending,
    /// What the connector asks for.
    pub(crate) exactly_once: Asked,
    /// What it gets.
    pub(crate) delivery: Delivery,
    /// Text of topic configuration `retention.ms`.
    pub(crate) retention_ms: String,
    /// Text of topic configuration `retention.bytes`.
    pub(crate) retention_bytes: String,
    /// How the topics that it writes are made.
    pub(crate) creation: TopicCreation,
}

impl TaskSettings {
    /// Reads the worker's keys of `properties`; where one is absent, the worker's own setting
    /// counts before the key's default.
    ///
    /// # Errors
    /// All problems at once.
    pub(crate) fn read(
        properties: &BTreeMap<String, String>,
        worker: &WorkerConfig,
    ) -> Result<Self, Vec<Problem>> {
        let keys = worker_keys();
        let own: BTreeMap<String, String> = defaults(properties, worker)
            .into_iter()
            .chain(properties.clone())
            .filter(|(name, _)| keys.iter().any(|key| key.name == name))
            .collect();
        let config = ConfigDef::new(keys).parse(&own, &[])?;
        let creation = TopicCreation::read(
            properties,
            &config,
            max_record_bytes(&config),
            worker.creates_topics,
        )?;
        Ok(Self::of(&config, worker, creation))
    }

    fn of(config: &Config, worker: &WorkerConfig, creation: TopicCreation) -> Self {
        let millis = |key| config.millis(key);
        let give_up_after = (config.int(RETRY_TIMEOUT) >= 0).then(|| millis(RETRY_TIMEOUT));
        Self {
            tasks_max: u32::try_from(config.int(TASKS_MAX)).unwrap_or(1),
            tasks_max_enforced: config.flag(TASKS_MAX_ENFORCE),
            flush_interval: millis(FLUSH_INTERVAL),
            drain_timeout: millis(DRAIN_TIMEOUT),
            offsets_topic: Some(config.text(OFFSETS_TOPIC).to_owned())
                .filter(|topic| !topic.is_empty()),
            backoff: Backoff { cap: millis(RETRY_DELAY_MAX), give_up_after },
            errors: ErrorSettings::of(config),
            sending: Sending {
                max_record_bytes: max_record_bytes(config),
                linger: millis(LINGER),
                delivery_timeout: millis(DELIVERY_TIMEOUT),
            },
            exactly_once: match config.text(EXACTLY_ONCE) {
                "required" => Asked::Required,
                _ => Asked::Requested,
            },
            delivery: delivery(config, worker),
            retention_ms: config.text(RETENTION_MS).trim().to_owned(),
            retention_bytes: config.text(RETENTION_BYTES).trim().to_owned(),
            creation,
        }
    }
}

fn delivery(config: &Config, worker: &WorkerConfig) -> Delivery {
    if !worker.exactly_once.is_enabled() {
        return Delivery::AtLeastOnce;
    }
    let boundary = match config.text(TRANSACTION_BOUNDARY) {
        "interval" => Boundary::Interval(config.millis(TRANSACTION_INTERVAL)),
        "connector" => Boundary::Connector,
        _ => Boundary::Poll,
    };
    Delivery::ExactlyOnce(Transactions { boundary, timeout: config.millis(TRANSACTION_TIMEOUT) })
}

fn max_record_bytes(config: &Config) -> usize {
    usize::try_from(config.int(MAX_RECORD)).unwrap_or(usize::MAX)
}

fn defaults(
    properties: &BTreeMap<String, String>,
    worker: &WorkerConfig,
) -> BTreeMap<String, String> {
    let flush_interval = worker.offset_flush_interval.as_millis().to_string();
    [
        (TRANSACTION_INTERVAL, properties.get(FLUSH_INTERVAL).unwrap_or(&flush_interval).clone()),
        (FLUSH_INTERVAL, flush_interval),
        (DRAIN_TIMEOUT, worker.drain_timeout.as_millis().to_string()),
        (MAX_RECORD, worker.max_record_bytes.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

#[cfg(test)]
mod tests {
    use highwater_kafka::WriterSettings;

    use super::*;
    use crate::keys::CLASS;

    fn read(pairs: &[(&str, &str)]) -> Result<TaskSettings, Vec<Problem>> {
        let mut worker = WorkerConfig::new("127.0.0.1:9092", "w");
        worker.offset_flush_interval = Duration::from_millis(250);
        let properties = [(CLASS, "fake")]
            .iter()
            .chain(pairs)
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        TaskSettings::read(&properties, &worker)
    }

    #[test]
    fn the_workers_setting_is_the_default() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.flush_interval, Duration::from_millis(250));
        assert_eq!(settings.retention_ms, "604800000");
        assert_eq!(settings.backoff.give_up_after, None);
    }

    #[test]
    fn what_no_connector_says_of_sending_is_as_the_writers_have_it() {
        let (own, writer) = (read(&[]).unwrap().sending, WriterSettings::new("127.0.0.1:9092"));
        let rest = Sending::up_to(own.max_record_bytes);
        for sending in [own, rest] {
            assert_eq!(sending.linger, writer.linger);
            assert_eq!(sending.delivery_timeout, writer.delivery_timeout);
        }
        let said = read(&[(LINGER, "0"), (DELIVERY_TIMEOUT, "2147483647")]).unwrap().sending;
        assert_eq!(said.linger, Duration::ZERO);
        assert_eq!(said.delivery_timeout, Duration::from_millis(2_147_483_647));
    }

    #[test]
    fn the_connectors_value_wins() {
        let settings = read(&[(FLUSH_INTERVAL, "50"), (RETRY_TIMEOUT, "0")]).unwrap();
        assert_eq!(settings.flush_interval, Duration::from_millis(50));
        assert_eq!(settings.backoff.give_up_after, Some(Duration::ZERO));
    }

    #[test]
    fn a_connector_has_one_task_unless_more_are_asked_for_within_a_bound() {
        assert_eq!(read(&[]).unwrap().tasks_max, 1);
        assert_eq!(read(&[("tasks.max", "7")]).unwrap().tasks_max, 7);
        for wrong in ["0", "1001", "many"] {
            let problems = read(&[("tasks.max", wrong)]).unwrap_err();
            assert_eq!((problems.len(), problems[0].key.as_str()), (1, "tasks.max"));
        }
    }

    #[test]
    fn transactions_are_the_workers_to_enable_and_end_where_the_connector_says() {
        let delivery = |support, pairs: &[(&str, &str)]| {
            let mut worker = WorkerConfig::new("127.0.0.1:9092", "w");
            worker.exactly_once = support;
            let text = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            let properties = pairs.iter().map(text).collect();
            TaskSettings::read(&properties, &worker).map(|settings| settings.delivery)
        };
        use crate::ExactlyOnceSupport::{Disabled, Enabled, Preparing, Required};
        for support in [Disabled, Preparing] {
            let pairs = [(CLASS, "fake"), (EXACTLY_ONCE, "required")];
            assert_eq!(delivery(support, &pairs), Ok(Delivery::AtLeastOnce));
        }
        let ends = |boundary, timeout| {
            let timeout = Duration::from_secs(timeout);
            Ok(Delivery::ExactlyOnce(Transactions { boundary, timeout }))
        };
        assert_eq!(delivery(Enabled, &[(CLASS, "fake")]), ends(Boundary::Poll, 60));
        let interval = [
            (CLASS, "fake"),
            (FLUSH_INTERVAL, "70"),
            (TRANSACTION_BOUNDARY, "interval"),
            (TRANSACTION_TIMEOUT, "9000"),
        ];
        let seventy = Boundary::Interval(Duration::from_millis(70));
        assert_eq!(delivery(Required, &interval), ends(seventy, 9));
        assert!(delivery(Enabled, &[(CLASS, "fake"), (TRANSACTION_BOUNDARY, "never")]).is_err());
    }
}
