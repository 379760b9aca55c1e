//! A connector's configuration, checked and divided among its tasks.

use std::sync::Arc;

use highwater_connector::{
    Claim, Problem, Routing, SinkConnector, SourceConnector, SourcePartition, Topics,
};

use crate::WorkerConfig;
use crate::checks::{Unanswered, none_free};
use crate::client_overrides::{WithoutEffect, without_effect};
use crate::isolation;
use crate::keys;
use crate::offset_topics;
use crate::ownership;
use crate::pipeline::{self, Parsed, Pipeline, Properties};
use crate::plugin_versions;
use crate::plugins::{Plugin, Plugins};
use crate::references::has_reference;
use crate::scrub::Scrub;
use crate::sink_keys::sink_keys;
use crate::sink_opening::SinkPipeline;
use crate::task_configs;
use crate::task_settings::TaskSettings;

/// What a run of one task needs to know.
#[derive(Clone)]
pub(crate) enum TaskPlan {
    Source(Arc<Pipeline>),
    Sink(Arc<SinkPipeline>),
}

impl TaskPlan {
    /// What a task of a source needs to know.
    pub(crate) const fn source(&self) -> Option<&Arc<Pipeline>> {
        match self {
            Self::Source(pipeline) => Some(pipeline),
            Self::Sink(_) => None,
        }
    }

    /// The partition that a source's task stores its offsets under.
    pub(crate) fn partition(&self) -> Option<&SourcePartition> {
        self.source().map(|pipeline| &pipeline.partition)
    }

    pub(crate) fn settings(&self) -> &TaskSettings {
        match self {
            Self::Source(pipeline) => &pipeline.settings,
            Self::Sink(pipeline) => &pipeline.settings,
        }
    }

    /// Takes what its configuration refers to out of texts.
    pub(crate) fn scrub(&self) -> &Scrub {
        match self {
            Self::Source(pipeline) => &pipeline.scrub,
            Self::Sink(pipeline) => &pipeline.scrub,
        }
    }

    /// Id of the task.
    pub(crate) fn id(&self) -> u32 {
        match self {
            Self::Source(pipeline) => pipeline.task,
            Self::Sink(pipeline) => pipeline.task,
        }
    }

    /// Version of the plugin.
    pub(crate) fn version(&self) -> &'static str {
        match self {
            Self::Source(pipeline) => pipeline.connector.version(),
            Self::Sink(pipeline) => pipeline.connector.version(),
        }
    }

    /// Whether both are one plan, so that nothing but what is wanted of it can differ.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Source(one), Self::Source(other)) => Arc::ptr_eq(one, other),
            (Self::Sink(one), Self::Sink(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// See the module's text.
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) settings: TaskSettings,
    /// Topics that a source owns.
    pub(crate) topics: Option<Topics>,
    pub(crate) claims: Vec<Claim>,
    /// One for each task, at least one, in the order of their ids.
    pub(crate) tasks: Vec<TaskPlan>,
    /// The tasks' configurations as they are stored.
    pub(crate) stored: Vec<Properties>,
    /// Keys that are taken and change nothing.
    pub(crate) without_effect: Vec<WithoutEffect>,
}

impl Plan {
    /// What the tasks of a sink need to know, all of them the same; none of a source.
    pub(crate) fn sink(&self) -> Option<&Arc<SinkPipeline>> {
        match self.tasks.first()? {
            TaskPlan::Sink(pipeline) => Some(pipeline),
            TaskPlan::Source(_) => None,
        }
    }

    /// Checks the properties of connector `name`, whose work is divided as `stored` says; by the
    /// connector itself where it says nothing.
    ///
    /// # Errors
    /// All problems at once.
    pub(crate) fn of(
        name: &str,
        properties: &Properties,
        stored: &[Properties],
        plugins: &Plugins,
        worker: &WorkerConfig,
    ) -> Result<Self, Vec<Problem>> {
        let plugin = class(properties, plugins)?;
        let problems = plugin_versions::of_connector(properties, plugin.version());
        if !problems.is_empty() {
            return Err(problems);
        }
        let plan = || match plugin {
            Plugin::Source(source) => divide(name, properties, stored, source, worker),
            Plugin::Sink(sink) => multiply(name, properties, stored, sink, worker),
        };
        isolation::caught(plan).unwrap_or_else(|panic| {
            let scrub = worker.secrets.resolve(properties).map(|resolved| resolved.scrub);
            let panic = scrub.unwrap_or_default().text(&panic);
            Err(vec![Problem::new(
                keys::CLASS,
                format!("checks this configuration in a way that {panic}"),
            )])
        })
    }
}

/// [`Plan::of`] for connectors whose code may never answer: it gets a thread of its own, which is
/// given up after [`WorkerConfig::source_timeout`].
///
/// # Errors
/// All problems at once.
pub(crate) async fn within_time(
    name: &str,
    properties: &Properties,
    stored: &[Properties],
    plugins: &Plugins,
    worker: &WorkerConfig,
) -> Result<Arc<Plan>, Vec<Problem>> {
    let limit = worker.source_timeout;
    let (name, properties, stored) = (name.to_owned(), properties.clone(), stored.to_vec());
    let (plugins, worker) = (plugins.clone(), worker.clone());
    let checks = worker.checks.clone();
    let planned =
        checks.run(limit, move || Plan::of(&name, &properties, &stored, &plugins, &worker)).await;
    let message = match planned {
        Ok(plan) => return plan.map(Arc::new),
        Err(Unanswered::NoneFree(number)) => none_free(number),
        Err(Unanswered::Silent) => {
            format!("has not said within {limit:?} whether this configuration fits")
        }
        Err(Unanswered::Broken(error)) => format!("could not be asked: {error}"),
    };
    Err(vec![Problem::new(keys::CLASS, message)])
}

fn divide(
    name: &str,
    properties: &Properties,
    stored: &[Properties],
    connector: &Arc<dyn SourceConnector>,
    worker: &WorkerConfig,
) -> Result<Plan, Vec<Problem>> {
    let Parsed { settings, config, scrub, .. } =
        pipeline::parse(connector.as_ref(), properties, worker)?;
    let topics = connector.topics(&config);
    let refused = |problem| Err(scrub.problems(vec![problem], properties));
    if matches!(&topics.routing, Routing::Topic(topic) if topic.trim().is_empty()) {
        return refused(Problem::new(ownership::key(&topics), "must not be empty".to_owned()));
    }
    if let Some(message) = ownership::impossible(&topics) {
        return refused(Problem::new(ownership::key(&topics), message));
    }
    let named = settings.offsets_topic.as_deref();
    if let Some(problem) = offset_topics::problem(named, &worker.offsets_topic, &topics) {
        return refused(problem);
    }
    let divided = if stored.is_empty() {
        let divided = connector.tasks(properties, &config, settings.tasks_max);
        let divided = divided
            .map_err(|error| vec![Problem::new("configuration:", scrub.text(&error.what))])?;
        check_number(divided.len(), &settings)?;
        check_references(properties, &divided)?;
        divided
    } else {
        stored.iter().map(task_configs::given).collect()
    };
    let task = |(id, task): (u32, &Properties)| {
        Pipeline::plan(name, id, connector, task, worker).map(Arc::new)
    };
    let tasks: Vec<_> = (0..).zip(&divided).map(task).collect::<Result<_, _>>()?;
    check_partitions(&tasks)?;
    Ok(Plan {
        name: name.to_owned(),
        topics: Some(topics),
        claims: connector.claims(&config),
        settings,
        tasks: tasks.into_iter().map(TaskPlan::Source).collect(),
        stored: divided
            .into_iter()
            .map(|task| task_configs::stored(task, connector.classes()))
            .collect(),
        without_effect: without_effect(properties, &keys::worker_keys()),
    })
}

/// A sink's tasks are alike: their group shares out among them what there is to read.
fn multiply(
    name: &str,
    properties: &Properties,
    stored: &[Properties],
    connector: &Arc<dyn SinkConnector>,
    worker: &WorkerConfig,
) -> Result<Plan, Vec<Problem>> {
    let plan = |id| SinkPipeline::plan(name, id, connector, properties, worker).map(Arc::new);
    let first = plan(0)?;
    let number = u32::try_from(stored.len()).ok().filter(|stored| *stored > 0);
    let number = number.unwrap_or(first.settings.tasks_max);
    let others = (1..number).map(plan).collect::<Result<Vec<_>, _>>()?;
    let stored =
        vec![task_configs::stored(properties.clone(), connector.classes()); number as usize];
    Ok(Plan {
        name: name.to_owned(),
        topics: None,
        claims: connector.claims(&first.config),
        settings: first.settings.clone(),
        tasks: [first].into_iter().chain(others).map(TaskPlan::Sink).collect(),
        stored,
        without_effect: without_effect(properties, &[keys::worker_keys(), sink_keys()].concat()),
    })
}

fn check_number(tasks: usize, settings: &TaskSettings) -> Result<(), Vec<Problem>> {
    let max = settings.tasks_max;
    let more = u32::try_from(tasks).is_ok_and(|tasks| tasks > max);
    if more && settings.tasks_max_enforced {
        let message = format!(
            "is {max}, and the connector has generated {tasks} tasks; raise it, or set \
             tasks.max.enforce=false"
        );
        return Err(vec![Problem::new(keys::TASKS_MAX, message)]);
    }
    if tasks == 0 {
        let message = "leads to no task at all".to_owned();
        return Err(vec![Problem::new("configuration:", message)]);
    }
    Ok(())
}

/// What a task's configuration has in place of a reference would be stored.
fn check_references(given: &Properties, divided: &[Properties]) -> Result<(), Vec<Problem>> {
    let by_reference = given.iter().filter(|(_, value)| has_reference(value));
    let is_kept = |(key, value): &(&String, &String)| {
        divided.iter().all(|task| task.get(*key).is_none_or(|own| own == *value))
    };
    match by_reference.into_iter().find(|entry| !is_kept(entry)) {
        None => Ok(()),
        Some((key, _)) => {
            let message = "cannot be given by reference: the work is divided by it".to_owned();
            Err(vec![Problem::new(key, message)])
        }
    }
}

/// Two tasks would overwrite each other's offsets.
fn check_partitions(tasks: &[Arc<Pipeline>]) -> Result<(), Vec<Problem>> {
    let shared = |(at, task): (usize, &Arc<Pipeline>)| {
        tasks.iter().take(at).any(|other| other.partition == task.partition)
    };
    if tasks.iter().enumerate().any(shared) {
        let message = "leads to two tasks with the same offset partition".to_owned();
        return Err(vec![Problem::new("configuration:", message)]);
    }
    Ok(())
}

fn class<'a>(properties: &Properties, plugins: &'a Plugins) -> Result<&'a Plugin, Vec<Problem>> {
    let class = properties.get(keys::CLASS).ok_or_else(|| {
        vec![Problem::new(keys::CLASS, "is required and has no default".to_owned())]
    })?;
    plugins.find(class).ok_or_else(|| {
        let known = plugins.class_names();
        vec![Problem::new(
            keys::CLASS,
            format!("is {class}, which is not known here; known: {known}"),
        )]
    })
}
