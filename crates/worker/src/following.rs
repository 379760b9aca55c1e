//! Does what the topics of state say, whichever worker wrote it: what operators want, and how all parts
//! stand.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use highwater_kafka::KafkaError;

use crate::assignment::Work;
use crate::config_records::Restart;
use crate::configs::Effect;
use crate::herder::Herder;
use crate::loggers::LogLevel;
use crate::replay::News;
use crate::restore::{self, wanted_tasks};
use crate::status::{State, Status};
use crate::statuses;

/// Pause before a topic is looked at again that could not be read.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A topic of state.
#[derive(Clone, Copy, Debug)]
enum Topic {
    Configs,
    Statuses,
}

impl Herder {
    /// Follows the topics until it ends.
    pub(crate) fn follow(self: &Arc<Self>) {
        for topic in [Topic::Configs, Topic::Statuses] {
            let follower = tokio::spawn(follow(Arc::downgrade(self), topic)).abort_handle();
            self.followers.lock().push(follower);
        }
    }

    async fn read(&self, topic: Topic) -> Result<(), KafkaError> {
        match topic {
            Topic::Configs => self.read_configs().await,
            Topic::Statuses => self.read_statuses().await,
        }
    }

    async fn news(&self, topic: Topic) -> Result<News, KafkaError> {
        match topic {
            Topic::Configs => self.config_tail.lock().await.news().await,
            Topic::Statuses => self.status_tail.lock().await.news().await,
        }
    }

    /// Reads the configurations to their end, and does what they say.
    ///
    /// # Errors
    /// When the log cannot be read; what could be read is done.
    pub(crate) async fn read_configs(&self) -> Result<(), KafkaError> {
        let mut tail = self.config_tail.lock().await;
        let mut effects = Vec::new();
        let read = tail
            .catch_up(&mut |record| {
                self.configs.send_modify(|configs| {
                    effects.extend(configs.apply(record.key.as_deref(), record.value.as_deref()));
                });
            })
            .await;
        for effect in effects {
            self.act(effect).await;
        }
        read
    }

    /// Reads the statuses to their end.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) async fn read_statuses(&self) -> Result<(), KafkaError> {
        let active_topics = &self.shared.active_topics;
        let mut each = |record: highwater_kafka::ReadRecord| {
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            self.shared.statuses.send_modify(|book| statuses::apply(book, key, value));
            active_topics.apply(key, value.is_some());
        };
        self.status_tail.lock().await.catch_up(&mut each).await
    }

    async fn act(&self, effect: Effect) {
        match effect {
            Effect::Settled(name) => self.settle(&name).await,
            Effect::Restart(name, restart) => self.start_anew(&name, restart).await,
            Effect::Level(name, level) => {
                if let Some(level) = LogLevel::from_name(&level) {
                    self.config.loggers.set(&name, level);
                }
            }
        }
    }

    /// Has a connector run as it is wanted now.
    async fn settle(&self, name: &str) {
        let exists = self.configs().properties(name).is_some();
        if exists {
            self.replan(name).await;
            self.tell(name);
        } else {
            self.plans.remove(name);
            self.runners.vanish(name);
        }
        self.update_wanted();
    }

    async fn start_anew(&self, name: &str, restart: Restart) {
        if self.plan(name).is_err() {
            self.replan(name).await;
            self.tell(name);
            self.update_wanted();
        }
        if restart.tasks {
            let failed = |status: &Status| status.state == State::Failed;
            self.runners.restart(name, |_, status| !restart.only_failed || failed(status));
        }
    }

    /// As who leads: has the log say which tasks are run, and removes statuses of what is not there,
    /// left by a crash.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(crate) async fn lead(&self) -> Result<(), KafkaError> {
        let _turn = self.turn.lock().await;
        for name in self.plans.divided_by_others() {
            self.plan_anew(&name).await;
        }
        let names = self.names();
        let records: Vec<_> = names.iter().flat_map(|name| self.changed_tasks(name)).collect();
        if !records.is_empty() {
            self.write(records).await?;
        }
        let there = self.everything();
        let book = self.shared.statuses.borrow().clone();
        let stale = book.keys().filter(|part| !there.contains(part));
        let stale: Vec<_> =
            stale.map(|part| part.status_tombstone(&self.shared.status_topic)).collect();
        if stale.is_empty() {
            return Ok(());
        }
        self.shared.journal.write(stale).await
    }

    pub(crate) fn changed_tasks(&self, name: &str) -> Vec<highwater_kafka::OutgoingRecord> {
        let topic = &self.config.configs_topic;
        restore::changed_tasks(topic, name, &self.configs(), &self.plan(name))
    }

    /// All work of all connectors as the log says it.
    fn everything(&self) -> BTreeSet<Work> {
        self.names().iter().flat_map(|name| self.works(name)).collect()
    }

    fn works(&self, name: &str) -> BTreeSet<Work> {
        let tasks = self.configs().tasks(name).committed().map_or(0, |tasks| tasks.len());
        let tasks = (0..).take(tasks).map(|id| Work::Task(name.to_owned(), id));
        std::iter::once(Work::Connector(name.to_owned())).chain(tasks).collect()
    }

    /// Says what there is to share out: nothing of a connector whose tasks are about to be others.
    pub(crate) fn update_wanted(&self) {
        self.wanted.send_if_modified(|old| {
            // Seen behind the lock: of two that look, the later has the last word.
            let names = self.names();
            let orderly = names.iter().filter(|name| self.is_orderly(name));
            let wanted: BTreeSet<Work> = orderly.flat_map(|name| self.works(name)).collect();
            let changed = *old != wanted;
            *old = wanted;
            changed
        });
    }

    fn is_orderly(&self, name: &str) -> bool {
        let configs = self.configs();
        let stored = configs.tasks(name).committed();
        match (stored, self.plan(name)) {
            (None, _) => false,
            (Some(_), Err(_)) => true,
            (Some(stored), Ok(plan)) => {
                stored.into_iter().eq(wanted_tasks(configs.target(name), &plan))
            }
        }
    }
}

/// Reads a topic whenever there is something new in it.
async fn follow(herder: Weak<Herder>, topic: Topic) {
    while let Some(strong) = herder.upgrade() {
        let news = match strong.news(topic).await {
            Ok(news) => strong.read(topic).await.map(|()| news),
            Err(error) => Err(error),
        };
        drop(strong);
        if let Err(error) = match news {
            Ok(news) => while_new(&herder, topic, news).await,
            Err(error) => Err(error),
        } {
            tracing::warn!(?topic, %error, "a topic of the worker's state cannot be read");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn while_new(herder: &Weak<Herder>, topic: Topic, mut news: News) -> Result<(), KafkaError> {
    while news.wait().await {
        let Some(herder) = herder.upgrade() else { return Ok(()) };
        herder.read(topic).await?;
    }
    Ok(())
}
