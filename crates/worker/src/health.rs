//! Whether the worker makes progress (KIP-1017): it takes its turn for a change, the log answers, and
//! which of its tasks do not move.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::assignment::Work;
use crate::elsewhere::{Elsewhere, Whereabouts};
use crate::herder::Herder;
use crate::meter::TaskMeter;
use crate::standing::Standing;
use crate::status::{State, Status};

/// How long an answer of the log counts: whoever asks more often costs it nothing.
const FRESH: Duration = Duration::from_secs(1);

/// A task whose loop came round no more for so long stands still. What it waits for in a poll takes
/// 200 ms, and a sync of a busy disk seconds.
const STILL: SignedDuration = SignedDuration::from_secs(30);

/// Tasks that are named, at most.
const NAMED: usize = 100;

/// What the log was last asked, and whether it answered.
#[derive(Debug, Default)]
pub(crate) struct LogProbe(Mutex<Option<(Instant, Result<(), String>)>>);

impl LogProbe {
    /// Asks the log for the end of the configs topic.
    async fn ask(&self, herder: &Herder, limit: Duration) -> Result<(), String> {
        let mut last = self.0.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < FRESH
        {
            return answer.clone();
        }
        let topic = &herder.config.configs_topic;
        let spec = highwater_kafka::OffsetSpec::Latest;
        let asked = timeout(limit, herder.shared.cluster.reader.list_offset(topic, 0, spec)).await;
        let answer = match asked {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("it cannot read topic {topic}: {error}")),
            Err(_) => Err(format!("the log did not say where topic {topic} ends")),
        };
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

/// How the worker is.
pub(crate) enum Health {
    Healthy,
    /// What it could not do in time.
    Stuck(String),
}

/// Looks, within the worker's time for it.
pub(crate) async fn look(herder: &Herder) -> Health {
    let limit = herder.config.health_timeout;
    let seconds = limit.as_secs_f64();
    let turn = async {
        let turn = timeout(limit, herder.turn.lock()).await;
        turn.map(drop).map_err(|_| format!("a change of a connector has gone on for {seconds} s"))
    };
    let log = async {
        let asked = timeout(limit, herder.shared.probe.ask(herder, limit)).await;
        asked.unwrap_or_else(|_| Err("the log does not answer".to_owned()))
    };
    let (turn, log) = tokio::join!(turn, log);
    let share = match *herder.standing() {
        Standing::Out => Err(format!("group {} has given it no share", herder.config.group_id)),
        Standing::Alone | Standing::In(_) => Ok(()),
    };
    let failures: Vec<String> = [turn, log, share].into_iter().filter_map(Result::err).collect();
    if failures.is_empty() { Health::Healthy } else { Health::Stuck(failures.join("; ")) }
}

/// The tasks of all workers: this one's, and apart from them what the others have said of theirs.
pub(crate) fn tasks(herder: &Herder) -> Value {
    let mut tasks = own_tasks(herder);
    tasks["worker_id"] = json!(herder.config.worker_id);
    if !matches!(*herder.standing(), Standing::Alone) {
        tasks["others"] = others(&elsewhere(herder));
    }
    tasks
}

/// The worker's tasks: how many in each state, which have failed, and which do not move.
fn own_tasks(herder: &Herder) -> Value {
    let now = Timestamp::now();
    let statuses = herder.runners.tasks();
    let tasks = statuses.iter().flat_map(|(name, tasks)| {
        tasks.iter().map(move |(id, status)| (name.as_str(), *id, status))
    });
    let (mut counts, mut failed, mut still) = (Map::new(), Vec::new(), Vec::new());
    for (name, id, status) in tasks {
        let count = counts.get(status.state.name()).and_then(Value::as_u64).unwrap_or(0);
        counts.insert(status.state.name().to_owned(), json!(count + 1));
        let task = |what: String| json!({ "connector": name, "task": id, "what": what, "since": status.since.to_string() });
        if status.state == State::Failed {
            failed.push(task(status.activity.clone()));
        }
        let meter = herder.shared.meters.of(name, id);
        if let Some(what) = meter.and_then(|meter| stands(status, &meter, now)) {
            still.push(task(what));
        }
    }
    failed.truncate(NAMED);
    still.truncate(NAMED);
    json!({ "tasks": counts, "failed": failed, "still": still })
}

/// The tasks of connectors that are there which this worker does not run.
fn elsewhere(herder: &Herder) -> Vec<(String, u32, Elsewhere)> {
    let configs = herder.configs();
    let (standing, book) = (herder.standing(), herder.shared.statuses.borrow());
    let tasks = book.iter().filter_map(|(part, said)| match part {
        Work::Task(name, id) if !standing.has(part) => {
            configs.properties(name)?;
            let worker = standing.whereabouts(&said.worker_id);
            Some((name.clone(), *id, Elsewhere { said: said.clone(), worker }))
        }
        Work::Task(..) | Work::Connector(_) => None,
    });
    tasks.collect()
}

/// Tasks of others: how many in each state, which have failed, and whose worker is gone.
fn others(tasks: &[(String, u32, Elsewhere)]) -> Value {
    let (mut counts, mut failed, mut gone) = (BTreeMap::new(), Vec::new(), Vec::new());
    for (name, id, part) in tasks {
        let state = part.said.state;
        let task = || json!({ "connector": name, "task": id, "worker_id": part.said.worker_id, "what": part.activity() });
        if part.worker == Whereabouts::Gone {
            gone.push(task());
            continue;
        }
        *counts.entry(state.name()).or_insert(0_u32) += 1;
        if state == State::Failed {
            failed.push(task());
        }
    }
    failed.truncate(NAMED);
    gone.truncate(NAMED);
    json!({ "tasks": counts, "failed": failed, "gone": gone })
}

/// Why a task that is said to run does not move.
pub(crate) fn stands(status: &Status, meter: &TaskMeter, now: Timestamp) -> Option<String> {
    if status.state != State::Running {
        return None;
    }
    let since = |level: Option<i64>| {
        let since = Timestamp::from_millisecond(level?).ok()?;
        (now.duration_since(since) >= STILL).then_some(since)
    };
    let refused = || {
        let since = since(meter.refused_since.get())?;
        Some(format!("the sink has taken nothing since {since:.0}: {}", status.activity))
    };
    let turned = || {
        let since = since(meter.turned.get())?;
        Some(format!(
            "it has been busy with one and the same since {since:.0}: {}",
            status.activity
        ))
    };
    status.pulse.silence(now).or_else(refused).or_else(turned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statuses::StoredStatus;

    #[test]
    fn tasks_of_others_are_counted_by_what_their_workers_say_while_these_are_there() {
        let part = |state, worker| Elsewhere {
            said: StoredStatus {
                state,
                trace: (state == State::Failed).then(|| "odd".to_owned()),
                worker_id: "b:1".to_owned(),
                generation: 1,
                version: None,
            },
            worker,
        };
        let at = || Whereabouts::At("http://b:1".to_owned());
        let tasks = [
            ("a".to_owned(), 0, part(State::Running, at())),
            ("a".to_owned(), 1, part(State::Failed, at())),
            ("b".to_owned(), 0, part(State::Running, Whereabouts::Gone)),
        ];
        let others = others(&tasks);
        assert_eq!(others["tasks"], json!({ "RUNNING": 1, "FAILED": 1 }));
        let (failed, gone) = (&others["failed"][0], &others["gone"][0]);
        assert_eq!((&failed["task"], &failed["worker_id"]), (&json!(1), &json!("b:1")));
        assert_eq!((&gone["connector"], &gone["worker_id"]), (&json!("b"), &json!("b:1")));
    }

    #[test]
    fn a_task_stands_still_once_its_loop_or_its_sink_does_for_long() {
        let mut status = Status::unassigned();
        status.enter(State::Running, None, "Reads");
        let (meter, now) = (TaskMeter::default(), Timestamp::now());
        let ago = |seconds: i64| Some(now.as_millisecond() - seconds * 1_000);
        assert_eq!(stands(&status, &meter, now), None, "it has not turned yet");
        meter.turned.set(ago(29));
        assert_eq!(stands(&status, &meter, now), None);
        meter.turned.set(ago(31));
        assert!(stands(&status, &meter, now).unwrap().contains("busy with one and the same"));
        meter.turned.set(ago(0));
        meter.refused_since.set(ago(31));
        assert!(stands(&status, &meter, now).unwrap().contains("the sink has taken nothing"));
        status.enter(State::Paused, None, "Paused");
        assert_eq!(stands(&status, &meter, now), None, "it shall not move");
    }
}
