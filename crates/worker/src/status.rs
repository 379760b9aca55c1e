//! What a connector and each of its tasks are doing now: the state and, in one sentence, whether it
//! moves (rule U4).

use std::collections::BTreeMap;

use highwater_connector::{ConnectorError, Fact, Generation, Hold, SourceOffset};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::elsewhere::Elsewhere;
use crate::pulse::Pulse;

/// Kafka Connect's states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Unassigned,
    Running,
    Paused,
    Failed,
    Restarting,
    /// Of a connector only, never of a task.
    Stopped,
}

impl State {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unassigned => "UNASSIGNED",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Failed => "FAILED",
            Self::Restarting => "RESTARTING",
            Self::Stopped => "STOPPED",
        }
    }
}

impl State {
    const ALL: [Self; 6] = [
        Self::Unassigned,
        Self::Running,
        Self::Paused,
        Self::Failed,
        Self::Restarting,
        Self::Stopped,
    ];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What the source keeps for a connector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    /// When it was asked.
    pub(crate) seen: Timestamp,
    /// What it said, or why it said nothing.
    pub(crate) hold: Result<Option<Hold>, String>,
}

impl Held {
    /// What was seen just now.
    pub(crate) fn now(hold: Result<Option<Hold>, String>) -> Self {
        Self { seen: Timestamp::now(), hold }
    }

    fn json(&self) -> Value {
        let seen = self.seen.to_string();
        match &self.hold {
            Ok(None) => Value::Null,
            Ok(Some(hold)) => json!({
                "says": hold.says,
                "do": hold.remedy,
                "by_hand": hold.by_hand,
                "pressing": hold.pressing,
                "facts": facts_json(&hold.facts),
                "seen": seen,
            }),
            Err(why) => json!({
                "says": format!("what the source keeps for it is not known: {why}"),
                "seen": seen,
            }),
        }
    }
}

fn facts_json(facts: &[Fact]) -> Value {
    facts
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect::<Map<_, _>>()
        .into()
}

/// How a part stands, as far as this worker knows.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// It is this worker's.
    Here(Box<Status>),
    /// It is another's, and this is what that one has said last.
    Elsewhere(Elsewhere),
}

impl Seen {
    pub(crate) fn state(&self) -> State {
        match self {
            Self::Here(status) => status.state,
            Self::Elsewhere(part) => part.said.state,
        }
    }

    /// Its status where it is this worker's.
    pub(crate) fn here(&self) -> Option<&Status> {
        match self {
            Self::Here(status) => Some(status),
            Self::Elsewhere(_) => None,
        }
    }

    /// What another has said of it where it is that one's.
    pub(crate) const fn elsewhere(&self) -> Option<&Elsewhere> {
        match self {
            Self::Here(_) => None,
            Self::Elsewhere(part) => Some(part),
        }
    }

    /// The same, as if it were about to be started anew.
    pub(crate) fn restarting(mut self) -> Self {
        match &mut self {
            Self::Here(status) => status.state = State::Restarting,
            Self::Elsewhere(part) => part.said.state = State::Restarting,
        }
        self
    }

    fn json(&self, worker_id: &str, version: Option<&str>) -> Map<String, Value> {
        match self {
            Self::Here(status) => status.json(worker_id, version),
            Self::Elsewhere(part) => part.json(),
        }
    }
}

/// A connector's own standing, and that of each task by its id.
#[derive(Clone, Debug)]
pub(crate) struct ConnectorStatus {
    pub(crate) connector: Seen,
    pub(crate) tasks: BTreeMap<u32, Seen>,
}

impl ConnectorStatus {
    /// Kafka Connect's `connector` object of a status. What is kept for a task that does not run is
    /// kept for its connector.
    pub(crate) fn connector_json(&self, worker_id: &str, version: Option<&str>) -> Value {
        let mut shown = self.connector.clone();
        if let Seen::Here(status) = &mut shown
            && status.held.is_none()
        {
            let mut own = self.tasks.values().filter_map(Seen::here);
            status.held = own.find_map(|task| task.held.clone());
        }
        Value::Object(shown.json(worker_id, version))
    }

    /// Kafka Connect's `tasks` of a status.
    pub(crate) fn tasks_json(&self, worker_id: &str, version: Option<&str>) -> Vec<Value> {
        self.tasks.keys().filter_map(|id| self.task_json(*id, worker_id, version)).collect()
    }

    /// Kafka Connect's object of one task, if there is such a task.
    pub(crate) fn task_json(
        &self,
        id: u32,
        worker_id: &str,
        version: Option<&str>,
    ) -> Option<Value> {
        let mut object = Map::from_iter([("id".to_owned(), json!(id))]);
        object.extend(self.tasks.get(&id)?.json(worker_id, version));
        Some(Value::Object(object))
    }
}

/// How a connector or a task stands.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) state: State,
    /// What stopped it, while it is failed or waits to be tried again.
    pub(crate) error: Option<ConnectorError>,
    /// One sentence: whether it moves, and if not why.
    pub(crate) activity: String,
    /// Whether the log takes what its task sends.
    pub(crate) pulse: Pulse,
    /// The numbers of that sentence.
    pub(crate) facts: Vec<Fact>,
    /// What the source keeps for it; `None` before it was asked.
    pub(crate) held: Option<Held>,
    /// When it entered its state.
    pub(crate) since: Timestamp,
    /// When the log acknowledged a record last, in this run of the server.
    pub(crate) last_record: Option<Timestamp>,
    /// The newest stored offset, in this run of the server.
    pub(crate) position: Option<SourceOffset>,
    /// What its records bear.
    pub(crate) generation: Option<Generation>,
}

impl Status {
    /// Of what this worker had, and has no more.
    pub(crate) fn let_go() -> Self {
        let activity =
            "This server has let it go, and no other has said that it runs it".to_owned();
        Self { activity, ..Self::unassigned() }
    }

    /// One that nobody runs yet.
    pub(crate) fn unassigned() -> Self {
        Self {
            state: State::Unassigned,
            error: None,
            activity: "Not started yet".to_owned(),
            pulse: Pulse::default(),
            facts: Vec::new(),
            held: None,
            since: Timestamp::now(),
            last_record: None,
            position: None,
            generation: None,
        }
    }

    /// Moves to another state, now.
    pub(crate) fn enter(
        &mut self,
        state: State,
        error: Option<ConnectorError>,
        activity: impl Into<String>,
    ) {
        if self.state != state {
            self.since = Timestamp::now();
            self.facts.clear();
            // What is kept while it runs says nothing of what is kept once it does not.
            if !matches!(state, State::Running | State::Restarting) {
                self.held = None;
            }
        }
        if state != State::Running {
            self.pulse = Pulse::default();
        }
        (self.state, self.error) = (state, error);
        self.activity = activity.into();
    }

    /// What Kafka Connect shows of it, and ours.
    fn json(&self, worker_id: &str, version: Option<&str>) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("state".to_owned(), json!(self.state.name()));
        object.insert("worker_id".to_owned(), json!(worker_id));
        if let Some(trace) = self.trace() {
            object.insert("trace".to_owned(), json!(trace));
        }
        if let Some(version) = version {
            object.insert("version".to_owned(), json!(version));
        }
        object.insert("highwater".to_owned(), self.ours());
        object
    }

    /// The error's five parts as text, while it has one.
    pub(crate) fn trace(&self) -> Option<String> {
        self.error.as_ref().map(ToString::to_string)
    }

    /// What it is doing; a task that waits for the log has said what it did before.
    fn says(&self) -> String {
        match self.pulse.silence(Timestamp::now()) {
            Some(silence) => format!("{}; {silence}", self.activity),
            None => self.activity.clone(),
        }
    }

    /// What Kafka Connect has no field for.
    fn ours(&self) -> Value {
        let mut ours = json!({ "activity": self.says(), "since": self.since.to_string() });
        let extra = [
            ("last_record", self.last_record.map(|time| json!(time.to_string()))),
            ("position", self.position.as_ref().map(|position| json!(position.to_string()))),
            ("generation", self.generation.map(|generation| json!(generation.to_string()))),
            ("error", self.error.as_ref().map(error_json)),
            ("facts", (!self.facts.is_empty()).then(|| facts_json(&self.facts))),
            ("hold", self.held.as_ref().map(Held::json)),
        ];
        if let Value::Object(object) = &mut ours {
            object.extend(
                extra.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))),
            );
        }
        ours
    }
}

/// The parts of an error (rule U3).
pub(crate) fn error_json(error: &ConnectorError) -> Value {
    json!({
        "code": error.code,
        "what": error.what,
        "kept": error.kept,
        "do": error.remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_connector::ErrorKind;

    fn entered(state: State, error: Option<ConnectorError>) -> Status {
        let mut status = Status::unassigned();
        status.enter(state, error, "Reads");
        status
    }

    #[test]
    fn connects_shape_stays_and_ours_stands_aside() {
        let task = || Seen::Here(entered(State::Running, None).into());
        let tasks = [(0, task()), (1, task())].into();
        let status = ConnectorStatus { connector: task(), tasks };
        let tasks = status.tasks_json("w:1", Some("0.1.0"));
        assert_eq!((tasks.len(), &tasks[1]["id"]), (2, &json!(1)));
        let task = &tasks[0];
        assert_eq!((&task["id"], &task["state"]), (&json!(0), &json!("RUNNING")));
        assert_eq!((&task["worker_id"], &task["version"]), (&json!("w:1"), &json!("0.1.0")));
        assert_eq!(task.get("trace"), None);
        assert_eq!(task["highwater"]["activity"], "Reads");
        assert_eq!(status.task_json(2, "w:1", None), None);
    }

    #[test]
    fn a_failed_task_shows_the_five_parts_and_its_connector_and_sibling_run() {
        let error = ConnectorError::stop("X_1", ErrorKind::Data, "a row is odd", "mend it");
        let running = || entered(State::Running, None);
        let failed = Seen::Here(entered(State::Failed, Some(error)).into());
        let tasks = [(0, Seen::Here(running().into())), (1, failed)].into();
        let status = ConnectorStatus { connector: Seen::Here(running().into()), tasks };
        assert_eq!(status.connector_json("w", None).get("trace"), None);
        let tasks = status.tasks_json("w", None);
        assert_eq!(tasks[0].get("trace"), None);
        let trace = tasks[1]["trace"].as_str().unwrap();
        for part in ["X_1", "a row is odd", "Kept: ", "Do: mend it"] {
            assert!(trace.contains(part), "{part} is missing in {trace}");
        }
        assert_eq!(tasks[1]["highwater"]["error"]["code"], "X_1");
    }

    #[test]
    fn what_is_kept_is_shown_and_not_knowing_it_too() {
        let mut status = entered(State::Stopped, None);
        assert_eq!(status.ours().get("hold"), None, "not asked yet");
        let hold = Hold {
            says: "slot a holds 7 bytes".to_owned(),
            remedy: "resume".to_owned(),
            by_hand: "drop slot a".to_owned(),
            pressing: false,
            facts: vec![("held_bytes", "7".to_owned())],
        };
        status.held = Some(Held::now(Ok(Some(hold))));
        assert_eq!(status.ours()["hold"]["facts"]["held_bytes"], "7");
        assert_eq!(status.ours()["hold"]["by_hand"], "drop slot a");
        status.held = Some(Held::now(Ok(None)));
        assert_eq!(status.ours()["hold"], Value::Null);
        status.held = Some(Held::now(Err("it is away".to_owned())));
        assert!(status.ours()["hold"]["says"].as_str().unwrap().ends_with("not known: it is away"));
        let tasks = [(0, Seen::Here(status.clone().into()))].into();
        let of_task = ConnectorStatus { connector: Seen::Here(Status::unassigned().into()), tasks };
        let shown = of_task.connector_json("w", None);
        assert!(shown["highwater"]["hold"].is_object(), "what is kept for the task: {shown}");
        status.enter(State::Unassigned, None, "Opens the source");
        assert_eq!(status.held, None, "what was kept while it stood still");
    }

    #[test]
    fn since_changes_with_the_state_only() {
        let mut status = Status::unassigned();
        status.since = Timestamp::UNIX_EPOCH;
        status.enter(State::Unassigned, None, "Still not");
        assert_eq!(status.since, Timestamp::UNIX_EPOCH);
        status.enter(State::Stopped, None, "Stopped");
        assert_ne!(status.since, Timestamp::UNIX_EPOCH);
    }
}
