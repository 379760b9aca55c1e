//! What an operator should know of the connectors, for `highwater doctor`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{ConnectorError, Finding, Severity, SourceOffset, TopicPartition};
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client_overrides::{self, WithoutEffect};
use crate::elsewhere::Elsewhere;
use crate::health;
use crate::herder::Herder;
use crate::looking::silent;
use crate::meter::Move;
use crate::pipeline::Pipeline;
use crate::plan::TaskPlan;
use crate::rest_error::Refusal;
use crate::rest_forward;
use crate::scrub::Scrub;
use crate::secrets;
use crate::status::{ConnectorStatus, Seen, State, Status};
use crate::undone::Undone;

/// How long one source may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many connectors are looked at together, so that several silent sources are one wait.
const TOGETHER: usize = 16;

/// Partitions that are named, at most.
const NAMED: usize = 10;

/// Code of a connector that is paused or stopped.
pub(crate) const NOT_RUNNING: &str = "CONNECTOR_NOT_RUNNING";

/// All connectors, each with its source.
pub(crate) async fn examine(herder: &Arc<Herder>) -> Vec<Finding> {
    let names: Vec<String> = herder.configs().names().map(str::to_owned).collect();
    let mut found = herder.folder.findings();
    found.extend(of_offsets(herder));
    found.extend(of_workers(herder).await);
    // Boxed: with a source's connection inside, it is too deep for a type.
    let looks = names.into_iter().map(|name| Box::pin(of_connector(Arc::clone(herder), name)));
    found.extend(together(looks).await);
    found
}

/// Without the topic of offsets all sources begin anew, and nothing else would say so.
fn of_offsets(herder: &Herder) -> Option<Finding> {
    let topic = &herder.config.offsets_topic;
    let finding = Finding::new(
        Severity::Error,
        "OFFSETS_LOST",
        format!(
            "topic {topic} was not there at this start and was made anew; there were connectors"
        ),
        "sources have begun anew: what they had delivered is delivered once more",
        "highwater connector stop NAME of each source, then highwater offsets set NAME with the position to go on \
         from and highwater connector resume NAME; or restore the topic and restart the server",
    );
    herder.shared.lost_offsets.then(|| finding.about(format!("topic {topic}")))
}

/// Other workers of the group that are not reached from here.
async fn of_workers(herder: &Herder) -> Vec<Finding> {
    let Some(sharing) = &herder.config.sharing else { return Vec::new() };
    let others = herder.standing().others(&herder.config.worker_id);
    let looks = others.into_iter().map(|worker| {
        let tls = sharing.tls.clone();
        async move {
            let refused = rest_forward::reach(&worker.url, &tls).await.err();
            refused.map(|refusal| unreached(&worker.id, &refusal)).into_iter().collect()
        }
    });
    together(looks).await
}

fn unreached(worker_id: &str, refusal: &Refusal) -> Finding {
    let (code, what) = match refusal {
        Refusal::Unreached { url, why } => {
            ("WORKER_UNREACHED", format!("it cannot be reached at {url}: {why}"))
        }
        other => ("WORKER_TLS_FAILED", other.message()),
    };
    let reason = "requests that come here and are its to do fail; tasks run on";
    let remedy =
        format!("highwater explain {code}; and run highwater doctor --url of {worker_id}, too");
    Finding::new(Severity::Warning, code, what, reason, remedy).about(format!("worker {worker_id}"))
}

/// What is found, in the order of those who look.
async fn together<L>(looks: impl Iterator<Item = L>) -> Vec<Finding>
where
    L: Future<Output = Vec<Finding>> + Send + 'static,
{
    let mut found = BTreeMap::new();
    let mut looking = JoinSet::new();
    for (place, look) in looks.enumerate() {
        if looking.len() == TOGETHER {
            found.extend(looking.join_next().await.and_then(Result::ok));
        }
        looking.spawn(async move { (place, look.await) });
    }
    while let Some(looked) = looking.join_next().await {
        found.extend(looked.ok());
    }
    found.into_values().flatten().collect()
}

async fn of_connector(herder: Arc<Herder>, name: String) -> Vec<Finding> {
    let mut findings = herder
        .status(&name)
        .map_or_else(|_| Vec::new(), |status| of_status(&herder, &name, &status));
    findings.extend(of_still(&herder, &name, undone(&herder, &name)));
    findings.extend(of_moves(&herder, &name));
    // Its source would say the same again.
    let failed = findings.iter().any(|finding| finding.severity == Severity::Error);
    findings.extend(of_secrets(&herder, &name));
    findings.extend(herder.plan(&name).ok().and_then(|plan| of_keys(&plan.without_effect)));
    if !failed {
        findings = joined(findings, of_source(&herder, &name).await);
    }
    findings.into_iter().map(|finding| finding.of(&name)).collect()
}

/// What the status says and what the source says when it is asked. What is tried again here and fails in the same way when
/// it is asked is one thing, and the answer says it.
fn joined(said: Vec<Finding>, asked: Vec<Finding>) -> Vec<Finding> {
    let is_answered = |said: &Finding| asked.iter().any(|asked| asked.code == said.code);
    let mut findings: Vec<_> = said.into_iter().filter(|said| !is_answered(said)).collect();
    findings.extend(asked);
    findings
}

/// A connector or tasks of it that do not run, here or elsewhere, and why.
fn of_status(herder: &Herder, name: &str, status: &ConnectorStatus) -> Vec<Finding> {
    let (scrub, undone) = (scrub(herder, name), undone(herder, name));
    let elsewhere = |part: &Elsewhere| part.finding(&herder.config.group_id, &scrub, undone);
    of_parts(status, undone, elsewhere)
}

fn undone(herder: &Herder, name: &str) -> Undone {
    let properties = herder.properties(name).unwrap_or_default();
    Undone::of(herder.plugin(&properties))
}

fn of_parts(
    status: &ConnectorStatus,
    undone: Undone,
    elsewhere: impl Fn(&Elsewhere) -> Option<Finding>,
) -> Vec<Finding> {
    let parts = || std::iter::once(&status.connector).chain(status.tasks.values());
    let mut found = Parts::default();
    let here = parts().filter_map(Seen::here).filter_map(|part| of_part(part, undone));
    here.for_each(|finding| found.add("", finding));
    for part in parts().filter_map(Seen::elsewhere) {
        let worker = part.said.worker_id.as_str();
        elsewhere(part).into_iter().for_each(|finding| found.add(worker, finding));
    }
    found.findings
}

/// What is found of the parts of one connector. What stops all that one worker has is said once, and
/// what is wanted of all parts is said once of all workers.
#[derive(Default)]
struct Parts {
    findings: Vec<Finding>,
    said: BTreeSet<(String, Cow<'static, str>)>,
}

impl Parts {
    fn add(&mut self, worker: &str, finding: Finding) {
        let worker = if finding.code == NOT_RUNNING { "" } else { worker };
        if self.said.insert((worker.to_owned(), finding.code.clone())) {
            self.findings.push(finding);
        }
    }
}

/// Takes what is secret in a connector's configuration out of what other workers have written.
fn scrub(herder: &Herder, name: &str) -> Scrub {
    let properties = herder.properties(name).unwrap_or_default();
    let literal = secrets::literal(herder.plugin(&properties), &properties);
    let values = literal.into_iter().filter_map(|key| properties.get(key).cloned());
    Scrub::of(values)
}

fn of_part(status: &Status, undone: Undone) -> Option<Finding> {
    match (status.state, &status.error) {
        (State::Failed, Some(error)) => Some(Finding {
            reason: format!("{}; kept: {}", undone.failed, error.kept),
            ..Finding::from_error(error)
        }),
        (State::Restarting, Some(error)) => Some(Finding::new(
            Severity::Warning,
            error.code,
            format!("it is tried again since {}: {}", status.since, error.what),
            undone.retried,
            error.remedy.as_str(),
        )),
        (State::Paused | State::Stopped, _) => Some(Finding::new(
            Severity::Warning,
            NOT_RUNNING,
            format!("it is {} since {}", status.state.name().to_lowercase(), status.since),
            undone.at_rest,
            format!("highwater connector resume {}", highwater_connector::CONNECTOR_NAME),
        )),
        _ => None,
    }
}

/// Tasks that are said to run and do not move.
fn of_still(herder: &Herder, name: &str, undone: Undone) -> Vec<Finding> {
    let Some((_, tasks)) = herder.runners.statuses(name).0 else { return Vec::new() };
    let still = tasks.iter().filter_map(|(id, task)| {
        let what = health::stands(task, &*herder.shared.meters.of(name, *id)?, Timestamp::now())?;
        let remedy = format!("highwater connector restart {}", highwater_connector::CONNECTOR_NAME);
        let what = format!("task {id}: {what}");
        Some(Finding::new(Severity::Warning, "TASK_STANDS_STILL", what, undone.still, remedy))
    });
    still.collect()
}

fn of_moves(herder: &Herder, name: &str) -> Option<Finding> {
    let (_, tasks) = herder.runners.statuses(name).0?;
    let meters = tasks.keys().filter_map(|id| herder.shared.meters.of(name, *id));
    moved(&meters.flat_map(|meter| meter.moved.lock().clone()).collect())
}

/// Rule S3: a gap is never silent.
fn moved(moves: &BTreeMap<TopicPartition, Move>) -> Option<Finding> {
    let said = |(partition, Move { from, to, at }): (&TopicPartition, &Move)| {
        let gap =
            if to > from { "nothing between was delivered" } else { "it comes again from there" };
        format!("{partition} at {at}: offset {from} was not there, it went on at {to}, {gap}")
    };
    let more = moves.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; {more} more partitions") } else { String::new() };
    let moves: Vec<_> = moves.iter().take(NAMED).map(said).collect();
    (!moves.is_empty()).then(|| {
        Finding::new(
            Severity::Warning,
            "SINK_MOVED",
            format!("{}{more}", moves.join("; ")),
            "the log did not have where it was to read on: retention or a deletion took it, or the stored offset lay beyond the end",
            "raise retention.ms and retention.bytes of the topic above the longest time that the sink is not read; docs/how-to/move-position.md shows how an offset is set",
        )
    })
}

fn of_secrets(herder: &Herder, name: &str) -> Option<Finding> {
    let properties = herder.properties(name).ok()?;
    let keys = secrets::literal(herder.plugin(&properties), &properties).join(", ");
    (!keys.is_empty()).then(|| {
        Finding::new(
            Severity::Note,
            "CONNECTOR_SECRET_LITERAL",
            format!("its configuration holds the value of {keys}"),
            "whoever may read the topic highwater.configs, the data folder or a backup of it can read it",
            "refer to it instead, such as ${file:/run/secrets/shop.properties:password}, then change the password; docs/how-to/secrets.md shows how",
        )
    })
}

/// Keys that are taken and change nothing.
fn of_keys(without_effect: &[WithoutEffect]) -> Option<Finding> {
    (!without_effect.is_empty()).then(|| {
        Finding::new(
            Severity::Note,
            "CONNECTOR_KEY_WITHOUT_EFFECT",
            format!("keys that change nothing: {}", client_overrides::listed(without_effect)),
            "they are settings of Kafka's Java clients, which Kafka Connect hands on, or options that a converter has not",
            "leave them for a way back to Kafka Connect, or take each out: PATCH \
             /connectors/NAME/config with the key and a null"
                .replace("NAME", highwater_connector::CONNECTOR_NAME),
        )
    })
}

async fn of_source(herder: &Herder, name: &str) -> Vec<Finding> {
    let Ok(plan) = herder.plan(name) else { return Vec::new() };
    let mut findings = Vec::new();
    for task in plan.tasks.iter().filter_map(TaskPlan::source) {
        // Others say that the log is away, and a source is not to blame for it.
        let Ok(Ok(offset)) = timeout(PATIENCE, position(herder, task)).await else { continue };
        let asked = timeout(PATIENCE, ask(herder, task, offset)).await;
        let found = asked
            .unwrap_or_else(|_| Err(silent("how it stands", PATIENCE)))
            .unwrap_or_else(|error| vec![Finding::from_error(&error)]);
        findings.extend(found);
    }
    findings
}

/// What is stored of a source.
async fn position(herder: &Herder, pipeline: &Pipeline) -> Result<Option<SourceOffset>, Refusal> {
    let stored = Box::pin(herder.offsets(&pipeline.name)).await?;
    let own = stored.into_iter().find(|stored| stored.partition == pipeline.partition);
    Ok(own.and_then(|stored| stored.offset))
}

async fn ask(
    herder: &Herder,
    pipeline: &Arc<Pipeline>,
    offset: Option<SourceOffset>,
) -> Result<Vec<Finding>, ConnectorError> {
    let pipeline = pipeline.fresh(&herder.config).await?;
    pipeline.scrubbed(pipeline.connector.examine(&pipeline.config, offset.as_ref())).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_connector::ErrorKind;

    fn part(state: State, error: Option<ConnectorError>) -> Status {
        let mut status = Status::unassigned();
        status.enter(state, error, "");
        status
    }

    fn status(connector: Status, tasks: Vec<Status>) -> ConnectorStatus {
        let tasks = (0..).zip(tasks.into_iter().map(Box::new).map(Seen::Here)).collect();
        ConnectorStatus { connector: Seen::Here(connector.into()), tasks }
    }

    #[test]
    fn an_unreachable_source_is_said_once() {
        let finding = |severity, code: &'static str| Finding::new(severity, code, "", "", "");
        let said = vec![
            finding(Severity::Warning, "PG_CONNECTION"),
            finding(Severity::Note, "CONNECTOR_SECRET_LITERAL"),
        ];
        let asked = vec![finding(Severity::Error, "PG_CONNECTION")];
        let found = joined(said, asked);
        let found: Vec<_> = found.iter().map(|each| (each.severity, &*each.code)).collect();
        assert_eq!(
            found,
            [(Severity::Note, "CONNECTOR_SECRET_LITERAL"), (Severity::Error, "PG_CONNECTION")]
        );
    }

    fn found(task: Option<State>, error: Option<ConnectorError>) -> Option<Finding> {
        let connector = if task.is_none() { State::Stopped } else { State::Running };
        let tasks = task.map(|task| part(task, error)).into_iter().collect();
        let mut found =
            of_parts(&status(part(connector, None), tasks), Undone::BY_SOURCE, |_| None);
        assert!(found.len() < 2, "{found:?}");
        found.pop()
    }

    #[test]
    fn what_stops_two_tasks_is_said_once_and_what_stops_one_is_not_lost() {
        let error = |code| ConnectorError::stop(code, ErrorKind::Data, "a row is odd", "mend it");
        let failed = |code| part(State::Failed, Some(error(code)));
        let tasks = vec![failed("X_1"), part(State::Running, None), failed("X_1"), failed("X_2")];
        let found =
            of_parts(&status(part(State::Running, None), tasks), Undone::BY_SOURCE, |_| None);
        let codes: Vec<_> = found.iter().map(|finding| finding.code.to_string()).collect();
        assert_eq!(codes, ["X_1", "X_2"]);
    }

    #[test]
    fn what_stops_parts_of_others_is_said_once_a_worker_and_what_is_wanted_once_of_all() {
        let mut parts = Parts::default();
        for (worker, code) in [
            ("", "X_1"),
            ("a:1", "X_1"),
            ("a:1", "X_1"),
            ("b:1", "X_1"),
            ("a:1", NOT_RUNNING),
            ("b:1", NOT_RUNNING),
        ] {
            parts.add(worker, Finding::new(Severity::Error, code, worker, "r", "d"));
        }
        let said: Vec<_> = parts.findings.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(said, ["", "a:1", "b:1", "a:1"]);
    }

    #[test]
    fn a_connector_that_runs_is_no_finding() {
        assert_eq!(found(Some(State::Running), None), None);
    }

    #[test]
    fn one_that_does_not_run_is_found_with_its_reason() {
        let error = ConnectorError::stop("X_1", ErrorKind::Data, "a row is odd", "mend it");
        let failed = found(Some(State::Failed), Some(error.clone())).unwrap();
        assert_eq!((&*failed.code, failed.severity), ("X_1", Severity::Error));
        let retrying = found(Some(State::Restarting), Some(error)).unwrap();
        assert_eq!((&*retrying.code, retrying.severity), ("X_1", Severity::Warning));
        let stopped = found(None, None).unwrap().of("shop");
        assert!(stopped.what.contains("stopped since"), "{}", stopped.what);
        assert_eq!(stopped.remedy, "highwater connector resume shop");
    }

    #[test]
    fn of_a_sink_nothing_is_said_of_a_source() {
        let stopped = part(State::Stopped, None);
        let error = ConnectorError::again("X_1", ErrorKind::Data, "the shelf is away");
        let retried = part(State::Restarting, Some(error));
        let error = ConnectorError::stop("X_2", ErrorKind::Data, "a row is odd", "mend it");
        let failed = part(State::Failed, Some(error));
        let found = of_parts(&status(stopped, vec![retried, failed]), Undone::BY_SINK, |_| None);
        let reasons: Vec<_> = found.iter().map(|finding| finding.reason.as_str()).collect();
        assert_eq!(reasons[..2], [Undone::BY_SINK.at_rest, Undone::BY_SINK.retried]);
        assert!(reasons[2].starts_with(Undone::BY_SINK.failed), "{reasons:?}");
        assert!(!format!("{found:?}").contains("source"), "{found:?}");
    }

    #[test]
    fn a_gap_is_a_warning_with_both_edges() {
        assert_eq!(moved(&BTreeMap::new()), None);
        let at = Timestamp::UNIX_EPOCH;
        let orders = |partition| TopicPartition::new("orders", partition);
        let moves =
            [(orders(0), Move { from: 3, to: 8, at }), (orders(1), Move { from: 9, to: 2, at })];
        let found = moved(&moves.into()).unwrap();
        assert_eq!((&*found.code, found.severity), ("SINK_MOVED", Severity::Warning));
        let parts: Vec<_> = found.what.split("; ").collect();
        assert!(parts[0].starts_with("orders-0 at 1970"), "{}", found.what);
        assert!(parts[0].contains("offset 3") && parts[0].contains("at 8, nothing between"));
        assert!(parts[1].contains("offset 9") && parts[1].contains("at 2, it comes again"));
    }

    #[test]
    fn keys_that_change_nothing_are_one_note() {
        assert_eq!(of_keys(&[]), None);
        let key = |key: &str| WithoutEffect { key: key.to_owned(), reason: "it is so" };
        let note = of_keys(&[key("producer.override.acks"), key("admin.override.client.id")]);
        let note = note.unwrap().of("shop");
        assert_eq!((&*note.code, note.severity), ("CONNECTOR_KEY_WITHOUT_EFFECT", Severity::Note));
        assert!(note.what.contains("producer.override.acks (it is so); admin.override.client.id"));
        assert!(note.remedy.contains("/connectors/shop/config"), "{}", note.remedy);
    }

    #[tokio::test(start_paused = true)]
    async fn many_silent_sources_are_one_wait() {
        let began = tokio::time::Instant::now();
        let look = async |place: usize| {
            // The first ones answer last.
            tokio::time::sleep(PATIENCE - Duration::from_millis(place as u64)).await;
            vec![Finding::new(Severity::Note, "X_1", place.to_string(), "r", "d")]
        };
        let found = together((0..TOGETHER).map(look)).await;
        assert_eq!(began.elapsed(), PATIENCE);
        let places: Vec<String> = (0..TOGETHER).map(|place| place.to_string()).collect();
        assert_eq!(found.into_iter().map(|finding| finding.what).collect::<Vec<_>>(), places);
    }
}
