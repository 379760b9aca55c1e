//! A task's plan with what its references lead to now: secrets change while a server runs, and each
//! start of a task, and each question to its source, takes them as they are.

use std::sync::Arc;

use highwater_connector::{ConnectorError, ErrorKind, Problem};

use crate::WorkerConfig;
use crate::checks::{Unanswered, none_free};
use crate::isolation;
use crate::keys;
use crate::looking::silent;
use crate::pipeline::{Pipeline, Properties};
use crate::plan::TaskPlan;
use crate::references::has_reference;
use crate::sink_opening::SinkPipeline;

impl TaskPlan {
    /// See the module's text.
    ///
    /// # Errors
    /// When a reference leads nowhere, or to what does not fit.
    pub(crate) async fn fresh(&self, worker: &WorkerConfig) -> Result<Self, ConnectorError> {
        match self {
            Self::Source(pipeline) => Ok(Self::Source(pipeline.fresh(worker).await?)),
            Self::Sink(pipeline) => Ok(Self::Sink(pipeline.fresh(worker).await?)),
        }
    }
}

impl Pipeline {
    /// See the module's text.
    ///
    /// # Errors
    /// When a reference leads nowhere, or to what does not fit.
    pub(crate) async fn fresh(
        self: &Arc<Self>,
        worker: &WorkerConfig,
    ) -> Result<Arc<Self>, ConnectorError> {
        let old = Arc::clone(self);
        let plan = move |worker: &WorkerConfig| {
            Self::plan(&old.name, old.task, &old.connector, &old.given, worker)
        };
        let new = renewed(&self.given, worker, plan).await?;
        let leads_to =
            |it: &Self| (it.topics.clone(), it.partition.clone(), it.connector.claims(&it.config));
        unmoved(self, new, &self.name, leads_to)
    }
}

impl SinkPipeline {
    /// See the module's text.
    ///
    /// # Errors
    /// When a reference leads nowhere, or to what does not fit.
    pub(crate) async fn fresh(
        self: &Arc<Self>,
        worker: &WorkerConfig,
    ) -> Result<Arc<Self>, ConnectorError> {
        let old = Arc::clone(self);
        let plan = move |worker: &WorkerConfig| {
            Self::plan(&old.name, old.task, &old.connector, &old.given, worker)
        };
        let new = renewed(&self.given, worker, plan).await?;
        unmoved(self, new, &self.name, |it| it.connector.claims(&it.config))
    }
}

/// The new one, or the old one where there is none; both must lead to the same.
fn unmoved<T, U: PartialEq>(
    old: &Arc<T>,
    new: Option<T>,
    name: &str,
    leads_to: impl Fn(&T) -> U,
) -> Result<Arc<T>, ConnectorError> {
    match new {
        None => Ok(Arc::clone(old)),
        Some(new) if leads_to(&new) == leads_to(old) => Ok(Arc::new(new)),
        Some(_) => Err(moved(name)),
    }
}

/// What `plan` makes of a configuration; `None` of one that refers to nothing. Reading files may
/// take for ever: it has a thread of its own, which is given up after a while.
async fn renewed<T: Send + 'static>(
    given: &Properties,
    worker: &WorkerConfig,
    plan: impl FnOnce(&WorkerConfig) -> Result<T, Vec<Problem>> + Send + 'static,
) -> Result<Option<T>, ConnectorError> {
    if !given.values().any(|value| has_reference(value)) {
        return Ok(None);
    }
    let (given, worker) = (given.clone(), worker.clone());
    let (limit, checks) = (worker.source_timeout, worker.checks.clone());
    let work = move || {
        let looked = worker.secrets.resolve(&given).map_err(|problems| unavailable(&problems))?;
        // Between both looks a file may change: what the second one finds wrong is said by its key.
        let planned = isolation::caught(|| plan(&worker));
        let planned = planned.map_err(|panic| isolation::panicked(&looked.scrub.text(&panic)))?;
        planned.map_err(|problems| unfit(&problems))
    };
    match checks.run(limit, work).await {
        Ok(planned) => planned.map(Some),
        Err(Unanswered::NoneFree(number)) => {
            Err(unavailable(&[Problem::new(keys::CLASS, none_free(number))]))
        }
        Err(Unanswered::Silent) => Err(silent("its secrets", limit)),
        Err(Unanswered::Broken(error)) => Err(isolation::panicked(&error.to_string())),
    }
}

/// All of them in one line.
pub(crate) fn listed(problems: &[Problem]) -> String {
    let text = |problem: &Problem| format!("{} {}", problem.key, problem.message);
    problems.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// It may be that somebody is exchanging the file just now.
fn unavailable(problems: &[Problem]) -> ConnectorError {
    let what = format!("a secret cannot be had: {}", listed(problems));
    ConnectorError {
        remedy: "put the secret where the configuration says; the task tries again by itself"
            .to_owned(),
        ..ConnectorError::again("SECRET_UNAVAILABLE", ErrorKind::Configuration, what)
    }
}

fn unfit(problems: &[Problem]) -> ConnectorError {
    ConnectorError::stop(
        "CONFIG_INVALID",
        ErrorKind::Configuration,
        format!("what the configuration refers to does not fit any more: {}", listed(problems)),
        "correct what it refers to, then restart the task",
    )
}

/// Whose topics and source they are is checked where a configuration is given, and nowhere else.
fn moved(name: &str) -> ConnectorError {
    ConnectorError::stop(
        "REFERENCE_MOVED",
        ErrorKind::Configuration,
        "what the configuration refers to leads to another source, sink or topic than when it was given",
        format!(
            "give it the same configuration once more: highwater connector update {name} --file FILE"
        ),
    )
}
