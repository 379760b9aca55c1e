//! Does what the topics of state say, whichever worker wrote it: what operators want, and how all parts
//! stand.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use highwater_kafka::KafkaError;
use tokio::sync::watch;

use crate::assignment::Work;
use crate::config_records::Restart;
use crate::configs::{ConfigState, Effect};
use crate::herder::Herder;
use crate::loggers::LogLevel;
use crate::replay::News;
use crate::restore::{self, wanted_tasks};
use crate::standing::Standing;
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
        let leading = put_in_order(Arc::downgrade(self), self.shared.standing.subscribe());
        let doing = do_what_is_read(Arc::downgrade(self), self.configs.subscribe());
        let own = [tokio::spawn(leading), tokio::spawn(doing)];
        self.followers.lock().extend(own.map(|follower| follower.abort_handle()));
    }

    async fn read(&self, topic: Topic) -> Result<(), KafkaError> {
        match topic {
            Topic::Configs => self.hear_configs().await,
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
        let read = self.hear_configs().await;
        self.act().await;
        read
    }

    /// Reads the configurations to their end.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) async fn hear_configs(&self) -> Result<(), KafkaError> {
        let mut each = |record: highwater_kafka::ReadRecord| {
            self.configs.send_modify(|configs| {
                let effect = configs.apply(record.key.as_deref(), record.value.as_deref());
                self.undone.lock().extend(effect);
            });
        };
        self.config_tail.lock().await.catch_up(&mut each).await
    }

    /// Does what was read, whoever read it. What hangs keeps nobody from reading on.
    pub(crate) async fn act(&self) {
        let _acting = self.acting.lock().await;
        let effects: Vec<Effect> = self.undone.lock().iter().cloned().collect();
        let names: BTreeSet<&str> = effects.iter().map(Effect::name).collect();
        let each = names.into_iter().map(async |name| {
            for effect in effects.iter().filter(|effect| effect.name() == name) {
                self.do_one(effect).await;
            }
        });
        // At once: one whose check hangs takes its time-out, and no more for all of them.
        join_all(each).await;
        // Not before: who is held up and given up leaves it to the next.
        self.undone.lock().drain(..effects.len());
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

    async fn do_one(&self, effect: &Effect) {
        match effect {
            Effect::Settled(name) => self.settle(name).await,
            Effect::Restart(name, restart) => self.start_anew(name, *restart).await,
            Effect::Level(name, level) => {
                if let Some(level) = LogLevel::from_name(level) {
                    self.config.loggers.set(name, level);
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
        if !self.leads() {
            return Ok(());
        }
        self.read_configs().await?;
        let theirs = self.plans.divided_by_others();
        join_all(theirs.iter().map(|name| self.plan_anew(name))).await;
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

/// Sets the log in order each time that the group has made this worker its leader. Apart from its life in
/// the group, which goes on while a change waits for a source that does not answer.
async fn put_in_order(herder: Weak<Herder>, mut standing: watch::Receiver<Standing>) {
    while standing.changed().await.is_ok() {
        let Some(herder) = herder.upgrade() else { return };
        if let Err(error) = herder.lead().await {
            tracing::warn!(%error, "the leader could not set the log in order");
        }
    }
}

/// Does what is read, apart from who reads on.
async fn do_what_is_read(herder: Weak<Herder>, mut configs: watch::Receiver<ConfigState>) {
    while configs.changed().await.is_ok() {
        let Some(herder) = herder.upgrade() else { return };
        herder.act().await;
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
