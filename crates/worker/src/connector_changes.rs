//! Changes of connectors that operators ask for: written to the log first, then told to the runners.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use highwater_connector::{ConnectorError, Retry};
use highwater_kafka::OutgoingRecord;

use crate::admission::Admitted;
use crate::assignment::Work;
use crate::config_records::{self, Restart};
use crate::connector_files::Declaration;
use crate::declared::Mark;
use crate::herder::Herder;
use crate::looking::silent;
use crate::pipeline::{Pipeline, Properties};
use crate::plan::TaskPlan;
use crate::rest_error::Refusal;
use crate::restore::wanted_tasks;
use crate::status::{State, Status};
use crate::statuses::Book;
use crate::target_state::TargetState;

/// How much longer than its drain a request waits for a connector to end.
const END_GRACE: Duration = Duration::from_secs(10);

/// How long it waits at most: what the source is asked then must fit into the 90 s of our own client.
const LONGEST_END: Duration = Duration::from_secs(50);

/// Whether a configuration made a connector or changed one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Put {
    Created,
    Updated,
}

impl Herder {
    /// Makes a connector.
    ///
    /// # Errors
    /// When the name is taken, the configuration is invalid, or the log fails.
    pub(crate) async fn create(
        &self,
        name: &str,
        properties: Properties,
        target: TargetState,
    ) -> Result<(), Refusal> {
        let admitted = self.admit(name, || Ok(properties.clone())).await?;
        if self.configs().properties(name).is_some() {
            return Err(Refusal::Exists(format!("Connector {name} already exists")));
        }
        self.put(name, target, admitted).await
    }

    /// Sets a connector's whole configuration, making it where it does not exist.
    ///
    /// # Errors
    /// When the configuration is invalid or the log fails.
    pub(crate) async fn put_config(
        &self,
        name: &str,
        properties: Properties,
    ) -> Result<Put, Refusal> {
        let admitted = self.admit(name, || Ok(properties.clone())).await?;
        let put = match self.configs().properties(name) {
            Some(_) => Put::Updated,
            None => Put::Created,
        };
        let target = self.configs().target(name);
        self.put(name, target, admitted).await?;
        Ok(put)
    }

    /// Changes some keys of a connector's configuration; `None` removes a key (KIP-477).
    ///
    /// # Errors
    /// Not found, invalid, or the log fails.
    pub(crate) async fn patch_config(
        &self,
        name: &str,
        patch: BTreeMap<String, Option<String>>,
    ) -> Result<(), Refusal> {
        let patched = || {
            let mut properties = self.properties(name)?;
            for (key, value) in patch.clone() {
                match value {
                    Some(value) => drop(properties.insert(key, value)),
                    None => drop(properties.remove(&key)),
                }
            }
            Ok(properties)
        };
        let admitted = self.admit(name, patched).await?;
        let target = self.configs().target(name);
        self.put(name, target, admitted).await
    }

    /// Makes or changes a connector as a file wants it. The mark comes first: who dies in between leaves
    /// no connector that nobody takes away.
    ///
    /// # Errors
    /// When the configuration is invalid or the log fails.
    pub(crate) async fn declare(
        &self,
        declaration: &Declaration,
        mark: &Mark,
    ) -> Result<(), Refusal> {
        let Declaration { name, properties, target } = declaration;
        if self.configs().mark(name) != Some(mark) {
            self.set_mark(name, Some(mark)).await?;
        }
        let stored = self.configs().properties(name).cloned();
        match stored {
            None => self.create(name, properties.clone(), *target).await,
            Some(stored) if stored == *properties => Ok(()),
            Some(_) => self.put_config(name, properties.clone()).await.map(drop),
        }
    }

    /// Says which file wants a connector, or that none does.
    ///
    /// # Errors
    /// When the log fails.
    pub(crate) async fn set_mark(&self, name: &str, mark: Option<&Mark>) -> Result<(), Refusal> {
        let _turn = self.turn().await?;
        let record = config_records::put_mark(&self.config.configs_topic, name, mark);
        self.write(vec![record]).await.map_err(Refusal::Log)
    }

    async fn put(
        &self,
        name: &str,
        target: TargetState,
        Admitted { turn: _turn, properties, plan }: Admitted<'_>,
    ) -> Result<(), Refusal> {
        let topic = &self.config.configs_topic;
        let tasks = wanted_tasks(target, &plan);
        let records = config_records::put_connector(topic, name, &properties, target, tasks);
        // What is run is planned once the log has said it, here as everywhere.
        self.write(records).await.map_err(Refusal::Log)
    }

    /// Deletes a connector; its topics and offsets stay. Ends once its task has, within a bound.
    ///
    /// # Errors
    /// Not found, or the log fails.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), Refusal> {
        let turn = self.turn().await?;
        self.properties(name)?;
        let bound = self.end_bound(name);
        let topic = &self.config.configs_topic;
        let mut records = config_records::delete(topic, name, self.configs().tasks(name));
        // One of the same name that is made later is not its file's.
        if self.configs().mark(name).is_some() {
            records.push(config_records::put_mark(topic, name, None));
        }
        let status = self.runners.watch(name);
        self.write(records).await.map_err(Refusal::Log)?;
        drop(turn);
        let ended = async {
            if let Some(mut status) = status {
                // The runner drops its end of the status when it has ended.
                drop(status.wait_for(|_| false).await);
            }
            self.wait_for_others(name).await;
        };
        drop(tokio::time::timeout(bound, ended).await);
        Ok(())
    }

    /// Sets what is wanted of a connector. Stopping ends once the task has, within a bound, so
    /// that its offsets can be changed next.
    ///
    /// # Errors
    /// Not found, or the log fails.
    pub(crate) async fn set_target(&self, name: &str, target: TargetState) -> Result<(), Refusal> {
        let turn = self.turn().await?;
        let unknown = || Refusal::NotFound(format!("Unknown connector {name}"));
        self.properties(name).map_err(|_| unknown())?;
        if self.configs().target(name) != target {
            self.write(self.target_records(name, target)).await.map_err(Refusal::Log)?;
        }
        drop(turn);
        if target == TargetState::Stopped {
            self.wait_until_stopped(name).await;
        }
        Ok(())
    }

    fn target_records(&self, name: &str, target: TargetState) -> Vec<OutgoingRecord> {
        let topic = &self.config.configs_topic;
        match self.plan(name) {
            Ok(plan) => {
                config_records::put_target(topic, name, target, wanted_tasks(target, &plan))
            }
            // Without a plan there are no tasks to speak of, whatever is wanted.
            Err(_) => config_records::put_target(topic, name, target, &[]),
        }
    }

    /// Stops a connector and makes its source let go of what it keeps for it; says what that was.
    ///
    /// # Errors
    /// Not found, or the source refuses or cannot be asked: the connector is then stopped.
    pub(crate) async fn release(&self, name: &str) -> Result<Option<String>, Refusal> {
        self.set_target(name, TargetState::Stopped).await?;
        let _turn = self.turn().await?;
        let plan = self.stopped(name)?;
        let tasks = plan.tasks.iter().filter_map(TaskPlan::source);
        // At once: others wait for the turn.
        let released = join_all(tasks.map(|task| self.release_task(task))).await;
        let released: Vec<_> = released.into_iter().collect::<Result<_, _>>()?;
        let released: Vec<String> = released.into_iter().flatten().collect();
        Ok((!released.is_empty()).then(|| released.join("; ")))
    }

    async fn release_task(&self, planned: &Arc<Pipeline>) -> Result<Option<String>, Refusal> {
        let pipeline = planned.fresh(&self.config).await.map_err(Refusal::Connector)?;
        let stored = self.offsets(&pipeline.name).await?;
        let offset = stored.into_iter().find(|stored| stored.partition == pipeline.partition);
        let offset = offset.and_then(|stored| stored.offset);
        let limit = self.config.source_timeout;
        let released = pipeline.connector.release(&pipeline.config, offset.as_ref());
        let released = pipeline.scrubbed(released);
        let failed = |error: ConnectorError| {
            let kept = "the connector, which is stopped now, its topics and its offset";
            error.of(&pipeline.name).keeping(kept)
        };
        match tokio::time::timeout(limit, released).await {
            Ok(Ok(released)) => Ok(released),
            Ok(Err(error)) if error.retry == Retry::Never => Err(Refusal::Connector(failed(error))),
            Ok(Err(mut error)) => {
                // The task is stopped: nothing tries again by itself.
                error.remedy = "ask for it once more when the source answers".to_owned();
                Err(Refusal::Source(failed(error)))
            }
            Err(_) => Err(Refusal::Source(failed(silent("letting go of what it keeps", limit)))),
        }
    }

    async fn wait_until_stopped(&self, name: &str) {
        let stopped = async {
            let status = self.runners.watch(name);
            if let Some(mut status) = status {
                drop(status.wait_for(|status: &Status| status.state == State::Stopped).await);
            }
            self.wait_for_others(name).await;
            let whole = Work::Connector(name.to_owned());
            let is_own = self.standing().has(&whole);
            if !is_own {
                let mut book = self.shared.statuses.subscribe();
                let is_stopped =
                    |book: &Book| book.get(&whole).is_some_and(|said| said.state == State::Stopped);
                drop(book.wait_for(is_stopped).await);
            }
        };
        // Another request may want it to run, or gone, by now: then it never is.
        let mut configs = self.configs.subscribe();
        let overtaken = configs.wait_for(|configs| configs.target(name) != TargetState::Stopped);
        let settled = async {
            tokio::select! {
                () = stopped => {}
                _ = overtaken => {}
            }
        };
        drop(tokio::time::timeout(self.end_bound(name), settled).await);
    }

    /// Waits until no other worker has a task of the connector.
    async fn wait_for_others(&self, name: &str) {
        drop(self.round.subscribe().wait_for(|round| !round.has_tasks_of(name)).await);
    }

    /// How long a request waits for a connector to end, which may drain as long as it is configured.
    fn end_bound(&self, name: &str) -> Duration {
        let planned = self.plan(name).map(|plan| plan.settings.drain_timeout);
        end_bound(planned.unwrap_or(self.config.drain_timeout))
    }

    /// Starts a connector anew, and its tasks where that is asked for, each after it was drained.
    ///
    /// # Errors
    /// Not found, or the log fails.
    pub(crate) async fn restart(&self, name: &str, restart: Restart) -> Result<(), Refusal> {
        let _turn = self.turn().await?;
        self.known(name)?;
        let told = config_records::restart(&self.config.configs_topic, name, restart);
        self.write(vec![told]).await.map_err(Refusal::Log)?;
        // What could not be run before may have tasks now.
        let changed = self.changed_tasks(name);
        if changed.is_empty() { Ok(()) } else { self.write(changed).await.map_err(Refusal::Log) }
    }

    /// Starts a task of this worker anew, after it was drained.
    ///
    /// # Errors
    /// Not found, or it is on its way from one worker to another.
    pub(crate) fn restart_task(&self, name: &str, id: u32) -> Result<(), Refusal> {
        self.known(name)?;
        let is_here = self.runners.restart(name, |task, _| task == id);
        if is_here { Ok(()) } else { Err(Refusal::rebalancing()) }
    }

    fn known(&self, name: &str) -> Result<Properties, Refusal> {
        let unknown = |_| Refusal::NotFound(format!("Unknown connector: {name}"));
        self.properties(name).map_err(unknown)
    }
}

fn end_bound(drain: Duration) -> Duration {
    (drain + END_GRACE).min(LONGEST_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_awaited_for_longer_than_its_drain_as_far_as_a_request_may_take() {
        let bound = |seconds| end_bound(Duration::from_secs(seconds)).as_secs();
        assert_eq!([5, 30, 600].map(bound), [15, 40, 50]);
    }
}
