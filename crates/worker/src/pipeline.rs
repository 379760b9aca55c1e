//! A source task's configuration, checked and resolved: what a run needs to know.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_connector::{
    Config, ConnectorError, Problem, RecordForm, Routing, SourceConnector, SourcePartition, Topics,
};

use crate::WorkerConfig;
use crate::client_overrides::{self, without_overrides};
use crate::exactly_once;
use crate::isolation::isolated;
use crate::keys;
use crate::record_keys::{self, record_keys, without_parts};
use crate::record_path::RecordPath;
use crate::scrub::Scrub;
use crate::secret_providers::Resolved;
use crate::task_settings::TaskSettings;
use crate::topic_creation;

/// Flat text properties, as Kafka Connect keeps them.
pub(crate) type Properties = BTreeMap<String, String>;

/// See the module's text.
pub(crate) struct Pipeline {
    pub(crate) name: String,
    /// Id of the task.
    pub(crate) task: u32,
    pub(crate) connector: Arc<dyn SourceConnector>,
    /// Its properties as they are stored, with references.
    pub(crate) given: Properties,
    /// Takes what they refer to out of texts.
    pub(crate) scrub: Scrub,
    pub(crate) config: Config,
    pub(crate) settings: TaskSettings,
    pub(crate) topics: Topics,
    pub(crate) partition: SourcePartition,
    pub(crate) fingerprint: String,
    /// What lies between the source and the log, where the source yields values.
    pub(crate) path: Option<Arc<RecordPath>>,
}

impl Pipeline {
    /// Checks the properties of task `task` of connector `name`.
    ///
    /// # Errors
    /// All problems at once.
    pub(crate) fn plan(
        name: &str,
        task: u32,
        connector: &Arc<dyn SourceConnector>,
        properties: &Properties,
        worker: &WorkerConfig,
    ) -> Result<Self, Vec<Problem>> {
        let Parsed { settings, config, path, scrub } =
            parse(connector.as_ref(), properties, worker)?;
        let problems = connector.problems(&config);
        if !problems.is_empty() {
            return Err(scrub.problems(problems, properties));
        }
        // The task is made to see whether the values fit each other, and dropped again.
        connector.task(&config).map_err(|error| {
            vec![Problem { key: "configuration:".to_owned(), message: scrub.text(&error.what) }]
        })?;
        Ok(Self {
            name: name.to_owned(),
            task,
            topics: connector.topics(&config),
            partition: connector.partition(&config),
            fingerprint: connector.fingerprint(&config),
            connector: Arc::clone(connector),
            given: properties.clone(),
            path,
            scrub,
            config,
            settings,
        })
    }

    /// A call into the connector, isolated, whose error bears no secret of the configuration.
    pub(crate) async fn scrubbed<T>(
        &self,
        call: impl Future<Output = Result<T, ConnectorError>> + Send,
    ) -> Result<T, ConnectorError> {
        isolated(call).await.map_err(|error| self.scrub.error(error))
    }
}

/// What lies between the source and the log.
fn path(
    properties: &Properties,
    topics: &Topics,
    worker: &WorkerConfig,
    scrub: &Scrub,
) -> Result<Arc<RecordPath>, Vec<Problem>> {
    let path = RecordPath::new(properties, &worker.converters, scrub)?;
    match (&topics.routing, path.rerouting()) {
        // Rule R2: a trail holds all that its source has committed.
        (Routing::Trail(trail), Some(transform)) => Err(vec![Problem {
            key: record_keys::TRANSFORMS.to_owned(),
            message: format!(
                "has {transform}, which may drop records or send them elsewhere; {trail} is a trail, \
                 which holds all of them"
            ),
        }]),
        _ => Ok(Arc::new(path)),
    }
}

/// The connector's part of `properties`. Converters and transforms check their own options.
fn own_config(
    connector: &dyn SourceConnector,
    properties: &Properties,
) -> Result<Config, Vec<Problem>> {
    let mut also = keys::worker_keys();
    if connector.form() == RecordForm::Values {
        also.extend(record_keys());
        return connector.config().parse(&without_parts(properties), &also);
    }
    let is_own = |key: &str| connector.config().keys().iter().any(|own| own.name == key);
    let strange = record_keys::of_parts(properties, is_own);
    let others = properties.iter().filter(|(key, _)| !strange.contains(key));
    let others = others.map(|(key, value)| (key.clone(), value.clone())).collect();
    let parsed = connector.config().parse(&others, &also);
    if strange.is_empty() {
        return parsed;
    }
    let not_taken = |key| Problem {
        key,
        message:
            "is not taken: the records of this connector have a form of their own, which neither \
                  converters nor transforms change"
                .to_owned(),
    };
    Err(strange.into_iter().map(not_taken).chain(parsed.err().unwrap_or_default()).collect())
}

/// The worker's part of a configuration and the connector's.
pub(crate) struct Parsed {
    pub(crate) settings: TaskSettings,
    pub(crate) config: Config,
    /// What lies between the source and the log, where the source yields values.
    pub(crate) path: Option<Arc<RecordPath>>,
    /// Takes what the configuration refers to out of texts.
    pub(crate) scrub: Scrub,
}

/// Reads `given`, with what its references lead to now.
///
/// # Errors
/// All problems of both at once.
pub(crate) fn parse(
    connector: &dyn SourceConnector,
    given: &Properties,
    worker: &WorkerConfig,
) -> Result<Parsed, Vec<Problem>> {
    let Resolved { properties, scrub } = worker.secrets.resolve(given)?;
    let parsed = parse_resolved(connector, &properties, worker).and_then(|(settings, config)| {
        let path = match connector.form() {
            RecordForm::Encoded => None,
            RecordForm::Values => {
                Some(path(&properties, &connector.topics(&config), worker, &scrub)?)
            }
        };
        Ok((settings, config, path))
    });
    match parsed {
        Ok((settings, config, path)) => Ok(Parsed { settings, config, path, scrub }),
        Err(problems) => Err(scrub.problems(problems, given)),
    }
}

fn parse_resolved(
    connector: &dyn SourceConnector,
    properties: &Properties,
    worker: &WorkerConfig,
) -> Result<(TaskSettings, Config), Vec<Problem>> {
    let settings = TaskSettings::read(properties, worker);
    let mut known = without_overrides(properties, connector.config());
    known.retain(|key, _| {
        !topic_creation::is_of_a_group(key) && !client_overrides::is_of_dead_letters(key)
    });
    let config = own_config(connector, &known);
    let overrides = client_overrides::problems(properties, &keys::worker_keys());
    match (settings, config) {
        (Ok(settings), Ok(config)) if overrides.is_empty() => {
            let problems = exactly_once::problems(
                worker.exactly_once,
                settings.exactly_once,
                &settings.delivery,
                connector,
                &config,
            );
            if problems.is_empty() { Ok((settings, config)) } else { Err(problems) }
        }
        (settings, config) => {
            let mut problems = settings.err().unwrap_or_default();
            problems.extend(config.err().unwrap_or_default());
            problems.extend(overrides);
            Err(problems)
        }
    }
}
